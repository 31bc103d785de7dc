"""ID-blocking: what of a picture says most about who it is, set to zero. How much is the knob r."""

from models.id_blocking.blocking import Blocking, blocked, blocked_volume, enlarged
from models.id_blocking.mask import LEVELS, coarsened, dilated, identity_mask

__all__ = ["LEVELS", "Blocking", "blocked", "blocked_volume", "coarsened", "dilated", "enlarged", "identity_mask"]
