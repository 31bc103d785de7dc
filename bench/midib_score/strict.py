"""What the challenge's rules cannot see: words by their boundaries, every byte of the file, one shift for all dates.

Counts only; the score is the challenge's.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.midib_score import textrule
from bench.midib_score.judge import Mappings, Output
from bench.midib_score.key import Instance


@dataclass
class Strict:
    """Findings over a whole corpus."""

    planted_words_left: int = 0
    files_with_planted_bytes: int = 0
    dates_compared: int = 0
    patients_with_several_shifts: int = 0
    new_uids_of_several_old: int = 0
    examples: list[str] = field(default_factory=list)

    def figures(self) -> dict[str, object]:
        return asdict(self)


def strict(pairs: Iterable[tuple[Instance, Output | None, Path]], known: Mappings) -> Strict:
    """`pairs`: instance, its output, the output's file."""
    found = Strict()
    shifts: dict[str, set[int]] = {}
    for instance, output, path in pairs:
        if output is None:
            continue
        for check in instance.checks:
            got = output.table.get(check.tag_ds, "")
            if check.action == "text_removed" and got and not textrule.gone_strictly(check.action_text, got):
                found.planted_words_left += 1
                _example(found, f"{instance.file} {check.tag_ds}: a planted word in what is left")
            if check.action == "date_shifted" and got:
                days = _days_between(check.value, got)
                if days is not None:
                    found.dates_compared += 1
                    shifts.setdefault(instance.patient, set()).add(days)
        data = path.read_bytes()
        if any(secret in data for secret in _secrets(instance)):
            found.files_with_planted_bytes += 1
            _example(found, f"{instance.file}: a planted text somewhere in the bytes")
    found.patients_with_several_shifts = sum(len(days) > 1 for days in shifts.values())
    new = list(known.uids.values())
    found.new_uids_of_several_old = len(new) - len(set(new))
    return found


def _example(found: Strict, text: str) -> None:
    if len(found.examples) < 20:
        found.examples.append(text)


def _secrets(instance: Instance) -> set[bytes]:
    """Planted texts that mean nobody else wherever they stand: numbers of seven digits and more, names of two words."""
    secrets: set[bytes] = set()
    for check in instance.checks:
        if check.action != "text_removed" or len(check.action_text) < 7 or '"' in check.tag_ds:
            continue
        text = check.action_text
        if sum(c.isdigit() for c in text) >= 7 or (check.answer_category == "HIPAA-A" and text.count(" ") == 1):
            forms = {text, "^".join(reversed(text.split(" "))), "^".join(reversed(text.upper().split(" ")))}
            secrets |= {form.encode() for form in forms}
    return secrets


def _days_between(old: str, new: str) -> int | None:
    days = [_day(text) for text in (old, new)]
    return None if None in days else days[1] - days[0]  # type: ignore[operator]


def _day(text: str) -> int | None:
    """The day of a DA or DT; None for anything else."""
    if len(text) >= 8 and text[:8].isdigit() and text[:2] in ("18", "19", "20"):
        try:
            return dt.date(int(text[:4]), int(text[4:6]), int(text[6:8])).toordinal()
        except ValueError:
            return None
    return None
