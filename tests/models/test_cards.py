"""A card is strict, and stands for exactly the weights and people that it names."""

from __future__ import annotations

import hashlib
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import yaml

from gateway.embed import open_embedder
from models.cards import CardError, CardFolder, find_card, people_hash, people_lines, read_card, read_people, weights_of

CARD = {
    "name": "grey-1",
    "role": "attacker",
    "algorithm": "raw",
    "modalities": ["CR"],
    "dimensions": 1024,
    "intended_use": "a baseline",
    "limits": "weak",
    "licence": "Apache-2.0",
    "source": "here",
}


def write(folder: Path, **changes: object) -> CardFolder:
    card = {**CARD, **changes}
    (folder / f"{card['name']}.yaml").write_text(yaml.safe_dump(card))
    return CardFolder.flat(folder)


def test_a_card_without_weights_embeds(tmp_path: Path) -> None:
    embedder = open_embedder("grey-1", [write(tmp_path)])
    assert embedder.embed(np.eye(64, dtype=np.float32)).shape == (1024,)


def test_unknown_keys_are_all_named_at_once(tmp_path: Path) -> None:
    write(tmp_path, weigths=1, role="judge")
    with pytest.raises(CardError, match=r"role: .*weigths: "):
        read_card(tmp_path / "grey-1.yaml")


def test_name_and_file_are_the_same(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "grey-1.yaml").rename(tmp_path / "grey-2.yaml")
    with pytest.raises(CardError, match="grey-1"):
        read_card(tmp_path / "grey-2.yaml")


def test_a_card_past_its_date_does_not_load(tmp_path: Path) -> None:
    folders = [write(tmp_path, valid_until=date(2026, 1, 31))]
    assert find_card("grey-1", folders, today=date(2026, 1, 31))[0].name == "grey-1"
    with pytest.raises(CardError, match="2026-01-31"):
        find_card("grey-1", folders, today=date(2026, 2, 1))


def test_a_site_fills_a_card_that_waits_for_weights_and_replaces_no_other(tmp_path: Path) -> None:
    ships, own = tmp_path / "ships", tmp_path / "own"
    ships.mkdir()
    own.mkdir()
    brought = {"published": {"files": ["author.pth"], "tensors": 1, "parameters": 1}}
    weights = {"file": "w.safetensors", "sha256": hashlib.sha256(b"site").hexdigest()}
    (own / "w.safetensors").write_bytes(b"site")
    folders = [write(ships, **brought), write(own, **brought)]
    assert find_card("grey-1", folders)[1] == folders[0]  # both wait
    write(own, **brought, weights=weights)
    card, folder = find_card("grey-1", folders)
    assert weights_of(card, folder) == own / "w.safetensors"
    write(ships)  # one that needs no weights: a site's card of that name is another attacker
    card, folder = find_card("grey-1", folders)
    assert folder == folders[0]
    assert weights_of(card, folder) is None
    (own / "grey-1.yaml").write_text("name: [")
    assert find_card("grey-1", folders)[1] == folders[0]


@pytest.mark.parametrize("name", ["../own/grey-1", "own/../grey-1", "/grey-1", "", ".", "Grey-1"])
def test_a_name_is_no_path(tmp_path: Path, name: str) -> None:
    (tmp_path / "own").mkdir()
    write(tmp_path / "own")
    write(tmp_path)
    folder = CardFolder.flat(tmp_path / "ships")
    for one in (folder, CardFolder.flat(tmp_path)):
        with pytest.raises(CardError, match="no card is called"):
            find_card(name, [one])


@pytest.mark.parametrize("there", [False, True])
def test_absent_or_other_weights_do_not_load(tmp_path: Path, there: bool) -> None:
    folder = write(tmp_path, weights={"file": "w.safetensors", "sha256": hashlib.sha256(b"right").hexdigest()})
    if there:
        (tmp_path / "w.safetensors").write_bytes(b"wrong")
    card, _ = find_card("grey-1", [folder])
    with pytest.raises(CardError, match=r"another file|not there"):
        weights_of(card, folder)


def test_people_are_known_by_hash_and_the_list_by_its_digest(tmp_path: Path) -> None:
    body = people_lines("nih", ["7", "12", "7"])
    (tmp_path / "p.txt").write_bytes(body)
    part = {"cohort": "nih", "people": 2, "people_file": "p.txt", "synthetic": False}
    folder = write(tmp_path, trained_on=[{**part, "people_sha256": hashlib.sha256(body).hexdigest()}])
    card, _ = find_card("grey-1", [folder])
    assert read_people(card, folder) == {people_hash("nih", "7"), people_hash("nih", "12")}
    (tmp_path / "p.txt").write_bytes(people_lines("nih", ["7"]))
    with pytest.raises(CardError, match="another file"):
        read_people(card, folder)


def test_of_a_volume_the_baselines_see_four_slices() -> None:
    from models.audit_encoders import BASELINES

    volume = np.random.default_rng(0).random((20, 32, 32)).astype(np.float32)
    for encoder, size in ((BASELINES["raw"], 1024), (BASELINES["hog"], 1764)):
        seen = encoder(volume)
        assert seen.shape == (size,)
        changed = volume.copy()
        changed[[0, 19]] = 0
        assert np.array_equal(encoder(changed), seen)
        changed[9] = 0
        assert not np.array_equal(encoder(changed), seen)
    with pytest.raises(ValueError, match="not 4"):
        BASELINES["raw"](np.zeros((2, 2, 2, 2), np.float32))
