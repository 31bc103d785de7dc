"""Signing in by an OpenID provider: a whole way there and back, and every way in which it lets nobody in."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from houses import house
from openid_provider import CLIENT, SECRET, OpenIdProvider, b64, openid_provider
from review_site import ORIGIN, PASSWORD, Site, csrf_of, site_of
from starlette.testclient import TestClient

from gateway.app.review.accounts import put_account
from gateway.app.review.page import provider_of
from gateway.errors import EnvironmentFault, UsageError
from gateway.review import Accounts, Role
from gateway.review.attempts import LASTS_S, MOST_AT_ONCE, Attempts
from gateway.review.known_people import KnownPeople
from gateway.review.provider import Identity, NotLetIn
from gateway.review.sessions import VOUCHED_S, Sessions
from gateway.settings import Home, load_settings

ROLES = "viewer=staff, reviewer=deid-reviewers, privacy-officer=dpo, vault-keeper=vault"


@pytest.fixture
def openid() -> Iterator[OpenIdProvider]:
    with openid_provider() as provider:
        yield provider


@pytest.fixture
def settings_of_oidc(tmp_path: Path, openid: OpenIdProvider) -> dict[str, object]:
    secret = tmp_path / "client.secret"
    secret.write_text(f"{SECRET}\n")
    secret.chmod(0o600)
    return {
        "review_oidc_issuer": openid.issuer,
        "review_oidc_client_id": CLIENT,
        "review_oidc_secret_file": secret,
        "review_oidc_roles": ROLES,
    }


@pytest.fixture
def empty(home: Home, policies: Path, settings_of_oidc: dict[str, object]) -> Iterator[Site]:
    """The page over a home without any study."""
    with house(home, policies, **settings_of_oidc) as made:
        yield site_of(made, "none")


def come_back(site: Site, openid: OpenIdProvider, browser: TestClient | None = None) -> tuple[TestClient, Any]:
    """There and back; the browser and the page that it ends on."""
    browser = browser or site.browser()
    there = browser.get("/oidc/start")
    assert there.status_code == 303
    return browser, browser.get(openid.sign_in(there.headers["location"]))


def is_in(browser: TestClient) -> bool:
    return browser.get("/queue").status_code == 200


def test_somebody_signs_in_there_works_here_and_signs_out(empty: Site, openid: OpenIdProvider) -> None:
    assert 'href="/oidc/start"' in empty.browser().get("/login").text
    assert 'type="password"' not in empty.browser().get("/login").text  # there is no local account
    browser, arrived = come_back(empty, openid)
    assert arrived.status_code == 200
    assert '<meta http-equiv="refresh" content="0;url=/queue">' in arrived.text
    queue = browser.get("/queue")
    assert "anna.b, reviewer" in queue.text
    cookies = {cookie.name for cookie in browser.cookies.jar}
    assert cookies == {"review"}
    left = browser.post("/logout", data={"csrf": csrf_of(queue.text)})
    assert f'href="{openid.issuer}/leave?client_id={CLIENT}&amp;post_logout_redirect_uri=' in left.text
    assert not is_in(browser)
    lines = [(line["event"], line["actor"], line["role"], line.get("provider")) for line in empty.house.events()]
    assert lines == [
        ("signed_in", "anna.b@review", "reviewer", "oidc"),
        ("signed_out", "anna.b@review", "reviewer", None),
    ]
    kept = b"".join(path.read_bytes() for path in empty.house.parts.home.root.rglob("*") if path.is_file())
    for secret in (openid.sub, SECRET, "an access token", "code0"):
        assert secret.encode() not in kept


def test_the_cookie_of_the_way_is_lax_and_the_session_s_is_strict(empty: Site, openid: OpenIdProvider) -> None:
    browser = empty.browser()
    there = browser.get("/oidc/start")
    (way,) = there.headers.get_list("set-cookie")
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= {part.strip() for part in way.split(";")}
    arrived = browser.get(openid.sign_in(there.headers["location"]))
    (session,) = [one for one in arrived.headers.get_list("set-cookie") if one.startswith("review=")]
    assert {"HttpOnly", "SameSite=strict"} <= {part.strip() for part in session.split(";")}


def test_what_is_asked_has_state_nonce_and_a_challenge_of_its_own_each_time(
    empty: Site, openid: OpenIdProvider
) -> None:
    seen: dict[str, set[str]] = {"state": set(), "nonce": set(), "code_challenge": set()}
    for _ in range(3):
        asked = parse_qs(urlsplit(empty.browser().get("/oidc/start").headers["location"]).query)
        assert asked["redirect_uri"] == [f"{ORIGIN}/oidc/back"]
        for name, values in seen.items():
            values.add(asked[name][0])
            assert len(asked[name][0]) >= 43
    assert {name: len(values) for name, values in seen.items()} == dict.fromkeys(seen, 3)


def public_pem(key: rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


LIES: dict[str, dict[str, Any]] = {
    "another nonce": {"claims": {"nonce": "another"}},
    "no nonce": {"claims": {"nonce": None}},
    "another audience": {"claims": {"aud": "somebody-else"}},
    "an audience of others": {"claims": {"aud": ["a", "b"]}},
    "two audiences and no party": {"claims": {"aud": [CLIENT, "b"]}},
    "for another party": {"claims": {"aud": [CLIENT, "b"], "azp": "b"}},
    "another issuer": {"claims": {"iss": "https://elsewhere.example"}},
    "expired": {"claims": {"exp": 1_000_000_000}},
    "no end": {"claims": {"exp": None}},
    "of the future": {"claims": {"iat": 4_000_000_000}},
    "not yet": {"claims": {"nbf": 4_000_000_000}},
    "nobody": {"claims": {"sub": None}},
    "an empty subject": {"claims": {"sub": ""}},
    "a subject that is none": {"claims": {"sub": 7}},
    "another access token": {"claims": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}},
    "no name": {"claims": {"preferred_username": None}},
    "a name with markup": {"claims": {"preferred_username": "<script>x"}},
    "no role": {"groups": ["strangers"]},
    "no claim of roles": {"groups": None},
    "roles that are none": {"groups": {"a": 1}},
    "two roles that are apart": {"groups": ["deid-reviewers", "vault"]},
    "alg none": {"head": {"alg": "none"}, "signed": False},
    "alg none with a signature": {"head": {"alg": "none"}},
    "no signature": {"signed": False},
    "a key that is not known": {"head": {"kid": "second"}},
    "a critical header": {"head": {"crit": ["exp"]}},
}


@pytest.mark.parametrize("lie", LIES)
def test_what_does_not_hold_lets_nobody_in(empty: Site, openid: OpenIdProvider, lie: str) -> None:
    for name, value in LIES[lie].items():
        setattr(openid, name, value)
    browser, page = come_back(empty, openid)
    assert page.status_code == 403
    assert not is_in(browser)
    assert empty.house.events() == []
    assert empty.pages.doors.people.all() == {}
    assert "elsewhere" not in page.text


def test_a_signature_by_another_key_or_by_our_public_key_as_a_secret_lets_nobody_in(
    empty: Site, openid: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    openid.shown_key = rsa.generate_private_key(65537, 2048)
    assert come_back(empty, openid)[1].status_code == 403
    openid.shown_key = None

    def confused(claims: dict[str, Any]) -> str:
        """RFC 8725 2.1: HMAC with what everybody knows."""
        body = ".".join(b64(json.dumps(part).encode()) for part in ({"alg": "HS256", "kid": openid.kid}, claims))
        return f"{body}.{b64(hmac.digest(public_pem(openid.key), body.encode(), hashlib.sha256))}"

    monkeypatch.setattr(openid, "id_token", confused)
    assert come_back(empty, openid)[1].status_code == 403
    monkeypatch.setattr(openid, "id_token", lambda claims: "nothing.of.that")
    assert come_back(empty, openid)[1].status_code == 403


@pytest.mark.parametrize(
    ("groups", "role"),
    [
        (["staff"], Role.VIEWER),
        ("deid-reviewers", Role.REVIEWER),
        (["staff", "deid-reviewers", "dpo"], Role.PRIVACY_OFFICER),
        (["vault", "staff"], Role.VAULT_KEEPER),
    ],
)
def test_the_role_is_that_which_contains_the_others(
    empty: Site, openid: OpenIdProvider, groups: object, role: Role
) -> None:
    openid.groups = groups
    come_back(empty, openid)
    assert [one.role for one in empty.pages.doors.people.all().values()] == [role]


def test_roles_may_lie_deeper_in_the_token(
    home: Home, policies: Path, openid: OpenIdProvider, settings_of_oidc: Any
) -> None:
    more = {"review_oidc_role_claim": "realm_access.roles", "review_oidc_name_claim": "email"}
    openid.claims = {"realm_access": {"roles": ["dpo"]}, "email": "anna@hospital.example"}
    with house(home, policies, **settings_of_oidc, **more) as made:
        site = site_of(made, "none")
        browser, _ = come_back(site, openid)
        assert "anna@hospital.example, privacy-officer" in browser.get("/queue").text


# -- the way back -----------------------------------------------------------------------------------------------------


def test_only_the_browser_that_left_comes_back_and_only_once(empty: Site, openid: OpenIdProvider) -> None:
    browser = empty.browser()
    back = openid.sign_in(browser.get("/oidc/start").headers["location"])
    victim = empty.browser()  # somebody is sent the way back of somebody else (login CSRF)
    assert victim.get(back).status_code == 403
    other = empty.browser()
    other.get("/oidc/start")
    assert other.get(back).status_code == 403
    assert browser.get(back).status_code == 200
    assert browser.get(back).status_code == 403
    assert [line["event"] for line in empty.house.events()] == ["signed_in"]


@pytest.mark.parametrize(
    "change", ["state=x", "code=x", "code=", "iss=https://elsewhere.example", "error=access_denied"]
)
def test_a_way_back_that_was_changed_leads_nowhere(empty: Site, openid: OpenIdProvider, change: str) -> None:
    browser = empty.browser()
    back = openid.sign_in(browser.get("/oidc/start").headers["location"])
    name = change.partition("=")[0]
    parts = [part for part in back.partition("?")[2].split("&") if not part.startswith(f"{name}=")]
    page = browser.get(f"/oidc/back?{'&'.join([*parts, change])}")
    assert page.status_code == 403
    assert not is_in(browser)


def test_a_token_that_a_browser_brought_never_becomes_a_session(empty: Site, openid: OpenIdProvider) -> None:
    browser = empty.browser()
    browser.cookies.set("review", "chosen-by-somebody-else")
    come_back(empty, openid, browser)
    thief = empty.browser()
    thief.cookies.set("review", "chosen-by-somebody-else")
    assert not is_in(thief)


def test_an_attempt_ends_after_a_while_and_others_push_it_out() -> None:
    now = [0.0]
    attempts = Attempts(lambda: now[0])
    mark, attempt = attempts.begin("http://x")
    now[0] = LASTS_S + 1
    assert attempts.take(mark, attempt.state) is None
    begun = [attempts.begin("http://x") for _ in range(MOST_AT_ONCE + 1)]
    found = [attempts.take(mark, attempt.state) for mark, attempt in begun]
    assert found == [None, *(attempt for _, attempt in begun[1:])]


# -- the provider itself ----------------------------------------------------------------------------------------------


def test_a_provider_that_is_down_lets_nobody_in_but_local_accounts(
    home: Home, policies: Path, settings_of_oidc: Any
) -> None:
    values = {**settings_of_oidc, "review_oidc_issuer": "http://127.0.0.1:1"}
    with house(home, policies, **values) as made:
        site = site_of(made, "none")
        browser = site.browser()
        assert browser.get("/oidc/start").status_code == 503
        site.accounts.put("ben", Role.REVIEWER, PASSWORD)
        assert 'type="password"' in browser.get("/login").text
        assert is_in(site.signed_in(name="ben"))


def test_a_provider_that_goes_down_on_the_way_lets_nobody_in(empty: Site, openid: OpenIdProvider) -> None:
    browser = empty.browser()
    back = openid.sign_in(browser.get("/oidc/start").headers["location"])
    openid.about["token_endpoint"] = "http://127.0.0.1:1/token"
    empty.pages.office.provider.__dict__["_about"] = (-1e9, {})
    page = browser.get(back)
    assert page.status_code == 503
    assert not is_in(browser)


@pytest.mark.parametrize(
    "about",
    [
        {"issuer": "https://elsewhere.example"},
        {"authorization_endpoint": "http://elsewhere.example/authorize"},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": None},
    ],
)
def test_a_provider_that_names_itself_or_its_places_wrong_is_not_used(
    empty: Site, openid: OpenIdProvider, about: dict[str, Any]
) -> None:
    openid.about = about
    page = empty.browser().get("/oidc/start")
    assert page.status_code == 503
    assert "elsewhere" not in page.text


def test_new_keys_of_the_provider_are_fetched_when_a_token_names_one(empty: Site, openid: OpenIdProvider) -> None:
    come_back(empty, openid)
    provider = empty.pages.office.provider
    assert provider is not None
    openid.key, openid.kid = rsa.generate_private_key(65537, 2048), "second"
    assert come_back(empty, openid)[1].status_code == 403  # asked for a moment ago: not again at once
    at, keys = provider.__dict__["_keys"]
    provider.__dict__["_keys"] = (at - 60, keys)
    assert come_back(empty, openid)[1].status_code == 200
    assert openid.asked.count("/keys") == 2


# -- who is who -------------------------------------------------------------------------------------------------------


def test_a_name_stays_with_whoever_had_it_first(empty: Site, openid: OpenIdProvider) -> None:
    come_back(empty, openid)
    openid.sub = "somebody else"
    assert come_back(empty, openid)[1].status_code == 403
    openid.sub, openid.name = "0a1b2c", "anna.new"
    assert come_back(empty, openid)[1].status_code == 403
    empty.pages.doors.people.remove("anna.b")
    assert come_back(empty, openid)[1].status_code == 200
    empty.accounts.put("carl", Role.REVIEWER, PASSWORD)
    openid.sub, openid.name = "carl's", "carl"
    assert come_back(empty, openid)[1].status_code == 403


def test_no_account_is_added_under_the_name_of_somebody_whom_the_provider_knows(
    empty: Site, openid: OpenIdProvider
) -> None:
    come_back(empty, openid)
    parts = empty.house.parts
    with pytest.raises(UsageError, match=r"user remove anna\.b"):
        put_account(parts.home, parts.settings, "anna.b", Role.REVIEWER, PASSWORD, by="uid 0")
    assert empty.accounts.all() == {}
    assert empty.events("account_added") == []


def test_of_many_people_at_many_processes_one_has_a_name_and_nobody_is_lost(tmp_path: Path) -> None:
    """Each `KnownPeople` stands for a process: they share the file alone."""
    path, accounts = tmp_path / "people.json", Accounts(tmp_path / "accounts.json")
    let_in: list[int] = []

    def sign_in(number: int) -> None:
        people = KnownPeople(path)
        people.meet(Identity(f"person{number}", Role.VIEWER, f"subject {number}"), accounts)
        with suppress(NotLetIn):
            people.meet(Identity("of-all", Role.VIEWER, f"another {number}"), accounts)
            let_in.append(number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(sign_in, range(16)))
    assert len(let_in) == 1
    assert set(KnownPeople(path).all()) == {"of-all", *(f"person{number}" for number in range(16))}


def test_who_is_removed_or_comes_back_with_another_role_is_out(empty: Site, openid: OpenIdProvider) -> None:
    first, _ = come_back(empty, openid)
    openid.groups = ["staff"]
    second, _ = come_back(empty, openid)
    assert (is_in(first), is_in(second)) == (False, True)
    empty.pages.doors.people.remove("anna.b")
    assert not is_in(second)


def test_who_came_by_the_provider_comes_again_within_the_hour(empty: Site, openid: OpenIdProvider) -> None:
    come_back(empty, openid)
    account = empty.pages.doors.people.all()["anna.b"]
    now = [0.0]
    sessions = Sessions(lambda: now[0])
    token, _ = sessions.open(account)
    while now[0] <= VOUCHED_S:
        assert sessions.find(token, {"anna.b": account}, touch=True) is not None
        now[0] += 600
    assert sessions.find(token, {"anna.b": account}, touch=True) is None


def test_without_a_provider_there_is_no_such_page(home: Home, policies: Path) -> None:
    with house(home, policies) as made:
        browser = site_of(made, "none").browser()
        assert [browser.get(where).status_code for where in ("/oidc/start", "/oidc/back?code=x&state=y")] == [404, 404]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"review_oidc_client_id": ""}, "go together"),
        ({"review_oidc_roles": ""}, "go together"),
        ({"review_oidc_roles": "reviewer"}, "role=value"),
        ({"review_oidc_roles": "emperor=a"}, "viewer, reviewer"),
        ({"review_oidc_roles": "viewer=a, reviewer=a"}, "one role"),
        ({"review_oidc_issuer": "http://idp.example"}, "https"),
        ({"review_oidc_issuer": "idp.example"}, "https"),
    ],
)
def test_settings_that_would_let_the_wrong_in_are_refused(
    home: Home, settings_of_oidc: dict[str, object], changes: dict[str, object], says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        provider_of(load_settings(home.root, **{**settings_of_oidc, **changes}))


def test_a_secret_that_others_can_read_is_refused(home: Home, settings_of_oidc: dict[str, Any]) -> None:
    settings_of_oidc["review_oidc_secret_file"].chmod(0o644)
    with pytest.raises(EnvironmentFault, match="chmod 600"):
        provider_of(load_settings(home.root, **settings_of_oidc))
