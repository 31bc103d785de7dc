"""Learning who is who by contrast: scans of one person are pulled together, those of others pushed apart.

L = Σ_i −1/|P(i)| Σ_{p∈P(i)} log( exp(z_i·z_p/τ) / Σ_{a≠i} exp(z_i·z_a/τ) )      (SupCon, Khosla et al. 2020, eq. 2)

A person with one scan is his own positive by two takes of it; P(i) is then one image, and the loss is NT-Xent (Chen et
al. 2020). Weights are averaged over the steps (EMA). A run of one seed gives one result, also when it was interrupted.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

Augment = Callable[[Tensor, torch.Generator], Tensor]
Tick = Callable[[str, int, int], None]
Forward = Callable[[nn.Module, Tensor, Tensor], Tensor]  # network, views (B, V, C, H, W), their rows (B,) -> (B, d)


@dataclass(frozen=True, slots=True)
class Plan:
    """`people` in a batch, `views` of each; `temperature` τ; `average` is the decay of the weights' average."""

    steps: int
    people: int = 48
    views: int = 3
    rate: float = 2e-3
    decay: float = 0.02
    temperature: float = 0.1
    average: float = 0.99
    seed: int = 0
    save_every: int = 100


def supcon(z_bd: Tensor, who_b: Tensor, temperature: float) -> Tensor:
    """The loss above, averaged over the batch. `z_bd` have length 1. Raises ValueError for a person without a pair."""
    same = who_b[:, None] == who_b[None, :]
    same.fill_diagonal_(fill_value=False)
    if not same.any(1).all():
        raise ValueError("everybody in a batch needs two views")
    logits = z_bd @ z_bd.T / temperature
    logits = logits.masked_fill(torch.eye(len(z_bd), dtype=torch.bool), -math.inf)
    log_share = logits - logits.logsumexp(1, keepdim=True)
    return -(log_share.masked_fill(~same, 0).sum(1) / same.sum(1)).mean()


def draw_batch(who_n: Tensor, plan: Plan, generator: torch.Generator) -> Tensor:
    """Indices (people * views,): random people, scans of each without repetition as far as they go, then again."""
    people = torch.unique(who_n)
    chosen = people[torch.randperm(len(people), generator=generator)[: plan.people]]
    rows = []
    for person in chosen:
        scans = torch.nonzero(who_n == person).flatten()
        order = scans[torch.randperm(len(scans), generator=generator)]
        rows.append(order.repeat(-(-plan.views // len(order)))[: plan.views])
    return torch.cat(rows)


def fit(
    network: nn.Module,
    planes_nvchw: Tensor,
    who_n: Tensor,
    plan: Plan,
    augment: Augment,
    tick: Tick,
    checkpoint: Path | None = None,
    *,
    forward: Forward = lambda network, views, _rows: network(views),
) -> nn.Module:
    """Trains in place and returns the averaged network in evaluation mode. With `checkpoint` it goes on from there.

    Embeddings are of length 1. Raises ValueError with fewer than two people, or for a checkpoint of another plan.
    """
    if len(torch.unique(who_n)) < 2:
        raise ValueError("contrast needs two people and more")
    generator = torch.Generator().manual_seed(plan.seed)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing in torch's stubs
    torch.manual_seed(plan.seed)  # dropout draws from it
    blend = torch.optim.swa_utils.get_ema_multi_avg_fn(plan.average)  # type: ignore[no-untyped-call]
    mean = torch.optim.swa_utils.AveragedModel(network, multi_avg_fn=blend, use_buffers=True)
    optimiser = torch.optim.AdamW(network.parameters(), lr=plan.rate, weight_decay=plan.decay)
    warm = max(1, plan.steps // 20)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda k: min((k + 1) / warm, 0.5 * (1 + math.cos(math.pi * min(k, plan.steps) / plan.steps)))
    )
    parts = {"network": network, "mean": mean, "optimiser": optimiser, "schedule": schedule}
    begin = _restored(checkpoint, parts, generator, plan) if checkpoint is not None else 0
    network.train()
    for step in range(begin, plan.steps):
        rows = draw_batch(who_n, plan, generator)
        planes = planes_nvchw[rows]
        views = augment(planes.flatten(0, 1).float(), generator).reshape(planes.shape)
        with torch.autocast("cpu", torch.bfloat16):  # three times as fast where the processor multiplies in it
            embedded = forward(network, views, rows)
        loss = supcon(embedded.float(), who_n[rows], plan.temperature)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimiser.step()
        schedule.step()
        mean.update_parameters(network)
        tick(f"loss {loss.item():.3f}", step + 1, plan.steps)
        if checkpoint is not None and ((step + 1) % plan.save_every == 0 or step + 1 == plan.steps):
            _save(checkpoint, parts, generator, plan, step + 1)
    return mean.module.eval()


def _save(path: Path, parts: dict[str, Any], generator: torch.Generator, plan: Plan, step: int) -> None:
    """Whole or not at all: an interrupted run finds the last one."""
    state: dict[str, Any] = {name: part.state_dict() for name, part in parts.items()}
    state |= {"step": step, "plan": asdict(plan), "generator": generator.get_state(), "torch": torch.get_rng_state()}
    fresh = path.with_suffix(".part")
    with open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        torch.save(state, file)  # it holds traces of people
    os.replace(fresh, path)


def _restored(path: Path, parts: dict[str, Any], generator: torch.Generator, plan: Plan) -> int:
    """The step to go on from; 0 when there is no checkpoint yet."""
    if not path.is_file():
        return 0
    state = torch.load(path, weights_only=True)
    if state["plan"] != asdict(plan):
        raise ValueError(f"{path.name} is of another plan; take another folder, or remove it to begin anew")
    for name, part in parts.items():
        part.load_state_dict(state[name])
    generator.set_state(state["generator"])
    torch.set_rng_state(state["torch"])
    return int(state["step"])
