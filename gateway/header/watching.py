"""Cleaning that says whether it was done: what came of it belongs to objects with the same words only."""

from __future__ import annotations

from gateway.header.descriptors import Cleaner
from gateway.header.descriptors_own import OwnWords


class WatchedCleaner(Cleaner):
    """A cleaner. `consulted` fills when texts are cleaned; whoever watches clears it. `context` is its identity."""

    __slots__ = ("consulted", "context")
    consulted: set[str]
    context: object

    def __init__(self, own: OwnWords) -> None:
        super().__init__(own)
        object.__setattr__(self, "consulted", set())
        object.__setattr__(self, "context", object())

    def descriptor(self, vr: str, value: bytes, character_set: bytes) -> bytes | None:
        self.consulted.add(vr)
        return super().descriptor(vr, value, character_set)

    def technical(self, vr: str, value: bytes, character_set: bytes) -> bytes | None:
        self.consulted.add(vr)
        return super().technical(vr, value, character_set)
