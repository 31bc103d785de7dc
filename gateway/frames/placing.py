"""Pixels into an object: native, encapsulated, or partly encoded anew. One frame at a time is in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import BinaryIO

from gateway.errors import Hold
from gateway.frames.changes import Changes
from gateway.frames.elements import Buffer, Encoding, header
from gateway.frames.encapsulation import Encapsulator
from gateway.frames.encode import encode_frame
from gateway.frames.image import EncodedImage
from gateway.frames.layout import Array, Layout
from gateway.frames.native import BitPacker, byte_length, frame_bytes
from gateway.frames.source import PIXEL_TAGS
from gateway.frames.syntaxes import Codec, TransferSyntax
from gateway.frames.truth import as_stream, full_chroma, true_of
from gateway.frames.writing import write_object

MAX_NATIVE_BYTES = 0xFFFFFFFE  # the largest even 32-bit length (PS3.5 7.1.1)
TRANSFORMED = ("YBR_RCT", "YBR_ICT")  # labels of JPEG 2000's colour transforms
Change = Callable[[int], Array | None]


def layout_of_pixels(image: EncodedImage) -> Layout:
    """Raises ValueError for an object without pixel data."""
    if image.layout is None:
        raise ValueError("this object has no pixel data")
    return image.layout


def place_frames(
    file: BinaryIO,
    image: EncodedImage,
    frames: Iterable[Array],
    syntax: TransferSyntax,
    changes: Changes,
    photometric: str = "",
) -> None:
    """Every frame written anew under `syntax`, from stored values; native ones may come as another `photometric`."""
    layout = layout_of_pixels(image)
    if photometric and syntax.encapsulated:
        raise ValueError("only native frames change their colour space")
    if not syntax.encapsulated:
        layout = replace(layout, photometric=photometric or layout.photometric)
        layout = full_chroma(replace(layout, planar=layout.planar if image.spans is None else 0))
        changes = changes.also(true_of(image, syntax, layout))
        write_object(file, image.source, changes, _native(image, frames, layout, syntax), syntax=syntax)
        return
    transform = layout.photometric == "RGB" and syntax.codec in (Codec.JPEG_2000, Codec.HTJ2K)
    layout = as_stream(layout)
    streams = (encode_frame(values, layout, syntax, transform=transform) for values in frames)
    place_streams(file, image, streams, syntax, changes, photometric="YBR_RCT" if transform else "")


def place_changed(
    file: BinaryIO, image: EncodedImage, change: Change, kept: Callable[[int], bytes], changes: Changes
) -> None:
    """Under the same transfer syntax: frames for which `change` gives stored values are encoded anew, without loss;
    of the others `kept` gives the stream as it stays.

    With an irreversible colour transform every frame is encoded anew: one label must be true of all.
    """
    syntax = image.source.syntax
    label = str(image.dataset.get("PhotometricInterpretation"))
    transform = label in TRANSFORMED
    layout = as_stream(layout_of_pixels(image))

    def stream_of(frame: int) -> bytes:
        values = change(frame)
        stream = image.stream(frame)
        if values is None and not (transform and stream is not None and not stream.reversible):
            return kept(frame)
        return encode_frame(image.stored(frame) if values is None else values, layout, syntax, transform=transform)

    streams = (stream_of(frame) for frame in range(layout.frames))
    place_streams(file, image, streams, syntax, changes, photometric="YBR_RCT" if transform else "")


def place_streams(
    file: BinaryIO,
    image: EncodedImage,
    streams: Iterable[bytes],
    syntax: TransferSyntax,
    changes: Changes,
    *,
    photometric: str = "",
) -> None:
    """Compressed frames of even length; `photometric` is their label where it is not that of the decoded samples."""
    layout = layout_of_pixels(image)
    if syntax.codec is not Codec.JPEG:
        layout = as_stream(layout)
    written = Encapsulator(file, layout.frames, byte_length(layout))
    changes = changes.also(true_of(image, syntax, layout, photometric))
    write_object(file, image.source, changes, written.elements(streams), syntax=syntax)
    written.finish()


def _native(image: EncodedImage, frames: Iterable[Array], layout: Layout, syntax: TransferSyntax) -> Iterator[Buffer]:
    """The pixel data element of native frames."""
    pixels = image.source.pixels
    tag = pixels.tag if pixels else 0
    length = byte_length(layout)
    if length > MAX_NATIVE_BYTES:
        raise Hold("transcoding_failed", at="(7FE0,0010): too long for a native element")
    vr = {PIXEL_TAGS[0]: "OF", PIXEL_TAGS[1]: "OD"}.get(tag, "OB" if layout.bits_allocated <= 8 else "OW")
    yield header(Encoding.of(syntax), tag, "OW" if syntax.implicit and vr == "OB" else vr, length + length % 2)
    if layout.bits_allocated == 1:
        packer = BitPacker(layout)
        for values in frames:
            yield packer.add(values)
        yield packer.finish()
    else:
        for values in frames:
            yield frame_bytes(values, layout, big=syntax.big)
    yield bytes(length % 2)
