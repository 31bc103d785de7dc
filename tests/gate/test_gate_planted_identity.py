"""One identity planted in one place of an otherwise clean candidate is found, and found there (cases.md, the plant)."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode, urlsafe_b64encode

import pytest
from gate_cases import (
    BIRTH,
    NAME,
    PATIENT_ID,
    SOP_UID,
    STUDY_UID,
    SYNTAXES,
    encode,
    findings,
    identified_ct,
    implicit_item,
    item,
    plain_scrub,
    policy,
    private,
    verdict,
)
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate
from pydicom.sequence import Sequence as Items
from pydicom.uid import JPEGBaseline8Bit, RLELossless

BASE = identified_ct()
CLEAN = plain_scrub(BASE)
JPEG = b"\xff\xd8\xff\xe0\x00\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"


def put(ds: Dataset, tag: int, vr: str, value: object) -> Dataset:
    ds.add_new(tag, vr, value)
    return ds


def deep(ds: Dataset, depth: int, leaf: Dataset) -> None:
    for _ in range(depth):
        leaf = item(0x0040A730, "SQ", Items([leaf]))
    ds.update(leaf)


def overlay(ds: Dataset) -> None:
    put(ds, 0x60000010, "US", 8)
    put(ds, 0x60001500, "LO", "seen by Mustermann")


IN_DATA_SET = {
    "description": (lambda ds: put(ds, 0x0008103E, "LO", "T1 post Zzsynth L"), "(0008,103e)"),
    "birth date in a description": (lambda ds: put(ds, 0x0008103E, "LO", "T1 post, 31.01.1950"), "(0008,103e)"),
    "birth date in words": (lambda ds: put(ds, 0x00204000, "LT", "born 31 Jan 1950 at home"), "(0020,4000)"),
    "birth date in German": (lambda ds: put(ds, 0x00204000, "LT", "geb. 31. Januar 1950"), "(0020,4000)"),
    "birth date with month first": (lambda ds: put(ds, 0x00204000, "LT", "January 31st, 1950"), "(0020,4000)"),
    "reversed order": (lambda ds: put(ds, 0x00204000, "LT", "seen with Leaktest Zzsynth."), "(0020,4000)"),
    "lower case, glued": (lambda ds: put(ds, 0x00181030, "LO", "zzsynthleaktest_5mm"), "(0018,1030)"),
    "upper case, comma": (lambda ds: put(ds, 0x00181030, "LO", "ZZSYNTH, LEAKTEST"), "(0018,1030)"),
    "first name only": (lambda ds: put(ds, 0x00181030, "LO", "for LEAKTEST"), "(0018,1030)"),
    "name in a code string": (lambda ds: put(ds, 0x00180015, "CS", "ZZSYNTH"), "(0018,0015)"),
    "name in a code meaning": (
        lambda ds: put(ds, 0x00082218, "SQ", Items([item(0x00080104, "LO", "Head of Zzsynth")])),
        "(0008,2218)[0].(0008,0104)",
    ),
    "name in another name": (lambda ds: put(ds, 0x00080090, "PN", "Zzsynth^L"), "(0008,0090)"),
    "name in device text": (lambda ds: put(ds, 0x00181020, "LO", "syngo (zzsynth)"), "(0018,1020)"),
    "nested name": (lambda ds: deep(ds, 1, item(0x0040A123, "PN", NAME)), "(0040,a730)[0].(0040,a123)"),
    "name at depth 12": (
        lambda ds: deep(ds, 12, item(0x0040A160, "UT", "Zzsynth")),
        ".".join(["(0040,a730)[0]"] * 12) + ".(0040,a160)",
    ),
    "third item": (
        lambda ds: put(ds, 0x0040A730, "SQ", Items([Dataset(), Dataset(), item(0x0040A160, "UT", PATIENT_ID)])),
        "(0040,a730)[2].(0040,a160)",
    ),
    "original attributes": (
        lambda ds: put(
            ds, 0x04000561, "SQ", Items([item(0x04000550, "SQ", Items([item(0x00100020, "LO", "LEAK0001")]))])
        ),
        "(0400,0561)[0].(0400,0550)[0].(0010,0020)",
    ),
    "id in a description": (lambda ds: put(ds, 0x00081030, "LO", "CT LEAK0001 follow up"), "(0008,1030)"),
    "id glued": (lambda ds: put(ds, 0x00081030, "LO", "xleak0001x"), "(0008,1030)"),
    "second id without separators": (lambda ds: put(ds, 0x00081030, "LO", "no 7712345"), "(0008,1030)"),
    "accession number": (
        lambda ds: put(ds, 0x00400275, "SQ", Items([item(0x00080050, "SH", "ACC7654321")])),
        "(0040,0275)[0].(0008,0050)",
    ),
    "phone, other grouping": (lambda ds: put(ds, 0x00204000, "LT", "tel. +41 447 65 43 21"), "(0020,4000)"),
    "address": (lambda ds: put(ds, 0x00204000, "LT", "lives Birkenallee 7, 9998 HINTERTUPFING"), "(0020,4000)"),
    "institution": (lambda ds: put(ds, 0x00204000, "LT", "sent by Kantonsspital Beispielwil"), "(0020,4000)"),
    "station": (lambda ds: put(ds, 0x00181030, "LO", "CTAWP73512 routine"), "(0018,1030)"),
    "study uid in a reference": (
        lambda ds: put(ds, 0x00081110, "SQ", Items([item(0x00081155, "UI", STUDY_UID)])),
        "(0008,1110)[0].(0008,1155)",
    ),
    "uid in text": (lambda ds: put(ds, 0x00204000, "LT", f"see {SOP_UID}"), "(0020,4000)"),
    "uid as url": (lambda ds: put(ds, 0x00081190, "UR", f"http://pacs/studies/{STUDY_UID}/series"), "(0008,1190)"),
    "study date": (lambda ds: put(ds, 0x00080020, "DA", "20200203"), "(0008,0020)"),
    "study date in a private element": (lambda ds: private(ds, 0x19, "LO", "20200203"), "(0029,1019)"),
    "date and time glued": (lambda ds: private(ds, 0x19, "LO", "20200203093456"), "(0029,1019)"),
    "private name": (lambda ds: private(ds, 0x01, "PN", NAME), "(0029,1001)"),
    "private creator": (lambda ds: private(ds, 0x01, "LO", "x", creator="ZZSYNTH 1.0"), "(0029,0010)"),
    "UN sequence": (
        lambda ds: private(ds, 0x01, "UN", implicit_item((0x0010, 0x0010), NAME.encode())),
        "(0029,1001)[0].(0010,0010)",
    ),
    "UN bytes": (lambda ds: private(ds, 0x02, "UN", b"\x07\x01zzsynth\x80\x00"), "(0029,1002)"),
    "short id in unknown text": (lambda ds: private(ds, 0x02, "UN", b"id 73512X "), "(0029,1002)"),
    "OB with a frame": (
        lambda ds: private(ds, 0x20, "OB", b"SV10" + bytes(20) + NAME.encode() + bytes(36)),
        "(0029,1020)",
    ),
    "UTF-16LE in OB": (lambda ds: private(ds, 0x20, "OB", b"\1\2\3" + NAME.encode("utf-16-le") + b"\0"), "(0029,1020)"),
    "UTF-16BE in OB": (lambda ds: private(ds, 0x20, "OB", b"\1\2" + NAME.encode("utf-16-be")), "(0029,1020)"),
    "base64 in text": (
        lambda ds: put(ds, 0x00204000, "LT", f"key {b64encode(NAME.encode()).decode()}, end"),
        "(0020,4000)",
    ),
    "base64 of an id, without padding": (
        lambda ds: private(ds, 0x19, "LO", b64encode(PATIENT_ID.encode()).decode().rstrip("=")),
        "(0029,1019)",
    ),
    "base64 for URLs, in UN": (
        lambda ds: private(ds, 0x02, "UN", b"\1" + urlsafe_b64encode(b"\xff\xfe>>" + NAME.encode("utf-16-le")) + b"\2"),
        "(0029,1002)",
    ),
    "overlay comments": (overlay, "(6000,1500)"),
    "curve label": (lambda ds: put(ds, 0x50002500, "LO", "Leaktest's curve"), "(5000,2500)"),
    "trailing padding": (lambda ds: put(ds, 0xFFFCFFFC, "OB", bytes(6) + NAME.encode() + bytes(2)), "(fffc,fffc)"),
    "encapsulated document": (lambda ds: put(ds, 0x00420011, "OB", b"%PDF-1.4 (Zzsynth) Tj "), "(0042,0011)"),
    "pixel data": (lambda ds: put(ds, 0x7FE00010, "OW", bytes(40) + NAME.encode() + bytes(72)), "(7fe0,0010)"),
    "sex, by its place": (lambda ds: put(ds, 0x00100040, "CS", "F"), "(0010,0040)"),
    "age, by its place": (lambda ds: put(ds, 0x00101010, "AS", "070Y"), "(0010,1010)"),
    "short id, by its attribute": (lambda ds: put(ds, 0x00200010, "SH", "12"), "(0020,0010)"),
    "short name, as a whole name": (lambda ds: put(ds, 0x00081050, "PN", "MTRA^LI"), "(0008,1050)"),
    "common description, by its place": (lambda ds: put(ds, 0x0008103E, "LO", "BRAIN 5.0 H30s"), "(0008,103e)"),
}


@pytest.mark.parametrize("syntax", SYNTAXES.values(), ids=SYNTAXES)
@pytest.mark.parametrize("place", IN_DATA_SET)
def test_a_plant_in_the_data_set_is_found_where_it_is(tmp_path, place, syntax):
    plant, where = IN_DATA_SET[place]
    ds = plain_scrub(BASE)
    plant(ds)
    found = findings(tmp_path, encode(BASE), encode(ds, syntax))
    assert where in found
    assert found.keys() <= {where, where.split("[0].(0010,0010)")[0]}  # the block around it may be named too


@pytest.mark.parametrize("syntax", SYNTAXES.values(), ids=SYNTAXES)
def test_without_a_plant_the_same_object_is_cleared(tmp_path, syntax):
    judgement = verdict(tmp_path, encode(BASE), encode(CLEAN, syntax))
    assert (judgement.reason, judgement.at) == ("", "")
    assert judgement.clearance is not None


@pytest.mark.parametrize("syntax", SYNTAXES.values(), ids=SYNTAXES)
def test_an_original_is_read_in_every_transfer_syntax(tmp_path, syntax):
    ds = plain_scrub(BASE)
    ds.add_new(0x00204000, "LT", "Zzsynth")
    assert "(0020,4000)" in findings(tmp_path, encode(BASE, syntax), encode(ds))


@pytest.mark.parametrize(
    ("keyword", "value", "where"),
    [
        ("SourceApplicationEntityTitle", "LEAK0001", "(0002,0016)"),
        ("SendingApplicationEntityTitle", "ZZSYNTH", "(0002,0017)"),
        ("ImplementationVersionName", "ZZSYNTH_1", "(0002,0013)"),
    ],
)
def test_a_plant_in_file_meta_is_found(tmp_path, keyword, value, where):
    assert where in findings(tmp_path, encode(BASE), encode(CLEAN, meta={keyword: value}))


def test_the_original_instance_uid_in_file_meta_is_found_and_is_also_untrue(tmp_path):
    data, new = encode(CLEAN), CLEAN.SOPInstanceUID.encode()
    old = SOP_UID.encode()[: len(new)].ljust(len(new), b"\0")
    at = data.index(new)
    original = identified_ct()
    original.SOPInstanceUID = old.decode().rstrip("\0")
    judgement = verdict(tmp_path, encode(original), data[:at] + old + data[at + len(new) :])
    assert judgement.reason == "output_invalid"
    assert {(v.check, f.where) for v in judgement.verdicts for f in v.findings} == {
        ("encoding", "(0002,0003)"),
        ("residual_identifiers", "(0002,0003)"),
    }


def test_private_information_in_file_meta_is_searched(tmp_path):
    meta = {"PrivateInformationCreatorUID": "1.2.3.4", "PrivateInformation": b"for Leaktest "}
    assert "(0002,0102)" in findings(tmp_path, encode(BASE), encode(CLEAN, meta=meta))


def test_the_preamble_is_searched(tmp_path):
    data = encode(CLEAN)
    data = b"II*\0" + NAME.encode() + data[20:]
    assert findings(tmp_path, encode(BASE), data) == {"bytes:preamble": "name of (0010,0010)"}


@pytest.mark.parametrize("syntax", SYNTAXES.values(), ids=SYNTAXES)
def test_bytes_after_the_data_set_are_searched(tmp_path, syntax):
    data = encode(CLEAN, syntax) + b"ZZSYNTH^LEAKTEST"
    judgement = verdict(tmp_path, encode(BASE), data)
    assert judgement.reason == "output_invalid"
    found = {f.where for v in judgement.verdicts if v.check == "residual_identifiers" for f in v.findings}
    assert found == {"bytes:after-data-set"}


def test_text_beside_the_samples_of_a_jpeg_is_searched(tmp_path):
    def image(comment: bytes) -> bytes:
        marker = b"\xff\xfe" + struct.pack(">H", len(comment) + 2) + comment
        ds = plain_scrub(BASE)
        ds.PixelData = encapsulate([JPEG + marker + b"\xff\xda\x00\x02" + bytes(40) + b"\xff\xd9"])
        ds["PixelData"].VR = "OB"
        return encode(ds, JPEGBaseline8Bit)

    assert findings(tmp_path, encode(BASE), image(b"by acme")) == {}
    assert findings(tmp_path, encode(BASE), image(b"of zzsynth ")) == {"(7fe0,0010)[1]": "name of (0010,0010)"}
    encoded = b64encode(b"ZZSYNTH^LEAKTEST")
    assert findings(tmp_path, encode(BASE), image(encoded)) == {"(7fe0,0010)[1]": "name of (0010,0010)"}


def test_text_behind_the_end_of_a_jpeg_is_searched(tmp_path):
    ds = plain_scrub(BASE)
    ds.PixelData = encapsulate([JPEG + b"\xff\xda\x00\x02" + bytes(40) + b"\xff\xd9 Leaktest"])
    ds["PixelData"].VR = "OB"
    assert "(7fe0,0010)[1]" in findings(tmp_path, encode(BASE), encode(ds, JPEGBaseline8Bit))


def test_any_fragment_is_searched_for_long_values(tmp_path):
    ds = plain_scrub(BASE)
    ds.PixelData = encapsulate([bytes(64) + STUDY_UID.encode() + bytes(65)])
    ds["PixelData"].VR = "OB"
    assert findings(tmp_path, encode(BASE), encode(ds, RLELossless)) == {"(7fe0,0010)[1]": "uid of (0020,000d)"}


def test_every_original_of_the_study_is_a_source(tmp_path):
    from gate_cases import SEAL, files

    from gateway.gate import judge

    other = identified_ct()
    other.SOPInstanceUID += "7"
    other.OperatorsName = "Xylander^Zenobia"
    clean_other = plain_scrub(other)
    planted = plain_scrub(BASE)
    planted.ImageComments = "Xylander"
    pairs = [
        files(tmp_path, encode(BASE), encode(planted), "0001"),
        files(tmp_path, encode(other), encode(clean_other), "0002"),
    ]
    judgement = judge(pairs, policy=policy(), job_key="j", destination="d", seal_key=SEAL)
    assert [(f.instance, f.where) for v in judgement.verdicts for f in v.findings] == [("0001", "(0020,4000)")]


def test_names_are_collected_from_any_depth_and_from_private_and_unknown_blocks(tmp_path):
    original = identified_ct()
    deep(original, 5, item(0x0040A123, "PN", "Tiefenbacher^Ulrike"))
    private(original, 0x01, "PN", "Verborgenhut^Klaus")
    original.add_new(0x00291002, "UN", implicit_item((0x0010, 0x0010), b"Unbekannthaus^Ida "))
    for text in ("Tiefenbacher", "Verborgenhut", "Unbekannthaus"):
        ds = plain_scrub(original)
        ds.ImageComments = text
        assert "(0020,4000)" in findings(tmp_path, encode(original), encode(ds)), text


def test_every_part_of_a_long_name_is_searched(tmp_path):
    original = identified_ct()
    original.PatientName = "A B C D E F G Hinterletzter^Ivo"
    ds = plain_scrub(original)
    ds.ImageComments = "Hinterletzter"
    assert "(0020,4000)" in findings(tmp_path, encode(original), encode(ds))


def test_a_short_name_in_private_text_of_unknown_vr_is_found(tmp_path):
    original = identified_ct()
    original.PatientName = "Zyxow^Qu"
    ds = plain_scrub(original)
    private(ds, 0x02, "UN", b"for zyxow ")
    assert findings(tmp_path, encode(original), encode(ds)).keys() == {"(0029,1002)"}
    private(ds, 0x02, "UN", b"for\x01zyxow\x02")  # among binary bytes five letters are no evidence
    assert findings(tmp_path, encode(original), encode(ds)) == {}


def test_a_finding_never_says_the_value(tmp_path):
    ds = plain_scrub(BASE)
    for plant, _ in IN_DATA_SET.values():
        plant(ds)
    judgement = verdict(tmp_path, encode(BASE), encode(ds))
    said = repr(judgement).casefold()
    for value in ("zzsynth", "leaktest", "leak0001", BIRTH, "1950", STUDY_UID, "beispielwil", "mustermann"):
        assert value.casefold() not in said


def test_what_is_not_covered_is_known_compression_inside_values(tmp_path):
    ds = plain_scrub(BASE)
    private(ds, 0x20, "OB", zlib.compress(NAME.encode() * 2)[:20])
    assert findings(tmp_path, encode(BASE), encode(ds)) == {}
