"""Who somebody is and where in the picture it shows: the first stage of adjustable de-identification.

It belongs to the anonymiser and never judges it: the gate's attackers are other networks, trained on other people.
"""

from models.reid_encoder.configuration import PAPER, SMALL, ReidConfig
from models.reid_encoder.network import Embedded, ReidEncoder
from models.reid_encoder.objectives import identity_loss
from models.reid_encoder.similarity import cosine_map, identity_map, volume_identity_map
from models.reid_encoder.vit import VisionTransformer

__all__ = [
    "PAPER",
    "SMALL",
    "Embedded",
    "ReidConfig",
    "ReidEncoder",
    "VisionTransformer",
    "cosine_map",
    "identity_loss",
    "identity_map",
    "volume_identity_map",
]
