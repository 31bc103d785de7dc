"""Brain sets in the layouts of their owners: labels, masks, and trees with something wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from models.cohorts import READERS, Cohort
from models.cohorts.readers import LayoutError
from models.cohorts.readers.brats import read_brats
from models.cohorts.readers.miriad import read_miriad
from models.cohorts.readers.oasis2 import read_oasis2

nib = pytest.importorskip("nibabel")


def stored(path: Path, values: np.ndarray, axcodes: str = "RAS") -> Path:
    """A NIfTI file of 1 mm, "RAS" or "LPS"."""
    path.parent.mkdir(parents=True, exist_ok=True)
    nib.save(nib.Nifti1Image(values, np.diag([-1, -1, 1, 1]) if axcodes == "LPS" else np.eye(4)), path)
    return path


def oasis_tree(folder: Path, table: str = "oasis_longitudinal_demographics.csv") -> Path:
    rows = [
        "Subject ID,MRI ID,Group,Visit,MR Delay,M/F,Hand,Age,EDUC,SES,MMSE,CDR,eTIV,nWBV,ASF",
        "OAS2_0001,OAS2_0001_MR1,Nondemented,1,0,M,R,87,14,2,27,0,1987,0.696,0.883",
        "OAS2_0001,OAS2_0001_MR2,Converted,2,457,M,R,88,14,2,30,,2004,0.681,0.876",
    ]
    (folder / table).write_text("\n".join(rows) + "\n", encoding="utf-8")
    for part, visit, count in (("OAS2_RAW_PART1", "OAS2_0001_MR1", 2), ("OAS2_RAW_PART2", "OAS2_0001_MR2", 1)):
        raw = folder / part / visit / "RAW"
        raw.mkdir(parents=True)
        for k in range(1, count + 1):
            values = np.zeros((6, 7, 8, 1), np.int16)
            values[5, 6, 7, 0] = 9
            image = nib.Spm2AnalyzeImage(values, None)
            image.header.set_zooms((1.0, 1.0, 1.25, 1.0))
            nib.save(image, raw / f"mpr-{k}.nifti.img")
        (raw / "._mpr-1.nifti.hdr").write_bytes(b"what a Mac leaves")
    return folder


def test_oasis_2(tmp_path: Path) -> None:
    cohort = read_oasis2(oasis_tree(tmp_path))
    assert [(s.name, s.subject, s.session, s.day) for s in cohort] == [
        ("OAS2_0001_MR1_mpr-1", "OAS2_0001", "MR1", 0),
        ("OAS2_0001_MR1_mpr-2", "OAS2_0001", "MR1", 0),
        ("OAS2_0001_MR2_mpr-1", "OAS2_0001", "MR2", 457),
    ]
    first, _, last = cohort
    assert first.attributes == {
        "sex": "M",
        "age_band": "80-99",
        "sequence": "T1",
        "diagnosis": "Nondemented",
        "cdr": "0",
    }
    assert "cdr" not in last.attributes  # an empty cell is no label
    assert first.spacing_mm == (1.0, 1.0, 1.25)
    # Sagittal on disk: to the front, up, to the left. The last voxel is top, front, left.
    assert np.argwhere(first.load()).tolist() == [[6, 0, 7]]
    assert first.load().shape == (7, 6, 8)


def test_oasis_2_believes_a_header_that_knows_its_orientation(tmp_path: Path) -> None:
    folder = oasis_tree(tmp_path)
    raw = folder / "OAS2_RAW_PART1" / "OAS2_0001_MR1" / "RAW"
    values = np.zeros((4, 5, 6), np.int16)
    values[0, 0, 0] = 1
    pair = nib.Nifti1Pair(values, np.eye(4))  # to the right, front, up
    pair.header["sform_code"] = 1
    nib.save(pair, raw / "mpr-1.nifti.img")
    assert np.argwhere(read_oasis2(folder).scans[0].load()).tolist() == [[0, 4, 3]]


def test_oasis_2_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match="no oasis_longitudinal"):
        read_oasis2(tmp_path)
    folder = oasis_tree(tmp_path)
    table = folder / "oasis_longitudinal_demographics.csv"
    good = table.read_text()
    table.write_text(good + "OAS2_0002,OAS2_0002_MR1,Demented,1,0,F,R,75,12,,23,0.5,1678,0.736,1.046\n")
    with pytest.raises(LayoutError, match=r"OAS2_0002_MR1/RAW/mpr-1\.nifti\.hdr not found"):
        read_oasis2(folder)
    assert len(read_oasis2(folder, allow_missing=True)) == 3
    table.write_text(good.replace("MR Delay", "Delay"))
    with pytest.raises(LayoutError, match="no column MR Delay"):
        read_oasis2(folder)
    table.rename(folder / "oasis_longitudinal_demographics.xls")
    (folder / "oasis_longitudinal_demographics.xls").rename(folder / "oasis_longitudinal_demographics.xlsx")
    with pytest.raises(LayoutError, match=r"save it as .*\.csv|cannot be read"):  # with openpyxl the latter
        read_oasis2(folder)


def test_oasis_2_without_its_voxels(tmp_path: Path) -> None:
    folder = oasis_tree(tmp_path)
    (folder / "OAS2_RAW_PART2" / "OAS2_0001_MR2" / "RAW" / "mpr-1.nifti.img").unlink()
    with pytest.raises(LayoutError, match=r"mpr-1\.nifti\.hdr cannot be read"):
        [scan.load() for scan in read_oasis2(folder)]


def test_miriad(tmp_path: Path) -> None:
    blank = np.ones((2, 2, 2), np.float32)
    for name in ("miriad_188_AD_M_01_MR_1.nii", "a/miriad_188_AD_M_01_MR_2.nii.gz", "b/miriad_199_HC_F_10_MR_1.nii"):
        stored(tmp_path / name, blank)
    (tmp_path / "miriad_notes.nii.txt").write_text("no scan")
    stored(tmp_path / "other.nii", blank)
    assert [
        (s.name, s.subject, s.session, s.attributes["sex"], s.attributes["diagnosis"]) for s in read_miriad(tmp_path)
    ] == [
        ("miriad_188_AD_M_01_MR_2", "miriad_188", "01", "M", "Alzheimer's disease"),
        ("miriad_199_HC_F_10_MR_1", "miriad_199", "10", "F", "healthy control"),
        ("miriad_188_AD_M_01_MR_1", "miriad_188", "01", "M", "Alzheimer's disease"),
    ]
    stored(tmp_path / "miriad_199_HC_M_02_MR_1.nii", blank)
    with pytest.raises(LayoutError, match="another group or sex"):
        read_miriad(tmp_path)
    with pytest.raises(LayoutError, match=r"no file like miriad_188_AD_M_01_MR_1\.nii"):
        read_miriad(tmp_path / "nothing")


def brats_case(folder: Path, case: str, suffix: str, seg: str | None) -> None:
    values = np.zeros((3, 3, 3), np.float32)
    values[1, 1, 1] = 100
    for sequence in ("t1", "t1ce", "t2", "flair"):
        stored(folder / case / f"{case}_{sequence}{suffix}", values, "LPS")
    if seg:
        labels = np.zeros((3, 3, 3), np.int16)
        labels[0, 0, 0], labels[0, 0, 1], labels[0, 0, 2] = 1, 2, 4
        stored(folder / case / f"{seg}{suffix}", labels, "LPS")


def brats_2020(folder: Path) -> Path:
    inside = folder / "MICCAI_BraTS2020_TrainingData"
    brats_case(inside, "BraTS20_Training_001", ".nii", "BraTS20_Training_001_seg")
    brats_case(inside, "BraTS20_Training_355", ".nii", "W39_1998.09.19_Segm")
    brats_case(folder / "MICCAI_BraTS2020_ValidationData", "BraTS20_Validation_001", ".nii", None)
    (inside / "name_mapping.csv").write_text(
        "Grade,BraTS_2017_subject_ID,BraTS_2018_subject_ID,TCGA_TCIA_subject_ID,BraTS_2019_subject_ID,BraTS_2020_subject_ID\n"
        "HGG,Brats17_CBICA_AAB_1,Brats18_CBICA_AAB_1,NA,BraTS19_CBICA_AAB_1,BraTS20_Training_001\n"
        "LGG,NA,NA,NA,NA,BraTS20_Training_355\n"
    )
    (inside / "survival_info.csv").write_text(
        "Brats20ID,Age,Survival_days,Extent_of_Resection\nBraTS20_Training_001,60.46,289,GTR\n"
    )
    return folder


def test_brats_2020(tmp_path: Path) -> None:
    cohort = read_brats(brats_2020(tmp_path))
    assert len(cohort) == 12
    assert cohort.subjects == ("BraTS20_Training_001", "BraTS20_Training_355", "BraTS20_Validation_001")
    first = cohort.scans[0]
    assert (first.name, first.session, first.site) == ("BraTS20_Training_001_t1", "1", "CBICA")
    assert first.attributes == {"sequence": "T1", "diagnosis": "glioma", "grade": "HGG", "age_band": "60-79"}
    counts = {name: int(part().sum()) for name, part in first.masks.items()}
    assert counts == {"tumour": 3, "necrosis": 1, "oedema": 1, "enhancing": 1}
    assert np.argwhere(first.masks["oedema"]()).tolist() == [[1, 0, 0]]  # (x, y, z) = (0, 0, 1) is slice 1
    odd = cohort.of(["BraTS20_Training_355"]).scans[0]
    assert odd.masks["tumour"]().sum() == 3
    assert (odd.site, odd.attributes["grade"]) == ("", "LGG")
    assert not cohort.of(["BraTS20_Validation_001"]).scans[0].masks


def test_brats_2021(tmp_path: Path) -> None:
    brats_case(tmp_path / "data", "BraTS2021_00000", ".nii.gz", "BraTS2021_00000_seg")
    cohort: Cohort = READERS["brats"](tmp_path)
    assert [s.attributes["sequence"] for s in cohort] == ["T1", "T1ce", "T2", "FLAIR"]
    assert cohort.scans[0].masks["enhancing"]().sum() == 1


def test_brats_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match="no folder like BraTS20_Training_001"):
        read_brats(tmp_path)
    folder = brats_2020(tmp_path)
    gone = folder / "MICCAI_BraTS2020_TrainingData" / "BraTS20_Training_001" / "BraTS20_Training_001_flair.nii"
    gone.unlink()
    with pytest.raises(LayoutError, match=r"BraTS20_Training_001_flair\.nii not found"):
        read_brats(folder)
    assert len(read_brats(folder, allow_missing=True)) == 11
    gone.write_bytes(b"half a download")
    with pytest.raises(LayoutError, match=r"BraTS20_Training_001_flair\.nii cannot be read"):
        read_brats(folder)
