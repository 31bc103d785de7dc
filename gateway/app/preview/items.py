"""Which item of a sequence became which: items go, others move up, and nothing numbers them.

Order is kept by whatever cleans a sequence, so the shorter list is matched into the longer one in order, by what two
items have in common: values first, then the mere presence of attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

Mark = tuple[int, bytes]  # tag, value; a mark of presence has b"" for its value
Marks = frozenset[Mark]
Match = tuple[int | None, int | None]

MAX_COMPARISONS = 400_000


def matched(before: Sequence[Marks], after: Sequence[Marks]) -> list[Match]:
    """Pairs of indices in order, None for what has no counterpart. As many pairs as the shorter list is long."""
    if len(before) == len(after):
        return [(place, place) for place in range(len(before))]
    if len(before) < len(after):
        return [(one, other) for other, one in matched(after, before)]
    spare = len(before) - len(after)
    if not after or len(after) * (spare + 1) > MAX_COMPARISONS:
        return list(zip_longest(range(len(before)), range(len(after))))
    return _in_order(before, after, spare)


def _in_order(before: Sequence[Marks], after: Sequence[Marks], spare: int) -> list[Match]:
    """The order-keeping match with the most in common.

    `best[j][s]` is what the first j items of `after` have in common with their partners when s items of `before` have
    been left out so far: then the partner of item j is before[j + s].
    """
    best = [[0] * (spare + 1)]
    for place, marks in enumerate(after):
        row: list[int] = []
        for skipped in range(spare + 1):
            here = best[place][skipped] + len(marks & before[place + skipped])
            row.append(here)
        for skipped in range(1, spare + 1):  # leaving one more out before the next item costs nothing
            row[skipped] = max(row[skipped], row[skipped - 1])
        best.append(row)
    pairs: list[Match] = []
    skipped, place = spare, len(after)
    while place or skipped:
        if skipped and best[place][skipped] == best[place][skipped - 1]:
            skipped -= 1
            pairs.append((place + skipped, None))
        else:
            place -= 1
            pairs.append((place + skipped, place))
    return pairs[::-1]
