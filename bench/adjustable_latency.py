"""Seconds of processor, GFLOP and numbers of one film through the adjustable anonymiser by steps, and through an MAE.

    make bench NAME=adjustable_latency

Networks are untrained: what they cost does not depend on what they know. One thread; the smallest of several runs, in
turn. `mae` has the size of the re-identification network, `mae, large` about as many numbers as the student's U-Net;
the paper: 540 ms by diffusion against 120 to 124 for others.
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
from models.reid_encoder import ReidEncoder
from models.resynthesis import SMALL, AdjustableParts, Resynthesis, deidentified

RESULT = Path(__file__).parent / "results" / "adjustable_latency.json"
STEPS = (1, 2, 4, 16)
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=8)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    parts = untrained()
    x = torch.rand(1, 1, 64, 64)
    noise = torch.randn(1, SMALL.latent, SMALL.latent_side, SMALL.latent_side)
    hidden = random_patches(1, 0.5, torch.Generator().manual_seed(0))
    maes = {"mae": Mae().eval(), "mae, large": Mae(width=224, depth=4).eval()}
    runs: dict[str, Callable[[], Any]] = {
        f"whole, {steps} step{'s' if steps > 1 else ''}": lambda steps=steps: deidentified(
            parts, x, Blocking(0.4), noise, steps=steps
        )
        for steps in STEPS
    }
    runs |= {name: torch.no_grad()(lambda mae=mae: mae(x, hidden)) for name, mae in maes.items()}
    for run in runs.values():
        run()  # once, so that nothing is made while it is timed
    seconds = measured(runs, repeats)
    sizes = {name: numbers(parts.reid, parts.foundation, parts.decoupler, parts.resynthesis) for name in runs}
    sizes |= {name: numbers(mae) for name, mae in maes.items()}
    table = Table("run", "processor ms a film", "GFLOP", "numbers")
    rows = {}
    for name, run in runs.items():
        rows[name] = {"ms": round(1000 * seconds[name], 2), "gflop": gflop(run), "numbers": sizes[name]}
        table.add_row(name, *(str(one) for one in rows[name].values()))
    console.print(table)
    one = seconds["whole, 1 step"]
    ratios = {f"one step over {name}": round(one / seconds[name], 2) for name in maes}
    unet = numbers(parts.resynthesis.unet)
    RESULT.write_text(json.dumps({"runs": rows, "numbers of the U-Net": unet, "ratios": ratios}, indent=1) + "\n")
    console.print(ratios)


if __name__ == "__main__":
    main()
