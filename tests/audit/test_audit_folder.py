"""`audit DIR`: DICOM in, the report out; nobody's name on the way, nothing embedded twice."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pydicom
import pytest
import yaml

from gateway.app.audit_folder import Keeping, Wish, card_folders, embed_folder
from gateway.cli import run
from gateway.embed import Embedder
from gateway.errors import UsageError
from gateway.learn import write_dicom
from gateway.settings import Home, load_settings
from models.cards import SHIPPED
from models.cohorts import synthetic_brains

PEOPLE = 6


@pytest.fixture(scope="module")
def brains(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("brains")
    write_dicom(synthetic_brains(people=PEOPLE, sessions=2, seed=3, difficulty="easy", spacing_mm=8.0), folder)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Home:
    assert run(["init", str(tmp_path / "home")]) == 0
    return Home(tmp_path / "home")


def ticks(_what: str, _done: int, _total: int) -> None:
    """Progress that nobody looks at."""


def test_a_folder_of_dicom_becomes_a_report_that_names_nobody(brains: Path, home: Home, tmp_path: Path) -> None:
    arguments = ["audit", str(brains), "--out", str(tmp_path / "report"), "--home", str(home.root), "--synthetic"]
    assert run([*arguments, "--card", "grey-similarity", "--replicates", "100", "--preparation", "raw"]) == 0
    report = json.loads((tmp_path / "report/audit.json").read_text())
    assert (report["people"], report["scans"]) == (PEOPLE, 2 * PEOPLE)
    assert list(report["encoders"]) == ["grey-similarity"]
    assert report["tables"]["linkage"][0]["rank1"]["rank1"] > 0.5
    assert report["tables"]["time_gap"]
    text = (tmp_path / "report/audit.json").read_text() + (tmp_path / "report/audit.html").read_text()
    assert "P0000" not in text
    assert "SYNTHETIC" not in text


def test_free_text_of_headers_never_reaches_a_report(
    brains: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A hospital's own objects: names and numbers stand in protocols, diagnoses, and where a sex should be."""
    shutil.copytree(brains, tmp_path / "hospital")
    files = sorted((tmp_path / "hospital").rglob("*.dcm"))
    for path in files:
        one = pydicom.dcmread(path)
        one.ManufacturerModelName, one.PatientSex = "Magnetom", f"MUELLER {one.PatientID}"
        one.ProtocolName = f"head MUELLER {one.PatientID}"
        one.AdmittingDiagnosesDescription = [f"Referral: MUELLER {one.PatientID}", "MUELLER: seen"]
        if path == files[0]:
            one.PatientID = ""
        one.save_as(path)
    arguments = ["audit", str(tmp_path / "hospital"), "--out", str(tmp_path / "report"), "--card", "grey-similarity"]
    assert run([*arguments, "--replicates", "100"]) == 0
    said = capsys.readouterr()
    assert "left out: 1 of the files or slices (no PatientID or StudyInstanceUID)" in said.out
    text = "".join((tmp_path / "report" / name).read_text() for name in ("audit.json", "audit.html"))
    for word in ("MUELLER", "Referral", "P0000"):
        assert word not in text + said.out + said.err


def test_a_card_means_the_same_as_at_the_gate_and_a_bad_or_old_one_is_told(
    brains: Path, home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    own = home.root / "models"
    own.mkdir(exist_ok=True)
    card = yaml.safe_load((SHIPPED.cards / "grey-similarity.yaml").read_text())
    (own / "grey-similarity.yaml").write_text(yaml.safe_dump({**card, "algorithm": "hog", "dimensions": 7}))
    keeping = Keeping(None, b"k" * 32)
    found = embed_folder(brains, Wish(("grey-similarity",)), keeping, card_folders(home), ticks)
    assert found.embeddings["grey-similarity"].shape[1] == card["dimensions"]
    (own / "old.yaml").write_text(yaml.safe_dump({**card, "name": "old", "valid_until": "2020-01-01"}))
    with pytest.raises(UsageError, match="valid until 2020-01-01"):
        embed_folder(brains, Wish(("old",)), keeping, card_folders(home), ticks)
    (own / "bad.yaml").write_text("name: [")
    assert run(["audit", str(brains), "--out", str(home.root / "r"), "--home", str(home.root)]) == 2
    assert "bad.yaml: not YAML" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(
    ("rows", "says"), [("P,L\nP,R\n", "1 rows of people who have a row already"), ("P\n", "more or fewer cells")]
)
def test_a_table_by_subject_that_says_two_things_is_refused(brains: Path, tmp_path: Path, rows: str, says: str) -> None:
    (tmp_path / "m.csv").write_text("subject,hand\n" + rows)
    wish = Wish(("grey-similarity",), metadata=tmp_path / "m.csv")
    with pytest.raises(UsageError, match=says):
        embed_folder(brains, wish, Keeping(None, b"k" * 32), card_folders(None), ticks)


def test_what_is_embedded_is_kept_sealed_and_not_embedded_again(
    brains: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping, wish = Keeping.of(home, load_settings(home.root)), Wish(("grey-similarity",), ("raw", "skull-stripped"))
    first = embed_folder(brains, wish, keeping, card_folders(home), ticks)
    assert sorted(first.embeddings) == ["grey-similarity", "grey-similarity, skull-stripped"]
    files = [path for path in (home.root / "embeddings").rglob("*") if path.is_file()]
    assert len(files) == 2 * 2 * PEOPLE
    vector = first.embeddings["grey-similarity"][0]
    assert not any(vector.tobytes()[:32] in path.read_bytes() for path in files)

    def never(*_: object) -> None:
        raise AssertionError("embedded twice")

    monkeypatch.setattr(Embedder, "embed", never)
    again = embed_folder(brains, wish, keeping, card_folders(home), ticks)
    assert again.columns == first.columns
    for name, array in first.embeddings.items():
        assert np.array_equal(again.embeddings[name], array)


def test_attributes_come_from_headers_and_from_a_table_by_subject(brains: Path, tmp_path: Path) -> None:
    cohort = synthetic_brains(people=PEOPLE, sessions=2, seed=3, difficulty="easy", spacing_mm=8.0)
    subjects = sorted({scan.subject for scan in cohort})
    table = tmp_path / "m.csv"
    table.write_text("subject,hand\n" + "".join(f"{one},{'LR'[i % 2]}\n" for i, one in enumerate(subjects)))
    keeping, cards = Keeping(None, b"k" * 32), ("grey-similarity",)
    found = embed_folder(brains, Wish(cards, metadata=table), keeping, card_folders(None), ticks)
    assert set(found.columns["hand"]) == {"L", "R"}
    assert set(found.attributes) >= {"sex", "hand"}
    assert found.people.count == PEOPLE
    table.write_text("subject,hand\n" + f"{subjects[0]},L\n")
    with pytest.raises(UsageError, match=f"lacks {PEOPLE - 1} of {PEOPLE} people"):
        embed_folder(brains, Wish(cards, metadata=table), keeping, card_folders(None), ticks)


@pytest.mark.parametrize(
    ("wish", "says"),
    [
        (Wish(("nobody",)), "no card is called nobody"),
        (Wish(("sam-med3d",)), "models import"),
        (Wish(("grey-similarity",), ("peeled",)), "no preparation is called peeled"),
        (Wish(reader="oasis-9"), "no reader is called oasis-9"),
    ],
)
def test_what_cannot_be_used_is_said(brains: Path, wish: Wish, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        embed_folder(brains, wish, Keeping(None, b"k" * 32), card_folders(None), ticks)


def test_a_folder_without_images_and_embeddings_without_metadata_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert run(["audit", str(tmp_path / "empty"), "--out", str(tmp_path / "r")]) == 2
    np.savez(tmp_path / "e.npz", scan=["a"], brain=np.zeros((1, 2)))
    assert run(["audit", str(tmp_path / "e.npz"), "--out", str(tmp_path / "r")]) == 2
