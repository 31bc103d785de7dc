"""What people are told of by message: events of the ledger and conditions of the machine, in codes and names of ours.

A notice holds no key of a study, no pseudonym and nothing out of a data set: names of policies, releases and
destinations, reason codes, counts. What lies behind it is read on the review page, by whoever may.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from gateway.errors import REASONS
from gateway.forward.rejection_note import TITLES

HELD, BLOCKED, CLEARED, RECALLED = "held", "release_blocked", "release_cleared", "recalled"
ARCHIVE, DISK, EXPIRING, LEDGER = "archive_down", "disk_low", "expiring", "ledger_broken"
TEST = "test"
EVENTS: Mapping[str, str] = {
    HELD: "a study was held and waits for a person",
    BLOCKED: "a release was blocked; nothing of it left",
    CLEARED: "a release was cleared and is being sent",
    RECALLED: "receivers are to give up what they got; those without rejection notes must be told",
    ARCHIVE: "a destination does not take what is sent to it",
    DISK: "the disk where the spool lies is nearly full",
    EXPIRING: "a certificate, or the calibration of a card, ends soon",
    LEDGER: "the ledger was changed, cut or cannot be read",
}
URGENT = frozenset({ARCHIVE, DISK, EXPIRING, LEDGER, TEST})  # never collected into a digest
OF_LEDGER = frozenset({HELD, BLOCKED, CLEARED, RECALLED})
MOST_LINES = 40


@dataclass(frozen=True, slots=True)
class Notice:
    """One thing to tell. `id` is the same for the same thing, however often it is found. `at` is in UTC seconds.

    `subject` is a release, a destination, or what ends; `over`: a condition that no longer holds.
    """

    id: str
    event: str
    at: float
    subject: str = ""
    reason: str = ""
    stage: str = ""
    people: int = 0
    studies: int = 0
    over: bool = False

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value not in ("", 0, False)}

    @classmethod
    def of_json(cls, body: Mapping[str, Any]) -> Notice:
        """Raises KeyError or TypeError for another shape."""
        return cls(**body)


def identity(*parts: object) -> str:
    """A name for a notice or a message, 32 hex: equal parts give an equal name."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:32]


def of_line(line: Mapping[str, Any]) -> Notice | None:
    """The notice of a ledger line; None for a line that tells nobody anything."""
    event = str(line.get("event", ""))
    if event not in OF_LEDGER:
        return None
    if event == RECALLED:  # its key is told for a release alone: else it is a study's or a person's
        release, reason = str(line["key"]) if line["scope"] == "release" else "", str(line["code"])
    else:
        release, reason = str(line.get("release", "")), str(line.get("reason", ""))
    return Notice(
        id=identity("ledger", line["decision"]),
        event=event,
        at=float(line["time"]),
        subject=release,
        reason=reason,
        stage=str(line.get("stage", "")),
        people=int(line.get("subjects", 0)),
        studies=int(line.get("studies", 0)),
    )


def subject_of(notices: Sequence[Notice]) -> str:
    """The line that a person sees first: what, and how often."""
    counts = Counter((notice.event, notice.over) for notice in notices)
    return "; ".join(_title(event, count, over=over) for (event, over), count in sorted(counts.items()))


def _title(event: str, count: int, *, over: bool) -> str:
    if over:
        return f"over: {event.replace('_', ' ')}"
    match event:
        case "held":
            return f"{count} {'study' if count == 1 else 'studies'} held"
        case "release_blocked" | "release_cleared":
            return f"{count} release{'s' * (count != 1)} {event.partition('_')[2]}"
        case "recalled":
            return f"{count} recall{'s' * (count != 1)}"
    return event.replace("_", " ")


def lines_of(notices: Sequence[Notice]) -> list[str]:
    """In plain words, one a line, urgent things first; of held studies how many for each reason."""
    held = Counter((notice.reason, notice.stage) for notice in notices if notice.event == HELD)
    others = sorted(
        (notice for notice in notices if notice.event != HELD), key=lambda one: (one.event not in URGENT, one.at)
    )
    lines = [f"{_moment(one.at)}  {_WORDS[one.event](one)}" for one in others[:MOST_LINES]]
    if len(others) > MOST_LINES:
        lines.append(f"… and {len(others) - MOST_LINES} more")
    for (reason, stage), count in sorted(held.items(), key=lambda one: -one[1]):
        what = "study was" if count == 1 else "studies were"
        lines.append(f"{count} {what} held{f' in {stage}' if stage else ''}: {reason}{_says(reason)}")
    return lines


def _says(code: str) -> str:
    known = REASONS.get(code)
    return f" ({known.says}; {known.hint})" if known is not None else ""


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _of_recall(one: Notice) -> str:
    about = f" of release {one.subject}" if one.subject else ""
    found = {0: "what", 1: "one study that"}.get(one.studies, f"{one.studies} studies that")
    return (
        f"Recall{about} ({TITLES.get(one.reason, one.reason)}): {found} receivers have. "
        "Next: deid-gateway recall list, and tell the receivers that take no rejection notes."
    )


def _of_archive(one: Notice) -> str:
    if one.over:
        return f"Nothing waits for {one.subject} any more: it took everything, or what it did not take is held."
    return (
        f"{one.subject} does not take what is sent to it. It is tried again, then held. "
        f"Next: deid-gateway route echo {one.subject}"
    )


def _of_disk(one: Notice) -> str:
    if one.over:
        return "There is room again where the spool lies."
    return "The disk where the spool lies is nearly full; below DEID_MIN_FREE_BYTES nothing is taken in."


def _of_ledger(one: Notice) -> str:
    if one.over:
        return "The ledger holds again."
    return "The ledger was changed or cut, or cannot be read. Nothing is decided. Next: deid-gateway ledger verify"


_WORDS: Mapping[str, Callable[[Notice], str]] = {
    BLOCKED: lambda one: (
        f"Release {one.subject} was blocked, {one.people} people: {one.reason}{_says(one.reason)}. Nothing of it left. "
        f"Next: deid-gateway release show {one.subject}"
    ),
    CLEARED: lambda one: f"Release {one.subject} was cleared, {one.people} people. It is being sent.",
    RECALLED: _of_recall,
    ARCHIVE: _of_archive,
    DISK: _of_disk,
    EXPIRING: lambda one: f"{one.subject} was renewed." if one.over else f"{one.subject} ends on {one.reason}.",
    LEDGER: _of_ledger,
    TEST: lambda _one: "This is a test: messages of the gateway arrive here.",
}
