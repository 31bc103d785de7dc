"""What is known of one release, gathered from tables, ledger, policy snapshot and cards. Codes, counts and figures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.app.levels import level_told
from gateway.app.policy.approval_records import counts
from gateway.app.policy.approvals import Approvals
from gateway.app.policy.loaded import restore
from gateway.app.release.references import MODELS
from gateway.database import Database, ReleaseRow
from gateway.errors import EnvironmentFault, Hold, PolicyError, UsageError
from gateway.gate import all_cards, folders_of
from gateway.gate.attackers import card_named
from gateway.policy import Policy
from gateway.settings import Home, Settings
from models.cards import Card, CardError

EARLIER = 11  # releases of the policy whose scores a report draws beside its own


@dataclass(frozen=True, slots=True)
class Content:
    """Of all jobs of a release, as counts. `unjudged` maps (aspect, modality, reason, approver) to instances."""

    people: int = 0
    studies: int = 0
    states: Mapping[str, int] = field(default_factory=dict)
    findings: Mapping[str, int] = field(default_factory=dict)  # residuals, by check of a study
    assessed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # what each check looked at
    stages: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by stage@version
    dropped: int = 0
    reviewed: int = 0  # studies that a person let go after review
    unjudged: Mapping[tuple[str, str, str, str], int] = field(default_factory=dict)
    levels: Mapping[int, int] = field(default_factory=dict)  # studies by number of their level, of those made at one

    def of_stage(self) -> Mapping[str, int]:
        """Instances by stage, its versions together."""
        found: Counter[str] = Counter()
        for name, did in self.stages.items():
            found[name.partition("@")[0]] += did.get("instances", 0)
        return found


@dataclass(frozen=True, slots=True)
class Decided:
    """The ledger's line about the end of a release. `looks` by scope, {} in ledgers of earlier versions. `strata` are
    fields of `gate.Stratum`, a group of people each.
    """

    line: int
    time: float
    event: str
    actor: str = ""
    said: str = ""
    looks: Mapping[str, int] = field(default_factory=dict)
    subjects: int = 0
    strata: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Dossier:
    """`policy` is None where this build cannot read it any more. `approvals` are (name, role, day, reason)."""

    release: ReleaseRow
    content: Content
    policy: Policy | None
    approvals: tuple[tuple[str, str, str, str], ...]
    decided: tuple[Decided, ...]
    cards: tuple[tuple[str, Card | None], ...]
    history: tuple[ReleaseRow, ...]  # judged releases of the same policy, oldest first, this one last

    @property
    def strata(self) -> tuple[Mapping[str, Any], ...]:
        """Of the last judgement, by attribute, the worst group first."""
        return _last_strata(self.decided)


def dossier_of(home: Home, settings: Settings, database: Database, name: str) -> Dossier:
    """Raises UsageError for a release that does not exist, and what database and ledger raise."""
    release = database.release_named(name)
    if release is None:
        raise UsageError(f"no release is called {name}; see `deid-gateway release list`")
    policy = _policy(home, release.policy_digest)
    judged = [
        row
        for row in database.releases_in()
        if row.policy == release.policy and row.scores and row.number <= release.number
    ]
    return Dossier(
        release,
        content_of(database, release),
        policy,
        _approvals(home, settings, policy),
        tuple(_decided(home, name)),
        _cards(home, policy),
        tuple(judged[-EARLIER:]),
    )


def content_of(database: Database, release: ReleaseRow) -> Content:
    """Count what is in a release, from the rows of its jobs. Raises what the database raises."""
    members = database.members(release.serial)
    states: Counter[str] = Counter()
    findings: Counter[str] = Counter()
    assessed: dict[str, Counter[str]] = {}
    stages: dict[str, Counter[str]] = {}
    unjudged: Counter[tuple[str, str, str, str]] = Counter()
    levels: Counter[int] = Counter()
    dropped = reviewed = 0
    for job in filter(None, (database.job(member.job_key) for member in members)):
        states[str(job.state)] += 1
        levels[job.level] += bool(job.clearance)
        for verdict in json.loads(job.verdicts or "[]"):
            findings[verdict["check"]] += len(verdict["findings"])
            assessed.setdefault(verdict["check"], Counter()).update(verdict["assessed"])
        for stage, did in json.loads(job.steps or "{}").items():
            if stage == "dropped":
                dropped += len(did)
            else:
                stages.setdefault(stage, Counter()).update(did)
        clearance = json.loads(job.clearance or "{}")
        reviewed += str(clearance.get("issuer", "")).startswith("review")
        for entry in clearance.get("not_assessed", ()):
            key = (entry["aspect"], entry["modality"], entry["reason"], entry["approver"])
            unjudged[key] += entry["instances"]
    people = len({member.person for member in members})
    return Content(people, len(members), states, findings, assessed, stages, dropped, reviewed, unjudged, +levels)


def by_level(policy: Policy | None, content: Content) -> dict[str, int]:
    """Cleared studies by level, the weakest first; {} under a policy without levels."""
    if policy is None or policy.escalate is None:
        return {}
    return {level_told(policy, number): count for number, count in sorted(content.levels.items())}


def strata_of_last(home: Home, name: str) -> tuple[Mapping[str, Any], ...]:
    """As `Dossier.strata`, out of the ledger alone."""
    return _last_strata(_decided(home, name))


def _last_strata(decided: Sequence[Decided]) -> tuple[Mapping[str, Any], ...]:
    return next((one.strata for one in reversed(decided) if one.looks), ())


def _policy(home: Home, digest: str) -> Policy | None:
    try:
        return restore((home.policy_snapshots / f"{digest}.json").read_text("utf-8"), digest)
    except (OSError, UnicodeDecodeError, Hold):
        return None


def _approvals(home: Home, settings: Settings, policy: Policy | None) -> tuple[tuple[str, str, str, str], ...]:
    """Who signed this digest, where the signature still holds."""
    if policy is None:
        return ()
    try:
        records = Approvals(home, settings).records(policy)
    except (PolicyError, EnvironmentFault):  # a damaged list of signers vouches for nobody
        return ()
    signed = [record.signed.statement for record in records if record.signed is not None and counts(record)]
    return tuple((one.by, one.role, one.date[:10], one.reason) for one in signed)


def _decided(home: Home, name: str) -> list[Decided]:
    """Lines of the ledger about a release, in order."""
    needle = json.dumps({"release": name}, separators=(",", ":"))[1:-1].encode()
    found = []
    if home.ledger.exists():
        with open(home.ledger, "rb") as file:
            found = [_told(json.loads(line)) for line in file if needle in line and line.endswith(b"\n")]
    return found


def _told(line: Mapping[str, Any]) -> Decided:
    return Decided(
        int(line["line"]),
        float(line["time"]),
        str(line["event"]),
        str(line.get("actor", "")),
        str(line.get("reason_given", "")),
        line.get("looks", {}),
        int(line.get("subjects", 0)),
        tuple(line.get("strata", ())),
    )


def _cards(home: Home, policy: Policy | None) -> tuple[tuple[str, Card | None], ...]:
    """The attackers that the policy names; None for a card that is gone."""
    folders = folders_of(home.root / MODELS)
    found: list[tuple[str, Card | None]] = []
    for name in sorted(all_cards(policy)) if policy is not None else ():
        try:
            found.append((name, card_named(name, folders)[0]))
        except CardError:
            found.append((name, None))
    return tuple(found)
