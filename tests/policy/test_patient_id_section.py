"""`header.patient_id` and `vault`: what may be written, what is refused, and that snapshots hold no row of a table."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gateway.errors import PolicyError
from gateway.policy import PatientIdPolicy, Policy, Registry, explain_policy, read_snapshot
from gateway.policy.vault_section import VaultPolicy

Load = Callable[[str | bytes], Policy]


@pytest.fixture(autouse=True)
def tables(tmp_path: Path) -> None:
    for name, text in (("people.csv", "patient_id,pseudonym\nLEAK0001,S1\n"), ("merges.csv", "old_id,new_id\nA,B\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o600)


def faults(load: Load, text: str) -> list[tuple[int, str]]:
    with pytest.raises(PolicyError) as refused:
        load(text)
    return [(fault.line, fault.says) for fault in refused.value.faults]


@pytest.mark.parametrize(
    "rule",
    [
        "{pseudonym: keyed, prefix: BT-, merge: merges.csv}",
        "{pseudonym: lookup, table: people.csv}",
        "{pseudonym: lookup, table: people.csv, missing: hold, merge: merges.csv}",
        "{pseudonym: lookup, sql: site, table: research.people, original: mrn, replacement: subject no}",
    ],
)
def test_a_rule_survives_its_snapshot_and_the_tables_are_no_part_of_it(
    load: Load, small: str, registry: Registry, tmp_path: Path, rule: str
) -> None:
    policy = load(small + f"header: {{patient_id: {rule}}}\n")
    assert "LEAK0001" not in policy.to_snapshot()
    (tmp_path / "people.csv").unlink()
    again = read_snapshot(policy.to_snapshot(), registry)
    assert (again, again.digest) == (policy, policy.digest)


@pytest.mark.parametrize(
    ("rule", "says"),
    [
        ("{pseudonym: lookup}", "pseudonym: lookup needs a table"),
        ("{pseudonym: lookup, table: people.csv, prefix: X-}", "pseudonym: lookup gives whole pseudonyms"),
        ("{pseudonym: keyed, table: people.csv}", "a table is named, but pseudonyms are keyed"),
        ("{sql: site}", "a table is named, but pseudonyms are keyed"),
        ("{original: mrn}", "a table is named, but pseudonyms are keyed"),
        ("{pseudonym: lookup, table: ../people.csv}", "table is the name of a CSV file in the policies folder"),
        ("{pseudonym: lookup, table: people.txt}", "table is the name of a CSV file in the policies folder"),
        ("{pseudonym: lookup, sql: site, table: people.csv; drop}", "table is the name of an SQL table here"),
        ("{pseudonym: lookup, sql: 'postgresql://u:p@h/d', table: people}", "sql is the name of a database in"),
        (
            "{pseudonym: lookup, table: people.csv, original: x, replacement: x}",
            "original and replacement are the same",
        ),
        ("{pseudonym: lookup, table: people.csv, original: 'a;b'}", "a column is named by"),
        ("{pseudonym: lookup, table: people.csv, missing: pass}", "must be 'hold'"),
        ("{merge: /etc/merges.csv}", "merge is the name of a CSV file"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused_with_its_line(load: Load, small: str, rule: str, says: str) -> None:
    found = faults(load, small + f"header: {{patient_id: {rule}}}\n")
    assert any(line == len(small.splitlines()) + 1 and says in words for line, words in found)


def test_faults_of_the_files_come_with_their_own_lines(load: Load, small: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("patient_id,pseudonym\nLEAK0001,S1\nLEAK0002,S1\n")
    text = small + "header: {patient_id: {pseudonym: lookup, table: people.csv, merge: nowhere.csv}}\n"
    with pytest.raises(PolicyError) as refused:
        load(text)
    assert [(Path(one.file).name, one.line) for one in refused.value.faults] == [("nowhere.csv", 0), ("people.csv", 3)]
    assert "LEAK" not in str(refused.value)


def test_the_tables_contents_do_not_change_the_digest(load: Load, small: str, tmp_path: Path) -> None:
    text = small + "header: {patient_id: {pseudonym: lookup, table: people.csv}}\n"
    before = load(text).digest
    (tmp_path / "people.csv").write_text("patient_id,pseudonym\nLEAK0001,S1\nLEAK0002,S2\n")
    assert load(text).digest == before
    assert load(small).digest != before


def test_the_vault_is_off_and_says_what_it_keeps_when_on(load: Load, small: str) -> None:
    assert load(small).vault is None
    assert load(small).header.patient_id == PatientIdPolicy()
    policy = load(small + "vault: {roles: [dpo, trial-manager]}\n")
    assert policy.vault == VaultPolicy(roles=("dpo", "trial-manager"), days=365)
    assert load(small + "vault: {roles: [trial-manager, dpo], days: 365}\n").digest == policy.digest
    (line,) = [line for line in explain_policy(policy) if line.startswith("Vault:")]
    assert re.search(r"365 days.*dpo and trial-manager", line)
    assert not [line for line in explain_policy(load(small)) if line.startswith("Vault:")]


@pytest.mark.parametrize(
    "section", ["{}", "{roles: []}", "{roles: [dpo, dpo]}", "{roles: [D P O]}", "{roles: [dpo], days: 0}", "true"]
)
def test_a_vault_that_nobody_may_open_or_keeps_nothing_is_refused(load: Load, small: str, section: str) -> None:
    assert faults(load, small + f"vault: {section}\n")


def test_what_a_lookup_does_is_said_in_plain_words(load: Load, small: str) -> None:
    policy = load(small + "header: {patient_id: {pseudonym: lookup, table: people.csv, merge: merges.csv}}\n")
    said = "\n".join(explain_policy(policy))
    assert "what the file people.csv gives; a study of somebody who is not in it is held" in said
    assert "merges.csv merges count as one person" in said
