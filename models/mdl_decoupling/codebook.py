"""f̂_sem as one of few: the nearest of K prototypes, each a mean of LEAST training people's semantics and more.

Nearest by `evidence`: which findings the frozen network reads in f̂_sem, and then on which side. Measured, f̂_sem by its
own distance parts large findings by side before it tells another finding from none.

What lasts in somebody's semantics leads back to the person: a finding that is there at every visit tells people apart
as a rib does, and no code that keeps it can help it. Few prototypes bound it, whoever attacks. Where nothing else of a
picture is shown, the picture made of it hangs on one of K numbers, and on noise that hangs on nobody. Who guesses the
person among N, y being the number, is right with probability at most

    (1 / N) Σ_y max_i P(y | i) <= K / N

(the maximal leakage of a channel with K outputs, Issa et al. 2020). That is for one picture: of m pictures that an
attacker knows to be of one person there are K^m outputs. What a picture keeps besides counts on top: its size, depth
and range of values, and of a paired organ the side.

The level r says both how much is blocked and how much is meant: from `WHOLE` on, semantics are whole; below it all is
blocked, and K is r in hundredths. So r bounds rank-1 among a hundred people, and 1 / N is left at r = 0.01.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Self

import torch
from torch import Tensor, nn

WHOLE = 0.1  # the least level whose semantics are whole
MOST = 9  # prototypes; the next hundredth is WHOLE
RESTARTS, ROUNDS = 8, 50
LEAST = 8  # people that a prototype is the mean of: one of fewer would show somebody who was trained on
SIDES = 0.5  # of a finding's presence: what is there counts before where it is
ROUNDING = 1e-9  # 0.07 * 100 is 7.000000000000001, and 0.29 * 100 is 28.999999999999996
Reads = Callable[[Tensor], Tensor | None]  # features -> logits of findings, or None


def prototypes_at(r: float) -> int:
    """K of a level; 0 where semantics are whole."""
    return 0 if r >= WHOLE - ROUNDING else max(1, int(100 * r + ROUNDING))


def evidence(features: Tensor, reads: Reads) -> Tensor:
    """(b, d): of maps (b, features, h, w), each finding's probability, and by how much it is likelier in the left half
    than in the right, times SIDES; the maps themselves where the network reads no findings.
    """
    half = features.shape[-1] // 2
    said = [reads(one) for one in (features, features[..., :half], features[..., half:])]
    whole, left, right = (None if one is None else one.sigmoid() for one in said)
    if whole is None or left is None or right is None:
        return features.flatten(1)
    return torch.cat([whole, SIDES * (left - right)], 1)


class Codebook(nn.Module):
    """`maps` (MOST · (MOST + 1) / 2, features, h, w): one prototype, then two, then three, ... that stand alone;
    `centres` of the same rows: their evidence (rows, d).
    """

    maps: Tensor
    centres: Tensor

    def __init__(self, maps: Tensor, centres: Tensor) -> None:
        super().__init__()
        self.register_buffer("maps", maps)
        self.register_buffer("centres", centres)

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor], prefix: str = "codebook") -> Self | None:
        """Of a card's tensors `prefix.*`; None where it has none: cards made before say the level by r alone.

        Raises ValueError for another number of prototypes.
        """
        maps, centres = (tensors.get(f"{prefix}.{name}") for name in ("maps", "centres"))
        if maps is None and centres is None:
            return None
        rows = _first(MOST + 1)
        if maps is None or centres is None or (maps.ndim, len(maps), centres.ndim, len(centres)) != (4, rows, 2, rows):
            raise ValueError(f"a code book has {rows} maps and as many centres")
        return cls(maps.float(), centres.float()).eval()

    @classmethod
    def fitted(cls, semantics: Tensor, seen: Tensor, who: Tensor, seed: int) -> Self:
        """k-means for every K, each the best of some starts, of evidence (n, d); of maps (n, features, h, w) the means
        of the same cells, and of everybody for a cell of fewer than LEAST people. `who` (n,): numbers of people.

        Raises ValueError for none.
        """
        if not len(semantics):
            raise ValueError("prototypes are means of somebody's semantics")
        generator = torch.Generator().manual_seed(seed)
        everybody, people = semantics.mean(0), who.cpu()
        maps, centres = [], []
        for count in range(1, MOST + 1):
            own = _means(seen.double().cpu(), people, count, generator).to(seen)
            cell = torch.cdist(seen, own).argmin(1)
            enough = _people_of(cell.cpu(), people, count) >= LEAST
            maps += [semantics[cell == i].mean(0) if enough[i] else everybody for i in range(count)]
            centres.append(own)
        return cls(torch.stack(maps), torch.cat(centres))

    def nearest(self, seen: Tensor, count: int) -> Tensor:
        """(b, features, h, w): by evidence (b, d), the nearest of `count` prototypes. Raises ValueError for none."""
        if not 1 <= count <= MOST:
            raise ValueError(f"there are 1 to {MOST} prototypes")
        rows = slice(_first(count), _first(count + 1))
        return self.maps[rows][torch.cdist(seen, self.centres[rows]).argmin(1)]


def _first(count: int) -> int:
    """Row of the first of `count` prototypes."""
    return count * (count - 1) // 2


def _people_of(cell: Tensor, who: Tensor, count: int) -> Tensor:
    """(count,): how many people have a map in each cell."""
    return torch.tensor([len(set(who[cell == i].tolist())) for i in range(count)])


def _means(flat: Tensor, who: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """(count, d): the parting with the fewest cells below LEAST people, and of those with the least distortion."""
    tried = [_parted(flat, who, _begun(flat, count, generator)) for _ in range(RESTARTS)]
    return min(tried, key=lambda one: one[:2])[2]


def _begun(flat: Tensor, count: int, generator: torch.Generator) -> Tensor:
    """k-means++: each next one is drawn by its squared distance from those before."""
    means = flat[torch.randint(len(flat), (1,), generator=generator)]
    while len(means) < count:
        away = torch.cdist(flat, means).min(1).values ** 2
        chance = away if float(away.sum()) > 0 else torch.ones_like(away)
        means = torch.cat([means, flat[torch.multinomial(chance, 1, generator=generator)]])
    return means


def _parted(flat: Tensor, who: Tensor, means: Tensor) -> tuple[int, float, Tensor]:
    """(cells of fewer than LEAST people, distortion, means); a cell without any keeps its place."""
    for _ in range(ROUNDS):
        cell = torch.cdist(flat, means).argmin(1)
        moved = torch.stack(
            [flat[cell == i].mean(0) if bool((cell == i).any()) else means[i] for i in range(len(means))]
        )
        if torch.equal(moved, means):
            break
        means = moved
    away, cell = torch.cdist(flat, means).min(1)
    few = int((_people_of(cell, who, len(means)) < LEAST).sum())
    return few, float((away**2).mean()), means
