"""`reface` and the gate together: the average face passes where a policy puts it, the person's own face never does."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from head_series import head_volume, instances, to_template, write_series
from scipy import ndimage

from gateway.gate.face_average import own_relief_left
from gateway.gate.face_detector import find_face
from gateway.gate.reading import Pair
from gateway.gate.residual_face import OWN_LEFT, ResidualFace
from gateway.pixels import deface_find
from gateway.pixels.deface import Deface
from gateway.pixels.head_alignment import Alignment
from gateway.pixels.stage import Instance
from gateway.study import Outcome, Verdict
from gateway.volumes import Volume

WORK: Any = SimpleNamespace(policy=SimpleNamespace(digest="d"), seed=b"s" * 32)
TRUTH = Alignment(np.linalg.inv(to_template()), 1.14, 0.99)
# Across and height (template LPS mm), width mm, how far forward mm: long nose, deep eyes, strong brow and lip, a cheek
FEATURES = ((0, -52, 12, 9), (-32, -30, 12, -8), (32, -30, 12, -8), (0, -8, 18, 6), (0, -80, 14, 7), (-34, -60, 14, 6))


def person(features: tuple[tuple[float, ...], ...] = FEATURES) -> Volume:
    """Synthetic: the average head with features of its own; tissue is moved forward or back in the front half."""
    volume = head_volume()
    index = np.argwhere(np.ones(volume.values.shape, bool))[:, ::-1]
    points = np.column_stack([index, np.ones(len(index))]) @ (to_template() @ volume.affine).T
    forward = sum(
        far * np.exp(-((points[:, 0] - x) ** 2 + (points[:, 2] - z) ** 2) / (2 * width**2))
        for x, z, width, far in features
    )
    front = np.clip((-20 - points[:, 1]) / 30, 0, 1)
    at = index[:, ::-1].T.astype(float)
    at[1] += front * forward / volume.spacing_mm[1]
    moved = ndimage.map_coordinates(volume.values, at, order=1, mode="nearest")
    return Volume(moved.reshape(volume.values.shape).astype(np.float32), volume.affine)


@pytest.fixture
def refaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Instance]:
    """A person's series with the average face on it."""
    monkeypatch.setattr(deface_find, "align", lambda volume, hounsfield: TRUTH)
    group = instances(write_series(person(), tmp_path / "in"), tmp_path / "out")
    stage = Deface(mode="reface")
    stage.apply(group, WORK, stage.estimate(group, WORK))
    return group


def judged(group: list[Instance], **parameters: Any) -> Verdict:
    return ResidualFace(**parameters).judge([Pair(one.name, one.original, one.candidate) for one in group], WORK)


def test_the_average_face_passes_where_the_policy_puts_it(refaced: list[Instance]) -> None:
    verdict = judged(refaced, average_face=True)
    assert (verdict.outcome, verdict.findings) == (Outcome.PASS, ())
    assert (verdict.assessed["faces_before"], verdict.assessed["faces_after"]) == (1, 1)


def test_the_average_face_holds_where_no_policy_says_so(refaced: list[Instance]) -> None:
    assert "a face is seen in the surface" in {finding.rule for finding in judged(refaced).findings}


def test_the_persons_own_face_holds_all_the_same(refaced: list[Instance]) -> None:
    """Nothing was done; or noise alone was added, so that no voxel is what it was."""
    for instance in refaced:
        instance.candidate.write_bytes(instance.original.read_bytes())
    assert judged(refaced, average_face=True).reason == "residual_face"
    noisy = person()
    noisy = Volume(noisy.values + np.random.default_rng(4).normal(0, 4, noisy.values.shape), noisy.affine)
    for instance, path in zip(refaced, write_series(noisy, refaced[0].original.parent / "noisy"), strict=True):
        instance.candidate.write_bytes(path.read_bytes())
    rules = {finding.rule for finding in judged(refaced, average_face=True).findings}
    assert rules == {
        "the surface of the original's face is in place",
        "what is the person's own in the face is still there",
    }


@pytest.mark.parametrize("moved_mm", [4.0, -6.0])
def test_the_persons_own_face_moved_elsewhere_is_still_theirs(moved_mm: float) -> None:
    """Pushed back or forward, no point of the surface is where it was."""
    before = person()
    affine = before.affine.copy()
    affine[1, 3] += moved_mm
    face = find_face(before, hounsfield=False)
    assert face is not None
    assert own_relief_left(face, Volume(before.values, affine), hounsfield=False) > 0.7


def test_what_is_left_of_a_face_grows_with_the_share_of_it() -> None:
    """Features half as strong: about half of the person's own relief, less what the fit takes for the average face."""
    face = find_face(person(), hounsfield=False)
    assert face is not None
    left = [
        own_relief_left(face, person(tuple((x, z, w, share * far) for x, z, w, far in FEATURES)), hounsfield=False)
        for share in (0.0, 0.5, 1.0)
    ]
    assert abs(left[0]) < OWN_LEFT
    assert OWN_LEFT < left[1] < 0.75
    assert left[2] == pytest.approx(1.0)


def test_where_no_surface_is_left_nothing_vouches_for_it() -> None:
    face = find_face(person(), hounsfield=False)
    assert face is not None
    empty = Volume(np.zeros_like(face.surface.depth_mm, shape=(28, 70, 52)), head_volume().affine)
    assert own_relief_left(face, empty, hounsfield=False) == 1.0
