"""`audit` from files to a page: right figures where they are known, faults said at once, every text escaped."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gateway.audit import Options, compare, measure, read_inputs, write_report
from gateway.audit.page import html_of
from gateway.cli import run
from gateway.errors import PolicyError, UsageError

PEOPLE, VISITS = 24, 2
QUICK = Options(replicates=60, permutations=99, draws=10, gallery=20, trees=15)


def files(folder: Path, signal: float, *, seed: int = 1, name: str = "brain") -> tuple[Path, Path]:
    """A synthetic cohort: identity of that strength, sex in the first dimension."""
    folder.mkdir(exist_ok=True)
    generator = np.random.default_rng(seed)
    identity = np.random.default_rng(0).normal(size=(PEOPLE, 16))
    identity[:, 0] += np.where(np.arange(PEOPLE) % 2, 3, -3)
    subject = np.repeat(np.arange(PEOPLE), VISITS)
    x = signal * identity[subject] + generator.normal(size=(len(subject), 16))
    scans = [f"scan{i:03d}" for i in range(len(subject))]
    np.savez(folder / "e.npz", scan=scans, **{name: x.astype(np.float32)})
    with open(folder / "m.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["scan", "subject", "date", "dataset", "sex"])
        for i, whose in enumerate(subject):
            table.writerow(
                [scans[i], f"person {whose}", f"20{10 + i % 2}-05-01", "AB"[whose % 4 // 2], "MF"[whose % 2]]
            )
    return folder / "e.npz", folder / "m.csv"


def ticks(_what: str, _done: int, _total: int) -> None:
    """Progress that nobody looks at."""


def test_a_strong_identity_is_found_and_its_report_names_every_table(tmp_path: Path) -> None:
    report = measure(read_inputs(*files(tmp_path, 3.0)), QUICK, ticks)
    assert report["people"] == PEOPLE
    assert not report["enough_people"]
    assert set(report["tables"]) == {"linkage", "worst_people", "time_gap", "mates", "capped", "strata", "attributes"}
    cosine = next(row for row in report["tables"]["linkage"] if row["metric"] == "cosine")
    assert cosine["rank1"]["rank1"] > 0.95
    assert cosine["d_sys"]["value"] > 0.9
    assert cosine["fixed_gallery"]["gallery"] == 20
    within = next(row for row in report["tables"]["attributes"] if row["where"] == "within")
    assert within["balanced_accuracy"] > 0.9
    assert {row["where"] for row in report["tables"]["attributes"]} == {"within", "A to B", "B to A"}
    gaps = report["tables"]["time_gap"]
    assert [row["gap"] for row in gaps if "d_sys" in row] == ["183 to 366 days"]  # visits a year apart


def test_before_and_after_keeps_the_two_attacks_apart(tmp_path: Path) -> None:
    before = read_inputs(*files(tmp_path / "a", 3.0, seed=1))
    after = read_inputs(*files(tmp_path / "b", 0.0, seed=2))
    report = compare(before, after, QUICK, ticks)
    rows = report["tables"]["attacks"]
    assert {row["attack"] for row in rows} == {"same_scan", "other_visit"}
    assert all(not row["void"] and row["d_sys_before"]["value"] > 0.7 for row in rows)
    assert all(row["d_sys"]["p"] > 0.01 and row["fixed_gallery"]["rank1"] < 0.25 for row in rows)


def test_an_attacker_who_finds_nobody_on_originals_is_void(tmp_path: Path) -> None:
    before, after = (read_inputs(*files(tmp_path / n, 0.0, seed=s)) for n, s in (("a", 13), ("b", 14)))
    assert all(row["void"] for row in compare(before, after, QUICK, ticks)["tables"]["attacks"])


def test_before_and_after_may_list_the_scans_in_any_order(tmp_path: Path) -> None:
    before, after = (read_inputs(*files(tmp_path / n, 2.0, seed=s)) for n, s in (("a", 1), ("b", 2)))
    turned = after.chosen(np.arange(PEOPLE * VISITS)[::-1])
    quick = replace(QUICK, replicates=20, permutations=19)
    assert compare(before, turned, quick, ticks) == compare(before, after, quick, ticks)
    with pytest.raises(UsageError, match="same scans"):
        compare(before, after.chosen(np.arange(4)), quick, ticks)


def test_the_original_of_the_very_scan_is_tried_where_nobody_came_twice(tmp_path: Path) -> None:
    first = np.arange(0, PEOPLE * VISITS, VISITS)
    before = read_inputs(*files(tmp_path, 2.0)).chosen(first)
    quick = replace(QUICK, replicates=20, permutations=99)
    report = compare(before, before, quick, ticks)
    same, other = (
        [row for row in report["tables"]["attacks"] if row["attack"] == name] for name in ("same_scan", "other_visit")
    )
    assert all(row["d_sys"]["value"] == 1 and not row["void"] and row["rank1_before"] is None for row in same)
    assert all("no_evidence" in row for row in other)
    assert "Fewer than 50 people" in html_of(report)


def test_people_without_a_value_and_rare_values_are_left_out_and_counted(tmp_path: Path) -> None:
    data = read_inputs(*files(tmp_path, 3.0))
    sex = list(data.columns["sex"])
    sex[0:2], sex[2:4] = ["", ""], ["X", "X"]  # one person without a value, one with a value of his own
    columns = {**data.columns, "sex": tuple(sex), "dataset": ("A",) * len(sex)}
    report = measure(replace(data, columns=columns), QUICK, ticks, only=("attributes", "strata"))
    (row,) = report["tables"]["attributes"]
    assert (row["people"], row["left_out"], row["classes"]) == (PEOPLE - 2, 2, ("F", "M"))
    assert {one["value"] for one in report["tables"]["strata"]} == {"F", "M", "X"}


def test_an_encoder_that_tells_nothing_apart_is_no_evidence(tmp_path: Path) -> None:
    data = read_inputs(*files(tmp_path, 1.0))
    same = replace(data, embeddings={"brain": np.ones((PEOPLE * VISITS, 4), np.float32)})
    rows = measure(same, QUICK, ticks, only=("linkage",))["tables"]["linkage"]
    assert all("the same embedding" in row["no_evidence"] for row in rows)


SECRET = "Mustermann"


@pytest.mark.parametrize(
    ("cells", "array", "says"),
    [
        ({"session": ["1", ""]}, None, "3: no session: fill it in"),
        ({"dataset": [" ", "A"]}, None, "2: no dataset"),
        ({"day": ["0", SECRET]}, None, "3: the day is no whole number"),
        ({}, np.array([[1.0, np.nan], [1, 2]]), "not finite in 1 of 2 rows, the first is row 1"),
        ({}, np.zeros((2, 0)), r"no \(scans, dimensions\) array"),
        ({}, np.array([["a"], ["b"]]), "holds no numbers"),
    ],
)
def test_what_cannot_be_audited_is_said_by_line_and_never_by_value(
    tmp_path: Path, cells: dict[str, list[str]], array: np.ndarray | None, says: str
) -> None:
    np.savez(tmp_path / "e.npz", scan=["s1", "s2"], brain=np.eye(2) if array is None else array)
    with open(tmp_path / "m.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["scan", "subject", *cells])
        for i in range(2):
            table.writerow([f"s{i + 1}", SECRET, *(column[i] for column in cells.values())])
    with pytest.raises(PolicyError, match=says) as caught:
        read_inputs(tmp_path / "e.npz", tmp_path / "m.csv")
    assert SECRET not in str(caught.value)


def test_files_of_another_kind_are_refused_with_a_hint(tmp_path: Path) -> None:
    embeddings, metadata = files(tmp_path, 1.0)
    plain, empty = tmp_path / "plain.npz", tmp_path / "empty.npz"
    with open(plain, "wb") as file:
        np.save(file, np.eye(3))
    empty.touch()
    with pytest.raises(UsageError, match="one array"):
        read_inputs(plain, metadata)
    with pytest.raises(UsageError, match=r"no \.npz"):
        read_inputs(empty, metadata)
    metadata.write_text(metadata.read_text().replace(",", ";"))
    with pytest.raises(UsageError, match="separated by commas"):
        read_inputs(embeddings, metadata)


def test_spaces_around_names_and_whole_numbers_as_embeddings_are_taken(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", scan=["s1", "s2"], brain=np.eye(2, dtype=np.int16))
    (tmp_path / "m.csv").write_text(" scan , subject\n s1 , a\ns2,b \n")
    found = read_inputs(tmp_path / "e.npz", tmp_path / "m.csv")
    assert found.columns["subject"] == ("a", "b")
    assert found.embeddings["brain"].dtype == np.float64


def test_the_same_seed_gives_the_same_report_and_another_encoder_does_not_change_it(tmp_path: Path) -> None:
    embeddings, metadata = files(tmp_path, 1.0)
    first = measure(read_inputs(embeddings, metadata), QUICK, ticks)
    assert measure(read_inputs(embeddings, metadata), QUICK, ticks) == first
    with np.load(embeddings) as file:
        arrays = dict(file)
    np.savez(embeddings, **arrays, also=np.random.default_rng(5).normal(size=(PEOPLE * VISITS, 4)))
    both = measure(read_inputs(embeddings, metadata), QUICK, ticks)["tables"]["linkage"]
    assert [row for row in both if row["encoder"] == "brain"] == first["tables"]["linkage"]


def test_text_from_files_is_escaped_and_the_page_needs_nothing_else(tmp_path: Path) -> None:
    data = read_inputs(*files(tmp_path, 1.0, name="<script>alert(1)</script>"))
    _, page = write_report(measure(data, QUICK, ticks), tmp_path / "out")
    text = page.read_text()
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert not re.search(r"(src|href)=.?(http|//)|@import|url\((?!#)", text)
    assert page.stat().st_mode & 0o777 == 0o600
    assert "person 3" not in text  # whose scans they are stays in the metadata


def test_a_report_says_its_worst_findings_in_words_and_what_columns_mean(tmp_path: Path) -> None:
    data = read_inputs(*files(tmp_path, 3.0))
    report = measure(replace(data, trained_on={"brain": 7}), QUICK, ticks)
    text = html_of(report)
    fixed = [row["fixed_gallery"] for row in report["tables"]["linkage"]]
    worst = max(fixed, key=lambda one: one["upper"])
    short = re.sub(r"<[^>]*>", " ", text[text.index("In short") : text.index("What the columns mean")])
    assert f"among 20 people in {100 * worst['rank1']:.0f} % of tries, at most {100 * worst['upper']:.0f} %" in short
    assert "guessing would in 5.0 %" in short
    assert re.search(r"sex is read from the scans of a person rightly in (9\d|100) %", short)
    assert "brain was trained on 7 of these people" in text
    for title in ("Linkage", "Re-identification", "Canberra and cosine", "What can be inferred", "Two to five scans"):
        assert f"<h2>{title}" in text
    for term in ("at most", "shuffled", "rank-1", "no evidence"):
        assert f"<dt>{term}</dt>" in text


def test_a_comparison_says_what_each_attacker_still_finds(tmp_path: Path) -> None:
    before = read_inputs(*files(tmp_path / "a", 3.0, seed=1))
    text = html_of(compare(before, before, QUICK, ticks))
    assert "Whoever holds the original of the very scan that was released finds the person among 20 in 100 %" in text
    nobody = read_inputs(*files(tmp_path / "b", 0.0, seed=13)), read_inputs(*files(tmp_path / "c", 0.0, seed=14))
    assert "no attacker could be measured. That is no sign of safety" in html_of(compare(*nobody, QUICK, ticks))


def test_only_the_tables_that_are_asked_for_are_measured(tmp_path: Path) -> None:
    report = measure(read_inputs(*files(tmp_path, 1.0)), QUICK, ticks, ("capped",))
    assert list(report["tables"]) == ["capped"]


def test_synthetic_people_are_marked(tmp_path: Path) -> None:
    embeddings, metadata = files(tmp_path, 1.0)
    out = tmp_path / "out"
    words = ["audit", embeddings, "--metadata", metadata, "--out", out, "--replicates", 100, "--synthetic"]
    assert run([str(word) for word in words]) == 0
    assert "these people do not exist" in (out / "audit.html").read_text()
    assert json.loads((out / "audit.json").read_text())["synthetic"] is True


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["scan,sex", "scan000,M"], "no column subject"),
        (["scan,subject", "scan000,a"], "47 of 48 scans have no row"),
        (["scan,subject", "scan000,a", "scan000,b"], "m.csv:3: a scan that has a row already"),
        (["scan,subject,date", "scan000,a,2010"], "m.csv:2: the date is not YYYY-MM-DD"),
        (["scan,subject", "scan000"], "m.csv:2: not 2 cells"),
    ],
)
def test_faults_of_the_metadata_are_told_by_line_never_by_value(
    tmp_path: Path, lines: Sequence[str], says: str
) -> None:
    embeddings, metadata = files(tmp_path, 1.0)
    metadata.write_text("\n".join(lines) + "\n")
    with pytest.raises(UsageError) as told:
        read_inputs(embeddings, metadata)
    assert says in str(told.value)
    assert "scan000" not in str(told.value)


def test_faults_of_the_embeddings(tmp_path: Path) -> None:
    _, metadata = files(tmp_path, 1.0)
    bad = tmp_path / "bad.npz"
    with pytest.raises(UsageError, match="cannot be read"):
        read_inputs(bad, metadata)
    np.savez(bad, x=np.zeros((2, 2)))
    with pytest.raises(UsageError, match="`scan`"):
        read_inputs(bad, metadata)
    np.savez(bad, scan=np.array([object()], object), allow_pickle=True)
    with pytest.raises(UsageError, match="plain arrays"):
        read_inputs(bad, metadata)
    np.savez(bad, scan=["scan000", "scan000"], x=np.array([[np.nan], [1.0]]))
    with pytest.raises(UsageError, match=r"(?s)not finite.*twice|twice.*not finite"):
        read_inputs(bad, metadata)
