"""Check `residual_text`: does a picture about to leave still show text?

Every place of every candidate where text could be seen is rendered (`pixel_places`), by a decoder that no scrubber uses
(`decoding`), and read by two readers with settings of their own (`text_reading`): as a viewer shows it and against its
surroundings, enlarged, series by series (`text_stack`). Neither class nor modality nor BurnedInAnnotation exempts
anything (cases.md 7, 24).

A finding is text outside the technical marks (`text_words`) and the policy's `allow`; text that the original's header
holds too, however badly it was read; what is surely text that no reader can read, of other scripts; and values that are
the codes of such text. Its place is frame and box, never the text. What cannot be rendered holds
as `gate_failed`, whatever `max` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gateway.gate.attributes import Kept
from gateway.gate.bytescan import scan_file
from gateway.gate.pixel_places import pictures
from gateway.gate.reading import Pair, judging, read_original
from gateway.gate.sample_text import SampleText
from gateway.gate.terms import Terms
from gateway.gate.text_look import Look
from gateway.gate.text_words import HeaderWords, words_of
from gateway.policy import HeaderPolicy, Policy
from gateway.study import Finding, Outcome, Verdict

NAME = "residual_text"
SERIES, INSTANCE_NUMBER = 0x0020000E, 0x00200013
MAX_FINDINGS = 1000  # what is listed; the verdict does not change after
_TIDIED = "the stage hidden_pixels, put first under pixels, takes it out"
ADVICE = {
    "application data in the codestream, large enough for a picture": _TIDIED,
    "bytes behind the end of the codestream": _TIDIED,
    "two frames in one codestream": _TIDIED,
}


@dataclass(frozen=True)
class ResidualText:
    """At most `max` places may show text; `allow` holds words that may stay beside the technical marks."""

    max: int = 0
    allow: tuple[str, ...] = ()

    judges: ClassVar[frozenset[str]] = frozenset({"burned_in_text"})

    def __post_init__(self) -> None:
        if self.max < 0:
            raise ValueError("max is a number of findings, 0 or more")
        if any(not word.strip() or " " in word.strip() for word in self.allow):
            raise ValueError("allow is a list of single words")

    def judge(self, pairs: Sequence[Pair], policy: Policy) -> Verdict:  # noqa: ARG002 - the protocol of a check
        """Judge all candidates. Raises Hold("gate_failed") when a file cannot be read."""
        terms = Terms(Kept(HeaderPolicy()))  # in pixels nothing is kept on purpose
        for pair in pairs:
            with judging(pair.name):
                terms.harvest(read_original(pair))
        look = Look(HeaderWords(terms), SampleText(terms.samples), words_of(self.allow))
        for pair in _by_series(pairs):
            with judging(pair.name):
                scan = scan_file(pair.candidate)
                for picture in pictures(scan):
                    look.take(pair.name, scan.text(SERIES), picture)
        with judging("pictures"):
            look.finish()
        findings = [Finding(NAME, one.instance, one.where, _advised(one.rule)) for one in (*look.unseen, *look.shown)]
        too_much = len(look.shown) > self.max
        held = bool(look.unseen) or too_much
        return Verdict(
            NAME,
            Outcome.HOLD if held else Outcome.PASS,
            reason="" if not held else "residual_text" if too_much else "gate_failed",
            findings=tuple(findings[:MAX_FINDINGS]),
            assessed={"instances": len(pairs), "frames": look.frames, "passes": look.sheets.passes},
        )


def _advised(rule: str) -> str:
    """What to do about it, where a stage mends what could not be looked at."""
    return f"{rule}; {ADVICE[rule]}" if rule in ADVICE else rule


def _by_series(pairs: Sequence[Pair]) -> list[Pair]:
    """Series by series, in the order of Instance Number, so that neighbours are compared."""

    def key(pair: Pair) -> tuple[str, int, str]:
        with judging(pair.name):
            scan = scan_file(pair.candidate)
            number = scan.text(INSTANCE_NUMBER)
        return scan.text(SERIES), int(number) if number.isascii() and number.isdigit() else 0, pair.name

    return sorted(pairs, key=key)
