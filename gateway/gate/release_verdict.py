"""From figures to a verdict: every figure must be evidence, and every upper bound must keep to its limit."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gateway.gate.release_sample import RELEASE, ReleaseVerdict, Score
from gateway.gate.release_views import UNDRAWN, in_view
from gateway.study import Outcome

TOO_FEW, VOID, UNSEEN = "too_few_people", "attacker_void", "no_identity_evidence"
TO_COME = "too_few_to_tell"  # other visits, all releases: so few people that a bound would hold what leaks nothing


def concluded(check: str, cards: Sequence[str], scores: Sequence[Score]) -> ReleaseVerdict:
    """The worst decides. Of one card's distances those that are void are left out, unless all of them are; a figure
    without enough people is no evidence. A card that knows no image of the release has nothing to say (each image is
    in some card's domain, or its study never came this far), but somebody must have judged this very one.
    """
    if not any(score.scope == RELEASE for score in scores):
        return ReleaseVerdict(check, Outcome.HOLD, UNSEEN, f"{check}: none of {', '.join(cards) or 'no card'} judged")
    undrawn = next((score for score in scores if score.note == UNDRAWN), None)
    if undrawn is not None:
        at = f"{in_view(check, undrawn.view)} by {undrawn.card}, people without a mask: {undrawn.people}"
        return ReleaseVerdict(check, Outcome.HOLD, UNDRAWN, at, tuple(scores))
    few = next((score for score in scores if score.note == TOO_FEW), None)
    if few is not None:
        name = in_view(check, few.view)
        at = f"{name} by {few.card}: {few.people} people" if few.card else f"{name}: {few.people} people"
        return ReleaseVerdict(check, Outcome.HOLD, TOO_FEW, at, tuple(scores))
    kinds = dict.fromkeys((one.card, one.attack, one.scope, one.view) for one in scores if one.note != TO_COME)
    worst: list[Score] = []
    for kind in kinds:
        live = [one for one in scores if (one.card, one.attack, one.scope, one.view) == kind and not one.note]
        if not live:
            at = f"{in_view(check, kind[3])} by {kind[0]}, {kind[1]}: it does not find the untouched originals either"
            return ReleaseVerdict(check, Outcome.HOLD, VOID, at, tuple(scores))
        worst.append(max(live, key=_by_how_much))
    failed = max(worst, key=_by_how_much)
    if math.isnan(failed.upper) or failed.upper > failed.limit:
        return ReleaseVerdict(check, Outcome.HOLD, check, told(failed), tuple(scores))
    return ReleaseVerdict(check, Outcome.PASS, scores=tuple(scores))


def _by_how_much(score: Score) -> float:
    return math.inf if math.isnan(score.upper) else score.upper - score.limit


def told(score: Score) -> str:
    """The figure in one line, without anybody in it."""
    by = f" by {score.card}" if score.card else ""
    attack = f", {score.attack}" if score.attack else ""
    scope = "" if score.scope == "release" else ", with all releases before"
    return (
        f"{in_view(score.check, score.view)}{by}{attack}{scope}: at most {score.upper:.3f}, limit {score.limit:g} "
        f"(estimate {score.estimate:.3f}, {score.people} people)"
    )
