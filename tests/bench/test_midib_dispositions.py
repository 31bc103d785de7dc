"""The fates that the generator writes down, against TCIA's own tables."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from bench.midib_corpus import vendors
from bench.midib_corpus.corpus import Recipe, make

STANDARD = Path(__file__).resolve().parents[2].parent / "shared" / "standard"
pytestmark = [
    pytest.mark.shared,
    pytest.mark.skipif(not STANDARD.is_dir(), reason="../shared/standard is not there"),
]
FATES = {"keep": {"keep"}, "tcia": {"keep"}, "delete": {"delete"}, "date": {"offset_date", "offset_integer_date"}}
NOT_IN_TCIA_S_LIST = {"RIVERBEND RIS 1.0", "SIEMENS MED"}


def private_rows() -> list[tuple[str, str, str, str, str]]:
    blocks = {block for some in vendors.BLOCKS.values() for block in some}
    lines = {line for block in blocks for line in block.splitlines() if line}
    return sorted({tuple(line.split(";", 5)[:5]) for line in lines})  # type: ignore[misc]


def test_private_fates_are_those_of_tcia_s_knowledge_base() -> None:
    known: dict[tuple[str, str, str], set[str]] = {}
    with open(STANDARD / "tcia_private_kb.csv", newline="") as file:
        for row in csv.DictReader(file):
            if not row["parent_path"]:
                place = (row["private_creator"].upper(), row["group"], row["element"])
                known.setdefault(place, set()).add(row["disposition"])
    for creator, group, element, _, fate in private_rows():
        if creator in NOT_IN_TCIA_S_LIST:
            continue
        wanted = FATES.get(fate, {"hash_uid"})
        assert known.get((creator.upper(), group, element), {"delete"}) & wanted, (creator, group, element, fate)


def test_rows_marked_keep_are_in_table_e_3_10_1_too() -> None:
    with open(STANDARD / "safe_private.csv", newline="") as file:
        safe = {
            (row["private_creator"].upper(), row["group"].upper(), row["element_offset"].upper())
            for row in csv.DictReader(file)
        }
    for creator, group, element, _, fate in private_rows():
        assert ((creator.upper(), group, element) in safe) == (fate == "keep") or fate in ("delete", "date", "uid")


def test_what_the_key_wants_kept_is_not_removed_by_tcia_and_the_reverse() -> None:
    with open(STANDARD / "tcia_profile.csv", newline="") as file:
        profile = {
            row["tag"].strip("()").lower().replace(",", ""): row["tcia_implementation"] for row in csv.DictReader(file)
        }
    for made in make(Recipe(patients=60)):
        for check in made.instance.checks:
            if "[" in check.tag_ds or '"' in check.tag_ds:
                continue
            fate = profile.get(check.tag_ds.strip("()").replace(",", ""), "")
            if check.action == "text_retained":
                assert fate not in ("remove", "empty", "replace", "hashuid", "incrementdate"), check
            if check.action == "date_shifted":
                assert fate == "incrementdate", check
            if check.action == "uid_changed":
                assert fate == "hashuid", check
