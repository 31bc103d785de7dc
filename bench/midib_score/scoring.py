"""From judged checks to figures: every check weighs the same, by series (as the challenge counts) and by instance.

By series: the checks of one attribute in one series are one check, failed when it failed in any instance. So a series
of 500 slices counts once, and one leaking slice fails it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from bench.midib_score import textrule
from bench.midib_score.judge import Result
from bench.midib_score.key import ACTIONS, Check, Instance

# What header de-identification cannot answer for: it never touches pixels.
PIXEL_ACTIONS = frozenset({"pixels_hidden"})


@dataclass(frozen=True, slots=True)
class Miss:
    """A failed check as it is reported: an instance of its series that failed, how many did, and why as far as seen."""

    action: str
    category: str
    tag_ds: str
    tag_name: str
    expected: str
    original: str
    got: str
    share: float
    modality: str
    series: str
    file: str
    why: str
    instances: int = 1


@dataclass
class Score:
    """Counts by action, as (passed, all), and the misses by series."""

    instance_counts: Counter[tuple[str, bool]] = field(default_factory=Counter)
    categories: Counter[tuple[str, bool]] = field(default_factory=Counter)
    series_worst: dict[tuple[str, ...], bool] = field(default_factory=dict)
    misses: dict[tuple[str, ...], Miss] = field(default_factory=dict)

    def add(self, instance: Instance, results: Iterable[Result]) -> None:
        for result in results:
            check = result.check
            self.instance_counts[check.action, result.passed] += 1
            self.categories[check.answer_category, result.passed] += 1
            one = (check.action, check.tag_ds, instance.patient, instance.study, instance.series)
            self.series_worst[one] = self.series_worst.get(one, True) and result.passed
            if not result.passed:
                before = self.misses.get(one)
                self.misses[one] = _miss(instance, result, before.instances + 1 if before else 1)

    def by_action(self, *, series: bool) -> dict[str, tuple[int, int]]:
        """Action -> (passed, all)."""
        counts: Counter[tuple[str, bool]] = Counter()
        if series:
            counts.update((one[0], passed) for one, passed in self.series_worst.items())
        else:
            counts = self.instance_counts
        return {a: (counts[a, True], counts[a, True] + counts[a, False]) for a in ACTIONS}

    def percent(self, *, series: bool, without: frozenset[str] = frozenset()) -> float:
        """Passed of all checks, in percent; `without` leaves actions out."""
        rows = [row for action, row in self.by_action(series=series).items() if action not in without]
        total = sum(count for _, count in rows)
        return 100 * sum(passed for passed, _ in rows) / total if total else 0.0


def _expected(check: Check) -> str:
    return str(json.loads(check.action_text)["text"]) if check.action in PIXEL_ACTIONS else check.action_text


def _why(result: Result) -> str:
    """What is wrong, by the words: lost ones, or left ones."""
    check, got = result.check, result.got
    if check.action in PIXEL_ACTIONS:
        return "text in the picture, which header de-identification leaves as it is"
    if got in ("no file", "absent"):
        return "the object was not cleaned" if got == "no file" else "the attribute was removed"
    words, low = textrule.words_of(check.action_text), got.lower()
    if check.action == "text_retained":
        return f"lost: {', '.join(word for word in words if word not in low)}"
    if check.action == "text_removed":
        return f"left: {', '.join(word for word in words if word in low)}"
    return {
        "text_notnull": "an attribute of Type 1 is empty",
        "date_shifted": "the date is the original one",
        "uid_changed": "the UID is the original one",
        "uid_consistent": "the same UID became another one elsewhere",
        "patid_consistent": "the same Patient ID became another one elsewhere",
        "pixels_retained": "Pixel Data are not the bytes that came",
    }.get(check.action, "")


def _miss(instance: Instance, result: Result, count: int) -> Miss:
    check = result.check
    return Miss(
        action=check.action,
        category=check.answer_category,
        tag_ds=check.tag_ds,
        tag_name=check.tag_name,
        expected=_expected(check)[:200],
        original=check.value[:200],
        got=result.got[:200],
        share=round(result.share, 2),
        modality=instance.modality,
        series=instance.series,
        file=instance.file,
        why=_why(result),
        instances=count,
    )
