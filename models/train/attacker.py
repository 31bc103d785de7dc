"""An attacker who has seen the anonymiser work: fitted on what it made of people whose originals he also has.

The frozen encoders of a gate never saw anonymised output; an adversary may run the anonymiser on people of his own. So
the gate takes the worse of both. Fitted on auxiliary people only: an overlap with people to be judged is refused.

1. Two networks, one for each way, start from one card's weights (or fresh) and are trained by contrast on both ways
   together, so that a person's released scans lie near the person's originals, of this visit and of others.
2. Two linear maps of pixels and gradients: originals are whitened within people; released scans are taken by ridge
   regression to where their person's originals lie.
3. A rule that tells released scans from originals, by texture.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from models.audit_encoders.own_adaptive import PIXELS, WAYS, TwoWays, linear_features, texture
from models.audit_encoders.own_network import part
from models.cards import Card, people_hash
from models.cohorts import Cohort
from models.train.augmentations import Strength, vary
from models.train.contrastive import Plan, fit
from models.train.trained import Options, Start, Tick, Trained, compact, lists_of
from models.train.whitening import ridge, whitening

LINEAR, SHRINK, RIDGE = 128, 0.3, 0.03
FAMILIES = {"own_films": "films", "own_eyes": "eyes", "own_brains": "brains"}  # of the start -> `pixels`
MIN_PEOPLE = 10
# Mild: what an anonymiser leaves is fine, and a released picture is not taken anew.
STRENGTH = Strength(rotate=5.0, scale=0.05, shift=0.05, warp=0.005, gamma=0.2, contrast=0.15, noise=0.05, blur=0.2)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Row i of `original` and of `released` is one scan, before and after; (N, V, C, side, side)."""

    original: Tensor
    released: Tensor
    who: NDArray[np.int64]


def fit_attacker(
    name: str,
    originals: Cohort,
    released: Cohort,
    start: Start,
    judged: Collection[str],
    options: Options,
    tick: Tick,
) -> Trained:
    """The card `name` and its tensors, for the algorithm `own_adaptive`.

    `originals` and `released` hold the same scans, by name, of auxiliary people. `judged`: hashes (`people_hash`) of
    everybody whom the attacker is to judge. Raises ValueError for an overlap, for scans that do not match, for fewer
    than 10 people, and for a start that is not one of our encoders.
    """
    _must_be_fair(originals, released, start, judged)
    if start.card.algorithm not in FAMILIES:
        raise ValueError(f"an attacker starts from a card of {' or '.join(FAMILIES)}, not of {start.card.algorithm}")
    family = FAMILIES[start.card.algorithm]
    side, width = (int(str(start.card.parameters[key])) for key in ("side", "width"))
    pairs = _gathered(originals, released, family, side, tick)
    plan = replace(Plan(steps=options.steps or 300, people=24, views=4, rate=1e-3), seed=options.seed)
    networks = _networks(pairs, start, PIXELS[family][1], width, plan, options, tick)
    state = networks.state_dict()
    named = {f"{way}.network.{key}": one for way in WAYS for key, one in part(state, way).items()}
    named |= {key: torch.from_numpy(one) for key, one in _maps(pairs).items()}
    trained_on, people = lists_of(name, [originals])
    learned = networks.original.out.out_features
    card = Card(
        name=name,
        role="attacker",
        algorithm="own_adaptive",
        modalities=start.card.modalities,
        anatomy=start.card.anatomy,
        dimensions=learned + named["original.matrix"].shape[1],
        parameters={"pixels": family, "side": side, "width": width, "shift": start.card.parameters["shift"]},
        trained_on=(*trained_on, *start.trained_on),
        intended_use="Adaptive attacker of one anonymiser at one setting: judges what this anonymiser releases, beside "
        "the frozen encoders; the worse counts.",
        limits="Knows one anonymiser at one setting, from few people. Another setting, card or level needs another "
        "attacker. That it finds nothing is no proof of anonymity.",
        licence="As the people it was trained on allow; it holds traces of them",
        source=f"models.train.attacker from {start.card.name}, {plan.steps} steps, seed {plan.seed}",
    )
    lists = {one.people_file: start.people[one.people_file] for one in start.trained_on}
    return Trained(card, compact(named), {**lists, **people})


def _must_be_fair(originals: Cohort, released: Cohort, start: Start, judged: Collection[str]) -> None:
    known = {people_hash(originals.name, subject) for subject in originals.subjects} | start.hashes
    both = known & frozenset(judged)
    if both:
        raise ValueError(
            f"{len(both)} people whom the attacker knows are to be judged; take others as auxiliary people"
        )
    labels = [[(scan.name, scan.subject, scan.session) for scan in cohort] for cohort in (originals, released)]
    if labels[0] != labels[1]:
        raise ValueError("originals and released must be the same scans of the same people in the same order")
    if len(originals.subjects) < MIN_PEOPLE:
        raise ValueError(f"an attacker needs {MIN_PEOPLE} auxiliary people and more")


def _gathered(originals: Cohort, released: Cohort, family: str, side: int, tick: Tick) -> _Pairs:
    prepare, _ = PIXELS[family]
    before, after = [], []
    for done, (old, new) in enumerate(zip(originals, released, strict=True)):
        tick("scans prepared", done, len(originals))
        before.append(prepare(old.load(), old.spacing_mm, side))
        after.append(prepare(new.load(), new.spacing_mm, side))
    who = np.unique([scan.subject for scan in originals], return_inverse=True)[1].astype(np.int64)
    return _Pairs(torch.stack(before), torch.stack(after), who)


def _networks(
    pairs: _Pairs, start: Start, channels: int, width: int, plan: Plan, options: Options, tick: Tick
) -> TwoWays:
    weights = part(start.tensors, "network")
    learned = len(weights["out.bias"]) if weights else LINEAR
    torch.manual_seed(plan.seed)  # fresh weights are drawn from it
    both = TwoWays(channels, width, learned)
    if weights:
        both.original.load_state_dict(weights, strict=True)
    both.released.load_state_dict(both.original.state_dict())
    planes = torch.cat([pairs.original, pairs.released])
    released = torch.arange(len(planes)) >= len(pairs.original)

    def augment(x: Tensor, generator: torch.Generator) -> Tensor:
        return vary(x, STRENGTH, generator)

    fitted = fit(
        both,
        planes,
        torch.from_numpy(np.concatenate([pairs.who, pairs.who])),
        plan,
        augment,
        tick,
        options.checkpoint,
        forward=lambda network, views, rows: network(views, released[rows]),
    )
    assert isinstance(fitted, TwoWays)  # noqa: S101 - what went in
    return fitted


def _maps(pairs: _Pairs) -> dict[str, NDArray[np.float32]]:
    """`original`, `released` and `rule`, each a mean and a matrix."""
    before, after = (np.stack([linear_features(one) for one in way]) for way in (pairs.original, pairs.released))
    mean, matrix = whitening(before, [str(one) for one in pairs.who], LINEAR, SHRINK)
    codes = (before - mean) @ matrix
    codes /= np.maximum(np.linalg.norm(codes, axis=1, keepdims=True), 1e-12)
    persons = np.zeros((pairs.who.max() + 1, codes.shape[1]))
    np.add.at(persons, pairs.who, codes)
    after_mean, after_matrix = ridge(after, persons[pairs.who] / np.bincount(pairs.who)[pairs.who, None], RIDGE)
    looks = np.stack([texture(one) for way in (pairs.original, pairs.released) for one in way])
    side = np.repeat([-1.0, 1.0], len(pairs.who))[:, None]
    spread = np.maximum(looks.std(0), 1e-6)
    rule_mean, rule = ridge(looks / spread, side, RIDGE)
    return {
        "original.mean": mean,
        "original.matrix": matrix,
        "released.mean": after_mean,
        "released.matrix": after_matrix,
        "rule.mean": rule_mean * spread.astype(np.float32),
        "rule.matrix": rule / spread[:, None].astype(np.float32),
    }
