"""Rules are tried in order, the first that matches decides, and no match is a hold."""

from __future__ import annotations

import fnmatch
import os
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import Hold
from gateway.policy import Route, Routes, Target, cohort_hash
from gateway.route import Facts, route
from gateway.route.rules import COMPARE, like

KEY = bytes(range(32))
HERE = Path("nowhere")


def rule(name: str, **when: str | tuple[str, ...]) -> Route:
    values = {key: (value,) if isinstance(value, str) else value for key, value in when.items()}
    return Route(name, values, (Target("demo", "research-basic", "research-archive"),))


def facts(**values: str | set[str]) -> Facts:
    return Facts({name: frozenset({value} if isinstance(value, str) else value) for name, value in values.items()})


def decide(found: Facts, *rules: Route, folder: Path = HERE) -> str:
    return route(found, Routes(rules), cohort_key=KEY, cohorts_folder=folder).name


def test_the_first_rule_that_matches_decides() -> None:
    rules = (rule("a", modality="US"), rule("b", modality="CT"), rule("c", modality=("CT", "MR")))
    assert decide(facts(modality="CT"), *rules) == "b"
    assert decide(facts(modality="MR"), *rules) == "c"
    assert decide(facts(modality="CT"), *reversed(rules)) == "c"


def test_no_match_is_a_hold_that_names_nothing_of_the_study() -> None:
    with pytest.raises(Hold) as caught:
        decide(facts(modality="XC", patient_id="LEAK0001", description="ZZSYNTH"), rule("a", modality="US"))
    assert caught.value.reason == "no_route"
    assert "ZZSYNTH" not in str(caught.value)
    assert "LEAK" not in str(caught.value)
    with pytest.raises(Hold):
        decide(facts(modality="CT"))


def test_all_predicates_must_match_and_one_value_of_each_is_enough() -> None:
    both = rule("both", modality=("CT", "PT"), body_part=("HEAD", "BRAIN"))
    assert decide(facts(modality={"SR", "PT"}, body_part={"CHEST", "BRAIN"}), both) == "both"
    with pytest.raises(Hold):
        decide(facts(modality={"SR", "PT"}, body_part="CHEST"), both)
    with pytest.raises(Hold):
        decide(facts(modality="CT"), both)


@pytest.mark.parametrize(
    ("predicate", "wanted", "found", "matches"),
    [
        ("calling_ae", "PACS", "PACS", True),
        ("calling_ae", "PACS", "pacs", False),  # AE titles are case sensitive
        ("called_ae", "DEID", "DEID2", False),
        ("sop_class", "1.2.840.10008.5.1.4.1.1.2", "1.2.840.10008.5.1.4.1.1.2.1", False),
        ("modality", "CT", "CT", True),
        ("modality", "CT", "CTA", False),
        ("manufacturer", "Siemens Healthineers", "SIEMENS HEALTHINEERS", True),
        ("manufacturer", "Siemens", "Siemens Healthineers", False),
        ("image_type", "LOCALIZER", "LOCALIZER", True),
        ("description", "*brain*", "MR BRAIN w/o contrast", True),
        ("description", "brain", "brain 2", False),
        ("description", "t? *", "T1 post", True),
    ],
)
def test_how_values_are_compared(predicate: str, wanted: str, found: str, matches: bool) -> None:
    if matches:
        assert decide(facts(**{predicate: found}), rule("r", **{predicate: wanted})) == "r"
    else:
        with pytest.raises(Hold):
            decide(facts(**{predicate: found}), rule("r", **{predicate: wanted}))


@settings(deadline=None)
@given(st.text("ab*?A", max_size=8), st.text("abA", max_size=10))
def test_a_pattern_means_what_fnmatch_means_without_brackets(pattern: str, text: str) -> None:
    assert like(pattern, text) == fnmatch.fnmatchcase(text.lower(), pattern.lower())


def test_brackets_are_plain_characters() -> None:
    assert like("ct [head]*", "CT [HEAD] 5mm")
    assert not like("[ab]", "a")


def test_no_pattern_takes_long() -> None:
    begin = time.perf_counter()
    assert not like("a*" * 60 + "b", "a" * 4096)
    assert time.perf_counter() - begin < 2.0


def cohort(folder: Path, *lines: str) -> Path:
    path = folder / "trial.csv"
    path.write_text("hash,from,to\n" + "\n".join(lines) + "\n")
    return path


def in_cohort(found: Facts, folder: Path) -> bool:
    try:
        return (
            decide(found, rule("trial", in_cohort="trial.csv"), rule("rest", modality="MR"), folder=folder) == "trial"
        )
    except Hold:
        return False


def test_a_cohort_knows_people_by_keyed_hash_and_study_date(tmp_path: Path) -> None:
    known = cohort_hash(KEY, "LEAK0001")
    cohort(tmp_path, f"{known},2020-01-01,2020-12-31", f"{cohort_hash(KEY, 'LEAK0002')},,")
    assert in_cohort(facts(patient_id="LEAK0001", study_date="20200101"), tmp_path)
    assert in_cohort(facts(patient_id="LEAK0001", study_date="2020.12.31"), tmp_path)
    assert not in_cohort(facts(patient_id="LEAK0001", study_date="20210101"), tmp_path)
    assert not in_cohort(facts(patient_id="LEAK0001", study_date="garbage"), tmp_path)
    assert not in_cohort(facts(patient_id="LEAK0001"), tmp_path)
    assert not in_cohort(facts(patient_id="LEAK0001", study_date={"20200101", "20210101"}), tmp_path)
    assert in_cohort(facts(patient_id="LEAK0002"), tmp_path)
    assert not in_cohort(facts(patient_id={"LEAK0002", "LEAK0003"}), tmp_path)
    assert not in_cohort(facts(study_date="20200101"), tmp_path)
    assert not in_cohort(facts(patient_id=known, study_date="20200101"), tmp_path)


def test_another_key_knows_nobody(tmp_path: Path) -> None:
    cohort(tmp_path, f"{cohort_hash(bytes(32), 'LEAK0001')},,")
    assert not in_cohort(facts(patient_id="LEAK0001"), tmp_path)


def test_a_cohort_that_changes_on_disk_is_read_again(tmp_path: Path) -> None:
    path = cohort(tmp_path, f"{cohort_hash(KEY, 'LEAK0001')},,")
    assert in_cohort(facts(patient_id="LEAK0001"), tmp_path)
    cohort(tmp_path, f"{cohort_hash(KEY, 'LEAK0002')},,")
    os.utime(path, ns=(1, 1))
    assert not in_cohort(facts(patient_id="LEAK0001"), tmp_path)


def test_a_cohort_that_vanished_or_broke_holds_instead_of_falling_to_the_next_rule(tmp_path: Path) -> None:
    rules = (rule("trial", in_cohort="trial.csv"), rule("rest", modality="MR"))
    with pytest.raises(Hold, match=r"trial\.csv"):
        decide(facts(modality="MR", patient_id="LEAK0001"), *rules, folder=tmp_path)
    cohort(tmp_path, "LEAK0001,,")
    with pytest.raises(Hold) as caught:
        decide(facts(modality="MR", patient_id="LEAK0001"), *rules, folder=tmp_path)
    assert "LEAK0001" not in str(caught.value)


VALUES = st.sampled_from(["CT", "MR", "US", "BRAIN"])
WHEN = st.dictionaries(st.sampled_from(["modality", "body_part", "image_type"]), st.tuples(VALUES, VALUES), min_size=1)


@settings(deadline=None)
@given(
    st.lists(WHEN, max_size=5),
    st.dictionaries(st.sampled_from(["modality", "body_part", "image_type"]), st.sets(VALUES)),
)
def test_routing_is_the_first_rule_whose_every_predicate_meets_the_facts(
    rules: list[Mapping[str, tuple[str, ...]]], found: dict[str, set[str]]
) -> None:
    expected = next(
        (
            i
            for i, when in enumerate(rules)
            if all(set(values) & found.get(name, set()) for name, values in when.items())
        ),
        None,
    )
    numbered = [rule(f"r{i}", **when) for i, when in enumerate(rules)]
    if expected is None:
        with pytest.raises(Hold):
            decide(facts(**found), *numbered)
    else:
        assert decide(facts(**found), *numbered) == f"r{expected}"


def test_every_predicate_that_the_loader_knows_can_be_matched() -> None:
    from gateway.policy.routes import PREDICATES

    assert set(PREDICATES) == {*COMPARE, "in_cohort"}
