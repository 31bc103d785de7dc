"""What is written down, as the pages show it: the ledger's lines, policies, releases with their scores. No value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the ledger: codes, names of people and their reasons."""

    line: int
    time: float
    what: str
    actor: str
    said: str
    facts: str
    key: str = ""


@dataclass(frozen=True, slots=True)
class Sought:
    """Which lines of the ledger: all that is named must fit. `pseudonym` as it left; `who` and `event` are parts of a
    name and of an event's words, in any case; `since` and `before` are UTC seconds, half open.
    """

    pseudonym: str = field(default="", repr=False)
    who: str = ""
    event: str = ""
    since: float | None = None
    before: float | None = None


@dataclass(frozen=True, slots=True)
class PolicyText:
    """A policy in plain words, by section."""

    name: str
    digest: str
    sections: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class PolicyVersion:
    """A policy that studies began under. `name` is "" where this build cannot read it any more."""

    name: str
    digest: str
    since: float
    in_force: bool


@dataclass(frozen=True, slots=True)
class Changed:
    """What differs between two policies in one section: sentences, and keys as (key, old, new)."""

    section: str
    gone: tuple[str, ...]
    come: tuple[str, ...]
    keys: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class LeakScore:
    """What was measured of a release, for pages and API: the estimate, its upper bound, the limit; None for none.
    `view` says of what: whole images, their background alone or their lesion alone.
    """

    check: str
    card: str
    attack: str
    view: str
    scope: str
    estimate: float | None
    upper: float | None
    limit: float | None
    people: int


@dataclass(frozen=True, slots=True)
class Figure(LeakScore):
    """A leak score with `note`, which says why there is none."""

    note: str

    @property
    def verdict(self) -> str:
        """By the bound, never by the estimate. record_isolation is a size that must be reached."""
        if self.note or self.upper is None or self.limit is None:
            return self.note or "no evidence"
        kept = self.upper >= self.limit if self.check == "record_isolation" else self.upper <= self.limit
        return "keeps to it" if kept else "exceeds it"

    @property
    def of_limit(self) -> float | None:
        """How much of its limit the bound uses: 1 is the limit, more is beyond it; None where it is no evidence. A
        group of people is the nearer the smaller it is, and one of nobody beyond every limit.
        """
        if self.note or not self.limit or self.upper is None:
            return None
        if self.check == "record_isolation":
            return self.limit / self.upper if self.upper else float("inf")
        return self.upper / self.limit


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure as shapes to draw, in points with y from the top: lines, dots and words, each with place and ink."""

    title: str
    sense: str
    width: float
    height: float
    lines: tuple[Any, ...]
    dots: tuple[Any, ...]
    words: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Nearest:
    """A figure by how much of its limit it uses: 1 is the limit, more is beyond it."""

    figure: Figure
    share: float


@dataclass(frozen=True, slots=True)
class ReleaseFacts:
    """What pages and API say of a release alike, its people counted."""

    name: str
    state: str
    policy: str
    policy_digest: str
    project: str
    destination: str
    people: int
    studies: int
    reason: str
    says: str
    at: str


@dataclass(frozen=True, slots=True)
class ReleaseView(ReleaseFacts):
    """One release; times are in UTC seconds."""

    opened: float
    closed: float | None
    figures: tuple[Figure, ...]

    @property
    def worst(self) -> Figure | None:
        """The figure that uses most of its limit, of those that are evidence. That of a background alone is never what
        a release risks: its lesions leave with it.
        """
        return max(
            (figure for figure in self.figures if figure.of_limit is not None and figure.view != "background"),
            key=lambda figure: figure.of_limit or 0.0,
            default=None,
        )


@dataclass(frozen=True, slots=True)
class ReleaseDetail:
    """One release with its policy's earlier ones: `charts` by check and card, `nearest` to their limits first."""

    view: ReleaseView
    looks: int
    charts: tuple[Chart, ...]
    nearest: tuple[Nearest, ...]
    stages: tuple[tuple[str, int], ...]  # instances that a stage went over
    residuals: tuple[tuple[str, int], ...]  # findings of the gate in what it holds, by check
    unjudged: tuple[tuple[str, str, int, str, str], ...]  # modality, aspect, instances, reason, approver
    levels: tuple[tuple[str, int], ...] = ()  # cleared studies by level
    groups: tuple[tuple[str, ...], ...] = ()  # attribute, group, …: of each attribute the worst one


@dataclass(frozen=True, slots=True)
class Received:
    """A study whose originals are here. `key` is its study key and generation, `since` in UTC seconds."""

    key: str
    since: float
    objects: int
    state: str
