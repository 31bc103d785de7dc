"""Does the release gate clear what leaks nothing, and hold what leaks? Chains of 50 releases, and the table of bounds.

    make bench NAME=gate_release            about half an hour on one core; --quick for a look, which keeps nothing

What is done is kept in results/gate_release.json and not done again unless --anew.

1. `leak_free`: mean and spread of the linkability bound without a leak, by number of people: what `release_power` holds
   as LEAK_FREE. D_sys does not change under a monotone transform, so that any embeddings give the same table.
2. `chains`: 50 releases of a policy one after the other, judged as `serve` judges them, with everything released before
   and with alpha spent on each look. Once without a leak; once with D_sys at the limit, and once above it, in every
   release; and once with a leak in every fifth release among clean ones. People have one or two visits.

Synthetic embeddings with a known D_sys: what is tested is the arithmetic and its rules, no encoder.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track
from scipy.optimize import brentq

from gateway.evidence import d_sys
from gateway.gate.release_linkability import ReleaseLinkability
from gateway.gate.release_rank1 import ReleaseRank1
from gateway.gate.release_sample import ALL, RELEASE, Member, ReleaseSample
from gateway.study import Outcome

OUT = Path(__file__).parent / "results" / "gate_release.json"
DIMENSIONS = 24
CARD = "synthetic"
LIMIT, RANK1_LIMIT = 0.10, 0.10
RELEASES, PEOPLE = 50, 400
SIZES = (50, 75, 100, 150, 200, 300, 500, 800, 1200)


def members(people: int, leak: float, generator: np.random.Generator, first: int = 0, visits: float = 0.3):
    """One study a person, a second one for a share of them. `leak` is the share of the original's direction kept."""
    made = []
    for number in range(people):
        centre = generator.normal(size=DIMENSIONS)
        for visit in range(1 + (generator.random() < visits)):
            original = (0.8 * centre + 0.6 * generator.normal(size=DIMENSIONS))[None]
            noise = generator.normal(size=(1, DIMENSIONS))
            released = leak * original + np.sqrt(1 - leak**2) * noise
            pair = (original.astype(np.float32), released.astype(np.float32))
            made.append(Member(f"{first + number:06d}", str(visit), embedded={CARD: pair}))
    return made


def true_d_sys(leak: float, people: int = 200_000) -> float:
    """Of same_scan at this leak, from pairs that are independent: what endless people read. Shuffled, they read 0."""
    generator = np.random.default_rng(7)
    originals, noise = generator.normal(size=(2, people, DIMENSIONS))
    released = leak * originals + np.sqrt(1 - leak**2) * noise
    return d_sys(_cosines(originals, released), _cosines(np.roll(originals, 1, axis=0), released))


def _cosines(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)


def leak_for(wanted: float) -> float:
    """The leak at which D_sys is `wanted`."""
    return float(brentq(lambda leak: true_d_sys(leak) - wanted, 0.02, 0.9, xtol=0.001))


def table(repeats: int, result: dict[str, Any], keep: Callable[[dict[str, Any]], None]) -> None:
    rows = result.setdefault("leak_free", [])
    check = ReleaseLinkability((CARD,), LIMIT)
    for people in track(SIZES, description="leak-free bounds"):
        if any((row["people"], row["repeats"]) == (people, repeats) for row in rows):
            continue
        found = []
        for repeat in range(repeats):
            some = tuple(members(people, 0.0, np.random.default_rng([people, repeat]), visits=0.0))
            sample = ReleaseSample(some, {RELEASE: 1}, repeat, {CARD: ("cosine",)}, 400, 200)
            found.append(check.over(sample).scores[0].upper)
        row = {"people": people, "mean": np.mean(found), "sd": np.std(found, ddof=1), "repeats": repeats}
        rows[:] = sorted([*(one for one in rows if one["people"] != people), row], key=lambda one: one["people"])
        print(f"    ({people}, {row['mean']:.3f}, {row['sd']:.4f}),")
        keep(result)


def chain(leaks: list[float], seed: int) -> list[str]:
    """What became of each release: "" for cleared, else the reason. Cleared ones count from then on."""
    generator = np.random.default_rng(seed)
    before: list[Member] = []
    ends = []
    checks = (ReleaseLinkability((CARD,), LIMIT), ReleaseRank1(RANK1_LIMIT, (CARD,)))
    for number, leak in enumerate(track(leaks, description="releases")):
        now = members(PEOPLE, leak, generator, first=number * PEOPLE)
        room = 1000 - len(now)
        drawn = before if len(before) <= room else [before[i] for i in generator.permutation(len(before))[:room]]
        past = [Member(m.person, m.session, False, embedded=m.embedded) for m in drawn]
        looks = {RELEASE: 1, ALL: number + 1}
        effort = (200, 100)
        sample = ReleaseSample((*now, *past), looks, seed * 1000 + number, {CARD: ("cosine",)}, *effort)
        verdicts = [checks[0].over(sample), checks[1].judge(sample, None)]  # type: ignore[arg-type]
        failed = next((v for v in verdicts if v.outcome is not Outcome.PASS), None)
        ends.append(failed.reason if failed else "")
        if not failed:
            before += now
    return ends


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeats", type=int, default=24)
    parser.add_argument("--anew", action="store_true")
    given = parser.parse_args()
    result = json.loads(OUT.read_text()) if OUT.exists() and not given.anew and not given.quick else {}

    def keep(result: dict[str, Any]) -> None:
        if not given.quick:
            OUT.write_text(json.dumps(result, indent=1) + "\n")

    table(6 if given.quick else given.repeats, result, keep)
    at_limit, above = leak_for(LIMIT), leak_for(2 * LIMIT)
    count = 10 if given.quick else RELEASES
    kinds = {
        "leak_free": [0.0] * count,
        "at_the_limit": [at_limit] * count,
        "twice_the_limit": [above] * count,
        "every_fifth_leaks": [above if number % 5 == 4 else 0.0 for number in range(count)],
    }
    result |= {
        "limits": {"linkability": LIMIT, "rank1": RANK1_LIMIT, "confidence": 0.95},
        "people_a_release": PEOPLE,
        "leaks": {"at_the_limit": at_limit, "twice_the_limit": above},
        "synthetic": True,
    }
    chains = result.setdefault("chains", {})
    for name, leaks in kinds.items():
        if chains.get(name, {}).get("releases") == count:
            continue
        ends = list(zip(leaks, chain(leaks, 1), strict=True))
        clean = [why for leak, why in ends if not leak]
        leaking = [why for leak, why in ends if leak]
        chains[name] = {
            "releases": len(ends),
            "leak_free_cleared": clean.count("") / len(clean) if clean else None,
            "leaking_passed": leaking.count("") / len(leaking) if leaking else None,
            "reasons": sorted({why for _, why in ends if why}),
        }
        print(name, chains[name])
        keep(result)


if __name__ == "__main__":
    main()
