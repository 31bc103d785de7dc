"""Nothing that two policies say differently goes untold."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.app.policy.difference import tag_changes
from gateway.policy import Policy
from gateway.policy.difference import NONE, SECTIONS, differences
from gateway.policy.loading import KEYS

Load = Callable[[str | bytes], Policy]


def test_every_part_of_a_policy_has_its_section() -> None:
    assert set(SECTIONS) == set(KEYS) - {"name"}


@pytest.mark.parametrize(
    ("before", "after", "section", "key"),
    [
        ("retain-device-identity", "retain-institution-identity", "header", "header.options"),
        ("prefix: BT-", "prefix: XX-", "header", "header.patient_id.prefix"),
        ("[-300, 300]", "[-200, 200]", "header", "header.dates.shift_days"),
        ('PatientSex: "stratification', 'PatientSex: "balance', "header", "header.keep.PatientSex"),
        ("target: 0.1", "target: 0.2", "pixels", "pixels"),
        ("max: 0", "max: 3", "gate", "gate.study.residual_identifiers.max"),
        ("words: [a, b]", "words: [b, a]", "gate", "gate.release.rank1.words"),
        ("modality: [CT, MR]", "modality: [CT]", "gate", "gate.not_assessed"),
        ("levels: [0.95, 0.7]", "levels: [0.95, 0.6]", "afterwards", "escalate.levels"),
        ("min_subjects: 150", "min_subjects: 151", "afterwards", "release.min_subjects"),
        ("held_days: 20", "held_days: 21", "afterwards", "retain.held_days"),
        ("to: research-archive", "to: other-archive", "afterwards", "forward.to"),
    ],
)
def test_any_change_is_told_by_its_key_and_in_words(
    load: Load, whole: str, before: str, after: str, section: str, key: str
) -> None:
    changed = whole.replace(before, after, 1)
    assert changed != whole
    (found,) = differences(load(whole), load(changed))
    assert found.section == section
    assert key in {change.key for change in found.keys}
    assert found.gone
    assert found.come


def test_a_part_that_comes_or_goes_is_told(load: Load, whole: str, small: str) -> None:
    found = {change.section: change for change in differences(load(small), load(whole))}
    assert found.keys() == {"header", "pixels", "gate", "afterwards"}
    keys = {key.key: (key.old, key.new) for change in found.values() for key in change.keys}
    assert keys["release"][0] == NONE
    assert '"min_subjects": 150' in keys["release"][1]
    back = {key.key: (key.new, key.old) for change in differences(load(whole), load(small)) for key in change.keys}
    assert back == keys


def test_names_comments_and_order_are_no_difference(load: Load, whole: str) -> None:
    other = "# another file\n" + whole.replace("name: brain-2026", "name: other")
    other = other.replace(
        "[retain-longitudinal-modified-dates, retain-device-identity]",
        "[retain-device-identity, retain-longitudinal-modified-dates]",
    )
    assert differences(load(whole), load(other)) == []


def test_attributes_are_grouped_by_what_changes_for_them(load: Load, small: str) -> None:
    basic, device = load(small), load(small + "header: {options: [retain-device-identity]}\n")
    changes = tag_changes(basic.header, device.header)
    named = {keyword: (change.old, change.new) for change in changes for _, keyword in change.attributes}
    assert named["DeviceSerialNumber"] == ("removed, emptied or replaced by a dummy where the IOD requires it", "kept")
    assert "StudyDate" not in named
    assert [len(change.attributes) for change in changes] == sorted(
        (len(change.attributes) for change in changes), reverse=True
    )
    assert tag_changes(basic.header, basic.header) == []
