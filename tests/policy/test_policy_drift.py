"""`policy drift`, and what it promises: a new edition is a run of the generator. All books here are synthetic."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import part15_book as made
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.app.policy.drift import concerns, read_drift
from gateway.app.policy.registry import REGISTRY
from gateway.cli import run
from gateway.errors import UsageError
from gateway.header.stamp import MEANINGS
from gateway.policy import Policy, load_policy
from gateway.policy.drift import Kind, Table, drift
from gateway.policy.drift_docbook import read_docbook
from gateway.policy.drift_tables import OPTION_CELLS
from gateway.policy.standard import BASIC_CODES, CONTENT_TABLE, OPTIONS, SAFE_TABLE, TABLE

ROOT = Path(__file__).resolve().parents[2]
FIXTURE = Path(__file__).with_name("part15_fixture.xml")
GATE = "gate: {study: {residual_identifiers: {max: 0}}}\n"


def policy(folder: Path, header: str = "", name: str = "p") -> Policy:
    path = folder / f"{name}.yaml"
    path.write_text(f"name: {name}\nextends: [ps3.15-basic@2026d]\n{header}{GATE}")
    return load_policy(path, REGISTRY)


def edited(rows: made.Rows, tag: str, **cells: str) -> made.Rows:
    assert any(row["tag"] == tag for row in rows)
    return [{**row, **cells} if row["tag"] == tag else row for row in rows]


def test_the_shipped_tables_do_not_drift_from_themselves() -> None:
    found = drift(read_docbook(made.whole().encode()), MEANINGS)
    assert found.changes == ()
    assert (found.edition, found.against, found.absent) == ("2027a", "2026d", (Table.METHODS,))
    assert found.rows == {Table.ATTRIBUTES: 657, Table.CONTENT: 214, Table.SAFE_PRIVATE: len(made.shipped(SAFE_TABLE))}


def test_added_removed_and_changed_rows_are_told_cell_by_cell() -> None:
    rows = [row for row in made.shipped(TABLE) if row["tag"] != "00080050"]
    rows = edited(rows, "00101010", basic="D", options="retain-patient-characteristics=C")
    rows.append(
        {**rows[0], "tag": "0010FF01", "keyword": "", "basic": "X/Z", "options": "clean-descriptors=C", "retired": "N"}
    )
    found = drift(read_docbook(made.book(made.attributes(rows)).encode()), MEANINGS)
    assert [(change.kind, change.key, change.name) for change in found.changes] == [
        (Kind.REMOVED, "00080050", "AccessionNumber"),
        (Kind.CHANGED, "00101010", "PatientAge"),
        (Kind.ADDED, "0010FF01", ""),
    ]
    assert found.changes[0].cell("basic") == ("Z", "")
    assert set(found.changes[1].cells) == {("basic", "X", "D"), ("retain-patient-characteristics", "K", "C")}
    assert found.changes[2].cell("clean-descriptors") == ("", "C")
    assert found.absent == (Table.CONTENT, Table.SAFE_PRIVATE, Table.METHODS)


def test_lists_of_content_items_private_attributes_and_method_codes_are_compared_too() -> None:
    content, safe = made.shipped(CONTENT_TABLE), made.shipped(SAFE_TABLE)
    content[0] = {**content[0], "basic": "D" if content[0]["basic"] == "X" else "X"}
    gone, safe = safe[0], [*safe[1:], {**safe[1], "creator": "ACME SYNTHETIC 1.0"}]
    codes = {**MEANINGS, "113199": "Synthetic Option"}
    text = made.book(made.content(content), made.safe_private(safe), made.methods(codes))
    found = drift(read_docbook(text.encode()), MEANINGS)
    told = [(change.table, change.kind) for change in found.changes]
    assert told == [
        (Table.CONTENT, Kind.CHANGED),
        (Table.SAFE_PRIVATE, Kind.REMOVED),
        (Table.SAFE_PRIVATE, Kind.ADDED),
        (Table.METHODS, Kind.ADDED),
    ]
    assert gone["creator"] in found.changes[1].key
    assert found.changes[3].key == "113199"


def test_policies_that_a_change_concerns_are_found_by_the_code_that_decides_under_their_options(tmp_path: Path) -> None:
    rows = edited(made.shipped(TABLE), "00101010", options="retain-patient-characteristics=C")  # PatientAge: K before
    found = drift(read_docbook(made.book(made.attributes(rows)).encode()), MEANINGS)
    characteristics = "header: {options: [retain-patient-characteristics]}\n"
    kept = "header: {options: [retain-patient-characteristics], keep: {PatientAge: because}}\n"
    assert [(c.now, c.then) for c in concerns(policy(tmp_path, characteristics), found.changes)] == [
        ("K (retain-patient-characteristics)", "C (retain-patient-characteristics)")
    ]
    assert list(concerns(policy(tmp_path), found.changes)) == []
    assert list(concerns(policy(tmp_path, kept), found.changes)) == []


def test_a_row_that_goes_or_comes_changes_what_beyond_the_table_decides(tmp_path: Path) -> None:
    rows = [row for row in made.shipped(TABLE) if row["tag"] != "00080050"]
    found = drift(read_docbook(made.book(made.attributes(rows)).encode()), MEANINGS)
    (told,) = concerns(policy(tmp_path), found.changes)
    assert (told.now, told.then) == ("Z", "the default beyond the table")


@settings(max_examples=60, deadline=None)
@given(
    tag=st.sampled_from([row["tag"] for row in made.shipped(TABLE)]),
    basic=st.sampled_from(sorted(BASIC_CODES)),
    option=st.sampled_from(OPTIONS),
    code=st.sampled_from(sorted(OPTION_CELLS)),
)
def test_any_one_cell_that_changes_is_told_and_nothing_else(tag: str, basic: str, option: str, code: str) -> None:
    rows = [row for row in made.shipped(TABLE) if row["tag"] == tag]
    others = {**dict(part.split("=") for part in rows[0]["options"].split()), option: code}
    words = " ".join(f"{name}={cell}" for name, cell in others.items() if cell)
    text = made.book(made.attributes([{**rows[0], "basic": basic, "options": words}]))
    changed = [c for c in drift(read_docbook(text.encode()), MEANINGS).changes if c.kind is not Kind.REMOVED]
    before = dict(part.split("=") for part in rows[0]["options"].split())
    expected = {("basic", rows[0]["basic"], basic)} if basic != rows[0]["basic"] else set()
    expected |= {(option, before.get(option, ""), code)} if before.get(option, "") != code else set()
    assert {cell for change in changed for cell in change.cells} == expected


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("<book/>", "no table with xml:id table_E.1-1"),
        ("no markup", "not XML"),
        (made.whole().replace("Rtn. UIDs Opt.", "Rtn. UIDs and More"), "headings changed: Rtn. UIDs and More"),
        (made.whole().replace("(7053,xx", "(7053,yy"), "private element in a form"),
        (made.book(made.methods(MEANINGS)).replace("Code Value", "Value"), "table_CID_7050: the headings changed"),
        (made.book("<table xml:id='table_E.1-1'/>"), "the table has no rows"),
    ],
)
def test_a_book_that_is_not_what_is_known_is_refused_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "part15.xml"
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=says) as raised:
        read_drift(path)
    assert str(path) in str(raised.value)


def test_an_edition_that_is_not_shipped_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no edition 1999a"):
        read_drift(FIXTURE, "1999a")


def command(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = run(["policy", "drift", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_exit_code_says_whether_anything_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    same, other = tmp_path / "same.xml", tmp_path / "other.xml"
    same.write_text(made.whole(), "utf-8")
    other.write_text(made.book(made.attributes(edited(made.shipped(TABLE), "00100040", basic="X"))), "utf-8")
    code, out, err = command(capsys, same, "--policies", tmp_path)
    assert (code, err) == (0, "")
    assert "Table E.1-1: 657 rows; the same" in out
    policy(tmp_path, name="small")
    (tmp_path / "broken.yaml").write_text("name: [\n")
    code, out, err = command(capsys, other, "--policies", tmp_path)
    assert code == 1
    assert "PatientSex" in out
    assert "Policy small: 1 would be treated otherwise" in out
    assert "generate_standard.py --edition 2027a" in out
    assert "broken.yaml has faults" in err
    code, out, _ = command(capsys, other, "--policies", tmp_path, "--json")
    document = json.loads(out)
    assert code == 1
    assert document["changes"][0]["cells"] == [{"column": "basic", "old": "Z", "new": "X"}]
    assert document["policies"][0]["concerns"][0]["then"] == "X"
    assert command(capsys, tmp_path / "none.xml", "--policies", tmp_path)[0] == 3
    assert command(capsys, tmp_path / "broken.yaml", "--policies", tmp_path)[0] == 2


PROBE = """
import json, sys
from pathlib import Path
from gateway.app.policy.registry import REGISTRY
from gateway.errors import PolicyError
from gateway.header import describe
from gateway.policy import load_policy, policy_schema
from gateway.policy.content_table import content_row
from gateway.policy.private_lists import creator_key, load_safe_private

def told(edition, file):
    try:
        policy = load_policy(Path(file), REGISTRY)
    except PolicyError as error:
        return {"fault": str(error)}
    return {
        "digest": policy.digest,
        "PatientSex": next(line.action for line in describe(policy.header) if line.keyword == "PatientSex"),
        "Comment": content_row("DCM", "121106", "TEXT", edition).basic,
        "ACME": any(key[0] == creator_key("ACME SYNTHETIC 1.0") for key in load_safe_private(edition)),
    }

editions = policy_schema(REGISTRY)["properties"]["extends"]["items"]["enum"]
files = {"old": "2026d", "new": "2027a", "kept": "2027a"}
print(json.dumps({"editions": editions, **{name: told(edition, f"{name}.yaml") for name, edition in files.items()}}))
"""


def test_adding_an_edition_is_running_the_generator(tmp_path: Path) -> None:
    """In a copy of the product: generate 2027a, then a policy may name it, and it does what the new tables say."""
    for name in ("gateway", "policies", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    content = [{**row, "basic": "D"} if row["code"] == "121106" else row for row in made.shipped(CONTENT_TABLE)]
    safe = [*made.shipped(SAFE_TABLE), {**made.shipped(SAFE_TABLE)[0], "creator": "ACME SYNTHETIC 1.0"}]
    rows = edited(made.shipped(TABLE), "00100040", basic="X")  # PatientSex: Z before
    rows = edited(rows, "00101010", options="retain-longitudinal-full-dates=K")  # PatientAge: a date now
    text = made.book(made.attributes(rows), made.content(content), made.safe_private(safe))
    (tmp_path / "part15.xml").write_text(text, "utf-8")
    (tmp_path / "old.yaml").write_text(f"name: old\nextends: [ps3.15-basic@2026d]\n{GATE}")
    (tmp_path / "new.yaml").write_text(f"name: new\nextends: [ps3.15-basic@2027a]\n{GATE}")
    kept = f"header: {{keep: {{PatientAge: because}}}}\n{GATE}"
    (tmp_path / "kept.yaml").write_text(f"name: kept\nextends: [ps3.15-basic@2027a]\n{kept}")
    before = json.loads(ran(tmp_path, 0, "-c", PROBE))
    assert "unknown profile or edition ps3.15-basic@2027a" in before["new"]["fault"]
    other = ("tools/generate_standard.py", "--edition", "2027b", "--taken", "2027-02-01", "part15.xml")
    assert "the book says that it is edition 2027a, not 2027b" in ran(tmp_path, 2, *other)
    said = ran(tmp_path, 0, "tools/generate_standard.py", "--edition", "2027a", "--taken", "2027-02-01", "part15.xml")
    assert [line.partition(":")[0] for line in said.splitlines()] == [
        "ps3_15_e1_1_2027a.csv",
        "ps3_15_e3_4_1_2027a.csv",
        "ps3_15_e3_10_1_2027a.csv",
        "then",
    ]
    after = json.loads(ran(tmp_path, 0, "-c", PROBE))
    assert after["editions"] == ["ps3.15-basic@2026d", "ps3.15-basic@2027a"]
    assert after["old"] == before["old"]  # its digest too: nothing that runs is withdrawn
    assert [after[name]["PatientSex"].partition(",")[0] for name in ("old", "new")] == ["emptied", "removed"]
    assert "kept.yaml:3: PatientAge is a date or time" in after["kept"]["fault"]
    assert [(after[name]["Comment"], after[name]["ACME"]) for name in ("old", "new")] == [("X", False), ("D", True)]


def ran(folder: Path, code: int, *arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("DEID_")}
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr
