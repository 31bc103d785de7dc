"""Shapes on a canvas of unit coordinates, and the way from the canvas to a picture taken at an angle.

Unit coordinates: x to the right, y down, both -1 to 1 in the picture; the canvas reaches a little farther, so that a
turned or shifted picture still sees anatomy at its borders. Strokes are drawn anti-aliased by OpenCV.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.float32]
Points = NDArray[np.float64]  # (n, 2): x, y
REACH = 1.2  # the canvas shows -REACH to REACH
FRACTION_BITS = 4  # OpenCV's fixed-point coordinates


@dataclass(frozen=True, slots=True)
class Canvas:
    """A square of `side` pixels that shows -REACH to REACH, about (centre_x, 0)."""

    side: int
    centre_x: float = 0.0

    @classmethod
    def of(cls, size: int, centre_x: float = 0.0) -> Canvas:
        """Fine enough for a picture of `size` pixels: finer than it when small, because thin strokes alias."""
        return cls(round(size * REACH * (1.7 if size <= 128 else 1.0)), centre_x)

    @property
    def scale(self) -> float:
        """Pixels per unit."""
        return self.side / (2 * REACH)

    def grid(self) -> tuple[Pixels, Pixels]:
        """(x, y) of pixel centres; x is (1, side), y is (side, 1)."""
        at = ((np.arange(self.side) + 0.5) / self.scale - REACH).astype(np.float32)
        return at[None, :] + np.float32(self.centre_x), at[:, None]

    def _fixed(self, points: Points) -> NDArray[np.int32]:
        return np.asarray(
            np.round(((points - [self.centre_x, 0.0] + REACH) * self.scale - 0.5) * 2**FRACTION_BITS), np.int32
        )

    def filled(self, outline: Points) -> Pixels:
        """(side, side), 1 inside the closed outline."""
        layer = np.zeros((self.side, self.side), np.uint8)
        cv2.fillPoly(layer, [self._fixed(outline)], 255, cv2.LINE_AA, FRACTION_BITS)
        return layer.astype(np.float32) / np.float32(255)

    def strokes(self, lines: Sequence[Points], widths: Sequence[float]) -> Pixels:
        """(side, side), 0 to 1: polylines of widths in units. Thinner than a pixel becomes fainter, not thicker.

        Later lines cover earlier ones: give the thick ones last.
        """
        layer = np.zeros((self.side, self.side), np.uint8)
        pixels = np.asarray(widths) * self.scale
        values = np.round(255 * np.minimum(1, pixels)).astype(int).tolist()
        thick = np.maximum(1, np.round(pixels)).astype(int).tolist()
        ends = np.cumsum([len(line) for line in lines])
        drawn = np.split(self._fixed(np.concatenate(lines)), ends[:-1])
        for points, value, thickness in zip(drawn, values, thick, strict=True):
            cv2.polylines(layer, [points], False, value, thickness, cv2.LINE_AA, FRACTION_BITS)
        return layer.astype(np.float32) / np.float32(255)

    def segments(self, ends: Points, width: float) -> Pixels:
        """(side, side), 0 to 1: many separate strokes of one width; `ends` is (n, 2, 2)."""
        layer = np.zeros((self.side, self.side), np.uint8)
        pixels = width * self.scale
        if len(ends):
            drawn = list(self._fixed(ends))
            value = round(255 * min(1.0, pixels))
            cv2.polylines(layer, drawn, False, value, max(1, round(pixels)), cv2.LINE_AA, FRACTION_BITS)
        return layer.astype(np.float32) / np.float32(255)

    def soft(self, layer: Pixels, width: float) -> Pixels:
        """Blurred by a Gaussian of this standard deviation in units."""
        return blurred(layer, width * self.scale)

    def texture(self, generator: np.random.Generator, grain: float) -> Pixels:
        """(side, side), mean 0, deviation about 1: smooth noise with details of `grain` units."""
        cells = max(3, round(2 * REACH / grain))
        coarse = generator.normal(size=(cells, cells)).astype(np.float32)
        return np.asarray(cv2.resize(coarse, (self.side, self.side), interpolation=cv2.INTER_CUBIC), np.float32)


def blurred(layer: Pixels, pixels: float) -> Pixels:
    """Gaussian of this standard deviation in pixels. Wide ones are made on a smaller picture, which is faster."""
    if pixels <= 0.15:
        return layer
    shrink = max(1, int(pixels // 3))
    if shrink == 1:
        return np.asarray(cv2.GaussianBlur(layer, (0, 0), pixels, borderType=cv2.BORDER_REPLICATE), np.float32)
    height, width = layer.shape
    small = cv2.resize(layer, (max(2, width // shrink), max(2, height // shrink)), interpolation=cv2.INTER_AREA)
    small = cv2.GaussianBlur(small, (0, 0), pixels / shrink, borderType=cv2.BORDER_REPLICATE)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)


def step(distance: NDArray[np.floating[Any]], softness: float) -> Pixels:
    """1 where `distance` to an edge is negative (inside), 0 outside, smooth over about four times `softness`."""
    t = np.clip(np.float32(0.5) - distance * np.float32(0.25 / softness), 0, 1)
    return np.asarray(t * t * (3 - 2 * t), np.float32)


def closed_curve(points: Points, steps: int = 8) -> Points:
    """(n·steps, 2): Catmull-Rom spline through the points, closed."""
    a, b, c, d = (np.roll(points, k, axis=0)[:, None] for k in (1, 0, -1, -2))
    t = (np.arange(steps) / steps)[None, :, None]
    curve = 0.5 * (2 * b + (c - a) * t + (2 * a - 5 * b + 4 * c - d) * t**2 + (3 * b - a - 3 * c + d) * t**3)
    return np.asarray(curve.reshape(-1, 2))


@dataclass(frozen=True, slots=True)
class Pose:
    """How the picture lies over the canvas: turn (radians), shift (units), zoom, and a smooth bend (units)."""

    turn: float
    shift: tuple[float, float]
    zoom: float
    bend: float
    bend_key: tuple[int, ...]

    def maps(self, canvas: Canvas, size: int) -> tuple[Pixels, Pixels]:
        """Canvas coordinates in pixels (x, y), each (size, size), of every pixel of the picture."""
        at = (np.arange(size, dtype=np.float32) + 0.5) / size * 2 - 1
        x, y = at[None, :], at[:, None]
        cos, sin = np.cos(self.turn), np.sin(self.turn)
        u = (x * cos - y * sin) / self.zoom - self.shift[0]
        v = (x * sin + y * cos) / self.zoom - self.shift[1]
        warp = np.random.default_rng(list(self.bend_key)).normal(size=(2, 5, 5)).astype(np.float32) * self.bend
        du, dv = (cv2.resize(part, (size, size), interpolation=cv2.INTER_CUBIC) for part in warp)
        to = canvas.scale
        return (
            np.asarray((u + du - canvas.centre_x + REACH) * to - 0.5, np.float32),
            np.asarray((v + dv + REACH) * to - 0.5, np.float32),
        )


def seen(layer: Pixels, canvas: Canvas, maps: tuple[Pixels, Pixels]) -> Pixels:
    """The canvas through a pose: (size, size). A finer canvas is averaged first, so that nothing aliases."""
    step = 2 * REACH / canvas.side * (len(maps[0]) / 2)  # picture pixels per canvas pixel
    smooth = blurred(layer, 0.35 / step) if step < 0.9 else layer
    found = cv2.remap(smooth, maps[0], maps[1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(found, np.float32)
