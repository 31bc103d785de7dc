"""The walk through a file's head: runs that the series knows, and new ones for what it does not."""

from __future__ import annotations

import mmap
import re
import struct
from bisect import bisect_right
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from gateway.header.admission import LOOKED_AT, SOP_INSTANCE
from gateway.header.elements import EXPLICIT_LITTLE, UNDEFINED, Element, Malformed, Reader
from gateway.header.head import Head
from gateway.header.pieces import STREAM_FROM_BYTES
from gateway.header.repeats_store import MAX_OF_A_KIND, Run, Series, Shape
from gateway.header.stamp import METHOD_CODES, STAMPED

MAX_RUN_BYTES = 1 << 15
FEW_AT_ONCE, MOST_AT_ONCE = 4, 64  # elements of a new series in one run, before and after its class is known
OVERLAY_BIT_POSITION = 0x60000102
# A reader may take such a value for implicit VR or not, depending on what comes behind it.
_UNKNOWN_UNDEFINED = re.compile(rb"UN..\xff\xff\xff\xff", re.DOTALL)
_PIXELS_LITTLE, _PIXELS_BIG = b"\xe0\x7f\x10\x00", b"\x7f\xe0\x00\x10"
_UNUSUAL_GROUPS = frozenset({0x0000, 0x0004})
_NESTED = frozenset({"SQ", "UN"})
_BULK = frozenset({b"OB", b"OW"})


class Unusual(Exception):
    """An object that goes the long way."""


class TooShort(Unusual):
    """The header is longer than what was read of it."""


class Place(NamedTuple):
    """A run in the file. `elements` where it is new."""

    run: Run
    at: int
    elements: Sequence[Element] | None


new_place = tuple.__new__  # a named tuple's own is twice as slow
length_of = struct.Struct("<H").unpack_from


def walk(head: Head, reader: Reader, series: Series, *, by_group: bool) -> tuple[list[Place], int]:
    """The runs up to Pixel Data or to the end, and where that is. `by_group`: a private group is one unit.

    Raises Unusual.
    """
    data = head.data
    size = len(data)
    at, previous = head.start, -1
    places: list[Place] = []
    pixels = _PIXELS_BIG if reader.syntax.big else _PIXELS_LITTLE
    runs, prefixed = series.runs, data.startswith
    new = series.objects == 0
    broken = b""  # a longer run that is not the same here
    while at < size:
        elements: Sequence[Element] | None = None
        alike = runs.get(data[at : at + 8], ())
        for run in alike:
            if prefixed(run.raw, at):
                end = at + len(run.raw)
                if not run.group or data[end : end + 2] != run.group:
                    break
        else:
            if data[at : at + 4] == pixels:
                return places, at
            run, elements = _next(data, at, reader, series, pixels, by_group=by_group)
            if alike:
                broken = alike[0].raw
            if new or run.raw in broken or not series.differs(run):
                series.keep(run)
        if run.first <= previous:
            raise Unusual
        previous = run.last
        places.append(new_place(Place, (run, at, elements)))
        at += len(run.raw)
    if not head.is_whole:
        raise TooShort
    return places, at


def _next(
    data: bytes, at: int, reader: Reader, series: Series, pixels: bytes, *, by_group: bool
) -> tuple[Run, Sequence[Element]]:
    """What stands at `at` and is not known."""
    shape = series.shapes.get(data[at : at + 6])
    if shape is not None and at + 8 <= len(data):
        end = at + 8 + length_of(data, at + 6)[0]
        if end <= len(data):
            run = Run(data[at:end], shape.tag, shape.tag, shape.zone)
            if shape.tag == SOP_INSTANCE:
                run.sop_instance = run.raw
            return run, (new_place(Element, (shape.tag, shape.vr, at, at + 8, end, end, False, None)),)
    elements = _unit(data, at, reader, by_group=by_group)
    if series.objects == 0:
        elements = _stretch(data, elements, reader, series.varying, pixels, by_group=by_group)
    run = _run(data, elements, by_group=by_group)
    if series.objects and len(elements) == 1 and len(series.shapes) < MAX_OF_A_KIND:
        element = elements[0]
        short = reader.syntax == EXPLICIT_LITTLE and element.start == element.head + 8 and element.vr != "UN"
        special = run.special or run.group or element.tag in LOOKED_AT - {SOP_INSTANCE}
        if short and not special and not element.tag & 0x10000:
            series.shapes[run.raw[:6]] = Shape(element.tag, element.vr, run.zone)
    return run, elements


def _unit(data: bytes, at: int, reader: Reader, *, by_group: bool) -> list[Element]:
    """One element, or all of a private group."""
    limit = len(data)
    try:
        element = reader.element(at, limit)
        elements = [element]
        if by_group and element.tag & 0x10000:
            group = data[at : at + 2]
            while data[element.stop : element.stop + 2] == group:
                element = reader.element(element.stop, limit)
                elements.append(element)
    except Malformed:
        raise TooShort from None
    return elements


def _stretch(
    data: bytes,
    elements: list[Element],
    reader: Reader,
    varying: AbstractSet[int],
    pixels: bytes,
    *,
    by_group: bool,
) -> list[Element]:
    """The elements of a new series that will be the same in its next objects, as far as one can know."""
    last = elements[-1]
    alone = 0x10000 if by_group else 0  # the bit of a private group
    if last.tag in varying or last.tag & alone:
        return elements
    most = MOST_AT_ONCE if varying else FEW_AT_ONCE
    zone = bisect_right(STAMPED, last.tag)
    limit = len(data)
    while len(elements) < most and last.stop < limit and data[last.stop : last.stop + 4] != pixels:
        try:
            last = reader.element(last.stop, limit)
        except Malformed:
            raise TooShort from None
        if last.tag in varying or last.tag & alone or bisect_right(STAMPED, last.tag) != zone:
            break
        elements.append(last)
    return elements


def _run(data: bytes, elements: Sequence[Element], *, by_group: bool) -> Run:
    first, last = elements[0], elements[-1]
    raw = data[first.head : last.stop]
    run = Run(raw, first.tag, last.tag, bisect_right(STAMPED, last.tag))
    previous = -1
    nested = False
    for element in elements:
        tag = element.tag
        if tag <= previous or tag >> 16 in _UNUSUAL_GROUPS or tag & 0xFF00FFFF == OVERLAY_BIT_POSITION:
            raise Unusual
        previous = tag
        nested |= element.vr in _NESTED
        if tag in LOOKED_AT or tag == METHOD_CODES:
            if element.undefined and tag != METHOD_CODES:
                raise Unusual
            if tag == SOP_INSTANCE:
                run.sop_instance = data[element.head : element.stop]
            else:
                run.special += data[element.head : element.stop]
    if nested and _UNKNOWN_UNDEFINED.search(raw):
        raise Unusual
    if by_group and first.tag & 0x10000:
        run.group = raw[:2]
    return run


def pixel_data(descriptor: int, head: Head, at: int, reader: Reader) -> Element | None:
    """Pixel Data, which must be the last element and begins at `at`; None where there is none. Raises Unusual.

    Its value is not read; of compressed frames only the headers are.
    """
    data = head.data
    if at == head.size:
        return None
    if len(data) - at < 12 and not head.is_whole:
        raise TooShort
    try:
        if head.is_whole:
            element = reader.element(at, head.size)
        elif not reader.syntax.implicit and data[at + 4 : at + 6] not in _BULK:
            raise Unusual
        elif _length(data, at, reader) == UNDEFINED:
            mapped = mmap.mmap(descriptor, head.size, access=mmap.ACCESS_READ)
            release = lambda: mapped.madvise(mmap.MADV_DONTNEED)  # noqa: E731
            element = Reader(memoryview(mapped), reader.syntax, release).element(at, head.size)
        else:
            element = reader.element(at, head.size)
    except Malformed:
        raise Unusual from None
    if element.stop != head.size:
        raise Unusual
    if element.stop > len(data) and element.stop - element.head < STREAM_FROM_BYTES:
        raise TooShort
    return element


def _length(data: bytes, at: int, reader: Reader) -> int:
    start = at + (4 if reader.syntax.implicit else 8)
    return int.from_bytes(data[start : start + 4], "big" if reader.syntax.big else "little")


def merged(data: bytes, places: Sequence[Place]) -> Run:
    """One run of several that stand beside each other, of one zone and no private group. What became of them is not
    in it yet.
    """
    runs = [place.run for place in places]
    run = Run(data[places[0].at : places[-1].at + len(runs[-1].raw)], runs[0].first, runs[-1].last, runs[0].zone)
    run.special = b"".join(one.special for one in runs)
    run.sop_instance = b"".join(one.sop_instance for one in runs)
    run.setting = runs[0].setting
    run.entries = frozenset().union(*(one.entries for one in runs))
    run.words = tuple(words for one in runs for words in one.words)
    return run
