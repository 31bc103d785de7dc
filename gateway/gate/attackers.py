"""The attackers that checks name: cards ready to embed, their impostors, and on whom they were trained.

A check names a card; where cards lie (`Folders`) comes from whoever runs the gate. A card that is absent, past its
date, or of another role is no evidence: it holds at the gate, and does not load with a policy.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gateway.gate.aspects import IDENTITY
from gateway.policy import Policy
from models.cards import SHIPPED, Card, CardError, CardFolder, find_card, read_people, weights_of
from models.cards.impostors import LEAST_IMPOSTORS

if TYPE_CHECKING:  # encoders and figures are loaded by whoever judges with them, not by whoever reads a policy
    from gateway.embed import Embedder

Folders = tuple[CardFolder, ...]
KNOWN_METRICS = frozenset({"canberra", "cosine", "euclid"})  # of gateway.evidence
DEFAULT_METRICS = ("canberra", "cosine")  # of a card that names none
FLAT_ALGORITHMS = frozenset({"raw", "hog"})  # baselines that take pictures only


def folders_of(models: Path | None = None) -> Folders:
    """Where cards are looked for: what ships, then a site's own folder."""
    return (SHIPPED, CardFolder.flat(models)) if models is not None else (SHIPPED,)


def card_named(name: str, folders: Folders) -> tuple[Card, CardFolder]:
    """An attacker's card of today and its folder. Raises CardError."""
    card, folder = find_card(name, folders, today=datetime.now(UTC).date())
    if card.role != "attacker":
        raise CardError(f"the card {name} is an {card.role}'s; a check needs an attacker's")
    if card.takes == "measures":
        raise CardError(
            f"the card {name} takes measures that other programs make, and no images: the gate cannot use it"
        )
    if card.parameters.get("metric", "cosine") not in KNOWN_METRICS:
        raise CardError(f"the card {name} names another metric than {', '.join(sorted(KNOWN_METRICS))}")
    return card, folder


def embedder_named(name: str, folders: Folders) -> Embedder:
    """The card at work, loaded once in a process and again when the card changes. Raises CardError."""
    return _opened(name, folders, card_named(name, folders)[0].model_dump_json())


@lru_cache(maxsize=8)
def _opened(name: str, folders: Folders, _card: str) -> Embedder:
    from gateway.embed import open_embedder

    return open_embedder(name, folders, today=datetime.now(UTC).date())


def digest_of_card(name: str, folders: Folders) -> str:
    """What tells one version of a card from another, "" for one that is gone."""
    from gateway.embed import card_digest

    try:
        return card_digest(card_named(name, folders)[0])
    except CardError:
        return ""


def takes_volumes(card: Card) -> bool:
    """Whether the encoder wants (slices, rows, columns): `takes` says it; without it, cards for CT, MR or PT do."""
    if card.takes is not None:
        return card.takes == "volume"
    return card.algorithm not in FLAT_ALGORITHMS and bool(set(card.modalities) & {"CT", "MR", "PT"})


def metrics_of(card: Card) -> tuple[str, ...]:
    """The distances that this attacker uses, the worst of which counts: `parameters.metric`, else both of paper A."""
    said = card.parameters.get("metric")
    return (said,) if isinstance(said, str) else DEFAULT_METRICS


def cards_in(policy: Policy, own: Sequence[str] = ()) -> tuple[str, ...]:
    """The cards that a check uses: those that it names itself, else all that the policy's release checks name."""
    if own:
        return tuple(own)
    named = (getattr(check, "cards", ()) for check in policy.gate.release.values())
    return tuple(sorted({name for names in named for name in names}))


def identity_cards(policy: Policy) -> tuple[str, ...]:
    """The cards of the release checks that judge identity; all of them when none does (a check of the study or a person
    answers for it). A card that only infers an attribute clears nobody's identity.
    """
    judging = [check for check in policy.gate.release.values() if IDENTITY in check.judges]
    named = {name for check in judging for name in cards_in(policy, getattr(check, "cards", ()))}
    return tuple(sorted(named)) if judging else cards_in(policy)


def all_cards(policy: Policy) -> tuple[str, ...]:
    """Every attacker that a policy needs at the gate."""
    of_study = {name for check in policy.gate.study.values() if (name := getattr(check, "card", ""))}
    return tuple(sorted(of_study | set(cards_in(policy))))


def card_faults(names: Iterable[str], policy: Policy, folders: Folders) -> list[tuple[str, str]]:
    """Why these cards cannot judge this policy, each with a hint: absent, past its date, or trained on the same people
    as an anonymiser of the policy.
    """
    faults = []
    for name in names:
        try:
            card, folder = card_named(name, folders)
            weights_of(card, folder)
            people = read_people(card, folder)
        except CardError as error:
            faults.append((str(error), "see `models/cards` and HOME/models"))
            continue
        for stage, parameters in policy.pixels:
            try:
                both = people & _people_of_stage(parameters, folders)
            except CardError as error:
                faults.append((f"the stage {stage}: {error}", "a stage and its judge must both say who they know"))
                continue
            if both:
                says = f"the attacker {name} and the stage {stage} were trained on {len(both)} of the same people"
                faults.append((says, "what judges shares nothing with what is judged: name another card"))
    return faults


def _people_of_stage(parameters: Any, folders: Folders) -> frozenset[str]:
    """Of every card that the stage works with: it names one as `card`, or several as `cards`."""
    names = getattr(parameters, "cards", (getattr(parameters, "card", ""),))
    known = [read_people(*find_card(name, folders)) for name in names if isinstance(name, str) and name]
    return frozenset().union(*known)


@dataclass(frozen=True, slots=True)
class ImpostorDistances:
    """Distances between scans of different people, calibrated for one card: (people, draws) float32, one row a person.

    Each row holds distances from a scan of one person (anonymised or not: `calibrated` says how) to originals of
    others, so that a person counts once however many were drawn.
    """

    metric: str
    distances: NDArray[np.float32]
    calibrated: str

    @property
    def people(self) -> int:
        return len(self.distances)

    def p_value(self, distance: float) -> float:
        """The chance that an impostor lies as near as this: (1 + Σ_people share of draws ≤ distance) / (people + 1).

        Conformal: valid when the own original of a scan without a trace is like one of another person.
        """
        nearer = (self.distances <= distance).mean(axis=1).sum()
        return float((1 + nearer) / (self.people + 1))


def impostors_of(card: Card, folder: CardFolder) -> ImpostorDistances:
    """What the card carries. Raises CardError when there is none, too little of it, or another file."""
    if card.impostors is None:
        raise CardError(
            f"the card {card.name} carries no impostors; same_scan needs {LEAST_IMPOSTORS} people and more whom it was "
            "not trained on"
        )
    path = folder.weights / card.impostors.file
    try:
        data = path.read_bytes()
    except OSError:
        raise CardError(f"{path} is not there; the card {card.name} cannot judge a single study without it") from None
    if hashlib.sha256(data).hexdigest() != card.impostors.sha256:
        raise CardError(f"{path} is another file than its card names (sha256)")
    return _read_impostors(data, card, path)


def _read_impostors(data: bytes, card: Card, path: Path) -> ImpostorDistances:
    from gateway.evidence import METRICS

    assert card.impostors is not None  # noqa: S101 - `impostors_of` saw to it
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            found = ImpostorDistances(
                str(arrays["metric"]), np.asarray(arrays["distances"], np.float32), str(arrays["calibrated"])
            )
    except (OSError, ValueError, KeyError):
        raise CardError(f"{path} holds no metric, distances and calibrated; `models calibrate` writes it") from None
    sound = found.distances.ndim == 2 and found.distances.size > 0 and bool(np.isfinite(found.distances).all())
    if not sound or found.metric not in METRICS or found.metric != card.impostors.metric:
        raise CardError(f"{path}: distances are (people, draws) of finite numbers, in the metric that the card names")
    if found.people < LEAST_IMPOSTORS or found.people != card.impostors.people:
        raise CardError(f"{path}: {found.people} impostors; at least {LEAST_IMPOSTORS}, and as many as the card says")
    return found


def common_modalities(cards: Iterable[str], folders: Folders) -> frozenset[str]:
    """The modalities that any of these cards knows; empty when none of them can be read."""
    found: set[str] = set()
    for name in cards:
        try:
            found.update(card_named(name, folders)[0].modalities)
        except CardError:
            continue
    return frozenset(found)
