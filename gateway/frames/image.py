"""An image file opened for reading frame by frame: `EncodedImage`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from pydicom.dataset import Dataset

from gateway.errors import Hold
from gateway.frames import showing
from gateway.frames.codestream import Stream, check_stream, read_stream
from gateway.frames.decode import decode_frame
from gateway.frames.fragments import Frames, frames_of
from gateway.frames.layout import Array, Layout, layout_of
from gateway.frames.native import byte_length, check_length, values_of, without_ringing, words_of
from gateway.frames.source import Source, open_source
from gateway.frames.syntaxes import Codec

COLOUR_LABEL, EXTRA_FRAMES, TRAILING_BYTES = "colour_label", "extra_frames", "trailing_bytes"


class EncodedImage:
    """The pixels of one object. Nothing is decoded before `stored` or `shown` is called, one frame at a time.

    `dataset` is everything before the pixel data; `layout` what the pixels are, whatever the header says of them:
    its `photometric` is the colour of what `stored` gives. `frames` is 0 for an object without pixel data. `notes`
    says what of the header or the stream is not as it should be: "colour_label" (the Photometric Interpretation does
    not fit the bytes), "extra_frames" (beyond NumberOfFrames, never read), "trailing_bytes" (behind native pixels).
    """

    def __init__(self, source: Source) -> None:
        self.source = source
        self.dataset: Dataset = source.header()
        self.spans: Frames | None = None
        self.layout: Layout | None = None
        self.notes: tuple[str, ...] = ()
        self._joined: tuple[int, bytes] = (-1, b"")  # the frame looked at last, as it is asked for several times
        self._read: tuple[int, Stream | None] = (-1, None)
        pixels = source.pixels
        if pixels is None:
            return
        labelled = layout_of(self.dataset, pixels.tag)
        if source.syntax.encapsulated:
            self.spans = frames_of(source, labelled.frames)
            self.layout = replace(labelled, photometric=self._colour(labelled, 0))
            notes = [EXTRA_FRAMES] if self.spans.beyond else []
        else:
            if pixels.undefined:
                raise Hold("pixels_unreadable", at="(7FE0,0010): encapsulated under a native transfer syntax")
            self.layout = check_length(labelled, pixels.end - pixels.start)
            notes = self._beyond(pixels.end - pixels.start)
        if not _may_become(labelled.photometric, self.layout.photometric, source.syntax.codec):
            notes.append(COLOUR_LABEL)
        self.notes = tuple(notes)

    @classmethod
    def open(cls, path: Path) -> EncodedImage:
        """Raises Hold (pixels_unreadable, video_unsupported, unsupported_transfer_syntax) and OSError."""
        return cls(open_source(path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the mapped file. Arrays that were handed out stay valid."""
        self.source.buffer.release()

    def stored(self, frame: int) -> Array:
        """Stored values of one frame, (rows, columns) or (rows, columns, samples), colour as `photometric` says.

        Bits outside BitsStored are masked away and the sign is extended. Raises Hold("pixels_unreadable").
        """
        return self.values(frame, self.words(frame))

    def values(self, frame: int, words: Array) -> Array:
        """What `stored` makes of the `words` of a frame."""
        values = self.without_ringing(frame, words)
        return values_of(words, self.decoded_layout(frame)) if values is None else values

    def without_ringing(self, frame: int, words: Array) -> Array | None:
        """Values of a lossy frame of more bits than BitsStored, clipped to their range; None for any other frame.

        Were the bits above masked away as elsewhere, what decoding leads beyond white would turn black. Streams of as
        many bits are clipped as they are decoded.
        """
        layout, stream = self.decoded_layout(frame), self.stream(frame)
        if stream is None or stream.reversible or layout.high_bit != layout.bits_stored - 1:
            return None
        return without_ringing(words, layout) if stream.bits > layout.bits_stored else None

    def shown(self, frame: int) -> Array:
        """uint8 (rows, columns), or (rows, columns, 3) as RGB: what a viewer shows of one frame. Raises Hold."""
        return showing.shown(self.stored(frame), self._layout(), self.dataset)

    def words(self, frame: int) -> Array:
        """Every allocated bit of one frame, unsigned; float stays float. Raises Hold("pixels_unreadable")."""
        self._in_range(frame)
        layout, pixels = self._layout(), self.source.pixels
        if self.spans is None and pixels is not None:
            data = self.source.buffer[pixels.start : pixels.end]
            return words_of(data, layout, frame, big=self.source.syntax.big, swapped=self.swapped)
        if self._colour(layout, frame) != layout.photometric:
            raise Hold("pixels_unreadable", at="(7FE0,0010): frames of different colour spaces")
        array = decode_frame(self.fragment(frame), self.source.syntax.codec, layout)
        if array.dtype.kind == "i" and not layout.signed and array.min() < 0:
            raise Hold("pixels_unreadable", at="(0028,0103): unsigned by the header, negative in the frame")
        size = max(layout.bits_allocated // 8, 1)
        return array.astype(f"i{size}").view(f"u{size}")

    def fragment(self, frame: int) -> bytes:
        """The compressed bytes of one frame, its fragments joined."""
        if self.spans is None:
            raise ValueError("only encapsulated pixel data has fragments")
        if self._joined[0] != frame:
            self._joined = frame, b"".join(self.source.buffer[start:end] for start, end in self.spans.spans[frame])
        return self._joined[1]

    @property
    def swapped(self) -> bool:
        """True when native pixels of 8 bits or fewer come in big-endian words of 16 (PS3.5 7.3)."""
        pixels, syntax = self.source.pixels, self.source.syntax
        return syntax.big and pixels is not None and pixels.vr == "OW" and self._layout().bits_allocated <= 8

    @property
    def transfer_syntax(self) -> str:
        return self.source.syntax.uid

    @property
    def frames(self) -> int:
        return self.layout.frames if self.layout else 0

    @property
    def rows(self) -> int:
        return self.layout.rows if self.layout else 0

    @property
    def columns(self) -> int:
        return self.layout.columns if self.layout else 0

    @property
    def samples(self) -> int:
        return self.layout.samples if self.layout else 0

    @property
    def bits_allocated(self) -> int:
        return self.layout.bits_allocated if self.layout else 0

    @property
    def bits_stored(self) -> int:
        return self.layout.bits_stored if self.layout else 0

    @property
    def high_bit(self) -> int:
        return self.layout.high_bit if self.layout else 0

    @property
    def signed(self) -> bool:
        return bool(self.layout and self.layout.signed)

    @property
    def photometric(self) -> str:
        return self.layout.photometric if self.layout else ""

    @property
    def planar(self) -> int:
        return self.layout.planar if self.layout else 0

    @property
    def lossy(self) -> bool:
        """True when the pixels ever went through lossy compression, by what the header or a stream says."""
        if str(self.dataset.get("LossyImageCompression") or "") == "01":
            return True
        if self.spans is None or self.source.syntax.lossless:
            return False
        stream = self.stream(0)
        return self.source.syntax.codec is Codec.JPEG or bool(stream and (stream.near or not stream.reversible))

    def stream(self, frame: int) -> Stream | None:
        """What the markers of one frame say; None for RLE and native pixels. Raises Hold."""
        if self.spans is None or self.source.syntax.codec is Codec.RLE:
            return None
        if self._read[0] != frame:
            self._read = frame, read_stream(self.fragment(frame), self.source.syntax.codec)
        return self._read[1]

    def _layout(self) -> Layout:
        if self.layout is None:
            raise ValueError("this object has no pixel data")
        return self.layout

    def _in_range(self, frame: int) -> None:
        if not 0 <= frame < self.frames:
            raise IndexError("no such frame")

    def _beyond(self, length: int) -> list[str]:
        wanted = byte_length(self._layout())
        return [TRAILING_BYTES] if length > wanted + wanted % 2 else []

    def decoded_layout(self, frame: int) -> Layout:
        """A compressed frame has its values at bit 0, unless its stream is as deep as BitsAllocated."""
        layout = self._layout()
        stream = self.stream(frame)
        if stream is None or stream.bits == layout.bits_allocated:
            return layout
        return replace(layout, high_bit=layout.bits_stored - 1)

    def _colour(self, layout: Layout, frame: int) -> str:
        """The colour of decoded samples. The label rules unless the stream cannot be what it says; doubt holds."""
        stream, label = self.stream(frame), layout.photometric
        if stream is not None:
            check_stream(stream, layout)
        if layout.samples == 1:
            return label
        codec = self.source.syntax.codec
        if codec is Codec.JPEG and stream is not None:
            said = "rgb" if label == "RGB" else "ybr"
            if said != (stream.colour or said):
                if not stream.certain:
                    raise Hold("pixels_unreadable", at="(0028,0004): contradicted by the markers of a frame")
                said = stream.colour
            return "RGB" if said == "rgb" else "YBR_FULL"
        if label in ("YBR_RCT", "YBR_ICT"):
            if stream is None or stream.colour != "rgb":
                raise Hold("pixels_unreadable", at="(0028,0004): contradicted by the markers of a frame")
            return "RGB"
        return "YBR_FULL" if label == "YBR_FULL_422" else label


def _may_become(label: str, decoded: str, codec: Codec) -> bool:
    """Whether a label rightly has another name once the samples are decoded (PS3.5 8.2)."""
    if label in ("YBR_RCT", "YBR_ICT"):
        return codec in (Codec.JPEG_2000, Codec.HTJ2K) and decoded == "RGB"
    if label == "YBR_FULL_422" and codec is Codec.JPEG:
        return decoded == "YBR_FULL"
    return label == decoded
