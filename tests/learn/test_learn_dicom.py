"""Cohorts as DICOM and back: values, geometry, masks and labels survive; nothing on disk names a person."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pydicom
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import UsageError
from gateway.learn import read_dicom, write_dicom
from gateway.learn.objects import CR, MR, OPHTHALMIC, SECONDARY
from gateway.learn.people import uid_of
from gateway.learn.segmentation import SEGMENTATION
from gateway.volumes import planes_of, sort
from models.cohorts import Cohort, Scan

LSB = 1 / 4095
SHAPE = (5, 7, 6)


def scan(number: int = 0, session: str = "V0", shape: tuple[int, ...] = SHAPE, **more: object) -> Scan:
    generator = np.random.default_rng([number, int(session[1:])])
    pixels = generator.random(shape, np.float32)
    lesion = np.zeros(shape, np.bool_)
    lesion[1:3, 2:5] = True
    known: dict[str, object] = {
        "day": 30.0 * int(session[1:]),
        "site": "site-2",
        "spacing_mm": (4.0, 1.25, 0.7)[-len(shape) :],
        "attributes": {
            "sex": "F",
            "age": "47",
            "age_band": "40-59",
            "sequence": "T1",
            "diagnosis": "glioma",
            "grade": "HGG",
        },
        "masks": {"lesion": lambda: lesion, "core": lambda: np.zeros(shape, np.bool_)},
    }
    return Scan(f"scan {number}/{session}", f"P{number}", session, lambda: pixels, **(known | more))  # type: ignore[arg-type]


def cohort(*scans: Scan) -> Cohort:
    return Cohort("made", scans, synthetic=True)


def back(made: Cohort, folder: Path, **more: object) -> dict[str, Scan]:
    write_dicom(made, folder, **more)  # type: ignore[arg-type]
    return {one.name: one for one in read_dicom(folder, synthetic=True)}


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def test_a_cohort_comes_back_as_it_was(tmp_path: Path) -> None:
    made = cohort(scan(0, "V0"), scan(0, "V1"), scan(1, "V0"))
    found = back(made, tmp_path)
    assert len(found) == 3
    for one in made:
        read = found[uid_of("made", one.subject, one.session, one.name)]
        assert np.abs(read.load() - one.load()).max() <= LSB / 2 + 1e-6
        assert read.spacing_mm == one.spacing_mm
        assert (read.subject, read.day, read.site) == (one.subject, one.day, one.site)
        assert {**one.attributes, "modality": "MR", "manufacturer": "SYNTHETIC site-2"} == read.attributes
        assert np.array_equal(read.masks["lesion"](), one.masks["lesion"]())
        assert not read.masks["core"]().any()
    assert len({one.session for one in found.values()}) == 3
    assert len({one.subject for one in found.values()}) == 2


@settings(max_examples=15, deadline=None)
@given(
    shape=st.tuples(st.integers(3, 6), st.integers(1, 9), st.integers(1, 9)),
    spacing=st.tuples(*[st.floats(0.3, 12, allow_nan=False)] * 3),
    seed=st.integers(0, 99),
)
def test_any_grid_comes_back(
    tmp_path_factory: pytest.TempPathFactory, shape: tuple[int, int, int], spacing: tuple[float, ...], seed: int
) -> None:
    generator = np.random.default_rng(seed)
    pixels, mask = generator.random(shape, np.float32), generator.random(shape) < 0.3
    one = Scan("a", "P0", "V0", lambda: pixels, spacing_mm=spacing, masks={"lesion": lambda: mask})
    (read,) = back(cohort(one), tmp_path_factory.mktemp("grid")).values()
    assert np.abs(read.load() - pixels).max() <= LSB / 2 + 1e-6
    assert read.spacing_mm == pytest.approx(spacing, rel=1e-6)
    if mask.any():
        assert np.array_equal(read.masks["lesion"](), mask)
    assert read.day == 0.0  # a study has a date; the first is day 0


def test_every_file_is_a_valid_object_that_says_synthetic(tmp_path: Path) -> None:
    write_dicom(cohort(scan()), tmp_path)
    kinds: Counter[str] = Counter()
    for path in files(tmp_path):
        dataset = pydicom.dcmread(path)
        kinds[dataset.SOPClassUID] += 1
        assert dataset.file_meta.MediaStorageSOPInstanceUID == dataset.SOPInstanceUID
        assert str(dataset.PatientName) == "SYNTHETIC^P0"
        assert (dataset.PatientID, dataset.PatientSex, dataset.PatientAge) == ("P0", "F", "047Y")
        born, seen = (int(str(value)[:4]) for value in (dataset.PatientBirthDate, dataset.StudyDate))
        assert 46 <= seen - born <= 48
        assert dataset.InstitutionName == "site-2"
        assert all(len(str(uid)) <= 64 for uid in (dataset.SOPInstanceUID, dataset.SeriesInstanceUID))
        assert dataset.pixel_array.size
    assert kinds == {MR: 5, SEGMENTATION: 1}


def test_slices_form_one_grid_from_feet_to_head(tmp_path: Path) -> None:
    """PS3.3 C.7.6.2: rows to the back, columns to the left, positions upward."""
    write_dicom(cohort(scan()), tmp_path)
    images = [pydicom.dcmread(path) for path in files(tmp_path)]
    planes = [plane for at, one in enumerate(images) if one.Modality == "MR" for plane in planes_of(one, at)]
    (stack,), strays = sort(planes)
    assert not strays
    assert stack.spacing_mm == pytest.approx((0.7, 1.25, 4.0))
    assert np.allclose(stack.affine[:3, :3], np.diag((0.7, 1.25, 4.0)))
    assert np.allclose(stack.affine @ [2.5, 3, 2, 1], [0, 0, 0, 1])  # the middle


def test_no_path_names_a_person(tmp_path: Path) -> None:
    write_dicom(cohort(scan(3)), tmp_path / "out")
    for path in files(tmp_path / "out"):
        assert set(str(path.relative_to(tmp_path / "out"))) <= set("0123456789./dcm")


def test_written_twice_a_cohort_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_dicom(cohort(scan(0), scan(1)), tmp_path / name)
    a, b = (
        {path.relative_to(tmp_path / name): path.read_bytes() for path in files(tmp_path / name)} for name in ("a", "b")
    )
    assert a == b


def test_an_interrupted_run_goes_on_and_another_cohort_does_not_mix_in(tmp_path: Path) -> None:
    made = cohort(scan(0), scan(1))
    whole = write_dicom(made, tmp_path / "whole")

    def stop(done: int, _total: int) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_dicom(made, tmp_path / "out", tick=stop)
    with pytest.raises(UsageError, match="something else"):
        write_dicom(made, tmp_path / "out", made_by="other parameters")
    with pytest.raises(UsageError, match="something else"):
        write_dicom(cohort(scan(0)), tmp_path / "out")
    assert write_dicom(made, tmp_path / "out") == whole
    assert [path.name for path in files(tmp_path / "out")] == [path.name for path in files(tmp_path / "whole")]
    with pytest.raises(UsageError, match="empty folder"):
        write_dicom(made, tmp_path / "out")


def test_films_and_photographs_come_back(tmp_path: Path) -> None:
    film = scan(0, shape=(9, 8), attributes={"sex": "M", "view": "PA", "finding": "mass"})
    eye = scan(1, shape=(9, 7), attributes={"sex": "F", "eye": "left"}, spacing_mm=None)
    found = back(cohort(film, eye), tmp_path)
    read = found[uid_of("made", film.subject, film.session, film.name)]
    assert np.abs(read.load() - film.load()).max() <= LSB / 2 + 1e-6
    assert (read.attributes["view"], read.attributes["finding"], read.attributes["modality"]) == ("PA", "mass", "CR")
    assert read.spacing_mm == film.spacing_mm
    assert np.array_equal(read.masks["lesion"](), film.masks["lesion"]())
    read = found[uid_of("made", eye.subject, eye.session, eye.name)]
    assert np.abs(read.load() - eye.load()).max() <= 0.5 / 255 + 1e-6
    assert (read.attributes["eye"], read.attributes["modality"], read.spacing_mm) == ("left", "OP", None)
    kinds = {pydicom.dcmread(path).SOPClassUID for path in files(tmp_path)}
    assert kinds == {CR, OPHTHALMIC, SEGMENTATION}


def test_a_photograph_in_colour_comes_back_in_colour_and_in_grey(tmp_path: Path) -> None:
    """PS3.3 A.41: RGB by pixel, without the Presentation LUT Shape of grey; the red of one place is its red."""
    colour = np.random.default_rng(4).random((9, 7, 3), np.float32)
    luma = colour @ np.array([0.299, 0.587, 0.114], np.float32)  # ITU-R 601
    eye = Scan("a", "P", "V0", lambda: luma, attributes={"eye": "R"}, load_colour=lambda: colour)
    found = back(cohort(eye, scan(1, shape=(9, 7), attributes={"eye": "L"}, masks={})), tmp_path)
    read, grey = (found[uid_of("made", *one)] for one in (("P", "V0", "a"), ("P1", "V0", "scan 1/V0")))
    assert read.load_colour is not None
    assert np.abs(read.load_colour() - colour).max() <= 0.5 / 255 + 1e-6
    assert np.abs(read.load() - luma).max() <= 1.5 / 255
    assert grey.load_colour is None
    (written,) = (one for one in map(pydicom.dcmread, files(tmp_path)) if one.ImageLaterality == "R")
    assert (written.PhotometricInterpretation, written.PlanarConfiguration, written.BitsStored) == ("RGB", 0, 8)
    assert "PresentationLUTShape" not in written
    assert written.pixel_array[2, 3, 0] == round(float(colour[2, 3, 0]) * 255)


def test_an_eye_that_nobody_names_is_a_secondary_capture(tmp_path: Path) -> None:
    """Image Laterality is required of an ophthalmic photograph (PS3.3 C.8.17.5)."""
    picture = scan(shape=(4, 5), attributes={"sex": "F"}, masks={})
    write_dicom(cohort(picture), tmp_path, modality="OP")
    (path,) = files(tmp_path)
    assert (pydicom.dcmread(path).SOPClassUID, pydicom.dcmread(path).Modality) == (SECONDARY, "OP")
    (read,) = read_dicom(tmp_path)
    assert np.abs(read.load() - picture.load()).max() <= 0.5 / 255 + 1e-6
    assert "eye" not in read.attributes


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="spacing"):
        write_dicom(cohort(scan(spacing_mm=None)), tmp_path / "a")
    with pytest.raises(ValueError, match="volume"):
        write_dicom(cohort(scan()), tmp_path / "b", modality="CR")
    with pytest.raises(ValueError, match="picture"):
        write_dicom(cohort(scan(shape=(4, 4))), tmp_path / "c", modality="MR")
    with pytest.raises(ValueError, match="modality"):
        write_dicom(cohort(scan()), tmp_path / "d", modality="US")


def test_labels_of_any_text_become_valid_and_people_are_never_cut(tmp_path: Path) -> None:
    odd = {"finding": "a\\b \x00" + "é" * 99, "view": "left-ish!", "sex": "unknown"}
    one = scan(shape=(4, 4), attributes=odd, site="Süd\\Nord\n", masks={})
    write_dicom(cohort(one), tmp_path / "a")
    (read,) = read_dicom(tmp_path / "a")
    assert read.attributes["finding"] == ("a b  " + "é" * 99)[: 64 - len("finding: ")].strip()
    assert read.site == "Süd Nord"
    assert "view" not in read.attributes
    assert "sex" not in read.attributes
    for subject in ("x" * 65, "a\\b", " a", ""):
        with pytest.raises(ValueError, match="subject"):
            write_dicom(cohort(replace(one, subject=subject)), tmp_path / f"b{len(subject)}{subject[:1] == 'a'}")
    write_dicom(cohort(replace(one, subject="A^B=C")), tmp_path / "c")
    (path,) = files(tmp_path / "c")
    assert str(pydicom.dcmread(path).PatientName) == "SYNTHETIC^A-B-C"
    assert read_dicom(tmp_path / "c").subjects == ("A^B=C",)


def test_people_may_be_named_by_a_pseudonym(tmp_path: Path) -> None:
    write_dicom(cohort(scan(0), scan(1)), tmp_path)
    found = read_dicom(tmp_path, pseudonym=lambda identifier: f"X{identifier[1:]}")
    assert found.subjects == ("X0", "X1")
