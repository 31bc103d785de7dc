"""Pixel stages in the course of a study: after the header, before the gate, in order; held, dropped, repeated."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import imagecodecs
import numpy as np
import pydicom
import pytest
from houses import House, edit, house, study, to_folder
from pydicom.uid import ExplicitVRLittleEndian, JPEGLSLossless
from running import archive, policies_for, running, send, the_job, wait_idle

from gateway.app import candidates
from gateway.errors import Hold
from gateway.pixels.hidden import HiddenPixels
from gateway.settings import Home
from gateway.study import Clearance, State, Step


def with_stages(*stages: dict[str, object]):
    """A change of the shipped policies: research-basic gets these stages."""
    return lambda folder: edit(folder, "research-basic", lambda body: body.update(pixels=list(stages)))


def test_a_destination_gets_the_transfer_syntax_that_its_policy_asks_for(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "arrived"
    folder.mkdir()
    (ds,) = study()
    assert ds.file_meta.TransferSyntaxUID == ExplicitVRLittleEndian
    pixels = ds.pixel_array.copy()
    with archive(folder) as kept:
        policies = policies_for(
            tmp_path / "policies", kept.url, change=with_stages({"transcode": {"to": "jpeg-ls-lossless"}})
        )
        with running(home, policies) as gateway:
            send(ds, gateway.receiver.port)
            wait_idle(gateway)
            job = the_job(gateway, ds)
    assert job.state == State.SENT
    (arrived,) = folder.iterdir()
    after = pydicom.dcmread(arrived)
    assert after.file_meta.TransferSyntaxUID == JPEGLSLossless
    (cleared,) = Clearance.from_json(job.clearance).instances
    assert kept.received == {str(after.SOPInstanceUID): [cleared.sha256_dataset]}  # the gate judged these very bytes
    assert cleared.transfer_syntax_uid == JPEGLSLossless
    fragment = next(pydicom.encaps.generate_frames(after.PixelData, number_of_frames=1))
    np.testing.assert_array_equal(imagecodecs.jpegls_decode(fragment), pixels)
    assert json.loads(job.steps)["transcode@1"] == {"instances": 1, "frames": 1}


@pytest.fixture
def staged(home: Home, tmp_path: Path) -> Iterator[House]:
    """A house whose policy has a stage."""
    policies = to_folder(tmp_path / "policies", tmp_path / "archive")
    with_stages({"hidden_pixels": {}})(policies)
    with house(home, policies) as made:
        yield made


def test_a_stage_that_cannot_tell_holds_the_study_and_nothing_leaves(
    staged: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def holds(*_arguments: object, **_named: object) -> list[Step]:
        raise Hold("pixels_unreadable", at="00001")

    monkeypatch.setattr(candidates, "run_pixel_stage", holds)
    job = staged.job(staged.deliver(*study(2)))
    assert (job.state, job.reason, job.at, job.held_in) == (State.HELD, "pixels_unreadable", "00001", "scrub")
    assert not list((tmp_path / "archive").rglob("*.dcm"))


def test_an_instance_that_a_stage_drops_is_told_and_does_not_leave(
    staged: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drops_the_first(_name: str, group, *_rest: object, **_named: object) -> list[Step]:
        return [Step("hidden_pixels", "1", dropped="slide_label" if i.name == "00001" else "") for i in group]

    monkeypatch.setattr(candidates, "run_pixel_stage", drops_the_first)
    job = staged.job(staged.deliver(*study(3)))
    assert job.state == State.SENT
    assert json.loads(job.steps)["dropped"] == {"00001": 1}
    assert len(list((tmp_path / "archive").rglob("*.dcm"))) == 2


def test_an_overlay_in_unused_bits_is_cleared_by_the_stage_and_held_without_it(home: Home, tmp_path: Path) -> None:
    (ds,) = study()
    ds.BitsAllocated, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = 16, 12, 11, 0
    words = np.arange(ds.Rows * ds.Columns, dtype=np.uint16).reshape(ds.Rows, ds.Columns) % 4096
    drawn = np.zeros_like(words)
    drawn[2:5, 1:7] = 1 << 15
    ds.PixelData = (words | drawn).tobytes()
    ds.add_new(0x60000010, "US", ds.Rows)
    ds.add_new(0x60000011, "US", ds.Columns)
    ds.add_new(0x60000040, "CS", "G")
    ds.add_new(0x60000050, "SS", [1, 1])
    ds.add_new(0x60000100, "US", 16)
    ds.add_new(0x60000102, "US", 15)
    policies = to_folder(tmp_path / "policies", tmp_path / "archive")
    with house(home, policies) as made:
        assert made.ends(made.deliver(ds)) == [("research-archive", "held", "overlay_in_pixels")]
    with_stages({"hidden_pixels": {}})(policies)
    with house(home, policies) as made:
        ds.StudyInstanceUID = "1.2.3.4"
        ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = "1.2.3.5"
        assert made.ends(made.deliver(ds)) == [("research-archive", "sent", "")]
    (arrived,) = (tmp_path / "archive").rglob("*.dcm")
    after = pydicom.dcmread(arrived)
    np.testing.assert_array_equal(np.frombuffer(after.PixelData, np.uint16).reshape(words.shape), words)
    assert not [element.tag for element in after if element.tag.group == 0x6000]


def test_what_was_estimated_once_serves_the_next_round_too(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    estimate = HiddenPixels.estimate
    monkeypatch.setattr(HiddenPixels, "estimate", lambda *given: calls.append(1) or estimate(*given))
    policies = to_folder(tmp_path / "policies", tmp_path / "archive")
    with_stages({"hidden_pixels": {}})(policies)
    edit(policies, "research-basic", lambda body: body["gate"].update(not_assessed=[]))
    with house(home, policies) as made:
        key = made.deliver(*study())
        assert made.ends(key) == [("research-archive", "held", "not_assessed")]
        made.decide("rerun", made.job(key).job_key)
        made.settle()
        assert made.job(key).round == 2
        assert len(calls) == 1
        stored = [path for path in made.parts.home.estimates.rglob("*") if path.is_file()]
        assert stored
        assert all(path.parent.stat().st_mode & 0o077 == 0 for path in stored)
        assert not any(b"LEAK" in path.read_bytes() for path in stored)
