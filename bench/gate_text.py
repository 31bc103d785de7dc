"""The gate's check `residual_text`: false alarms on clean frames, recall on planted text, time, misses of the screen.

    make bench NAME=gate_text
    python -m bench.gate_text --part plants --half development      what its settings may be improved on

Real frames of ../shared/data (`bench.gate_frames`); planted text is synthetic, in the styles of `bench.text_plants`, in
fonts and words on which nothing was tuned. The header of the original knows nothing of the planted words, so hints do
not help. Each frame is an object of its own: two passes. The screen is measured apart, on slices of volumes: the share
of plants in a later slice that it points at, and the share of clean slices that it has read for nothing.
Times are CPU seconds of one thread. Takes about half an hour; `--frames 10 --plants 1` takes three minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import beta

from bench.gate_frames import KINDS, Frame, frames, volumes, wrapped
from bench.text_plants import STYLES, plant, stretch
from bench.text_words import DEVELOPMENT, HELD_OUT
from gateway.gate import Pair
from gateway.gate.pixel_views import flat
from gateway.gate.residual_text import ResidualText
from gateway.gate.text_screen import MIN_DENSITY, density, strokes
from gateway.policy import GatePolicy, HeaderPolicy, Policy
from gateway.study import Verdict

RESULT = Path(__file__).parent / "results" / "gate_text.json"
BASES = ("radiograph", "dicom", "slice")
LEAST_FRAME = 160  # for a plant: smaller frames have no room for a line
POLICY = Policy(name="bench", header=HeaderPolicy(), gate=GatePolicy(study={"residual_text": ResidualText()}))


def judged(samples: np.ndarray, folder: Path) -> tuple[Verdict, float]:
    """The check on one frame, and its CPU seconds."""
    path = wrapped(samples, folder / "frame.dcm")
    start = time.process_time()
    verdict = ResidualText().judge([Pair("0001", path, path)], POLICY)
    return verdict, time.process_time() - start


def bounds(hits: int, of: int) -> list[float]:
    """Clopper-Pearson, 95 %, two-sided."""
    low = float(beta.ppf(0.025, hits, of - hits + 1)) if hits else 0.0
    high = float(beta.ppf(0.975, hits + 1, of - hits)) if hits < of else 1.0
    return [round(low, 4), round(high, 4)]


def clean(kind: str, most: int, folder: Path) -> dict[str, object]:
    """False alarms on frames of one kind."""
    alarms: dict[str, list[str]] = {}
    seconds, pixels = [], []
    written: list[bool] = []
    for frame in frames(kind, most):
        verdict, spent = judged(frame.samples, folder)
        if not frame.clean:
            written.append(bool(verdict.findings))
            continue
        seconds.append(spent)
        pixels.append(frame.samples.shape[0] * frame.samples.shape[1])
        if verdict.findings:
            alarms[frame.name] = [f"{one.where}: {one.rule}" for one in verdict.findings]
            print(frame.name, alarms[frame.name], file=sys.stderr, flush=True)
    return {
        "frames": len(seconds),
        "false_alarms": len(alarms),
        "alarms": alarms,
        "frames_with_own_text": [sum(written), len(written)],
        "cpu_s_per_frame_median": round(float(np.median(seconds)), 2),
        "cpu_s_per_frame_p95": round(float(np.percentile(seconds, 95)), 2),
        "megapixels_per_frame_median": round(float(np.median(pixels)) / 1e6, 3),
    }


def alarm_share(kinds: dict[str, dict[str, int]]) -> dict[str, object]:
    """Over all kinds of frames that were judged."""
    alarms, total = (sum(kind[name] for kind in kinds.values()) for name in ("false_alarms", "frames"))
    return {
        "frames": total,
        "false_alarm_share": round(alarms / total, 4),
        "false_alarm_bounds": bounds(alarms, total),
    }


def plants(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Recall, by style: a plant counts as found when a finding's box meets it."""
    random = Random(options.seed)
    bases = [frame for kind in BASES for frame in frames(kind, 24) if min(frame.samples.shape[:2]) >= LEAST_FRAME]
    found: defaultdict[str, list[bool]] = defaultdict(list)
    for style in STYLES:
        while len(found[style.name]) < options.plants:
            base: Frame = random.choice(bases)
            top = float(np.iinfo(base.samples.dtype).max)
            samples = base.samples.astype(np.float64)
            samples = np.asarray(stretch(samples, random, top) if style.wide else samples, np.float64)
            one = plant(samples, style, options.half, random, [])
            if one is None or (style.colour and samples.ndim != 3):
                if style.colour and not any(each.samples.ndim == 3 for each in bases):
                    break
                continue
            verdict, _ = judged(samples.clip(0, top).astype(base.samples.dtype), folder)
            hit = any(_meets(where.where, (one.top, one.bottom, one.left, one.right)) for where in verdict.findings)
            found[style.name].append(hit)
            if not hit:
                print("missed", style.name, base.name, file=sys.stderr, flush=True)
    every = [hit for hits in found.values() for hit in hits]
    return {
        "half": options.half,
        "plants": len(every),
        "recall": round(float(np.mean(every)), 4),
        "recall_bounds": bounds(sum(every), len(every)),
        "by_style": {style: [sum(hits), len(hits)] for style, hits in found.items()},
    }


def _meets(where: str, box: tuple[int, int, int, int]) -> bool:
    words = where.split()
    if "rows" not in words:
        return False
    top, bottom = map(int, words[words.index("rows") + 1].split("-"))
    left, right = map(int, words[words.index("columns") + 1].split("-"))
    return top < box[1] and bottom > box[0] and left < box[3] and right > box[2]


def screen(options: argparse.Namespace, _folder: Path) -> dict[str, object]:
    """What the screen misses of plants in slices that are not the first, and what it has read for nothing."""
    random = Random(options.seed)
    quiet: list[float] = []
    planted: list[float] = []
    spent: list[float] = []
    for _, volume in volumes():
        enlarge = 2 if min(volume.shape[1:]) < 200 else 1
        slices = [np.kron(one, np.ones((enlarge, enlarge))) for one in volume[len(volume) // 6 : len(volume) * 5 // 6]]
        before = None
        for index, one in enumerate(slices):
            start = time.process_time()
            now = strokes(flat(one.astype(np.float32)))
            if before is not None:
                quiet.append(float(density(now, before).max()))
                spent.append(time.process_time() - start)
                for style in random.sample(STYLES, 2) if index % 4 == 0 else ():
                    samples = one.astype(np.float64)
                    done = plant(samples, style, options.half, random, [])
                    if done is not None:
                        there = density(strokes(flat(samples.astype(np.float32))), before)
                        planted.append(float(there[done.top : done.bottom, done.left : done.right].max()))
            before = now
    hits = sum(one >= MIN_DENSITY for one in planted)
    return {
        "half": options.half,
        "plants": len(planted),
        "missed_share": round(1 - hits / len(planted), 4),
        "missed_bounds": [round(1 - one, 4) for one in bounds(hits, len(planted))[::-1]],
        "clean_slices": len(quiet),
        "clean_slices_read_share": round(float(np.mean([one >= MIN_DENSITY for one in quiet])), 4),
        "cpu_ms_per_slice_median": round(1000 * float(np.median(spent)), 2),
    }


PARTS: dict[str, Callable[[argparse.Namespace, Path], dict[str, object]]] = {"plants": plants, "screen": screen}


def _parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["clean", *PARTS, "all"], default="all")
    parser.add_argument("--half", choices=[DEVELOPMENT, HELD_OUT], default=HELD_OUT)
    parser.add_argument("--kind", choices=[*KINDS, "all"], default="all", help="of clean frames")
    parser.add_argument("--frames", type=int, default=160, help="clean ones of each kind, at most")
    parser.add_argument("--plants", type=int, default=8, help="of each style")
    parser.add_argument("--seed", type=int, default=20260)
    return parser.parse_args()


def _rows(result: dict[str, dict[str, object]]) -> Iterator[tuple[str, str]]:
    for part, figures in result.items():
        for name, value in figures.items():
            yield (
                f"{part} {name}",
                str({key: one for key, one in value.items() if key != "alarms"} if isinstance(value, dict) else value),
            )


def _saved(part: str, figures: dict[str, object]) -> dict[str, dict[str, object]]:
    """The result file with these figures in it; clean frames by kind, with the share over all of them."""
    result = json.loads(RESULT.read_text()) if RESULT.is_file() else {}
    if part == "clean":
        kinds = {**result.get("clean", {}).get("kinds", {}), **figures}
        figures = {"kinds": kinds, **alarm_share(kinds)}
    result[part] = {**figures, "command": " ".join(["python -m bench.gate_text", *sys.argv[1:]])}
    RESULT.write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")
    return result


def main() -> None:
    os.environ["OMP_THREAD_LIMIT"] = "1"
    options = _parsed()
    result: dict[str, dict[str, object]] = {}
    for part in ["clean", *PARTS] if options.part == "all" else [options.part]:
        with tempfile.TemporaryDirectory() as folder:
            if part != "clean":
                result = _saved(part, PARTS[part](options, Path(folder)))
                continue
            for kind in KINDS if options.kind == "all" else [options.kind]:
                result = _saved(part, {kind: clean(kind, options.frames, Path(folder))})
    table = Table("figure", "value")
    for row in _rows(result):
        table.add_row(*row)
    Console().print(table)


if __name__ == "__main__":
    main()
