"""From pure noise to a scaled latent, in few steps.

Noise is given, never drawn here: a gateway draws it from the key, anew for every picture. It is no secret alone: a
deterministic sampler can be run backwards, and noise that two pictures of a person share links them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from models.lesion_diffusion.sampling import SAMPLERS
from models.resynthesis.networks import Conditioned, Resynthesis

FITTING = ("ddim", "dpm", "flow")


@torch.no_grad()
def sample(model: Resynthesis, noise: Tensor, conditioned: Conditioned, *, sampler: str, steps: int) -> Tensor:
    """(b, latent, h, w) of standard normal noise -> scaled latents. `flow` is for networks that estimate the flow.

    Raises ValueError for a sampler that does not fit what the network estimates, or for no steps.
    """
    schedule = model.schedule
    if sampler not in FITTING or (sampler == "flow") != (schedule.prediction == "flow"):
        raise ValueError(f"a network that estimates {schedule.prediction} is not sampled by {sampler}")
    if steps < 1:
        raise ValueError("sampling takes one step or more")
    model.eval()
    made = SAMPLERS[sampler](schedule)
    if sampler == "flow":  # even steps that end at the picture; the library's own last one would be of length 1/T
        made.set_timesteps(sigmas=[1 - i / steps for i in range(steps)], device=noise.device)
    else:
        made.set_timesteps(steps, device=noise.device)
    z = noise
    for moment in made.timesteps:
        # Straight flow counts s·T from 1 to T; the network was trained on steps from 0.
        at = moment.float() - 1 if sampler == "flow" else moment.float()
        z = made.step(model.estimate(z, at.expand(len(z)), conditioned), moment, z).prev_sample
    return z
