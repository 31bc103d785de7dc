"""Signing in by a provider on another site, in a real Chromium: cookies of the way there and back are its to keep."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from houses import house
from openid_provider import CLIENT, SECRET, openid_provider
from review_site import site_of

from gateway.review import ReviewPages
from gateway.settings import Home
from gateway.web import WebServer

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("chromium")]


def test_a_browser_goes_to_another_site_and_comes_back_signed_in(
    chromium: Any, home: Home, policies: Path, tmp_path: Path
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")
    secret = tmp_path / "client.secret"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    with openid_provider() as openid:
        openid.issuer = openid.issuer.replace("127.0.0.1", "localhost")  # another site than that of the page
        settings = {
            "review_oidc_issuer": openid.issuer,
            "review_oidc_client_id": CLIENT,
            "review_oidc_secret_file": secret,
            "review_oidc_roles": "reviewer=deid-reviewers",
        }
        with house(home, policies, **settings) as made:
            site = site_of(made, "none")
            server = WebServer("127.0.0.1", 0, "the review page", "REVIEW")
            server.bind()
            origin = f"http://127.0.0.1:{server.port}"
            server.start(ReviewPages(site.pages.office.desk, site.pages.doors, [origin]).app)
            tab = chromium.new_page(base_url=origin)
            complaints: list[str] = []
            tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
            try:
                tab.goto("/login")
                assert [one["id"] for one in axe.Axe().run(tab).response["violations"]] == []
                tab.keyboard.press("Tab")
                tab.keyboard.press("Tab")
                tab.keyboard.press("Enter")  # past the link to the content: by keyboard alone
                tab.wait_for_url("**/queue")
                assert "anna.b, reviewer" in tab.inner_text(".who")
                cookies = {cookie["name"]: cookie["sameSite"] for cookie in tab.context.cookies(origin)}
                assert cookies["review"] == "Strict"
                assert "oidc" not in cookies
                tab.click("text=Sign out")
                tab.wait_for_selector("text=sign out there as well")
                tab.goto("/queue")
                tab.wait_for_url("**/login")
            finally:
                tab.close()
                server.stop()
            assert complaints == []
