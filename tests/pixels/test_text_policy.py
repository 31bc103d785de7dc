"""`burned_in_text` in a policy: strict parameters, and a digest that follows the shipped rules and words."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from gateway.app.policy.registry import REGISTRY
from gateway.errors import PolicyError
from gateway.pixels.burned_in_text import BurnedInText
from gateway.pixels.regions import tables_digest
from gateway.policy import Policy, explain_policy, load_policy, read_snapshot
from gateway.settings import SHIPPED_POLICIES

RULE = {"name": "ours", "device": {"manufacturer": ["maker*"], "rows": 10, "columns": 20}, "source": "synthetic"}


def loaded(folder: Path, parameters: dict[str, object]) -> Policy:
    body = yaml.safe_load((SHIPPED_POLICIES / "research-basic.yaml").read_text("utf-8"))
    body["pixels"] = [{"burned_in_text": parameters}]
    path = folder / "research-basic.yaml"
    path.write_text(yaml.safe_dump(body, sort_keys=False))
    return load_policy(path, REGISTRY)


def test_the_example_of_the_design_loads_with_strict_defaults(tmp_path: Path) -> None:
    policy = loaded(tmp_path, {"detector": "ocr", "on_low_confidence": "hold"})
    ((name, stage),) = policy.pixels
    assert name == "burned_in_text"
    assert stage == BurnedInText()
    assert (stage.redact, stage.on_low_confidence, stage.unknown_device) == ("all", "hold", "detect")
    assert policy.digest == loaded(tmp_path, {}).digest


def test_the_shipped_rules_and_words_are_part_of_the_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = loaded(tmp_path, {})
    monkeypatch.setattr("gateway.pixels.burned_in_text.tables_digest", lambda: "0" * 16)
    assert loaded(tmp_path, {}).digest != policy.digest
    with pytest.raises(PolicyError, match="region rules or the kept words"):
        read_snapshot(policy.to_snapshot(), REGISTRY)


def test_a_snapshot_gives_the_same_policy_back(tmp_path: Path) -> None:
    policy = loaded(tmp_path, {"redact": "identifying", "allow": ["zoomscout"], "regions": [RULE]})
    again = read_snapshot(policy.to_snapshot(), REGISTRY)
    assert again == policy
    assert again.digest == policy.digest
    assert again.pixels[0][1].tables == tables_digest()


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"redakt": "all"}, "unknown key redakt"),
        ({"redact": "some"}, "redact must be"),
        ({"on_low_confidence": "pass"}, "on_low_confidence must be"),
        ({"report_page": "skip"}, "report_page must be"),
        ({"allow": ["zoomscout"]}, "redact: all leaves nothing"),
        ({"redact": "identifying", "allow": ["two words"]}, "allow"),
        ({"tables": "0123456789abcdef"}, "not those that tables names"),
        ({"regions": [{**RULE, "blnk": []}]}, "unknown key blnk"),
        ({"regions": [{**RULE, "device": {"manufacturer": ["*"]}}]}, "fits every device"),
    ],
)
def test_a_fault_is_told_with_its_line(tmp_path: Path, parameters: dict[str, object], says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        loaded(tmp_path, parameters)
    assert any(says in fault.says and fault.line > 0 for fault in caught.value.faults), str(caught.value)


def test_a_rule_of_the_policy_comes_before_the_shipped_ones() -> None:
    from pydicom.dataset import Dataset

    from gateway.pixels.regions import RegionRule, rule_for

    own = RegionRule.model_validate_json(
        '{"name": "ours", "device": {"manufacturer": ["philips*"], "model": ["iU22*"]}, "source": "synthetic"}'
    )
    header = Dataset()
    header.Manufacturer, header.ManufacturerModelName, header.Rows, header.Columns = "Philips", "iU22", 600, 800
    assert rule_for(header, [own]) is own
    found = rule_for(header)
    assert found is not None
    assert found.name == "philips-iu22-800"


def test_the_stage_describes_itself_in_explain(tmp_path: Path) -> None:
    policy = loaded(tmp_path, {"unknown_device": "hold"})
    said = policy.pixels[0][1].describe()
    assert "every frame" in said
    assert "no region rule knows" in said
    assert "pages of reports whole" in said
    assert "holds pages of reports" in BurnedInText(report_page="hold").describe()
    assert explain_policy(policy)
