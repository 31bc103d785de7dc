"""The API: whose token, which scope, which role; the same rules as the pages; what it tells when something is wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from houses import edit, house, study
from planting import found_in
from releasing import film, judged
from review_site import ORIGIN, PASSWORD, Site, site_of, site_over
from starlette.testclient import TestClient

from gateway.app.review.accounts import new_token, revoke_token
from gateway.app.review.agreement import SAME_PERSON
from gateway.app.review.wishes import FIRST
from gateway.errors import EnvironmentFault, UsageError
from gateway.review import Role
from gateway.review.api import OPERATIONS, document
from gateway.review.api.calls import Operation
from gateway.review.roles import GRANTS
from gateway.review.throttle import CALLS, CALLS_WINDOW_S, Rate
from gateway.review.tokens import NEEDS, Scope, Tokens
from gateway.settings import Home

API = "/api/v1"
CANARY = "ZZSYNTHCANARY"
BODIES = {
    "decide": {"verb": "reject", "round": 1, "reason": "looked at it"},
    "close": {"reason": "the month is over"},
    "recall": {"reason": "a patient objects"},
    "audit": {},
}
VALUES = {"key": "", "name": "00001", "frame": "0", "kind": "before", "serial": "1"}


def token_for(site: Site, role: Role, *scopes: Scope, account: str = "", name: str = "") -> str:
    """The secret of a token of an account with this role."""
    account = account or f"some-{role}"
    if account not in site.accounts.all():
        site.accounts.put(account, role, PASSWORD)
    parts, name = site.house.parts, name or f"t{len(site.pages.doors.tokens.all())}"
    wanted = [str(scope) for scope in scopes or Scope if NEEDS[scope] in GRANTS[role]]
    return new_token(parts.home, parts.settings, name, account, wanted, 30, by="uid 0")[0]


def client(site: Site, secret: str = "") -> TestClient:
    headers = {"Authorization": f"Bearer {secret}".encode("latin-1")} if secret else {}
    return TestClient(site.pages.app, base_url=ORIGIN, headers=headers, follow_redirects=False)


def call(site: Site, api: TestClient, one: Operation, **changes: str) -> Any:
    values = {**VALUES, "key": site.held, **changes}
    where = API + re.sub(r"\{(\w+):\w+\}", lambda found: values[found[1]], one.path)
    if one.query.model_fields and one.ident == "difference":
        where += f"?old={'0' * 64}&new={'0' * 64}"
    return api.request(one.method, where, json=BODIES.get(one.ident))


# -- who may ----------------------------------------------------------------------------------------------------------


def test_no_call_is_answered_without_a_token_that_counts(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = site.house.parts
    over, revoked, orphan = (token_for(site, Role.PRIVACY_OFFICER, account=f"po{i}", name=f"tt{i}") for i in range(3))
    revoke_token(parts.home, parts.settings, "tt1", by="uid 0")
    site.accounts.remove("po2")
    tokens = site.pages.doors.tokens
    one = tokens.all()["tt0"]
    tokens.keep(type(one)(one.name, one.account, one.scopes, one.digest, 0.0, 1.0))
    signed_in = site.signed_in(Role.PRIVACY_OFFICER)  # a cookie counts for nothing here
    asking = [client(site), signed_in, *(client(site, secret) for secret in (over, revoked, orphan, "deid_x", "é"))]
    basic = TestClient(site.pages.app, base_url=ORIGIN, headers={"Authorization": f"Basic {over}"})
    for operation in OPERATIONS:
        answers = [call(site, api, operation) for api in (*asking, basic)]
        assert {answer.status_code for answer in answers} == {401}, operation.ident
        assert len({answer.text for answer in answers}) == 1
        assert answers[0].headers["www-authenticate"] == "Bearer"
        assert answers[0].headers["content-type"] == "application/problem+json"
        assert "access-control-allow-origin" not in answers[0].headers
    assert site.house.parts.database.intents_of(site.held) == []
    assert not site.events("viewed") + site.events("token_used")


def test_a_scope_opens_its_calls_and_no_other(site: Site) -> None:
    for scope in Scope:
        api = client(site, token_for(site, Role.PRIVACY_OFFICER, scope))
        for operation in OPERATIONS:
            answer = call(site, api, operation, serial="999")
            refused = operation.scope not in (None, scope)
            assert (answer.status_code == 403) is refused, (scope, operation.ident)
            if refused:
                assert f'scope="{operation.scope}"' in answer.headers["www-authenticate"]


def test_a_token_can_never_do_more_than_its_account(site: Site) -> None:
    """Also when the role changes afterwards."""
    secret = token_for(site, Role.PRIVACY_OFFICER, account="anna")
    for role in Role:
        site.accounts.put("anna", role, PASSWORD)
        api = client(site, secret)
        for operation in OPERATIONS:
            denied = operation.scope is not None and NEEDS[operation.scope] not in GRANTS[role]
            answer = call(site, api, operation, serial="999")
            assert (answer.status_code == 403) is denied, (role, operation.ident)


def test_a_scope_that_a_role_has_no_use_for_is_not_given(site: Site) -> None:
    parts = site.house.parts
    site.accounts.put("vera", Role.VIEWER, PASSWORD)
    for name, account, scopes, days, says in (
        ("tok", "vera", ["decisions:write"], 30, "no use for decisions:write"),
        ("tok", "vera", ["everything"], 30, "studies:read"),
        ("tok", "vera", [], 30, "--scope"),
        ("tok", "nobody", ["studies:read"], 30, "no account nobody"),
        ("tok", "vera", ["studies:read"], 0, "days"),
        ("tok", "vera", ["studies:read"], 367, "days"),
        ("T!", "vera", ["studies:read"], 30, "small letters"),
    ):
        with pytest.raises(UsageError, match=says):
            new_token(parts.home, parts.settings, name, account, scopes, days, by="uid 0")
    assert site.pages.doors.tokens.all() == {}


def test_a_secret_is_kept_nowhere_and_each_token_is_in_the_ledger(site: Site) -> None:
    parts = site.house.parts
    secret = token_for(site, Role.VIEWER, name="nightly")
    revoke_token(parts.home, parts.settings, "nightly", by="uid 7")
    kept = [path for path in parts.home.root.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert kept == []
    assert site.pages.doors.tokens.path.stat().st_mode & 0o777 == 0o600
    (made,), (gone,) = site.events("token_made"), site.events("token_revoked")
    assert (made["token"], made["account"], made["actor"]) == ("nightly", "some-viewer", "uid 0")
    assert (gone["token"], gone["actor"]) == ("nightly", "uid 7")


def test_a_file_of_tokens_that_others_can_read_or_that_is_damaged_lets_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    for body, mode in (("{}", 0o644), ("{", 0o600), ('{"a": {"scopes": ["no:such"]}}', 0o600), ("[1]", 0o600)):
        path.write_text(body)
        path.chmod(mode)
        with pytest.raises(EnvironmentFault, match=r"tokens\.json"):
            Tokens(path).all()


def test_too_many_calls_of_one_token_wait_and_others_go_on() -> None:
    now = [0.0]
    rate = Rate(lambda: now[0])
    assert [rate.wait_s("a") for _ in range(CALLS)] == [0.0] * CALLS
    assert rate.wait_s("a") == CALLS_WINDOW_S
    assert rate.wait_s("b") == 0
    now[0] += CALLS_WINDOW_S
    assert rate.wait_s("a") == 0


def test_the_rate_is_told_and_kept(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from gateway.review import throttle

    monkeypatch.setattr(throttle, "CALLS", 2)
    api = client(site, token_for(site, Role.VIEWER))
    answers = [api.get(f"{API}/queue") for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert 0 < int(answers[2].headers["retry-after"]) <= CALLS_WINDOW_S + 1


# -- what it does -----------------------------------------------------------------------------------------------------


def test_a_held_study_is_found_looked_at_and_rejected(site: Site) -> None:
    api = client(site, token_for(site, Role.REVIEWER, account="anna", name="script"))
    queue = api.get(f"{API}/queue", params={"reason": site.job().reason}).json()
    assert (queue["total"], [one["key"] for one in queue["studies"]]) == (1, [site.held])
    assert api.get(f"{API}/queue", params={"reason": "no_such"}).json() == {"total": 0, "studies": []}
    study = api.get(f"{API}/studies/{site.held}").json()
    assert (study["state"], study["round"], study["reason"]) == ("held", 1, "not_assessed")
    assert {one["name"] for one in study["objects"]} == {"00001", "00002"}
    verdicts = api.get(f"{API}/studies/{site.held}/findings").json()["verdicts"]
    assert {"check", "outcome", "assessed"} == set(verdicts[0])
    assert found_in(json.dumps([queue, study, verdicts]).encode()) == []
    header = api.get(f"{API}/studies/{site.held}/objects/00001/header").json()
    name = next(line for line in header if line["name"] == "PatientName")
    assert name["before"] == str(site.datasets[0].PatientName) != name["after"]
    picture = api.get(f"{API}/studies/{site.held}/objects/00001/frames/0/after")
    assert picture.content.startswith(b"\x89PNG")
    assert picture.headers["cache-control"] == "no-store"
    views = [(line["shown"], line["actor"]) for line in site.events("viewed")]
    assert views == [("header", "anna@review"), ("after", "anna@review")]
    answer = api.post(f"{API}/studies/{site.held}/decisions", json={**BODIES["decide"], "round": study["round"]})
    assert answer.status_code == 202
    where = answer.json()["outcome_at"]
    assert api.get(where).json() == {"state": "waiting", "says": ""}
    site.house.settle()
    assert api.get(where).json() == {"state": "done", "says": "done"}
    assert site.job().state == "rejected"
    (used,) = site.events("token_used")
    told = (used["token"], used["operation"], used["key"], used["actor"], used["role"])
    assert told == ("script", "decide", site.held, "anna@review", "reviewer")
    assert site.events("rejected")[0]["actor"] == "anna@review"
    assert api.get(f"{API}/studies/{site.held}").json()["objects"] == []
    assert api.get(f"{API}/studies/{site.held}/objects/00001/header").status_code == 409


def test_a_viewer_is_told_of_no_object(site: Site) -> None:
    api = client(site, token_for(site, Role.VIEWER))
    assert api.get(f"{API}/studies/{site.held}").json()["objects"] == []


def test_a_round_that_is_past_a_box_beyond_the_picture_and_a_reason_on_two_lines_are_refused(site: Site) -> None:
    api = client(site, token_for(site, Role.REVIEWER))
    redact = {"verb": "redact", "round": 1, "reason": "writing at the top", "object": "00001"}
    for body, says in (
        ({**BODIES["decide"], "round": 7}, "changed"),
        ({**BODIES["decide"], "reason": "two\nlines"}, "one line"),
        ({**redact, "box": [0, 0, 9999, 9999]}, "picture"),
        ({**redact, "box": [5, 5, 5, 9]}, "box"),
        ({**redact, "object": "00099", "box": [0, 0, 2, 2]}, "object"),
    ):
        answer = api.post(f"{API}/studies/{site.held}/decisions", json=body)
        assert answer.status_code == 409, body
        assert says in answer.json()["detail"]
    assert site.house.parts.database.intents_of(site.held) == []


def test_only_who_may_choose_a_policy_reruns_under_another(site: Site) -> None:
    digest = site.house.parts.policies.current.policies["research-basic"].digest
    body = {"verb": "rerun", "round": 1, "reason": "under the policy of now", "policy_digest": digest}
    for role, status in ((Role.REVIEWER, 403), (Role.PRIVACY_OFFICER, 202)):
        answer = client(site, token_for(site, role)).post(f"{API}/studies/{site.held}/decisions", json=body)
        assert answer.status_code == status


def test_a_page_and_a_token_of_one_account_are_one_person(home: Home, policies: Path) -> None:
    edit(policies, "research-basic", lambda body: body.update(review={"two_person": True}))

    with house(home, policies) as made, site_over(made, datasets=study(1)) as site:
        browser = site.signed_in(name="anna")
        assert site.decide(browser, "release") == FIRST
        approve = {"verb": "approve", "round": 1, "reason": "nothing to be seen"}
        said = []
        for account in ("anna", "ben"):
            api = client(site, token_for(site, Role.REVIEWER, account=account))
            answer = api.post(f"{API}/studies/{site.held}/decisions", json=approve)
            site.house.settle()
            said.append(api.get(answer.json()["outcome_at"]).json())
        assert said == [{"state": "not done", "says": SAME_PERSON}, {"state": "done", "says": "done"}]
        assert site.job().state == "sent"


@pytest.fixture
def collected(home: Home, policies: Path) -> Iterator[Site]:
    """A release of two people that collects."""
    with house(home, judged(policies, {"record_isolation": {"k": 2}}, people=2)) as made:
        for person in range(2):
            made.deliver(film(person))
        yield site_of(made, "none")


def test_a_release_is_closed_read_and_recalled(collected: Site) -> None:
    site = collected
    api = client(site, token_for(site, Role.PRIVACY_OFFICER))
    assert [(one["name"], one["state"]) for one in api.get(f"{API}/releases").json()] == [("research-basic-1", "open")]
    for verb, state in (("close", "sent"), ("recall", "recalled")):
        answer = api.post(f"{API}/releases/research-basic-1/{verb}", json=BODIES[verb])
        assert answer.status_code == 202
        site.house.settle()
        assert api.get(answer.json()["outcome_at"]).json()["state"] == "done"
        found = api.get(f"{API}/releases/research-basic-1").json()
        assert found["release"]["state"] == state
    assert {one["verdict"] for one in found["release"]["scores"]} == {"keeps to it"}
    assert found["not_assessed"]
    used = [(line["operation"], line["key"]) for line in site.events("token_used")]
    assert used == [("close", "research-basic-1"), ("recall", "research-basic-1")]
    assert api.get(f"{API}/releases/research-basic-1/report.pdf").content.startswith(b"%PDF-")
    assert "no claim of anonymity" in api.get(f"{API}/releases/research-basic-1/report.html").text
    for verb in ("close", "recall"):
        assert api.post(f"{API}/releases/research-basic-9/{verb}", json=BODIES[verb]).status_code == 404


def test_what_somebody_typed_into_an_address_stays_out_of_the_ledger(site: Site) -> None:
    api = client(site, token_for(site, Role.PRIVACY_OFFICER))
    assert api.post(f"{API}/studies/{CANARY}/decisions", json=BODIES["decide"]).status_code == 404
    for verb in ("close", "recall"):
        assert api.post(f"{API}/releases/{CANARY}/{verb}", json=BODIES[verb]).status_code == 404
    used = [(line["operation"], line["key"]) for line in site.events("token_used")]
    assert used == [("decide", ""), ("close", ""), ("recall", "")]
    assert CANARY not in site.house.parts.home.ledger.read_text()


def test_policies_are_read_and_compared(site: Site) -> None:
    api = client(site, token_for(site, Role.VIEWER))
    digest = site.job().policy_digest
    assert "research-basic" in {one["name"] for one in api.get(f"{API}/policies").json()}
    (version,) = api.get(f"{API}/policies/versions").json()
    assert (version["digest"], version["in_force"]) == (digest, True)
    assert api.get(f"{API}/policies/difference", params={"old": digest, "new": digest}).json() == []
    assert api.get(f"{API}/policies/difference", params={"old": digest, "new": "0" * 64}).status_code == 409


def test_the_ledger_is_searched_by_event_who_and_day(site: Site) -> None:
    api = client(site, token_for(site, Role.PRIVACY_OFFICER, account="paula"))
    site.decide(site.signed_in(name="anna"), "reject")

    def events(**body: Any) -> list[str]:
        answer = api.post(f"{API}/audit/search", json=body)
        assert answer.status_code == 200
        return [line["event"] for line in answer.json()]

    assert events(event="reject") == ["rejected"]
    assert set(events(who="anna")) == {"rejected", "signed in"}
    assert events(who="anna", event="signed") == ["signed in"]
    assert events(since="2200-01-01") == events(until="1999-12-31") == events(pseudonym="NOBODY") == []
    assert len(events(since="2000-01-01", until="2199-12-31", limit=2)) == 2
    assert len(site.events("audit_read")) == 7


# -- what it tells when something is wrong ----------------------------------------------------------------------------


def test_a_problem_repeats_nothing_of_what_was_sent(site: Site) -> None:
    api = client(site, token_for(site, Role.PRIVACY_OFFICER))
    decisions, search = f"{API}/studies/{site.held}/decisions", f"{API}/audit/search"
    whole = {"verb": "reject", "round": 1, "reason": "looked at it"}
    answers = [
        api.get(f"{API}/studies/{CANARY}"),
        api.get(f"{API}/{CANARY}"),
        api.get(f"{API}/queue?{CANARY}=1"),
        api.get(f"{API}/queue?limit={CANARY}"),
        api.get(f"{API}/policies/difference?old={CANARY}&new=1"),
        api.get(f"{API}/releases/{CANARY}"),
        api.delete(f"{API}/queue"),
        api.get(f"{API}/studies/{site.held}/objects/{CANARY}/header"),
        api.get(f"{API}/studies/{site.held}/objects/00001/frames/0/{CANARY}"),
        api.post(decisions, content=CANARY, headers={"Content-Type": "application/json"}),
        api.post(decisions, content=CANARY, headers={"Content-Type": "text/plain"}),
        *(api.post(decisions, json={**whole, field: CANARY}) for field in ("verb", "round", CANARY)),
        api.post(decisions, json={**whole, "reason": f"\x00{CANARY}"}),
        api.post(decisions, json={**whole, "reason": CANARY * 60}),
        api.post(
            decisions, json={"verb": "redact", "object": CANARY, "box": [CANARY], "round": 1, "reason": "why not"}
        ),
        api.post(search, json={"since": CANARY}),
        api.post(search, json=[CANARY]),
        api.get(f"{API}/queue", headers={"Host": f"{CANARY}.example"}),
        api.post(search, content=CANARY.encode() * 4000),
    ]
    for answer in answers:
        assert 400 <= answer.status_code < 500, answer.request.url
        assert answer.headers["content-type"] == "application/problem+json", answer.request.url
        assert answer.json()["status"] == answer.status_code
        assert CANARY not in answer.text + str(answer.headers), answer.text
    places = [one["at"] for answer in answers for one in answer.json().get("errors", ())]
    assert {"query/limit", "query/old", "body/reject/round", "body/since"} <= set(places)


def test_what_the_gateway_fails_at_is_told_without_a_word_of_why(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_given: object) -> None:
        raise RuntimeError(CANARY)

    monkeypatch.setattr(type(site.pages.office.desk), "queue", broken)
    headers = {"Authorization": f"Bearer {token_for(site, Role.VIEWER)}"}
    api = TestClient(site.pages.app, base_url=ORIGIN, headers=headers, raise_server_exceptions=False)
    answer = api.get(f"{API}/queue")
    assert (answer.status_code, answer.headers["content-type"]) == (500, "application/problem+json")
    assert CANARY not in answer.text


def test_no_decision_is_written_down_where_the_ledger_cannot_have_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gateway.ledger import Ledger

    api = client(site, token_for(site, Role.REVIEWER))

    def broken(*_given: object, **_more: object) -> bool:
        raise EnvironmentFault("the ledger is damaged")

    monkeypatch.setattr(Ledger, "append", broken)
    assert api.post(f"{API}/studies/{site.held}/decisions", json=BODIES["decide"]).status_code == 503
    assert site.house.parts.database.intents_of(site.held) == []


# -- the document -----------------------------------------------------------------------------------------------------


def test_the_document_has_every_call_with_its_scope_and_nothing_else(site: Site) -> None:
    api = client(site, token_for(site, Role.VIEWER))
    told = api.get(f"{API}/openapi.json").json()
    assert told == json.loads(json.dumps(document(OPERATIONS)))
    listed = {
        (method.upper(), path): call["security"][0]["token"]
        for path, calls in told["paths"].items()
        for method, call in calls.items()
    }
    assert listed == {
        (one.method, re.sub(r":\w+\}", "}", one.path)): [str(one.scope)] if one.scope else [] for one in OPERATIONS
    }
    assert all(one.handler.__doc__ for one in OPERATIONS)
    assert [one.ident for one in OPERATIONS if one.scope is None] == ["description"]


def test_only_get_and_post_and_whatever_writes_is_a_post_with_a_scope_that_says_so() -> None:
    writing = {one.ident for one in OPERATIONS if one.scope is not None and one.scope.writes}
    assert writing == {"decide", "close", "recall"}
    assert {one.method for one in OPERATIONS if one.ident in writing} == {"POST"}
    assert {one.method for one in OPERATIONS} == {"GET", "POST"}
