"""A stage that has levels, for tests of the closed loop: a level is the share of the original that stays, the rest is
noise of the study and the level.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pydicom
import pytest
from releasing import judged, write_card

from gateway.pixels import STAGES, Estimate, Instance, Scope, Work
from gateway.settings import Home
from gateway.study import Step

LEVELS = (1.0, 0.9, 0.0)  # found, found, gone


@dataclass(frozen=True)
class Veil:
    """Radiographs behind noise. A wrong `start` fails like a stage that does not know the image."""

    VERSION: ClassVar[str] = "1"
    SCOPE: ClassVar[Scope] = Scope.INSTANCE
    HAS_LEVELS: ClassVar[bool] = True

    def estimate(self, group: Sequence[Instance], work: Work) -> Estimate:
        assert work.level is not None
        pixels = pydicom.dcmread(group[0].candidate).pixel_array
        key = hashlib.sha256(work.seed + f"{work.level!r}".encode()).digest()
        noise = np.random.default_rng(list(key)).integers(1000, 4000, pixels.shape)
        return Estimate(arrays={"pixels": (work.level * pixels + (1 - work.level) * noise).astype(np.uint16)})

    def apply(self, group: Sequence[Instance], work: Work, estimate: Estimate) -> list[Step]:
        ds = pydicom.dcmread(group[0].candidate)
        ds.PixelData = np.asarray(estimate.arrays["pixels"]).tobytes()
        ds.save_as(group[0].candidate, enforce_file_format=True)
        return [Step("veil", self.VERSION, {"veiled": 1})]

    def describe(self) -> str:
        return "Puts noise over radiographs."


def veiled(
    monkeypatch: pytest.MonkeyPatch,
    home: Home,
    policies: Path,
    *,
    levels: Sequence[float] = LEVELS,
    attempts: int = 3,
    release: dict[str, Any] | None = None,
    people: int = 50,
    change: Callable[[dict[str, Any]], None] = lambda _body: None,
) -> Path:
    """The policies of a folder, with research-basic trying the levels of the stage until `same_scan` passes; with
    `release` a release is judged, and escalates.
    """
    monkeypatch.setitem(STAGES, "veil", Veil)
    write_card(home.root / "models")

    def rewrite(body: dict[str, Any]) -> None:
        body["pixels"] = [*body.get("pixels", []), {"veil": {}}]
        body["escalate"] = {"stage": "veil", "levels": list(levels), "max_attempts": attempts}
        if release is None:
            del body["release"]
            body["gate"]["study"]["same_scan"] = {"card": "near", "hold_below_p": 0.02}
            for entry in body["gate"]["not_assessed"]:
                entry["aspects"] = ["burned_in_text", "recognizable_features"]
        else:
            body["release"]["on_fail"] = "escalate"
        change(body)

    judged(policies, release or {}, people=people, change=rewrite)
    return policies
