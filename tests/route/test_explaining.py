"""An explanation never says another rule than routing takes, and says which predicates failed."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import Hold
from gateway.policy import Route, Routes, Target, cohort_hash
from gateway.route import Explanation, Facts, Outcome, explain, route

KEY = bytes(range(32))
HERE = Path("nowhere")
NAMES = ("calling_ae", "modality", "description", "in_cohort")
TARGETS = (Target("demo", "research-basic", "research-archive"),)

words = st.sampled_from(["CT", "MR", "ct", "*", "C?", "PACS"])
whens = st.dictionaries(
    st.sampled_from(NAMES), st.lists(words, min_size=1, max_size=2).map(tuple), min_size=1, max_size=3
)
tables = st.lists(whens, max_size=5).map(
    lambda some: Routes(tuple(Route(f"r{number}", when, TARGETS) for number, when in enumerate(some)))
)
many = st.dictionaries(st.sampled_from([*NAMES[:3], "patient_id"]), st.frozensets(words, max_size=2))


def routed(facts: Facts, table: Routes) -> str | None:
    try:
        return route(facts, table, cohort_key=KEY, cohorts_folder=HERE).name
    except Hold:
        return None


def name(explanation: Explanation) -> str | None:
    return explanation.rule.name if explanation.rule is not None else None


@settings(deadline=None, max_examples=400)
@given(tables, many)
def test_it_agrees_with_routing_whatever_the_rules_and_the_facts(
    table: Routes, values: dict[str, frozenset[str]]
) -> None:
    """No cohort file is there: a rule that asks for one before it fails on something else holds the study in both."""
    facts = Facts(values)
    told = explain(facts, table, cohort_key=KEY, cohorts_folder=HERE)
    assert name(told) == routed(facts, table)
    assert told.holds is (told.rule is None)
    assert told.possible == ()
    for trial in told.trials[:-1]:
        assert trial.failed


@settings(deadline=None, max_examples=400)
@given(tables, many, st.sets(st.sampled_from(NAMES[:3])), many)
def test_what_is_not_known_never_rules_out_what_then_happens(
    table: Routes, values: dict[str, frozenset[str]], unknown: set[str], true: dict[str, frozenset[str]]
) -> None:
    """Whatever the unknown attributes turn out to be, routing takes a rule that was called possible, or the last."""
    known = {key: some for key, some in values.items() if key not in unknown}
    told = explain(Facts(known), table, cohort_key=KEY, cohorts_folder=HERE, unknown=unknown)
    whole = Facts({**known, **{key: some for key, some in true.items() if key in unknown}})
    ends = {trial.rule.name for trial in told.possible}
    last = told.trials[-1] if told.trials else None
    if last is not None and last.outcome is Outcome.MATCHES:
        ends.add(last.rule.name)
    taken = routed(whole, table)
    assert taken is None or taken in ends
    if told.rule is not None:
        assert taken == told.rule.name
    if told.holds:
        assert taken is None


def test_every_failed_predicate_is_named_and_told_from_one_without_a_value() -> None:
    table = Routes((Route("r", {"modality": ("CT",), "body_part": ("HEAD",), "called_ae": ("X",)}, TARGETS),))
    facts = Facts({"modality": frozenset({"MR"}), "called_ae": frozenset({"X"})})
    (trial,) = explain(facts, table, cohort_key=KEY, cohorts_folder=HERE).trials
    assert [(one.name, one.outcome) for one in trial.predicates] == [
        ("modality", Outcome.DIFFERS),
        ("body_part", Outcome.ABSENT),
        ("called_ae", Outcome.MATCHES),
    ]
    assert [one.name for one in trial.failed] == ["modality", "body_part"]


def test_a_cohort_needs_its_key(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(f"{cohort_hash(KEY, 'A')},,\n")
    table = Routes((Route("trial", {"in_cohort": ("people.csv",)}, TARGETS),))
    facts = Facts({"patient_id": frozenset({"A"}), "study_date": frozenset({"20200131"})})
    assert name(explain(facts, table, cohort_key=KEY, cohorts_folder=tmp_path)) == "trial"
    without = explain(facts, table, cohort_key=None, cohorts_folder=tmp_path)
    assert (without.rule, without.holds) == (None, False)
    assert [trial.rule.name for trial in without.possible] == ["trial"]
