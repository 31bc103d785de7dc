"""A real Prometheus reads a gateway's /metrics with our rules: scores are those of the tables, and alerts fire."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from houses import house, to_folder
from releasing import film, judged

from gateway.app.gauges import refresh
from gateway.app.http import StatusServer
from gateway.settings import Home
from tests.peers import prometheus, starting

RULES = Path(__file__).resolve().parents[2] / "helm" / "rules" / "deid.yaml"
pytestmark = pytest.mark.peer


def ask(port: int, path: str, **query: str) -> Any:
    url = f"http://127.0.0.1:{port}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)["data"]


def test_prometheus_scrapes_scores_as_the_tables_have_them_and_raises_the_alerts(home: Home, tmp_path: Path) -> None:
    program = prometheus("prometheus")
    policies = judged(to_folder(tmp_path / "policies", tmp_path / "archive"), {"record_isolation": {"k": 2}}, people=2)
    with house(home, policies) as made:
        for person in range(2):
            made.deliver(film(person))
        assert made.decide("close", "research-basic-1") == "done"
        base = {"check": "linkability", "scope": "release", "limit": 0.1, "card": "gradients", "attack": "same_scan"}
        score = {**base, "metric": "cosine", "estimate": 0.0625, "upper": 0.1875, "people": 60, "note": ""}
        made.parts.database.set_release(1, scores=json.dumps([score]), state="blocked")
        status = StatusServer(
            host="127.0.0.1",
            port=0,
            metrics=made.parts.metrics,
            refresh=lambda: refresh(made.parts, {"engine": True}),
            healthy=lambda: True,
            checks=lambda: {"engine": True},
        )
        status.start()
        try:
            config = tmp_path / "prometheus.yml"
            scrape = {"job_name": "deid", "static_configs": [{"targets": [f"127.0.0.1:{status.port}"]}]}
            every = {"scrape_interval": "1s", "evaluation_interval": "1s"}
            config.write_text(yaml.safe_dump({"global": every, "rule_files": [str(RULES)], "scrape_configs": [scrape]}))

            def command(ports: Sequence[int]) -> list[str]:
                listen = f"--web.listen-address=127.0.0.1:{ports[0]}"
                return [program, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'tsdb'}", listen]

            def ready(ports: Sequence[int]) -> bool:
                try:
                    return bool(ask(ports[0], "query", query="deid_part_ok")["result"])
                except OSError:
                    return False

            with starting(1, command, ready, tmp_path / "prometheus.log") as (port,):
                for series, value in (("linkability", "0.0625"), ("linkability_upper", "0.1875")):
                    (found,) = ask(port, "query", query=f"deid_release_{series}")["result"]
                    assert found["value"][1] == value
                    labels = {name: found["metric"][name] for name in ("policy", "release", "encoder")}
                    assert labels == {"policy": "research-basic", "release": "1", "encoder": "gradients"}
                deadline, firing = time.monotonic() + 20, set[str]()
                while not {"DeidLeakBoundCrossed", "DeidReleaseBlocked"} <= firing and time.monotonic() < deadline:
                    time.sleep(0.3)
                    found = ask(port, "alerts")["alerts"]
                    firing = {one["labels"]["alertname"] for one in found if one["state"] == "firing"}
                assert firing == {"DeidLeakBoundCrossed", "DeidReleaseBlocked"}
                healths = {rule["health"] for group in ask(port, "rules")["groups"] for rule in group["rules"]}
                assert healths <= {"ok", "unknown"}
        finally:
            status.stop()
