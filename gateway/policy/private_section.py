"""The `header.private:` part of a policy: which private attributes stay beside those of PS3.15 Table E.3.10-1."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, StringConstraints, model_validator
from pydicom.valuerep import STANDARD_VR

from gateway.policy.document import Faulty
from gateway.policy.private_lists import MAX_CREATOR, PrivateKey, creator_key, vr_of

CSA_CREATOR, CSA_GROUP = "SIEMENS CSA HEADER", "0029"


def _creator(value: str) -> str:
    if not value.strip() or len(value) > MAX_CREATOR or not value.isprintable() or "\\" in value:
        raise Faulty("a private creator is 1 to 64 printable characters", "write it as the device does")
    return value.strip()


def _group(value: str) -> str:
    if not re.fullmatch(r"[0-9A-Fa-f]{4}", value) or not int(value, 16) & 1 or int(value, 16) in (1, 3, 5, 7, 0xFFFF):
        raise Faulty(f"{value} is not a private group", 'write four hex digits in quotes, an odd number: "0029"')
    return value.upper()


def _element(value: str) -> str:
    if not re.fullmatch(r"[0-9A-Fa-f]{2}", value):
        hint = 'write the last two hex digits in quotes, "10" for (0029,1010): the block number differs between objects'
        raise Faulty(f"{value} is not an element of a private block", hint)
    return value.upper()


class KeptPrivate(BaseModel):
    """One private attribute that stays, by whose word and why. `vr` is needed where no list knows it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    creator: Annotated[str, AfterValidator(_creator)]
    group: Annotated[str, AfterValidator(_group)]
    element: Annotated[str, AfterValidator(_element)]
    reason: Annotated[str, StringConstraints(min_length=1, strip_whitespace=True, max_length=2000)]
    vr: str = ""

    @property
    def key(self) -> PrivateKey:
        return creator_key(self.creator), int(self.group, 16), int(self.element, 16)

    @model_validator(mode="after")
    def _known(self) -> KeptPrivate:
        if self.vr == "PN":
            raise Faulty("a person's name (PN) cannot be kept, whatever the reason", "remove the entry")
        if self.vr and self.vr not in set(STANDARD_VR):
            raise Faulty(f"{self.vr} is not a VR", "write one of PS3.5, such as DS")
        if not self.vr and not vr_of(self.key):
            raise Faulty(f"no list knows the VR of ({self.group},xx{self.element}) of {self.creator}", "add vr:")
        if self.key[0] == creator_key(CSA_CREATOR) and self.group == CSA_GROUP and self.element in ("10", "20"):
            raise Faulty("a Siemens CSA header is kept through its cleaner only", "write private: {csa_headers: clean}")
        return self


class PrivatePolicy(BaseModel):
    """With the option retain-safe-private: what stays beyond Table E.3.10-1.

    `dispositions: tcia` follows TCIA's list, whose word counts more than the standard's where both name an attribute.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    keep: tuple[KeptPrivate, ...] = ()
    dispositions: Literal["none", "tcia"] = "none"
    csa_headers: Literal["remove", "clean"] = "remove"

    @model_validator(mode="after")
    def _once(self) -> PrivatePolicy:
        keys = [entry.key for entry in self.keep]
        if len(set(keys)) < len(keys):
            raise Faulty("a private attribute is kept twice", "one entry, so that one reason answers for it")
        return self

    @property
    def kept(self) -> Mapping[PrivateKey, str]:
        """VR by attribute, of `keep`."""
        return {entry.key: entry.vr or vr_of(entry.key) for entry in self.keep}
