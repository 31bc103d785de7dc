"""Reason codes of what people asked for, and of what was taken back."""

from __future__ import annotations

from gateway.errors.reason import Disposition, Reason

_H, _X = Disposition.HOLD, Disposition.REFUSE

RIGHTS_REASONS: tuple[Reason, ...] = (
    Reason(
        "opted_out",
        _X,
        "the person does not want to be in any release; nothing of the study was kept",
        "nothing; after `deid-gateway subject opt-in` the PACS may send it again",
    ),
    Reason(
        "erased",
        _X,
        "the person's data was to be removed from here; nothing of the study was kept",
        "nothing; what the PACS sends from now on is new",
    ),
    Reason(
        "recalled",
        _H,
        "part of this study was recalled from its receiver, so that nothing more of it is sent there",
        "issue the study anew (`deid-gateway recall reissue`), then rerun; or reject",
    ),
)
