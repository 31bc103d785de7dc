"""What a line that was read may be: a word of this patient's header, something everybody has on screen, or neither.

The words come from the header as received, before it is scrubbed (cases.md 8). They live in memory only: an estimate
holds codes and boxes, never a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from pydicom.dataset import Dataset
from pydicom.multival import MultiValue

from gateway.errors import EnvironmentFault
from gateway.settings import SHIPPED_POLICIES

KEPT_FILE = SHIPPED_POLICIES / "regions" / "kept_text.txt"
MIN_HINT = 3  # characters: a shorter word is in every second line
MIN_FUZZY = 5  # from here on one character may be misread
MAX_DIGITS = 3  # a longer number without a unit may be an id, a year, a date
_NAMING = frozenset(
    {
        "AccessionNumber",
        "AdmissionID",
        "DeviceSerialNumber",
        "InstitutionAddress",
        "InstitutionName",
        "InstitutionalDepartmentName",
        "RequestedProcedureID",
        "ScheduledProcedureStepID",
        "ServiceEpisodeID",
        "StationName",
        "StudyID",
    }
)
_TEXT_VRS = frozenset({"PN", "LO", "SH", "ST", "LT", "UT", "UC", "CS", "AS"})
_RUNS = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_]+|[%°²³/]")
_ALIKE = str.maketrans("OQDILJSBZG", "0001115826")  # as recognisers confuse them
_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]


def folded(text: str) -> str:
    """Capitals without accents, letters and digits only."""
    plain = unicodedata.normalize("NFKD", text)
    return "".join(sign for sign in plain.upper() if sign.isalnum())


@dataclass(frozen=True, slots=True)
class Hints:
    """Words of one patient's headers, folded, with look-alikes as one."""

    words: frozenset[str] = frozenset()

    def in_line(self, text: str, least: int = MIN_HINT) -> bool:
        """True when a line shows a word of at least `least` signs, one sign of five or more misread or not."""
        line = folded(text).translate(_ALIKE)
        words = [word for word in self.words if len(word) >= least]
        if any(word in line for word in words):
            return True
        runs = [folded(run).translate(_ALIKE) for run in text.split()] + [line]
        return any(len(word) >= MIN_FUZZY and any(_one_off(word, run) for run in runs) for word in words)


def hints_of(datasets: Iterable[Dataset]) -> Hints:
    """Names, ids, dates and places at any depth of the headers."""
    found: set[str] = set()
    for dataset in datasets:
        for element in dataset.iterall():
            if element.VR == "DA":
                for value in _values(element.value):
                    found |= _date_forms(value)
            elif element.VR == "PN" or (
                element.VR in _TEXT_VRS and (element.tag.group == 0x0010 or element.keyword in _NAMING)
            ):
                for value in _values(element.value):
                    found |= {folded(part) for part in re.split(r"[\s^=,;\\/]+", value)}
                    found.add(folded(value))
    return Hints(frozenset(word.translate(_ALIKE) for word in found if len(word) >= MIN_HINT))


def _values(value: object) -> list[str]:
    return [str(one) for one in value] if isinstance(value, MultiValue | list) else [str(value or "")]


def _date_forms(value: str) -> set[str]:
    """A date as devices show it: 19500131, 31011950, 01311950, 31JAN1950, 500131."""
    if not re.fullmatch(r"\d{8}", value):
        return set()
    year, month, day = value[:4], value[4:6], value[6:]
    named = _MONTHS[int(month) - 1] if 1 <= int(month) <= 12 else ""
    return {value, day + month + year, month + day + year, value[2:], *({day + named + year} if named else ())}


def _one_off(word: str, run: str) -> bool:
    """Whether one substitution, insertion or deletion makes them equal."""
    if abs(len(word) - len(run)) > 1 or not run:
        return False
    start = next((at for at, (a, b) in enumerate(zip(word, run, strict=False)) if a != b), min(len(word), len(run)))
    return word[start + 1 :] == run[start + 1 :] or word[start:] == run[start + 1 :] or word[start + 1 :] == run[start:]


@cache
def shipped_kept() -> frozenset[str]:
    """Words of `policies/regions/kept_text.txt`, folded. Raises EnvironmentFault when it is missing."""
    try:
        lines = KEPT_FILE.read_text("utf-8").splitlines()
    except OSError as error:
        raise EnvironmentFault(f"{KEPT_FILE} cannot be read: the installation is incomplete") from error
    written = (line.partition("#")[0] for line in lines)
    return frozenset(folded(word) for line in written for word in line.split())


@dataclass(frozen=True, slots=True)
class Kept:
    """What may stay when only identifying text is redacted: the shipped words and the policy's."""

    words: frozenset[str]

    def covers(self, text: str, hints: Hints) -> bool:
        """True when every part of a line is a kept word, or a short number, and no hint is in it."""
        if hints.in_line(text):
            return False
        parts = _RUNS.findall(text)
        if not parts or folded("".join(parts)) != folded(text):
            return False
        for at, part in enumerate(parts):
            if part[0].isdigit():
                unit = at + 1 < len(parts) and folded(parts[at + 1]) in self.words
                digits = sum(sign.isdigit() for sign in part)
                if len(re.split(r"[.,]", part)) > 2 or digits > (MAX_DIGITS + 2 if unit else MAX_DIGITS):
                    return False
            elif part.isalpha() and folded(part) not in self.words:
                return False
        return bool([part for part in parts if part[0].isalnum()])
