"""What the pages show and what they never show; that each view of an original is in the ledger before it is shown."""

from __future__ import annotations

import io
import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from houses import House, edit, route_nobody, study
from PIL import Image
from planting import found_in
from review_site import Site, csrf_of, site_of, site_over

from gateway.errors import EnvironmentFault
from gateway.ledger import Ledger
from gateway.review import Role
from gateway.review.records import Figure

SCRIPT = "<script>alert(1)</script>"


def uids(datasets: list[Any]) -> list[str]:
    words = ("StudyInstanceUID", "SeriesInstanceUID", "SOPInstanceUID", "FrameOfReferenceUID")
    return [str(ds[word].value) for ds in datasets for word in words] + ["ACC4711X", "20200131"]


def test_the_queue_shows_what_waits_why_how_long_and_under_which_policy(site: Site) -> None:
    page = site.signed_in(Role.VIEWER).get("/queue").text
    assert site.held in page
    assert "not_assessed" in page
    assert "no check of this policy can judge something that this study carries" in page
    assert "research-basic" in page
    assert "just now" in page
    assert "one person" in page  # may approve it


def test_nothing_that_identifies_is_in_a_page_that_shows_no_original(site: Site) -> None:
    """Planted values, in any spelling, and original UIDs: not in queue, study, history, audit, titles or headers."""
    for role in Role:
        browser = site.signed_in(role)
        for where in ("/queue", "/queue/rows", f"/study/{site.held}", "/policies", "/audit", "/no/such"):
            answer = browser.get(where)
            told = answer.text + str(answer.headers)
            assert found_in(told.encode()) == [], (role, where)
            assert [uid for uid in uids(site.datasets) if uid in told] == [], (role, where)


def test_titles_and_addresses_hold_keys_alone(site: Site) -> None:
    page = site.signed_in().get(f"/study/{site.held}").text
    title = re.search(r"<title>(.*?)</title>", page)
    assert title is not None
    assert title[1] == f"Study {site.held[:12]}"
    for address in re.findall(r'(?:href|action|hx-get)="([^"]*)"', page):
        assert re.fullmatch(
            r"/static/[\w.]+|/(queue|releases|policies|logout)|#main|/study/[0-9a-f]{24}(/decide)?", address
        )


def test_the_filter_takes_what_is_there_and_nothing_else(site: Site) -> None:
    browser = site.signed_in()
    assert site.held in browser.get("/queue", params={"reason": "not_assessed", "policy": "research-basic"}).text
    strange = browser.get("/queue", params={"reason": SCRIPT}).text
    assert site.held in strange
    assert "alert(1)" not in strange


def test_a_view_of_an_original_is_in_the_ledger_once_for_a_while_and_says_who_saw_what(site: Site) -> None:
    browser = site.signed_in(name="anna")
    for _ in range(2):
        assert browser.get(f"/study/{site.held}/frame/00001/0/before").status_code == 200
    browser.get(f"/study/{site.held}/frame/00001/0/after")
    browser.get(f"/study/{site.held}/frame/00002/0/before")
    browser.get(f"/study/{site.held}/header/00001")
    seen = [(line["instance"], line["shown"]) for line in site.events("viewed")]
    assert seen == [("00001", "before"), ("00001", "after"), ("00002", "before"), ("00001", "header")]
    assert {(line["actor"], line["role"], line["key"]) for line in site.events("viewed")} == {
        ("anna@review", "reviewer", site.held)
    }
    other = site.signed_in(name="ben")
    other.get(f"/study/{site.held}/frame/00001/0/before")
    assert len(site.events("viewed")) == 5


@pytest.mark.parametrize(("method", "headers"), [("HEAD", {}), ("GET", {"Range": "bytes=0-1"})])
def test_half_a_request_for_an_original_is_a_view_as_well(site: Site, method: str, headers: dict[str, str]) -> None:
    """HEAD tells sizes and value ranges, a range is a part: each has its line, and nobody else gets it."""
    where = [f"/study/{site.held}/{what}" for what in ("frame/00001/0/before", "frame/00001/0/after", "header/00001")]
    assert {site.browser().request(method, one, headers=headers).status_code for one in where} <= {303, 401}
    assert {site.signed_in(Role.VIEWER).request(method, one, headers=headers).status_code for one in where} == {403}
    assert site.events("viewed") == []
    browser = site.signed_in(name="anna")
    assert {browser.request(method, one, headers=headers).status_code for one in where} == {200}
    assert [line["shown"] for line in site.events("viewed")] == ["before", "after", "header"]


def test_opening_the_study_alone_shows_no_original_and_is_no_view(site: Site) -> None:
    site.signed_in().get(f"/study/{site.held}")
    assert site.events("viewed") == []


def test_what_the_ledger_cannot_take_is_not_shown(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = site.signed_in()

    def damaged(*_: object, **__: object) -> bool:
        raise EnvironmentFault("the ledger is damaged at line 1: the line was changed")

    monkeypatch.setattr(Ledger, "append", damaged)
    for where in ("frame/00001/0/before", "frame/00001/0/after", "header/00001"):
        answer = browser.get(f"/study/{site.held}/{where}")
        assert answer.status_code == 503
        assert found_in(answer.content) == []
        assert not answer.content.startswith(b"\x89PNG")


def test_a_frame_is_a_png_of_16_bits_with_the_stored_values(site: Site) -> None:
    answer = site.signed_in().get(f"/study/{site.held}/frame/00001/0/before")
    assert answer.headers["content-type"] == "image/png"
    assert answer.content[24:26] == bytes([16, 0])  # IHDR: bit depth 16, colour type 0 (PNG 11.2.2)
    values = np.asarray(Image.open(io.BytesIO(answer.content)))
    assert (answer.headers["x-low"], answer.headers["x-step"], answer.headers["x-inverted"]) == ("0.0", "1.0", "0")
    np.testing.assert_array_equal(values, np.arange(64).reshape(8, 8))


def test_the_header_is_shown_before_and_after_with_its_reasons(site: Site) -> None:
    page = unescape(site.signed_in().get(f"/study/{site.held}/header/00001").text)
    assert re.search(r'data-path="00100010".*?<del>ZZSYNTH\^LEAKTEST</del>', page, re.DOTALL)
    assert "Table E.1-1" in page
    assert re.search(r'data-path="00280010" class="d0 kept"', page)


def test_text_of_an_object_is_shown_and_never_runs(gateway_house: House) -> None:
    (ds,) = study()
    ds.PatientName, ds.StudyDescription = SCRIPT, f'"><img src=x onerror=alert(1)>{SCRIPT}'
    ds.add_new(0x00091010, "LO", SCRIPT)
    ds.add_new(0x00090010, "LO", f"ACME {SCRIPT}")
    with site_over(gateway_house, datasets=[ds]) as site:
        page = site.signed_in().get(f"/study/{site.held}/header/00001").text
    assert "&lt;script&gt;" in page
    assert SCRIPT not in page
    assert "<img" not in page


def test_what_is_not_there_is_told_without_a_trace(site: Site) -> None:
    browser = site.signed_in()
    for where in (
        *("frame/00003/0/before", "frame/00001/1/before", "frame/00001/0/beside", "frame/00001/-1/before"),
        *("header/00003", "frame/..%2f..%2fkeys/0/before", "nothing"),
    ):
        answer = browser.get(f"/study/{site.held}/{where}")
        assert answer.status_code in (404, 409), where
        assert "Traceback" not in answer.text
        assert str(site.house.parts.home.root) not in answer.text
    assert "no such decision" in browser.get(f"/study/{site.held}/outcome/999").text


def test_an_unknown_study_is_a_page_that_says_so(site: Site) -> None:
    browser = site.signed_in()
    for key in ("0" * 24, "x", "%2e%2e%2fkeys", "a.1", "a.²", "<script>"):
        answer = browser.get(f"/study/{key}")
        assert answer.status_code == 404, key
        assert "<script>" not in answer.text


def test_whoever_ran_into_something_can_go_on_from_there(site: Site) -> None:
    browser = site.signed_in()
    for where, status in (("/nothing/here", 404), ("/policies/difference?old=x&new=y", 409)):
        answer = browser.get(where)
        assert answer.status_code == status
        assert '<nav aria-label="Pages">' in answer.text
    alone = site.browser().get("/nothing/here")
    assert (alone.status_code, "<nav" in alone.text) == (404, False)


def test_a_frame_that_cannot_be_decoded_is_told_by_its_reason(site: Site) -> None:
    parts = site.house.parts
    row = parts.database.instances_of(site.job().study_key)[0]
    path = parts.spool.path(row.study_key, row.name)
    ds = pydicom.dcmread(path)
    ds.PixelData = b"\0\0"
    ds.save_as(path)
    browser = site.signed_in()
    answers = [browser.get(f"/study/{site.held}/frame/{name}/0/before") for name in ("00001", "00002")]
    assert sorted(answer.status_code for answer in answers) == [200, 409]
    (refused,) = [answer for answer in answers if answer.status_code == 409]
    assert "cannot be decoded" in refused.text


def test_a_study_with_a_header_that_no_reader_understands_is_shown_and_decided(site: Site) -> None:
    """Such a study is held because of it: a page that breaks on it leaves nobody who could decide."""
    parts = site.house.parts
    row = min(parts.database.instances_of(site.job().study_key), key=lambda row: row.sop_key)
    path = parts.spool.path(row.study_key, row.name)
    number = b"\x20\x00\x13\x00IS"  # InstanceNumber, and a VR that there is not
    data = path.read_bytes()
    assert data.count(number) == 1
    path.write_bytes(data.replace(number, number[:5] + b"\xff"))
    browser = site.signed_in()
    page = browser.get(f"/study/{site.held}")
    assert page.status_code == 200
    assert "00001: unreadable, series" in page.text
    assert "(unreadable_object)" in page.text
    assert browser.get(f"/study/{site.held}/frame/00002/0/before").status_code == 200
    assert site.decide(browser, "reject") == "done"


def test_what_was_decided_is_closed_to_everybody(site: Site) -> None:
    browser = site.signed_in()
    assert site.decide(browser, "reject") == "done"
    assert site.held not in browser.get("/queue").text
    page = browser.get(f"/study/{site.held}").text
    assert "it is not held: it is rejected" in page
    assert 'id="decide"' not in page
    assert "data-things" not in page
    seen = len(site.events("viewed"))
    for where in ("frame/00001/0/before", "header/00001"):
        answer = browser.get(f"/study/{site.held}/{where}")
        assert answer.status_code == 409
        assert found_in(answer.content) == []
    assert len(site.events("viewed")) == seen


def test_a_study_that_no_route_took_shows_what_came_and_may_be_rerun_or_rejected(
    gateway_house: House, policies: Path
) -> None:
    route_nobody(policies)
    gateway_house.parts.policies.reload()
    key = gateway_house.deliver(*study(2))
    site = site_of(gateway_house, f"{key}.1")
    browser = site.signed_in()
    assert "not possible" in browser.get("/queue").text  # to approve it: there is nothing to let go
    page = unescape(browser.get(f"/study/{key}.1").text)
    assert "no rule in routes.yaml matches" in page
    assert re.search(r'value="release" required disabled', page)
    assert browser.get(f"/study/{key}.1/frame/00001/0/before").status_code == 200
    assert browser.get(f"/study/{key}.1/frame/00001/0/after").status_code == 409
    assert "ZZSYNTH^LEAKTEST" in browser.get(f"/study/{key}.1/header/00002").text
    form = {"csrf": csrf_of(page), "round": 1, "verb": "reject", "reason": "sent to the wrong place"}
    assert browser.post(f"/study/{key}.1/decide", data=form).status_code == 303
    gateway_house.settle()
    assert gateway_house.ends(key) == [("", "rejected", "reviewer_rejected")]


def test_the_audit_page_is_searched_by_who_what_and_day(site: Site) -> None:
    site.decide(site.signed_in(name="anna"), "reject")
    browser = site.signed_in(Role.PRIVACY_OFFICER, name="paula")
    csrf = csrf_of(browser.get("/audit").text)

    def rows(**sought: str) -> list[tuple[str, str]]:
        page = browser.post("/audit", data={"csrf": csrf, **sought}).text
        cells = [re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL) for row in page.split("<tr>")[2:]]
        return [(row[2], row[3]) for row in cells]

    assert rows(who="ANNA") == [("rejected", "anna@review"), ("signed in", "anna@review")]
    assert rows(event="rejected") == [("rejected", "anna@review")]
    assert rows(who="paula", event="signed") == [("signed in", "paula@review")]
    assert rows(since="2200-01-01") == rows(until="1999-12-31") == rows(who="anna", event="viewed") == []
    assert len(rows(since="2000-01-01", until="2199-12-31", event="signed")) == 2
    refused = browser.post("/audit", data={"csrf": csrf, "since": "<script>"})
    assert (refused.status_code, "<script>" in refused.text.partition("<main")[2]) == (409, False)


def test_the_audit_page_finds_a_pseudonym_and_keeps_it_out_of_addresses(site: Site, target: Path) -> None:
    browser = site.signed_in(Role.PRIVACY_OFFICER)
    assert site.decide(browser, "release", reason="nothing to be seen") == "done"
    (sent,) = {str(pydicom.dcmread(path).PatientID) for path in target.rglob("*.dcm")}
    form = {"csrf": csrf_of(browser.get("/audit").text), "pseudonym": sent}
    page = browser.post("/audit", data=form).text
    assert "nothing to be seen" in page
    assert site.held in page
    assert "nothing to be seen" not in browser.post("/audit", data={**form, "pseudonym": "DEMO-UNKNOWN"}).text
    assert len(site.events("audit_read")) == 3


def test_the_policies_are_told_in_plain_words(site: Site) -> None:
    page = unescape(site.signed_in(Role.VIEWER).get("/policies").text)
    assert "research-basic" in page
    assert site.job().policy_digest in page
    assert "Retention: originals 30 days" in page


def test_versions_of_policies_are_kept_by_digest_and_their_difference_is_told(site: Site, policies: Path) -> None:
    browser = site.signed_in()
    old = site.job().policy_digest
    edit(policies, "research-basic", lambda body: body["header"]["patient_id"].update(prefix="NEW-"))
    site.house.parts.policies.reload()
    assert site.decide(browser, "rerun") == "done"
    new = site.job().policy_digest
    page = browser.get("/policies").text
    assert old in page
    assert new in page
    told = unescape(browser.get("/policies/difference", params={"old": old, "new": new}).text)
    assert re.search(r"header\.patient_id\.prefix</td><td[^>]*>DEMO-</td><td[^>]*>NEW-", told)
    assert "The two say the same" in browser.get("/policies/difference", params={"old": old, "new": old}).text
    for wrong in ("", "f" * 64, "../keys/master", SCRIPT):
        answer = browser.get("/policies/difference", params={"old": wrong, "new": new})
        assert answer.status_code == 409
        assert "<script>alert" not in answer.text


def test_the_header_says_which_pixels_a_drawn_box_changed(site: Site) -> None:
    browser = site.signed_in()
    box = {"top": 1, "left": 2, "bottom": 4, "right": 6, "name": "00001", "scope": "series"}
    assert site.decide(browser, "redact", **box) == "done"
    page = browser.get(f"/study/{site.held}/header/00001").text
    row = re.search(r'<tr data-path="7FE00010".*?</tr>', page, re.DOTALL)
    assert row is not None
    assert "a box that was drawn" in row[0]


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"upper": 0.1, "limit": 0.1}, "keeps to it"),
        ({"upper": 0.11, "limit": 0.1, "estimate": 0.0}, "exceeds it"),
        ({"upper": None, "limit": 0.1}, "no evidence"),
        ({"upper": 0.0, "limit": 0.1, "note": "too few people"}, "too few people"),
        ({"upper": 5, "limit": 5, "check": "record_isolation"}, "keeps to it"),
        ({"upper": 4, "limit": 5, "check": "record_isolation"}, "exceeds it"),
    ],
)
def test_the_bound_decides_what_a_figure_says(values: dict[str, Any], says: str) -> None:
    plain = {"check": "linkability", "card": "", "attack": "", "scope": "", "note": "", "estimate": 0.05, "people": 9}
    assert Figure(**{**plain, "view": "whole", **values}).verdict == says


def test_what_scrub_held_is_listed_with_its_reason_and_decided_elsewhere(site: Site) -> None:
    folder = site.house.parts.home.held / "abcdef0123456789"
    folder.mkdir()
    finding = {"check": "residual_text", "instance": "00001", "where": "(7fe0,0010) frame 0", "rule": "text"}
    note = {"state": "held", "reason": "residual_text", "at": "00001", "policy": "mine", "policy_digest": "0" * 64}
    (folder / "held.json").write_text(json.dumps({**note, "findings": [finding]}))
    browser = site.signed_in()
    assert "abcdef012345" in browser.get("/queue").text
    page = browser.get("/study/abcdef0123456789").text
    assert "run `scrub` again" in page
    assert "(7fe0,0010) frame 0" in page
    assert 'id="decide"' not in page
    assert browser.get("/study/abcdef0123456789/frame/00001/0/before").status_code == 409


def test_the_vault_opens_to_the_roles_that_the_policy_names_and_to_nobody_else(
    gateway_house: House, policies: Path, target: Path
) -> None:
    edit(policies, "research-basic", lambda body: body.update(vault={"roles": ["vault-keeper"], "days": 30}))
    gateway_house.parts.policies.reload()
    with site_over(gateway_house, datasets=study(1)) as site:
        assert site.decide(site.signed_in(), "release") == "done"
        (sent,) = target.rglob("*.dcm")
        pseudonym = str(pydicom.dcmread(sent).PatientID)
        keeper, dora = site.signed_in(Role.VAULT_KEEPER), site.signed_in(Role.PRIVACY_OFFICER)
        form = {"pseudonym": pseudonym, "reason": "an incidental finding"}
        for browser, status in ((keeper, 200), (dora, 409)):
            answer = browser.post("/vault", data={**form, "csrf": csrf_of(browser.get("/vault").text)})
            assert answer.status_code == status
            assert ("LEAK0001" in answer.text) is (status == 200)
        csrf = csrf_of(keeper.get("/vault").text)
        assert keeper.post("/vault", data={**form, "csrf": csrf, "reason": ""}).status_code == 409
        assert keeper.post("/vault", data={**form, "csrf": csrf, "pseudonym": "DEMO-NOBODY"}).status_code == 409
        told = [
            (line["event"], line["actor"], line["role"]) for line in site.house.events() if "vault" in line["event"]
        ]
        assert told == [
            ("vault_opened", "some-vault-keeper@review", "vault-keeper"),
            ("vault_refused", "some-privacy-officer@review", "privacy-officer"),
        ]
