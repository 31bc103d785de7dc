"""What a policy does to each attribute, in plain language, for `policy explain` and for the README's comparison."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.header import graphics, structured
from gateway.header.actions import Act
from gateway.header.dates import MAX_AGE_YEARS
from gateway.header.dictionary import dictionary, is_private, repeating_form
from gateway.header.iod import ANY_IOD, places_of
from gateway.header.plan import ANYWHERE, plan_for
from gateway.policy import HeaderPolicy, load_table
from gateway.policy.model import SAFE_PRIVATE

SAYS = {
    Act.KEEP: "kept",
    Act.REMOVE: "removed",
    Act.ZERO: "emptied",
    Act.DUMMY: "replaced by a dummy",
    Act.UID: "replaced by a keyed UID",
    Act.SHIFT: "moved by the patient's shift",
    Act.CLEAN: "kept, cleaned of what identifies",
    Act.RECURSE: "kept; its items are de-identified",
    Act.PATIENT_ID: "replaced by the keyed pseudonym",
    Act.PATIENT_NAME: "replaced by the keyed pseudonym",
}
# What one attribute alone does not tell: (keyword, option or policy part) -> words; "" is what holds without it.
CONTENTS = {
    ("ContentSequence", ""): "a key object keeps its references, everything else is held (structured_content)",
    ("EncapsulatedDocument", ""): "the object is held (encapsulated_document)",
    ("EncapsulatedDocument", "replace"): "replaced by a blank document of the same kind",
    **{
        (word, structured.OPTION): "kept; its content items are cleaned one by one"
        for word in ("ContentSequence", "AcquisitionContextSequence", "SpecimenPreparationStepContentItemSequence")
    },
    ("GraphicAnnotationSequence", graphics.OPTION): "kept; its drawings stay, its text goes",
}


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
        decision = plan.decide(tag, ANYWHERE)
        says = SAYS[decision.act]
        stricter = {SAYS[plan.decide(tag, parent).act] for parent in places_of(tag)} - {says}
        if tag >> 16 == 0x0002:
            says = "written anew"
        elif contents := _contents(entry.keyword, policy):
            says = contents
        elif stricter:
            says += ", " + " or ".join(sorted(stricter)) + " where the IOD requires it"
        if entry.vr == "AS" and decision.act is Act.KEEP:
            says += f", {MAX_AGE_YEARS:03d}Y for everybody older"
        yield TagAction(f"{tag:08X}", entry.keyword, says, decision.because)


def _contents(keyword: str, policy: HeaderPolicy) -> str:
    """What happens to an attribute whose contents have rules of their own, "" for others."""
    if keyword == "GraphicAnnotationSequence" and {graphics.OPTION, "clean-descriptors"} <= policy.options:
        return "kept; its drawings stay, its text is cleaned"
    for part in (*sorted(policy.options), policy.encapsulated, ""):
        if (keyword, part) in CONTENTS:
            return CONTENTS[keyword, part]
    return ""


def describe(policy: HeaderPolicy) -> Iterator[TagAction]:
    """Every standard attribute, and the groups that go as a whole, in tag order.

    The action is that of Type 3; where PS3.3 has a stricter Type for the attribute in some IOD, the line says what
    happens there.
    """
    lines = [*_attributes(policy), *GROUPS]
    for form, row in load_table(policy.edition).items():
        if not form.isalnum() or "x" in form or form == "ggggeeee":
            lines.append(_group(form, row.keyword, policy))
    yield from sorted(lines, key=lambda line: line.tag)


def _group(form: str, keyword: str, policy: HeaderPolicy) -> TagAction:
    if form != "ggggeeee":
        return TagAction(form, keyword, SAYS[Act.REMOVE], "basic profile: the whole group goes")
    if SAFE_PRIVATE not in policy.options:
        return TagAction(form, keyword, SAYS[Act.REMOVE], "basic profile: private")
    lists = "Table E.3.10-1" if policy.private.dispositions == "none" else "Table E.3.10-1 and TCIA's dispositions"
    own = f" and {len(policy.private.keep)} of the policy" if policy.private.keep else ""
    return TagAction(form, keyword, f"removed, unless {lists}{own} keep it; then judged by VR and value", SAFE_PRIVATE)
