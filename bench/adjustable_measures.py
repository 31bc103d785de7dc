"""Two figures of released films: can somebody be found again, and is a finding still read by a model of originals?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch.nn import functional

from gateway.evidence import People, fixed_gallery
from models.audit_encoders.own_adaptive import linear_features
from models.audit_encoders.own_network import IdentityNetwork, part
from models.cards import find_card, weights_of
from models.mdl_decoupling import Decoupler, Foundation
from models.train.augmentations import standard
from models.train.reid_material import Material
from models.train.whitening import ridge, whitening

Floats = NDArray[np.float64]
GALLERY, DRAWS = 30, 200
KINDS = ("other visit", "same scan")
HOGS = 1764  # of a film
LEAST = 10  # films with a finding, and without it, for its AUROC
LINEAR, SHRINK, RIDGE = 128, 0.3, 0.03  # as in models.train.attacker


def unit_rows(x: NDArray[np.floating]) -> Floats:
    return np.asarray(x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-12), np.float64)


def linear_of(films: Tensor) -> NDArray[np.float32]:
    """(n, f): pixels and gradients of standardised films."""
    return np.stack([linear_features(one[None]) for one in standard(films)])


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
    return {name: Reader(known[name], fitted).auroc(seen[name], judged) for name in ("features", "decoded Q_sem")}


class Reader:
    """Findings by logistic regression on what it was fitted on; never adapted to released films."""

    @classmethod
    def of_films(cls, fitted: Material) -> Reader:
        """On gradients of *original* films."""
        return cls(linear_of(fitted.x.float())[:, -HOGS:], fitted)

    def __init__(self, known: NDArray[np.float32], fitted: Material) -> None:
        self.scaler = StandardScaler()
        x = self.scaler.fit_transform(known)
        self.names = fitted.names
        self.models = {}
        for column, name in enumerate(fitted.names):
            told = fitted.findings[:, column].numpy()
            self.models[name] = LogisticRegression(C=1e-3, max_iter=500, class_weight="balanced").fit(x, told > 0.5)

    def auroc(self, seen: NDArray[np.float32], judged: Material, replicates: int = 200) -> dict[str, Any]:
        """Mean over findings; its 95 % interval by resampling people."""
        x = self.scaler.transform(seen)
        scores = {name: model.decision_function(x) for name, model in self.models.items()}
        labels = {name: judged.findings[:, self.names.index(name)].numpy() > 0.5 for name in self.names}
        usable = [name for name in self.names if LEAST <= labels[name].sum() <= len(seen) - LEAST]
        each = {name: round(float(roc_auc_score(labels[name], scores[name])), 3) for name in usable}
        who = judged.who.numpy()
        rows_of = [np.flatnonzero(who == one) for one in np.unique(who)]
        draw = np.random.default_rng(0)
        means = []
        for _ in range(replicates):
            rows = np.concatenate([rows_of[i] for i in draw.integers(len(rows_of), size=len(rows_of))])
            values = [
                roc_auc_score(labels[name][rows], scores[name][rows]) for name in usable if labels[name][rows].sum() > 0
            ]
            means.append(np.mean(values))
        low, high = np.percentile(means, [2.5, 97.5])
        return {
            "auroc": round(float(np.mean(list(each.values()))), 3),
            "low": round(float(low), 3),
            "high": round(float(high), 3),
            "findings": each,
        }
