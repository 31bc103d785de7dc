"""Dates in free text: every common way of writing one, in English, German, French, Spanish, Italian, Portuguese, Dutch,
Polish, Russian, Chinese, Japanese and Korean, with a time of day beside it.

A year alone is no date (45 CFR 164.514(b)(2)(i)(C)), unless it is the year of birth. A date is masked, never shifted:
which of two readings of 01/02/2020 is meant, nobody knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from gateway.header.descriptors_initials import by_initial

_MONTH_NAMES = """
    january january jan januar jänner jaenner janner janv janvier enero ene gennaio gen janeiro januari stycznia
        styczeń января январь янв
    february feb februar feber févr fevr février fevrier febrero febbraio fevereiro fev februari lutego luty
        февраля февраль фев
    march mar märz maerz mrz marz mars marzo março marco maart mrt marca marzec марта март
    april apr avril avr abril abr aprile kwietnia kwiecień апреля апрель апр
    may mai mayo maggio mag maio mei maja maj мая май
    june jun juni juin junio giugno giu junho czerwca czerwiec июня июнь
    july jul juli juillet juil julio luglio lug julho lipca lipiec июля июль
    august aug août aout agosto ago augustus sierpnia sierpień августа август авг
    september sept sep septembre septiembre settembre setembro set września wrzesień сентября сентябрь сен сент
    october oct oktober okt octobre octubre ottobre ott outubro out października październik октября октябрь окт
    november nov novembre noviembre novembro listopada listopad ноября ноябрь ноя
    december dec dezember dez décembre decembre diciembre dic dicembre dezembro grudnia grudzień декабря декабрь дек
"""
MONTHS = {
    name: number
    for number, names in enumerate(re.split(r"\n {4}(?! )", _MONTH_NAMES.rstrip())[1:], 1)
    for name in names.split()
}


def _one_of(names: Iterable[str]) -> str:
    return "|".join(sorted(names, key=len, reverse=True))


# More often other words (MAR, SEP, DEC, SET are also techniques): with two digits or without a year they are no month.
_WORDS = frozenset({"set", "out", "mag", "gen", "ago", "may", "mai"})
_SHORT_YET_SURE = frozenset({"june", "july", "juni", "juli", "juin", "mars"})
_MONTH = rf"(?:{_one_of(MONTHS)})\.?"
_SURE_MONTH = rf"(?:{_one_of(MONTHS.keys() - _WORDS)})\.?"
_FULL_MONTH = rf"(?:{_one_of(name for name in MONTHS if len(name) >= 5 or name in _SHORT_YET_SURE)}|(?-i:May|Mai))"
# Three letters that mean nothing else beside a day.
_BRIEF_MONTH = "(?-i:Jan|JAN|Feb|FEB|Apr|APR|Aug|AUG|Oct|OCT|Okt|Nov|NOV|Dez|Dec|Janv|Févr|Avr|Sept)"
_YEAR = r"(?:1[89]|20)\d\d"
_OTHER_YEAR = r"(?:1[34]|2[45])\d\d"
_M, _D = r"(?:1[0-2]|0?[1-9])", r"(?:3[01]|[12]\d|0?[1-9])"
_MM, _DD = r"(?:1[0-2]|0[1-9])", r"(?:3[01]|[12]\d|0[1-9])"
_TH = r"(?:\.|st|nd|rd|th|er|º|°|-го)?"
_OF = r"(?:\s*(?:of|de|del|d'|,|-|/|\.|_)\s*|\s+|)"
_HOURS = r"(?:[01]\d|2[0-3])[0-5]\d(?:[0-5]\d(?:\.\d{1,6})?)?(?:Z|[+-]\d{4})?"
_CLOCK = (
    r"\d{1,2}(?::\d\d(?::\d\d(?:[.,]\d{1,6})?)?|h\d\d|\.\d\d(?:\.\d\d)?(?=\s*(?:uhr|h\b))|(?=\s*[ap]\.?m\b))"
    r"(?:\s*(?:[ap]\.?m\.?|uhr|h|hrs|utc|gmt|z)(?![^\W\d_]))?(?:\s?[+-]\d\d:?\d\d)?"
)
_OR_CLOCK = rf"(?:T(?=\d)|(?!\d))(?:(?<=T){_CLOCK})?"
_LINK = r"(?:\s*[,;@-]\s*|\s+(?:at|um|à|a las|ore|om|kl\.?|@)\s+|\s+|_)"
_DAY = rf"(?=\d\d/\d|\d/\d\d)(?!\d+/10(?!\d))(?:{_D}/{_M}|{_M}/{_D})|{_DD}\.{_MM}\.?|{_D}\.{_M}\.(?!\d)"
_NO_UNIT = r"(?!\s*(?:min|sec|s|m|ms|mm|cm|ml|t|tesla|%|deg|°|of|von|de)\b)"
_ON = by_initial(
    [
        "on",
        "since",
        "dated",
        "vom",
        "am",
        "seit",
        "ab",
        "le",
        "du",
        "depuis",
        "el",
        "del",
        "il",
        "dal",
        "em",
        "desde",
        "op",
        "sinds",
        "dnia",
        "fra",
        "den",
    ]
)
_BORN = r"born|geb(?:oren)?\.?|née?|nacid[oa]|nat[oa]|d\.?o\.?b\.?|geboortejaar|jg\.?|jahrgang|yob"

_BY_NUMBERS = (
    # 20200131, 20200131101500.123+0100, 20200131_1015
    rf"{_YEAR}{_MM}{_DD}(?:[T_ -]?{_HOURS})?(?!\d)",
    # 2020-01-31T10:15:00Z, 2020/1/31, 2020.01.31, 2020_01_31, 2020 01 31
    rf"(?<!\.){_YEAR}(?:(?P<a>[-./]){_M}(?P=a){_D}|(?P<e>[_ ]){_MM}(?P=e){_DD}){_OR_CLOCK}",
    # 2014. 2. 4. of Korea; 1403/11/15 and 2493-01-31 of other calendars
    rf"(?<!\.){_YEAR}\.\s{_M}\.\s{_D}\.?(?!\d)",
    rf"{_OTHER_YEAR}(?P<k>[-/]){_M}(?P=k){_D}(?!\d)|(?<!\.)(?:{_D}(?P<l>[-./]){_M}(?P=l)){_OTHER_YEAR}(?!\d)",
    # 1950/31/01
    rf"(?<!\.){_YEAR}(?P<n>[-./])(?:1[3-9]|2\d|3[01])(?P=n){_M}(?!\d)",
    # 31.01.1950, 1/31/1950, 31-1-1950, 31 01 1950, 31-01-1950T10:15
    rf"(?<!\d[.]){_D}(?P<b>[-./])\s?{_M}(?P=b)\s?{_YEAR}{_OR_CLOCK}",
    rf"(?<!\d[.]){_M}(?P<c>[-./]){_D}(?P=c){_YEAR}{_OR_CLOCK}",
    rf"(?<!\d[.])(?:{_DD}[_ ]{_MM}|{_MM}[_ ]{_DD})[_ ]{_YEAR}(?!\d)",
    rf"{_D}(?P<o>[-/. ])(?-i:I{{1,3}}|IV|VI{{0,3}}|IX|XI{{0,2}})(?P=o){_YEAR}(?!\d)",
    # 31.01.50, 31-01-50, 1/31/50; not 5/10/15 min
    rf"(?<![.:/-]){_DD}(?P<d>[-.]){_MM}(?P=d)\d\d(?![\d.:/-]\d|\d)",
    rf"(?<![.:/-])(?<![\d.:/-][vV])(?:{_D}\.{_M}\.\d\d)(?![\d.:/-]\d|\d){_NO_UNIT}",
    rf"(?<![.:/-])(?:{_D}/{_M}|{_M}/{_D})/\d\d(?![\d.:/-]\d|\d){_NO_UNIT}",
    # 01/2020, 01.2020, 2020-01
    rf"(?<![./-])(?:{_MM}[-./]|[1-9]/){_YEAR}(?![\d]|[./-]\d){_NO_UNIT}",
    rf"(?<![./-]){_YEAR}[-./]{_MM}(?![\dA-Za-z]|[./-]\d)",
)
_BY_NUMBERS_SAID = (
    # S55.1.31, R2/1/31: years of an era
    rf"(?<!\d)(?-i:[SHR])\d{{1,2}}(?P<j>[./-]){_M}(?P=j){_D}(?![\d./-])",
    # on 12/24, vom 03.05., le 3/12: only behind such a word, and never the 10/10 of a scale
    rf"(?:{_ON})\s+(?P<day>{_DAY})(?![\d/]|\.\d){_NO_UNIT}",
)
_DAY_BY_NAME = (
    # 31 Jan 1950, 31. Januar 1950, 31-JAN-50, 31JAN1950, 31 de enero de 1950, 31st of January, 1950
    rf"{_D}{_TH}{_OF}(?:{_MONTH}{_OF}'?{_YEAR}|{_SURE_MONTH}{_OF}'?\d\d)(?!\d)",
    rf"{_D}(?P<h>[-/.])(?:{_one_of(MONTHS)})(?P=h)'?(?:{_YEAR}|\d\d)(?!\d)",
    rf"{_YEAR}{_OF}{_MONTH}{_OF}{_D}(?!\d)",  # 1950-JAN-31
    rf"(?<![.,]){_D}(?:st|nd|rd|th|\.)?[ -]?(?:{_BRIEF_MONTH})\.?(?![^\W_])",  # 5 Feb, 24-Dec
    rf"{_D}{_TH}\s*(?:of|de)?\s*{_FULL_MONTH}(?![^\W\d_])",  # 31 January, 31. Januar
)
_MONTH_BY_NAME = (
    # January 31st, 1950; January 1950, Jan-2020
    rf"{_MONTH}\s*{_D}{_TH},?\s*(?:'?{_YEAR}|'\d\d)(?!\d)",
    rf"{_MONTH}(?P<m>[-/. ]){_D}(?P=m)(?:{_YEAR}|\d\d)(?!\d)",
    rf"{_SURE_MONTH}(?:\s+de)?[\s,/._'-]*{_YEAR}(?!\d)",
    rf"(?:{_one_of(_WORDS)})\.?(?:\s+de)?[ /._'-]?{_YEAR}(?!\d|[-/.]\d)",
    # Jan 3rd, January 31st
    rf"(?<!\d)(?:{_BRIEF_MONTH})\.?[ -]{_D}(?:st|nd|rd|th)?(?![\d.,%/-]|[^\W_]){_NO_UNIT}",
    rf"{_FULL_MONTH}\s*{_D}(?:st|nd|rd|th)?(?![\d.]|[^\W\d_])",
)
_BY_CHARACTER = (  # 2020年1月31日, 昭和25年1月, 1월 31일
    r"(?:昭和|平成|令和|大正|明治|西暦)?\s*\d{1,4}\s*[年년]\s*\d{1,2}\s*[月월](?:\s*\d{1,2}\s*[日일](?:\s*生(?:まれ)?)?)?",
    r"\d{1,2}\s*[月월]\s*\d{1,2}\s*[日일]",
)
_OF_BIRTH = (rf"(?:(?<![^\W\d_])(?:{_BORN})|\*)(?:\s|in|en|le|[:=.])*(?P<birth>{_YEAR})(?!\d)",)


def _by_start(digits: Iterable[str], letters: Iterable[str]) -> str:
    """Alternatives that begin a run of digits, and others that begin a run of letters: most places begin neither."""
    return rf"(?<!\d)(?=\d)(?:{'|'.join(digits)})|(?<![^\W\d_])(?=[^\W\d_])(?:{'|'.join(letters)})"


_NUMBERS, _NAMED, _CHARACTERS, _BIRTH = (
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        _by_start(_BY_NUMBERS, _BY_NUMBERS_SAID),
        _by_start(_DAY_BY_NAME, _MONTH_BY_NAME),
        "|".join(_BY_CHARACTER),
        "|".join(_OF_BIRTH),
    )
)
_CLOCK_AFTER = re.compile(rf"{_LINK}{_CLOCK}(?!\d)", re.IGNORECASE)
_CLOCK_BEFORE = re.compile(rf"(?<![\d:]){_CLOCK}{_LINK}\Z", re.IGNORECASE)
_CLOCK_REACH = 24  # characters before a date in which its time may begin
# Times and angles with slashes between them: TE 10/20/30.
_SERIES_BEFORE = re.compile(
    r"(?<![^\W\d_])(?:TE|TR|TI|TD|FA|b|echo(?:es)?|kVp?|mAs?|delays?|phases?|v|ver|version|vers|sw|software|rev|release|rel|syngo|R)s?[.]?\s*[:=]?\s*\Z",
    re.IGNORECASE,
)
_DIGIT, _LETTERS = re.compile(r"\d"), re.compile("[a-z]+")
_HAS_MONTH = re.compile(rf"(?<![^\W\d_])(?:{_one_of(MONTHS)})(?![^\W\d_])", re.IGNORECASE)
_HAS_CHARACTER = re.compile("[年月년월]")
_HAS_YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")


def _matches(text: str) -> Iterator[re.Match[str]]:
    digits = len(_DIGIT.findall(text))
    if not digits:
        return
    if digits >= 4:  # 1/2/50 has the fewest
        yield from _NUMBERS.finditer(text)
    if _names_a_month(text):
        yield from _NAMED.finditer(text)
    if not text.isascii() and _HAS_CHARACTER.search(text):
        yield from _CHARACTERS.finditer(text)
    if digits >= 4 and _HAS_YEAR.search(text):
        yield from _BIRTH.finditer(text)


def _names_a_month(text: str) -> bool:
    if text.isascii():  # elsewhere lower case is not all that case means
        return not MONTHS.keys().isdisjoint(_LETTERS.findall(text.lower()))
    return _HAS_MONTH.search(text) is not None


def dates_in(text: str) -> Iterator[tuple[int, int]]:
    """Spans of dates, each with the time of day beside it. They may overlap."""
    for match in _matches(text):
        start, end = match.span(match.lastgroup) if match.lastgroup in ("birth", "day") else match.span()
        if match.re is _NUMBERS and _SERIES_BEFORE.search(text, max(0, start - _CLOCK_REACH), start):
            continue
        before = _CLOCK_BEFORE.search(text, max(0, start - _CLOCK_REACH), start)
        after = _CLOCK_AFTER.match(text, end)
        yield before.start() if before else start, after.end() if after else end


def number_of(token: str) -> int | None:
    """What a token may be in a date: a number of at most four digits, a month by name, or nothing."""
    if token.isdecimal():
        return int(token) if len(token) <= 4 else None
    return MONTHS.get(token.lower())
