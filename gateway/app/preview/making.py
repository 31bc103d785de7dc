"""`policy preview`: real files through the real header, pixel stages and gate, into a folder that goes again.

The originals are only read. Candidates lie in a temporary folder, mode 0700, until the preview is told. Nothing is
logged, and nothing goes to a home, a ledger or a database; the caller shows the values to whoever runs the command.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gateway.app.account import is_dropped
from gateway.app.candidates import Making
from gateway.app.preview.files import NOT_ASKED, FilePreview, Subject, subject_of
from gateway.app.preview.people import PreviewPeople
from gateway.app.preview.reasons import PolicyReasons
from gateway.app.preview.rows import MOST_ITEMS, Comparison
from gateway.app.preview.sides import Side, same
from gateway.app.tasks import draw, judge_job
from gateway.app.workers import Workers
from gateway.durable import make_folder
from gateway.errors import Hold, StudyError
from gateway.gate import Pair
from gateway.header.admission import SOP_INSTANCE
from gateway.header.elements import PIXEL_DATA
from gateway.policy import Policy
from gateway.pseudonyms import Pseudonyms

HEADER_ONLY, WHOLE, ESTIMATES, PICTURES = "header", "candidates", "estimates", "pictures"


class Preview:
    """Previews under one policy. `work` is an empty folder of the caller's, `models` one of cards of the site's own.
    With `pictures`, of changed pixels too.
    """

    def __init__(
        self,
        policy: Policy,
        people: PreviewPeople,
        workers: Workers,
        work: Path,
        *,
        models: Path | None = None,
        most_items: int = MOST_ITEMS,
        pictures: bool = False,
    ) -> None:
        self.policy = policy
        self._bare = policy.model_copy(update={"pixels": (), "escalate": None})
        self._people = people
        self._pictures = pictures
        self._workers = workers
        self._work = work
        self._models = models
        self._most_items = most_items

    def of(self, files: Sequence[Path]) -> list[FilePreview]:
        """One preview for each file, in order. Files of one study go together, as they would. Raises OSError."""
        found: dict[Path, FilePreview] = {}
        studies: defaultdict[str, list[Subject]] = defaultdict(list)
        copies: dict[Path, Path] = {}  # of an earlier file, bit for bit: as at intake, one of them counts
        folder = make_folder(self._work / WHOLE)
        for number, path in enumerate(files, 1):
            try:
                subject = subject_of(Pair(f"{number:05d}", path, folder / f"{number:05d}.dcm"))
            except StudyError as error:
                found[path] = FilePreview(path, reason=error.reason, at=error.at)
                continue
            twin = next((one for one in studies[subject.study] if one.is_copied_by(subject)), None)
            if twin is not None:
                copies[path] = twin.pair.original
            else:
                studies[subject.study].append(subject)
        for number, subjects in enumerate(studies.values(), 1):
            found |= {one.file: one for one in self._study(subjects, f"study {number}")}
        found |= {path: replace(found[first], file=path) for path, first in copies.items()}
        return [found[path] for path in files]

    def _study(self, subjects: Sequence[Subject], name: str) -> list[FilePreview]:
        """A preview of each file of a study: together where that works, else each alone, to find who is to blame."""
        try:
            return self._cleaned(subjects, name)
        except StudyError as error:
            whole = [one.held(error) for one in subjects]
        if len(subjects) == 1:
            return whole
        alone: list[FilePreview] = []
        for one in subjects:
            try:
                alone += self._cleaned([one], name)
            except StudyError as error:
                alone.append(one.held(error))
        faulty = next((told.file for told in alone if told.reason), None)
        if faulty is None:  # only together they cannot be cleaned
            first = whole[0]
            return [replace(told, reason=first.reason, at=first.at, gate_reason=NOT_ASKED) for told in alone]
        return [told if told.reason else replace(told, held_by=faulty, gate_reason=NOT_ASKED) for told in alone]

    def _cleaned(self, subjects: Sequence[Subject], name: str) -> list[FilePreview]:
        """Raises Hold, Retry or Refuse when any of them cannot be cleaned."""
        if len({one.instance for one in subjects}) < len(subjects):
            raise Hold("conflicting_instance", at=f"{SOP_INSTANCE:08X}")
        pseudonyms = self._people.pseudonyms(self.policy.header.patient_id, {one.patient_id for one in subjects})
        pairs = [one.pair for one in subjects]
        steps = self._making(self.policy, pseudonyms, name).candidates(pairs)
        left = [pair for pair in pairs if not is_dropped(steps[pair.name])]
        staged = self._staged(left, pseudonyms, name)
        gate_reason, gate_at = self._gate(left)
        told = []
        for one in subjects:
            done = steps[one.pair.name]
            if one.pair not in left:
                dropped = next(step.dropped for step in done if step.dropped)
                told.append(FilePreview(one.pair.original, one.sop_class, steps=done, reason=dropped))
                continue
            reasons = PolicyReasons(self.policy, one.sop_class, staged[one.pair.name])
            comparison = Comparison(reasons, most_items=self._most_items)
            rows = tuple(comparison.rows(one.pair.original, one.pair.candidate))
            preview = FilePreview(one.pair.original, one.sop_class, rows, dict(comparison.counts), done)
            pictures = self._drawn(one.pair) if PIXEL_DATA in staged[one.pair.name] else ()
            at = _place_in(gate_at, one.pair.name)
            told.append(replace(preview, gate_reason=gate_reason, gate_at=at, pictures=pictures))
        return told

    def _making(self, policy: Policy, pseudonyms: Pseudonyms, name: str) -> Making:
        estimates = self._work / ESTIMATES / name.replace(" ", "-")
        return Making(self._workers, policy, policy.to_snapshot(), pseudonyms, name, estimates, models=self._models)

    def _staged(self, pairs: Sequence[Pair], pseudonyms: Pseudonyms, name: str) -> dict[str, frozenset[int]]:
        """Top-level tags that pixel stages changed, found by doing the header alone once more."""
        if not self.policy.pixels:
            return {pair.name: frozenset() for pair in pairs}
        folder = make_folder(self._work / HEADER_ONLY)
        bare = [replace(pair, candidate=folder / f"{pair.name}.dcm") for pair in pairs]
        self._making(self._bare, pseudonyms, name).candidates(bare)
        return {
            pair.name: _changed(Side.of_file(alone.candidate), Side.of_file(pair.candidate))
            for pair, alone in zip(pairs, bare, strict=True)
        }

    def _gate(self, pairs: Sequence[Pair]) -> tuple[str, str]:
        """Why the gate would hold these, and where; ("", "") when it would not."""
        try:
            key = secrets.token_bytes(32)
            judgement = self._workers.run(
                judge_job, pairs, self.policy.to_snapshot(), "preview", "preview", key, self._models
            )
        except Hold as hold:
            return hold.reason, hold.at
        return judgement.reason, judgement.at

    def _drawn(self, pair: Pair) -> tuple[bytes, ...]:
        """Pictures of before and after, as PNG."""
        if not self._pictures:
            return ()
        folder = make_folder(self._work / PICTURES)
        self._workers.run(draw, pair.original, pair.candidate, folder, pair.name)
        paths = sorted(folder.glob(f"{pair.name}-*.png"))
        pictures = tuple(path.read_bytes() for path in paths)
        for path in paths:  # they show the original: not a moment longer than needed
            path.unlink()
        return pictures


def _changed(before: Side, after: Side) -> frozenset[int]:
    """Top-level tags of which the values differ."""
    changed = set()
    for tag in {tag for tag, _ in (*before.elements, *after.elements)}:
        one, other = before.value((tag, 0)), after.value((tag, 0))
        if one is None or other is None or not same(one, other):
            changed.add(tag)
    return frozenset(changed)


def _place_in(at: str, name: str) -> str:
    """Where the gate found something, for one file: its place in it, or that it is in another one."""
    instance, _, where = at.partition(" ")
    if not instance.isdecimal():
        return at
    return where if instance == name else "another file of the study"
