"""`train CARD`: split people, train on one side, judge on the other, write weights, lists of people and the card.

The side is decided by a hash of each person, so a later run, or a larger cohort, never judges who was trained on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from gateway.durable import make_folder, writing
from gateway.embed import Embedder, fixed_embedding, fixed_input_digest
from gateway.errors import UsageError
from gateway.learn.judged import PROTOCOL, Tick, card_metrics, embedded, figures
from models.audit_encoders import ENCODERS
from models.cards import SHIPPED, Card, CardError, CardFolder, Weights, find_card, people_hash, read_people, weights_of
from models.cohorts import READERS, Cohort, synthetic_brains, synthetic_chest, synthetic_fundus
from models.train import ENTRIES, PRIVATE

if TYPE_CHECKING:
    from models.train.trained import Privacy, Start, Trained

SHARE = 0.6  # of the people that are trained on


@dataclass(frozen=True, slots=True)
class Run:
    """What was made: the card, its file, and on how many people it was judged."""

    card: Card
    path: Path
    held_out: int


# Synthetic people at the size that our encoders look at.
SYNTHETIC: dict[str, Callable[[int, int, int], Cohort]] = {
    "synthetic-chest": synthetic_chest,
    "synthetic-fundus": partial(synthetic_fundus, size=96),
    "synthetic-eyes": partial(synthetic_fundus, size=96, eyes="RL"),  # right and left
    "synthetic-brains": partial(synthetic_brains, spacing_mm=3.0),
    "synthetic-tumours": partial(
        synthetic_brains, spacing_mm=3.0, sequences=("T1", "T1c", "T2", "FLAIR"), diagnoses={"HGG": 0.5, "LGG": 0.5}
    ),
    "synthetic-healthy": partial(
        synthetic_brains, spacing_mm=3.0, sequences=("T1", "T1c", "T2", "FLAIR"), diagnoses={"healthy": 1.0}
    ),
}


def read_cohort(text: str) -> Cohort:
    """READER=FOLDER (a name in `models.cohorts.READERS`), or a name in SYNTHETIC=PEOPLE,SESSIONS,SEED.

    Raises UsageError.
    """
    name, _, folder = text.partition("=")
    if name in SYNTHETIC:
        return _synthetic(name, folder)
    if name not in READERS or not folder:
        readers = ", ".join(sorted(READERS))
        raise UsageError(
            f"a cohort is READER=FOLDER, the reader one of {readers}; or one of {', '.join(SYNTHETIC)}, then "
            "=PEOPLE,SESSIONS,SEED"
        )
    if not Path(folder).is_dir():
        raise UsageError(f"{folder} is no folder")
    try:
        return READERS[name](Path(folder))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise UsageError(f"{folder} cannot be read as {name}: {reason}") from None


def _synthetic(name: str, text: str) -> Cohort:
    try:
        people, sessions, seed = map(int, text.split(","))
        return SYNTHETIC[name](people, sessions, seed)
    except ValueError as error:
        raise UsageError(f"{name}={text}: PEOPLE,SESSIONS,SEED in whole numbers, such as 100,2,7 ({error})") from None


def train(
    name: str,
    cohorts: Sequence[Cohort],
    target: CardFolder,
    tick: Tick,
    *,
    steps: int | None = None,
    seed: int = 0,
    share: float = SHARE,
    judged: Sequence[Cohort] = (),
    keep: Path | None = None,
    start: str = "",
    folders: Sequence[CardFolder] = (SHIPPED,),
    privacy: Privacy | None = None,
) -> Run:
    """`judged`: cohorts of which nobody is trained on. `keep` holds the checkpoint. Cohorts of one name are one.

    `start` names a card in `folders` whose weights the training goes on from: an attacker of ours only.
    `privacy`: differential privacy of each patient, where the losses allow it.
    Raises UsageError for an unknown card, cohorts that cannot be trained on, or people who are to be both.
    """
    if name not in ENTRIES:
        raise UsageError(f"no training makes {name}; there is {', '.join(sorted(ENTRIES))}")
    if privacy is not None and name not in PRIVATE:
        raise UsageError(
            f"no epsilon can be claimed of {name}: what one person gives to its training is not bounded (most losses "
            f"compare people with each other); {', '.join(sorted(PRIVATE))} can be trained so"
        )
    if not 0 < share < 1:
        raise UsageError("the share to train on lies between 0 and 1, so that people are left to judge on")
    from models.train.trained import Options, sides

    split = [sides(cohort, share) for cohort in joined(cohorts)]
    entry = import_module(ENTRIES[name])
    begin = _start(start, folders) if start else None
    if steps == 0 and begin is None:
        raise UsageError("no steps teach nothing: give some, or name a card to start from")
    if begin is not None and not hasattr(entry, "RECIPE"):
        raise UsageError(f"the training of {name} begins afresh: only our own attackers go on from a card")
    held_out = joined([*(others for _, others in split if len(others)), *judged])
    both = _people(part for part, _ in split) & _people(judged)
    if begin is not None:
        both |= begin.hashes & _people(held_out)
    if both:
        raise UsageError(
            f"{len(both)} people of the cohorts to judge on are trained on; leave them out of one of the two"
        )
    ours = [part for part, _ in split if len(part)]
    checkpoint = make_folder(keep) / f"{name}.{_run(ours, begin, privacy)}.checkpoint" if keep is not None else None
    options = Options(steps=steps, seed=seed, checkpoint=checkpoint, start=begin, privacy=privacy)
    try:
        trained: Trained = entry.train(ours, options, tick)
    except ValueError as error:
        raise UsageError(f"{name} cannot be trained on this: {error}") from None
    return write_trained(trained, held_out, target, tick)


def _run(cohorts: Iterable[Cohort], start: Start | None, privacy: Privacy | None) -> str:
    """What a run goes on from a checkpoint of: the very same scans, the same start, the same privacy."""
    told = [f"{cohort.name}/{one.subject}/{one.session}/{one.name}" for cohort in cohorts for one in cohort]
    told.append(start.card.model_dump_json() if start is not None else "")
    if privacy is not None:
        told.append(repr(privacy))  # without its key
    return hashlib.sha256("\0".join(told).encode()).hexdigest()[:12]


def _start(name: str, folders: Sequence[CardFolder]) -> Start:
    """The card with its weights and its people. Raises UsageError."""
    from safetensors.torch import load

    from models.train.trained import Start

    try:
        card, folder = find_card(name, folders)
        path = weights_of(card, folder)
        read_people(card, folder)  # each list is the one that the card names
    except CardError as error:
        raise UsageError(str(error)) from None
    if path is None:
        raise UsageError(f"{name} has no weights to go on from")
    lists = {one.people_file: (folder.people / one.people_file).read_bytes() for one in card.trained_on}
    return Start(card, load(path.read_bytes()), lists)


def joined(cohorts: Sequence[Cohort]) -> list[Cohort]:
    """Parts of one data set as one cohort, each scan once: a card has one list of its people, one set of figures."""
    made: dict[str, Cohort] = {}
    for cohort in cohorts:
        before = made.get(cohort.name, replace(cohort, scans=()))
        scans = {(scan.subject, scan.session, scan.name): scan for scan in (*before.scans, *cohort.scans)}
        made[cohort.name] = replace(before, scans=tuple(scans.values()))
    return list(made.values())


def _people(cohorts: Iterable[Cohort]) -> set[str]:
    return {people_hash(cohort.name, subject) for cohort in cohorts for subject in cohort.subjects}


def write_trained(trained: Trained, held_out: Sequence[Cohort], target: CardFolder, tick: Tick) -> Run:
    """Judges on `held_out` (an attacker's card only), pins the fixed input, and writes all files."""
    from safetensors.torch import save

    body = save(dict(trained.tensors))
    card = trained.card.model_copy(
        update={"weights": Weights(file=f"{trained.card.name}.safetensors", sha256=hashlib.sha256(body).hexdigest())}
    )
    if card.role == "attacker":
        tensors: dict[str, Any] = dict(trained.tensors)
        pinned = fixed_input_digest(fixed_embedding(card, tensors))
        metrics = judge(card, tensors, held_out, tick)
        card = card.model_copy(update={"fixed_input_sha256": pinned, "metrics": metrics})
    files = {target.weights / f"{card.name}.safetensors": body}
    files |= {target.people / file: lines for file, lines in trained.people.items()}
    document = yaml.safe_dump(
        card.model_dump(mode="json", exclude_defaults=True), sort_keys=False, width=110, allow_unicode=True
    )
    files[target.cards / f"{card.name}.yaml"] = document.encode()  # the last: it names the others
    for path, contents in files.items():
        make_folder(path.parent)
        with writing(path) as out:
            out.write(contents)
    return Run(card, target.cards / f"{card.name}.yaml", sum(len(one.subjects) for one in held_out))


def judge(card: Card, tensors: dict[str, Any], held_out: Sequence[Cohort], tick: Tick) -> dict[str, str | float | int]:
    """The card's metrics: by cohort, cosine. A cohort without mates says so."""
    embedder = Embedder(card, ENCODERS[card.algorithm](card, tensors))
    metrics: dict[str, str | float | int] = {"protocol": PROTOCOL, "distance": "cosine"}
    for cohort in held_out:
        try:
            found = figures(embedded(embedder.embed, cohort, tick), cohort)
        except CardError:
            raise
        except ValueError as error:
            metrics[f"{cohort.name}: no evidence"] = str(error)
        else:
            metrics |= card_metrics(cohort.name + (" (synthetic)" if cohort.synthetic else ""), found)
    return metrics
