"""The small parts: what an intent's kind says, where findings point, frames as PNG, drawings on disk, addresses."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from encoded_images import native, noise
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from gateway.app.review.drawn import Drawing, Place, boxes_of, place_of, read, store
from gateway.app.review.frames import _grey, facts_of, render
from gateway.app.review.page import origins, require_private
from gateway.app.review.pointers import pointer
from gateway.app.review.wishes import Asked, asked_in
from gateway.errors import Hold, UsageError
from gateway.settings import Home, Settings
from gateway.study import Finding

# -- kinds of intents -------------------------------------------------------------------------------------------------


@given(
    st.sampled_from(["release", "reject", "rerun", "redact"]),
    st.sampled_from(["", "0123456789abcdef"]),
    st.integers(0, 999_999),
)
def test_a_kind_says_what_was_asked_in_32_characters(verb: str, about: str, number: int) -> None:
    asked = Asked(verb, about, number)
    assert asked_in(asked.kind) == asked
    assert len(asked.kind) <= 32


@pytest.mark.parametrize("kind", ["release:", "release:r", "release:x", "redact:0123:r1", "r1:release", "Release", ""])
def test_a_kind_that_is_written_otherwise_is_a_verb_that_no_decision_has(kind: str) -> None:
    assert asked_in(kind).verb == kind


# -- findings ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "frame", "box", "path"),
    [
        ("(7fe0,0010) frame 3 rows 10-20 columns 5-50", 3, (10, 5, 20, 50), "7FE00010"),
        ("(7fe0,0010) every frame rows 0-9 columns 1-2", 0, (0, 1, 9, 2), "7FE00010"),
        ("(0010,0010)", None, None, "00100010"),
        ("(0040,0275)[0].(0040,0007)", None, None, "00400275[1]/00400007"),
        ("(0040,a730)[2].(0040,a730)[0].(0040,a160)", None, None, "0040A730[3]/0040A730[1]/0040A160"),
        ("frame 7", 7, None, ""),
        ("volume", None, None, ""),
    ],
)
def test_a_finding_points_to_its_frame_and_box_or_element(where: str, frame: Any, box: Any, path: str) -> None:
    found = pointer(Finding("residual_text", "00001", where, "text"))
    assert (found.frame, found.box, found.path) == (frame, box, path)


# -- frames -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "bits"), [("u1", 8), ("u2", 12), ("u2", 16), ("i2", 16), ("i1", 8), ("i2", 12), ("u4", 32), ("i4", 32)]
)
def test_a_png_gives_the_stored_values_back(tmp_path: Path, dtype: str, bits: int) -> None:
    values = noise(12, 20, dtype=dtype, bits=bits)
    drawn = render(native(tmp_path / "a.dcm", values, BitsStored=bits), 0)
    samples = np.asarray(Image.open(io.BytesIO(drawn.png))).astype(np.float64)
    again = samples * drawn.step + drawn.low
    exact = bits <= 16
    np.testing.assert_allclose(again, values, rtol=0, atol=0 if exact else (2.0**bits) / 65535)
    assert drawn.png[24] == (8 if dtype == "u1" else 16)


def test_float_pixels_keep_their_range_and_what_is_not_finite_is_dark() -> None:
    values = np.array([[0.5, np.nan], [np.inf, -1.5]], np.float32)
    samples, low, step = _grey(values)
    np.testing.assert_allclose(samples * step + low, [[0.5, -1.5], [0.5, -1.5]], atol=1e-4)


def test_one_value_is_no_division_by_zero() -> None:
    for dtype in ("u1", "i2", "u4", "f4"):
        samples, low, step = _grey(np.full((2, 2), 7, dtype))
        np.testing.assert_allclose(samples * step + low, 7)


def test_monochrome1_says_that_it_is_inverted_and_colour_is_rgb(tmp_path: Path) -> None:
    grey = render(native(tmp_path / "a.dcm", noise(4, 4), PhotometricInterpretation="MONOCHROME1"), 0)
    assert grey.inverted
    colour = noise(4, 4, 3)
    drawn = render(native(tmp_path / "b.dcm", colour), 0)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(drawn.png))), colour)


def test_a_frame_that_is_not_there_is_told(tmp_path: Path) -> None:
    path = native(tmp_path / "a.dcm", noise(4, 4))
    for frame in (-1, 1):
        with pytest.raises(Hold):
            render(path, frame)


def test_facts_of_an_object_hold_no_value_of_it(tmp_path: Path) -> None:
    path = native(tmp_path / "a.dcm", noise(3, 4, 5), InstanceNumber="7")
    facts = facts_of(path, b"k" * 32)
    assert (facts.frames, facts.rows, facts.columns, facts.number) == (3, 4, 5, 7)
    assert facts.kind == "Secondary Capture Image"
    assert "2.25.3" not in repr(facts)
    (tmp_path / "b.dcm").write_bytes(b"no DICOM at all")
    assert facts_of(tmp_path / "b.dcm", b"k" * 32).frames == 0
    assert facts_of(tmp_path / "missing.dcm", b"k" * 32).trouble == "unreadable_object"


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (b"\x20\x00\x13\x00IS", b"\x20\x00\x13\x00I\xff"),  # InstanceNumber: no VR of PS3.5 6.2
        (b"\x20\x00\x0e\x00UI", b"\x20\x00\x0e\x00U\xff"),  # SeriesInstanceUID
        (b"\x08\x00\x16\x00UI", b"\x08\x00\x16\x00XX"),  # SOPClassUID
        (b"\x20\x00\x13\x00IS\x02\x007 ", b"\x20\x00\x13\x00FD\x02\x007 "),  # a double of 2 bytes
    ],
    ids=["number", "series", "class", "length"],
)
def test_a_header_that_no_reader_understands_is_told_by_its_reason(tmp_path: Path, was: bytes, now: bytes) -> None:
    path = native(tmp_path / "a.dcm", noise(3, 4), InstanceNumber="7")
    data = path.read_bytes()
    assert data.count(was) == 1
    path.write_bytes(data.replace(was, now))
    facts = facts_of(path, b"k" * 32)
    assert (facts.frames, facts.trouble) == (0, "unreadable_object")


@pytest.mark.parametrize(
    ("was", "now"),
    [
        (b"\x20\x00\x0e\x00UI", b"\x20\x00\x0e\x00U\xff"),  # SeriesInstanceUID
        (b"\x28\x00\x10\x00US", b"\x28\x00\x10\x00U\xff"),  # Rows
        (b"\x28\x00\x11\x00US\x02\x00", b"\x28\x00\x11\x00FD\x02\x00"),  # Columns: a double of 2 bytes
    ],
    ids=["series", "rows", "columns"],
)
def test_no_place_is_known_of_an_object_that_no_reader_understands(tmp_path: Path, was: bytes, now: bytes) -> None:
    path = native(tmp_path / "a.dcm", noise(3, 4))
    data = path.read_bytes()
    assert data.count(was) == 1
    path.write_bytes(data.replace(was, now))
    with pytest.raises(Hold, match="unreadable_object"):
        place_of(path, b"k" * 32)


def test_what_cannot_be_inflated_is_told_by_its_reason(tmp_path: Path) -> None:
    """PS3.5 A.5: the data set behind the file meta is one deflated stream; here it is none."""
    path = tmp_path / "a.dcm"
    syntax = b"1.2.840.10008.1.2.1.99"
    meta = b"\x02\x00\x10\x00UI" + len(syntax).to_bytes(2, "little") + syntax
    length = b"\x02\x00\x00\x00UL\x04\x00" + len(meta).to_bytes(4, "little")
    path.write_bytes(bytes(128) + b"DICM" + length + meta + b"\xff" * 64)
    assert facts_of(path, b"k" * 32).trouble == "unreadable_object"
    with pytest.raises(Hold, match="unreadable_object"):
        place_of(path, b"k" * 32)


# -- drawings ---------------------------------------------------------------------------------------------------------

HERE = Place("sop-1", "series-1", 100, 200)


def test_a_drawing_comes_back_as_it_was_stored(home: Home) -> None:
    drawing = Drawing(HERE, (1, 2, 3, 4), whole_series=True)
    about = store(home, "study", drawing)
    assert store(home, "study", drawing) == about
    assert read(home, "study", about) == drawing
    folders = [home.root / "review", home.root / "review" / "drawn", home.root / "review" / "drawn" / "study"]
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


def test_a_drawing_of_another_study_or_that_is_gone_holds(home: Home) -> None:
    about = store(home, "study", Drawing(HERE, (1, 2, 3, 4), whole_series=True))
    drawn = home.root / "review" / "drawn"
    (drawn / "other").mkdir()
    (path,) = (drawn / "study").iterdir()
    (drawn / "other" / path.name).write_bytes(path.read_bytes())
    for key, name in (("other", about), ("study", "f" * 16), ("nowhere", about)):
        with pytest.raises(Hold, match="the drawing"):
            read(home, key, name)


@pytest.mark.parametrize(
    ("place", "series", "alone"),
    [
        (HERE, True, True),
        (Place("sop-2", "series-1", 100, 200), True, False),
        (Place("sop-2", "series-1", 100, 201), False, False),  # a scout of another size
        (Place("sop-2", "series-2", 100, 200), False, False),
        (Place("sop-2", "series-1", 0, 0), False, False),  # no picture
    ],
)
def test_a_drawing_covers_its_object_or_those_like_it_in_the_series(place: Place, series: bool, alone: bool) -> None:
    assert Drawing(HERE, (0, 0, 1, 1), whole_series=True).covers(place) is series
    assert Drawing(HERE, (0, 0, 1, 1), whole_series=False).covers(place) is alone


def test_objects_without_a_series_are_no_series() -> None:
    lone, other = Place("sop-1", "", 100, 200), Place("sop-2", "", 100, 200)
    assert not Drawing(lone, (0, 0, 1, 1), whole_series=True).covers(other)
    assert Drawing(lone, (0, 0, 1, 1), whole_series=True).covers(lone)


def test_boxes_of_an_object_do_not_depend_on_the_order_they_were_drawn_in() -> None:
    drawings = [Drawing(HERE, (i, 0, i + 1, 1), whole_series=True) for i in (3, 1, 2, 1)]
    assert boxes_of(drawings, HERE) == boxes_of(drawings[::-1], HERE) == ((1, 0, 2, 1), (2, 0, 3, 1), (3, 0, 4, 1))


def test_places_are_named_by_key(tmp_path: Path) -> None:
    path = native(tmp_path / "a.dcm", noise(4, 5))
    assert place_of(path, b"a" * 32) != place_of(path, b"b" * 32)
    place = place_of(path, b"a" * 32)
    assert (place.rows, place.columns) == (4, 5)
    ds = pydicom.dcmread(path)
    assert str(ds.SOPInstanceUID) not in repr(place)


# -- addresses --------------------------------------------------------------------------------------------------------


def settings(**values: Any) -> Settings:
    return Settings.model_construct(
        **{name: field.default for name, field in Settings.model_fields.items()} | values  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    "values",
    [
        {"review_host": "0.0.0.0"},
        {"review_host": "10.0.0.5"},
        {"review_url": "http://deid.example"},
        {"review_url": "https://deid.example/path"},
        {"review_url": "https://user@deid.example"},
        {"review_url": "deid.example"},
        {"review_tls_certificate": Path("a.pem")},
        {"review_tls_key": Path("a.pem")},
    ],
)
def test_passwords_never_travel_in_the_clear(values: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="DEID_REVIEW_"):
        require_private(settings(**values))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, ("http://127.0.0.1:8081", "http://localhost:8081", "http://[::1]:8081")),
        ({"review_host": "0.0.0.0", "review_url": "https://Deid.Example"}, ("https://deid.example",)),
        ({"review_url": "https://deid.example:443"}, ("https://deid.example",)),
        ({"review_url": "https://deid.example:8443"}, ("https://deid.example:8443",)),
        ({"review_url": "http://localhost:9999"}, ("http://localhost:9999",)),
    ],
)
def test_it_answers_to_its_own_names_only(values: dict[str, Any], expected: tuple[str, ...]) -> None:
    require_private(settings(**values))
    assert origins(settings(**values), 8081) == expected
