"""Marks the lesion of a head's MRI where nobody drew it, and says when it cannot: arrays in, a mask out.

A mask that misses a lesion makes false data of a study (healthy tissue takes its place), so what is empty, uncertain or
of another kind than the card's people is refused. What a DICOM study is, is the gateway's business.
"""

from models.lesion_segmenter.certainty import certainty_of, dice, least_certainty
from models.lesion_segmenter.network import LesionUNet, SegmenterConfig, with_neighbours
from models.lesion_segmenter.parts import ALGORITHM, SegmenterParts, parts_of
from models.lesion_segmenter.segment import NothingFound, Segmented, Uncertain, judge, looked_at, segment

__all__ = [
    "ALGORITHM",
    "LesionUNet",
    "NothingFound",
    "Segmented",
    "SegmenterConfig",
    "SegmenterParts",
    "Uncertain",
    "certainty_of",
    "dice",
    "judge",
    "least_certainty",
    "looked_at",
    "parts_of",
    "segment",
    "with_neighbours",
]
