"""Can the gate see? Before a gateway serves, known leaks are planted, and must be found (facts of the audit, 4.4).

    figures    synthetic embeddings at a known D_sys are flagged by `linkability`, and embeddings without a trace pass
    cards      every card's encoder finds images again that were not changed at all, among others of its kind

A gate that does not see one of them says what it did not see, and nothing is served.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gateway.gate.attackers import Folders, embedder_named, impostors_of, metrics_of, takes_volumes
from gateway.gate.release_linkability import ReleaseLinkability
from gateway.gate.release_sample import RELEASE, Member, ReleaseSample
from gateway.study import Outcome
from models.cards import CardError, find_card

PEOPLE, DIMENSIONS = 120, 24
LIMIT = 0.2
LEAK = 0.9  # share of a person's direction that stays: D_sys near 0.95
IMAGES = 12
FLAT_PIXELS, SOLID_VOXELS = 96, (48, 56, 48)
SEED = 20261130


@lru_cache(maxsize=1)
def blind_to_figures() -> str:
    """What the arithmetic does not see, "" when it sees a planted leak and lets a leak-free release pass."""
    check = ReleaseLinkability(("selftest",), LIMIT)
    for leak, wanted in ((LEAK, Outcome.HOLD), (0.0, Outcome.PASS)):
        members = planted(PEOPLE, leak, np.random.default_rng(SEED))
        sample = ReleaseSample(members, {RELEASE: 1}, SEED, {"selftest": ("cosine",)}, 200, 199)
        verdict = check.over(sample)
        if verdict.outcome is not wanted or (leak and verdict.reason != "linkability"):
            return "a planted leak" if leak else "that a release without a leak has none"
    return ""


def planted(people: int, leak: float, generator: np.random.Generator) -> tuple[Member, ...]:
    """One study a person: what leaves keeps the share `leak` of the original's direction, the rest is noise."""
    originals = generator.normal(size=(people, DIMENSIONS)).astype(np.float32)
    noise = generator.normal(size=(people, DIMENSIONS)).astype(np.float32)
    released = (leak * originals + np.sqrt(1 - leak**2) * noise).astype(np.float32)
    return tuple(
        Member(f"{number:05d}", "1", embedded={"selftest": (originals[[number]], released[[number]])})
        for number in range(people)
    )


def blind_cards(names: Iterable[str], of_studies: Iterable[str], folders: Folders) -> tuple[str, ...]:
    """What each card does not see, one line a card; () when all of them see. `of_studies` are those of the cards that
    judge single studies, and so need impostors.
    """
    needs_impostors = frozenset(of_studies)
    found = []
    for name in sorted(set(names)):
        try:
            says = _blindness(name, folders)
            if not says and name in needs_impostors:
                says = _blindness_among_impostors(name, folders)
        except CardError as error:
            says = str(error)
        if says:
            found.append(f"{name}: {says}")
    return tuple(found)


def _blindness(name: str, folders: Folders) -> str:
    from gateway.evidence import METRICS

    vectors, metrics = _embedded(name, folders)
    for metric in metrics:
        apart = METRICS[metric](vectors, vectors)
        own = np.diag(apart)
        others = np.where(np.eye(len(apart), dtype=bool), np.inf, apart).min(axis=1)
        if not bool((own < others).all()):
            return f"by {metric}, an unchanged image is not nearest to itself"
    return ""


def _blindness_among_impostors(name: str, folders: Folders) -> str:
    """An unchanged image must lie nearer than any impostor could."""
    from gateway.evidence import METRICS

    impostors = impostors_of(*find_card(name, folders))
    vectors, _ = _embedded(name, folders)
    own = float(np.diag(METRICS[impostors.metric](vectors, vectors)).max())
    return (
        "" if impostors.p_value(own) <= 1.5 / (impostors.people + 1) else "impostors lie as near as an unchanged image"
    )


@lru_cache(maxsize=8)
def _embedded(name: str, folders: Folders) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    embedder = embedder_named(name, folders)
    solid = takes_volumes(embedder.card)
    vectors = [embedder.embed(image, (4.0, 4.0, 4.0) if solid else None) for image in _images(solid=solid)]
    return np.ascontiguousarray(np.stack(vectors), np.float32), metrics_of(embedder.card)


def _images(*, solid: bool) -> list[NDArray[np.float32]]:
    """Smooth random images, 0 to 1, all different."""
    from scipy.ndimage import gaussian_filter

    generator = np.random.default_rng(SEED)
    shape = SOLID_VOXELS if solid else (FLAT_PIXELS, FLAT_PIXELS)
    images = []
    for _ in range(IMAGES):
        field = gaussian_filter(generator.normal(size=shape), 4.0)
        images.append(np.asarray((field - field.min()) / (field.max() - field.min()), np.float32))
    return images
