"""The two stages of re-synthesis: the autoencoder, then codec and diffusion jointly, at every level r."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from models.id_blocking import Blocking
from models.mdl_decoupling import Codebook, Decoupler, Foundation, decoupling_losses, evidence
from models.mdl_decoupling.objectives import KEEP
from models.reid_encoder import ReidEncoder, identity_map
from models.resynthesis import Resynthesis, diffusion_loss, load_stable_diffusion, vae_loss
from models.resynthesis.deidentify import left_over
from models.train.reid_material import Material
from models.train.reid_plan import HELD_SEED, Line, some
from models.train.stages import HeldLoss, Loss

HELD_ROWS = 128
TOGETHER = 64
CELLS = (1, 2)  # outlines that a card may be used with


class Joint(nn.Module):
    """What is trained together; the autoencoder inside stands still."""

    def __init__(self, decoupler: Decoupler, resynthesis: Resynthesis) -> None:
        super().__init__()
        self.decoupler, self.resynthesis = decoupler, resynthesis
        resynthesis.vae.requires_grad_(requires_grad=False)


def vae_stage(line: Line) -> Resynthesis:
    """The network with a trained autoencoder and measured latents; all else is fresh, but for what files give."""
    line.fresh(4)
    network = Resynthesis(line.plan.picture)
    if line.plan.stable_diffusion is not None:
        load_stable_diffusion(network, line.plan.stable_diffusion)
    network.to(line.where)
    held_rows = some(torch.arange(len(line.held)), HELD_ROWS)
    plan = line.plan
    rows = torch.arange(len(line.fitted))
    held = repeated(_vae_loss(line.held), held_rows)
    line.run("vae", network, plan.vae_steps, rows, plan.batch, _vae_loss(line.fitted), held)
    if not plan.picture.scaling:  # else the U-Net knows latents of that scale
        network.measure(posterior_means(network, line.fitted, line.where))
    return network


def _vae_loss(material: Material) -> Loss:
    def loss(network: nn.Module, rows: Tensor, generator: torch.Generator, _epoch: int) -> Tensor:
        assert isinstance(network, Resynthesis)  # noqa: S101 - the stage trains it
        return vae_loss(network, material.pictures(rows, next(network.parameters()).device), generator)

    return loss


@torch.no_grad()
def posterior_means(network: Resynthesis, material: Material, where: torch.device) -> Tensor:
    """(n, latent, h, w), not scaled."""
    rows = torch.split(torch.arange(len(material)), TOGETHER)
    return torch.cat([network.posterior(material.pictures(one, where)).mean.float() for one in rows])


@torch.no_grad()
def similarity_maps(reid: ReidEncoder, material: Material, where: torch.device) -> Tensor:
    """(n, grid, grid)."""
    rows = torch.split(torch.arange(len(material)), TOGETHER)
    return torch.cat([identity_map(reid, material.pictures(one, where)) for one in rows])


def masks_at(maps: Tensor, r: Tensor, cells: Tensor) -> Tensor:
    """(n, grid, grid): each map at a level and an outline of its own."""
    made = [
        Blocking(float(level), cell=CELLS[int(cell)]).mask(one[None])
        for one, level, cell in zip(maps, r, cells, strict=True)
    ]
    return torch.cat(made)


def joint_stage(
    line: Line, reid: ReidEncoder, foundation: Foundation, decoupler: Decoupler, picture: Resynthesis
) -> None:
    """L_code-all + L_code-id + L_diffuse, trained in place."""
    network = Joint(decoupler, picture).to(line.where)
    plan = line.plan
    settled = replace(line, plan=replace(plan, confuse=0.0))  # as in the codec's own stage
    held = repeated(joint_loss(settled, line.held, reid, foundation), some(torch.arange(len(line.held)), HELD_ROWS))
    loss = joint_loss(line, line.fitted, reid, foundation)
    line.run("joint", network, plan.joint_steps, torch.arange(len(line.fitted)), plan.people, loss, held)
    decoupler.requires_grad_(requires_grad=False)
    picture.eval()


@torch.no_grad()
def codebook_of(line: Line, foundation: Foundation, decoupler: Decoupler) -> Codebook:
    """Prototypes of the semantics of everybody that is trained on, by the codec as it is released."""
    rows = torch.split(torch.arange(len(line.fitted)), TOGETHER)
    pieces = [decoupler.semantics(foundation(line.fitted.pictures(one, line.where))).float() for one in rows]
    seen = [evidence(decoupler.features_of(one), foundation.findings_of) for one in pieces]
    return Codebook.fitted(torch.cat(pieces), torch.cat(seen), line.fitted.who, line.seed)


def joint_loss(line: Line, material: Material, reid: ReidEncoder, foundation: Foundation) -> Loss:
    """Each picture and a mate, each at a level of its own. The codec's terms are over λ: all are of one size."""
    maps = similarity_maps(reid, material, line.where)
    low, high = line.plan.levels

    def loss(network: nn.Module, rows: Tensor, generator: torch.Generator, _epoch: int) -> Tensor:
        assert isinstance(network, Joint)  # noqa: S101 - the stage trains it
        chosen = material.with_mates(rows, generator)
        x = material.pictures(chosen, line.where)
        who = material.who[chosen].to(line.where)
        terms, coded = decoupling_losses(
            network.decoupler,
            foundation(x),
            who,
            0.1,
            generator,
            confuse=line.plan.confuse,
            price=line.plan.price,
            useful=line.plan.useful,
            reads=foundation.findings_of,
        )
        r = low + (high - low) * torch.rand(len(chosen), generator=generator)
        cells = torch.randint(len(CELLS), (len(chosen),), generator=generator)
        noid, mask = left_over(x, masks_at(maps[chosen.to(maps.device)], r, cells), line.plan.picture.side)
        conditioned = network.resynthesis.conditions(noid, mask, network.decoupler.decode(coded.q_sem))
        with torch.no_grad():
            z = network.resynthesis.encode(x)
        diffuse = diffusion_loss(network.resynthesis, z, conditioned, generator)
        return (terms["code-all"] + terms["code-id"]) / KEEP + diffuse

    return loss


def repeated(loss: Loss, rows: Tensor) -> HeldLoss:
    """The loss with the same draws each time."""

    def held(network: nn.Module) -> float:
        generator = torch.Generator().manual_seed(HELD_SEED)
        parts = torch.split(rows, TOGETHER)
        return sum(float(loss(network, one, generator, 0)) * len(one) for one in parts) / len(rows)

    return held
