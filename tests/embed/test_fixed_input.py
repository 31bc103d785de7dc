"""The digest of an encoder's fixed output: the same on every CPU, another for every other network."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gateway.embed import card_digest, fixed_embedding, fixed_input, fixed_input_digest, open_embedder
from gateway.embed.fixed_input import kind_of, matches
from models.cards import Card, CardError, CardFolder

CARD = {
    "name": "grey-1",
    "role": "attacker",
    "algorithm": "hog",
    "modalities": ["CR"],
    "dimensions": 1764,
    "intended_use": "a baseline",
    "limits": "weak",
    "licence": "Apache-2.0",
    "source": "here",
}


def vector(seed: int, dimensions: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=dimensions).astype(np.float32) * 3


@pytest.mark.parametrize(
    ("shape", "digest"),
    [
        ((256, 208), "image"),
        ((76, 90, 76), "volume"),
    ],
)
def test_the_fixed_input_never_changes(shape: tuple[int, ...], digest: str) -> None:
    """Pinned: cards of years ago must still be checked against the same picture."""
    pinned = {
        "image": "21f4627672dde6fa",
        "volume": "f4af5f2ba1b15fe3",
    }
    made = fixed_input("image" if len(shape) == 2 else "volume", shape)
    assert made.dtype == np.float32
    assert made.min() == 0
    assert 0.5 < made.max() <= 1
    assert 0.3 < (made > 0).mean() < 0.9
    assert hashlib.sha256(np.rint(made * 255).astype(np.uint8).tobytes()).hexdigest()[:16] == pinned[digest]


@given(seed=st.integers(0, 10_000), dimensions=st.sampled_from([15, 384, 512, 2048]), noise=st.floats(0, 3e-5))
def test_noise_of_another_cpu_does_not_matter(seed: int, dimensions: int, noise: float) -> None:
    one = vector(seed, dimensions)
    other = one + noise * np.linalg.norm(one) * vector(seed + 1, dimensions) / np.linalg.norm(
        vector(seed + 1, dimensions)
    )
    assert matches(other.astype(np.float32), fixed_input_digest(one))


@given(seed=st.integers(0, 10_000), dimensions=st.sampled_from([15, 384, 2048]))
def test_another_network_a_drift_and_a_scale_do_matter(seed: int, dimensions: int) -> None:
    one = vector(seed, dimensions)
    pinned = fixed_input_digest(one)
    assert not matches(vector(seed + 1, dimensions), pinned)
    assert not matches(one * np.float32(1.01), pinned)
    other = vector(seed + 2, dimensions)
    drifted = one / np.linalg.norm(one) + 0.05 * other / np.linalg.norm(other)
    assert not matches(drifted.astype(np.float32), pinned)


def test_an_embedding_without_a_length_cannot_be_pinned() -> None:
    with pytest.raises(ValueError, match="without a length"):
        fixed_input_digest(np.zeros(5, np.float32))


def write(folder: Path, **changes: object) -> list[CardFolder]:
    (folder / "grey-1.yaml").write_text(yaml.safe_dump({**CARD, **changes}))
    return [CardFolder.flat(folder)]


def test_a_card_opens_while_its_encoder_gives_what_it_pinned(tmp_path: Path) -> None:
    pinned = fixed_input_digest(fixed_embedding(Card.model_validate(CARD), {}))
    opened = open_embedder("grey-1", write(tmp_path, fixed_input_sha256=pinned))
    assert opened.embed(np.eye(30, dtype=np.float32)).shape == (1764,)
    with pytest.raises(CardError, match="other embeddings than when its card was written"):
        open_embedder("grey-1", write(tmp_path, fixed_input_sha256=hashlib.sha256(b"x").hexdigest()))


def test_what_an_encoder_takes_is_said_or_follows_from_modality() -> None:
    assert kind_of(Card.model_validate(CARD)) == "image"
    assert kind_of(Card.model_validate({**CARD, "modalities": ["CR", "MR"]})) == "volume"
    assert kind_of(Card.model_validate({**CARD, "modalities": ["MR"], "takes": "measures"})) == "measures"


def test_the_digest_of_a_card_follows_what_decides_an_embedding() -> None:
    base = Card.model_validate(CARD)
    weights = {"file": "w.safetensors", "sha256": "0" * 64}
    same = Card.model_validate({**CARD, "name": "grey-2", "limits": "other words"})
    assert card_digest(base) == card_digest(same)
    others = [{"algorithm": "raw"}, {"dimensions": 3}, {"parameters": {"side": 3}}, {"weights": weights}]
    assert len({card_digest(base), *(card_digest(Card.model_validate({**CARD, **one})) for one in others)}) == 5
