"""Series as geometry-checked volumes: single-slice objects and enhanced multi-frame alike.

`planes_of` reads where each frame of an object lies, `sort` groups the planes of a study into stacks that are regular
grids and says of every other plane why it is in none, `read` makes the array. It decodes nothing itself: the caller
hands in what gives a frame's stored values, so that scrubber and gate each keep their own decoder.
"""

from gateway.volumes.planes import Plane, Unplaced, planes_of
from gateway.volumes.reading import Volume, read
from gateway.volumes.stacks import TOO_FEW, Stack, Stray, only_stack, sort
from gateway.volumes.turning import Turn, tilt, upright

__all__ = [
    "TOO_FEW",
    "Plane",
    "Stack",
    "Stray",
    "Turn",
    "Unplaced",
    "Volume",
    "only_stack",
    "planes_of",
    "read",
    "sort",
    "tilt",
    "upright",
]
