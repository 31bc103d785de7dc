"""Look-up and merge tables: read whole or not at all, faults by line and never by value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import PolicyError
from gateway.policy.people_files import Row, lookup_of, read_lookup, read_merges

Write = Callable[[str | bytes], Path]
HEAD = "patient_id,pseudonym\n"
MERGES = "old_id,new_id\n"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def to_file(contents: str | bytes) -> Path:
        path = tmp_path / "people.csv"
        path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        path.chmod(0o600)
        return path

    return to_file


def lookup(path: Path) -> dict[str, str]:
    return dict(read_lookup(path, "patient_id", "pseudonym"))


def faults(read: Callable[[], object]) -> list[tuple[int, str]]:
    with pytest.raises(PolicyError) as refused:
        read()
    assert "LEAK" not in str(refused.value)
    return [(fault.line, fault.says) for fault in refused.value.faults]


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "LEAK0001,SUBJ-1\nLEAK0002,SUBJ-2\n",
        "\ufeff" + HEAD + "LEAK0001,SUBJ-1\r\n\r\nLEAK0002,SUBJ-2",
        "site,pseudonym,patient_id\nA,SUBJ-1, LEAK0001\nB,SUBJ-2,LEAK0002 \n",
        HEAD + '"LEAK0001","SUBJ-1"\n"LEAK0002",SUBJ-2\n',
    ],
)
def test_a_table_is_read_whatever_wrote_it(write: Write, text: str) -> None:
    assert lookup(write(text)) == {"LEAK0001": "SUBJ-1", "LEAK0002": "SUBJ-2"}


def test_columns_may_have_the_files_own_names(write: Write) -> None:
    path = write("mrn,Subject No\nLEAK0001,S1\n")
    assert dict(read_lookup(path, "mrn", "Subject No")) == {"LEAK0001": "S1"}
    assert faults(lambda: lookup(path)) == [(1, "the first line must name the column patient_id, once")]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("LEAK1,S1\nLEAK1,S2\n", (3, "the same Patient ID as in line 2")),
        ("LEAK1,S1\nLEAK1,S1\n", (3, "the same Patient ID as in line 2")),
        ("LEAK1,S1\n LEAK1 ,S2\n", (3, "the same Patient ID as in line 2")),
        ("LEAK1,S1\nLEAK2,S1\n", (3, "the same pseudonym as in line 2")),
        ("LEAK1,S1\nLEAK2,s1\n", (3, "the same pseudonym as in line 2")),
        ("LEAK1,S1\nLEAK2,LEAK1\n", (3, "the pseudonym is the Patient ID of line 2")),
        ("LEAK1,leak1\n", (2, "the pseudonym is the Patient ID of line 2")),
        ("LEAK1,S 1\n", (2, "a pseudonym is 1 to 64 letters, digits, dots, dashes and underscores")),
        ("LEAK1,\n", (2, "a pseudonym is 1 to 64 letters, digits, dots, dashes and underscores")),
        (f"LEAK1,{'S' * 65}\n", (2, "a pseudonym is 1 to 64 letters, digits, dots, dashes and underscores")),
        (",S1\n", (2, "no Patient ID that could be sent (empty, control characters, a backslash)")),
        ("LEAK1\\LEAK2,S1\n", (2, "no Patient ID that could be sent (empty, control characters, a backslash)")),
        ("LEAK1\n", (2, "not one line with as many cells as there are columns")),
        ("LEAK1,S1,x\n", (2, "not one line with as many cells as there are columns")),
        ('"LEAK1\n",S1\n', (2, "not one line with as many cells as there are columns")),
        ('LEAK1,S1\n"LEAK2,S2\n', (3, "is no CSV")),
        ("", (0, "names nobody")),
    ],
)
def test_a_table_that_contradicts_itself_is_refused_by_line(write: Write, rows: str, expected: tuple[int, str]) -> None:
    assert faults(lambda: lookup(write(HEAD + rows))) == [expected]


def test_every_fault_is_told_at_once(write: Write) -> None:
    path = write(HEAD + "LEAK1,S1\nLEAK1,S2\nLEAK3,S1\n,S4\n")
    assert [line for line, _ in faults(lambda: lookup(path))] == [3, 4, 5]


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o660, 0o640 | 0o001, 0o777])
def test_a_table_that_others_can_read_is_refused(write: Write, mode: int) -> None:
    path = write(HEAD + "LEAK0001,S1\n")
    path.chmod(mode)
    ((line, says),) = faults(lambda: lookup(path))
    assert (line, f"(mode {mode:04o})" in says) == (0, True)


def test_a_table_that_is_missing_binary_or_without_header_is_refused(write: Write, tmp_path: Path) -> None:
    assert faults(lambda: lookup(tmp_path / "nowhere.csv")) == [(0, "cannot be read: No such file or directory")]
    assert faults(lambda: lookup(write(b"\xff\xfe"))) == [(0, "is not UTF-8 text")]
    assert faults(lambda: lookup(write("LEAK0001,SUBJ-1\n")))[0][0] == 1  # what stands there is not quoted
    assert faults(lambda: lookup(write("")))[0][0] == 1


def test_rows_of_a_database_have_no_lines() -> None:
    rows = [Row(1, "LEAK1", "S1"), Row(2, "LEAK2", "S1")]
    assert faults(lambda: lookup_of(rows, "site: people", numbered=False)) == [
        (0, "the same pseudonym as in another row")
    ]


ids = st.text("abcXYZ019 .-", min_size=1, max_size=6).map(str.strip).filter(bool)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.lists(st.tuples(ids, st.text("abAB1-", min_size=1, max_size=3)), min_size=1, max_size=8))
def test_what_is_read_is_a_bijection_and_whatever_is_none_is_refused(write: Write, rows: list[tuple[str, str]]) -> None:
    path = write(HEAD + "".join(f"{key},{value}\n" for key, value in rows))
    keys, values = {key for key, _ in rows}, {value.casefold() for _, value in rows}
    sound = len(keys) == len(values) == len(rows) and not values & {key.casefold() for key in keys}
    if sound:
        found = lookup(path)
        assert found == dict(rows)
        assert len(set(found.values())) == len(found)
    else:
        assert faults(lambda: lookup(path))


# -- merges -----------------------------------------------------------------------------------------------------------


def test_chains_end_at_the_survivor(write: Write) -> None:
    path = write(MERGES + "C,D\nA,B\nB,C\nX,Y\nZ,Y\n")
    assert dict(read_merges(path)) == {"A": "D", "B": "D", "C": "D", "X": "Y", "Z": "Y"}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("LEAK1,LEAK1\n", (2, "an ID is merged into itself")),
        ("LEAK1,LEAK2\nLEAK1,LEAK3\n", (3, "the same old ID as in line 2")),
        ("LEAK1,LEAK2\nLEAK2,LEAK1\n", (2, "a circle of lines 2, 3")),
        ("LEAK9,LEAK1\nLEAK1,LEAK2\nLEAK2,LEAK3\nLEAK3,LEAK1\nLEAK8,LEAK9\n", (3, "a circle of lines 3, 4, 5")),
        ("LEAK1,\n", (2, "no Patient ID that could be sent (empty, control characters, a backslash)")),
    ],
)
def test_merges_that_have_no_survivor_are_refused_by_line(write: Write, rows: str, expected: tuple[int, str]) -> None:
    assert faults(lambda: read_merges(write(MERGES + rows))) == [expected]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(st.dictionaries(st.integers(0, 9), st.integers(0, 9), min_size=1, max_size=10))
def test_survivors_are_those_that_a_slow_walk_finds(write: Write, step: dict[int, int]) -> None:
    path = write(MERGES + "".join(f"P{old},P{new}\n" for old, new in step.items()))

    def walk(start: int) -> int | None:
        here = start
        for _ in range(20):
            if here not in step:
                return here
            here = step[here]
        return None

    ends = {f"P{old}": walk(old) for old in step}
    if None in ends.values():
        assert faults(lambda: read_merges(path))
    else:
        assert dict(read_merges(path)) == {old: f"P{end}" for old, end in ends.items()}


def test_a_chain_as_long_as_a_hospital_is_old_is_followed(write: Write) -> None:
    path = write(MERGES + "".join(f"P{n},P{n + 1}\n" for n in range(20_000)))
    assert set(read_merges(path).values()) == {"P20000"}
