"""The shipped tables say what the standard says: cell by cell against the reviewed source, known cells always."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest
from pydicom.datadict import keyword_for_tag

from gateway.errors import UsageError
from gateway.policy import load_table
from gateway.policy.standard import (
    BASIC_CODES,
    FOLDER,
    OPTION_CODES,
    OPTIONS,
    load_missing_dictionary,
    load_type_conflicts,
    load_watchlist,
    read_dated,
    standard_digest,
    tag_of_keyword,
)

SOURCE = Path(__file__).resolve().parents[2].parent / "shared" / "standard"
NEED_SOURCE = pytest.mark.skipif(not SOURCE.is_dir(), reason="../shared/standard is not here")
COLUMNS = (
    *("rtn_safe_priv", "rtn_uids", "rtn_dev_id", "rtn_inst_id", "rtn_pat_chars", "rtn_long_full_dates"),
    *("rtn_long_modif_dates", "clean_desc", "clean_struct_cont", "clean_graph"),
)


def source_rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((SOURCE / name).read_text("utf-8").splitlines()))


@pytest.mark.shared
@NEED_SOURCE
def test_every_cell_of_table_e_1_1_equals_the_reviewed_source() -> None:
    _, shipped = read_dated(FOLDER / "ps3_15_e1_1_2026d.csv")
    ours = {row["tag"]: row for row in shipped}
    theirs = source_rows("ps3_15_e1_1.csv")
    assert len(ours) == len(shipped) == len(theirs) == 657
    table = load_table("2026d")
    for row in theirs:
        tag = "ggggeeee" if row["tag"] == "(gggg,eeee) where gggg is odd" else row["tag"]
        assert {name: ours[tag][name] for name in ("keyword", "retired", "in_std_comp_iod", "basic")} == {
            name: row[name] for name in ("keyword", "retired", "in_std_comp_iod", "basic")
        }
        expected = {option: row[column] for column, option in zip(COLUMNS, OPTIONS, strict=True) if row[column]}
        assert dict(table[tag].columns) == expected, tag
        assert table[tag].basic == row["basic"]
        assert table[tag].retired == (row["retired"] == "Y")
        assert table[tag].in_standard_iod == (row["in_std_comp_iod"] == "Y")


@pytest.mark.shared
@NEED_SOURCE
def test_the_companions_equal_their_sources() -> None:
    assert {(w.tag, w.keyword, w.vr) for w in load_watchlist().values()} == {
        (row["tag"], row["keyword"], row["vr"]) for row in source_rows("not_in_e1_1_watchlist.csv")
    }
    assert {(c.keyword, c.basic, c.type, c.module, c.sequence_path) for c in load_type_conflicts()} == {
        (row["keyword"], row["basic_code"], row["ps3_3_type"], row["module"], row["sequence_path"])
        for row in source_rows("type_conflicts.csv")
    }
    assert {(m.tag, m.keyword, m.vr, m.vm) for m in load_missing_dictionary().values()} == {
        (row["tag"], row["keyword"], row["vr"], row["vm"]) for row in source_rows("pydicom_302_missing.csv")
    }


def test_the_table_has_the_rows_and_codes_of_edition_2026d() -> None:
    table = load_table("2026d")
    assert Counter(row.basic for row in table.values()) == {
        "X": 417,
        "D": 93,
        "U": 55,
        "Z": 42,
        "X/D": 23,
        "X/Z": 11,
        "X/Z/D": 8,
        "Z/D": 6,
        "X/Z/U*": 2,
    }
    per_option = Counter((option, code) for row in table.values() for option, code in row.columns.items())
    assert per_option == {
        ("retain-safe-private", "C"): 1,
        ("retain-uids", "K"): 60,
        ("retain-device-identity", "K"): 48,
        ("retain-device-identity", "C"): 11,
        ("retain-institution-identity", "K"): 10,
        ("retain-patient-characteristics", "K"): 14,
        ("retain-patient-characteristics", "C"): 5,
        ("retain-longitudinal-full-dates", "K"): 169,
        ("retain-longitudinal-modified-dates", "C"): 169,
        ("clean-descriptors", "C"): 141,
        ("clean-structured-content", "C"): 4,
        ("clean-graphics", "C"): 4,
    }
    assert {row.basic for row in table.values()} <= BASIC_CODES


@pytest.mark.parametrize(
    ("tag", "keyword", "basic", "columns"),
    [
        ("00100010", "PatientName", "Z", {}),
        ("00100020", "PatientID", "Z/D", {}),
        ("00080018", "SOPInstanceUID", "U", {"retain-uids": "K"}),
        ("00020003", "MediaStorageSOPInstanceUID", "U", {"retain-uids": "K"}),
        ("00101010", "PatientAge", "X", {"retain-patient-characteristics": "K"}),
        ("00104000", "PatientComments", "X", {"clean-descriptors": "C"}),
        ("00081140", "ReferencedImageSequence", "X/Z/U*", {"retain-uids": "K"}),
        ("04000561", "OriginalAttributesSequence", "X", {}),
        ("ggggeeee", "", "X", {"retain-safe-private": "C"}),
        ("50xxxxxx", "", "X", {"clean-graphics": "C"}),
        ("60xx3000", "OverlayData", "X", {"clean-graphics": "C"}),
        ("00102162", "EthnicGroups", "X", {"retain-patient-characteristics": "K"}),  # pydicom 3.0.2 lacks its keyword
    ],
)
def test_known_rows(tag: str, keyword: str, basic: str, columns: dict[str, str]) -> None:
    row = load_table()[tag]
    assert (row.keyword, row.basic, dict(row.columns)) == (keyword, basic, columns)


def test_every_keyword_is_the_dictionarys_and_leads_back_to_its_tag() -> None:
    for tag, row in load_table().items():
        if "x" in tag or tag == "ggggeeee":
            continue
        assert row.keyword
        assert keyword_for_tag(int(tag, 16)) in (row.keyword, "")
        assert tag_of_keyword(row.keyword) == int(tag, 16)


def test_full_and_modified_dates_cover_the_same_rows() -> None:
    for row in load_table().values():
        assert ("retain-longitudinal-full-dates" in row.columns) == (
            "retain-longitudinal-modified-dates" in row.columns
        )


def test_option_codes_are_those_of_cid_7050() -> None:
    assert {name: code for name, (code, _) in OPTION_CODES.items()} == {
        "clean-graphics": "113103",
        "clean-structured-content": "113104",
        "clean-descriptors": "113105",
        "retain-longitudinal-full-dates": "113106",
        "retain-longitudinal-modified-dates": "113107",
        "retain-patient-characteristics": "113108",
        "retain-device-identity": "113109",
        "retain-uids": "113110",
        "retain-safe-private": "113111",
        "retain-institution-identity": "113112",
    }


def test_the_watchlist_holds_no_row_of_the_table_and_no_unknown_kind() -> None:
    watched = load_watchlist()
    assert len(watched) == 369
    assert not watched.keys() & load_table().keys()
    assert Counter(entry.kind for entry in watched.values()) == {
        "text": 312,
        "instance-uid": 21,
        "structural-uid": 15,
        "uri": 11,
        "bulk": 6,
        "date-time": 3,
        "other-uid": 1,
    }
    assert watched["00080016"].kind == "structural-uid"
    assert len(load_type_conflicts()) == 58


def test_an_unknown_edition_says_which_exist() -> None:
    with pytest.raises(UsageError, match="2026d"):
        load_table("2019a")


def test_the_tables_cannot_be_changed() -> None:
    table = load_table()
    with pytest.raises(TypeError):
        table["00100010"] = table["00100020"]  # type: ignore[index]
    with pytest.raises(AttributeError):
        table["00100010"].basic = "K"  # type: ignore[misc]


def test_the_digest_of_the_standard_is_stable_and_hexadecimal() -> None:
    assert standard_digest("2026d") == standard_digest("2026d")
    assert len(bytes.fromhex(standard_digest("2026d"))) == 32


def test_the_digest_follows_a_cell_and_not_the_form_of_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gateway.policy import standard

    for path in FOLDER.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(standard, "FOLDER", tmp_path)
    before = standard.standard_digest.__wrapped__("2026d")
    table = tmp_path / "ps3_15_e1_1_2026d.csv"
    text = table.read_text()
    table.write_text(text.replace("# taken: ", "# taken: (another day) "))
    assert standard.standard_digest.__wrapped__("2026d") == before
    table.write_text(text.replace("00100010,PatientName,N,Y,Z,", "00100010,PatientName,N,Y,X,"))
    assert standard.standard_digest.__wrapped__("2026d") != before
