"""What waits to be told, on disk: a crash at any point loses no notice. A receiver may get a message twice, never none.

HOME/notify/waiting/ID.json             notices that no message holds yet
HOME/notify/outbox/ID.CHANNEL.json      messages by channel, until that channel took them
HOME/notify/state.json                  how far the ledger was read, which conditions hold
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gateway.app.message.channels import Message
from gateway.app.message.notices import Notice, identity
from gateway.durable import make_folder, writing
from gateway.observe import log

FOLDER, WAITING, OUTBOX, STATE = "notify", "waiting", "outbox", "state.json"
MOST_AT_ONCE = 500  # notices of one message


@dataclass(slots=True)
class Seen:
    """`offset`: bytes of the ledger that were read. `raised`: conditions that hold, and when they were last told of."""

    offset: int = 0
    raised: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Due:
    """A message for one channel."""

    path: Path
    channel: str
    message: Message


class Outbox:
    """Of one home; one process uses it."""

    def __init__(self, home: Path) -> None:
        self._root = home / FOLDER
        self._waiting, self._outbox = self._root / WAITING, self._root / OUTBOX

    def open(self) -> None:
        """Make the folders."""
        for folder in (self._root, self._waiting, self._outbox):
            make_folder(folder)

    # -- how far we are -----------------------------------------------------------------------------------------------

    def seen(self) -> Seen | None:
        """None before the first time, and for a file that was damaged."""
        try:
            body = json.loads((self._root / STATE).read_bytes())
            return Seen(int(body["offset"]), {str(key): float(at) for key, at in body["raised"].items()})
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError):
            log("notify_state_lost", level=logging.WARNING)
            return None

    def keep(self, seen: Seen) -> None:
        """After the notices that it stands for were added."""
        _write(self._root / STATE, {"offset": seen.offset, "raised": seen.raised})

    # -- notices ------------------------------------------------------------------------------------------------------

    def add(self, notices: Iterable[Notice]) -> None:
        """The same notice twice is one."""
        for notice in notices:
            _write(self._waiting / f"{notice.id}.json", notice.as_json())

    def waiting(self) -> list[Notice]:
        """Oldest first."""
        found = [one for path in self._waiting.glob("*.json") if (one := _read(path, Notice.of_json)) is not None]
        return sorted(found, key=lambda one: (one.at, one.id))

    def bundle(self, notices: Iterable[Notice], channels: Iterable[str], now: float) -> None:
        """Make messages of notices, for each channel, and let the notices go: they are in them.

        A crash on the way leaves both: the message is made again under the same name, if nothing came in between.
        """
        chosen = list(notices)
        for start in range(0, len(chosen), MOST_AT_ONCE):
            part = tuple(chosen[start : start + MOST_AT_ONCE])
            message = Message(identity(*sorted(notice.id for notice in part)), now, part)
            for channel in channels:
                _write(self._outbox / f"{message.id}.{channel}.json", message.as_json())
            for notice in part:
                (self._waiting / f"{notice.id}.json").unlink(missing_ok=True)

    # -- messages -----------------------------------------------------------------------------------------------------

    def due(self) -> list[Due]:
        """Oldest first."""
        found = []
        for path in self._outbox.glob("*.json"):
            message = _read(path, Message.of_json)
            if message is not None:
                found.append(Due(path, path.name.split(".")[1], message))
        return sorted(found, key=lambda one: (one.message.at, one.path.name))

    def done(self, due: Due) -> None:
        """The channel took it, or it is given up."""
        due.path.unlink(missing_ok=True)


def _write(path: Path, body: Mapping[str, Any]) -> None:
    with writing(path) as file:
        file.write(json.dumps(body).encode())


def _read(path: Path, make: Any) -> Any:
    """None for a file that is damaged; it is put aside, so that it does not stand in the way."""
    try:
        return make(json.loads(path.read_bytes()))
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        log("notify_file_damaged", level=logging.ERROR)
        path.rename(path.with_suffix(".damaged"))
        return None
