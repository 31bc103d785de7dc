"""Names beyond ASCII are found decoded and raw, whatever the character sets say (cases.md 60)."""

from __future__ import annotations

import struct

import pytest
from gate_cases import encode, findings, identified_ct, plain_scrub, private
from pydicom.dataset import Dataset

JAPANESE = "Yamada^Tarou=山田^太郎=やまだ^たろう"


def japanese(charset: object) -> Dataset:
    ds = identified_ct()
    ds.SpecificCharacterSet = charset
    ds.PatientName = JAPANESE
    for keyword in ("StudyDescription", "InstitutionName", "InstitutionAddress"):
        del ds[keyword]
    return ds


@pytest.mark.parametrize("charset", [["", "ISO 2022 IR 87"], "ISO_IR 192", "GB18030"], ids=str)
@pytest.mark.parametrize("output", [["", "ISO 2022 IR 87"], "ISO_IR 192"], ids=str)
@pytest.mark.parametrize("text", ["山田", "太郎 山田", "患者 山田太郎 様", "やまだ", "ヤマダ Yamada", "YAMADA tarou"])
def test_japanese_names_are_found_decoded(tmp_path, charset, output, text):
    original = japanese(charset)
    ds = plain_scrub(original)
    ds.SpecificCharacterSet = output
    assert findings(tmp_path, encode(original), encode(ds)) == {}
    ds.ImageComments = text
    assert "(0020,4000)" in findings(tmp_path, encode(original), encode(ds))


@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "utf-16-be", "iso2022_jp"])
def test_japanese_names_are_found_raw(tmp_path, codec):
    original = japanese(["", "ISO 2022 IR 87"])
    ds = plain_scrub(original)
    value = b"\0\7" + "山田太郎".encode(codec)
    private(ds, 0x20, "OB", value + b"\0" * (len(value) % 2))
    assert findings(tmp_path, encode(original), encode(ds)).keys() == {"(0029,1020)"}


def test_a_longer_japanese_name_is_found_in_utf_16(tmp_path):
    original = japanese("ISO_IR 192")
    ds = plain_scrub(original)
    private(ds, 0x20, "OB", b"\0\7" + "やまだ".encode("utf-16-le"))
    assert "(0029,1020)" in findings(tmp_path, encode(original), encode(ds))


@pytest.mark.parametrize("text", ["Müller", "MÜLLER", "Muller", "mueller", "Mül\u00adler", "M\u0075\u0308ller"])
def test_accents_and_transliterations_do_not_hide_a_name(tmp_path, text):
    original = identified_ct()
    original.PatientName = "Müller^Jérôme"
    ds = plain_scrub(original)
    ds.SpecificCharacterSet = "ISO_IR 192"
    ds.ImageComments = f"Patient {text}, seen"
    assert "(0020,4000)" in findings(tmp_path, encode(original), encode(ds))


def test_an_undeclared_character_set_does_not_hide_a_name(tmp_path):
    original = identified_ct()
    original.PatientName = "Gärtnerø^Jérôme"
    ds = plain_scrub(original)
    ds.add_new(0x00204000, "LT", b"xxxxxxxxxx")
    data = encode(ds)
    for codec in ("utf-8", "latin-1"):
        planted = "Gärtnerø ".encode(codec)
        length = len(planted) + len(planted) % 2
        element = b"\x20\x00\x00\x40LT\x0a\x00xxxxxxxxxx"
        assert element in data
        patched = data.replace(element, b"\x20\x00\x00\x40LT" + struct.pack("<H", length) + planted.ljust(length))
        assert "(0020,4000)" in findings(tmp_path, encode(original), patched)
