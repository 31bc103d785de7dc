"""What is wrong with a file of weights. Texts name files, keys and shapes; a checkpoint holds no patient."""

from __future__ import annotations


class CheckpointError(ValueError):
    """A file that is no checkpoint, a hostile one, or one for another network. The text says what to do next."""
