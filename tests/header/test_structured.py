"""Clean Structured Content (PS3.15 E.3.4): every row of Table E.3.4-1, and what no row covers, by value type."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
from header_objects import BASIC, KOS, NAME, PLANT, PSEUDONYMS, SYNTAXES, Scrubbed, ct_base, one, policy, scrub
from pydicom.dataset import Dataset
from pydicom.sr._snomed_dict import mapping
from reports import INSTANCE, UID, VALUE_OF, VALUES, code, content, measured, report

from gateway.errors import Hold
from gateway.header import describe
from gateway.policy.content_table import ContentRow, load_content_table

CLEAN = policy("clean-structured-content")
DATED = policy("clean-structured-content", "retain-longitudinal-modified-dates")
MOVED = date(2020, 1, 31) + timedelta(days=PSEUDONYMS.shift_days("LEAK0001", -365, 365))
ROWS = sorted(load_content_table().values(), key=lambda row: (row.scheme, row.code, row.value_type))
DUMMIES = {"DATE": "20000101", "TIME": "120000", "DATETIME": "20000101120000"}


def items(out: Scrubbed) -> list[Dataset]:
    """The content below the title, without the item that `report` appends."""
    found = list(out.ds.ContentSequence)
    assert found[-1].MeasuredValueSequence[0].NumericValue == 42.5
    return found[:-1]


def value(item: Dataset) -> object:
    return getattr(item, VALUE_OF[item.ValueType])


def is_dummy(row: ContentRow, item: Dataset) -> bool:
    kind = row.value_type
    if kind in ("IMAGE", "COMPOSITE", "WAVEFORM"):
        return item.ReferencedSOPSequence[0].ReferencedSOPInstanceUID == PSEUDONYMS.uid(INSTANCE)
    if kind == "UIDREF":
        return PSEUDONYMS.uid(UID) == item.UID
    if kind in DUMMIES:
        return str(value(item)) == DUMMIES[kind]
    return str(value(item)).startswith("ANON-")


def named(row: ContentRow) -> str:
    return f"{row.scheme} {row.code} {row.value_type}"


@pytest.mark.parametrize("row", ROWS, ids=named)
def test_every_row_removes_or_replaces_as_its_basic_code_says(tmp_path: Path, row: ContentRow) -> None:
    """X goes; D, and X/D because a template may require the item, is replaced; the concept stays."""
    out = scrub(tmp_path, report(content(row.value_type, (row.code, row.scheme))), CLEAN)
    assert out.has_plant() == []
    if row.basic == "X":
        assert items(out) == []
        return
    (item,) = items(out)
    assert is_dummy(row, item)
    assert item.ConceptNameCodeSequence[0].CodeValue == row.code
    assert "113104" in {code.CodeValue for code in out.ds.DeidentificationMethodCodeSequence}


@pytest.mark.parametrize("row", [row for row in ROWS if row.columns], ids=named)
def test_every_cell_of_an_option_beats_the_basic_code(tmp_path: Path, row: ContentRow) -> None:
    for option, cell in row.columns.items():
        if option == "clean-descriptors":
            continue  # the next test
        before = content(row.value_type, (row.code, row.scheme))
        (item,) = items(scrub(tmp_path, report(before), policy("clean-structured-content", option)))
        if cell == "K" and row.value_type == "CONTAINER":
            assert item == before
        elif cell == "K":
            assert value(item) == value(before)
        else:
            assert cell == "C"
            assert is_shifted(row.value_type, value(item))


TEXTS = {
    "mass in the left lung, seen with Leaktest": "mass in the left lung, seen with",
    "Zzsynth, Leaktest": "Removed",  # nothing is left, and a TEXT item has a value
    "no change": "no change",
}


@pytest.mark.parametrize("said", TEXTS)
def test_with_clean_descriptors_text_stays_without_what_identifies(tmp_path: Path, said: str) -> None:
    """Rows that say C in that column, and text that no row covers; the other rows stay what they are."""
    header = policy("clean-structured-content", "clean-descriptors")
    cleaned = [row for row in ROWS if row.value_type == "TEXT" and row.columns.get("clean-descriptors") == "C"]
    before = [content("TEXT", (row.code, row.scheme), TextValue=said) for row in cleaned]
    before += [content("TEXT", UNLISTED, TextValue=said), content("TEXT", ("121022", "DCM"), TextValue=said)]
    out = scrub(tmp_path, report(*before), header)
    assert [item.TextValue for item in items(out)] == [TEXTS[said]] * (len(cleaned) + 1)
    assert {"113104", "113105"} <= {code.CodeValue for code in out.ds.DeidentificationMethodCodeSequence}


def is_shifted(kind: str, shown: object) -> bool:
    if kind == "TIME":
        return str(shown) == "101500"
    return str(shown) == MOVED.strftime("%Y%m%d") + ("" if kind == "DATE" else "101500")


@pytest.mark.parametrize("scheme", ["SRT", "SNM3", "99SDM"])
def test_a_concept_in_a_retired_scheme_finds_the_row_of_its_successor(tmp_path: Path, scheme: str) -> None:
    for row in ROWS:
        if row.scheme != "SCT" or row.basic != "X":
            continue
        old = mapping["SCT"][row.code]
        assert items(scrub(tmp_path, report(content(row.value_type, (old, scheme))), CLEAN)) == []


@pytest.mark.parametrize(("keyword", "value_"), [("LongCodeValue", "121106"), ("URNCodeValue", "121106")])
def test_a_concept_may_be_coded_in_a_long_or_urn_value(tmp_path: Path, keyword: str, value_: str) -> None:
    item = content("TEXT", ("121106", "DCM"))
    del item.ConceptNameCodeSequence[0].CodeValue
    setattr(item.ConceptNameCodeSequence[0], keyword, value_)
    assert items(scrub(tmp_path, report(item), CLEAN)) == []


# -- outside the table ------------------------------------------------------------------------------------------------

UNLISTED = ("99999", "99TEST")


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("concept", [UNLISTED, None])
def test_what_no_row_covers_is_judged_by_its_value_type(
    tmp_path: Path, syntax: str, concept: tuple[str, str] | None
) -> None:
    kinds = [*(kind for kind in VALUES if kind != "CONTAINER"), "NUM", "CODE", "IMAGE", "COMPOSITE", "WAVEFORM"]
    before = {kind: content(kind, concept) for kind in kinds}
    out = scrub(tmp_path, report(*before.values()), CLEAN, syntax)
    after = {item.ValueType: item for item in items(out)}
    assert out.has_plant() == []
    assert list(after) == kinds
    assert after["TEXT"].TextValue == "Removed"
    assert str(after["PNAME"].PersonName).startswith("ANON-")
    assert {kind: str(value(after[kind])) for kind in DUMMIES} == DUMMIES
    assert PSEUDONYMS.uid(UID) == after["UIDREF"].UID
    for kind in ("IMAGE", "COMPOSITE", "WAVEFORM"):
        assert value(after[kind])[0].ReferencedSOPInstanceUID == PSEUDONYMS.uid(INSTANCE)
        assert value(after[kind])[0].ReferencedSOPClassUID == value(before[kind])[0].ReferencedSOPClassUID
    for kind in ("NUM", "CODE"):
        assert after[kind] == before[kind]


def test_dates_outside_the_table_follow_the_date_options(tmp_path: Path) -> None:
    dated = report(*(content(kind, UNLISTED) for kind in ("DATE", "TIME", "DATETIME")))
    for item in items(scrub(tmp_path, dated, DATED)):
        assert is_shifted(item.ValueType, value(item))
    kept = scrub(tmp_path, dated, policy("clean-structured-content", "retain-longitudinal-full-dates"))
    assert [str(value(item)) for item in items(kept)] == ["20200131", "101500", "20200131101500"]
    dated.ContentSequence[0].Date = ""
    assert value(items(scrub(tmp_path, dated, DATED))[0]) == ""


@pytest.mark.parametrize("kind", ["TEXT", "DATE", "XYZ", ""])
def test_a_value_of_another_type_than_the_item_says_does_not_stay(tmp_path: Path, kind: str) -> None:
    item = content("NUM", UNLISTED, TextValue="LEAKTEST", PersonName=NAME, DateTime="19500131", UID=UID)
    item.ValueType = kind
    out = scrub(tmp_path, report(item), CLEAN)
    assert out.has_plant() == []
    assert UID.encode() + b"\0" not in out.bytes


@pytest.mark.parametrize(
    ("number", "unit", "right"),
    [("93", "a", "90"), ("89", "a", "89"), ("1099", "mo", "1080"), ("1079", "mo", "1079"), ("93", "mm", "93")],
)
def test_case_40_ages_over_89_are_capped_in_numbers_of_a_report(
    tmp_path: Path, number: str, unit: str, right: str
) -> None:
    aged = content("NUM", ("121033", "DCM"), MeasuredValueSequence=[measured(number, unit)])
    aged.MeasuredValueSequence[0].FloatingPointValue = float(number)
    out = scrub(tmp_path, report(aged), policy("clean-structured-content", "retain-patient-characteristics"))
    (item,) = items(out)
    shown = item.MeasuredValueSequence[0]
    assert str(shown.NumericValue) == right
    assert shown.get("FloatingPointValue") == (None if number != right else float(number))
    assert shown.MeasurementUnitsCodeSequence == aged.MeasuredValueSequence[0].MeasurementUnitsCodeSequence


# -- trees ------------------------------------------------------------------------------------------------------------


def test_an_item_that_something_hangs_on_stays_with_a_dummy_and_what_hangs_on_it_is_judged_too(tmp_path: Path) -> None:
    below = content("TEXT", ("121106", "DCM"))
    number = content("NUM", UNLISTED)
    finding = content("TEXT", ("121106", "DCM"), ContentSequence=[number, below, content("PNAME", UNLISTED)])
    (item,) = items(scrub(tmp_path, report(finding), CLEAN))
    assert item.TextValue == "Removed"
    assert [one.ValueType for one in item.ContentSequence] == ["NUM", "PNAME"]
    assert item.ContentSequence[0] == number


def test_a_container_of_the_table_goes_with_everything_in_it(tmp_path: Path) -> None:
    inside = content("TEXT", ("74711-3", "LN"))
    devices = content("CONTAINER", ("121000", "DCM"), ContentSequence=[inside])
    assert items(scrub(tmp_path, report(devices), CLEAN)) == []
    kept = policy("clean-structured-content", "retain-device-identity")
    devices.ContentSequence[0].TextValue = "(01)00643169001763"
    (item,) = items(scrub(tmp_path, report(devices), kept))
    assert item == devices


def test_content_whose_items_all_went_is_no_empty_sequence(tmp_path: Path) -> None:
    box = content("CONTAINER", UNLISTED, ContentSequence=[content("TEXT", ("121106", "DCM"))])
    (item,) = items(scrub(tmp_path, report(box), CLEAN))
    assert "ContentSequence" not in item


def test_a_report_whose_items_refer_to_each_other_by_position_loses_none(tmp_path: Path) -> None:
    """PS3.3 C.17.3.2.5: 1\\3 is the third item below the title; removing the first would point it elsewhere."""
    removed = [content(row.value_type, (row.code, row.scheme)) for row in ROWS if row.basic == "X"]
    pointer = one(RelationshipType="INFERRED FROM", ReferencedContentItemIdentifier=[1, 3])
    before = report(*removed, content("NUM", UNLISTED, ContentSequence=[pointer]))
    out = scrub(tmp_path, before, CLEAN)
    after = items(out)
    assert out.has_plant() == []
    assert [item.ValueType for item in after] == [item.ValueType for item in before.ContentSequence[:-1]]
    assert after[-1].ContentSequence == [pointer]
    for item in after[:-1]:
        if item.ValueType == "TEXT":
            assert item.TextValue == "Removed"
        elif item.ValueType in ("NUM", "CODE"):
            assert [one.CodeMeaning for one in value(item)] == ["Removed"] * (item.ValueType == "CODE")
        elif item.ValueType != "CONTAINER":
            assert is_dummy(ContentRow("", "", "", item.ValueType, "X", {}), item)


def test_case_15_names_that_stand_anywhere_in_the_report_do_not_survive_in_its_text(tmp_path: Path) -> None:
    deep = content("CONTAINER", UNLISTED)
    deep.ContentSequence = [content("PNAME", UNLISTED, PersonName="Quixote^Alonso")]
    ds = report(
        content("TEXT", UNLISTED, TextValue="Alonso Quixote saw Leaktest Zzsynth, born 31 Jan 1950, LEAK0001"),
        deep,
    )
    ds.VerificationFlag = "VERIFIED"
    ds.VerifyingObserverSequence = [
        one(VerifyingObserverName="Verifier^One", VerifyingOrganization="Clinic", VerificationDateTime="20200131")
    ]
    ds.AuthorObserverSequence = [one(PersonName="Author^One", InstitutionName="Clinic")]
    for header in (CLEAN, DATED):
        out = scrub(tmp_path, ds, header)
        lowered = out.bytes.lower()
        gone = (b"quixote", b"alonso", b"verifier", b"author", b"clinic", *(word.lower() for word in PLANT))
        assert [word for word in gone if word in lowered] == []
        assert "AuthorObserverSequence" not in out.ds
        assert len(out.ds.VerifyingObserverSequence) == 1  # Type 1C of a verified report


def test_evidence_follows_the_instances_it_names(tmp_path: Path) -> None:
    ds = report(content("IMAGE", UNLISTED))
    ds.CurrentRequestedProcedureEvidenceSequence = [
        one(
            StudyInstanceUID=ds.StudyInstanceUID,
            ReferencedSeriesSequence=[
                one(
                    SeriesInstanceUID="1.2.3.5",
                    RetrieveAETitle="PACS",
                    ReferencedSOPSequence=[one(ReferencedSOPClassUID="1.2.3", ReferencedSOPInstanceUID=INSTANCE)],
                )
            ],
        )
    ]
    out = scrub(tmp_path, ds, CLEAN)
    study = out.ds.CurrentRequestedProcedureEvidenceSequence[0]
    series = study.ReferencedSeriesSequence[0]
    assert study.StudyInstanceUID == out.ds.StudyInstanceUID
    assert series.SeriesInstanceUID == PSEUDONYMS.uid("1.2.3.5")
    assert series.ReferencedSOPSequence[0].ReferencedSOPInstanceUID == PSEUDONYMS.uid(INSTANCE)
    assert b"PACS" not in out.bytes


# -- elsewhere --------------------------------------------------------------------------------------------------------


def test_acquisition_context_and_specimen_preparation_are_cleaned_item_by_item(tmp_path: Path) -> None:
    ds = report()
    ds.SOPClassUID = "1.2.840.10008.5.1.4.1.1.77.1.6"
    del ds.ContentSequence
    context = [content("PNAME", UNLISTED), content("NUM", UNLISTED), content("TEXT", ("111703", "DCM"))]
    ds.AcquisitionContextSequence = context
    step = [content("TEXT", ("121041", "DCM"), TextValue="LEAK0001-S1"), *context]
    ds.SpecimenDescriptionSequence = [
        one(
            SpecimenIdentifier="LEAK0001-S1",
            SpecimenPreparationSequence=[one(SpecimenPreparationStepContentItemSequence=step)],
        )
    ]
    out = scrub(tmp_path, ds, CLEAN)
    specimen = out.ds.SpecimenDescriptionSequence[0]
    assert [item.ValueType for item in out.ds.AcquisitionContextSequence] == ["PNAME", "NUM"]
    assert out.ds.AcquisitionContextSequence[1] == context[1]
    steps = specimen.SpecimenPreparationSequence[0].SpecimenPreparationStepContentItemSequence
    assert [item.ValueType for item in steps] == ["TEXT", "PNAME", "NUM", "TEXT"]
    assert steps[0].TextValue == specimen.SpecimenIdentifier  # the step still says which specimen it was
    assert steps[2] == context[1]
    assert out.has_plant() == []
    ds.AcquisitionContextSequence = context[2:]
    assert list(scrub(tmp_path, ds, CLEAN).ds.AcquisitionContextSequence) == []  # Type 2
    basic = scrub(tmp_path, ds, BASIC)
    assert len(basic.ds.get("AcquisitionContextSequence", [])) == 0


def test_without_the_option_a_report_is_held_and_the_claim_needs_content(tmp_path: Path) -> None:
    with pytest.raises(Hold) as held:
        scrub(tmp_path, report(), BASIC)
    assert held.value.reason == "structured_content"
    claimed = scrub(tmp_path, ct_base(), CLEAN).ds.DeidentificationMethodCodeSequence
    assert [code.CodeValue for code in claimed] == ["113100"]


def test_a_key_object_keeps_its_selection_and_loses_its_words(tmp_path: Path) -> None:
    ds = report(content("TEXT", ("113012", "DCM")), content("PNAME", ("121008", "DCM")), sop_class=KOS)
    ds.ContentSequence = [*ds.ContentSequence[:2], content("IMAGE", None)]
    out = scrub(tmp_path, ds, CLEAN)
    assert [item.ValueType for item in out.ds.ContentSequence] == ["PNAME", "IMAGE"]
    assert out.ds.ContentSequence[1].ReferencedSOPSequence[0].ReferencedSOPInstanceUID == PSEUDONYMS.uid(INSTANCE)
    assert out.has_plant() == []
    ds.ContentSequence = ds.ContentSequence[:1]
    with pytest.raises(Hold):  # nothing is left of the selection
        scrub(tmp_path, ds, CLEAN)


def test_codes_stay_with_their_meanings(tmp_path: Path) -> None:
    item = content("CODE", UNLISTED, ConceptCodeSequence=[code("T-D4000", "SRT", "Abdomen")])
    assert items(scrub(tmp_path, report(item), CLEAN)) == [item]


def test_explain_says_what_becomes_of_content(tmp_path: Path) -> None:
    says = {line.keyword: line.action for line in describe(CLEAN)}
    assert says["ContentSequence"] == "kept; its content items are cleaned one by one"
    assert says["AcquisitionContextSequence"] == "kept; its content items are cleaned one by one"
    says = {line.keyword: line.action for line in describe(BASIC)}
    assert says["ContentSequence"].startswith("a key object keeps its references")
