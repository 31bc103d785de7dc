"""Descriptors in every Specific Character Set of PS3.3 C.12.1.1.2, alone, in combinations, undeclared and misdeclared.

Oracle: pydicom writes and reads the values. Whatever is declared: no fault, no name, and what stays can be read as
declared.
"""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydicom.charset import convert_encodings, decode_bytes, encode_string
from pydicom.valuerep import TEXT_VR_DELIMS

from gateway.header.descriptors import Cleaner
from gateway.header.descriptors_charset import decoded_value
from gateway.header.descriptors_harvest import own_words
from gateway.header.descriptors_words import words_with

WORDS = words_with()
TECHNICAL = ("AX T2 FLAIR FS", "CHEST PA", "CT 5.0 B31f")
# Synthetic names by repertoire: none of their parts is a technical word.
LATIN_1, LATIN_2, LATIN_3, LATIN_4 = "Müllzynth^Jörgzyn", "Łęczyzynth^Świętozyn", "Ħżezynth^Ġużzyn", "Šķēzynth^Ģirtzyn"
CYRILLIC, ARABIC, GREEK, HEBREW = "Щербазинт^Юрийзин", "قبانيسنت^نزارسين", "Διονυσιζ^Παππαζ", "שרוןסינ^דבורהסי"
TURKISH, THAI, LATIN_9 = "Çağzynth^Işılzyn", "สมชายเทศ^ใจดีมาก", "Žœzynth^Œžzynt"
JAPANESE, KATAKANA = "Zyamada^Tarouz=山寺^太郎左=やまでら^たろうざ", "ﾔﾏﾃﾞﾗ^ﾀﾛｳｻﾞ"
KOREAN, CHINESE, SUPPLEMENTARY = (
    "Zhongdong^Gildz=洪東^吉洞=홍동길^길동수",
    "Zwangx^Lihuaz=王小东^丽华君",
    "Zjisx^Tarouz=龗龔^齋齎",
)
ONE = {
    "ISO_IR 100": LATIN_1,
    "ISO_IR 101": LATIN_2,
    "ISO_IR 109": LATIN_3,
    "ISO_IR 110": LATIN_4,
    "ISO_IR 144": CYRILLIC,
    "ISO_IR 127": ARABIC,
    "ISO_IR 126": GREEK,
    "ISO_IR 138": HEBREW,
    "ISO_IR 148": TURKISH,
    "ISO_IR 203": LATIN_9,
    "ISO_IR 166": THAI,
    "ISO_IR 13": KATAKANA,
    "ISO_IR 192": f"{CYRILLIC}={CHINESE}",
    "GB18030": CHINESE,
    "GBK": CHINESE,
}
SEVERAL = {
    "\\ISO 2022 IR 87": JAPANESE,
    "ISO 2022 IR 6\\ISO 2022 IR 87": JAPANESE,
    "ISO 2022 IR 13\\ISO 2022 IR 87": JAPANESE,
    "ISO 2022 IR 13\\ISO 2022 IR 87\\ISO 2022 IR 159": JAPANESE,
    "ISO 2022 IR 6\\ISO 2022 IR 87\\ISO 2022 IR 159": SUPPLEMENTARY,
    "ISO 2022 IR 6\\ISO 2022 IR 149": KOREAN,
    "\\ISO 2022 IR 149": KOREAN,
    "ISO 2022 IR 6\\ISO 2022 IR 58": CHINESE,
    "\\ISO 2022 IR 58": CHINESE,
    "ISO 2022 IR 100\\ISO 2022 IR 144": f"{LATIN_1}={CYRILLIC}",
    "ISO 2022 IR 100\\ISO 2022 IR 126\\ISO 2022 IR 87": f"{LATIN_1}={GREEK}",
    "ISO 2022 IR 101\\ISO 2022 IR 144\\ISO 2022 IR 126": f"{LATIN_2}={CYRILLIC}={GREEK}",
    "ISO 2022 IR 100\\ISO 2022 IR 127": ARABIC,
    "ISO 2022 IR 100\\ISO 2022 IR 138": HEBREW,
    "ISO 2022 IR 148\\ISO 2022 IR 166": THAI,
}
EVERY = {**ONE, **SEVERAL}
DECLARED = st.one_of(
    st.sampled_from([*EVERY, "", "ISO_IR 999", "\\\\", "ISO 2022 IR 6", "utf8", "UTF-8", "\\ISO_IR 192", "ISO_IR 6"]),
    st.lists(st.sampled_from(sorted({t for c in EVERY for t in c.split("\\")})), min_size=1, max_size=4).map("\\".join),
    st.text(min_size=0, max_size=20),
)


# What pydicom 3 does not write, or does not know: half-width kana alone, GB2312 by code extension, Latin 9.
BY_PYTHON = {"ISO_IR 13": "shift_jis", "ISO_IR 203": "iso8859-15"}


def written(text: str, character_set: str) -> bytes:
    if character_set in BY_PYTHON:
        return text.encode(BY_PYTHON[character_set])
    if character_set.endswith("IR 58"):  # PS3.5 K.3: G1 is designated anew in every component
        return re.sub("[^\\x00-\\x7f]+", lambda run: f"\x1b$)A{run[0]}", text).encode("gb2312")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return encode_string(text, convert_encodings(character_set.split("\\")))


def as_declared(value: bytes, character_set: str) -> str:
    if character_set.endswith("IR 58"):
        return value.replace(b"\x1b$)A", b"").decode("gb2312")
    if character_set in BY_PYTHON:
        return value.decode(BY_PYTHON[character_set])
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # no replacement, no guess
        return decode_bytes(value, convert_encodings(character_set.split("\\")), set(TEXT_VR_DELIMS))


def cleaner(name: bytes, character_set: bytes) -> Cleaner:
    return Cleaner(own_words(frozenset({("name", name, character_set)}), WORDS))


def parts_of(name: str) -> list[str]:
    return [part for group in name.split("=") for part in group.split("^") if len(part) > 1]


@pytest.mark.parametrize("vr", ["LO", "LT"])
@pytest.mark.parametrize("character_set", EVERY)
def test_a_name_goes_and_the_rest_can_be_read_as_declared(character_set: str, vr: str) -> None:
    name = EVERY[character_set]
    encoded, declared = written(name, character_set), character_set.encode()
    assert as_declared(encoded, character_set) == name, "the oracle cannot write this name"
    own = cleaner(encoded, declared)
    for part in parts_of(name):
        for form in (f"AX T2 {part} FS", f"{part}, CHEST PA", f"CT 5.0 B31f ({part})"):
            left = own.descriptor(vr, written(form, character_set), declared)
            assert left is not None
            shown = as_declared(left, character_set)
            assert part not in shown
            assert shown in ("AX T2 FS", "CHEST PA", "CT 5.0 B31f")


@pytest.mark.parametrize("character_set", EVERY)
def test_known_words_in_their_own_script_are_written_back_as_they_came(character_set: str) -> None:
    own = cleaner(written(EVERY[character_set], character_set), character_set.encode())
    for text in (
        "胸部CT 造影",
        "복부 CT",
        "МРТ головного мозга",
        "Schädel MRT größe",
        "頭部MRI",
        "głowy bez kontrastu",
    ):
        try:
            value = written(text, character_set)
            if as_declared(value, character_set) != text:
                continue
        except (UnicodeError, UserWarning):
            continue
        assert own.descriptor("LO", value, character_set.encode()) == value


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(list(EVERY)), DECLARED, st.sampled_from(TECHNICAL))
def test_a_wrong_declaration_hides_no_name(used: str, declared: str, base: str) -> None:
    """Name and description were written by one system, in one character set, and declare another."""
    name = EVERY[used]
    said = declared.encode("utf-8", "surrogatepass")
    own = cleaner(written(name, used), said)
    for part in parts_of(name):
        raw = written(part, used)
        left = own.descriptor("LO", base.encode() + b" " + raw, said)
        assert left is None or raw not in left


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=80), DECLARED)
def test_any_bytes_under_any_declaration_are_cleaned_without_fault(value: bytes, declared: str) -> None:
    said = declared.encode("utf-8", "surrogatepass")
    own = cleaner(b"ZZSYNTH^LEAKTEST", said)
    left = own.descriptor("LO", value + b" ZZSYNTH " + value, said)
    assert left is None or b"ZZSYNTH" not in left


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(list(EVERY)), st.sampled_from(TECHNICAL), st.sampled_from(TECHNICAL))
def test_what_is_written_instead_is_encoded_in_the_declared_set(character_set: str, one: str, two: str) -> None:
    decoded = decoded_value(
        written(f"{one} {parts_of(EVERY[character_set])[-1]}", character_set), character_set.encode()
    )
    again = decoded.encode(two)
    assert again is not None
    assert as_declared(again, character_set) == two
    foreign = decoded.encode("😀")
    assert foreign is None or as_declared(foreign, character_set) == "😀"
