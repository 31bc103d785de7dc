"""Release checks against people who do not exist: a known leak is held by how much, and nothing without one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from gateway.gate.release_attribute import ReleaseAttribute
from gateway.gate.release_isolation import ReleaseIsolation
from gateway.gate.release_linkability import ReleaseLinkability
from gateway.gate.release_rank1 import ReleaseRank1, found_share
from gateway.gate.release_sample import ALL, RELEASE, Member, ReleaseSample, score, spent
from gateway.gate.release_selftest import planted
from gateway.gate.release_verdict import TO_COME
from gateway.study import Outcome

CARD = "selftest"
LINKABILITY = ReleaseLinkability((CARD,), 0.2)


def sample(*members: Member, looks: Mapping[str, int] | None = None, seed: int = 5) -> ReleaseSample:
    return ReleaseSample(members, looks or {RELEASE: 1, ALL: 1}, seed, {CARD: ("cosine",)}, 100, 100)


def people(count: int, leak: float, seed: int = 0) -> tuple[Member, ...]:
    return planted(count, leak, np.random.default_rng(seed))


def with_second_visits(count: int, *, centre: float, leak: float, released_centre: float) -> list[Member]:
    """Two visits of each person. Originals share `centre`; what leaves keeps `leak` of its own scan and
    `released_centre` of the person."""
    generator = np.random.default_rng(3)
    made = []
    for person in range(count):
        own = generator.normal(size=24)
        for visit in range(2):
            original = centre * own + np.sqrt(1 - centre**2) * generator.normal(size=24)
            released = leak * original + released_centre * own + generator.normal(size=24)
            rows = [np.asarray(row, np.float32)[None] for row in (original, released)]
            made.append(Member(f"{person:04d}", str(visit), embedded={CARD: (rows[0], rows[1])}))
    return made


def test_a_leak_is_held_with_its_bound_and_a_release_without_one_passes() -> None:
    held = LINKABILITY.over(sample(*people(120, 0.9)))
    assert (held.outcome, held.reason) == (Outcome.HOLD, "linkability")
    (figure,) = [one for one in held.scores if one.attack == "same_scan"]
    assert 0.6 < figure.estimate <= figure.upper <= 1
    assert f"at most {figure.upper:.3f}, limit 0.2" in held.at
    passed = LINKABILITY.over(sample(*people(150, 0.0)))
    assert passed.outcome is Outcome.PASS
    assert passed.at == ""


def test_few_people_are_no_evidence_however_clean() -> None:
    verdict = LINKABILITY.over(sample(*people(49, 0.0)))
    assert (verdict.outcome, verdict.reason) == (Outcome.HOLD, "too_few_people")
    assert "49 people" in verdict.at
    assert ReleaseRank1(0.2, (CARD,), gallery=60).judge(sample(*people(59, 0.0)), None).reason == "too_few_people"  # type: ignore[arg-type]


def test_nobody_known_to_a_card_is_no_evidence() -> None:
    others = [Member(f"{n}", "1", embedded={"another": (np.eye(1, 4), np.eye(1, 4))}) for n in range(80)]
    assert LINKABILITY.over(sample(*others)).reason == "no_identity_evidence"


def test_an_attacker_that_does_not_find_untouched_originals_is_void() -> None:
    constant = np.ones((1, 8), np.float32)
    blind = [Member(f"{n:03d}", "1", embedded={CARD: (constant, constant)}) for n in range(80)]
    verdict = LINKABILITY.over(sample(*blind))
    assert (verdict.outcome, verdict.reason) == (Outcome.HOLD, "attacker_void")
    assert CARD in verdict.at


def test_what_hides_the_scan_and_not_the_person_is_found_by_the_other_visit() -> None:
    """Released images that follow the person's centre, with scan and visit far apart: other_visit sees it as well."""
    members = with_second_visits(160, centre=0.9, leak=0.0, released_centre=2.0)
    verdict = LINKABILITY.over(sample(*members))
    by_attack = {one.attack: one for one in verdict.scores}
    assert by_attack["other_visit"].upper > 0.2
    assert by_attack["other_visit"].people == 160
    assert verdict.reason == "linkability"


def test_too_few_second_visits_are_told_and_decide_nothing() -> None:
    members = [*people(160, 0.0), *with_second_visits(10, centre=0.9, leak=0.0, released_centre=0.0)]
    verdict = LINKABILITY.over(sample(*members))
    notes = {one.attack: one.note for one in verdict.scores}
    assert notes == {"same_scan": "", "other_visit": TO_COME}
    assert verdict.outcome is Outcome.PASS


def test_a_leak_among_clean_releases_before_it_is_not_diluted() -> None:
    before = [Member(f"b{one.person}", "1", False, embedded=one.embedded) for one in people(600, 0.0, seed=9)]
    verdict = LINKABILITY.over(sample(*people(80, 0.9), *before))
    assert verdict.outcome is Outcome.HOLD
    upper = {one.scope: one.upper for one in verdict.scores if one.attack == "same_scan"}
    assert upper["release"] > 0.5 > upper["all"]


def test_one_untouched_image_of_five_gives_a_study_away() -> None:
    """The nearest pair of images counts: averaged over images this would look harmless."""
    generator = np.random.default_rng(1)
    members = []
    for person in range(120):
        originals = generator.normal(size=(5, 24)).astype(np.float32)
        released = generator.normal(size=(5, 24)).astype(np.float32)
        released[person % 5] = originals[person % 5]
        members.append(Member(f"{person:04d}", "1", embedded={CARD: (originals, released)}))
    verdict = LINKABILITY.over(sample(*members))
    assert verdict.reason == "linkability"
    assert max(one.upper for one in verdict.scores if not math.isnan(one.upper)) > 0.8


def test_a_second_look_has_a_wider_bound_and_the_same_estimate() -> None:
    members = people(120, 0.3)
    first, third = (LINKABILITY.over(sample(*members, looks={RELEASE: look})).scores[0] for look in (1, 3))
    assert first.estimate == third.estimate
    assert first.upper < third.upper
    assert sum(spent(0.05, look) for look in range(1, 20_000)) == pytest.approx(0.05, abs=1e-4)


def test_the_order_of_studies_changes_nothing() -> None:
    members = people(80, 0.5)
    one = ReleaseRank1(0.5, (CARD,)).judge(sample(*members), None)  # type: ignore[arg-type]
    two = ReleaseRank1(0.5, (CARD,)).judge(sample(*reversed(members)), None)  # type: ignore[arg-type]
    assert one.scores[0].estimate == pytest.approx(two.scores[0].estimate)


def test_rank1_of_chance_and_of_a_perfect_attacker() -> None:
    generator = np.random.default_rng(0)
    scored = score(people(200, 0.0), CARD, "cosine")
    assert found_share(scored, scored.untouched, "same_scan", 50, generator).mean() == 1
    # Without a trace a person is first among 50 by chance: 1/50, the spread of 200 people is 0.007.
    assert found_share(scored, scored.released, "same_scan", 50, generator).mean() == pytest.approx(0.02, abs=0.021)


def test_rank1_agrees_with_drawing_galleries() -> None:
    """The closed form against the draws of gateway.evidence on the same embeddings."""
    from gateway.evidence import People, fixed_gallery

    members = people(120, 0.35)
    originals, released = (np.concatenate([one.embedded[CARD][side] for one in members]) for side in (0, 1))
    drawn = fixed_gallery(
        released,
        People.of(range(120)),
        "cosine",
        np.random.default_rng(2),
        gallery=originals,
        size=50,
        draws=400,
        same_scan=True,
    )
    scored = score(members, CARD, "cosine")
    exact = found_share(scored, scored.released, "same_scan", 50, np.random.default_rng(0)).mean()
    assert exact == pytest.approx(drawn.rank1, abs=0.03)


def test_isolation_counts_people_and_names_the_attributes() -> None:
    def person(name: str, session: str = "1", current: bool = True, **kept: str) -> Member:
        return Member(name, session, current, kept)

    pairs = [person(f"p{n}", sex="fm"[n % 2], size="s") for n in range(8)]
    check = ReleaseIsolation(3)
    assert check.judge(sample(*pairs), None).outcome is Outcome.PASS  # type: ignore[arg-type]
    verdict = check.judge(sample(*pairs, person("alone", sex="f", size="t")), None)  # type: ignore[arg-type]
    assert verdict.reason == "record_isolation"
    assert "1 of 9 people in groups below 3, the smallest 1, by size" in verdict.at
    # Across releases: alone in this one, but not among all people released before.
    before = [person(f"b{n}", "1", False, sex="f", size="t") for n in range(5)]
    scopes = {one.scope: one.estimate for one in check.judge(sample(*before, *pairs), None).scores}  # type: ignore[arg-type]
    assert scopes == {"release": 4, "all": 4}


@pytest.mark.parametrize(
    "fields",
    [
        {"cards": (), "max_excess_upper": 0.1},
        {"cards": ("a",), "max_excess_upper": 0.0},
        {"cards": ("a",), "max_excess_upper": 1.0},
        {"cards": ("a",), "max_excess_upper": 0.1, "confidence": 1.0},
    ],
)
def test_senseless_parameters_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"cards|max_excess_upper|confidence"):
        ReleaseLinkability(**fields)  # type: ignore[arg-type]


def test_over_releases_without_a_leak_nine_of_ten_clear_and_leaking_ones_do_not() -> None:
    """Small: bench/gate_release.py does it over chains of fifty (results/gate_release.json)."""
    check = ReleaseLinkability((CARD,), 0.2)
    clean = [check.over(sample(*people(120, 0.0, seed), seed=seed)).outcome for seed in range(20)]
    leaking = [check.over(sample(*people(120, 0.45, seed), seed=seed)).outcome for seed in range(20)]
    assert clean.count(Outcome.PASS) >= 18
    assert leaking.count(Outcome.PASS) <= 1


def sexed(count: int, *, before: float, after: float) -> list[Member]:
    """One study a person; a direction of the embedding tells the sex, in originals and in what leaves."""
    generator = np.random.default_rng(11)
    made = []
    for person in range(count):
        sex = person % 2
        rows = [
            np.asarray(generator.normal(size=12) + shift * (2 * sex - 1), np.float32)[None] for shift in (before, after)
        ]
        made.append(Member(f"{person:03d}", "1", attributes={"sex": "fm"[sex]}, embedded={CARD: (rows[0], rows[1])}))
    return made


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [(1.0, 1.0, "attribute_inference"), (1.0, 0.0, ""), (0.0, 0.0, "attacker_void")],
)
def test_an_attribute_that_can_be_inferred_is_held(before: float, after: float, reason: str) -> None:
    check = ReleaseAttribute("sex", 0.75, (CARD,))
    verdict = check.judge(sample(*sexed(80, before=before, after=after)), None)  # type: ignore[arg-type]
    assert verdict.reason == reason
    (figure,) = verdict.scores
    assert figure.people == 80
    if reason == "attribute_inference":
        assert figure.estimate > 0.9
        assert "limit 0.75" in verdict.at


def test_people_whose_attribute_is_unknown_or_changes_are_left_out() -> None:
    members = sexed(60, before=1.0, after=0.0)
    unknown = [replace(one, attributes={}) for one in members[:11]]
    verdict = ReleaseAttribute("sex", 0.75, (CARD,)).judge(sample(*unknown, *members[11:]), None)  # type: ignore[arg-type]
    assert (verdict.reason, verdict.scores[0].people) == ("too_few_people", 49)
    other = replace(members[0], session="2", attributes={"sex": "m"})
    verdict = ReleaseAttribute("sex", 0.75, (CARD,)).judge(sample(other, *members[:50]), None)  # type: ignore[arg-type]
    assert (verdict.reason, verdict.scores[0].people) == ("too_few_people", 49)
