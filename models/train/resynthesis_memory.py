"""What a trained re-synthesis remembers of the people it was trained on, for its card; figures as in `lesion_memory`.

Pictures are made of people held out, at a low level: most of each is blocked, and what fills it comes from the network.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from models.id_blocking import Blocking
from models.reid_encoder import identity_map
from models.resynthesis import AdjustableParts, deidentified
from models.resynthesis.deidentify import left_over
from models.train.lesion_memory import NOT_MEASURED, auc, control_band, nearest_distances
from models.train.reid_material import Material
from models.train.trained import Tick

LEVEL = 0.2
PIXELS = 24  # of a side, when pictures are compared
MADE, LOSS_DRAWS, DRAWS, PICTURES = 64, 4, 10, 4  # pictures made; noises a loss; draws of people; pictures a person
Floats = NDArray[np.float64]


def memorisation(
    parts: AdjustableParts, fitted: Material, held: Material, seed: int, tick: Tick
) -> dict[str, str | float | int]:
    """The card's metrics, of the sampler that the card names."""
    found = _nearest(parts, fitted, held, seed, tick)
    members, strangers = (_losses_by_person(parts, one, seed) for one in (fitted, held))
    found["membership AUC, denoiser"] = round(auc(-members, -strangers), 3)
    low, high = control_band(-members, len(strangers), seed)
    found["membership AUC, denoiser, member against member, 95 %"] = f"{low:.3f} to {high:.3f}"
    people = {"people trained on": len(torch.unique(fitted.who)), "people held out": len(torch.unique(held.who))}
    judged = {"memorisation is judged with": f"{parts.sampler}, {parts.steps} steps, r {LEVEL}", **people, **found}
    return {name: one if one == one else NOT_MEASURED for name, one in judged.items()}  # not a number


def _nearest(
    parts: AdjustableParts, fitted: Material, held: Material, seed: int, tick: Tick
) -> dict[str, str | float | int]:
    rows = torch.arange(len(held))[:: max(1, -(-len(held) // MADE))]
    config = parts.resynthesis.config
    generator = torch.Generator().manual_seed(seed)
    noise = torch.randn((len(rows), config.latent, config.latent_side, config.latent_side), generator=generator)
    images = []
    for some, drawn in zip(torch.split(rows, 16), torch.split(noise, 16), strict=True):
        made = deidentified(parts, held.pictures(some, parts.device), Blocking(LEVEL), drawn)
        images.append(_pixels(made.picture))
        tick("memorisation", min(16 * len(images), len(rows)), len(rows))
    x, source = np.concatenate(images), held.who[rows].numpy()
    train, other = (_pixels(one.x.float()) for one in (fitted, held))
    nobody, flat = np.full(len(x), -1), np.zeros(len(x))
    who, who_held = fitted.who.numpy(), held.who.numpy()
    to_held, _ = nearest_distances(x, flat, source, other, np.zeros(len(other)), who_held)
    people = np.unique(who)
    count = min(len(people), max(len(np.unique(who_held)) - 1, 1))
    draw = np.random.default_rng(seed)
    draws = []
    for _ in range(DRAWS):
        chosen = np.isin(who, draw.choice(people, count, replace=False))
        draws.append(nearest_distances(x, flat, nobody, train[chosen], np.zeros(chosen.sum()), who[chosen])[0])
    both = np.isfinite(to_held) & np.isfinite(draws).all(0)
    ratio = float(np.median(np.mean(draws, 0)[both]) / np.median(to_held[both])) if both.any() else float("nan")
    nearest, which = nearest_distances(x, flat, nobody, train, np.zeros(len(train)), who)
    near = np.unique(which)
    among, _ = nearest_distances(train[near], np.zeros(len(near)), who[near], train, np.zeros(len(train)), who)
    reference = among[np.searchsorted(near, which)]
    usable = np.isfinite(nearest) & np.isfinite(reference)
    authentic = float((nearest > reference)[usable].mean()) if usable.any() else float("nan")
    return {
        "nearest training image, ratio to held out": round(ratio, 3),
        "authenticity": round(authentic, 3),
        "generated pictures": len(x),
    }


def _pixels(x: Tensor) -> Floats:
    """(n, 1, side, side) -> (n, PIXELS²)."""
    small = functional.adaptive_avg_pool2d(x.float().cpu(), min(PIXELS, x.shape[-1])).flatten(1)
    return np.asarray(small.double().numpy())


@torch.no_grad()
def _losses_by_person(parts: AdjustableParts, material: Material, seed: int) -> Floats:
    """(people,): mean loss of some pictures of each at fixed steps and noise, the same for members and strangers."""
    network, where = parts.resynthesis, parts.device
    generator = torch.Generator().manual_seed(seed)
    chosen = []
    for person in torch.unique(material.who):
        own = torch.nonzero(material.who == person).flatten()
        chosen.append(own[torch.randperm(len(own), generator=generator)[:PICTURES]])
    rows = torch.cat(chosen)
    noises = torch.Generator().manual_seed(0)
    side = network.config.latent_side
    draws = [torch.randn((1, network.config.latent, side, side), generator=noises) for _ in range(LOSS_DRAWS)]
    total = []
    for some in torch.split(rows, 32):
        x = material.pictures(some, where)
        noid, mask = left_over(x, Blocking(LEVEL).mask(identity_map(parts.reid, x)), network.config.side)
        conditioned = network.conditions(noid, mask, parts.decoupler.semantics(parts.foundation(x)))
        z, sums = network.encode(x), torch.zeros(len(some))
        for number, drawn in enumerate(draws):
            step = torch.full((len(some),), (2 * number + 1) * network.schedule.steps // (2 * LOSS_DRAWS), device=where)
            mixed, target = network.schedule.noised(z, drawn.to(z).expand_as(z), step)
            error = (network.estimate(mixed, step, conditioned) - target) ** 2
            sums += error.mean((1, 2, 3)).float().cpu()
        total.append(sums / LOSS_DRAWS)
    losses = torch.cat(total)
    who = material.who[rows]
    return np.array([float(losses[who == person].mean()) for person in torch.unique(who)])
