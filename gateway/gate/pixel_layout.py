"""How the image samples of one object, or of one item in it, are laid out: the gate's own reading of group 0028.

PS3.3 C.7.6.3 says what the attributes mean, PS3.5 8 and A.4 how samples and fragments lie in the value. Nothing here
decodes; what does not add up raises `Unseen` with the rule that it breaks, since nobody can say what a picture shows
that cannot be laid out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from struct import unpack, unpack_from

from gateway.gate.bytescan import EXPLICIT_BIG, Scan
from gateway.gate.walk import Leaf, tag_path

PIXELS, FLOATS, DOUBLES = 0x7FE00010, 0x7FE00008, 0x7FE00009
SAMPLE_TAGS = frozenset({PIXELS, FLOATS, DOUBLES})
EXTENDED_OFFSETS = 0x7FE00001
SAMPLES, PHOTOMETRIC, PLANAR, FRAMES, ROWS, COLUMNS = (
    *(0x00280002, 0x00280004, 0x00280006),
    *(0x00280008, 0x00280010, 0x00280011),
)
ALLOCATED, STORED, HIGH, SIGNED = 0x00280100, 0x00280101, 0x00280102, 0x00280103
MAX_FRAME_SAMPLES = 1 << 26  # of one frame: more cannot be looked at in bounded memory (16 bytes a sample)
MAX_FRAMES = 1 << 20


class Unseen(Exception):
    """Something that may be a picture and cannot be looked at. `where` is a place, `rule` says why; never a value."""

    def __init__(self, where: str, rule: str) -> None:
        super().__init__(f"{where}: {rule}")
        self.where, self.rule = where, rule


@dataclass(frozen=True, slots=True)
class Layout:
    """One image: `place` is the path of its samples, `prefix` that of the item they stand in ("" at the top)."""

    place: str
    prefix: str
    syntax: str
    big: bool
    frames: int
    rows: int
    columns: int
    samples: int
    allocated: int  # bits
    stored: int
    high: int
    signed: bool
    photometric: str
    planar: int
    kind: str  # "int", "float"

    @property
    def frame_bits(self) -> int:
        """Of one native frame."""
        pixels = self.rows * self.columns
        if self.is_422:
            return pixels * 2 * self.allocated
        return pixels * self.samples * self.allocated

    @property
    def is_422(self) -> bool:
        return self.photometric in ("YBR_FULL_422", "YBR_PARTIAL_422")

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.rows, self.columns) if self.samples == 1 else (self.rows, self.columns, self.samples)


def number(leaf: Leaf | None, *, big: bool, missing: int | None = None) -> int | None:
    """A US or IS value, the first of several; `missing` when it is absent, None when it is no number."""
    if leaf is None or not leaf.size:
        return missing
    if leaf.vr in ("US", "SS") and leaf.size >= 2:
        return int(unpack_from(">H" if big else "<H", leaf.raw)[0])
    text = leaf.raw.decode("latin-1").split("\\", maxsplit=1)[0].strip(" \0")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def images(scan: Scan) -> Iterator[tuple[str, list[Leaf]]]:
    """(prefix, leaves) for every place with image samples: one native value, or offset table and fragments."""
    found: dict[tuple[str, int], list[Leaf]] = {}
    for leaf in scan.leaves:
        if leaf.tag in SAMPLE_TAGS and (leaf.size or leaf.fragment):  # an offset table may be empty
            found.setdefault((leaf.path[: leaf.path.rindex("(")], leaf.tag), []).append(leaf)
    for (prefix, _), leaves in found.items():
        yield prefix, leaves


def layout_of(scan: Scan, prefix: str, samples: Sequence[Leaf], by_path: Mapping[str, Leaf]) -> Layout:
    """The layout of one place. Raises Unseen for one that PS3.3 C.7.6.3 does not allow."""
    tag = samples[0].tag
    place = prefix + tag_path(tag)
    big = scan.transfer_syntax == EXPLICIT_BIG

    def of(attribute: int, missing: int | None = None) -> int | None:
        return number(by_path.get(prefix + tag_path(attribute)), big=big, missing=missing)

    def text(attribute: int) -> str:
        leaf = by_path.get(prefix + tag_path(attribute))
        return leaf.raw.decode("latin-1").strip(" \0") if leaf else ""

    floating = {FLOATS: 32, DOUBLES: 64}.get(tag)
    rows, columns, frames, count = of(ROWS), of(COLUMNS), of(FRAMES, 1), of(SAMPLES, 1)
    allocated = floating or of(ALLOCATED)
    if not rows or not columns or not frames or not count or not allocated or frames > MAX_FRAMES or count > 4:
        raise Unseen(place, "rows, columns, frames, samples or bits are missing or senseless")
    if allocated not in (1, 8, 16, 32, 64) or (allocated == 1 and count != 1):
        raise Unseen(place, "samples of a width that cannot be looked at")
    stored = allocated if floating else of(STORED, allocated)
    high = allocated - 1 if floating or stored is None else of(HIGH, stored - 1)
    if stored is None or high is None or not 1 <= stored <= allocated or not stored - 1 <= high < allocated:
        raise Unseen(place, "bits stored and high bit do not fit")
    layout = Layout(
        *(place, prefix, scan.transfer_syntax, big),
        *(frames, rows, columns, count, allocated, stored, high),
        signed=not floating and of(SIGNED, 0) == 1,
        photometric=text(PHOTOMETRIC),
        planar=of(PLANAR, 0) or 0,
        kind="float" if floating else "int",
    )
    if rows * columns * count > MAX_FRAME_SAMPLES:
        raise Unseen(place, "a frame too large to look at")
    return layout


def frame_streams(layout: Layout, leaves: Sequence[Leaf], extended: Leaf | None) -> list[list[Leaf]]:
    """The fragments of each frame (PS3.5 A.4), every fragment in exactly one frame. Raises Unseen where that is open.

    `leaves` are offset table and fragments; `extended` the Extended Offset Table, which agrees or it holds.
    """
    table, fragments = leaves[0], list(leaves[1:])
    if layout.frames == 1:
        return [fragments]
    offsets = _offsets(layout, table, extended)
    if len(fragments) == layout.frames:
        groups = [[fragment] for fragment in fragments]
    elif offsets:
        groups = _grouped(fragments, offsets)
    else:
        groups = _by_start(layout, fragments)
    starts = [group[0].start - 8 - (fragments[0].start - 8) for group in groups if group]
    if len(groups) != layout.frames or not all(groups) or (offsets and offsets != starts):
        raise Unseen(layout.place, "fragments do not make the stated number of frames")
    return groups


def _offsets(layout: Layout, table: Leaf, extended: Leaf | None) -> list[int]:
    if extended is not None and extended.size:
        if table.size or extended.size != 8 * layout.frames:
            raise Unseen(layout.place, "offset tables do not fit")
        return list(unpack(f"<{layout.frames}Q", extended.raw))
    if not table.size:
        return []
    if table.size != 4 * layout.frames:
        raise Unseen(layout.place, "the offset table does not fit the number of frames")
    return list(unpack(f"<{layout.frames}I", table.raw))


def _grouped(fragments: Sequence[Leaf], offsets: Sequence[int]) -> list[list[Leaf]]:
    first = fragments[0].start - 8
    groups: list[list[Leaf]] = []
    wanted = set(offsets)
    for fragment in fragments:
        if fragment.start - 8 - first in wanted or not groups:
            groups.append([])
        groups[-1].append(fragment)
    return groups


def _by_start(layout: Layout, fragments: Sequence[Leaf]) -> list[list[Leaf]]:
    """Without an offset table, a frame begins where a codestream begins."""
    groups: list[list[Leaf]] = []
    for fragment in fragments:
        head = fragment.buffer[fragment.start : fragment.start + 3]
        if head in (b"\xff\xd8\xff", b"\xff\x4f\xff"):
            groups.append([])
        elif not groups:
            raise Unseen(layout.place, "a frame does not begin with a codestream")
        groups[-1].append(fragment)
    return groups
