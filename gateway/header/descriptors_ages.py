"""Ages over 89, which become 90 wherever they are written (45 CFR 164.514(b)(2)(i)(C)): in figures and in words.

91 y/o, 093Y, aged 104, 93-jähriger, 102F with ..., 95歳         ninety-three years old, dreiundneunzigjährig,
                                                              quatre-vingt-treize ans, noventa y tres años
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gateway.header.dates import MAX_AGE_YEARS

_YEARS_OLD = (
    r"(?:-?\s?(?:years?|yrs?|y)(?:[\s-]*(?:old|o|/o))?|\s?y\.?/?o\.?|\s?yo|\s?yr|-?\s?jährige?[nrsm]?"
    r"|-?\s?jaehrige?[nrsm]?|\s?j\.?|\s?jahre?n?|\s?lj|\s?ans|\s?años|\s?anos|\s?anni|\s?jaar|\s?lat|\s?roků"
    r"|\s?let|\s?éves"
    r"|-?\s?årig|\s?år|\s?v\.|-?\s?letni\w{0,3}|-?\s?летн\w{0,3}|\s?лет|\s?года?|\s?ετών|\s?yaşında|y)"
)
_AGES = re.compile(
    rf"(?<![\d.,])0?(?P<before>9\d|1[0-3]\d){_YEARS_OLD}(?![^\W_])"
    r"|(?<![\d.,])0?(?P<counted>9\d|1[0-3]\d)\s?[歳岁歲才세]"
    r"|(?<![^\W_])(?:age[d]?|alter|âge|edad|età|idade|leeftijd|wiek|возраст|年齢|年龄|나이)\s?(?:of|von|de|d[ie]|is"
    r"|at)?\s?[:=-]?\s*"
    r"(?P<after>9\d|1[0-3]\d)(?![\d.]|\s?(?:%|mm|cm|ml))"
    r"|(?<![\w.])(?P<sex>9\d|1[0-3]\d)\s?(?:yo?\s?(?-i:[FMW])(?![^\W_])"
    r"|(?-i:[FMW])(?=\s(?:with|w/|presents|c/o|s/p|hx|mit|who|having)\b))",
    re.IGNORECASE,
)

_ENGLISH = (
    r"ninety[ -](?:one|two|three|four|five|six|seven|eight|nine)|(?:one|a)[ -]hundred(?:[ -](?:and[ -])?(?:ten"
    r"|eleven|twelve|one|"
    r"two|three|four|five|six|seven|eight|nine))?"
)
_GERMAN = (
    r"(?:ein|zwei|drei|vier|f(?:ü|ue)nf|sechs|sieben|acht|neun)undneunzig|(?:ein)?hundert(?:und)?(?:ein|zwei"
    r"|drei|vier|f(?:ü|ue)nf|sechs"
    r"|sieben|acht|neun|zehn)?"
)
_FRENCH = (
    r"quatre-vingts?-(?:onze|douze|treize|quatorze|quinze|seize|dix-sept|dix-huit|dix-neuf)"
    r"|nonante-(?:et-)?(?:un|deux|trois|"
    r"quatre|cinq|six|sept|huit|neuf)|cent(?:[ -](?:un|deux|trois|quatre|cinq|six|sept|huit|neuf|dix))?"
)
_SPANISH = r"noventa\s(?:y|e)\s\w{2,6}|cien(?:to\s\w{2,6})?|cem|cento\se\s\w{2,6}"
_ITALIAN = r"novant(?:uno|otto|a(?:due|tr[eé]|quattro|cinque|sei|sette|nove))|cento(?:uno|due|tr[eé]|quattro|cinque)?"
_DUTCH = r"(?:een|twee|drie|vier|vijf|zes|zeven|acht|negen)[eë]nnegentig|honderd(?:een|twee|drie|vier|vijf)?"
_IN_WORDS = re.compile(
    rf"(?<![^\W_])(?:(?P<english>{_ENGLISH})(?=[ -](?:years?|yrs?|y/?o)\b)"
    rf"|(?P<german>{_GERMAN})(?=[ -]?j(?:ä|ae)hrig|\sjahre?n?\b)"
    rf"|(?P<french>{_FRENCH})(?=\sans\b)|(?P<spanish>{_SPANISH})(?=\sa[ñn]os\b)|(?P<italian>{_ITALIAN})(?=\sanni\b)"
    rf"|(?P<dutch>{_DUTCH})(?=[ -]?(?:jaar|jarige)))",
    re.IGNORECASE,
)
_WORDS = "nine|hundr|neunzig|vingt|nonante|cent|noven|cien|cem|novan|negentig|honderd"
_MAYBE_LOWER, _MAYBE_WORDS = re.compile(_WORDS), re.compile(_WORDS, re.IGNORECASE)
_MAYBE_FIGURES = re.compile(r"9\d|1[0-3]\d")


def old_ages_in(text: str) -> Iterator[tuple[int, int, str]]:
    """Spans of ages over 89, with what is written instead."""
    if _MAYBE_FIGURES.search(text):
        for match in _AGES.finditer(text):
            start, end = match.span(match.lastgroup or 0)
            if int(text[start:end]) > MAX_AGE_YEARS - 1:
                yield start, end, str(MAX_AGE_YEARS)
    if _may_be_in_words(text):
        for match in _IN_WORDS.finditer(text):
            yield *match.span(), str(MAX_AGE_YEARS)


def _may_be_in_words(text: str) -> bool:
    if text.isascii():  # elsewhere lower case is not all that case means
        return _MAYBE_LOWER.search(text.lower()) is not None
    return _MAYBE_WORDS.search(text) is not None
