"""Boxes in native pixel data: the bytes inside them are replaced, all others are copied as they stand."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from gateway.frames.boxes import Boxes, fill_of
from gateway.frames.elements import Buffer, header
from gateway.frames.image import EncodedImage
from gateway.frames.layout import HALF_CHROMA, Array, Layout
from gateway.frames.native import byte_length, words_from
from gateway.frames.writing import chunks


def redacted_element(image: EncodedImage, boxes: Boxes) -> Iterator[Buffer]:
    """The pixel data element with the boxes filled, without bytes beyond the last frame. Raises Hold."""
    pixels, layout = image.source.pixels, image.layout
    if pixels is None or layout is None:
        raise ValueError("no pixel data")
    length = byte_length(layout)
    padded = length + length % 2
    yield header(image.source.encoding, pixels.tag, pixels.vr, padded)
    data = image.source.buffer[pixels.start : pixels.end]
    position, held = 0, b""  # frames may share a byte or, swapped, a word: the last two bytes wait for the next frame
    for frame in boxes:
        start, stop = _span(layout, frame, swapped=image.swapped)
        stop = min(stop, len(data))
        block = np.frombuffer(data[start:stop], np.uint8).copy()
        shared = position - start
        if shared > 0:
            block[:shared] = np.frombuffer(held[-shared:], np.uint8)
            yield held[:-shared]
        else:
            yield held
            yield from chunks(data, position, start)
        _fill(block, start, image, frame, boxes)
        yield block[:-2].tobytes()
        position, held = stop, block[-2:].tobytes()
    yield held
    yield from chunks(data, position, min(padded, len(data)))
    yield bytes(max(padded - len(data), 0))


def _span(layout: Layout, frame: int, *, swapped: bool) -> tuple[int, int]:
    """Bytes that hold the frame, whole words when they are swapped."""
    start, stop = frame * layout.frame_bits // 8, ((frame + 1) * layout.frame_bits + 7) // 8
    return (start - start % 2, stop + stop % 2) if swapped else (start, stop)


def _fill(block: NDArray[np.uint8], start: int, image: EncodedImage, frame: int, boxes: Boxes) -> None:
    """Fill the boxes of one frame in its bytes, which begin at `start`."""
    layout = image.layout
    if layout is None:
        return
    fill = fill_of(image.stored(frame), layout, image.dataset)
    even = len(block) // 2 * 2
    if image.swapped:
        block[:even] = block[:even].reshape(-1, 2)[:, ::-1].reshape(-1)
    skip = frame * layout.frame_bits - start * 8  # bits
    if layout.bits_allocated == 1:
        bits = np.unpackbits(block, bitorder="little")
        _set(bits[skip : skip + layout.frame_bits], layout, frame, boxes, fill)
        block[:] = np.packbits(bits, bitorder="little")
    else:
        words = words_from(np.array(fill, layout.dtype), layout)
        dtype = words.dtype.newbyteorder(">" if image.source.syntax.big else "<")
        raw = block[skip // 8 : skip // 8 + layout.frame_bits // 8]
        fill = tuple(words.tolist())
        _set(raw.view(dtype), layout, frame, boxes, fill)
    if image.swapped:
        block[:even] = block[:even].reshape(-1, 2)[:, ::-1].reshape(-1)


def _set(flat: Array, layout: Layout, frame: int, boxes: Boxes, fill: tuple[int | float, ...]) -> None:
    """Set the boxes of a frame in its words; `flat` is a view of the bytes."""
    rows, columns, samples = layout.rows, layout.columns, layout.samples
    for box in boxes[frame]:
        if layout.photometric in HALF_CHROMA:  # chroma is shared by two columns: both are redacted
            pairs = flat.reshape(rows, columns // 2, 4)
            pairs[box.top : box.bottom, box.left // 2 : (box.right + 1) // 2] = (fill[0], *fill)
        elif samples > 1 and layout.planar:
            planes = flat.reshape(samples, rows, columns)
            planes[:, box.top : box.bottom, box.left : box.right] = np.reshape(fill, (samples, 1, 1))
        else:
            flat.reshape(rows, columns, samples)[box.top : box.bottom, box.left : box.right] = fill
