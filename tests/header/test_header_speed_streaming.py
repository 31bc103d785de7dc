"""Long values go from file to file by the kernel, whatever the encoding, the length of the header, the file system."""

import errno
import io
import os
from pathlib import Path

import pydicom
import pytest
from header_objects import BASIC, DEFLATED, EXPLICIT, PSEUDONYMS, SYNTAXES, ct_base, encoded
from header_series import EVERYTHING, compare
from pydicom.encaps import encapsulate, generate_frames

from gateway.header import scrub_file, streaming
from gateway.header.source import only_zeros, open_source
from gateway.header.streaming import Span, write_parts
from gateway.policy import HeaderPolicy

JPEG_2000 = "1.2.840.10008.1.2.4.90"
PIXELS = os.urandom(512 * 512 * 2)


def large(syntax: str, *, table: int = 0) -> bytes:
    """An image of 512 KB with a header of at least `table` bytes."""
    ds = ct_base()
    ds.Rows = ds.Columns = 512
    if table:
        ds.RedPaletteColorLookupTableData = bytes(table)
        ds["RedPaletteColorLookupTableData"].VR = "OW"
    if syntax == JPEG_2000:
        ds.NumberOfFrames = 64
        ds.PixelData = encapsulate([PIXELS[at : at + 8192] for at in range(0, len(PIXELS), 8192)], has_bot=False)
        ds["PixelData"].is_undefined_length = True
        ds["PixelData"].VR = "OB"
    else:
        ds.PixelData = PIXELS
    return encoded(ds, syntax)


@pytest.mark.parametrize("table", [0, 40_000, 700_000])
@pytest.mark.parametrize("syntax", [*SYNTAXES, JPEG_2000])
@pytest.mark.parametrize("header", [BASIC, EVERYTHING])
def test_pixels_of_any_encoding_are_bit_exact_behind_a_header_of_any_length(
    tmp_path: Path, syntax: str, table: int, header: HeaderPolicy
) -> None:
    file = large(syntax, table=table)
    assert compare(file, header) == (syntax != DEFLATED and table < 500_000)
    (tmp_path / "in").write_bytes(file)
    for name in ("out", "again"):
        scrub_file(tmp_path / "in", tmp_path / name, policy=header, pseudonyms=PSEUDONYMS)
    out = (tmp_path / "out").read_bytes()
    assert out == (tmp_path / "again").read_bytes()
    ds = pydicom.dcmread(io.BytesIO(out))
    if syntax == JPEG_2000:
        assert b"".join(generate_frames(ds.PixelData, number_of_frames=64)) == PIXELS
    else:
        assert ds.PixelData == PIXELS


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP])
def test_a_file_system_without_ranges_gets_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refused(*_: object) -> int:
        raise OSError(code, "no")

    monkeypatch.setattr(os, "copy_file_range", refused)
    (tmp_path / "in").write_bytes(large(EXPLICIT))
    scrub_file(tmp_path / "in", tmp_path / "out", policy=BASIC, pseudonyms=PSEUDONYMS)
    assert pydicom.dcmread(tmp_path / "out").PixelData == PIXELS


def test_a_full_disk_is_an_error_and_not_a_short_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "full")

    (tmp_path / "in").write_bytes(large(EXPLICIT))
    monkeypatch.setattr(os, "copy_file_range", full)
    with pytest.raises(OSError, match="full"):
        scrub_file(tmp_path / "in", tmp_path / "out", policy=BASIC, pseudonyms=PSEUDONYMS)


def test_parts_are_written_in_order_in_whatever_portions_the_system_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").write_bytes(bytes(range(256)) * 16)
    writev, copy = os.writev, os.copy_file_range
    monkeypatch.setattr(os, "writev", lambda target, buffers: writev(target, [bytes(buffers[0])[:2]]))
    monkeypatch.setattr(os, "copy_file_range", lambda a, b, size, at: copy(a, b, min(size, 7), at))
    monkeypatch.setattr(streaming, "MAX_GATHERED", 3)
    parts: list[bytes | memoryview | Span] = [
        b"abc",
        memoryview(b"de"),
        b"",
        b"fgh",
        Span(10, 900),
        b"ij",
        Span(4000, 4096),
        Span(5, 5),
        b"k",
    ]
    with open(tmp_path / "in", "rb") as source, open(tmp_path / "out", "wb") as target:
        write_parts(target.fileno(), parts, source.fileno())
    whole = (tmp_path / "in").read_bytes()
    assert (tmp_path / "out").read_bytes() == b"abcdefgh" + whole[10:900] + b"ij" + whole[4000:] + b"k"


def test_a_source_that_shrinks_while_it_is_copied_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(bytes(100))
    with (
        open(tmp_path / "in", "rb") as source,
        open(tmp_path / "out", "wb") as target,
        pytest.raises(OSError, match="ended"),
    ):
        write_parts(target.fileno(), [Span(50, 200)], source.fileno())


def test_mapped_pages_are_let_go_and_come_back(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(large(EXPLICIT, table=700_000))
    source = open_source(tmp_path / "in")
    before = bytes(source.data[:5000])
    source.release()
    assert bytes(source.data[:5000]) == before


def test_zeros_of_any_length_are_told_from_something() -> None:
    assert only_zeros(bytes(3 << 20))
    assert not only_zeros(bytes(2 << 20) + b"\1")
    assert only_zeros(b"")
