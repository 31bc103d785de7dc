"""The gate's own scan against pydicom: the same elements with the same bytes, and every byte accounted for."""

from __future__ import annotations

import struct
import warnings

import pydicom
import pytest
from gate_cases import SYNTAXES, encode, identified_ct, implicit_item, private
from pydicom.datadict import dictionary_has_tag, dictionary_VR
from pydicom.dataset import Dataset

from gateway.gate.bytescan import DEFLATED, scan_bytes


def leaves_of(ds: Dataset, prefix: str = "") -> dict[str, int]:
    """Length in bytes of every value by path; -1 where pydicom has decoded it already."""
    found = {}
    for tag in ds.keys():  # noqa: SIM118
        element = ds.get_item(tag)
        path = f"{prefix}({tag >> 16:04x},{tag & 0xFFFF:04x})"
        known = dictionary_VR(tag) if element.VR is None and dictionary_has_tag(tag) else element.VR
        if known == "SQ" or isinstance(element.value, pydicom.Sequence):
            for index, item in enumerate(ds[tag].value):
                found |= leaves_of(item, f"{path}[{index}].")
        else:
            found[path] = element.length if hasattr(element, "length") else -1
    return found


def test_the_scan_and_pydicom_see_the_same_values_in_real_files(pydicom_files):
    compared = 0
    for path in pydicom_files:
        data = path.read_bytes()
        scan = scan_bytes(data, original=True)
        if scan.malformed and not scan.ends_before_tail:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = leaves_of(pydicom.dcmread(path))
        ours = {leaf.path: leaf.size for leaf in scan.leaves if not leaf.fragment}
        ours |= {leaf.path.rpartition("[")[0]: -1 for leaf in scan.leaves if leaf.fragment}
        assert ours.keys() >= theirs.keys(), path.name
        inside = {where.split("[")[0] for where in ours.keys() - theirs.keys()}
        assert inside <= theirs.keys(), "more is seen only inside what pydicom leaves as bytes (cases.md 4)"
        for where, length in theirs.items():
            if length not in (-1, 0xFFFFFFFF) and ours[where] >= 0:
                assert ours[where] == length, (path.name, where)
        compared += 1
    assert compared > 150


def test_files_that_are_cut_short_or_broken_are_malformed(pydicom_files):
    broken = {path.name for path in pydicom_files if scan_bytes(path.read_bytes(), original=True).malformed}
    assert {"MR_truncated.dcm", "rtplan_truncated.dcm", "SC_rgb_jpeg.dcm"} <= broken


@pytest.mark.parametrize("syntax", SYNTAXES.values(), ids=SYNTAXES)
def test_every_byte_of_a_file_belongs_to_a_value_or_to_its_head(syntax):
    data = encode(identified_ct(), syntax)
    scan = scan_bytes(data)
    assert scan.malformed == ""
    assert scan.tail is None
    body = scan.leaves[0].buffer
    spans = sorted((leaf.start, leaf.end) for leaf in scan.leaves)
    at = 0 if syntax == DEFLATED else scan.dataset_start
    for start, end in spans:
        assert 0 < start - at <= 40, "between two values there are only heads of elements, items and delimiters"
        at = end
    assert at == len(body)


def test_items_inside_unknown_bytes_are_read_in_both_encodings():
    explicit = struct.pack("<HH2sH", 0x0010, 0x0010, b"PN", 4) + b"Abc "
    wrapped = struct.pack("<HHI", 0xFFFE, 0xE000, len(explicit)) + explicit
    for value in (implicit_item((0x0010, 0x0010), b"Abc "), wrapped):
        ds = identified_ct()
        private(ds, 0x10, "UN", value)
        scan = scan_bytes(encode(ds))
        inner = next(leaf for leaf in scan.leaves if leaf.path == "(0029,1010)[0].(0010,0010)")
        assert (inner.vr, inner.raw) == ("PN", b"Abc ")


def test_a_value_that_only_begins_like_an_item_stays_one_value():
    ds = identified_ct()
    private(ds, 0x10, "OB", b"\xfe\xff\x00\xe0\x10\x00\x00\x00no item here")
    scan = scan_bytes(encode(ds))
    assert scan.malformed == ""
    assert [leaf.path for leaf in scan.leaves if leaf.path.startswith("(0029,1010)")] == ["(0029,1010)"]


def test_many_real_sequences_do_not_exhaust_the_budget():
    ds = identified_ct()
    frame = Dataset()
    for tag in (0x00209111, 0x00209113, 0x00209116, 0x00289132):
        inner = Dataset()
        inner.add_new(0x00209056, "SH", "1")
        frame.add_new(tag, "SQ", [inner])
    ds.add_new(0x52009230, "SQ", [frame] * 5000)
    for syntax in SYNTAXES.values():
        assert scan_bytes(encode(ds, syntax)).malformed == ""
