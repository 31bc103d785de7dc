"""Take the README's pictures of the review page: docs/queue.png, docs/study.png and docs/releases.png.

    .venv/bin/python tools/screenshots.py [FOLDER]

A home is made of synthetic chest films of people who do not exist, with planted names, under a key and a clock that are
always the same, and goes through the real route, header, pixel stages, gate and release workflow; scores are those of
the gate. The first release is left untouched, so that it is blocked; in those after it noise stands for an anonymiser.
Needs Chromium and playwright, and takes minutes.
"""

from __future__ import annotations

import hashlib
import io
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
from PIL import Image, ImageDraw, ImageFont
from pydicom.uid import UID

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # the house and its people are those of the tests

from houses import House, edit, house, to_folder  # noqa: E402
from playwright.sync_api import Page, sync_playwright  # noqa: E402
from releasing import LINKABILITY, film, judged  # noqa: E402
from review_site import PASSWORD, site_of  # noqa: E402

from gateway.app import candidates  # noqa: E402
from gateway.review import ReviewPages, Role  # noqa: E402
from gateway.settings import Home  # noqa: E402
from gateway.web import WebServer  # noqa: E402
from models.cohorts.chest import synthetic_chest  # noqa: E402

BEGINS = 1_796_018_400.0  # UTC seconds
HOUR_S, DAY_S = 3600.0, 86400.0
PEOPLE, RELEASES = 50, 4
SIDE = 512
WIDTH, HEIGHT = 1280, 860
MOST_BYTES = 200_000
PICTURES = "PICTURES"  # the called AE title of films that are looked at one by one


class Clock:
    """Time as the gateway sees it: it passes only when it is told to."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def uid(*words: object) -> UID:
    """A UID of these words, always the same."""
    return UID(f"2.25.{int.from_bytes(hashlib.sha256('/'.join(map(str, words)).encode()).digest()[:15], 'big')}")


def named(ds: pydicom.FileDataset, *words: object, **changes: object) -> pydicom.FileDataset:
    """The data set under UIDs that do not change from run to run, and with other values."""
    ds.StudyInstanceUID, ds.SeriesInstanceUID = uid("study", *words), uid("series", *words)
    ds.FrameOfReferenceUID = uid("frame", *words)
    ds.SOPInstanceUID = ds.file_meta.MediaStorageSOPInstanceUID = uid("instance", *words)
    for word, value in changes.items():
        setattr(ds, word, value)
    return ds


def chest(person: int, **changes: object) -> pydicom.FileDataset:
    """A film with the name of its person in the picture, as old machines write it."""
    picture = synthetic_chest(person + 1, 1, seed=11, size=SIDE).scans[person].load()
    words = Image.new("L", (SIDE, SIDE))
    draw = ImageDraw.Draw(words)
    for place, text, size in (
        ((14, 10), "ZZSYNTH^LEAKTEST", 24),
        ((14, 42), "ID LEAK0001  31.01.1950", 20),
        ((430, 474), "PA  L", 24),
    ):
        draw.text(place, text, fill=255, font=ImageFont.load_default(size))
    values = np.where(np.asarray(words) > 127, 4095, np.clip(picture, 0, 1) * 4000).astype("<u2")
    return named(film(person), "chest", person, Rows=SIDE, Columns=SIDE, PixelData=values.tobytes(), **changes)


def noise_instead(source: Path, target: Path, *rest: Any) -> Any:
    """In place of an anonymiser: nothing of the person is left in the picture."""
    step = scrub_instance(source, target, *rest)
    ds = pydicom.dcmread(target)
    seed = int.from_bytes(ds.SOPInstanceUID.encode()[-8:], "big")
    ds.PixelData = np.random.default_rng(seed).integers(0, 4096, (ds.Rows, ds.Columns), dtype=np.uint16).tobytes()
    ds.save_as(target, enforce_file_format=True)
    return step


scrub_instance = candidates.scrub_instance


def policies(root: Path) -> Path:
    """Releases of films over their linkability; single films looked at by two people."""
    folder = judged(to_folder(root / "policies", root / "archive"), LINKABILITY, people=PEOPLE)

    def pictures(body: dict[str, Any]) -> None:
        body["review"] = {"two_person": True}
        body["gate"]["not_assessed"] = []

    def routed(body: dict[str, Any]) -> None:
        one = {"project": "chest-films", "policy": "research-pictures", "destination": "research-archive"}
        two = {"project": "chest-cohort", "policy": "research-basic", "destination": "research-archive"}
        body["routes"] = [
            {"name": "pictures", "when": {"called_ae": PICTURES}, "targets": [one]},
            {"name": "cohort", "when": {"called_ae": "DEID"}, "targets": [two]},
        ]

    edit(folder, "research-pictures", pictures)
    edit(folder, "routes", routed)
    return folder


def releases(made: House, clock: Clock) -> None:
    """One that is blocked and those that are sent, a week apart, and one that collects."""
    for number in range(1, RELEASES + 1):
        candidates.scrub_instance = scrub_instance if number == 1 else noise_instead
        last = number == RELEASES
        for person in range(100 * number, 100 * number + (12 if last else PEOPLE)):
            made.deliver(named(film(person), "film", person))
        clock.now += DAY_S
        if not last:
            made.decide("close", f"research-basic-{number}", reason="the week is over")
            clock.now += 6 * DAY_S
    candidates.scrub_instance = scrub_instance
    for job in made.parts.database.jobs_in("held"):  # of the blocked release: the queue is for what comes now
        made.decide("reject", job.job_key, reason="the whole release leaks")


def waiting(made: House, clock: Clock) -> str:
    """Studies that are held, for several reasons. The key of the one to look at."""
    made.deliver(named(film(900), "nobody", PatientID=""), called=PICTURES)
    clock.now += 9 * HOUR_S
    made.deliver(named(film(901), "elsewhere"), called="CT9")
    clock.now += 5 * HOUR_S
    made.deliver(named(film(902), "odd", Modality="ES"), called=PICTURES)
    clock.now += 3 * HOUR_S
    key = made.deliver(chest(3), called=PICTURES)
    clock.now += 2 * HOUR_S
    made.deliver(chest(4), called=PICTURES)
    clock.now += HOUR_S / 2
    return made.job(key).job_key


@contextmanager
def page_over(made: House, names: tuple[str, ...]) -> Iterator[tuple[Page, str]]:
    """A tab where the last of these privacy officers is signed in; the others have accounts."""
    site = site_of(made, "")
    for name in names:
        site.accounts.put(name, Role.PRIVACY_OFFICER, PASSWORD)
    server = WebServer("127.0.0.1", 0, "the review page", "REVIEW")
    server.bind()
    origin = f"http://127.0.0.1:{server.port}"
    server.start(ReviewPages(site.pages.office.desk, site.pages.doors, [origin]).app)
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, base_url=origin, color_scheme="light")
        tab.set_default_timeout(120_000)
        tab.goto("/login")
        tab.fill("[name=name]", names[-1])
        tab.fill("[name=password]", PASSWORD)
        tab.keyboard.press("Enter")
        tab.wait_for_url("**/queue")
        yield tab, origin
        browser.close()
    server.stop()


def keep(picture: bytes, path: Path) -> None:
    """As a PNG of 256 colours. Raises ValueError for one that is too large for a repository."""
    image = Image.open(io.BytesIO(picture)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    image.save(path, optimize=True)
    if path.stat().st_size > MOST_BYTES:
        raise ValueError(f"{path} has {path.stat().st_size} bytes, more than {MOST_BYTES}")


def main(folder: Path) -> None:
    clock = Clock(BEGINS)
    real, time.time = time.time, clock
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory() as place:
            root = Path(place)
            home = Home(root / "home")
            home.create(generate_key=False)
            home.master_key.write_text(hashlib.sha256(b"a key of nobody").hexdigest() + "\n")
            home.master_key.chmod(0o600)
            with house(home, policies(root)) as made:
                releases(made, clock)
                study = waiting(made, clock)
                with page_over(made, ("ben", "anna")) as (tab, _):
                    keep(tab.screenshot(clip={"x": 0, "y": 0, "width": WIDTH, "height": 470}), folder / "queue.png")
                    tab.goto(f"/study/{study}")
                    tab.wait_for_selector("#viewer[data-shown]")
                    tab.keyboard.press("h")
                    tab.wait_for_selector("#header[data-object]")
                    tab.evaluate("document.activeElement.blur(); scrollTo(0, 0)")
                    tab.wait_for_timeout(500)
                    keep(tab.screenshot(), folder / "study.png")
                    tab.goto("/releases")
                    keep(tab.screenshot(clip={"x": 0, "y": 0, "width": WIDTH, "height": 720}), folder / "releases.png")
    finally:
        time.time = real


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs")
