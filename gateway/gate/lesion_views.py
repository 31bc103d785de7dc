"""A study seen as background and as lesion, beside the whole image that `views` embeds: what still tells who it is?

    background   the lesion is filled with the mean of the rest of the image that is not dark; the hole's shape stays
    lesion       everything else is black; place, shape, size and look of the lesion stay

Each side is cut by its own mask (`lesion_drawn`): the original by what the original draws, what leaves by what leaves.
The background alone says how well anatomy was replaced, never what a release risks: the lesion leaves with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from gateway.errors import Hold
from gateway.gate.attackers import Folders, card_named, cards_in, embedder_named, takes_volumes
from gateway.gate.face_reading import Side
from gateway.gate.lesion_drawn import UNDRAWN, Drawing, Mask, drawings
from gateway.gate.pixel_layout import Unseen
from gateway.gate.reading import Pair, judging
from gateway.gate.release_sample import LESION
from gateway.gate.views import NO_EVIDENCE, Embedded, axial, scaled, turned, views_of
from gateway.policy import Policy
from gateway.volumes import Stack
from models.cards import Card, CardError

if TYPE_CHECKING:
    from gateway.embed import Embedder

Pixels = NDArray[np.float32]


def views_wanted(policy: Policy) -> dict[str, tuple[str, ...]]:
    """View -> the cards by which release checks of the policy judge it; {} when they judge whole images only."""
    wanted: dict[str, set[str]] = {}
    for check in policy.gate.release.values():
        for view, _ in getattr(check, "further_views", ()):
            wanted.setdefault(view, set()).update(cards_in(policy, getattr(check, "cards", ())))
    return {view: tuple(sorted(cards)) for view, cards in sorted(wanted.items())}


def embed_lesion_views(
    pairs: Sequence[Pair], policy: Policy, folders: Folders, accepted: frozenset[str] = frozenset()
) -> dict[str, tuple[Embedded, ...]]:
    """By view: every image of the study by the cards that the policy judges the view by. {} when it names none.

    An image on which no lesion is drawn is all background. Raises Hold: "lesion_undrawn" when nothing that leaves
    draws a lesion on images of a card, or one of them has no place in the mask's space; "no_identity_evidence" for what
    a card cannot look at; "gate_failed" for what cannot be read.
    """
    wanted = views_wanted(policy)
    if not wanted:
        return {}
    headers, sides = drawings(pairs, policy)
    names = sides[0].names
    images = [(view, left) for view in views_of(headers) if (left := view.modalities - accepted)]
    masks: dict[int, tuple[Mask, Mask]] = {}
    found: dict[str, list[Embedded]] = {view: [] for view in wanted}
    for name in sorted({card for cards in wanted.values() for card in cards}):
        try:
            card, embedder = card_named(name, folders)[0], embedder_named(name, folders)
        except CardError:
            raise Hold(NO_EVIDENCE, at=f"card {name}") from None
        mine = [number for number, (_, left) in enumerate(images) if left <= frozenset(card.modalities)]
        stacks: list[tuple[Stack, tuple[Mask, Mask]]] = []
        for number in mine:
            stack = images[number][0].stack
            if stack is None:
                raise Hold(UNDRAWN, at=f"{names[images[number][0].instance]}: an image that is no volume")
            if number not in masks:
                masks[number] = sides[0].mask(stack), sides[1].mask(stack)
            stacks.append((stack, masks[number]))
        for view in [view for view, cards in wanted.items() if name in cards and mine]:
            found[view].append(_by_card(view, stacks, sides, embedder))
    return {view: tuple(made) for view, made in found.items()}


def _by_card(
    view: str,
    stacks: Sequence[tuple[Stack, tuple[Mask, Mask]]],
    sides: tuple[Drawing, Drawing],
    embedder: Embedder,
) -> Embedded:
    if not any(mask.any() for _, masks in stacks for mask in masks):
        raise Hold(UNDRAWN, at=f"no image of {embedder.card.name} shows a lesion")
    names: list[str] = []
    rows: tuple[list[Pixels], list[Pixels]] = ([], [])
    for stack, masks in stacks:
        name = sides[0].names[stack.planes[0].instance]
        drawn = [bool(mask.any()) for mask in masks]
        if drawn[0] != drawn[1]:
            raise Hold(UNDRAWN, at=f"{name}: a lesion is drawn on one side only")
        if view == LESION and not all(drawn):
            continue
        names.append(name)
        shown = int(masks[0].sum((1, 2)).argmax()) if all(drawn) else len(stack.planes) // 2
        for out, drawing, mask in zip(rows, sides, masks, strict=True):
            try:
                with judging(name):
                    pixels, spacing, lesion = picture(stack, drawing.side, mask, embedder.card, shown)
                out.append(embedder.embed(cut(pixels, lesion, view), spacing))
            except (Unseen, CardError):
                raise Hold(NO_EVIDENCE, at=f"{name}: {view}") from None
    return Embedded(embedder.card.name, np.stack(rows[0]), np.stack(rows[1]), tuple(names))


def picture(
    stack: Stack, side: Side, mask: Mask, card: Card, shown: int
) -> tuple[Pixels, tuple[float, ...], NDArray[np.bool_]]:
    """What the card is given of a stack as `views.picture` makes it, its spacing in mm, and the lesion on it: every
    voxel that the mask touches. A card that takes pictures sees the slice `shown`. Raises Unseen and Hold.
    """
    if takes_volumes(card):
        pixels, spacing = axial(stack, side)
        return pixels, spacing, turned_mask(stack, mask)
    plane = stack.planes[shown]
    pixels = scaled(np.asarray(side(plane), np.float32))
    return pixels, (plane.row_spacing_mm, plane.column_spacing_mm), mask[shown]


def turned_mask(stack: Stack, mask: Mask) -> Mask:
    """A mask as `views.axial` turns and thins its images: every voxel that it touches."""
    plain = replace(stack, planes=tuple(replace(plane, slope=1.0, intercept=0.0) for plane in stack.planes))
    drawn = dict(zip(plain.planes, mask, strict=True))
    return np.asarray(turned(plain, drawn.__getitem__)[0] > 0, np.bool_)


def cut(pixels: Pixels, lesion: NDArray[np.bool_], view: str) -> Pixels:
    """One view of an image of 0 to 1; `lesion` has its shape."""
    if view == LESION:
        return np.where(lesion, pixels, np.float32(0))
    rest = pixels[(pixels > 0) & ~lesion]
    return np.where(lesion, np.float32(rest.mean() if rest.size else 0), pixels)
