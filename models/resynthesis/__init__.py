"""Re-synthesis: a picture out of pure noise, under what was left of it and what was meant by it (paper, stage 3)."""

from models.resynthesis.configuration import PAPER, PAPER_SD2, SMALL, ResynthesisConfig
from models.resynthesis.deidentify import deidentified
from models.resynthesis.fusion import FeatNet, Fusion
from models.resynthesis.networks import Conditioned, Resynthesis
from models.resynthesis.objectives import diffusion_loss, vae_loss
from models.resynthesis.parts import ALGORITHM, AdjustableParts, parts_of
from models.resynthesis.sampling import sample
from models.resynthesis.schedule import NoiseSchedule
from models.resynthesis.stable_diffusion import load_stable_diffusion

__all__ = [
    "ALGORITHM",
    "PAPER",
    "PAPER_SD2",
    "SMALL",
    "AdjustableParts",
    "Conditioned",
    "FeatNet",
    "Fusion",
    "NoiseSchedule",
    "Resynthesis",
    "ResynthesisConfig",
    "deidentified",
    "diffusion_loss",
    "load_stable_diffusion",
    "parts_of",
    "sample",
    "vae_loss",
]
