"""`residual_text`: text in any place where somebody could see it holds; marks, and pictures without text, do not."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import cv2
import imagecodecs
import numpy as np
import pytest
from gate_cases import CT_CLASS, encode, files, identified_ct, plain_scrub, policy, private
from PIL import Image
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate
from pydicom.sequence import Sequence as Items

from gateway.gate import Pair
from gateway.gate.attributes import Kept
from gateway.gate.bytescan import scan_bytes
from gateway.gate.residual_text import ResidualText
from gateway.gate.terms import Terms
from gateway.gate.text_words import HeaderWords, is_technical, letters
from gateway.pixels import Estimate, Instance, Work
from gateway.pixels.hidden import HiddenPixels
from gateway.policy import HeaderPolicy
from gateway.settings import SHIPPED_POLICIES
from gateway.study import Outcome, Verdict

NAME_IN_PIXELS = "QUASTENFLOSSER EGON"  # in no element of the object: nothing but reading finds it
KEPT_TEXT = SHIPPED_POLICIES / "regions" / "kept_text.txt"
JPEG_BASELINE = "1.2.840.10008.1.2.4.50"


def background(rows: int = 160, columns: int = 256, *, seed: int = 0) -> np.ndarray:
    """A soft synthetic picture, 12 bits: blobs and noise, no text."""
    random = np.random.default_rng(seed)
    blobs = cv2.GaussianBlur(random.normal(0, 1, (rows, columns)).astype(np.float32), (0, 0), 14)
    return (900 + 3500 * blobs + random.normal(0, 12, (rows, columns))).clip(0, 2000).astype(np.uint16)


def written(picture: np.ndarray, text: str, *, value: int, at: tuple[int, int] = (20, 60)) -> np.ndarray:
    """The picture with a line of text in it; `at` is column and row of its start."""
    ink = np.zeros(picture.shape, np.uint8)
    cv2.putText(ink, text, at, cv2.FONT_HERSHEY_SIMPLEX, 0.55, 255, 1, cv2.LINE_AA)
    share = ink / 255 if value > 1 else (ink > 127).astype(float)
    return np.round(picture * (1 - share) + value * share).astype(picture.dtype)


def with_pixels(samples: np.ndarray, *, stored: int | None = None) -> Dataset:
    """A scrubbed CT with these samples: (rows, columns), or (frames, rows, columns)."""
    ds = plain_scrub(identified_ct())
    frames = samples if samples.ndim == 3 else samples[None]
    ds.NumberOfFrames = len(frames)
    ds.Rows, ds.Columns = frames.shape[1:]
    bits = samples.dtype.itemsize * 8
    ds.BitsAllocated, ds.BitsStored = bits, stored or bits
    ds.HighBit = ds.BitsStored - 1
    raw = np.ascontiguousarray(samples).tobytes()
    ds.PixelData = raw + b"\0" * (len(raw) % 2)
    return ds


def judged(folder: Path, *candidates: bytes, check: ResidualText | None = None) -> Verdict:
    original = encode(identified_ct())
    pairs: list[Pair] = [files(folder, original, one, f"{index:04}") for index, one in enumerate(candidates, 1)]
    return (check or ResidualText()).judge(pairs, policy())


def box_of(where: str) -> tuple[int, int, int, int]:
    """Top, bottom, left, right of a finding's place."""
    words = where.split()
    rows, columns = words[words.index("rows") + 1], words[words.index("columns") + 1]
    return (*map(int, rows.split("-")), *map(int, columns.split("-")))


def test_a_picture_without_text_passes_in_two_passes(tmp_path: Path) -> None:
    verdict = judged(tmp_path, encode(with_pixels(background())))
    assert (verdict.outcome, verdict.reason, verdict.findings) == (Outcome.PASS, "", ())
    assert verdict.assessed == {"instances": 1, "frames": 1, "passes": 2}


def test_text_holds_with_its_frame_and_box_and_without_itself(tmp_path: Path) -> None:
    verdict = judged(tmp_path, encode(with_pixels(written(background(), NAME_IN_PIXELS, value=2000))))
    assert (verdict.outcome, verdict.reason) == (Outcome.HOLD, "residual_text")
    where = verdict.findings[0].where
    assert where.startswith("(7fe0,0010) frame 0 rows ")
    top, bottom, left, right = box_of(where)
    assert 40 <= top < bottom <= 76
    assert left < 60
    assert right > 80
    assert not any(part in str(verdict).upper() for part in NAME_IN_PIXELS.split())


def test_what_the_header_claims_about_the_pixels_is_no_evidence(tmp_path: Path) -> None:
    ds = with_pixels(written(background(), NAME_IN_PIXELS, value=2000))
    ds.SOPClassUID, ds.ImageType, ds.BurnedInAnnotation = CT_CLASS, ["ORIGINAL", "PRIMARY", "AXIAL"], "NO"
    assert judged(tmp_path, encode(ds)).reason == "residual_text"


def test_text_on_the_last_frame_alone_is_found_there(tmp_path: Path) -> None:
    frames = np.stack([background(seed=0), background(seed=0) + 3, background(seed=0) + 5])
    frames[2] = written(frames[2], NAME_IN_PIXELS, value=1900)
    verdict = judged(tmp_path, encode(with_pixels(frames)))
    assert verdict.reason == "residual_text"
    assert any(" frame 2 " in finding.where or "every frame" in finding.where for finding in verdict.findings)


def test_text_in_one_slice_of_a_series_of_slices_is_found(tmp_path: Path) -> None:
    slices = [with_pixels(background(seed=7) + 2 * index) for index in range(5)]
    slices[3] = with_pixels(written(background(seed=7) + 6, NAME_IN_PIXELS, value=1900))
    for index, one in enumerate(slices):
        one.InstanceNumber, one.SOPInstanceUID = index + 1, f"2.25.{index + 1}"
    assert judged(tmp_path, *map(encode, slices)).reason == "residual_text"


def test_faint_text_in_a_wide_window_is_found(tmp_path: Path) -> None:
    """Twenty values above a background of 900, where one bright corner stretches the window to 4095."""
    picture = np.full((160, 256), 900, np.uint16)
    picture[:20, -30:] = 4095
    verdict = judged(tmp_path, encode(with_pixels(written(picture, NAME_IN_PIXELS, value=920), stored=12)))
    assert verdict.reason == "residual_text"


def test_dark_text_turned_by_a_quarter_is_found(tmp_path: Path) -> None:
    upright = written(background(200, 256) + 1000, NAME_IN_PIXELS, value=0)
    assert judged(tmp_path, encode(with_pixels(np.rot90(upright)))).reason == "residual_text"


def test_text_in_an_overlay_is_found(tmp_path: Path) -> None:
    ds = with_pixels(background())
    plane = written(np.zeros((160, 256), np.uint8), NAME_IN_PIXELS, value=1)
    ds.add_new(0x60000010, "US", 160)
    ds.add_new(0x60000011, "US", 256)
    ds.add_new(0x60000100, "US", 1)
    ds.add_new(0x60003000, "OW", np.packbits(plane.reshape(-1), bitorder="little").tobytes())
    verdict = judged(tmp_path, encode(ds))
    assert verdict.findings[0].where.startswith("(6000,3000) frame 0")


def test_text_in_an_icon_is_found(tmp_path: Path) -> None:
    ds = with_pixels(background())
    icon = with_pixels(written(np.full((100, 256), 40, np.uint8), NAME_IN_PIXELS, value=230))
    kept = {"Rows", "Columns", "BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", "PixelData"}
    item = Dataset()
    for element in icon:
        if element.keyword in kept | {"SamplesPerPixel", "PhotometricInterpretation"}:
            item.add(element)
    ds.IconImageSequence = Items([item])
    assert judged(tmp_path, encode(ds)).findings[0].where.startswith("(0088,0200)[0].(7fe0,0010)")


def test_text_in_bits_that_no_viewer_shows_is_found(tmp_path: Path) -> None:
    ink = written(np.zeros((160, 256), np.uint16), NAME_IN_PIXELS, value=1)
    words = background() | (ink << 14)
    assert judged(tmp_path, encode(with_pixels(words, stored=12))).reason == "residual_text"


def test_text_that_a_palette_hides_is_found(tmp_path: Path) -> None:
    """Two indices of one colour: nobody sees the text until the palette is changed."""
    ds = with_pixels(written(np.full((160, 256), 40, np.uint8), NAME_IN_PIXELS, value=200))
    ds.PhotometricInterpretation = "PALETTE COLOR"
    for channel in ("Red", "Green", "Blue"):
        setattr(ds, f"{channel}PaletteColorLookupTableDescriptor", [256, 0, 16])
        setattr(ds, f"{channel}PaletteColorLookupTableData", np.full(256, 30000, "<u2").tobytes())
    assert judged(tmp_path, encode(ds)).reason == "residual_text"


def test_text_in_one_colour_channel_is_found(tmp_path: Path) -> None:
    ds = with_pixels(np.full((160, 256), 200, np.uint8))
    colour = np.full((160, 256, 3), 200, np.uint8)
    colour[..., 2] = written(colour[..., 2].copy(), NAME_IN_PIXELS, value=60)
    ds.SamplesPerPixel, ds.PlanarConfiguration, ds.PhotometricInterpretation = 3, 0, "RGB"
    ds.PixelData = colour.tobytes()
    assert judged(tmp_path, encode(ds)).reason == "residual_text"


def test_a_picture_in_a_private_block_is_looked_at(tmp_path: Path) -> None:
    ds = with_pixels(background())
    block = io.BytesIO()
    Image.fromarray(written(np.full((100, 256), 40, np.uint8), NAME_IN_PIXELS, value=230)).save(block, "PNG")
    private(ds, 0x10, "OB", block.getvalue() + b"\0" * (len(block.getvalue()) % 2))
    verdict = judged(tmp_path, encode(ds))
    assert (verdict.reason, verdict.findings[0].where[:11]) == ("residual_text", "(0029,1010)")


@pytest.mark.parametrize(
    ("block", "outcome"),
    [
        (np.random.default_rng(0).bytes(2048), Outcome.HOLD),
        (bytes(2048), Outcome.PASS),
        (b"an ordinary protocol, line by line\n" * 60, Outcome.PASS),
    ],
    ids=["unknown", "zeros", "text"],
)
def test_a_private_block_that_may_be_a_picture_holds(tmp_path: Path, block: bytes, outcome: Outcome) -> None:
    ds = with_pixels(background())
    private(ds, 0x10, "OB", block)
    verdict = judged(tmp_path, encode(ds))
    assert verdict.outcome is outcome
    if outcome is Outcome.HOLD:
        assert (verdict.reason, verdict.findings[0].rule) == ("gate_failed", "a private block that cannot be looked at")


def test_what_cannot_be_looked_at_holds_whatever_is_allowed(tmp_path: Path) -> None:
    stream = imagecodecs.jpeg8_encode(np.full((160, 256), 99, np.uint8), level=90)
    ds = with_pixels(np.full((160, 256), 99, np.uint8))
    ds.PixelData = encapsulate([stream + b"something behind the end"])
    ds["PixelData"].is_undefined_length = True
    verdict = judged(tmp_path, encode(ds, JPEG_BASELINE), check=ResidualText(max=100))
    assert (verdict.outcome, verdict.reason) == (Outcome.HOLD, "gate_failed")
    assert verdict.findings[0].where == "(7fe0,0010) frame 0"


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one[:2] + b"\xff\xe1" + (5002).to_bytes(2, "big") + b"Exif\0\0" + bytes(4994) + one[2:],
        lambda one: one + b"something behind the end",
    ],
    ids=["a large EXIF block", "bytes behind the end"],
)
def test_what_a_stage_can_take_out_is_said_to_whoever_looks(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    stream = imagecodecs.jpeg8_encode(background().astype(np.uint8), level=90)
    ds = with_pixels(background().astype(np.uint8))
    ds.PixelData = encapsulate([change(stream)])
    ds["PixelData"].is_undefined_length = True
    candidate = encode(ds, JPEG_BASELINE)
    (tmp_path / "before").mkdir()
    verdict = judged(tmp_path / "before", candidate)
    assert verdict.reason == "gate_failed"
    assert verdict.findings[0].rule.endswith("the stage hidden_pixels, put first under pixels, takes it out")

    path = tmp_path / "candidate.dcm"
    path.write_bytes(candidate)
    work = Work(policy(), bytes(32))
    HiddenPixels().apply([Instance("0001", path, path)], work, Estimate())
    assert judged(tmp_path, path.read_bytes()).outcome is Outcome.PASS


@pytest.mark.parametrize("marks", ["120 kVp 200 mA", "LAO 30", "R", "10.5 cm"])
def test_technical_marks_may_stand(tmp_path: Path, marks: str) -> None:
    verdict = judged(tmp_path, encode(with_pixels(written(background(), marks, value=2000))))
    assert verdict.findings == ()


def test_words_that_the_policy_allows_may_stand(tmp_path: Path) -> None:
    candidate = encode(with_pixels(written(background(), "PHANTOM", value=2000)))
    assert judged(tmp_path, candidate).reason == "residual_text"
    (tmp_path / "again").mkdir()
    allowed = judged(tmp_path / "again", candidate, check=ResidualText(allow=("phantom",)))
    assert allowed.outcome is Outcome.PASS


def test_so_many_places_may_show_text_as_the_policy_says(tmp_path: Path) -> None:
    candidate = encode(with_pixels(written(background(), "QUASTENFLOSSER", value=2000)))
    assert judged(tmp_path, candidate, check=ResidualText(max=1)).outcome is Outcome.PASS


def test_a_name_of_the_header_is_said_to_be_one_and_no_mark_excuses_it(tmp_path: Path) -> None:
    original = identified_ct()
    original.PatientName = "HEAD^LEFT"
    candidate = encode(with_pixels(written(background(), "HEAD LEFT", value=2000)))
    (tmp_path / "x").mkdir()
    verdict = ResidualText().judge([files(tmp_path / "x", encode(original), candidate)], policy())
    assert verdict.findings[0].rule == "text as in whole name of (0010,0010)"
    original.PatientName = "ZZSYNTH^LEAKTEST"
    candidate = encode(with_pixels(written(background(), "ZZSYNTH", value=2000)))
    verdict = ResidualText().judge([files(tmp_path, encode(original), candidate)], policy())
    assert verdict.findings[0].rule == "text as in name of (0010,0010)"


def test_a_long_still_series_costs_two_passes(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    still = written(background(96, 128), "30 dB", value=1800, at=(5, 20)).astype(np.int32)
    frames = np.stack([still + random.integers(-2, 3, still.shape) for _ in range(120)]).clip(0, 4095)
    verdict = judged(tmp_path, encode(with_pixels(frames.astype(np.uint16))))
    assert verdict.assessed["frames"] == 120
    assert verdict.assessed["passes"] <= 2
    assert verdict.outcome is Outcome.PASS


def test_pictures_that_show_nothing_cost_nothing(tmp_path: Path) -> None:
    verdict = judged(tmp_path, encode(with_pixels(np.full((3, 64, 64), 7, np.uint8))))
    assert (verdict.outcome, verdict.assessed["passes"]) == (Outcome.PASS, 0)


def test_what_the_stage_keeps_as_shipped_may_stand() -> None:
    kept = KEPT_TEXT.read_text("utf-8").splitlines()
    words = [word for line in kept for word in line.partition("#")[0].split()]
    assert [word for word in words if letters(word) > 1 and not is_technical(word)] == []


@pytest.mark.parametrize(
    ("text", "technical"),
    [
        ("120 kVp 200 mA", True),
        ("120kVp200mA", True),
        ("WL: 40 WW: 400", True),
        ("TIs<0.4 MI=0.8", True),
        ("Im: 12/80", True),
        ("10.5 cm", True),
        ("31.01.1950", False),
        ("31 01 50", False),
        ("31JAN1950", False),
        ("DOB 01/02/1950", False),
        ("12:34:56", False),
        ("123456", False),
        ("1950", False),
        ("AP Zzsynth", False),
        ("渡辺", False),
    ],
)
def test_marks_are_told_from_dates_numbers_and_names(text: str, technical: bool) -> None:
    assert is_technical(text) is technical


@pytest.mark.parametrize(
    ("read", "rule"),
    [
        ("ZZSYNTH", "name of (0010,0010)"),
        ("ZZ5YNTH, LEAKTE5T", "name of (0010,0010)"),
        ("1D LEAK000I", "id of (0010,0020)"),
        ("31.01.1950", "birth_date of (0010,0030)"),
        ("QUASTENFL0SSER", "name of (0008,1048)"),
        ("ZZOO", ""),
        ("10.5 cm", ""),
    ],
)
def test_words_of_the_header_are_known_through_errors_of_reading(tmp_path: Path, read: str, rule: str) -> None:
    terms = Terms(Kept(HeaderPolicy()))
    terms.harvest(scan_bytes(encode(identified_ct()), original=True))
    assert HeaderWords(terms).rule_of(read) == rule


@pytest.mark.parametrize("faulty", [{"max": -1}, {"allow": ("two words",)}, {"allow": (" ",)}])
def test_parameters_that_make_no_sense_are_refused(faulty: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"max|allow"):
        ResidualText(**faulty)  # type: ignore[arg-type]
