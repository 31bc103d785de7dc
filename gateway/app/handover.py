"""From cleared studies to files in the target: one by one, or as a release that is judged over its people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pydicom

from gateway.app.batch.records import Cleared, Records
from gateway.app.batch.studies import Batch, StudyResult
from gateway.errors import EnvironmentFault, Hold, Retry, StudyError
from gateway.forward import Transport, forward, rehearse
from gateway.study import Receipt, State


def result_of(
    batch: Batch, state: State, reason: str = "", at: str = "", *, sent: int = 0, at_fault: Path | None = None
) -> StudyResult:
    """How a study ended, for the person who runs `scrub`."""
    return StudyResult(batch.key, at_fault or batch.file_of(at), len(batch.inputs), state, reason, at, sent)


class Handover:
    """Sends what the gate cleared, and nothing else."""

    def __init__(self, records: Records, transport: Transport) -> None:
        self.records = records
        self.transport = transport

    def close(self, cleared: Sequence[Cleared], *, close_release: bool) -> Iterator[StudyResult]:
        """End of a policy with `release:`: everything waits, or the batch is judged as one release."""
        release = self.records.policy.release
        least = release.min_subjects if release is not None else 0
        people = {self.records.person(study.batch) for study in cleared}
        if not close_release:
            for study in cleared:
                yield result_of(study.batch, State.AWAITING_RELEASE, "release_pending")
        elif len(people) < least:
            for study in cleared:
                self.records.too_few(study, len(people))
                yield result_of(study.batch, State.HELD, "too_few_subjects", f"{len(people)} of {least}")
        else:
            self.records.released(cleared, len(people))
            for study in cleared:
                try:
                    yield self.send(study)
                except StudyError as error:
                    self.records.ended(study.batch, State.HELD, error.reason, error.at, None)
                    yield result_of(study.batch, State.HELD, error.reason, error.at)

    def send(self, study: Cleared) -> StudyResult:
        """The cleared bytes into the target; under a policy in shadow all but that. Raises Hold, and EnvironmentFault
        when the target takes nothing.
        """
        folder = self.records.folder(study.batch.key)
        files = {entry.name: folder / f"{entry.name}.dcm" for entry in study.clearance.instances}
        written = _written(study, files)
        if self.records.policy.forward.shadow:
            rehearse(study.clearance, files, seal_key=self.records.keys.seal)
            self.records.shadowed(study)
            return result_of(study.batch, State.SHADOWED)
        receipts: list[Receipt] = []
        self.records.mapper.issue(study.batch.key, next(iter(files.values())))
        try:
            forward(
                study.clearance,
                files,
                seal_key=self.records.keys.seal,
                transport=self.transport,
                done=frozenset(),
                on_receipt=receipts.append,
            )
        except Retry as error:
            raise EnvironmentFault(
                f"{self.records.target} takes no more files ({error.reason} at {error.at}); "
                "mend that, then run the same command again: what was decided stays decided"
            ) from None
        self.records.sent(study, receipts, written)
        return result_of(study.batch, State.SENT, sent=len(written))


def _written(study: Cleared, files: dict[str, Path]) -> tuple[str, ...]:
    """Where the folder transport puts the files, below the target."""
    first = study.clearance.instances[0].name
    try:
        uid = pydicom.dcmread(
            files[first], stop_before_pixels=True, specific_tags=["StudyInstanceUID"]
        ).StudyInstanceUID
    except (OSError, AttributeError, pydicom.errors.InvalidDicomError):
        raise Hold("clearance_broken", at=f"instance {first}") from None
    return tuple(f"{uid}/{entry.sop_instance_uid}.dcm" for entry in study.clearance.instances)
