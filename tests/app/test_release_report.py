"""The report of a release: the figures that the gate decided by, in HTML and PDF alike, and nobody named."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from houses import House, house
from planting import found_in
from releasing import film, judged

from gateway.app.document.pdf import to_pdf
from gateway.app.release.dossier import dossier_of
from gateway.app.release.report import document_of, write_report
from gateway.errors import UsageError
from gateway.settings import Home

ISOLATION: dict[str, Any] = {"record_isolation": {"k": 2}}
NOW = 1796067334.0


@pytest.fixture
def two(home: Home, policies: Path) -> Iterator[House]:
    """Two releases of two people each, both sent."""
    with house(home, judged(policies, ISOLATION, people=2)) as made:
        for number in (1, 2):
            for person in range(10 * number, 10 * number + 2):
                made.deliver(film(person))
            assert made.decide("close", f"research-basic-{number}", reason="the month is over") == "done"
        yield made


def document(made: House, name: str) -> Any:
    p = made.parts
    return document_of(dossier_of(p.home, p.settings, p.database, name), NOW)


def written(made: House, name: str, out: Path) -> tuple[str, str]:
    """Text of the HTML and of the PDF, white space made one."""
    p = made.parts
    page, sheets = write_report(p.home, p.settings, p.database, name, out)
    assert {path.stat().st_mode & 0o777 for path in (page, sheets)} == {0o600}
    html = re.sub(r"<style>.*?</style>", "", page.read_text(), flags=re.DOTALL)
    pdf = pypdfium2.PdfDocument(sheets)
    text = " ".join(sheet.get_textpage().get_text_bounded() for sheet in pdf)
    return tuple(" ".join(unescape(re.sub(r"<[^>]+>", " ", one)).split()) for one in (html, text))  # type: ignore[return-value]


def test_both_files_say_what_the_tables_say(two: House, tmp_path: Path) -> None:
    row = two.parts.database.release_named("research-basic-2")
    assert row is not None
    for text in written(two, "research-basic-2", tmp_path / "out"):
        assert "makes no claim of anonymity" in text
        for heading in ("Isolation (singling out)", "Linkage", "Inference", "What was not assessed", "Cohort"):
            assert heading in text
        assert row.policy_digest in text.replace(" ", "")
        assert "Not assessed: the policy has no check of releases for this." in text
        assert "elements emptied (Z)" in text
        assert "a test of releases" in text  # who answers for what no check judged, and why
        assert "the month is over" in text
        assert "all released so far" in text
        assert "Scores over releases" in text
        assert "research-basic-1" in text


def test_counts_of_what_was_removed_are_those_of_the_ledger(two: House, tmp_path: Path) -> None:
    steps = [line["steps"]["header@1"] for line in two.events() if line["event"] == "cleared"][2:]
    html, _ = written(two, "research-basic-2", tmp_path)
    assert f"UIDs replaced (U) {sum(step['U'] for step in steps)} " in html
    assert f"elements replaced by a dummy (D) {sum(step['D'] for step in steps)} " in html


def test_nobody_is_named(two: House, tmp_path: Path) -> None:
    p = two.parts
    for path in write_report(p.home, p.settings, p.database, "research-basic-1", tmp_path):
        data = path.read_bytes()
        assert found_in(data) == []
        assert b"LEAK" not in data
    for text in written(two, "research-basic-1", tmp_path):
        assert found_in(text.encode()) == []
        for job in p.database.jobs_in():
            assert job.job_key not in text
            assert job.subject not in text or not job.subject


def test_the_same_release_at_the_same_time_gives_the_same_bytes(two: House) -> None:
    first = to_pdf(document(two, "research-basic-1"))
    assert first == to_pdf(document(two, "research-basic-1"))


def test_every_figure_has_bound_limit_alpha_and_people(two: House, tmp_path: Path) -> None:
    base = {"metric": "cosine", "people": 61, "note": "", "limit": 0.1, "scope": "release", "attack": "same_scan"}
    figures = [
        {**base, "check": "linkability", "card": "gradients", "estimate": 0.0213, "upper": 0.0789},
        {
            **base,
            "check": "linkability",
            "card": "gradients",
            "estimate": None,
            "upper": None,
            "note": "too_few_people",
        },
        {**base, "check": "rank1", "card": "gradients", "estimate": 0.031, "upper": 0.1234},
    ]
    two.parts.database.set_release(2, scores=json.dumps(figures))
    for text in written(two, "research-basic-2", tmp_path):
        assert re.search(r"0\.0213 0\.0789 0\.1 – 61 keeps to it", text)
        assert "no evidence: too few people" in text
        assert re.search(r"0\.031 0\.1234 0\.1 – 61 exceeds it", text)


def test_what_a_look_spends_is_told_by_scope(two: House) -> None:
    (second,) = [line for line in two.events() if line["event"] == "release_cleared"][1:]
    assert second["looks"] == {"release": 1, "all": 2}
    told = [block.text for block in document(two, "research-basic-2").blocks if hasattr(block, "text")]
    assert any("all released so far: look 2, this release: look 1" in text for text in told)


def test_a_release_that_collects_says_that_nothing_was_judged(home: Home, policies: Path, tmp_path: Path) -> None:
    with house(home, judged(policies, ISOLATION, people=2)) as made:
        made.deliver(film(1))
        for text in written(made, "research-basic-1", tmp_path):
            assert "Nothing was judged over its people yet" in text
            assert "Scores over releases" not in text


def test_a_policy_that_cannot_be_read_any_more_is_named_by_its_digest(two: House, tmp_path: Path) -> None:
    row = two.parts.database.release(1)
    assert row is not None
    (two.parts.home.policy_snapshots / f"{row.policy_digest}.json").unlink()
    for text in written(two, "research-basic-1", tmp_path):
        assert "cannot read the policy any more" in text
        assert row.policy_digest in text.replace(" ", "")


def test_an_unknown_release_is_an_error(two: House, tmp_path: Path) -> None:
    for name in ("research-basic-9", "../etc", "research-basic-1/../x"):
        with pytest.raises(UsageError, match="no release is called"):
            write_report(two.parts.home, two.parts.settings, two.parts.database, name, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_the_page_asks_nobody_for_anything_and_shows_markup_as_text(two: House, tmp_path: Path) -> None:
    two.parts.database.set_release(1, at="<script>alert(1)</script>", reason="linkability", state="blocked")
    page, _ = write_report(two.parts.home, two.parts.settings, two.parts.database, "research-basic-1", tmp_path)
    text = page.read_text()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert not re.search(r"(src|href)=", text)
