"""What each stage of the lesion anonymiser learns from its slices: autoencoders, diffusion, a student of few steps."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional

from models.lesion_anonymiser.generation import batches
from models.lesion_diffusion import Conditions, LatentUNet, Schedule, diffusion_loss, sample
from models.lesion_vae import LesionVae, vae_loss
from models.train.lesion_material import Material
from models.train.stages import HeldLoss, Loss

HIDDEN_SHARE = 0.15  # of a lesion's sequences that its encoder does not see: studies lack some
BLURRED_NEIGHBOUR = 0.5  # at most, spread of noise on the slice below: when sampling it is a generated one
ALONE_SHARE = 0.25  # of a batch that the decoders of one latent learn from: nothing is released through them
HELD_SEED = 20_001
ENCODED = 64


def vae_stage_loss(material: Material) -> Loss:
    """The paper's objective; at times the lesion's encoder does not get all sequences."""

    def loss(network: nn.Module, rows: Tensor, generator: torch.Generator, epoch: int) -> Tensor:
        assert isinstance(network, LesionVae)  # noqa: S101 - the stage trains it
        x, mask = _slices(material, rows, network)
        hidden = torch.rand(x.shape[:2], generator=generator) < HIDDEN_SHARE
        hidden[hidden.all(1)] = False
        alone = max(int(ALONE_SHARE * len(rows)), 1)
        return vae_loss(network, x, mask, generator, epoch=epoch, seen=(~hidden).to(x), alone=alone)["total"]

    return loss


def vae_held_loss(material: Material, rows: Tensor, last_epoch: int) -> HeldLoss:
    """The whole objective with the α_v of the end, so that figures compare, and the same noise each time."""

    def held(network: nn.Module) -> float:
        assert isinstance(network, LesionVae)  # noqa: S101 - the stage trains it
        generator = torch.Generator().manual_seed(HELD_SEED)
        found = []
        for some in batches(rows, ENCODED):
            x, mask = _slices(material, some, network)
            found.append(float(vae_loss(network, x, mask, generator, epoch=last_epoch)["total"]) * len(some))
        return sum(found) / len(rows)

    return held


@torch.no_grad()
def encoded(vae: LesionVae, material: Material) -> Tensor:
    """(n, latent, h, w) on the CPU: means of the background's posterior, not scaled."""
    out = []
    for rows in batches(torch.arange(len(material)), ENCODED):
        x, mask = _slices(material, rows, vae)
        out.append(vae.background_encoder(vae.split(x, mask)[0]).mean.float().cpu())
    return torch.cat(out)


def measure_latents(vae: LesionVae, latents: Tensor) -> None:
    """Sets mean and spread of each channel, so that diffusion sees latents of unit spread."""
    vae.latent_mean.copy_(latents.mean((0, 2, 3), keepdim=True))
    vae.latent_std.copy_(latents.std((0, 2, 3), keepdim=True).clamp(min=1e-4))


def conditions_of(material: Material, z: Tensor, rows: Tensor, where: torch.device) -> Conditions:
    """Of slices that have one below; `z` scaled latents of all."""
    return Conditions(
        material.kind[rows].to(where),
        material.mask[rows].float().to(where),
        material.depth[rows].to(where),
        z[material.below[rows]].to(where),
    )


def diffusion_stage_loss(material: Material, z: Tensor) -> Loss:
    """Paper eq. 18, with the slice below as a condition."""

    def loss(network: nn.Module, rows: Tensor, generator: torch.Generator, _epoch: int) -> Tensor:
        assert isinstance(network, LatentUNet)  # noqa: S101 - the stage trains it
        where = next(network.parameters()).device
        conditions = conditions_of(material, z, rows, where)
        below = conditions.neighbour
        if below is not None:
            spread = BLURRED_NEIGHBOUR * torch.rand((len(below), 1, 1, 1), generator=generator)
            below = below + (spread * torch.randn(below.shape, generator=generator)).to(below)
        told = replace(conditions, neighbour=below if network.config.neighbour else None)
        return diffusion_loss(network, z[rows].to(where), told, Schedule(network.config.prediction), generator)

    return loss


def diffusion_held_loss(material: Material, z: Tensor, rows: Tensor) -> HeldLoss:
    """The objective with the same steps and noise each time."""
    loss = diffusion_stage_loss(material, z)

    def held(network: nn.Module) -> float:
        generator = torch.Generator().manual_seed(HELD_SEED)
        found = [float(loss(network, some, generator, 0)) * len(some) for some in batches(rows, ENCODED)]
        return sum(found) / len(rows)

    return held


@torch.no_grad()
def teacher_pairs(
    teacher: LatentUNet, material: Material, z: Tensor, rows: Tensor, steps: int, seed: int
) -> tuple[Tensor, Tensor]:
    """(noise, what the teacher makes of it by DDIM), each (rows, latent, h, w): straight flows are learnt from them.

    Liu et al. 2022 (rectified flow): a flow that is fitted to pairs of a model is straighter, and needs few steps.
    """
    generator = torch.Generator().manual_seed(seed)
    where = next(teacher.parameters()).device
    noise = torch.randn((len(rows), *z.shape[1:]), generator=generator)
    made = []
    for some, drawn in zip(batches(rows, ENCODED), batches(noise, ENCODED), strict=True):
        conditions = conditions_of(material, z, some, where)
        if not teacher.config.neighbour:
            conditions = replace(conditions, neighbour=None)
        schedule = Schedule(teacher.config.prediction)
        sampler = "flow" if teacher.config.prediction == "flow" else "ddim"
        made.append(sample(teacher, drawn.to(where), conditions, schedule, sampler=sampler, steps=steps).float().cpu())
    return noise, torch.cat(made)


def student_loss(material: Material, z: Tensor, sources: Tensor, pairs: tuple[Tensor, Tensor]) -> Loss:
    """Mean squared error of the straight flow between noise and the teacher's latent; rows count the pairs."""
    noise, made = pairs
    schedule = Schedule("flow")

    def loss(network: nn.Module, rows: Tensor, generator: torch.Generator, _epoch: int) -> Tensor:
        assert isinstance(network, LatentUNet)  # noqa: S101 - the stage trains it
        where = next(network.parameters()).device
        conditions = conditions_of(material, z, sources[rows], where)
        if not network.config.neighbour:
            conditions = replace(conditions, neighbour=None)
        step = torch.randint(schedule.steps, (len(rows),), generator=generator)
        mixed, target = schedule.noised(made[rows], noise[rows], step)
        return functional.mse_loss(network(mixed.to(where), step.to(where), conditions), target.to(where))

    return loss


def student_held_loss(material: Material, z: Tensor, sources: Tensor, pairs: tuple[Tensor, Tensor]) -> HeldLoss:
    loss = student_loss(material, z, sources, pairs)

    def held(network: nn.Module) -> float:
        generator = torch.Generator().manual_seed(HELD_SEED)
        rows = torch.arange(len(sources))
        found = [float(loss(network, some, generator, 0)) * len(some) for some in batches(rows, ENCODED)]
        return sum(found) / len(rows)

    return held


def _slices(material: Material, rows: Tensor, network: nn.Module) -> tuple[Tensor, Tensor]:
    where = next(network.parameters()).device
    return material.x[rows].to(where).float(), material.mask[rows].to(where).float()
