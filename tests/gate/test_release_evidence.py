"""Nothing passes unjudged: no release by the figures of others, no image by a check that is not about identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import NormalDist
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydicom.uid import generate_uid
from releasing import film, radiograph, write_card

from gateway.errors import Hold
from gateway.evidence import infer_within
from gateway.gate import embed_study, identity_cards
from gateway.gate.attackers import embedder_named
from gateway.gate.reading import Pair
from gateway.gate.release_attribute import ReleaseAttribute
from gateway.gate.release_isolation import ReleaseIsolation
from gateway.gate.release_linkability import ReleaseLinkability
from gateway.gate.release_rank1 import ReleaseRank1
from gateway.gate.release_sample import ALL, RELEASE, Member, ReleaseSample, spent
from gateway.gate.release_selftest import planted
from gateway.gate.same_scan import SameScan
from gateway.study import Outcome

CARD = "selftest"


def sample(*members: Member, looks: Mapping[str, int] | None = None, replicates: int = 100) -> ReleaseSample:
    return ReleaseSample(members, looks or {RELEASE: 1, ALL: 1}, 5, {CARD: ("cosine",)}, replicates, 100)


@pytest.mark.parametrize("earlier", [60, 400])  # too few to tell by themselves; enough for a figure
@pytest.mark.parametrize("check", [ReleaseLinkability((CARD,), 0.2), ReleaseRank1(0.2, (CARD,))])
def test_figures_of_earlier_releases_alone_judge_nothing(check: Any, earlier: int) -> None:
    before = [replace(one, current=False) for one in planted(earlier, 0.0, np.random.default_rng(0))]
    unseen = [Member(f"n{number}", "1") for number in range(60)]
    verdict = check.judge(sample(*unseen, *before), None)
    assert (verdict.outcome, verdict.reason) == (Outcome.HOLD, "no_identity_evidence")


def test_an_attribute_is_bounded_as_wide_as_its_look_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replicates show one in their number at most: beyond, the bound grows along the normal, as for linkability."""
    monkeypatch.setattr("gateway.evidence.infer_within", partial(infer_within, trees=20))
    generator = np.random.default_rng(11)
    members = []
    for person in range(80):
        rows = [
            np.asarray(generator.normal(size=12) + shift * (2 * (person % 2) - 1), np.float32)[None]
            for shift in (1.0, 0.1)
        ]
        told = {"sex": "fm"[person % 2]}
        members.append(Member(f"{person:03d}", "1", attributes=told, embedded={CARD: (rows[0], rows[1])}))
    check = ReleaseAttribute("sex", 0.9, (CARD,))
    upper = {}
    for look in (1, 10, 100):
        (figure,) = check.judge(sample(*members, looks={RELEASE: look}, replicates=400), None).scores  # type: ignore[arg-type]
        # Balanced accuracy of two classes of 40 at about 1/2: its standard error is 1/2 over the root of 80.
        by_normal = figure.estimate + NormalDist().inv_cdf(1 - spent(0.05, look)) * 0.5 / np.sqrt(80)
        assert figure.upper == pytest.approx(by_normal, rel=0.06)
        upper[look] = figure.upper
    assert upper[1] < upper[10] < upper[100]


@pytest.mark.parametrize("count", [53, 55, 60, 64, 69, 100])
def test_rank1_of_untouched_images_is_one_and_held_whatever_the_number_of_people(count: int) -> None:
    """Rounding of the galleries' chances once made it more than one, of which there is no bound."""
    verdict = ReleaseRank1(0.5, (CARD,)).judge(sample(*planted(count, 1.0, np.random.default_rng(0))), None)  # type: ignore[arg-type]
    assert (verdict.reason, verdict.scores[0].estimate, verdict.scores[0].upper) == ("rank1", 1, 1)


@pytest.mark.parametrize("check", [ReleaseLinkability((CARD,), 0.5), ReleaseRank1(0.5, (CARD,))])
def test_distances_that_are_no_numbers_judge_nothing(check: Any) -> None:
    """Squares of 1e38 are infinite, and their differences no number: untouched images would pass unseen."""
    generator = np.random.default_rng(0)
    rows = (generator.normal(size=(60, 1, 8)).clip(-3, 3) * 1e38).astype(np.float32)
    members = tuple(Member(f"{n}", "1", embedded={CARD: (row, row)}) for n, row in enumerate(rows))
    with np.errstate(all="ignore"), pytest.raises(Hold, match="no_identity_evidence"):
        check.judge(ReleaseSample(members, {RELEASE: 1}, 5, {CARD: ("euclid",)}, 100, 100), None)


def pair(folder: Path, name: str, original: Any, candidate: Any) -> Pair:
    paths = folder / f"{name}-o.dcm", folder / f"{name}-c.dcm"
    for ds, path in zip((original, candidate), paths, strict=True):
        ds.save_as(path, enforce_file_format=True)
    return Pair(name, *paths)


def test_a_card_that_only_infers_an_attribute_judges_nobodys_identity(tmp_path: Path) -> None:
    """`near` knows CR, `gradients` US as well: an ultrasound that only `gradients` knows is nobody's."""
    folders = write_card(tmp_path / "models")
    checks = {"linkability": ReleaseLinkability(("near",), 0.4), "attribute_inference": attribute("gradients")}
    policy: Any = SimpleNamespace(gate=SimpleNamespace(release=checks))
    assert identity_cards(policy) == ("near",)
    one = pair(tmp_path, "00001", film(1, modality="US"), film(1, modality="US"))
    with pytest.raises(Hold, match="no_identity_evidence"):
        embed_study([one], ("gradients", "near"), folders, identity=identity_cards(policy))
    known = pair(tmp_path, "00002", film(2), film(2))
    found = embed_study([known], ("gradients", "near"), folders, identity=identity_cards(policy))
    assert [one.card for one in found] == ["gradients", "near"]


def test_cards_of_identity_are_those_of_the_checks_that_judge_it() -> None:
    def of(**release: Any) -> tuple[str, ...]:
        policy: Any = SimpleNamespace(gate=SimpleNamespace(release=release))
        return identity_cards(policy)

    linkability, inference = ReleaseLinkability(("a",), 0.4), attribute("b")
    assert of(linkability=linkability, attribute_inference=inference, rank1=ReleaseRank1(0.2, ("c",))) == ("a", "c")
    # rank1 without cards attacks with all of them.
    assert of(linkability=linkability, attribute_inference=inference, rank1=ReleaseRank1(0.2)) == ("a", "b")
    # Nobody of the release judges identity: a check of the study or a person does.
    assert of(attribute_inference=inference, record_isolation=ReleaseIsolation(5)) == ("b",)


def attribute(card: str) -> ReleaseAttribute:
    return ReleaseAttribute("sex", 0.75, (card,))


@pytest.mark.parametrize("odd", [0, 1, 2])
def test_a_stack_is_left_out_only_when_all_of_it_is_accepted(tmp_path: Path, odd: int) -> None:
    """One slice that says another modality than its series (PS3.3 C.7.3.1 has one a series) takes no other along."""
    series, frame_of_reference = generate_uid(), generate_uid()
    pairs = []
    for number in range(3):
        ds = film(1, modality="XC" if number == odd else "CT", PixelData=radiograph(number).tobytes())
        ds.SeriesInstanceUID, ds.FrameOfReferenceUID = series, frame_of_reference
        ds.ImageOrientationPatient, ds.ImagePositionPatient = [1, 0, 0, 0, 1, 0], [0, 0, 2.0 * number]
        ds.PixelSpacing, ds.SliceThickness = [1, 1], 2
        pairs.append(pair(tmp_path, f"{number:05d}", ds, ds))
    folders = write_card(tmp_path / "models", modalities=["CT"])
    (embedded,) = embed_study(pairs, ("near",), folders, frozenset({"XC"}))
    assert embedded.names == ("00000",)
    with pytest.raises(Hold, match="no_identity_evidence"):
        embed_study(pairs, ("near",), folders)
    assert embed_study(pairs, ("near",), folders, frozenset({"XC", "CT"})) == ()


def test_a_limit_below_what_the_impostors_of_today_can_show_is_no_evidence(tmp_path: Path) -> None:
    """The policy was loaded with a card of 240 impostors; the card of today has 200, and its least p is 1/201."""
    folders = write_card(tmp_path / "models", people=240)
    check, policy = (
        SameScan("near", hold_below_p=0.0045),
        SimpleNamespace(pixels=(), attempts=1, gate=SimpleNamespace(not_assessed=())),
    )
    assert not list(check.misfits(policy, folders))  # type: ignore[arg-type]
    one = pair(tmp_path, "00001", film(1), film(1))
    assert check.judge_by_cards([one], policy, folders).reason == "same_scan"  # type: ignore[arg-type]
    write_card(tmp_path / "models", people=200)
    verdict = check.judge_by_cards([one], policy, folders)  # type: ignore[arg-type]
    assert (verdict.outcome, verdict.reason) == (Outcome.HOLD, "no_identity_evidence")


def test_a_card_that_was_changed_is_opened_anew(tmp_path: Path) -> None:
    folders = write_card(tmp_path / "models")
    assert embedder_named("near", folders).card.algorithm == "raw"
    assert embedder_named("near", folders) is embedder_named("near", folders)
    write_card(tmp_path / "models", algorithm="hog", dimensions=1764)
    assert embedder_named("near", folders).card.algorithm == "hog"
