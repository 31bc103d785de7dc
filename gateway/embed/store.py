"""Embeddings of originals and of releases, encrypted at rest, under names that tell nobody anything.

    ROOT/<kind>/<card>/<2 hex>/<30 hex>.emb        0600, in folders 0700

`kind` is `originals` or `releases`. Card and file name are keyed hashes of the card's digest and of the digest of what
was embedded (a file, an instance, a study), so that a record is found by whoever has both and the key, and a listing
tells how many there are, and no more. The key is the caller's; who may open the store is the caller's as well.
"""

from __future__ import annotations

import hmac
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Literal, get_args

from gateway.durable import make_folder, sync_folder, writing
from gateway.embed.sealed import DAY_S, HEAD_BYTES, Entry, SealingKeys, Vector, kept_at, seal, unseal
from gateway.errors import EnvironmentFault

Kind = Literal["originals", "releases"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SUFFIX = ".emb"


class EmbeddingStore:
    """Records under one key. Safe to share between threads and processes: a record is whole or not there."""

    def __init__(self, root: Path, key: bytes) -> None:
        """`key` has 32 bytes (ValueError otherwise)."""
        self.root = root
        self._keys = SealingKeys.of(key)

    def keep(self, kind: Kind, digest: str, card_digest: str, vector: Vector, *, now: float, label: str = "") -> None:
        """Write one and sync it; the same digest and card again replace it. `now` is UTC seconds."""
        path = self._path(kind, digest, card_digest)
        for level in (self.root, path.parents[2], path.parents[1], path.parent):  # each 0700 and on disk
            make_folder(level)
        record = seal(Entry(vector, label), self._keys, name=self._name(path), now=now)
        with writing(path) as file:
            file.write(record)

    def find(self, kind: Kind, digest: str, card_digest: str) -> Entry | None:
        """The embedding of that input under that card, None when it was never kept. Raises EnvironmentFault."""
        path = self._path(kind, digest, card_digest)
        try:
            return self._open(path)
        except FileNotFoundError:
            return None

    def entries(self, kind: Kind, card_digest: str) -> Iterator[Entry]:
        """Every embedding of a kind under a card, in no telling order. Raises EnvironmentFault naming a bad file."""
        for path in sorted((self.root / kind / self._card(card_digest)).glob(f"*/*{SUFFIX}")):
            try:
                yield self._open(path)
            except FileNotFoundError:  # purged meanwhile
                continue

    def forget(self, kind: Kind, digest: str, card_digest: str) -> bool:
        """Remove one; whether it was there."""
        path = self._path(kind, digest, card_digest)
        there = path.exists()
        path.unlink(missing_ok=True)
        if there:
            sync_folder(path.parent)
        return there

    def path_of(self, kind: Kind, digest: str, card_digest: str) -> Path:
        """Where that embedding lies, whether or not it is there."""
        return self._path(kind, digest, card_digest)

    def purge(self, *, now: float, days: int, spare: Container[Path] = frozenset()) -> int:
        """Remove what is older than `days` whole days (a policy's `references_days`), but for `spare`; how many.

        A record dated after tomorrow would never age: EnvironmentFault names it, after the others were purged.
        """
        removed, ahead = 0, []
        folders = set()
        for path in self._all():
            when = self._kept_at(path)
            if when is None:
                continue
            if when > now + DAY_S:
                ahead.append(path)
            elif when + (days + 1) * DAY_S <= now and path not in spare:
                path.unlink(missing_ok=True)
                folders.add(path.parent)
                removed += 1
        for folder in folders:
            sync_folder(folder)
        if ahead:
            raise EnvironmentFault(
                f"the embedding {ahead[0]} ({len(ahead)} in all) is dated in the future; set the clock right, "
                "or remove it"
            )
        return removed

    def counts(self) -> dict[Kind, int]:
        """How many embeddings of each kind there are."""
        return {kind: sum(1 for _ in (self.root / kind).glob(f"*/*/*{SUFFIX}")) for kind in KINDS}

    def _all(self) -> Iterator[Path]:
        for kind in KINDS:
            yield from sorted((self.root / kind).glob(f"*/*/*{SUFFIX}"))

    def _kept_at(self, path: Path) -> int | None:
        try:
            with open(path, "rb") as file:
                return kept_at(file.read(HEAD_BYTES), where=str(path))
        except FileNotFoundError:
            return None

    def _open(self, path: Path) -> Entry:
        return unseal(path.read_bytes(), self._keys, name=self._name(path), where=str(path))

    def _path(self, kind: Kind, digest: str, card_digest: str) -> Path:
        if kind not in KINDS:
            raise ValueError(f"a kind of embedding is one of {', '.join(KINDS)}")
        name = self._hash("record", kind, card_digest, digest)[:32]
        return self.root / kind / self._card(card_digest) / name[:2] / f"{name[2:]}{SUFFIX}"

    def _card(self, card_digest: str) -> str:
        return self._hash("card", card_digest)[:16]

    def _hash(self, *parts: str) -> str:
        return hmac.digest(self._keys.names, "\0".join(parts).encode(), "sha256").hex()

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()
