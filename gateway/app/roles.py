"""What a process does, by its roles."""

from __future__ import annotations

from typing import Protocol

from gateway.flow.queues import CPU, DECISIONS, GPU, NET
from gateway.process_settings import WORK_CPU, WORK_GPU
from gateway.settings import Settings


class Served(Protocol):
    """A part of the gateway with threads of its own."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    @property
    def alive(self) -> bool: ...


def queues_of(settings: Settings) -> tuple[str, ...]:
    """Whose legs this process does. Learned parts have a queue of their own where several processes share the work."""
    of_cpu = (CPU, NET, DECISIONS) if settings.plays(WORK_CPU) else ()
    return (*of_cpu, GPU) if settings.clustered and settings.plays(WORK_GPU) else of_cpu
