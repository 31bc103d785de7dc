"""From originals to candidates: the header of each instance, what a reviewer drew, then the pixel stages of the policy.

`serve` and `scrub` both go through here. A stage sees the instances that its scope puts together; groups run side by
side in the worker pool.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gateway.app.account import Steps, is_dropped
from gateway.app.review.drawn import Drawn, boxes_of, place_of
from gateway.app.tasks import run_drawn_boxes, run_pixel_stage, scrub_instance, series_of
from gateway.app.workers import Workers
from gateway.durable import make_folder
from gateway.errors import Hold
from gateway.gate import Pair
from gateway.pixels import Instance, Scope
from gateway.policy import Policy
from gateway.pseudonyms import Pseudonyms, derive
from gateway.study import Step


@dataclass(frozen=True, slots=True)
class Making:
    """How the candidates of one study are made. `estimates` is the folder of what stages estimated for this study,
    `models` a folder of cards of the site's own, `level` which of the levels of `escalate` is tried, from 0;
    `follow_up` tells what `gateway.pixels.Work` says of it, and is asked for a stage that holds follow-ups only.
    """

    workers: Workers
    policy: Policy
    snapshot: str
    pseudonyms: Pseudonyms
    study_key: str
    estimates: Path
    drawn: Drawn | None = None
    models: Path | None = None
    level: int = 0
    follow_up: Callable[[], bool] = bool  # nobody follows anybody

    def candidates(self, pairs: Sequence[Pair]) -> Steps:
        """Write the candidate of every pair but those that a stage drops. Raises Hold or Refuse; Hold("no_instances")
        when everything was dropped.
        """
        steps = self._headers(pairs)
        if self.drawn is not None and self.drawn.drawings:
            for pair, step in self._redacted(self.drawn, [pair for pair in pairs if not is_dropped(steps[pair.name])]):
                steps[pair.name] += (step,)
        for name, stage in self.policy.pixels:
            left = [pair for pair in pairs if not is_dropped(steps[pair.name])]
            for pair, step in self._stage(name, stage.SCOPE, left):
                steps[pair.name] += (step,)
                if step.dropped:
                    pair.candidate.unlink(missing_ok=True)
        if all(map(is_dropped, steps.values())):
            raise Hold("no_instances")
        return steps

    def _headers(self, pairs: Sequence[Pair]) -> Steps:
        calls = [
            partial(scrub_instance, pair.original, pair.candidate, self.snapshot, self.pseudonyms) for pair in pairs
        ]
        return {pair.name: (step,) for pair, step in zip(pairs, self.workers.each(calls), strict=True)}

    def _redacted(self, drawn: Drawn, pairs: Sequence[Pair]) -> list[tuple[Pair, Step]]:
        """What reviewers drew, on the objects that it goes on."""
        places = self.workers.each([partial(place_of, pair.original, drawn.master) for pair in pairs])
        boxes = [boxes_of(drawn.drawings, place) for place in places]
        chosen = [(pair, found) for pair, found in zip(pairs, boxes, strict=True) if found]
        seed, store = derive(self.pseudonyms.key, "pixels", "drawn_boxes", self.study_key), make_folder(self.estimates)
        calls = [
            partial(
                run_drawn_boxes,
                found,
                Instance(pair.name, pair.original, pair.candidate),
                self.snapshot,
                seed,
                store,
            )
            for pair, found in chosen
        ]
        return [(pair, step) for (pair, _), step in zip(chosen, self.workers.each(calls), strict=True)]

    def _stage(self, name: str, scope: Scope, pairs: Sequence[Pair]) -> list[tuple[Pair, Step]]:
        if not pairs:
            return []
        seed = derive(self.pseudonyms.key, "pixels", name, self.study_key)
        store, level = make_folder(self.estimates), level_of(self.policy, name, self.level)
        groups = self._groups(scope, pairs)
        holds = getattr(dict(self.policy.pixels)[name], "followups", "") == "hold"
        follow_up = holds and self.follow_up()
        calls = [
            partial(
                run_pixel_stage,
                name,
                [Instance(pair.name, pair.original, pair.candidate) for pair in group],
                self.snapshot,
                seed,
                store,
                self.models,
                level,
                follow_up=follow_up,
            )
            for group in groups
        ]
        done = self.workers.each(calls)
        return [
            (pair, step)
            for group, steps in zip(groups, done, strict=True)
            for pair, step in zip(group, steps, strict=True)
        ]

    def _groups(self, scope: Scope, pairs: Sequence[Pair]) -> list[list[Pair]]:
        if scope is Scope.INSTANCE:
            return [[pair] for pair in pairs]
        if scope is Scope.STUDY:
            return [list(pairs)]
        series = self.workers.each([partial(series_of, pair.candidate) for pair in pairs])
        groups: dict[str, list[Pair]] = defaultdict(list)
        for pair, uid in zip(pairs, series, strict=True):
            groups[uid].append(pair)
        return list(groups.values())


def level_of(policy: Policy, stage: str, number: int) -> float | None:
    """The level of a stage: the policy's `escalate` has it, for the one stage that it names."""
    if policy.escalate is None or policy.escalate.stage != stage:
        return None
    return policy.escalate.levels[number]


def kept(pairs: Sequence[Pair], steps: Steps) -> list[Pair]:
    """The pairs that go on."""
    return [pair for pair in pairs if not is_dropped(steps[pair.name])]
