"""What `burned_in_text` decides: what goes, what stays, what holds, and what a device's rule adds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from text_objects import SC, SHAPE, US, drawn, group_of, run, save, stored, texture

from gateway.errors import Hold
from gateway.pixels import burned_in_text as stage_module
from gateway.pixels import text_look
from gateway.pixels.burned_in_text import BurnedInText
from gateway.pixels.text_closer import Answer
from gateway.pixels.text_engine import Line, Sign


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
    tmp_path: Path, seen: Callable[[str, float, float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also after a closer look: one view shows a line, two do not."""
    monkeypatch.setattr(text_look, "answer_of", lambda *_: Answer.OPEN)
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
    assert not stored(group[0].candidate)[12:22, 12:88].any()


def test_what_every_view_shows_goes_unread_and_what_none_shows_stays(
    tmp_path: Path, seen: Callable[[str, float, float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "a.dcm", [drawn("", value=0)])
    for answer, gone in ((Answer.TEXT, True), (Answer.NONE, False)):
        monkeypatch.setattr(text_look, "answer_of", lambda *_, said=answer: said)
        seen("xqz", 0.8, 0.4)
        group = group_of(tmp_path, path)
        _, (step,) = run(BurnedInText(), group)
        assert step.counts.get("text", 0) == gone
        assert stored(group[0].candidate)[12:22, 12:88].any() != gone


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
    after = stored(group[0].candidate)
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
    after = stored(group[0].candidate)
    assert (after[:, 30:90, 40:200] == 77).all()
    assert after.sum() == 77 * 2 * 60 * 160
