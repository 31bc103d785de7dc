"""Measures of a brain that FreeSurfer wrote, as embeddings: no network at all (paper A, section 4.1).

`freesurfer-15`: fifteen measures of aseg.stats and aparc.stats. paper A takes fifteen of Bajar et al. (2026) without
naming them, and that paper was not to be had (papers/facts.md 7): these are ours, the large structures and the cortex,
both sides together. `anatcl-descriptors`: thickness, volume and area of the 68 Desikan-Killiany regions, the three
descriptors that guide AnatCL, alone; `anatcl-thickness`, `-volume` and `-area` each by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from models.audit_encoders.baselines import Encoder, Pixels, Spacing
from models.audit_encoders.freesurfer_stats import HEMISPHERES, Stats, StatsError, read_stats
from models.audit_encoders.inputs import NotPrepared
from models.cards import Card, CardError

# Name -> volumes (mm^3) that are summed, each under its newer name and, where FreeSurfer renamed it, its older one.
VOLUMES: dict[str, tuple[tuple[str, ...], ...]] = {
    "intracranial": (("EstimatedTotalIntraCranialVol", "IntraCranialVol"),),
    "cortex": (("CortexVol",),),
    "cerebral white matter": (("CerebralWhiteMatterVol", "CorticalWhiteMatterVol"),),
    "subcortical grey matter": (("SubCortGrayVol",),),
    "lateral ventricles": tuple(
        (f"{s}-{n}",) for s in ("Left", "Right") for n in ("Lateral-Ventricle", "Inf-Lat-Vent")
    ),
    "third ventricle": (("3rd-Ventricle",),),
    "brain stem": (("Brain-Stem",),),
    "thalamus": tuple((f"{s}-Thalamus", f"{s}-Thalamus-Proper") for s in ("Left", "Right")),
    **{
        name.lower(): tuple((f"{side}-{name}",) for side in ("Left", "Right"))
        for name in ("Hippocampus", "Amygdala", "Caudate", "Putamen", "Pallidum")
    },
}
MEASURES = (*VOLUMES, "mean thickness", "white surface area")  # fifteen
DESCRIPTORS = {"thickness": "ThickAvg", "volume": "GrayVol", "area": "SurfArea"}


def fifteen(stats: Stats, *, by_head: bool = False) -> Pixels:
    """(15,) float32, as in MEASURES: mm^3, then mm, then mm^2. Raises StatsError for one that is missing.

    `by_head` divides the volumes by the intracranial volume, the area by its power 2/3 and the thickness by its power
    1/3, so that head size counts once, in the first measure.
    """
    volumes = {name: sum(stats.volume(*names) for names in parts) for name, parts in VOLUMES.items()}
    area = sum(stats.cortex[side].whole["WhiteSurfArea"] for side in HEMISPHERES)
    thick = sum(
        stats.cortex[side].whole["MeanThickness"] * stats.cortex[side].whole["WhiteSurfArea"] for side in HEMISPHERES
    )
    head = volumes["intracranial"]
    if not head > 0 or not area > 0:
        raise StatsError("an intracranial volume or a cortical area of 0; look at the segmentation")
    found = np.array([*volumes.values(), thick / area, area], np.float64)
    if by_head:
        found[1:-2] /= head
        found[-2:] /= head ** (1 / 3), head ** (2 / 3)
    return found.astype(np.float32)


def descriptors(stats: Stats, *names: str) -> Pixels:
    """(68 for each name,) float32: of the left regions, then of the right, in order of name. Raises StatsError."""
    made = []
    for name in names or tuple(DESCRIPTORS):
        for side in HEMISPHERES:
            regions = stats.cortex[side].regions
            made += [regions[region][DESCRIPTORS[name]] for region in sorted(regions)]
    return np.array(made, np.float32)


def measures_of(subject: Path, *, by_head: bool = False) -> dict[str, Pixels]:
    """Every embedding of one subject folder of FreeSurfer, by the name of their card. Raises StatsError."""
    stats = read_stats(subject)
    alone = {f"anatcl-{name}": descriptors(stats, name) for name in DESCRIPTORS}
    return {"freesurfer-15": fifteen(stats, by_head=by_head), "anatcl-descriptors": descriptors(stats), **alone}


def encoder(card: Card, _tensors: Mapping[str, Any]) -> Encoder:
    """Takes the vector itself: no scan has FreeSurfer's measures in it. Raises CardError for another length."""
    if card.dimensions not in (len(MEASURES), 68, 3 * 68):
        raise CardError(f"{card.name}: FreeSurfer's measures are 15, 68 or 204")

    def measured(measures: Pixels, _spacing_mm: Spacing = None, /) -> Pixels:
        if measures.shape != (card.dimensions,):
            raise NotPrepared(
                f"{card.name} takes {card.dimensions} measures, not pixels. Run FreeSurfer's recon-all, then "
                "deid-gateway models measures SUBJECTS_DIR --out FILE.npz, and audit that file"
            )
        return np.asarray(measures, np.float32)

    return measured
