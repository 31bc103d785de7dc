"""Pictures made anew from what is left when the identifying part is blocked: chest films, fundus photographs.

How much is blocked is the level r, or follows from a target risk by the card's calibration. Every picture of a study
that the card can make is replaced whole; whatever else shows the anatomy follows `uncovered`. A study of another kind
than the card was trained on is held.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, StringConstraints

from gateway.durable import writing
from gateway.errors import Hold
from gateway.frames import EncodedImage, replace_frames
from gateway.pixels.anatomy_shown import header_of, shown_in
from gateway.pixels.generated_header import Generated, changes_of
from gateway.pixels.resynthesize_card import KIND, card_of, keeps, level_faults, privacy_faults
from gateway.pixels.resynthesize_make import Manner, make
from gateway.pixels.resynthesize_planes import colour_written
from gateway.pixels.resynthesize_study import survey
from gateway.pixels.stage import Estimate, Instance, Scope, Work
from gateway.pixels.stage_card import Folders, at_work, card_faults, folders_of
from gateway.policy import Policy
from gateway.policy.document import Faulty
from gateway.study import Step
from models.cards import Card, CardError

NAME, STORED = "resynthesize", "stored_"
CardName = Annotated[str, StringConstraints(min_length=1, max_length=64)]
Quantile = Annotated[float, Field(gt=0, lt=1)]


@dataclass(frozen=True)
class Privacy:
    """`target_rank1`: how often the person may be found first in a gallery, at most, by the card's calibration."""

    target_rank1: Annotated[float, Field(gt=0, lt=1)]


@dataclass(frozen=True)
class Resynthesize:
    """`card` names the networks. Either `levels`, quantiles r of which the first is used unless `escalate` says another
    one, or `privacy`: the weakest calibrated level that keeps the target. Below 0.1 nothing of the picture is left, and
    what is meant by it is one of 100 r prototypes, where the card has them. `uncovered`: what becomes of objects that
    show the old anatomy and cannot be made anew. `followups`: a new picture of a person shares no noise with an earlier
    one, so change between visits is lost; `hold` leaves that to a person. `markers`: side and projection are drawn
    from the header, or left out.
    """

    VERSION: ClassVar[str] = "1"
    SCOPE: ClassVar[Scope] = Scope.STUDY
    HAS_LEVELS: ClassVar[bool] = True

    card: CardName
    levels: tuple[Quantile, ...] = ()
    privacy: Privacy | None = None
    uncovered: Literal["hold", "drop"] = "hold"
    followups: Literal["accept", "hold"] = "hold"
    markers: Literal["redraw", "drop"] = "drop"

    def __post_init__(self) -> None:
        if bool(self.levels) == (self.privacy is not None):
            raise Faulty("resynthesize needs levels, or privacy, and not both", "privacy: {target_rank1: 0.05}")
        if list(self.levels) != sorted(set(self.levels), reverse=True):
            raise Faulty("levels go from the weakest to the strongest", "levels: [0.95, 0.7, 0.4, 0.2]")

    def misfits(self, policy: Policy, folders: Folders) -> Iterator[tuple[str, str]]:
        """Why this stage cannot work in a policy, with hints."""
        yield from card_faults(self.card, folders, KIND)
        escalated = policy.escalate.levels if policy.escalate and policy.escalate.stage == NAME else ()
        yield from level_faults(escalated)
        card = card_of(self.card, folders)
        if card is None or self.privacy is None:
            return
        yield from privacy_faults(card, self.privacy.target_rank1, escalated)

    def describe(self) -> str:
        if self.privacy is None:
            level = f"at the level r = {self.levels[0]:g}, a quantile and no promise"
        else:
            level = f"at the weakest calibrated level that keeps rank-1 at {self.privacy.target_rank1:g}"
        rest = "held" if self.uncovered == "hold" else "left out"
        again = "is held" if self.followups == "hold" else "is made anew by itself: change between visits is lost"
        marks = "drawn anew from the header" if self.markers == "redraw" else "not drawn again"
        return (
            f"Pictures: whole films and photographs are made anew (card {self.card}) {level}; a study of somebody who "
            f"was here before {again}; side markers are {marks}; what else shows the old anatomy is {rest}."
        )

    def estimate(self, group: Sequence[Instance], work: Work) -> Estimate:
        """Generate. Raises Hold: card_unusable, level_not_calibrated, follow_up, no_picture, picture_uncovered,
        outside_domain, pixels_unreadable.
        """
        headers = [header_of(instance) for instance in group]
        if not shown_in(headers):
            return Estimate({"pictures": {}, "dropped": []})
        try:
            card = at_work(self.card, folders_of(work.models), KIND)
        except CardError as error:
            raise Hold("card_unusable", at=str(error)) from None
        except ImportError:
            raise Hold("card_unusable", at="torch is not installed") from None
        if work.follow_up and self.followups == "hold":
            raise Hold("follow_up")
        level = self._level(card.card, work)
        found = survey(group, headers, card.card)
        if not found.pictures:
            raise Hold("no_picture", at=next(iter(found.uncovered.values())))
        if found.uncovered and self.uncovered == "hold":
            number, why = min(found.uncovered.items())
            raise Hold("picture_uncovered", at=f"{group[number].name}: {why}")
        facts: dict[str, Any] = {
            "pictures": {},
            "dropped": sorted(found.uncovered),
            "level": level,
            "card": card.card.name,
            "sha256": card.sha256,
        }
        arrays: dict[str, NDArray[np.generic]] = {}
        manner = Manner(level, work.seed, promised=self.privacy is not None, redraw=self.markers == "redraw")
        for number in found.pictures:
            made = make(group[number], headers[number], card, manner)
            facts["pictures"][str(number)] = {"near": made.near}
            arrays[f"{STORED}{number}"] = made.stored
        return Estimate(facts, arrays)

    def _level(self, card: Card, work: Work) -> float:
        """Raises Hold("level_not_calibrated")."""
        if self.privacy is None:
            return self.levels[0] if work.level is None else work.level
        calibration, target = card.calibration, self.privacy.target_rank1
        if calibration is None or not calibration.meeting(target):
            raise Hold("level_not_calibrated", at=f"no level of {card.name} keeps rank-1 at {target:g}")
        if work.level is None:
            return calibration.meeting(target)[0]
        if not keeps(calibration, work.level, target):
            raise Hold("level_not_calibrated", at=f"level {work.level:g} of {card.name}, target {target:g}")
        return work.level

    def apply(self, group: Sequence[Instance], work: Work, estimate: Estimate) -> list[Step]:  # noqa: ARG002
        """Raises Hold: pixels_unreadable, transcoding_failed."""
        facts, steps = estimate.facts, []
        for number, instance in enumerate(group):
            if number in facts["dropped"]:
                steps.append(Step(NAME, self.VERSION, dropped="uncovered"))
            elif str(number) in facts["pictures"]:
                stored = estimate.arrays[f"{STORED}{number}"]
                steps.append(self._replace(instance, stored, facts, int(facts["pictures"][str(number)]["near"])))
            else:
                steps.append(Step(NAME, self.VERSION))
        return steps

    def _replace(self, instance: Instance, stored: NDArray[np.generic], facts: Mapping[str, Any], near: int) -> Step:
        level = f"level {facts['level']:g}"
        with EncodedImage.open(instance.candidate) as image, writing(instance.candidate) as file:
            layout = image.layout
            if layout is None or (layout.frames, *layout.shape) != stored.shape:
                raise Hold("pixels_unreadable", at=f"{instance.name}: frames are not those of the original")
            generated = Generated(
                stage=NAME,
                card=facts["card"],
                sha256=facts["sha256"],
                what="The whole picture",
                done="Replaced the picture by a generated one",
                more=f"{level} of ID-blocking",
            )
            changes, colour = changes_of(image.dataset, generated), colour_written(image)
            replace_frames(instance.candidate, Path(file.name), iter(stored), changes, photometric=colour)
        return Step(NAME, self.VERSION, {"frames": len(stored), "near_limit": near, level: 1})
