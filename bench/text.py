"""Text planted into real frames, removed by `burned_in_text`, and judged by an answer key, style by style.

    make bench NAME=text
    python -m bench.text --half development --count 200        what the stage may be improved on
    python -m bench.text --minutes 40 --no-peers               as far as it comes

At least `--count` identities of synthetic people, in sixteen looks on single frames and two in cines, and every clean
frame that the half has (`bench.text_clean`), cleaned under the stage's defaults without a hint in the header. A plant
is removed when 98 % of its ink is covered; a frame that is held counts as not removed, and as safe. Bounds are
Clopper-Pearson, one-sided, 95 %, by plants and by frames.
Fonts, words and frames are others than those the stage was improved on, and the two halves share no person: the
held-out frames were looked at only to mark the text that they had. Once misses of a held-out half are looked at, it
becomes part of the development half, and a new one is made.

Needs ../shared/data and fonts: `pip install -e '.[bench]'`, and those of Debian that bench/text_fonts.py names. Items
done are kept in the cache folder under the digest of the stage's code, so that a run that was stopped goes on. An item
takes two to five CPU seconds.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from math import inf
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from scipy.stats import beta

from bench.deid_peers.environments import CACHE
from bench.text_clean import clean_frames
from bench.text_frames import listed
from bench.text_items import CLEAN, PLANTS_EACH, REMOVED, STYLE_NAMES, Outcome, judge_item
from bench.text_peers import peers
from bench.text_words import DEVELOPMENT, HELD_OUT

ROOT = Path(__file__).resolve().parents[1]
RESULT = Path(__file__).parent / "results" / "text.json"
CONFIDENCE = 0.95
CLEAN_EACH = 2  # clean items after each item with plants, as long as there are any
MAX_ITEMS = 4  # times what would be needed if every plant found room


def lower(hits: int, of: int) -> float:
    """Clopper-Pearson lower bound."""
    return float(beta.ppf(1 - CONFIDENCE, hits, of - hits + 1)) if hits else 0.0


def upper(hits: int, of: int) -> float:
    """Clopper-Pearson upper bound."""
    return float(beta.ppf(CONFIDENCE, hits + 1, of - hits)) if hits < of else 1.0


def code_digest() -> str:
    """Of everything that an outcome follows from."""
    digest = hashlib.sha256()
    stage = sorted((ROOT / "gateway" / "pixels").glob("text_*.py"))
    stage += [ROOT / "gateway" / "pixels" / f"{name}.py" for name in ("burned_in_text", "regions")]
    items = (path for path in sorted(Path(__file__).parent.glob("text_*")) if path.stem != "text_peers")
    for path in [*stage, *items]:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def known_outcomes(path: Path) -> dict[tuple[int, str], Outcome]:
    """What an earlier run left. A line that was cut off is done again."""
    found = {}
    for line in path.read_text("utf-8").splitlines() if path.is_file() else ():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        outcome = Outcome(**{**entry, "coverage": tuple(entry["coverage"]), "words_px": tuple(entry["words_px"])})
        found[outcome.number, outcome.style] = outcome
    return found


def items(clean: int) -> Iterator[tuple[int, str]]:
    """Numbers and styles in turn, with clean frames between them until there were so many."""
    number = 0
    while True:
        yield number, STYLE_NAMES[number % len(STYLE_NAMES)]
        for at in range(CLEAN_EACH * number, min(clean, CLEAN_EACH * (number + 1))):
            yield at, CLEAN
        number += 1


def measure(half: str, count: int, seed: int, jobs: int, console: Console, until: float = inf) -> list[Outcome]:
    """Outcomes of as many items as hold `count` identities, or as are done at `until` (of `time.monotonic`)."""
    CACHE.mkdir(parents=True, exist_ok=True)
    store = CACHE / f"text-{half}-{seed}-{code_digest()}.jsonl"
    known = known_outcomes(store)
    done: list[Outcome] = []
    planted = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        Progress(*columns, TimeRemainingColumn(), console=console) as bar,
        ProcessPoolExecutor(jobs) as pool,
        open(store, "a", encoding="utf-8") as log,
    ):
        task = bar.add_task("identities", total=count)
        upcoming = items(len(clean_frames(half)))
        waiting = {}
        while planted < count or waiting:
            while planted < count and len(waiting) < jobs and len(done) < MAX_ITEMS * count:
                item = next(upcoming)
                if item not in known and time.monotonic() > until:
                    count = 0  # what is under way still counts
                    break
                if item in known:
                    done.append(known[item])
                    planted += len(known[item].coverage)
                    bar.update(task, completed=planted)
                    continue
                waiting[pool.submit(judge_item, *item, half, seed)] = item
            if not waiting:
                break
            future = next(as_completed(waiting))
            del waiting[future]
            outcome = future.result()
            log.write(json.dumps(outcome.as_json()) + "\n")
            log.flush()
            done.append(outcome)
            planted += len(outcome.coverage)
            bar.update(task, completed=planted)
    return done


def figures(outcomes: Sequence[Outcome]) -> dict[str, object]:
    """Counts, shares and bounds of some items."""
    plants = [(one.held, share) for one in outcomes for share in one.coverage]
    removed = sum(not held and share >= REMOVED for held, share in plants)
    safe = sum(held or share >= REMOVED for held, share in plants)
    held = sum(one.held for one in outcomes)
    picture, touched = (sum(getattr(one, name) for one in outcomes) for name in ("picture_pixels", "touched_pixels"))
    return {
        "frames": len(outcomes),
        "identities": len(plants),
        "removed": round(removed / len(plants), 5) if plants else None,
        "removed_lower_bound": round(lower(removed, len(plants)), 5) if plants else None,
        "removed_or_held": round(safe / len(plants), 5) if plants else None,
        "removed_or_held_lower_bound": round(lower(safe, len(plants)), 5) if plants else None,
        "hold_rate": round(held / len(outcomes), 5),
        "hold_rate_upper_bound": round(upper(held, len(outcomes)), 5),
        "untouched_share": round(1 - touched / picture, 6),
        "exact": all(one.exact for one in outcomes),
        "most_passes": max(one.passes for one in outcomes),
    }


def summary(outcomes: Sequence[Outcome]) -> dict[str, object]:
    by_style: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        by_style[one.style].append(one)
    planted = [one for one in outcomes if one.style != CLEAN]
    clean = by_style[CLEAN]
    known = [one for one in clean if one.file in listed()]
    every = figures(planted)
    return {
        "recall_identities": every["removed_or_held"],
        "recall_identities_lower_bound": every["removed_or_held_lower_bound"],
        "removed": every["removed"],
        "removed_lower_bound": every["removed_lower_bound"],
        "untouched_share": every["untouched_share"],
        "untouched_share_clean": figures(known)["untouched_share"] if known else None,
        "hold_rate": every["hold_rate"],
        "hold_rate_clean": figures(clean)["hold_rate"] if clean else None,
        "hold_rate_clean_upper_bound": figures(clean)["hold_rate_upper_bound"] if clean else None,
        "identities": every["identities"],
        "frames": len(outcomes),
        "clean_frames": len(clean),
        "per_style": {name: figures(by_style[name]) for name in STYLE_NAMES if by_style[name]},
    }


def show(result: dict[str, object], console: Console) -> None:
    table = Table(title="burned-in text", caption="bounds: Clopper-Pearson, one-sided, 95 %")
    for column in ("style", "identities", "removed", "at least", "removed or held", "held frames", "untouched"):
        table.add_column(column, justify="left" if column == "style" else "right")
    styles = dict(result["per_style"])  # type: ignore[call-overload]
    for name, row in styles.items():
        table.add_row(
            name,
            *(str(row[key]) for key in ("identities", "removed", "removed_lower_bound", "removed_or_held")),
            str(row["hold_rate"]),
            str(row["untouched_share"]),
        )
    console.print(table)
    for key, value in result.items():
        if key not in ("per_style", "peers"):
            console.print(f"{key}: {value}")


def misses(outcomes: Sequence[Outcome]) -> list[dict[str, object]]:
    """Every plant that came through, for reading: no words."""
    return [
        {"number": one.number, "style": one.style, "file": one.file, "form": one.form, "px": px, "coverage": share}
        for one in outcomes
        if not one.held
        for px, share in zip(one.words_px, one.coverage, strict=True)
        if share < REMOVED
    ]


def _known_peers() -> object:
    return json.loads(RESULT.read_text("utf-8")).get("peers", {}) if RESULT.is_file() else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=(DEVELOPMENT, HELD_OUT), default=HELD_OUT)
    parser.add_argument("--count", type=int, default=2000, help="identities at least")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--minutes", type=float, default=inf, help="stop after so many, with what is done")
    parser.add_argument("--no-peers", action="store_true", help="keep the figures that the result file has of them")
    options = parser.parse_args()
    console = Console()
    until = time.monotonic() + 60 * options.minutes
    outcomes = measure(options.half, options.count, options.seed, options.jobs, console, until)
    result = summary(outcomes)
    result["misses"] = misses(outcomes)
    result["peers"] = _known_peers() if options.no_peers else peers(options.half, options.seed, console)
    show(result, console)
    if options.half == HELD_OUT:
        count = min(options.count, int(str(result["identities"])))  # as far as it came
        command = f"python -m bench.text --half {options.half} --count {count} --seed {options.seed}"
        head = {"command": command, "machine": platform.machine(), "plants_each": PLANTS_EACH}
        RESULT.write_text(json.dumps(head | result, indent=2) + "\n")
        console.print(f"written to {RESULT}")


if __name__ == "__main__":
    main()
