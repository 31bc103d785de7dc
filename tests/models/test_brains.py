"""Synthetic brains: the same person whatever the order, tissues where they belong, lesions that grow, seeded."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from models.cohorts import synthetic_brains
from models.cohorts.brains import brain_setting
from models.cohorts.brains_anatomy import CENTRE_MM, COARSE, anatomy
from models.cohorts.brains_fields import jacobian
from models.cohorts.brains_mixture import Sitters, mixture
from models.cohorts.brains_person import draw_person
from models.cohorts.brains_render import WHITEST, Setting, displacement, images
from models.cohorts.brains_scanner import BORE_MM, distorted, draw_scanner
from models.cohorts.brains_visit import SEQUENCES, draw_visit, posed

EACH = {"healthy": 1.0, "HGG": 1.0, "LGG": 1.0, "MS": 1.0}


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


def first_of(setting: Setting, diagnosis: str) -> int:
    return next(number for number in range(200) if setting.person(number).diagnosis == diagnosis)


def test_importing_cohorts_does_not_load_torch() -> None:
    program = "import sys, models.cohorts; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize(
    ("spacing_mm", "shape"),
    [(1.0, (180, 228, 192)), (2.0, (90, 114, 96)), (3.0, (60, 76, 64)), ((5.0, 1.0, 1.5), (36, 228, 128))],
)
def test_an_image_covers_the_same_head_whatever_its_spacing(
    spacing_mm: float | tuple[float, float, float], shape: tuple[int, int, int]
) -> None:
    lattice = brain_setting(spacing_mm=spacing_mm).lattice
    assert lattice.shape == shape
    middle = (lattice.points()[0, 0, 0] + lattice.points()[-1, -1, -1]) / 2
    assert torch.allclose(middle, torch.tensor((0.0, 18.0, 22.0)), atol=1e-4)


def test_a_scan_is_the_same_in_any_order_batch_and_process() -> None:
    cohort = synthetic_brains(3, 2, 5, "medium", spacing_mm=6.0, sequences=("T1", "FLAIR"))
    forward = [scan.load() for scan in cohort]
    backward = [scan.load() for scan in reversed(cohort.scans)][::-1]
    assert all(np.array_equal(a, b) for a, b in zip(forward, backward, strict=True))
    assert np.array_equal(pickle.loads(pickle.dumps(cohort.scans[3])).load(), forward[3])
    batch = images(brain_setting(5, "medium", spacing_mm=6.0), [(0, 0), (2, 1), (1, 0)], "FLAIR")
    for one, index in zip(batch, (1, 11, 5), strict=True):
        assert np.abs(one.numpy() - forward[index]).max() < 1e-4
    later = synthetic_brains(1, 2, 5, "medium", spacing_mm=6.0, first=2)
    assert np.array_equal(later.scans[1].load(), forward[10])
    assert not np.array_equal(synthetic_brains(1, 1, 6, "medium", spacing_mm=6.0).scans[0].load(), forward[0])
    assert len({image.tobytes() for image in forward}) == len(forward)


def test_scans_are_within_range_and_labelled() -> None:
    cohort = synthetic_brains(8, 2, 1, "hard", spacing_mm=6.0)
    assert cohort.synthetic
    assert len(cohort.subjects) == 8
    for scan in cohort:
        volume = scan.load()
        assert volume.dtype == np.float32
        assert volume.shape == (30, 38, 32)
        assert 0 <= volume.min() <= volume.max() <= 1
        assert scan.attributes["sex"] in "MF"
        low, high = map(int, scan.attributes["age_band"].split("-"))
        assert low <= int(scan.attributes["age"]) <= high
        assert ("grade" in scan.attributes) == (scan.attributes["diagnosis"] == "glioma")
        assert ("core" in scan.masks) == (scan.attributes["diagnosis"] == "glioma")
    for subject in cohort.subjects:
        first, second = (scan for scan in cohort if scan.subject == subject)
        assert (first.day, first.attributes["sex"]) == (0.0, second.attributes["sex"])
        assert second.day is not None
        assert second.day > 0


@pytest.mark.parametrize("level", ["easy", "hard"])
def test_nothing_folds_in_any_brain(level: str) -> None:
    """The determinant of every map is above 0, tumours that have grown for years included."""
    setting = brain_setting(3, level, diagnoses={"HGG": 1.0, "MS": 1.0})
    for number in range(10):
        assert jacobian(displacement(setting, (number, 6))[None], COARSE).min() > 0.02


def test_people_differ_by_millimetres_and_less_when_it_is_hard() -> None:
    def spread(level: str) -> float:
        setting = brain_setting(3, level, diagnoses={"healthy": 1.0})
        moved = torch.stack([displacement(setting, (number, 0)) for number in range(6)])
        return float((moved - moved.mean(0)).square().sum(1).mean().sqrt())

    easy, hard = spread("easy"), spread("hard")
    assert 3 < easy < 12
    assert hard < 0.7 * easy


def test_a_brain_has_the_size_of_its_person_at_any_spacing() -> None:
    """The template's hull holds 1.87 litres (MNI brains are larger than life), times the person's scale."""
    setting = brain_setting(2, "easy")
    scales = np.array([np.prod(setting.person(number).scale) for number in range(3)])
    litres = {
        step: [
            scan.masks["brain"]().sum() * step**3 / 1e6 for scan in synthetic_brains(3, 1, 2, "easy", spacing_mm=step)
        ]
        for step in (3.0, 6.0)
    }
    assert np.allclose(litres[3.0], 1.867 * scales, rtol=0.16)  # shape adds and takes
    assert np.allclose(litres[3.0], litres[6.0], rtol=0.03)


def test_men_have_larger_heads_as_far_as_asked() -> None:
    def ratio(effect: float) -> float:
        people = [draw_person(0, number, 1.0, effect, (1, 0, 0, 0)) for number in range(3000)]
        size = {sex: np.mean([np.prod(p.scale) for p in people if p.sex == sex]) for sex in "MF"}
        return float(size["M"] / size["F"])

    assert ratio(1.0) == pytest.approx((1.022 / 0.978) ** 3, abs=0.02)
    assert ratio(0.0) == pytest.approx(1.0, abs=0.02)


def test_sex_and_diagnosis_are_as_often_as_asked_and_independent() -> None:
    people = [draw_person(1, number, 1.0, 1.0, (0.5, 0.3, 0.0, 0.2)) for number in range(4000)]
    share = {name: np.mean([p.diagnosis == name for p in people]) for name in EACH}
    assert share == pytest.approx({"healthy": 0.5, "HGG": 0.3, "LGG": 0.0, "MS": 0.2}, abs=0.03)
    men = [np.mean([p.sex == "M" for p in people if p.diagnosis == name]) for name in ("healthy", "HGG", "MS")]
    assert men == pytest.approx([0.5] * 3, abs=0.06)


def mixed(setting: Setting, number: int, day: float) -> dict[str, torch.Tensor]:
    """Shares of tissue of one person on a day, without what differs between visits."""
    person = setting.person(number)
    visit = replace(setting.visit(number, 0), day=day, rotation=np.eye(3, dtype=np.float32), shift_mm=np.zeros(3))
    from models.cohorts.brains_render import _velocity

    velocity = _velocity(setting, person, visit, None)[None]
    scanner = draw_scanner(0, 0, 0.0, 1.0)
    sitters = Sitters([person], [visit], [scanner], [None], velocity, setting.strengths.person)
    found = mixture(setting.lattice, sitters, anatomy(1.5))
    total = torch.stack(tuple(found.shares.values())).sum(0)
    assert torch.allclose(total, found.head, atol=1e-4)  # every voxel of the head is something, all of it
    assert min(float(share.min()) for share in found.shares.values()) > -1e-5
    return {name: share[0] for name, share in found.shares.items()}


def test_ventricles_grow_and_tissue_is_lost_with_the_years() -> None:
    setting = brain_setting(4, "easy", spacing_mm=3.0, diagnoses={"healthy": 1.0})
    points = setting.lattice.points()
    middle = (points - torch.tensor((0.0, 18.0, 12.0))).abs().amax(-1) < 32
    today, later = (mixed(setting, 0, day) for day in (0.0, 3650.0))
    assert later["fluid"][middle].sum() > 1.05 * today["fluid"][middle].sum()
    assert later["grey"].sum() + later["white"].sum() < today["grey"].sum() + today["white"].sum()


def test_each_sequence_has_its_contrast() -> None:
    """T1: white above grey above fluid. T2: the reverse. FLAIR: grey above white, fluid dark."""
    setting = brain_setting(4, "easy", spacing_mm=3.0, diagnoses={"healthy": 1.0})
    person = setting.person(0)
    visit, scanner = setting.visit(0, 0), setting.scanner(setting.visit(0, 0).site)
    from models.cohorts.brains_render import _velocity

    sitters = Sitters([person], [visit], [scanner], [None], _velocity(setting, person, visit, None)[None], 1.18)
    shares = mixture(setting.lattice, sitters, anatomy(1.5)).shares
    means = {}
    for sequence in SEQUENCES:
        image = images(setting, [(0, 0)], sequence)
        means[sequence] = {name: float(image[shares[name] > 0.95].mean()) for name in ("white", "grey", "fluid")}
    for sequence in ("T1", "T1c"):
        assert means[sequence]["white"] > means[sequence]["grey"] + 0.05 > means[sequence]["fluid"] + 0.1
    assert means["T2"]["white"] < means["T2"]["grey"] < means["T2"]["fluid"]
    assert means["FLAIR"]["fluid"] < means["FLAIR"]["white"] < means["FLAIR"]["grey"]


def test_without_a_head_there_is_nothing_outside_the_brain() -> None:
    scan = synthetic_brains(1, 1, 2, "medium", spacing_mm=4.0, head=False).scans[0]
    volume, brain = scan.load(), scan.masks["brain"]()
    assert (volume[~brain] == 0).all()
    assert volume[brain].mean() > 0.1


def test_the_background_is_rician() -> None:
    """Where there is no signal the magnitude is Rayleigh: mean sigma sqrt(pi/2), variance (2 - pi/2) sigma^2."""
    setting = brain_setting(2, "medium", spacing_mm=3.0)
    scanner = setting.scanner(setting.visit(0, 0).site)
    image = images(setting, [(0, 0)], "T1")[0].double().pow(1 / scanner.gamma) * WHITEST
    corner = image[-8:, :8, :]  # above the forehead
    sigma = scanner.noise / 3.0**0.5
    assert float(corner.mean()) == pytest.approx(sigma * math.sqrt(math.pi / 2), rel=0.05)
    assert float(corner.var()) == pytest.approx((2 - math.pi / 2) * sigma**2, rel=0.1)


def test_a_pose_is_rigid_and_a_scanner_errs_away_from_its_centre() -> None:
    points = torch.from_numpy(np.random.default_rng(0).normal(0, 60, (1, 1, 50, 3)).astype(np.float32))
    moved = posed(points, draw_visit(1, 2, 1, 1.5, 3, 0.5))
    before, after = ((one[0, 0, :, None] - one[0, 0]).norm(dim=-1) for one in (points, moved))
    assert torch.allclose(before, after, atol=1e-3)
    assert not torch.allclose(points, moved, atol=1.0)
    scanner = draw_scanner(1, 0, 1.0, 1.0)
    centre = torch.tensor(CENTRE_MM)
    assert torch.equal(distorted(centre[None, None, None], scanner)[0, 0, 0], centre)
    far = centre + torch.tensor((BORE_MM, 0.0, 0.0))
    expected = BORE_MM * float(scanner.calibration[0]) + float(scanner.warp_mm[0])
    assert float((distorted(far[None, None, None], scanner)[0, 0, 0] - centre)[0]) == pytest.approx(expected, abs=1e-3)


def test_visits_are_mostly_at_the_home_site() -> None:
    def sites(moves: float) -> list[set[int]]:
        return [{draw_visit(0, p, k, 1.0, 4, moves).site for k in range(5)} for p in range(40)]

    assert all(len(one) == 1 for one in sites(0.0))
    assert np.mean([len(one) for one in sites(0.5)]) > 1.8
    assert {draw_visit(0, p, 0, 1.0, 4, 0.0).site for p in range(40)} == {0, 1, 2, 3}


@pytest.mark.parametrize(
    "wrong",
    [
        {"difficulty": "mild"},
        {"difficulty": 1.2},
        {"difficulty": float("nan")},
        {"spacing_mm": 0.1},
        {"spacing_mm": (2.0, 2.0)},
        {"sequences": ("PD",)},
        {"sequences": ()},
        {"diagnoses": {"stroke": 1.0}},
        {"diagnoses": {"HGG": 0.0}},
        {"sites": 0},
        {"moves": 1.5},
        {"people": 0},
        {"seed": -1},
    ],
    ids=str,
)
def test_what_cannot_be_made_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        synthetic_brains(**({"people": 2} | wrong))  # type: ignore[arg-type]
