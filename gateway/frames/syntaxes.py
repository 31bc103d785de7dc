"""Transfer syntaxes of stored images as data: how the data set is encoded, how its pixels are (PS3.5 Annex A).

Video, JPIP and the retired JPEG processes are not in the table; asking for them holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.errors import Hold


class Codec(StrEnum):
    """What the pixels are encoded with."""

    NATIVE = "native"
    RLE = "rle"
    JPEG = "jpeg"  # baseline and extended: DCT, 8 or 12 bit
    JPEG_LOSSLESS = "jpeg-lossless"  # process 14
    JPEG_LS = "jpeg-ls"
    JPEG_2000 = "jpeg-2000"
    HTJ2K = "htj2k"


@dataclass(frozen=True, slots=True)
class TransferSyntax:
    """`keyword` is what a policy calls it, "" for what is never written; `lossless`: its every stream is lossless."""

    uid: str
    codec: Codec
    keyword: str = ""
    implicit: bool = False
    big: bool = False
    deflated: bool = False
    lossless: bool = True

    @property
    def encapsulated(self) -> bool:
        return self.codec is not Codec.NATIVE


IMPLICIT_LITTLE = "1.2.840.10008.1.2"
EXPLICIT_LITTLE = "1.2.840.10008.1.2.1"
DEFLATED = "1.2.840.10008.1.2.1.99"
EXPLICIT_BIG = "1.2.840.10008.1.2.2"
RLE = "1.2.840.10008.1.2.5"
JPEG_BASELINE, JPEG_EXTENDED = "1.2.840.10008.1.2.4.50", "1.2.840.10008.1.2.4.51"
JPEG_LOSSLESS, JPEG_LOSSLESS_SV1 = "1.2.840.10008.1.2.4.57", "1.2.840.10008.1.2.4.70"
JPEG_LS_LOSSLESS, JPEG_LS_LOSSY = "1.2.840.10008.1.2.4.80", "1.2.840.10008.1.2.4.81"
JPEG_2000_LOSSLESS, JPEG_2000 = "1.2.840.10008.1.2.4.90", "1.2.840.10008.1.2.4.91"
HTJ2K_LOSSLESS, HTJ2K_RPCL, HTJ2K = "1.2.840.10008.1.2.4.201", "1.2.840.10008.1.2.4.202", "1.2.840.10008.1.2.4.203"

SYNTAXES = {
    syntax.uid: syntax
    for syntax in (
        TransferSyntax(IMPLICIT_LITTLE, Codec.NATIVE, "implicit-little", implicit=True),
        TransferSyntax(EXPLICIT_LITTLE, Codec.NATIVE, "explicit-little"),
        TransferSyntax(DEFLATED, Codec.NATIVE, "deflated", deflated=True),
        TransferSyntax(EXPLICIT_BIG, Codec.NATIVE, big=True),
        TransferSyntax(RLE, Codec.RLE, "rle"),
        TransferSyntax(JPEG_BASELINE, Codec.JPEG, lossless=False),
        TransferSyntax(JPEG_EXTENDED, Codec.JPEG, lossless=False),
        TransferSyntax(JPEG_LOSSLESS, Codec.JPEG_LOSSLESS),
        TransferSyntax(JPEG_LOSSLESS_SV1, Codec.JPEG_LOSSLESS, "jpeg-lossless-sv1"),
        TransferSyntax(JPEG_LS_LOSSLESS, Codec.JPEG_LS, "jpeg-ls-lossless"),
        TransferSyntax(JPEG_LS_LOSSY, Codec.JPEG_LS, lossless=False),
        TransferSyntax(JPEG_2000_LOSSLESS, Codec.JPEG_2000, "jpeg-2000-lossless"),
        TransferSyntax(JPEG_2000, Codec.JPEG_2000, lossless=False),
        TransferSyntax(HTJ2K_LOSSLESS, Codec.HTJ2K, "htj2k-lossless"),
        TransferSyntax(HTJ2K_RPCL, Codec.HTJ2K),
        TransferSyntax(HTJ2K, Codec.HTJ2K, lossless=False),
    )
}
KEYWORDS = {syntax.keyword: syntax.uid for syntax in SYNTAXES.values() if syntax.keyword}

# MPEG-2, MPEG-4 AVC/H.264 and HEVC/H.265, each also fragmentable (PS3.5 A.4.5 to A.4.9); SMPTE ST 2110 streams.
_VIDEO = (*(f"1.2.840.10008.1.2.4.10{digit}" for digit in range(9)), "1.2.840.10008.1.2.7.")


def syntax_of(uid: str) -> TransferSyntax:
    """The entry of a transfer syntax. Raises Hold (video_unsupported, unsupported_transfer_syntax)."""
    entry = SYNTAXES.get(uid)
    if entry is None:
        raise Hold("video_unsupported" if uid.startswith(_VIDEO) else "unsupported_transfer_syntax")
    return entry
