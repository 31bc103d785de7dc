"""What the pages need of the gateway, and the values that cross. `app` implements it; the pages know nothing else.

Only `Picture`, `HeaderLine` and `VaultRecord` hold what identifies somebody. The desk writes the ledger's line before
it returns one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from gateway.review.records import (
    Changed,
    Chart,
    Event,
    PolicyText,
    PolicyVersion,
    Received,
    ReleaseDetail,
    ReleaseView,
    Sought,
)

Box = tuple[int, int, int, int]  # top, left, bottom, right in pixels, half open


class Verb(StrEnum):
    """What a person may wish for a held study."""

    RELEASE = "release"
    REJECT = "reject"
    RERUN = "rerun"
    REDACT = "redact"


class Kind(StrEnum):
    """Which picture of a frame."""

    BEFORE = "before"
    AFTER = "after"


@dataclass(frozen=True, slots=True)
class Person:
    """Who acts: `session` names the sign-in in the ledger."""

    name: str
    role: str
    session: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One held study as the queue shows it. Nothing of it identifies. `since` is in UTC seconds."""

    key: str
    reason: str
    says: str
    since: float
    policy: str
    stage: str
    signed: int = 0  # people who have agreed to a release
    needed: int = 1
    approvable: bool = True  # False where nothing is there that could leave: rerun or reject are left


@dataclass(frozen=True, slots=True)
class Pointer:
    """A finding of the gate and where it points: to a frame (from 0) and box, or to an element's path."""

    check: str
    rule: str
    name: str
    where: str
    frame: int | None = None
    box: Box | None = None
    path: str = ""


@dataclass(frozen=True, slots=True)
class Thing:
    """One object of a study, in the order a person scrolls through. `frames` is 0 where there are no pixels.

    `series` counts from 1. `trouble` is a reason code where the pixels cannot be shown.
    """

    name: str
    series: int
    kind: str
    frames: int
    rows: int
    columns: int
    cleaned: bool  # there is a candidate to show
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One study under review. `closed` says why nothing of it can be shown or decided, "" while it is held.

    `no_release` says why it cannot be let go as it is. `waits_for` is who agreed already where two must.
    """

    entry: Entry
    state: str
    round: int
    destination: str
    hint: str
    at: str
    policy_digest: str
    closed: str = ""
    no_release: str = ""
    no_redaction: str = ""
    waits_for: str = ""
    two_person: bool = False
    level: str = ""  # at which it was made, where the policy has levels
    things: tuple[Thing, ...] = ()
    pointers: tuple[Pointer, ...] = ()
    verdicts: tuple[tuple[str, str, str], ...] = ()  # check, outcome, what was looked at
    policies: tuple[tuple[str, str], ...] = ()  # name and digest of others that it could run under


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG of 8 or 16 bits. Grey: stored value = sample * `step` + `low`; `inverted` where a larger one is darker."""

    png: bytes = field(repr=False)
    low: float = 0.0
    step: float = 1.0
    inverted: bool = False


@dataclass(frozen=True, slots=True)
class HeaderLine:
    """One element before and after. `path` such as 00081115[1]/00081150; `sign` tells what became of it."""

    path: str
    depth: int
    sign: str
    outcome: str
    tag: str
    name: str
    vr: str
    before: str = field(repr=False)
    after: str = field(repr=False)
    code: str = ""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Previewed:
    """What a policy would do to one object. `held` says why it would not leave, "" where it would; `stages` what pixel
    stages did; `lines` hold what changes, `same` counts what does not.
    """

    name: str
    kind: str
    held: str
    stages: tuple[str, ...]
    lines: tuple[HeaderLine, ...] = field(repr=False)
    same: int = 0


@dataclass(frozen=True, slots=True)
class VaultRecord:
    """One study of the person behind a pseudonym, as the hospital knows it. `until` is in UTC seconds."""

    project: str
    pseudonym: str
    patient_ids: tuple[str, ...] = field(repr=False)
    study_instance_uid: str = field(repr=False)
    accession_numbers: tuple[str, ...] = field(repr=False)
    until: float


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person asked for. `round` is the state of the study that was on the screen: another one is refused."""

    verb: Verb
    round: int
    reason: str
    policy_digest: str = ""  # rerun: under this one
    name: str = ""  # redact: drawn on this object
    box: Box | None = None
    whole_series: bool = True


class Desk(Protocol):
    """Raises UsageError (cannot be done, and why), StudyError (cannot be shown) and EnvironmentFault (nothing can)."""

    def queue(self) -> list[Entry]:
        """Everything that waits for a person, oldest first."""

    def case(self, key: str) -> Case | None:
        """One study; None for a key that there never was."""

    def knows(self, name: str) -> bool:
        """True for the key of a study and the name of a release; anything else may be a value that somebody typed."""

    def history(self, key: str) -> list[Event]:
        """What the ledger has of it, in order."""

    def picture(self, person: Person, key: str, name: str, frame: int, kind: Kind) -> Picture:
        """One frame. The ledger has it first."""

    def header(self, person: Person, key: str, name: str) -> list[HeaderLine]:
        """Every element of one object, before and after. The ledger has it first."""

    def wish(self, person: Person, key: str, wish: Wish) -> int:
        """Write it down for the engine; its serial."""

    def outcome(self, key: str, serial: int) -> str | None:
        """What came of a wish for this study: "" while it waits; None for none of this study."""

    def policies(self) -> list[PolicyText]:
        """Those loaded now."""

    def versions(self) -> list[PolicyVersion]:
        """Every policy that a study began under, newest first."""

    def difference(self, old: str, new: str) -> list[Changed]:
        """What differs between two policies, by digest."""

    def releases(self) -> list[ReleaseView]:
        """Newest first."""

    def worst_over_time(self) -> list[Chart]:
        """Of each policy, the worst figure of its last releases as a share of its limit, oldest first."""

    def release(self, name: str) -> ReleaseDetail | None:
        """One release by its name; None for one that there never was."""

    def report(self, name: str, kind: str) -> bytes | None:
        """Its report as "html" or "pdf"; None for a release that there never was."""

    def received(self) -> list[Received]:
        """Studies whose originals are here, the latest first."""

    def preview(self, person: Person, key: str, digest: str) -> list[Previewed]:
        """What a loaded policy would do to a study whose originals are here. The ledger has it first."""

    def audit(self, sought: Sought, limit: int) -> list[Event]:
        """The last lines of the ledger that name a person, newest first; with a pseudonym, of its studies."""

    def open_vault(self, person: Person, pseudonym: str, reason: str) -> list[VaultRecord]:
        """Who is behind a pseudonym, where the policy lets this person's role know. The ledger has it first."""

    def close_release(self, person: Person, name: str, reason: str) -> int:
        """Write down that a release is to be judged now; the wish's serial, for `outcome` under the release's name."""

    def recall_release(self, person: Person, name: str, code: str, reason: str) -> int:
        """Write down that a release is asked back from its receivers. `code` is the title of the rejection notes."""

    def note(self, event: str, person: Person, **told: str) -> None:
        """Write into the ledger that somebody came, went or asked; `told` are codes, names and keys."""
