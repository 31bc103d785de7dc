"""Does the closed loop keep its promise? Whole loops, simulated: levels of studies, and looks at the release.

    make bench NAME=closed_loop             --quick for a look; a run that was cut short goes on where it was

A run is one release. Each study is made at the first level, passes `same_scan` or goes on to the next; the release is
judged; studies of its weakest level are made at the next one, pass `same_scan` again, and the release is judged again,
until it passes or was looked at as often as there are attempts. All by the rules that `serve` uses.

- `leak_free`            no level leaves a trace: how often does the release clear?
- `at_the_limit`         every level leaks exactly what the limit says, each with noise of its own: every clearing is a
                         false pass. Without `same_scan`, so that the leak of what leaves is known
- `filtered`             the same with `same_scan`, which holds whom it finds, or has them made anew: the leak is larger
                         by what that takes away, so that what leaves at the last look leaks what the limit says
- `by_luck`              `at_the_limit` by another rule, which is not ours: only studies whose originals were found are
                         made anew. What it clears shows what choosing by single studies draws: better luck
- `twice_the_limit`      every level leaks twice as much
- `only_the_last_helps`  all levels but the last leak twice the limit, the last nothing: what the loop is for

Synthetic embeddings with a known D_sys: what is tested is the arithmetic and its rules, no encoder.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from rich.progress import track
from scipy.optimize import brentq
from scipy.stats import beta

from bench.gate_release import CARD, DIMENSIONS, leak_for
from gateway.app.release.escalation import to_escalate
from gateway.evidence import distances, excess, linkability
from gateway.gate.release_linkability import ReleaseLinkability
from gateway.gate.release_sample import ALL, RELEASE, Member, ReleaseSample, score
from gateway.study import Outcome

OUT = Path(__file__).parent / "results" / "closed_loop.json"
PEOPLE, LIMIT, LEVELS, HOLD_BELOW_P, IMPOSTORS = 150, 0.25, 3, 0.02, 240


@dataclass(frozen=True)
class Rules:
    """Of a loop: `attempts` at a study, and looks at a release."""

    people: int = PEOPLE
    limit: float = LIMIT
    attempts: int = LEVELS
    hold_below_p: float = HOLD_BELOW_P
    replicates: int = 200
    permutations: int = 100
    by_luck: bool = False


RULES = Rules()


@dataclass(frozen=True)
class Ended:
    """How a loop ended. `held`: studies that no level let through."""

    cleared: bool
    looks: int
    held: int
    levels: tuple[int, ...]


def loop(leaks: Sequence[float], seed: int, rules: Rules) -> Ended:
    """One release. `leaks`: by level, the share of the original's direction that stays."""
    generator = np.random.default_rng(seed)
    centres = generator.normal(size=(rules.people, DIMENSIONS))
    originals = 0.8 * centres + 0.6 * generator.normal(size=centres.shape)
    noise = generator.normal(size=(rules.attempts, *originals.shape))
    impostors = np.sort(_apart(*generator.normal(size=(2, IMPOSTORS, DIMENSIONS))))
    share = np.asarray(leaks)[:, None, None]
    released = share * originals + np.sqrt(1 - share**2) * noise
    own = np.stack([_apart(originals, made) for made in released])
    p = (1 + np.searchsorted(impostors, own, side="right")) / (1 + IMPOSTORS)
    passes = p >= rules.hold_below_p * (1 + np.arange(rules.attempts))[:, None]
    level = np.zeros(rules.people, int)
    policy = SimpleNamespace(looks=rules.attempts)
    for look in range(1, rules.attempts + 1):
        level = _first_passing(passes, level, rules.attempts)
        here = np.flatnonzero(level < rules.attempts)
        members = tuple(_member(i, originals[i], released[level[i], i]) for i in here)
        looks = {RELEASE: look, ALL: look}
        sample = ReleaseSample(members, looks, seed, {CARD: ("cosine",)}, rules.replicates, rules.permutations)
        verdict = ReleaseLinkability((CARD,), rules.limit).over(sample)
        kept = tuple(int(level[i]) for i in here)
        if verdict.outcome is Outcome.PASS:
            return Ended(True, look, rules.people - len(here), kept)
        left = {f"{i}": int(level[i]) for i in here if level[i] + 1 < rules.attempts}
        if rules.by_luck:
            left = {name: 0 for name in left if int(name) in set(here[_found(sample)])}
        again = to_escalate(left, policy, look)  # type: ignore[arg-type]
        if verdict.reason != "linkability" or not again:
            return Ended(False, look, rules.people - len(here), kept)
        level[[int(name) for name in again]] += 1
    raise AssertionError("the last look escalates nothing")


def _first_passing(passes: np.ndarray, level: np.ndarray, attempts: int) -> np.ndarray:
    """(people,) of each study the first level from its own on that passes; `attempts` where none does."""
    return np.array(
        [next((k for k in range(start, attempts) if passes[k, i]), attempts) for i, start in enumerate(level)]
    )


def _found(sample: ReleaseSample) -> np.ndarray:
    """(people,) whether at most a twentieth of all originals is nearer than the own one."""
    scores = score(sample.members, CARD, "cosine").released
    return (scores > np.diag(scores)[:, None]).mean(axis=1) <= 0.05


def _member(number: int, original: np.ndarray, released: np.ndarray) -> Member:
    rows = (original[None].astype(np.float32), released[None].astype(np.float32))
    return Member(f"{number:06d}", "0", embedded={CARD: rows})


def _apart(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.array([float(distances(a[None], b[None], "cosine")[0, 0]) for a, b in zip(left, right, strict=True)])


def leak_left(wanted: float, rules: Rules, people: int = 800) -> float:
    """The leak of every level at which what `same_scan` lets through at the last look leaks so much."""
    last = rules.hold_below_p * rules.attempts

    def above(leak: float) -> float:
        generator = np.random.default_rng(7)
        originals, noise = generator.normal(size=(2, people, DIMENSIONS))
        released = leak * originals + np.sqrt(1 - leak**2) * noise
        impostors = np.sort(_apart(*generator.normal(size=(2, IMPOSTORS, DIMENSIONS))))
        p = (1 + np.searchsorted(impostors, _apart(originals, released), side="right")) / (1 + IMPOSTORS)
        left = [_member(i, originals[i], released[i]) for i in np.flatnonzero(p >= last)]
        pairs = score(left, CARD, "cosine").pairs("same_scan", np.random.default_rng(1))
        found = linkability(pairs, np.random.default_rng(2), replicates=1, permutations=40)
        return excess(found.value, found.null_mean) - wanted

    return float(brentq(above, 0.02, 0.6, xtol=0.01))


def bounds(passed: int, runs: int) -> tuple[float, float]:
    """Clopper-Pearson at 95 %, two-sided."""
    low = 0.0 if passed == 0 else float(beta.ppf(0.025, passed, runs - passed + 1))
    high = 1.0 if passed == runs else float(beta.ppf(0.975, passed + 1, runs - passed))
    return low, high


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=200)
    given = parser.parse_args()
    began = time.perf_counter()
    runs = 20 if given.quick else given.runs
    plain = replace(RULES, hold_below_p=0.0)
    at_limit, twice = leak_for(LIMIT), leak_for(2 * LIMIT)
    filtered = leak_left(LIMIT, RULES)
    kinds = {
        "leak_free": ([0.0] * LEVELS, RULES),
        "at_the_limit": ([at_limit] * LEVELS, plain),
        "filtered": ([filtered] * LEVELS, RULES),
        "by_luck": ([at_limit] * LEVELS, replace(plain, by_luck=True)),
        "twice_the_limit": ([twice] * LEVELS, plain),
        "only_the_last_helps": ([*([twice] * (LEVELS - 1)), 0.0], RULES),
    }
    result: dict[str, object] = {
        "people": PEOPLE,
        "limit": LIMIT,
        "attempts": LEVELS,
        "confidence": 0.95,
        "hold_below_p": HOLD_BELOW_P,
        "leaks": {"at_the_limit": at_limit, "filtered": filtered, "twice_the_limit": twice},
        "synthetic": True,
        "loops": {},
    }
    before = json.loads(OUT.read_text()) if OUT.exists() else {}
    if {**before, "loops": {}, "seconds": 0} == {**result, "loops": {}, "seconds": 0}:
        result["loops"] = before["loops"]
    for name, (leaks, rules) in kinds.items():
        if result["loops"].get(name, {}).get("runs") == runs:  # type: ignore[attr-defined]
            continue
        ends = [loop(leaks, seed, rules) for seed in track(range(1, runs + 1), description=name)]
        cleared = sum(end.cleared for end in ends)
        result["loops"][name] = {  # type: ignore[index]
            "runs": runs,
            "cleared": cleared / runs,
            "cleared_95": bounds(cleared, runs),
            "mean_looks": float(np.mean([end.looks for end in ends])),
            "studies_held": float(np.mean([end.held for end in ends]) / PEOPLE),
        }
        print(name, result["loops"][name])  # type: ignore[index]
        OUT.write_text(json.dumps(result, indent=1) + "\n")
    result["seconds"] = round(time.perf_counter() - began)
    OUT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
