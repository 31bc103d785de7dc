"""What `bench.header` and `bench.midib` stand on: their files, their policy, their ratios."""

from __future__ import annotations

import statistics
from pathlib import Path

import pydicom
import pytest

from bench import header
from bench.deid_peers import ours
from bench.header_corpus import elements_each, write_large, write_mixed

POLICY = Path(header.__file__).with_name("midib.yaml")


def test_large_objects_are_ct_and_mr_of_the_usual_size_with_private_blocks_and_sequences(tmp_path: Path) -> None:
    write_large(tmp_path / "files", 40)
    images = [pydicom.dcmread(path) for path in sorted((tmp_path / "files").iterdir())]
    assert len(images) == 40
    assert {image.Modality for image in images} <= {"CT", "MR"}
    assert statistics.mean(path.stat().st_size for path in (tmp_path / "files").iterdir()) == pytest.approx(
        350e3, rel=0.02
    )
    assert 250 <= elements_each(tmp_path / "files") <= 340
    assert all(len(image.ReferencedImageSequence) >= 12 for image in images)
    assert all(any(element.tag.is_private for element in image) for image in images)


def test_objects_of_a_series_say_the_same_where_asked_and_differ_elsewhere(tmp_path: Path) -> None:
    comments = {}
    for differ in (True, False):
        write_large(tmp_path / str(differ), 20, texts_differ=differ)
        images = [pydicom.dcmread(path) for path in sorted((tmp_path / str(differ)).iterdir())]
        comments[differ] = {(image.SeriesInstanceUID, str(image.get("ImageComments", ""))) for image in images}
    assert len(comments[False]) == len({series for series, _ in comments[False]})
    assert len(comments[True]) > 2 * len(comments[False])


def test_test_files_of_pydicom_are_images_with_a_patient(tmp_path: Path) -> None:
    assert write_mixed(tmp_path / "files") > 30
    for path in (tmp_path / "files").iterdir():
        assert pydicom.dcmread(path, stop_before_pixels=True).PatientID


def test_an_option_that_cannot_be_carried_out_is_left_off_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, none = ours.header_policy(POLICY)
    assert none == []
    assert "retain-safe-private" in whole.options
    monkeypatch.setattr(ours, "CARRIED_OUT", ours.CARRIED_OUT - {"retain-safe-private"})
    reduced, missing = ours.header_policy(POLICY)
    assert missing == ["retain-safe-private"]
    assert reduced.options == whole.options - {"retain-safe-private"}


def test_our_worker_cleans_a_folder_and_counts_what_it_cannot_clean(tmp_path: Path) -> None:
    write_large(tmp_path / "files", 3)
    (tmp_path / "files" / "9.dcm").write_bytes(b"no DICOM")
    policy, _ = ours.header_policy(POLICY)
    figures = ours.clean_folder(tmp_path / "files", tmp_path / "out", policy)
    assert (figures["files"], figures["failed"]) == (4, 1)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["0000.dcm", "0001.dcm", "0002.dcm"]


def test_a_ratio_is_the_median_of_the_rounds_ratios() -> None:
    mine = header.Tool("gateway", lambda *_: (1, 1, 0), files_per_s=[10.0, 20.0, 30.0])
    other = header.Tool("plain copy", lambda *_: (1, 1, 0), files_per_s=[40.0, 20.0, 15.0])
    assert header.ratios([mine, other], "gateway") == {"plain copy": 1.0}
