"""How a reviewer's wish is written into the `kind` of an intent: the verb, what it is about, the round it was seen in.

    release            from the command line: whatever the study is like when the engine comes to it
    release:r3         from the page: only if the study still is what was on the screen
    rerun:<id>:r3      under the loaded policy whose digest begins with <id>
    redact:<id>:r3     the stored drawing whose sha256 begins with <id>

At most 32 characters, codes only: kinds are logged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ID_CHARACTERS = 16
ON_PAGE = "@review"  # ends the name of whoever was signed in; the command line takes no such name
FIRST = "agreed; waits for a second person to agree"
MOVED = "the study has changed since it was looked at; open it again"
_KIND = re.compile(r"([a-z]+)(?::([0-9a-f]{16}))?(?::r([0-9]{1,6}))?")


@dataclass(frozen=True, slots=True)
class Asked:
    """`about` is the beginning of a digest, "" for none; `round` is 0 for any."""

    verb: str
    about: str = ""
    round: int = 0

    @property
    def kind(self) -> str:
        return self.verb + (f":{self.about}" if self.about else "") + (f":r{self.round}" if self.round else "")


def asked_in(kind: str) -> Asked:
    """What a kind says; one that is not written like this is its own verb, and no decision has it."""
    found = _KIND.fullmatch(kind)
    return Asked(found[1], found[2] or "", int(found[3] or 0)) if found else Asked(kind)


def page_actor(name: str) -> str:
    """How the ledger names somebody who was signed in on the page."""
    return f"{name}{ON_PAGE}"
