"""What hides beside a picture, in the same element: found, counted, and left out of what is written.

    extra_frames     compressed frames beyond NumberOfFrames
    trailing_bytes   native bytes behind the last frame, or bits set in its padding
    stream_extras    frames whose streams hold comments, application segments, or bytes behind their end
    unused_bits      frames with bits outside Bits Stored that do not follow from the value, nor from lossy compression
    altered_values   frames in which `canonical` changes values

The picture stays: stored values change by `canonical` alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np

from gateway.frames.changes import Changes
from gateway.frames.elements import Buffer, header
from gateway.frames.image import EXTRA_FRAMES, TRAILING_BYTES, EncodedImage
from gateway.frames.layout import HALF_CHROMA, Array, Layout
from gateway.frames.native import byte_length, frame_bytes, octets, words_from
from gateway.frames.placing import layout_of_pixels, place_changed, place_streams
from gateway.frames.stripping import stripped
from gateway.frames.syntaxes import Codec
from gateway.frames.truth import true_of
from gateway.frames.writing import chunks, replacing, write_object

STREAM_EXTRAS, UNUSED_BITS, ALTERED = "stream_extras", "unused_bits", "altered_values"
Canonical = Callable[[Array], Array]  # stored values -> stored values that show the same


def survey(image: EncodedImage, canonical: Canonical | None) -> dict[str, int]:
    """What hides in this object, as counts by kind; empty when nothing does. Raises Hold("pixels_unreadable")."""
    found: Counter[str] = Counter()
    if image.spans is not None:
        found[EXTRA_FRAMES] = image.spans.beyond
    elif image.frames:
        found[TRAILING_BYTES] = _bytes_beyond(image)
    for frame in range(image.frames):
        found.update(_kinds(image, frame, canonical))
    return {kind: count for kind, count in sorted(found.items()) if count}


def tidy(source: Path, target: Path, found: Mapping[str, int], canonical: Canonical | None, changes: Changes) -> None:
    """Write `source` without what `survey` found in it. Raises Hold (also transcoding_failed) and OSError."""
    with EncodedImage.open(source) as image, replacing(target, source) as file:
        syntax = image.source.syntax

        def change(frame: int) -> Array | None:
            kinds = _kinds(image, frame, canonical)
            if UNUSED_BITS not in kinds and ALTERED not in kinds:
                return None
            return _canonical(image, image.stored(frame), canonical)

        def kept(frame: int) -> bytes:
            return stripped(image.fragment(frame), syntax.codec)

        if not image.frames:
            write_object(file, image.source, changes)
        elif image.spans is None:
            changes = changes.also(true_of(image, syntax, layout_of_pixels(image)))
            write_object(file, image.source, changes, _native(image, change))
        elif UNUSED_BITS in found or ALTERED in found:
            place_changed(file, image, change, kept, changes)
        else:
            label = str(image.dataset.get("PhotometricInterpretation"))
            place_streams(file, image, map(kept, range(image.frames)), syntax, changes, photometric=_kept(image, label))


def _kept(image: EncodedImage, label: str) -> str:
    """The label of streams that stay: of JPEG 2000 it may name a transform that decoding undoes."""
    return label if label in ("YBR_RCT", "YBR_ICT") and image.photometric == "RGB" else ""


def _kinds(image: EncodedImage, frame: int, canonical: Canonical | None) -> list[str]:
    layout, codec = layout_of_pixels(image), image.source.syntax.codec
    kinds = []
    if image.spans is not None:
        data = image.fragment(frame)
        if stripped(data, codec) is not data:
            kinds.append(STREAM_EXTRAS)
    may_hide = _has_unused_bits(image, frame)
    if not may_hide and canonical is None and codec is not Codec.RLE:  # which decodes only if nothing is behind it
        return kinds
    words = image.words(frame)
    at = layout if image.spans is None else image.decoded_layout(frame)
    values = image.values(frame, words)
    if may_hide and image.without_ringing(frame, words) is None and not _follows(words, values, at):
        kinds.append(UNUSED_BITS)
    if not _same_bits(_canonical(image, values, canonical), values):
        kinds.append(ALTERED)
    return kinds


def _same_bits(one: Array, other: Array) -> bool:
    """Floats by their bits: there are many ways to write what is no number, and two to write zero."""
    if one is other:
        return True
    bits = f"u{one.dtype.itemsize}" if one.dtype.kind == "f" else one.dtype
    return np.array_equal(one.view(bits), other.view(bits))


def _canonical(image: EncodedImage, values: Array, canonical: Canonical | None) -> Array:
    """DCT-coded frames stay as they are: they cannot change without a second loss."""
    return values if canonical is None or image.source.syntax.codec is Codec.JPEG else canonical(values)


def _has_unused_bits(image: EncodedImage, frame: int) -> bool:
    layout, stream = layout_of_pixels(image), image.stream(frame)
    if layout.kind == "f" or layout.bits_allocated == 1 or image.source.syntax.codec is Codec.JPEG:
        return False
    return layout.bits_stored < (layout.bits_allocated if stream is None else stream.bits)


def _follows(words: Array, values: Array, layout: Layout) -> bool:
    """True when the unused bits of a frame are all 0, or all the sign: then they say nothing that the values do not."""
    written = words_from(values, layout)
    if np.array_equal(words, written):
        return True
    mask = ((1 << layout.bits_stored) - 1) << (layout.high_bit + 1 - layout.bits_stored)
    return np.array_equal(words, written & words.dtype.type(mask))


def _bytes_beyond(image: EncodedImage) -> int:
    """Bytes behind native pixels that are not the pad byte, or are and not 0; 1 for bits in the last byte's padding."""
    layout, pixels = layout_of_pixels(image), image.source.pixels
    if pixels is None:
        return 0
    length, bits = byte_length(layout), layout.frames * layout.frame_bits
    beyond = pixels.end - pixels.start - length
    if beyond > 1 or (beyond == 1 and image.source.buffer[pixels.end - 1] and not image.swapped):
        return beyond
    return int(bool(bits % 8) and _last(image, length)[0] >> bits % 8 != 0)


def _last(image: EncodedImage, length: int) -> bytes:
    """The last byte of native pixels, its padding bits among them."""
    pixels = image.source.pixels
    data = image.source.buffer[pixels.start : pixels.end] if pixels else memoryview(b"")
    return octets(data, length - 1, length, swapped=image.swapped).tobytes()


def _native(image: EncodedImage, change: Callable[[int], Array | None]) -> Iterator[Buffer]:
    """The pixel data element: changed frames written anew, the others copied, nothing behind them."""
    layout, pixels = layout_of_pixels(image), image.source.pixels
    if pixels is None:
        return
    length, bits = byte_length(layout), layout.frames * layout.frame_bits
    swapped, size = image.swapped, layout.frame_bits // 8
    data = image.source.buffer[pixels.start : pixels.end]
    yield header(image.source.encoding, pixels.tag, "OB" if swapped else pixels.vr, length + length % 2)
    if bits % 8:
        yield from _copied(data, 0, length - 1, swapped=swapped)
        yield bytes([_last(image, length)[0] & (1 << bits % 8) - 1])
    elif layout.bits_allocated == 1 or layout.photometric in HALF_CHROMA:
        yield from _copied(data, 0, length, swapped=swapped)
    else:
        for frame in range(layout.frames):
            values = change(frame)
            if values is None:
                yield from _copied(data, frame * size, (frame + 1) * size, swapped=swapped)
            else:
                yield frame_bytes(values, layout, big=image.source.syntax.big)
    yield bytes(length % 2)


def _copied(data: memoryview, start: int, stop: int, *, swapped: bool) -> Iterator[Buffer]:
    if swapped:
        yield octets(data, start, stop, swapped=True).tobytes()
    else:
        yield from chunks(data, start, stop)
