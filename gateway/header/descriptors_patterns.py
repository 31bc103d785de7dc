"""What identifies by its form alone, whoever it belongs to: contacts, addresses of the net and of streets, numbers of
records and insurances, UIDs; and ages over 89, which become 90 (45 CFR 164.514(b)(2)(i)).

Dates are in `descriptors_dates`, names in `descriptors_own` and `descriptors_words`. A form is listed only when it is
told from the numbers of a protocol: 512x512, 0.5/5/25, 1.2.840 stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydicom._uid_dict import UID_dictionary

from gateway.header.dates import MAX_AGE_YEARS

_TOP_LEVEL = "com|org|net|edu|gov|mil|info|health|hospital|clinic|int|eu"
_NATIONAL = "de|ch|at|fr|es|it|uk|nl|be|us|ca|au|jp|cn|kr|ru|pl|br|pt|se|no|dk|fi|cz|tr|in|mx|ar|local|lan|intra"

_NET = (
    r"[\w.+-]+\s?@\s?[\w-]+(?:\.[\w-]+)*",
    r"(?:https?|ftp|s?ftp|file|mailto|dicom|wado)[:]/{0,2}\S+",
    r"www\.[\w.-]+(?:/\S*)?",
    rf"(?<![\w.])(?:[\w-]+\.)+(?:{_TOP_LEVEL})(?![\w])(?:/\S*)?",
    rf"(?<![\w.])(?:[\w-]+\.)+[\w-]*[a-z]{{3}}[\w-]*\.(?:{_NATIONAL})(?!\w)(?:/\S*)?",
    r"\\\\[\w.$-]+(?:\\[\w.$ -]+)+",
    r"(?<![\w])[A-Za-z]:\\[\w.$\\ -]+",
    r"(?<![\w.:])(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{0,4}(?![\w:])",
    r"(?<![\w:])(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}(?![\w:])",
)
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IP = rf"(?<![\d.])(?:(?:[1-9]\d|1\d\d|2[0-4]\d|25[0-5])(?:\.{_OCTET}){{3}}|127(?:\.{_OCTET}){{3}})(?![\d.]\d|\d)"
_UID = r"(?<![\d.])[0-2](?:\.\d+){5,}(?![\d.])"

_NUMBER = "(?:[ ._-]?(?:no|nr|number|id|#))"
_LABELS = "|".join(
    (
        r"m\.?r\.?n|pid|pat(?:ient|ienten)?[ ._-]?(?:id|no|nr|nummer|number)",
        r"(?:medical[ -])?record(?:[ -](?:no|number|id))?",
        rf"acc(?:ession)?{_NUMBER}?|(?:case|order|visit){_NUMBER}|(?:fall|auftrag)(?:[ ._-]?(?:nr|nummer|id))|auftrag",
        r"ssn|s\.s\.n|nhs(?:[ -]?(?:no|number))?|ahv(?:[ -]?n[ro])?|kvnr|versicherten(?:nr|nummer)",
        r"(?:insurance|policy|member|account)[ -]?(?:no|number|id)|acct|licen[cs]e[ -]?(?:no|number)?",
        r"n[°º]\s?(?:de\s)?(?:dossier|s[ée]cu)|dossier|ipp|iep|nip|nhc|dni|nie|nif|cpf|bsn|pesel|cpr|cnp",
        "codice fiscale",
        r"id(?:[ ._-]?(?:no|nr|number))?|ref(?:[ ._-]{0,2}(?:no|nr|number))",
    )
)
_RECORD = r"[A-Za-z]{0,5}[-/ ]?\d(?:[\w/-]*\d){3}[\w/-]*"
_RECORDS = (
    rf"(?<![^\W_])(?:{_LABELS})(?![^\W\d_])\s*[:#.=-]*\s*(?P<labelled>{_RECORD})",
    r"(?<![^\W_])(?:m\.?r\.?n|pid|pat[ ._-]?id)(?![^\W\d_])\s*[:#.=-]*\s*(?P<numbered>\d{2,})",
    r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])",  # US social security
    r"(?<!\d)756[. ]?\d{4}[. ]?\d{4}[. ]?\d{2}(?!\d)",  # Swiss AHV
    # French NIR
    r"(?<!\d)[12][ .]?\d\d[ .]?(?:0[1-9]|1[0-2])[ .]?(?:\d\d|2[AB])[ .]?\d{3}[ .]?\d{3}(?:[ .]?\d\d)?(?!\d)",
    r"(?<!\d)\d{2}[ ]\d{6}[ ][A-Z][ ]\d{3}(?!\d)",  # German pension
    r"(?<!\d)\d{3}\.\d{3}\.\d{3}-\d{2}(?!\d)",  # Brazilian CPF
    r"(?<!\d)\d{6}[-+]\d{4}(?!\d)",  # Nordic personal numbers
    r"(?<![\d.])(?P<grouped>\d{3}[ ]\d{3}[ ]\d{4})(?![\d.])",  # NHS number, and telephones
)
_CALLS = (
    r"tele?(?:fon|phone|\.)?|t[ée]l\.?|ph(?:one|\.)|fax|mobile?|cell|handy|natel|pager|beeper|dect|ext(?:ension)?|"
    "durchwahl|callback"
)
_PHONES = (
    r"(?<![\w.])\+\d{1,3}(?:[\s()./-]{0,2}\d){6,13}(?!\d)",
    r"(?<![\w.])00[1-9]\d{0,2}(?:[\s()/-]{1,2}\d{2,}){2,6}(?!\d)",
    r"(?<!\d)\(\d{2,5}\)\s?\d{2,5}(?:[-. ]?\d{2,5}){1,3}(?!\d)",
    r"(?<![\w.-])(?:1[-. ])?(?P<called>\d{3}[-.]\d{3}[-.]\d{4})(?:\s?(?:x|ext\.?)\s?\d{1,5})?(?![\w-])",
    r"(?<![\w.])0\d{1,4}[ /-]\d{3,}(?:[ /-]?\d{2,}){0,4}(?!\d)",
    r"(?<![\w.])0\d(?:[ .]\d\d){4}(?!\d)",
    rf"\b(?:{_CALLS})(?![^\W\d_])\s*[:#.=-]*\s*(?P<phone>\+?[\d(][\d\s()./-]{{3,}}\d)",
)
_STREET = (
    "street|st|avenue|ave|road|rd|boulevard|blvd|lane|drive|court|square|terrace|parkway|pkwy|highway|hwy|"
    "crescent|close|alley|trail|turnpike|plaza|manor|mews|villas?|points?|springs?|ville|stravenue|route|way|place|row"
)
_NAMED = r"(?-i:[A-ZÀ-Þ])[\w'-]+"
_US_STATE = r"(?-i:[A-Z]{2})\s+\d{5}(?:-\d{4})?"
_US_STREET = (
    rf"(?<![\w.])\d{{1,5}}[a-z]?,?\s+(?-i:(?:[A-ZÀ-Þ][\w'.-]*\s+){{1,3}})(?:{_STREET})(?![^\W\d_])\.?"
    rf"(?:,?\s+(?:apt|suite|unit|ste|app)\.?\s*\w+)?(?:,?\s*(?-i:(?:[A-ZÀ-Þ][\w'.-]*,?\s+){{1,3}}){_US_STATE})?"
)
_FRENCH_STREET = (
    r"(?<![\w.])\d{1,4}(?:\s?(?:bis|ter))?,?\s+(?:rue|avenue|av\.|boulevard|bd\.?|chemin|all[ée]e|quai|impasse|place)\s"
    rf"(?:(?:de|du|des|la|le|les|d'|l')\s?)*{_NAMED}"
)
_ROMANCE_STREET = (
    r"(?:calle|c/|avda\.?|avenida|paseo|plaza|rua|via|viale|piazza|corso)\s(?:(?:de|da|do|del|della|la)\s)*"
    rf"{_NAMED}(?:\s{_NAMED})*,?\s+(?:n[º°.]\s?)?\d{{1,4}}(?!\d)"
)
_GERMAN_STREET = (
    r"(?-i:[A-ZÄÖÜ])[\wäöüß.-]*(?:stra(?:ß|ss)e|str\.|gasse|allee|chaussee|weg|platz|damm|ufer)\s+"
    r"\d{1,4}\s?[a-z]?(?![\w,.]\d)"
)
_PLACES = (
    rf"(?P<street>{_US_STREET}|{_FRENCH_STREET}|{_ROMANCE_STREET})",
    _GERMAN_STREET,
    r"(?<!\w)(?:apt|suite|ste)\.?\s*\d{1,5}[a-z]?(?!\w)",
    rf",\s*{_US_STATE}(?!\d)",
    r"(?<!\w)(?:p\.?\s?o\.?\s?box|postfach|bo[iî]te postale|b\.?p\.|apartado)\s*\d{2,}",
    r"(?<!\w)(?:box|psc|unit)\s*\d{2,}[ ,]+(?:box \d+ )?[ADF]PO\s+A[AEP]\s+\d{5}",
    rf"(?<!\w)(?:D|CH|A|F|I)-\d{{4,5}}(?!\d)(?:\s+{_NAMED})?",
)
_FORMS = re.compile("|".join((*_NET, _IP, _UID, *_RECORDS, *_PHONES, *_PLACES)), re.IGNORECASE)
_NUMBERS_ONLY = ("labelled", "numbered", "phone")

_YEARS_OLD = (
    r"(?:-?\s?(?:years?|yrs?|y)(?:[\s-]*(?:old|o|/o))?|\s?y\.?/?o\.?|\s?yo|\s?yr|-?\s?jährige?[nrs]?"
    r"|-?\s?jaehrige?[nrs]?|\s?j\.?|\s?jahre?n?|\s?lj|\s?ans|\s?años|\s?anos|\s?anni|\s?jaar|\s?lat|\s?roků"
    r"|\s?лет|\s?года?|歳|岁|세|y)"
)
_AGES = re.compile(
    rf"(?<![\d.,])0?(?P<before>9\d|1[0-3]\d){_YEARS_OLD}(?![^\W_])"
    r"|(?<![^\W_])(?:age[d]?|alter|âge|edad|età|idade|leeftijd|wiek|年齢|年龄)\s?(?:of|von|de|d[ie]|is|at)?\s?[:=-]?\s*"
    r"(?P<after>9\d|1[0-3]\d)(?![\d.]|\s?(?:%|mm|cm|ml))"
    r"|(?<![\w.])(?P<sex>9\d|1[0-3]\d)\s?(?:yo?\s?(?-i:[FMW])(?![^\W_])"
    r"|(?-i:[FMW])(?=\s(?:with|w/|presents|c/o|s/p|hx|mit|who|having)\b))",
    re.IGNORECASE,
)
_MAYBE_FORM = re.compile(r"\d.*\d|@|www|:/|\\\\|\.(?:com|org|net|edu)|[A-Za-z]:\\", re.IGNORECASE | re.DOTALL)


def forms_in(text: str) -> Iterator[tuple[int, int, bool]]:
    """Spans of contacts, addresses, record numbers and UIDs; of a labelled number, the number.

    True behind a span: it is a street by its form only (4 Michael Way, 4 Chamber View); its words decide.
    """
    if not _MAYBE_FORM.search(text):
        return
    for match in _FORMS.finditer(text):
        span = next((match.span(name) for name in _NUMBERS_ONLY if match[name]), match.span())
        grouped = match["grouped"] or match["called"]
        if text[slice(*span)] in UID_dictionary or (grouped and _are_sizes(grouped)):
            continue
        yield *span, bool(match["street"])


def _are_sizes(grouped: str) -> bool:
    """True for numbers of pixels or b-values, 256 256 1024 or 500-500-1000, which look like a telephone number."""
    return all(int(part) % 8 == 0 or int(part) % 50 == 0 for part in re.split(r"\D", grouped))


def old_ages_in(text: str) -> Iterator[tuple[int, int, str]]:
    """Spans of the numbers of ages over 89, with what is written instead."""
    for match in _AGES.finditer(text):
        start, end = match.span(match.lastgroup or 0)
        if int(text[start:end]) > MAX_AGE_YEARS - 1:
            yield start, end, str(MAX_AGE_YEARS)
