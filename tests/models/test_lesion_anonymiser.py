"""The lesion anonymiser on whole volumes: what stays, what changes, what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import ndimage
from torch import Tensor

from models.cards import CardError
from models.lesion_anonymiser import (
    Anonymised,
    Domain,
    LesionParts,
    LesionStudy,
    NotAnonymised,
    OutOfDomain,
    Settings,
    anonymise,
    domain_of,
    parts_of,
    seeded_noise,
)
from models.lesion_anonymiser.fusion import dilated
from models.train.lesion import train_lesion
from models.train.trained import Options, Trained
from tests.lesion_studies import LOOK, MM, PLAN, cohort, study


@pytest.fixture(scope="module")
def trained() -> Trained:
    torch.set_num_threads(1)
    return train_lesion("tiny-lesion-1", PLAN, [cohort(10)], Options(seed=1), lambda *_: None)


@pytest.fixture(scope="module")
def parts(trained: Trained) -> LesionParts:
    return parts_of(trained.card, trained.tensors)


@pytest.fixture(scope="module")
def domain(trained: Trained) -> Domain:
    return domain_of(trained.card, trained.tensors)


def made(parts: LesionParts, given: LesionStudy, seed: int = 3, **how: object) -> Anonymised:
    return anonymise(given, parts, None, seeded_noise(seed), replace(Settings(), **how))  # type: ignore[arg-type]


def test_exact_keeps_every_voxel_of_the_dilated_lesion_and_changes_the_rest(parts: LesionParts, domain: Domain) -> None:
    given = study(30, scale=1234.5)
    result = anonymise(given, parts, domain, seeded_noise(3))
    kept = ndimage.distance_transform_edt(~given.lesion, sampling=MM) <= 2.0
    np.testing.assert_array_equal(result.kept, kept)
    for name, volume in result.volumes.items():
        assert volume.dtype == np.float32
        assert volume.shape == given.shape
        assert volume[kept].tobytes() == given.volumes[name][kept].tobytes()
        assert (volume[~kept] != given.volumes[name][~kept])[result.head[~kept]].mean() > 0.9
        assert volume.min() >= given.volumes[name].min()
        assert volume.max() <= given.volumes[name].max()
        assert not volume[~result.head].any()  # the original has 0 around the head
    assert result.figures["lesion_voxels_changed"] == result.figures["lesion_error"] == 0
    assert result.figures["seam"] <= Settings().seam
    np.testing.assert_array_equal(result.lesion, given.lesion)


def test_the_same_noise_gives_the_same_bytes_and_other_noise_another_head(parts: LesionParts) -> None:
    first, again, other = (made(parts, study(31), seed) for seed in (1, 1, 2))
    for name in LOOK:
        assert first.volumes[name].tobytes() == again.volumes[name].tobytes()
        assert not np.array_equal(first.volumes[name], other.volumes[name])
    assert not np.array_equal(first.outline.displacement_mm, other.outline.displacement_mm)


def test_nothing_of_the_background_enters(parts: LesionParts) -> None:
    """Another texture of the same head around the same lesion gives the same mapped background, up to its scale."""
    given = study(32)
    random = np.random.default_rng(0)
    moved = {}
    for name, volume in given.volumes.items():
        outside = (volume > 0.2) & ~dilated(given.lesion, 12.0, MM) & (volume < np.percentile(volume[volume > 0], 90))
        moved[name] = np.where(outside, random.permutation(volume[outside]).mean(), volume).astype(np.float32)
    one, other = made(parts, given), made(parts, replace(given, volumes=moved))
    for name in LOOK:
        scale = one.volumes[name][one.head].max() / other.volumes[name][one.head].max()
        away = one.head & ~dilated(given.lesion, 12.0, MM)
        assert scale == pytest.approx(1, abs=0.1)
        np.testing.assert_allclose(one.volumes[name][away], other.volumes[name][away], rtol=0.1, atol=0.02)


@pytest.mark.parametrize("missing", list(LOOK))
def test_a_study_may_lack_a_sequence(parts: LesionParts, missing: str) -> None:
    left = [name for name in LOOK if name != missing]
    result = made(parts, study(33, left))
    assert list(result.volumes) == left
    with pytest.raises(NotAnonymised, match="drop or hold"):
        made(parts, replace(study(33, left), volumes={"DWI": study(33).volumes[missing]}))


@pytest.mark.parametrize("sampler", ["ddim", "dpm", "ancestral", "flow"])
def test_samplers_of_few_steps(parts: LesionParts, sampler: str) -> None:
    one, again = (made(parts, study(34), sampler=sampler, steps=2) for _ in range(2))
    assert all(one.volumes[name].tobytes() == again.volumes[name].tobytes() for name in LOOK)


def test_latent_regularise_and_style_give_back_a_lesion_that_is_not_the_originals(parts: LesionParts) -> None:
    given = study(35)
    latent, styled = made(parts, given, mode="latent"), made(parts, given, mode="style", style=1.0)
    regular = made(parts, given, mode="regularise", shape=1.0)
    for result in (latent, styled, regular):
        assert not result.kept.any()
        assert result.figures["lesion_voxels_changed"] > 0
        assert result.figures["lesion_error"] > 0
    assert not np.array_equal(latent.volumes["T1"], styled.volumes["T1"])
    np.testing.assert_array_equal(latent.lesion, given.lesion)
    assert regular.figures["volume_ratio"] == pytest.approx(1)


def test_what_is_not_told_holds(parts: LesionParts) -> None:
    given = study(36)
    empty = replace(given, lesion=np.zeros_like(given.lesion))
    with pytest.raises(NotAnonymised, match="nothing says"):
        made(parts, empty)
    assert made(parts, empty, without_lesion=True).figures["lesion_voxels"] == 0
    with pytest.raises(NotAnonymised, match="said to have none"):
        made(parts, given, without_lesion=True)
    with pytest.raises(ValueError, match="HGG, LGG"):
        made(parts, replace(given, kind="MS"))
    assert made(parts, replace(given, kind=None)).volumes
    speck = np.zeros_like(given.lesion)
    speck[6, 13, 12] = True
    assert made(parts, replace(given, lesion=speck)).volumes
    with pytest.raises(NotAnonymised, match="too small"):
        made(replace(parts, voxel_mm=(24.0, 24.0, 24.0)), replace(given, lesion=speck), mode="latent")
    with pytest.raises(NotAnonymised, match="too large"):
        made(parts, replace(given, lesion=dilated(given.lesion, 45.0, MM)))
    with pytest.raises(NotAnonymised, match="seam"):
        made(parts, given, seam=1e-6)


def test_noise_of_the_wrong_shape_is_refused(parts: LesionParts) -> None:
    def short(shape: tuple[int, ...], purpose: str) -> Tensor:
        return torch.randn(shape)[:1] if purpose == "background" else torch.zeros(shape)

    with pytest.raises(ValueError, match="background"):
        anonymise(study(37), parts, None, short)


def test_studies_like_those_trained_on_pass_and_others_name_what_is_out(parts: LesionParts, domain: Domain) -> None:
    assert anonymise(study(40), parts, domain, seeded_noise(0)).volumes
    given = study(40)
    random = np.random.default_rng(1)
    head = given.volumes["T1"] > 0
    noise = {name: np.where(head, random.random(head.shape), 0).astype(np.float32) for name in LOOK}
    few = random.random(head.shape) < 0.05
    sparse = {
        name: np.where(head, np.where(few | given.lesion, one, 0.2 * one.max()), 0).astype(np.float32)
        for name, one in given.volumes.items()
    }
    wrong = {
        "spacing z": replace(given, spacing_mm=(25.0, 8.0, 8.0)),
        "head y": replace(given, spacing_mm=(10.0, 4.0, 8.0)),
        "histogram": replace(given, volumes=noise),
        "bright share": replace(given, volumes=sparse),
        "dome": replace(
            given, volumes={k: v[::-1].copy() for k, v in given.volumes.items()}, lesion=given.lesion[::-1].copy()
        ),
        "field of view": LesionStudy(
            {k: np.pad(v, ((0, 40), (0, 0), (0, 0))) for k, v in given.volumes.items()},
            np.pad(given.lesion, ((0, 40), (0, 0), (0, 0))), MM, "HGG",
        ),
    }  # fmt: skip
    for statistic, other in wrong.items():
        with pytest.raises(OutOfDomain, match=statistic) as caught:
            anonymise(other, parts, domain, seeded_noise(0))
        assert any(one.statistic.startswith(statistic) for one in caught.value.outside)


def test_a_domain_is_the_stated_quantile_widened() -> None:
    values = [{"head z (mm)": float(k), "histogram T1": k / 1000} for k in range(1, 101)]
    found = Domain.fitted(values, torch.zeros(1, 32), quantile=0.9)
    low, high = np.quantile(np.arange(1, 101), [0.05, 0.95])
    assert found.limits["head z (mm)"] == pytest.approx((low / 1.25, high * 1.25))
    assert found.limits["histogram T1"] == pytest.approx((0, np.quantile(np.arange(1, 101) / 1000, 0.9) * 1.25))
    assert [one.statistic for one in found.outside({"head z (mm)": float("nan"), "histogram T1": 0.05})] == [
        "head z (mm)"
    ]


def test_a_card_without_a_domain_or_with_other_tensors_does_not_load(trained: Trained) -> None:
    bare = {k: v for k, v in trained.card.parameters.items() if not k.startswith("domain")}
    with pytest.raises(CardError, match="domain"):
        domain_of(trained.card.model_copy(update={"parameters": bare}), trained.tensors)
    with pytest.raises(CardError, match=r"vae\.\*"):
        parts_of(trained.card, {k: v for k, v in trained.tensors.items() if not k.startswith("vae.joint")})
    fewer = {k: v for k, v in trained.card.parameters.items() if k != "side"}
    with pytest.raises(CardError, match="side"):
        parts_of(trained.card.model_copy(update={"parameters": fewer}), trained.tensors)
    plain = parts_of(trained.card, {k: v for k, v in trained.tensors.items() if not k.startswith("student")})
    with pytest.raises(ValueError, match="student"):
        made(plain, study(41), sampler="flow")


def test_studies_that_are_none_are_refused() -> None:
    given = study(50)
    for wrong in (
        {"volumes": {}},
        {"lesion": given.lesion[1:]},
        {"spacing_mm": (1.0, 0.0, 1.0)},
        {"volumes": {"T1": np.full(given.shape, np.nan, np.float32)}},
    ):
        with pytest.raises(ValueError):  # noqa: PT011 - each says another thing
            replace(given, **wrong)  # type: ignore[arg-type]
    for how in ({"mode": "paste"}, {"shared": 1.5}, {"steps": 0}, {"border_mm": 0}):
        with pytest.raises(ValueError):  # noqa: PT011 - each says another thing
            replace(Settings(), **how)  # type: ignore[arg-type]
