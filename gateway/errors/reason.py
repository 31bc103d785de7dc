"""What a reason code is."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Disposition(StrEnum):
    """What becomes of a study after an error."""

    RETRY = "retry"
    HOLD = "hold"
    DROP = "drop"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason code: `says` what happened, `hint` what a person does next."""

    code: str
    disposition: Disposition
    says: str
    hint: str
