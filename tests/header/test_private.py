"""Retain Safe Private (PS3.15 E.3.10): what is vouched for stays, judged by VR and value; the rest goes (cases.md)."""

from __future__ import annotations

import csv
import struct
from collections import Counter
from pathlib import Path

import pydicom
import pytest
from header_objects import (
    BIG_ENDIAN,
    DEFLATED,
    EXPLICIT,
    IMPLICIT,
    NAME,
    PSEUDONYMS,
    SYNTAXES,
    Scrubbed,
    ct_base,
    encoded,
    explicit,
    implicit,
    item,
    one,
    policy,
    scrub,
    with_element,
)
from pydicom.dataelem import DataElement
from pydicom.dataset import Dataset

from gateway.errors import StudyError
from gateway.policy import HeaderPolicy
from gateway.policy.private_lists import load_safe_private, load_tcia

MODIFIED = "retain-longitudinal-modified-dates"
SAFE = policy("retain-safe-private", MODIFIED)
DAYS = PSEUDONYMS.shift_days("LEAK0001", -365, 365)


def tcia(**more: object) -> HeaderPolicy:
    return policy("retain-safe-private", MODIFIED, private={"dispositions": "tcia", **more})


def keeping(*entries: dict[str, str], options: tuple[str, ...] = (MODIFIED,)) -> HeaderPolicy:
    entry = tuple({"reason": "seen by the DPO", **entry} for entry in entries)
    return policy("retain-safe-private", *options, private={"keep": entry})


def add(ds: Dataset, creator: str, group: int, block: int, **elements: tuple[str, object]) -> Dataset:
    """Private elements of one block: names like x23 are the element within the block, values are (VR, value)."""
    ds.add_new(group << 16 | block, "LO", creator)
    for name, (vr, value) in elements.items():
        tag = group << 16 | block << 8 | int(name[1:], 16)
        ds[tag] = DataElement(tag, vr, value)
    return ds


def private_tags(out: Scrubbed) -> list[str]:
    return [f"{int(e.tag):08X}" for e in out.ds if e.tag.is_private]


def claims(out: Scrubbed) -> set[str]:
    return {code.CodeValue for code in out.ds.DeidentificationMethodCodeSequence}


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("block", [0x10, 0x42, 0xFF])
def test_a_safe_attribute_stays_by_its_creator_whatever_its_block(tmp_path: Path, syntax: str, block: int) -> None:
    """Case 84: the creator stays with it, and another creator without an element left goes."""
    ds = add(ct_base(), "GEMS_ACQU_01", 0x0019, block, x23=("DS", "12.5"), x25=("SS", 1))
    add(ds, "SOMEBODY 1.0", 0x0019, 0x11 if block != 0x11 else 0x12, x23=("DS", "1"))
    out = scrub(tmp_path, ds, SAFE, syntax)
    assert private_tags(out) == [f"001900{block:02X}", f"0019{block:02X}23"]
    assert out.ds[0x00190000 | block << 8 | 0x23].value in ("12.5", 12.5, b"12.5")
    assert out.ds[0x00190000 | block].value == "GEMS_ACQU_01"
    assert "113111" in claims(out)
    assert out.step.counts["private"] == 3


def test_without_the_option_or_without_a_safe_attribute_nothing_stays_and_nothing_is_claimed(tmp_path: Path) -> None:
    ds = add(ct_base(), "GEMS_ACQU_01", 0x0019, 0x10, x23=("DS", "12.5"))
    out = scrub(tmp_path, ds, policy(MODIFIED))
    assert private_tags(out) == []
    for creator, group in (("SOMEBODY 1.0", 0x0019), ("GEMS_ACQU_01", 0x0029)):
        out = scrub(tmp_path, add(ct_base(), creator, group, 0x10, x23=("DS", "12.5")), SAFE)
        assert private_tags(out) == []
        assert claims(out) == {"113100", "113107"}
    assert claims(scrub(tmp_path, ct_base(), SAFE)) == {"113100", "113107"}


def test_elements_without_a_creator_go(tmp_path: Path) -> None:
    ds = ct_base()
    ds[0x00191023] = DataElement(0x00191023, "DS", "12.5")
    ds[0x00190023] = DataElement(0x00190023, "LO", "GEMS_ACQU_01")
    assert private_tags(scrub(tmp_path, ds, SAFE)) == []


def test_a_block_that_is_reserved_twice_belongs_to_nobody(tmp_path: Path) -> None:
    """Two creators in one place cannot be in order; a hand-written nested item may have them (PS3.5 7.8.1)."""
    creator = explicit(0x00190010, "LO", b"GEMS_ACQU_01")
    nested = item(creator + explicit(0x00190010, "LO", b"SOMEBODY 1.0") + explicit(0x00191023, "DS", b"12.5"))
    file = with_element(encoded(ct_base()), explicit(0x00082112, "SQ", nested), 0x00082112)
    out = scrub(tmp_path, file, SAFE)
    assert len(out.ds.SourceImageSequence[0]) == 0


SCALAR = {"DS": "1", "IS": "1", "CS": "A", "LO": "plain", "SH": "plain", "UI": "1.2.3.77", "ST": "plain", "LT": "plain"}
NUMBERS = {"FL": 1.0, "FD": 1.0, "US": 1, "SS": 1, "UL": 1, "SL": 1, "AT": 0x00080008}


@pytest.mark.parametrize("key", sorted(load_safe_private()), ids=str)
def test_every_row_of_the_safe_list_is_treated_by_its_vr(tmp_path: Path, key: tuple[str, int, int]) -> None:
    """E.3.10 calls it a sample list: UIDs are mapped, sequences entered, bulk and long text not kept blindly."""
    _, group, number = key
    row = load_safe_private()[key]
    vr = row.vrs[0] if row.vrs else "FL"
    value = {**SCALAR, **NUMBERS, "SQ": [one(PatientName=NAME, Rows=4)]}.get(vr, b"\0\0\0\1")
    ds = add(ct_base(), row.creator, group, 0x10, **{f"x{number:02X}": (vr, value)})
    out = scrub(tmp_path, ds, SAFE)
    tag = group << 16 | 0x1000 | number
    assert out.has_plant() == []
    if vr in ("OB", "OW", "ST", "LT"):
        assert tag not in out.ds
    elif vr == "SQ":
        assert out.ds[tag].value[0].PatientName == ""
        assert out.ds[tag].value[0].Rows == 4
    elif vr == "UI":
        assert out.ds[tag].value == PSEUDONYMS.uid("1.2.3.77")
    elif row.vrs:
        assert out.ds[tag] == ds[tag]


# -- values -----------------------------------------------------------------------------------------------------------


def test_case_80_a_number_in_text_of_an_implicit_file_stays_as_it_is_and_one_that_is_none_goes(tmp_path: Path) -> None:
    for value, stays in ((b"0.264 ", True), (b"ZZSYNTH ", False)):
        creator = implicit(0x01F10010, b"ELSCINT1")
        body = creator + implicit(0x01F11026, value) + implicit(0x01F11027, b"1.5 ")
        file = encoded(ct_base(), IMPLICIT)
        at = file.index(implicit(0x7FE00010, bytes(range(128))))
        out = scrub(tmp_path, file[:at] + body + file[at:], SAFE)
        assert (0x01F11026 in out.ds) is stays
        assert out.ds[0x01F11027].value in (1.5, "1.5", b"1.5 ")
        assert out.has_plant() == []


@pytest.mark.parametrize(
    ("creator", "group", "number", "vr", "value"),
    [
        ("GEMS_HELIOS_01", 0x0045, 0x02, "LO", "Leaktest Zzsynth"),  # FL in the list
        ("GEMS_ACQU_01", 0x0019, 0x23, "LO", "12 Leaktest Ave"),  # DS
        ("GEMS_ACQU_01", 0x0019, 0x23, "PN", "Leaktest^Zzsynth"),
        ("GEMS_HELIOS_01", 0x0045, 0x02, "OB", b"\0\1\2\3\4\5"),  # FL: six bytes are none
        ("ELSCINT1", 0x01E1, 0x26, "CS", "somebody^else@example"),
        ("ELSCINT1", 0x01E1, 0x26, "CS", "A text that is longer than a code"),
        ("Philips Imaging DD 002", 0x2001, 0x33, "UN", b"Zzsynth"),
    ],
)
def test_a_value_that_is_not_what_the_list_vouches_for_goes(
    tmp_path: Path, creator: str, group: int, number: int, vr: str, value: object
) -> None:
    ds = add(ct_base(), creator, group, 0x10, **{f"x{number:02X}": (vr, value)})
    out = scrub(tmp_path, ds, SAFE)
    assert private_tags(out) == []
    assert b"eaktest" not in out.bytes


@pytest.mark.parametrize(
    "value",
    [
        "20200131",
        "31.01.2020",
        "20200131101500",
        "Synth, ZZSYNTH",
        "leaktest",
        "LEAK0001",
        "no. LEAK0001A/7",
        "1/31/2020",
    ],
)
def test_case_12_safe_text_that_repeats_what_was_removed_elsewhere_goes(tmp_path: Path, value: str) -> None:
    ds = add(ct_base(), "GEMS_ACQU_01", 0x0019, 0x10, x9E=("LO", value), x23=("DS", "1"))
    out = scrub(tmp_path, ds, SAFE)
    assert private_tags(out) == ["00190010", "00191023"]
    ds[0x0019109E].value = "fse-xl"
    assert scrub(tmp_path, ds, SAFE).ds[0x0019109E].value == "fse-xl"


def test_names_of_nested_people_count_too(tmp_path: Path) -> None:
    ds = add(ct_base(), "GEMS_ACQU_01", 0x0019, 0x10, x9E=("LO", "for Dr Quixote"))
    ds.RequestAttributesSequence = [inner := Dataset()]
    inner.ReferencedStudySequence = [one(RequestingPhysician="Quixote^Alonso")]
    assert private_tags(scrub(tmp_path, ds, SAFE)) == []


# -- sequences --------------------------------------------------------------------------------------------------------


def philips(*items: Dataset) -> Dataset:
    """(2005,xx83) Image Type MR... of Philips MR Imaging DD 001 is a safe sequence in Table E.3.10-1."""
    key = next(key for key, row in load_safe_private().items() if row.vrs == ("SQ",) and key[0].startswith("philips"))
    row = load_safe_private()[key]
    return add(ct_base(), row.creator, key[1], 0x10, **{f"x{key[2]:02X}": ("SQ", list(items))})


def sequence_of(out: Scrubbed) -> Dataset:
    return next(e for e in out.ds if e.tag.is_private and e.tag.element >= 0x1000).value[0]


@pytest.mark.parametrize("syntax", SYNTAXES)
def test_case_4_every_element_inside_a_private_sequence_is_judged_by_itself(tmp_path: Path, syntax: str) -> None:
    inner = one(PatientName=NAME, StudyDate="20200131", ReferencedSOPInstanceUID="1.2.3.9", Rows=7)
    inner.ReferencedSOPClassUID = "1.2.840.10008.5.1.4.1.1.2"
    add(inner, "SOMEBODY 1.0", 0x0099, 0x10, x01=("LO", "LEAKTEST"))
    add(inner, "GEMS_ACQU_01", 0x0019, 0x20, x23=("DS", "12.5"), x24=("DS", "3"))
    out = scrub(tmp_path, philips(inner), SAFE, syntax)
    got = sequence_of(out)
    assert out.has_plant() == []
    assert got.PatientName == ""
    assert got.ReferencedSOPInstanceUID == PSEUDONYMS.uid("1.2.3.9")
    assert got.ReferencedSOPClassUID == "1.2.840.10008.5.1.4.1.1.2"
    assert got.StudyDate == scrub(tmp_path, ct_base(), SAFE).ds.StudyDate
    assert got.Rows == 7
    assert [f"{int(e.tag):08X}" for e in got if e.tag.is_private] == ["00190020", "00192023", "00192024"]


def test_case_4_a_private_sequence_that_came_as_un_is_implicit_inside(tmp_path: Path) -> None:
    ds = philips()
    tag = next(int(e.tag) for e in ds if e.tag.is_private and e.tag.element >= 0x1000)
    del ds[tag]
    nested = implicit(0x00100010, NAME.encode()) + implicit(0x00280010, b"\7\0") + implicit(0x00081155, b"1.2.3.9\0")
    for length in ("defined", "undefined"):
        value = item(nested)
        element = explicit(tag, "UN", value)
        if length == "undefined":
            element = element[:8] + b"\xff" * 4 + value + b"\xfe\xff\xdd\xe0\0\0\0\0"
        out = scrub(tmp_path, with_element(encoded(ds), element, tag), SAFE)
        assert out.has_plant() == []
        (got,) = out.ds[tag].value
        assert (got.PatientName, got.Rows) == ("", 7)
        assert got.ReferencedSOPInstanceUID == PSEUDONYMS.uid("1.2.3.9")


def test_a_private_sequence_with_content_that_this_policy_does_not_clean_goes_alone(tmp_path: Path) -> None:
    ds = philips(one(ContentSequence=[one(ValueType="TEXT", TextValue="LEAKTEST")]))
    add(ds, "GEMS_ACQU_01", 0x0019, 0x10, x23=("DS", "12.5"))
    out = scrub(tmp_path, ds, SAFE)
    assert private_tags(out) == ["00190010", "00191023"]


def test_a_private_sequence_that_cannot_be_read_goes(tmp_path: Path) -> None:
    ds = philips()
    tag = next(int(e.tag) for e in ds if e.tag.is_private and e.tag.element >= 0x1000)
    del ds[tag]
    out = scrub(tmp_path, with_element(encoded(ds), explicit(tag, "UN", b"LEAKTEST^ZZSYNTH"), tag), SAFE)
    assert private_tags(out) == []


# -- additions and dispositions ---------------------------------------------------------------------------------------


def test_a_policy_keeps_what_it_names_with_a_reason_judged_by_its_vr(tmp_path: Path) -> None:
    ds = add(
        *(ct_base(), "ACME 1.0", 0x0029, 0x10),
        x10=("LO", "gradient set B"),
        x11=("UI", "1.2.3.9"),
        x12=("DA", "20200131"),
        x13=("OB", b"\0\1\2\3"),
        x14=("LT", "a longer text"),
        x15=("PN", "Zzsynth^Leaktest"),
        x16=("LO", "for LEAK0001"),
        x17=("OB", b"\0\1LEAKTEST\0\0"),
        x20=("LO", "not named by the policy"),
    )
    named = ("10", "11", "12", "13", "14", "16", "17")
    vrs = dict(zip(named, ("LO", "UI", "DA", "OB", "LT", "LO", "OB"), strict=True))
    header = keeping(*({"creator": "acme 1.0", "group": "0029", "element": e, "vr": vrs[e]} for e in named))
    out = scrub(tmp_path, ds, header)
    assert private_tags(out) == ["00290010", "00291010", "00291011", "00291012", "00291013", "00291014"]
    assert out.ds[0x00291010].value == "gradient set B"
    assert out.ds[0x00291011].value == PSEUDONYMS.uid("1.2.3.9")
    assert out.ds[0x00291012].value == scrub(tmp_path, ct_base(), SAFE).ds.StudyDate
    assert out.ds[0x00291013].value == b"\0\1\2\3"
    assert out.has_plant() == []


@pytest.mark.parametrize(("options", "stays"), [((), None), (("retain-longitudinal-full-dates",), "20200131")])
def test_private_dates_follow_the_date_options(tmp_path: Path, options: tuple[str, ...], stays: str | None) -> None:
    ds = add(ct_base(), "ACME 1.0", 0x0029, 0x10, x12=("DA", "20200131"), x13=("TM", "101500"))
    entries = [{"creator": "ACME 1.0", "group": "0029", "element": e, "vr": v} for e, v in (("12", "DA"), ("13", "TM"))]
    out = scrub(tmp_path, ds, keeping(*entries, options=options))
    assert out.ds.get(0x00291012, one()).value == stays if stays else private_tags(out) == []


@pytest.mark.parametrize("syntax", [EXPLICIT, BIG_ENDIAN, DEFLATED])
def test_tcias_dispositions_shift_integer_dates_by_the_same_days(tmp_path: Path, syntax: str) -> None:
    """GEMS_IDEN_01 (0009,xx27) Image Actual Date: seconds since 1970; GEMS_STDY_01 (0023,xx70): a double."""
    seconds = 1580465700
    ds = add(ct_base(), "GEMS_IDEN_01", 0x0009, 0x10, x27=("SL", seconds), xE3=("UI", "1.2.3.9"))
    add(ds, "GEMS_STDY_01", 0x0023, 0x10, x70=("FD", float(seconds)))
    out = scrub(tmp_path, ds, tcia(), syntax)
    assert out.ds[0x00091027].value == seconds + DAYS * 86400
    assert out.ds[0x00231070].value == seconds + DAYS * 86400
    assert private_tags(scrub(tmp_path, ds, SAFE, syntax)) == []


def test_an_integer_date_in_un_is_little_endian_and_one_of_another_size_goes(tmp_path: Path) -> None:
    for value, stays in ((struct.pack("<i", 1580465700), True), (b"\1\2\3\4\5\6", False)):
        ds = add(ct_base(), "GEMS_IDEN_01", 0x0009, 0x10, x27=("UN", value))
        out = scrub(tmp_path, ds, tcia())
        assert (0x00091027 in out.ds) is stays


def test_tcias_dispositions_map_uids_and_shift_dates_in_text(tmp_path: Path) -> None:
    ds = add(ct_base(), "GEMS_PETD_01", 0x0009, 0x10, x0D=("LO", "20200131101500.00"), x05=("SH", "no date"))
    uid = next(
        key for key, by_vr in load_tcia().items() if by_vr.get("LO") == "uid" and key[1] % 2 and key[0].isascii()
    )
    add(ds, uid[0], uid[1], 0x20, **{f"x{uid[2]:02X}": ("LO", "1.2.3.9")})
    out = scrub(tmp_path, ds, tcia())
    moved = scrub(tmp_path, ct_base(), SAFE).ds.StudyDate
    assert out.ds[0x0009100D].value == f"{moved}101500.00"
    assert 0x00091005 not in out.ds
    assert out.ds[uid[1] << 16 | 0x2000 | uid[2]].value == PSEUDONYMS.uid("1.2.3.9")


def test_with_clean_descriptors_vouched_text_loses_only_what_identifies(tmp_path: Path) -> None:
    ds = add(ct_base(), "GEMS_ACQU_01", 0x0019, 0x10, x9E=("LO", "fse-xl for Zzsynth"))
    add(ds, "GEMS_GENIE_1", 0x0013, 0x10, x26=("LT", "scan of the liver, Leaktest"))
    options = ("retain-safe-private", "clean-descriptors")
    out = scrub(tmp_path, ds, policy(*options, private={"dispositions": "tcia"}))
    assert out.ds[0x0019109E].value == "fse-xl for"
    assert out.ds[0x00131026].value == "scan of the liver"
    assert private_tags(scrub(tmp_path, ds, policy("retain-safe-private", private={"dispositions": "tcia"}))) == []


def test_tcias_delete_beats_the_safe_list_and_a_policys_own_entry_beats_both(tmp_path: Path) -> None:
    key = next(
        key
        for key, row in load_safe_private().items()
        if row.vrs and load_tcia().get(key, {}).get(row.vrs[0]) == "remove" and row.vrs[0] == "CS"
    )
    creator = load_safe_private()[key].creator
    ds = add(ct_base(), creator, key[1], 0x10, **{f"x{key[2]:02X}": ("CS", "YES")})
    entry = {"creator": creator, "group": f"{key[1]:04X}", "element": f"{key[2]:02X}", "reason": "wanted"}
    assert len(private_tags(scrub(tmp_path, ds, SAFE))) == 2
    assert private_tags(scrub(tmp_path, ds, tcia())) == []
    assert len(private_tags(scrub(tmp_path, ds, tcia(keep=(entry,))))) == 2


def test_the_senders_own_word_that_something_is_safe_is_not_believed(tmp_path: Path) -> None:
    """(0008,0303) SAFE is a claim (requirements.md section 4)."""
    ds = add(ct_base(), "SOMEBODY 1.0", 0x0029, 0x10, x10=("LO", "LEAKTEST"))
    ds.PrivateDataElementCharacteristicsSequence = [
        one(
            PrivateGroupReference=0x0029,
            PrivateCreatorReference="SOMEBODY 1.0",
            BlockIdentifyingInformationStatus="SAFE",
        )
    ]
    out = scrub(tmp_path, ds, SAFE)
    assert private_tags(out) == []
    assert "PrivateDataElementCharacteristicsSequence" not in out.ds


def test_nothing_changes_in_a_kept_block(tmp_path: Path) -> None:
    """Kept bytes stay bit-exact, and so does a whole private sequence in which nothing had to change."""
    ds = philips(one(Rows=7, Columns=3))
    source, target = encoded(ds), scrub(tmp_path, ds, SAFE)
    start = source.index(b"Philips") - 8
    end = source.index(explicit(0x7FE00010, "OW", bytes(range(128))))
    assert source[start:end] in target.bytes


# -- real files -------------------------------------------------------------------------------------------------------


@pytest.mark.shared
def test_real_private_blocks_follow_tcias_knowledge_base(shared_data: Path, tmp_path: Path) -> None:
    """The oracle is the knowledge base itself, not the short list that ships."""
    kb: dict[tuple[str, int, int], dict[str, set[str]]] = {}
    with open(shared_data.parent / "standard" / "tcia_private_kb.csv", newline="") as file:
        for row in csv.DictReader(file):
            if not row["parent_path"] and len(row["element"]) == 2:
                key = (row["private_creator"].strip().casefold(), int(row["group"], 16), int(row["element"], 16))
                kb.setdefault(key, {}).setdefault(row["vr"], set()).add(row["disposition"])
    seen: Counter[tuple[str, bool]] = Counter()
    for path in sorted((shared_data / "dicom").rglob("*.dcm")):
        try:
            out = scrub(tmp_path, path.read_bytes(), tcia())
        except StudyError:
            continue
        before = pydicom.dcmread(path, force=True)
        creators = {e.tag >> 16 << 8 | e.tag.element: str(e.value) for e in before if e.tag.is_private_creator}
        for e in before:
            creator = creators.get(e.tag >> 16 << 8 | e.tag.element >> 8)
            by_vr = kb.get((str(creator).strip().casefold(), e.tag.group, e.tag.element & 0xFF))
            if by_vr is None or not e.tag.is_private or e.tag.element < 0x1000:
                continue
            said = by_vr.get(e.VR) or set().union(*by_vr.values())
            if len(said) == 1:
                seen[said.pop(), e.tag in out.ds] += 1
    assert seen["delete", True] == 0
    assert seen["delete", False] > 100
    assert seen["keep", True] > 500
    assert seen["keep", False] < 0.01 * seen["keep", True]  # long texts, and words of the object's own identity
    assert seen["hash_uid", False] == seen["offset_integer_date", False] == 0
