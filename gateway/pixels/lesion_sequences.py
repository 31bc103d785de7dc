"""Which MR sequence a series is: T1, T1c (with contrast agent), T2 or FLAIR, by its timing, else by its name.

Timing decides where it is stated (PS3.3 C.8.3.1; enhanced: C.8.13.5): names are free text, and lie. None is "not one of
these": diffusion, perfusion, angiography, proton density, subtractions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydicom.dataset import Dataset
from pydicom.multival import MultiValue

LONG_ECHO_MS, SHORT_ECHO_MS = 60.0, 30.0
LONG_REPETITION_MS = 1800.0
NULLS_WATER_MS = (1600.0, 3200.0)  # inversion times that null cerebrospinal fluid, at 1.5 and 3 T
OTHERS = re.compile(
    r"DIFF|DWI|ADC|TRACE|PERF|DSC|DCE|(?<![A-Z])ASL|SWI|TOF|ANGIO|MRA|SUBTR|(?<![A-Z])SUB(?![A-Z])|FIELD.?MAP|BOLD"
    r"|(?<![A-Z0-9])PD(?![A-Z])|T2.?STAR|T2\*|HEMO|LOCALI[SZ]ER|SCOUT|SURVEY|TOPOGRAM"
)
NAMES = (  # the first that fits
    ("FLAIR", re.compile(r"FLAIR|DARK.?FLUID|TIRM")),
    ("T1", re.compile(r"T1|MPRAGE|MP2RAGE|BRAVO|SPGR|FSPGR|TFE")),
    ("T2", re.compile(r"T2")),
)
AGENT = frozenset({"+C", "CE", "GD", "GAD", "GADO", "KM", "POST", "POSTGAD", "CONTRAST", "T1C", "T1CE", "T1GD", "T1KM"})
NO_AGENT = frozenset({"WITHOUT", "NON", "NO", "PRE", "OHNE", "NATIV", "NATIVE"})
WORDS = ("SeriesDescription", "ProtocolName", "SequenceName", "PulseSequenceName")


def sequence_of(dataset: Dataset) -> str | None:
    """Of one object of a series, as it was received."""
    if str(dataset.get("Modality", "")) != "MR":
        return None
    words = " ".join(str(dataset.get(keyword, "") or "") for keyword in WORDS).upper()
    kinds = dataset.get("ImageType") or ()
    said = " ".join([words, *(str(one).upper() for one in ([kinds] if isinstance(kinds, str) else kinds))])
    if OTHERS.search(said) or dataset.get("DiffusionBValue"):
        return None
    timed = _by_timing(dataset)
    found = timed or next((name for name, pattern in NAMES if pattern.search(words)), None)
    return "T1c" if found == "T1" and (_agent(dataset) or _says_agent(words)) else found


def _by_timing(dataset: Dataset) -> str | None:
    """Spin and gradient echoes; None where times are missing or between the kinds."""
    echo = _number(dataset, "MREchoSequence", "EffectiveEchoTime", "EchoTime")
    repetition = _number(dataset, "MRTimingAndRelatedParametersSequence", "RepetitionTime", "RepetitionTime")
    inversion = _number(dataset, "MRModifierSequence", "InversionTimes", "InversionTime")
    if echo is None or repetition is None:
        return None
    if echo >= LONG_ECHO_MS and repetition >= LONG_REPETITION_MS:
        low, high = NULLS_WATER_MS
        return "FLAIR" if inversion is not None and low <= inversion <= high else "T2"
    if echo < SHORT_ECHO_MS and (repetition < LONG_REPETITION_MS or (inversion or 0) > 0):
        return "T1"
    return None


def _agent(dataset: Dataset) -> bool:
    return bool(dataset.get("ContrastBolusAgent") or dataset.get("ContrastBolusAgentSequence"))


def _says_agent(words: str) -> bool:
    tokens = set(re.split(r"[^A-Z0-9+]+", words))
    return bool(tokens & AGENT) and not tokens & NO_AGENT


def _number(dataset: Dataset, sequence: str, inner: str, classic: str) -> float | None:
    for value in _values(dataset, sequence, inner, classic):
        try:
            first = value[0] if isinstance(value, list | MultiValue) and value else value
            return float(first)
        except (TypeError, ValueError, IndexError):
            continue
    return None


def _values(dataset: Dataset, sequence: str, inner: str, classic: str) -> Iterator[Any]:
    for groups in ("SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"):
        items = list(dataset.get(groups) or ())
        if items and (found := items[0].get(sequence)):
            yield found[0].get(inner)
    yield dataset.get(classic)
