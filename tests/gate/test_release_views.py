"""Whole image, background and lesion judged apart: what each hides and shows, over people who do not exist."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter

from gateway.app.policy.registry import REGISTRY
from gateway.errors import PolicyError
from gateway.gate.lesion_drawn import labels_of
from gateway.gate.lesion_views import cut, views_wanted
from gateway.gate.release_linkability import ReleaseLinkability
from gateway.gate.release_rank1 import ReleaseRank1
from gateway.gate.release_sample import ALL, BACKGROUND, LESION, RELEASE, WHOLE, Member, Pixels, ReleaseSample
from gateway.gate.release_views import ViewLimits
from gateway.policy import Policy, explain_policy, load_policy, read_snapshot
from gateway.study import Outcome
from models.audit_encoders import BASELINES

CARD = "selftest"
LINKABILITY = ReleaseLinkability((CARD,), 0.95, views=ViewLimits(background=0.3, lesion=0.3))
RANK1 = ReleaseRank1(0.95, (CARD,), views=ViewLimits(background=0.2, lesion=0.2))
CHECKS = pytest.mark.parametrize("check", [LINKABILITY, RANK1], ids=["linkability", "rank1"])


def sample(members: Sequence[Member]) -> ReleaseSample:
    return ReleaseSample(tuple(members), {RELEASE: 1, ALL: 1}, 5, {CARD: ("cosine",)}, 100, 100)


def people(count: int, seed: int = 0, *, current: bool = True, **leaks: float) -> list[Member]:
    """Of each view what leaves keeps the share `leaks[view]` of the original's direction; a view that is not named
    was never seen.
    """
    generator = np.random.default_rng(seed)

    def pair(leak: float) -> tuple[Pixels, Pixels]:
        original, noise = generator.normal(size=(2, 1, 24)).astype(np.float32)
        return original, (leak * original + np.sqrt(1 - leak**2) * noise).astype(np.float32)

    made = []
    for number in range(count):
        seen = {view: {CARD: pair(leak)} for view, leak in leaks.items()}
        whole = seen.pop(WHOLE)
        made.append(Member(f"{seed}-{number:04d}", "1", current, embedded=whole, parts=seen))
    return made


def upper(check: Any, members: Sequence[Member]) -> dict[str, float]:
    scores = check.judge(sample(members), None).scores
    return {one.view: one.upper for one in scores if (one.attack, one.scope) == ("same_scan", RELEASE)}


@CHECKS
def test_lesions_that_identify_are_held_behind_a_background_that_does_not(check: Any) -> None:
    members = people(150, whole=0.3, background=0.0, lesion=0.9)
    verdict = check.judge(sample(members), None)
    assert (verdict.outcome, verdict.reason) == (Outcome.HOLD, verdict.check)
    assert verdict.at.startswith(f"{verdict.check}, lesion alone by {CARD}, same_scan: at most ")
    bounds = upper(check, members)
    assert bounds[BACKGROUND] <= check.views.background < check.views.lesion + 0.2 < bounds[LESION]


@CHECKS
def test_a_background_that_identifies_is_held_behind_lesions_that_do_not(check: Any) -> None:
    members = people(150, whole=0.3, background=0.9, lesion=0.0)
    verdict = check.judge(sample(members), None)
    assert (verdict.outcome, verdict.reason) == (Outcome.HOLD, verdict.check)
    assert verdict.at.startswith(f"{verdict.check}, background alone by {CARD}")
    bounds = upper(check, members)
    assert bounds[LESION] <= check.views.lesion < check.views.background + 0.2 < bounds[BACKGROUND]


@CHECKS
def test_the_whole_image_keeps_its_own_limit_however_clean_its_parts(check: Any) -> None:
    assert check.judge(sample(people(150, whole=0.3, background=0.0, lesion=0.0)), None).outcome is Outcome.PASS
    verdict = check.judge(sample(people(150, whole=1.0, background=0.0, lesion=0.0)), None)
    assert (verdict.outcome, verdict.at.split(" by ")[0]) == (Outcome.HOLD, verdict.check)


@CHECKS
def test_a_study_without_the_view_is_no_evidence_whatever_the_others_show(check: Any) -> None:
    members = people(150, whole=0.0, background=0.0, lesion=0.0)
    for unseen, view in ((people(1, 7, whole=0.0, background=0.0), LESION), (people(1, 7, whole=0.0), BACKGROUND)):
        verdict = check.judge(sample([*members, *unseen]), None)
        assert (verdict.outcome, verdict.reason) == (Outcome.HOLD, "lesion_undrawn")
        assert verdict.at == f"{verdict.check}, {view} alone by {CARD}, people without a mask: 1"
    nobody = check.judge(sample(people(150, whole=0.0)), None)
    assert (nobody.outcome, nobody.reason) == (Outcome.HOLD, "lesion_undrawn")


def test_releases_from_before_there_were_views_are_left_out_of_them() -> None:
    before = people(60, 9, current=False, whole=0.0)
    verdict = LINKABILITY.judge(sample([*people(150, whole=0.0, background=0.0, lesion=0.0), *before]), None)  # type: ignore[arg-type]
    assert verdict.outcome is Outcome.PASS
    counted = {(one.view, one.scope): one.people for one in verdict.scores if one.attack == "same_scan"}
    assert counted == {(view, scope): 150 for view in (WHOLE, BACKGROUND, LESION) for scope in (RELEASE, ALL)} | {
        (WHOLE, ALL): 210
    }


def test_few_people_are_no_evidence_for_a_view() -> None:
    verdict = LINKABILITY.judge(sample(people(49, whole=0.0, background=0.0, lesion=0.0)), None)  # type: ignore[arg-type]
    assert (verdict.reason, verdict.at) == ("too_few_people", f"linkability by {CARD}: 49 people")


@CHECKS
def test_a_view_does_not_change_the_whole_image_s_figures(check: Any) -> None:
    alone = type(check)(**{**vars(check), "views": ViewLimits()})
    members = people(120, whole=0.4, background=0.2, lesion=0.2)
    whole = [one for one in check.judge(sample(members), None).scores if one.view == WHOLE]
    assert whole == list(alone.judge(sample(members), None).scores)


# -- pictures ---------------------------------------------------------------------------------------------------------

SIDE = 48


def texture(*seed: int, smooth: float) -> Pixels:
    field = gaussian_filter(np.random.default_rng(seed).normal(size=(SIDE, SIDE)), smooth)
    return np.asarray((field - field.min()) / np.ptp(field), np.float32)


def ellipse(seed: int) -> NDArray[np.bool_]:
    generator = np.random.default_rng([5, seed])
    centre, radius = generator.uniform(14, 34, 2), generator.uniform(4, 8, 2)
    return np.asarray((((np.indices((SIDE, SIDE)).T - centre) / radius) ** 2).sum(-1).T < 1, np.bool_)


def pictured(person: int, *, lesion_stays: bool) -> Member:
    """One picture of a person; of it either the lesion leaves as it was, or everything else."""
    drawn = ellipse(person)
    was = np.where(drawn, 0.5 + 0.5 * texture(3, person, smooth=1.5), 0.2 + 0.7 * texture(1, person, smooth=2.5))
    left_drawn = drawn if lesion_stays else ellipse(person + 1000)
    other = 0.2 + 0.7 * texture(2, person, smooth=2.5)
    left = np.where(drawn, was, other) if lesion_stays else np.where(drawn, other, was)
    if not lesion_stays:
        left = np.where(left_drawn, 0.5 + 0.5 * texture(4, person, smooth=1.5), left)

    def pair(view: str) -> dict[str, tuple[Pixels, Pixels]]:
        cuts = [one if view == WHOLE else cut(one, mask, view) for one, mask in ((was, drawn), (left, left_drawn))]
        original, released = (BASELINES["raw"](one.astype(np.float32))[None] for one in cuts)
        return {CARD: (original, released)}

    return Member(f"{person:04d}", "1", embedded=pair(WHOLE), parts={one: pair(one) for one in (BACKGROUND, LESION)})


@CHECKS
@pytest.mark.parametrize("lesion_stays", [True, False])
def test_of_pictures_the_view_that_stays_fails_and_the_other_passes(check: Any, lesion_stays: bool) -> None:
    stays, gone = (LESION, BACKGROUND) if lesion_stays else (BACKGROUND, LESION)
    bounds = upper(check, [pictured(person, lesion_stays=lesion_stays) for person in range(120)])
    limit = dict(check.further_views)
    assert bounds[gone] <= limit[gone]
    assert bounds[stays] > 0.9


# -- in a policy ------------------------------------------------------------------------------------------------------


def loaded(folder: Path, release: dict[str, Any], people: int = 150) -> Policy:
    body = {
        "name": "lesions",
        "extends": ["ps3.15-basic@2026d"],
        "gate": {"study": {"residual_identifiers": {"max": 0}}, "release": release},
        "release": {"min_subjects": people},
    }
    path = folder / "lesions.yaml"
    path.write_text(yaml.safe_dump(body))
    return load_policy(path, REGISTRY)


def linkability(**views: float) -> dict[str, Any]:
    return {"cards": ["brain-audit-1"], "max_excess_upper": 0.2, **({"views": views} if views else {})}


def test_a_policy_says_which_views_its_checks_judge(tmp_path: Path) -> None:
    policy = loaded(
        tmp_path, {"linkability": linkability(background=0.2), "rank1": {"max_upper": 0.2, "views": {"lesion": 0.3}}}
    )
    assert views_wanted(policy) == {BACKGROUND: ("brain-audit-1",), LESION: ("brain-audit-1",)}
    assert labels_of(policy) == ()
    told = explain_policy(policy)
    assert any("linkability (" in line and "views (background 0.2)" in line for line in told)
    assert read_snapshot(policy.to_snapshot(), REGISTRY) == policy


def test_a_policy_without_views_keeps_the_digest_that_its_studies_began_under(tmp_path: Path) -> None:
    """Its snapshot tells no views, as those that were written before there were any."""
    policy = loaded(tmp_path, {"linkability": linkability(), "rank1": {"max_upper": 0.2}})
    assert views_wanted(policy) == {}
    assert "views" not in policy.to_snapshot()
    assert (
        policy.digest != loaded(tmp_path, {"linkability": linkability(lesion=0.5), "rank1": {"max_upper": 0.2}}).digest
    )
    assert not any("views" in line for line in explain_policy(policy))


def test_limits_that_cannot_work_do_not_load(tmp_path: Path) -> None:
    for release, says in (
        ({"linkability": linkability(lesion=1.5)}, "lie between 0 and 1"),
        ({"linkability": linkability(border=0.5)}, "unknown key border"),
        ({"linkability": linkability(background=0.1)}, "passes linkability, background alone with a chance of"),
        ({"rank1": {"max_upper": 0.2, "cards": ["brain-audit-1"], "views": {"lesion": 0.02}}}, "above chance"),
    ):
        with pytest.raises(PolicyError) as error:
            loaded(tmp_path, release)
        assert any(says in fault.says for fault in error.value.faults), error.value.faults
