"""The card of `resynthesize`: what it has to be, what its networks are, and which of its levels keep a target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from gateway.pixels.stage_card import AtWork, Folders, Kind, checked
from models.cards import Calibration, Card, CardError, DomainLimits

if TYPE_CHECKING:
    from torch import Tensor

    from models.resynthesis import AdjustableParts
    from models.resynthesis.domain import PictureDomain


def _opens(card: Card, tensors: Mapping[str, Tensor]) -> tuple[AdjustableParts, PictureDomain]:
    from models.resynthesis import parts_of
    from models.resynthesis.domain import domain_of

    return parts_of(card, tensors), domain_of(card, tensors)


KIND = Kind("adjustable_resynthesis", "adjustable anonymiser", _opens)


def calibrated(work: AtWork[AdjustableParts, PictureDomain]) -> DomainLimits | None:
    """Between which limits the pictures lie that the calibration speaks of."""
    found = work.card.calibration
    return None if found is None else DomainLimits(found.domain, work.domain.limits.quantile, found.people)


def keeps(calibration: Calibration, level: float, target_rank1: float) -> bool:
    """Whether the bound at a level keeps the target. Between two calibrated levels the bound of the weaker one holds;
    above the weakest nothing is known.
    """
    bounds = [one.upper for one in calibration.levels if one.level >= level]
    return bool(bounds) and bounds[-1] <= target_rank1


def level_faults(escalated: Sequence[float]) -> Iterator[tuple[str, str]]:
    """Why `escalate` cannot try what it names: a smaller r blocks more, and any other order would try the weaker one
    after the stronger.
    """
    falls = list(escalated) == sorted(set(escalated), reverse=True)
    if not falls or not all(0 < one < 1 for one in escalated):
        yield (
            "escalate names levels that do not go from the weakest to the strongest: a smaller r blocks more",
            "quantiles between 0 and 1, such as levels: [0.95, 0.7, 0.4, 0.2]",
        )


def privacy_faults(card: Card, target_rank1: float, levels: Sequence[float]) -> Iterator[tuple[str, str]]:
    """Why a policy cannot ask this card for a target, with hints; `levels` are those that it would escalate to."""
    found = card.calibration
    if found is None:
        command = f"deid-gateway calibrate --card {card.name} --cohort ... --target-rank1 {target_rank1:g}"
        yield f"the card {card.name} is not calibrated: no level of it is known to keep a target", command
        return
    if found.untouched <= target_rank1:
        says = f"attackers of {card.name}'s calibration find {found.untouched:.3f} of people in untouched originals"
        hint = "calibrate it with a better --attacker or more people, or name a smaller target"
        yield f"{says}: a target of {target_rank1:g} would be no promise", hint
        return
    if not found.meeting(target_rank1):
        least = min(found.levels, key=lambda one: one.upper)
        yield (
            f"no level of {card.name} keeps rank-1 at {target_rank1:g} with confidence {found.confidence:g}",
            f"its strongest, {least.level:g}, is bounded by {least.upper:.3f}: a better card, or another target",
        )
        return
    for level in levels:
        if not keeps(found, level, target_rank1):
            yield (
                f"escalate names the level {level:g}, which does not keep the target",
                "levels that do: " + ", ".join(f"{one:g}" for one in found.meeting(target_rank1)),
            )


def card_of(name: str, folders: Folders) -> Card | None:
    """The card for a policy to ask about, None for one that cannot be used at all (`card_faults` says why)."""
    try:
        return checked(name, folders, KIND)[0]
    except CardError:
        return None
