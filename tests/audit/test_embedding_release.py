"""Embeddings leave only when no attack on them succeeds, under other names, and twice as the same bytes."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.app.embeddings import Ended, Sources, release_embeddings
from gateway.audit import Options
from gateway.audit.sanitise import fit, keyed_normals
from gateway.cli import run
from gateway.errors import PolicyError, UsageError
from gateway.ledger import Ledger
from gateway.policy.embedding_release import load_embedding_release
from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, load_settings

PEOPLE, AUXILIARY, VISITS, SIZE = 60, 80, 2, 12
POLICY = """
name: brain-embeddings
erase: [sex]
levels:
  - {identity_directions: 0, noise: 0}
  - {identity_directions: 0, noise: 40}
limits:
  linkability: {max_excess_upper: 0.45}
  rank1: {max_upper: 0.32, gallery: 20}
  attribute_inference: {sex: 0.85}
export: [diagnosis]
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    generator = np.random.default_rng(5)
    identity = generator.normal(size=(PEOPLE + AUXILIARY, SIZE))
    sex = np.arange(len(identity)) % 2
    identity[:, 0] += np.where(sex, 3, -3)
    subject = np.repeat(np.arange(len(identity)), VISITS)
    x = (3 * identity[subject] + generator.normal(size=(len(subject), SIZE))).astype(np.float32)
    scans = np.array([f"secret{i:03d}" for i in range(len(subject))])
    first = subject < PEOPLE
    np.savez(tmp_path / "e.npz", scan=scans[first], brain=x[first])
    np.savez(tmp_path / "aux.npz", scan=scans[~first], brain=x[~first])
    with open(tmp_path / "m.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["scan", "subject", "session", "sex", "diagnosis"])
        for i, whose in enumerate(subject):
            table.writerow([scans[i], f"Person {whose}", str(i % VISITS), "FM"[sex[whose]], "ab"[whose % 3 // 2]])
    (tmp_path / "p.yaml").write_text(POLICY)
    assert run(["init", str(tmp_path / "home")]) == 0
    (tmp_path / "home/keys/master.key").write_text(bytes(range(7, 39)).hex())  # bounds depend on the draws
    return tmp_path


def release(place: Path, out: str, *, policy: str = "p.yaml", embeddings: str = "e.npz", aux: str = "aux.npz") -> Ended:
    home = Home(place / "home")
    sources = Sources(place / embeddings, place / aux, place / "m.csv")
    options = Options(replicates=100, permutations=99, draws=40, trees=15, synthetic=True)
    return release_embeddings(
        home, load_settings(home.root), sources, place / policy, place / out, lambda *_: None, options
    )


def ledger_of(place: Path) -> list[dict[str, object]]:
    home = Home(place / "home")
    ledger = Ledger(home.ledger, Keys(master_key(home, load_settings(home.root))).ledger)
    assert ledger.verify().sound
    return [line for line in ledger.lines() if str(line["event"]).startswith("embeddings")]


def test_the_first_level_that_passes_is_written_under_other_names_and_always_the_same(place: Path) -> None:
    assert not release(place, "out").reasons
    with np.load(place / "out/embeddings.npz") as file:
        scans, brain = file["scan"], file["brain"]
    assert brain.shape == (PEOPLE * VISITS, SIZE)
    assert list(scans) == sorted(scans)
    text = (place / "out/embeddings.csv").read_text()
    assert "secret" not in text + " ".join(scans)
    assert "Person" not in text
    rows = list(csv.DictReader(text.splitlines()))
    assert list(rows[0]) == ["scan", "subject", "diagnosis"]
    assert sorted(np.unique([row["subject"] for row in rows], return_counts=True)[1]) == [VISITS] * PEOPLE
    page = (place / "out/audit.html").read_text()
    assert "Synthetic" in page
    assert "Released." in page
    assert not release(place, "again").reasons
    assert (place / "again/embeddings.csv").read_bytes() == (place / "out/embeddings.csv").read_bytes()
    with np.load(place / "again/embeddings.npz") as file:
        assert np.array_equal(file["brain"], brain)
    assert [(line["event"], line["level"], line["looks"]) for line in ledger_of(place)] == [
        ("embeddings_released", 1, 2)
    ]


def test_without_a_level_that_passes_nothing_is_written_and_the_looks_are_remembered(place: Path) -> None:
    (place / "weak.yaml").write_text(POLICY.replace("  - {identity_directions: 0, noise: 40}\n", ""))
    said = release(place, "out", policy="weak.yaml").reasons
    assert said[0].startswith("linkability: ")
    assert "over the limit 0.45" in said[0]
    assert not (place / "out/embeddings.npz").exists()
    assert not release(place, "out").reasons
    first, second = ledger_of(place)
    assert (first["event"], first["looks"], second["looks"]) == ("embeddings_held", 1, 2)
    assert first["people"] == second["people"]
    report = (place / "out/audit.json").read_text()
    alphas = sorted({float(part.split(",")[0]) for part in report.split('"alpha": ')[1:]})
    assert alphas == pytest.approx([0.05 * 6 / np.pi**2 / look**2 for look in (3, 2)])  # look 1 was the other policy's


def test_who_fits_the_method_is_not_released(place: Path) -> None:
    with pytest.raises(UsageError, match=f"{PEOPLE} people are auxiliary and released"):
        release(place, "out", aux="e.npz")


def test_an_attack_that_cannot_be_made_holds(place: Path) -> None:
    """15 people have a second visit, and the policy wants them found among 20: nobody looked at the other visits."""
    with np.load(place / "e.npz") as file:
        some = [i for i in range(PEOPLE * VISITS) if i % VISITS == 0 or i < 15 * VISITS]
        np.savez(place / "few.npz", scan=file["scan"][some], brain=file["brain"][some])
    ended = release(place, "out", embeddings="few.npz")
    assert ended.reasons == (
        "other visit: no evidence (a gallery of 20 needs as many people with a mate; there are 15)",
    )
    assert not (place / "out/embeddings.npz").exists()


def test_a_limit_on_a_column_of_its_own_meaning_is_measured_as_well(place: Path) -> None:
    """`site` is no attribute of the report, but whoever limits it means it: here it is the sex, and is not erased."""
    table = (place / "m.csv").read_text().replace("sex,", "site,", 1)
    (place / "m.csv").write_text(table)
    (place / "p.yaml").write_text(POLICY.replace("erase: [sex]", "erase: []").replace("{sex: 0.85}", "{site: 0.55}"))
    said = release(place, "out").reasons
    assert any(one.startswith("site: ") and "over the limit 0.55" in one for one in said)
    assert not (place / "out/embeddings.npz").exists()


def test_one_auxiliary_person_fits_no_attacker(place: Path) -> None:
    with np.load(place / "aux.npz") as file:
        np.savez(place / "one.npz", scan=file["scan"][:VISITS], brain=file["brain"][:VISITS])
    with pytest.raises(UsageError, match="there is one of them"):
        release(place, "out", aux="one.npz")


def test_originals_that_link_nobody_prove_nothing_and_the_command_says_so(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with np.load(place / "e.npz") as file:
        np.savez(place / "void.npz", scan=file["scan"], brain=np.random.default_rng(0).normal(size=file["brain"].shape))
    arguments = ["embeddings", "release", str(place / "void.npz"), "--metadata", str(place / "m.csv")]
    arguments += ["--auxiliary", str(place / "aux.npz"), "--policy", str(place / "p.yaml")]
    assert run([*arguments, "--out", str(place / "out"), "--home", str(place / "home"), "--replicates", "100"]) == 1
    assert "its silence proves nothing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("export: [diagnosis]", "export: [sex]", "sex is taken out and exported at once"),
        ("export: [diagnosis]", "export: [subject]", "replaced, not exported"),
        ("gallery: 20", "gallery: 60", "can never be filled"),
        ("noise: 40", "noise: -1", "noise"),
        ("levels:", "level:", "unknown key level"),
        ("max_upper: 0.32", "max_upper: 1.5", "max_upper"),
    ],
)
def test_faults_of_the_policy_are_said(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = tmp_path / "p.yaml"
    path.write_text(POLICY.replace(old, new))
    with pytest.raises(PolicyError, match=says):
        load_embedding_release(path)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(6, 60), st.integers(1, 20), st.integers(2, 4))
def test_no_linear_attacker_reads_an_erased_attribute(seed: int, people: int, size: int, values: int) -> None:
    generator = np.random.default_rng(seed)
    z = generator.integers(values, size=people)
    x = generator.normal(size=(people, size)) + generator.normal(size=(values, size))[z]
    erased = fit(x, np.arange(people), [list(map(str, z))], identity_directions=0, noise=0).erased(x)
    onehot = (z[:, None] == np.arange(values)).astype(float)
    assert np.abs((erased - erased.mean(0)).T @ (onehot - onehot.mean(0))).max() / people < 1e-4


def test_erasing_identity_leaves_nothing_of_its_directions() -> None:
    generator = np.random.default_rng(3)
    subject = np.repeat(np.arange(200), 3)
    x = generator.normal(size=(600, 8))
    x[:, 2] += 6 * generator.normal(size=200)[subject]  # all identity lies in one direction
    made = fit(x, subject, [], identity_directions=1, noise=0)
    after = made.erased(x)
    people = np.stack([after[subject == one].mean(0) for one in range(200)])
    assert people.var(0).max() < 0.5  # 1/3 is what three scans of nobody give; before it was 36
    assert np.allclose(after, made.erased(after), atol=1e-4)
    assert np.linalg.matrix_rank(made.keep_dd) == 7


def test_keyed_normals_are_normal_the_same_and_the_keys_own() -> None:
    draws = keyed_normals(bytes(32), 100_000)
    assert abs(draws.mean()) < 0.02
    assert abs(draws.std() - 1) < 0.02
    assert np.array_equal(draws, keyed_normals(bytes(32), 100_000))
    assert abs(np.corrcoef(draws, keyed_normals(b"k" * 32, 100_000))[0, 1]) < 0.02
