"""Pictures for a person: before, after and difference side by side, what changed framed (`scrub --preview`).

They show the original: they go only where that person asked for them, 0600, under names of ours, and nothing else is
told of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

from gateway.errors import Hold
from gateway.frames import EncodedImage
from gateway.frames.showing import shown

PANE_PIXELS = 720  # longest side of each of the three
CAPTION_PIXELS, GAP_PIXELS = 26, 8
MAX_FRAMES = 8  # of one object: those that changed most
JOIN_PIXELS = 6  # changed places closer than this share a frame
INK, PAPER, CHANGED, FRAME = (235, 235, 235), (28, 30, 34), (255, 70, 70), (255, 210, 0)

Shown = NDArray[np.uint8]


def draw_pictures(original: Path, candidate: Path, folder: Path, name: str) -> int:
    """Write `name-frame.png` for the frames that changed most, or one for the first frame; how many.

    0 for an object without pixels, or one whose original cannot be shown.
    """
    try:
        with EncodedImage.open(original) as before, EncodedImage.open(candidate) as after:
            if not before.frames:
                return 0
            frames = _most_changed(before, after) or [0]
            for frame in frames:
                seen, left, changed = _views(before, after, frame)
                sheet = _sheet(seen, left, changed, f"{name}  frame {frame + 1} of {before.frames}")
                _save(sheet, folder / f"{name}-{frame + 1:04d}.png")
    except Hold:
        return 0
    return len(frames)


def _most_changed(before: EncodedImage, after: EncodedImage) -> list[int]:
    """Numbers of the frames that changed most, in order of the object."""
    changed = {}
    for frame in range(min(before.frames, after.frames)):
        count = int(_views(before, after, frame)[2].sum())
        if count:
            changed[frame] = count
    return sorted(sorted(changed, key=lambda frame: -changed[frame])[:MAX_FRAMES])


def _views(before: EncodedImage, after: EncodedImage, frame: int) -> tuple[Shown, Shown, NDArray[np.bool_]]:
    """Both sides in one window; where stored values differ, (rows, columns), everywhere when they do not compare."""
    first, second, layout = before.stored(frame), after.stored(frame), before.layout
    if layout is None or first.shape != second.shape or before.photometric != after.photometric:
        seen, left = before.shown(frame), after.shown(frame)
        same = _rgb(seen).shape == _rgb(left).shape
        return seen, left, (_rgb(seen) != _rgb(left)).any(-1) if same else np.ones(seen.shape[:2], np.bool_)
    both = shown(np.concatenate([first, second]), layout, before.dataset)
    differs = first != second
    return both[: len(first)], both[len(first) :], differs.any(-1) if differs.ndim == 3 else differs


def _rgb(shown: Shown) -> Shown:
    return shown if shown.ndim == 3 else np.repeat(shown[:, :, None], 3, axis=2)


def _boxes(changed: NDArray[np.bool_]) -> Iterator[tuple[int, int, int, int]]:
    """(left, top, right, bottom) around places that changed."""
    joined = ndimage.binary_dilation(changed, iterations=JOIN_PIXELS)
    labels, _ = ndimage.label(joined)
    for rows, columns in ndimage.find_objects(labels):
        yield columns.start, rows.start, columns.stop - 1, rows.stop - 1


def _sheet(before: Shown, after: Shown, changed: NDArray[np.bool_], caption: str) -> Image.Image:
    marked = (_rgb(before) // 3).astype(np.uint8)
    marked[changed] = CHANGED
    panes = [Image.fromarray(_rgb(pixels)) for pixels in (before, after, marked)]
    for pane in (panes[0], panes[2]):
        pen = ImageDraw.Draw(pane)
        for box in _boxes(changed):
            pen.rectangle(box, outline=FRAME, width=max(1, max(pane.size) // 400))
    for pane in panes:
        pane.thumbnail((PANE_PIXELS, PANE_PIXELS))
    share = changed.mean() * 100
    captions = (f"before   {caption}", "after", f"changed: {share:.2f} % of the pixels" if share else "nothing changed")
    width = sum(max(pane.width, 260) for pane in panes) + 2 * GAP_PIXELS
    sheet = Image.new("RGB", (width, max(pane.height for pane in panes) + CAPTION_PIXELS), PAPER)
    pen, font, left = ImageDraw.Draw(sheet), ImageFont.load_default(size=14), 0
    for pane, text in zip(panes, captions, strict=True):
        sheet.paste(pane, (left, CAPTION_PIXELS))
        pen.text((left + 4, 5), text, fill=INK, font=font)
        left += max(pane.width, 260) + GAP_PIXELS
    return sheet


def _save(sheet: Image.Image, path: Path) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        sheet.save(file, "PNG")
