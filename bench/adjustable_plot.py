"""Pictures of bench.adjustable: utility against risk for every method, and films before and after."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from torch import Tensor

CHANCE = 1 / 30


def curves(points: Sequence[dict[str, Any]], target: Path) -> None:
    """AUROC over rank-1 by another visit, one line a method; originals as a star."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5.5))
    for method in dict.fromkeys(one["method"] for one in points):
        own = [one for one in points if one["method"] == method]
        x = [100 * one["attack"]["other visit"]["rank1"] for one in own]
        y = [100 * one["utility"]["auroc"] for one in own]
        axes.plot(
            x, y, "*" if method == "original" else "o-", markersize=13 if method == "original" else 5, label=method
        )
        for one, a, b in zip(own, x, y, strict=True):
            if method != "original":
                axes.annotate(str(one["level"]), (a, b), fontsize=6, xytext=(3, 3), textcoords="offset points")
    axes.axvline(100 * CHANCE, color="grey", linestyle=":", label="chance of rank-1")
    axes.axhline(50, color="grey", linestyle="--", label="chance of AUROC")
    axes.set(xlabel="rank-1 by another visit, worst attacker, %", ylabel="AUROC of findings, %")
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(target, dpi=120)
    plt.close(figure)


def sheet(films: Tensor, levels: Sequence[tuple[float, Tensor, Tensor, Tensor]], target: Path) -> None:
    """Rows of films; columns: original, then mask, X_noID, result and difference at each level."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    columns = 1 + 4 * len(levels)
    figure, axes = plt.subplots(len(films), columns, figsize=(1.1 * columns, 1.15 * len(films)))
    for row, film in enumerate(films):
        pictures = [("original", film[0], (0, 1))]
        for r, made, noid, mask in levels:
            pictures += [
                (f"mask {r}", mask[row, 0].float(), (0, 1)),
                ("X_noID", noid[row, 0], (0, 1)),
                ("result", made[row, 0], (0, 1)),
                ("difference", made[row, 0] - film[0], (-1, 1)),
            ]
        for column, (title, picture, (low, high)) in enumerate(pictures):
            axis = axes[row, column]
            colours = "RdBu" if low < 0 else "gray"
            axis.imshow(np.asarray(picture), cmap=colours, vmin=low, vmax=high)
            axis.set_axis_off()
            if row == 0:
                axis.set_title(title, fontsize=7)
    figure.tight_layout(pad=0.2)
    figure.savefig(target, dpi=90)
    plt.close(figure)
