"""Which pictures of a study a card can make anew, and what else of it shows the anatomy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydicom.dataset import Dataset

from gateway.errors import Hold
from gateway.frames import EncodedImage
from gateway.pixels.anatomy_shown import shown_in
from gateway.pixels.resynthesize_planes import COLOUR, GREY
from gateway.pixels.stage import Instance
from models.cards import Card

DEEPEST_BITS = 16
NO_PICTURE = frozenset({"LOCALIZER", "SCOUT"})
# View Code Sequence in terms of View Position (PS3.16 CID 4010, SNOMED CT and the older SRT).
VIEWS = {"399348003": "AP", "R-10206": "AP", "272479007": "PA", "R-10214": "PA", "R-40888": "PA"}


@dataclass(frozen=True, slots=True)
class Survey:
    """Numbers of instances: `pictures` are made anew, of `uncovered` it says why they cannot be."""

    pictures: tuple[int, ...]
    uncovered: dict[int, str]


def survey(group: Sequence[Instance], headers: Sequence[Dataset], card: Card) -> Survey:
    """By the headers as received and the pixels as other stages left them. Raises Hold of `EncodedImage.open`."""
    uncovered, pictures = {}, []
    for number in shown_in(headers):
        why = _unfit(headers[number], card) or _unfit_pixels(group[number], card)
        if why:
            uncovered[number] = why
        else:
            pictures.append(number)
    return Survey(tuple(pictures), uncovered)


def _unfit(header: Dataset, card: Card) -> str:
    """What the header states that the card does not make; a header that states nothing is no evidence."""
    part = str(header.get("BodyPartExamined") or "").upper().strip()
    views, regions = (_listed(card, name) for name in ("views", "regions"))
    kinds = header.get("ImageType") or ()
    if "Rows" not in header:
        return "draws or describes the anatomy that is replaced"
    if str(header.get("Modality", "")) not in card.modalities:
        return "a modality that the card does not make"
    if part and card.anatomy and part not in card.anatomy:
        return "a body part that the card does not make"
    if views and _views(header) - views:
        return "a projection that the card does not make"
    if regions and {str(one.get("CodeValue")) for one in header.get("AnatomicRegionSequence") or ()} - regions:
        return "a region that the card does not make"
    if NO_PICTURE & {str(one).upper() for one in ([kinds] if isinstance(kinds, str) else kinds)}:
        return "a localizer"
    return ""


def _listed(card: Card, name: str) -> set[str]:
    """Terms that a header may state; none: the card does not ask."""
    return {one for one in str(card.parameters.get(name, "")).split(",") if one}


def _views(header: Dataset) -> set[str]:
    """The projections that it states, by word or by code (PS3.3 C.8.11.5); a code that is no frontal view as it is."""
    word = str(header.get("ViewPosition") or "").upper().strip()
    codes = {str(item.get("CodeValue") or "other").strip() for item in header.get("ViewCodeSequence") or ()}
    return {VIEWS.get(code, code) for code in codes} | ({word} if word else set())


def _unfit_pixels(instance: Instance, card: Card) -> str:
    with EncodedImage.open(instance.candidate) as image:
        layout = image.layout
        if layout is None:
            raise Hold("pixels_unreadable", at=f"{instance.name}: Rows without pixel data")
        if layout.kind == "f" or layout.bits_stored > DEEPEST_BITS:
            return f"pixels are not integers of {DEEPEST_BITS} bits and fewer"
        if card.parameters.get("channels") == 3:
            colour = layout.photometric in COLOUR and not layout.signed
            return "" if colour else "a picture that is not in colour"
        return "" if layout.photometric in GREY else "a colour picture"
