"""Stage two of the lesion-preserving anonymiser: diffusion of the background's latent under class, mask and depth."""

from models.lesion_diffusion.configuration import PAPER, SMALL, UNetConfig
from models.lesion_diffusion.objectives import diffusion_loss
from models.lesion_diffusion.sampling import SAMPLERS, sample
from models.lesion_diffusion.schedule import Schedule
from models.lesion_diffusion.unet import Conditions, LatentUNet

__all__ = [
    "PAPER",
    "SAMPLERS",
    "SMALL",
    "Conditions",
    "LatentUNet",
    "Schedule",
    "UNetConfig",
    "diffusion_loss",
    "sample",
]
