"""Alternatives of a pattern, tried by their first letter: at most places in a text none of them begins.

A plain `(?:mrn|pid|tel)` is tried word by word wherever a word begins. Grouped, and each group behind the set of the
characters that its first letter stands for, `re` skips a group by one look at the text. What matches stays the same.
"""

from __future__ import annotations

from collections.abc import Iterable

# What `re.IGNORECASE` takes for these letters beside their upper and lower case.
_ALSO = {"i": "İı", "k": "\u212a", "s": "ſ", "с": "ᲃ", "т": "ᲄᲅ"}


def any_case(letter: str) -> str:
    """The characters that match `letter` when case is ignored, as a set."""
    lower = letter.lower()
    return f"(?-i:[{''.join(dict.fromkeys(lower + letter.upper() + _ALSO.get(lower, '')))}])"


def by_initial(alternatives: Iterable[str]) -> str:
    """Alternatives that each begin with a letter of their own, for a pattern that ignores case.

    Those with the same letter keep their order; of the others only one can match at a place. Raises ValueError.
    """
    groups: dict[str, list[str]] = {}
    for one in alternatives:
        if not one[:1].isalpha() or one[1:2] in ("?", "*", "{", "|"):
            raise ValueError(f"the alternative {one} does not begin with a letter of its own")
        groups.setdefault(one[0].lower(), []).append(one[1:])
    return "|".join(f"{any_case(letter)}(?:{'|'.join(rests)})" for letter, rests in groups.items())
