"""One file in, one de-identified file out (PS3.15 Annex E, Basic Profile and options)."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from gateway.errors import Hold
from gateway.header.admission import DICOMDIR, admit, admit_class
from gateway.header.descriptors import cleaner_for
from gateway.header.elements import Buffer, Element, Reader
from gateway.header.encapsulated import replaced_document
from gateway.header.items import CONTENT_SEQUENCE
from gateway.header.key_objects import KEY_OBJECT_SELECTION
from gateway.header.pieces import Pieces
from gateway.header.private_words import OwnWords
from gateway.header.repeats import scrubbed_by_repeats
from gateway.header.scrubbed import STAGE_VERSION, Scrubbed
from gateway.header.setting import Setting
from gateway.header.source import Source, only_zeros, read_source, top_level
from gateway.header.stamp import METHOD_CODES, STAMPED, earlier_codes, file_meta
from gateway.header.streaming import Span, write_parts
from gateway.policy import HeaderPolicy
from gateway.pseudonyms import Pseudonyms
from gateway.study import Step

__all__ = ["STAGE_VERSION", "scrub_file", "scrubbed_whole"]

DEFLATED_AT_ONCE = 1 << 20


def scrub_file(
    source: Path, target: Path, *, policy: HeaderPolicy, pseudonyms: Pseudonyms, overlay_bits: bool = False
) -> Step:
    """Write the de-identified copy of `source` to `target`, which is truncated; the caller syncs and renames it.
    `overlay_bits`: a pixel stage clears what hides in unused bits, so that an overlay there does not hold the object.

    A pure function of the bytes, the key and the policy; the transfer syntax stays. Raises Hold, Drop or Refuse for
    objects that cannot be cleaned (nothing is written then), OSError from the file system, nothing else for any bytes.
    """
    descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        scrubbed = scrubbed_by_repeats(descriptor, policy, pseudonyms)
        if scrubbed is None:
            scrubbed = scrubbed_whole(read_source(descriptor), policy, pseudonyms, overlay_bits=overlay_bits)
        out = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            write_parts(out, scrubbed.parts, descriptor)
        finally:
            os.close(out)
    finally:
        os.close(descriptor)
    return scrubbed.step


def scrubbed_whole(
    original: Source, policy: HeaderPolicy, pseudonyms: Pseudonyms, *, overlay_bits: bool = False
) -> Scrubbed:
    """An object read and rewritten element by element. Raises Hold, Drop or Refuse."""
    if original.meta_sop_class == DICOMDIR:
        admit_class(DICOMDIR, policy)
    reader, elements, trailing = top_level(original)
    facts = admit(elements, reader, policy)
    if not overlay_bits:
        _refuse_overlay_in_pixels(elements, reader)
    setting = Setting.of(facts, policy, pseudonyms)
    cleaner = cleaner_for(policy, setting.plan, reader, elements, facts.character_set)
    gathered = partial(OwnWords, elements, reader, setting.plan)
    rewriter = setting.rewriter(reader, original.data, cleaner, gathered)
    document = replaced_document(facts.sop_class, elements, reader) if policy.encapsulated == "replace" else []
    parts = rewriter.top_level(elements, sorted([*STAMPED, *(tag for tag, _ in document)]))
    if facts.sop_class == KEY_OBJECT_SELECTION and CONTENT_SEQUENCE not in rewriter.cleaned:
        raise Hold("structured_content", at=f"{CONTENT_SEQUENCE:08X}")  # a selection of nothing
    done = setting.done(rewriter.cleaned, private=rewriter.retained, overlays=rewriter.overlays)
    method_codes = next((element for element in elements if element.tag == METHOD_CODES), None)
    ours = sorted([*setting.stamps(reader.syntax, earlier_codes(method_codes, reader), done), *document])
    body = _joined(parts, [stamp for _, stamp in ours])
    meta = file_meta(facts.sop_class, setting.sop_instance(facts.sop_instance), original.transfer_syntax)
    return Scrubbed.of(_file(meta, body, original), rewriter.counts, trailing=trailing)


def _file(meta: bytes, body: Iterable[Buffer | Span], original: Source) -> Iterator[Buffer | Span]:
    yield meta
    if original.deflated:
        yield from _deflated(body, original.data)
        return
    for part in body:
        yield Span(part.start + original.offset, part.end + original.offset) if isinstance(part, Span) else part


def _joined(parts: Sequence[Pieces], stamps: Sequence[bytes]) -> Iterator[Buffer | Span]:
    """Parts of the data set with our elements between them."""
    for part, stamp in zip(parts, stamps, strict=False):
        yield from part.finished()
        yield stamp
    yield from parts[-1].finished()


def _deflated(parts: Iterable[Buffer | Span], data: memoryview) -> Iterator[bytes]:
    """Raw deflate at a fixed level, padded to even length (PS3.5 A.5)."""
    engine = zlib.compressobj(level=6, wbits=-zlib.MAX_WBITS)
    size = 0
    for part in parts:
        whole = data[part.start : part.end] if isinstance(part, Span) else part
        for at in range(0, len(whole), DEFLATED_AT_ONCE):
            written = engine.compress(whole[at : at + DEFLATED_AT_ONCE])
            size += len(written)
            yield written
    written = engine.flush()
    yield written + bytes((size + len(written)) & 1)


def _refuse_overlay_in_pixels(elements: Iterable[Element], reader: Reader) -> None:
    """A retired form keeps an overlay in unused bits of Pixel Data, where removing its group does not reach it."""
    for element in elements:
        bit_position = element.tag & 0xFF00FFFF == 0x60000102
        if bit_position and not only_zeros(reader.buffer[element.start : element.end]):
            raise Hold("overlay_in_pixels", at=f"{element.tag:08X}")
