"""Which tokens of a descriptor say something technical or medical, and therefore may stay (PS3.15 E.3.5).

A token stays when the allow-list knows it, when it is a number, or when its shape is that of a technical code that
nobody bears as a name: few letters, few digits (P101, B31f, T2w), an acronym without vowels, or parts that are all
known (ep2d, ThoraxRoutine, Knochenfenster). Everything else goes: it might be a name or a record number.

The list is `policies/standard/descriptor_words.csv` (`tools/generate_allow_list.py`), and with it the site's own words.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from functools import cache, lru_cache

from gateway.header.descriptors_folding import fold, is_ideographic, spellings
from gateway.header.descriptors_tokens import Token, tokens_of
from gateway.policy.standard import FOLDER, read_dated

KNOWN_KINDS = ("core", "join", "word", "generic")
SHORT_LETTERS, VOWELLESS_LETTERS, JOINED_LETTERS, DENIED_LETTERS = 3, 6, 3, 8
MAX_ATTACHED_DIGITS, MAX_TOKEN_DIGITS, MAX_NUMBER_DIGITS = 4, 6, 5
MANY_RUNS = 3
_UNITS = """
s ms us ns min mins sec secs h hr hrs d m mm cm um nm ml l cc mg g kg ug mcg mgy gy cgy usv msv mbq gbq kbq mci uci bq
hz khz mhz ghz kv kev mev ev v kvp ma mas mah mt t tesla ppm hu px pix pixel bpm fps deg degree degrees percent iu mmol
mm2 mm3 cm2 cm3 ms2 w kw db mol mmol umol osm mosm ci becquerel gbq tbq rad rem rpm psi cmh2o mmhg kpa pa n nt tm mtm
"""
UNITS = frozenset(_UNITS.split())
_RUNS = re.compile(r"\d+|[^\W\d_]+")
_HUMPS = re.compile(r"[A-ZÀ-ÖØ-Þ]+(?![a-zß-öø-ÿ])|[A-ZÀ-ÖØ-Þ]?[a-zß-öø-ÿ]+")
_NAME_PREFIX = re.compile(r"(?:Mc|Mac|De|Di|Da|Du|La|Le|Lo|Van|Von|Fitz|San|St|O)[A-ZÀ-Þ]")
# Endings of diseases, operations, examinations and drugs, which no name has at this length.
_MEDICAL = re.compile(
    r"[a-z]{3,}(?:itis|itiden|osis|emia|aemia|ectom[yi]e?|otom[yi]e?|ostom[yi]e?|plast[yi]k?|scop[yi]e?|graph[yi]e?|graphisch"
    r"|path[yi]e?|algi[ae]|uri[ae]|pleg[ij][ae]|megal[yi]e?|trop[hi]y?e?|trophie|lysis|lyse|penia|rrh?agia|rrh?ea|emesis|ptysis|centesis|ectasis|ektasie|iasis|"
    r"stenos[ei]s?|carcinoma|sarcoma|blastoma|karzinom|sarkom"
    r"|(?:lip|aden|fibr|my|melan|gli|angi|neur|cyt|theli|papill|granul|hemat|haemat|chondr|oste|lymph)oma?s?|mab|tinib|statin|cillin|mycin|prazole|sartan|xaban|parin"
    # deeds and qualities in English and French, which are no names either
    r"|[a-z](?:ation|ition|uction|ection|ession|ative|itive|essive|ctive|ensive)s?|[a-z]{2}ism"
    # Spanish, French, Italian, Portuguese, Dutch, German, Polish
    r"|gra(?:f|ph)i(?:a|as|e|es|en|ca|co|cas|cos|sch|sche|que|ques|i)|gram(?:m?[ae]?s?|men|mas)|sc?[ck]op(?:ia|ias|ie|ien|isch|ica|ico|ique)"
    r"|(?:ec|ek|o|os)tomi(?:a|as|e|es|en)|plasti(?:a|ca|e|es|k)|pat(?:h)?i(?:a|as|e|es|en|ca|co|sch|sche|que)|algi(?:a|as|e|en)|megali(?:a|e)"
    r"|logi(?:a|e|c|ca|co|sch|sche|que|cal)|metri(?:a|e|es)|(?:c|z)ent(?:esis|esi|ese|ese)|(?:th|t)erap(?:ia|ie|ien|ias|y|eutisch)"
    r"|scler(?:osis|osi|ose)|necros(?:is|i|e)|stenos(?:is|i|e|en)|tromb(?:osis|osi|ose)|thromb(?:osis|ose|osen)|fibros(?:is|i|e|en))"
)
# Directions and regions in one word, in Latin and its daughters: dorsoventral, anteroinferior, toracolombare.
_STEMS = (
    "antero|postero|latero|medio|dorso|ventro|cranio|kranio|caudo|kaudo|supero|infero|axio|cervico|zerviko|thoraco|thorako|toraco|"
    "lumbo|lombo|sacro|sakro|abdomino|pelvi|pelvo|ilio|iliaco|femoro|tibio|fibulo|talo|calcaneo|radio|ulno|humero|gleno|acromio|"
    "akromio|sterno|costo|kosto|vertebro|occipito|okzipito|fronto|temporo|parieto|maxillo|mandibulo|naso|oro|bucco|cardio|kardio|"
    "pulmo|broncho|bronco|hepato|reno|uretero|vesico|veziko|utero|recto|rekto|colo|gastro|duodeno|jejuno|entero|ileo|spleno|porto|"
    "cavo|veno|arterio|esofago|oesophago|osofago|gastro|pieno|mesenterico|mielo|myelo|artro|arthro|angio|linfo|lympho|adeno|uro|cisto|cysto|pielo|pyelo|histero|hystero|salpingo|galacto|sialo|dacryo|dacrio|fistulo|flebo|phlebo|supra|neuro|osteo|chondro|musculo|muskulo|cerebro|zerebro|spino|aorto|mento|orbito|retro|inter|intra|supra|infra|sub|"
    "peri|para|trans|extra|endo|epi|hemi|pre|post|poly|multi|bi|uni|mono|semi"
)
_SIDES = (
    "anterior|posterior|lateral|medial|dorsal|ventral|cranial|kranial|caudal|kaudal|superior|inferior|proximal|distal|volar|palmar|plantar|axial|axillary|"
    "axillaire|brachial|thoracic|thoracique|thorakal|thorazisch|toracic|torakal|lumbar|lumbal|lombar|lombaire|sacral|sakral|"
    "abdominal|abdominell|abdomino?-?pelvi[ck]|pelvi[ck]|pelvien|pelvin|pelvico|iliac|iliaque|iliaco|femoral|tibial|fibular|"
    "articular|articulaire|artikular|costal|vertebral|spinal|cerebral|zerebral|orbital|ocular|nasal|oral|facial|fazial|mental|frontal|"
    "temporal|parietal|occipital|okzipital|frontale|vascular|vasculaire|vaskular|cardiac|kardial|pulmonary|pulmonal|bronchial|hepatic|"
    "renal|ureteral|vesical|uterin|rectal|rektal|colic|gastric|duodenal|intestinal|venous|venos|arterial|arteriell|cavernous|"
    "muscular|muskular|osseous|chondral|capsular|kapsular|dural|medullary|medullar|parametric|parametrisch|parametrique|planar|"
    "phasic|phasisch|fasic|phasique|phase|phasen|slice|slab|echo|shot|axiale|aortic|aortique|areolar|umbilical|hilar|apical|basal|tracheal|"
    "esophageal|oesophageal|mediastinal|pleural|mesenteric|inguinal|trochanteric|condylar|malleolar|patellar|acetabular|ligamentous|"
    "meniscal|labral|discal|foraminal|synovial|tendinous|cutaneous|cutan|dermal|mastoid|sellar|callosal|hippocampal|thalamic|nodular|lobular|lobar|"
    "segmental|operative?|operatori|operatoire|operatoir|natal|partum|traumatic|traumatisch|traumatique|procedural|surgical|mammar|"
    "mamari|mammari|cerebellar|cerebellum|clavicular|scapular|clinoid|orbitari|ocular|retinal|lacrimal|dental|jugular|carotid|"
    "subclavian|brachiocephalic|cephalic|esofage|gastric|jejunal|ileal|colic|cecal|appendicular|biliar|pancreatic|splenic|hepatic"
)
_REGIONS = re.compile(
    rf"(?:{_STEMS})(?:{_STEMS}){{0,2}}(?:{_SIDES})(?:[aeio]s?|es|en?|er|em|ne|nes|ly|mente|ement|que|ques|co|ca|ci|che)?"
)
_SENTENCE_ENDS = re.compile(r"(?:[.!?]\s{1,2}|[\r\n])\Z")
_VOWELS = re.compile(r"[aeiouyäöüàáâãåæèéêëìíîïòóôõøùúûýÿœ]", re.IGNORECASE)


class Words:
    """The allow-list together with a site's own words. `phrases`: terms that stay whole, by their first word."""

    def __init__(self, site: Iterable[str] = ()) -> None:
        by_kind = _shipped()
        self.site = frozenset(found for word in site for found in spellings(word))
        self.core, self.generic = by_kind["core"], by_kind["generic"]
        self.ambiguous, self._person, self._titled = by_kind["ambiguous"], by_kind["person"], by_kind["titled"]
        self._join, self._everyday = by_kind["join"], by_kind["everyday"]
        self._rare, self._small = by_kind["rare"], by_kind["rare"] | by_kind["small"]
        self._known = frozenset().union(*(by_kind[kind] for kind in KNOWN_KINDS)) | self.site
        self._ideographic = frozenset(word for word in self._known if word and is_ideographic(word[0]))
        self._longest = max(map(len, self._ideographic), default=1)
        self.phrases = _phrases()
        self.stays = lru_cache(maxsize=1 << 14)(self._stays)

    def knows(self, word: str) -> bool:
        """True for a word of the list, in any spelling."""
        return any(one in self._known for one in spellings(word))

    def is_everyday(self, folded: str) -> bool:
        """True for a word that says nothing technical: it stays, but may be part of a street's or a house's name."""
        return folded in self._everyday and folded not in self._known

    def is_core(self, folded: str) -> bool:
        return folded in self.core

    def begins_sentence(self, text: str, token: Token, following: Token | None) -> bool:
        """True for the Ankylosing of "Ankylosing spondylitis": a rare word with the capital of a sentence."""
        return (
            token.text.istitle()
            and following is not None
            and following.text.islower()
            and len(following.text) > SHORT_LETTERS
            and text[token.end : following.start] == " "
            and (not token.start or _SENTENCE_ENDS.search(text[max(0, token.start - 3) : token.start]) is not None)
            and token.text.lower() in self._rare
        )

    def is_part(self, folded: str) -> bool:
        """True for a part of the body, a technique or their like, of which longer words are made."""
        return folded in self._join

    def _stays(self, token: str) -> bool:
        if not token.isascii():  # accents composed; what nobody sees does not count
            composed = unicodedata.normalize("NFC", token)
            token = "".join(
                char for char in composed if unicodedata.category(char)[0] != "M" and unicodedata.category(char) != "Cf"
            )
        if not token or self.knows(token):
            return True
        if token.isdecimal():
            return len(token) <= MAX_NUMBER_DIGITS
        if fold(token) in self._everyday or token in self._small:
            return True
        runs = _RUNS.findall(token)
        if not any(map(str.isdecimal, runs)):
            return all(map(self._letters, runs))
        return self._mixed(runs)

    def _letters(self, word: str) -> bool:
        """A run of letters that is not on the list as it stands."""
        if len(word) == 1:
            return True
        if not word.isascii() and not _is_latin(word):
            return False
        folded = fold(word)
        if folded in self._person or (folded in self._titled and word.istitle()):
            return False
        if len(word) <= SHORT_LETTERS:
            return True
        if len(word) <= VOWELLESS_LETTERS and word.isupper() and not _VOWELS.search(word):
            return True
        return (
            self._humped(word)
            or self._joined(folded)
            or self._denied(folded)
            or any(form.fullmatch(folded) is not None for form in (_MEDICAL, _REGIONS))
        )

    def _humped(self, word: str) -> bool:
        """Parts by capitals: ThoraxRoutine, AxT, SagFLAIR. Every part must be known or short, the longest known."""
        parts = _HUMPS.findall(word)
        if len(parts) < 2 or "".join(parts) != word or _NAME_PREFIX.match(word):
            return False
        known = [self.knows(part) for part in parts]
        return any(known) and all(
            is_known or (len(part) <= 2 and fold(part) not in self._person)
            for part, is_known in zip(parts, known, strict=True)
        )

    def _denied(self, folded: str) -> bool:
        """The contrary of a known word: nonhealing, nonobstructive."""
        rest = folded.removeprefix("non")
        return len(folded) >= DENIED_LETTERS and rest != folded and (rest in self._known or rest in self._everyday)

    def _joined(self, folded: str) -> bool:
        """Parts without a mark between them: HEADNECK, Beckenübersicht. Only of words that are made for it."""
        size = len(folded)
        if size < 2 * JOINED_LETTERS or size > 40:
            return False
        reached = [0]
        for end in range(JOINED_LETTERS, size + 1):
            if any(folded[start:end] in self._join for start in reached if end - start >= JOINED_LETTERS):
                if end == size:
                    return True
                reached.append(end)
        return False

    def _mixed(self, runs: list[str]) -> bool:
        """Letters and digits in one token."""
        digits = [run for run in runs if run.isdecimal()]
        letters = [run for run in runs if not run.isdecimal()]
        if sum(map(len, digits)) > MAX_TOKEN_DIGITS or max(map(len, digits)) > MAX_ATTACHED_DIGITS:
            measure = len(digits) == 1 and runs[0] == digits[0] and len(digits[0]) <= MAX_TOKEN_DIGITS
            return measure and bool(letters) and fold(letters[0]) in UNITS
        if len(digits) >= MANY_RUNS and sum(map(len, digits)) >= MANY_RUNS + 2:
            return False  # 3f9a27c1d4: a key of some sort
        if not all(self.knows(run) or self._letters(run) for run in letters):
            return False
        most = max(map(len, letters), default=0)
        return not any(len(run) == MAX_ATTACHED_DIGITS and _is_serial(run, most) for run in digits)

    def unknown_characters(self, token: str) -> list[tuple[int, int]]:
        """Spans inside a run of Han, kana or Hangul that no word of the list covers: there are no spaces to go by.

        A word of one character beside such a span belongs to it: 上 is a side, and the first half of 上田.
        """
        segments = self._segments(token)
        strange = [not is_known for _, _, is_known in segments]
        for order in (range(len(segments)), reversed(range(len(segments)))):
            beside = False
            for index in order:
                start, end, _ = segments[index]
                strange[index] |= beside and end - start == 1 and not token[start].isascii()
                beside = strange[index]
        gaps: list[tuple[int, int]] = []
        for (start, end, _), is_strange in zip(segments, strange, strict=True):
            if is_strange:
                gaps = [*gaps[:-1], (gaps[-1][0], end)] if gaps and gaps[-1][1] == start else [*gaps, (start, end)]
        return gaps

    def _segments(self, token: str) -> list[tuple[int, int, bool]]:
        """(start, end, known): the longest words of the list, and character by character what lies between."""
        found = []
        at = 0
        while at < len(token):
            sizes = range(min(self._longest, len(token) - at), 0, -1)
            size = next((size for size in sizes if fold(token[at : at + size]) in self._ideographic), 0)
            found.append((at, at + max(size, 1), size > 0 or (token[at].isascii() and not is_ideographic(token[at]))))
            at += max(size, 1)
        return found


def _is_serial(digits: str, most_letters: int) -> bool:
    """Four digits behind letters that count something: LEAK0001, PT0012, MRN1234; not b1000, TE1500, S1023."""
    if digits.startswith("0"):
        return most_letters >= 2
    return most_letters >= SHORT_LETTERS and not digits.endswith("0")


def _is_latin(word: str) -> bool:
    return all(char < "\u0250" or "\u1e00" <= char <= "\u1eff" for char in word)


@cache
def _shipped() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {
        kind: set() for kind in (*KNOWN_KINDS, "everyday", "rare", "small", "ambiguous", "person", "titled", "phrase")
    }
    for row in read_dated(FOLDER / "descriptor_words.csv")[1]:
        if row["kind"] != "phrase":
            found[row["kind"]].update(row["words"].split())
    return {kind: frozenset(words) for kind, words in found.items()}


@cache
def _phrases() -> dict[str, tuple[tuple[str, ...], ...]]:
    """Folded words of every phrase by its first one; the longest come first."""
    found: dict[str, set[tuple[str, ...]]] = defaultdict(set)
    for row in read_dated(FOLDER / "descriptor_words.csv")[1]:
        if row["kind"] == "phrase":
            first, *others = (fold(token.text) for token in tokens_of(row["words"]))
            found[first].add(tuple(others))
    return {first: tuple(sorted(some, key=lambda one: (-len(one), one))) for first, some in found.items()}


@lru_cache(maxsize=16)
def _compiled(site: tuple[str, ...]) -> Words:
    return Words(site)


def words_with(site: tuple[str, ...] = ()) -> Words:
    """The list with a site's own words. Compiled once for each list."""
    return _compiled(site)
