"""One item of `bench.text`: a frame with identities drawn into it (or none), cleaned by the stage, and judged.

An item follows from half, seed and number alone. Its header names somebody else than its pixels do, so nothing is
found because the header gave it away.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray
from pydicom import dcmread

from bench.text_clean import clean_frames
from bench.text_frames import COLOUR, FORMS, Form, Frame, frames, pixels, without_header, write
from bench.text_plants import BY_NAME, STYLES, Plant, Style, plant, stretch

STATIC, ONE_FRAME = "static_in_cine", "one_frame_of_cine"
STYLE_NAMES = (*(style.name for style in STYLES), STATIC, ONE_FRAME)
CLEAN = "clean"
PLANTS_EACH = 12  # tried for; what finds no room is left out
CINE_FRAMES = 12
REMOVED = 0.98  # share of the ink that must be covered
MARGIN = 1.0  # of a line's height, around it: belongs to the text, not to the picture


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one item. `coverage` is the covered share of the ink of each plant."""

    number: int
    style: str
    file: str
    form: str
    held: bool
    coverage: tuple[float, ...]
    words_px: tuple[int, ...]  # height of each plant, for reading a miss
    picture_pixels: int  # that are no text
    touched_pixels: int  # of these
    exact: bool  # what lies outside the boxes is as it was, and inside is one value
    passes: int

    def as_json(self) -> dict[str, object]:
        return asdict(self)


def build(
    number: int, style_name: str, half: str, seed: int
) -> tuple[list[NDArray[np.float64]], list[Plant], Form, Frame, Random]:
    """Frames in 0..1 with the plants of an item drawn in. A clean item is another frame for every number."""
    random = Random(f"{seed} {half} {number}")
    frame = clean_frames(half)[number] if style_name == CLEAN else random.choice(frames(half))
    picture = pixels(frame)
    style = BY_NAME.get(style_name, BY_NAME["plain"])
    form = COLOUR if style.colour else random.choice(FORMS)
    if style.wide:
        form = random.choice([one for one in FORMS if one.bits > 8])
        picture = stretch(picture, random, 1.0)
    if style.colour:
        picture = np.repeat(picture[..., None], 3, 2)
    stack = [picture.copy() for _ in range(CINE_FRAMES if style_name in (STATIC, ONE_FRAME) else 1)]
    if len(stack) > 1:
        _move(stack, random)
    plants = [] if style_name == CLEAN else _draw(stack, frame, style, style_name, half, random)
    return stack, plants, form, frame, random


def _draw(
    stack: list[NDArray[np.float64]], frame: Frame, style: Style, style_name: str, half: str, random: Random
) -> list[Plant]:
    taken = list(frame.own_text)
    at = random.randrange(len(stack))
    before = stack[at].copy()
    plants = []
    for _ in range(PLANTS_EACH if style_name != ONE_FRAME else 2):
        made = plant(stack[at], style, half, random, taken)
        if made is not None:
            plants.append(replace(made, style=style_name, frame=at))
    if style_name == STATIC:
        changed = stack[at] != before
        for other in stack:
            other[changed] = stack[at][changed]
    return plants


def _move(stack: list[NDArray[np.float64]], random: Random) -> None:
    """A third of the picture moves from frame to frame, as a heart in a chest does, with noise on all of it."""
    generator = np.random.default_rng(random.getrandbits(32))
    rows, columns = stack[0].shape
    top, left = rows // 4, columns // 3
    for number, picture in enumerate(stack):
        shift = round(6 * np.sin(number * 2 * np.pi / len(stack)))
        window = picture[top : top + rows // 2, left : left + columns // 3]
        window[:] = np.roll(window, shift, 0)
        np.clip(picture + generator.normal(0, 0.003, picture.shape), 0, 1, out=picture)


def judge_item(number: int, style_name: str, half: str, seed: int) -> Outcome:
    """Build, clean, compare."""
    from gateway.errors import Hold
    from gateway.pixels import Instance
    from gateway.pixels.burned_in_text import BurnedInText
    from gateway.pixels.text_engine import engine

    stack, plants, form, frame, random = build(number, style_name, half, seed)
    with TemporaryDirectory() as folder:
        original, candidate = Path(folder) / "original.dcm", Path(folder) / "candidate.dcm"
        header = {"PatientName": "NOBODY^ATALL", "PatientID": "77120356", "InstitutionName": "ELSEWHERE"}
        before = write(original, stack, form, random, header)
        without_header(original, candidate)
        group = [Instance("0001", original, candidate)]
        stage, passes = BurnedInText(), engine().passes
        estimate = stage.estimate(group, None)  # type: ignore[arg-type] - it asks the policy nothing
        passes = engine().passes - passes
        covered = covered_by(estimate.facts["instances"]["0001"], before.shape)
        try:
            stage.apply(group, None, estimate)  # type: ignore[arg-type]
        except Hold:
            held, after = True, before
            covered[:] = False
        else:
            held = False
            after = dcmread(candidate).pixel_array.reshape(before.shape)
    exact = np.array_equal(after[~covered], before[~covered]) and all(
        len(np.unique(after[at][covered[at]].reshape(-1, form.samples), axis=0)) <= 1 for at in range(len(stack))
    )
    picture = ~text_area(plants, frame, covered.shape, every_frame=style_name == STATIC)
    return Outcome(
        number,
        style_name,
        frame.file,
        form.name,
        held,
        tuple(round(_coverage(one, covered, every_frame=style_name == STATIC), 4) for one in plants),
        tuple(min(one.ink.shape) for one in plants),
        int(picture.sum()),
        int((covered & picture).sum()),
        bool(exact),
        passes,
    )


def covered_by(facts: dict[str, list[list[float]]], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """(frames, rows, columns) that the boxes of an estimate cover, those that would hold left out."""
    covered = np.zeros(shape[:3], bool)
    for kind in ("region", "page", "hint", "text"):
        for frame, top, left, bottom, right, _ in facts.get(kind, ()):
            covered[slice(None) if frame == -1 else int(frame), int(top) : int(bottom), int(left) : int(right)] = True
    return covered


def text_area(plants: list[Plant], frame: Frame, shape: tuple[int, ...], *, every_frame: bool) -> NDArray[np.bool_]:
    """(frames, rows, columns) that are text, what was there before included, each line with its margin."""
    area = np.zeros(shape, bool)
    for one in plants:
        grow = round(MARGIN * min(one.ink.shape)) + 3
        rows = slice(max(0, one.top - grow), one.bottom + grow)
        columns = slice(max(0, one.left - grow), one.right + grow)
        area[slice(None) if every_frame else one.frame, rows, columns] = True
    for top, left, bottom, right in frame.own_text:
        area[:, max(0, top - 6) : bottom + 6, max(0, left - 6) : right + 6] = True
    return area


def _coverage(one: Plant, covered: NDArray[np.bool_], *, every_frame: bool) -> float:
    window = covered[:, one.top : one.bottom, one.left : one.right]
    chosen = window if every_frame else window[one.frame : one.frame + 1]
    return float(min(part[one.ink].mean() for part in chosen))
