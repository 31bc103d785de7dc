"""Re-synthesis for bench.adjustable: trained after the codec, and made with all, some or none of the semantics."""

from __future__ import annotations

import torch
from torch import Tensor

from models.id_blocking import Blocking
from models.mdl_decoupling import Decoupler, Foundation
from models.reid_encoder import ReidEncoder, identity_map
from models.resynthesis import AdjustableParts, sample
from models.resynthesis.deidentify import left_over
from models.train.reid_plan import Line
from models.train.resynthesis_stages import joint_stage, vae_stage

TOGETHER = 48


def generator_of(line: Line, reid: ReidEncoder, foundation: Foundation, decoupler: Decoupler) -> AdjustableParts:
    picture = vae_stage(line)
    joint_stage(line, reid, foundation, decoupler, picture)
    return AdjustableParts(reid, "own", foundation, decoupler, picture, "flow", line.plan.sampled)


@torch.no_grad()
def resynthesised(parts: AdjustableParts, x: Tensor, r: float, semantics: str) -> Tensor:
    """`semantics`: of Q_sem (ours), of all of Q (no decoupling), or of nothing (no semantics)."""
    config = parts.resynthesis.config
    generator = torch.Generator().manual_seed(int(1000 * r))
    made = []
    for some in torch.split(x, TOGETHER):
        noid, mask = left_over(some, Blocking(r).mask(identity_map(parts.reid, some)), config.side)
        coded = parts.decoupler.code(parts.foundation(some))
        codes = {"ours": coded.q_sem, "no decoupling": coded.q, "no semantics": torch.zeros_like(coded.q)}[semantics]
        told = parts.resynthesis.conditions(noid, mask, parts.decoupler.decode(codes))
        noise = torch.randn((len(some), config.latent, config.latent_side, config.latent_side), generator=generator)
        z = sample(parts.resynthesis, noise, told, sampler=parts.sampler, steps=parts.steps)
        made.append(parts.resynthesis.decode(z).clamp(0, 1))
    return torch.cat(made)
