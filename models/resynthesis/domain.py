"""Is a picture of the kind that the card was trained on? Statistics of people held out, each with limits.

Brightness and its histogram, the shape of the picture, how well the autoencoder gives it back, and where its features
lie among those of training pictures; of colour, how red and how blue it is beside its green, and a histogram of each.
Pictures are levelled first: their darkest and brightest half percent (of all channels together: colour stays) lie where
those of training pictures do, so that exposure and window of a machine are no statistic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from models.cards import Card, CardError, DomainLimits
from models.resynthesis.parts import AdjustableParts

BINS, COMPONENTS, TOGETHER = 32, 32, 64
ENDS = (0.005, 0.995)  # quantiles that levelling goes by
ONE_SIDED = ("histogram", "reconstruction", "features")
SHOWN = ("shown_low", "shown_high")
TENSORS = ("domain.histogram", "domain.centre", "domain.axes", "domain.spread")


@dataclass(frozen=True, slots=True)
class Reference:
    """Of training pictures: `histogram` (BINS,), of colour (3, BINS), and of their features `centre` (d,), `axes`
    (d, k), `spread` (k + 1,): deviation along each axis, then the length of what lies beside all axes.
    """

    histogram: Tensor
    centre: Tensor
    axes: Tensor
    spread: Tensor


@dataclass(frozen=True, slots=True)
class PictureDomain:
    """`shown`: where the ends of a levelled picture lie, within 0 to 1."""

    limits: DomainLimits
    reference: Reference
    shown: tuple[float, float]

    def parameters(self) -> dict[str, str | int | float | bool | tuple[float, ...]]:
        """For a card, beside `tensors`."""
        return self.limits.parameters() | dict(zip(SHOWN, self.shown, strict=True))

    def tensors(self) -> dict[str, Tensor]:
        """By the names that a card's weights have; float32, as they are not halved."""
        one = self.reference
        return dict(zip(TENSORS, (one.histogram, one.centre, one.axes, one.spread), strict=True))


def domain_of(card: Card, tensors: Mapping[str, Tensor]) -> PictureDomain:
    """Raises CardError for a card without a domain: it would take anything."""
    limits, shown = DomainLimits.of(card), tuple(card.parameters.get(name) for name in SHOWN)
    if not all(name in tensors for name in TENSORS) or not all(isinstance(one, float) for one in shown):
        raise CardError(f"{card.name} does not say what it was trained on (domain): train it again")
    low, high = (float(str(one)) for one in shown)
    return PictureDomain(limits, Reference(*(tensors[name].float() for name in TENSORS)), (low, high))


def ends_of(x: Tensor) -> tuple[float, float]:
    """Values of one picture at its ends."""
    low, high = torch.quantile(_thinned(x.flatten().double()), torch.tensor(ENDS, dtype=torch.float64))
    return float(low), float(high)


def _thinned(values: Tensor, most: int = 1 << 20) -> Tensor:
    """Evenly, to what `quantile` takes."""
    return values[:: max(1, -(-len(values) // most))]


def levelled(x: Tensor, ends: tuple[float, float], shown: tuple[float, float]) -> Tensor:
    """Values with their ends at `shown`, clipped to 0 to 1; a picture of one value becomes the lower end."""
    low, high = ends
    share = (x.double() - low) / max(high - low, 1e-12)
    return (shown[0] + share * (shown[1] - shown[0])).clamp(0, 1).float()


def fitted(parts: AdjustableParts, training: Tensor, held_out: Tensor) -> PictureDomain:
    """From pictures (n, c, side, side) of people trained on (what is usual) and held out (the limits)."""
    ends = torch.tensor([ends_of(one) for one in training])
    low, high = (float(one) for one in ends.mean(0))
    shown = (max(low, 0.0), min(max(high, low + 0.1), 1.0))
    usual, others = (torch.stack([levelled(one, ends_of(one), shown) for one in some]) for some in (training, held_out))
    features = torch.cat([pooled(parts, some) for some in torch.split(usual, TOGETHER)])
    centre = features.mean(0)
    _, lengths, axes = torch.linalg.svd(features - centre, full_matrices=False)
    count = min(COMPONENTS, max(len(features) - 2, 1), len(axes))
    along = lengths[:count] / max(len(features) - 1, 1) ** 0.5
    beside = (features - centre) - (features - centre) @ axes[:count].T @ axes[:count]
    spread = torch.cat([along, beside.norm(dim=1).mean()[None]]).clamp(min=1e-6)
    reference = Reference(_histogram(usual), centre, axes[:count].T.contiguous(), spread)
    found = measured(parts, reference, others, [(1, 1)] * len(others))
    return PictureDomain(DomainLimits.fitted(found, ONE_SIDED), reference, shown)


@torch.no_grad()
def measured(
    parts: AdjustableParts, reference: Reference, x_bcss: Tensor, shapes: Sequence[tuple[int, int]]
) -> list[dict[str, float]]:
    """Every statistic of levelled pictures at the card's size; `shapes` (rows, columns) as they came."""
    found: list[dict[str, float]] = []
    for x, some in zip(torch.split(x_bcss, TOGETHER), _pieces(shapes), strict=True):
        x = x.to(parts.device)  # noqa: PLW2901
        given_back = parts.resynthesis.decode(parts.resynthesis.encode(x), x.shape[1])
        wrong = (given_back - x).square().mean((1, 2, 3)).sqrt()
        spread = x.std((1, 2, 3))
        away = pooled(parts, x) - reference.centre.to(x)
        along = away @ reference.axes.to(x)
        beside = (away - along @ reference.axes.to(x).T).norm(dim=1) / reference.spread[-1].to(x)
        far = (along / reference.spread[:-1].to(x)).square().mean(1).sqrt()
        for at, (rows, columns) in enumerate(some):
            apart = (_histogram(x[at : at + 1]).cumsum(-1) - reference.histogram.to(x).cumsum(-1)).abs().sum(-1) / BINS
            found.append(
                {
                    "mean": float(x[at].mean()),
                    "spread": float(spread[at]),
                    "height over width": rows / columns,
                    "histogram": float(apart.max()),
                    "reconstruction": float(wrong[at] / spread[at].clamp(min=1e-6)),
                    "features along": float(far[at]),
                    "features beside": float(beside[at]),
                    **_colour(x[at]),
                }
            )
    return found


def _pieces(shapes: Sequence[tuple[int, int]]) -> list[Sequence[tuple[int, int]]]:
    return [shapes[at : at + TOGETHER] for at in range(0, len(shapes), TOGETHER)]


@torch.no_grad()
def pooled(parts: AdjustableParts, x_bchw: Tensor) -> Tensor:
    """(b, 4 · features): means of the frozen network's features in each quarter of the picture."""
    return functional.adaptive_avg_pool2d(parts.foundation(x_bchw).float(), 2).flatten(1)


def _histogram(x_bchw: Tensor) -> Tensor:
    """(BINS,), of colour (3, BINS); each sums to 1."""
    counts = torch.stack([torch.histc(one.float(), BINS, 0.0, 1.0) for one in x_bchw.unbind(1)])
    shares = counts / counts.sum(1, keepdim=True).clamp(min=1)
    return shares if len(shares) > 1 else shares[0]


def _colour(x_chw: Tensor) -> dict[str, float]:
    """Means of red and of blue by that of green: a grey picture in three channels has 1. Without colour nothing."""
    if len(x_chw) == 1:
        return {}
    red, green, blue = (float(one) for one in x_chw.mean((1, 2)))
    return {"red over green": red / max(green, 1e-6), "blue over green": blue / max(green, 1e-6)}
