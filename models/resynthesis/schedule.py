"""The noise schedule of training and of every sampler, explicit: library defaults differ, and clip latents.

Sampling starts from *pure* noise at the last step. With Stable Diffusion's scaled-linear β, ᾱ_T is 0.0047 and not 0:
the network was trained on inputs that still hold a trace of the picture, and whoever starts from a noised original
leaks it. Nothing here offers that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from models.lesion_diffusion import Schedule


@dataclass(frozen=True, slots=True)
class NoiseSchedule(Schedule):
    """β between its ends: `linear` (DDPM, 1e-4 to 0.02) or `scaled_linear` (squares of a line, 0.00085 to 0.012)."""

    spacing: Literal["linear", "scaled_linear"] = "linear"

    @classmethod
    def of(cls, prediction: str, spacing: str) -> NoiseSchedule:
        """With the ends that belong to the spacing. Raises ValueError for an unknown one."""
        kinds: dict[str, Literal["epsilon", "v_prediction", "flow"]] = {
            "epsilon": "epsilon",
            "v_prediction": "v_prediction",
            "flow": "flow",
        }
        if prediction not in kinds or spacing not in ("linear", "scaled_linear"):
            raise ValueError(f"there is no schedule {spacing} for a network that estimates {prediction}")
        if spacing == "linear":
            return cls(kinds[prediction])
        return cls(kinds[prediction], 0.00085, 0.012, spacing="scaled_linear")

    @property
    def alphas_bar(self) -> Tensor:
        """ᾱ (steps,), float64."""
        if self.spacing == "linear":
            betas = torch.linspace(self.beta_start, self.beta_end, self.steps, dtype=torch.float64)
        else:
            betas = torch.linspace(self.beta_start**0.5, self.beta_end**0.5, self.steps, dtype=torch.float64) ** 2
        return torch.cumprod(1 - betas, 0)

    def options(self) -> dict[str, Any]:
        """What every scheduler of diffusers is told."""
        return {
            "num_train_timesteps": self.steps,
            "beta_start": self.beta_start,
            "beta_end": self.beta_end,
            "beta_schedule": self.spacing,
            "prediction_type": self.prediction,
        }
