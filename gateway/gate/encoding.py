"""Is the file to be sent the DICOM file it claims to be? Always judged, as verdict "encoding".

The whole file must add up in two readings, ours and pydicom's; group 0002 must tell the truth (PS3.10 7.1); pixel
data must have the form of its transfer syntax and the length of its description (PS3.5 8, A.4; PS3.3 C.7.6.3); the
object must say that it was de-identified and how (PS3.15 E.1.1); and it must be of the class of its original, with
pixel data where the original has some.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import unpack

import pydicom
from pydicom.uid import UID

from gateway.gate.bytescan import EXPLICIT_BIG, PREAMBLE, TAIL, Scan, scan_file
from gateway.gate.reading import PARSER_FAILURES, Pair, judging
from gateway.gate.walk import Leaf, tag_path
from gateway.policy import Policy
from gateway.study import Finding, Outcome, Verdict

NAME = "encoding"
SOP_CLASS, SOP_INSTANCE = 0x00080016, 0x00080018
META_CLASS, META_INSTANCE, META_SYNTAX = 0x00020002, 0x00020003, 0x00020010
IDENTITY_REMOVED, METHOD, METHOD_CODES = 0x00120062, 0x00120063, 0x00120064
PIXELS, FLOATS, DOUBLES = 0x7FE00010, 0x7FE00008, 0x7FE00009
SAMPLES, PHOTOMETRIC, FRAMES, ROWS, COLUMNS, BITS = (
    *(0x00280002, 0x00280004, 0x00280008),
    *(0x00280010, 0x00280011, 0x00280100),
)


def judge_encoding(pairs: Sequence[Pair], _policy: Policy | None = None) -> Verdict:
    """Judge every candidate. Raises Hold("gate_failed") when an original or candidate cannot be opened."""
    findings: list[Finding] = []
    instances: set[str] = set()
    for pair in pairs:
        with judging(pair.name):
            candidate = scan_file(pair.candidate)
            original = scan_file(pair.original, original=True)
            faults = list(_faults(pair, original, candidate))
            if candidate.text(SOP_INSTANCE) in instances:
                faults.append((tag_path(SOP_INSTANCE), "another instance has the same UID"))
            instances.add(candidate.text(SOP_INSTANCE))
            findings += [Finding(NAME, pair.name, where, rule) for where, rule in faults]
    held = bool(findings)
    return Verdict(
        NAME,
        Outcome.HOLD if held else Outcome.PASS,
        reason="output_invalid" if held else "",
        findings=tuple(findings),
        assessed={"instances": len(pairs)},
    )


def _faults(pair: Pair, original: Scan, candidate: Scan) -> Iterator[tuple[str, str]]:
    """(place, rule) of everything that is not as it must be."""
    if candidate.malformed:
        yield candidate.tail.path if candidate.tail else TAIL, candidate.malformed
        return
    if any(candidate.preamble.raw):
        yield PREAMBLE, "not zero"
    yield from _meta(candidate)
    syntax = UID(candidate.transfer_syntax)
    if syntax.is_private or not syntax.is_transfer_syntax:
        yield tag_path(META_SYNTAX), "no transfer syntax of the standard"
        return
    if not _pydicom_agrees(pair, candidate):
        yield "bytes:data-set", "pydicom reads something else"
    if not candidate.text(SOP_CLASS) or candidate.text(SOP_CLASS) != original.text(SOP_CLASS):
        yield tag_path(SOP_CLASS), "not the class of the original"
    if candidate.text(IDENTITY_REMOVED) != "YES":
        yield tag_path(IDENTITY_REMOVED), "does not say YES"
    if not candidate.text(METHOD) and tag_path(METHOD_CODES) not in candidate.sequences:
        yield tag_path(METHOD), "no method stated"
    yield from _pixels(candidate)
    for tag in (PIXELS, FLOATS, DOUBLES):
        if original.top(tag) is not None and candidate.top(tag) is None:
            yield tag_path(tag), "the original has it"


def _meta(candidate: Scan) -> Iterator[tuple[str, str]]:
    if candidate.meta[0].tag != 0x00020000:
        yield "(0002,0000)", "no group length"
    for meta_tag, tag in ((META_CLASS, SOP_CLASS), (META_INSTANCE, SOP_INSTANCE)):
        if not candidate.text(tag) or candidate.text(meta_tag) != candidate.text(tag):
            yield tag_path(meta_tag), "differs from the data set"


def _pydicom_agrees(pair: Pair, candidate: Scan) -> bool:
    """True when pydicom finds the same top-level elements with the same lengths. Large values stay on disk."""
    try:
        dataset = pydicom.dcmread(pair.candidate, defer_size=1 << 16)
        raw = {int(tag): dataset.get_item(tag, keep_deferred=True) for tag in dataset.keys()}  # noqa: SIM118 - no values
        read = {tag: getattr(item, "length", None) for tag, item in raw.items()}
    except PARSER_FAILURES:
        return False
    ours: dict[int, int] = {}
    for leaf in candidate.leaves:
        if "." not in leaf.path and not leaf.fragment and "[" not in leaf.path:
            ours[leaf.tag] = leaf.size
    others = {int(path[1:5] + path[6:10], 16) for path in candidate.sequences}
    others |= {leaf.tag for leaf in candidate.leaves if leaf.fragment and "." not in leaf.path}
    if not ours.keys() <= read.keys() or not others <= read.keys():
        return False
    return all(read[tag] in (size, None) for tag, size in ours.items())


def _number(candidate: Scan, tag: int, missing: int | None = None) -> int | None:
    """A top-level US or IS value; None when it is absent or no number."""
    leaf = candidate.top(tag)
    if leaf is None or not leaf.size:
        return missing
    if leaf.vr == "US" and leaf.size == 2:
        return int(unpack(">H" if candidate.transfer_syntax == EXPLICIT_BIG else "<H", leaf.raw)[0])
    text = leaf.raw.decode("latin-1").strip(" \0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _pixels(candidate: Scan) -> Iterator[tuple[str, str]]:
    top = [leaf for leaf in candidate.leaves if leaf.tag in (PIXELS, FLOATS, DOUBLES) and "." not in leaf.path]
    fragments = [leaf for leaf in top if leaf.fragment]
    native = [leaf for leaf in top if not leaf.fragment]
    encapsulated = UID(candidate.transfer_syntax).is_encapsulated
    frames = _number(candidate, FRAMES, 1)
    if fragments and not encapsulated:
        yield tag_path(PIXELS), "fragments under a native transfer syntax"
    elif fragments and (not frames or len(fragments) - 1 < frames):  # item 0 is the offset table
        yield tag_path(PIXELS), "fewer fragments than frames"
    for leaf in native:
        if encapsulated and leaf.tag == PIXELS:
            yield tag_path(PIXELS), "native bytes under an encapsulating transfer syntax"
        elif leaf.size not in _lengths(candidate, leaf, frames):
            yield leaf.path, "length does not fit rows, columns, frames, samples and bits"


def _lengths(candidate: Scan, leaf: Leaf, frames: int | None) -> set[int]:
    """Lengths in bytes that native pixel data may have; with and without the pad byte (PS3.5 8.1.1)."""
    rows, columns, bits = (_number(candidate, tag) for tag in (ROWS, COLUMNS, BITS))
    samples = _number(candidate, SAMPLES, 1)
    if leaf.tag in (FLOATS, DOUBLES):
        bits = 32 if leaf.tag == FLOATS else 64
    if not rows or not columns or not bits or not samples or not frames:
        return set()
    total = frames * rows * columns * samples * bits
    if candidate.text(PHOTOMETRIC) in ("YBR_FULL_422", "YBR_PARTIAL_422"):
        total = total * 2 // 3  # two chroma samples for every two pixels (PS3.3 C.7.6.3.1.2)
    whole = (total + 7) // 8
    return {whole, whole + whole % 2}
