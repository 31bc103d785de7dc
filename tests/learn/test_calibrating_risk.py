"""`calibrate`: fresh attackers at each level, bounds that a choice may rely on, and a card that says about whom."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binomtest

from gateway.cli import run
from gateway.errors import UsageError
from gateway.evidence import upper_share
from gateway.learn import calibrating_risk
from gateway.learn.attacked import falling
from gateway.learn.calibrating_risk import Wanted, calibrate_risk
from gateway.learn.opened import anonymiser_of
from gateway.learn.readable import Reader
from gateway.learn.released import parted, released
from models.cards import SHIPPED, Calibration, CardFolder, Risk, find_card, people_hash, read_people, weights_of
from models.cohorts import Cohort
from tests.adjustable_cards import ATTACKER, CARD, write_attacker, write_card
from tests.adjustable_films import cohort

QUIET = lambda *_: None  # noqa: E731
TODAY = date(2026, 11, 30)
WANTED = Wanted(levels=(0.9, 0.3), gallery=5, attacker=ATTACKER, steps=1)

BODY = {
    "cohort": "c",
    "cohort_sha256": "0" * 64,
    "synthetic": True,
    "people": 60,
    "auxiliary": 60,
    "attacker": "a",
    "gallery": 50,
    "confidence": 0.95,
    "on": TODAY,
    "untouched": 0.9,
    "domain": {"mean": (0.0, 1.0)},
}


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> CardFolder:
    folder = tmp_path_factory.mktemp("cards")
    write_card(folder)
    write_attacker(folder, cohort(8, name="attackers-own"))
    return CardFolder.flat(folder)


@pytest.fixture(scope="module")
def strangers() -> Cohort:
    return cohort(24, name="strangers")


def test_a_stronger_level_never_has_the_greater_bound_and_a_choice_holds_as_often_as_one_bound() -> None:
    """Fixed-sequence testing, 1000 calibrations of 120 people at known risks: the chosen level breaks the target in at
    most one of twenty.
    """
    assert falling([0.1, 0.3, 0.2]) == [0.3, 0.3, 0.2]
    assert falling([0.3, 0.05, 0.04, 0.1]) == [0.3, 0.1, 0.1, 0.1]
    draw, target, truths = np.random.default_rng(4), 0.05, np.array([0.3, 0.12, 0.055, 0.02])
    broken = 0
    for _ in range(1000):
        hits = draw.binomial(120, truths)
        uppers = falling([upper_share(float(one), 120.0) for one in hits])
        chosen = [truth for truth, upper in zip(truths, uppers, strict=True) if upper <= target]
        broken += bool(chosen) and chosen[0] > target
    assert binomtest(broken, 1000, 0.05, "greater").pvalue > 0.05


def test_a_card_says_which_level_gives_which_risk_and_on_whom(cards: CardFolder, strangers: Cohort) -> None:
    made = calibrate_risk(CARD, [strangers], [SHIPPED, cards], cards, QUIET, today=TODAY, wanted=WANTED, new_name="c-1")
    card, folder = find_card("c-1", [cards])
    assert card == made.card
    assert weights_of(card, folder) is not None
    assert read_people(card, folder) == read_people(*find_card(CARD, [cards]))
    found = card.calibration
    assert found is not None
    assert [one.level for one in found.levels] == [0.9, 0.3]
    assert found.levels[0].upper >= found.levels[1].upper >= found.levels[1].rank1
    assert found.cohort == "strangers"
    assert found.attacker == ATTACKER
    assert 5 <= found.people <= 24 - 5
    assert found.people + found.auxiliary + made.outside // 2 >= 20
    assert (found.on, card.valid_until) == (TODAY, date(2027, 11, 30))
    assert set(found.domain) == {key.removeprefix("domain ") for key in card.parameters if key.startswith("domain ")}
    told = [key for key in card.metrics if key.startswith("calibration, r 0.3")]
    assert len(told) == 4  # two attackers, two attacks
    assert 2 / WANTED.gallery < found.untouched <= 1  # what finds less is refused
    assert card.metrics["calibration: rank-1 in untouched originals"] == round(found.untouched, 3)


def test_who_is_known_is_left_out_and_the_two_sides_share_nobody(cards: CardFolder, strangers: Cohort) -> None:
    known = frozenset(people_hash("strangers", subject) for subject in strangers.subjects[:6])
    auxiliary, judged, left_out = parted([strangers], known)
    assert left_out == 6
    assert not set(auxiliary.subjects) & set(judged.subjects)
    assert len(auxiliary.subjects) + len(judged.subjects) == 18
    again = parted([cohort(30, name="strangers")], known)  # a larger cohort moves nobody to the other side
    assert set(judged.subjects) <= set(again[1].subjects)
    once = parted([cohort(9, 1, name="once")], frozenset())
    assert len(once[0]) == len(once[1]) == 0
    both = parted([cohort(4, name="a"), cohort(4, name="b")], frozenset())
    assert len({*both[0].subjects, *both[1].subjects}) == 8
    with pytest.raises(UsageError, match="people for the attackers"):
        calibrate_risk(
            CARD, [strangers], [SHIPPED, cards], cards, QUIET, today=TODAY, wanted=replace(WANTED, gallery=30)
        )
    with pytest.raises(UsageError, match="0 people for the attackers"):
        calibrate_risk(CARD, [cohort(16)], [SHIPPED, cards], cards, QUIET, today=TODAY, wanted=WANTED)


def test_an_attacker_who_knows_the_same_people_is_refused(cards: CardFolder, strangers: Cohort, tmp_path: Path) -> None:
    known = CardFolder.flat(write_attacker(tmp_path, cohort(8), "knows-them-1"))  # of the anonymiser's own cohort
    wanted = replace(WANTED, attacker="knows-them-1")
    with pytest.raises(UsageError, match="8 of the same people"):
        calibrate_risk(CARD, [strangers], [cards, known], known, QUIET, today=TODAY, wanted=wanted)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"levels": (0.3, 0.9)}, "weakest"),
        ({"levels": (1.0,)}, "between 0 and 1"),
        ({"confidence": 0.4}, "confidence"),
        ({"attacker": CARD}, "no attacker"),
    ],
)
def test_what_cannot_be_calibrated_says_why(
    cards: CardFolder, strangers: Cohort, wrong: dict[str, object], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        calibrate_risk(
            CARD,
            [strangers],
            [SHIPPED, cards],
            cards,
            QUIET,
            today=TODAY,
            wanted=replace(WANTED, **wrong),  # type: ignore[arg-type]
        )


def test_released_pictures_are_those_of_the_level_and_leave_out_what_a_gateway_would_hold(
    cards: CardFolder, strangers: Cohort
) -> None:
    one = anonymiser_of(CARD, [cards])
    some = strangers.of(strangers.subjects[:3])
    plain = released(one.parts, one.domain, some, None, 0, QUIET)
    assert all(
        np.allclose(a.load(), b.load(), atol=1e-3)
        for a, b in zip(plain.cohort, [s for s in some if s.name in {t.name for t in plain.cohort}], strict=True)
    )
    made = [released(one.parts, one.domain, some, level, 0, QUIET).cohort for level in (0.9, 0.3, 0.9)]
    assert [scan.name for scan in made[0]] == [scan.name for scan in some]
    first, other, again = (np.stack([scan.load() for scan in cohort]) for cohort in made)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    noise = replace(some.scans[0], load=lambda: np.random.default_rng(0).random((16, 16)).astype(np.float32))
    odd = replace(some, scans=(noise, *some.scans[1:]))
    assert released(one.parts, one.domain, odd, None, 0, QUIET).outside > plain.outside


def test_findings_are_read_where_they_show() -> None:
    people = cohort(60)

    def marked(scan: object) -> np.ndarray:
        pixels = scan.load().copy()  # type: ignore[attr-defined]
        if scan.attributes["finding"] != "No Finding":  # type: ignore[attr-defined]
            pixels[:, 8] = 1
        return pixels

    shown = replace(people, scans=tuple(replace(s, load=lambda s=s: marked(s)) for s in people))
    reader = Reader.of(shown.of(shown.subjects[:40]))
    assert reader is not None
    assert reader.auroc(shown.of(shown.subjects[40:])) > 0.9
    assert abs(reader.auroc(people.of(people.subjects[40:])) - 0.5) < 0.35
    assert Reader.of(replace(people, scans=people.scans[:6])) is None


def test_a_calibration_whose_bounds_rise_with_the_level_is_no_calibration() -> None:
    rising = (Risk(level=0.9, rank1=0.1, upper=0.1), Risk(level=0.3, rank1=0.1, upper=0.2))
    with pytest.raises(ValueError, match="do not rise"):
        Calibration.model_validate({**BODY, "levels": rising})
    fine = Calibration.model_validate({**BODY, "levels": (rising[1].model_copy(update={"level": 0.95}), rising[0])})
    assert (fine.meeting(0.1), fine.meeting(0.2), fine.meeting(0.05)) == ((0.9,), (0.95, 0.9), ())
    blind = Calibration.model_validate({**fine.model_dump(), "untouched": 0.15})
    assert (blind.meeting(0.1), blind.meeting(0.2)) == ((0.9,), ())  # nobody is found in originals either


def test_the_command_tells_the_levels_and_ends_with_1_when_none_keeps_the_target(
    cards: CardFolder,
    strangers: Cohort,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gateway.learn.calibrating.read_cohort", lambda _text: strangers)
    calls = []

    def once(*given: object, **named: object) -> object:
        calls.append(named)
        levels = (Risk(level=0.9, rank1=0.3, upper=0.4), Risk(level=0.3, rank1=0.02, upper=0.04))
        made = Calibration.model_validate({**BODY, "levels": levels})
        card = find_card(CARD, [cards])[0].model_copy(update={"calibration": made})
        return calibrating_risk.Risked(card, cards.cards / "x.yaml", 3, 1)

    monkeypatch.setattr(calibrating_risk, "calibrate_risk", once)
    words = ["calibrate", "--card", CARD, "--cohort", "synthetic-chest=1,1,1", "--out", str(tmp_path), "--json"]
    assert run([*words, "--target-rank1", "0.05", "--levels", "0.9,0.3", "--confidence", "0.9"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["keeps"] == [0.3]
    assert calls[0]["wanted"].levels == (0.9, 0.3)  # type: ignore[attr-defined]
    assert calls[0]["wanted"].confidence == 0.9  # type: ignore[attr-defined]
    assert run([*words, "--target-rank1", "0.01"]) == 1
    assert run([*words[:-1], "--target-rank1", "0.01"]) == 1
    assert "does not load" in capsys.readouterr().out
    assert run([*words, "--levels", "high"]) == 2
