"""One explicit noise schedule for training and every sampler: library defaults differ, and clip latents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

STEPS = 1000


@dataclass(frozen=True, slots=True)
class Schedule:
    """β from `beta_start` to `beta_end` over T = 1000 steps, linear as in DDPM; ᾱ_T is 4e-5: sampling starts from
    noise that holds nothing of anybody.
    """

    prediction: Literal["epsilon", "v_prediction", "flow"]
    beta_start: float = 1e-4
    beta_end: float = 0.02
    steps: int = STEPS

    @property
    def alphas_bar(self) -> Tensor:
        """ᾱ (steps,), float64."""
        betas = torch.linspace(self.beta_start, self.beta_end, self.steps, dtype=torch.float64)
        return torch.cumprod(1 - betas, 0)

    def noised(self, z: Tensor, noise: Tensor, step: Tensor) -> tuple[Tensor, Tensor]:
        """z_t (paper eq. 16) and what the network should say of it: noise, velocity √ᾱ ε − √(1−ᾱ) z, or ε − z.

        For `flow` z_t = (1 − s) z + s ε with s = (t + 1) / T: the convention of diffusers' FlowMatchEuler, in which the
        flow points from the latent to the noise (MONAI's is the other way round).
        """
        if self.prediction == "flow":
            s = ((step.double() + 1) / self.steps).to(z)[:, None, None, None]
            return (1 - s) * z + s * noise, noise - z
        alpha = self.alphas_bar.to(z.device)[step].to(z)[:, None, None, None]
        mixed = alpha.sqrt() * z + (1 - alpha).sqrt() * noise
        if self.prediction == "epsilon":
            return mixed, noise
        return mixed, alpha.sqrt() * noise - (1 - alpha).sqrt() * z

    def options(self) -> dict[str, Any]:
        """What every scheduler of diffusers is told. `clip_sample` off: its default clips latents to ±1."""
        return {
            "num_train_timesteps": self.steps,
            "beta_start": self.beta_start,
            "beta_end": self.beta_end,
            "beta_schedule": "linear",
            "prediction_type": self.prediction,
        }
