"""The generator: a pure function of its recipe, halves without a common word, and nothing of ours read."""

from __future__ import annotations

import ast
import datetime as dt
import hashlib
from pathlib import Path
from random import Random

import pytest

from bench.midib_corpus import clinical, fresh, fresh_phrases, phrases, unseen, unseen_phrases, widened, words
from bench.midib_corpus.corpus import Recipe, make, write_corpus
from bench.midib_corpus.people import person
from bench.midib_corpus.phrases import clashes
from bench.midib_corpus.words import Half, Words
from bench.midib_score.key import ACTIONS, read_key

SMALL = Recipe(patients=25, half="development")
GENERATOR = Path(__file__).resolve().parents[2] / "bench" / "midib_corpus"
SCORER = GENERATOR.with_name("midib_score")


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.rglob("*.dcm"))}


def test_the_same_recipe_gives_the_same_bytes_and_the_same_key(tmp_path: Path) -> None:
    write_corpus(tmp_path / "one", SMALL)
    write_corpus(tmp_path / "two", SMALL)
    assert hashes(tmp_path / "one") == hashes(tmp_path / "two")
    assert list(read_key(tmp_path / "one" / "key.sqlite")) == list(read_key(tmp_path / "two" / "key.sqlite"))


def test_another_seed_or_half_gives_other_people() -> None:
    names = [
        {str(made.dirty.PatientName) for made in make(recipe)}
        for recipe in (SMALL, Recipe(patients=25, half="development", seed=1), Recipe(patients=25, half="final"))
    ]
    assert not names[0] & names[2]
    assert names[0] != names[1]


@pytest.mark.parametrize("pool", ["FEMALE", "MALE", "LAST", "STREETS", "CITIES", "HOSPITALS"])
def test_the_halves_share_no_name(pool: str) -> None:
    everything = getattr(words, pool)
    development, final = set(Words("development").of(everything)), set(Words("final").of(everything))
    assert development | final == set(everything)
    assert not development & final


def test_the_halves_share_no_description() -> None:
    for table in (clinical.STUDIES, clinical.SERIES):
        for entries in table.values():
            assert not set(Words("development").of(entries)) & set(Words("final").of(entries))


# Halves of their own, each with what was written before it.
OWN = {
    "unseen": (unseen, unseen_phrases, (words, clinical, widened)),
    "fresh": (fresh, fresh_phrases, (words, clinical, widened, unseen)),
}


@pytest.mark.parametrize("half", OWN)
@pytest.mark.parametrize("pool", ["FEMALE", "MALE", "LAST", "STREETS", "CITIES", "HOSPITALS", "FOREIGN"])
def test_a_half_of_its_own_shares_no_name_with_the_others(half: Half, pool: str) -> None:
    own, _, before = OWN[half]
    assert not any(set(getattr(own, pool)) & set(getattr(one, pool, [])) for one in before)
    assert Words(half).of(*(getattr(one, pool) for one in (words, words, unseen, fresh))) == list(getattr(own, pool))


@pytest.mark.parametrize("half", OWN)
@pytest.mark.parametrize("pool", ["HISTORIES", "ALERTS", "FINDINGS", "ADVICE", "AGENTS", "DIAGNOSES", "COMMENTS"])
def test_a_half_of_its_own_shares_no_text_with_the_others(half: Half, pool: str) -> None:
    own, _, before = OWN[half]
    assert not any(set(getattr(own, pool)) & set(getattr(one, pool, [])) for one in before)


@pytest.mark.parametrize("half", OWN)
def test_a_half_of_its_own_has_its_own_styles_and_plants_what_it_says(half: Half) -> None:
    _, own_phrases, _ = OWN[half]
    others = [phrases, *(other for name, (_, other, _) in OWN.items() if name != half)]
    assert not any(
        {style for style, _ in own_phrases.STYLES} & {style for style, _ in other.STYLES} for other in others
    )
    who, rng = person(Random(4), half), Random(4)
    for style, _ in own_phrases.STYLES:
        typed, planted, category = style("KNEE AP", who, rng, dt.date(2017, 4, 9))
        assert "KNEE AP" in typed
        assert all(word.lower() in typed.lower() for word in planted.split()), style
        assert category.startswith("HIPAA-")


def test_the_corpus_of_a_full_run_has_two_hundred_patients_all_modalities_and_all_ten_checks() -> None:
    patients, modalities, actions, checks, objects = set(), set(), set(), 0, 0
    for made in make(Recipe()):
        patients.add(made.instance.patient)
        modalities.add(made.instance.modality)
        actions.update(check.action for check in made.instance.checks)
        checks += len(made.instance.checks)
        objects += 1
    assert len(patients) >= 200
    assert modalities == {"CR", "CT", "DX", "MG", "MR", "PT", "SR", "US"}
    assert actions == set(ACTIONS)
    assert checks / objects > 150  # the challenge has 258 an instance


def test_what_must_stay_and_what_must_go_can_be_told_apart() -> None:
    for made in make(SMALL):
        texts: dict[str, dict[str, str]] = {}
        for check in made.instance.checks:
            texts.setdefault(check.tag_ds, {})[check.action] = check.action_text
        for both in texts.values():
            if "text_retained" in both and "text_removed" in both:
                assert not clashes(both["text_retained"], both["text_removed"])


@pytest.mark.parametrize("folder", [GENERATOR, SCORER], ids=["generator", "validator"])
def test_generator_and_validator_import_nothing_of_the_product(folder: Path) -> None:
    imported = set()
    for path in folder.glob("*.py"):
        text = path.read_text("utf-8")
        assert "policies/" not in text.replace("`policies/`", "")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import):
                imported |= {name.name.split(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add((node.module or "").split(".")[0])
    assert not imported & {"gateway", "models", "policies"}
    if folder == SCORER:
        own = {path.stem for path in folder.glob("*.py")}
        assert imported - own <= {"bench", "pydicom", "__future__", *_STANDARD}


_STANDARD = (
    *("collections", "contextlib", "dataclasses", "datetime", "hashlib", "json", "pathlib"),
    *("re", "sqlite3", "string", "struct", "typing", "unicodedata", "warnings"),
)
