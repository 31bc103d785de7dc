"""The review page over a house, and browsers that are signed in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from houses import House, Inline
from starlette.testclient import TestClient

from gateway.app.review.desk import ReviewDesk
from gateway.app.review.page import doors_of
from gateway.database import JobRow
from gateway.review import Accounts, ReviewPages, Role

ORIGIN = "http://testserver"
PASSWORD = "a quite long passphrase"
FORM = {"Origin": ORIGIN, "Accept": "text/html"}


@dataclass
class Site:
    """The pages over a house. `held` is the key of a held job of two objects."""

    house: House
    pages: ReviewPages
    accounts: Accounts
    held: str
    datasets: list[Any] = field(default_factory=list)

    def browser(self) -> TestClient:
        return TestClient(self.pages.app, base_url=ORIGIN, headers=FORM, follow_redirects=False)

    def signed_in(self, role: Role = Role.REVIEWER, name: str = "") -> TestClient:
        name = name or f"some-{role}"
        if name not in self.accounts.all():
            self.accounts.put(name, role, PASSWORD)
        browser = self.browser()
        answer = sign_in(browser, name, PASSWORD)
        assert (answer.status_code, answer.headers["location"]) == (303, "/queue")
        return browser

    def job(self) -> JobRow:
        job = self.house.parts.database.job(self.held)
        assert job is not None
        return job

    def decide(self, browser: TestClient, verb: str, *, reason: str = "looked at it", **more: object) -> Any:
        """Send the form of the study page as it is now, and let the engine carry it out. Gives the outcome."""
        page = browser.get(f"/study/{self.held}")
        form = {"csrf": csrf_of(page.text), "round": self.job().round, "verb": verb, "reason": reason, **more}
        answer = browser.post(f"/study/{self.held}/decide", data=form)
        if answer.status_code != 303:
            return answer
        self.house.settle()
        serial = int(answer.headers["location"].rpartition("=")[2])
        intent = self.house.parts.database.intent(serial)
        assert intent is not None
        return intent.outcome

    def events(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.house.events() if line["event"] == event]


def csrf_of(page: str) -> str:
    found = re.search(r'name="csrf" value="([^"]+)"', page)
    assert found is not None, page[:2000]
    return found[1]


def sign_in(browser: TestClient, name: str, password: str) -> Any:
    page = browser.get("/login")
    proof = re.search(r'name="proof" value="([^"]+)"', page.text)
    assert proof is not None
    return browser.post("/login", data={"proof": proof[1], "name": name, "password": password})


@contextmanager
def site_over(made: House, *, datasets: list[Any]) -> Iterator[Site]:
    key = made.deliver(*datasets)
    yield site_of(made, made.job(key).job_key, datasets)


def site_of(made: House, held: str, datasets: list[Any] | None = None) -> Site:
    desk = ReviewDesk(made.parts, Inline())  # type: ignore[arg-type]
    doors = doors_of(made.parts.home, made.parts.settings)
    return Site(made, ReviewPages(desk, doors, [ORIGIN]), doors.accounts, held, datasets or [])
