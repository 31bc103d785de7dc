"""Invariants of cleaned text: nothing of the object's own people survives in any order, case, spelling or separator."""

from __future__ import annotations

import unicodedata
from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st
from planted_words import WORDS, cleaned, corpus, own

from gateway.header.descriptors_own import DATE, NAME, NOT_NAMES, NUMBER, OwnWords, Said
from gateway.header.descriptors_words import words_with

LATIN = "abcdefghijklmnopqrstuvwxyz"
ACCENTED = LATIN + "äöüéèñçøåłßõãžš"
CYRILLIC = "абвгдезиклмнопрстуфхцчш"
SEPARATORS = st.sampled_from([" ", ", ", "^", "_", "-", ".", "/", "=", "  ", "; ", "\n", " - ", "(", ") "])
TECHNICAL = st.sampled_from([row["text"] for row in corpus("descriptors_kept.csv")])
PLAIN = st.sampled_from(["AX T2 FLAIR FS", "Thorax B31f", "MPRAGE_sag_iso", "KNEE LT W/O CONTRAST", "Becken Übersicht"])
PEOPLE = [
    "ZZSYNTH",
    "Leaktest",
    "LEAK0001",
    "31.01.1950",
    "by",
    "for",
    "Dr.",
    "tech",
    "per",
    "Enrique",
    "Long",
    "Marrow",
]
PEOPLE += [
    "Hospital",
    "J.",
    "OA.",
    "93 y/o",
    "Tel. 044 123 45 67",
    "Mr.",
    "2020",
    "Jan",
    "1",
    "a@b.org",
    "(",
    "'s",
    "Unknownword",
]
MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
_GERMAN = "Januar Februar März April Mai Juni Juli August September Oktober November Dezember"
GERMAN = _GERMAN.split()


def bare(text: str) -> str:
    """Lower case, no accents: an oracle of its own."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in apart if not unicodedata.combining(char))


def uncommon(word: str) -> bool:
    return not WORDS.knows(word) and word not in NOT_NAMES


name_parts = st.one_of(
    st.text(LATIN, min_size=4, max_size=12),
    st.text(ACCENTED, min_size=4, max_size=12),
    st.text(CYRILLIC, min_size=4, max_size=10),
).filter(uncommon)
cases = st.sampled_from([str.upper, str.lower, str.title, str.swapcase])


@settings(max_examples=1000, deadline=None)
@given(st.lists(name_parts, min_size=1, max_size=4, unique=True), st.data())
def test_no_part_of_an_own_name_survives_in_any_order_case_or_separator(parts: list[str], data: st.DataObject) -> None:
    said = own(Said(NAME, "^".join(parts)))
    order = data.draw(st.permutations(parts))
    pieces = [data.draw(TECHNICAL)]
    for part in order:
        pieces += [data.draw(SEPARATORS), data.draw(cases)(part)]
    pieces += [data.draw(SEPARATORS), data.draw(TECHNICAL)]
    found = bare(cleaned("".join(pieces), said))
    for part in parts:
        assert bare(part) not in found


@settings(max_examples=100, deadline=None)
@given(st.text("äöüß" + LATIN, min_size=5, max_size=12).filter(uncommon), cases)
def test_german_letters_are_found_as_digraphs_and_without(part: str, case: object) -> None:
    said = own(Said(NAME, f"{part}^Zzhans"))
    for written in (
        part.translate(str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"})),
        part.translate(str.maketrans({"ä": "a", "ö": "o", "ü": "u", "ß": "ss"})),
    ):
        assert written not in cleaned(f"T1 {written} sag", said)
        assert written.upper() not in cleaned(f"T1_{written.upper()}_sag", said)


@settings(max_examples=100, deadline=None)
@given(
    st.from_regex(r"[A-Z]{0,4}[0-9]{5,10}[A-Z]?", fullmatch=True), st.sampled_from(["", "-", " ", "/", "."]), TECHNICAL
)
def test_no_own_number_survives_whole_or_with_separators(number: str, glue: str, base: str) -> None:
    if len(set(number)) < 3:
        return
    said = own(Said(NUMBER, number))
    middle = len(number) // 2
    written = number[:middle] + glue + number[middle:]
    found = cleaned(f"{base} {written} {base}", said)
    joined = "".join(filter(str.isalnum, found)).upper()
    assert number not in joined or number in "".join(filter(str.isalnum, base + base)).upper()
    assert written not in found


def spellings_of(day: date) -> list[str]:
    year, month, number = day.year, day.month, day.day
    found = [
        day.strftime(form) for form in ("%Y%m%d", "%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d%m%Y", "%Y.%m.%d", "%Y_%m_%d")
    ]
    found += [day.strftime(form) for form in ("%d.%m.%y", "%m/%d/%y", "%d-%m-%y", "%Y%m%d%H%M%S", "%Y-%m-%dT%H:%M:%S")]
    found += [
        f"{number} {MONTHS[month - 1]} {year}",
        f"{MONTHS[month - 1]} {number}, {year}",
        f"{number}-{MONTHS[month - 1].upper()}-{year % 100:02d}",
    ]
    found += [
        f"{number}. {GERMAN[month - 1]} {year}",
        f"{number}{MONTHS[month - 1].upper()}{year}",
        f"{year}年{month}月{number}日",
    ]
    return [*found, f"{MONTHS[month - 1]} {year}", f"{number}.{month}.{year}", f"{year} {month} {number}"]


@settings(max_examples=60, deadline=None)
@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)), PLAIN)
def test_no_own_date_survives_in_any_common_form(day: date, base: str) -> None:
    said = own(Said(DATE, day.strftime("%Y%m%d")))
    for written in spellings_of(day):
        found = cleaned(f"{base} {written}", said)
        assert found == base, written


@settings(max_examples=60, deadline=None)
@given(st.dates(date(1900, 1, 1), date(2099, 12, 31)), PLAIN)
def test_nobodys_date_survives_either(day: date, base: str) -> None:
    for written in spellings_of(day)[:-1]:
        assert cleaned(f"{base} {written}", own()) == base, written


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=200))
def test_any_text_at_all_is_cleaned_without_fault_and_only_loses(text: str) -> None:
    said = own(Said(NAME, "ZZSYNTH^LEAKTEST"), Said(NUMBER, "LEAK0001"), Said(DATE, "19500131"))
    once = cleaned(text, said)
    assert len(once) <= len(text)
    assert cleaned(once, said) == once
    assert cleaned(text, said) == once


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.one_of(TECHNICAL, st.sampled_from(PEOPLE)), max_size=8),
    SEPARATORS,
)
def test_cleaning_is_settled_after_once(pieces: list[str], glue: str) -> None:
    said = own(Said(NAME, "ZZSYNTH^LEAKTEST"), Said(NUMBER, "LEAK0001"), Said(DATE, "19500131"))
    once = cleaned(glue.join(pieces), said)
    assert cleaned(once, said) == once
    assert "zzsynth" not in once.lower()


@settings(max_examples=100, deadline=None)
@given(st.text(LATIN, min_size=4, max_size=12).filter(uncommon))
def test_a_site_s_own_word_stays_unless_it_is_a_name_of_the_object(word: str) -> None:
    site = words_with((word,))
    assert cleaned(f"AX {word} T2", OwnWords.of((), site)) == f"AX {word} T2"
    assert cleaned(f"AX {word} T2", OwnWords.of([Said(NAME, f"{word}^Zzhans")], site)) == "AX T2"
