"""One picture, looked at twice: as a viewer shows it, then once more with what was found filled in.

The second look is at local contrast, so that faint text and the ends of lines come out; what it finds beside a line is
the rest of that line. It is the check of the redaction as well: what is covered cannot be found again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.pixels.text_engine import Engine, Line
from gateway.pixels.text_words import MIN_FUZZY, MIN_HINT, Hints, Kept, folded

Bytes = NDArray[np.uint8]
Place = tuple[int, int, int, int]  # top, left, bottom, right, half open

FLOOR = 0.3  # of the detector: below is nothing
SURE = 0.5  # a line that the detector sees so clearly, and that can be read, is text
READ_ONE, READ_TWO, READ = 0.9, 0.8, 0.6  # how well one sign, two signs and more must be read: blobs look like O and 8
CLEAR, HALF_READ = 0.85, 0.4  # seen so clearly, a long line is text in a script that the recogniser lacks
DOUBTFUL, HARDLY_READ = 0.7, 0.35  # somebody must look at such a line
CERTAIN = 0.8  # how well a line must be read to be kept
ALONE_LONG, DOUBTFUL_LONG = 3.0, 2.5  # times as long as high
LINE_LONG, LINE_HIGH, LINE_SHARED = 1.5, 1.35, 0.6  # what continues a line: its shape, height and level
BRIDGE_LONG, BRIDGE_STRENGTH = 4, 0.75  # gap in a line: how long for its height, how strong for its parts
HIGH = 0.12  # of the picture's side: higher print must be read well and have several signs
SLANT, MAX_PIECES = 0.25, 24  # a line that rises by more than this of its height is boxed in pieces
REST = 0.2  # how well the rest of a line must be read
SIDE_PX, MIN_SCALE, MAX_SCALE = 1024, 0.75, 2.0
TILE_PX, OVERLAP_PX = 2048, 256  # of the enlarged picture: memory of one pass is bounded, a line lies whole in one tile
LOCAL_PX, LOCAL_FLOOR, LOCAL_SPAN = 41, 0.02, 6.0
NOISE_FLOOR = 0.002  # of the range: deep pixels show less than 8 bits can


class Kind(StrEnum):
    """What a line is."""

    TEXT = "text"
    HINT = "hint"  # a word of the header
    KEPT = "kept"  # read well, and everybody has it
    UNCERTAIN = "uncertain"


@dataclass(frozen=True, slots=True)
class Hit:
    """One line: where (with the margin that covers its glyphs and shadows), what, and how sure the detector is."""

    place: Place
    kind: Kind
    score: float


@dataclass(frozen=True, slots=True)
class Judge:
    """Decides what a line is. `keep` is None where all text goes."""

    hints: Hints
    keep: Kept | None = None

    def kind(self, line: Line, text: str, sure: float, side: float) -> Kind | None:
        """None for what is no text. `side` is that of a square as large as the picture."""
        if sure >= READ / 2 and self.hints.in_line(text, MIN_HINT if sure >= READ else MIN_FUZZY):
            return Kind.HINT
        signs = len(folded(text))
        if line.score >= SURE and _is_read(signs, sure, line, side):
            if self.keep is not None and sure >= CERTAIN and self.keep.covers(text, self.hints):
                return Kind.KEPT
            return Kind.TEXT
        long = max(line.sides) / max(1.0, min(line.sides))
        if signs < 2 or min(line.sides) > HIGH * side:
            return None
        if line.score >= CLEAR and sure >= HALF_READ and signs > 2 and long >= ALONE_LONG:
            return Kind.TEXT
        if line.score >= DOUBTFUL and sure >= HARDLY_READ and long >= DOUBTFUL_LONG:
            return Kind.UNCERTAIN
        return None


def _is_read(signs: int, sure: float, line: Line, side: float) -> bool:
    if min(line.sides) > HIGH * side:
        return signs > 3 and sure >= READ_TWO
    return signs > 0 and sure >= {1: READ_ONE, 2: READ_TWO}.get(signs, READ)


def scale_of(shape: tuple[int, ...]) -> float:
    """How much a picture is enlarged for the detector: small print needs it, large films need less."""
    return min(MAX_SCALE, max(MIN_SCALE, SIDE_PX / max(shape[:2])))


def look(
    shown: Bytes,
    engine: Engine,
    judge: Judge,
    *,
    twice: bool = True,
    scale: float = 0.0,
    deep: NDArray[np.float32] | None = None,
) -> list[Hit]:
    """Every line of a picture (rows, columns) or (rows, columns, 3), enlarged by `scale` (0: by its size).

    With `twice` off the second look is left out where the first found nothing. `deep`, (rows, columns) in about 0..1,
    is the picture before it became 8 bits: the second look is at that.
    """
    picture = np.repeat(shown[..., None], 3, 2) if shown.ndim == 2 else shown
    scale = scale or scale_of(picture.shape)
    first = list(_judged(picture, engine, judge, scale))
    if not twice and not first:
        return []
    values = np.asarray(picture / 255 if deep is None else deep[..., None], np.float32)
    rest = local_contrast(covered(values, [hit.place for hit in first]), LOCAL_FLOOR if deep is None else NOISE_FLOOR)
    second = list(_judged(rest, engine, judge, scale, beside=[hit for hit in first if hit.kind is not Kind.KEPT]))
    hits = [*first, *second]
    return hits + list(_bridges(hits, values))


def _bridges(hits: Sequence[Hit], values: NDArray[np.float32]) -> Iterator[Hit]:
    """What lies between two parts of one line and has strokes as they have: a word that was not seen by itself."""
    text = [hit for hit in hits if hit.kind in (Kind.TEXT, Kind.HINT)]
    for one in text:
        for other in text:
            gap = _gap(one.place, other.place)
            if gap is None:
                continue
            least = min(_strength(values, one.place), _strength(values, other.place))
            if _strength(values, gap) >= BRIDGE_STRENGTH * least:
                yield Hit(gap, Kind.TEXT, min(one.score, other.score))


def _gap(one: Place, other: Place) -> Place | None:
    """Between the end of a line and the beginning of another on its level, along rows or columns."""
    for turn in (False, True):
        a, b = ((p[1], p[0], p[3], p[2]) if turn else p for p in (one, other))
        high = min(a[2] - a[0], b[2] - b[0])
        shared = min(a[2], b[2]) - max(a[0], b[0])
        lines = all(p[3] - p[1] >= LINE_LONG * (p[2] - p[0]) for p in (a, b))
        if lines and shared >= LINE_SHARED * max(a[2] - a[0], b[2] - b[0]) and 0 < b[1] - a[3] <= BRIDGE_LONG * high:
            gap = min(a[0], b[0]), a[3], max(a[2], b[2]), b[1]
            return (gap[1], gap[0], gap[3], gap[2]) if turn else gap
    return None


def _strength(values: NDArray[np.float32], place: Place) -> float:
    """Spread of what is left of a place without its ground."""
    import cv2

    window = values[place[0] : place[2], place[1] : place[3]].mean(2)
    return float((window - cv2.blur(window, (11, 11))).std())


def _tiles(shape: tuple[int, ...], scale: float) -> Iterator[tuple[slice, slice]]:
    tile, overlap = int(TILE_PX / scale), int(OVERLAP_PX / scale)
    for top in range(0, max(1, shape[0] - overlap), tile - overlap):
        for left in range(0, max(1, shape[1] - overlap), tile - overlap):
            yield slice(top, min(shape[0], top + tile)), slice(left, min(shape[1], left + tile))


def _judged(picture: Bytes, engine: Engine, judge: Judge, scale: float, beside: Sequence[Hit] = ()) -> Iterator[Hit]:
    side = float(np.sqrt(picture.shape[0] * picture.shape[1]))
    for rows, columns in _tiles(picture.shape, scale):
        tile = np.ascontiguousarray(picture[rows, columns])
        lines = engine.detect(tile, scale, FLOOR)
        for line, (text, sure) in zip(lines, engine.read(tile, lines), strict=True):
            kind = judge.kind(line, text, sure, side)
            for top, left, bottom, right in places_of(line, tile.shape):
                place = top + rows.start, left + columns.start, bottom + rows.start, right + columns.start
                rest = sure >= REST and any(_continues(place, hit.place) for hit in beside)
                this = Kind.TEXT if rest and kind is not Kind.HINT else kind
                if this is not None:
                    yield Hit(place, this, round(line.score, 3))


def places_of(line: Line, shape: tuple[int, ...]) -> list[Place]:
    """The upright boxes of a line with their margin, in pieces where it is slanted: a margin across covers shadows and
    descenders, one along a half-seen letter.
    """
    first, second, third, fourth = line.corners
    along, across = line.sides
    wide = abs(second[0] - first[0]) >= abs(second[1] - first[1])
    slant = abs(second[1] - first[1]) if wide else abs(second[0] - first[0])
    if along < across:  # the line runs down: its long edges are the second and the fourth
        first, second, third, fourth = second, third, fourth, first
        wide = not wide
        slant = abs(second[1] - first[1]) if wide else abs(second[0] - first[0])
    high = min(along, across)
    pieces = max(1, min(MAX_PIECES, int(np.ceil(slant / max(1.0, SLANT * high)))))
    cuts = np.linspace(0, 1, pieces + 1)
    aside, down = 0.4 * high + 2, 0.12 * high + 2
    found = []
    for start, end in pairwise(cuts):
        corners = np.array(
            [first + (second - first) * at for at in (start, end)]
            + [fourth + (third - fourth) * at for at in (start, end)]
        )
        (left, top), (right, bottom) = corners.min(0), corners.max(0)
        x, y = (aside, down) if wide else (down, aside)
        found.append(
            (
                max(0, int(top - y)),
                max(0, int(left - x)),
                min(shape[0], int(np.ceil(bottom + y)) + 1),
                min(shape[1], int(np.ceil(right + x)) + 1),
            )
        )
    return found


def _continues(line: Place, known: Place) -> bool:
    """Whether a line goes on where a known one ends: on the same level, as high, no more than a sign away."""
    wide = known[3] - known[1] >= known[2] - known[0]
    (top, bottom), (above, below) = ((p[0], p[2]) if wide else (p[1], p[3]) for p in (line, known))
    (start, end), (first, last) = ((p[1], p[3]) if wide else (p[0], p[2]) for p in (line, known))
    high = below - above
    if last - first < LINE_LONG * high or bottom - top > LINE_HIGH * high:
        return False
    shared = min(bottom, below) - max(top, above)
    return shared >= LINE_SHARED * (bottom - top) and max(start, first) - min(end, last) <= high


def covered(picture: NDArray[Any], places: Sequence[Place]) -> NDArray[Any]:
    """A copy (rows, columns, channels) with the places filled by the median of what surrounds each."""
    out = picture.copy()
    for top, left, bottom, right in places:
        around = picture[max(0, top - 3) : bottom + 3, max(0, left - 3) : right + 3]
        edge = np.concatenate([around[:3], around[-3:]], 0).reshape(-1, picture.shape[2])
        out[top:bottom, left:right] = np.median(edge, 0)
    return out


def local_contrast(values: NDArray[np.float32], floor: float = LOCAL_FLOOR) -> Bytes:
    """Each channel of (rows, columns, 1 or 3) as so many standard deviations of its surroundings, mid-grey where
    nothing stands out: (rows, columns, 3). `floor` keeps noise down, and where all is noise its own spread does.
    """
    import cv2

    mean = _blurred(values)
    spread = np.sqrt(np.maximum(_blurred(values * values) - mean * mean, 0))
    standing = (values - mean) / np.maximum(spread, max(floor, float(np.median(spread)) / 2))
    shades: Bytes = (np.clip(standing / LOCAL_SPAN + 0.5, 0, 1) * 255).astype(np.uint8)
    return shades if shades.shape[2] == 3 else cv2.merge([shades] * 3).astype(np.uint8)


def _blurred(values: NDArray[np.float32]) -> NDArray[np.float32]:
    import cv2

    return np.asarray(cv2.blur(values, (LOCAL_PX, LOCAL_PX)), np.float32).reshape(values.shape)
