"""What stands for a study when its identity is measured, and its embeddings before and after.

The whole study counts: every image of every series is embedded, and whoever compares takes the worst.

    a stack (a regular grid of three slices and more)   one volume, turned to axial as `models.cohorts.Scan` has it and
                                                        at most 1 mm fine; its middle slice for a card that takes
                                                        pictures only
    any other object of one frame                       that frame
    any other object of several frames (cine)           three frames: at a quarter, a half and three quarters

Values go to 0..1 between the 0.2nd and the 99.8th percentile, black and white turned for MONOCHROME1, channels of
colour averaged. Where frames lie is read from the original for both sides; each side is decoded and scaled by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gateway.errors import Hold
from gateway.gate.aspects import IDENTITY, PRIVATE_BULK_BYTES
from gateway.gate.attackers import Folders, card_named, embedder_named, takes_volumes
from gateway.gate.bytescan import Scan, scan_file
from gateway.gate.face_reading import Headers, Side, headers_of
from gateway.gate.pixel_layout import Unseen, images, layout_of
from gateway.gate.pixel_places import BULK, shows_nothing
from gateway.gate.reading import Pair, judging, signatures
from gateway.gate.walk import Leaf
from gateway.policy import Policy
from gateway.volumes import Stack, read
from gateway.volumes.reading import Stored
from models.cards import Card, CardError

if TYPE_CHECKING:
    from gateway.embed import Embedder

FINEST_MM = 1.0
TAILS_PERCENT = (0.2, 99.8)
CINE_SHARES = (0.25, 0.5, 0.75)
NO_EVIDENCE = "no_identity_evidence"
FRAMES = "NumberOfFrames"

Pixels = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class View:
    """One image that is embedded. `stack` is None for a frame; `instance` and `frame` say where it begins.

    A stack whose instances state several modalities is left out when all of them are; else a card must know the others.
    """

    instance: int
    frame: int
    modalities: frozenset[str]
    stack: Stack | None = None


@dataclass(frozen=True, slots=True)
class Embedded:
    """One card's view of one study: (views, dimensions) of the originals and of what would be sent, in one order.

    `names` are our own names of the instances in which the views begin.
    """

    card: str
    originals: Pixels
    released: Pixels
    names: tuple[str, ...]


def embed_study(
    pairs: Sequence[Pair],
    cards: Sequence[str],
    folders: Folders,
    accepted: frozenset[str] = frozenset(),
    *,
    identity: Sequence[str] | None = None,
) -> tuple[Embedded, ...]:
    """The study by every card that knows its modalities. Images of the modalities in `accepted` are left out: a person
    answers for them (`accepted_in`). `identity` are those of the cards that judge it (`identity_cards`), None: all.

    Raises Hold("no_identity_evidence") when another image of it is in the domain of none of these or cannot be looked
    at, Hold("gate_failed") for a file that cannot be read.
    """
    with judging("files"):
        before = signatures(pairs)
    must = frozenset(cards if identity is None else identity)
    return _embed_study(tuple(pairs), before, tuple(cards), folders, accepted, must)


def accepted_in(policy: Policy) -> frozenset[str]:
    """Modalities whose images nobody can judge, and somebody answers for (`gate.not_assessed`)."""
    entries = (entry for entry in policy.gate.not_assessed if IDENTITY in entry.aspects)
    return frozenset(modality for entry in entries for modality in entry.modality)


@lru_cache(maxsize=2)  # a check of the study and the release ask for the same thing, one after the other
def _embed_study(
    pairs: tuple[Pair, ...],
    _before: tuple[tuple[int, ...], ...],
    cards: tuple[str, ...],
    folders: Folders,
    accepted: frozenset[str],
    identity: frozenset[str],
) -> tuple[Embedded, ...]:
    headers = headers_of(pairs)
    found = [(view, left) for view in views_of(headers) if (left := view.modalities - accepted)]
    _require_nothing_else(pairs, headers, accepted)
    covered: set[int] = set()
    made = []
    for name in cards:
        try:
            card, _ = card_named(name, folders)
            embedder = embedder_named(name, folders)
        except CardError:
            raise Hold(NO_EVIDENCE, at=f"card {name}") from None
        mine = [number for number, (_, left) in enumerate(found) if left <= frozenset(card.modalities)]
        covered.update(mine if name in identity else ())
        if mine:
            made.append(_by_card(pairs, [found[number][0] for number in mine], embedder))
    missing = next((view for number, (view, _) in enumerate(found) if number not in covered), None)
    if missing is not None:
        raise Hold(NO_EVIDENCE, at=f"{pairs[missing.instance].name}: no card knows its modality")
    return tuple(made)


def views_of(headers: Headers) -> Iterator[View]:
    """Every image of a study, volumes first. Raises nothing for what is in it."""
    for stack in headers.stacks:
        first = stack.planes[0]
        stated = frozenset(_modality(headers, plane.instance) for plane in stack.planes)
        yield View(first.instance, first.frame, stated, stack)
    for instance in sorted({stray.instance for stray in headers.strays}):
        frames = [stray.frame for stray in headers.strays if stray.instance == instance]
        count = len(frames)
        chosen = frames if count == 1 else [frames[int(share * (count - 1) + 0.5)] for share in CINE_SHARES]
        for frame in dict.fromkeys(chosen):
            yield View(instance, frame, frozenset({_modality(headers, instance)}))


def _modality(headers: Headers, instance: int) -> str:
    return str(headers.datasets[instance].get("Modality", "") or "")


def _require_nothing_else(pairs: Sequence[Pair], headers: Headers, accepted: frozenset[str]) -> None:
    """Pictures beside the pixel data are measured by nobody: icons, private blocks, samples without rows, frames that
    the original does not have.
    """
    for number, pair in enumerate(pairs):
        if _modality(headers, number) in accepted:
            continue
        with judging(pair.name):
            scan = scan_file(pair.candidate)
            placed = "Rows" in headers.datasets[number]
            for prefix, leaves in images(scan):
                if prefix or not placed or _frames(scan, leaves) != int(headers.datasets[number].get(FRAMES) or 1):
                    raise Hold(NO_EVIDENCE, at=f"{pair.name} {leaves[0].path}")
            for leaf in scan.leaves:
                private = leaf.tag >> 16 & 1 and leaf.vr in BULK and leaf.size >= PRIVATE_BULK_BYTES
                if private and not shows_nothing(leaf):
                    raise Hold(NO_EVIDENCE, at=f"{pair.name} {leaf.path}")


def _frames(scan: Scan, leaves: Sequence[Leaf]) -> int:
    """How many there are in the top pixel data, 0 when nobody can say."""
    try:
        return layout_of(scan, "", leaves, {leaf.path: leaf for leaf in scan.leaves}).frames
    except Unseen:
        return 0


def _by_card(pairs: Sequence[Pair], found: Sequence[View], embedder: Embedder) -> Embedded:
    names = [pair.name for pair in pairs]
    sides = (
        Side([pair.original for pair in pairs], names, original=True),
        Side([pair.candidate for pair in pairs], names, original=False),
    )
    vectors: list[list[Pixels]] = [[], []]
    for view in found:
        for out, side in zip(vectors, sides, strict=True):
            try:
                with judging(names[view.instance]):
                    pixels, spacing = picture(view, side, embedder.card)
                out.append(embedder.embed(pixels, spacing))
            except (Unseen, CardError):
                raise Hold(NO_EVIDENCE, at=f"{names[view.instance]} frame {view.frame}") from None
    originals, released = (np.stack(rows) for rows in vectors)
    return Embedded(embedder.card.name, originals, released, tuple(names[view.instance] for view in found))


def picture(view: View, side: Side, card: Card) -> tuple[Pixels, tuple[float, ...] | None]:
    """What the card is given of a view: 0 to 1, and the spacing along each axis in mm. Raises Unseen and Hold."""
    if view.stack is None:
        if takes_volumes(card):
            raise Unseen(f"frame {view.frame}", "the card takes volumes, and this frame is in none")
        return scaled(_grey(side, view)), None
    if takes_volumes(card):
        return axial(view.stack, side)
    middle = view.stack.planes[len(view.stack.planes) // 2]
    spacing = (middle.row_spacing_mm, middle.column_spacing_mm)
    return scaled(np.asarray(side(middle), np.float32)), spacing


def _grey(side: Side, view: View) -> Pixels:
    values = np.asarray(side.frame(view.instance, view.frame), np.float32)
    grey = values if values.ndim == 2 else values.mean(axis=2)
    return -grey if side.photometric(view.instance) == "MONOCHROME1" else grey


def scaled(values: NDArray[np.generic]) -> Pixels:
    """0 to 1 between the tails; all zero for an image of one value."""
    finite = np.nan_to_num(np.asarray(values, np.float32), nan=0.0, posinf=0.0, neginf=0.0)
    low, high = np.percentile(finite, TAILS_PERCENT)
    if high <= low:
        low, high = float(finite.min()), float(finite.max())
    if high <= low:
        return np.zeros_like(finite)
    return np.asarray(np.clip((finite - low) / (high - low), 0, 1), np.float32)


def axial(stack: Stack, side: Side) -> tuple[Pixels, tuple[float, float, float]]:
    """`turned`, its values from 0 to 1."""
    array, spacing = turned(stack, side)
    return np.ascontiguousarray(scaled(array)), spacing


def turned(stack: Stack, stored: Stored) -> tuple[Pixels, tuple[float, float, float]]:
    """(slices from feet to head, rows from front to back, columns from right to left), and the spacing along each.

    Axes are permuted and turned to the nearest, never interpolated. LPS: x grows to the left, y to the back, z up.
    """
    volume = read(stack, stored, FINEST_MM)
    along = volume.affine[:3, :3] / np.linalg.norm(volume.affine[:3, :3], axis=0)  # columns: column, row, slice index
    index_axes = (2, 1, 0)  # of the array, for the affine's columns
    left = list(range(3))
    order, turned = [], []
    for world in (2, 1, 0):  # z, y, x make slices, rows, columns
        best = max(left, key=lambda axis: abs(along[world, axis]))
        left.remove(best)
        order.append(best)
        turned.append(along[world, best] < 0)
    array = np.transpose(volume.values, [index_axes[axis] for axis in order])
    array = np.flip(array, tuple(number for number, turn in enumerate(turned) if turn))
    spacing = [float(volume.spacing_mm[axis]) for axis in order]
    return array, (spacing[0], spacing[1], spacing[2])
