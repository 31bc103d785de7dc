"""Which legs are due: what is old enough, and what bears a time that is still to come."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from houses import house, study, to_folder

from gateway.settings import Home


@pytest.mark.parametrize(
    ("later_s", "older_than_s", "due"),
    [(0.0, 0.0, 1), (10.0, 30.0, 0), (31.0, 30.0, 1), (-3600.0, 30.0, 1), (-3600.0, 0.0, 1)],
    ids=["at a start", "just closed", "closed for long", "the clock was set back", "set back, then a start"],
)
def test_what_is_due(
    home: Home,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    later_s: float,
    older_than_s: float,
    due: int,
) -> None:
    with house(home, to_folder(tmp_path / "policies", tmp_path / "archive")) as made:
        made.receive(*study())
        made.close()
        (row,) = made.parts.database.unrouted()
        assert row.closed_at is not None
        closed_at = row.closed_at
        monkeypatch.setattr(time, "time", lambda: closed_at + later_s)
        assert len(made.steps.pending(older_than_s=older_than_s)) == due
