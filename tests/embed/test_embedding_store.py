"""Embeddings at rest: encrypted, bound to their place, unreadable without the key, gone when their time is up."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.embed import EmbeddingStore
from gateway.embed.sealed import DAY_S
from gateway.errors import EnvironmentFault

KEY, NOW = bytes(range(32)), 1_800_000_000.0
FILE, OTHER, CARD, CARD_2 = "a" * 64, "b" * 64, "c" * 64, "d" * 64


def vector(seed: int = 0, dimensions: int = 512) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=dimensions).astype(np.float32)


@pytest.fixture
def store(tmp_path: Path) -> EmbeddingStore:
    return EmbeddingStore(tmp_path / "embeddings", KEY)


def files(store: EmbeddingStore) -> list[Path]:
    return sorted(path for path in store.root.rglob("*") if path.is_file())


def test_what_was_kept_is_found_bit_for_bit_under_its_own_names_only(store: EmbeddingStore) -> None:
    store.keep("originals", FILE, CARD, vector(), now=NOW, label="BT-0001")
    found = store.find("originals", FILE, CARD)
    assert found is not None
    assert found.label == "BT-0001"
    np.testing.assert_array_equal(found.vector, vector())
    assert found.vector.dtype == np.float32
    assert store.find("releases", FILE, CARD) is None
    assert store.find("originals", OTHER, CARD) is None
    assert store.find("originals", FILE, CARD_2) is None


def test_the_same_again_replaces_it(store: EmbeddingStore) -> None:
    store.keep("originals", FILE, CARD, vector(), now=NOW)
    store.keep("originals", FILE, CARD, vector(1), now=NOW)
    found = store.find("originals", FILE, CARD)
    assert found is not None
    np.testing.assert_array_equal(found.vector, vector(1))
    assert store.counts() == {"originals": 1, "releases": 0}


def test_nothing_on_disk_tells_what_it_is(store: EmbeddingStore) -> None:
    store.keep("originals", FILE, CARD, vector(), now=NOW, label="BT-0001")
    (path,) = files(store)
    data = path.read_bytes()
    assert FILE[:8] not in str(path)
    assert CARD[:8] not in str(path)
    assert b"BT-0001" not in data
    assert vector().tobytes()[:16] not in data
    assert path.stat().st_mode & 0o777 == 0o600
    folders = [path for path in (store.root, *store.root.rglob("*")) if path.is_dir()]
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


def test_names_depend_on_the_key(tmp_path: Path) -> None:
    stores = [EmbeddingStore(tmp_path / str(i), bytes([i]) * 32) for i in range(2)]
    for one in stores:
        one.keep("originals", FILE, CARD, vector(), now=NOW)
    first, second = ({part for path in files(one) for part in path.relative_to(one.root).parts[1:]} for one in stores)
    assert not first & second


def test_the_same_embedding_is_never_the_same_bytes(store: EmbeddingStore) -> None:
    store.keep("originals", FILE, CARD, vector(), now=NOW)
    before = files(store)[0].read_bytes()
    store.keep("originals", FILE, CARD, vector(), now=NOW)
    assert files(store)[0].read_bytes() != before


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.integers(0, 200), bit=st.integers(0, 7))
def test_a_changed_bit_is_told_with_the_file_and_without_its_contents(tmp_path: Path, place: int, bit: int) -> None:
    store = EmbeddingStore(tmp_path / "e", KEY)
    store.keep("originals", FILE, CARD, vector(dimensions=16), now=NOW, label="BT-0001")
    (path,) = files(store)
    data = bytearray(path.read_bytes())
    data[place % len(data)] ^= 1 << bit
    path.write_bytes(data)
    with pytest.raises(EnvironmentFault) as caught:
        store.find("originals", FILE, CARD)
    assert str(path) in str(caught.value)
    assert "BT-0001" not in str(caught.value)


@pytest.mark.parametrize("size", [0, 3, 29, 40])
def test_half_a_record_is_told(store: EmbeddingStore, size: int) -> None:
    store.keep("originals", FILE, CARD, vector(), now=NOW)
    (path,) = files(store)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(EnvironmentFault, match=r"damaged|changed"):
        store.find("originals", FILE, CARD)


def test_a_record_in_the_place_of_another_does_not_open(store: EmbeddingStore) -> None:
    """Swapping two people's files, or an original for a release, must not pass."""
    store.keep("originals", FILE, CARD, vector(0), now=NOW)
    store.keep("releases", FILE, CARD, vector(1), now=NOW)
    first, second = files(store)
    first.write_bytes(second.read_bytes())
    with pytest.raises(EnvironmentFault, match="moved"):
        store.find("originals", FILE, CARD)


def test_another_key_names_the_file(store: EmbeddingStore, tmp_path: Path) -> None:
    store.keep("originals", FILE, CARD, vector(), now=NOW)
    other = EmbeddingStore(store.root, b"x" * 32)
    assert other.find("originals", FILE, CARD) is None  # it does not even know the name
    (path,) = files(store)
    theirs = other._path("originals", FILE, CARD)
    theirs.parent.mkdir(parents=True)
    theirs.write_bytes(path.read_bytes())
    with pytest.raises(EnvironmentFault, match="another key") as caught:
        other.find("originals", FILE, CARD)
    assert str(theirs) in str(caught.value)


@pytest.mark.parametrize("key", [b"", b"short", b"x" * 31, b"x" * 64])
def test_a_key_has_32_bytes(tmp_path: Path, key: bytes) -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        EmbeddingStore(tmp_path, key)


def test_every_entry_of_a_kind_and_card(store: EmbeddingStore) -> None:
    for i in range(5):
        store.keep("releases", f"{i}", CARD, vector(i), now=NOW, label=f"P{i}")
    store.keep("releases", "0", CARD_2, vector(9), now=NOW)
    store.keep("originals", "0", CARD, vector(8), now=NOW)
    assert sorted(entry.label for entry in store.entries("releases", CARD)) == [f"P{i}" for i in range(5)]
    assert len(list(store.entries("originals", CARD_2))) == 0
    assert store.counts() == {"originals": 1, "releases": 6}


def test_purging_by_whole_days(store: EmbeddingStore) -> None:
    for age in (0, 29, 30, 31, 400):
        store.keep("originals", str(age), CARD, vector(), now=NOW - age * DAY_S)
    store.keep("releases", "400", CARD, vector(), now=NOW - 400 * DAY_S)
    assert store.purge(now=NOW, days=30) == 3
    assert [age for age in (0, 29, 30, 31, 400) if store.find("originals", str(age), CARD)] == [0, 29, 30]
    assert store.purge(now=NOW, days=30) == 0
    assert store.counts() == {"originals": 3, "releases": 0}


def test_a_record_of_tomorrow_is_told_after_the_others_were_purged(store: EmbeddingStore) -> None:
    store.keep("originals", "old", CARD, vector(), now=NOW - 90 * DAY_S)
    store.keep("originals", "ahead", CARD, vector(), now=NOW + 9 * DAY_S)
    with pytest.raises(EnvironmentFault, match="dated in the future"):
        store.purge(now=NOW, days=30)
    assert store.counts()["originals"] == 1


def test_one_person_can_be_forgotten(store: EmbeddingStore) -> None:
    store.keep("originals", FILE, CARD, vector(), now=NOW)
    assert store.forget("originals", FILE, CARD)
    assert not store.forget("originals", FILE, CARD)
    assert store.find("originals", FILE, CARD) is None


def test_a_crash_while_writing_leaves_nothing_or_the_old(
    store: EmbeddingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.keep("originals", FILE, CARD, vector(), now=NOW)

    def dies(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", dies)
    with pytest.raises(OSError, match="No space"):
        store.keep("originals", FILE, CARD, vector(1), now=NOW)
    monkeypatch.undo()
    found = store.find("originals", FILE, CARD)
    assert found is not None
    np.testing.assert_array_equal(found.vector, vector())
    assert len(files(store)) == 1


def test_an_unknown_kind_is_refused(store: EmbeddingStore) -> None:
    with pytest.raises(ValueError, match="originals, releases"):
        store.keep("../originals", FILE, CARD, vector(), now=NOW)  # type: ignore[arg-type]
