"""Policies load strictly: each fault has its file, line and hint, all at once, and nothing loads that is not whole."""

from __future__ import annotations

import dataclasses
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import Fault, PolicyError
from gateway.policy import DatePolicy, HeaderPolicy, Policy, Registry, load_policy
from gateway.policy.model import CARRIED_OUT
from gateway.policy.standard import OPTIONS, all_keywords, load_table, tag_of_keyword

Load = Callable[[str | bytes], Policy]


def faults(load: Load, text: str | bytes) -> list[tuple[int, str, str]]:
    with pytest.raises(PolicyError) as caught:
        load(text)
    return [(fault.line, fault.says, fault.hint) for fault in caught.value.faults]


def test_a_whole_policy_loads_with_every_value(load: Load, whole: str) -> None:
    policy = load(whole)
    assert policy.name == "brain-2026"
    assert policy.extends == ("ps3.15-basic@2026d",)
    assert policy.header.options == {"retain-longitudinal-modified-dates", "retain-device-identity"}
    assert policy.header.patient_id.prefix == "BT-"
    assert policy.header.dates == DatePolicy(shift_days=(-300, 300))
    assert dict(policy.header.keep) == dict.fromkeys(("PatientAge", "PatientSex"), "stratification, DPO-2026-014")
    assert policy.header.kept_tags == {0x00101010, 0x00100040}
    assert [name for name, _ in policy.pixels] == ["deface", "resynthesize"]
    assert policy.pixels[1][1].privacy.target == 0.1
    assert policy.gate.study["residual_identifiers"].max == 0
    assert policy.gate.release["rank1"].target == 1.0
    assert policy.gate.release["rank1"].words == ("a", "b")
    entry = policy.gate.not_assessed[0]
    assert (entry.aspects, entry.modality, entry.reason, entry.approver) == (
        ("burned_in_text",), ("CT", "MR"), "rare", "J. Doe",
    )  # fmt: skip
    assert policy.release is not None
    assert policy.release.min_subjects == 150
    assert (policy.retain.originals_days, policy.retain.held_days, policy.retain.references_days) == (10, 20, 30)
    assert policy.forward.to == "research-archive"
    assert policy.escalate is not None
    assert policy.escalate.levels == (0.95, 0.7)


def test_a_small_policy_gets_the_strict_defaults(load: Load, small: str) -> None:
    policy = load(small)
    assert policy.header == HeaderPolicy()
    assert policy.header.dates is None
    assert policy.pixels == ()
    assert policy.release is None
    assert policy.gate.not_assessed == ()


def test_the_modified_dates_option_takes_the_default_range(load: Load, small: str) -> None:
    policy = load(small + "header: {options: [retain-longitudinal-modified-dates]}\n")
    assert policy.header.dates == DatePolicy(shift_days=(-365, 365), scope="patient")


FAULTY = """\
name: Brain Tumour
extends: [ps3.15-basic@2026c]
header:
  options:
    - clean-descriptor
    - retain-uid
    - retain-uids
    - retain-uids
  patient_id: {pseudonym: plain, prefix: "B T"}
  dates:
    shift_days: [-1, 1]
    scop: patient
  keep:
    PatientAge: ""
    OperatorName: x
    PatientID: x
    StudyDate: x
    (0010,1030): x
    OverlayData: x
    ReferringPhysicianName: x
    StudyInstanceUID: x
    PatientSize: 3
pixels:
  - defaced: {}
  - deface
  - deface: {margin_mm: wide}
  - deface: {}
gate:
  study:
    residual_identifers: {max: 0}
    residual_identifiers: {max: no, mix: 2}
  release:
    rank1: {}
  not_assessed:
    - {aspects: [burned_in_txt], modality: [ct], reason: r, approver: s}
    - {aspects: [image_identity], modality: [MR], reason: r}
    - {aspects: [image_identity, image_identity], modality: [CT], reason: r, approver: s}
escalate: {stage: deface, levels: [0.9], max_attempts: 4}
retain: {originals_days: 3.5}
forward: {verify: storage-comitment}
forwards: 3
name: x
"""


def test_every_fault_of_a_file_is_shown_at_once_with_its_line(load: Load) -> None:
    found = {(line, says) for line, says, _ in faults(load, FAULTY)}
    either = (
        "the options retain-longitudinal-full-dates and retain-longitudinal-modified-dates decide about all of them"
    )
    together = "they stay consistent only together, by the option retain-uids"
    assert found == {
        (1, "name must be 1 to 63 small letters, digits, dots and dashes, and start with a letter or digit"),
        (2, "unknown profile or edition ps3.15-basic@2026c"),
        (5, "unknown option clean-descriptor"),
        (6, "unknown option retain-uid"),
        (4, "an option is here twice: retain-uids"),
        (9, "patient_id.pseudonym must be 'keyed' or 'lookup'"),
        (9, "a prefix has at most 48 letters, digits, dots, dashes and underscores"),
        (12, "unknown key scop"),
        (14, "keep.PatientAge must not be empty"),
        (15, "unknown DICOM keyword OperatorName"),
        (16, "PatientID is replaced as header.patient_id says"),
        (17, f"StudyDate is a date or time: {either}"),
        (18, "(0010,1030) is a tag, a keyword is needed"),
        (19, "OverlayData belongs to a repeating group, which is not kept by name"),
        (20, "ReferringPhysicianName names the person or may hold what was removed: no reason can keep it"),
        (21, f"StudyInstanceUID is a UID or refers by UIDs: {together}"),
        (22, "keep.PatientSize needs text"),
        (24, "unknown stage defaced"),
        (25, "a stage is one name with its parameters"),
        (26, "margin_mm needs a number"),
        (27, "the stage deface is here twice"),
        (30, "unknown study check residual_identifers"),
        (31, "max needs a whole number"),
        (31, "unknown key mix"),
        (33, "the key target is missing"),
        (32, "release checks need people, and this policy clears study by study"),
        (35, "modality ct must be a defined term such as CT: capitals and digits (PS3.3 C.7.3.1.1.1)"),
        (36, "the key approver is missing"),
        (35, "image_identity of CT is accepted twice"),
        (38, "the stage deface has no levels"),
        (38, "max_attempts is larger than the number of levels"),
        (39, "originals_days needs a whole number"),
        (40, "verify must be 'status' or 'storage-commitment'"),
        (41, "unknown key forwards"),
        (42, "the key name is here twice, first in line 1"),
    }


def test_faults_come_with_the_next_action(load: Load) -> None:
    hints = {says: hint for _, says, hint in faults(load, FAULTY)}
    assert hints["unknown option retain-uid"] == "did you mean retain-uids?"
    assert hints["unknown DICOM keyword OperatorName"] == "did you mean OperatorsName?"
    assert hints["unknown key scop"] == "did you mean scope?"
    assert hints["unknown key forwards"] == "did you mean forward?"
    assert hints["unknown stage defaced"] == "did you mean deface?"
    assert hints["unknown study check residual_identifers"] == "did you mean residual_identifiers?"
    assert hints["(0010,1030) is a tag, a keyword is needed"] == "write PatientWeight"
    assert hints["unknown option clean-descriptor"] == "did you mean clean-descriptors?"
    assert hints["unknown profile or edition ps3.15-basic@2026c"] == "this version has: ps3.15-basic@2026d"


@pytest.mark.parametrize(
    ("more", "line", "says"),
    [
        (
            "header: {options: [retain-longitudinal-full-dates, retain-longitudinal-modified-dates]}",
            4,
            "exclude each other",
        ),
        ("header: {dates: {shift_days: [-100, 100]}}", 4, "is not on"),
        ("header: {options: [retain-longitudinal-full-dates], dates: {}}", 4, "is not on"),
        (
            "header: {options: [retain-longitudinal-modified-dates], dates: {shift_days: [5, 9]}}",
            4,
            "5 different shifts",
        ),
        ("header: {options: [retain-longitudinal-modified-dates], dates: {shift_days: [9, 5]}}", 4, "low <= high"),
        ("header: {options: [retain-longitudinal-modified-dates], dates: {shift_days: [0, 0]}}", 4, "shifts nothing"),
        ("header: {options: [retain-longitudinal-modified-dates], dates: {shift_days: [-9999, 0]}}", 4, "within ±3660"),
        ("header: {options: [retain-longitudinal-modified-dates], dates: {shift_days: [1.5, 90]}}", 4, "whole number"),
        (
            "header: {options: [retain-longitudinal-modified-dates], dates: {scope: study}}",
            4,
            "scope must be 'patient'",
        ),
        ("header: {dates: }", 4, "dates is empty"),
        ("header: {keep: {MediaStorageSOPClassUID: x}}", 4, "replaced as a whole"),
        ("header: {keep: {OriginalAttributesSequence: x}}", 4, "no reason can keep it"),
        ("header: {keep: {AccessionNumber: x}}", 4, "no reason can keep it"),
        ("header: {keep: {ReferencedImageSequence: x}}", 4, "refers by UIDs"),
        ("header: {keep: [PatientAge]}", 4, "needs a mapping"),
        ("header: null", 4, "needs a mapping"),
        ("header: {options: retain-uids}", 4, "needs a list"),
        ("pixels: {deface: {}}", 4, "needs a list"),
        ("pixels: [deface: ]", 4, "needs its parameters as a mapping"),
        ("release: {min_subjects: 0}", 4, "greater than or equal to 1"),
        ("release: {}", 4, "min_subjects is missing"),
        ("release: {min_subjects: 5, close: hourly}", 4, "close must be 'nightly', 'full' or 'manual'"),
        ("release: {min_subjects: 5, on_fail: send}", 4, "on_fail must be 'hold'"),
        ("release: ", 4, "needs a mapping"),
        ("retain: {held_days: 0}", 4, "greater than or equal to 1"),
        ("escalate: {stage: deface, levels: [1.0]}", 4, "not under pixels"),
        ("pixels: [resynthesize: {card: x, privacy: {target: 1, colour: red}}]", 4, "unknown key colour"),
        ("pixels: [resynthesize: {}]", 4, "the key card is missing"),
    ],
)
def test_one_fault_is_one_fault(load: Load, small: str, more: str, line: int, says: str) -> None:
    found = faults(load, small + more + "\n")
    assert len(found) == 1
    assert found[0][0] == line
    assert says in found[0][1]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("extends: [ps3.15-basic@2026d]\ngate: {study: {residual_identifiers: {}}}\n", "the key name is missing"),
        ("name: a\ngate: {study: {residual_identifiers: {}}}\n", "the key extends is missing"),
        ("name: a\nextends: [ps3.15-basic@2026d]\n", "the key gate is missing"),
        ("name: a\nextends: [ps3.15-basic@2026d]\ngate: {}\n", "nothing would be judged"),
        ("name: a\nextends: [ps3.15-basic@2026d]\ngate: {study: {}}\n", "nothing would be judged"),
        ("name: a\nextends: []\ngate: {study: {residual_identifiers: {}}}\n", "a list of one profile"),
        ("name: a\nextends: ps3.15-basic@2026d\ngate: {study: {residual_identifiers: {}}}\n", "a list of one profile"),
        ("name: a\nextends: [1]\ngate: {study: {residual_identifiers: {}}}\n", "a list of one profile"),
        ("name: 7\nextends: [ps3.15-basic@2026d]\ngate: {study: {residual_identifiers: {}}}\n", "name must be"),
    ],
)
def test_what_a_policy_must_say(load: Load, text: str, says: str) -> None:
    found = faults(load, text)
    assert len(found) == 1
    assert says in found[0][1]
    assert found[0][2] or "is missing" not in says  # how it may look


def test_what_a_check_judges_cannot_be_accepted_unjudged(load: Load, small: str) -> None:
    entry = "{aspects: [header, image_identity], modality: [SR], reason: r, approver: a}"
    text = small.replace("{max: 0}}}", f"{{max: 0}}}}, not_assessed: [\n  {entry}]}}")
    assert [(line, says) for line, says, _ in faults(load, text)] == [
        (4, "the check residual_identifiers judges header: it cannot be accepted unjudged as well")
    ]


def test_a_parameter_type_may_refuse_a_combination(load: Load, small: str) -> None:
    found = faults(load, small.replace("max: 0", "max: -1"))
    assert [(line, says) for line, says, _ in found] == [(3, "max cannot be negative")]


def test_every_option_of_the_table_is_carried_out(load: Load, small: str) -> None:
    loaded = set()
    for option in OPTIONS:
        loaded |= load(small + f"header: {{options: [{option}]}}\n").header.options
    assert loaded == CARRIED_OUT == set(OPTIONS)
    assert loaded >= {
        *("retain-uids", "retain-device-identity", "retain-institution-identity", "retain-patient-characteristics"),
        *("retain-longitudinal-full-dates", "retain-longitudinal-modified-dates"),
        *("retain-safe-private", "clean-structured-content", "clean-graphics"),
    }


def test_no_date_uid_or_name_of_the_table_can_be_kept_by_name() -> None:
    for row in load_table().values():
        dated_or_uid = "retain-longitudinal-full-dates" in row.columns or "retain-uids" in row.columns
        if dated_or_uid and tag_of_keyword(row.keyword) is not None:
            with pytest.raises(ValueError, match=row.keyword):
                HeaderPolicy(keep={row.keyword: "reason"})


def test_an_attribute_that_pydicom_does_not_know_can_be_kept() -> None:
    assert HeaderPolicy(keep={"EthnicGroups": "reason"}).kept_tags == {0x00102162}
    assert "EthnicGroups" in all_keywords()


def test_a_policy_cannot_be_changed_and_survives_pickling(load: Load, whole: str) -> None:
    policy = load(whole)
    with pytest.raises(ValueError, match="frozen"):
        policy.name = "other"  # type: ignore[misc]
    with pytest.raises(TypeError):
        policy.header.keep["PatientName"] = "x"  # type: ignore[index]
    with pytest.raises(TypeError):
        policy.gate.study["x"] = 1  # type: ignore[index]
    assert pickle.loads(pickle.dumps(policy)) == policy
    assert pickle.loads(pickle.dumps(policy)).digest == policy.digest


def test_faults_name_the_file(load: Load, tmp_path: Path, registry: Registry) -> None:
    path = tmp_path / "other.yaml"
    with pytest.raises(PolicyError) as caught:
        load_policy(path, registry)
    assert str(path) in str(caught.value)


def test_a_registry_type_with_a_nested_default_keeps_it(load: Load, small: str) -> None:
    policy = load(small + "pixels: [resynthesize: {card: x}]\n")
    assert dataclasses.asdict(policy.pixels[0][1]) == {"card": "x", "privacy": {"target": 0.05, "words": ()}}


def policy_or_faults(load: Load, text: str | bytes) -> Policy | tuple[Fault, ...]:
    try:
        return load(text)
    except PolicyError as error:
        return error.faults


WORDS = (
    *("options", "dates", "keep", "shift_days", "study", "release", "not_assessed", "residual_identifiers", "max"),
    *("aspects", "modality", "reason", "approver", "stage", "levels", "min_subjects", "PatientAge", "deface", "to"),
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 400) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["keyed", "CT", "deface", "retain-uids", "patient", "hold", "", "PatientAge", "PatientName"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(WORDS),
        inner,
        max_size=4,
    ),
    max_leaves=15,
)  # fmt: skip
SECTIONS = st.sampled_from(
    ["name", "extends", "header", "pixels", "gate", "escalate", "release", "retain", "forward", "x"]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(SECTIONS, VALUES, max_size=9))
def test_no_shape_of_data_makes_the_loader_raise_anything_but_policy_errors(
    load: Load, data: dict[str, object]
) -> None:
    outcome = policy_or_faults(load, json.dumps(data))
    assert outcome.gate.study if isinstance(outcome, Policy) else outcome


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_make_the_loader_raise_anything_but_policy_errors(load: Load, data: bytes) -> None:
    with pytest.raises(PolicyError):
        load(data)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_no_mutation_of_a_sound_policy_makes_the_loader_raise_anything_but_policy_errors(
    load: Load, whole: str, data: st.DataObject
) -> None:
    at = data.draw(st.integers(0, len(whole)))
    cut = data.draw(st.integers(0, 20))
    put = data.draw(st.text(max_size=6))
    outcome = policy_or_faults(load, (whole[:at] + put + whole[at + cut :]).encode("utf-8", "replace"))
    assert outcome.gate.study if isinstance(outcome, Policy) else outcome
