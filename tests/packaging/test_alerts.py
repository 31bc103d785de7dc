"""Alert rules and dashboards: promtool takes them, each alert fires when it must, and all ask for what /metrics has."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from gateway.observe.metrics import Metrics
from tests.peers import prometheus

ROOT = Path(__file__).resolve().parents[2]
RULES = ROOT / "helm" / "rules" / "deid.yaml"
RUNBOOK = ROOT / "helm" / "RUNBOOK.md"
TESTS = Path(__file__).with_name("alerts.test.yaml")
DASHBOARDS = sorted((ROOT / "helm" / "dashboards").glob("*.json"))


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def series() -> dict[str, set[str]]:
    """Every series that a gateway can tell, with its labels."""
    found = {}
    for metric in list(Metrics().registry._collector_to_names):
        labels = set(metric._labelnames)
        (told,) = metric.describe()
        ends = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(told.type, [""])
        found |= {told.name + end: labels | ({"le"} if end == "_bucket" else set()) for end in ends}
    return found


def asked(expression: str) -> Iterator[tuple[str, set[str]]]:
    """(series, labels) that an expression selects."""
    for name, selector in re.findall(r"\b(deid_\w+)(?:\{([^}]*)\})?", expression):
        yield name, set(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", selector or ""))


def test_promtool_takes_the_rules() -> None:
    ran = subprocess.run([prometheus("promtool"), "check", "rules", RULES], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_each_alert_fires_when_it_must_and_says_what_it_means(tmp_path: Path) -> None:
    (tmp_path / "tests.yaml").write_text(TESTS.read_text().replace("RULES", str(RULES)))
    command = [prometheus("promtool"), "test", "rules", str(tmp_path / "tests.yaml")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_each_alert_is_tested_both_ways() -> None:
    silent, loud = set(), set()
    for test in yaml.safe_load(TESTS.read_text())["tests"]:
        for case in test.get("alert_rule_test", []):
            (loud if case["exp_alerts"] else silent).add(case["alertname"])
    assert silent == loud == {rule["alert"] for rule in alerts()}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: str(rule.get("alert", rule.get("record"))))
def test_each_rule_asks_for_what_exists(rule: dict[str, Any]) -> None:
    known, recorded = series(), {rule["record"] for rule in rules() if "record" in rule}
    for name, labels in asked(rule["expr"]):
        assert labels <= known[name], name
    assert set(re.findall(r"\bdeid:[\w:]+", rule["expr"])) <= recorded


def test_every_objective_is_tested() -> None:
    told = [
        case["expr"] for test in yaml.safe_load(TESTS.read_text())["tests"] for case in test.get("promql_expr_test", [])
    ]
    assert set(told) == {rule["record"] for rule in rules() if "record" in rule}


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: str(rule["alert"]))
def test_each_alert_has_its_section_in_the_runbook(rule: dict[str, Any]) -> None:
    file, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    assert (file, anchor) == (RUNBOOK.name, rule["alert"].lower())
    headings = re.findall(r"^## (\w+)$", RUNBOOK.read_text(), flags=re.MULTILINE)
    assert rule["alert"] in headings


def test_the_runbook_has_no_section_without_an_alert_and_names_commands_that_exist() -> None:
    text = RUNBOOK.read_text()
    assert set(re.findall(r"^## (\w+)$", text, flags=re.MULTILINE)) == {rule["alert"] for rule in alerts()}
    from gateway.cli import app as program

    groups = {group.name: group.typer_instance for group in program.registered_groups}
    single = {command.name or command.callback.__name__ for command in program.registered_commands if command.callback}
    for words in re.findall(r"`deid-gateway ([a-z-]+)(?: ([a-z]+))?", text):
        if words[0] in single:
            continue
        commands = groups[words[0]].registered_commands
        assert words[1] in {one.name or one.callback.__name__ for one in commands if one.callback}, words


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_asks_for_what_exists_and_for_no_more(path: Path) -> None:
    body, known = json.loads(path.read_text()), series()
    variables = {one["name"] for one in body["templating"]["list"]}
    assert "datasource" in variables
    places = set()
    for panel in body["panels"]:
        assert panel["title"]
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        place = panel["gridPos"]
        columns, lines = (range(place[at], place[at] + place[size]) for at, size in (("x", "w"), ("y", "h")))
        cells = {(x, y) for x in columns for y in lines}
        assert not cells & places, f"{panel['title']} lies on another panel"
        assert max(x for x, _ in cells) < 24
        places |= cells
        for target in panel["targets"]:
            found = list(asked(target["expr"]))
            assert found, target["expr"]
            for name, labels in found:
                assert labels <= known[name], (panel["title"], name)
            assert set(re.findall(r"\$\{?(\w+)", target["expr"])) <= variables
            shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert shown <= set().union(*(known[name] for name, _ in found)), (panel["title"], shown)
    for one in body["templating"]["list"]:
        for name, label in re.findall(r"label_values\((\w+), (\w+)\)", one.get("definition", "")):
            assert label in known[name]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_promtool_parses_every_query_of_a_dashboard(path: Path, tmp_path: Path) -> None:
    panels = json.loads(path.read_text())["panels"]
    queries = [target["expr"].replace("$policy", ".*") for panel in panels for target in panel["targets"]]
    records = [{"record": f"deid:query{number}", "expr": query} for number, query in enumerate(queries)]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "queries", "rules": records}]}))
    ran = subprocess.run([prometheus("promtool"), "check", "rules", file], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_what_a_privacy_officer_and_an_operator_need_is_on_a_dashboard() -> None:
    told = {name for path in DASHBOARDS for name, _ in asked(path.read_text())}
    internal = {"deid_release_linkability", "deid_release_rank1", "deid_release_balanced_accuracy"}  # bounds decide
    drawn = {name for name in series() if not name.endswith(("_sum", "_count", "_created"))}
    missing = drawn - told - internal - {"deid_release_last_blocked_timestamp_seconds", "deid_spool_total_bytes"}
    assert missing == set()
