"""On which side a picture of a paired organ shows it: what is drawn anew must not show the other one.

A right eye has its disc on the right and a left one is its mirror image, so the part of the mean right eye that its
mirror image lacks tells them apart. A side is one bit that the header states; it names nobody.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

RIGHT, LEFT = "R", "L"
NAME = "sides.right"


def fitted(x_bchw: Tensor, right_b: Tensor) -> Tensor:
    """(side, side), of length 1: brightness of the mean right picture less that of its mirror image; `right_b` is True
    where a picture is of a right eye. Left ones count mirrored. Raises ValueError for pictures without any difference.
    """
    x = torch.where(right_b[:, None, None, None], x_bchw, x_bchw.flip(-1)).float().mean((0, 1))
    apart = x - x.flip(-1)
    if not float(apart.norm()) > 0:
        raise ValueError("right and left pictures are the same: no side can be kept")
    mean: Tensor = apart / apart.norm()
    return mean


def told(right_ss: Tensor, picture_chw: Tensor) -> str:
    """R or L."""
    size = (int(right_ss.shape[0]), int(right_ss.shape[1]))
    small = functional.interpolate(
        picture_chw[None].float(), size, mode="bilinear", antialias=True, align_corners=False
    )
    return RIGHT if float((small[0].mean(0) * right_ss.to(small)).sum()) > 0 else LEFT


def kept(right_ss: Tensor, made_chw: Tensor, wanted: str) -> Tensor:
    """`made_chw`, mirrored where it shows the side that is not `wanted` (R or L)."""
    return made_chw if told(right_ss, made_chw) == wanted else made_chw.flip(-1)
