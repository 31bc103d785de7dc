"""Limits of their own for background and lesion, beside that of the whole image, and what it takes to judge them.

The whole image's limit stands as it is: it is what the release risks. A study of the release that a card knows, without
the view that the policy has it judged by, is no evidence for the view, whatever the others show.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gateway.gate.release_sample import BACKGROUND, LESION, RELEASE, WHOLE, ReleaseSample, Score, known_to

VIEWS = (WHOLE, BACKGROUND, LESION)
UNDRAWN = "lesion_undrawn"
ONLY = {WHOLE: "", BACKGROUND: "background alone", LESION: "lesion alone"}


@dataclass(frozen=True)
class ViewLimits:
    """Limits of the check for two views that are cut out of the image; None: that view is not judged by itself."""

    background: float | None = None
    lesion: float | None = None

    @property
    def named(self) -> tuple[tuple[str, float], ...]:
        """(view, limit) of those that are judged."""
        both = (BACKGROUND, self.background), (LESION, self.lesion)
        return tuple((view, limit) for view, limit in both if limit is not None)


def undrawn(check: str, sample: ReleaseSample, cards: Sequence[str], view: str, limit: float) -> Iterator[Score]:
    """One figure without evidence for each card that knows studies of the release, but not their `view`."""
    for card in cards if view != WHOLE else ():
        without = {one.person for one in known_to(sample.of(RELEASE), card) if card not in one.seen(view)}
        if without:
            yield Score(check, RELEASE, limit, card, people=len(without), note=UNDRAWN, view=view)


def in_view(what: str, view: str) -> str:
    """A check or figure by its name, and by the view where it is not the whole image."""
    return f"{what}, {ONLY[view]}" if ONLY[view] else what
