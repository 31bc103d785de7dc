"""What a policy does to each attribute, in plain language, for `policy explain` and for the README's comparison."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.header.actions import Act
from gateway.header.dates import MAX_AGE_YEARS
from gateway.header.dictionary import dictionary, is_private, repeating_form
from gateway.header.iod import ANY_IOD, places_of
from gateway.header.plan import plan_for
from gateway.policy import HeaderPolicy, load_table

SAYS = {
    Act.KEEP: "kept",
    Act.REMOVE: "removed",
    Act.ZERO: "emptied",
    Act.DUMMY: "replaced by a dummy",
    Act.UID: "replaced by a keyed UID",
    Act.SHIFT: "moved by the patient's shift",
    Act.RECURSE: "kept; its items are de-identified",
    Act.PATIENT_ID: "replaced by the keyed pseudonym",
    Act.PATIENT_NAME: "replaced by the keyed pseudonym",
}
HELD = {
    "ContentSequence": "a key object keeps its references, everything else is held (structured_content)",
    "EncapsulatedDocument": "the object is held (encapsulated_document)",
}
NOWHERE = -1  # a place that no IOD has: every attribute is Type 3 there


@dataclass(frozen=True, slots=True)
class TagAction:
    """One line: `tag` is eight hex digits, a group ("60xx3000", "ggggeeee") or "unknown"; `action` is plain words."""

    tag: str
    keyword: str
    action: str
    because: str


GROUPS = (
    TagAction("gggg0000", "", "removed", "group lengths are retired and would be wrong"),
    TagAction("0000eeee", "", "removed", "command elements do not belong into a data set"),
    TagAction("0002eeee", "", "written anew", "file meta and preamble describe this application only"),
    TagAction("0004eeee", "", "removed", "directory elements belong into a DICOMDIR, which is refused"),
    TagAction("unknown", "", "removed", "an attribute that PS3.6 does not know"),
)


def _attributes(policy: HeaderPolicy) -> Iterator[TagAction]:
    plan = plan_for(policy, ANY_IOD)
    table = load_table(policy.edition)
    for tag, entry in dictionary().items():
        as_group = tag >> 16 in (0x0000, 0x0002, 0x0004) and f"{tag:08X}" not in table
        if as_group or is_private(tag) or repeating_form(tag) or not tag & 0xFFFF:
            continue
        decision = plan.decide(tag, NOWHERE)
        says = SAYS[decision.act]
        stricter = {SAYS[plan.decide(tag, parent).act] for parent in places_of(tag)} - {says}
        if tag >> 16 == 0x0002:
            says = "written anew"
        elif entry.keyword in HELD:
            says = HELD[entry.keyword]
        elif stricter:
            says += ", " + " or ".join(sorted(stricter)) + " where the IOD requires it"
        if entry.vr == "AS" and decision.act is Act.KEEP:
            says += f", {MAX_AGE_YEARS:03d}Y for everybody older"
        yield TagAction(f"{tag:08X}", entry.keyword, says, decision.because)


def describe(policy: HeaderPolicy) -> Iterator[TagAction]:
    """Every standard attribute, and the groups that go as a whole, in tag order.

    The action is that of Type 3; where PS3.3 has a stricter Type for the attribute in some IOD, the line says what
    happens there.
    """
    lines = [*_attributes(policy), *GROUPS]
    for form, row in load_table(policy.edition).items():
        if not form.isalnum() or "x" in form or form == "ggggeeee":
            because = "private" if form == "ggggeeee" else "the whole group goes"
            lines.append(TagAction(form, row.keyword, SAYS[Act.REMOVE], f"basic profile: {because}"))
    yield from sorted(lines, key=lambda line: line.tag)
