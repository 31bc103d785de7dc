"""The chart as Helm's own engine renders it, for the tests of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

helm = pytest.importorskip("helm_python", reason="helm-python-sdk has no wheel for this platform")
kubernetes_validate = pytest.importorskip("kubernetes_validate")

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm"
SCHEMA = json.loads((CHART / "values.schema.json").read_text())
# A list of versions: the oldest in Chart.yaml that the package carries, and the newest.
VERSIONS = ("1.25", "1.37")


class Render:
    """Renders the chart and gives its objects by kind."""

    def __init__(self, chart: Any) -> None:
        self.chart = chart

    def __call__(self, values: dict[str, Any] | None = None, *, name: str = "deid-gateway") -> dict[str, Any]:
        files = self.chart.render(values or {}, name=name, namespace="imaging")
        self.notes = files.pop("deid-gateway/templates/NOTES.txt")
        found = [part for text in files.values() for part in yaml.safe_load_all(text) if part]
        keyed = {f"{part['kind']}/{part['metadata']['name']}": part for part in found}
        assert len(keyed) == len(found)
        return keyed


def pod(objects: dict[str, Any]) -> dict[str, Any]:
    (stateful,) = [part for key, part in objects.items() if key.startswith("StatefulSet/")]
    return dict(stateful["spec"]["template"]["spec"])


def containers(objects: dict[str, Any]) -> list[dict[str, Any]]:
    return [*pod(objects)["initContainers"], *pod(objects)["containers"]]


def environment(container: dict[str, Any]) -> dict[str, Any]:
    names = [entry["name"] for entry in container["env"]]
    assert len(names) == len(set(names))
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


def snake(camel: str) -> str:
    return re.sub(r"([A-Z])", lambda letter: "_" + letter[1].lower(), camel)
