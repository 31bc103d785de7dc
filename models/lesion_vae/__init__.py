"""Stage one of the lesion-preserving anonymiser: what surrounds the lesion and the lesion become separate latents.

Modules are named by what they hold. The paper's text and its equations swap E1 and E2 (eq. 10-11 against its list of
modules, section 4.4.2 against 4.4.1): here `background` is what diffusion replaces and `lesion` is what stays.
"""

from models.lesion_vae.configuration import PAPER, SMALL, VaeConfig
from models.lesion_vae.networks import Decoder, Encoder, LesionVae, Posterior
from models.lesion_vae.objectives import active_units, kl_divergence, reconstruction_weight, vae_loss

__all__ = [
    "PAPER",
    "SMALL",
    "Decoder",
    "Encoder",
    "LesionVae",
    "Posterior",
    "VaeConfig",
    "active_units",
    "kl_divergence",
    "reconstruction_weight",
    "vae_loss",
]
