"""Tables that FreeSurfer's recon-all writes: stats/aseg.stats, stats/lh.aparc.stats, stats/rh.aparc.stats."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HEMISPHERES = ("lh", "rh")
REGIONS = 34  # of a hemisphere in the Desikan-Killiany atlas
MAX_BYTES = 1 << 20
_COLUMNS = ("SurfArea", "GrayVol", "ThickAvg")  # mm^2, mm^3, mm


class StatsError(ValueError):
    """A table that is not there or not whole. The text names the file and the measure, never the subject's values."""


@dataclass(frozen=True, slots=True)
class Cortex:
    """One hemisphere: `whole` measures by name, and `regions` by name, each with SurfArea, GrayVol and ThickAvg."""

    whole: Mapping[str, float]
    regions: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Stats:
    """One subject. `volumes`: structures and whole measures of aseg.stats in mm^3; `cortex` by hemisphere."""

    volumes: Mapping[str, float]
    cortex: Mapping[str, Cortex]

    def volume(self, *names: str) -> float:
        """The first of these names that is there: FreeSurfer renamed some. Raises StatsError when none is."""
        for name in names:
            if name in self.volumes:
                return self.volumes[name]
        raise StatsError(f"aseg.stats has no {' or '.join(names)}; run recon-all to its end")


def read_stats(subject: Path) -> Stats:
    """The tables of one subject folder. Raises StatsError."""
    folder = subject / "stats"
    whole, rows = _table(folder / "aseg.stats")
    volumes = dict(whole)
    for row in rows:
        volumes[row["StructName"]] = _number(row, "Volume_mm3", folder / "aseg.stats")
    cortex = {}
    for side in HEMISPHERES:
        path = folder / f"{side}.aparc.stats"
        measures, rows = _table(path)
        regions = {row["StructName"]: {name: _number(row, name, path) for name in _COLUMNS} for row in rows}
        if len(regions) != REGIONS or not {"MeanThickness", "WhiteSurfArea"} <= measures.keys():
            raise StatsError(
                f"{path}: not the {REGIONS} regions of the Desikan-Killiany atlas; run recon-all to its end"
            )
        cortex[side] = Cortex(measures, regions)
    if cortex["lh"].regions.keys() != cortex["rh"].regions.keys():
        raise StatsError(f"{folder}: the hemispheres have other regions; run recon-all again")
    return Stats(volumes, cortex)


def _table(path: Path) -> tuple[dict[str, float], list[dict[str, str]]]:
    """(`# Measure structure, name, description, value, unit` by name, rows by column of `# ColHeaders`)."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(MAX_BYTES).splitlines()
    except OSError as error:
        raise StatsError(f"{path}: cannot be read ({error.strerror or type(error).__name__}); run recon-all") from None
    measures: dict[str, float] = {}
    columns: list[str] = []
    rows = []
    for line in lines:
        if line.startswith("# Measure "):
            parts = [part.strip() for part in line.removeprefix("# Measure ").split(",")]
            if len(parts) < 5:
                raise StatsError(f"{path}: a measure without its five fields; write it again")
            # aseg.stats names most measures twice: CortexVol as structure "Cortex", name "CortexVol".
            measures[parts[1]] = measures[parts[0]] = _number({"value": parts[-2]}, "value", path)
        elif line.startswith("# ColHeaders"):
            columns = line.split()[2:]
        elif line.strip() and not line.startswith("#"):
            fields = line.split()
            if "StructName" not in columns or len(fields) != len(columns):
                raise StatsError(f"{path}: a row that does not fit its column names; write it again")
            rows.append(dict(zip(columns, fields, strict=True)))
    return measures, rows


def _number(row: Mapping[str, str], name: str, path: Path) -> float:
    try:
        value = float(row[name])
    except (KeyError, ValueError):
        raise StatsError(f"{path}: {name} is not there, or no number; write it again") from None
    if not math.isfinite(value) or value < 0:
        raise StatsError(f"{path}: {name} is no measure; look at the segmentation")
    return value
