"""Which flat pictures are photographs, or may be: no detector here vouches for those.

A photograph by its modality or SOP class (visible light, PS3.3 A.32; stills, video and the retired trial classes), in
grey too: classes and modalities only make the check stricter. And any picture in natural colours, whatever its class
(screenshots, OT, hardcopies: renderings of a face come in the colours of skin), but for what is acquired without light
or through a microscope: ultrasound, MR, CT, PET and NM colour maps, whole slides. Natural colours are many colours on
much of the picture: a coloured bar beside a grey image, coloured letters and flat charts have few, or cover little.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset

# Visible light, by the modality of the original. OP too: it means the eye from outside as well as the retina.
PHOTOGRAPHS = frozenset({"XC", "DMS", "SMR", "ES", "LS", "GM", "DOCD", "OP"})
_VISIBLE = "1.2.840.10008.5.1.4.1.1.77.1"
# VL Image (trial, single and multi-frame), endoscopic, photographic, ophthalmic photography, wide field, dermoscopic
PHOTOGRAPH_CLASSES = frozenset(
    {_VISIBLE, "1.2.840.10008.5.1.4.1.1.77.2"}
    | {_VISIBLE + end for end in (".1", ".1.1", ".4", ".4.1", ".5.1", ".5.2", ".5.5", ".5.6", ".7")}
)
_STORAGE = "1.2.840.10008.5.1.4.1.1."
# Colours of these are drawn by a machine, or stain: US (retired, multi-frame, enhanced, photoacoustic), CT, MR, NM,
# PET, slides through a microscope
COLOURED_CLASSES = frozenset(
    _STORAGE + end
    for end in (
        *("6", "3", "6.1", "3.1", "6.2", "6.3", "2", "2.1", "4", "4.1", "4.3", "20", "5", "128", "130"),
        *("77.1.3", "77.1.6"),
    )
)
CHROMA = 0.08  # of the range of values: grey is not exactly grey after JPEG
LEAST_SHARE = 0.02  # of the pixels that are coloured
LEAST_COLOURS = 8.0  # effective number, at 5 bits for each channel: a single hue, shaded, has 15 and more
SAMPLED = 512  # pixels along a side that are looked at


def is_photograph(dataset: Dataset) -> bool:
    """By what its header says."""
    return (
        str(dataset.get("Modality", "")) in PHOTOGRAPHS
        or str(dataset.get("SOPClassUID", "")).rstrip("\0 ") in PHOTOGRAPH_CLASSES
    )


def is_drawn(dataset: Dataset) -> bool:
    """True for classes whose colours are no light."""
    return str(dataset.get("SOPClassUID", "")).rstrip("\0 ") in COLOURED_CLASSES


def in_natural_colours(colours: NDArray[np.generic], photometric: str) -> bool:
    """`colours` (rows, columns, 3) as stored, RGB or one of the YBR. Both the share of what is coloured and the
    effective number of its colours (the exponential of their entropy) count.
    """
    by = [max(1, side // SAMPLED) for side in colours.shape[:2]]
    values = colours[:: by[0], :: by[1]].astype(np.float32)
    top = 255.0 if colours.dtype.itemsize == 1 else max(255.0, float(values.max()))
    values /= top
    if photometric.startswith("YBR"):
        chroma = 2 * np.abs(values[..., 1:] - 0.5).max(axis=-1)
    else:
        chroma = values.max(axis=-1) - values.min(axis=-1)
    coloured = chroma > CHROMA
    if coloured.mean() < LEAST_SHARE:
        return False
    bins = np.minimum(values[coloured] * 32, 31).astype(np.int64)
    counts = np.bincount(bins @ np.array([1024, 32, 1]))
    shares = counts[counts > 0] / len(bins)
    return float(np.exp(-(shares * np.log(shares)).sum())) >= LEAST_COLOURS  # edges of letters weigh little
