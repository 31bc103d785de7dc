"""What the header must say so that it is true of the pixels beside it (PS3.3 C.7.6.3, C.7.6.1.1.5; PS3.5 8.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gateway.frames.image import EncodedImage
from gateway.frames.layout import Layout
from gateway.frames.native import byte_length
from gateway.frames.syntaxes import Codec, TransferSyntax

PHOTOMETRIC, PLANAR, HIGH_BIT = 0x00280004, 0x00280006, 0x00280102
EXTREMES = frozenset({0x00280106, 0x00280107})  # smallest and largest value of the pixels as they were
LOSSY, LOSSY_RATIO, LOSSY_METHOD = 0x00282110, 0x00282112, 0x00282114
METHODS = {
    Codec.JPEG: "ISO_10918_1",
    Codec.JPEG_LS: "ISO_14495_1",
    Codec.JPEG_2000: "ISO_15444_1",
    Codec.HTJ2K: "ISO_15444_15",
}


def as_stream(layout: Layout) -> Layout:
    """What streams hold: values without unused bits below them, every chroma sample."""
    return full_chroma(replace(layout, high_bit=layout.bits_stored - 1))


def full_chroma(layout: Layout) -> Layout:
    """`EncodedImage.stored` gives a chroma sample to every pixel."""
    return replace(layout, photometric=layout.photometric.removesuffix("_422"))


def true_of(
    image: EncodedImage, syntax: TransferSyntax, layout: Layout, photometric: str = ""
) -> dict[int, tuple[str, Any]]:
    """The elements, tag -> (VR, value), in which the header of `image` differs from pixels in `layout` under `syntax`.

    `photometric` is the label where it is not that of the samples: YBR_RCT and YBR_ICT.
    """
    said = image.dataset
    told: dict[int, tuple[str, Any]] = {}
    photometric = photometric or layout.photometric
    label = str(said.get("PhotometricInterpretation"))
    if syntax.codec is Codec.JPEG and label == "YBR_FULL_422" and photometric == "YBR_FULL":
        photometric = label  # of JPEG this names the colour space, whatever the sampling (PS3.5 8.2.1)
    if label != photometric:
        told[PHOTOMETRIC] = "CS", photometric
    if layout.samples > 1 and syntax.codec is not Codec.JPEG:
        planar = 1 if syntax.codec is Codec.RLE else 0 if syntax.encapsulated else layout.planar
        if said.get("PlanarConfiguration") != planar:
            told[PLANAR] = "US", planar
    if layout.kind != "f" and said.get("HighBit") not in (None, layout.high_bit):
        told[HIGH_BIT] = "US", layout.high_bit
    if image.lossy and str(said.get("LossyImageCompression") or "") != "01":
        told[LOSSY] = "CS", "01"
        told |= _history(image, layout)
    return told


def _history(image: EncodedImage, layout: Layout) -> dict[int, tuple[str, Any]]:
    """Method and ratio of a lossy stream whose header does not tell."""
    method = METHODS.get(image.source.syntax.codec)
    if image.spans is None or method is None or image.dataset.get("LossyImageCompressionMethod"):
        return {}
    compressed = sum(end - start for frame in image.spans.spans for start, end in frame)
    return {LOSSY_RATIO: ("DS", f"{byte_length(layout) / max(compressed, 1):.2f}"), LOSSY_METHOD: ("CS", method)}
