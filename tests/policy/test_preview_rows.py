"""Every element of original and candidate has its row, with what became of it and why. Objects here are synthetic, or
those that pydicom installs; pydicom is the independent reader.
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pydicom
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.sequence import Sequence
from pydicom.uid import ExplicitVRLittleEndian, ImplicitVRLittleEndian

from gateway.app.policy.registry import REGISTRY
from gateway.app.preview.items import matched
from gateway.app.preview.names import name_of
from gateway.app.preview.reasons import PolicyReasons
from gateway.app.preview.rows import Comparison, Outcome, Row
from gateway.app.preview.sides import Side, same
from gateway.app.preview.values import MAX_CHARACTERS, legible
from gateway.errors import StudyError
from gateway.header import scrub_file
from gateway.policy import Policy, load_policy
from gateway.pseudonyms import Pseudonyms

CT = "1.2.840.10008.5.1.4.1.1.2"
SR = "1.2.840.10008.5.1.4.1.1.88.33"
GATE = "gate: {study: {residual_identifiers: {max: 0}}}\n"
KEY = bytes(range(32))


@pytest.fixture
def policy_of(tmp_path: Path):
    def load(header: str = "") -> Policy:
        path = tmp_path / "p.yaml"
        path.write_text(f"name: p\nextends: [ps3.15-basic@2026d]\n{header}\n{GATE}")
        return load_policy(path, REGISTRY)

    return load


def an_object(sop_class: str = CT) -> Dataset:
    ds = Dataset()
    ds.SOPClassUID, ds.SOPInstanceUID = sop_class, "1.2.3.4.5"
    ds.StudyInstanceUID, ds.SeriesInstanceUID = "1.2.3.4", "1.2.3.4.1"
    ds.PatientID, ds.PatientName, ds.PatientAge = "ZZ-4711", "ZZSYNTH^LEAKTEST", "093Y"
    ds.StudyDate, ds.Modality, ds.InstitutionName = "20200102", "CT", "ZZ Hospital"
    return ds


def saved(ds: Dataset, path: Path, syntax: str = ExplicitVRLittleEndian) -> Path:
    ds.file_meta = FileMetaDataset()
    ds.file_meta.MediaStorageSOPClassUID, ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPClassUID, ds.SOPInstanceUID
    ds.file_meta.TransferSyntaxUID = syntax
    ds.save_as(path, enforce_file_format=True)
    return path


def compared(source: Path, policy: Policy, work: Path, **limits: int) -> tuple[Comparison, list[Row], Path]:
    target = work / "out.dcm"
    scrub_file(source, target, policy=policy.header, pseudonyms=Pseudonyms(KEY))
    sop_class = bytes(Side.of_file(source).value((0x00080016, 0)) or b"").decode().strip("\0 ")
    comparison = Comparison(PolicyReasons(policy, sop_class), **limits)
    return comparison, comparison.rows(source, target), target


def row_of(rows: list[Row], path: str) -> Row:
    return next(row for row in rows if row.path == path)


def test_what_became_of_each_element_and_why(policy_of, tmp_path: Path) -> None:
    ds = an_object()
    ds.add_new(0x00091001, "LO", "private")
    ds.add_new(0x00090010, "LO", "ACME SYNTHETIC")
    ds.add_new(0x00100033, "LO", "")  # beyond the table, and empty
    ds.RequestAttributesSequence = Sequence([Dataset()])
    ds.RequestAttributesSequence[0].RequestedProcedureDescription = "of somebody"
    ds.ReferencedImageSequence = Sequence([Dataset()])
    ds.ReferencedImageSequence[0].ReferencedSOPClassUID = CT
    ds.ReferencedImageSequence[0].ReferencedSOPInstanceUID = "1.2.9"
    policy = policy_of("header: {options: [retain-longitudinal-modified-dates], keep: {PatientAge: DPO-1}}")
    comparison, rows, target = compared(saved(ds, tmp_path / "a.dcm"), policy, tmp_path)
    new = pydicom.dcmread(target)

    def told(path: str) -> tuple[str, ...]:
        row = row_of(rows, path)
        return (str(row.outcome), row.before or "", row.after or "", row.code, row.why)

    assert told("00100020") == ("replaced", "ZZ-4711", new.PatientID, "Z/D", "Table E.1-1; the keyed pseudonym")
    assert told("00100010")[:3] == ("replaced", "ZZSYNTH^LEAKTEST", str(new.PatientName))
    assert told("00101010") == ("replaced", "093Y", "090Y", "K", "kept by the policy: DPO-1; ages over 89 become 090Y")
    shifted = ("replaced", "20200102", new.StudyDate, "C", "Table E.1-1, retain-longitudinal-modified-dates")
    assert told("00080020") == shifted
    assert told("00080060") == ("kept", "CT", "CT", "K", "beyond the table: technical")
    assert told("00080080")[:4] == ("removed", "ZZ Hospital", "", "X/Z/D")
    assert told("00091001") == ("removed", "private", "", "X", "Table E.1-1: everything private goes")
    assert told("00400275")[:3] == ("removed", "1 item", "")
    assert told("00400275[1]/00321060") == ("removed", "of somebody", "", "", "goes with its sequence")
    assert told("00081140")[:4] == ("changed inside", "1 item", "1 item", "X/Z/U*")
    assert told("00081140[1]/00081150")[0] == "kept"
    assert told("00081140[1]/00081155")[:4] == (
        "replaced",
        "1.2.9",
        new.ReferencedImageSequence[0][0x00081155].value,
        "U",
    )
    assert told("00120062") == ("added", "", "YES", "", "says what was done (PS3.15 E.1.1, CID 7050)")
    assert told("00020003")[0] == "replaced"
    assert comparison.counts == Counter(row.outcome for row in rows if not row.number)


def test_a_content_item_is_told_by_its_row_of_the_content_table(policy_of, tmp_path: Path) -> None:
    def item(code: str, meaning: str, kind: str, **value: str) -> Dataset:
        one, concept = Dataset(), Dataset()
        concept.CodeValue, concept.CodingSchemeDesignator, concept.CodeMeaning = code, "DCM", meaning
        one.ValueType, one.ConceptNameCodeSequence = kind, Sequence([concept])
        for keyword, text in value.items():
            setattr(one, keyword, text)
        return one

    ds = an_object(SR)
    ds.ValueType = "CONTAINER"
    ds.ContentSequence = Sequence(
        [
            item("121106", "Comment", "TEXT", TextValue="about somebody"),  # X
            item("121008", "Person Observer Name", "PNAME", PersonName="Doe^J"),  # D
            item("1999999", "Finding", "TEXT", TextValue="a finding"),  # not in the table
        ]
    )
    policy = policy_of("header: {options: [clean-structured-content]}")
    _, rows, target = compared(saved(ds, tmp_path / "sr.dcm"), policy, tmp_path)
    assert len(pydicom.dcmread(target).ContentSequence) == 2
    gone = row_of(rows, "0040A730[1]")
    assert (gone.outcome, gone.code, gone.why) == (Outcome.REMOVED, "X", "Table E.3.4-1, Comment (121106, DCM) TEXT")
    assert row_of(rows, "0040A730[1]/0040A160").why == "goes with its item"
    name = row_of(rows, "0040A730[2]/0040A123")
    assert (name.outcome, name.code) == (Outcome.REPLACED, "D")
    assert "Person Observer Name (121008, DCM) PNAME" in name.why
    finding = row_of(rows, "0040A730[3]/0040A160")
    assert (finding.before, finding.after) == ("a finding", "Removed")
    assert "not in Table E.3.4-1" in finding.why


def test_private_elements_say_who_vouches_for_them(policy_of, tmp_path: Path) -> None:
    ds = an_object()
    ds.add_new(0x00E10010, "LO", "ELSCINT1")  # Table E.3.10-1 has (00E1,xx21) DLP
    ds.add_new(0x00E11021, "DS", "12.5")
    ds.add_new(0x00E11022, "LO", "of somebody")
    ds.add_new(0x00E11050, "LO", "Doe^Jane")  # vouched for, and no number
    ds.add_new(0x00291101, "DS", "1")  # in no block
    policy = policy_of("header: {options: [retain-safe-private]}")
    with pydicom.config.disable_value_validation():
        source = saved(ds, tmp_path / "a.dcm")
    _, rows, _ = compared(source, policy, tmp_path)
    told = {row.path: (str(row.outcome), row.code, row.why) for row in rows}
    assert told["00E10010"] == ("kept", "C", "retain-safe-private: elements of its block stay")
    assert told["00E11021"] == ("kept", "C", "retain-safe-private: Table E.3.10-1 (DLP)")
    assert told["00E11022"] == ("removed", "X", "retain-safe-private: no list vouches for it")
    assert "cannot be known to be safe" in told["00E11050"][2]
    assert told["00291101"] == ("removed", "X", "retain-safe-private: no creator is named for it")
    assert name_of(row_of(rows, "00E11021")) == "ELSCINT1: DLP"


def elements_of(ds: Dataset) -> Iterator[int]:
    """Tags at every depth, by pydicom."""
    for element in ds:
        yield int(element.tag)
        if element.VR == "SQ":
            for item in element.value:
                yield from elements_of(item)


def test_every_element_of_both_files_has_exactly_one_row_with_a_reason(
    policy_of, tmp_path: Path, pydicom_files: list[Path]
) -> None:
    policy = policy_of(
        "header: {options: [retain-longitudinal-modified-dates, retain-safe-private, clean-descriptors, "
        "clean-structured-content, clean-graphics], encapsulated: replace}"
    )
    seen = 0
    for path in pydicom_files:
        if path.stat().st_size > 400_000:
            continue
        try:
            comparison, rows, target = compared(path, policy, tmp_path, most_items=10**6)
        except StudyError:
            continue
        listed = [row for row in rows if not row.number and row.path != "preamble"]
        assert [row.path for row in listed if not row.why] == [], path.name
        assert comparison.counts.total() == len([row for row in rows if not row.number]), path.name
        for side, file in (("before", path), ("after", target)):
            found = Counter(row.tag for row in listed if getattr(row, side) is not None and row.tag >> 16 != 2)
            try:
                expected = Counter(elements_of(pydicom.dcmread(file)))
            except (ValueError, OSError, NotImplementedError):  # not every one of these is for pydicom to read whole
                continue
            expected = Counter({tag: count for tag, count in expected.items() if tag & 0xFFFF})
            found = Counter({tag: count for tag, count in found.items() if tag & 0xFFFF})
            assert found == expected, (path.name, side)
        seen += 1
    assert seen > 60


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.text(st.characters(codec="utf-8", exclude_categories=("Cs",)), max_size=60), max_size=6),
    syntax=st.sampled_from([ExplicitVRLittleEndian, ImplicitVRLittleEndian]),
)
def test_whatever_text_an_object_holds_its_rows_are_legible_lines(
    tmp_path_factory: pytest.TempPathFactory, values: list[str], syntax: str
) -> None:
    folder = tmp_path_factory.mktemp("legible")
    (folder / "p.yaml").write_text(f"name: p\nextends: [ps3.15-basic@2026d]\n{GATE}")
    policy = load_policy(folder / "p.yaml", REGISTRY)
    ds = an_object()
    ds.SpecificCharacterSet = "ISO_IR 192"
    ds.RequestAttributesSequence = Sequence([Dataset() for _ in values])
    for item, value in zip(ds.RequestAttributesSequence, values, strict=True):
        item.add_new(0x00401400, "LT", value)
    with pydicom.config.disable_value_validation():
        source = saved(ds, folder / "a.dcm", syntax)
    _, rows, _ = compared(source, policy, folder)
    for row in rows:
        for text in (row.before, row.after, row.why):
            assert (text or "").isprintable()
            assert len(text or "") <= MAX_CHARACTERS * 10 + 40


def test_items_that_are_left_out_are_counted(policy_of, tmp_path: Path) -> None:
    ds = an_object()
    ds.ReferencedImageSequence = Sequence([Dataset() for _ in range(30)])
    for number, item in enumerate(ds.ReferencedImageSequence):
        item.ReferencedSOPClassUID, item.ReferencedSOPInstanceUID = CT, f"1.2.9.{number}"
    source = saved(ds, tmp_path / "a.dcm")
    whole, rows, _ = compared(source, policy_of(), tmp_path, most_items=100)
    short, fewer, _ = compared(source, policy_of(), tmp_path, most_items=3)
    assert short.counts == whole.counts
    assert len(rows) - len(fewer) == 27 * 3 - 1
    (rest,) = [row for row in fewer if row.number == -1]
    assert rest.before == "27 more items, not listed; in them 27 kept, 27 replaced"


def test_a_file_without_preamble_and_a_deflated_one_are_compared_too(policy_of, tmp_path: Path) -> None:
    ds = an_object()
    stream = io.BytesIO()
    with pydicom.config.disable_value_validation():
        pydicom.dcmwrite(stream, ds, implicit_vr=True, little_endian=True)
    (tmp_path / "bare.dcm").write_bytes(stream.getvalue())
    deflated = saved(an_object(), tmp_path / "deflated.dcm", pydicom.uid.DeflatedExplicitVRLittleEndian)
    for source in (tmp_path / "bare.dcm", deflated):
        _, rows, _ = compared(source, policy_of(), tmp_path)
        assert row_of(rows, "00100020").before == "ZZ-4711"


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_items_find_their_counterparts_when_some_are_gone(data: st.DataObject) -> None:
    before = [frozenset({(n, b""), (0, str(n).encode())}) for n in range(data.draw(st.integers(0, 12)))]
    left = data.draw(st.lists(st.sampled_from(range(len(before))), unique=True).map(sorted)) if before else []
    after = [before[n] for n in left]
    pairs = matched(before, after)
    assert [i for i, _ in pairs if i is not None] == list(range(len(before)))
    assert [(i, j) for i, j in pairs if j is not None] == [(n, j) for j, n in enumerate(left)]
    assert matched(after, before) == [(j, i) for i, j in pairs]


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_values_are_the_same_when_only_padding_differs(one: bytes, other: bytes) -> None:
    assert same(memoryview(one), memoryview(other)) == (one.rstrip(b" \0") == other.rstrip(b" \0"))
    assert same(memoryview(one), memoryview(one + b"\0"))


def test_what_cannot_be_seen_or_turns_text_around_is_written_out() -> None:
    assert legible("a\x00b\u202ec\u2028d") == "a<U+0000>b<U+202E>c<U+2028>d"
    assert legible("山田^太郎 é") == "山田^太郎 é"


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_no_bytes_make_a_preview_fail_otherwise_than_by_a_hold(
    data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "p.yaml").write_text(
        f"name: p\nextends: [ps3.15-basic@2026d]\nheader: {{options: [retain-safe-private, clean-descriptors]}}\n{GATE}"
    )
    policy = load_policy(folder / "p.yaml", REGISTRY)
    ds = an_object()
    ds.ReferencedImageSequence = Sequence([Dataset()])
    ds.ReferencedImageSequence[0].ReferencedSOPInstanceUID = "1.2.9"
    ds.add_new(0x00E10010, "LO", "ELSCINT1")
    ds.add_new(0x00E11021, "DS", "12.5")
    syntax = data.draw(st.sampled_from([ExplicitVRLittleEndian, ImplicitVRLittleEndian]))
    body = bytearray(saved(ds, folder / "a.dcm", syntax).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(132, len(body) - 1))
        body[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=6))
    (folder / "a.dcm").write_bytes(body)
    try:
        comparison, rows, _ = compared(folder / "a.dcm", policy, folder)
    except StudyError:
        return
    assert comparison.counts.total() == len([row for row in rows if not row.number])
    assert all(row.why for row in rows if not row.number)
