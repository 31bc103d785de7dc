"""A gate must see what is planted in front of it; what does not see is named."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from releasing import write_card

from gateway.gate import release_selftest
from gateway.gate.attackers import folders_of
from gateway.gate.release_linkability import ReleaseLinkability
from gateway.gate.release_verdict import concluded


def test_figures_and_shipped_baselines_see() -> None:
    assert release_selftest.blind_to_figures() == ""
    assert release_selftest.blind_cards(["gradients", "grey-similarity"], [], folders_of()) == ()


def test_a_card_with_impostors_sees_its_own_images(tmp_path: Path) -> None:
    assert release_selftest.blind_cards(["near"], ["near"], write_card(tmp_path / "models")) == ()


def test_an_absent_card_and_one_without_impostors_are_named() -> None:
    found = release_selftest.blind_cards(["nobody", "gradients"], ["gradients"], folders_of())
    assert [line.partition(":")[0] for line in found] == ["gradients", "nobody"]
    assert "no impostors" in found[0]


def test_an_encoder_that_gives_every_image_one_embedding_is_blind(monkeypatch: pytest.MonkeyPatch) -> None:
    def embedded(_name: str, _folders: object) -> object:
        return np.ones((12, 64), np.float32), ("cosine",)

    monkeypatch.setattr(release_selftest, "_embedded", embedded)
    (says,) = release_selftest.blind_cards(["gradients"], [], folders_of())
    assert says == "gradients: by cosine, an unchanged image is not nearest to itself"


@pytest.mark.parametrize("always", ["pass", "hold"])
def test_arithmetic_that_says_always_the_same_is_blind(monkeypatch: pytest.MonkeyPatch, always: str) -> None:
    from dataclasses import replace

    def over(self: ReleaseLinkability, sample: object) -> object:
        scores = [replace(one, upper=0.0 if always == "pass" else 1.0) for one in self._scores(sample)]  # type: ignore[arg-type]
        return concluded("linkability", self.cards, scores)

    release_selftest.blind_to_figures.cache_clear()
    monkeypatch.setattr(ReleaseLinkability, "over", over)
    try:
        says = release_selftest.blind_to_figures()
    finally:
        release_selftest.blind_to_figures.cache_clear()
    assert says == ("a planted leak" if always == "pass" else "that a release without a leak has none")
