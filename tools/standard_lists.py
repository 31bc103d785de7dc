"""TCIA's dispositions of private attributes, shortened to what can be read in a review. Used by `generate_standard`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

Rows = list[dict[str, str]]

TCIA_FIELDS = ("creator", "group", "action", "elements")
# TCIA's words for what is done; every other disposition (delete, not applicable, unassigned) is removal.
TCIA_ACTIONS = {
    "keep": "keep",
    "hash_uid": "uid",
    "offset_date": "date",
    "offset_integer_date": "epoch",
}
REMOVE = "remove"


Key = tuple[str, str, str]  # creator, group, element


def tcia_rows(source: Iterable[Mapping[str, str]], safe: Sequence[Mapping[str, str]]) -> Rows:
    """TCIA's dispositions, one row for each creator, group and action; `elements` are "EE:VR" words.

    Of an element with several rows, those at top level count when there are any; rows that disagree mean removal.
    Removals are listed only where they say something: beside another action for the same element, or against the
    safe list. Attributes without a private creator and standard ones inside private sequences are left out: the first
    belong to nobody, the second have rows of their own in Table E.1-1.
    """
    actions: defaultdict[Key, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    nested: defaultdict[Key, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for row in source:
        if not row["private_creator"].strip() or int(row["group"], 16) % 2 == 0 or len(row["element"]) != 2:
            continue
        key = (row["private_creator"].strip(), row["group"].upper(), row["element"].upper())
        into = nested if row["parent_path"] else actions
        into[key][row["vr"] or "UN"].add(TCIA_ACTIONS.get(row["disposition"], REMOVE))
    for key, by_vr in nested.items():
        actions.setdefault(key, by_vr)
    against = {(row["creator"], row["group"], row["element"]) for row in safe}
    grouped: defaultdict[Key, list[str]] = defaultdict(list)
    for key, vr, action in _resolved(actions, against):
        grouped[key[0], key[1], action].append(f"{key[2]}:{vr}")
    return [
        {"creator": creator, "group": group, "action": action, "elements": " ".join(sorted(words))}
        for (creator, group, action), words in sorted(grouped.items())
    ]


def _resolved(actions: Mapping[Key, Mapping[str, set[str]]], against: set[Key]) -> Iterator[tuple[Key, str, str]]:
    for key, by_vr in actions.items():
        single = {vr: next(iter(found)) if len(found) == 1 else REMOVE for vr, found in by_vr.items()}
        says_something = key in against or set(single.values()) != {REMOVE}
        for vr, action in single.items():
            if action != REMOVE or says_something:
                yield key, vr, action
