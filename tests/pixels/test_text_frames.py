"""`burned_in_text` on stacks: text on one frame, on all, and on the instances of a series (cases.md 5)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from text_objects import PLANT, SHAPE, US, XA, drawn, group_of, ink_left, mask_of, run, save, stored, texture

from gateway.pixels.burned_in_text import BurnedInText
from gateway.pixels.text_engine import engine


def test_text_on_the_third_frame_alone_is_redacted_there_alone(tmp_path: Path) -> None:
    """cases.md 5."""
    clean = np.clip(texture(SHAPE), 0, 255).astype(np.uint8)
    frames = [clean, clean, drawn()]
    group = group_of(tmp_path, save(tmp_path / "a.dcm", frames, XA))
    run(BurnedInText(), group)
    after = stored(group[0].candidate)
    assert np.array_equal(after[:2], np.stack(frames[:2]))
    assert not after[2][mask_of(PLANT, SHAPE) > 0.3].any()


def test_a_cine_of_300_frames_takes_three_passes(tmp_path: Path) -> None:
    """Static text over a small picture that moves: read once, redacted on every frame."""
    still = drawn()
    generator = np.random.default_rng(5)
    frames = []
    for _ in range(300):
        frame = still.copy()
        frame[50:80, 100:160] = generator.integers(40, 90, (30, 60))
        frames.append(frame)
    group = group_of(tmp_path, save(tmp_path / "a.dcm", frames, US))
    before = engine().passes
    run(BurnedInText(), group)
    assert engine().passes - before <= 3
    after = stored(group[0].candidate)
    assert not after[:, mask_of(PLANT, SHAPE) > 0.3].any()
    assert np.array_equal(after[:, 50:80, 100:160], np.stack(frames)[:, 50:80, 100:160])


def test_dark_text_on_one_frame_of_a_still_stack_is_found(tmp_path: Path) -> None:
    """No projection but the minimum shows it."""
    light = np.clip(texture(SHAPE) + 120, 0, 255).astype(np.uint8)
    mask = mask_of(PLANT, SHAPE)
    dark = np.clip(light * (1 - mask) + 10 * mask, 0, 255).astype(np.uint8)
    frames = [light] * 12
    frames[7] = dark
    group = group_of(tmp_path, save(tmp_path / "a.dcm", frames, US))
    run(BurnedInText(), group)
    after = stored(group[0].candidate)
    assert (
        ink_left(
            group[0].candidate, np.stack([mask > 0.5 if at == 7 else mask < 0 for at in range(12)]), np.stack(frames)
        )
        == 0
    )
    assert all(np.array_equal(after[at], frames[at]) for at in range(12) if at != 7)


def test_instances_of_one_series_are_a_stack(tmp_path: Path) -> None:
    paths = [save(tmp_path / f"{at}.dcm", [drawn()], InstanceNumber=str(at)) for at in range(8)]
    group = group_of(tmp_path, *paths)
    before = engine().passes
    _, steps = run(BurnedInText(), group)
    assert engine().passes - before <= 3
    assert len(steps) == 8
    for instance in group:
        assert not stored(instance.candidate)[mask_of(PLANT, SHAPE) > 0.3].any()
