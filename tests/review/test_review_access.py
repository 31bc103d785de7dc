"""Who gets in and how far: every page without a role and with each, forms from elsewhere, hosts, sizes, sessions."""

from __future__ import annotations

import re
from typing import Any

import pytest
from review_site import ORIGIN, PASSWORD, Site, csrf_of, sign_in

from gateway.errors import EnvironmentFault
from gateway.review import Role
from gateway.review.guard import MAX_BODY_BYTES
from gateway.review.pages import PAGES
from gateway.review.roles import GRANTS, May
from gateway.review.sessions import IDLE_S, MOST_OF_ACCOUNT, WHOLE_S, Sessions
from gateway.review.throttle import FAILURES, WINDOW_S, Throttle

PROTECTED = [page for page in PAGES if page.may is not None]


def address(site: Site, path: str) -> str:
    values = {"key": site.held, "serial:int": "1", "name": "00001", "frame:int": "0", "kind": "before"}
    return re.sub(r"\{([^}]+)\}", lambda found: values[found[1]], path)


def ask(site: Site, browser: Any, page: Any, **form: object) -> Any:
    where = address(site, page.path)
    return browser.get(where) if page.method == "GET" else browser.post(where, data=form or {"x": "y"})


def test_only_signing_in_and_files_of_ours_are_for_everybody() -> None:
    assert {(page.method, page.path) for page in PAGES if page.may is None} == {
        ("GET", "/static/{name}"),
        ("GET", "/login"),
        ("POST", "/login"),
        ("GET", "/oidc/start"),
        ("GET", "/oidc/back"),
    }


def test_nobody_gets_anything_without_signing_in(site: Site) -> None:
    for page in PROTECTED:
        answer = ask(site, site.browser(), page)
        expected = (303, "/login") if page.method == "GET" else (401, None)
        assert (answer.status_code, answer.headers.get("location")) == expected, page.path
        assert site.held not in answer.text
        quiet = site.browser().request(page.method, address(site, page.path), headers={"HX-Request": "true"})
        assert quiet.status_code in (401, 415)
    assert not site.events("viewed")


@pytest.mark.parametrize("role", list(Role))
def test_a_role_gets_what_it_was_granted_and_nothing_else(site: Site, role: Role) -> None:
    for page in PROTECTED:
        browser = site.signed_in(role)
        answer = ask(site, browser, page, csrf=csrf_of(browser.get("/queue").text))
        assert (answer.status_code == 403) is (page.may not in GRANTS[role]), page.path
    assert bool(site.events("viewed")) is (May.LOOK in GRANTS[role])


def test_the_grants_are_those_that_the_roles_are_for() -> None:
    assert {role for role in Role if May.LOOK in GRANTS[role]} == {Role.REVIEWER, Role.PRIVACY_OFFICER}
    assert {role for role in Role if May.DECIDE in GRANTS[role]} == {Role.REVIEWER, Role.PRIVACY_OFFICER}
    assert {role for role in Role if May.REPOLICY in GRANTS[role]} == {Role.PRIVACY_OFFICER}
    assert {role for role in Role if May.OPEN_VAULT in GRANTS[role]} == {Role.PRIVACY_OFFICER, Role.VAULT_KEEPER}
    assert {role for role in Role if May.AUDIT in GRANTS[role]} == {Role.PRIVACY_OFFICER, Role.ADMIN}


def test_a_form_that_another_site_sends_is_refused_whatever_it_brings(site: Site) -> None:
    browser = site.signed_in()
    form = {"csrf": csrf_of(browser.get("/queue").text), "round": 1, "verb": "reject", "reason": "looked at it"}
    for headers in (
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
    ):
        assert browser.post(f"/study/{site.held}/decide", data=form, headers=headers).status_code == 403, headers
    assert site.house.parts.database.intents_of(site.held) == []


def test_a_form_without_its_token_is_refused(site: Site) -> None:
    browser = site.signed_in()
    form = {"round": 1, "verb": "reject", "reason": "looked at it"}
    somebody_elses = csrf_of(site.signed_in(name="other").get("/queue").text)
    for csrf in ("", "wrong", "é", somebody_elses):
        assert browser.post(f"/study/{site.held}/decide", data={**form, "csrf": csrf}).status_code == 403
    assert site.house.parts.database.intents_of(site.held) == []


def test_only_plain_forms_are_read(site: Site) -> None:
    browser = site.signed_in()
    for kind in ("application/json", "text/plain", "multipart/form-data; boundary=x", ""):
        assert browser.post("/logout", content=b"csrf=x", headers={"Content-Type": kind}).status_code == 415


def test_a_get_never_decides(site: Site) -> None:
    browser = site.signed_in()
    assert browser.get(f"/study/{site.held}/decide").status_code == 405
    assert browser.get("/logout").status_code == 405


def test_another_name_of_this_machine_is_refused(site: Site) -> None:
    for host in ("evil.example", "testserver.evil.example", "testserver:81", "", "127.0.0.1"):
        assert site.browser().get("/login", headers={"Host": host}).status_code == 421


def test_too_much_is_refused_told_or_not(site: Site) -> None:
    browser = site.signed_in()
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    body = b"a" * (MAX_BODY_BYTES + 1)
    assert browser.post("/logout", content=body, headers=form).status_code == 413
    untold = browser.post("/logout", content=iter([body[:100], body]), headers=form)
    assert untold.status_code == 413
    many = "&".join(f"a{i}=1" for i in range(40))
    assert browser.post("/logout", content=many.encode(), headers=form).status_code == 400


def test_every_answer_is_kept_nowhere_and_runs_nothing_of_others(site: Site) -> None:
    browser = site.signed_in(Role.PRIVACY_OFFICER)
    answers = [ask(site, somebody, page) for page in PAGES for somebody in (browser, site.browser())]
    for answer in (*answers, browser.get("/no/such/page"), browser.get("/queue", headers={"Host": "evil.example"})):
        assert answer.headers["cache-control"] == "no-store"
        policy = dict(part.strip().partition(" ")[::2] for part in answer.headers["content-security-policy"].split(";"))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["form-action"] == "'self'"
        assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_no_page_has_a_script_or_a_style_in_itself(site: Site) -> None:
    browser = site.signed_in(Role.PRIVACY_OFFICER)
    for where in ("/login", "/queue", f"/study/{site.held}", "/policies", "/audit", f"/study/{site.held}/header/00001"):
        page = browser.get(where).text
        assert not re.search(r"<script(?![^>]* src=\"/static/)", page)
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|https?://", page), where


def test_only_our_files_are_given_out(site: Site) -> None:
    for name in (
        "../pages.py",
        "..%2fpages.py",
        "%2e%2e/pages.py",
        "htmx.LICENSE",
        "nothing.js",
        ".",
        "....//pages.py",
    ):
        assert site.browser().get(f"/static/{name}").status_code == 404, name


def test_the_files_a_page_names_are_there(site: Site) -> None:
    page = site.signed_in().get(f"/study/{site.held}").text
    named = re.findall(r'(?:src|href)="(/static/[^"]+)"', page)
    assert len(named) >= 4
    for where in named:
        assert site.browser().get(where).status_code == 200


# -- sessions -----------------------------------------------------------------------------------------------------


def test_the_cookie_is_for_this_site_and_no_script(site: Site) -> None:
    browser = site.browser()
    site.accounts.put("anna", Role.REVIEWER, PASSWORD)
    cookies = sign_in(browser, "anna", PASSWORD).headers.get_list("set-cookie")
    (session,) = [one for one in cookies if one.startswith("review=")]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= {part.strip() for part in session.split(";")}
    assert "max-age" not in session.lower()
    assert "expires" not in session.lower()


def test_a_token_that_a_browser_brings_never_becomes_a_session(site: Site) -> None:
    browser = site.browser()
    browser.cookies.set("review", "chosen-by-somebody-else")
    site.accounts.put("anna", Role.REVIEWER, PASSWORD)
    sign_in(browser, "anna", PASSWORD)
    fresh = site.browser()
    fresh.cookies.set("review", "chosen-by-somebody-else")
    assert fresh.get("/queue").status_code == 303


def test_signing_out_ends_the_session_here_and_not_only_in_the_browser(site: Site) -> None:
    browser = site.signed_in()
    token = browser.cookies["review"]
    answer = browser.post("/logout", data={"csrf": csrf_of(browser.get("/queue").text)})
    assert answer.headers["clear-site-data"] == '"cache", "storage"'
    thief = site.browser()
    thief.cookies.set("review", token)
    assert thief.get("/queue").status_code == 303
    assert [line["event"] for line in site.house.events() if "actor" in line] == ["signed_in", "signed_out"]


def test_an_account_that_changes_or_goes_is_out_at_once(site: Site) -> None:
    browser = site.signed_in(name="anna")
    site.accounts.put("anna", Role.VIEWER, PASSWORD)
    assert browser.get("/queue").status_code == 303
    browser = site.signed_in(name="ben")
    site.accounts.remove("ben")
    assert browser.get("/queue").status_code == 303


def test_a_session_ends_when_nobody_is_there_and_at_the_end_of_the_day(site: Site) -> None:
    site.accounts.put("anna", Role.REVIEWER, PASSWORD)
    account = site.accounts.all()["anna"]
    now = [1000.0]
    sessions = Sessions(lambda: now[0])
    token, _ = sessions.open(account)
    known = {"anna": account}
    now[0] += IDLE_S - 1
    assert sessions.find(token, known, touch=False) is not None  # the page asked by itself
    now[0] += 2
    assert sessions.find(token, known, touch=True) is None
    token, _ = sessions.open(account)
    for _ in range(int(WHOLE_S / 600)):
        assert sessions.find(token, known, touch=True) is not None
        now[0] += 600
    now[0] += 1
    assert sessions.find(token, known, touch=True) is None


def test_an_account_has_few_sessions_and_the_oldest_ends(site: Site) -> None:
    site.accounts.put("anna", Role.REVIEWER, PASSWORD)
    account = site.accounts.all()["anna"]
    sessions = Sessions()
    tokens = [sessions.open(account)[0] for _ in range(MOST_OF_ACCOUNT + 1)]
    alive = [sessions.find(token, {"anna": account}, touch=True) is not None for token in tokens]
    assert alive == [False] + [True] * MOST_OF_ACCOUNT


# -- passwords ----------------------------------------------------------------------------------------------------


def test_a_wrong_name_and_a_wrong_password_get_one_answer(site: Site) -> None:
    site.accounts.put("anna", Role.REVIEWER, PASSWORD)
    answers = [sign_in(site.browser(), *pair) for pair in (("anna", "wrong password"), ("nobody", "wrong password"))]
    texts = [re.sub(r'value="[0-9a-f]{64}"', "", answer.text) for answer in answers]
    assert [answer.status_code for answer in answers] == [401, 401]
    assert texts[0] == texts[1]


def test_too_many_failures_take_no_password_for_a_while_not_even_the_right_one(site: Site) -> None:
    browser = site.browser()
    site.accounts.put("anna", Role.REVIEWER, PASSWORD)
    assert [sign_in(browser, "anna", "wrong password").status_code for _ in range(FAILURES)] == [401] * FAILURES
    answer = sign_in(browser, "anna", PASSWORD)
    assert answer.status_code == 429
    assert 0 < int(answer.headers["retry-after"]) <= WINDOW_S + 1
    assert site.signed_in(name="ben")


def test_the_wait_ends_and_a_success_clears_the_count() -> None:
    now = [0.0]
    throttle = Throttle(lambda: now[0])
    for _ in range(FAILURES):
        throttle.begin("anna")
    assert throttle.wait_s("anna") == WINDOW_S
    now[0] = WINDOW_S
    assert throttle.wait_s("anna") == 0
    for _ in range(FAILURES - 1):
        throttle.begin("anna")
    throttle.succeeded("anna")
    throttle.begin("anna")
    assert throttle.wait_s("anna") == 0


def test_tries_that_were_let_in_together_are_counted_one_by_one(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that wait for room asked before the others failed: each is asked again when its turn has come."""
    throttle = Throttle()
    assert [throttle.begin("anna") for _ in range(FAILURES + 1)] == [True] * FAILURES + [False]
    site.accounts.put("anna", Role.REVIEWER, PASSWORD)
    browser = site.browser()
    monkeypatch.setattr(Throttle, "wait_s", lambda *_: 0.0)
    answers = [sign_in(browser, "anna", word).status_code for word in [*["wrong password"] * FAILURES, PASSWORD]]
    assert answers == [401] * FAILURES + [429]


def test_a_flood_of_passwords_does_not_take_every_thread_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who finds the waiting room full is told so at once, and leaving makes room again."""
    monkeypatch.setattr("gateway.review.throttle.HASHES_WAITING", 2)
    throttle = Throttle()
    with throttle.hashing() as first, throttle.hashing() as second:
        assert (first, second) == (True, True)
        with throttle.hashing() as third:
            assert not third
    with throttle.hashing() as again:
        assert again


def test_only_what_a_page_asks_by_itself_does_not_keep_a_session_alive() -> None:
    assert {page.path for page in PAGES if page.by_itself} == {"/queue/rows", "/study/{key}/outcome/{serial:int}"}


def test_signing_in_needs_the_form_that_this_browser_was_given(site: Site) -> None:
    site.accounts.put("anna", Role.REVIEWER, PASSWORD)
    browser, other = site.browser(), site.browser()
    proof = re.search(r'name="proof" value="([^"]+)"', other.get("/login").text)
    assert proof is not None
    browser.get("/login")
    answer = browser.post("/login", data={"proof": proof[1], "name": "anna", "password": PASSWORD})
    assert answer.status_code == 403
    assert browser.get("/queue").status_code == 303


def test_accounts_that_others_can_read_let_nobody_in(site: Site) -> None:
    browser = site.signed_in()
    site.accounts.path.chmod(0o644)
    assert browser.get("/queue").status_code == 503
    with pytest.raises(EnvironmentFault, match="chmod 600"):
        site.accounts.all()
    site.accounts.path.chmod(0o600)
    site.accounts.path.write_text('{"anna": {"role": "emperor", "digest": "x"}}')
    assert browser.get("/queue").status_code == 503


def test_what_is_stored_of_a_password_is_an_argon2id_hash(site: Site) -> None:
    site.accounts.put("anna", Role.REVIEWER, PASSWORD)
    assert site.accounts.all()["anna"].digest.startswith("$argon2id$")
    assert PASSWORD not in site.accounts.path.read_text()
    assert site.accounts.path.stat().st_mode & 0o777 == 0o600


def test_behind_tls_the_cookie_travels_by_tls_alone(site: Site) -> None:
    from gateway.review import ReviewPages

    pages = ReviewPages(site.pages.office.desk, site.pages.doors, ["https://deid.example"])
    browser = site.browser()
    browser = type(browser)(pages.app, base_url="https://deid.example", headers={"Origin": "https://deid.example"})
    browser.follow_redirects = False
    site.accounts.put("anna", Role.REVIEWER, PASSWORD)
    answer = sign_in(browser, "anna", PASSWORD)
    (session,) = [one for one in answer.headers.get_list("set-cookie") if one.startswith("__Host-review=")]
    assert "Secure" in session
    assert answer.headers["strict-transport-security"].startswith("max-age=")
    assert ORIGIN not in pages.office.origins
