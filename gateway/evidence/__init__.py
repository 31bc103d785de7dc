"""From scores to statements about people: linkability, rank-1, bounds, nulls, isolation (numpy, scipy, numba).

Evidence is counted by person, not by image (DESIGN.md section 5). Nothing here knows DICOM, encoders or policies:
arrays and opaque labels in, figures with bounds out. Every random draw takes a generator.
"""

from gateway.evidence.attributes import FOLDS, TREES, Inference, infer_across, infer_within
from gateway.evidence.distances import METRICS, Metric, Nearest, distances, nearest
from gateway.evidence.isolation import Isolation, record_isolation
from gateway.evidence.linkability import Linkability, d_sys, excess, linkability, separation
from gateway.evidence.pairs import People, ScoredPairs, score_pairs, score_same_scan
from gateway.evidence.retrieval import CumulativeMatch, FixedGallery, fixed_gallery, leave_one_out, upper_share

__all__ = [
    "FOLDS",
    "METRICS",
    "TREES",
    "CumulativeMatch",
    "FixedGallery",
    "Inference",
    "Isolation",
    "Linkability",
    "Metric",
    "Nearest",
    "People",
    "ScoredPairs",
    "d_sys",
    "distances",
    "excess",
    "fixed_gallery",
    "infer_across",
    "infer_within",
    "leave_one_out",
    "linkability",
    "nearest",
    "record_isolation",
    "score_pairs",
    "score_same_scan",
    "separation",
    "upper_share",
]
