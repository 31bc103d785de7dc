"""`policy check|explain|schema`: what a privacy officer runs before anything else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from commands import Command
from unprivileged import obey_modes

from gateway.app.policy.registry import REGISTRY
from gateway.policy import load_policies, load_policy
from gateway.policy.schema import policy_schema
from gateway.settings import SHIPPED_POLICIES, Home

BASIC = SHIPPED_POLICIES / "research-basic.yaml"


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    """A copy of the shipped folder that a test may spoil."""
    shutil.copytree(SHIPPED_POLICIES, tmp_path / "policies", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "policies"


def misspell(folder: Path) -> Path:
    """A policy with two faults: a misspelt option in line 19 and an unknown key at the end."""
    path = folder / "research-basic.yaml"
    text = path.read_text().replace("retain-longitudinal-modified-dates]", "retain-longitudinal-modifixd-dates]")
    path.write_text(text + "colour: green\n")
    return path


def line_of(path: Path, words: str) -> int:
    return next(i for i, line in enumerate(path.read_text().splitlines(), 1) if words in line)


def test_the_shipped_folder_is_sound(command: Command) -> None:
    digest = load_policy(BASIC, REGISTRY).digest
    ran = command("policy", "check")
    assert (ran.code, ran.err) == (0, "")
    assert f"sound: research-basic {digest[:12]}" in ran.out
    for words in ((SHIPPED_POLICIES,), (BASIC,), (SHIPPED_POLICIES / "routes.yaml",), ("--policies", SHIPPED_POLICIES)):
        again = command("policy", "check", "--json", *words)
        assert again.code == 0
        assert again.json["faults"] == []
        sound = {entry["name"]: entry["digest"] for entry in again.json["sound"]}
        assert sound.keys() == ({"research-basic"} if words == (BASIC,) else {"research-basic", "research-pictures"})
        assert sound["research-basic"] == digest


def test_every_fault_of_every_file_is_printed_once_with_file_line_and_hint(command: Command, policies: Path) -> None:
    path = misspell(policies)
    (policies / "destinations.yaml").write_text("research-archive: ftp://x\n")
    ran = command("policy", "check", policies, path, policies / "destinations.yaml")
    assert ran.code == 2
    assert ran.out == ""
    option, key = line_of(path, "modifixd"), line_of(path, "colour")
    assert ran.err.count(f"{path}:{option}: ") == 1
    assert "did you mean retain-longitudinal-modified-dates?" in ran.err
    assert ran.err.count(f"{path}:{key}: unknown key colour") == 1
    assert f"{policies / 'destinations.yaml'}:1: " in ran.err
    assert all(line.startswith("error: ") for line in ran.err.splitlines())


def test_faults_for_scripts_name_file_line_text_and_hint(command: Command, policies: Path) -> None:
    path = misspell(policies)
    ran = command("policy", "check", path, BASIC, "--json")
    assert (ran.code, ran.err) == (2, "")
    assert [entry["name"] for entry in ran.json["sound"]] == ["research-basic"]
    faults = {fault["line"]: fault for fault in ran.json["faults"]}
    assert faults.keys() == {line_of(path, "modifixd"), line_of(path, "colour")}
    assert all(fault["file"] == str(path) and fault["says"] for fault in faults.values())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"name: x\nextends: [\n", "not YAML"),
        (b"name: \xe9t\xe9\n", "UTF-8"),
        (b"", "mapping"),
        (b"- a\n- b\n", "mapping"),
        (b"\x00\x01", "character"),
        (b"name: &a x\n", "anchor"),
    ],
)
def test_a_file_that_is_no_policy_at_all_is_a_fault_with_a_line(
    command: Command, tmp_path: Path, data: bytes, says: str
) -> None:
    (tmp_path / "p.yaml").write_bytes(data)
    ran = command("policy", "check", tmp_path / "p.yaml")
    assert ran.code == 2
    assert says in ran.err
    assert str(tmp_path / "p.yaml") in ran.err


def test_what_is_not_there_or_cannot_be_read_is_a_fault(command: Command, tmp_path: Path) -> None:
    for path in (tmp_path / "none.yaml", tmp_path / "none", tmp_path / "none" / "routes.yaml"):
        ran = command("policy", "check", path)
        assert ran.code == 2
        assert str(path.parent if path.name == "routes.yaml" else path) in ran.err


def test_a_policy_that_may_not_be_read_is_a_fault(policies: Path) -> None:
    from commands import as_process

    path = policies / "research-basic.yaml"
    path.chmod(0)
    ran = as_process("policy", "check", path, preexec_fn=obey_modes)
    assert ran.code == 2
    assert f"{path}: cannot be read: Permission denied" in ran.err


def test_the_folder_is_that_of_the_environment_or_of_the_homes_settings(
    command: Command, policies: Path, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = misspell(policies)
    (home.root / ".env").write_text(f"DEID_POLICIES={policies}\n")
    assert command("policy", "check").code == 0
    assert str(path) in command("policy", "check", "--home", home.root).err
    monkeypatch.setenv("DEID_HOME", str(home.root))
    assert str(path) in command("policy", "check").err
    monkeypatch.setenv("DEID_POLICIES", str(SHIPPED_POLICIES))  # the environment wins over the file
    assert command("policy", "check").code == 0
    assert str(path) in command("policy", "check", "--policies", policies).err


def test_explain_says_in_words_what_happens_to_each_attribute(command: Command) -> None:
    ran = command("policy", "explain", BASIC)
    assert ran.code == 0
    name = next(line for line in ran.out.splitlines() if "PatientName" in line)
    assert "(0010,0010)" in name or "00100010" in name
    assert "2026d" in ran.out
    short = command("policy", "explain", BASIC, "--no-tags")
    assert short.code == 0
    assert "PatientName" not in short.out
    assert len(short.out) < len(ran.out) / 10


def test_explain_for_scripts_has_one_entry_an_attribute(command: Command) -> None:
    ran = command("policy", "explain", BASIC, "--json")
    assert ran.code == 0
    assert ran.json["digest"] == load_policy(BASIC, REGISTRY).digest
    actions = {row["keyword"]: row["action"] for row in ran.json["attributes"]}
    assert len(actions) > 400
    assert actions["OperatorsName"] != actions["PatientName"]  # X/Z/D and Z in Table E.1-1
    assert all(row["because"] for row in ran.json["attributes"])


def test_explain_takes_a_name_of_the_policies_folder(
    command: Command, policies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command("policy", "explain", "research-basic", "--no-tags").code == 0
    ran = command("policy", "explain", "research-basik")
    assert ran.code == 2
    assert "did you mean research-basic?" in ran.err
    monkeypatch.setenv("DEID_POLICIES", str(policies))
    misspell(policies)
    ran = command("policy", "explain", "research-basic")
    assert ran.code == 2
    assert "unknown key colour" in ran.err


def test_a_policy_is_found_by_the_name_that_routes_and_check_use(
    command: Command, policies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEID_POLICIES", str(policies))
    own = BASIC.read_text().replace("name: research-basic", "name: brain-study")
    (policies / "brain.yaml").write_text(own)
    assert "sound: brain-study " in command("policy", "check").out
    for word in ("brain-study", "brain"):
        assert "Policy brain-study, digest" in command("policy", "explain", word, "--no-tags").out
    assert "did you mean brain-study?" in command("policy", "explain", "brain-studi").err
    (policies / "draft.yaml").write_text("name: [half")  # of somebody else, who is not done
    assert command("policy", "explain", "brain-study", "--no-tags").code == 0
    assert command("policy", "explain", "draft").code == 2
    (policies / "brain-study.yaml").write_text(own.replace("name: brain-study", "name: other"))
    ran = command("policy", "explain", "brain-study")
    assert ran.code == 2
    assert "brain.yaml" in ran.err
    assert "name the file" in ran.err


def test_the_schema_that_is_shipped_is_the_one_that_this_build_makes(command: Command) -> None:
    """When this fails: deid-gateway policy schema > policies/schema.json"""
    shipped = (SHIPPED_POLICIES / "schema.json").read_text("utf-8")
    assert command("policy", "schema").out == shipped
    assert json.loads(shipped) == json.loads(json.dumps(policy_schema(REGISTRY)))


def test_what_check_calls_sound_loads_in_the_gateway(policies: Path) -> None:
    assert load_policies(policies, REGISTRY).policies.keys() == {"research-basic", "research-pictures"}
