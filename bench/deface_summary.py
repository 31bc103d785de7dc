"""From the figures of all cases to the result file and the table."""

from __future__ import annotations

import statistics
from typing import Any

from rich.table import Table

from bench.deface_attack import rank1

SHOWN = (
    *("hold_rate", "face_hits_before", "face_hits_after", "gate_passes"),
    *("rank1_before", "rank1_after", "people", "cpu_seconds_median"),
)


def summary(figures: list[dict[str, Any]], modalities: tuple[str, ...]) -> dict[str, Any]:
    """The result file. A held head counts as one with its face. `modalities`: the first is the gallery's."""
    made = [one for one in figures if not one["real"]]
    seen = [(*one["case"].split("-"), one["maps"]) for one in made if one["maps"]]
    gallery = {person: maps["face_before"] for person, modality, maps in seen if modality == modalities[0]}

    def recognised(which: str, among: tuple[str, ...]) -> float | None:
        probes = [(one, maps[which]) for one, modality, maps in seen if modality in among and one in gallery]
        return rank1(gallery, probes) if gallery and probes else None

    sharp = tuple(modality for modality in modalities[1:] if modality != "PET")

    def side(names: list[dict[str, Any]]) -> dict[str, float]:
        voxels = sum(one["face_skin_voxels"] for one in names)
        return {
            "brain_voxels_changed": sum(one["brain_voxels_changed"] for one in names),
            "face_skin_removed": sum(one["face_skin_removed"] * one["face_skin_voxels"] for one in names)
            / max(1, voxels),
            "face_skin_removed_worst": min((one["face_skin_removed"] for one in names), default=0.0),
        }

    peers = {
        name: side([one["peers"][name] for one in made if name in one["peers"]])
        for name in ("quickshear", "pydeface")
        if any(name in one["peers"] for one in made)
    }
    return {
        "command": "make bench NAME=deface",
        "heads": len(made),
        "hold_rate": sum(bool(one["held"]) for one in made) / max(1, len(made)),
        **side([{**one, "face_skin_removed": 0.0 if one["held"] else one["face_skin_removed"]} for one in made]),
        "face_hits_before": sum(one["gate"]["faces_before"] for one in made),
        "face_hits_after": sum(one["gate"]["faces_after"] for one in made),
        "gate_passes": sum(one["gate"]["outcome"] == "pass" for one in made),
        "rank1_before": recognised("face_before", sharp),
        "rank1_after": recognised("face_after", sharp),
        "rank1_chance": 1 / max(1, len(gallery)),
        "rank1_probes": sum(modality in sharp and person in gallery for person, modality, _ in seen),
        "rank1_by_modality": {
            one: [recognised("face_before", (one,)), recognised("face_after", (one,))] for one in modalities[1:]
        },
        "people": len(gallery),
        "embedder": "own: relief of the aligned face surface, other session of the same head (bench/deface_attack.py)",
        "cpu_seconds_median": statistics.median(one["cpu_seconds"] for one in made),
        "peers": peers,
        "cases": [{key: value for key, value in one.items() if key != "maps"} for one in figures],
    }


def table(result: dict[str, Any]) -> Table:
    shown = Table(title=f"{result['heads']} synthetic volumes of {result['people']} heads")
    for column in ("tool", "brain voxels changed", "facial skin removed", "worst head"):
        shown.add_column(column, justify="left" if column == "tool" else "right")
    for name, one in {"deface (this gateway)": result, **result["peers"]}.items():
        worst = f"{one['face_skin_removed_worst']:.2%}"
        shown.add_row(name, f"{one['brain_voxels_changed']:,}", f"{one['face_skin_removed']:.2%}", worst)
    return shown
