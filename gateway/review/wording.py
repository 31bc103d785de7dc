"""How pages word ages, times and what people write. Times are UTC."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from datetime import time as clock

from gateway.errors import UsageError

LEAST_REASON, MOST_REASON = 5, 512
DAY_S = 86400.0


def reason_of(text: str) -> str:
    """A reason as the ledger takes it. Raises UsageError."""
    words = text.strip()
    if not LEAST_REASON <= len(words) <= MOST_REASON or not words.isprintable():
        raise UsageError(
            f"every decision needs a reason of {LEAST_REASON} to {MOST_REASON} printable characters on one line, "
            "without names, ids and dates"
        )
    return words


def age(since: float) -> str:
    seconds = max(0, round(time.time() - since))
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            count = seconds // length
            return f"{count} {unit}" + "s" * (count != 1)
    return "just now"


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def midnight(day: date, *, after: bool = False) -> float:
    """Where a day begins (UTC seconds), or ends."""
    return datetime.combine(day, clock(), UTC).timestamp() + (DAY_S if after else 0.0)


def day_of(text: str, what: str) -> date | None:
    """A day as a form sends it; None for none. Raises UsageError."""
    try:
        return date.fromisoformat(text) if text else None
    except ValueError:
        raise UsageError(f"{what} is a day such as 2026-11-30") from None


def short(key: str) -> str:
    """Enough of a key to tell studies apart on a screen."""
    head, dot, generation = key.partition(".")
    return head[:12] + dot + generation


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def percent(share: float) -> str:
    """Of a limit; a group of nobody is beyond it however large the limit is."""
    return "all of it" if share == float("inf") else f"{100 * share:.0f} %"


def counted(number: int, one: str, more: str) -> str:
    return f"{number} {one if number == 1 else more}"


FILTERS: Mapping[str, Callable[..., object]] = {
    "age": age,
    "moment": moment,
    "short": short,
    "number": number,
    "counted": counted,
    "percent": percent,
}
