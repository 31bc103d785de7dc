"""Figures of bench.lesion: reconstruction, anonymity with the paper's baselines, time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from skimage.metrics import structural_similarity

from bench.lesion_released import Released
from gateway.evidence.anonymity import anonymised_rate, anonymity
from models.cohorts import Cohort
from models.lesion_anonymiser import LesionParts, LesionStudy, Settings, anonymise, seeded_noise
from models.lesion_anonymiser.domain import reconstruction_error
from models.lesion_anonymiser.preparation import prepared
from models.train.lesion_material import visits_of

Floats = NDArray[np.float32]
DEPTHS = (0.45, 0.55, 0.65)  # slices that the criterion looks at
PAPER = {"ssim": 0.982, "anonymity_rate": 0.86}
STUDIES = 20  # of the autoencoders' figures


@torch.no_grad()
def reconstructions(parts: LesionParts, cohort: Cohort) -> dict[str, Any]:
    """SSIM, PSNR and MSE of D3 on slices of people that it was not trained on, whole slices as in the paper."""
    ssim, mse, relative = [], [], []
    for visit in visits_of([cohort])[:STUDIES]:
        prep = prepared(visit.study(parts.sequences), parts.vae.config.side, parts.voxel_mm)
        x, mask = prep.slices(parts.sequences), prep.mask_slices(prep.study.lesion)[:, None]
        background, lesion = parts.vae.split(x, mask)
        made = parts.vae.join(parts.vae.background_encoder(background).mean, parts.vae.lesion_encoder(lesion).mean)
        for real, given in zip(x.flatten(0, 1).numpy(), made.clamp(0, 1).flatten(0, 1).numpy(), strict=True):
            if real.any():
                ssim.append(structural_similarity(real, given, data_range=1.0))
                mse.append(float(((real - given) ** 2).mean()))
        relative.append(reconstruction_error(prep, parts))
    psnr = [10 * np.log10(1 / max(one, 1e-12)) for one in mse]
    return {
        "ssim": round(float(np.mean(ssim)), 4),
        "ssim of the paper": PAPER["ssim"],
        "psnr_db": round(float(np.mean(psnr)), 2),
        "mse": round(float(np.mean(mse)), 6),
        "error over spread": round(float(np.mean(relative)), 3),
        "slices": len(ssim),
    }


def released_figures(released: Sequence[Released], tested: int) -> dict[str, Any]:
    """Means over people; `refused` of those tested."""
    names = ("seam", "coherence", "jacobian_min")
    found = {name: round(float(np.nanmean([one.figures[name] for one in released])), 3) for name in names}
    changed = int(sum(one.figures["lesion_voxels_changed"] for one in released))
    return {**found, "lesion_voxels_changed": changed, "released": len(released), "refused": tested - len(released)}


def anonymity_rates(released: Sequence[Released]) -> dict[str, Any]:
    """The paper's criterion at 3.68 dB against the nearest other person at the same depth, in the brain off the lesion.

    Baselines as in the paper's table 7, whose strengths it does not give but for the noise.
    """
    name = next(iter(released[0].volumes))
    rows = [(number, int(share * len(one.brain))) for number, one in enumerate(released) for share in DEPTHS]
    rows = [(n, z) for n, z in rows if (released[n].brain & ~released[n].study.lesion)[z].any()]
    real = np.stack([released[n].study.volumes[name][z] for n, z in rows])
    mask = np.stack([(released[n].brain & ~released[n].study.lesion)[z] for n, z in rows])
    subject, place = (np.array(one) for one in zip(*rows, strict=True))
    made = {"ours": np.stack([released[n].volumes[name][z] for n, z in rows])}
    made |= {kind: np.stack([change(one) for one in real]) for kind, change in BASELINE_IMAGES.items()}
    out: dict[str, Any] = {"rate of the paper": PAPER["anonymity_rate"]}
    for kind, images in made.items():
        found = anonymity(images, real, subject, place, mask, np.random.default_rng(0))
        rate = anonymised_rate(found.nearest_db, subject)
        out[kind] = {
            "rate": round(rate.rate, 3),
            "lower": round(rate.lower, 3),
            "against a random other": round(anonymised_rate(found.random_db, subject).rate, 3),
            "psnr_db": round(float(np.mean(found.own_psnr_db)), 2),
            "own original nearest": round(float(found.own_nearest.mean()), 3),
        }
    return out


def _noisy(image: Floats, spread: float) -> Floats:
    drawn = np.random.default_rng(int(image.sum() * 1000)).standard_normal(image.shape)
    return np.asarray(np.clip(image + spread * drawn, 0, 1), np.float32)


def _cropped(image: Floats) -> Floats:
    rows, columns = image.shape
    cut = image[rows // 10 : rows - rows // 10, columns // 10 : columns - columns // 10]
    return np.asarray(cv2.resize(cut, (columns, rows), interpolation=cv2.INTER_LINEAR), np.float32)


BASELINE_IMAGES: dict[str, Callable[[Floats], Floats]] = {
    "blur": lambda image: np.asarray(cv2.GaussianBlur(image, (0, 0), 2.0), np.float32),
    "flip": lambda image: np.ascontiguousarray(image[:, ::-1]),
    "crop and resize": _cropped,
    "noise 0.1": lambda image: _noisy(image, 0.1),
    "noise 0.5": lambda image: _noisy(image, 0.5),
}


def seconds_by_steps(parts: LesionParts, study: LesionStudy) -> dict[str, Any]:
    """Seconds of one core for one volume (all sequences, exact), after one to warm up; busy neighbours do not count."""
    out: dict[str, Any] = {}
    samplers = [(parts.sampler, 1), (parts.sampler, 4), ("ddim", 20)]
    anonymise(study, parts, None, seeded_noise(0), Settings(steps=1, seam=1e9))
    for sampler, steps in samplers:
        began = time.process_time()
        anonymise(study, parts, None, seeded_noise(0), Settings(sampler=sampler, steps=steps, seam=1e9))
        out[f"{sampler}, {steps} steps"] = round(time.process_time() - began, 2)
    return out
