"""A file that is not what it claims to be is held as output_invalid, whatever it contains (PS3.10 7.1, PS3.5 A.4)."""

from __future__ import annotations

import struct

import pytest
from gate_cases import SEAL, SYNTAXES, encode, files, identified_ct, plain_scrub, policy, verdict
from pydicom.encaps import encapsulate
from pydicom.uid import ExplicitVRLittleEndian, JPEGBaseline8Bit, RLELossless

from gateway.gate import judge

BASE = identified_ct()
ORIGINAL = encode(BASE)


def faults(tmp_path, candidate: bytes, original: bytes = ORIGINAL) -> set[tuple[str, str]]:
    judgement = verdict(tmp_path, original, candidate)
    encoding = next(v for v in judgement.verdicts if v.check == "encoding")
    assert (judgement.clearance is None) == bool(judgement.reason)
    if encoding.findings:
        assert (judgement.reason, encoding.reason) == ("output_invalid", "output_invalid")
    return {(f.where, f.rule) for f in encoding.findings}


def changed(**values: object) -> bytes:
    ds = plain_scrub(BASE)
    for keyword, value in values.items():
        if value is None:
            delattr(ds, keyword)
        else:
            setattr(ds, keyword, value)
    return encode(ds)


def with_syntax(data: bytes, uid: str) -> bytes:
    """The same bytes under another transfer syntax UID of the same length (cases.md 48)."""
    old = ExplicitVRLittleEndian.encode() + b"\0"
    assert data.count(old) == 1
    return data.replace(old, uid.encode().ljust(len(old), b"\0"))


@pytest.mark.parametrize("syntax", SYNTAXES.values(), ids=SYNTAXES)
def test_a_true_file_has_no_fault(tmp_path, syntax):
    assert faults(tmp_path, encode(plain_scrub(BASE), syntax)) == set()


@pytest.mark.parametrize(
    ("values", "where"),
    [
        ({"PatientIdentityRemoved": None}, "(0012,0062)"),
        ({"PatientIdentityRemoved": "NO"}, "(0012,0062)"),
        ({"DeidentificationMethod": None}, "(0012,0063)"),
        ({"SOPClassUID": "1.2.840.10008.5.1.4.1.1.4"}, "(0008,0016)"),
        ({"Rows": 9}, "(7fe0,0010)"),
        ({"Rows": None}, "(7fe0,0010)"),
        ({"NumberOfFrames": 2}, "(7fe0,0010)"),
        ({"BitsAllocated": 8}, "(7fe0,0010)"),
        ({"SamplesPerPixel": 3}, "(7fe0,0010)"),
        ({"PixelData": bytes(130)}, "(7fe0,0010)"),
    ],
)
def test_what_the_data_set_must_say(tmp_path, values, where):
    assert {place for place, _ in faults(tmp_path, changed(**values))} == {where}


def test_pixel_data_of_odd_length_may_have_its_pad_byte(tmp_path):
    odd = {"Rows": 3, "Columns": 3, "BitsAllocated": 8}
    assert faults(tmp_path, changed(**odd, PixelData=bytes(10))) == set()
    assert faults(tmp_path, changed(**odd, PixelData=bytes(12))) != set()


def test_pixel_data_may_be_one_bit_or_subsampled(tmp_path):
    assert faults(tmp_path, changed(BitsAllocated=1, PixelData=bytes(8))) == set()
    colour = {"SamplesPerPixel": 3, "BitsAllocated": 8, "PhotometricInterpretation": "YBR_FULL_422"}
    assert faults(tmp_path, changed(**colour, PixelData=bytes(128))) == set()
    assert faults(tmp_path, changed(**colour, PixelData=bytes(192))) != set()  # labelled 4:2:2, not so (cases.md 50)


def test_native_bytes_under_a_compressed_transfer_syntax_are_held(tmp_path):
    places = faults(tmp_path, with_syntax(changed(), "1.2.840.10008.1.2.5"))
    assert ("(7fe0,0010)", "native bytes under an encapsulating transfer syntax") in places


def test_fragments_are_true_under_their_own_transfer_syntax_only(tmp_path):
    ds = plain_scrub(BASE)
    ds.PixelData = encapsulate([bytes(range(64))])
    ds["PixelData"].VR = "OB"
    assert faults(tmp_path, encode(ds, RLELossless)) == set()
    native = encode(ds, JPEGBaseline8Bit).replace(b"1.2.840.10008.1.2.4.50", b"1.2.840.10008.1.2.1\0\0\0")
    assert faults(tmp_path, native)
    ds.NumberOfFrames = 2
    assert faults(tmp_path, encode(ds, RLELossless)) == {("(7fe0,0010)", "fewer fragments than frames")}


def test_an_unknown_or_private_transfer_syntax_is_held(tmp_path):
    for uid in ("1.2.840.10008.1.2.7", "1.2.840.10008.1.1", "1.2.276.0.7230010.3", ""):
        assert faults(tmp_path, with_syntax(changed(), uid))


def test_file_meta_that_differs_from_the_data_set_is_held(tmp_path):
    data = changed()
    uid = plain_scrub(BASE).SOPInstanceUID.encode()
    at = data.index(uid)
    assert faults(tmp_path, data[:at] + b"2.25.1" + data[at + 6 :]) == {("(0002,0003)", "differs from the data set")}


@pytest.mark.parametrize("junk", [b"\0", b"\0\0", b"x" * 7, b"\0" * 8, b"ZZ" * 40, bytes(4096)], ids=len)
@pytest.mark.parametrize("syntax", SYNTAXES.values(), ids=SYNTAXES)
def test_bytes_after_the_data_set_are_held(tmp_path, syntax, junk):
    if syntax == SYNTAXES["deflated"]:
        junk += b"\0"  # one NUL may make the length even (PS3.5 A.5)
    assert faults(tmp_path, encode(plain_scrub(BASE), syntax) + junk)


@pytest.mark.parametrize("cut", [1, 8, 100, 200, 300])
def test_a_truncated_file_is_held(tmp_path, cut):
    assert faults(tmp_path, changed()[:-cut])


@pytest.mark.parametrize("size", [0, 1, 127, 131, 132, 140, 200])
def test_a_stub_of_a_file_is_held(tmp_path, size):
    assert faults(tmp_path, changed()[:size])


def test_a_preamble_must_be_empty(tmp_path):
    assert faults(tmp_path, b"II*\0" + changed()[4:]) == {("bytes:preamble", "not zero")}


def test_tags_out_of_order_are_held(tmp_path):
    element = struct.pack("<HH2sH", 0x0010, 0x0040, b"CS", 2) + b"O "
    assert faults(tmp_path, changed() + element)


def test_two_candidates_with_one_instance_uid_are_held(tmp_path):
    other = identified_ct()
    other.SOPInstanceUID += "5"
    clean = encode(plain_scrub(BASE))
    pairs = [files(tmp_path, ORIGINAL, clean, "0001"), files(tmp_path, encode(other), clean, "0002")]
    judgement = judge(pairs, policy=policy(), job_key="j", destination="d", seal_key=SEAL)
    assert judgement.reason == "output_invalid"
    assert [(f.instance, f.where) for f in judgement.verdicts[0].findings] == [("0002", "(0008,0018)")]
