"""From noise to a background latent: DDIM, ancestral (DDIM with η = 1), DPM-Solver++ and straight flow, by diffusers.

Noise is given, never drawn here: the caller draws it from a keyed stream, one for each study (DESIGN.md invariant 4).
Nothing of the original enters but class, mask and depth; a deterministic sampler run backwards gives that noise only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from models.lesion_diffusion.schedule import Schedule
from models.lesion_diffusion.unet import Conditions, LatentUNet


def _ddim(schedule: Schedule) -> Any:
    import diffusers

    kind: Any = diffusers.DDIMScheduler
    return kind(**schedule.options(), clip_sample=False, set_alpha_to_one=True, timestep_spacing="trailing")


def _dpm(schedule: Schedule) -> Any:
    import diffusers

    kind: Any = diffusers.DPMSolverMultistepScheduler
    return kind(**schedule.options(), algorithm_type="dpmsolver++", solver_order=2, timestep_spacing="trailing")


def _flow(schedule: Schedule) -> Any:
    import diffusers

    kind: Any = diffusers.FlowMatchEulerDiscreteScheduler
    return kind(num_train_timesteps=schedule.steps, shift=1.0)


SAMPLERS: dict[str, Callable[[Schedule], Any]] = {"ddim": _ddim, "dpm": _dpm, "ancestral": _ddim, "flow": _flow}


@torch.no_grad()
def sample(
    model: LatentUNet,
    noise: Tensor,
    conditions: Conditions,
    schedule: Schedule,
    *,
    sampler: str,
    steps: int,
    guidance: float = 1.0,
    step_noise: Callable[[int], Tensor] | None = None,
) -> Tensor:
    """(b, latent, h, w) of standard normal noise -> scaled background latent.

    `guidance` 1 is none. `step_noise(i)` is the noise of step i for `ancestral`, which the others do not need. Raises
    ValueError for a sampler that does not fit what the network estimates.
    """
    if (sampler == "flow") != (schedule.prediction == "flow"):
        raise ValueError(f"a network that estimates {schedule.prediction} is not sampled by {sampler}")
    if sampler == "ancestral" and step_noise is None:
        raise ValueError("ancestral sampling needs the noise of each step")
    model.eval()
    made = SAMPLERS[sampler](schedule)
    made.set_timesteps(steps, device=noise.device)
    z = noise
    for index, moment in enumerate(made.timesteps):
        at = _training_step(moment, schedule)
        said = _estimate(model, z, at, conditions, guidance)
        if sampler == "ancestral" and step_noise is not None:
            z = made.step(said, moment, z, eta=1.0, variance_noise=step_noise(index)).prev_sample
        else:
            z = made.step(said, moment, z).prev_sample
    return z


def _training_step(moment: Tensor, schedule: Schedule) -> Tensor:
    """The step as the network was trained on it: whole, from 0. Straight flow counts s·T from 1 to T."""
    if schedule.prediction == "flow":
        return moment.float() - 1
    return moment.float()


def _estimate(model: LatentUNet, z: Tensor, at: Tensor, conditions: Conditions, guidance: float) -> Tensor:
    step = at.expand(len(z))
    said: Tensor = model(z, step, conditions)
    if guidance == 1.0:
        return said
    plain: Tensor = model(z, step, conditions.untold(model.config))
    return plain + guidance * (said - plain)
