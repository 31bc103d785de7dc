"""Objects written anew: header changes, redacted boxes, replaced frames, another transfer syntax.

Lossless throughout: what is outside a box, or not a pixel, stays bit for bit, and the header tells the truth about
what the pixels are. Where a codec cannot do that, pixels go native or the object is held.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path

from gateway.errors import Hold
from gateway.frames import jpeg_blocks
from gateway.frames.boxes import Box, Boxes, by_frame, fill_of, filled
from gateway.frames.changes import Changes
from gateway.frames.elements import Buffer, Encoding, header
from gateway.frames.image import EncodedImage
from gateway.frames.layout import Array, Layout
from gateway.frames.native_boxes import redacted_element
from gateway.frames.placing import layout_of_pixels, place_changed, place_frames, place_streams
from gateway.frames.recoding import words
from gateway.frames.syntaxes import EXPLICIT_LITTLE, SYNTAXES, Codec, TransferSyntax, syntax_of
from gateway.frames.truth import EXTREMES, true_of
from gateway.frames.writing import replacing, write_object


def change_header(source: Path, target: Path, changes: Changes) -> None:
    """Write `source` with its header changed; pixel data is copied as it is. Raises Hold and OSError."""
    with EncodedImage.open(source) as image, replacing(target, source) as file:
        write_object(file, image.source, changes)


def redact(source: Path, target: Path, boxes: Sequence[Box], changes: Changes) -> None:
    """Write `source` with `boxes` filled with what looks black. Raises Hold, OSError, ValueError for a wrong frame.

    Native pixels: only the bytes of the boxes change (of half chroma, the pairs of columns that they touch). JPEG of
    8 bits: only the blocks that they touch. JPEG of 12 bits: native, as decoded. All others: a frame that a box
    touches is encoded again without loss, under the same transfer syntax, and the rest stay as they are.
    """
    with EncodedImage.open(source) as image, replacing(target, source) as file:
        layout = layout_of_pixels(image)
        chosen = by_frame(boxes, layout)
        codec = image.source.syntax.codec
        changes = changes.also({}, EXTREMES if chosen else ())
        if not chosen:
            write_object(file, image.source, changes)
        elif image.spans is None:
            changes = changes.also(true_of(image, image.source.syntax, layout))
            write_object(file, image.source, changes, redacted_element(image, chosen))
        elif codec is not Codec.JPEG:
            place_changed(file, image, lambda frame: _redacted(image, frame, chosen), image.fragment, changes)
        elif layout.bits_allocated > 8:
            frames = (_or_stored(image, frame, _redacted(image, frame, chosen)) for frame in range(layout.frames))
            place_frames(file, image, frames, SYNTAXES[EXPLICIT_LITTLE], changes)
        else:
            streams = (_blocked_out(image, frame, chosen) for frame in range(layout.frames))
            place_streams(file, image, streams, image.source.syntax, changes)


def replace_frames(
    source: Path,
    target: Path,
    frames: Iterable[Array],
    changes: Changes,
    *,
    transfer_syntax: str | None = None,
    photometric: str = "",
) -> None:
    """Write `source` with other stored values, one array for each frame, shaped and coloured as `EncodedImage.stored`;
    `photometric` says so when frames that are written native have another colour space.

    Without `transfer_syntax` that of the source stays where it can be lossless, else explicit VR little endian.
    Raises Hold (transcoding_failed and those of `open`), OSError, and ValueError for frames of another shape, number
    or range, or another colour space in compressed frames.
    """
    with EncodedImage.open(source) as image, replacing(target, source) as file:
        syntax = image.source.syntax if transfer_syntax is None else syntax_of(transfer_syntax)
        if syntax.codec is Codec.JPEG:
            syntax = SYNTAXES[EXPLICIT_LITTLE]
        checked = _checked(frames, layout_of_pixels(image))
        place_frames(file, image, checked, syntax, changes.also({}, EXTREMES), photometric)


def transcode(source: Path, target: Path, transfer_syntax: str, changes: Changes) -> None:
    """Write `source` under another transfer syntax with the same stored values; without pixel data a native one.

    Raises Hold("transcoding_failed") for what that cannot say, Hold as `open` does, and OSError.
    """
    wanted = syntax_of(transfer_syntax)
    if wanted.big or not wanted.lossless:
        raise Hold("transcoding_failed", at="the transfer syntax asked for")
    with EncodedImage.open(source) as image, replacing(target, source) as file:
        if image.layout is None and wanted.encapsulated:
            wanted = SYNTAXES[EXPLICIT_LITTLE]
        native = not image.source.syntax.encapsulated and not wanted.encapsulated
        if wanted == image.source.syntax or image.layout is None or (native and not image.notes):
            write_object(file, image.source, changes, _turned(image, wanted), syntax=wanted)
        else:
            frames = (image.stored(frame) for frame in range(image.frames))
            place_frames(file, image, frames, wanted, changes)


def _turned(image: EncodedImage, syntax: TransferSyntax) -> Iterable[Buffer] | None:
    """Native pixels of more than 16 bits in the other byte order: wider words than the OW that they come in."""
    pixels, width = image.source.pixels, image.bits_allocated // 8
    if pixels is None or width <= 2 or image.source.syntax.big is syntax.big:
        return None
    head = header(Encoding.of(syntax), pixels.tag, pixels.vr or "OW", pixels.end - pixels.start)
    return chain([head], words(image.source.buffer, pixels.start, pixels.end, width))


def _checked(frames: Iterable[Array], layout: Layout) -> Iterator[Array]:
    low, high = (0, 0) if layout.kind == "f" else layout.limits
    count = 0
    for count, values in enumerate(frames, 1):
        if values.shape != layout.shape or count > layout.frames or (values.dtype.kind == "f") != (layout.kind == "f"):
            raise ValueError("a frame of another shape or kind, or one too many")
        if layout.kind != "f" and (int(values.min()) < low or int(values.max()) > high):
            raise ValueError("values beyond Bits Stored")
        yield values
    if count != layout.frames:
        raise ValueError("fewer frames than the object has")


def _redacted(image: EncodedImage, frame: int, boxes: Boxes) -> Array | None:
    """Stored values of a frame with its boxes filled; None when it has none."""
    if frame not in boxes:
        return None
    values = image.stored(frame)
    return filled(values, boxes[frame], fill_of(values, layout_of_pixels(image), image.dataset))


def _or_stored(image: EncodedImage, frame: int, values: Array | None) -> Array:
    return image.stored(frame) if values is None else values


def _blocked_out(image: EncodedImage, frame: int, boxes: Boxes) -> bytes:
    """A JPEG frame with the blocks of its boxes filled. It is decoded first: `jpeg_blocks` asks for that."""
    data, stream = image.fragment(frame), image.stream(frame)
    if frame not in boxes or stream is None:
        return data
    fill = fill_of(image.stored(frame), layout_of_pixels(image), image.dataset)
    return jpeg_blocks.redacted_stream(data, stream, boxes[frame], fill)
