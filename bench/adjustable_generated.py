"""Re-synthesis for bench.adjustable: trained after the codec, and made with all, some or none of the semantics."""

from __future__ import annotations

import torch
from torch import Tensor

from models.id_blocking import Blocking
from models.mdl_decoupling import Decoupler, Foundation
from models.reid_encoder import ReidEncoder
from models.resynthesis import AdjustableParts, sample
from models.resynthesis.deidentify import told_at
from models.train.reid_plan import Line
from models.train.resynthesis_stages import codebook_of, joint_stage, vae_stage

TOGETHER = 48


def generator_of(line: Line, reid: ReidEncoder, foundation: Foundation, decoupler: Decoupler) -> AdjustableParts:
    picture = vae_stage(line)
    joint_stage(line, reid, foundation, decoupler, picture)
    codebook = codebook_of(line, foundation, decoupler)
    return AdjustableParts(reid, "own", foundation, decoupler, picture, "flow", line.plan.sampled, codebook=codebook)


@torch.no_grad()
def resynthesised(parts: AdjustableParts, x: Tensor, r: float, semantics: str) -> Tensor:
    """`semantics`: of Q_sem (ours), of all of Q (no decoupling), or of nothing (no semantics). At the lowest
    levels all is blocked, and what is decoded is the nearest of few.
    """
    config = parts.resynthesis.config
    generator = torch.Generator().manual_seed(int(1000 * r))
    made = []
    for some in torch.split(x, TOGETHER):
        coded = parts.decoupler.code(parts.foundation(some))
        codes = {"ours": coded.q_sem, "no decoupling": coded.q, "no semantics": torch.zeros_like(coded.q)}[semantics]
        noid, mask, meant = told_at(parts, some, parts.decoupler.decode(codes), Blocking(r))
        told = parts.resynthesis.conditions(noid, mask, meant)
        noise = torch.randn((len(some), config.latent, config.latent_side, config.latent_side), generator=generator)
        z = sample(parts.resynthesis, noise, told, sampler=parts.sampler, steps=parts.steps)
        made.append(parts.resynthesis.decode(z).clamp(0, 1))
    return torch.cat(made)


@torch.no_grad()
def shown_at(parts: AdjustableParts, x: Tensor, r: float) -> tuple[Tensor, Tensor]:
    """(X_noID, mask) that re-synthesis hears at a level of ours."""
    noid, mask, _ = told_at(parts, x, parts.decoupler.semantics(parts.foundation(x)), Blocking(r))
    return noid, mask
