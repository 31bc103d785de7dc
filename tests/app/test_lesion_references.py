"""Background and lesion of a study as references: kept sealed like the whole image, read back, shown, forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from houses import house
from releasing import film, judged, write_card
from typer.testing import CliRunner

from gateway.app.release.gauges import refresh, worst_by_card
from gateway.app.release.references import FOLDER, References, forget, read_members, views_in
from gateway.app.release.report import write_report
from gateway.app.review.records import Records
from gateway.cli import app
from gateway.database import MemberRow
from gateway.errors import Hold
from gateway.gate import BACKGROUND, LESION, WHOLE, Pair
from gateway.gate.release_linkability import ReleaseLinkability
from gateway.gate.release_views import ViewLimits
from gateway.policy import GatePolicy, HeaderPolicy, NotAssessedEntry, Policy
from gateway.settings import Home
from tests.lesion_series import modality_of, write_study

MASTER = bytes(range(32))
ACCEPTED = NotAssessedEntry(aspects=("image_identity",), modality=("SEG",), reason="a mask", approver="tests")
POLICY = Policy(
    name="lesions",
    header=HeaderPolicy(),
    gate=GatePolicy(
        study={},
        release={"linkability": ReleaseLinkability(("near",), 0.5, views=ViewLimits(0.5, 0.5))},
        not_assessed=(ACCEPTED,),
    ),
)


@pytest.fixture
def pairs(tmp_path: Path) -> list[Pair]:
    return [Pair(f"{n:05d}", path, path) for n, path in enumerate(write_study(tmp_path / "in", 1))]


def made(home: Home, pairs: list[Pair]) -> MemberRow:
    write_card(home.root / "models", modalities=["MR"])
    facts = References(home.root, MASTER, "job/r1", 1_700_000_000.0).make(pairs, POLICY)
    return MemberRow("job", 1, "person", "day", "job/r1", json.dumps(facts), 1_700_000_000.0)


def test_views_are_kept_sealed_and_forgotten_with_the_whole_image(home: Home, pairs: list[Pair]) -> None:
    row = made(home, pairs)
    assert [(card, count, view) for card, count, _, view in views_in(row)] == [
        ("near", 2, view) for view in (WHOLE, BACKGROUND, LESION)
    ]
    (member,) = read_members(home.root, MASTER, [row], [])
    sides = {view: member.seen(view)["near"] for view in (WHOLE, BACKGROUND, LESION)}
    for originals, released in sides.values():
        assert originals.shape == (2, 1024)
        np.testing.assert_array_equal(originals, released)
    assert not np.allclose(sides[LESION][0], sides[BACKGROUND][0])
    files = list((home.root / FOLDER).rglob("*.emb"))
    assert len(files) == 12  # 3 views of 2 series, before and after
    assert not any(row.tobytes()[:64] in path.read_bytes() for path in files for row in sides[LESION][0])
    assert forget(home, MASTER, row) == 12
    assert not list((home.root / FOLDER).rglob("*.emb"))
    with pytest.raises(Hold, match="no_identity_evidence"):
        read_members(home.root, MASTER, [row], [])


def test_a_member_of_before_there_were_views_is_read_as_it_was(home: Home, pairs: list[Pair]) -> None:
    row = made(home, pairs)
    facts = json.loads(row.facts)
    facts["views"] = {"near": facts["views"]["near"]}
    (member,) = read_members(home.root, MASTER, [replace(row, facts=json.dumps(facts))], [])
    assert set(member.embedded) == {"near"}
    assert member.parts == {}


def test_a_study_without_a_mask_is_held_before_it_joins_a_release(home: Home, pairs: list[Pair]) -> None:
    with pytest.raises(Hold) as error:
        made(home, [pair for pair in pairs if modality_of(pair.original) != "SEG"])
    assert error.value.reason == "lesion_undrawn"


def lesions(body: dict[str, Any]) -> None:
    """Releases of MR whose lesions are drawn; nobody looks for text or faces."""
    aspects = ["burned_in_text", "recognizable_features"]
    told = {"reason": "a test of releases", "approver": "tests"}
    body["gate"]["not_assessed"] = [
        {"aspects": aspects, "modality": ["MR"], **told},
        {"aspects": [*aspects, "image_identity"], "modality": ["SEG"], **told},
    ]


def test_a_study_with_a_mask_joins_and_one_without_is_held(home: Home, policies: Path, tmp_path: Path) -> None:
    write_card(home.root / "models", modalities=["MR"])
    release = {"linkability": {"cards": ["near"], "max_excess_upper": 0.4, "views": {"background": 0.4}}}
    release["record_isolation"] = {"k": 5, "lesion": ["side"]}
    with house(home, judged(policies, release, people=60, change=lesions)) as here:
        for person, drawn in ((1, True), (2, False)):
            files = write_study(tmp_path / str(person), person)
            chosen = [pydicom.dcmread(path) for path in files if drawn or modality_of(path) != "SEG"]
            here.deliver(*chosen)
        ends = sorted((str(job.state), job.reason) for job in here.parts.database.jobs_in())
        assert ends == [("awaiting_release", ""), ("held", "lesion_undrawn")]
        (row,) = here.parts.database.members(1)
        assert set(json.loads(row.facts)["lesion"]) == {"side"}
        (member,) = read_members(home.root, here.parts.keys.master, [row], [])
        assert set(member.parts) == {BACKGROUND}
        assert set(member.lesion) == {"side"}


# -- where figures are shown -------------------------------------------------------------------------------------------

FIGURE: dict[str, Any] = {
    "check": "linkability",
    "scope": "release",
    "card": "near",
    "attack": "same_scan",
    "metric": "cosine",
    "estimate": 0.011,
    "people": 61,
    "note": "",
}
FIGURES = [
    {**FIGURE, "view": "whole", "upper": 0.211, "limit": 0.4},
    {**FIGURE, "view": "background", "upper": 0.095, "limit": 0.1},
    {**FIGURE, "view": "lesion", "upper": 0.322, "limit": 0.6},
]


@contextmanager
def shown(home: Home, policies: Path, figures: list[dict[str, Any]]) -> Iterator[Any]:
    with house(home, judged(policies, {"record_isolation": {"k": 2}}, people=50)) as here:
        here.deliver(film(1))
        here.parts.database.set_release(1, scores=json.dumps(figures), state="sent", closed_at=1_700_000_000.0)
        yield here


def test_every_figure_says_its_view_and_the_background_s_is_never_the_risk(
    home: Home, policies: Path, tmp_path: Path
) -> None:
    with shown(home, policies, FIGURES) as here:
        parts = here.parts
        refresh(parts)
        release = {"policy": "research-basic", "release": "1"}
        of = {"check": "linkability", "card": "near", "attack": "same_scan", "scope": "release", "kind": "upper"}
        for figure in FIGURES:
            assert here.metric("deid_release_score", view=figure["view"], **release, **of) == figure["upper"]
        assert here.metric("deid_release_linkability_upper", **release, encoder="near") == 0.211
        (view,) = Records(parts).releases()
        assert (view.worst.view, view.worst.upper) == ("lesion", 0.322)  # 0.54 of its limit; the background 0.95
        page, _ = write_report(parts.home, parts.settings, parts.database, "research-basic-1", tmp_path)
        text = page.read_text()
        for words in ("this release, background alone", "this release, lesion alone", "the whole image says what"):
            assert words in text
    told = CliRunner().invoke(
        app, ["release", "show", "research-basic-1", "--home", str(home.root)], env={"COLUMNS": "200"}
    )
    assert "background and lesion are each by itself" in told.output


def test_figures_of_before_there_were_views_are_of_whole_images(home: Home, policies: Path) -> None:
    old = {name: value for name, value in FIGURES[0].items() if name != "view"}
    with shown(home, policies, [old]) as here:
        (row,) = here.parts.database.releases_in()
        assert list(worst_by_card(row.figures)) == [("linkability", "near", "whole")]
