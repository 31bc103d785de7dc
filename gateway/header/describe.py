"""What a policy does to each attribute, in plain language, for `policy explain` and for the README's comparison."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gateway.header.actions import Act, Decision
from gateway.header.beyond_table import default_of
from gateway.header.dictionary import dictionary
from gateway.header.plan import Plan, plan_for
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
_STRICTEST = ""  # no SOP class: every place has the strictest Type of all IODs


@dataclass(frozen=True, slots=True)
class TagAction:
    """One line: `tag` is eight hex digits or the form of a group ("60xx3000", "ggggeeee"), `action` plain words."""

    tag: str
    keyword: str
    action: str
    because: str


def _line(tag: str, keyword: str, decision: Decision, by_type: set[Act]) -> TagAction:
    says = SAYS[decision.act]
    others = sorted(SAYS[act] for act in by_type - {decision.act})
    if others:
        says += ", " + " or ".join(others) + " where the IOD requires it"
    return TagAction(tag, keyword, says, decision.because)


def _rows(policy: HeaderPolicy, plans: tuple[Plan, Plan]) -> Iterator[TagAction]:
    entries = dictionary()
    loose, strict = plans
    for form, row in load_table(policy.edition).items():
        if "x" in form or form == "ggggeeee":
            yield TagAction(form, row.keyword, SAYS[Act.REMOVE], "basic profile: the whole group goes")
            continue
        tag = int(form, 16)
        keyword = row.keyword or (entries[tag].keyword if tag in entries else "")
        yield _line(form, keyword, loose.decide(tag, -1), {strict.decide(tag).act})


def _beyond(policy: HeaderPolicy) -> Iterator[TagAction]:
    table = load_table(policy.edition)
    for tag, entry in dictionary().items():
        form = f"{tag:08X}"
        if form in table or tag >> 16 in (0x0000, 0x0002, 0x0004) or not entry.keyword:
            continue
        decision = default_of(tag, entry, options=policy.options)
        if tag in policy.kept_tags:
            decision = Decision(Act.KEEP, Act.KEEP, "kept by the policy")
        yield _line(form, entry.keyword, decision, set())


def describe(policy: HeaderPolicy) -> Iterator[TagAction]:
    """Every row of Table E.1-1, every standard attribute beyond it, and the groups that go as a whole, in tag order.

    The action is that of Type 3; where PS3.3 has a stricter Type for the attribute at top level in some IOD, the line
    says what happens there.
    """
    strict = plan_for(policy, _STRICTEST)
    lines = [*_rows(policy, (strict, strict)), *_beyond(policy)]
    lines += [
        TagAction("gggg0000", "", SAYS[Act.REMOVE], "group lengths are retired and would be wrong"),
        TagAction("0000eeee", "", SAYS[Act.REMOVE], "command elements do not belong into a data set"),
        TagAction("0002eeee", "", "written anew", "file meta and preamble describe this application only"),
        TagAction("0004eeee", "", SAYS[Act.REMOVE], "directory elements belong into a DICOMDIR, which is refused"),
        TagAction("ggggeeff", "", SAYS[Act.REMOVE], "an attribute that PS3.6 does not know"),
    ]
    yield from sorted(lines, key=lambda line: line.tag)
