"""What a policy is once it is loaded: frozen, strict, complete, comparable.

A value of these types is valid by itself; what needs the registry, other files or line numbers is judged in `loading`.
A policy speaks about options of PS3.15 E.3 by their names (`standard.OPTIONS`) and about attributes by keyword.
"""

from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator

from gateway.policy.descriptors_section import DescriptorsPolicy
from gateway.policy.frozen import FrozenMap
from gateway.policy.kept import why_not_kept
from gateway.policy.patient_id_section import PatientIdPolicy
from gateway.policy.private_section import PrivatePolicy
from gateway.policy.release_section import EscalatePolicy, ReleasePolicy, RetainPolicy
from gateway.policy.review_section import ReviewPolicy
from gateway.policy.standard import (
    DEFAULT_EDITION,
    FULL_DATES,
    MODIFIED_DATES,
    OPTIONS,
    standard_digest,
    tag_of_keyword,
)
from gateway.policy.vault_section import VaultPolicy
from gateway.study import canonical_json

PROFILE = "ps3.15-basic"
SAFE_PRIVATE = "retain-safe-private"
CLEAN_DESCRIPTORS = "clean-descriptors"
CARRIED_OUT = frozenset(
    {
        "retain-uids",
        "retain-device-identity",
        "retain-institution-identity",
        "retain-patient-characteristics",
        FULL_DATES,
        MODIFIED_DATES,
        SAFE_PRIVATE,
        CLEAN_DESCRIPTORS,
        "clean-structured-content",
        "clean-graphics",
    }
)
DEFAULT_SHIFT_DAYS = (-365, 365)
MAX_SHIFT_DAYS = 3660  # ten years: more moves a date out of the era that scanner and protocol belong to


class Strict(BaseModel):
    """No unknown key, no coercion, no change after loading."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _shift_range(value: tuple[int, int]) -> tuple[int, int]:
    low, high = value
    if not -MAX_SHIFT_DAYS <= low <= high <= MAX_SHIFT_DAYS:
        raise ValueError(f"shift_days is [low, high] in days, low <= high, both within ±{MAX_SHIFT_DAYS}")
    if low == high == 0:
        raise ValueError("shift_days [0, 0] shifts nothing")
    return value


class DatePolicy(Strict):
    """Longitudinal dates: one keyed shift in whole days for each patient, never 0 (PS3.15 E.3.6)."""

    shift_days: Annotated[tuple[int, int], AfterValidator(_shift_range)] = DEFAULT_SHIFT_DAYS
    scope: Literal["patient"] = "patient"


@lru_cache(maxsize=64)
def _tags(keywords: tuple[str, ...]) -> frozenset[int]:
    return frozenset(tag for word in keywords if (tag := tag_of_keyword(word)) is not None)


class HeaderPolicy(Strict):
    """The Basic Profile of one edition, the options on top of it, and what is kept with a reason.

    `keep` maps a keyword to its reason, in the order of the file. A kept attribute stays as it is at every depth; of a
    kept sequence the shell stays and the profile goes on in its items, as code K says (Table E.1-1a).
    """

    edition: str = DEFAULT_EDITION
    options: frozenset[str] = frozenset()
    patient_id: PatientIdPolicy = PatientIdPolicy()
    dates: DatePolicy | None = None
    keep: Annotated[Mapping[str, str], AfterValidator(FrozenMap)] = FrozenMap()
    private: PrivatePolicy = PrivatePolicy()
    encapsulated: Literal["hold", "replace"] = "hold"
    descriptors: DescriptorsPolicy | None = None

    @model_validator(mode="before")
    @classmethod
    def _default_range(cls, data: Any) -> Any:
        if isinstance(data, dict) and MODIFIED_DATES in data.get("options", ()) and data.get("dates") is None:
            return {**data, "dates": DatePolicy()}
        return data

    @model_validator(mode="after")
    def _consistent(self) -> HeaderPolicy:
        unknown = sorted(self.options - set(OPTIONS))
        not_yet = sorted(self.options & set(OPTIONS) - CARRIED_OUT)
        if unknown or not_yet:
            raise ValueError(f"options that this version cannot carry out: {', '.join(unknown + not_yet)}")
        if {FULL_DATES, MODIFIED_DATES} <= self.options:
            raise ValueError("full dates and modified dates exclude each other (CID 7050: 113106, 113107)")
        if self.dates is not None and MODIFIED_DATES not in self.options:
            raise ValueError(f"dates need the option {MODIFIED_DATES}")
        if self.private != PrivatePolicy() and SAFE_PRIVATE not in self.options:
            raise ValueError(f"private needs the option {SAFE_PRIVATE}")
        if self.descriptors is not None and CLEAN_DESCRIPTORS not in self.options:
            raise ValueError(f"descriptors needs the option {CLEAN_DESCRIPTORS}")
        bad = [word for word in self.keep if tag_of_keyword(word) is None or why_not_kept(word, self.edition)]
        if bad:
            raise ValueError(f"cannot be kept: {', '.join(bad)}")
        return self

    @property
    def kept_tags(self) -> frozenset[int]:
        """Tags of `keep`."""
        return _tags(tuple(self.keep))


Word = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True, max_length=64)]


def _modality(value: str) -> str:
    if not re.fullmatch(r"[A-Z0-9_]{1,16}", value):
        raise ValueError(f"modality {value} must be a defined term such as CT: capitals and digits (PS3.3 C.7.3.1.1.1)")
    return value


Modality = Annotated[str, AfterValidator(_modality)]
Sentence = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True, max_length=2000)]


class NotAssessedEntry(Strict):
    """What no check can judge in studies of these modalities, and who answers for letting it pass unjudged."""

    aspects: Annotated[tuple[Word, ...], Field(min_length=1)]
    modality: Annotated[tuple[Modality, ...], Field(min_length=1)]
    reason: Sentence
    approver: Sentence


class GatePolicy(Strict):
    """Checks by name, each with its parameter object; `study` judges every study, `release` people."""

    study: Annotated[Mapping[str, Any], AfterValidator(FrozenMap)]
    release: Annotated[Mapping[str, Any], AfterValidator(FrozenMap)] = FrozenMap()
    not_assessed: tuple[NotAssessedEntry, ...] = ()


class ForwardPolicy(Strict):
    """The only destination that routes may name with this policy ("" = any), and how arrival is verified. `shadow`:
    everything is done and judged, and nothing leaves.
    """

    to: str = ""
    shadow: bool = False
    verify: Literal["status", "storage-commitment"] = "status"


# Metadata of a parameter that came after policies were signed without it: left at its default it is not told, so that
# such a policy keeps the digest that its studies began under.
CAME_LATER: Mapping[str, bool] = {"came_later": True}


def plain(value: Any) -> Any:
    """A policy value as JSON data: models and dataclasses to objects, sets sorted. Raises TypeError for other types."""
    if value is None or isinstance(value, str | int | float | bool):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, BaseModel):
        return {name: plain(getattr(value, name)) for name in type(value).model_fields}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        told = {field: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {
            field.name: plain(one)
            for field, one in told.items()
            if not ("came_later" in field.metadata and one == field.default)
        }
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(item) for item in value), key=str)
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    raise TypeError(f"a policy cannot hold a {type(value).__name__}")


class Policy(Strict):
    """One resolved policy. Equal meaning gives an equal `digest`, whatever order, comments or spaces the file has.

    `pixels` are (stage name, parameter object) in the order they run.
    """

    name: str
    header: HeaderPolicy
    gate: GatePolicy
    pixels: tuple[tuple[str, Any], ...] = ()
    escalate: EscalatePolicy | None = None
    release: ReleasePolicy | None = None
    retain: RetainPolicy = RetainPolicy()
    forward: ForwardPolicy = ForwardPolicy()
    vault: VaultPolicy | None = None
    review: ReviewPolicy | None = None

    @property
    def attempts(self) -> int:
        """How often a study may be made, and judged."""
        return self.escalate.max_attempts if self.escalate is not None else 1

    @property
    def looks(self) -> int:
        """How often a release may be judged before it is blocked: alpha is spent on each."""
        return self.attempts if self.release is not None and self.release.on_fail == "escalate" else 1

    @property
    def needs_two(self) -> bool:
        """True when two people must agree before a held study leaves."""
        return self.review is not None and self.review.two_person

    @property
    def extends(self) -> tuple[str, ...]:
        return (f"{PROFILE}@{self.header.edition}",)

    def as_file(self) -> dict[str, Any]:
        """The policy in the shape of its file, every default written out."""
        body = plain(self)
        header = body["header"]
        del header["edition"]
        for part in ("dates", "descriptors"):
            if header[part] is None:
                del header[part]
        optional = [name for name in ("escalate", "release", "vault", "review") if body[name] is None]
        body["pixels"] = [{stage: parameters} for stage, parameters in body["pixels"]]
        return {"extends": list(self.extends), **{name: body[name] for name in body if name not in optional}}

    def to_snapshot(self) -> str:
        """Canonical JSON from which `read_snapshot` makes an equal policy: a study ends under what it began with."""
        body = {"policy": self.as_file(), "standard": standard_digest(self.header.edition)}
        return canonical_json(body).decode()

    @property
    def digest(self) -> str:
        """sha256, 64 hex, over the resolved policy and over the standard's tables that it relies on.

        Not stored in the object: `model_copy` would carry it over to a policy that says something else.
        """
        told = plain(self)
        if self.review is None:  # came later: what does not say it keeps the digest that its studies began under
            del told["review"]
        if not self.forward.shadow:
            del told["forward"]["shadow"]
        body = {"policy": told, "standard": standard_digest(self.header.edition)}
        return hashlib.sha256(canonical_json(body)).hexdigest()


@dataclasses.dataclass(frozen=True, slots=True)
class Registry:
    """What this build can do: parameter types by name, frozen dataclasses whose fields are the policy parameters.

    A stage type with `HAS_LEVELS = True` may be named by `escalate`. A check type's `judges` are the aspects that it
    answers for, so that `not_assessed` cannot name them as well; its `misfits(policy, cards)` says why it cannot work
    in a policy, its `modalities(policy, cards)` what it can judge. `cards` is where cards lie: the checks' own matter.
    """

    stages: Mapping[str, type]
    study_checks: Mapping[str, type]
    release_checks: Mapping[str, type]
    aspects: frozenset[str]
    cards: Any = None
