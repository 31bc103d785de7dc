"""Releases with scores over time and their reports; a policy previewed on a study that is here."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from houses import edit, house
from planting import found_in
from releasing import film, judged
from review_site import Site, csrf_of, site_of
from sqlalchemy import update

import gateway.app.review.preview
from gateway.app.preview.making import Preview
from gateway.database.tables import releases
from gateway.review import Role
from gateway.settings import Home

SCORE = {"check": "linkability", "scope": "all", "limit": 0.1, "card": "card-1", "attack": "same_scan"}
SCORE |= {"metric": "cosine", "estimate": 0.08, "upper": 0.1234, "people": 40, "note": ""}


@pytest.fixture
def collected(home: Home, policies: Path) -> Iterator[Site]:
    """Two releases of two people, the second one still open."""
    with house(home, judged(policies, {"record_isolation": {"k": 2}}, people=2)) as made:
        for person in range(2):
            made.deliver(film(person))
        assert made.decide("close", "research-basic-1") == "done"
        made.deliver(film(7))
        yield site_of(made, "")


def scored(site: Site, *scores: dict[str, Any], serial: int = 1) -> None:
    with site.house.parts.database.transaction() as connection:
        connection.execute(update(releases).where(releases.c.serial == serial).values(scores=json.dumps(scores)))


def test_the_list_has_every_release_and_links_to_page_and_reports(collected: Site) -> None:
    page = collected.signed_in(Role.VIEWER).get("/releases").text
    assert page.index('data-row="research-basic-2"') < page.index('data-row="research-basic-1"')
    for name in ("research-basic-1", "research-basic-2"):
        for address in (f"/releases/{name}", f"/releases/{name}/report.pdf", f"/releases/{name}/report.html"):
            assert f'href="{address}"' in page


def test_a_release_shows_bounds_limits_charts_and_what_was_not_assessed(collected: Site) -> None:
    scored(
        collected,
        SCORE,
        {**SCORE, "card": "card-2", "upper": 0.05},
        {**SCORE, "check": "rank1", "note": "attacker_void"},
    )
    page = collected.signed_in(Role.VIEWER).get("/releases/research-basic-1").text
    assert re.search(r"<td>0\.08</td><td><strong>0\.123</strong></td><td>0\.1</td>\s*<td>40</td>", page)
    assert "exceeds it" in page
    nearest = page[page.index("Nearest to their limits") : page.index("Over the releases")]
    assert nearest.index("card-1") < nearest.index("card-2")
    assert "123 %" in nearest
    assert "attacker void" not in nearest
    assert page.count("<svg") == 2
    assert "burned in text" in page
    assert "a test of releases" in page
    assert found_in(page.encode()) == []
    assert 'style="' not in page  # the site's own policy would not apply it


def test_a_release_shows_in_whom_most_are_found(collected: Site) -> None:
    browser, where = collected.signed_in(Role.VIEWER), "/releases/research-basic-1"
    assert "In whom most are found" not in browser.get(where).text
    group = {"attribute": "age_band", "group": "40 to 49 <years>", "groups": 6, "people": 31, "found": 0.5}
    group |= {"upper": 0.66, "gallery": 50, "card": "card-1"}
    strata = [group, {**group, "group": "F", "found": 0.125}]
    ledger = collected.house.parts.ledger
    ledger.append("release_cleared", "again", release="research-basic-1", looks={"release": 1}, strata=strata)
    page = browser.get(where).text
    assert "<td>age band</td><td>40 to 49 &lt;years&gt;</td><td>6 groups</td><td>31</td><td>0.500</td>" in page
    assert "0.125" not in page
    assert "nothing is decided by it" in page


def test_the_list_says_how_near_each_release_came_to_a_limit_and_draws_it_over_time(collected: Site) -> None:
    browser = collected.signed_in(Role.VIEWER)
    void = {**SCORE, "check": "rank1", "upper": 9.0, "note": "attacker_void"}
    scored(collected, SCORE, {**SCORE, "card": "card-2", "upper": 0.05}, void)
    page = browser.get("/releases").text
    assert re.search(r'<span class="bad">123 %</span> <span class="soft">of the limit of linkability by card-1', page)
    assert "not judged yet" in page
    assert page.count("<svg") == 1
    assert "research-basic: shares of limits" in page
    scored(collected, void)
    page = browser.get("/releases").text
    assert "no evidence" in page
    assert "<svg" not in page
    small = {**SCORE, "check": "record_isolation", "card": "", "limit": 5.0, "estimate": 0.0, "upper": 0.0}
    scored(collected, small)  # a group of nobody is beyond every limit
    assert '<span class="bad">all of it</span>' in browser.get("/releases").text


def test_a_privacy_officer_closes_a_release_and_asks_for_it_back(home: Home, policies: Path) -> None:
    with house(home, judged(policies, {"record_isolation": {"k": 2}}, people=2)) as made:
        for person in range(2):
            made.deliver(film(person))
        site = site_of(made, "")
        browser, where = site.signed_in(Role.PRIVACY_OFFICER, name="paula"), "/releases/research-basic-1"
        for verb, form, state in (("close", {}, "sent"), ("recall", {"code": "113039"}, "recalled")):
            page = browser.get(where).text
            assert f'action="{where}/{verb}"' in page
            form = {"csrf": csrf_of(page), "reason": "the ethics vote has changed", **form}
            answer = browser.post(f"{where}/{verb}", data=form)
            assert answer.headers["location"].startswith(f"{where}?asked=")
            assert "Written down." in browser.get(answer.headers["location"]).text
            made.settle()
            assert "Done." in browser.get(answer.headers["location"]).text
            (release,) = made.parts.database.releases_in()
            assert release.state == state
        assert "Ask for it back" not in browser.get(where).text
        assert [line["actor"] for line in site.events("release_closed") + site.events("recalled")] == [
            "paula@review"
        ] * 2
        form = {"csrf": csrf_of(browser.get(where).text), "reason": "the ethics vote has changed", "code": "1"}
        assert browser.post(f"{where}/recall", data=form).status_code == 409


@pytest.mark.parametrize("role", [Role.VIEWER, Role.REVIEWER, Role.ADMIN, Role.VAULT_KEEPER])
def test_nobody_else_closes_or_recalls_a_release(collected: Site, role: Role) -> None:
    browser = collected.signed_in(role)
    page = browser.get("/releases/research-basic-2").text
    assert "Close it" not in page
    form = {"csrf": csrf_of(page), "reason": "the month is over", "code": "113039"}
    for verb in ("close", "recall"):
        assert browser.post(f"/releases/research-basic-2/{verb}", data=form).status_code == 403


def test_a_release_that_collects_says_so(collected: Site) -> None:
    page = collected.signed_in(Role.VIEWER).get("/releases/research-basic-2").text
    assert "It was not judged yet" in page
    assert "1, with 1 study" in page


@pytest.mark.parametrize("name", ["research-basic-9", "x", "..%2f..", "research-basic-1%00"])
def test_a_release_that_is_not_there_is_not_found(collected: Site, name: str) -> None:
    browser = collected.signed_in(Role.VIEWER)
    assert browser.get(f"/releases/{name}").status_code == 404
    assert browser.get(f"/releases/{name}/report.pdf").status_code == 404
    assert browser.get("/releases/research-basic-1/report.exe").status_code == 404


def test_a_report_is_a_file_to_take_away_and_is_in_no_cache(collected: Site) -> None:
    browser = collected.signed_in(Role.VIEWER)
    sheets = browser.get("/releases/research-basic-1/report.pdf")
    assert sheets.content.startswith(b"%PDF-")
    page = browser.get("/releases/research-basic-1/report.html")
    assert "no claim of anonymity" in page.text
    for answer, kind in ((sheets, "pdf"), (page, "html")):
        assert answer.headers["content-disposition"] == f'attachment; filename="research-basic-1.{kind}"'
        assert answer.headers["cache-control"] == "no-store"
        assert found_in(answer.content) == []


def test_markup_in_what_is_shown_stays_text(collected: Site) -> None:
    collected.house.parts.database.set_release(1, state="blocked", reason="linkability", at="<script>alert(1)</script>")
    for where in ("/releases/research-basic-1", "/releases"):
        assert "<script>alert" not in collected.signed_in().get(where).text


# -- preview ----------------------------------------------------------------------------------------------------------


def previewed(site: Site, browser: Any, key: str, digest: str = "") -> Any:
    if not digest:
        digest = site.house.parts.policies.current.policies["research-basic"].digest
    csrf = csrf_of(browser.get("/policies/preview").text)
    return browser.post("/policies/preview", data={"csrf": csrf, "study": key, "policy": digest})


def test_a_policy_is_previewed_on_a_study_that_is_here_and_the_ledger_has_it_first(site: Site) -> None:
    browser = site.signed_in(name="anna")
    key = f"{site.job().study_key}.1"
    assert key in browser.get("/policies/preview").text
    answer = previewed(site, browser, key)
    page = unescape(answer.text)
    assert answer.status_code == 200
    assert "2 objects, 2 would be held" in page
    assert "held by the gate: not_assessed" in page
    assert "PatientName" in page
    assert "(0010,0010)" in page
    assert str(site.datasets[0].PatientID) in page  # what it is for: a reviewer sees before and after
    assert answer.headers["cache-control"] == "no-store"
    (line,) = site.events("previewed")
    assert (line["actor"], line["study"], line["instances"]) == ("anna@review", site.job().study_key, 2)
    assert found_in(json.dumps(line).encode()) == []


def test_nothing_of_a_preview_stays(site: Site) -> None:
    root = site.house.parts.home.root
    browser = site.signed_in()
    before = {path for path in root.rglob("*") if "ledger" not in path.name}
    left = root / "previews" / "killed"
    left.mkdir(parents=True)
    os.utime(left, (0, 0))  # by a kill, long ago
    previewed(site, browser, f"{site.job().study_key}.1")
    assert {path for path in root.rglob("*") if "ledger" not in path.name} - before == {root / "previews"}
    assert site.job().state == "held"


def test_a_preview_shows_what_another_policy_would_do(site: Site, policies: Path) -> None:
    edit(policies, "research-basic", lambda body: body["header"].update(keep={"PatientSex": "a test"}))
    site.house.parts.policies.reload()
    page = unescape(previewed(site, site.signed_in(), f"{site.job().study_key}.1").text)
    rows = [row for row in page.split("<tr") if "PatientSex" in row]
    assert rows == []  # it stays


def test_a_preview_looks_for_cards_in_the_home_too(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path | None] = []

    class Seen(Preview):
        def __init__(self, *args: Any, models: Path | None = None, **more: Any) -> None:
            asked.append(models)
            super().__init__(*args, models=models, **more)

    monkeypatch.setattr(gateway.app.review.preview, "Preview", Seen)
    assert previewed(site, site.signed_in(), f"{site.job().study_key}.1").status_code == 200
    assert asked == [site.house.parts.home.root / "models"]


@pytest.mark.parametrize("role", [Role.VIEWER, Role.ADMIN, Role.VAULT_KEEPER])
def test_who_may_not_look_at_originals_may_not_preview(site: Site, role: Role) -> None:
    browser = site.signed_in(role)
    assert browser.get("/policies/preview").status_code == 403
    csrf = csrf_of(browser.get("/queue").text)
    form = {"csrf": csrf, "study": f"{site.job().study_key}.1", "policy": "0" * 64}
    assert browser.post("/policies/preview", data=form).status_code == 403
    assert "Preview on a study" not in browser.get("/policies").text
    assert site.events("previewed") == []


@pytest.mark.parametrize("key", ["", "nothing", "0" * 24 + ".1", "../../etc.1", "x.99999999999", "\u0661.\u0661"])
def test_a_study_that_is_not_here_is_refused(site: Site, key: str) -> None:
    answer = previewed(site, site.signed_in(), key)
    assert answer.status_code == 409
    assert site.events("previewed") == []


def test_a_policy_that_is_not_loaded_is_refused(site: Site) -> None:
    answer = previewed(site, site.signed_in(), f"{site.job().study_key}.1", "0" * 64)
    assert answer.status_code == 409
    assert "not loaded" in answer.text


def test_no_preview_without_a_ledger(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from gateway.errors import EnvironmentFault
    from gateway.ledger import Ledger

    browser = site.signed_in()
    page = csrf_of(browser.get("/policies/preview").text)

    def broken(*_given: object, **_more: object) -> bool:
        raise EnvironmentFault("the ledger is damaged")

    monkeypatch.setattr(Ledger, "append", broken)
    digest = site.house.parts.policies.current.policies["research-basic"].digest
    form = {"csrf": page, "study": f"{site.job().study_key}.1", "policy": digest}
    answer = browser.post("/policies/preview", data=form)
    assert answer.status_code == 503
    assert found_in(answer.content) == []


def test_only_the_first_objects_of_a_long_study_are_previewed(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from gateway.app.review import preview as review_preview

    monkeypatch.setattr(review_preview, "MOST_OBJECTS", 1)
    assert "1 object, " in previewed(site, site.signed_in(), f"{site.job().study_key}.1").text


def test_a_study_whose_originals_are_gone_is_not_offered(site: Site) -> None:
    database = site.house.parts.database
    rows = database.instances_of(site.job().study_key, 1)
    database.mark_removed(row.serial for row in rows)
    assert site.job().study_key not in site.signed_in().get("/policies/preview").text
