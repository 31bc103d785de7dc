"""A static series costs four passes of OCR at most, the stage's and the gate's together, however many frames it has."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pydicom import dcmread
from text_objects import US, group_of, mask_of, save, texture, work

from gateway.gate import Pair
from gateway.gate.residual_text import ResidualText
from gateway.pixels.burned_in_text import BurnedInText
from gateway.pixels.text_engine import engine
from gateway.study import Outcome

MOST = 4
LINE = "ZZSYNTH LEAKTEST 31.01.1950"


def clip(
    frames: int, shape: tuple[int, int], *, colour: bool, size: int
) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Frames of a still screen with one line of text, a part that moves, and noise; and where the ink is."""
    generator = np.random.default_rng(11)
    mask = mask_of(LINE, shape, size=size)
    still = texture(shape) * (1 - mask) + 230 * mask
    rows, columns = shape
    stack = np.empty((frames, *shape, 3) if colour else (frames, *shape), np.uint8)
    for number in range(frames):
        frame = still + generator.normal(0, 1.0, shape)
        frame[rows // 2 : -10, columns // 3 : columns // 2] += 25 * np.sin(number)
        grey = np.clip(frame, 0, 255).astype(np.uint8)
        stack[number] = grey[..., None] if colour else grey
        if colour:
            stack[number, -30:-10, 20:60] = (200, 90, 0)  # a patch of flow
    return stack, mask > 0.4


@pytest.mark.parametrize(
    ("frames", "shape", "colour", "size"),
    [(300, (120, 256), False, 16), (60, (120, 256), True, 16), (3, (768, 1024), True, 22), (4, (120, 256), False, 16)],
    ids=["300 frames", "colour", "a large screen", "few frames"],
)
def test_a_static_clip_takes_four_passes_and_leaves_without_its_text(
    tmp_path: Path, frames: int, shape: tuple[int, int], size: int, *, colour: bool
) -> None:
    stack, ink = clip(frames, shape, colour=colour, size=size)
    (instance,) = group_of(tmp_path, save(tmp_path / "a.dcm", list(stack), US))
    stage, before = BurnedInText(), engine().passes
    stage.apply([instance], work(), stage.estimate([instance], work()))
    passes = engine().passes - before
    assert not dcmread(instance.candidate).pixel_array[:, ink].any()
    verdict = ResidualText().judge([Pair(instance.name, instance.original, instance.candidate)], work().policy)
    assert verdict.outcome is Outcome.PASS, verdict.findings
    assert passes + verdict.assessed["passes"] <= MOST


def test_frames_that_differ_by_noise_alone_are_one_picture(tmp_path: Path) -> None:
    stack, ink = clip(4, (120, 256), colour=False, size=16)
    stack[:] = stack[0]
    noise = np.random.default_rng(2).integers(-4, 5, stack.shape)
    noisy = np.clip(stack.astype(int) + noise, 0, 255).astype(np.uint8)
    (instance,) = group_of(tmp_path, save(tmp_path / "a.dcm", list(noisy), US))
    before = engine().passes
    BurnedInText().apply([instance], work(), BurnedInText().estimate([instance], work()))
    assert engine().passes - before == 2
    assert not dcmread(instance.candidate).pixel_array[:, ink].any()
