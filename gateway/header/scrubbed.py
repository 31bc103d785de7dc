"""An output that is not written yet, and the account of what was done for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from gateway.header.elements import Buffer
from gateway.header.streaming import Span
from gateway.study import Step

STAGE_VERSION = "1"
TRAILING_BYTES = "trailing_bytes"


class Scrubbed(NamedTuple):
    """`parts` in order, spans being the source file's, and the step."""

    parts: Iterable[Buffer | Span]
    step: Step

    @classmethod
    def of(cls, parts: Iterable[Buffer | Span], counts: Mapping[str, int], *, trailing: bool = False) -> Scrubbed:
        return cls(parts, Step("header", STAGE_VERSION, dict(sorted(counts.items())), (TRAILING_BYTES,) * trailing))
