"""A study with a new background and outline and its own lesion, whole volumes, all sequences alike.

1. head, scales, the card's grid (`preparation`); is it the card's kind of study (`domain`)?
2. the lesion as the mode wants it (`shape`)
3. a background latent for each slice (`generation`), decoded beside the lesion's latent
4. back to the study's grid, outline warped (`outline`), intensities back, air around the head (`intensity`)
5. `exact`: the lesion's own voxels (`fusion`), checked
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from models.lesion_anonymiser.domain import Domain, measured
from models.lesion_anonymiser.fusion import coherence, dilated, fused, must_be_kept, seam
from models.lesion_anonymiser.generation import background_latents, decoded, lesion_latents
from models.lesion_anonymiser.intensity import HEADROOM, head_of
from models.lesion_anonymiser.outline import Outline, draw_outline
from models.lesion_anonymiser.parts import LesionParts
from models.lesion_anonymiser.preparation import Prepared, prepared
from models.lesion_anonymiser.shape import filled_lesion, regularised, styled
from models.lesion_anonymiser.study import Anonymised, Floats, LesionStudy, Mask, Noise, NotAnonymised, Settings

RESTYLED_MM = 1.0  # about the lesion, of the mask for `latent` and what follows it: the outline does not move there


@dataclass(frozen=True, slots=True)
class _Lesion:
    """The lesion to be shown: its mask, and mapped volumes that hold it."""

    mask: Mask
    volumes: Mapping[str, Floats]
    figures: Mapping[str, float]


def anonymise(
    study: LesionStudy, parts: LesionParts, domain: Domain | None, noise: Noise, settings: Settings | None = None
) -> Anonymised:
    """The same study, card, noise and settings give the same bytes on one machine. Nothing is drawn here.

    `domain` None takes any study: for training and benches. Raises NotAnonymised (OutOfDomain among them) when nothing
    may leave, ValueError for a class or sampler that the card does not have.
    """
    how = settings if settings is not None else Settings()
    _must_be_told(study, parts, how)
    prep = prepared(study, parts.vae.config.side, parts.voxel_mm)
    if domain is not None:
        domain.must_hold(measured(prep, parts, domain.histograms))
    given = _checked(noise)
    lesion = _lesion(prep, how, given)
    if how.mode != "exact" and prep.grid.lost(lesion.mask):
        raise NotAnonymised("a part of the lesion is too small for the card's pixels: only the mode exact keeps it")
    border_mm = max(how.border_mm, 2 * max(study.spacing_mm))
    kept = dilated(lesion.mask, how.margin_mm if how.mode == "exact" else RESTYLED_MM, study.spacing_mm)
    if (kept & prep.head).sum() > how.largest * prep.head.sum():
        raise NotAnonymised("the lesion is too large a part of the head: what stays would identify the person")
    slices = _decoded(prep, lesion, parts, given, how)
    outline = draw_outline(kept, study.spacing_mm, how.outline_mm, given)
    head = _silhouette(slices, prep, parts, outline) | kept
    if how.mode == "exact":
        head |= dilated(kept, border_mm, study.spacing_mm) if kept.any() else kept
    made = {}
    for index, name in enumerate(parts.sequences):
        if name in study.volumes:
            mapped = outline.volume(prep.grid.to_study(slices[:, index].numpy()))
            made[name] = _finished(name, mapped, head, kept, prep, given, how, border_mm)
    shown = kept if how.mode == "exact" else np.zeros_like(kept)
    return Anonymised(
        made, lesion.mask, shown, head, outline, _figures(study, made, lesion, kept, head, outline, border_mm)
    )


def _must_be_told(study: LesionStudy, parts: LesionParts, how: Settings) -> None:
    unknown = [name for name in study.volumes if name not in parts.sequences]
    if unknown:
        raise NotAnonymised(f"the card makes {', '.join(parts.sequences)}; drop or hold the others ({len(unknown)})")
    if not study.lesion.any() and not how.without_lesion:
        raise NotAnonymised("the lesion's mask is empty, and nothing says that there is no lesion")
    if study.lesion.any() and how.without_lesion:
        raise NotAnonymised("there is a lesion's mask, and the study is said to have none")


def _checked(noise: Noise) -> Noise:
    """The caller's noise, of the shape that was asked for."""

    def drawn(shape: tuple[int, ...], purpose: str) -> Tensor:
        given = noise(shape, purpose)
        if tuple(given.shape) != shape or not bool(torch.isfinite(given).all()):
            raise ValueError(f"the noise for {purpose} is not {shape} of finite numbers")
        return given

    return drawn


def _lesion(prep: Prepared, how: Settings, noise: Noise) -> _Lesion:
    mask, mm = prep.study.lesion, prep.study.spacing_mm
    if how.mode == "regularise":
        found = regularised(mask, mm, how.shape, how.shape_tolerance, prep.head)
        volumes = {name: filled_lesion(one, mask, found.lesion) for name, one in prep.mapped.items()}
        told = {"volume_ratio": found.volume_ratio, "convexity_change": found.convexity_change, "shape": found.strength}
        return _Lesion(found.lesion, volumes, told)
    if how.mode == "style":
        return _Lesion(mask, styled(prep.mapped, mask, mm, how.style, noise), {})
    return _Lesion(mask, prep.mapped, {})


def _decoded(prep: Prepared, lesion: _Lesion, parts: LesionParts, noise: Noise, how: Settings) -> Tensor:
    """(slices, sequences, side, side), 0 to 1: D3 of the new background and the lesion."""
    mask = prep.mask_slices(lesion.mask)
    background = background_latents(
        parts,
        mask,
        prep.depth,
        parts.class_of(prep.study.kind),
        noise,
        sampler=how.sampler or parts.sampler,
        steps=how.steps or parts.steps,
        guidance=how.guidance,
        shared=how.shared,
    )
    only = prep.slices(parts.sequences, lesion.volumes) * mask[:, None]
    return decoded(parts, background, lesion_latents(parts, only))


def _silhouette(slices: Tensor, prep: Prepared, parts: LesionParts, outline: Outline) -> Mask:
    """The new head on the study's grid: that of the generated slices, warped. Nothing of the old one enters."""
    there = [index for index, name in enumerate(parts.sequences) if name in prep.study.volumes]
    brightest = np.asarray(slices[:, there].amax(1).numpy() / HEADROOM, np.float32)
    try:
        head = head_of(brightest, parts.voxel_mm)
    except NotAnonymised:
        raise NotAnonymised("the card made no head: it is not trained enough") from None
    warped: Mask = outline.volume(prep.grid.to_study(head.astype(np.float32))) > 0.5
    return warped


def _finished(
    name: str, mapped: Floats, head: Mask, kept: Mask, prep: Prepared, noise: Noise, how: Settings, border_mm: float
) -> Floats:
    """A mapped volume (study's grid) -> intensities of the study, air around the head, in `exact` the own lesion."""
    scale, original = prep.scales[name], prep.study.volumes[name]
    around = scale.around(mapped.shape, noise, name)
    out = np.where(head, scale.back(mapped), around)
    if how.mode != "exact":
        return out
    out = fused(original, out, kept, border_mm, prep.study.spacing_mm)
    out = np.clip(out, np.float32(scale.minimum), np.float32(scale.maximum))
    out[~head] = around[~head]
    out[kept] = original[kept]
    must_be_kept(original, out, kept)
    found = seam(original, out, kept, border_mm, prep.study.spacing_mm)
    if found > how.seam:
        raise NotAnonymised(f"a seam shows around the lesion in {name}: {found:.1f}, at most {how.seam:.1f} is allowed")
    return out


def _figures(
    study: LesionStudy,
    made: Mapping[str, Floats],
    lesion: _Lesion,
    kept: Mask,
    head: Mask,
    outline: Outline,
    border_mm: float,
) -> dict[str, float]:
    """Worst over sequences; `lesion_voxels_changed` counts voxels of the original mask in any sequence.

    `lesion_error`: root mean square change inside the lesion, in standard deviations of the original's head: 1 and more
    says that a decoded lesion is not the one that was there.
    """
    pairs = [(study.volumes[name], one) for name, one in made.items()]
    changed = np.any([old != new for old, new in pairs], axis=0)
    return {
        **lesion.figures,
        "lesion_voxels": float(study.lesion.sum()),
        "lesion_voxels_changed": float((changed & study.lesion).sum()),
        "lesion_error": max(_change(old, new, lesion.mask & study.lesion, head) for old, new in pairs),
        "seam": max(seam(old, new, kept, border_mm, study.spacing_mm) for old, new in pairs),
        "coherence": max(coherence(old, new, head) for old, new in pairs),
        "jacobian_min": outline.jacobian_min,
    }


def _change(old: Floats, new: Floats, where: Mask, head: Mask) -> float:
    if not where.any():
        return 0.0
    wrong = float(np.sqrt(np.mean((new[where].astype(np.float64) - old[where]) ** 2)))
    return wrong / max(float(old[head].std()), 1e-9)
