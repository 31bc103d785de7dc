"""Does the code without its identity part still name people? Real films (NIH ChestX-ray14, 64 pixels), new people.

    make bench NAME=adjustable_partition
    nice -n 19 python -m bench.adjustable_partition --data ../shared/data --steps 120

Our semantic network and two codecs are trained on the people of chest-audit-1's list: `literal`, the paper's objective,
and `opponent`, with a network that reads identity from Q_sem while it is trained, and cheaper bits of the mask. A fresh
linear attacker (whitening, fitted on those people) then works on features, Q, Q_id, Q_sem and the decoded Q_sem of 86
others: rank-1 by another visit among 30 people, chance 1/30. Findings are read by a logistic regression on the decoded
Q_sem.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress

from bench.adjustable import RESULTS
from bench.adjustable_films import A_PERSON, few_each
from bench.adjustable_measures import partition, readable
from bench.adjustable_methods import plan_of
from bench.encoders import DATA, split
from models.cohorts import READERS
from models.mdl_decoupling import degenerate, measured_shares
from models.train.decoupling import codec_stage, features_of, semantics_stage
from models.train.reid_material import gathered
from models.train.reid_plan import Line
from models.train.trained import Options

WEIGHTS = {"opponent": {}, "literal": {"confuse": 0.0, "price": 1.0, "useful": 0.0}}  # instead of the plan's own
console = Console()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--steps", type=int, default=2000, help="of every stage")
    parser.add_argument("--keep", type=Path, default=Path("/tmp/adjustable-bench"), help="checkpoints")
    parser.add_argument("--anew", action="store_true", help="do every part again")
    given = parser.parse_args()
    torch.set_num_threads(1)
    keep = given.keep / str(given.steps)
    keep.mkdir(parents=True, exist_ok=True)
    with Progress(console=console) as progress:
        task = progress.add_task("reading")

        def tick(what: str, done: int, total: int) -> None:
            progress.update(task, description=what, completed=done, total=total)

        ours, others = split("chest-audit-1", READERS["nih64"](given.data / "cxr"))
        line = Line.of(plan_of(given.steps), [ours], Options(checkpoint=keep / "bench.checkpoint"), tick)
        foundation = semantics_stage(line)
        known = gathered([ours], line.fitted.names, line.plan.picture.side, tick)
        judged = gathered([others], line.fitted.names, line.plan.picture.side, tick)
        path = RESULTS / "adjustable_partition.json"
        plain = {"steps": given.steps, "judged people": len(judged.people), "films": len(judged)}
        result: dict[str, Any] = json.loads(path.read_text()) if path.is_file() and not given.anew else plain
        if result["steps"] != given.steps:
            result = plain
        for name, weights in WEIGHTS.items():
            if name in result:
                continue
            decoupler = codec_stage(replace(line, plan=replace(line.plan, **weights)), foundation)
            shares = measured_shares(decoupler, features_of(foundation, judged, line.where))
            found = partition(foundation, decoupler, few_each(known, A_PERSON), judged)
            result[name] = {
                **{key: round(value, 3) for key, value in asdict(shares).items()},
                "would not ship": degenerate(shares),
                "rank1": {part: {key: one[key] for key in ("rank1", "upper")} for part, one in found.items()},
                "findings": readable(foundation, decoupler, known, judged),
            }
            path.write_text(json.dumps(result, indent=1) + "\n")
    console.print(result)


if __name__ == "__main__":
    main()
