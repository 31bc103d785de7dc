"""What tests of memorisation find: copies, and members whom the loss gives away."""

from __future__ import annotations

import numpy as np
import pytest

from models.train.lesion_memory import auc, control_band, nearest_distances


def test_copies_are_nearer_to_those_copied_and_the_attack_on_membership_sees_it() -> None:
    random = np.random.default_rng(0)
    train_images, held_images = random.random((2, 60, 50))
    who, depth = np.repeat(np.arange(20), 3), np.tile([0.2, 0.5, 0.8], 20)
    copies = train_images + 0.01 * random.standard_normal(train_images.shape)
    nobody = np.full(60, -1)
    near, which = nearest_distances(copies, depth, nobody, train_images, depth, who)
    far, _ = nearest_distances(copies, depth, nobody, held_images, depth, who)
    np.testing.assert_array_equal(which, np.arange(60))
    np.testing.assert_allclose(near, np.sqrt(((copies - train_images) ** 2).mean(1)), atol=1e-6)
    assert np.median(near) < 0.1 * np.median(far)
    own, _ = nearest_distances(train_images, depth, who, train_images, depth, who)
    oracle = [
        min(np.sqrt(((train_images[i] - train_images[j]) ** 2).mean()) for j in range(60)
            if who[i] != who[j] and depth[i] == depth[j])
        for i in range(60)
    ]  # fmt: skip
    np.testing.assert_allclose(own, oracle, atol=1e-6)


def test_the_auc_and_its_control_are_those_of_the_library() -> None:
    from sklearn.metrics import roc_auc_score

    random = np.random.default_rng(1)
    members, strangers = np.round(random.normal(0.5, 1, 60), 1), np.round(random.normal(0, 1, 40), 1)
    oracle = roc_auc_score(np.r_[np.ones(60), np.zeros(40)], np.r_[members, strangers])
    assert auc(members, strangers) == pytest.approx(oracle)
    low, high = control_band(members, 25, 0)
    assert low < 0.5 < high
    assert np.isnan(auc(members, members[:0]))
    assert np.isnan(control_band(members[:1], 5, 0)[0])
