"""Table E.1-1, cell by cell, against what Table E.1-1a of PS3.15 says of the codes."""

import csv
from collections.abc import Mapping

import pytest
from header_objects import BASIC, CT, policy
from pydicom.datadict import dictionary_VR

from gateway.header import Act, action_of
from gateway.header.dictionary import dictionary, tags_by_keyword
from gateway.header.iod import TOP, is_listed, types_of
from gateway.header.plan import plan_for
from gateway.policy import load_table
from gateway.policy.standard import FOLDER, load_type_conflicts

# PS3.15 Table E.1-1a in words, by (code, Type): "" is Type 3. Written out, not computed: this is the oracle.
RIGHT: Mapping[str, tuple[Act, Act, Act]] = {
    # code:    Type 3      Type 2      Type 1
    "D": (Act.DUMMY, Act.DUMMY, Act.DUMMY),
    "Z": (Act.ZERO, Act.ZERO, Act.DUMMY),
    "X": (Act.REMOVE, Act.ZERO, Act.DUMMY),
    "U": (Act.UID, Act.UID, Act.UID),
    "Z/D": (Act.ZERO, Act.ZERO, Act.DUMMY),
    "X/Z": (Act.REMOVE, Act.ZERO, Act.DUMMY),
    "X/D": (Act.REMOVE, Act.ZERO, Act.DUMMY),
    "X/Z/D": (Act.REMOVE, Act.ZERO, Act.DUMMY),
    "X/Z/U*": (Act.RECURSE, Act.RECURSE, Act.RECURSE),
}
D_ON_SEQUENCE = (Act.REMOVE, Act.ZERO, Act.DUMMY)  # note to E.1.1: removed from an IOD that does not define it
PSEUDONYMOUS = {"PatientID": Act.PATIENT_ID, "PatientName": Act.PATIENT_NAME}
GROUPS = ("50xxxxxx", "60xx3000", "60xx4000", "ggggeeee")


def rows() -> list[dict[str, str]]:
    lines = (FOLDER / "ps3_15_e1_1_2026d.csv").read_text().splitlines()
    return [row for row in csv.DictReader(line for line in lines if line[0] != "#") if row["tag"] not in GROUPS]


def vr_of(tag: str) -> str:
    return dictionary()[int(tag, 16)].vr


def test_the_table_has_657_rows_of_which_four_are_groups() -> None:
    assert len(rows()) == 653
    assert set(GROUPS) <= set(load_table())


@pytest.mark.parametrize(("column", "kind"), [(0, ""), (1, "2"), (2, "1")])
def test_every_basic_cell_does_what_its_code_says(column: int, kind: str) -> None:
    table = load_table()
    for row in rows():
        vr = vr_of(row["tag"])
        right = (D_ON_SEQUENCE if row["basic"] == "D" and vr == "SQ" else RIGHT[row["basic"]])[column]
        if row["keyword"] in PSEUDONYMOUS:
            right = PSEUDONYMOUS[row["keyword"]]
        elif row["basic"] == "D" and vr == "UI":
            right = Act.UID
        assert action_of(table[row["tag"]], vr, kind=kind).act is right, row


TEXTS = ("LO", "LT", "SH", "ST", "UC", "UT")


@pytest.mark.parametrize(
    "option",
    [
        *("retain-uids", "retain-device-identity", "retain-institution-identity", "retain-patient-characteristics"),
        *("retain-longitudinal-full-dates", "retain-longitudinal-modified-dates", "clean-descriptors"),
    ],
)
def test_every_option_cell_overrides_the_basic_code(option: str) -> None:
    table = load_table()
    cells = 0
    for row in rows():
        code = dict(pair.split("=") for pair in row["options"].split()).get(option)
        if code is None:
            continue
        cells += 1
        vr = vr_of(row["tag"])
        basic = action_of(table[row["tag"]], vr).act
        if code == "K":
            right = Act.RECURSE if vr == "SQ" else Act.KEEP
        elif option.endswith("modified-dates") and vr in ("DA", "DT", "TM"):
            right = Act.SHIFT
        elif option in ("clean-descriptors", "retain-patient-characteristics") and vr in TEXTS:
            right = Act.CLEAN
        elif option == "clean-descriptors" and vr == "SQ":
            right = Act.RECURSE
        else:  # C: titles of application entities become keyed dummies; bytes and codes that need cleaning are not kept
            right = Act.DUMMY if vr == "AE" else basic
        assert action_of(table[row["tag"]], vr, options={option}).act is right, row
    # requirements.md 4 counts the cells of each column
    counted = {"retain-uids": 60, "retain-device-identity": 59, "retain-institution-identity": 10}
    counted |= {"retain-patient-characteristics": 19, "clean-descriptors": 141}
    assert cells == counted.get(option, 169)


def test_clean_beats_keep_where_two_options_disagree() -> None:
    row = load_table()["00181200"]  # Date of Last Calibration
    both = {"retain-device-identity", "retain-longitudinal-modified-dates"}
    assert {option: row.columns[option] for option in both} == {
        "retain-device-identity": "K",
        "retain-longitudinal-modified-dates": "C",
    }
    assert action_of(row, "DA", options=both).act is Act.SHIFT


@pytest.mark.parametrize(
    ("sop_class", "parent", "keyword", "kind"),
    [
        ("1.2.840.10008.5.1.4.1.1.11.1", "", "PresentationCreationDate", "1"),  # GSPS
        (
            "1.2.840.10008.5.1.4.1.1.130",
            "RadiopharmaceuticalInformationSequence",
            "RadiopharmaceuticalStartDateTime",
            "1",
        ),
        ("1.2.840.10008.5.1.4.1.1.481.5", "", "RTPlanDate", "2"),
        ("1.2.840.10008.5.1.4.1.1.88.59", "ReferencedRequestSequence", "RequestedProcedureID", "2"),
        ("1.2.840.10008.5.1.4.1.1.481.3", "SourceSeriesInformationSequence", "SeriesDescription", "1"),
        ("1.2.840.10008.5.1.4.1.1.481.3", "", "StructureSetLabel", ""),  # D whatever its Type: not listed
        (CT, "", "SeriesDescription", ""),
        (CT, "", "StudyDate", "2"),
        (CT, "", "DeviceSerialNumber", ""),
        ("1.2.840.10008.5.1.4.1.1.2.1", "", "DeviceSerialNumber", "1"),  # Enhanced General Equipment
        ("1.2.840.10008.5.1.4.1.1.11.1", "", "GraphicAnnotationSequence", ""),  # a module of its own, left out whole
    ],
)
def test_types_are_those_of_ps3_3(sop_class: str, parent: str, keyword: str, kind: str) -> None:
    tags = tags_by_keyword()
    assert is_listed(sop_class)
    assert types_of(sop_class).get((tags[parent] if parent else TOP, tags[keyword]), "") == kind


def test_every_type_conflict_of_the_standard_is_resolved_by_a_value_or_by_zero_length() -> None:
    """Where a literal X or Z breaks the IOD (58 places), the strictest plan writes a dummy or an empty value."""
    tags = tags_by_keyword()
    strict = plan_for(BASIC, "1.2.840.10008.5.1.4.1.1.999")  # no table: the strictest Type anywhere
    alone = {"OverlayData", "TimezoneOffsetFromUTC"}  # the group, or the module, goes as a whole
    for conflict in load_type_conflicts():
        if conflict.keyword in alone:
            continue
        parent = tags[conflict.sequence_path.rsplit("/", 1)[-1]] if conflict.sequence_path else TOP
        act = strict.decide(tags[conflict.keyword], parent).act
        assert act in (Act.DUMMY, Act.ZERO), conflict
        assert act is Act.DUMMY or conflict.type[0] == "2", conflict


def test_a_kept_attribute_stays_at_every_depth_and_a_kept_sequence_is_entered() -> None:
    plan = plan_for(policy(keep={"StationName": "scanner study", "RequestAttributesSequence": "links"}), CT)
    assert plan.decide(0x00081010).act is Act.KEEP
    assert plan.decide(0x00081010, 0x00081111).act is Act.KEEP
    assert plan.decide(0x00400275).act is Act.RECURSE


def test_vrs_come_from_ps3_6() -> None:
    assert dictionary()[0x00100010].vr == dictionary_VR(0x00100010) == "PN"
    assert dictionary()[0x0040B034].vr == "DT"  # Annotation DateTime, unknown to pydicom 3.0.2
