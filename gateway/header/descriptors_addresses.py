"""Postal addresses in free text: streets of a dozen countries with what stands behind them, postcodes, boxes, rooms.

Some are addresses whatever they say (12 Elm Road; Bahnhofstrasse 12; 14 Hill, PA 12345), some by their form only
(4 Michael Way, 4 Chamber View): of those the words decide, that is whoever has a list of words. A room is a place too:
of "Room 412 bed 2" the numbers go.
"""

from __future__ import annotations

from gateway.header.descriptors_initials import by_initial

_WORD = r"[A-ZÀ-ÞА-Я][\w'’.-]*"
NAMED = rf"(?-i:{_WORD})"
_STATES = (
    "AL|AK|AZ|AR|CA|CO|CT|DE|DC|FL|GA|HI|ID|IL|IN|IA|KS|KY|LA|ME|MD|MA|MI|MN|MS|MO|MT|NE|NV|NH|NJ|NM|NY|NC|ND"
    "|OH|OK|OR|PA"
    "|PR|RI|SC|SD|TN|TX|UT|VT|VA|VI|WA|WV|WI|WY|AA|AE|AP|GU|AS|MP"
)
_US_STATE = rf"(?-i:{_STATES})\s+\d{{5}}(?:-\d{{4}})?(?!\d)"

# USPS Publication 28, Appendix C1. The sure ones are written like a name and mean nothing else behind one.
_SURE = (
    "Street|Road|Rd|Avenue|Ave|Boulevard|Blvd|Lane|Crescent|Terrace|Parkway|Pkwy|Highway|Hwy|Turnpike|Tpke"
    "|Mews|Causeway"
    "|Freeway|Expressway|Stravenue|Drive|St(?=[.,]|\\s*$)"
)
_TYPES = """
    street avenue ave road rd boulevard blvd lane ln drive court ct square sq terrace ter parkway pkwy highway hwy
    crescent cres close alley trail trl turnpike plaza plz manor mnr mews villa villas point points spring springs
    ville stravenue route rte way place pl row circle cir heights hts grove grv garden gardens gdns glen green
    hill hills hollow island isle junction knoll lake landing loop meadow meadows mill mills mount mountain
    orchard park parade pass path pike pine pines prairie ranch ridge rise run shore shores spur summit track
    union valley view village vista walk wharf wood woods yard bend bluff bridge brook camp canyon cape cliff
    common corner cove creek crossing dale dell estate estates falls ferry field fields flat flats ford forest
    fork fort gateway harbor harbour haven
"""
# In capitals, CT and VIEW are an examination and a projection.
_CAPITALS = (
    "street avenue ave road boulevard blvd lane drive court square terrace parkway highway hwy crescent "
    "close trail place way "
)
_BY_FORM = "|".join((*(word.title() for word in _TYPES.split()), *_CAPITALS.upper().split(), "St", *_CAPITALS.split()))
_US_NUMBER = r"(?<![\w.])\d{1,6}[a-z]?,?\s+(?:(?-i:[NSEW]{1,2}|North|South|East|West)\.?\s+)?"
_UNIT = r"(?:,?\s+(?:apt|apartment|suite|unit|ste|app|flat|floor|fl)\.?\s*#?\w{1,5})?"
_US_CITY = rf"(?:,?\s*(?-i:(?:{_WORD},?\s+){{1,3}}){_US_STATE})"
_US_TOWN = r"(?:,\s?(?-i:[A-Z][a-z]+(?:\s[A-Z][a-z]+){0,2})(?=\s*(?:\Z|[.,;)\r\n])))"
_US_TAIL = rf"{_UNIT}(?:{_US_CITY}|{_US_TOWN})?"
_US_SURE = rf"{_US_NUMBER}(?-i:(?:{_WORD}\s+){{1,3}})(?-i:{_SURE})(?![^\W\d_])\.?{_US_TAIL}"
_US_WITH_STATE = rf"{_US_NUMBER}(?-i:(?:{_WORD},?\s+){{1,7}}){_US_STATE}"
_US_BY_FORM = rf"{_US_NUMBER}(?-i:(?:{_WORD}\s+){{1,3}})(?-i:{_BY_FORM})(?![^\W\d_])\.?{_US_TAIL}"
# Of the words before a state one belongs to the town, and one like New or Port before it.
_TOWN = (
    rf"(?-i:(?:(?:New|Old|Port|Fort|Mount|Lake|North|South|East|West|San|Santa|Saint|St\.?|Los|Las|El|La|Cape"
    rf"|Glen)\s+)?{_WORD}),"
    rf"\s*{_US_STATE}"
)

# A postal code and a town behind a street.
_SECOND = r"(?-i:[A-ZÀ-Þ][a-zß-ÿ][\w'’.-]*)"
_TAIL = rf"(?:\s*,?\s+(?:[A-Z]{{1,3}}-)?\d{{4,5}}(?:\s?(?-i:[A-Z]{{2}})(?!\w))?\s+{NAMED}(?:[ -]{_SECOND})?)?"
_FRENCH = (
    r"(?<![\w.])\d{1,4}(?:\s?(?:bis|ter))?,?\s+(?:rue|avenue|av\.|boulevard|bd\.?|chemin|all[ée]e|quai|impasse"
    r"|place|route|cours)"
    rf"\s(?:(?:de|du|des|la|le|les|d'|l')\s?)*{NAMED}(?:[ -]{NAMED})*{_TAIL}"
)
_ROMANCE_STREETS = by_initial(
    [
        r"calle",
        r"c/",
        r"avda\.?",
        r"avenida",
        r"av\.",
        r"paseo",
        r"plaza",
        r"rua",
        r"travessa",
        r"via",
        r"viale",
        r"v\.le",
        r"piazza",
        r"p\.zza",
        r"corso",
        r"carrer",
        r"largo",
    ]
)
_ROMANCE = (
    rf"(?:{_ROMANCE_STREETS})\s(?:(?:de|da|do|das|dos|dei|degli|del|della|delle|la|las|los)\s)*{NAMED}(?:\s(?:(?:de|da|do|del"
    rf"|la)\s)?{NAMED})*,?\s+"
    rf"(?:n[º°.]\s?)?\d{{1,4}}(?!\d){_TAIL}"
)
# The look ahead asks once for the number behind a word, before every ending is tried at every letter of it.
_GERMANIC = (
    r"(?-i:[A-ZÄÖÜÅÆØ])(?=[\wäöüßåæø.-]*+\s+\d)[\wäöüßåæø.-]*(?:stra(?:ß|ss)e|str\.|gasse|allee|chaussee|weg|platz|damm|ufer|straat"
    r"|laan|gracht|plein"
    rf"|kade|singel|gatan|vägen|vej|gade|gata|veien|katu)\s+\d{{1,4}}\s?[a-z]?(?![\w,.]\d){_TAIL}"
)
_SLAVIC = (
    rf"(?<![^\W\d_])(?:(?-i:ul\.|al\.|os\.|pl\.)|ulice|ulica|ул\.|улица|пр(?:осп)?\."
    rf"|пер\.)\s?{NAMED}(?:\s{NAMED})?,?\s+"
    rf"(?:д\.\s?)?\d{{1,4}}\w?(?:\s?/\s?\d{{1,4}})?(?:,?\s*(?:кв|m)\.?\s?\d{{1,4}})?"
)
_EAST_ASIAN = (
    r"[\u4e00-\u9fff々ヶケノ]{1,12}(?:市|区|區|町|村|路|街|洞|동|구|로|길)\s?[\u4e00-\u9fff]{0,8}\s?\d{1,4}"
    r"(?:\s?(?:丁目|番地|番|号|號|巷|弄|室|-)\s?\d{0,4}){1,5}"
)
# Outward codes begin with one of the 121 areas; the inward code has no C I K M O V (BS 7666).
_UK_AREAS = (
    "A[BL]|B[ABDHLNRST]?|C[ABFHMORTVW]|D[ADEGHLNTY]|E[CHNX]?|F[KY]|G[LUY]?|H[ADGPRSUX]|I[GMPV]|JE|K[ATWY]"
    "|L[ADELNSU]?|M[EKL]?"
    "|N[ENGPRW]?|O[LX]|P[AEHLOR]|R[GHM]|S[AEGKLMNOPRSTWY]?|T[ADFNQRSW]|UB|W[ACDFNRSV]?|YO|ZE"
)
_UK_CODE = rf"(?-i:(?<!\w)(?:{_UK_AREAS})\d[\dA-Z]?\s\d[ABD-HJLNP-UW-Z]{{2}})(?!\w)"
_CANADIAN_CODE = r"(?-i:(?<!\w)(?:AB|BC|MB|NB|NL|NS|ON|PE|QC|SK),?\s+[ABCEGHJ-NPRSTVXY]\d[A-Z]\s?\d[A-Z]\d)(?!\w)"
_ROOMS = ["room", "zimmer", "chambre", "habitaci[oó]n", "kamer", "stanza", "quarto", "sala", "pokój", "палата"]
_ROOM = (
    rf"(?:{by_initial(_ROOMS)}|(?-i:[rR])(?-i:m)\.?)\s*(?:no\.?|nr\.?|n[º°]|#)?\s*"
    r"(?P<room>\d{2,5}(?:-\d{1,4})?\s?[a-z]?(?!\w)(?:\s*[,/-]?\s*(?:bed|bett|lit|cama|letto|leito)\s*\w{1,3})?)"
)

# By what they begin with; beside each other in the order in which they count.
FROM_DIGITS = (_US_WITH_STATE, _US_SURE, rf"(?P<street>{_US_BY_FORM})", _FRENCH)
FROM_LETTERS = (
    _ROMANCE,
    _GERMANIC,
    _SLAVIC,
    _EAST_ASIAN,
    _ROOM,
    r"(?<!\w)(?:apt|suite|ste)\.?\s*\d{1,5}[a-z]?(?!\w)|(?<!\w)flat\s\d{1,4}[a-z]?(?=,)",
    _TOWN,
    r"(?<!\w)(?:p\.?\s?o\.?\s?box|postfach|bo[iî]te postale|b\.?p\.|apartado|skr\.\s?poczt\.)\s*\d{2,}",
    r"(?<!\w)(?:box|psc|unit)\s*\d{2,}[ ,]+(?:box \d+ )?[ADF]PO\s+A[AEP]\s+\d{5}",
    rf"(?<!\w)(?:D|CH|A|F|I|B|L|NL|PL|CZ)-\d{{4,5}}(?!\d)(?:\s+{NAMED})?",
    _UK_CODE,
    _CANADIAN_CODE,
)
INSIDE_WORDS = (_GERMANIC, _EAST_ASIAN, _TOWN)
FROM_COMMA = (rf",\s*{_US_STATE}",)
