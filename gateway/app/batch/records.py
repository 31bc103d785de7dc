"""What a `scrub` run leaves in writing about a study: ledger line first, then the note in HOME/held, then the journal.

None of these names an input file or holds a value: keys, codes, tags, counts and hashes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from gateway.app.account import answers, told
from gateway.app.batch.journal import PASSING, VERSION, Decision, Journal
from gateway.app.batch.studies import Batch
from gateway.app.levels import ESCALATED, account
from gateway.app.person.mapping import Mapper
from gateway.app.waiting import NOTE
from gateway.durable import make_folder, writing
from gateway.gate import Judgement
from gateway.ledger import Ledger
from gateway.policy import Policy
from gateway.pseudonyms import Keys
from gateway.settings import Home
from gateway.study import Clearance, Receipt, State

DESTINATION = "scrub-target"
CLEARANCE = "clearance.json"


@dataclass(frozen=True, slots=True)
class Cleared:
    """A study that the gate cleared and that was not sent yet; its candidates lie in HOME/held."""

    batch: Batch
    clearance: Clearance


class Records:
    """Of one run: one policy into one target."""

    def __init__(self, home: Home, keys: Keys, policy: Policy, target: Path, journal: Journal, mapper: Mapper) -> None:
        self.home = home
        self.keys = keys
        self.policy = policy
        self.target = target
        self.journal = journal
        self.mapper = mapper
        self.ledger = Ledger(home.ledger, keys.ledger)

    def folder(self, key: str) -> Path:
        """Where candidates and note of a piece of work lie."""
        return self.home.held / key

    def person(self, batch: Batch) -> str:
        """Who a study was mapped to, by a keyed name: IDs that a table merges count once."""
        return self.mapper.person(batch.key) or batch.inputs[0].examined.patient_key

    # -- what an earlier run left ---------------------------------------------------------------------------------

    def decided(self, batch: Batch) -> Decision | None:
        """The end that an earlier run came to, when nothing is left to do: what it wrote or noted is still there."""
        found = self.journal.find(batch.key)
        if found is None:
            return None
        if found.state == State.SENT:
            whole = all((self.target / name).is_file() for name in found.written)
            if whole:
                shutil.rmtree(self.folder(batch.key), ignore_errors=True)  # a kill may have come before
            return found if whole else None
        if found.state in (State.HELD, State.REFUSED):
            stands = found.version == VERSION and found.reason not in PASSING
            return found if stands and (self.folder(batch.key) / NOTE).is_file() else None
        return None

    def waiting(self, batch: Batch) -> Cleared | None:
        """The clearance that an earlier run left for a release; None when it is not whole, or of another version."""
        found = self.journal.find(batch.key)
        if found is None or found.state not in (State.AWAITING_RELEASE, State.CLEARED) or found.version != VERSION:
            return None
        try:
            clearance = Clearance.from_json((self.folder(batch.key) / CLEARANCE).read_text("utf-8"))
        except (OSError, ValueError, KeyError, TypeError):
            return None
        sealed = clearance.is_sealed_by(self.keys.seal)
        return Cleared(batch, clearance) if sealed and clearance.job_key == batch.key else None

    def is_released(self, batch: Batch) -> bool:
        """True when a release that holds this study was closed, and sending was cut off."""
        found = self.journal.find(batch.key)
        return found is not None and found.state == State.CLEARED

    # -- ends -----------------------------------------------------------------------------------------------------

    def escalated(self, batch: Batch, level: int, judgement: Judgement) -> None:
        """The gate said no at this level, and the next one is tried."""
        self.ledger.append(
            ESCALATED,
            f"{ESCALATED}/{batch.key}/{level}/{VERSION}",
            job=batch.key,
            study=batch.study,
            policy_digest=self.policy.digest,
            reason=judgement.reason,
            at=judgement.at,
            **account(self.policy, level),
            **told(judgement.verdicts, judgement.not_assessed),
        )

    def cleared(
        self, batch: Batch, clearance: Clearance, steps: Mapping[str, object], judgement: Judgement, level: int = 0
    ) -> Cleared:
        """The gate said yes."""
        state = State.CLEARED if self.policy.release is None else State.AWAITING_RELEASE
        self.ledger.append(
            "cleared",
            f"cleared/{batch.key}/{VERSION}",
            job=batch.key,
            study=batch.study,
            policy_digest=self.policy.digest,
            steps=steps,
            issuer=clearance.issuer,
            sha256=[entry.sha256_file for entry in clearance.instances],
            state=str(state),
            **account(self.policy, level),
            **self.mapper.told(batch.key),
            **told(judgement.verdicts, judgement.not_assessed),
        )
        if state == State.AWAITING_RELEASE:
            with writing(self.folder(batch.key) / CLEARANCE) as file:
                file.write(clearance.to_json().encode())
            self._note(batch, state, "release_pending", "", None)
            self._journal(_decision(batch, state, "release_pending"))
        return Cleared(batch, clearance)

    def released(self, studies: Sequence[Cleared], people: int) -> None:
        """A release was closed: from now on its studies are sent, whatever happens in between."""
        jobs = [study.batch.key for study in studies]
        least = self.policy.release.min_subjects if self.policy.release is not None else 0
        self.ledger.append(
            "released",
            f"released/{self.keys.opaque('release', *sorted(jobs))}",
            jobs=jobs,
            policy_digest=self.policy.digest,
            subjects=people,
            min_subjects=least,
        )
        self._journal(*(_decision(study.batch, State.CLEARED) for study in studies))

    def too_few(self, study: Cleared, people: int) -> None:
        """The release was not closed. The study goes on waiting, and counts again next time."""
        reason = "too_few_subjects"
        self.ledger.append(
            "held",
            f"held/{study.batch.key}/{reason}/{people}",
            job=study.batch.key,
            study=study.batch.study,
            policy_digest=self.policy.digest,
            reason=reason,
            subjects=people,
        )
        self._note(study.batch, State.HELD, reason, "", None)
        self._journal(_decision(study.batch, State.AWAITING_RELEASE, reason))

    def sent(self, study: Cleared, receipts: Sequence[Receipt], written: tuple[str, ...]) -> None:
        key = study.batch.key
        self.ledger.append(
            "sent",
            f"sent/{key}",
            job=key,
            study=study.batch.study,
            policy_digest=self.policy.digest,
            receipts=answers(receipts),
            destination=DESTINATION,
        )
        self._journal(_decision(study.batch, State.SENT, written=written))
        shutil.rmtree(self.folder(key), ignore_errors=True)

    def shadowed(self, study: Cleared) -> None:
        """It would have been written."""
        key = study.batch.key
        digest = self.policy.digest
        self.ledger.append("shadowed", f"shadowed/{key}", job=key, study=study.batch.study, policy_digest=digest)
        self._journal(_decision(study.batch, State.SHADOWED))
        shutil.rmtree(self.folder(key), ignore_errors=True)

    def ended(self, batch: Batch, state: State, reason: str, at: str, judgement: Judgement | None) -> None:
        """Held or refused."""
        facts = told(judgement.verdicts, judgement.not_assessed) if judgement else {}
        self.ledger.append(
            str(state),
            f"{state}/{batch.key}/{reason}/{VERSION}",
            job=batch.key,
            study=batch.study,
            policy_digest=self.policy.digest,
            reason=reason,
            at=at,
            **facts,
        )
        self._note(batch, state, reason, at, judgement)
        self._journal(_decision(batch, state, reason, at))

    def _note(self, batch: Batch, state: State, reason: str, at: str, judgement: Judgement | None) -> None:
        findings = [asdict(f) for v in judgement.verdicts for f in v.findings] if judgement else []
        facts = told(judgement.verdicts, judgement.not_assessed) if judgement else {}
        note = {
            "state": str(state),
            "reason": reason,
            "at": at,
            "policy": self.policy.name,
            "policy_digest": self.policy.digest,
            "findings": findings,
            **facts,
        }
        with writing(make_folder(self.folder(batch.key)) / NOTE) as file:
            file.write(json.dumps(note, indent=1).encode())

    def _journal(self, *decisions: Decision) -> None:
        """What was held of the same files before, under another policy or before they were mended, is history now."""
        self.journal.record(*decisions)
        for decision in decisions:
            for key in self.journal.same_places(decision):
                shutil.rmtree(self.folder(key), ignore_errors=True)


def _decision(batch: Batch, state: State, reason: str = "", at: str = "", written: tuple[str, ...] = ()) -> Decision:
    return Decision(batch.key, batch.places, str(state), reason, at, written)
