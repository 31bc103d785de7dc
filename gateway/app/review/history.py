"""What the ledger has of a study, and of people, in words for the review page: codes, names, reasons, counts."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from gateway.review.records import Event, Sought

# Fields of a line that say more than what, when, who and why; in this order.
_TOLD = (
    "reason",
    "at",
    "stage",
    "level",
    "attempt",
    "next_level",
    "instance",
    "shown",
    "box",
    "drawing",
    "whole_series",
    "wish",
    "issuer",
    "state",
    "account",
    "token",
    "operation",
    "scopes",
    "provider",
    "role",
)
_PEOPLE = b'"actor":'


def of_study(path: Path, key: str, study_key: str) -> list[Event]:
    """Lines about a job, or about the study that it came from, in order."""
    needles = [word.encode() for word in (key, study_key) if word]
    return [
        event_of(body)
        for body in _lines(path, needles)
        if key in (body.get("job"), body.get("key")) or _about_study(body, study_key, key)
    ]


def _about_study(body: Mapping[str, Any], study_key: str, key: str) -> bool:
    """Lines of a study as a whole, but not those of its other jobs."""
    return bool(study_key) and body.get("study") == study_key and body.get("job", key) == key


def of_people(path: Path, limit: int, keys: frozenset[str] | None, sought: Sought) -> list[Event]:
    """Lines that name a person, newest first; with `keys`, every line about these jobs and studies."""
    needles = [_PEOPLE] if keys is None else [key.encode() for key in keys]
    last: deque[dict[str, Any]] = deque(maxlen=limit)
    for body in _lines(path, needles):
        about = keys is None or not keys.isdisjoint({body.get("job"), body.get("study"), body.get("key")})
        if about and _fits(body, sought):
            last.append(body)
    return [event_of(body) for body in reversed(last)]


def _fits(body: Mapping[str, Any], sought: Sought) -> bool:
    """`who` is a part of a name; lines that name nobody are the gateway's own, as the page shows them."""
    who = str(body.get("actor", "")) or "gateway"
    time, event = float(body["time"]), str(body["event"]).replace("_", " ")
    return (
        sought.who.casefold() in who.casefold()
        and sought.event.replace("_", " ").casefold() in event
        and (sought.since is None or sought.since <= time)
        and (sought.before is None or time < sought.before)
    )


def _lines(path: Path, needles: list[bytes]) -> Iterator[dict[str, Any]]:
    return _parsed(_raw(path, needles))


def _raw(path: Path, needles: list[bytes]) -> Iterator[bytes]:
    """Lines that hold one of these bytes: most of a long ledger need not be parsed."""
    if path.exists() and needles:
        with open(path, "rb") as file:
            yield from (line for line in file if any(needle in line for needle in needles))


def _parsed(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """A torn line is not told: nobody was told of what it says."""
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:
            continue


def event_of(body: Mapping[str, Any]) -> Event:
    """One line in words."""
    facts = [f"{name.replace('_', ' ')}: {_plain(body[name])}" for name in _TOLD if body.get(name) not in (None, "")]
    verdicts = [
        f"{verdict.get('check')} {verdict.get('outcome')}" + (f" ({count} findings)" if count else "")
        for verdict in body.get("verdicts", ())
        if isinstance(verdict, dict)
        for count in [verdict.get("findings", 0)]
    ]
    if verdicts:
        facts.append("gate: " + ", ".join(verdicts))
    if "policy_digest" in body:
        facts.append(f"policy digest: {str(body['policy_digest'])[:12]}")
    return Event(
        line=int(body["line"]),
        time=float(body["time"]),
        what=str(body["event"]).replace("_", " "),
        actor=str(body.get("actor", "")),
        said=str(body.get("reason_given", "")),
        facts="; ".join(facts),
        key=str(body.get("job") or body.get("key") or body.get("study") or ""),
    )


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
