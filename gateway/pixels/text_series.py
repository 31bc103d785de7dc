"""The frames of a series as stacks: those of one size and kind together, in the order in which they were acquired."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import numpy as np
from numpy.typing import NDArray

from gateway.frames import EncodedImage
from gateway.pixels.stage import Instance
from gateway.pixels.text_frames import Stack

CLIPPED = (1.0, 99.0)  # percent of the pixels that make the range: metal and padding do not
MIN_SIDE = 6  # no line of text fits into a smaller picture


@dataclass(frozen=True, slots=True)
class Member:
    """One object of a stack."""

    instance: Instance
    frames: int
    order: tuple[int, str]


def stacks_of(group: Sequence[Instance]) -> list[list[Member]]:
    """Objects with pixels by size and colour. Raises Hold for what cannot be opened."""
    found: dict[tuple[int, int, bool], list[Member]] = defaultdict(list)
    for instance in group:
        with EncodedImage.open(instance.candidate) as image:
            if image.frames == 0 or min(image.rows, image.columns) < MIN_SIDE:
                continue
            colour = image.samples == 3 or image.photometric == "PALETTE COLOR"
            try:
                number = int(image.dataset.get("InstanceNumber") or 0)
            except (TypeError, ValueError):
                number = 0
            member = Member(instance, image.frames, (number, instance.name))
            found[image.rows, image.columns, colour].append(member)
    return [sorted(found[key], key=lambda member: member.order) for key in sorted(found)]


class SeriesStack(Stack):
    """Frames across objects. One object is open at a time, one frame of it decoded."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._places = [(at, frame) for at, member in enumerate(members) for frame in range(member.frames)]
        self._members = members
        self._open: tuple[int, EncodedImage] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._open is not None:
            self._open[1].close()
            self._open = None

    def __len__(self) -> int:
        return len(self._places)

    def member(self, frame: int) -> tuple[str, int]:
        """Name of the object, and the frame's number in it."""
        at, inside = self._places[frame]
        return self._members[at].instance.name, inside

    def shown(self, frame: int) -> NDArray[np.uint8]:
        """Raises Hold("pixels_unreadable")."""
        image, inside = self._image(frame)
        shown: NDArray[np.uint8] = image.shown(inside)
        return shown

    def deep(self, frame: int) -> NDArray[np.float32] | None:
        """Raises Hold("pixels_unreadable")."""
        image, inside = self._image(frame)
        if image.samples != 1 or image.bits_stored <= 8 or not image.photometric.startswith("MONOCHROME"):
            return None
        values = np.nan_to_num(image.stored(inside).astype(np.float32), posinf=0, neginf=0)
        low, high = np.percentile(values, CLIPPED)
        if high <= low:
            low, high = values.min(), values.max()
        unit = (values - low) / max(float(high - low), 1e-6)
        return np.asarray(np.clip(unit, -0.5, 1.5), np.float32)

    def _image(self, frame: int) -> tuple[EncodedImage, int]:
        at, inside = self._places[frame]
        if self._open is None or self._open[0] != at:
            self.__exit__(None, None, None)
            self._open = at, EncodedImage.open(self._members[at].instance.candidate)
        return self._open[1], inside
