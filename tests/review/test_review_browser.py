"""The page in a real Chromium: by keyboard alone, a box drawn with the mouse, narrow, accessible, empty at the end."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from houses import House, study
from PIL import Image
from review_site import PASSWORD, Site, site_over
from sqlalchemy import insert

from gateway.database.tables import releases
from gateway.review import ReviewPages, Role
from gateway.study import State
from gateway.web import WebServer

pytestmark = [pytest.mark.peer, pytest.mark.xdist_group("chromium")]
ROWS, COLUMNS = 96, 128
WAIT_MS = 30_000


@pytest.fixture
def series() -> list[Any]:
    """Three slices of 16 bits with signed values, each with a bright line at the top left."""
    datasets = study(3)
    grid = np.add.outer(np.arange(ROWS), np.arange(COLUMNS)).astype("<i2") * 7 - 900
    for number, ds in enumerate(datasets):
        values = grid + 10 * number
        values[6:14, 8:60] = 3000
        ds.Rows, ds.Columns, ds.BitsStored, ds.HighBit, ds.PixelRepresentation = ROWS, COLUMNS, 16, 15, 1
        ds.PixelData = values.tobytes()
    return datasets


@pytest.fixture
def served(gateway_house: House, series: list[Any]) -> Iterator[tuple[Site, str]]:
    with site_over(gateway_house, datasets=series) as site:
        site.accounts.put("anna", Role.REVIEWER, PASSWORD)
        server = WebServer("127.0.0.1", 0, "the review page", "REVIEW")
        server.bind()
        origin = f"http://127.0.0.1:{server.port}"
        server.start(ReviewPages(site.pages.office.desk, site.pages.doors, [origin]).app)
        try:
            yield site, origin
        finally:
            server.stop()


@pytest.fixture
def page(chromium: Any, served: tuple[Site, str]) -> Iterator[Any]:
    """A tab that is signed in, by keyboard. Whatever its console complains of fails the test."""
    context = chromium.new_context(viewport={"width": 1400, "height": 950}, base_url=served[1])
    context.set_default_timeout(WAIT_MS)
    tab = context.new_page()
    complaints: list[str] = []
    tab.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    tab.on("pageerror", lambda error: complaints.append(str(error)))
    tab.goto("/login")
    tab.wait_for_selector("[name=name]:focus")  # a busy browser may take its time to give it
    tab.keyboard.type("anna")
    tab.keyboard.press("Tab")
    tab.keyboard.type(PASSWORD)
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/queue")
    yield tab
    context.close()
    assert [text for text in complaints if "401" not in text] == []


def open_study(page: Any, site: Site) -> None:
    page.goto(f"/study/{site.held}")
    page.wait_for_selector("#viewer[data-shown]")


def carried_out(page: Any, site: Site) -> None:
    """Let the engine carry out what the page wrote down, and wait until the page says so."""
    page.wait_for_url("**asked=*")
    site.house.settle()
    page.wait_for_selector("#outcome.good")


def test_a_study_is_opened_looked_through_and_approved_by_keyboard_alone(
    page: Any, served: tuple[Site, str], target: Path
) -> None:
    site, _ = served
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("#viewer[data-shown]")
    assert page.title() == f"Study {site.held[:12]}"
    seen = [page.get_attribute("#viewer", "data-shown")]
    for key in ("j", "ArrowDown"):
        page.keyboard.press(key)
        page.wait_for_function("before => document.getElementById('viewer').dataset.shown !== before", arg=seen[-1])
        seen.append(page.get_attribute("#viewer", "data-shown"))
    assert len(set(seen)) == 3
    page.keyboard.press("k")
    page.keyboard.press("a")
    assert page.evaluate("document.activeElement.id") == "reason"
    page.keyboard.type("nothing to be seen on any slice")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    carried_out(page, site)
    assert site.job().state == State.SENT
    assert len(list(target.rglob("*.dcm"))) == 3
    views = {(line["instance"], line["shown"]) for line in site.events("viewed")}
    assert views == {(f"0000{i}", side) for i in (1, 2, 3) for side in ("before", "after")}


def test_a_study_without_pictures_is_read_by_keyboard_too(page: Any, served: tuple[Site, str]) -> None:
    (ds,) = study(patient="")
    del ds.PixelData
    key = served[0].house.deliver(ds)
    page.goto(f"/study/{key}.1")
    page.wait_for_selector("#object")
    page.keyboard.press("h")
    page.wait_for_selector("#header[data-object]")


def test_approving_says_what_was_not_looked_at(page: Any, served: tuple[Site, str]) -> None:
    open_study(page, served[0])
    page.keyboard.press("a")
    assert page.inner_text("#seen") == "You have not looked at 2 of 3 frames."


def test_a_box_drawn_with_the_mouse_is_redacted_on_every_slice(page: Any, served: tuple[Site, str]) -> None:
    site, _ = served
    open_study(page, site)
    page.click("[data-do=draw]")
    place = page.locator("#before").bounding_box()
    side = place["width"]  # square, with the picture in its middle
    scale, top = side / COLUMNS, (side - ROWS * side / COLUMNS) / 2

    def at(row: float, column: float) -> tuple[float, float]:
        return place["x"] + column * scale, place["y"] + top + row * scale

    page.mouse.move(*at(4.5, 6.5))
    page.mouse.down()
    page.mouse.move(*at(10, 30))
    page.mouse.move(*at(15.5, 62.5))
    page.mouse.up()
    drawn = [int(page.input_value(f"#box-{name}")) for name in ("top", "left", "bottom", "right")]
    assert np.abs(np.subtract(drawn, [4, 6, 16, 63])).max() <= 1
    assert page.is_checked("input[value=redact]")
    page.fill("#reason", "there is writing at the top left")
    page.click("#decide > button")
    carried_out(page, site)
    assert site.job().round == 2
    top, left, bottom, right = drawn
    for path in sorted((site.house.parts.home.work / site.held).glob("*.dcm")):
        values = pydicom.dcmread(path).pixel_array
        assert len(np.unique(values[top:bottom, left:right])) == 1
        assert values.max() < 3000
    open_study(page, site)
    assert "% of the pixels differ" in page.inner_text("#viewer-says")


def test_a_box_is_drawn_by_keyboard_alone(page: Any, served: tuple[Site, str]) -> None:
    site, _ = served
    open_study(page, site)
    page.keyboard.press("b")
    first = [int(page.input_value(f"#box-{name}")) for name in ("top", "left", "bottom", "right")]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowRight")
    top, left, bottom, right = first
    moved = [int(page.input_value(f"#box-{name}")) for name in ("top", "left", "bottom", "right")]
    assert moved == [top - 1, left - 1, bottom, right]
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "reason"
    page.keyboard.type("there is writing in the middle")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    carried_out(page, site)
    (line,) = site.events("redacted")
    assert line["box"] == moved


def test_the_page_reads_all_16_bits_of_a_frame(page: Any, served: tuple[Site, str]) -> None:
    site, origin = served
    open_study(page, site)
    address = f"/study/{site.held}/frame/00001/0/before"
    told = page.evaluate(
        """async (address) => {
            const { decodePng } = await import("/static/png.js");
            const answer = await fetch(address);
            const { values, width, height } = await decodePng(await answer.arrayBuffer());
            const low = Number(answer.headers.get("x-low"));
            return { width, height, values: Array.from(values, (value) => value + low) };
        }""",
        address,
    )
    stored = {
        tuple(np.frombuffer(ds.PixelData, "<i2").tolist()) for ds in site.datasets
    }  # which of them is 00001 is the gateway's choice
    assert (told["width"], told["height"]) == (COLUMNS, ROWS)
    assert tuple(map(int, told["values"])) in stored
    assert origin


@pytest.mark.parametrize("filtered", range(5))
def test_every_filter_of_png_is_undone(page: Any, filtered: int) -> None:
    """An encoder may choose any of the five filters for a line (PNG specification, section 9)."""
    values = np.random.default_rng(filtered).integers(0, 65536, (6, 7), np.uint16)
    raw = b"".join(bytes([filtered]) + line(values, row, filtered) for row in range(6))
    png = png_of(raw, 7, 6)
    np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(png))), values)  # an independent decoder agrees
    told = page.evaluate(
        """async (bytes) => {
            const { decodePng } = await import("/static/png.js");
            return Array.from((await decodePng(new Uint8Array(bytes).buffer)).values);
        }""",
        list(png),
    )
    assert told == values.ravel().tolist()


def line(values: Any, row: int, kind: int) -> bytes:
    """One filtered line of 16-bit samples."""
    rows = values.astype(">u2").view(np.uint8).reshape(len(values), -1).astype(int)
    now = rows[row]
    above = rows[row - 1] if row else np.zeros_like(now)
    left, corner = (np.concatenate([[0, 0], one[:-2]]) for one in (now, above))
    guess = left + above - corner
    distances = np.abs([guess - left, guess - above, guess - corner])
    nearest = np.choose(distances.argmin(0), [left, above, corner])
    guesses = [np.zeros_like(now), left, above, (left + above) // 2, nearest]
    return bytes(((now - guesses[kind]) % 256).astype(np.uint8))


def png_of(raw: bytes, width: int, height: int) -> bytes:
    import struct
    import zlib

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 16, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def test_the_header_comes_when_it_is_asked_for_and_a_finding_points_into_it(
    page: Any, served: tuple[Site, str]
) -> None:
    site, _ = served
    open_study(page, site)
    assert page.locator("#header[data-object]").count() == 0
    page.keyboard.press("h")
    page.wait_for_selector("#header[data-object]")
    assert "ZZSYNTH^LEAKTEST" in page.inner_text("#header")
    kept = page.locator('tr[data-path="00280010"]')
    assert not kept.is_visible()
    page.uncheck("#only-changes")
    assert kept.is_visible()


def test_a_session_that_ends_leaves_nothing_on_the_screen(page: Any, served: tuple[Site, str]) -> None:
    site, _ = served
    open_study(page, site)
    site.accounts.remove("anna")
    page.keyboard.press("h")
    page.wait_for_url("**/login")
    page.go_back()
    page.wait_for_url("**/login")
    assert site.held not in page.content()


def test_nothing_is_left_in_the_browser(page: Any, served: tuple[Site, str]) -> None:
    open_study(page, served[0])
    left = page.evaluate("""async () => [localStorage.length, sessionStorage.length, (await caches.keys()).length]""")
    assert left == [0, 0, 0]
    assert page.evaluate("document.cookie") == ""


def test_on_a_narrow_screen_nothing_hangs_over_the_edge(page: Any, served: tuple[Site, str]) -> None:
    page.set_viewport_size({"width": 390, "height": 800})
    for where in ("/queue", f"/study/{served[0].held}", "/policies"):
        page.goto(where)
        page.wait_for_load_state("networkidle")
        page.wait_for_function(
            "() => document.documentElement.scrollWidth <= innerWidth + 1"
        )  # once it is laid out anew
    assert page.evaluate("document.querySelector('.top nav').clientWidth") > 300  # a line of links, no column
    page.goto("/policies/preview")
    page.evaluate("document.querySelector('select option').textContent = 'a long name '.repeat(9)")
    page.wait_for_function("() => document.documentElement.scrollWidth <= innerWidth + 1")


def released(site: Site) -> None:
    """A release with scores, so that its page has charts and tables."""
    score = {"check": "linkability", "scope": "release", "limit": 0.1, "card": "card-1", "attack": "same_scan"}
    score |= {"metric": "cosine", "estimate": 0.08, "upper": 0.12, "people": 40, "note": ""}
    values = {"policy": "research-basic", "number": 1, "policy_digest": site.job().policy_digest, "project": "demo"}
    values |= {
        "destination": "research-archive",
        "state": "blocked",
        "opened_at": 1.0,
        "checked_at": 1.0,
        "updated_at": 2.0,
    }
    with site.house.parts.database.transaction() as connection:
        connection.execute(insert(releases).values(**values, reason="linkability", scores=json.dumps([score])))


def test_releases_and_previews_fit_a_narrow_screen_and_have_no_fault_in_accessibility(
    page: Any, served: tuple[Site, str]
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")
    released(served[0])
    for where in ("/releases", "/releases/research-basic-1", "/policies/preview"):
        page.goto(where)
        if where.endswith("preview"):
            page.get_by_role("button", name="Preview").click()
            page.wait_for_selector("details.preview")
        for width in (1400, 390):
            page.set_viewport_size({"width": width, "height": 800})
            page.wait_for_function(
                "() => document.documentElement.scrollWidth <= innerWidth + 1"
            )  # once it is laid out anew
        faults = [(one["id"], one["nodes"][0]["html"][:200]) for one in axe.Axe().run(page).response["violations"]]
        assert faults == [], where
    page.goto("/releases")
    with page.expect_download() as found:
        page.get_by_role("link", name="Report of research-basic-1 as PDF").click()
    assert found.value.suggested_filename == "research-basic-1.pdf"
    assert Path(found.value.path()).read_bytes().startswith(b"%PDF-")


def test_axe_finds_no_fault_in_accessibility_and_the_ledger_fits_a_narrow_screen(
    page: Any, served: tuple[Site, str]
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install axe-playwright-python")
    served[0].accounts.put("paula", Role.PRIVACY_OFFICER, PASSWORD)
    for where in ("/queue", f"/study/{served[0].held}", "/policies", "/login", "/audit"):
        if where == "/login":
            page.click("text=Sign out")
            page.wait_for_url("**/login")
        elif where == "/audit":
            page.fill("[name=name]", "paula")
            page.fill("[name=password]", PASSWORD)
            page.keyboard.press("Enter")
            page.wait_for_url("**/queue")
            page.set_viewport_size({"width": 390, "height": 800})
            page.goto(where)
            page.fill("[name=who]", "anna")
            page.keyboard.press("Enter")
            page.wait_for_load_state("networkidle")
            assert "anna@review" in page.inner_text("table")
            assert "paula@review" not in page.inner_text("table")
            page.wait_for_function("() => document.documentElement.scrollWidth <= innerWidth + 1")
        else:
            page.goto(where)
        page.wait_for_load_state("networkidle")
        found = axe.Axe().run(page)
        faults = [(one["id"], one["nodes"][0]["html"][:200]) for one in found.response["violations"]]
        assert faults == [], where
