"""A cohort of people who do not exist, by C-STORE: its untouched pixels are held, and the figures are on /metrics."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

import pytest
from prometheus_client.parser import text_string_to_metric_families
from releasing import CARDS, LIMIT, LINKABILITY, film, judged
from running import archive, policies_for, running, send, wait_idle

from gateway.app.release import sight as release_sight
from gateway.app.workers import Workers
from gateway.errors import EnvironmentFault
from gateway.settings import Home, load_settings
from gateway.study import State

PEOPLE = 52


def test_untouched_pixels_are_held_and_the_scores_are_on_metrics(home: Home, tmp_path: Path) -> None:
    with archive() as kept:
        policies = judged(policies_for(tmp_path / "policies", kept.url), LINKABILITY)
        with running(home, policies) as gateway:
            for person in range(PEOPLE):
                assert send(film(person), gateway.receiver.port) == 0x0000
            wait_idle(gateway, seconds=240)
            database = gateway.parts.database
            assert database.count_states() == {("awaiting_release", ""): PEOPLE}
            (release,) = database.releases_in("open")
            serial = database.add_intent(kind="close", key=release.name, actor="dpo", reason="the month is over")
            wait_idle(gateway, seconds=240)
            intent = database.intent(serial)
            assert intent is not None
            assert intent.outcome == "done"
            jobs = database.jobs_in()
            assert {(job.state, job.reason, job.held_in) for job in jobs} == {(State.HELD, "linkability", "release")}
            assert all(f"limit {LIMIT:g}" in job.at and "at most 1.000" in job.at for job in jobs)
            with urlopen(f"http://127.0.0.1:{gateway.status.port}/metrics", timeout=30) as answer:
                text = answer.read().decode()
    assert kept.received == {}
    assert "LEAK" not in text
    figures = {
        (sample.labels["card"], sample.labels["kind"]): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == "deid_release_score" and sample.labels["attack"] == "same_scan"
    }
    for card in CARDS:
        assert figures[card, "limit"] == LIMIT
        assert figures[card, "limit"] < figures[card, "estimate"] <= figures[card, "upper"]


def test_serve_refuses_when_a_known_leak_is_not_seen(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policies = judged(policies_for(tmp_path / "policies", f"folder:{tmp_path}/out"), LINKABILITY)

    def blind(_workers: Workers, function: object, *_arguments: object) -> tuple[str, ...]:
        assert function is release_sight.blindness
        return ("gradients: by cosine, an unchanged image is not nearest to itself",)

    monkeypatch.setattr(Workers, "run", blind)
    from gateway.app.serve import Gateway

    settings = load_settings(home.root, policies=policies, dicom_port=0, http_port=0)
    gateway = Gateway(home, settings)
    with pytest.raises(EnvironmentFault, match=r"cannot see a known leak.*gradients.*not nearest to itself"):
        gateway.start()
    assert not gateway.receiver.alive
