"""Stage and gate have lists of their own of what may stand in a picture; they must not contradict each other."""

from __future__ import annotations

from gateway.gate.text_words import is_technical
from gateway.pixels.text_words import shipped_kept


def test_what_the_stage_keeps_as_technical_the_gate_lets_stand() -> None:
    assert [word for word in sorted(shipped_kept()) if not is_technical(word)] == []
    assert len(shipped_kept()) > 100
