"""References: the embeddings of a study before and after, encrypted in HOME/references, and what else a release needs.

Made once, by the worker that judges the study, and kept until `references_days` are over. Biometric: nothing of it is
in a table, a log or the ledger; the member's row holds keyed hashes, and how many images each card looked at.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gateway.database import MemberRow
from gateway.errors import EnvironmentFault, Hold
from gateway.gate import (
    WHOLE,
    Embedded,
    Member,
    Pair,
    accepted_in,
    cards_in,
    digest_of_card,
    embed_lesion_views,
    embed_study,
    facts_of,
    folders_of,
    identity_cards,
    lesion_facts,
)
from gateway.policy import Policy
from gateway.pseudonyms import derive
from gateway.settings import Home

FOLDER, MODELS = "references", "models"

Facts = dict[str, dict[str, str]]
Vectors = NDArray[np.float32]
Kind = Literal["originals", "releases"]
ORIGINALS: Kind = "originals"
RELEASES: Kind = "releases"


@dataclass(frozen=True, slots=True)
class References:
    """Where the references of one piece of work go. `work` names job and round; `now` is UTC seconds."""

    home: Path
    master: bytes = field(repr=False)
    work: str
    now: float

    @property
    def models(self) -> Path:
        """Cards of the site's own."""
        return self.home / MODELS

    def make(self, pairs: Sequence[Pair], policy: Policy) -> Facts:
        """Embed and store a study, in a worker: the whole images, and background and lesion where the policy judges
        them apart. Raises Hold: "no_identity_evidence", "lesion_undrawn", "gate_failed".
        """
        from gateway.embed import EmbeddingStore

        folders = folders_of(self.models)
        key = facts_key(self.master)
        facts = facts_of(pairs, policy, key)
        cards = cards_in(policy)
        views: dict[str, str] = {}
        store = EmbeddingStore(self.home / FOLDER, references_key(self.master))
        judging, accepted = identity_cards(policy), accepted_in(policy)
        seen: dict[str, tuple[Embedded, ...]] = {}
        if cards:
            seen[WHOLE] = embed_study(pairs, cards, folders, accepted, identity=judging)
            seen |= embed_lesion_views(pairs, policy, folders, accepted)
        for view, embedded in ((view, one) for view, found in seen.items() for one in found):
            card = digest_of_card(embedded.card, folders)
            for kind, rows in ((ORIGINALS, embedded.originals), (RELEASES, embedded.released)):
                for number, row in enumerate(rows):
                    store.keep(kind, _name(self.work, number, view), card, row, now=self.now)
            views[embedded.card + ("" if view == WHOLE else f"@{view}")] = f"{len(embedded.originals)} {card}"
        return {
            "session": {"day": facts.session},
            "attributes": dict(facts.attributes),
            "kept": dict(facts.kept),
            "lesion": lesion_facts(pairs, policy, key),
            "views": views,
        }


def facts_key(master: bytes) -> bytes:
    """Of the hashes that stand for what a study states."""
    return derive(master, "release facts")


def references_key(master: bytes) -> bytes:
    """Of the store: 32 bytes."""
    return derive(master, "references")[:32]


def _name(work: str, number: int, view: str) -> str:
    """Of one reference; a whole image's is the one that it had before there were other views."""
    return f"{work}/{number}" if view == WHOLE else f"{work}/{view}/{number}"


def views_in(row: MemberRow) -> Iterator[tuple[str, int, str, str]]:
    """(card, images, digest of the card, view) of a member."""
    views: Mapping[str, str] = json.loads(row.facts or "{}").get("views", {})
    for named, said in sorted(views.items()):
        card, _, view = named.partition("@")
        count, _, digest = said.partition(" ")
        yield card, int(count), digest, view or WHOLE


def read_members(home: Path, master: bytes, current: Sequence[MemberRow], before: Sequence[MemberRow]) -> list[Member]:
    """Members with their embeddings, in a worker.

    Embeddings of another version of a card cannot be compared with those of today's: of those before they are left out,
    as is what retention has removed. What other cards made, and what was kept, still counts.

    Raises Hold("no_identity_evidence") when a reference of the release itself is gone or of another version, and for a
    damaged one of any.
    """
    members = []
    named = {card for row in (*current, *before) for card, _, _, _ in views_in(row)}
    today = {card: digest_of_card(card, folders_of(home / MODELS)) for card in named}
    for rows, is_current in ((current, True), (before, False)):
        for row in rows:
            embedded, lost = _read(home, master, row, today)
            if lost and is_current:
                raise Hold("no_identity_evidence", at=f"{row.job_key}: its references {lost}")
            facts = json.loads(row.facts or "{}")
            told = [facts.get(part, {}) for part in ("kept", "attributes", "lesion")]
            whole = embedded.pop(WHOLE, {})
            kept, attributes, lesion = told
            members.append(Member(row.person, row.session, is_current, kept, attributes, whole, embedded, lesion))
    return members


def _read(
    home: Path, master: bytes, row: MemberRow, today: Mapping[str, str]
) -> tuple[dict[str, dict[str, tuple[Vectors, Vectors]]], str]:
    """By view and card what can be compared today, and why some cannot ("" when all can)."""
    from gateway.embed import EmbeddingStore

    store = EmbeddingStore(home / FOLDER, references_key(master))
    embedded: dict[str, dict[str, tuple[Vectors, Vectors]]] = {}
    lost = ""
    for card, count, digest, view in views_in(row):
        if today[card] != digest:
            lost = lost or "were made by another version of a card"
            continue
        try:
            names = [_name(row.references, number, view) for number in range(count)]
            sides = [
                [one for name in names if (one := store.find(kind, name, digest)) is not None]
                for kind in (ORIGINALS, RELEASES)
            ]
        except EnvironmentFault:  # of earlier releases too: without them the evidence would be less than it was
            raise Hold("no_identity_evidence", at=f"{row.job_key}: its references are damaged") from None
        if any(len(side) != count for side in sides):
            lost = lost or "are gone"
            continue
        originals, released = (np.stack([entry.vector for entry in side]) for side in sides)
        embedded.setdefault(view, {})[card] = (originals, released)
    return embedded, lost


def forget(home: Home, master: bytes, row: MemberRow) -> int:
    """Remove the references of a member; how many there were."""
    from gateway.embed import EmbeddingStore

    store = EmbeddingStore(home.root / FOLDER, references_key(master))
    return sum(
        store.forget(kind, _name(row.references, number, view), digest)
        for _, count, digest, view in views_in(row)
        for kind in (ORIGINALS, RELEASES)
        for number in range(count)
    )


def purge(home: Home, master: bytes, *, now: float, days: int, spare: Sequence[MemberRow] = ()) -> int:
    """Remove whatever is older than the longest time that a policy gives, also what no member knows of; not what the
    members `spare` still need.
    """
    from gateway.embed import EmbeddingStore

    root = home.root / FOLDER
    if not root.is_dir():
        return 0
    store = EmbeddingStore(root, references_key(master))
    needed = {
        store.path_of(kind, _name(row.references, number, view), digest)
        for row in spare
        for _, count, digest, view in views_in(row)
        for kind in (ORIGINALS, RELEASES)
        for number in range(count)
    }
    return store.purge(now=now, days=days, spare=needed)
