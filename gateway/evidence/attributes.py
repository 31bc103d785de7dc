"""What an attacker infers of people (recorded sex, age band, site) from embeddings: a random forest, judged by person.

Folds never share a person. Balanced accuracy and precision are taken over people: a person's scans vote by their mean
probability. Bounds by bootstrap over people, the null by shuffling the attribute over people.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gateway.evidence.pairs import Floats, Ints

TREES, FOLDS = 300, 5
ALPHA = 0.05  # of each one-sided bound


@dataclass(frozen=True, slots=True)
class Inference:
    """Balanced accuracy and macro precision over people, bounds one-sided at 1 - `alpha`; `p`: as good by chance."""

    balanced_accuracy: float
    lower: float
    upper: float
    precision: float
    chance: float
    p: float
    people: int
    classes: tuple[str, ...]


def infer_within(
    embeddings: NDArray[Any],
    subject: Ints,
    attribute: Sequence[str],
    seed: int,
    *,
    replicates: int = 1000,
    permutations: int = 999,
    trees: int = TREES,
    alpha: float = ALPHA,
) -> Inference:
    """Subject-disjoint stratified cross-validation. Raises ValueError with fewer than FOLDS people in a class."""
    from sklearn.model_selection import StratifiedGroupKFold

    classes, labels = _classes(subject, attribute)
    _, of_person = _by_person(subject, labels)
    if len(classes) < 2 or np.bincount(of_person, minlength=len(classes)).min() < FOLDS:
        raise ValueError(f"attribute inference needs {FOLDS} people and more in each of two classes")
    votes = np.zeros((len(labels), len(classes)))
    for train, test in StratifiedGroupKFold(FOLDS, shuffle=True, random_state=seed).split(embeddings, labels, subject):
        votes[test] = _fitted(embeddings[train], labels[train], seed, len(classes), trees)(embeddings[test])
    return _judged(votes, subject, labels, classes, np.random.default_rng(seed), replicates, permutations, alpha)


def infer_across(
    train: tuple[NDArray[Any], Ints, Sequence[str]],
    test: tuple[NDArray[Any], Ints, Sequence[str]],
    seed: int,
    *,
    replicates: int = 1000,
    permutations: int = 999,
    trees: int = TREES,
    alpha: float = ALPHA,
) -> Inference:
    """Fitted on one cohort, judged on another. Each is (embeddings, subject, attribute). Raises ValueError for classes
    that are not the same in both.
    """
    classes, labels = _classes(train[1], train[2])
    there, others = _classes(test[1], test[2])
    if classes != there or len(classes) < 2:
        raise ValueError("both cohorts need the same two classes or more")
    votes = _fitted(train[0], labels, seed, len(classes), trees)(test[0])
    return _judged(votes, test[1], others, classes, np.random.default_rng(seed), replicates, permutations, alpha)


def _fitted(x: NDArray[Any], y: Ints, seed: int, count: int, trees: int) -> Any:
    from sklearn.ensemble import RandomForestClassifier

    forest = RandomForestClassifier(trees, class_weight="balanced", random_state=seed, n_jobs=1).fit(x, y)

    def votes(z: NDArray[Any]) -> Floats:
        out = np.zeros((len(z), count))
        out[:, forest.classes_] = forest.predict_proba(z)
        return out

    return votes


def _classes(subject: Ints, attribute: Sequence[str]) -> tuple[tuple[str, ...], Ints]:
    names, labels = np.unique(np.asarray(attribute, str), return_inverse=True)
    _by_person(subject, labels.astype(np.int64))
    return tuple(map(str, names)), labels.astype(np.int64)


def _by_person(subject: Ints, labels: Ints) -> tuple[Ints, Ints]:
    """People, and the label of each. Raises ValueError for a person with two."""
    people, first, inverse = np.unique(subject, return_index=True, return_inverse=True)
    if (labels[first][inverse] != labels).any():
        raise ValueError("a person has two values of the attribute; it must be the person's, not the scan's")
    return people, labels[first]


def _judged(
    votes: Floats,
    subject: Ints,
    labels: Ints,
    classes: tuple[str, ...],
    generator: np.random.Generator,
    replicates: int,
    permutations: int,
    alpha: float,
) -> Inference:
    people, truth = _by_person(subject, labels)
    whose = np.searchsorted(people, subject)
    mean = np.zeros((len(people), len(classes)))
    np.add.at(mean, whose, votes)
    guess = mean.argmax(1)
    accuracy, precision = _scores(truth, guess, len(classes))
    draws = generator.integers(len(people), size=(replicates, len(people)))
    boots = [_scores(truth[draw], guess[draw], len(classes))[0] for draw in draws]
    null = [_scores(generator.permutation(truth), guess, len(classes))[0] for _ in range(permutations)]
    return Inference(
        balanced_accuracy=accuracy,
        lower=float(np.percentile(boots, 100 * alpha)),
        upper=max(accuracy, float(np.percentile(boots, 100 * (1 - alpha)))),
        precision=precision,
        chance=1 / len(classes),
        p=float((1 + sum(value >= accuracy for value in null)) / (1 + permutations)),
        people=len(people),
        classes=classes,
    )


def _scores(truth: Ints, guess: NDArray[Any], count: int) -> tuple[float, float]:
    """(balanced accuracy, macro precision) over the classes that are there."""
    table = np.zeros((count, count))
    np.add.at(table, (truth, guess), 1)
    there, said = table.sum(1), table.sum(0)
    recall = np.diag(table)[there > 0] / there[there > 0]
    precision = np.divide(np.diag(table), said, out=np.zeros(count), where=said > 0)
    return float(recall.mean()), float(precision[there > 0].mean())
