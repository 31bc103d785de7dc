"""Why a study falls under a rule and not under those before it: the evaluation of `rules`, predicate by predicate.

Each predicate is judged by `rules.matches`, the same function that routes, in the same order; this file only keeps
what it answered. What is not known (a question about an AE title alone, without a file) stays not known: a rule that
may match is told as such, and the rules after it are tried too.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from gateway.errors import Hold
from gateway.policy import Route, Routes
from gateway.route.facts import Facts
from gateway.route.rules import matches

COHORT = "in_cohort"
COHORT_FACTS = frozenset({"patient_id", "study_date"})


class Outcome(StrEnum):
    """What a predicate said, or a rule as a whole."""

    MATCHES = "matches"
    DIFFERS = "differs"  # no instance has a value that the rule asks for
    ABSENT = "absent"  # no instance has any value
    UNKNOWN = "unknown"  # it was not told
    UNTRUSTED = "untrusted"  # a cohort file cannot be read: the study is held


FAILED = frozenset({Outcome.DIFFERS, Outcome.ABSENT})


@dataclass(frozen=True, slots=True)
class Predicate:
    """One predicate of a rule: what the rule asks for, and what the study's facts said to it."""

    name: str
    wanted: tuple[str, ...]
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Trial:
    """One rule and all its predicates, in the order of the file."""

    rule: Route
    predicates: tuple[Predicate, ...]

    @property
    def outcome(self) -> Outcome:
        """Of the whole rule: MATCHES, DIFFERS, UNKNOWN (it may match), or UNTRUSTED (it holds the study)."""
        open_before = False
        for predicate in self.predicates:
            if predicate.outcome in FAILED:
                return Outcome.DIFFERS
            if predicate.outcome is Outcome.UNTRUSTED:
                return Outcome.UNKNOWN if open_before else Outcome.UNTRUSTED
            open_before |= predicate.outcome is Outcome.UNKNOWN
        return Outcome.UNKNOWN if open_before else Outcome.MATCHES

    @property
    def failed(self) -> tuple[Predicate, ...]:
        """The predicates that keep this rule from matching."""
        return tuple(predicate for predicate in self.predicates if predicate.outcome in FAILED)


@dataclass(frozen=True, slots=True)
class Explanation:
    """The rules that were tried, in order. The last one decided, unless none did."""

    trials: tuple[Trial, ...]

    @property
    def rule(self) -> Route | None:
        """The rule that fires; None when none does, or when that is not known."""
        last = self.trials[-1] if self.trials else None
        return last.rule if last is not None and last.outcome is Outcome.MATCHES and not self.possible else None

    @property
    def possible(self) -> tuple[Trial, ...]:
        """Rules that may fire, since something is not known; not the last one, where it matches for certain."""
        return tuple(trial for trial in self.trials if trial.outcome is Outcome.UNKNOWN)

    @property
    def holds(self) -> bool:
        """True when the study is held for certain with the reason no_route."""
        last = self.trials[-1].outcome if self.trials else None
        return not self.possible and last is not Outcome.MATCHES


def explain(
    facts: Facts,
    routes: Routes,
    *,
    cohort_key: bytes | None,
    cohorts_folder: Path,
    unknown: AbstractSet[str] = frozenset(),
) -> Explanation:
    """Try the rules as `route` does, up to the first that decides for certain.

    `unknown` names attributes of which nothing is known; without a `cohort_key` no `in_cohort` is known.
    """
    trials: list[Trial] = []
    for rule in routes.routes:
        predicates = []
        for name, wanted in rule.when.items():
            unasked = bool(COHORT_FACTS & unknown) or cohort_key is None if name == COHORT else name in unknown
            outcome = Outcome.UNKNOWN if unasked else _asked(facts, name, wanted, cohort_key or b"", cohorts_folder)
            predicates.append(Predicate(name, wanted, outcome))
        trials.append(Trial(rule, tuple(predicates)))
        if trials[-1].outcome in {Outcome.MATCHES, Outcome.UNTRUSTED}:
            break
    return Explanation(tuple(trials))


def _asked(facts: Facts, name: str, wanted: tuple[str, ...], cohort_key: bytes, folder: Path) -> Outcome:
    try:
        if matches(facts, name, wanted, cohort_key, folder):
            return Outcome.MATCHES
    except Hold:
        return Outcome.UNTRUSTED
    return Outcome.DIFFERS if facts.of("patient_id" if name == COHORT else name) else Outcome.ABSENT
