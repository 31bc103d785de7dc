"""The figures of a report, as SVG text that stands in the page: densities with D_sys shaded, bars with bounds."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

MATED, OTHERS, LEAK = "#b3404a", "#3d6f9e", "#e3b23c"


def density_figure(densities: Mapping[str, Sequence[float]], title: str) -> str:
    """Mated and non-mated scores; shaded where a score speaks for one person (local D above 0)."""
    edges, mated, others, local = (np.array(densities[name]) for name in ("edges", "mated", "non_mated", "local"))
    figure, axes = _axes(4.6, 2.5)
    axes.stairs(others, edges, fill=True, color=OTHERS, alpha=0.45, label="different people")
    axes.stairs(mated, edges, fill=True, color=MATED, alpha=0.45, label="same person")
    axes.stairs(mated * local, edges, fill=True, color=LEAK, alpha=0.9, label="what links (D)")
    axes.set(title=title, xlabel="similarity (larger is closer)", yticks=[])
    axes.legend(fontsize=7, frameon=False)
    return _svg(figure)


def bar_figure(rows: Sequence[tuple[str, float, float, float | None]], title: str, limit: str) -> str:
    """(name, value, upper bound, level of no evidence) of each row, as a bar with its bound."""
    figure, axes = _axes(4.6, 0.9 + 0.28 * len(rows))
    names = [name for name, *_ in rows][::-1]
    values, uppers = (np.array([row[i] for row in rows][::-1], float) for i in (1, 2))
    at = np.arange(len(rows))
    axes.barh(at, values, color=MATED, alpha=0.75)
    axes.hlines(at, values, uppers, color="#222", linewidth=1.2)
    axes.plot(uppers, at, "|", color="#222", markersize=7, label="upper bound")
    nulls = [(i, row[3]) for i, row in zip(at, rows[::-1], strict=True) if row[3] is not None]
    if nulls:
        axes.plot([x for _, x in nulls], [y for y, _ in nulls], "d", color=OTHERS, markersize=4, label=limit)
    axes.set(title=title, xlim=(0, 1), yticks=at, yticklabels=names)
    axes.legend(fontsize=7, frameon=False, loc="lower right")
    return _svg(figure)


def _axes(width: float, height: float) -> tuple[Any, Any]:
    from matplotlib.figure import Figure  # no pyplot: no global state, no window

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=7)
    axes.title.set_fontsize(9)
    axes.xaxis.label.set_fontsize(7)
    return figure, axes


def _svg(figure: Any) -> str:
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": "audit", "svg.fonttype": "path"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return re.sub(r"^.*?(?=<svg)|<metadata>.*?</metadata>", "", buffer.getvalue(), flags=re.DOTALL)
