"""Why an element became what it is: the row of PS3.15 that decided, the option, the policy's reason, or the default.

The words come from the same plan that the header stage follows; where what was done is not what the plan says of the
attribute, because of its value, its item or a pixel stage, the words say that too.
"""

from __future__ import annotations

from collections.abc import Collection

from gateway.app.preview.private import private_reason
from gateway.app.preview.rows import PREAMBLE, Outcome, Place, Row
from gateway.header import graphics, structured
from gateway.header.actions import Act, Decision, code_of
from gateway.header.dictionary import is_private, repeating_form
from gateway.header.items import CONTENT_SEQUENCE, elements_of, items_of, value_of
from gateway.header.key_objects import KEY_OBJECT_SELECTION
from gateway.header.plan import ANYWHERE, GROUP_LENGTH, UNKNOWN, WRONG_GROUP, plan_for
from gateway.header.stamp import STAMPED
from gateway.policy import Policy, load_table
from gateway.policy.content_table import content_row
from gateway.policy.standard import tag_of_keyword

LETTER = {
    Act.KEEP: "K",
    Act.RECURSE: "K",
    Act.REMOVE: "X",
    Act.ZERO: "Z",
    Act.DUMMY: "D",
    Act.UID: "U",
    Act.SHIFT: "C",
    Act.CLEAN: "C",
    Act.PATIENT_ID: "D",
    Act.PATIENT_NAME: "D",
}
_GROUPS = {
    UNKNOWN: "PS3.6 does not know this attribute",
    GROUP_LENGTH: "group lengths are retired, and would be wrong",
    WRONG_GROUP: "such elements do not belong into a data set",
}
_MADE = {
    Act.DUMMY: "a dummy",
    Act.UID: "a keyed UID",
    Act.PATIENT_ID: "the keyed pseudonym",
    Act.PATIENT_NAME: "the keyed pseudonym",
}
_GONE = frozenset({Outcome.REMOVED, Outcome.EMPTIED})
_TEXT = frozenset({"LO", "LT", "SH", "ST", "UC", "UT"})


class PolicyReasons:
    """Reasons under one policy for an object of one SOP class. `staged`: top-level tags that pixel stages changed."""

    def __init__(self, policy: Policy, sop_class: str, staged: Collection[int] = ()) -> None:
        self._header = policy.header
        self._stages = ", ".join(name for name, _ in policy.pixels)
        self._sop_class = sop_class
        self._staged = frozenset(staged)
        self._plan = plan_for(policy.header, sop_class)
        self._table = load_table(policy.header.edition)

    def of_item(self, row: Row, place: Place) -> tuple[str, str]:
        """`place` is that of the item's contents."""
        if row.outcome not in (Outcome.REMOVED, Outcome.ADDED):
            return "", ""
        content = self._content(place)
        if content is not None:
            return content
        if row.tag == graphics.GRAPHIC_ANNOTATION and row.outcome is Outcome.REMOVED:
            return "X", f"{graphics.OPTION}: an annotation that is nothing but text"
        return "", ""

    def of_element(self, row: Row, place: Place) -> tuple[str, str]:
        tag = row.tag
        if row.path == PREAMBLE or tag >> 16 == 0x0002:
            return "", "file meta is written anew (PS3.15 E.1.1)"
        if not place.depth and tag in self._staged:
            return "", f"pixel stages of the policy: {self._stages}"
        if not place.depth and tag in STAMPED:
            return "", "says what was done (PS3.15 E.1.1, CID 7050)"
        if is_private(tag):
            return private_reason(row, self._header, goes=row.outcome in _GONE)
        if row.outcome is Outcome.ADDED:
            return "", "written by the header stage"
        if place.sequence in structured.CONTENT and tag == structured.VALUES.get(_kind(place)):
            content = self._content(place)
            if content is not None:
                return content
        parent = place.sequence if not is_private(place.sequence) else ANYWHERE
        decision = self._plan.decide(tag, parent)
        code, words = self._standard(tag, decision)
        note = _note(row, decision)
        return code, f"{words}; {note}" if note else words

    def _standard(self, tag: int, decision: Decision) -> tuple[str, str]:
        if tag in self._header.kept_tags:
            reasons = {tag_of_keyword(word): why for word, why in self._header.keep.items()}
            return "K", f"kept by the policy: {reasons[tag]}"
        if decision.because in _GROUPS:
            return "X", _GROUPS[decision.because]
        form = repeating_form(tag)
        if form:
            return "X", f"Table E.1-1: groups {form} go as a whole"
        row = self._table.get(f"{tag:08X}")
        if row is None:
            return LETTER[decision.act], f"beyond the table: {decision.because}"
        code, option = code_of(row, self._header.options)
        words = f"Table E.1-1, {option}" if option else "Table E.1-1"
        if decision.because.startswith("basic profile: "):
            return row.basic, f"Table E.1-1: {option} would have it cleaned, which is not done here"
        kind = decision.because.partition("Type ")[2].partition(" ")[0]
        if kind:
            words += f", Type {kind} here"
        return code, words

    def _content(self, place: Place) -> tuple[str, str] | None:
        """What decides about a content item; None where no rule for content items holds."""
        reader = place.item.reader
        if place.sequence not in structured.CONTENT or reader is None:
            return None
        if structured.OPTION not in self._header.options:
            if self._sop_class == KEY_OBJECT_SELECTION and place.sequence == CONTENT_SEQUENCE:
                return "D", "of a key object, only references to instances stay"
            return None
        kind = _kind(place)
        scheme, code, meaning = _concept(place)
        row = content_row(scheme, code, kind, self._header.edition)
        if row is None:
            return "", f"{structured.OPTION}: not in Table E.3.4-1, judged by its value type {kind}"
        asked = [code for option, code in row.columns.items() if option in self._header.options]
        letter = "C" if "C" in asked else "K" if "K" in asked else row.basic
        return letter, f"Table E.3.4-1, {meaning or row.meaning} ({code}, {scheme}) {kind}"


def _note(row: Row, decision: Decision) -> str:  # noqa: C901 - one line for each way to differ from the plan
    """Why what was done is not what the decision alone says, "" where it is."""
    act, outcome = decision.act, row.outcome
    empty = not (row.before or "").strip()
    if outcome is Outcome.KEPT and act in (Act.KEEP, Act.RECURSE):
        return ""
    if empty and outcome is Outcome.KEPT:
        return "empty as it came"
    if act is Act.UID and outcome is Outcome.KEPT:
        return "defined by DICOM itself"
    if act is Act.SHIFT:
        if outcome in _GONE:
            return "cannot be read as a date or time"
        return "the time of day stays" if outcome is Outcome.KEPT else ""
    if act is Act.CLEAN:
        if outcome in _GONE:
            return "nothing of it was left"
        return "nothing in it identifies" if outcome is Outcome.KEPT else "cleaned"
    if act is Act.KEEP and outcome is Outcome.REPLACED:
        if row.vr == "AS":
            return "ages over 89 become 090Y"
        return "a name, number or date of this object was taken out" if row.vr in _TEXT else "not a value of its VR"
    if act is Act.KEEP and outcome in _GONE:
        return "not a value of its VR"
    if act is Act.RECURSE and outcome is Outcome.REMOVED:
        return "cannot be read as a sequence, or nothing of it was left"
    if outcome is Outcome.REPLACED and act in _MADE:
        return _MADE[act]
    if act is Act.REMOVE and outcome is not Outcome.REMOVED:
        return "a rule for its item decided otherwise"
    return ""


def _kind(place: Place) -> str:
    """The value type of a content item."""
    item = place.item
    if item.reader is None:
        return ""
    return value_of(tuple(item.elements.values()), structured.VALUE_TYPE, item.reader).decode("latin-1")


def _concept(place: Place) -> tuple[str, str, str]:
    """(scheme, code, meaning) of a content item's concept name."""
    item = place.item
    if item.reader is None:
        return "", "", ""
    every = tuple(item.elements.values())
    for found, inner in items_of(every, structured.CONCEPT_NAME, item.reader, 0):
        parts = elements_of(found, inner, 1)
        texts = [
            value_of(parts, tag, inner).decode("latin-1")
            for tag in (structured.SCHEME, structured.CODE_VALUE, 0x00080104)
        ]
        return texts[0], texts[1], texts[2]
    return "", "", ""
