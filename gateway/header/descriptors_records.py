"""Numbers of records, orders, insurances, passports and cars: by the label before them, and by their form alone."""

from __future__ import annotations

from gateway.header.descriptors_initials import by_initial

GUID = r"(?<![\w-])[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}(?![\w-])"
_NUMBER = "(?:[ ._-]{0,2}(?:no|nr|number|num|id|#))"
_NUMMER = "[ ._-]{0,3}(?:nr|nummer|id)"


def _each(words: str, ending: str) -> tuple[str, ...]:
    return tuple(word + ending for word in words.split())


_LABELS = by_initial(
    (
        *(r"m\.?r\.?n", r"m\.?r\.?\s?#", "pid"),
        r"pat(?:ient|ienten)?(?:\s?#|[ ._-]{0,2}(?:id|no|nr|nummer|number))",
        *_each("hosp hospital", _NUMBER),
        *("medical[ -]record(?:[ -](?:no|number|id))?", "record(?:[ -](?:no|number|id))?"),
        *("chart(?:[ -](?:no|number))?", "folder(?:[ -](?:no|number))", "ur(?:[ ._-]?(?:no|nr))?", "hn"),
        *(rf"unit{_NUMBER}", "chi(?:[ -]?(?:no|number))?", rf"acc(?:ession)?{_NUMBER}?"),
        *_each("case visit claim invoice exam(?:ination)?", _NUMBER),
        *_each("order ord requisition request req placer filler encounter", f"{_NUMBER}?"),
        *("auftrag", f"anforderung(?:{_NUMMER})?", "demande(?:[ ._-]n[o°º])?", "ris", "kis"),
        *_each("fall auftrags? kranken(?:akten)? aufnahme anf(?:orderungs)? befund", _NUMMER),
        *_each("untersuchungs zuweisungs vorgangs beleg", _NUMMER),
        *("identifikationsnummer", "ssn", r"s\.s\.n", "nin[oe]?", "nhs(?:[ -]?(?:no|number))?", "ahv(?:[ -]?n[ro])?"),
        *("avs", "kvnr", "svnr", "versicherten(?:nr|nummer)"),
        *_each("insurance policy member account subscriber group", "[ -]?(?:no|number|id|#)"),
        *_each("policy acct medicare medicaid mbi hicn", r"(?:\s?#)?"),
        r"ins(?:urance)?\.?(?:[ -]?(?:no|number|id|#))",
        *("driver'?s[ -]licen[cs]e(?:[ -]?(?:no|number|plate))?", "licen[cs]e(?:[ -]?(?:no|number|plate))?"),
        *("number plate", "kennzeichen", "kfz", "passport(?:[ -](?:no|number))?"),
        *("reisepass(?:[ -]?(?:nr|no))", "pass(?:[ -]?(?:nr|no))", "ausweis(?:[ -]?nr)?", "vin"),
        *(r"n[°º]\s?(?:de\s)?(?:dossier|s[ée]cu|patient)", "dossier", "insee", "ipp", "iep", "nip", "nhc", "nuhsa"),
        *("cip", "dni", "nie", "nif", "nuss", "curp", "rut", "cpf", "bsn", "pesel", "cpr", "cnp"),
        *("rodn[eé] [cč][ií]slo", "personnummer", "f[oø]dselsnummer", "henkil[oö]tunnus", "hetu", "oib", "emso"),
        *("jmbg", "egn", "amka", "снилс", "иин", "codice fiscale", r"c\.?f\.?", "tessera sanitaria", "nosologico"),
        *("nss", "aadhaar", "nric", "hkid", "resident id", "身份证号?", "病历号", "住院号", "患者番号", "患者id"),
        *("등록번호", "환자번호", "id(?:[ ._-]?(?:no|nr|number))?", "ref(?:[ ._-]{0,2}(?:no|nr|number))"),
        *("s/?n", r"ser(?:ial)?(?:[ ._-]?(?:no|nr|number|#))?", "serien(?:nr|nummer)", "udi"),
        "asset(?:[ -]?(?:no|tag))?",
    )
)
_PATIENT = (
    r"m\.?r\.?n|pid"
    r"|pat(?:ient|ienten)?(?:[ ._-]{0,2}(?:id|no|nr|nummer|number)|\s?#|(?=[ :]{1,3}\d{4,}(?!\w|\s?m[lg])))"
    r"|(?:subject|participant|proband(?:en)?)[ ._-]{0,2}(?:id|no|nr|number)"
)
_RECORD = r"[A-Za-z]{0,5}[-/ ]?\d(?:[A-Za-z\d/-]*\d){3}[\w/-]*"
# Of a car. What is registered is mostly an image: behind "reg" only the British form counts.
_PLATES = by_initial(
    (
        "number plate",
        r"licen[cs]e plate(?:\s(?:no|number))?",
        "kennzeichen",
        "kenteken",
        "immatriculation",
        r"reg(?:istration)?(?:\s(?:no|number))?(?=[ \t.:#=-]*(?-i:[A-Z]{2}\d\d ?[A-Z]{3})(?!\w))",
    )
)
_PLATE = r"[A-Z]{1,3}[ -]?(?:[A-Z]{1,2}[ -]?)?\d{1,4}(?:[ -]?[A-Z]{1,3})?|\d{1,3}[ -]?[A-Z]{2,3}(?:[ -]?\d{1,3})?"
RECORDS = (
    rf"(?<!\d)(?:{_LABELS})(?![^\W\d_])[ \t]*[.:#=_-]{{0,3}}[ \t]*#?(?P<labelled>{_RECORD})",
    rf"(?<!\d)(?:{_PATIENT})(?![^\W\d_])[ \t]*[:#=-]*[ \t]*(?P<numbered>(?:[A-Za-z]{{1,6}}[-/]?)?\d{{2,}}[\w/-]*)",
    rf"(?:{_PLATES})(?![^\W\d_])[ \t]*[.:#=-]*[ \t]*(?P<plate>(?-i:{_PLATE}))(?!\w)",
    r"(?-i:(?<!\w)[A-Z]{2}\s\d\d\s\d\d\s\d\d\s[A-D])(?!\w)",  # UK national insurance
    r"(?-i:(?<!\w)[A-Z]{6}\s?\d\d[A-EHLMPR-T]\d\d\s?[A-Z]\d{3}[A-Z])(?!\w)",  # Italian codice fiscale
    r"(?-i:(?<!\w)[A-Z]{2}\d\d(?:\s?[A-Z0-9]{4}){3,7}(?:\s?[A-Z0-9]{1,3})?)(?!\w)",  # bank accounts
)
_MBI = "[AC-HJKMNP-RT-Y]"
NUMBERED = (
    r"(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])",  # US social security
    r"756[. ]?\d{4}[. ]?\d{4}[. ]?\d{2}(?!\d)",  # Swiss AHV
    # French NIR
    r"[12][ .]?\d\d[ .]?(?:0[1-9]|1[0-2])[ .]?(?:\d\d|2[AB])[ .]?\d{3}[ .]?\d{3}(?:[ .]?\d\d)?(?!\d)",
    r"\d{2}[ ]\d{6}[ ][A-Z][ ]\d{3}(?!\d)",  # German pension
    r"\d{3}\.\d{3}\.\d{3}-\d{2}(?!\d)",  # Brazilian CPF
    r"\d{6}[-+]\d{4}(?!\d)",  # Nordic personal numbers
    r"(?<![.-])\d{4}(?P<dash>[ -])\d{4}(?P=dash)\d{4}(?P=dash)\d{4}(?![\d-])",  # payment and insurance cards
    r"(?<!\.)(?P<grouped>\d{3}[ ]\d{3}[ ]\d{4})(?!\.?\d)",  # NHS number, and telephones
    # US Medicare Beneficiary Identifier (CMS): no S L O I B Z
    rf"(?<!\w)(?-i:[1-9]{_MBI}(?:\d|{_MBI})\d(?P<mbi>[ -]?){_MBI}(?:\d|{_MBI})\d(?P=mbi){_MBI}{{2}}\d\d)(?!\w)",
)
