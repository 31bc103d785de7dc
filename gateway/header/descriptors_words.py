"""Which tokens of a descriptor say something technical or medical, and therefore may stay (PS3.15 E.3.5).

A token stays when the allow-list knows it, when it is a number, or when its shape is that of a technical code that
nobody bears as a name: few letters, few digits (P101, B31f, T2w), an acronym without vowels, or parts that are all
known (ep2d, ThoraxRoutine, Knochenfenster). Everything else goes: it might be a name or a record number.

The list is `policies/standard/descriptor_words.csv` (`tools/generate_allow_list.py`), and with it the site's own words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache

from gateway.header.descriptors_folding import fold, is_ideographic, spellings
from gateway.policy.standard import FOLDER, read_dated

KNOWN_KINDS = ("core", "join", "word", "generic")
SHORT_LETTERS, VOWELLESS_LETTERS, JOINED_LETTERS = 3, 6, 3
MAX_ATTACHED_DIGITS, MAX_TOKEN_DIGITS, MAX_NUMBER_DIGITS = 4, 6, 5
MANY_RUNS = 3
_UNITS = """
s ms us ns min mins sec secs h hr hrs d m mm cm um nm ml l cc mg g kg ug mcg mgy gy cgy usv msv mbq gbq kbq mci uci bq
hz khz mhz ghz kv kev mev ev v kvp ma mas mah mt t tesla ppm hu px pix pixel bpm fps deg degree degrees percent iu mmol
mm2 mm3 cm2 cm3 ms2 w kw db
"""
UNITS = frozenset(_UNITS.split())
_RUNS = re.compile(r"\d+|[^\W\d_]+")
_HUMPS = re.compile(r"[A-ZÀ-ÖØ-Þ]+(?![a-zß-öø-ÿ])|[A-ZÀ-ÖØ-Þ]?[a-zß-öø-ÿ]+")
_NAME_PREFIX = re.compile(r"(?:Mc|Mac|De|Di|Da|Du|La|Le|Lo|Van|Von|Fitz|San|St|O)[A-ZÀ-Þ]")
# Endings of diseases, operations, examinations and drugs, which no name has at this length.
_MEDICAL = re.compile(
    r"[a-z]{4,}(?:itis|itiden|osis|emia|aemia|ectom[yi]e?|otom[yi]e?|ostom[yi]e?|plast[yi]k?|scop[yi]e?|graph[yi]e?|graphisch"
    r"|path[yi]e?|algi[ae]|uri[ae]|pleg[ij][ae]|megal[yi]e?|trop[hi]y?e?|trophie|lysis|lyse|penia|rrh?agia|rrh?ea|ectasis|ektasie|iasis|"
    r"stenos[ei]s?|carcinoma|sarcoma|blastoma|karzinom|sarkom"
    r"|(?:lip|aden|fibr|my|melan|gli|angi|neur|cyt|theli|papill|granul|hemat|haemat|chondr|oste|lymph)oma?s?|mab|tinib|statin|cillin|mycin|prazole|sartan|xaban|parin)"
)
_VOWELS = re.compile(r"[aeiouyäöüàáâãåæèéêëìíîïòóôõøùúûýÿœ]", re.IGNORECASE)


class Words:
    """The allow-list together with a site's own words. `phrases` matches terms that stay whole."""

    def __init__(self, site: Iterable[str] = ()) -> None:
        by_kind = _shipped()
        self.site = frozenset(found for word in site for found in spellings(word))
        self.core, self.generic = by_kind["core"], by_kind["generic"]
        self.ambiguous, self._person, self._titled = by_kind["ambiguous"], by_kind["person"], by_kind["titled"]
        self._join = by_kind["join"]
        self._known = frozenset().union(*(by_kind[kind] for kind in KNOWN_KINDS)) | self.site
        self._ideographic = frozenset(word for word in self._known if word and is_ideographic(word[0]))
        self._longest = max(map(len, self._ideographic), default=1)
        self.phrases = _phrases()
        self.stays = lru_cache(maxsize=1 << 14)(self._stays)

    def knows(self, word: str) -> bool:
        """True for a word of the list, in any spelling."""
        return any(one in self._known for one in spellings(word))

    def is_core(self, folded: str) -> bool:
        return folded in self.core

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
        return self._humped(word) or self._joined(folded) or _MEDICAL.fullmatch(folded) is not None

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
        """Spans inside a run of Han, kana or Hangul that no word of the list covers: there are no spaces to go by."""
        gaps: list[tuple[int, int]] = []
        at = 0
        while at < len(token):
            for size in range(min(self._longest, len(token) - at), 0, -1):
                if fold(token[at : at + size]) in self._ideographic:
                    break
            else:
                size = 0
            if size:
                at += size
                continue
            if is_ideographic(token[at]) or not token[at].isascii():
                gaps = [*gaps[:-1], (gaps[-1][0], at + 1)] if gaps and gaps[-1][1] == at else [*gaps, (at, at + 1)]
            at += 1
        return gaps


def _is_serial(digits: str, most_letters: int) -> bool:
    """Four digits behind letters that count something: LEAK0001, PT0012, MRN1234; not b1000, TE1500, S1023."""
    if digits.startswith("0"):
        return most_letters >= 2
    return most_letters >= SHORT_LETTERS and not digits.endswith("0")


def _is_latin(word: str) -> bool:
    return all(char < "\u0250" or "\u1e00" <= char <= "\u1eff" for char in word)


@cache
def _shipped() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {kind: set() for kind in (*KNOWN_KINDS, "ambiguous", "person", "titled", "phrase")}
    for row in read_dated(FOLDER / "descriptor_words.csv")[1]:
        if row["kind"] != "phrase":
            found[row["kind"]].update(row["words"].split())
    return {kind: frozenset(words) for kind, words in found.items()}


@cache
def _phrases() -> re.Pattern[str]:
    rows = read_dated(FOLDER / "descriptor_words.csv")[1]
    listed = sorted((row["words"] for row in rows if row["kind"] == "phrase"), key=len, reverse=True)
    spaced = (re.escape(phrase).replace(r"\ ", r"[\s_-]+") for phrase in listed)
    return re.compile(rf"(?<![^\W_])(?:{'|'.join(spaced)})(?![^\W_])", re.IGNORECASE)


@lru_cache(maxsize=16)
def _compiled(site: tuple[str, ...]) -> Words:
    return Words(site)


def words_with(site: tuple[str, ...] = ()) -> Words:
    """The list with a site's own words. Compiled once for each list."""
    return _compiled(site)
