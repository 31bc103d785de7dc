"""What a release shows of a lesion besides its picture: its kind, how large it is, and whereabouts it lies.

    kind     the coded types of the segments that are lesions, or RT interpreted types of the regions
    size     volume in ml, in bands of doubling: 1 to 2, 2 to 4
    side     left or right of the middle of what the image shows of the body, or in the middle of it
    region   front, middle or back third, and upper or lower half, of the same

Read from what would leave, and hashed under a key at once: a rare lesion singles its person out whatever else is gone.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from pydicom import Dataset

from gateway.errors import Hold
from gateway.gate.lesion_drawn import UNDRAWN, Drawing, Mask, drawings
from gateway.gate.lesion_views import turned_mask
from gateway.gate.pixel_layout import Unseen
from gateway.gate.reading import Pair, judging
from gateway.gate.release_isolation import LESION_ATTRIBUTES
from gateway.gate.views import axial
from gateway.policy import Policy
from gateway.volumes import Stack

LEAST_ML = 1 / 16  # smaller ones are one band
BODY = 0.1  # of the image's range: darker is air
TAILS = (0.01, 0.99)  # of the body along an axis: a few bright voxels are none of it
MIDDLE = 0.1  # of the body's width, to each side

Pixels = NDArray[np.float32]


def attributes_wanted(policy: Policy) -> tuple[str, ...]:
    """Of lesions, by which release checks of the policy tell people apart."""
    named = {name for check in policy.gate.release.values() for name in getattr(check, "lesion", ())}
    return tuple(name for name in LESION_ATTRIBUTES if name in named)


def lesion_facts(pairs: Sequence[Pair], policy: Policy, key: bytes) -> dict[str, str]:
    """Attribute -> keyed hash, of the lesion as the largest drawn volume shows it; {} when no check asks.

    Raises Hold: "lesion_undrawn" when nothing that leaves draws a lesion, or it has no place in the images;
    "gate_failed" for what cannot be read.
    """
    wanted = attributes_wanted(policy)
    if not wanted:
        return {}
    headers, (_, released) = drawings(pairs, policy)
    shown = [one for one in headers.stacks if one.planes[0].instance not in released.lesions]
    masks = [(released.mask(stack), stack) for stack in shown]
    marked = [(_ml(mask, stack), number) for number, (mask, stack) in enumerate(masks) if mask.any()]
    if not marked:
        raise Hold(UNDRAWN, at="no image shows the lesion that would leave")
    ml, number = max(marked)
    told = _told(*masks[number], ml, released)
    return {
        name: hmac.new(key, f"lesion {name}\0{told[name]}".encode(), hashlib.sha256).hexdigest()[:24] for name in wanted
    }


def _ml(mask: Mask, stack: Stack) -> float:
    return float(mask.sum() * math.prod(stack.spacing_mm) / 1000)


def _told(mask: Mask, stack: Stack, ml: float, released: Drawing) -> Mapping[str, str]:
    kinds = {kind for number, lesions in released.lesions.items() for kind in _kinds(released, number, lesions)}
    name = released.names[stack.planes[0].instance]
    try:
        with judging(name):
            pixels, _ = axial(stack, released.side)
            across, along, up = place(pixels, turned_mask(stack, mask))
    except Unseen as unseen:
        raise Hold(UNDRAWN, at=f"{name}: {unseen.rule}") from None
    side = "middle" if abs(across - 0.5) <= MIDDLE else "left" if across > 0.5 else "right"
    third = ("front", "middle", "back")[min(2, int(along * 3))]
    return {
        "kind": "|".join(sorted(kinds)),
        "size": str(size_band(ml)),
        "side": side,
        "region": f"{third} {'upper' if up > 0.5 else 'lower'}",
    }


def _kinds(released: Drawing, number: int, lesions: frozenset[int]) -> list[str]:
    dataset = released.datasets[number]
    with judging(released.names[number]):
        segments = [one for one in dataset.get("SegmentSequence") or () if int(one.SegmentNumber) in lesions]
        regions = [
            one for one in dataset.get("RTROIObservationsSequence") or () if int(one.ReferencedROINumber) in lesions
        ]
        return [_code(one) for one in segments] + [str(one.get("RTROIInterpretedType") or "") for one in regions]


def _code(segment: Dataset) -> str:
    codes = segment.get("SegmentedPropertyTypeCodeSequence") or ()
    return "+".join(f"{one.get('CodingSchemeDesignator', '')}:{one.get('CodeValue', '')}" for one in codes)


def size_band(ml: float) -> int:
    """The n of 2ⁿ to 2ⁿ⁺¹ ml."""
    return math.floor(math.log2(max(ml, LEAST_ML)))


def place(pixels: Pixels, mask: Mask) -> tuple[float, float, float]:
    """The lesion's centre within the body that (slices from feet to head, rows from front to back, columns from right
    to left) show: towards the left, the back and the head, 0 to 1 each. Raises Unseen where no body is seen.
    """
    body = pixels > BODY
    if not body.any() or not mask.any():
        raise Unseen("", "nothing is seen that the lesion could lie in")
    shares = []
    for axis in (2, 1, 0):
        others = tuple(one for one in range(3) if one != axis)
        reached = np.cumsum(body.sum(others)) / body.sum()
        low, high = (int(np.searchsorted(reached, tail)) for tail in TAILS)
        counts = mask.sum(others)
        centre = float((counts * np.arange(len(counts))).sum() / counts.sum())
        shares.append(min(1.0, max(0.0, (centre - low + 0.5) / (high - low + 1))))
    return shares[0], shares[1], shares[2]
