"""What a preview's worker pool does, without a pool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

R = TypeVar("R")


class WorkersHere:
    """The calls of `Workers` that previews make, in this process and in order."""

    def __init__(self, count: int) -> None:
        assert count >= 1

    def each(self, calls: Sequence[Callable[[], R]]) -> list[R]:
        return [call() for call in calls]

    def run(self, function: Callable[..., R], /, *args: object) -> R:
        return function(*args)

    def close(self) -> None:
        pass
