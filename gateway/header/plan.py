"""A policy's header part compiled for one kind of object: tag and place -> decision, each computed once.

Covers what has no dictionary entry too: private elements, unknown standard elements, group lengths, command, file meta
and directory elements inside a data set, overlays and curves as whole groups.
"""

from __future__ import annotations

from functools import lru_cache

from gateway.header.actions import Act, Decision, action_of
from gateway.header.beyond_table import default_of
from gateway.header.dictionary import dictionary, is_private, repeating_form
from gateway.header.iod import TOP, types_of
from gateway.policy import HeaderPolicy, load_table

# Reasons that are counted one by one in a Step; everything else is counted by its action.
PRIVATE, UNKNOWN, GROUP_LENGTH, WRONG_GROUP, REPEATING = "private", "unknown", "group_length", "group", "overlay_curve"

ANYWHERE = -1  # a place that no IOD has: every attribute is Type 3 there

CODE_MEANING = 0x00080104

_NO_ENTRY = {
    PRIVATE: Decision(Act.REMOVE, Act.REMOVE, PRIVATE),
    UNKNOWN: Decision(Act.REMOVE, Act.REMOVE, UNKNOWN),
    GROUP_LENGTH: Decision(Act.REMOVE, Act.REMOVE, GROUP_LENGTH),
    WRONG_GROUP: Decision(Act.REMOVE, Act.REMOVE, WRONG_GROUP),
    REPEATING: Decision(Act.REMOVE, Act.REMOVE, REPEATING),
}


class Plan:
    """Decisions of one policy for one SOP class. Shared between files: only `decide` fills its memo."""

    def __init__(
        self, edition: str, options: frozenset[str], kept: frozenset[int], shift: tuple[int, int] | None, sop_class: str
    ) -> None:
        self.options = options
        self.shift = shift
        self._kept = kept
        self._table = load_table(edition)
        self._types = types_of(sop_class)
        self._memo: dict[int, dict[int, Decision]] = {}
        self.roles: dict[int, dict[int, str]] = {}  # by place and tag, for `descriptors_harvest`

    def at(self, parent: int = TOP) -> dict[int, Decision]:
        """The memo of one place; look there first, then ask `decide`."""
        return self._memo.setdefault(parent, {})

    def decide(self, tag: int, parent: int = TOP) -> Decision:
        """The decision for `tag` inside the sequence `parent`."""
        memo = self.at(parent)
        decision = memo.get(tag)
        if decision is None:
            decision = self._decide(tag, parent)
            if decision.because not in _NO_ENTRY:  # unknown tags are without number: they are not remembered
                memo[tag] = decision
        return decision

    def _decide(self, tag: int, parent: int) -> Decision:
        group = tag >> 16
        if is_private(tag):
            return _NO_ENTRY[PRIVATE]
        if tag & 0xFFFF == 0:
            return _NO_ENTRY[GROUP_LENGTH]
        if group in (0x0000, 0x0002, 0x0004):
            return _NO_ENTRY[WRONG_GROUP]
        if repeating_form(tag):
            return _NO_ENTRY[REPEATING]
        entry = dictionary().get(tag)
        if entry is None:
            return _NO_ENTRY[UNKNOWN]
        kind = self._types.get((parent, tag), "")
        if tag in self._kept:
            return Decision(Act.RECURSE if entry.vr == "SQ" else Act.KEEP, Act.KEEP, "kept by the policy")
        row = self._table.get(f"{tag:08X}")
        if tag == CODE_MEANING and self._cleans_meaning(parent):
            return Decision(Act.CLEAN, Act.DUMMY, "clean-descriptors")
        if row is None:
            return default_of(tag, entry, options=self.options, kind=kind)
        return action_of(row, entry.vr, options=self.options, kind=kind)

    def _cleans_meaning(self, parent: int) -> bool:
        """True inside a code sequence that the table lets stay cleaned: a private code's meaning is free text."""
        row = self._table.get(f"{parent:08X}") if parent > TOP else None
        return row is not None and "clean-descriptors" in self.options and row.columns.get("clean-descriptors") == "C"


@lru_cache(maxsize=512)
def _plan(
    edition: str, options: frozenset[str], kept: frozenset[int], shift: tuple[int, int] | None, sop_class: str
) -> Plan:
    return Plan(edition, options, kept, shift, sop_class)


def plan_for(policy: HeaderPolicy, sop_class: str) -> Plan:
    """The plan of a policy for a SOP class."""
    shift = policy.dates.shift_days if policy.dates is not None else None
    return _plan(policy.edition, policy.options, policy.kept_tags, shift, sop_class)
