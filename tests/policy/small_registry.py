"""A small registry for the tests of policy loading.

In a module of its own: pytest knows only one `conftest` at a time, and types are looked up in the module they are from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.policy import Registry


@dataclass(frozen=True)
class Residual:
    judges: ClassVar[frozenset[str]] = frozenset({"header"})
    max: int = 0

    def __post_init__(self) -> None:
        if self.max < 0:
            raise ValueError("max cannot be negative")


@dataclass(frozen=True)
class Risk:
    target: float
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Resynthesize:
    HAS_LEVELS = True
    card: str
    privacy: Risk = Risk(0.05)


@dataclass(frozen=True)
class Deface:
    margin_mm: float = 3.0


REGISTRY = Registry(
    stages={"resynthesize": Resynthesize, "deface": Deface},
    study_checks={"residual_identifiers": Residual},
    release_checks={"rank1": Risk},
    aspects=frozenset({"header", "burned_in_text", "recognizable_features", "image_identity"}),
)
