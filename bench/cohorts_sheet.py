"""The pictures of bench.cohorts: what synthetic brains look like, and how linkable they are at each difficulty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from PIL import Image

from models.cohorts import Cohort, Scan, synthetic_brains

SEED = 41
CHANCE = {"color": "grey", "linestyle": ":"}


def curves(rows: list[dict[str, Any]], levels: dict[str, float], path: Path) -> None:
    """Rank-1 and D_sys with their upper bounds, by difficulty."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 4), sharex=True)
    for axis, name in zip(axes, ("rank1", "d_sys", "auc"), strict=True):
        for encoder in dict.fromkeys(row["encoder"] for row in rows):
            mine = [row for row in rows if row["encoder"] == encoder]
            at, values = [row["difficulty"] for row in mine], [row[name] for row in mine]
            (line,) = axis.plot(at, values, marker="o", label=encoder)
            if name != "auc":
                axis.fill_between(
                    at, values, [row[f"{name}_upper"] for row in mine], alpha=0.15, color=line.get_color()
                )
        for level, where in levels.items():
            axis.axvline(where, color="lightgrey", zorder=0)
            axis.annotate(level, (where, 1.03), ha="center", fontsize=8)
        floor = {"rank1": rows[0]["chance"], "d_sys": np.mean([row["d_sys_null"] for row in rows]), "auc": 0.5}[name]
        axis.axhline(float(floor), **CHANCE)
        axis.set(ylim=(-0.02, 1.08), xlabel="difficulty", ylabel=name)
    axes[0].legend(title="without training", loc="lower left")
    figure.suptitle(
        f"Synthetic brains: {rows[0]['people']} people, two visits, other-visit linkage; shaded: upper bound"
    )
    figure.tight_layout()
    figure.savefig(path, dpi=75)
    plt.close(figure)


def sheet(path: Path) -> None:
    """One person of each diagnosis at two visits, and one person at each level."""
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    cohort = synthetic_brains(24, 2, SEED, "medium", sequences=("T1", "T1c", "T2", "FLAIR"), moves=1.0)
    figure, axes = plt.subplots(6, 8, figsize=(16, 13.5))
    kinds = ("healthy", "HGG", "LGG", "MS")
    for row, kind in enumerate(kinds):
        person = next(s.subject for s in cohort if kind in (s.attributes["diagnosis"], s.attributes.get("grade")))
        _person(axes[row], _of(cohort, person), kind)
    for row, subject in enumerate(("P00000", "P00001"), 4):
        for column, level in enumerate(("easy", "medium", "hard")):
            scans = synthetic_brains(2, 2, SEED, level)
            for visit, scan in enumerate(s for s in scans if s.subject == subject):
                _show(axes[row][2 * column + visit], scan.load()[45], f"{subject} {level}, visit {visit}")
        scan = synthetic_brains(2, 2, SEED, "easy", spacing_mm=1.0).scans[2 * (row - 4)]
        volume = scan.load()
        _show(axes[row][6], volume[92], "1 mm")
        _show(axes[row][7], volume[::-1, :, 84], "1 mm")
    figure.tight_layout(pad=0.3)
    figure.savefig(path, dpi=58)
    plt.close(figure)
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(palette=_palette(), dither=Image.Dither.NONE).save(path, optimize=True)


def _palette() -> Image.Image:
    """Greys and one red, so that the file stays small."""
    palette = Image.new("P", (1, 1))
    palette.putpalette([level for step in range(31) for level in (round(step * 8.5),) * 3] + [255, 0, 0])
    return palette


def _of(cohort: Cohort, subject: str) -> dict[tuple[str, str], Scan]:
    return {(s.session, s.attributes["sequence"]): s for s in cohort if s.subject == subject}


def _person(axes: Any, scans: dict[tuple[str, str], Scan], kind: str) -> None:
    first, later = scans["V0", "T1"], scans["V1", "T1"]
    lesion = first.masks["lesion"]()
    z = int(lesion.sum((1, 2)).argmax()) if lesion.any() else 44
    volume = first.load()
    title = f"{kind}, {first.attributes['sex']} {first.attributes['age']}"
    _show(axes[0], volume[z], f"{title}: T1")
    for column, sequence in enumerate(("T1c", "T2", "FLAIR"), 1):
        _show(axes[column], scans["V0", sequence].load()[z], sequence)
    if lesion.any():
        axes[3].contour(lesion[z], [0.5], colors="red", linewidths=0.7)
    _show(axes[4], volume[::-1, 62], "coronal")
    _show(axes[5], volume[::-1, :, 48], "sagittal")
    _show(axes[6], later.load()[z], f"after {later.day:.0f} days, {later.site}")
    _show(axes[7], scans["V1", "FLAIR"].load()[z], "FLAIR, later")


def _show(axis: Any, image: np.ndarray[Any, Any], title: str) -> None:
    axis.imshow(image, cmap="gray", vmin=0, vmax=0.75)
    axis.set_title(title, fontsize=8)
    axis.axis("off")
