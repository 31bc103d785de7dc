"""Identity-free semantics: features of a frozen network as an integer code, of which the identity's part is dropped."""

from models.mdl_decoupling.codebook import Codebook, evidence, prototypes_at
from models.mdl_decoupling.codelength import GaussianMixtureCodelength
from models.mdl_decoupling.configuration import PAPER, SMALL, DecouplingConfig
from models.mdl_decoupling.foundation import FOUNDATIONS, Foundation, OwnSemantics, foundation_of
from models.mdl_decoupling.network import Coded, Decoupler
from models.mdl_decoupling.objectives import decoupling_losses
from models.mdl_decoupling.partition import gumbel_sigmoid, temperature_at
from models.mdl_decoupling.shares import Shares, degenerate, measured_shares

__all__ = [
    "FOUNDATIONS",
    "PAPER",
    "SMALL",
    "Codebook",
    "Coded",
    "Decoupler",
    "DecouplingConfig",
    "Foundation",
    "GaussianMixtureCodelength",
    "OwnSemantics",
    "Shares",
    "decoupling_losses",
    "degenerate",
    "evidence",
    "foundation_of",
    "gumbel_sigmoid",
    "measured_shares",
    "prototypes_at",
    "temperature_at",
]
