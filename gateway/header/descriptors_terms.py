"""Names of physicians in terms that stay whole: Bennett fracture, Bell's palsy, circle of Willis.

The term is kept for what stands in it, unless what stands before it makes its first word somebody's name: John Bell
palsy clinic, Nurse Jones fracture, T. Smith fracture.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from gateway.header.descriptors_cues import AUTHORED, COMPANIONS, FOR, NURSES, RELATIVES
from gateway.header.descriptors_folding import fold
from gateway.header.descriptors_signatures import is_initial
from gateway.header.descriptors_tokens import Span, Token
from gateway.header.descriptors_words import Words

# Who: a word of these right before makes a name of what follows. "of Willis" and "for Bennett fracture" do not.
_PEOPLE = (AUTHORED | COMPANIONS | FOR | NURSES | RELATIVES) - {"for", "of", "from", "von", "da", "par", "por", "op"}
_CLOSE = re.compile(r"[ \t:.,;^_=-]{0,3}")
_TOUCHING = re.compile(r"[ \t._-]{1,2}")
_WITHIN = re.compile(r"[\s_-]+|['’]")  # between the words of a term
_SHORTENED = re.compile(r"\.\s?")  # M. Crohn


def kept_terms(text: str, tokens: Sequence[Token], strange: Sequence[int], words: Words) -> list[Span]:
    """Spans of terms whose words stay; `strange` are the numbers of tokens that the allow-list does not know."""
    unknown = set(strange)
    kept: list[Span] = []
    for index, token in enumerate(tokens) if unknown else ():
        length = term_at(text, tokens, index, words)
        if not length or (kept and token.start < kept[-1][1]):
            continue
        ahead = tokens[index - 1] if index else None
        if index in unknown and ahead is not None and not (kept and kept[-1][1] == ahead.end):
            gap = text[ahead.end : token.start]
            named = index - 1 in unknown and _TOUCHING.fullmatch(gap) and not ahead.text[0].isdecimal()
            said = fold(ahead.text) in _PEOPLE and _CLOSE.fullmatch(gap)
            if named or said or is_initial(text, ahead, words):
                continue
        kept.append((token.start, tokens[index + length - 1].end))
    return kept


def term_at(text: str, tokens: Sequence[Token], index: int, words: Words) -> int:
    """How many tokens the longest term has that begins at this one; 0 for none."""
    for others in words.phrases.get(fold(tokens[index].text), ()):
        last = index + len(others)
        if last < len(tokens) and all(
            fold(tokens[at].text) == word and _is_within(text, tokens[at - 1], tokens[at])
            for at, word in enumerate(others, index + 1)
        ):
            return len(others) + 1
    return 0


def _is_within(text: str, before: Token, behind: Token) -> bool:
    gap = text[before.end : behind.start]
    return bool(_WITHIN.fullmatch(gap) or (len(before.text) == 1 and _SHORTENED.fullmatch(gap)))
