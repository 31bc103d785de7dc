"""`scrub`: files and folders through the same intake, header, gate and folder transport, without engine or receiver.

Runs beside a `serve` on the same home: it takes no engine lock and writes to the ledger under the ledger's own lock.
Studies run side by side on threads; their instances run in the worker pool. A fault of one study holds that study; a
fault of the machine (disk full, folder gone) ends the run, and what was decided until then stays decided.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from functools import partial
from pathlib import Path

from gateway.app.account import total
from gateway.app.batch.attempts import first_passing
from gateway.app.batch.inputs import MACHINE_ERRNOS, Input, Inputs, look_at, unreadable
from gateway.app.batch.journal import Journal, work_key
from gateway.app.batch.records import DESTINATION, Cleared, Records
from gateway.app.batch.studies import NOT_DICOM, Batch, Progress, StudyResult, by_study
from gateway.app.batch.sweep import sweep_parts
from gateway.app.candidates import Making
from gateway.app.handover import Handover, result_of
from gateway.app.intake import persons_of, require_sound, sort_out
from gateway.app.keyring import require_keys, ring_of
from gateway.app.person.consent import require_consent
from gateway.app.person.mapping import Mapper, Work
from gateway.app.person.tables import PeopleTables
from gateway.app.person.vault import expire, keep_identity
from gateway.app.release.references import MODELS
from gateway.app.tasks import draw, judge_job
from gateway.app.workers import Workers
from gateway.database import Database
from gateway.durable import make_folder
from gateway.errors import GatewayError, Hold, Refuse, Stopping, StudyError, UsageError
from gateway.forward import TransportOptions, open_transport
from gateway.gate import Judgement, Pair
from gateway.observe import origin
from gateway.policy import Policy
from gateway.pseudonyms import Keys
from gateway.settings import Home, Settings
from gateway.study import State

AT_ONCE = 128  # files that are examined before the progress bar moves

Ended = Cleared | StudyResult


class Scrub:
    """One run over one source with one policy into one target."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        keys: Keys,
        policy: Policy,
        target: Path,
        project: str,
        preview: Path | None = None,
        tables: Path | None = None,
    ) -> None:
        self.home = home
        self.keys = keys
        self.policy = policy
        self.target = target
        self.project = project
        self.preview = preview  # a folder for pictures of before and after
        self.transport = open_transport(f"folder:{target.resolve()}", TransportOptions())
        self._database = Database.in_home(home.database, settings.database_url)
        ring = ring_of(home, keys)
        require_keys(ring, self._database)
        people = PeopleTables(tables or settings.policies, keys, settings.lookup_urls)
        self.mapper = Mapper(keys, ring, self._database, people)
        self.workers = Workers(settings.workers, memory_bytes=settings.worker_memory_bytes)
        self._threads = settings.workers
        self._snapshot = policy.to_snapshot()
        self._stopping = threading.Event()

    def run(self, inputs: Inputs, *, close_release: bool, report: Callable[[Progress], None]) -> list[StudyResult]:
        """Every study of `inputs`, decided. Interrupting loses only what was not decided yet.

        Raises EnvironmentFault when the target cannot be written to, or another run is writing into it; UsageError for
        a policy that judges releases over people.
        """
        with Journal.opened(self.home.journal, self.keys, self.target) as journal:
            self.records = Records(self.home, self.keys, self.policy, self.target, journal, self.mapper)
            self.handover = Handover(self.records, self.transport)
            try:
                self._require_no_checks_over_people()
                self.transport.probe()
                sweep_parts(self.target)
                expire(self.home, self.records.ledger, time.time())
                return self._run(inputs, close_release=close_release, report=report)
            finally:
                self._stopping.set()
                self.workers.close()
                self._database.close()

    def _require_no_checks_over_people(self) -> None:
        if self.policy.gate.release:
            raise UsageError(
                f"the policy {self.policy.name} has checks over people (gate.release), which a running gateway carries "
                "out across all its releases; send the files to `serve`, or take another policy"
            )

    def _run(self, inputs: Inputs, *, close_release: bool, report: Callable[[Progress], None]) -> list[StudyResult]:
        seen = list(self._look(inputs.files, report))
        unread = [*inputs.unreadable, *(entry.path for entry in seen if not entry.contents)]
        results = [StudyResult("", path, 1, State.HELD, "file_unreadable") for path in unread]
        results += [StudyResult("", entry.path, 1, State.REFUSED, NOT_DICOM) for entry in seen if entry.stranger]
        whole = (entry for entry in seen if entry.contents and not entry.stranger)
        batches = by_study(whole, self.keys, self._work_key)
        cleared: list[Cleared] = []
        done, total = 0, sum(len(batch.inputs) for batch in batches)
        report(Progress("scrub", done, total))
        for batch, ended in self._each(batches):
            done += len(batch.inputs)
            report(Progress("scrub", done, total))
            if isinstance(ended, Cleared):
                cleared.append(ended)
            else:
                results.append(ended)
        if cleared:
            results.extend(self.handover.close(cleared, close_release=close_release))
        return sorted(results, key=lambda result: str(result.file))

    def _work_key(self, contents: Iterable[str]) -> str:
        return work_key(self.keys, contents, self.policy.digest, self.project, self.target)

    def _look(self, files: Sequence[Path], report: Callable[[Progress], None]) -> Iterator[Input]:
        """What intake says of each file. One that kills its worker is as good as unreadable."""
        for start in range(0, len(files), AT_ONCE):
            calls = [
                partial(look_at, path, f"file {i}", self.keys.master)
                for i, path in enumerate(files[start : start + AT_ONCE], start + 1)
            ]
            try:
                yield from self.workers.each(calls)
            except BrokenProcessPool:
                yield from map(self._look_alone, calls)
            report(Progress("examine", start + len(calls), len(files)))

    def _look_alone(self, call: partial[Input]) -> Input:
        try:
            return self.workers.run(call)
        except BrokenProcessPool:
            return unreadable(call.args[0], call.args[1])

    def _each(self, batches: Sequence[Batch]) -> Iterator[tuple[Batch, Ended]]:
        with ThreadPoolExecutor(self._threads, thread_name_prefix="study") as threads:
            running: dict[Future[Ended], Batch] = {threads.submit(self._one, batch): batch for batch in batches}
            try:
                for future in as_completed(running):
                    yield running.pop(future), future.result()
            except BaseException:
                self._stopping.set()
                for future in running:
                    future.cancel()
                self.workers.close()  # the threads that wait for a worker end with Stopping
                raise

    # -- one study ------------------------------------------------------------------------------------------------

    def _one(self, batch: Batch) -> Ended:
        """Thread top: whatever nobody foresaw holds this study, and its neighbours go on."""
        if self._stopping.is_set():
            raise Stopping
        known = self.records.decided(batch)
        if known is not None:
            again = result_of(batch, State(known.state), known.reason, known.at, sent=len(known.written))
            return replace(again, resumed=True)
        try:
            waiting = self.records.waiting(batch)
            if waiting is not None:
                return self.handover.send(waiting) if self.records.is_released(batch) else waiting
            return self._clear(batch)
        except StudyError as error:
            return self._end(batch, error)
        except BrokenProcessPool:
            return self._end(batch, Hold("stage_failed", at="worker_lost"))
        except MemoryError:
            return self._end(batch, Hold("memory_exceeded"))
        except OSError as error:
            if error.errno in MACHINE_ERRNOS or error.filename not in {str(entry.path) for entry in batch.inputs}:
                raise
            return self._end(batch, Hold("file_unreadable"))
        except GatewayError:
            raise
        except Exception as error:  # noqa: BLE001
            return self._end(batch, Hold("stage_failed", at=origin(error)))

    def _clear(self, batch: Batch) -> Ended:
        """Intake, header, gate."""
        folder = self.records.folder(batch.key)
        shutil.rmtree(folder, ignore_errors=True)  # of an interrupted run
        examined = [entry.examined for entry in batch.inputs]
        uses = sort_out(examined)
        named = {person for entry in examined for person in entry.persons}
        require_consent(self._database, self.mapper, [self.policy], named)
        require_sound(examined, uses)
        work = Work(batch.key, self.project, batch.study, persons_of(examined))
        pseudonyms = self.mapper.mapping(work, self.policy.header)
        pairs = _pairs(batch, uses, make_folder(folder))
        estimates = self.home.estimates / batch.study
        making = Making(
            self.workers,
            self.policy,
            self._snapshot,
            pseudonyms,
            batch.study,
            estimates,
            models=self.home.root / MODELS,
            follow_up=partial(self._database.is_follow_up, batch.key),
        )
        judged = partial(self._judged, batch)
        made = first_passing(self.records, self._database, making, batch, self.project, pairs, judged)
        pairs, judgement = list(made.pairs), made.judgement
        self._draw(batch, pairs)
        if judgement.clearance is None:
            escalate = self.policy.escalate
            return self._end(batch, made.failure(len(escalate.levels) if escalate else 0), judgement, pairs)
        if self.policy.vault is not None and not self.policy.forward.shadow:
            keep_identity(self.home, self.workers, pairs, self.policy.vault, self.project, batch.key)
        cleared = self.records.cleared(batch, judgement.clearance, total(made.steps), judgement, made.level)
        return cleared if self.policy.release is not None else self.handover.send(cleared)

    def _judged(self, batch: Batch, pairs: Sequence[Pair], look: int) -> Judgement:
        asked = (pairs, self._snapshot, batch.key, DESTINATION, self.keys.seal, self.home.root / MODELS, look)
        return self.workers.run(judge_job, *asked)

    def _draw(self, batch: Batch, pairs: Sequence[Pair]) -> None:
        if self.preview is not None:
            folder = make_folder(self.preview / batch.key)
            self.workers.each([partial(draw, pair.original, pair.candidate, folder, pair.name) for pair in pairs])

    def _end(
        self, batch: Batch, error: StudyError, judgement: Judgement | None = None, pairs: Sequence[Pair] = ()
    ) -> StudyResult:
        """Held or refused, in writing."""
        state = State.REFUSED if isinstance(error, Refuse) else State.HELD
        self.records.ended(batch, state, error.reason, error.at, judgement)
        at_fault = next((pair.original for pair in pairs if error.at.startswith(f"{pair.name} ")), None)
        return result_of(batch, state, error.reason, error.at, at_fault=at_fault)


def _pairs(batch: Batch, uses: Sequence[str], folder: Path) -> list[Pair]:
    kept = sorted(
        (entry.examined.sop_key, str(entry.path), entry.path)
        for entry, use in zip(batch.inputs, uses, strict=True)
        if use == "use"
    )
    return [Pair(f"{i:05d}", path, folder / f"{i:05d}.dcm") for i, (_, _, path) in enumerate(kept, 1)]
