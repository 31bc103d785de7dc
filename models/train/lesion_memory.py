"""What a trained lesion anonymiser remembers of the people it was trained on: figures for its card.

Nearest training image: the distance of generated backgrounds to their nearest slice of people trained on, over that to
people held out, as many of each: 1 when nothing is remembered, less when it is.
Authenticity (Alaa et al. 2022): share of generated backgrounds that lie further from their nearest training slice than
this slice lies from its nearest one of another person; copies are not authentic.
Membership: can the loss tell people trained on from people held out (AUC, 0.5 is no)? The control tells members from
members, in random halves: what lies within its 95 % band is chance.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from models.lesion_anonymiser.generation import background_latents, batches
from models.lesion_anonymiser.noise import seeded_noise
from models.lesion_anonymiser.parts import LesionParts
from models.train.lesion_losses import conditions_of, encoded
from models.train.lesion_material import Material
from models.train.trained import Tick

PIXELS = 24  # of a side, when slices are compared
DEPTH_APART = 0.04  # slices further apart in depth are not compared
VOLUMES, SLICES_A_PERSON = 8, 12
DRAWS, CONTROLS = 10, 200
NOT_MEASURED = "not measured: too few people"
LOSS_DRAWS = 4  # steps and noises by which a slice's loss is judged

Floats = NDArray[np.float64]


def memorisation(
    parts: LesionParts, fitted: Material, held: Material, seed: int, tick: Tick
) -> dict[str, str | float | int]:
    """The card's metrics, of the network and sampler that the card names (the student, where there is one)."""
    found = _nearest(parts, fitted, held, seed, tick)
    ours, others = _rows(fitted, seed), _rows(held, seed)
    for name, losses in {"denoiser": _denoiser_losses, "autoencoder": _autoencoder_losses}.items():
        members = _by_person(losses(parts, fitted, ours), fitted.who[ours])
        strangers = _by_person(losses(parts, held, others), held.who[others])
        found[f"membership AUC, {name}"] = round(auc(-members, -strangers), 3)
        low, high = control_band(-members, len(strangers), seed)
        found[f"membership AUC, {name}, member against member, 95 %"] = f"{low:.3f} to {high:.3f}"
    people = {"people trained on": len(torch.unique(fitted.who)), "people held out": len(torch.unique(held.who))}
    judged = {"memorisation is judged with": f"{parts.sampler}, {parts.steps} steps", **people, **found}
    return {name: one if one == one else NOT_MEASURED for name, one in judged.items()}  # not a number


def auc(positive: Floats, negative: Floats) -> float:
    """Chance that a positive scores higher than a negative; ties count half. NaN without both."""
    if not len(positive) or not len(negative):
        return float("nan")
    above = (positive[:, None] > negative[None]).mean() + 0.5 * (positive[:, None] == negative[None]).mean()
    return float(above)


def control_band(members: Floats, strangers: int, seed: int) -> tuple[float, float]:
    """The middle 95 % of AUCs of random members against the other members; NaN for fewer than two."""
    count = min(strangers, len(members) // 2)
    if count < 1:
        return float("nan"), float("nan")
    generator = np.random.default_rng(seed)
    orders = [generator.permutation(members) for _ in range(CONTROLS)]
    found = [auc(order[count:], order[:count]) for order in orders]
    low, high = np.percentile(found, [2.5, 97.5])
    return float(low), float(high)


def nearest_distances(
    images: Floats,
    depth: Floats,
    who: NDArray[np.int64],
    others: Floats,
    other_depth: Floats,
    other_who: NDArray[np.int64],
) -> tuple[Floats, NDArray[np.int64]]:
    """Root mean square distance of each image to its nearest other of another person at its depth, and which it is.

    `who` −1 is nobody. Infinite where there is none.
    """
    squares = (images**2).mean(1)[:, None] + (others**2).mean(1)[None] - 2 * images @ others.T / images.shape[1]
    apart = (np.abs(depth[:, None] - other_depth[None]) > DEPTH_APART) | (who[:, None] == other_who[None])
    squares = np.where(apart, np.inf, np.maximum(squares, 0))
    first = squares.argmin(1)
    return np.sqrt(squares[np.arange(len(images)), first]), first


def _nearest(
    parts: LesionParts, fitted: Material, held: Material, seed: int, tick: Tick
) -> dict[str, str | float | int]:
    made, depth, source = _generated(parts, held, seed, tick)
    train, other = (_pixels(_background(one)) for one in (fitted, held))
    train_depth, other_depth = fitted.depth.double().numpy(), held.depth.double().numpy()
    train_who, other_who = fitted.who.numpy(), held.who.numpy()
    nobody = np.full(len(made), -1)
    to_held, _ = nearest_distances(made, depth, source, other, other_depth, other_who)
    people = np.unique(train_who)
    generator = np.random.default_rng(seed)
    count = min(len(people), max(len(np.unique(other_who)) - 1, 1))
    draws = []
    for _ in range(DRAWS):
        chosen = np.isin(train_who, generator.choice(people, count, replace=False))
        draws.append(nearest_distances(made, depth, nobody, train[chosen], train_depth[chosen], train_who[chosen])[0])
    both = np.isfinite(to_held) & np.isfinite(draws).all(0)
    ratio = float(np.median(np.mean(draws, 0)[both]) / np.median(to_held[both])) if both.any() else float("nan")
    nearest, which = nearest_distances(made, depth, nobody, train, train_depth, train_who)
    near = np.unique(which)
    among, _ = nearest_distances(train[near], train_depth[near], train_who[near], train, train_depth, train_who)
    reference = among[np.searchsorted(near, which)]
    usable = np.isfinite(nearest) & np.isfinite(reference)
    authentic = float((nearest > reference)[usable].mean()) if usable.any() else float("nan")
    return {
        "nearest training image, ratio to held out": round(ratio, 3),
        "authenticity": round(authentic, 3),
        "generated slices": len(made),
    }


def _generated(parts: LesionParts, held: Material, seed: int, tick: Tick) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """(pixels, depth, who) of whole volumes of backgrounds under the conditions of people held out, as in a release."""
    studies = torch.unique(held.study)[:VOLUMES]
    images, depth, who = [], [], []
    for number, study in enumerate(studies, 1):
        rows = torch.nonzero(held.study == study).flatten()
        latents = background_latents(
            parts,
            held.mask[rows, 0].float(),
            held.depth[rows],
            int(held.kind[rows[0]]),
            seeded_noise(f"memorisation {seed} {number}"),
            sampler=parts.sampler,
            steps=parts.steps,
            guidance=1.0,
            shared=0.8,
        )
        with torch.no_grad():
            made = parts.vae.background_decoder(latents).float().cpu().clamp(0, 1)
        images.append(_pixels(made * ~held.mask[rows]))
        depth.append(held.depth[rows].double().numpy())
        who.append(held.who[rows].numpy())
        tick("memorisation", number, len(studies))
    return np.concatenate(images), np.concatenate(depth), np.concatenate(who)


def _background(material: Material) -> Tensor:
    return material.x.float() * ~material.mask


def _pixels(x: Tensor) -> Floats:
    """(n, s, side, side) -> (n, s · PIXELS²)."""
    return functional.adaptive_avg_pool2d(x, min(PIXELS, x.shape[-1])).flatten(1).double().numpy()


def _rows(material: Material, seed: int) -> Tensor:
    """Some slices of everybody, none the lowest."""
    generator = torch.Generator().manual_seed(seed)
    able = torch.nonzero(material.below >= 0).flatten()
    chosen = []
    for person in torch.unique(material.who[able]):
        own = able[material.who[able] == person]
        chosen.append(own[torch.randperm(len(own), generator=generator)[:SLICES_A_PERSON]])
    return torch.cat(chosen)


def _by_person(losses: Tensor, who: Tensor) -> Floats:
    return np.array([float(losses[who == person].mean()) for person in torch.unique(who)])


@torch.no_grad()
def _denoiser_losses(parts: LesionParts, material: Material, rows: Tensor) -> Tensor:
    """(rows,): mean loss at fixed steps and noise, the same for members and strangers."""
    network, schedule = parts.network(parts.sampler)
    z = parts.vae.scaled(encoded(parts.vae, material).to(parts.device)).cpu()
    generator = torch.Generator().manual_seed(0)
    total = torch.zeros(len(rows))
    for number in range(LOSS_DRAWS):
        step = torch.full((len(rows),), (2 * number + 1) * schedule.steps // (2 * LOSS_DRAWS))
        noise = torch.randn((1, *z.shape[1:]), generator=generator).expand(len(rows), *z.shape[1:])
        mixed, target = schedule.noised(z[rows], noise, step)
        for some in batches(torch.arange(len(rows)), 64):
            conditions = conditions_of(material, z, rows[some], parts.device)
            told = conditions if network.config.neighbour else replace(conditions, neighbour=None)
            said = network(mixed[some].to(parts.device), step[some].to(parts.device), told).float().cpu()
            total[some] += ((said - target[some]) ** 2).mean((1, 2, 3))
    return total / LOSS_DRAWS


@torch.no_grad()
def _autoencoder_losses(parts: LesionParts, material: Material, rows: Tensor) -> Tensor:
    """(rows,): mean squared error of what D3 makes of a slice's own latents."""
    out = []
    for some in batches(rows, 64):
        x, mask = material.x[some].float().to(parts.device), material.mask[some].float().to(parts.device)
        background, lesion = parts.vae.split(x, mask)
        made = parts.vae.join(parts.vae.background_encoder(background).mean, parts.vae.lesion_encoder(lesion).mean)
        out.append(((made - x) ** 2).mean((1, 2, 3)).cpu())
    return torch.cat(out)
