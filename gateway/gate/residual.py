"""Check `residual_identifiers`: is any identifying value of the originals still in the bytes about to leave?

Every value of every identifying attribute over the whole study (`attributes`, `terms`) is searched in every element of
every candidate, private and nested ones, file meta, preamble and left-over bytes (`matching`). Three comparisons are
made in place, because the values are too common to search for:

    same value   an identifying element that the policy does not keep still says what the original said at that place
    whole value  a short or common name in any person name, a short id in the same attribute, a short UID in any UID
    dates        without a date option: any date of the study in any date. With shifted dates: a date equal to the one
                 at the same place. Shifted dates fall on other dates of the same study by chance (follow-ups, scans
                 over midnight), so across places only the birth date counts, unless it is the place's own date moved
                 within the policy's range (infants).

No finding: what the policy keeps (PS3.15 E.3 options, `keep`) at its own attribute; descriptions that the policy lets
stay cleaned, for being as they were (what else they hold is searched); values that stand for a removed
one; institution, device, description or date that coincides with what a device's maker wrote, or with the whole value
of an unchanged technical element.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import ClassVar

from gateway.gate import dates
from gateway.gate.attributes import BIRTH_DATES, MAKER, PERSONAL, STRUCTURAL, Kept, Kind, kind_of, row_of
from gateway.gate.bytescan import Scan, scan_file
from gateway.gate.content_items import kept_items
from gateway.gate.folding import fold, readings
from gateway.gate.matching import Matcher, Place, place_of
from gateway.gate.reading import Pair, judging, read_original
from gateway.gate.terms import Terms
from gateway.gate.vocabulary import SCRUBBER_DATES, STAND_IN_TIMES, stand_ins
from gateway.gate.walk import Leaf, tag_path
from gateway.policy import Policy
from gateway.study import Finding, Outcome, Verdict

NAME = "residual_identifiers"
MAX_FINDINGS = 10_000  # what is listed; the verdict does not change after


@dataclass(frozen=True)
class ResidualIdentifiers:
    """At most `max` places may hold an identifying value of the originals."""

    max: int = 0

    judges: ClassVar[frozenset[str]] = frozenset({"header"})

    def __post_init__(self) -> None:
        if self.max < 0:
            raise ValueError("max is a number of findings, 0 or more")

    def judge(self, pairs: Sequence[Pair], policy: Policy) -> Verdict:
        """Judge all candidates against all originals. Raises Hold("gate_failed") when one cannot be read."""
        terms = Terms(Kept(policy.header))
        for pair in pairs:
            with judging(pair.name):
                terms.harvest(read_original(pair))
        search = _Search(terms)
        findings: list[Finding] = []
        elements = 0
        for pair in pairs:
            with judging(pair.name):
                candidate = scan_file(pair.candidate)
                elements += len(candidate.leaves)
                for where, rule in search.findings(read_original(pair), candidate):
                    if len(findings) < MAX_FINDINGS:
                        findings.append(Finding(NAME, pair.name, where, rule))
        held = len(findings) > self.max
        return Verdict(
            NAME,
            Outcome.HOLD if held else Outcome.PASS,
            reason="residual_identifier" if held else "",
            findings=tuple(findings),
            assessed={"instances": len(pairs), "elements": elements, "spellings": len(terms.folded)},
        )


class _Search:
    """One study's terms, asked about one candidate at a time."""

    def __init__(self, terms: Terms) -> None:
        self.terms, self.kept, self.edition = terms, terms.kept, terms.edition
        self.matcher = Matcher(terms)
        self._items: frozenset[str] = frozenset()  # of the candidate that is asked about

    def findings(self, original: Scan, candidate: Scan) -> Iterator[tuple[str, str]]:
        """(place, rule), one for each place: the first rule that fires."""
        before = {leaf.path: leaf for leaf in (*original.meta, *original.leaves)}
        self._items = kept_items(candidate, self.kept.policy)
        regions = [candidate.preamble, *([candidate.tail] if candidate.tail else [])]
        for leaf in (*candidate.meta, *candidate.leaves, *regions):
            if leaf.size:
                rule = self._rule(leaf, before.get(leaf.path))
                if rule:
                    yield leaf.path, rule

    def _keeps(self, leaf: Leaf) -> bool:
        return leaf.path in self._items or self.kept.keeps(leaf.tag, leaf.vr)

    def _rule(self, leaf: Leaf, before: Leaf | None) -> str:
        kind = kind_of(leaf.tag, leaf.vr, self.edition) if leaf.tag else None
        return (
            self._searched(leaf, kind, before)
            or (self._whole(leaf) if kind in (Kind.NAME, Kind.UID, Kind.ID) else "")
            or (self._dated(leaf, before) if leaf.vr in ("DA", "DT") else "")
            or (self._unchanged(leaf, kind, before) if kind is not None and before is not None else "")
        )

    def _searched(self, leaf: Leaf, kind: Kind | None, before: Leaf | None) -> str:
        found = self.matcher.terms_in(leaf)
        if not found:
            return ""
        kept = bool(leaf.tag) and self._keeps(leaf)
        if kept and leaf.vr == "UI":
            return ""  # UIDs stay as they are, whatever their makers put into them
        same = before is not None and before.raw == leaf.raw
        for term in found:
            if kept and leaf.tag in term.origins:
                continue
            if term.kind not in PERSONAL and same:
                technical = kind is None and not (leaf.tag >> 16) & 1 and leaf.vr not in ("LT", "ST", "UT", "UN")
                if kept or leaf.tag in MAKER or (technical and self._is_all(leaf, term)):
                    continue
            return term.rule
        return ""

    def _is_all(self, leaf: Leaf, term: object) -> bool:
        """True when the term is not a part of the value but all of it."""
        return any(self.terms.folded.get(fold(text)) is term for text in readings(leaf.raw, leaf.vr, leaf.charset))

    def _whole(self, leaf: Leaf) -> str:
        scope = "name" if leaf.vr == "PN" else "uid" if leaf.vr == "UI" else tag_path(leaf.tag)
        if leaf.tag in STRUCTURAL:
            return ""
        for text in readings(leaf.raw, leaf.vr, leaf.charset):
            for value in text.split("\\"):
                for part in {value, *value.split("=")} if scope == "name" else (value,):
                    term = self.terms.whole.get((scope, fold(part)))
                    if term is not None and not (self._keeps(leaf) and leaf.tag in term.origins):
                        return f"whole {term.rule}"
        return ""

    def _dated(self, leaf: Leaf, before: Leaf | None) -> str:
        own = _days(before) if before is not None else []
        kept = self.kept.keeps(leaf.tag, leaf.vr)
        for index, day in enumerate(_days(leaf)):
            known = self.terms.days.get(day) if day is not None else None
            if day is None or known is None or not known.active:
                continue
            original = own[index] if index < len(own) else None
            if kept and (original == day or leaf.tag in known.origins):
                continue
            shift = self.kept.shift_days if leaf.tag not in BIRTH_DATES else None
            if shift is not None and original != day:
                moved = (day - original).days if original is not None else None
                if not known.birth or (moved is not None and shift[0] <= moved <= shift[1]):
                    continue
            return f"date of {tag_path(known.first)}"
        return ""

    def _unchanged(self, leaf: Leaf, kind: Kind, before: Leaf) -> str:
        if self.kept.cleans(leaf.tag, leaf.vr):
            return ""
        if self._keeps(leaf) or before.raw.rstrip(b" \0") != leaf.raw.rstrip(b" \0"):
            return ""
        if kind is Kind.DATE and (any(_days(leaf)) or _tells_no_day(leaf)):
            return ""  # days were compared as days; what is no date at all must not stay
        if kind not in PERSONAL and row_of(leaf.tag, self.edition) is None:
            return ""  # the standard's table does not ask for its removal
        if kind is Kind.UID:
            return ""  # structural ones stay, others were found as terms or whole values
        if place_of(leaf) in (Place.BLOB, Place.SAMPLES):
            return "same value" if any(leaf.raw) else ""
        text = leaf.raw.decode("latin-1").strip(" \0")
        if fold(text) in stand_ins() or (kind is Kind.TIME and text.split(".")[0] in STAND_IN_TIMES):
            return ""
        return f"same value, {kind}"


def _days(leaf: Leaf) -> list[date | None]:
    """The day of each value of a DA or DT; None where a value names none, or one that stands for a missing one."""
    found = [dates.day_of(value) for value in leaf.raw.decode("latin-1").split("\\")]
    return [None if day is not None and dates.says_nothing(day) else day for day in found]


def _tells_no_day(leaf: Leaf) -> bool:
    """True for year or month precision, which a shift may leave as it was, and for a date that a scrubber writes."""
    text = leaf.raw.decode("latin-1").strip(" \0")
    return text.isdigit() and (len(text) <= 6 or text[:8] in SCRUBBER_DATES)
