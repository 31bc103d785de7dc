"""Writing an object anew around its pixels: every element that does not change is copied as it stands.

`target` is written whole and may be the source: then a file beside it takes its place. Memory does not grow with the
file: bytes go from the map to the disk.
"""

from __future__ import annotations

import os
import secrets
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from gateway.errors import Hold
from gateway.frames.changes import Changes, encoded
from gateway.frames.elements import Buffer, Element, Encoding, Malformed, Reader, header
from gateway.frames.recoding import has_nested_fragments, is_signed, recoded
from gateway.frames.source import OFFSET_LENGTHS, OFFSETS, PIXEL_TAGS, Source
from gateway.frames.syntaxes import TransferSyntax

META_LENGTH, META_SYNTAX = 0x00020000, 0x00020010
CHUNK_BYTES = 1 << 20
PIXEL_GROUP = frozenset({OFFSETS, OFFSET_LENGTHS, *PIXEL_TAGS})


@contextmanager
def replacing(target: Path, source: Path) -> Iterator[BinaryIO]:
    """A file to write that becomes `target`. A failure leaves the source as it was, and no target."""
    same = target.exists() and source.samefile(target)
    path = target.with_name(f"{target.name}.{secrets.token_hex(4)}.part") if same else target
    try:
        with open(path, "wb") as file:
            if same:
                os.fchmod(file.fileno(), 0o600)
            yield file
        if same:
            os.replace(path, target)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def write_object(
    file: BinaryIO,
    source: Source,
    changes: Changes,
    pixels: Iterable[Buffer] | None = None,
    *,
    syntax: TransferSyntax | None = None,
) -> None:
    """The object with its header changed, in `syntax` or as it was. `pixels` are the encoded elements of the pixel data
    group that take the place of the source's; None keeps them. Raises Hold.
    """
    syntax = syntax or source.syntax
    if source.syntax.encapsulated and syntax.codec is not source.syntax.codec:
        _refuse_nested(source)
    file.write(_file_meta(source, syntax.uid))
    body = _body(source, changes, pixels, Encoding.of(syntax))
    if syntax.deflated:
        deflate(file, body)
    else:
        file.writelines(body)


def _refuse_nested(source: Source) -> None:
    """Compressed pixels in an item would stay in the old syntax."""
    try:
        found = has_nested_fragments(Reader(source.buffer, source.encoding), source.elements)
    except Malformed:
        raise Hold("transcoding_failed", at="a sequence that cannot be read") from None
    if found:
        raise Hold("transcoding_failed", at="compressed pixels in an item, such as an icon")


def deflate(file: BinaryIO, parts: Iterable[Buffer]) -> None:
    """Raw deflate at a fixed level, padded to even length (PS3.5 A.5)."""
    engine = zlib.compressobj(level=6, wbits=-zlib.MAX_WBITS)
    size = 0
    for part in parts:
        size += file.write(engine.compress(part))
    size += file.write(engine.flush())
    file.write(bytes(size & 1))


def _body(source: Source, changes: Changes, pixels: Iterable[Buffer] | None, encoding: Encoding) -> Iterator[Buffer]:
    ours = encoded(changes, source, encoding)
    gone = changes.remove - ours.keys()
    waiting = sorted(ours.items(), reverse=True)
    reader = Reader(source.buffer, source.encoding)
    signed = is_signed(reader, source.elements)
    unwritten = pixels
    for element in source.elements:
        while waiting and waiting[-1][0] <= element.tag:
            yield waiting.pop()[1]
        if element.tag in ours or element.tag in gone or element.tag & 0xFFFF == 0:  # group lengths are retired
            continue
        if pixels is not None and element.tag in PIXEL_GROUP:
            if unwritten is not None:
                yield from unwritten
                unwritten = None
        elif encoding == source.encoding:
            yield from chunks(source.buffer, element.head, element.stop)
        else:
            yield from _recoded(reader, element, encoding, signed=signed)
    for _, data in reversed(waiting):
        yield data


def _recoded(reader: Reader, element: Element, encoding: Encoding, *, signed: bool) -> Iterator[Buffer]:
    try:
        yield from recoded(reader, element, encoding, signed=signed)
    except Malformed:
        raise Hold("transcoding_failed", at=f"{element.tag:08X}") from None


def chunks(buffer: memoryview, start: int, stop: int) -> Iterator[memoryview]:
    """[start, stop) of the map in pieces that do not stay in memory."""
    for at in range(start, stop, CHUNK_BYTES):
        yield buffer[at : min(at + CHUNK_BYTES, stop)]


def _file_meta(source: Source, transfer_syntax: str) -> bytes:
    """Preamble, prefix and group 0002 as they are, but for the transfer syntax and the length. Raises Hold."""
    if not source.meta:
        raise Hold("pixels_unreadable", at="no file meta information")
    body = b""
    for tag, vr, value in sorted(source.meta):
        if tag == META_LENGTH:
            continue
        new = transfer_syntax.encode("ascii") if tag == META_SYNTAX else value
        new += bytes(len(new) & 1)
        body += header(Encoding(), tag, vr, len(new)) + new
    length = struct.pack("<I", len(body))
    return bytes(128) + b"DICM" + header(Encoding(), META_LENGTH, "UL", 4) + length + body
