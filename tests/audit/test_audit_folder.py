"""`audit DIR`: DICOM in, the report out; nobody's name on the way, nothing embedded twice."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
import yaml

from gateway.app import audit_folder
from gateway.app.audit_folder import Keeping, Wish, card_folders, embed_folder
from gateway.cli import run
from gateway.embed import Embedder
from gateway.errors import UsageError
from gateway.learn import write_dicom
from gateway.settings import Home, load_settings
from models.cards import SHIPPED, CardError, find_card, people_hash, read_people
from models.cohorts import MODALITIES, READERS, synthetic_brains

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


def test_a_folder_that_is_not_there_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["audit", str(tmp_path / "nowhere"), "--out", str(tmp_path / "r")]) == 2
    assert "nowhere is not there" in capsys.readouterr().err.replace("\n", "")


def test_a_folder_without_images_and_embeddings_without_metadata_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert run(["audit", str(tmp_path / "empty"), "--out", str(tmp_path / "r")]) == 2
    np.savez(tmp_path / "e.npz", scan=["a"], brain=np.zeros((1, 2)))
    assert run(["audit", str(tmp_path / "e.npz"), "--out", str(tmp_path / "r")]) == 2


def imported(home: Home, name: str, **changes: object) -> None:
    """A card as `models import` writes it, with weights; of an algorithm that needs none, so that it works."""
    own = home.root / "models"
    own.mkdir(exist_ok=True)
    (own / f"{name}.safetensors").write_bytes(b"weights")
    published = yaml.safe_load((SHIPPED.cards / "dino-vits16.yaml").read_text())["published"]
    card = {
        "name": name,
        "role": "attacker",
        "algorithm": "hog",
        "modalities": ["MR"],
        "takes": "image",
        "dimensions": 1764,
        "weights": {
            "file": f"{name}.safetensors",
            "sha256": hashlib.sha256(b"weights").hexdigest(),
        },
        "published": published,
        "intended_use": "a test",
        "limits": "a test",
        "licence": "none",
        "source": "here",
        **changes,
    }
    (own / f"{name}.yaml").write_text(yaml.safe_dump(card))


def test_imported_cards_are_used_where_their_modality_fits_and_one_that_cannot_is_named(
    brains: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported(home, "mine")
    imported(home, "eyes", modalities=["OP"])
    imported(home, "tables", takes="measures")
    imported(home, "picky")
    real = audit_folder.open_embedder

    def opened(name: str, *args: Any, **words: Any) -> Embedder:
        if name not in ("mine", "picky", "brain-audit-1"):
            return real(name, *args, **words)
        found = real("gradients", *args, **words)
        encoder: Any = found.encoder

        def unable(*_: object) -> Any:
            raise CardError("it needs grey-matter maps")

        card = find_card(name, card_folders(home))[0]
        return Embedder(card, encoder if name == "mine" else unable)

    monkeypatch.setattr(audit_folder, "open_embedder", opened)
    left_out: dict[str, str] = {}
    found = embed_folder(
        brains, Wish(), Keeping(None, b"k" * 32), card_folders(home), ticks, without=left_out.__setitem__
    )
    assert sorted(found.embeddings) == ["gradients", "grey-similarity", "mine"]
    assert left_out == {"brain-audit-1": "it needs grey-matter maps", "picky": "it needs grey-matter maps"}
    with pytest.raises(UsageError, match="picky cannot embed this data set: it needs grey-matter maps"):
        embed_folder(brains, Wish(("picky",)), Keeping(None, b"k" * 32), card_folders(home), ticks)


def test_every_reader_says_what_modality_it_reads() -> None:
    assert MODALITIES.keys() == READERS.keys()
    assert set(MODALITIES.values()) <= {"DX", "OP", "MR"}


@pytest.mark.shared
def test_a_research_data_set_is_attacked_by_our_card_and_the_report_says_whom_it_knows(shared_data: Path) -> None:
    cohort = READERS["ridb"](shared_data / "fundus")
    some = cohort.of(cohort.subjects[:4])
    seen = read_people(*find_card("fundus-audit-1"))
    known = sum(people_hash(cohort.name, one) in seen for one in some.subjects)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(READERS, "ridb", lambda _folder: some)
        found = embed_folder(
            shared_data / "fundus", Wish(reader="ridb"), Keeping(None, b"k" * 32), card_folders(None), ticks
        )
    assert "fundus-audit-1" in found.embeddings
    assert found.trained_on == {"fundus-audit-1": known}
    assert known > 0
