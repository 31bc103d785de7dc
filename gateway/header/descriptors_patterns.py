"""What identifies by its form alone, whoever it belongs to: contacts, addresses of the net, numbers of records and
insurances, UIDs.

Postal addresses are in `descriptors_addresses`, dates in `descriptors_dates`, ages in `descriptors_ages`, names in
`descriptors_own` and `descriptors_words`. A form is listed only when it is told from the numbers of a protocol:
512x512, 0.5/5/25, 1.2.840 stay.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pydicom._uid_dict import UID_dictionary

from gateway.header.descriptors_addresses import FROM_COMMA, FROM_DIGITS, FROM_LETTERS, INSIDE_WORDS
from gateway.header.descriptors_initials import by_initial
from gateway.header.descriptors_records import GUID, NUMBERED, RECORDS

_TOP_LEVEL = "com|org|net|edu|gov|mil|info|health|hospital|clinic|int|eu|local|lan|localdomain|example|test|invalid"
_NATIONAL = "de|ch|at|fr|es|it|uk|nl|be|us|ca|au|jp|cn|kr|ru|pl|br|pt|se|no|dk|fi|cz|tr|in|mx|ar|intra|internal"

_NET = (
    r"[\w.+-]++@(?:[\w-]{2,}|[\w-]+(?=\.\w))(?:\.[\w-]+)*",
    r"[\w.+-]++\s?@\s?[\w-]+(?:\.[\w-]{2,})+",  # "prior CT @ Riverside" is none
    rf"(?:{by_initial(('https?', 'ftp', 'sftp', 'file', 'mailto', 'dicom', 'wado'))})[:]/{{0,2}}\S+",
    r"(?:www|ftp)\.[\w-]+\.[\w.-]+(?:/\S*)?",
    rf"(?<![\w.])(?:[\w-]+\.)+(?:{_TOP_LEVEL})(?![\w])(?:/\S*)?",
    rf"(?<![\w.])(?:[\w-]+\.)+[\w-]*[a-z]{{3}}[\w-]*\.(?:{_NATIONAL})(?!\w)(?:/\S*)?",
    r"\\\\[\w.$-]+(?:\\[\w.$ -]+)+",
    r"(?<![\w])[A-Za-z]:\\[\w.$\\ -]+",
    r"(?<![\w.:])(?:[0-9a-f]{1,4}:){4,7}[0-9a-f]{0,4}(?![\w:])",
    r"(?<![\w.:])(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6}(?![\w:])",
    r"(?<![\w:])(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}(?![\w:])",
)
_OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
_IP = rf"(?<![\d.])(?:(?:[1-9]\d|1\d\d|2[0-4]\d|25[0-5])(?:\.{_OCTET}){{3}}|127(?:\.{_OCTET}){{3}})(?![\d.]\d|\d)"
_UID = r"(?<![\d.])[0-2](?:\.\d+){5,}(?!\.?\d)"

_CALLS = by_initial(
    (
        *(
            "tele?(?:fon|phone|\\.)?",
            r"t[ée]l\.?",
            r"tlf\.?",
            r"telf\.?",
            r"ph(?:one|\.)?",
            "fax",
            "telefax",
            "mob(?:iles?|il)?",
        ),
        *("cell", "cellulare", "celular", "handy", "natel", "gsm", "ext(?:ension)?", r"call(?:ed|back|s)?(?:\sat)?"),
        *(
            "contact",
            r"c/b(?=[\s:]*[\d(+])",
            "sms",
            r"text(?=\s\+?[\d(])",
            "whatsapp",
            "r[üu]ckruf",
            "rappeler",
            r"тел(?:ефон)?\.?",
            "факс",
        ),
        *("電話", "电话", "携帯", "手机", "전화"),
    )
)
# A pager's number is short, and said of nothing else.
_PAGER = [
    "pager",
    r"tel(?:efon|\.)?",
    "pgr",
    "beeper",
    "bleep",
    "dect",
    "piepser",
    "funk",
    "bip",
    "cercapersone",
    "durchwahl",
    "nebenstelle",
    "klappe",
    "interno",
]
_PAGERS = rf"(?:{by_initial(_PAGER)})(?![^\W\d_])\s*(?:no|nr|num)?[:#.=-]*\s*"
_EXTENSION = r"(?:\s?(?:x|ext\.?|extension|poste|durchwahl|dw\.?)\s?\d{1,6})?"
_NUMBER_SAID = r"\+?\(?\d(?:(?:[ ()/-]{0,3}|\.)\d){4,14}(?![^\W_])"
_PLUS = rf"(?<![\w.])\+\d{{1,3}}(?:(?:[ ()/-]{{0,2}}|\.)\d){{6,13}}(?!\d){_EXTENSION}"
_IN_BRACKETS = rf"\(\d{{2,5}}\)\s?\d{{2,5}}(?:[-. ]?\d{{2,5}}){{1,3}}(?!\d){_EXTENSION}"
_PHONES = (
    rf"(?<![\w.])00[1-9]\d{{0,2}}(?:[ ()/-]{{1,2}}\d{{2,}}){{2,6}}(?!\d){_EXTENSION}",
    rf"(?<!\w)[18][-. ]?{_IN_BRACKETS}",
    rf"(?<![\w.-])(?:1[-. ])?(?P<called>\d{{3}}[-.]\d{{3}}[-.]\d{{4}}){_EXTENSION}(?![\w-])",
    r"(?<![\w.-])(?P<thrice>\d{3}-\d{3}-\d{3})(?![\w-])",  # Poland, Spain
    r"(?<![\w./-])\d{3}/\d{3}-\d{4}(?![\w-])",
    r"(?<![\w.])0\d{1,4}[ /-]\d{3,}(?:[ /-]?\d{2,}){0,4}(?!\d)",
    r"(?<![\w.])0\d{1,4}\s?/\s?\d{2,}(?:[ -]\d{1,}){1,4}(?!\d)",
    r"(?<![\w.])0\d(?:[ .]\d\d){4}(?!\d)",
    r"(?<![\w.])8[ -]\d{3}[ -]\d{3}[ -]\d\d[ -]?\d\d(?!\d)",  # Russia
    r"(?<![\w.])1[3-9]\d[ -]\d{4}[ -]\d{4}(?!\d)",  # China
    r"(?<!\.)[6-9]\d{4}[ -]\d{5}(?!\.?\d)",  # India
    r"(?<![\w.-])1[38]00[ -]\d{3}[ -]\d{3}(?![\w.-])",  # Australia
)
# Said to somebody: "call results to 555 0100", "please reach on 555 0100"; a ring may be a finding, a number a measure.
_ERRANDS = by_initial(
    ["call", "phone", r"ring(?!\s(?:art[ei]fact|enhanc|shadow|lesion))", "fax", "page", "reach", "dial"]
)
_NO_MEASURE = r"(?!(?:[ /-]?\d)*\s?(?:min|sec|s|ms|mm|cm|ml|kv|kvp|ma|mas|hz|deg|%)(?!\w))"
_TO = r"(?:ed|s)?\s(?:[^\W\d_]+\s){0,4}(?:to|at|on)(?:\s|:)+"
_CALLED = (
    rf"(?:{_ERRANDS}){_TO}(?P<errand>{_NUMBER_SAID}{_EXTENSION}){_NO_MEASURE}",
    rf"(?:{_CALLS})(?![^\W\d_])\s*(?:no|nr|num(?:ber|mer)?)?[:#.=-]*\s*(?P<phone>{_NUMBER_SAID}{_EXTENSION})",
    r"(?:ext|extension)\b\s*[:#.=-]?\s*(?P<line>\d{4,6})(?!\w|\.\d)(?!\s?(?:mm|cm|ms|s)\b)",
    rf"{_PAGERS}(?P<paged>\d{{3,}})",
    # ring 555-0100, h: 555-0100: short words that mean other things before other numbers
    rf"(?:ring\s|[hmp]:\s?)(?P<rung>\d{{3}}[-.]\d{{4}}{_EXTENSION})(?![\w-]){_NO_MEASURE}",
)
# Most places of a text begin neither a number nor a word: what stands there decides which of the forms are tried. The
# order is that in which they count where several begin.
_WITH_DIGITS = (
    rf"(?<!\d)(?=\d)(?:{'|'.join((_IP, _UID, GUID, *NUMBERED, *_PHONES, *FROM_DIGITS))})",
    rf"(?<![^\W\d_])(?=[^\W\d_])(?:{'|'.join((GUID, *RECORDS, *_CALLED, *FROM_LETTERS))})",
    rf"(?<=[^\W\d_])(?=[^\W\d_])(?:{'|'.join(INSIDE_WORDS)})",
    _PLUS,
    rf"(?<!\d){_IN_BRACKETS}",
    *FROM_COMMA,
)
_NUMERIC = re.compile("|".join(_WITH_DIGITS), re.IGNORECASE)
_FORMS = re.compile("|".join((*_NET, *_WITH_DIGITS)), re.IGNORECASE)
_NUMBERS_ONLY = ("labelled", "numbered", "plate", "phone", "errand", "line", "paged", "rung", "room")

_CALLED_BEFORE = re.compile(rf"(?<![^\W\d_])(?:{_CALLS}|{_PAGERS})(?:\s*[:#.=-]*\s*)\Z", re.IGNORECASE)
_B_BEFORE = re.compile(r"(?<![^\W\d_])b(?:[ _-]?values?)?[ _:=-]*(?:\d+[-., ])*\Z", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_WORD_ENDS = re.compile(r"[^\W\d_]{3}[. ]")
_MAYBE_NET = re.compile(r"@|www|:/|\\\\|[^\W_]\.[a-z]{2}|[0-9a-f]{2}[:-][0-9a-f]{2}[:-]|[A-Za-z]:\\", re.IGNORECASE)
_NET_MARKS, _MAC_DASHES = "@:.\\", 5


def forms_in(text: str) -> Iterator[tuple[int, int, bool]]:
    """Spans of contacts, addresses, record numbers and UIDs; of a labelled number, the number.

    True behind a span: it is a street by its form only (4 Michael Way, 4 Chamber View); its words decide.
    """
    marked = any(mark in text for mark in _NET_MARKS) or text.count("-") >= _MAC_DASHES
    if not _has_numbers(text) and not (marked and _MAYBE_NET.search(text)):
        return
    for match in (_FORMS if marked else _NUMERIC).finditer(text):
        if match.lastindex is None:  # without a group
            if match[0] not in UID_dictionary:
                yield *match.span(), False
            continue
        span = next((match.span(name) for name in _NUMBERS_ONLY if match[name]), match.span())
        grouped = match["grouped"] or match["called"] or match["thrice"]
        if text[slice(*span)] in UID_dictionary or (grouped and _are_sizes(grouped, text[: span[0]])):
            continue
        yield *span, bool(match["street"])


def _has_numbers(text: str) -> bool:
    """True for two digits, and for one somewhere behind a word and a space."""
    digits = _DIGIT.findall(text)
    if len(digits) != 1:
        return bool(digits)
    word = _WORD_ENDS.search(text)
    return word is not None and word.end() <= text.index(digits[0])


def _are_sizes(grouped: str, before: str) -> bool:
    """True for numbers of pixels and for b-values, 256 256 1024 or b=100-500-1000, which look like a telephone number.

    A telephone number may be as round: what stands before decides, and only multiples of 64 need nothing before them.
    """
    parts = [int(part) for part in re.split(r"\D", grouped)]
    if _CALLED_BEFORE.search(before):
        return False
    if all(part % 64 == 0 for part in parts):
        return True
    return all(part % 50 == 0 for part in parts) and parts == sorted(parts) and _B_BEFORE.search(before) is not None
