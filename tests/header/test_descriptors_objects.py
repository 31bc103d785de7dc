"""Clean Descriptors on whole objects, and the gate behind it (PS3.15 E.3.5; cases.md 1, 15, 18, 23, 40, 60)."""

from __future__ import annotations

from pathlib import Path

import pydicom
import pytest
from header_objects import BORN, NAME, PATIENT, SYNTAXES, ct_base, encoded, one, policy, scrub
from planted_words import corpus
from pydicom.dataset import Dataset
from pydicom.tag import Tag

from gateway.gate import Pair, ResidualIdentifiers
from gateway.gate.attributes import Kept
from gateway.header import Act, action_of, describe
from gateway.header.actions import CLEANED
from gateway.header.dictionary import dictionary
from gateway.policy import GatePolicy, HeaderPolicy, Policy, load_table
from gateway.study import Outcome

CLEAN = policy("clean-descriptors")
SHIFTED = policy("clean-descriptors", "retain-longitudinal-modified-dates")
DESCRIPTORS = [
    (int(row.tag, 16), dictionary()[int(row.tag, 16)])
    for row in load_table().values()
    if row.columns.get("clean-descriptors") == "C"
]
TEXTS = [(tag, entry) for tag, entry in DESCRIPTORS if entry.vr in CLEANED]


def gate(original: Path, candidate: Path, header: HeaderPolicy) -> list[str]:
    """Rules of the gate's findings for one pair of files."""
    whole = Policy(name="p", header=header, gate=GatePolicy(study={"residual_identifiers": ResidualIdentifiers()}))
    verdict = ResidualIdentifiers().judge([Pair("00001", original, candidate)], whole)
    assert (verdict.outcome is Outcome.HOLD) == bool(verdict.findings)
    return [f"{finding.where} {finding.rule}" for finding in verdict.findings]


def through(tmp_path: Path, ds: Dataset, header: HeaderPolicy = SHIFTED, syntax: str = SYNTAXES[1]) -> Dataset:
    """Scrubbed and judged: the gate must find nothing."""
    found = scrub(tmp_path, ds, header, syntax)
    assert gate(tmp_path / "in.dcm", tmp_path / "out.dcm", header) == []
    return found.ds


def setting(tag: int, vr: str, text: str) -> Dataset:
    ds = ct_base()
    ds.add_new(Tag(tag), vr, text)
    return ds


PLANTS = [
    "T1 post Zzsynth L 31.01.1950",
    "leaktest, zzsynth AX",
    "ZZSYNTH_LEAKTEST AX",
    "AX LEAK0001",
    "AX leak-0001 sag",
    "AX born 31 Jan 1950",
    "Ref Leaktest 19500131",
    "AX LEAK0001A 20200131",
]
LEFT = ["T1 post L", "AX", "AX", "AX", "AX sag", "AX born", "", "AX"]


@pytest.mark.parametrize(("tag", "entry"), TEXTS, ids=[entry.keyword for _, entry in TEXTS])
def test_a_planted_identity_leaves_every_descriptor_and_the_gate_lets_the_rest_pass(
    tmp_path: Path, tag: int, entry: object
) -> None:
    vr = dictionary()[tag].vr
    for number, (text, left) in enumerate(zip(PLANTS, LEFT, strict=True)):
        if vr == "SH":
            text, left = text[:16] if len(text) <= 16 else "AX LEAK0001", left if len(text) <= 16 else "AX"
        folder = tmp_path / str(number)
        folder.mkdir()
        out = through(folder, setting(tag, vr, text))
        got = out.get(Tag(tag))
        value = "" if got is None or got.value is None else str(got.value)
        if left:
            assert value == left
        assert not any(word in value.upper() for word in ("ZZSYNTH", "LEAKTEST", "LEAK0001", "1950"))


@pytest.mark.parametrize(("tag", "entry"), TEXTS, ids=[entry.keyword for _, entry in TEXTS])
def test_a_technical_text_stays_bit_exact_in_every_descriptor(tmp_path: Path, tag: int, entry: object) -> None:
    vr = dictionary()[tag].vr
    text = "AX T2 FLAIR FS"
    out = through(tmp_path, setting(tag, vr, text))
    assert out[Tag(tag)].value == text


def test_every_technical_description_passes_header_and_gate(tmp_path: Path) -> None:
    for number, row in enumerate(corpus("descriptors_kept.csv")):
        text = row["text"]
        if len(text) > 64 or not text.isascii():
            continue
        folder = tmp_path / str(number)
        folder.mkdir()
        ds = ct_base()
        ds.SeriesDescription = ds.ProtocolName = text.replace("\\", "/").strip()
        out = through(folder, ds)
        assert out.SeriesDescription == out.ProtocolName == text.strip()


def test_the_gate_holds_what_cleaning_missed(tmp_path: Path) -> None:
    """The cleaned file is made worse by hand: the gate must see a name, an id, a date and a place in a descriptor."""
    ds = ct_base()
    ds.InstitutionName = "Zzklinik Nordstadt"
    ds.SeriesDescription = "AX T2"
    scrub(tmp_path, ds, SHIFTED)
    source, target = tmp_path / "in.dcm", tmp_path / "out.dcm"
    for missed in ("AX Leaktest", "LEAK0001", "LEAKTEST ZZSYNTH", "31.01.1950", "Zzklinik Nordstadt"):
        bad = pydicom.dcmread(target)
        bad.SeriesDescription = missed
        bad.save_as(tmp_path / "bad.dcm")
        assert gate(source, tmp_path / "bad.dcm", SHIFTED), missed
    assert gate(source, target, SHIFTED) == []


def test_without_the_option_the_gate_still_wants_descriptors_gone(tmp_path: Path) -> None:
    ds = ct_base()
    ds.SeriesDescription = "AX T2 FLAIR FS"
    (tmp_path / "in.dcm").write_bytes(encoded(ds))
    found = scrub(tmp_path, ds, policy())
    assert "SeriesDescription" not in found.ds
    found.ds.SeriesDescription = "AX T2 FLAIR FS"
    found.ds.save_as(tmp_path / "bad.dcm")
    assert gate(tmp_path / "in.dcm", tmp_path / "bad.dcm", policy())


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_names_and_numbers_of_items_and_private_elements_are_masked_elsewhere(tmp_path: Path, syntax: str) -> None:
    ds = ct_base()
    ds.RequestAttributesSequence = [
        one(RequestedProcedureID="RQ4711X", ScheduledProcedureStepDescription="CT Nestedname")
    ]
    ds.ReferencedStudySequence = [
        one(ReferencedSOPClassUID="1.2.840.10008.3.1.2.3.1", ReferencedSOPInstanceUID="1.2.3")
    ]
    ds.ReferencedStudySequence[0].PhysiciansOfRecord = "NESTEDNAME^QUORIN"
    block = ds.private_block(0x0099, "ZZVENDOR", create=True)
    block.add_new(1, "PN", "PRIVNAME^OTHO")
    block.add_new(2, "SQ", [one(OperatorsName="DEEPNAME^X")])
    block.add_new(3, "LO", "AB1234")
    ds.SeriesDescription = "AX Privname Deepname quorin RQ4711X AB1234 T2"
    out = through(tmp_path, ds, SHIFTED, syntax)
    assert out.SeriesDescription == "AX T2"
    assert out.RequestAttributesSequence[0].ScheduledProcedureStepDescription == "CT"
    assert (0x0099, 0x1001) not in out


def test_a_code_meaning_in_a_descriptor_sequence_is_cleaned_and_the_code_stays(tmp_path: Path) -> None:
    ds = ct_base()
    item = one(CodeValue="I63.9", CodingSchemeDesignator="I10", CodeMeaning="Cerebral infarction, unspecified")
    local = one(CodeValue="W7", CodingSchemeDesignator="99LOCAL", CodeMeaning="Stroke Zzsynth ward")
    ds.AdmittingDiagnosesCodeSequence = [item, local]
    out = through(tmp_path, ds)
    assert [one.CodeMeaning for one in out.AdmittingDiagnosesCodeSequence] == [
        "Cerebral infarction, unspecified",
        "Stroke ward",
    ]
    assert [one.CodeValue for one in out.AdmittingDiagnosesCodeSequence] == ["I63.9", "W7"]


def test_values_are_cleaned_one_by_one_and_keep_their_places(tmp_path: Path) -> None:
    ds = ct_base()
    ds.AdmittingDiagnosesDescription = ["Stroke", "Zzsynth", "Leaktest fracture"]
    out = through(tmp_path, ds)
    assert list(out.AdmittingDiagnosesDescription) == ["Stroke", "", "fracture"]


def test_text_with_lines_keeps_its_lines(tmp_path: Path) -> None:
    ds = ct_base()
    ds.PatientComments = "Cough.\r\nSeen by Zzsynth.\r\n93 y/o, ID LEAK0001"
    out = through(tmp_path, ds)
    assert out.PatientComments == "Cough.\r\nSeen.\r\n90 y/o, ID"


def test_what_is_left_of_nothing_is_treated_as_without_the_option(tmp_path: Path) -> None:
    ds = ct_base()
    ds.SeriesDescription = "Zzsynth"  # X: gone
    ds.ContrastBolusAgent = "Zzsynth"  # Z/D, Type 2 in CT
    out = through(tmp_path, ds)
    assert "SeriesDescription" not in out
    assert out.ContrastBolusAgent == ""
    ds = ct_base()
    ds.SOPClassUID = "1.2.840.10008.5.1.4.1.1.481.3"
    ds.Modality = "RTSTRUCT"
    ds.StructureSetLabel = "Zzsynth"  # D, Type 1
    del ds.PixelData
    out = through(tmp_path, ds)
    assert out.StructureSetLabel.startswith("ANON-")


def test_text_kept_for_being_technical_loses_own_names_and_nothing_else(tmp_path: Path) -> None:
    ds = ct_base()
    ds.Manufacturer = "ACME"
    ds.SequenceName = "zzq*unknownwordy"
    ds.ConvolutionKernel = ["B31f", "zzsynth"]
    ds.SoftwareVersions = "VB17 LEAK0001"
    out = through(tmp_path, ds)
    assert (out.Manufacturer, out.SequenceName) == ("ACME", "zzq*unknownwordy")
    assert list(out.ConvolutionKernel) == ["B31f", ""]
    assert out.SoftwareVersions == "VB17"


def test_free_text_beyond_the_table_is_cleaned_and_numbers_there_still_go(tmp_path: Path) -> None:
    ds = ct_base()
    ds.ViewName = "Apical Zzsynth"
    ds.ContentDescription = "Liver segmentation of Leaktest"
    ds.HL7InstanceIdentifier = "1.2.3^x"
    ds.PatientBirthDateInAlternativeCalendar = "S25.01.31"
    out = through(tmp_path, ds)
    assert out.ViewName == "Apical"
    assert out.ContentDescription == "Liver segmentation of"
    assert "HL7InstanceIdentifier" not in out
    assert "PatientBirthDateInAlternativeCalendar" not in out


CHARACTER_SETS = [
    ("ISO_IR 100", "Müller^Jörg", "AX Müller sagittal größe", "AX sagittal größe"),
    ("ISO_IR 100", "Müller^Jörg", "AX MUELLER T2", "AX T2"),
    ("ISO_IR 192", "Müller^Jörg", "Becken Übersicht Jörg", "Becken Übersicht"),
    ("ISO_IR 192", "Щербаков^Юрий", "МРТ головного мозга Щербаков", "МРТ головного мозга"),
    ("ISO_IR 144", "Щербаков^Юрий", "Schtscherbakow МРТ", "МРТ"),
    ("ISO_IR 192", "Shcherbakov^Yuri", "МРТ Щербаков", "МРТ"),
    ("GB18030", "王^小东", "头部平扫 王小东", "头部平扫"),
    ("GBK", "Zhang^Wei=张^伟", "胸部CT 张伟", "胸部CT"),
    (["", "ISO 2022 IR 87"], "Yamada^Tarou=山田^太郎=やまだ^たろう", "胸部単純 山田太郎", "胸部単純"),
    (["", "ISO 2022 IR 149"], "Hong^Gildong=洪^吉洞=홍^길동", "복부 CT 홍길동", "복부 CT"),
    (["ISO 2022 IR 13", "ISO 2022 IR 87"], "ﾔﾏﾀﾞ^ﾀﾛｳ=山田^太郎", "頭部MRI 山田", "頭部MRI"),
    ("ISO_IR 126", "Διονυσιος^Δ", "Διονυσιος CT", "CT"),
    ("ISO_IR 166", "สมชาย^ใจดี", "CT สมชาย", "CT"),
]


@pytest.mark.parametrize(("charset", "name", "text", "left"), CHARACTER_SETS)
def test_names_are_found_in_every_character_set_and_the_rest_is_written_back(
    tmp_path: Path, charset: object, name: str, text: str, left: str
) -> None:
    ds = ct_base()
    ds.SpecificCharacterSet = charset
    ds.PatientName = name
    ds.SeriesDescription = text
    out = through(tmp_path, ds)
    assert out.SeriesDescription == left


@pytest.mark.parametrize(
    "charset", ["", "ISO_IR 100", "ISO_IR 192", "ISO 2022 IR 87", "ISO_IR 999", "GB18030", "ISO_IR 13"]
)
def test_bytes_of_another_character_set_than_said_are_cleaned_without_fault(tmp_path: Path, charset: str) -> None:
    for wrong in (
        "Müller Zzsynth T1".encode(),
        "Müller Zzsynth T1".encode("latin-1"),
        b"\x1b$B;3ED Zzsynth T1",
        b"\xff\xfe\x80Zzsynth T1",
    ):
        ds = ct_base()
        ds.SeriesDescription = "#" * len(wrong)
        ds.SpecificCharacterSet = "ISO_IR 100"
        data = encoded(ds).replace(b"#" * len(wrong), wrong)
        data = data.replace(b"ISO_IR 100", charset.ljust(10).encode()[:10])
        out = scrub(tmp_path, data, SHIFTED)
        assert b"Zzsynth" not in out.bytes
        assert gate(tmp_path / "in.dcm", tmp_path / "out.dcm", SHIFTED) == []


def test_an_item_with_its_own_character_set_is_read_by_it(tmp_path: Path) -> None:
    ds = ct_base()
    ds.PatientName = "Müller^Jörg"
    item = one(ScheduledProcedureStepDescription="Größe Müller", RequestedProcedureID="1")
    item.SpecificCharacterSet = "ISO_IR 192"
    ds.RequestAttributesSequence = [item]
    out = through(tmp_path, ds)
    assert out.RequestAttributesSequence[0].ScheduledProcedureStepDescription == "Größe"


def test_the_same_bytes_come_out_again_and_again(tmp_path: Path) -> None:
    ds = ct_base()
    ds.SeriesDescription, ds.PatientComments = PLANTS[0], PLANTS[1]
    outs = {scrub(tmp_path, ds, SHIFTED).bytes for _ in range(3)}
    assert len(outs) == 1


def test_the_option_is_stamped_and_explained(tmp_path: Path) -> None:
    out = through(tmp_path, ct_base(), SHIFTED)
    assert [item.CodeValue for item in out.DeidentificationMethodCodeSequence] == ["113100", "113105", "113107"]
    says = {line.keyword: line.action for line in describe(CLEAN)}
    assert says["SeriesDescription"].startswith("kept, cleaned of what identifies")
    assert says["SegmentDescription"].startswith("kept, cleaned of what identifies")
    assert says["AdmittingDiagnosesCodeSequence"].startswith("kept; its items")
    assert says["MakerNote"] == "removed"


def test_a_date_in_a_descriptor_is_masked_with_every_date_option(tmp_path: Path) -> None:
    for options in ((), ("retain-longitudinal-full-dates",), ("retain-longitudinal-modified-dates",)):
        ds = ct_base()
        ds.SeriesDescription = "Gated 20200131"
        assert scrub(tmp_path, ds, policy("clean-descriptors", *options)).ds.SeriesDescription == "Gated"


def test_patient_characteristics_ask_for_cleaning_of_their_own_text(tmp_path: Path) -> None:
    ds = ct_base()
    ds.Allergies, ds.SeriesDescription = "Penicillin, told by Zzsynth", "AX T2"
    out = through(tmp_path, ds, policy("retain-patient-characteristics"))
    assert out.Allergies == "Penicillin, told"
    assert "SeriesDescription" not in out
    assert [item.CodeValue for item in out.DeidentificationMethodCodeSequence] == ["113100", "113108"]


def test_words_of_the_site_stay_and_own_names_go_all_the_same(tmp_path: Path) -> None:
    site = HeaderPolicy.model_validate(
        {"options": frozenset({"clean-descriptors"}), "descriptors": {"words": ("Zoomscoutix", "Zzsynth")}}
    )
    ds = ct_base()
    ds.SeriesDescription = "AX ZOOMSCOUTIX Zzsynth"
    assert scrub(tmp_path, ds, CLEAN).ds.SeriesDescription == "AX"
    assert scrub(tmp_path, ds, site).ds.SeriesDescription == "AX ZOOMSCOUTIX"


def test_gate_and_header_agree_on_what_may_stay_cleaned() -> None:
    kept = Kept(CLEAN)
    for row in load_table().values():
        if row.columns.get("clean-descriptors") == "C":
            entry = dictionary()[int(row.tag, 16)]
            cleans = action_of(row, entry.vr, options=CLEAN.options).act is Act.CLEAN
            assert kept.cleans(int(row.tag, 16), entry.vr) is cleans, row


def test_the_plant_of_the_cases_is_gone_from_all_bytes(tmp_path: Path) -> None:
    ds = ct_base()
    for keyword in ("StudyDescription", "SeriesDescription", "ProtocolName", "ImageComments", "StudyComments"):
        setattr(ds, keyword, f"{NAME} {PATIENT} {BORN}")
    assert scrub(tmp_path, ds, SHIFTED).has_plant() == []
