"""The card of `resynthesize` at work: networks, domain and calibration, loaded once in a process; and its levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from gateway.pixels.stage_card import Folders, Kind, checked, weights_file
from models.cards import Calibration, Card, CardError, DomainLimits

if TYPE_CHECKING:
    from models.resynthesis import AdjustableParts
    from models.resynthesis.domain import PictureDomain

KIND = Kind("adjustable_resynthesis", "adjustable anonymiser")


@dataclass(frozen=True, slots=True)
class AtWork:
    """A card that was checked against its weights."""

    card: Card
    parts: AdjustableParts
    domain: PictureDomain

    @property
    def sha256(self) -> str:
        return self.card.weights.sha256 if self.card.weights else ""

    @property
    def calibrated(self) -> DomainLimits | None:
        """Between which limits the pictures lie that the calibration speaks of."""
        found = self.card.calibration
        return None if found is None else DomainLimits(found.domain, self.domain.limits.quantile, found.people)


def at_work(name: str, folders: Folders) -> AtWork:
    """Raises CardError for a card that is absent, past its date, another one's, or without its weights."""
    card, _ = checked(name, folders, KIND)
    return _opened(name, folders, card.model_dump_json())


@lru_cache(maxsize=2)
def _opened(name: str, folders: Folders, _card: str) -> AtWork:
    from safetensors.torch import load_file

    from models.resynthesis import parts_of
    from models.resynthesis.domain import domain_of

    card, folder = checked(name, folders, KIND)
    tensors = load_file(weights_file(card, folder))
    return AtWork(card, parts_of(card, tensors), domain_of(card, tensors))


def keeps(calibration: Calibration, level: float, target_rank1: float) -> bool:
    """Whether the bound at a level keeps the target. Between two calibrated levels the bound of the weaker one holds;
    above the weakest nothing is known.
    """
    bounds = [one.upper for one in calibration.levels if one.level >= level]
    return bool(bounds) and bounds[-1] <= target_rank1


def privacy_faults(card: Card, target_rank1: float, levels: Sequence[float]) -> Iterator[tuple[str, str]]:
    """Why a policy cannot ask this card for a target, with hints; `levels` are those that it would escalate to."""
    found = card.calibration
    if found is None:
        command = f"deid-gateway calibrate --card {card.name} --cohort ... --target-rank1 {target_rank1:g}"
        yield f"the card {card.name} is not calibrated: no level of it is known to keep a target", command
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
