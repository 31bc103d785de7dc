"""Reason codes are data: every raise names one that exists, with the disposition it has there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from gateway.errors import (
    REASONS,
    Drop,
    EnvironmentFault,
    Fault,
    GatewayError,
    Hold,
    PolicyError,
    Refuse,
    Retry,
    StudyError,
    UsageError,
)

GATEWAY = Path(__file__).resolve().parents[2] / "gateway"
TYPES = {"Hold": Hold, "Retry": Retry, "Refuse": Refuse, "Drop": Drop}


def raised_reasons() -> list[tuple[str, str, str]]:
    """(place, Hold | Retry | Refuse, reason) of every such call in the gateway whose reason is written out."""
    found = []
    for path in sorted(GATEWAY.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in TYPES and node.args:
                reason = node.args[0]
                if isinstance(reason, ast.Constant):
                    place = f"{path.relative_to(GATEWAY)}:{node.lineno}"
                    found.append((place, node.func.id, str(reason.value)))
    return found


def test_every_reason_that_the_code_raises_exists_with_that_disposition() -> None:
    wrong = []
    for place, kind, reason in raised_reasons():
        entry = REASONS.get(reason)
        if entry is None or entry.disposition is not TYPES[kind].disposition:
            wrong.append(f"{place}: {kind}({reason!r})")
    assert wrong == []


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_every_reason_can_be_raised_says_what_happened_and_what_to_do(reason: str) -> None:
    entry = REASONS[reason]
    kind = {kind.disposition: kind for kind in TYPES.values()}[entry.disposition]
    error = kind(reason, at="(0010,0010)")
    assert (error.reason, error.at, error.disposition) == (reason, "(0010,0010)", entry.disposition)
    assert str(error) == f"{reason}: {entry.says} at (0010,0010); {entry.hint}"
    assert entry.says
    assert entry.hint


@pytest.mark.parametrize("reason", sorted(REASONS))
def test_a_reason_of_another_disposition_is_a_programming_fault(reason: str) -> None:
    for kind in (Hold, Retry, Refuse):
        if kind.disposition is not REASONS[reason].disposition:
            with pytest.raises(KeyError, match=reason):
                kind(reason)


def test_a_reason_that_is_not_listed_is_a_programming_fault() -> None:
    with pytest.raises(KeyError):
        Hold("something_else")


def test_codes_are_short_enough_for_their_column_and_fit_for_a_metric_label() -> None:
    for code, entry in REASONS.items():
        assert entry.code == code
        assert code == code.lower()
        assert code.isidentifier()
        assert len(code) <= 64  # jobs.reason


def test_exit_codes_are_those_that_the_command_line_documents() -> None:
    assert (StudyError.exit_code, UsageError.exit_code, PolicyError.exit_code) == (1, 2, 2)
    assert EnvironmentFault.exit_code == 3
    assert all(issubclass(kind, GatewayError) for kind in (StudyError, UsageError, EnvironmentFault))


def test_a_policy_error_tells_all_faults_at_once_in_the_order_of_the_file() -> None:
    error = PolicyError(
        [Fault("b.yaml", 2, "two"), Fault("a.yaml", 0, "no line"), Fault("b.yaml", 1, "one", "do this")]
    )
    assert str(error).splitlines() == ["a.yaml: no line", "b.yaml:1: one (do this)", "b.yaml:2: two"]
