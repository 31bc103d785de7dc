"""Does the release gate clear what leaks nothing, and hold what leaks? Chains of 50 releases, and the table of bounds.

    make bench NAME=gate_release            about a quarter of an hour on one core; --quick for a look

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
import time
from pathlib import Path

import numpy as np
from rich.progress import track
from scipy.optimize import brentq

from gateway.gate.release_linkability import ReleaseLinkability
from gateway.gate.release_rank1 import ReleaseRank1
from gateway.gate.release_sample import ALL, RELEASE, Member, ReleaseSample
from gateway.study import Outcome

OUT = Path(__file__).parent / "results" / "gate_release.json"
DIMENSIONS = 24
CARD = "synthetic"
LIMIT, RANK1_LIMIT = 0.10, 0.10
RELEASES, PEOPLE = 50, 250
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


def true_excess(leak: float, people: int = 800) -> float:
    """D_sys of same_scan at this leak, over its null's mean, from many people."""
    from gateway.evidence import linkability

    sample = score_of(members(people, leak, np.random.default_rng(7), visits=0.0))
    pairs = sample.pairs("same_scan", np.random.default_rng(1))
    found = linkability(pairs, np.random.default_rng(2), replicates=1, permutations=40)
    return found.value - found.null_mean


def score_of(some):
    from gateway.gate.release_sample import score

    return score(some, CARD, "cosine")


def leak_for(excess: float) -> float:
    return float(brentq(lambda leak: true_excess(leak) - excess, 0.02, 0.9, xtol=0.01))


def table(repeats: int) -> list[dict[str, float]]:
    rows = []
    check = ReleaseLinkability((CARD,), LIMIT)
    for people in track(SIZES, description="leak-free bounds"):
        found = []
        for repeat in range(repeats):
            some = tuple(members(people, 0.0, np.random.default_rng([people, repeat]), visits=0.0))
            sample = ReleaseSample(some, {RELEASE: 1}, repeat, {CARD: ("cosine",)}, 400, 200)
            found.append(check.over(sample).scores[0].upper)
        rows.append({"people": people, "mean": float(np.mean(found)), "sd": float(np.std(found, ddof=1))})
        print(f"    ({people}, {rows[-1]['mean']:.3f}, {rows[-1]['sd']:.4f}),")
    return rows


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
    parser.add_argument("--chains", type=int, default=1)
    parser.add_argument("--chains-only", action="store_true")
    given = parser.parse_args()
    began = time.perf_counter()
    result = json.loads(OUT.read_text()) if OUT.exists() else {}
    if not given.chains_only:
        result["leak_free"] = table(6 if given.quick else given.repeats)
    OUT.write_text(json.dumps(result, indent=1))
    at_limit, above = leak_for(LIMIT), leak_for(2 * LIMIT)
    count = 10 if given.quick else RELEASES
    kinds = {
        "leak_free": [0.0] * count,
        "at_the_limit": [at_limit] * count,
        "twice_the_limit": [above] * count,
        "every_fifth_leaks": [above if number % 5 == 4 else 0.0 for number in range(count)],
    }
    chains = {}
    for name, leaks in kinds.items():
        ends = [end for seed in range(given.chains) for end in zip(leaks, chain(leaks, seed + 1), strict=True)]
        clean = [why for leak, why in ends if not leak]
        leaking = [why for leak, why in ends if leak]
        chains[name] = {
            "releases": len(ends),
            "leak_free_cleared": clean.count("") / len(clean) if clean else None,
            "leaking_passed": leaking.count("") / len(leaking) if leaking else None,
            "reasons": sorted({why for _, why in ends if why}),
        }
        print(name, chains[name])
        result |= {
            "chains": chains,
            "limits": {"linkability": LIMIT, "rank1": RANK1_LIMIT, "confidence": 0.95},
            "people_a_release": PEOPLE,
            "leaks": {"at_the_limit": at_limit, "twice_the_limit": above},
            "synthetic": True,
        }
        OUT.write_text(json.dumps(result, indent=1))
    result["seconds"] = round(time.perf_counter() - began)
    OUT.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
