"""The contact sheet of bench.lesion: original, mask, released, difference, for some people; axial and sagittal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from bench.lesion_released import Released

SHOWN = 5
COLUMNS = ("original", "lesion's mask", "released", "difference", "original, sagittal", "released, sagittal")


def contact_sheet(released: Sequence[Released], path: Path) -> None:
    """One row a person: at the slice with most of the lesion, the first and the last sequence in turn."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    chosen = released[:SHOWN]
    figure, axes = plt.subplots(len(chosen), len(COLUMNS), figsize=(13, 2.3 * len(chosen)), squeeze=False)
    for number, (row, one) in enumerate(zip(axes, chosen, strict=True)):
        name = list(one.volumes)[-(number % 2)]
        old, new = one.study.volumes[name], one.volumes[name]
        z, _, x = (int(one.study.lesion.sum(axis).argmax()) for axis in ((1, 2), (0, 2), (0, 1)))
        _show(row[0], old[z], f"{one.subject} {name}")
        _show(row[1], old[z], "")
        row[1].contour(one.study.lesion[z], [0.5], colors="red", linewidths=0.7)
        row[1].contour(one.lesion[z], [0.5], colors="yellow", linewidths=0.7)
        _show(row[2], new[z], "")
        row[3].imshow(new[z] - old[z], cmap="RdBu", vmin=-0.5, vmax=0.5)
        _show(row[4], old[::-1, :, x], "")
        _show(row[5], new[::-1, :, x], "")
    for axis, title in zip(axes[0], COLUMNS, strict=True):
        axis.set_title(f"{title}\n{axis.get_title()}".strip(), fontsize=8)
    for axis in axes.ravel():
        axis.axis("off")
    figure.suptitle("Synthetic people; red: the original's mask, yellow: the released one's", fontsize=9)
    figure.tight_layout(pad=0.3, rect=(0, 0, 1, 0.97))  # the title stands above
    figure.savefig(path, dpi=70)
    plt.close(figure)


def _show(axis: Any, image: np.ndarray[Any, Any], title: str) -> None:
    axis.imshow(image, cmap="gray", vmin=0, vmax=0.85)
    axis.set_title(title, fontsize=8)
