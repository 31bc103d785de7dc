"""One stage of training: Adam, an average of the weights, early stop on held-out loss, checkpoints.

A run that was killed goes on from its checkpoint and ends at the same weights. On a GPU it computes in bfloat16, and
on a CPU where the stage says so: processors with AMX do it four times as fast, others are slower.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from models.train.privacy import PatientSteps
from models.train.trained import Tick

Loss = Callable[[nn.Module, Tensor, torch.Generator, int], Tensor]  # network, rows (b,), generator, epoch
HeldLoss = Callable[[nn.Module], float]


@dataclass(frozen=True, slots=True)
class Stage:
    """`rows` (n,) are those to draw batches of; `held_loss` judges the averaged network on people held out.

    `patience`: evaluations without a better held-out loss before it stops. `average` is the decay of the weights' mean.
    `private`: gradients under differential privacy, of people in place of batches.
    """

    name: str
    steps: int
    rows: Tensor
    loss: Loss
    held_loss: HeldLoss
    batch: int
    rate: float
    average: float
    evaluate_every: int
    patience: int
    seed: int
    private: PatientSteps | None = None
    bfloat16: bool = False

    def fingerprint(self) -> str:
        """Of what must be the same for a run to go on."""
        plan = (self.name, self.steps, len(self.rows), self.batch, self.rate, self.average, self.evaluate_every)
        private = () if self.private is None else (self.private.mechanism.fingerprint(),)
        precision = ("bfloat16",) if self.bfloat16 else ()
        return repr((*plan, self.patience, self.seed, *precision, *private))


def device() -> torch.device:
    """The first GPU where there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def run_stage(network: nn.Module, stage: Stage, checkpoint: Path | None, tick: Tick) -> float:
    """Trains in place and leaves the best averaged weights in `network`, in evaluation mode; the held-out loss of them.

    Epochs count from 0, a pass over as many slices as `rows`. Raises ValueError for a checkpoint of another plan.
    """
    path = checkpoint.with_name(f"{checkpoint.name}.{stage.name}") if checkpoint is not None else None
    generator = torch.Generator().manual_seed(stage.seed)
    blend = torch.optim.swa_utils.get_ema_multi_avg_fn(stage.average)  # type: ignore[no-untyped-call]
    mean = torch.optim.swa_utils.AveragedModel(network, multi_avg_fn=blend, use_buffers=True)
    adam = torch.optim.Adam(network.parameters(), stage.rate, foreach=True)
    run = _Run({"network": network, "mean": mean, "adam": adam}, generator, copy.deepcopy(network.state_dict()))
    if path is not None and path.is_file():
        run.restore(path, stage)
    while run.step < stage.steps and not run.stopped:
        network.train()
        adam.zero_grad(set_to_none=True)
        shown = _gradients(network, stage, generator, run.step)
        adam.step()
        mean.update_parameters(network)
        run.step += 1
        tick(f"{stage.name}: {shown}", run.step, stage.steps)
        if run.step % stage.evaluate_every == 0 or run.step == stage.steps:
            run.evaluate(stage)
            if path is not None:
                run.save(path, stage)
    network.load_state_dict(run.best)
    network.eval()
    return run.best_loss


def _gradients(network: nn.Module, stage: Stage, generator: torch.Generator, step: int) -> str:
    """Sets them; what may be said of the loss. Under privacy nothing: a log of it would give people away."""
    kind = next(network.parameters()).device.type

    def loss(rows: Tensor, drawn: torch.Generator, epoch: int) -> Tensor:
        with torch.autocast(kind, torch.bfloat16, enabled=kind == "cuda" or stage.bfloat16):
            return stage.loss(network, rows, drawn, epoch)

    if stage.private is not None:
        stage.private.gradients(network, step, loss)
        return "private"
    chosen = torch.randint(len(stage.rows), (stage.batch,), generator=generator)
    found = loss(stage.rows[chosen], generator, step * stage.batch // len(stage.rows))
    found.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(network.parameters(), 5.0)
    return f"loss {found.item():.4f}"


class _Run:
    """What a checkpoint holds."""

    def __init__(self, parts: dict[str, Any], generator: torch.Generator, best: dict[str, Tensor]) -> None:
        self.parts, self.generator, self.best = parts, generator, best
        self.step, self.worse, self.best_loss, self.stopped = 0, 0, float("inf"), False

    def evaluate(self, stage: Stage) -> None:
        averaged = self.parts["mean"].module
        averaged.eval()
        with torch.no_grad():
            loss = stage.held_loss(averaged)
        if loss < self.best_loss:
            self.best, self.best_loss, self.worse = copy.deepcopy(averaged.state_dict()), loss, 0
        else:
            self.worse += 1
            self.stopped = self.worse >= stage.patience

    def save(self, path: Path, stage: Stage) -> None:
        """Whole or not at all."""
        state: dict[str, Any] = {name: part.state_dict() for name, part in self.parts.items()}
        own: dict[str, Any] = {
            "step": self.step,
            "worse": self.worse,
            "best_loss": self.best_loss,
            "stopped": self.stopped,
        }
        if stage.private is not None:
            own["privacy"] = stage.private.mechanism.state()
        state |= own | {"best": self.best, "generator": self.generator.get_state(), "plan": stage.fingerprint()}
        fresh = path.with_name(f"{path.name}.part")
        torch.save(state, fresh)
        os.replace(fresh, path)

    def restore(self, path: Path, stage: Stage) -> None:
        state = torch.load(path, weights_only=True)
        if state["plan"] != stage.fingerprint():
            raise ValueError(f"{path.name} is of another plan; take another folder, or remove it to begin anew")
        for name, part in self.parts.items():
            part.load_state_dict(state[name])
        self.generator.set_state(state["generator"])
        self.best, self.best_loss = state["best"], float(state["best_loss"])
        if stage.private is not None:
            stage.private.mechanism.restore(state["privacy"])
        self.step, self.worse, self.stopped = int(state["step"]), int(state["worse"]), bool(state["stopped"])
