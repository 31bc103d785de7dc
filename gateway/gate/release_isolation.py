"""Check `record_isolation`: is anybody alone with the attributes that the policy keeps (k-anonymity over people)?

Counted are the attributes that the Basic Profile would take out and the policy lets stay, by a keep or by an option,
and those of the lesion that the policy names (`lesion_facts`): a rare lesion that stays is an attribute as well. A
person's value is what all the person's studies say. Two people who differ in it are told apart, whatever the value is:
values are keyed hashes here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from gateway.gate.attackers import Folders
from gateway.gate.release_sample import RELEASE, Member, ReleaseSample, ReleaseVerdict, Score
from gateway.gate.release_views import UNDRAWN
from gateway.policy import CAME_LATER, Policy
from gateway.study import Outcome

if TYPE_CHECKING:
    from gateway.evidence import Isolation

NAME = "record_isolation"
TOLD = 5  # sets of attributes that are named
LesionAttribute = Literal["kind", "size", "side", "region"]
LESION_ATTRIBUTES: tuple[LesionAttribute, ...] = ("kind", "size", "side", "region")


@dataclass(frozen=True)
class ReleaseIsolation:
    """`k`: the smallest group of people who share all kept attributes may have this size at least. `lesion`: what else
    tells people apart, of the lesion that leaves with a study (kind, size, side, region).
    """

    k: int = 5
    lesion: tuple[LesionAttribute, ...] = field(default=(), metadata=CAME_LATER)

    judges: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        if self.k < 2:
            raise ValueError("k is 2 and more: a group of one is a person")
        if len(set(self.lesion)) < len(self.lesion):
            raise ValueError("an attribute of the lesion is named twice")

    def judge(self, sample: ReleaseSample, policy: Policy) -> ReleaseVerdict:  # noqa: ARG002 - the protocol of a check
        from gateway.evidence import record_isolation

        scores, at = [], ""
        undrawn = {member.person for member in sample.of(RELEASE) if self._lacks(member)}
        if undrawn:
            score = Score(NAME, RELEASE, self.k, people=len(undrawn), note=UNDRAWN)
            says = f"{NAME} by the lesion, people without a mask: {len(undrawn)}"
            return ReleaseVerdict(NAME, Outcome.HOLD, UNDRAWN, says, (score,))
        for scope in sample.scopes:
            members = [member for member in sample.of(scope) if not self._lacks(member)]
            found = record_isolation(_people(members, self.lesion), wanted=self.k)
            scores.append(Score(NAME, scope, self.k, estimate=found.k, upper=found.k, people=found.people))
            if found.k < self.k and not at:
                at = _told(found, self.k)
        if at:
            return ReleaseVerdict(NAME, Outcome.HOLD, NAME, at, tuple(scores))
        return ReleaseVerdict(NAME, Outcome.PASS, scores=tuple(scores))

    def _lacks(self, member: Member) -> bool:
        """Whether an attribute of its lesion is not known."""
        return not set(self.lesion) <= set(member.lesion)

    def misfits(self, policy: Policy, folders: Folders) -> Iterator[tuple[str, str]]:  # noqa: ARG002 - the protocol
        """Why this check cannot work in this policy, with hints."""
        if policy.release is not None and policy.release.min_subjects < self.k:
            yield f"a release of {policy.release.min_subjects} people has no group of {self.k}", "raise min_subjects"
        if "retain-uids" in policy.header.options:
            yield "retain-uids keeps UIDs that are one study's alone: everybody is isolated", "remove one of the two"


def _people(members: Sequence[Member], of_lesion: Sequence[str]) -> list[dict[str, str]]:
    values: dict[str, dict[str, set[str]]] = {}
    for member in members:
        of_person = values.setdefault(member.person, {})
        shown = {**member.kept, **{f"lesion {name}": member.lesion[name] for name in of_lesion}}
        for name, value in shown.items():
            of_person.setdefault(name, set()).add(value)
    return [{name: "|".join(sorted(of)) for name, of in person.items()} for _, person in sorted(values.items())]


def _told(found: Isolation, wanted: int) -> str:
    sets = [" with ".join(names) for names in found.isolating[:TOLD]]
    more = f" and {len(found.isolating) - TOLD} more sets" if len(found.isolating) > TOLD else ""
    by = f" by {'; '.join(sets)}{more}" if sets else " by more than three attributes together"
    return f"{NAME}: {found.alone} of {found.people} people in groups below {wanted}, the smallest {found.k},{by}"
