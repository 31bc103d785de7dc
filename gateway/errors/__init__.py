"""Errors of the gateway as a tree, and every reason code as data.

    GatewayError
    ├── UsageError          a person typed or wrote something wrong          exit 2
    │   └── PolicyError     a policy, routes or destinations file; all faults at once
    ├── EnvironmentFault    port, disk, key, lock: the machine is not ready  exit 3
    └── StudyError          something about one study; `disposition` says what happens to it
        ├── Retry           try again later (archive down)
        ├── Hold            a person must look; nothing leaves
        ├── Drop            this instance is left out, the rest of the study goes on
        └── Refuse          never acceptable here; nothing leaves, nobody needs to look

Messages name the reason, the place (tag path, our own file name, policy line) and the next action. They never carry a
value out of a data set: such a text would end in logs and in the engine's database (DESIGN.md invariant 3).
"""

from __future__ import annotations

from dataclasses import dataclass

from gateway.errors.reasons import REASONS, Disposition, Reason

__all__ = [
    "REASONS",
    "Disposition",
    "Drop",
    "EnvironmentFault",
    "Fault",
    "GatewayError",
    "Hold",
    "PolicyError",
    "Reason",
    "Refuse",
    "Retry",
    "Stopping",
    "StudyError",
    "UsageError",
]


class GatewayError(Exception):
    """Root of all our errors; `exit_code` is what a command ends with."""

    exit_code = 3


class UsageError(GatewayError):
    """A command line, setting or file that a person wrote is wrong."""

    exit_code = 2


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault in a file that a person edits. `line` counts from 1, 0 when no line applies."""

    file: str
    line: int
    says: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.says}" + (f" ({self.hint})" if self.hint else "")


class PolicyError(UsageError):
    """All faults of a policy, routes or destinations file at once."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = tuple(sorted(faults))
        super().__init__("\n".join(str(fault) for fault in self.faults))


class EnvironmentFault(GatewayError):
    """The machine is not ready: port taken, disk full, key missing or weak, home locked."""

    exit_code = 3


class StudyError(GatewayError):
    """Something about one study. `reason` is a key of REASONS; `at` a place, never a value.

    Raises KeyError when the reason is not in REASONS or belongs to another disposition: reason codes are metric
    labels and review texts, so an unlisted one is a programming fault.
    """

    exit_code = 1
    disposition = Disposition.HOLD

    def __init__(self, reason: str, *, at: str = "") -> None:
        entry = REASONS[reason]
        if entry.disposition is not self.disposition:
            raise KeyError(f"{reason} is a {entry.disposition} reason, not {self.disposition}")
        self.reason = reason
        self.at = at
        super().__init__(f"{reason}: {entry.says}" + (f" at {at}" if at else "") + f"; {entry.hint}")

    def __reduce__(self) -> tuple[object, ...]:
        """Exceptions cross from pool workers by pickle."""
        return _rebuild, (type(self), self.reason, self.at)


def _rebuild(kind: type[StudyError], reason: str, at: str) -> StudyError:
    return kind(reason, at=at)


class Retry(StudyError):
    """Try again later."""

    disposition = Disposition.RETRY


class Hold(StudyError):
    """A person must look."""

    disposition = Disposition.HOLD


class Drop(StudyError):
    """One instance is left out of its study; nothing of it leaves."""

    disposition = Disposition.DROP


class Refuse(StudyError):
    """Never acceptable."""

    disposition = Disposition.REFUSE


class Stopping(BaseException):
    """The process is ending, and what a leg was doing was cut off: nothing of it counts, the next process repeats it.

    Not an Exception: nothing may take it for a failure of the study, and the engine must not store an outcome.
    """
