"""Is what was aligned a head? Measured at the template's places, never taken from the header."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gateway.pixels.head_alignment import Alignment
from gateway.pixels.head_template import head_template
from gateway.pixels.head_tissue import tissue_of
from gateway.volumes import Volume

STEP = 2  # of the template's voxels
LOWEST_MM = -60.0  # template LPS: above the mouth, where heads are alike
SKIN_MM = 6.0  # either side of the outline


@dataclass(frozen=True, slots=True)
class Evidence:
    """`nmi` and `share` are those of the alignment. Of what is imaged: `overlap` is the Dice coefficient of tissue and
    template head above the mouth, `brain` the share of the template's brain that holds tissue. `imaged` is the share of
    the brain that is imaged, `face` that of the face's tissue that is there; `scale` the least and the largest stretch.
    """

    nmi: float
    share: float
    overlap: float
    brain: float
    imaged: float
    face: float
    scale: tuple[float, float]

    def numbers(self) -> dict[str, float]:
        """As facts of an estimate."""
        flat = {"scale_least": self.scale[0], "scale_most": self.scale[1]}
        measured = ("nmi", "share", "overlap", "brain", "imaged", "face")
        return {name: round(value, 4) for name, value in ({n: getattr(self, n) for n in measured} | flat).items()}


def evidence_of(volume: Volume, alignment: Alignment, *, hounsfield: bool) -> Evidence:
    """What speaks for and against a head under this alignment."""
    from scipy import ndimage

    template = head_template()
    tissue = tissue_of(volume, hounsfield=hounsfield)
    index = np.argwhere(np.ones(template.head[::STEP, ::STEP, ::STEP].shape, bool)) * STEP
    points = index[:, ::-1] * template.spacing_mm + np.array(template.origin_mm)
    to_index = np.linalg.inv(volume.affine) @ alignment.to_patient
    at = points @ to_index[:3, :3].T + to_index[:3, 3]
    limits = np.array(tissue.shape[::-1]) - 1
    inside = np.all((at >= -0.5) & (at <= limits + 0.5), axis=1)
    there = np.zeros(len(index), bool)
    there[inside] = ndimage.map_coordinates(tissue.astype(np.uint8), at[inside].T[::-1], order=0, mode="nearest") > 0
    head, brain, face, valid = (
        mask[tuple(index.T)] for mask in (template.head, template.brain, template.face & template.head, template.valid)
    )
    upper = inside & valid & (points[:, 2] > LOWEST_MM)
    both = (head & there & upper).sum()
    stretch = np.linalg.svd(alignment.to_patient[:3, :3], compute_uv=False)
    return Evidence(
        nmi=alignment.nmi,
        share=alignment.share,
        overlap=_ratio(2 * both, (head & upper).sum() + (there & upper).sum()),
        brain=_ratio((brain & there).sum(), (brain & inside).sum()),
        imaged=_ratio((brain & inside).sum(), brain.sum()),
        face=_ratio((face & inside & there).sum(), face.sum()),
        scale=(float(stretch.min()), float(stretch.max())),
    )


def _ratio(part: float | np.integer, whole: float | np.integer) -> float:
    return float(part) / float(whole) if whole else 0.0
