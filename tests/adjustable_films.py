"""Small films of people, and an anonymiser of a few thousand numbers, for tests of the adjustable anonymiser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

from models.cohorts import Cohort, Scan
from models.mdl_decoupling import SMALL as CODEC
from models.mdl_decoupling import Decoupler, OwnSemantics
from models.reid_encoder import SMALL as REID
from models.reid_encoder import ReidEncoder
from models.resynthesis import SMALL, AdjustableParts, Resynthesis
from models.resynthesis.networks import _vae
from models.train.reid_plan import AdjustablePlan

SIDE = 16
TINY_REID = replace(REID, side=SIDE, patch=4, width=16, depth=1, heads=2, dimensions=8, entries=2, rank=2)
TINY_CODEC = replace(CODEC, codes=4, width=8, identity=8)
TINY = replace(
    SMALL,
    side=SIDE,
    latent=4,
    vae_widths=(8, 8),
    unet_widths=(8, 16),
    heads=(2, 2),
    cross=8,
    groups=4,
    fused=8,
    fusion_heads=2,
    stride=2,
)
PLAN = AdjustablePlan(
    reid=TINY_REID,
    codec=TINY_CODEC,
    picture=TINY,
    reid_steps=4,
    semantics_steps=4,
    codec_steps=4,
    vae_steps=4,
    joint_steps=4,
    student_steps=4,
    people=4,
    batch=4,
    evaluate_every=2,
    patience=100,
    sampled=2,
    pairs=8,
    teacher_steps=2,
    density=(0.0, 1.0),
)


def parts(prediction: str = "flow") -> AdjustableParts:
    """Untrained networks, seeded."""
    torch.manual_seed(5)
    config = replace(TINY, prediction=prediction, scaling=0.5)
    sampler = "flow" if prediction == "flow" else "ddim"
    made = (ReidEncoder(TINY_REID), OwnSemantics(2), Decoupler(TINY_CODEC), Resynthesis(config))
    reid, foundation, decoupler, picture = (one.eval().requires_grad_(requires_grad=False) for one in made)
    return AdjustableParts(reid, "own", foundation, decoupler, picture, sampler, 2)


def film(person: int, visit: int) -> NDArray[np.float32]:
    """A body with a person's own bright spot; a new exposure at each visit."""
    own, taken = np.random.default_rng(person), np.random.default_rng(1000 * person + visit)
    y, x = np.mgrid[:SIDE, :SIDE] / (SIDE - 1) - 0.5
    cy, cx = own.uniform(-0.3, 0.3, 2)
    body = 0.6 * np.exp(-((y / 0.35) ** 2 + (x / 0.3) ** 2)) + 0.4 * np.exp(-((y - cy) ** 2 + (x - cx) ** 2) / 0.02)
    return np.clip(body * taken.uniform(0.8, 1.0) + 0.02 * taken.random(body.shape), 0, 1).astype(np.float32)


def cohort(people: int, visits: int = 2, *, name: str = "tiny") -> Cohort:
    """Every third person has an effusion."""
    scans = [
        Scan(
            f"{person}-{visit}",
            f"P{person:02}",
            str(visit),
            lambda person=person, visit=visit: film(person, visit),
            attributes={"finding": "Effusion|Mass" if person % 3 == 0 else "No Finding"},
        )
        for person in range(people)
        for visit in range(visits)
    ]
    return Cohort(name, tuple(scans), synthetic=True)


def stable_folder(target: Path, *, old_names: bool, latent: int = 4) -> tuple[Any, Any]:
    """A tiny Stable Diffusion in its authors' layout: U-Net of `latent` planes, autoencoder; both networks."""
    torch.manual_seed(8)
    plain = Resynthesis(replace(TINY, latent=latent))
    unet_config = {**plain.unet.config, "in_channels": latent}
    unet = type(plain.unet).from_config(unet_config)
    vae = _vae(TINY)
    for name, network in (("unet", unet), ("vae", vae)):
        state = dict(network.state_dict())
        if old_names and name == "vae":
            new = {".to_q.": ".query.", ".to_k.": ".key.", ".to_v.": ".value.", ".to_out.0.": ".proj_attn."}
            renamed = {}
            for key, one in state.items():
                for now, then in new.items():
                    key = key.replace(now, then)
                attention = any(then in key for then in new.values()) and key.endswith("weight")
                renamed[key] = one[:, :, None, None].contiguous() if attention else one
            state = renamed
        (target / name).mkdir(parents=True)
        save_file(
            {key: one.half().contiguous() for key, one in state.items()},
            target / name / "diffusion_pytorch_model.safetensors",
        )
    return unet, vae
