"""Every place in a candidate where text could be seen, rendered: what `aspects` lists for text, and nothing less.

    image samples at any depth    each frame in its views (`pixel_views`): pixel data, floats, icons
    overlays 60xx                 each frame of the bit plane (PS3.3 C.9.2)
    private binary blocks         text, constant blocks and Siemens headers (SV10) that are text field by field show
                                  nothing; an encoded picture that is the whole block is decoded; anything else cannot
                                  be looked at

What cannot be rendered comes as `Unseen`, beside the pictures that can.
"""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from struct import unpack_from

import numpy as np

from gateway.gate.aspects import PRIVATE_BULK_BYTES
from gateway.gate.bytescan import EXPLICIT_BIG, Scan
from gateway.gate.decoding import Frames
from gateway.gate.decoding_codestream import examine_jpeg
from gateway.gate.pixel_layout import EXTENDED_OFFSETS, Unseen, frame_streams, images, layout_of, number
from gateway.gate.pixel_views import Grey, palette_of, views
from gateway.gate.walk import Leaf, tag_path

BULK = frozenset({"OB", "OD", "OF", "OL", "OV", "OW", "UN"})
MAX_PICTURE_PIXELS = 1 << 26
MAX_WORD = 256  # characters: longer ones are codes, and may stand for a picture
OVERLAY_ROWS, OVERLAY_COLUMNS, OVERLAY_FRAMES, OVERLAY_ALLOCATED, OVERLAY_DATA = 0x10, 0x11, 0x15, 0x100, 0x3000
_PICTURES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8")


@dataclass(frozen=True, slots=True)
class Seen:
    """One view of one frame. `place` is a path, `view` its name; frames count from 0."""

    place: str
    frame: int
    frames: int
    view: str
    grey: Grey
    step: float  # the smallest difference between two values


def pictures(scan: Scan) -> Iterator[Seen | Unseen]:
    """Everything to look at in one candidate, in the order of the file, one frame in memory at a time."""
    by_path = {leaf.path: leaf for leaf in scan.leaves}
    for prefix, leaves in images(scan):
        try:
            yield from _samples(scan, prefix, leaves, by_path)
        except Unseen as unseen:
            yield unseen
    for leaf in scan.leaves:
        group = leaf.tag >> 16
        try:
            if 0x6000 <= group <= 0x60FF and leaf.tag & 0xFFFF == OVERLAY_DATA and leaf.size:
                yield from _overlay(scan, leaf, by_path)
            elif group & 1 and leaf.vr in BULK and leaf.size >= PRIVATE_BULK_BYTES:
                yield from _private(leaf)
        except Unseen as unseen:
            yield unseen


def _samples(scan: Scan, prefix: str, leaves: list[Leaf], by_path: dict[str, Leaf]) -> Iterator[Seen]:
    layout = layout_of(scan, prefix, leaves, by_path)
    palette = palette_of(layout, by_path)
    streams = None
    if leaves[0].fragment:
        streams = frame_streams(layout, leaves, by_path.get(prefix + tag_path(EXTENDED_OFFSETS)))
    frames = Frames(layout, leaves, streams)
    for frame in range(layout.frames):
        words = frames.words(frame)
        for name, grey in views(layout, words, palette):
            step = 1.0 if layout.kind == "int" else float(grey.max() - grey.min()) / 4096
            yield Seen(layout.place, frame, layout.frames, name, grey, step)


def _overlay(scan: Scan, leaf: Leaf, by_path: dict[str, Leaf]) -> Iterator[Seen]:
    """A bit plane: one bit a pixel, frames one behind the other without gaps, the lowest bit of a byte first."""
    big = scan.transfer_syntax == EXPLICIT_BIG
    group, prefix = leaf.tag & 0xFFFF0000, leaf.path[: -len("(gggg,eeee)")]

    def of(element: int, missing: int | None = None) -> int | None:
        return number(by_path.get(prefix + tag_path(group | element)), big=big, missing=missing)

    rows, columns, frames = of(OVERLAY_ROWS), of(OVERLAY_COLUMNS), of(OVERLAY_FRAMES, 1)
    if not rows or not columns or not frames or of(OVERLAY_ALLOCATED, 1) != 1:
        raise Unseen(leaf.path, "an overlay without its size")
    bits = rows * columns
    whole = (bits * frames + 7) // 8
    if leaf.size not in (whole, whole + whole % 2):
        raise Unseen(leaf.path, "the value is not as long as rows, columns and frames say")
    raw = np.frombuffer(leaf.raw, np.uint8)
    if big and leaf.vr == "OW":
        raw = raw[: len(raw) // 2 * 2].reshape(-1, 2)[:, ::-1].reshape(-1)
    for frame in range(frames):
        first = bits * frame
        part = np.unpackbits(raw[first // 8 : (first + bits + 7) // 8], bitorder="little")[first % 8 :][:bits]
        yield Seen(leaf.path, frame, frames, "overlay", part.reshape(rows, columns).astype(np.float32), 1.0)


def _private(leaf: Leaf) -> Iterator[Seen]:
    head = leaf.buffer[leaf.start : leaf.start + 8]
    if head.startswith(_PICTURES):
        yield _encoded_picture(leaf)
        return
    if not shows_nothing(leaf):
        raise Unseen(leaf.path, "a private block that cannot be looked at")


def shows_nothing(leaf: Leaf) -> bool:
    """True for a private block that is no picture: one value all over, text, or fields of text."""
    raw = leaf.raw
    return len(set(raw)) <= 1 or _is_text(raw) or _is_fields_of_text(raw)


def _is_text(raw: bytes) -> bool:
    """Printable from end to end, in words and not in one long code: what it says is searched as text (`matching`)."""
    try:
        text = raw.strip(b" \0").decode("utf-8")
    except UnicodeDecodeError:
        return False
    words = text.split()
    return all(map(str.isprintable, words)) and max(map(len, words), default=0) <= MAX_WORD


def _is_fields_of_text(raw: bytes) -> bool:
    """A Siemens header of the format SV10 whose names and values are printable, with zeros everywhere else.

    "SV10", four bytes, number of fields, 77; each field: name (64 bytes), multiplicity, VR, type, items, check; each
    item: four words, of which the second is the length of its value; the value, padded to a multiple of four.
    """
    try:
        magic, fields, check = unpack_from("<4s4xII", raw)
        if magic != b"SV10" or check != 77:
            return False
        at = 16
        for _ in range(fields):
            name, _, _, _, items, _ = unpack_from("<64sI4sIII", raw, at)
            at += 84
            if not _is_padded(name) or items > len(raw):
                return False
            for _ in range(items):
                size = unpack_from("<4I", raw, at)[1]
                if at + 16 + size > len(raw) or not _is_padded(raw[at + 16 : at + 16 + size]):
                    return False
                at += 16 + size + -size % 4
    except struct.error:
        return False
    return not any(raw[at:])


def _is_padded(value: bytes) -> bool:
    """Printable ASCII, then zeros."""
    text = value.rstrip(b"\0")
    return all(0x20 <= byte < 0x7F for byte in text)


def _encoded_picture(leaf: Leaf) -> Seen:
    """A JPEG, PNG or GIF of one frame. Raises Unseen for one that does not decode, or has something beside it."""
    from PIL import Image

    ends = {b"\xff\xd8": b"\xff\xd9", b"\x89P": b"IEND\xaeB`\x82", b"GI": b"\x3b"}.get(leaf.raw[:2])
    if ends is None or not leaf.raw.rstrip(b"\0").endswith(ends):
        raise Unseen(leaf.path, "a private block that cannot be looked at")
    try:
        if ends == b"\xff\xd9":
            examine_jpeg(leaf.raw, leaf.path)
        with warnings.catch_warnings(action="error"), Image.open(io.BytesIO(leaf.raw)) as image:
            if image.width * image.height > MAX_PICTURE_PIXELS or getattr(image, "n_frames", 1) != 1:
                raise Unseen(leaf.path, "a private block that cannot be looked at")
            grey = np.asarray(image.convert("L"), np.float32)
    except (OSError, ValueError, SyntaxError, IndexError, struct.error, Warning, Image.DecompressionBombError):
        raise Unseen(leaf.path, "a private block that cannot be looked at") from None
    return Seen(leaf.path, 0, 1, "picture", grey, 1.0)
