"""`scrub`: files and folders through the same intake, header, gate and folder transport, without engine or receiver.

Runs beside a `serve` on the same home: it takes no engine lock and writes to the ledger under the ledger's own lock.
Studies run side by side on threads; their instances run in the worker pool.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

import pydicom

from gateway.app.batch import NOT_DICOM, Batch, Progress, StudyResult
from gateway.app.intake import Examined, examine, looks_like_dicom, require_sound, sort_out
from gateway.app.journal import Decision, Journal, journal_key
from gateway.app.steps import told, total
from gateway.app.workers import Workers, judge_job, scrub_instance
from gateway.durable import make_folder, writing
from gateway.errors import Refuse, StudyError
from gateway.forward import TransportOptions, forward, open_transport
from gateway.gate import Judgement, Pair
from gateway.ledger import Ledger
from gateway.policy import Policy
from gateway.pseudonyms import Keys, Pseudonyms
from gateway.settings import Home, Settings
from gateway.study import Clearance, Receipt, State, Step

DESTINATION = "scrub-target"


@dataclass(frozen=True, slots=True)
class Cleared:
    """A study that the gate cleared and that was not forwarded yet."""

    batch: Batch
    work_key: str
    folder: Path
    clearance: Clearance
    steps: tuple[Step, ...]
    judgement: Judgement


class Scrub:
    """One run over one source with one policy into one target."""

    def __init__(self, home: Home, settings: Settings, keys: Keys, policy: Policy, target: Path, project: str) -> None:
        self.home = home
        self.keys = keys
        self.policy = policy
        self.target = target
        self.project = project
        self.ledger = Ledger(home.ledger, keys.ledger)
        self.journal = Journal(home.journal)
        self.workers = Workers(settings.workers)
        self._threads = settings.workers
        self._snapshot = policy.to_snapshot()
        self._stopping = threading.Event()

    def run(
        self, files: Sequence[Path], *, close_release: bool, report: Callable[[Progress], None]
    ) -> list[StudyResult]:
        """Every study of `files`, decided. Interrupting loses only what was not decided yet."""
        try:
            batches, results = self._group(files, report)
            cleared: list[Cleared] = []
            done = 0
            for batch, ended in self._each(batches):
                done += len(batch.paths)
                report(Progress("scrub", done, sum(len(b.paths) for b in batches)))
                if isinstance(ended, Cleared):
                    cleared.append(ended)
                else:
                    results.append(ended)
            results.extend(self._close(cleared, close_release=close_release))
            return sorted(results, key=lambda result: str(result.first))
        finally:
            self._stopping.set()
            self.workers.close()

    def _group(
        self, files: Sequence[Path], report: Callable[[Progress], None]
    ) -> tuple[list[Batch], list[StudyResult]]:
        """Files by study; what is not DICOM at all is told and left alone."""
        futures = [self.workers.submit(examine, path, f"file {i}", self.keys.master) for i, path in enumerate(files, 1)]
        groups: dict[str, list[tuple[Path, Examined]]] = defaultdict(list)
        strangers: list[StudyResult] = []
        for i, (path, future) in enumerate(zip(files, futures, strict=True), 1):
            entry = future.result()
            report(Progress("examine", i, len(files)))
            if entry.fault == "unreadable_object" and not looks_like_dicom(path):
                strangers.append(StudyResult("", path, 1, State.REFUSED, NOT_DICOM))
            else:
                groups[entry.study_key or self.keys.opaque("lone", entry.sha256)].append((path, entry))
        batches = [
            Batch(key, tuple(path for path, _ in group), tuple(entry for _, entry in group))
            for key, group in sorted(groups.items())
        ]
        return batches, strangers

    def _each(self, batches: Sequence[Batch]) -> Iterator[tuple[Batch, Cleared | StudyResult]]:
        with ThreadPoolExecutor(self._threads) as threads:
            running: dict[Future[Cleared | StudyResult], Batch] = {threads.submit(self._one, b): b for b in batches}
            try:
                for future in as_completed(running):
                    yield running[future], future.result()
            except BaseException:
                self._stopping.set()
                for future in running:
                    future.cancel()
                raise

    def _one(self, batch: Batch) -> Cleared | StudyResult:
        work_key = journal_key(
            self.keys, [e.sha256 for e in batch.examined], self.policy.digest, self.project, self.target
        )
        known = self.journal.finished(work_key, self.target)
        if known is not None:
            return self._result(batch, State(known.state), known.reason, known.at, resumed=True)
        folder = self.home.held / work_key
        shutil.rmtree(folder, ignore_errors=True)  # of an interrupted run
        judgement: Judgement | None = None
        try:
            uses = sort_out(batch.examined)
            require_sound(batch.examined, uses)
            pairs = self._pairs(batch, uses, make_folder(folder))
            steps = self._scrub(pairs)
            judgement = self.workers.run(judge_job, pairs, self._snapshot, work_key, DESTINATION, self.keys.seal)
            if judgement.clearance is None:
                return self._held(batch, work_key, judgement.reason, judgement.at, judgement)
            cleared = Cleared(batch, work_key, folder, judgement.clearance, tuple(steps), judgement)
            return cleared if self.policy.release is not None else self._send(cleared)
        except StudyError as error:
            state = State.REFUSED if isinstance(error, Refuse) else State.HELD
            return self._held(batch, work_key, error.reason, error.at, judgement, state)

    def _pairs(self, batch: Batch, uses: Sequence[str], folder: Path) -> list[Pair]:
        kept = [
            (e.sop_key, path) for e, path, use in zip(batch.examined, batch.paths, uses, strict=True) if use == "use"
        ]
        return [Pair(f"{i:05d}", path, folder / f"{i:05d}.dcm") for i, (_, path) in enumerate(sorted(kept), 1)]

    def _scrub(self, pairs: Sequence[Pair]) -> list[Step]:
        if self._stopping.is_set():
            raise KeyboardInterrupt
        key = Pseudonyms.of_project(self.keys.master, self.project).key
        return self.workers.gather(
            [self.workers.submit(scrub_instance, p.original, p.candidate, self._snapshot, key) for p in pairs]
        )

    def _close(self, cleared: Sequence[Cleared], *, close_release: bool) -> Iterator[StudyResult]:
        """End of a policy with `release:`: everything waits, or the batch is judged as one release."""
        if not cleared:
            return
        release = self.policy.release
        people = {entry.patient_key for study in cleared for entry in study.batch.examined}
        for study in cleared:
            if not close_release or release is None:
                self._record(study, State.AWAITING_RELEASE, "release_pending")
                yield self._result(study.batch, State.AWAITING_RELEASE, "release_pending")
            elif len(people) < release.min_subjects:
                yield self._held(study.batch, study.work_key, "too_few_subjects", "", study.judgement)
            else:
                yield self._send(study)

    def _send(self, study: Cleared) -> StudyResult:
        self._record(study, State.CLEARED)
        receipts: list[Receipt] = []
        transport = open_transport(f"folder:{self.target.resolve()}", TransportOptions())
        files = {entry.name: study.folder / f"{entry.name}.dcm" for entry in study.clearance.instances}
        try:
            forward(
                study.clearance,
                files,
                seal_key=self.keys.seal,
                transport=transport,
                done=frozenset(),
                on_receipt=receipts.append,
            )
        except StudyError as error:
            return self._held(study.batch, study.work_key, error.reason, error.at, study.judgement)
        kinds = dict(Counter(receipt.kind for receipt in receipts))
        job = study.work_key
        self.ledger.append("sent", f"sent/{job}", job=job, receipts=kinds, destination=DESTINATION)
        self.journal.record(Decision(job, str(State.SENT), written=self._written(study)))
        shutil.rmtree(study.folder)
        return self._result(study.batch, State.SENT)

    def _written(self, study: Cleared) -> tuple[str, ...]:
        """Where the folder transport put the files, below the target."""
        first = study.folder / f"{study.clearance.instances[0].name}.dcm"
        study_uid = pydicom.dcmread(first, stop_before_pixels=True, specific_tags=["StudyInstanceUID"]).StudyInstanceUID
        return tuple(f"{study_uid}/{entry.sop_instance_uid}.dcm" for entry in study.clearance.instances)

    def _record(self, study: Cleared, state: State, reason: str = "") -> None:
        self.ledger.append(
            "cleared",
            f"cleared/{study.work_key}",
            job=study.work_key,
            policy_digest=self.policy.digest,
            steps=total(study.steps),
            issuer=study.clearance.issuer,
            sha256=[entry.sha256_file for entry in study.clearance.instances],
            state=str(state),
            **told(study.judgement.verdicts, study.judgement.not_assessed),
        )
        if reason:
            self.journal.record(Decision(study.work_key, str(state), reason))

    def _held(
        self,
        batch: Batch,
        work_key: str,
        reason: str,
        at: str,
        judgement: Judgement | None,
        state: State = State.HELD,
    ) -> StudyResult:
        """Ledger, a note beside the candidates in HOME/held, journal."""
        facts = told(judgement.verdicts, judgement.not_assessed) if judgement else {}
        self.ledger.append(
            str(state),
            f"{state}/{work_key}/{reason}",
            job=work_key,
            policy_digest=self.policy.digest,
            reason=reason,
            at=at,
            **facts,
        )
        with writing(make_folder(self.home.held / work_key) / "held.json") as file:
            findings = [asdict(f) for v in judgement.verdicts for f in v.findings] if judgement else []
            note = {"reason": reason, "at": at, "policy": self.policy.name, "findings": findings, **facts}
            file.write(json.dumps(note, indent=1).encode())
        self.journal.record(Decision(work_key, str(state), reason, at))
        return self._result(batch, state, reason, at)

    def _result(
        self, batch: Batch, state: State, reason: str = "", at: str = "", *, resumed: bool = False
    ) -> StudyResult:
        return StudyResult(batch.key, batch.paths[0], len(batch.paths), state, reason, at, resumed)
