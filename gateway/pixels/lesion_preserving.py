"""Everything around a lesion replaced by generated anatomy: whole studies in, whole studies out.

The sequences of a study that share a frame of reference (T1, T1c, T2, FLAIR) get the same new anatomy by the card's
networks (`models.lesion_anonymiser`); the lesion is drawn in a segmentation or structure set of the study, stays where
it is and goes along. Where nobody drew it, a card marks it if the policy names one (`lesion_automatic`). Whatever else
shows the old anatomy follows `uncovered`. A study without a lesion's mask, with an empty or an uncertain one, or of
another kind than the cards were trained on is held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Discriminator, StringConstraints, Tag

from gateway.durable import writing
from gateway.errors import Hold
from gateway.frames import EncodedImage, replace_frames
from gateway.pixels.anatomy_shown import header_of, shown_in
from gateway.pixels.generated_header import Generated, changes_of
from gateway.pixels.lesion_automatic import marked
from gateway.pixels.lesion_card import KIND, MASK_KIND, mask_faults
from gateway.pixels.lesion_make import make
from gateway.pixels.lesion_study import Survey, survey
from gateway.pixels.stage import Estimate, Instance, Scope, Work
from gateway.pixels.stage_card import AtWork, D, Folders, Kind, P, at_work, card_faults, folders_of
from gateway.policy import Policy
from gateway.policy.document import Faulty
from gateway.study import Step
from models.cards import CardError

if TYPE_CHECKING:
    from models.lesion_anonymiser import Domain
    from models.lesion_segmenter import SegmenterParts

NAME = "lesion_preserving"
BY_CARD = "mask_by_card"  # frames, in the counts of a step: the ledger tells that no person drew the mask
KEPT, STORED = "kept_", "stored_"
FARTHEST_MM = 20.0
CardName = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=64)]


@dataclass(frozen=True)
class MaskCard:
    """`card` names the network that marks the lesion where no segmentation or structure set of the study draws one."""

    card: CardName


def _written_as(value: Any) -> str:
    return "word" if isinstance(value, str) else "card"


Drawn = Literal["from-study", "from-seg", "from-rtstruct"]
# told apart by how it is written, so that a fault names one kind and not both
MaskSource = Annotated[Annotated[Drawn, Tag("word")] | Annotated[MaskCard, Tag("card")], Discriminator(_written_as)]


@dataclass(frozen=True)
class LesionPreserving:
    """`card` names the networks. `mask`: whose drawings of the lesion count, or a card that marks it where nobody drew
    one; `labels` are names of segments or regions that are lesions beside those known by code, type or usual name.
    `lesion`: its voxels stay `exact`, are decoded from a `latent`, or so in another `style`. `uncovered`: what becomes
    of objects that show the old anatomy and cannot be changed like the rest. `margin_mm`: by how much the lesion is
    dilated before it is kept. `outline_mm`: largest shift of the head's outline.
    """

    VERSION: ClassVar[str] = "1"
    SCOPE: ClassVar[Scope] = Scope.STUDY

    card: CardName
    mask: MaskSource = "from-study"
    labels: tuple[Label, ...] = ()
    lesion: Literal["exact", "latent", "style"] = "exact"
    uncovered: Literal["hold", "drop"] = "hold"
    margin_mm: float = 2.0
    outline_mm: float = 5.0

    def __post_init__(self) -> None:
        if not 0 <= self.margin_mm <= FARTHEST_MM or not 0 <= self.outline_mm <= FARTHEST_MM:
            raise Faulty(f"margin_mm and outline_mm lie between 0 and {FARTHEST_MM:g}", "2.0 and 5.0 are usual")

    def misfits(self, _policy: Policy, folders: Folders) -> Iterator[tuple[str, str]]:
        """Why this stage cannot work in a policy, with hints."""
        faults = list(card_faults(self.card, folders, KIND))
        yield from faults
        if isinstance(self.mask, MaskCard) and not faults:
            yield from mask_faults(self.mask.card, self.card, folders)

    @property
    def cards(self) -> tuple[str, ...]:
        """Every card that works here, so that no judge shares people with one of them."""
        return (self.card, self.mask.card) if isinstance(self.mask, MaskCard) else (self.card,)

    def describe(self) -> str:
        lesion = {
            "exact": "stays voxel by voxel",
            "latent": "is drawn anew from a code of it",
            "style": "is drawn anew in another style",
        }[self.lesion]
        rest = "held" if self.uncovered == "hold" else "left out"
        unmarked = "a study without a lesion's segmentation or contours is held"
        if isinstance(self.mask, MaskCard):
            unmarked = (
                f"where no segmentation or contours draw it the card {self.mask.card} marks it, and a study in which "
                "that finds nothing, or is not certain, is held"
            )
        return (
            f"Lesions: anatomy around them is replaced by generated anatomy (card {self.card}) in the MR sequences "
            f"that it knows, the lesion {lesion}; {unmarked}, and "
            f"what else shows the old anatomy is {rest}."
        )

    def estimate(self, group: Sequence[Instance], work: Work) -> Estimate:
        """Generate. Raises Hold: card_unusable, no_sequence, lesion_mask_missing, lesion_mask_empty,
        lesion_mask_unusable, lesion_mask_uncertain, outside_domain, not_anonymised, lesion_surroundings,
        pixels_unreadable.
        """
        headers = [header_of(instance) for instance in group]
        if not shown_in(headers):
            return Estimate({"frames": {}, "dropped": []})
        card = _at_work(self.card, work, KIND)
        sources = "from-study" if isinstance(self.mask, MaskCard) else self.mask
        found = survey(group, headers, card.parts.sequences, self.labels, sources)
        if not found.lesions and not isinstance(self.mask, MaskCard):
            raise Hold("lesion_mask_missing")
        if found.uncovered and self.uncovered == "hold":
            number, why = min(found.uncovered.items())
            raise Hold("lesion_surroundings", at=f"{group[number].name}: {why}")
        by_card: dict[str, Any] = {}
        if not found.lesions and isinstance(self.mask, MaskCard):
            found, by_card = _marked(group, found, _at_work(self.mask.card, work, MASK_KIND))
        from models.lesion_anonymiser import Settings

        settings = Settings(mode=self.lesion, margin_mm=self.margin_mm, outline_mm=self.outline_mm)
        made = make(group, found, card, work.seed, settings)
        frames: dict[str, dict[str, Any]] = {}
        for name, stack in found.sequences.items():
            for index, plane in enumerate(stack.planes):
                entry = frames.setdefault(str(plane.instance), {"sequence": name, "slices": {}})
                entry["slices"][str(plane.frame)] = index
        facts = {
            "frames": frames,
            "dropped": sorted(found.uncovered),
            "card": card.card.name,
            "sha256": card.sha256,
            "figures": {name: round(value, 4) for name, value in made.figures.items() if np.isfinite(value)},
            **by_card,
        }
        arrays: dict[str, NDArray[np.generic]] = {STORED + name: one for name, one in made.stored.items()}
        return Estimate(facts, arrays | {KEPT + name: one for name, one in made.kept.items()})

    def apply(self, group: Sequence[Instance], work: Work, estimate: Estimate) -> list[Step]:  # noqa: ARG002
        """Raises Hold: pixels_unreadable, transcoding_failed, not_anonymised."""
        facts, steps = estimate.facts, []
        for number, instance in enumerate(group):
            if number in facts["dropped"]:
                steps.append(Step(NAME, self.VERSION, dropped="uncovered"))
            elif str(number) in facts["frames"]:
                steps.append(self._replace(instance, facts["frames"][str(number)], estimate))
            else:
                steps.append(Step(NAME, self.VERSION))
        return steps

    def _generated(self, facts: Mapping[str, Any]) -> Generated:
        lesion = "the original's voxels" if self.lesion == "exact" else "decoded from a latent of the original"
        if mask := facts.get("mask"):
            lesion += f", marked by card {mask['card']} (weights sha256 {mask['sha256'][:12]}) and by no person"
        return Generated(
            stage=NAME,
            card=facts["card"],
            sha256=facts["sha256"],
            what="Anatomy around the lesion",
            done="Replaced the anatomy around a lesion by generated anatomy",
            more=f"lesion: {lesion}",
        )

    def _replace(self, instance: Instance, entry: Mapping[str, Any], estimate: Estimate) -> Step:
        generated = estimate.arrays[STORED + entry["sequence"]]
        kept = np.asarray(estimate.arrays[KEPT + entry["sequence"]], np.bool_)
        slices = {int(frame): int(index) for frame, index in entry["slices"].items()}
        counts = {"frames": 0, "voxels": 0, "kept": 0}
        if "mask" in estimate.facts:
            counts[BY_CARD] = len(slices)
        with EncodedImage.open(instance.candidate) as image, writing(instance.candidate) as file:
            target = Path(file.name)
            if sorted(slices) != list(range(image.frames)):
                raise Hold("pixels_unreadable", at=f"{instance.name}: frames are not those of the original")
            changes = changes_of(image.dataset, self._generated(estimate.facts))
            frames = _frames(image, slices, generated, kept, counts)
            replace_frames(instance.candidate, target, frames, changes)
            _must_keep(image, target, slices, kept, instance.name)
        return Step(NAME, self.VERSION, counts)


def _marked(
    group: Sequence[Instance], found: Survey, card: AtWork[SegmenterParts, Domain]
) -> tuple[Survey, dict[str, Any]]:
    """With the lesion as the card marks it, and the facts that say so. Raises Hold."""
    made = marked(group, found, card)
    told = {"card": card.card.name, "sha256": card.sha256, "certainty": round(made.certainty, 4)}
    return made.survey, {"mask": told}


def _at_work(name: str, work: Work, kind: Kind[P, D]) -> AtWork[P, D]:
    """Raises Hold("card_unusable")."""
    try:
        return at_work(name, folders_of(work.models), kind)
    except CardError as error:
        raise Hold("card_unusable", at=str(error)) from None
    except ImportError:
        raise Hold("card_unusable", at="torch is not installed") from None


def _frames(
    image: EncodedImage,
    slices: Mapping[int, int],
    generated: NDArray[np.generic],
    kept: NDArray[np.bool_],
    counts: dict[str, int],
) -> Iterator[NDArray[np.generic]]:
    for frame in range(image.frames):
        own, index = image.stored(frame), slices[frame]
        if own.shape != generated[index].shape:
            raise Hold("pixels_unreadable", at=f"frame {frame}: not the size that the header states")
        new = np.where(kept[index], own, generated[index].astype(own.dtype))
        counts["frames"] += 1
        counts["voxels"] += int((new != own).sum())
        counts["kept"] += int(kept[index].sum())
        yield new


def _must_keep(
    image: EncodedImage, target: Path, slices: Mapping[int, int], kept: NDArray[np.bool_], name: str
) -> None:
    """What was written is read again: kept voxels are the object's own, value by value."""
    with EncodedImage.open(target) as written:
        for frame in range(image.frames):
            inside = kept[slices[frame]]
            if inside.any() and (written.stored(frame)[inside] != image.stored(frame)[inside]).any():
                raise Hold("not_anonymised", at=f"{name} frame {frame}: voxels of the lesion changed")
