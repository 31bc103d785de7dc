"""`route test`: which rule of routes.yaml a study would fall under, and what is foreseen to hold it. Decides nothing.

Intake, grouping into studies and the rules are the gateway's own; what is foreseen after them is in `route_foresight`.
Nothing is stored, logged or sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from gateway.app.batch.inputs import Input, look_at
from gateway.app.batch.studies import NOT_DICOM, Batch, by_study
from gateway.app.intake import persons_of, require_sound, sort_out
from gateway.app.routing.foresight import Foreseen, foresee
from gateway.errors import Hold, StudyError, UsageError
from gateway.policy import PolicySet
from gateway.policy.destinations import ae_title
from gateway.policy.document import Faulty, close_match
from gateway.policy.routes import PREDICATES, Target
from gateway.pseudonyms import Keys
from gateway.route import ATTRIBUTES, META, Explanation, Facts, explain, gather
from gateway.settings import Settings

AE = tuple(META)


@dataclass(frozen=True, slots=True)
class Sender:
    """Who would send: AE titles as in the association, "" where the files' own are taken."""

    calling: str = ""
    called: str = ""


@dataclass(frozen=True, slots=True)
class StudyRoute:
    """One study's answer. `reason` is why it would be held before or at routing, "" when it would not, or when that is
    not known; `at` is a file of the caller's. Values of the files are in `facts` only, which is not in the repr.
    """

    files: tuple[Path, ...]
    explanation: Explanation | None = None
    facts: Facts = field(default_factory=lambda: Facts({}), repr=False)
    unknown: frozenset[str] = frozenset()
    reason: str = ""
    at: str = ""
    jobs: tuple[Foreseen, ...] = ()

    @property
    def is_held(self) -> bool:
        """True when something is foreseen to hold it."""
        return bool(self.reason) or any(job.holds or job.reason for job in self.jobs)


class RouteTest:
    """Asks one policies folder. Without `keys` no `in_cohort` is known."""

    def __init__(self, policies: PolicySet, folder: Path, keys: Keys | None, sender: Sender) -> None:
        self._policies = policies
        self._folder = folder
        self._keys = keys
        self._sender = sender

    def of_attributes(self, told: Iterable[str]) -> StudyRoute:
        """Of AE titles and what else is told, "modality=CT". Raises UsageError for what is no predicate or value."""
        values: dict[str, set[str]] = {}
        for entry in told:
            name, _, value = entry.partition("=")
            values.setdefault(name, set()).add(_checked(name, value))
        facts = Facts({**{name: frozenset(some) for name, some in values.items()}, **self._titles()})
        unknown = frozenset({*AE, *ATTRIBUTES} - facts.values.keys())
        return self._routed((), facts, unknown, ())

    def of_files(self, paths: Sequence[Path]) -> tuple[list[StudyRoute], list[tuple[Path, str]]]:
        """The studies among these files, and (file, reason code) of those that are none or cannot be read."""
        keys = self._keys or Keys(bytes(range(32)))  # only to tell people and studies apart, here and now
        seen = [look_at(path, f"file {number}", keys.master) for number, path in enumerate(paths, 1)]
        left_out = [(one.path, "file_unreadable") for one in seen if not one.contents]
        left_out += [(one.path, NOT_DICOM) for one in seen if one.stranger]
        whole = [one for one in seen if one.contents and not one.stranger]
        batches = by_study(whole, keys, lambda contents: keys.opaque("route test", *contents))
        return [self._study(batch) for batch in batches], left_out

    def _study(self, batch: Batch) -> StudyRoute:
        files = tuple(entry.path for entry in batch.inputs)
        examined = [entry.examined for entry in batch.inputs]
        uses = sort_out(examined)
        try:
            require_sound(examined, uses)
            if len(persons_of(examined)) > 1 and not self._merges():
                raise Hold("mixed_patients")
            found = gather(files)
        except StudyError as error:
            at = error.at if error.reason == "unreadable_object" else str(batch.file_of(error.at)) if error.at else ""
            return StudyRoute(files, reason=error.reason, at=at)
        facts = Facts({**found.values, **self._titles()})
        unknown = frozenset(name for name in AE if not facts.of(name))
        used = [entry for entry, use in zip(batch.inputs, uses, strict=True) if use == "use"]
        return self._routed(files, facts, unknown, used)

    def _merges(self) -> bool:
        return any(policy.header.patient_id.merge for policy in self._policies.policies.values())

    def _titles(self) -> Mapping[str, frozenset[str]]:
        titles = zip(AE, (self._sender.calling, self._sender.called), strict=True)
        return {name: frozenset({title}) for name, title in titles if title}

    def _routed(
        self, files: tuple[Path, ...], facts: Facts, unknown: frozenset[str], used: Sequence[Input]
    ) -> StudyRoute:
        explanation = explain(
            facts,
            self._policies.routes,
            cohort_key=self._keys.cohort if self._keys is not None else None,
            cohorts_folder=self._folder,
            unknown=unknown,
        )
        answer = StudyRoute(files, explanation, facts, unknown, reason="no_route" if explanation.holds else "")
        if explanation.rule is None:
            return answer
        return replace(answer, jobs=tuple(self._foreseen(target, used, facts) for target in explanation.rule.targets))

    def _foreseen(self, target: Target, used: Sequence[Input], facts: Facts) -> Foreseen:
        policy = self._policies.policies[target.policy]
        url = self._policies.destinations[target.destination].url
        return foresee(target, url, policy, [entry.path for entry in used], facts.of("sop_class"))


def sender_of(calling: str, called: str) -> Sender:
    """AE titles as an association carries them, without padding. Raises UsageError for what is none."""
    try:
        titles = [ae_title(title) if title else "" for title in (calling, called)]
    except Faulty as error:
        raise UsageError(f"--ae, --called: {error} ({error.hint})") from None
    return Sender(*titles)


def rejection(sender: Sender, settings: Settings) -> str:
    """Why an association with these AE titles would be rejected whatever its host, as a sentence; "" when not."""
    if sender.called and sender.called not in {settings.ae_title, *settings.called_ae_titles}:
        return f"the gateway does not answer to {sender.called}: add it to DEID_CALLED_AE_TITLES"
    titles = {peer.partition("@")[0] for peer in settings.allowed_peers}
    if sender.calling and sender.calling not in titles:
        return f"{sender.calling} may not send: add {sender.calling}@host to DEID_ALLOWED_PEERS"
    return ""


def _checked(name: str, value: str) -> str:
    """A value as a rule would write it, so that a keyword of a SOP class becomes its UID."""
    known = [one for one in PREDICATES if one in ATTRIBUTES]
    if name not in known:
        raise UsageError(f"--with {name}=… names no attribute that rules ask for; {close_match(name, known) or known}")
    try:
        return PREDICATES[name](value)
    except Faulty as error:
        raise UsageError(f"--with {name}: {error}" + (f" ({error.hint})" if error.hint else "")) from None
