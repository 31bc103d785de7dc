"""Chest films through a policy with `resynthesize`: DICOM in, stage and gate, DICOM out; the level in the ledger."""

from __future__ import annotations

import json
import shutil
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
import yaml
from houses import house, route_all, to_folder

from gateway.app.gauges import refresh
from gateway.app.policy.registry import registry_of
from gateway.errors import PolicyError
from gateway.policy import load_policy, read_snapshot
from gateway.settings import Home
from tests.adjustable_cards import CARD, calibrated, write_card, write_films

ASPECTS = ["burned_in_text", "recognizable_features", "image_identity"]


def policy(**stage: Any) -> dict[str, Any]:
    parameters = {"card": CARD, **({} if "privacy" in stage else {"levels": [0.9, 0.3]}), **stage}
    return {
        "name": "films",
        "extends": ["ps3.15-basic@2026d"],
        "header": {"options": ["clean-descriptors"]},
        "pixels": [{"resynthesize": parameters}],
        "gate": {
            "study": {"residual_identifiers": {"max": 0}},
            "not_assessed": [{"aspects": ASPECTS, "modality": ["CR"], "reason": "synthetic", "approver": "a test"}],
        },
    }


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write_card(tmp_path_factory.mktemp("models"))
    calibrated(folder, "tiny-films-sure", {0.9: 0.2, 0.4: 0.03}, valid_until=date(2099, 1, 1))
    return folder


@pytest.fixture
def at_home(home: Home, models: Path) -> Home:
    shutil.copytree(models, home.root / "models", dirs_exist_ok=True)
    return home


def written(folder: Path, body: dict[str, Any]) -> Path:
    path = folder / "films.yaml"
    path.write_text(yaml.safe_dump(body))
    return path


def test_a_film_is_sent_anew_and_by_another_gateway_with_the_same_key_the_same(at_home: Home, tmp_path: Path) -> None:
    twin = Home(tmp_path / "twin")
    shutil.copytree(at_home.root, twin.root)
    film = pydicom.dcmread(write_films(tmp_path / "in")[0])
    archives = []
    for number, one in enumerate((at_home, twin)):
        archives.append(tmp_path / f"archive{number}")
        folder = to_folder(tmp_path / f"policies{number}", archives[-1])
        written(folder, policy())
        route_all(folder, ("demo", "films", "research-archive"))
        with house(one, folder) as gateway:
            assert gateway.ends(gateway.deliver(film)) == [("research-archive", "sent", "")]
    first, second = (next(archive.rglob("*.dcm")) for archive in archives)
    new = pydicom.dcmread(first)
    assert (new.SyntheticData, new.PatientIdentityRemoved) == ("YES", "YES")
    assert new.pixel_array.shape == film.pixel_array.shape
    assert (new.pixel_array != film.pixel_array).mean() > 0.9
    assert first.read_bytes() == second.read_bytes()


def test_a_gateway_tells_the_level_holds_what_is_no_film_and_what_follows(at_home: Home, tmp_path: Path) -> None:
    folder = to_folder(tmp_path / "policies", tmp_path / "archive")
    written(folder, policy(card="tiny-films-sure", privacy={"target_rank1": 0.05}))
    route_all(folder, ("demo", "films", "research-archive"))
    first, second = (pydicom.dcmread(path) for path in write_films(tmp_path / "in", visits=2))
    other = pydicom.dcmread(write_films(tmp_path / "other", person=2)[0])
    other.PixelData = np.tile(np.array([0, 4095], "<u2"), (16, 8)).tobytes()  # stripes
    with house(at_home, folder) as gateway:
        key = gateway.deliver(first)
        assert gateway.ends(key) == [("research-archive", "sent", "")]
        assert '"level 0.4":1' in json.dumps(gateway.events(key), separators=(",", ":"))
        near, usual = (
            gateway.metric("deid_generated_frames_total", policy="films", place=place)
            for place in ("near_limit", "usual")
        )
        assert near + usual == 1
        assert gateway.ends(gateway.deliver(other)) == [("research-archive", "held", "outside_domain")]
        assert gateway.ends(gateway.deliver(second)) == [("research-archive", "held", "follow_up")]
        refresh(gateway.parts)
        assert gateway.metric("deid_expires_timestamp_seconds", what="card tiny-films-sure") > time.time()
    assert len(list((tmp_path / "archive").rglob("*.dcm"))) == 1


def test_what_left_first_is_no_follow_up_when_it_is_made_again(at_home: Home, tmp_path: Path) -> None:
    folder = to_folder(tmp_path / "policies", tmp_path / "archive")
    written(folder, policy(followups="accept"))
    route_all(folder, ("demo", "films", "research-archive"))
    first, second = (pydicom.dcmread(path) for path in write_films(tmp_path / "in", visits=2))
    with house(at_home, folder) as gateway:
        keys = [gateway.deliver(one) for one in (first, second)]
        jobs = [gateway.job(key).job_key for key in keys]
        assert [gateway.parts.database.is_follow_up(job) for job in jobs] == [False, True]
        assert not gateway.parts.database.is_follow_up("nobody's")


def test_a_policy_is_judged_with_its_card_when_it_is_loaded(at_home: Home, tmp_path: Path) -> None:
    registry = registry_of(at_home.root / "models")
    sure = policy(card="tiny-films-sure", privacy={"target_rank1": 0.05})
    loaded = load_policy(written(tmp_path, sure), registry)
    assert read_snapshot(loaded.to_snapshot(), registry) == loaded
    for body, says in (
        (policy(card="nobody-1"), "no card is called nobody-1"),
        (policy(privacy={"target_rank1": 0.05}), "is not calibrated"),
        (policy(card="tiny-films-sure", privacy={"target_rank1": 0.01}), "no level of tiny-films-sure"),
        (policy(privacy={"target_rank1": 0.05, "confidence": 0.9}), "confidence"),
        (policy(levels=[0.3, 0.9]), "weakest to the strongest"),
        (policy(levels=[1.0]), "levels"),
    ):
        with pytest.raises(PolicyError) as error:
            load_policy(written(tmp_path, body), registry)
        assert says in " ".join(fault.says for fault in error.value.faults)
