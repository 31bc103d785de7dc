"""Which rule of `routes.yaml` a study falls under: closed predicates, first match, none = held."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date
from functools import lru_cache
from pathlib import Path

from gateway.errors import Hold, PolicyError
from gateway.policy import Route, Routes, cohort_hash, load_cohort
from gateway.policy.cohorts import Window
from gateway.route.facts import Facts

ROUTES_FILE = "routes.yaml"


def route(facts: Facts, routes: Routes, *, cohort_key: bytes, cohorts_folder: Path) -> Route:
    """The first rule that matches. Raises Hold("no_route") when none does or a cohort file cannot be trusted now."""
    for rule in routes.routes:
        if all(matches(facts, name, values, cohort_key, cohorts_folder) for name, values in rule.when.items()):
            return rule
    raise Hold("no_route", at=ROUTES_FILE)


def matches(facts: Facts, name: str, values: tuple[str, ...], cohort_key: bytes, folder: Path) -> bool:
    """Whether one predicate of a rule holds. Raises Hold("no_route") when a cohort file cannot be trusted now."""
    if name == "in_cohort":
        return any(_in_cohort(facts, folder / value, cohort_key) for value in values)
    compare = COMPARE[name]
    return any(compare(value, found) for value in values for found in facts.of(name))


def _same(wanted: str, found: str) -> bool:
    return wanted == found


def _same_any_case(wanted: str, found: str) -> bool:
    return wanted.casefold() == found.casefold()


def like(pattern: str, text: str) -> bool:
    """Whether the whole text fits a shell-style pattern: * any characters, ? one, no matter the case.

    Brackets are plain characters. Two pointers and one step back, so no input takes longer than |pattern| x |text|.
    """
    pattern, text = pattern.casefold(), text.casefold()
    p = t = 0
    star, resume = -1, 0  # the last * and where in the text it is tried next
    while t < len(text):
        if p < len(pattern) and pattern[p] == "*":
            star, resume = p, t
            p += 1
        elif p < len(pattern) and pattern[p] in ("?", text[t]):
            p += 1
            t += 1
        elif star >= 0:
            resume += 1
            p, t = star + 1, resume
        else:
            return False
    return all(character == "*" for character in pattern[p:])


# UIDs and AE titles are compared as they are (PS3.5 6.2: AE is case sensitive); vendors vary the case of the rest.
COMPARE: Mapping[str, Callable[[str, str], bool]] = {
    "calling_ae": _same,
    "called_ae": _same,
    "sop_class": _same,
    "modality": _same_any_case,
    "body_part": _same_any_case,
    "manufacturer": _same_any_case,
    "description": like,
    "image_type": _same_any_case,
}


def _in_cohort(facts: Facts, path: Path, key: bytes) -> bool:
    """Whether every Patient ID of the study is in the cohort on every Study Date; never for a study without an ID."""
    people = _cohort(path)
    patients = facts.of("patient_id")
    days = {_day(value) for value in facts.of("study_date")} or {None}
    windows = [people.get(cohort_hash(key, patient), ()) for patient in patients]
    return bool(patients) and all(any(window.holds(day) for window in own) for own in windows for day in days)


def _day(value: str) -> date | None:
    """A DA value, also in the form of ACR-NEMA (2020.01.31); None when it is no date."""
    digits = value.replace(".", "")
    if len(digits) != 8 or not (digits.isascii() and digits.isdigit()):
        return None
    try:
        return date(int(digits[:4]), int(digits[4:6]), int(digits[6:]))
    except ValueError:
        return None


def _cohort(path: Path) -> Mapping[str, tuple[Window, ...]]:
    """The cohort as it is on disk now. Raises Hold when it cannot be read: nobody checked a changed file."""
    try:
        state = path.stat()
        return _cohort_at(path, state.st_mtime_ns, state.st_size)
    except (OSError, PolicyError):
        raise Hold("no_route", at=path.name) from None


@lru_cache(maxsize=16)
def _cohort_at(path: Path, _mtime_ns: int, _size: int) -> Mapping[str, tuple[Window, ...]]:
    return load_cohort(path)
