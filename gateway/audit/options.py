"""What every piece of an audit shares: its options, streams of random numbers, and how one figure is taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gateway.audit.inputs import AuditInput
from gateway.evidence import METRICS, TREES, Linkability, ScoredPairs, leave_one_out, linkability

Table = list[dict[str, Any]]
MIN_PEOPLE = 50  # below it a release is "no evidence"


@dataclass(frozen=True, slots=True)
class Options:
    """`seed` decides every draw. `replicates` and `permutations` of each bound and null."""

    seed: int = 0
    replicates: int = 1000
    permutations: int = 999
    omega: float = 1.0
    gallery: int = 50
    draws: int = 200
    trees: int = TREES
    synthetic: bool = False


def densities(pairs: ScoredPairs, bins: int = 60) -> dict[str, list[float]]:
    """Histograms of both kinds of scores over one axis, each of area 1, and the local D of each bin, for the figure."""
    both = np.concatenate([pairs.mated, pairs.non_mated])
    edges = np.histogram_bin_edges(both, bins)
    mated, _ = np.histogram(pairs.mated, edges, density=True)
    others, _ = np.histogram(pairs.non_mated, edges, density=True)
    under = mated + others
    local = np.divide(mated - others, under, out=np.zeros_like(under), where=under > 0)
    return {
        "edges": edges.tolist(),
        "mated": mated.tolist(),
        "non_mated": others.tolist(),
        "local": np.maximum(local, 0).tolist(),
    }


def measured(pairs: ScoredPairs, o: Options, *purpose: str) -> Linkability:
    """Linkability under these options, with a stream of random numbers of its own."""
    return linkability(pairs, stream(o, *purpose), omega=o.omega, replicates=o.replicates, permutations=o.permutations)


def stream(o: Options, *purpose: str) -> np.random.Generator:
    """One stream for each piece of work: adding one does not change the figures of another."""
    return np.random.default_rng([o.seed, *(byte for part in purpose for byte in f"{part}\0".encode())])


def best_metric(data: AuditInput, encoder: str) -> str:
    """The metric that links best by rank-1: strata and gaps follow the stronger attacker."""
    return max(METRICS, key=lambda metric: leave_one_out(data.embeddings[encoder], data.people, metric).rank1)
