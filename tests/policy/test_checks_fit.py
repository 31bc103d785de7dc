"""A limit that nothing can pass, a card that is not there, a check that judges nothing here: faults at load."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.app.policy.registry import REGISTRY
from gateway.errors import PolicyError
from gateway.gate.release_power import LEAK_FREE, attribute_chance, linkability_chance, rank1_chance
from gateway.policy import load_policies, load_policy, read_snapshot
from gateway.settings import SHIPPED_POLICIES

LINKABILITY = {"cards": ["gradients"], "max_excess_upper": 0.1}


def write(folder: Path, release: dict[str, Any], people: int | None = 300, **header: Any) -> Path:
    body: dict[str, Any] = {
        "name": "p",
        "extends": ["ps3.15-basic@2026d"],
        "gate": {"study": {"residual_identifiers": {}}, "release": release},
    }
    if people is not None:
        body["release"] = {"min_subjects": people}
    if header:
        body["header"] = header
    path = folder / "p.yaml"
    path.write_text(yaml.safe_dump(body))
    return path


def faults(folder: Path, release: dict[str, Any], people: int | None = 300, **header: Any) -> list[str]:
    with pytest.raises(PolicyError) as told:
        load_policy(write(folder, release, people, **header), REGISTRY)
    return [str(fault) for fault in told.value.faults]


def test_a_policy_that_can_work_loads_and_comes_back_from_its_snapshot(tmp_path: Path) -> None:
    everything = {
        "linkability": LINKABILITY,
        "rank1": {"max_upper": 0.08, "gallery": 50, "mates": 1},
        "attribute_inference": {"attribute": "sex", "max_upper_balanced_accuracy": 0.62},
        "record_isolation": {"k": 5},
    }
    policy = load_policy(write(tmp_path, everything), REGISTRY)
    assert read_snapshot(policy.to_snapshot(), REGISTRY) == policy


@pytest.mark.parametrize(
    ("release", "people", "says"),
    [
        ({"linkability": LINKABILITY}, 150, r"chance of 0\.\d\d only"),
        ({"linkability": {**LINKABILITY, "max_excess_upper": 0.001}}, 300, "no number of people is enough|at least"),
        ({"linkability": LINKABILITY}, 49, "49 people are no evidence"),
        ({"linkability": LINKABILITY, "rank1": {"max_upper": 0.03}}, 300, "passes rank1"),
        (
            {
                "linkability": LINKABILITY,
                "attribute_inference": {"attribute": "sex", "max_upper_balanced_accuracy": 0.55},
            },
            300,
            "passes attribute_inference",
        ),
        ({"record_isolation": {"k": 20}}, 10, "no group of 20"),
        ({"rank1": {"max_upper": 0.1}}, 300, "names a card"),
        ({"linkability": {"cards": ["nobody"], "max_excess_upper": 0.1}}, 300, "no card is called nobody"),
        ({"linkability": {"cards": [], "max_excess_upper": 0.1}}, 300, "at least one attacker"),
        ({"linkability": {"max_excess_upper": 0.1}}, 300, "cards is missing"),
        ({"linkability": LINKABILITY}, None, "add `release:`"),
    ],
)
def test_what_cannot_work_does_not_load(tmp_path: Path, release: dict[str, Any], people: int | None, says: str) -> None:
    found = faults(tmp_path, release, people)
    assert any(re.search(says, fault) for fault in found), found
    assert all(re.search(r"p\.yaml:\d+: ", fault) for fault in found)


def test_the_hint_says_how_many_people_would_do(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, {"linkability": LINKABILITY}, 150)
    needed = re.search(r"min_subjects needs at least (\d+)", fault)
    assert needed is not None
    load_policy(write(tmp_path, {"linkability": LINKABILITY}, int(needed[1])), REGISTRY)
    (again,) = faults(tmp_path, {"linkability": LINKABILITY}, int(needed[1]) - 1)
    assert needed[0] in again


@pytest.mark.parametrize(
    ("attribute", "header"),
    [
        ("sex", {"keep": {"PatientSex": "stratification, DPO-1"}}),
        ("age_band", {"options": ["retain-patient-characteristics"]}),
        ("site", {"options": ["retain-institution-identity"]}),
        ("scanner", {"options": ["retain-device-identity"]}),
    ],
)
def test_a_limit_on_what_the_header_keeps_is_refused(tmp_path: Path, attribute: str, header: dict[str, Any]) -> None:
    release = {
        "linkability": LINKABILITY,
        "attribute_inference": {"attribute": attribute, "max_upper_balanced_accuracy": 0.62},
    }
    (fault,) = faults(tmp_path, release, 300, **header)
    assert "the header keeps" in fault


def test_uids_that_stay_isolate_everybody(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, {"record_isolation": {"k": 5}}, 300, options=["retain-uids"])
    assert "retain-uids" in fault


def test_a_check_that_knows_no_modality_of_a_route_is_a_fault_of_the_route(tmp_path: Path) -> None:
    write(tmp_path, {"linkability": LINKABILITY})
    (tmp_path / "destinations.yaml").write_text("archive: folder:out\n")
    targets = "[{project: x, policy: p, destination: archive}]"
    route = f"routes:\n  - name: a\n    when: {{modality: MODALITY}}\n    targets: {targets}\n"
    for modality, fits in (("CR", True), ("[XC, CR]", True), ("XC", False)):
        (tmp_path / "routes.yaml").write_text(route.replace("MODALITY", modality))
        if fits:
            load_policies(tmp_path, REGISTRY)
        else:
            with pytest.raises(PolicyError, match=r"routes\.yaml:2: the check linkability of p knows no modality"):
                load_policies(tmp_path, REGISTRY)


def test_an_aspect_that_a_release_check_judges_cannot_be_accepted_unjudged(tmp_path: Path) -> None:
    path = write(tmp_path, {"linkability": LINKABILITY})
    body = yaml.safe_load(path.read_text())
    entry = {"aspects": ["image_identity"], "modality": ["CR"], "reason": "x", "approver": "y"}
    body["gate"]["not_assessed"] = [entry]
    path.write_text(yaml.safe_dump(body))
    with pytest.raises(PolicyError, match="the check linkability judges image_identity of CR"):
        load_policy(path, REGISTRY)
    entry["modality"] = ["SEG", "XC"]  # no card of the check knows these, so a person may answer for them
    path.write_text(yaml.safe_dump(body))
    assert load_policy(path, REGISTRY).gate.not_assessed[0].modality == ("SEG", "XC")


def test_shipped_policies_load() -> None:
    assert load_policies(SHIPPED_POLICIES, REGISTRY).policies


def test_chances_grow_with_people_and_limits() -> None:
    for chance in (
        lambda people, limit: linkability_chance(people, limit, 0.03),
        lambda people, limit: rank1_chance(people, limit, 50, 0.03),
        lambda people, limit: attribute_chance(people, 0.5 + limit, 0.03),
    ):
        by_people = [chance(people, 0.1) for people in (60, 100, 200, 400, 1000, 3000)]
        by_limit = [chance(200, limit) for limit in (0.05, 0.08, 0.1, 0.2, 0.4)]
        assert by_people == sorted(by_people)
        assert by_limit == sorted(by_limit)


def test_rank1_needs_what_clopper_pearson_says() -> None:
    """facts.md 4.4: 0 hits of 100 bound the share by 3.0 % at 95 %."""
    assert rank1_chance(100, 0.029, 1000, 0.05) == 0
    assert rank1_chance(100, 0.06, 1000, 0.05) > 0.9


def test_the_table_of_bounds_is_what_the_bench_measured() -> None:
    """And what it measured over fifty releases is what DESIGN.md section 5 asks for."""
    body = json.loads((SHIPPED_POLICIES.parent / "bench" / "results" / "gate_release.json").read_text())
    measured = [(row["people"], round(row["mean"], 3), round(row["sd"], 4)) for row in body["leak_free"]]
    assert measured == list(LEAK_FREE)
    assert body["chains"]["leak_free"]["releases"] == 50
    assert body["chains"]["leak_free"]["leak_free_cleared"] >= 0.9
    for kind in ("at_the_limit", "twice_the_limit", "every_fifth_leaks"):
        assert body["chains"][kind]["leaking_passed"] <= 0.05
