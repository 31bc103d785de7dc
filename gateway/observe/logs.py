"""Logs that carry no identifier: JSON lines.

A line holds an event name, our opaque keys, reason codes and numbers: `log(event, **fields)`
accepts fields by an allow-list of names, and texts of third parties (pydicom warnings, pynetdicom, SQLAlchemy) are
reduced to where they came from, because such texts quote values (cases.md 28).
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import IO, Any

FIELDS = frozenset(
    {
        *("study", "generation", "job", "instance", "instances", "state", "reason", "at", "stage", "check", "route"),
        *("policy", "policy_digest", "project", "destination", "status", "attempt", "seconds", "bytes", "port", "host"),
        *("version", "count", "intent", "kind", "exception", "origin", "peer", "workers", "free_bytes", "home"),
    }
)

_log = logging.getLogger("gateway")


class JsonLines(logging.Formatter):
    """One JSON object a line. Records of other libraries keep their origin and lose their text."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
        }
        if record.name == "gateway" and isinstance(record.args, dict):
            line |= {"event": record.msg, **record.args}
        else:
            line |= {"event": "library_message", "origin": f"{record.name}:{record.module}:{record.lineno}"}
            if record.exc_info and record.exc_info[0] is not None:
                line["exception"] = record.exc_info[0].__name__
        return json.dumps(line, ensure_ascii=False, default=_plain)


def _plain(value: object) -> str:
    """Paths are ours; any other object is named by its type, since its text could be anything."""
    return str(value) if isinstance(value, Path) else type(value).__name__


def log(event: str, *, level: int = logging.INFO, **fields: object) -> None:
    """Write one line. Raises KeyError for a field name that is not in FIELDS: no field for values exists."""
    unknown = fields.keys() - FIELDS
    if unknown:
        raise KeyError(f"not a log field: {', '.join(sorted(unknown))}")
    _log.log(level, event, {name: value for name, value in fields.items() if value not in (None, "")} or {"count": 1})


def origin(error: BaseException) -> str:
    """Type and place of an exception, without its text: what may be logged of a foreign exception."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_globals.get('__name__', '?')}:{trace.tb_lineno}" if trace else "?"
    return f"{type(error).__name__} in {place}"


def start_logging(stream: IO[str] | None = None, *, level: int = logging.INFO) -> None:
    """Send all logs of this process, warnings included, through JsonLines. Call once, at the top of a process."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    _log.setLevel(level)
    silence_libraries()
    logging.raiseExceptions = False  # a line that cannot be written must not be printed with its arguments instead
    sys.excepthook = lambda _kind, error, _trace: log("crashed", level=logging.CRITICAL, exception=origin(error))
    threading.excepthook = lambda args: _thread_failed(args.exc_value)


def _thread_failed(error: BaseException | None) -> None:
    """The net below every thread top: Python would print the exception's text, and texts quote values."""
    if error is not None:
        log("thread_failed", level=logging.ERROR, exception=origin(error))


def silence_libraries() -> None:
    """Warnings quote values: count them as library messages, never print their text. Also for pool workers."""
    logging.captureWarnings(capture=True)
    warnings.simplefilter("default")
    for name in ("pydicom", "pynetdicom", "dbos", "sqlalchemy", "py.warnings"):
        library = logging.getLogger(name)
        library.handlers[:] = []
        library.propagate = True
    if not logging.getLogger().handlers:
        logging.getLogger().addHandler(logging.NullHandler())
