"""What is done to a brain scan before it is embedded: stripped of the skull, rigidly registered, mapped to tissues.

An audit embeds the same scans in each form, because preparation moves linkage in either direction: it takes away what
tells scanners apart, and with it the noise that hides people.
"""

from models.preparation.brain import PREPARATIONS, prepare
from models.preparation.registration import Alignment, align, brain_of, resampled

__all__ = ["PREPARATIONS", "Alignment", "align", "brain_of", "prepare", "resampled"]
