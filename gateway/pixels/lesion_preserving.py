"""Everything around a lesion replaced by generated anatomy: whole studies in, whole studies out.

The sequences of a study that share a frame of reference (T1, T1c, T2, FLAIR) get the same new anatomy by the card's
networks (`models.lesion_anonymiser`); the lesion is drawn in a segmentation or structure set of the study, stays where
it is and goes along. Whatever else shows the old anatomy follows `uncovered`. A study without a lesion's mask, with an
empty one, or of another kind than the card was trained on is held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import StringConstraints

from gateway.durable import writing
from gateway.errors import Hold
from gateway.frames import EncodedImage, replace_frames
from gateway.pixels.anatomy_shown import header_of, shown_in
from gateway.pixels.generated_header import Generated, changes_of
from gateway.pixels.lesion_card import KIND
from gateway.pixels.lesion_make import make
from gateway.pixels.lesion_study import survey
from gateway.pixels.stage import Estimate, Instance, Scope, Work
from gateway.pixels.stage_card import Folders, at_work, card_faults, folders_of
from gateway.policy import Policy
from gateway.policy.document import Faulty
from gateway.study import Step
from models.cards import CardError

NAME = "lesion_preserving"
KEPT, STORED = "kept_", "stored_"
FARTHEST_MM = 20.0
CardName = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Label = Annotated[str, StringConstraints(min_length=1, max_length=64)]


@dataclass(frozen=True)
class LesionPreserving:
    """`card` names the networks. `mask`: whose drawings of the lesion count; `labels` are names of segments or regions
    that are lesions beside those known by code, type or usual name. `lesion`: its voxels stay `exact`, are decoded from
    a `latent`, or so in another `style`. `uncovered`: what becomes of objects that show the old anatomy and cannot be
    changed like the rest. `margin_mm`: by how much the lesion is dilated before it is kept. `outline_mm`: largest shift
    of the head's outline.
    """

    VERSION: ClassVar[str] = "1"
    SCOPE: ClassVar[Scope] = Scope.STUDY

    card: CardName
    mask: Literal["from-study", "from-seg", "from-rtstruct"] = "from-study"
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
        yield from card_faults(self.card, folders, KIND)

    def describe(self) -> str:
        lesion = {
            "exact": "stays voxel by voxel",
            "latent": "is drawn anew from a code of it",
            "style": "is drawn anew in another style",
        }[self.lesion]
        rest = "held" if self.uncovered == "hold" else "left out"
        return (
            f"Lesions: anatomy around them is replaced by generated anatomy (card {self.card}) in the MR sequences "
            f"that it knows, the lesion {lesion}; a study without a lesion's segmentation or contours is held, and "
            f"what else shows the old anatomy is {rest}."
        )

    def estimate(self, group: Sequence[Instance], work: Work) -> Estimate:
        """Generate. Raises Hold: card_unusable, no_sequence, lesion_mask_missing, lesion_mask_empty,
        lesion_mask_unusable, outside_domain, not_anonymised, lesion_surroundings, pixels_unreadable.
        """
        headers = [header_of(instance) for instance in group]
        if not shown_in(headers):
            return Estimate({"frames": {}, "dropped": []})
        try:
            card = at_work(self.card, folders_of(work.models), KIND)
        except CardError as error:
            raise Hold("card_unusable", at=str(error)) from None
        except ImportError:
            raise Hold("card_unusable", at="torch is not installed") from None
        found = survey(group, headers, card.parts.sequences, self.labels, self.mask)
        if found.uncovered and self.uncovered == "hold":
            number, why = min(found.uncovered.items())
            raise Hold("lesion_surroundings", at=f"{group[number].name}: {why}")
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
        with EncodedImage.open(instance.candidate) as image, writing(instance.candidate) as file:
            target = Path(file.name)
            if sorted(slices) != list(range(image.frames)):
                raise Hold("pixels_unreadable", at=f"{instance.name}: frames are not those of the original")
            changes = changes_of(image.dataset, self._generated(estimate.facts))
            frames = _frames(image, slices, generated, kept, counts)
            replace_frames(instance.candidate, target, frames, changes)
            _must_keep(image, target, slices, kept, instance.name)
        return Step(NAME, self.VERSION, counts)


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
