"""A document as blocks, which `html` and `pdf` show alike: what one of them says, both say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LESS, MORE = "less is better", "more is better"


@dataclass(frozen=True, slots=True)
class Heading:
    """Of a section, or of a part of one."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Words:
    """A paragraph. `kind` is "", "soft" (an aside), "notice" (in a frame)."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list."""

    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and values, one a line."""

    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """`widths` are the shares of the columns."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    widths: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Code:
    """Text as it is written, in lines."""

    text: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a chart: an estimate, its upper bound, and the limit that the bound must keep to."""

    name: str
    estimate: float
    upper: float
    limit: float


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars from 0 to `top`. `sense` says which side of the limit is the good one."""

    title: str
    bars: tuple[Bar, ...]
    top: float
    sense: str = LESS


Block = Heading | Words | Bullets | Facts | Table | Code | Chart


@dataclass(frozen=True, slots=True)
class Document:
    """A title, its blocks, and a line for the foot of every printed sheet."""

    title: str
    foot: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """From (x0, y0) to (x1, y1)."""

    x0: float
    y0: float
    x1: float
    y1: float
    ink: str
    width: float = 1.0
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Dot:
    """Around (x, y)."""

    x: float
    y: float
    ink: str
    radius: float = 3.2


@dataclass(frozen=True, slots=True)
class Label:
    """Begins at x, or ends there; y is the base line."""

    x: float
    y: float
    text: str
    ink: str
    ends: bool = False
    bold: bool = False


Shape = Line | Dot | Label
WIDTH, ROW, LEFT, RIGHT = 640.0, 22.0, 150.0, 165.0  # points
INK, SOFT, BOUND, LIMIT, BEYOND = "#1a1a1a", "#595959", "#1f5f99", "#1a1a1a", "#a11212"
TICKS = 4


def drawn(chart: Chart) -> tuple[float, tuple[Shape, ...]]:
    """Height in points, and shapes with y from the top. A bar that breaks its limit has another ink, and says so."""
    height = ROW * (len(chart.bars) + 1.6)
    span = WIDTH - LEFT - RIGHT

    def at(value: float) -> float:
        return LEFT + span * min(max(value / chart.top, 0.0), 1.0)

    shapes: list[Shape] = []
    for tick in range(TICKS + 1):
        value = chart.top * tick / TICKS
        shapes.append(Line(at(value), 6, at(value), height - ROW, "#d0d0d0", 0.5))
        shapes.append(Label(at(value) + (0 if tick else -2), height - ROW + 14, _short(value), SOFT, ends=tick > 0))
    for number, bar in enumerate(chart.bars):
        y = ROW * (number + 0.7)
        beyond = bar.upper > bar.limit if chart.sense == LESS else bar.upper < bar.limit
        ink = BEYOND if beyond else BOUND
        shapes += [
            Label(LEFT - 10, y + 4, bar.name, INK, ends=True),
            Line(at(bar.estimate), y, at(bar.upper), y, ink, 2.5),
            Line(at(bar.upper), y - 6, at(bar.upper), y + 6, ink, 2.5),
            Line(at(bar.limit), y - 9, at(bar.limit), y + 9, LIMIT, 1.2, dashed=True),
            Dot(at(bar.estimate), y, ink),
            Label(
                WIDTH - RIGHT + 12,
                y + 4,
                f"{_short(bar.estimate)} to {_short(bar.upper)}, limit {_short(bar.limit)}",
                ink,
                bold=beyond,
            ),
        ]
    return height, tuple(shapes)


def _short(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")


def top_of(values: Sequence[float]) -> float:
    """A round number that all values lie below or at."""
    most = max([*values, 1e-6])
    return next((step for step in (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0) if most <= step), most)
