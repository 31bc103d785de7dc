"""What a release shows of lesions, and that one rarer than the cohort can hide holds."""

from __future__ import annotations

import hashlib
import hmac
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
import yaml

from gateway.app.policy.registry import REGISTRY
from gateway.errors import Hold, PolicyError
from gateway.gate.lesion_facts import attributes_wanted, lesion_facts, place, size_band
from gateway.gate.pixel_layout import Unseen
from gateway.gate.reading import Pair
from gateway.gate.release_isolation import ReleaseIsolation
from gateway.gate.release_sample import ALL, RELEASE, Member, ReleaseSample
from gateway.policy import GatePolicy, HeaderPolicy, Policy, load_policy
from gateway.study import Outcome
from tests.lesion_series import modality_of, write_study
from tests.lesion_studies import lesion_of

PERSON = 1
KEY = bytes(32)


def policy(*lesion: Any, k: int = 5) -> Policy:
    gate = GatePolicy(study={}, release={"record_isolation": ReleaseIsolation(k, lesion)})
    return Policy(name="lesions", header=HeaderPolicy(), gate=gate)


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> list[Pair]:
    files = write_study(tmp_path_factory.mktemp("in"), PERSON)
    return [Pair(f"{n:05d}", path, path) for n, path in enumerate(files)]


def hashed(name: str, value: str) -> str:
    return hmac.new(KEY, f"lesion {name}\0{value}".encode(), hashlib.sha256).hexdigest()[:24]


@pytest.mark.parametrize(
    ("person", "side", "region"),
    [(1, "middle", "middle lower"), (6, "left", "middle upper"), (7, "right", "middle lower")],
)
def test_a_lesion_is_told_by_kind_size_side_and_region(tmp_path: Path, person: int, side: str, region: str) -> None:
    """Columns of the drawn heads grow to the left, rows to the back, slices to the head."""
    pairs = [Pair(f"{n:05d}", path, path) for n, path in enumerate(write_study(tmp_path / "in", person))]
    found = lesion_facts(pairs, policy("region", "side", "kind", "size"), KEY)
    assert list(found) == ["kind", "size", "side", "region"]
    assert found["kind"] == hashed("kind", "SCT:52988006")
    assert 32 <= lesion_of(person).sum() * 0.64 < 64  # ml
    assert found["size"] == hashed("size", "5")
    assert found["side"] == hashed("side", side)
    assert found["region"] == hashed("region", region)
    assert lesion_facts(pairs, policy("size"), KEY) == {"size": found["size"]}
    assert lesion_facts(pairs, policy("size"), bytes([1]) * 32) != {"size": found["size"]}


def test_nothing_is_read_unless_a_check_asks(study: list[Pair]) -> None:
    assert attributes_wanted(policy()) == ()
    assert lesion_facts([pair for pair in study if modality_of(pair.original) == "MR"], policy(), KEY) == {}


def test_a_study_that_draws_no_lesion_is_held(study: list[Pair]) -> None:
    with pytest.raises(Hold, match="lesion_undrawn"):
        lesion_facts([pair for pair in study if modality_of(pair.original) == "MR"], policy("size"), KEY)


def test_what_leaves_is_told_and_not_what_was(study: list[Pair], tmp_path: Path) -> None:
    (seg,) = [pair for pair in study if modality_of(pair.original) == "SEG"]
    left = pydicom.dcmread(seg.original)
    left.SegmentSequence[0].SegmentedPropertyTypeCodeSequence[0].CodeValue = "108369006"
    left.save_as(tmp_path / "left.dcm")
    pairs = [Pair(pair.name, pair.original, tmp_path / "left.dcm") if pair is seg else pair for pair in study]
    assert lesion_facts(pairs, policy("kind"), KEY) == {"kind": hashed("kind", "SCT:108369006")}


def test_sizes_are_banded_by_doubling() -> None:
    assert [size_band(ml) for ml in (0.001, 1 / 16, 0.99, 1.0, 1.99, 2.0, 40.0)] == [-4, -4, -1, 0, 0, 1, 5]


def test_a_place_is_a_share_of_the_body_and_not_of_the_frame() -> None:
    pixels, lesion = np.zeros((30, 40, 50), np.float32), np.zeros((30, 40, 50), np.bool_)
    pixels[10:20, 10:30, 30:50] = 0.6
    lesion[18:20, 10:12, 48:50] = True
    left, back, up = place(pixels, lesion)
    assert (left, back, up) == pytest.approx((0.95, 0.05, 0.9), abs=0.011)
    for nothing in (place_of for place_of in ((np.zeros_like(pixels), lesion), (pixels, np.zeros_like(lesion)))):
        with pytest.raises(Unseen):
            place(*nothing)


# -- over people ------------------------------------------------------------------------------------------------------


def people(name: str, count: int, *, current: bool = True, **lesion: str) -> list[Member]:
    return [Member(f"{name}{number}", "1", current, {"PatientSex": "x"}, lesion=lesion) for number in range(count)]


def judged(check: ReleaseIsolation, members: list[Member]) -> tuple[Outcome, str, str]:
    verdict = check.judge(ReleaseSample(tuple(members), {RELEASE: 1, ALL: 1}, 5, {}), None)  # type: ignore[arg-type]
    return verdict.outcome, verdict.reason, verdict.at


def test_a_lesion_rarer_than_k_people_holds_and_names_the_attribute() -> None:
    check = ReleaseIsolation(5, ("kind", "size"))
    common, rare = people("a", 96, kind="glioma", size="big"), people("b", 4, kind="ganglioglioma", size="big")
    outcome, reason, at = judged(check, [*common, *rare])
    assert (outcome, reason) == (Outcome.HOLD, "record_isolation")
    assert at == "record_isolation: 4 of 100 people in groups below 5, the smallest 4, by lesion kind"
    assert judged(check, [*common, *people("b", 5, kind="ganglioglioma", size="big")])[0] is Outcome.PASS
    assert judged(ReleaseIsolation(5), [*common, *rare])[0] is Outcome.PASS
    assert judged(ReleaseIsolation(5, ("size",)), [*common, *rare])[0] is Outcome.PASS


def test_attributes_that_hide_each_by_itself_are_named_together() -> None:
    check = ReleaseIsolation(5, ("kind", "side"))
    members = [
        member
        for number, (kind, side, count) in enumerate((("a", "l", 40), ("a", "r", 2), ("b", "r", 40)))
        for member in people(str(number), count, kind=kind, side=side)
    ]
    assert judged(check, members)[2].endswith("by lesion kind with lesion side")


def test_a_rare_lesion_is_not_hidden_by_earlier_releases_that_do_not_know_theirs() -> None:
    check = ReleaseIsolation(5, ("kind",))
    before = people("old", 3, current=False)
    members = [*people("a", 96, kind="glioma"), *before]
    assert judged(check, members)[0] is Outcome.PASS
    members += people("b", 4, kind="rare")
    assert judged(check, members)[:2] == (Outcome.HOLD, "record_isolation")


def test_a_study_whose_lesion_is_not_known_is_no_evidence() -> None:
    outcome, reason, at = judged(ReleaseIsolation(5, ("kind",)), [*people("a", 96, kind="glioma"), *people("n", 1)])
    assert (outcome, reason) == (Outcome.HOLD, "lesion_undrawn")
    assert at == "record_isolation by the lesion, people without a mask: 1"


def test_a_policy_names_attributes_that_are_known_and_each_once(tmp_path: Path) -> None:
    def loaded(*lesion: str) -> Policy:
        body = {
            "name": "lesions",
            "extends": ["ps3.15-basic@2026d"],
            "gate": {
                "study": {"residual_identifiers": {"max": 0}},
                "release": {"record_isolation": {"k": 5, **({"lesion": list(lesion)} if lesion else {})}},
            },
            "release": {"min_subjects": 50},
        }
        path = tmp_path / "lesions.yaml"
        path.write_text(yaml.safe_dump(body))
        return load_policy(path, REGISTRY)

    assert attributes_wanted(loaded("side", "kind")) == ("kind", "side")
    assert "lesion" not in loaded().to_snapshot().replace('"name":"lesions"', "")
    for wrong in (("colour",), ("side", "side")):
        with pytest.raises(PolicyError):
            loaded(*wrong)
