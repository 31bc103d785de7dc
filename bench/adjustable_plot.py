"""Pictures of bench.adjustable: utility against risk for every method, and films before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from torch import Tensor

CHANCE = 1 / 30


MEASURES = {"auroc": "AUROC of findings, %", "dice": "Dice of outlines, %"}


def curves(points: Mapping[str, Sequence[dict[str, Any]]], target: Path) -> None:
    """Utility over rank-1 by another visit: a row a cohort, a column a measure, a line a method; originals a star."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(len(points), len(MEASURES), figsize=(15, 5.5 * len(points)), squeeze=False)
    for row, (cohort, some) in zip(axes, points.items(), strict=True):
        for axis, (measure, label) in zip(row, MEASURES.items(), strict=True):
            _drawn(axis, [one for one in some if measure in one], measure)
            axis.set(xlabel="rank-1 by another visit, worst attacker, %", ylabel=label, title=cohort)
    figure.tight_layout()
    figure.savefig(target, dpi=80)
    plt.close(figure)


def _drawn(axis: Any, points: Sequence[dict[str, Any]], measure: str) -> None:
    if not points:
        axis.text(0.5, 0.5, "not measured", ha="center", transform=axis.transAxes)
        return
    colours = mpl.colormaps["tab20"].colors  # type: ignore[attr-defined]
    for number, method in enumerate(dict.fromkeys(one["method"] for one in points)):
        own = sorted((one for one in points if one["method"] == method), key=lambda one: float(one["level"]))
        x = [100 * one["attack"]["other visit"]["rank1"] for one in own]
        y = [100 * one[measure][measure] for one in own]
        whole, ours = method == "original", method.startswith("ours")
        style: dict[str, Any] = {"linestyle": "-" if ours else "--", "linewidth": 2.5 if method == "ours" else 1.2}
        style["color"] = colours[2 * number % 19]
        axis.plot(x, y, marker="*" if whole else "o", markersize=13 if whole else 4, label=method, **style)
        for one, a, b in zip(own, x, y, strict=True):
            axis.annotate("" if whole else f"{one['level']:g}", (a, b), (3, 3), fontsize=6, textcoords="offset points")
    axis.axvline(100 * CHANCE, color="grey", linestyle=":")
    if measure == "auroc":
        axis.axhline(50, color="grey", linestyle=":")
    axis.legend(fontsize=7)


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
    figure.savefig(target, dpi=60)
    plt.close(figure)
