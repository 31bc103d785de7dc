"""The stage `burned_in_text` on synthetic objects: cases.md 5, 6, 7, 8 and 24, stacks, colours, scripts, decisions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pydicom import dcmread
from text_objects import CT, PLANT, RF, SC, US, XA, drawn, group_of, mask_of, save, texture, work

from gateway.errors import Hold
from gateway.pixels import Estimate, Instance
from gateway.pixels import burned_in_text as stage_module
from gateway.pixels.burned_in_text import BurnedInText
from gateway.pixels.text_engine import Line, Sign, engine
from gateway.study import Step

DEJAVU = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")
SHAPE = (96, 256)


def run(stage: BurnedInText, group: list[Instance]) -> tuple[Estimate, list[Step]]:
    estimate = stage.estimate(group, work())
    return estimate, stage.apply(group, work(), estimate)


def pixels(path: Path) -> NDArray[np.generic]:
    return dcmread(path).pixel_array


def ink_left(path: Path, ink: NDArray[np.bool_], original: NDArray[np.generic]) -> float:
    """Share of the ink that is still what it was."""
    return float((pixels(path)[ink] == original[ink]).mean())


def test_text_goes_every_other_pixel_stays_and_the_header_says_so(tmp_path: Path) -> None:
    before = drawn()
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [before]))
    estimate, (step,) = run(BurnedInText(), group)
    after = pixels(group[0].candidate)
    ink = mask_of(PLANT, SHAPE) > 0.3
    assert not after[ink].any()
    rows, columns = np.flatnonzero(ink.any(1)), np.flatnonzero(ink.any(0))
    around = np.ones(SHAPE, bool)
    around[rows[0] - 12 : rows[-1] + 13, max(0, columns[0] - 16) : columns[-1] + 17] = False
    assert np.array_equal(after[around], before[around])
    dataset = dcmread(group[0].candidate)
    assert dataset.BurnedInAnnotation == "NO"
    codes = [(item.CodeValue, item.CodingSchemeDesignator) for item in dataset.DeidentificationMethodCodeSequence]
    assert ("113101", "DCM") in codes
    assert step.counts["hint"] >= 1
    assert step.dropped == ""
    facts = json.dumps(dict(estimate.facts)).upper()
    assert not [word for word in ("ZZSYNTH", "LEAKTEST", "LEAK0001") if word in facts]


def test_a_clean_frame_is_not_touched_at_all(tmp_path: Path) -> None:
    frame = np.clip(texture((128, 128)), 0, 255).astype(np.uint8)
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [frame]))
    before = group[0].candidate.read_bytes()
    _, (step,) = run(BurnedInText(), group)
    assert group[0].candidate.read_bytes() == before
    assert step.counts == {"frames": 1}


@pytest.mark.parametrize(
    "claims",
    [
        {"sop_class": CT, "BurnedInAnnotation": "NO", "ImageType": ["ORIGINAL", "PRIMARY", "AXIAL"], "Modality": "CT"},
        {"sop_class": RF, "Modality": "RF"},
    ],
    ids=["ct that says NO", "rf that says nothing"],
)
def test_what_the_header_claims_of_its_pixels_is_no_evidence(tmp_path: Path, claims: dict[str, object]) -> None:
    """cases.md 6, 7, 24."""
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [drawn()], **claims))  # type: ignore[arg-type]
    run(BurnedInText(), group)
    assert not pixels(group[0].candidate)[mask_of(PLANT, SHAPE) > 0.3].any()


def test_text_on_the_third_frame_alone_is_redacted_there_alone(tmp_path: Path) -> None:
    """cases.md 5."""
    clean = np.clip(texture(SHAPE), 0, 255).astype(np.uint8)
    frames = [clean, clean, drawn()]
    group = group_of(tmp_path, save(tmp_path / "a.dcm", frames, XA))
    run(BurnedInText(), group)
    after = pixels(group[0].candidate)
    assert np.array_equal(after[:2], np.stack(frames[:2]))
    assert not after[2][mask_of(PLANT, SHAPE) > 0.3].any()


@pytest.mark.parametrize("with_header", [True, False])
def test_faint_text_in_a_wide_window_is_redacted(tmp_path: Path, *, with_header: bool) -> None:
    """cases.md 8: 12 bits, low contrast on texture, and the same under an emptied header."""
    frame = texture(SHAPE) * 6 + 300
    frame[80:92, 230:250] = 4000  # metal
    mask = mask_of(PLANT, SHAPE, size=20)
    frame += mask * 110
    original = np.clip(frame, 0, 4095).astype(np.uint16)
    bits = {"BitsStored": 12, "HighBit": 11}
    names = {} if with_header else {"PatientName": "", "PatientID": "", "PatientBirthDate": ""}
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [original], **bits, **names))
    run(BurnedInText(on_low_confidence="redact"), group)
    assert ink_left(group[0].candidate, mask > 0.5, original) < 0.02


def rgb(grey: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Yellow text on a grey picture."""
    out = np.repeat(np.clip(texture(SHAPE), 0, 255).astype(np.uint8)[..., None], 3, 2)
    ink = mask_of(PLANT, SHAPE) > 0.3
    out[ink] = (230, 210, 0)
    return out


@pytest.mark.parametrize(
    ("make", "elements", "dark"),
    [
        (lambda: drawn(), {"PhotometricInterpretation": "MONOCHROME1"}, 255),
        (lambda: rgb(drawn()), {}, 0),
        (lambda: np.rot90(drawn()).copy(), {}, 0),
        (lambda: np.rot90(drawn(), 2).copy(), {}, 0),
        (lambda: 255 - drawn(), {}, 0),
    ],
    ids=["monochrome1", "rgb", "quarter turn", "upside down", "dark on light"],
)
def test_every_look_of_text_is_filled_with_what_looks_black(
    tmp_path: Path, make: Callable[[], NDArray[np.uint8]], elements: dict[str, object], dark: int
) -> None:
    frame = make()
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [frame], **elements))  # type: ignore[arg-type]
    run(BurnedInText(), group)
    ink = mask_of(PLANT, SHAPE) > 0.3
    if frame.shape[:2] != SHAPE:
        ink = np.rot90(ink)
    elif np.array_equal(frame, np.rot90(drawn(), 2)):
        ink = np.rot90(ink, 2)
    assert (pixels(group[0].candidate)[ink] == dark).all()


def test_palette_colour_is_looked_at_as_it_shows(tmp_path: Path) -> None:
    """Entries in a shuffled order: stored values mean nothing by themselves."""
    order = np.random.default_rng(3).permutation(256).astype(np.uint8)
    table = np.zeros(256, np.uint16)
    table[order] = np.arange(256) * 257
    lut = {
        f"{colour}PaletteColorLookupTable{part}": value
        for colour in ("Red", "Green", "Blue")
        for part, value in (("Descriptor", [256, 0, 16]), ("Data", table.tobytes()))
    }
    stored = order[drawn()]
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [stored], US, PhotometricInterpretation="PALETTE COLOR", **lut))
    run(BurnedInText(), group)
    shown = table[pixels(group[0].candidate)] // 257
    assert not shown[mask_of(PLANT, SHAPE) > 0.3].any()


@pytest.mark.skipif(not DEJAVU.is_file(), reason="no DejaVu font here")
def test_cyrillic_goes_by_what_the_detector_sees(tmp_path: Path) -> None:
    how = {"font": str(DEJAVU), "size": 16}
    frame = drawn("Воронцова Юлия 1950", **how)
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [frame]))
    run(BurnedInText(), group)
    assert not pixels(group[0].candidate)[mask_of("Воронцова Юлия 1950", SHAPE, **how) > 0.3].any()  # type: ignore[arg-type]


def test_a_cine_of_300_frames_takes_three_passes(tmp_path: Path) -> None:
    """Static text over a small picture that moves: read once, redacted on every frame."""
    still = drawn()
    generator = np.random.default_rng(5)
    frames = []
    for _ in range(300):
        frame = still.copy()
        frame[50:80, 100:160] = generator.integers(40, 90, (30, 60))
        frames.append(frame)
    group = group_of(tmp_path, save(tmp_path / "a.dcm", frames, US))
    before = engine().passes
    run(BurnedInText(), group)
    assert engine().passes - before <= 3
    after = pixels(group[0].candidate)
    assert not after[:, mask_of(PLANT, SHAPE) > 0.3].any()
    assert np.array_equal(after[:, 50:80, 100:160], np.stack(frames)[:, 50:80, 100:160])


def test_dark_text_on_one_frame_of_a_still_stack_is_found(tmp_path: Path) -> None:
    """No projection but the minimum shows it."""
    light = np.clip(texture(SHAPE) + 120, 0, 255).astype(np.uint8)
    mask = mask_of(PLANT, SHAPE)
    dark = np.clip(light * (1 - mask) + 10 * mask, 0, 255).astype(np.uint8)
    frames = [light] * 12
    frames[7] = dark
    group = group_of(tmp_path, save(tmp_path / "a.dcm", frames, US))
    run(BurnedInText(), group)
    after = pixels(group[0].candidate)
    assert (
        ink_left(
            group[0].candidate, np.stack([mask > 0.5 if at == 7 else mask < 0 for at in range(12)]), np.stack(frames)
        )
        == 0
    )
    assert all(np.array_equal(after[at], frames[at]) for at in range(12) if at != 7)


def test_instances_of_one_series_are_a_stack(tmp_path: Path) -> None:
    paths = [save(tmp_path / f"{at}.dcm", [drawn()], InstanceNumber=str(at)) for at in range(8)]
    group = group_of(tmp_path, *paths)
    before = engine().passes
    _, steps = run(BurnedInText(), group)
    assert engine().passes - before <= 3
    assert len(steps) == 8
    for instance in group:
        assert not pixels(instance.candidate)[mask_of(PLANT, SHAPE) > 0.3].any()


def test_pixels_that_cannot_be_decoded_hold(tmp_path: Path) -> None:
    path = save(tmp_path / "a.dcm", [drawn()])
    dataset = dcmread(path)
    dataset.PixelData = dataset.PixelData[:100]
    dataset.save_as(path)
    with pytest.raises(Hold) as caught:
        run(BurnedInText(), group_of(tmp_path, path))
    assert caught.value.reason == "pixels_unreadable"


def test_an_object_without_pixels_passes_by(tmp_path: Path) -> None:
    path = save(tmp_path / "a.dcm", [drawn()])
    dataset = dcmread(path)
    del dataset.PixelData
    dataset.save_as(path)
    group = group_of(tmp_path, path)
    before = group[0].candidate.read_bytes()
    _, (step,) = run(BurnedInText(unknown_device="hold"), group)
    assert step.counts == {}
    assert group[0].candidate.read_bytes() == before


class Seen:
    """A stand-in for the engine: one line, always read the same."""

    def __init__(self, text: str, score: float, sure: float) -> None:
        self.text, self.score, self.sure, self.passes = text, score, sure, 0

    def detect(self, image: NDArray[np.uint8], scale: float = 1.0, floor: float = 0.3) -> list[Line]:
        self.passes += 1
        if self.passes > 1:
            return []
        return [Line(np.array([[10, 10], [90, 10], [90, 24], [10, 24]], np.float32), self.score)]

    def read(self, image: NDArray[np.uint8], lines: list[Line]) -> list[tuple[str, float]]:
        return [(self.text, self.sure) for _ in lines]

    def signs(self, line: NDArray[np.uint8]) -> list[Sign]:
        return []


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, float, float], None]:
    def install(text: str, score: float, sure: float) -> None:
        fake = Seen(text, score, sure)
        monkeypatch.setattr(stage_module, "engine", lambda: fake)

    return install


def test_what_may_be_text_and_cannot_be_read_holds_or_goes_but_never_passes(
    tmp_path: Path, seen: Callable[[str, float, float], None]
) -> None:
    path = save(tmp_path / "a.dcm", [drawn("", value=0)])
    seen("xqz", 0.8, 0.4)
    with pytest.raises(Hold) as caught:
        run(BurnedInText(), group_of(tmp_path, path))
    assert caught.value.reason == "text_uncertain"
    assert "xqz" not in str(caught.value)
    seen("xqz", 0.8, 0.4)
    group = group_of(tmp_path, path)
    _, (step,) = run(BurnedInText(on_low_confidence="redact"), group)
    assert step.counts["uncertain"] == 1
    assert not pixels(group[0].candidate)[12:22, 12:88].any()


def test_a_word_of_the_header_makes_a_poor_reading_certain(
    tmp_path: Path, seen: Callable[[str, float, float], None]
) -> None:
    seen("2ZSYNTH", 0.4, 0.35)
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [drawn("", value=0)]))
    _, (step,) = run(BurnedInText(), group)
    assert step.counts["hint"] == 1


@pytest.mark.parametrize(
    ("text", "sure", "kept"),
    [("L 70 kVp", 0.95, True), ("L 70 kVp", 0.7, False), ("ZZSYNTH L", 0.95, False), ("Somebody", 0.95, False)],
)
def test_only_what_is_on_the_list_and_read_well_stays(
    tmp_path: Path, seen: Callable[[str, float, float], None], text: str, sure: float, *, kept: bool
) -> None:
    seen(text, 0.9, sure)
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [drawn("", value=0)]))
    before = group[0].candidate.read_bytes()
    _, (step,) = run(BurnedInText(redact="identifying"), group)
    assert (step.counts.get("kept", 0) == 1) is kept
    assert (group[0].candidate.read_bytes() == before) is kept


def test_a_policy_may_add_words_of_its_own(tmp_path: Path, seen: Callable[[str, float, float], None]) -> None:
    seen("Zoomscout", 0.9, 0.95)
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [drawn("", value=0)]))
    _, (step,) = run(BurnedInText(redact="identifying", allow=("zoomscout",)), group)
    assert step.counts == {"frames": 1, "kept": 1}


def test_a_region_rule_blanks_without_looking_and_exempts_nothing(tmp_path: Path) -> None:
    shape = (480, 640)
    frame = np.clip(texture(shape), 0, 255).astype(np.uint8)
    known = {"Manufacturer": "Philips Medical Systems", "ManufacturerModelName": "iU22"}
    group = group_of(tmp_path, save(tmp_path / "a.dcm", [frame], US, **known))
    _, (step,) = run(BurnedInText(unknown_device="hold"), group)
    after = pixels(group[0].candidate)
    assert not after[:47].any()
    assert np.array_equal(after[47:], frame[47:])
    assert step.notes == ("region_rule=philips-iu22-640",)


def test_an_unknown_device_holds_where_the_policy_says_so(
    tmp_path: Path, seen: Callable[[str, float, float], None]
) -> None:
    seen("", 0.0, 0.0)
    with pytest.raises(Hold) as caught:
        run(BurnedInText(unknown_device="hold"), group_of(tmp_path, save(tmp_path / "a.dcm", [drawn()], SC)))
    assert caught.value.reason == "device_unknown"


def test_all_outside_of_an_ultrasounds_image_may_be_blanked(
    tmp_path: Path, seen: Callable[[str, float, float], None]
) -> None:
    from test_regions import ultrasound

    regions = ultrasound((40, 30, 199, 89)).SequenceOfUltrasoundRegions
    frame = np.full(SHAPE, 77, np.uint8)
    path = save(tmp_path / "a.dcm", [frame, frame], US, SequenceOfUltrasoundRegions=regions)
    seen("", 0.0, 0.0)
    group = group_of(tmp_path, path)
    run(BurnedInText(outside_image="blank"), group)
    after = pixels(group[0].candidate)
    assert (after[:, 30:90, 40:200] == 77).all()
    assert after.sum() == 77 * 2 * 60 * 160


def test_the_same_object_gives_the_same_estimate_and_the_same_bytes(tmp_path: Path) -> None:
    path = save(tmp_path / "a.dcm", [drawn()])
    one, two = tmp_path / "one", tmp_path / "two"
    outcomes = []
    for folder in (one, two):
        folder.mkdir()
        group = group_of(folder, path)
        estimate, _ = run(BurnedInText(), group)
        outcomes.append((dict(estimate.facts), group[0].candidate.read_bytes()))
    assert outcomes[0] == outcomes[1]
