"""Seconds of processor, GFLOP and numbers of one film through the adjustable anonymiser by steps, and through an MAE.

    make bench NAME=adjustable_latency

Networks are untrained: what they cost does not depend on what they know. One thread; the smallest of several runs, in
turn. `mae` has the size of the re-identification network; `mae, equal` is the largest of five layers that has no more
numbers and no more GFLOP than the whole student, and what the ratio is taken to. The paper: 540 ms by diffusion against
120 to 124 for others. A film alone is mostly calls; of 16 at once, mostly arithmetic: both are told.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from bench.adjustable_baselines import Mae, random_patches
from models.id_blocking import Blocking
from models.mdl_decoupling import SMALL as CODEC
from models.mdl_decoupling import Decoupler, OwnSemantics
from models.reid_encoder import SMALL as REID
from models.reid_encoder import ReidEncoder, identity_map
from models.resynthesis import SMALL, AdjustableParts, Resynthesis, deidentified
from models.resynthesis.deidentify import left_over

RESULT = Path(__file__).parent / "results" / "adjustable_latency.json"
STEPS = (1, 2, 4, 16)
EQUAL = (252, 5)  # width and depth
TOGETHER = 16
console = Console()


def numbers(*networks: nn.Module) -> int:
    return sum(one.numel() for network in networks for one in network.parameters())


def untrained() -> AdjustableParts:
    torch.manual_seed(0)
    made = (ReidEncoder(REID), OwnSemantics(4), Decoupler(CODEC), Resynthesis(SMALL))
    reid, foundation, decoupler, picture = (one.eval().requires_grad_(requires_grad=False) for one in made)
    return AdjustableParts(reid, "own", foundation, decoupler, picture, "flow", 1)


def measured(runs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Processor seconds of each; the smallest, all in turn."""
    least = dict.fromkeys(runs, float("inf"))
    for _ in range(repeats):
        for name, run in runs.items():
            began = time.process_time()
            run()
            least[name] = min(least[name], time.process_time() - began)
    return least


def gflop(run: Callable[[], Any]) -> float:
    with FlopCounterMode(display=False) as counter:
        run()
    return round(counter.get_total_flops() / 1e9, 4)


def runs_of(parts: AdjustableParts, maes: dict[str, Mae], films: int) -> dict[str, Callable[[], Any]]:
    """Each has run once, so that nothing is made while it is timed."""
    x = torch.rand(films, 1, 64, 64)
    noise = torch.randn(films, SMALL.latent, SMALL.latent_side, SMALL.latent_side)
    hidden = random_patches(films, 0.5, torch.Generator().manual_seed(0))
    runs: dict[str, Callable[[], Any]] = {
        f"whole, {steps} step{'s' if steps > 1 else ''}": lambda steps=steps: deidentified(
            parts, x, Blocking(0.4), noise, steps=steps
        )
        for steps in STEPS
    }
    runs |= {name: torch.no_grad()(lambda mae=mae: mae(x, hidden)) for name, mae in maes.items()}
    for run in runs.values():
        run()
    return runs


def pieces(parts: AdjustableParts) -> dict[str, Callable[[], Any]]:
    """Where the time of one film and one step goes."""
    picture, x, step = (
        parts.resynthesis,
        torch.rand(1, 1, 64, 64),
        torch.tensor([parts.resynthesis.schedule.steps - 1.0]),
    )
    with torch.no_grad():
        noid, mask = left_over(x, Blocking(0.4).mask(identity_map(parts.reid, x)), SMALL.side)
        features = parts.foundation(x)
        semantics = parts.decoupler.semantics(features)
        told = picture.conditions(noid, mask, semantics)
        z = torch.randn(1, SMALL.latent, SMALL.latent_side, SMALL.latent_side)
    runs: dict[str, Callable[[], Any]] = {
        "re-identification": lambda: identity_map(parts.reid, x),
        "features": lambda: parts.foundation(x),
        "codec": lambda: parts.decoupler.semantics(features),
        "conditions": lambda: picture.conditions(noid, mask, semantics),
        "U-Net": lambda: picture.estimate(z, step, told),
        "decoder": lambda: picture.decode(z),
    }
    return {name: torch.no_grad()(run) for name, run in runs.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=8)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    parts = untrained()
    maes = {"mae": Mae().eval(), "mae, equal": Mae(*EQUAL).eval()}
    seconds = measured(runs_of(parts, maes, 1), repeats)
    many = measured(runs_of(parts, maes, TOGETHER), repeats)
    sizes = {name: numbers(mae) for name, mae in maes.items()}
    student = numbers(parts.reid, parts.foundation, parts.decoupler, parts.resynthesis)
    table = Table("run", "processor ms a film", f"of {TOGETHER} at once", "GFLOP", "numbers")
    rows = {}
    for name, run in runs_of(parts, maes, 1).items():
        rows[name] = {
            "ms": round(1000 * seconds[name], 2),
            f"ms, {TOGETHER} at once": round(1000 * many[name] / TOGETHER, 2),
            "gflop": gflop(run),
            "numbers": sizes.get(name, student),
        }
        table.add_row(name, *(str(one) for one in rows[name].values()))
    console.print(table)
    ratios = {f"one step over {name}": round(seconds["whole, 1 step"] / seconds[name], 2) for name in maes}
    ratios |= {
        f"one step over {name}, {TOGETHER} at once": round(many["whole, 1 step"] / many[name], 2) for name in maes
    }
    shares = {name: round(1000 * value, 2) for name, value in measured(pieces(parts), repeats).items()}
    told = {"runs": rows, "ms of the pieces, one step": shares, "ratios": ratios}
    RESULT.write_text(json.dumps(told, indent=1) + "\n")
    console.print(shares, ratios)


if __name__ == "__main__":
    main()
