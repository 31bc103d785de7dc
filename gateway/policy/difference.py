"""What differs between two policies: the sentences of their explanations, and beside them the keys of their files.

The sentences are for people, the keys make sure that nothing is passed over that no sentence tells.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from gateway.policy.explain import explain_sections
from gateway.policy.model import Policy

SECTIONS = {  # keys of the file -> the part of the explanation that tells of them
    "extends": "header",
    "header": "header",
    "pixels": "pixels",
    "gate": "gate",
    "escalate": "afterwards",
    "release": "afterwards",
    "retain": "afterwards",
    "vault": "afterwards",
    "review": "afterwards",
    "forward": "afterwards",
}
NONE = "none"


@dataclass(frozen=True, slots=True)
class KeyChange:
    """One key of the file, such as "header.dates.shift_days". `old` and `new` are as they would be written."""

    key: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class SectionChange:
    """What differs in one part: sentences that only the first policy has, those that only the second has, and keys."""

    section: str
    gone: tuple[str, ...]
    come: tuple[str, ...]
    keys: tuple[KeyChange, ...]


def differences(first: Policy, second: Policy) -> list[SectionChange]:
    """Parts that differ, in the order of the file. The name is no difference."""
    old, new = explain_sections(first), explain_sections(second)
    keys = list(_keys(first.as_file(), second.as_file()))
    found = []
    for section in dict.fromkeys(SECTIONS.values()):
        gone = tuple(line for line in old[section] if line not in new[section])
        come = tuple(line for line in new[section] if line not in old[section])
        of_section = tuple(key for key in keys if SECTIONS[key.key.partition(".")[0]] == section)
        if gone or come or of_section:
            found.append(SectionChange(section, gone, come, of_section))
    return found


def _keys(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[KeyChange]:
    for key in SECTIONS:
        yield from _compared(key, old.get(key), new.get(key))


def _compared(key: str, old: Any, new: Any) -> Iterator[KeyChange]:
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for name in dict.fromkeys([*old, *new]):
            yield from _compared(f"{key}.{name}", old.get(name), new.get(name))
    elif isinstance(old, list) and isinstance(new, list) and not _range(old, new):
        gone = [entry for entry in old if entry not in new]
        come = [entry for entry in new if entry not in old]
        if not gone and not come:
            yield KeyChange(key, _written(old), _written(new))  # the same entries in another order
        for entry in gone:
            yield KeyChange(key, _written(entry), NONE)
        for entry in come:
            yield KeyChange(key, NONE, _written(entry))
    else:
        yield KeyChange(key, _written(old), _written(new))


def _range(old: list[Any], new: list[Any]) -> bool:
    """True for lists of numbers, which mean something as a whole."""
    return all(isinstance(entry, int | float) for entry in (*old, *new))


def _written(value: Any) -> str:
    return NONE if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
