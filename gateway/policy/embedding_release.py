"""`embedding release` files: how embeddings are sanitised before they leave, and what must then hold of them.

name: brain-embeddings
erase: [sex]                                     # attributes that no linear attacker may read
levels:                                          # tried in this order; the first that passes is released
  - {identity_directions: 0, noise: 0}
  - {identity_directions: 16, noise: 0.5}
limits:
  linkability: {max_excess_upper: 0.10}
  rank1: {max_upper: 0.08, gallery: 50}
  attribute_inference: {sex: 0.62}
min_people: 50
export: [diagnosis]                              # columns of the metadata that leave beside the embeddings
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from gateway.errors import PolicyError
from gateway.policy.document import Faulty, read_document
from gateway.policy.frozen import FrozenMap
from gateway.policy.model import Strict, plain
from gateway.policy.names import name_fault
from gateway.policy.parsing import parse
from gateway.study import canonical_json

Share = Annotated[float, Field(gt=0, lt=1)]


class Level(Strict):
    """`identity_directions` in which people differ most are erased; `noise` in units of the embeddings' own spread."""

    identity_directions: Annotated[int, Field(ge=0, le=4096)] = 0
    noise: Annotated[float, Field(ge=0, le=100)] = 0.0


class LinkabilityLimit(Strict):
    max_excess_upper: Share


class Rank1Limit(Strict):
    max_upper: Share
    gallery: Annotated[int, Field(ge=2, le=1000)] = 50


class Limits(Strict):
    """Each is compared with an upper bound. `attribute_inference`: attribute to largest balanced accuracy."""

    linkability: LinkabilityLimit
    rank1: Rank1Limit
    attribute_inference: Annotated[Mapping[str, Share], AfterValidator(FrozenMap)] = FrozenMap()


class EmbeddingRelease(Strict):
    """One file. Levels are looks at the same people, so the more of them, the tighter each bound."""

    name: str
    erase: tuple[str, ...] = ()
    levels: Annotated[tuple[Level, ...], Field(min_length=1, max_length=20)]
    limits: Limits
    min_people: Annotated[int, Field(ge=50)] = 50
    export: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _enough_people(self) -> EmbeddingRelease:
        if self.limits.rank1.gallery > self.min_people:
            raise Faulty("a gallery larger than min_people can never be filled", "raise min_people, or lower gallery")
        if set(self.export) & {"scan", "subject", "session", "date"}:
            raise Faulty("scan, subject, session and date are replaced, not exported", "leave them out of export")
        told = sorted(set(self.export) & {*self.erase, *self.limits.attribute_inference})
        if told:
            raise Faulty(f"{', '.join(told)} is taken out and exported at once", "remove it from one of the two")
        return self

    @property
    def digest(self) -> str:
        """sha256 over the resolved file, 64 hex."""
        return hashlib.sha256(canonical_json(plain(self))).hexdigest()


def load_embedding_release(path: Path) -> EmbeddingRelease:
    """Raises PolicyError with every fault of the file, by line."""
    document = read_document(path)
    parsed, _ = parse(EmbeddingRelease, document, (), document.data)
    if parsed is not None and name_fault("name", parsed.name):
        document.fault(("name",), name_fault("name", parsed.name))
    if document.faults or parsed is None:
        raise PolicyError(document.faults)
    return parsed
