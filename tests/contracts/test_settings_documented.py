"""Every setting says what it is, and the README's table lists exactly those that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gateway.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
NAMES = {f"DEID_{name.upper()}" for name in Settings.model_fields}


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_has_a_description_and_its_unit_in_its_name(name: str) -> None:
    field = Settings.model_fields[name]
    assert field.description
    if field.annotation is float:
        assert name.endswith("_s"), "a number with a fraction is a time in seconds here; say the unit"


def test_the_readme_documents_the_settings_that_exist_and_no_others() -> None:
    text = README.read_text(encoding="utf-8")
    rows = re.findall(r"^\|\s*`(DEID_[A-Z_]+)`", text, flags=re.MULTILINE)
    assert len(rows) == len(set(rows)), "a setting is listed twice"
    assert set(rows) - {"DEID_HOME"} == NAMES
    assert set(re.findall(r"DEID_[A-Z_]+", text)) <= NAMES | {"DEID_HOME"}


def test_no_program_text_names_a_setting_that_does_not_exist() -> None:
    known = NAMES | {"DEID_HOME", "DEID_GW_", "DEID_"}
    unknown = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in [*sorted((ROOT / "gateway").rglob("*.py")), ROOT / "Dockerfile", ROOT / "Makefile"]
        for name in re.findall(r"DEID_[A-Z_]*", path.read_text(encoding="utf-8"))
        if name not in known
    ]
    assert unknown == []
