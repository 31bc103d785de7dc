"""`residual_text`: text in any place where somebody could see it holds; marks, and pictures without text, do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from gate_cases import CT_CLASS, encode, files, identified_ct, policy
from residual_cases import NAME_IN_PIXELS, background, box_of, judged, with_pixels, written

from gateway.gate.residual_text import ResidualText
from gateway.study import Outcome


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


def test_text_in_one_colour_channel_is_found(tmp_path: Path) -> None:
    ds = with_pixels(np.full((160, 256), 200, np.uint8))
    colour = np.full((160, 256, 3), 200, np.uint8)
    colour[..., 2] = written(colour[..., 2].copy(), NAME_IN_PIXELS, value=60)
    ds.SamplesPerPixel, ds.PlanarConfiguration, ds.PhotometricInterpretation = 3, 0, "RGB"
    ds.PixelData = colour.tobytes()
    assert judged(tmp_path, encode(ds)).reason == "residual_text"


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


@pytest.mark.parametrize("faulty", [{"max": -1}, {"allow": ("two words",)}, {"allow": (" ",)}])
def test_parameters_that_make_no_sense_are_refused(faulty: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"max|allow"):
        ResidualText(**faulty)  # type: ignore[arg-type]
