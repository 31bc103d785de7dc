"""The tiny anonymiser of `adjustable_films` as a card, its films as DICOM, and an attacker to calibrate it with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

import pydicom
import pytest
import torch
import yaml
from pydicom.dataset import Dataset

from gateway.errors import Hold
from gateway.learn import write_dicom
from gateway.learn.training import write_trained
from gateway.pixels import Instance, Work, run_stage
from gateway.pixels.resynthesize import Resynthesize
from gateway.policy import Policy
from gateway.policy.model import GatePolicy, HeaderPolicy
from gateway.study import Step
from models.cards import Calibration, CardFolder, Risk
from models.cohorts import Cohort
from models.train import chest_audit, own
from models.train.contrastive import Plan
from models.train.resynthesis import train_resynthesis
from models.train.trained import Options, Trained
from tests.adjustable_films import PLAN, cohort

CARD, ATTACKER = "tiny-films-1", "tiny-attacker-1"
POLICY = Policy(name="films", header=HeaderPolicy(), gate=GatePolicy(study={}))


@lru_cache(maxsize=1)
def _trained() -> Trained:
    torch.set_num_threads(1)
    return train_resynthesis(CARD, PLAN, [cohort(16)], Options(seed=1), lambda *_: None)


def write_card(folder: Path) -> Path:
    """By the training that users run, once in a process."""
    write_trained(_trained(), [], CardFolder.flat(folder), lambda *_: None)
    return folder


def write_attacker(folder: Path, people: Cohort, name: str = ATTACKER) -> Path:
    """Of the kind that ships, trained on these people."""
    torch.set_num_threads(1)
    recipe = replace(
        chest_audit.RECIPE, name=name, side=32, width=4, learned=8, whitened=16, plan=Plan(2, people=6, views=2)
    )
    trained = own.train_own(recipe, [people], Options(), lambda *_: None)
    write_trained(trained, [], CardFolder.flat(folder), lambda *_: None)
    return folder


def calibrated(
    folder: Path, name: str, bounds: dict[float, float], *, valid_until: date = date(2099, 1, 1), untouched: float = 0.9
) -> str:
    """The tiny card with a calibration that somebody wrote by hand: bound by level. Its new name."""
    path = folder / f"{CARD}.yaml"
    document = yaml.safe_load(path.read_text())
    limits = {
        key.removeprefix("domain "): tuple(two) for key, two in document["parameters"].items() if "domain " in key
    }
    document["calibration"] = Calibration(
        cohort="by-hand",
        cohort_sha256="0" * 64,
        synthetic=True,
        people=100,
        auxiliary=100,
        attacker=ATTACKER,
        gallery=50,
        confidence=0.95,
        on=date(2026, 11, 30),
        untouched=untouched,
        levels=tuple(Risk(level=level, rank1=upper / 2, upper=upper) for level, upper in bounds.items()),
        domain=limits,
    ).model_dump(mode="json")
    document |= {"name": name, "valid_until": valid_until.isoformat()}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(document))
    return name


def write_films(folder: Path, person: int = 1, visits: int = 1) -> list[Path]:
    """One study for each visit, of one film."""
    people = cohort(person + 1, visits)
    write_dicom(people.of([people.subjects[person]]), folder)
    return sorted(folder.rglob("*.dcm"), key=lambda path: str(pydicom.dcmread(path).StudyDate))


def instances(paths: Sequence[Path], folder: Path) -> list[Instance]:
    """Originals with candidates that are their copies."""
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for number, path in enumerate(paths):
        candidate = folder / f"{number:04d}.dcm"
        candidate.write_bytes(path.read_bytes())
        made.append(Instance(f"{number:05d}", path, candidate))
    return made


def work_of(models: Path, seed: bytes = b"s" * 32, **more: Any) -> Work:
    return Work(POLICY, seed, models, **more)


def run(group: list[Instance], work: Work, store: Path, **parameters: Any) -> list[Step]:
    stage = Resynthesize(**{"card": CARD, **({} if "privacy" in parameters else {"levels": (0.9, 0.3)}), **parameters})
    return run_stage("resynthesize", stage, group, work, store)


def held(group: list[Instance], work: Work, store: Path, **parameters: Any) -> Hold:
    before = [one.candidate.read_bytes() for one in group]
    with pytest.raises(Hold) as hold:
        run(group, work, store, **parameters)
    assert [one.candidate.read_bytes() for one in group] == before
    return hold.value


def changed(path: Path, target: Path, change: Callable[[Dataset], None]) -> Path:
    dataset = pydicom.dcmread(path)
    change(dataset)
    dataset.save_as(target)
    return target
