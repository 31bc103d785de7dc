"""Chest sets in the layouts of their owners: right labels, and trees with something wrong."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from models.cohorts import READERS
from models.cohorts.readers import LayoutError
from models.cohorts.readers.chestx_det import read_chestx_det
from models.cohorts.readers.chexpert import LABELS, read_chexpert
from models.cohorts.readers.mimic_cxr import read_mimic_cxr


def picture(path: Path, value: int = 51, size: tuple[int, int] = (6, 4)) -> Path:
    """`size` is (columns, rows)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", size, value).save(path)
    return path


def packed(path: Path, text: str) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.write(text)


HEAD = "Path,Sex,Age,Frontal/Lateral,AP/PA," + ",".join(LABELS) + "\n"


def row(path: str, sex: str, age: str, frontal: str, view: str, **labels: str) -> str:
    cells = [labels.get(name.replace(" ", "_"), "") for name in LABELS]
    return ",".join([path, sex, age, frontal, view, *cells]) + "\n"


def chexpert_tree(folder: Path) -> Path:
    base = "CheXpert-v1.0-small/train/"
    text = HEAD + row(base + "patient00001/study1/view1_frontal.jpg", "Female", "68", "Frontal", "AP", No_Finding="1.0")
    text += row(
        base + "patient00002/study2/view1_frontal.jpg",
        "Male",
        "87",
        "Frontal",
        "PA",
        Cardiomegaly="-1.0",
        Lung_Opacity="1.0",
        Edema="0.0",
        Fracture="1.0",
    )
    text += row(base + "patient00002/study2/view2_lateral.jpg", "Unknown", "", "Lateral", "", Pneumonia="0.0")
    text += row(base + "patient00003/study1/view1_frontal.jpg", "Male", "0", "Frontal", "")
    packed(folder / "train.csv.gz", text)
    for name in ("00001/study1/view1_frontal", "00002/study2/view1_frontal", "00002/study2/view2_lateral"):
        picture(folder / f"train/patient{name}.jpg")
    picture(folder / "train/patient00003/study1/view1_frontal.jpg")
    picture(folder / "train/patient00009/study1/view1_frontal.jpg")  # in no table: left alone
    return folder


def test_chexpert(tmp_path: Path) -> None:
    first, second, lateral, bare = read_chexpert(chexpert_tree(tmp_path))
    assert first.load() == pytest.approx(np.full((4, 6), 0.2), abs=0.01)
    assert (first.subject, first.session, first.day) == ("patient00001", "study1", None)
    assert first.attributes == {
        "sex": "F",
        "age_band": "60-79",
        "split": "train",
        "finding": "No Finding",
        "view": "AP",
    }
    assert second.attributes["finding"] == "Lung Opacity|Fracture"
    assert second.attributes["uncertain"] == "Cardiomegaly"
    assert lateral.attributes == {"split": "train", "finding": "No Finding", "view": "lateral"}
    assert bare.attributes == {"sex": "M", "age_band": "0-19", "split": "train"}  # no label at all is no finding


def test_chexpert_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match=r"no train\.csv"):
        read_chexpert(tmp_path)
    folder = chexpert_tree(tmp_path)
    (folder / "train/patient00001/study1/view1_frontal.jpg").unlink()
    with pytest.raises(LayoutError, match=r"train/patient00001/study1/view1_frontal\.jpg not found"):
        read_chexpert(folder)
    assert len(read_chexpert(folder, allow_missing=True)) == 3
    (folder / "train/patient00001/study1/view1_frontal.jpg").write_bytes(b"\xff\xd8\xff\xe0 half a picture")
    with pytest.raises(LayoutError, match=r"view1_frontal\.jpg cannot be read"):
        read_chexpert(folder).scans[0].load()
    (folder / "train.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(LayoutError, match=r"train\.csv\.gz cannot be read as a table"):
        read_chexpert(folder)
    (folder / "train.csv").write_text(HEAD + row("../../etc/passwd", "", "", "", ""))
    with pytest.raises(LayoutError, match="line 2"):
        read_chexpert(folder)


METADATA = (
    "dicom_id,subject_id,study_id,PerformedProcedureStepDescription,ViewPosition,Rows,Columns,StudyDate,StudyTime\n"
)


def mimic_tree(folder: Path) -> Path:
    packed(
        folder / "mimic-cxr-2.0.0-metadata.csv.gz",
        METADATA
        + '02aa-1,10000032,50414267,"CHEST (PA AND LAT)",PA,3056,2544,21800506,213014.531\n'
        + "02aa-2,10000032,53189527,CHEST,,3056,2544,21800626,165500.312\n"
        + "02aa-3,10000764,57375967,CHEST,AP,3056,2544,,\n",
    )
    head = "subject_id,study_id," + ",".join(sorted(LABELS)) + "\n"
    cells = {"Edema": "1.0", "Pneumonia": "-1.0", "Fracture": "0.0"}
    labels = ",".join(cells.get(name, "") for name in sorted(LABELS))
    packed(folder / "mimic-cxr-2.0.0-chexpert.csv.gz", f"{head}10000032,50414267,{labels}\n")
    (folder / "mimic-cxr-2.0.0-split.csv").write_text(
        "dicom_id,study_id,subject_id,split\n02aa-1,50414267,10000032,train\n02aa-2,53189527,10000032,test\n"
    )
    for place in ("p10000032/s50414267/02aa-1", "p10000032/s53189527/02aa-2", "p10000764/s57375967/02aa-3"):
        picture(folder / f"files/p10/{place}.jpg")
    return folder


def test_mimic_cxr(tmp_path: Path) -> None:
    folder = mimic_tree(tmp_path)
    first, second, third = read_mimic_cxr(folder)
    assert (first.subject, first.session, first.day, first.name) == ("p10000032", "s50414267", 0, "02aa-1")
    assert first.attributes == {"finding": "Edema", "uncertain": "Pneumonia", "view": "PA", "split": "train"}
    assert (second.day, second.attributes) == (51, {"split": "test"})  # 6 May to 26 June
    assert (third.day, third.attributes) == (None, {"view": "AP"})
    (folder / "patients.csv").write_text(
        "subject_id,gender,anchor_age,anchor_year,anchor_year_group,dod\n10000032,F,52,2180,2014 - 2016,\n"
    )
    first, _, third = read_mimic_cxr(folder)
    assert (first.attributes["sex"], first.attributes["age_band"]) == ("F", "40-59")
    assert "sex" not in third.attributes


def test_mimic_cxr_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match="no mimic-cxr"):
        read_mimic_cxr(tmp_path)
    folder = mimic_tree(tmp_path)
    (folder / "files/p10/p10000764/s57375967/02aa-3.jpg").unlink()
    with pytest.raises(LayoutError, match=r"files/p10/p10000764/s57375967/02aa-3\.jpg not found"):
        read_mimic_cxr(folder)
    assert len(read_mimic_cxr(folder, allow_missing=True)) == 2
    packed(folder / "mimic-cxr-2.0.0-metadata.csv.gz", METADATA + "../../x,10000032,1,,,,,,\n")
    with pytest.raises(LayoutError, match="line 2"):
        read_mimic_cxr(folder)


def det_tree(folder: Path) -> Path:
    square = [[1, 1], [4, 1], [4, 3], [1, 3]]
    films = [
        {
            "file_name": "00000042_006.png",
            "syms": ["Pleural Thickening", "Nodule", "Nodule"],
            "boxes": [[1, 1, 4, 3]] * 3,
            "polygons": [square, [[0, 0], [0, 0]], [[7, 7], [9, 7], [9, 9], [7, 9]]],
        },
        {"file_name": "36204.png", "syms": [], "boxes": [], "polygons": []},
    ]
    (folder / "ChestX_Det_train.json").write_text(json.dumps(films))
    for film in films:
        picture(folder / "train_data" / str(film["file_name"]), size=(12, 10))
    return folder


def test_chestx_det(tmp_path: Path) -> None:
    first, second = read_chestx_det(det_tree(tmp_path))
    assert (first.subject, first.session) == ("00000042", "006")
    assert first.attributes == {"finding": "Pleural Thickening|Nodule", "split": "train"}
    thick, nodule = first.masks["pleural_thickening"](), first.masks["nodule"]()
    expected = np.zeros((10, 12), bool)
    expected[1:4, 1:5] = True  # rows are y; the outline counts
    np.testing.assert_array_equal(thick, expected)
    assert np.argwhere(nodule).min(0).tolist() == [7, 7]
    assert (second.subject, second.attributes["finding"], dict(second.masks)) == ("36204", "No Finding", {})


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[{}]", "entry 1"),
        ('[{"file_name": "a.png", "syms": ["Mass"], "polygons": []}]', "entry 1"),
        ('[{"file_name": "../a.png", "syms": [], "polygons": []}]', "entry 1"),
        ('[{"file_name": "a.png", "syms": ["Mass"], "polygons": [[["x", 1]]]}]', "entry 1"),
        ('[{"file_name": "a.png", "syms": [], "polygons": []}]', r"train_data/a\.png not found"),
        ("{", "cannot be read as JSON"),
        ("{}", "not a list"),
    ],
)
def test_chestx_det_says_what_is_wrong(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "ChestX_Det_train.json").write_text(content)
    with pytest.raises(LayoutError, match=said):
        read_chestx_det(tmp_path)


def test_chestx_det_without_tables(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match=r"no ChestX_Det_train\.json"):
        read_chestx_det(tmp_path)


@pytest.mark.parametrize(
    "name", ["oasis-2", "brats", "mimic-cxr", "chexpert", "chestx-det", "eyepacs", "refuge2", "miriad"]
)
def test_no_folder_at_all_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(LayoutError):
        READERS[name](tmp_path / "nowhere")


@pytest.mark.shared
def test_the_shared_sets_have_the_people_of_their_manifests(shared_data: Path) -> None:
    found = {
        name: (len(cohort), len(cohort.subjects))
        for name, folder in (("nih64", "cxr"), ("hannover", "cxr"), ("ridb", "fundus"))
        for cohort in [READERS[name](shared_data / folder)]
    }
    assert found == {"nih64": (810, 201), "hannover": (174, 51), "ridb": (75, 15)}
