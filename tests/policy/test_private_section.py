"""`header.private`, `header.encapsulated` and the lists behind them: strict, with every fault at its line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gateway.errors import PolicyError
from gateway.policy import HeaderPolicy, Policy, Registry, explain_policy, read_snapshot
from gateway.policy.content_table import content_row, load_content_table
from gateway.policy.private_lists import creator_key, load_safe_private, load_tcia, vr_of

Load = Callable[[str | bytes], Policy]

ENTRY = '{creator: "ACME 1.0", group: "0029", element: "10", vr: DS, reason: "gradient table, DPO-7"}'
PRIVATE = f"""\
header:
  options: [retain-safe-private]
  private:
    dispositions: tcia
    csa_headers: clean
    keep:
      - {ENTRY}
  encapsulated: replace
"""


def faults(load: Load, text: str) -> list[tuple[int, str, str]]:
    with pytest.raises(PolicyError) as caught:
        load(text)
    return [(fault.line, fault.says, fault.hint) for fault in caught.value.faults]


def test_the_section_loads_and_a_snapshot_brings_it_back(load: Load, small: str, registry: Registry) -> None:
    policy = load(small + PRIVATE)
    private = policy.header.private
    assert (private.dispositions, private.csa_headers, policy.header.encapsulated) == ("tcia", "clean", "replace")
    assert private.kept == {("acme 1.0", 0x29, 0x10): "DS"}
    assert read_snapshot(policy.to_snapshot(), registry) == policy
    assert load(small).header.private == HeaderPolicy().private
    assert hash(policy.header.private)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("dispositions: tcia", "dispositions: none"),
        ("csa_headers: clean", "csa_headers: remove"),
        ("ACME 1.0", "ACME 1.1"),
        ('"10"', '"11"'),
        ("DPO-7", "DPO-8"),
        ("vr: DS", "vr: FD"),
        ("encapsulated: replace", "encapsulated: hold"),
    ],
)
def test_every_change_of_it_is_another_policy(load: Load, small: str, before: str, after: str) -> None:
    assert before in PRIVATE
    assert load(small + PRIVATE.replace(before, after)).digest != load(small + PRIVATE).digest


@pytest.mark.parametrize(
    ("before", "after", "line", "says", "hint"),
    [
        (
            "[retain-safe-private]",
            "[]",
            6,
            "private says what stays, but the option retain-safe-private is not on",
            "add",
        ),
        ('"0029"', '"0028"', 10, "0028 is not a private group", "four hex digits"),
        ('"0029"', '"29"', 10, "29 is not a private group", "four hex digits"),
        ('"0029"', '"0001"', 10, "0001 is not a private group", "four hex digits"),
        ('"10"', '"1010"', 10, "1010 is not an element of a private block", "last two hex digits"),
        ("vr: DS", "vr: PN", 10, "a person's name (PN) cannot be kept, whatever the reason", "remove"),
        ("vr: DS", "vr: ZZ", 10, "ZZ is not a VR", "PS3.5"),
        (" vr: DS,", "", 10, "no list knows the VR of (0029,xx10) of ACME 1.0", "add vr:"),
        (', reason: "gradient table, DPO-7"', "", 10, "the key reason is missing", ""),
        ('"ACME 1.0"', '" "', 10, "a private creator is 1 to 64 printable characters", "as the device does"),
        ("dispositions: tcia", "dispositions: tcai", 7, "private.dispositions must be 'none' or 'tcia'", ""),
        ("csa_headers: clean", "csa_headers: keep", 8, "private.csa_headers must be 'remove' or 'clean'", ""),
        ("csa_headers", "csa_header", 8, "unknown key csa_header", "csa_headers"),
        ("encapsulated: replace", "encapsulated: keep", 11, "encapsulated must be 'hold' or 'replace'", ""),
        (
            '"ACME 1.0"',
            '"SIEMENS CSA HEADER"',
            10,
            "a Siemens CSA header is kept through its cleaner only",
            "csa_headers",
        ),
    ],
)
def test_each_fault_has_its_line_and_says_what_to_do(
    load: Load, small: str, before: str, after: str, line: int, says: str, hint: str
) -> None:
    assert before in PRIVATE
    ((at, told, hinted),) = faults(load, small + PRIVATE.replace(before, after, 1))
    assert (at, told) == (line, says)
    assert hint in hinted


def test_an_attribute_is_kept_once(load: Load, small: str) -> None:
    again = ENTRY.replace("ACME", "acme").replace("DPO-7", "DPO-9")
    ((_, says, _),) = faults(load, small + PRIVATE.replace(ENTRY, f"{ENTRY}\n      - {again}"))
    assert says == "a private attribute is kept twice"


def test_the_vr_may_be_left_out_where_a_list_knows_it(load: Load, small: str) -> None:
    known = '{creator: "GEMS_PARM_01", group: "0043", element: "39", reason: "b-value"}'
    assert load(small + PRIVATE.replace(ENTRY, known)).header.private.kept == {("gems_parm_01", 0x43, 0x39): "IS"}


def test_explain_tells_every_part_of_it(load: Load, small: str) -> None:
    lines = explain_policy(load(small + PRIVATE))
    text = "\n".join(lines)
    assert "Table E.3.10-1 calls safe stays, changed and extended by TCIA's dispositions" in text
    assert "Private, kept: (0029,xx10) of ACME 1.0, because: gradient table, DPO-7" in lines
    assert "Private: Siemens CSA headers are emptied but for technical fields." in lines
    assert "Documents: encapsulated documents are replaced by blank ones." in lines
    plain = explain_policy(load(small))
    assert "Private: everything private goes." in plain
    assert "Documents: encapsulated documents are held." in plain


# -- the lists --------------------------------------------------------------------------------------------------------


def test_the_safe_list_has_the_rows_of_table_e_3_10_1() -> None:
    rows = load_safe_private()
    assert len(rows) == 479
    assert rows["philips pet private group", 0x7053, 0x00].vrs == ("DS",)
    assert rows["philips imaging dd 001", 0x2001, 0x7D].vrs == ("OW", "OB")
    assert sum(row.vrs == () for row in rows.values()) == 5
    assert sum(row.vrs == ("SQ",) for row in rows.values()) == 55


def test_tcias_list_keeps_what_differs_from_removal() -> None:
    rows = load_tcia()
    assert rows["gems_iden_01", 0x0009, 0x27] == {"OB": "epoch", "SL": "epoch", "UN": "epoch"}
    assert rows["gems_petd_01", 0x0009, 0x0D] == {"DT": "date", "LO": "date", "SH": "date"}
    assert rows["philips imaging dd 001", 0x2001, 0x3F] == {"CS": "remove"}  # safe in the standard's list
    assert ("", 0x0009, 0x02) not in rows
    assert {action for by_vr in rows.values() for action in by_vr.values()} == {
        "keep",
        "uid",
        "date",
        "epoch",
        "remove",
    }


def test_creators_are_compared_without_case_and_padding() -> None:
    assert creator_key(" Philips MR Imaging DD 001 \0") == creator_key("PHILIPS MR IMAGING DD 001")
    assert vr_of((creator_key("Elscint1"), 0x01F1, 0x26)) == "DS"
    assert vr_of((creator_key("nobody"), 0x01F1, 0x26)) == ""


def test_the_content_table_has_its_rows_and_finds_retired_codes() -> None:
    assert len(load_content_table()) == 214
    row = content_row("DCM", "113809", "DATETIME")
    assert row is not None
    assert (row.basic, dict(row.columns)) == (
        "D",
        {"retain-longitudinal-full-dates": "K", "retain-longitudinal-modified-dates": "C"},
    )
    assert content_row("DCM", "113809", "TEXT") is None
    assert content_row("SRT", "G-C0E3", "TEXT") == content_row("SCT", "363698007", "TEXT") is not None
