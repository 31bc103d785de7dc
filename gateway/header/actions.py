"""What is done to one attribute: Table E.1-1, the policy's options and keeps, and the attribute's Type, put together.

Pure decisions, no bytes. Order of precedence, for any attribute:
1. `keep` of the policy, which names its reason;
2. the options: any option's code beats the basic one; C beats K where two options disagree on a row;
3. the Basic Profile's code;
4. attributes that no row covers: `beyond_table`.
Then the Type at that place resolves the code: Type 1 takes a dummy, Type 2 zero length, whatever the letter (E.1.1).
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from enum import StrEnum
from typing import NamedTuple

from gateway.policy import Row

MODIFIED_DATES = "retain-longitudinal-modified-dates"
FULL_DATES = "retain-longitudinal-full-dates"
TEMPORAL = frozenset({"DA", "DT", "TM"})
# Options whose C on a sequence means to enter it; rules for its items (`items`) do the rest.
CLEANED_BY_ITEM = frozenset({"clean-structured-content", "clean-graphics"})
CLEANED = frozenset({"LO", "LT", "SH", "ST", "UC", "UT"})  # C on text: it stays, cleaned (`descriptors`)
CLEANS_TEXT = frozenset({"clean-descriptors", "retain-patient-characteristics"})  # E.3.5; five rows of E.3.7 ask it too
CLEANABLE_IDS = frozenset({"AE"})  # C on an AE title is carried out as a keyed title: similar meaning, not identifying


class Act(StrEnum):
    """What the rewriter does. The values are the keys of a Step's counts."""

    KEEP = "K"
    REMOVE = "X"
    ZERO = "Z"
    DUMMY = "D"
    UID = "U"
    SHIFT = "C"  # dates and times moved by the patient's shift
    CLEAN = "cleaned"  # text kept without what identifies in it
    RECURSE = "recurse"  # a sequence's shell is kept, the profile applies to its items
    PATIENT_ID = "patient_id"
    PATIENT_NAME = "patient_name"


class Decision(NamedTuple):
    """An action, what to do instead when the value cannot be read for it, and the reason in a few words."""

    act: Act
    otherwise: Act
    because: str


def cleans_text(options: AbstractSet[str]) -> bool:
    """True when some attribute's text may be cleaned under these options."""
    return not CLEANS_TEXT.isdisjoint(options)


LETTERS = {"X": Act.REMOVE, "Z": Act.ZERO, "D": Act.DUMMY}


def code_of(row: Row, options: AbstractSet[str]) -> tuple[str, str]:
    """The row's code under these options and the option it comes from ("" = Basic Profile)."""
    asked = [(code, option) for option, code in row.columns.items() if option in options]
    for wanted in ("C", "K"):
        for code, option in asked:
            if code == wanted:
                return code, option
    return row.basic, ""


def resolve(code: str, vr: str, kind: str) -> Act:
    """The action for a code of Table E.1-1a. `kind` is the Type here: "1", "2", or "" for 3 and not in the IOD.

    K and U do not depend on the Type. D on a sequence that the IOD does not require is removal (note to E.1.1).
    """
    if code == "K":
        return Act.RECURSE if vr == "SQ" else Act.KEEP
    if code == "U":
        return Act.UID
    if code == "X/Z/U*":
        return Act.RECURSE  # the links between images survive, remapped
    if kind == "1":
        return Act.DUMMY
    if code == "D":
        return Act.DUMMY if vr != "SQ" else Act.ZERO if kind == "2" else Act.REMOVE
    if kind == "2":
        return Act.ZERO
    return LETTERS[code[0]]


def action_of(row: Row, vr: str, *, options: AbstractSet[str] = frozenset(), kind: str = "") -> Decision:
    """The decision for an attribute that has a row; `vr` as in PS3.6, `kind` as in `resolve`."""
    code, option = code_of(row, options)
    basic = resolve(row.basic, vr, kind)
    because = option or "basic profile"
    if code == "C":
        if option == MODIFIED_DATES and vr in TEMPORAL:
            return Decision(Act.SHIFT, basic, because)
        if option in CLEANED_BY_ITEM | CLEANS_TEXT and vr == "SQ":
            return Decision(Act.RECURSE, basic, because)
        if option in CLEANS_TEXT and vr in CLEANED:
            return Decision(Act.CLEAN, basic, because)
        if vr in CLEANABLE_IDS:
            return Decision(Act.DUMMY, basic, because)
        return Decision(basic, basic, f"basic profile: {option} asks to clean text, which is not kept")
    if row.keyword == "PatientID":
        return Decision(Act.PATIENT_ID, basic, "keyed pseudonym")
    if row.keyword == "PatientName":
        return Decision(Act.PATIENT_NAME, basic, "keyed pseudonym at top level")
    if row.basic == "D" and vr == "UI" and code == "D":
        return Decision(Act.UID, basic, because)  # a keyed UID is the dummy that keeps references whole
    if option:
        return Decision(resolve(code, vr, kind), basic, because)
    return Decision(basic, basic, because + (f", Type {kind} here" if kind and code not in ("U", "D") else ""))
