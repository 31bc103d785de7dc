"""Can somebody be found again: by released films, and by each side of a code?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional

from bench.adjustable_readers import Reader, linear_of
from gateway.evidence import People, fixed_gallery
from models.audit_encoders.own_network import IdentityNetwork, part
from models.cards import find_card, weights_of
from models.mdl_decoupling import Decoupler, Foundation
from models.train.augmentations import standard
from models.train.reid_material import Material
from models.train.whitening import ridge, whitening

Floats = NDArray[np.float64]
GALLERY, DRAWS = 30, 200
KINDS = ("other visit", "same scan")
LINEAR, SHRINK, RIDGE = 128, 0.3, 0.03  # as in models.train.attacker


def unit_rows(x: NDArray[np.floating]) -> Floats:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12), np.float64)


class Frozen:
    """The network of chest-audit-1, one take of a film: it has seen the people that we train on, none that we judge."""

    def __init__(self) -> None:
        card, folder = find_card("chest-audit-1")
        path = weights_of(card, folder)
        assert path is not None
        weights = part(load_file(path), "network")
        self.network = IdentityNetwork(1, int(str(card.parameters["width"])), len(weights["out.bias"]))
        self.network.load_state_dict(weights)
        self.network.eval()

    @torch.inference_mode()
    def __call__(self, films: Tensor) -> Floats:
        return unit_rows(torch.cat([self.network(some[:, None]) for some in standard(films).split(64)]).numpy())


@dataclass(frozen=True, slots=True)
class Attackers:
    """What an adversary has: auxiliary people whose originals he knows, and everything about the judged originals.

    `mean`, `matrix` whiten originals; `persons` is where each auxiliary film's person lies. `linear` and `network` are
    the galleries of judged originals.
    """

    frozen: Frozen
    people: People
    mean: NDArray[np.float32]
    matrix: NDArray[np.float32]
    persons: Floats
    linear: Floats
    network: Floats

    @classmethod
    def of(cls, frozen: Frozen, auxiliary: Material, judged: Material) -> Attackers:
        known, original = linear_of(auxiliary.x.float()), linear_of(judged.x.float())
        mean, matrix = whitening(known, [str(int(one)) for one in auxiliary.who], LINEAR, SHRINK)
        codes, who = unit_rows((known - mean) @ matrix), auxiliary.who.numpy()
        persons = np.stack([codes[who == one].mean(0) for one in who])
        people = People.of(judged.who.tolist())  # every film is a visit of its own
        gallery = unit_rows((original - mean) @ matrix)
        return cls(frozen, people, mean, matrix, persons, gallery, frozen(judged.x.float()))

    def rank1(self, aux_released: Tensor, released: Tensor) -> tuple[dict[str, Any], NDArray[np.float32]]:
        """Each attacker's rank-1 by another visit and by the original of the very scan, the worst; linear features.

        `linear, retrained` is fitted anew on these released films of auxiliary people; the others never saw any.
        """
        own_mean, own_matrix = ridge(linear_of(aux_released), self.persons, RIDGE)
        seen = linear_of(released)
        ways = {
            "linear, retrained": (unit_rows((seen - own_mean) @ own_matrix), self.linear),
            "linear, frozen": (unit_rows((seen - self.mean) @ self.matrix), self.linear),
            "network, frozen": (self.frozen(released), self.network),
        }
        return {kind: worst_of(ways, self.people, same_scan=kind == "same scan") for kind in KINDS}, seen


def worst_of(ways: dict[str, tuple[Floats, Floats]], people: People, *, same_scan: bool) -> dict[str, Any]:
    each = {}
    for name, (probes, gallery) in ways.items():
        draw = np.random.default_rng(0)
        one = fixed_gallery(
            probes, people, "cosine", draw, gallery=gallery, size=GALLERY, draws=DRAWS, same_scan=same_scan
        )
        each[name] = {"rank1": round(one.rank1, 3), "upper": round(one.upper, 3)}
    worst = max(each, key=lambda name: each[name]["rank1"])
    return {**each, "worst": worst, "rank1": each[worst]["rank1"], "upper": each[worst]["upper"]}


def sides(foundation: Foundation, decoupler: Decoupler, material: Material) -> dict[str, NDArray[np.float32]]:
    """Each side of the code (n, channels · 16), pooled to 4 x 4 places."""
    with torch.no_grad():
        f = torch.cat([foundation(one) for one in torch.split(material.x.float(), 64)])
        coded = decoupler.code(f)
        parts = {"features": f, "Q": coded.q, "Q_id": coded.q_id, "Q_sem": coded.q_sem}
        parts["decoded Q_sem"] = decoupler.decode(coded.q_sem)
        return {name: functional.adaptive_avg_pool2d(one, 4).flatten(1).numpy() for name, one in parts.items()}


def partition(
    foundation: Foundation, decoupler: Decoupler, auxiliary: Material, judged: Material
) -> dict[str, dict[str, Any]]:
    """Rank-1 by another visit of a fresh linear attacker on each side of the code."""
    people, who = People.of(judged.who.tolist()), [str(int(one)) for one in auxiliary.who]
    probes, found = sides(foundation, decoupler, judged), {}
    for name, known in sides(foundation, decoupler, auxiliary).items():
        mean, matrix = whitening(known, who, LINEAR, SHRINK)
        codes = unit_rows((probes[name] - mean) @ matrix)
        found[name] = worst_of({"linear, fresh": (codes, codes)}, people, same_scan=False)
    return found


def readable(foundation: Foundation, decoupler: Decoupler, fitted: Material, judged: Material) -> dict[str, Any]:
    """AUROC of findings in features and in the decoded Q_sem, each by a regression of its own on the fitted people."""
    known, seen = (sides(foundation, decoupler, one) for one in (fitted, judged))
    return {
        name: Reader(known[name], fitted).auroc(seen[name], judged).told("auroc")
        for name in ("features", "decoded Q_sem")
    }
