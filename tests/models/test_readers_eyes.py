"""Eye sets in the layouts of their owners: right labels and masks, and trees with something wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from models.cohorts import READERS
from models.cohorts.readers import LayoutError
from models.cohorts.readers.eyepacs import read_eyepacs
from models.cohorts.readers.refuge2 import read_refuge2


def picture(path: Path, value: int = 51, size: tuple[int, int] = (6, 4)) -> Path:
    """`size` is (columns, rows)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", size, value).save(path)
    return path


def test_eyepacs(tmp_path: Path) -> None:
    (tmp_path / "trainLabels.csv").write_text("image,level\n10_left,0\n10_right,4\n13_left,\n")
    for name in ("10_left.jpeg", "10_right.jpeg", "13_left.png"):
        picture(tmp_path / "train" / name)
    left, right, unknown = READERS["eyepacs"](tmp_path)
    assert (left.subject, left.session) == (right.subject, right.session) == ("10", "1")
    assert left.attributes == {"eye": "L", "split": "train", "finding": "No DR"}
    assert right.attributes == {"eye": "R", "split": "train", "finding": "Proliferative DR"}
    assert unknown.attributes == {"eye": "L", "split": "train"}
    Image.new("RGB", (6, 4), (255, 51, 0)).save(tmp_path / "train/13_left.png")
    assert unknown.load_colour is not None
    assert unknown.load_colour().shape == (4, 6, 3)
    assert unknown.load_colour()[0, 0].tolist() == pytest.approx([1, 0.2, 0])
    assert float(unknown.load()[0, 0]) == pytest.approx(0.299 + 0.587 * 0.2, abs=1 / 255)  # ITU-R 601
    (tmp_path / "retinopathy_solution.csv").write_text("image,level,Usage\n1_left,2,Public\n")
    with pytest.raises(LayoutError, match=r"test/1_left\.jpeg not found"):
        read_eyepacs(tmp_path)
    assert len(read_eyepacs(tmp_path, allow_missing=True)) == 3
    (tmp_path / "trainLabels.csv").write_text("image,level\nleft_10,0\n")
    with pytest.raises(LayoutError, match=r"trainLabels\.csv, line 2"):
        read_eyepacs(tmp_path)


def mask(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    values = np.full((8, 8), 255, np.uint8)
    values[2:6, 2:6], values[3:5, 3:5] = 128, 0
    Image.fromarray(values).save(path)


def refuge_tree(folder: Path) -> Path:
    train, val = folder / "Train/REFUGE1-train", folder / "Train/REFUGE1-val"
    for group, name in (("Glaucoma", "g0001"), ("Non-Glaucoma", "n0001")):
        picture(train / "Training400" / group / f"{name}.jpg", size=(8, 8))
        mask(train / "Disc_Cup_Masks" / group / f"{name}.bmp")
    picture(val / "REFUGE-Validation400/V0001.jpg")
    mask(val / "Disc_Cup_Masks/V0001.bmp")
    (val / "Fovea_locations.csv").write_text("ID,ImgName,Fovea_X,Fovea_Y,Glaucoma Label\n1,V0001.jpg,1,2,1\n")
    picture(folder / "Validation/Images/V0001.jpg")
    mask(folder / "Validation/Disc_Masks/V0001.png")
    (folder / "Validation/glaucoma.csv").write_text("FileName,Glaucoma Risk\nV0001.jpg,0\n")
    picture(folder / "Test/refuge2-test/T0001.jpg")
    mask(folder / "Test/Disc_Mask/T0001.png")
    (folder / "Test/task1.csv").write_text("T0001.jpg,1\nT0002.jpg,0\n")
    (folder / "Test/refuge2-test/Thumbs.db").write_bytes(b"extra")
    return folder


def test_refuge2(tmp_path: Path) -> None:
    cohort = read_refuge2(refuge_tree(tmp_path))
    assert {scan.name: scan.attributes["finding"] for scan in cohort} == {
        "train/g0001.jpg": "glaucoma",
        "train/n0001.jpg": "none",
        "validation-2018/V0001.jpg": "glaucoma",
        "validation/V0001.jpg": "none",
        "test/T0001.jpg": "glaucoma",
    }
    assert len(cohort.subjects) == 5  # two pictures of one name are two people
    first = cohort.scans[0]
    assert (first.masks["disc"]().sum(), first.masks["cup"]().sum()) == (16, 4)
    assert not (first.masks["cup"]() & ~first.masks["disc"]()).any()


def test_refuge_of_2018(tmp_path: Path) -> None:
    picture(tmp_path / "Training400/Glaucoma/g0001.jpg")
    mask(tmp_path / "Annotation-Training400/Disc_Cup_Masks/Glaucoma/g0001.bmp")
    (scan,) = read_refuge2(tmp_path)
    assert scan.attributes == {"split": "train", "finding": "glaucoma"}
    assert scan.masks["cup"]().sum() == 4


def test_refuge2_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(LayoutError, match="no pictures in Train"):
        read_refuge2(tmp_path)
    folder = refuge_tree(tmp_path)
    wrong = folder / "Train/REFUGE1-train/Disc_Cup_Masks/Glaucoma/g0001.bmp"
    picture(wrong, value=2, size=(8, 8))  # another coding: 0 background, 1 disc, 2 cup
    with pytest.raises(LayoutError, match="no mask of REFUGE"):
        read_refuge2(folder).scans[0].masks["disc"]()
    wrong.unlink()
    with pytest.raises(LayoutError, match=r"Glaucoma/g0001\.bmp not found"):
        read_refuge2(folder)
    assert dict(read_refuge2(folder, allow_missing=True).scans[0].masks) == {}
