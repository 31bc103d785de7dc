"""A synthetic PS3.15 in DocBook, written from rows in the form of our data files: the reverse of what is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape

from gateway.policy.drift_tables import CONTENT_COLUMNS, CSV_COLUMNS
from gateway.policy.standard import CONTENT_TABLE, SAFE_TABLE, TABLE, dated_file, parse_options, read_dated

Rows = list[dict[str, str]]
HEADINGS = (
    *("Rtn. Safe Priv. Opt.", "Rtn. UIDs Opt.", "Rtn. Dev. Id. Opt.", "Rtn. Inst. Id. Opt."),
    *("Rtn. Pat. Chars. Opt.", "Rtn. Long. Full Dates Opt.", "Rtn. Long. Modif. Dates Opt."),
    *("Clean Desc. Opt.", "Clean Struct. Cont. Opt.", "Clean Graph. Opt."),
)
SHORT = dict(zip(CSV_COLUMNS.values(), HEADINGS, strict=True))  # option -> heading of its column


def shipped(table: str, edition: str = "2026d") -> Rows:
    return read_dated(dated_file(table, edition))[1]


def tag_as_printed(tag: str) -> str:
    if tag == "ggggeeee":
        return "(gggg,eeee) where gggg is odd"
    return f"({tag[:4]},{tag[4:]})"


def table(xml_id: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def line(cells: Sequence[str], kind: str) -> str:
        inside = "".join(f"<{kind}><para>{escape(cell)}</para></{kind}>" for cell in cells)
        return f"<tr valign='top'>{inside}</tr>"

    body = "".join(line(row, "td") for row in rows)
    return f"<table xml:id='{xml_id}'><thead>{line(headings, 'th')}</thead><tbody>{body}</tbody></table>"


def attributes(rows: Rows) -> str:
    headings = ["Attribute Name", "Tag", "Retd. (from PS3.6)", "In Std. Comp. IOD (from PS3.3)", "Basic Prof."]
    cells = [
        [
            row["keyword"] or "Name",
            tag_as_printed(row["tag"]),
            row["retired"],
            row["in_std_comp_iod"],
            row["basic"],
            *(parse_options(row["options"]).get(option, "") for option in SHORT),
        ]
        for row in rows
    ]
    return table("table_E.1-1", [*headings, *SHORT.values()], cells)


def content(rows: Rows) -> str:
    headings = ["Code Meaning", "Code Value", "Coding Scheme Designator", "Value Type"]
    options = list(CONTENT_COLUMNS.values())
    cells = [
        [
            *(row[name] for name in ("meaning", "code", "scheme", "value_type", "retired")),
            "Y",
            row["basic"],
            *(parse_options(row["options"]).get(option, "") for option in options),
        ]
        for row in rows
    ]
    middle = ["Retd. (from PS3.16)", "In Std. Tpl. (from PS3.16)", "Basic Prof."]
    return table("table_E.3.4-1", [*headings, *middle, *(SHORT[option] for option in options)], cells)


def safe_private(rows: Rows) -> str:
    cells = [
        [f"({row['group'].lower()},xx{row['element'].lower()})", row["creator"], row["vr"], "1", row["meaning"]]
        for row in rows
    ]
    return table("table_E.3.10-1", ["Data Element", "Private Creator", "VR", "VM", "Meaning"], cells)


def methods(codes: Mapping[str, str]) -> str:
    cells = [["DCM", code, meaning] for code, meaning in codes.items()]
    return table("table_CID_7050", ["Coding Scheme Designator", "Code Value", "Code Meaning"], cells)


def book(*tables: str, edition: str = "2027a") -> str:
    return (
        "<?xml version='1.0' encoding='utf-8'?><book xmlns='http://docbook.org/ns/docbook' label='PS3.15'>"
        f"<subtitle>DICOM PS3.15 {edition} - Security and System Management Profiles</subtitle>"
        f"<chapter label='E' xml:id='chapter_E'>{''.join(tables)}</chapter></book>"
    )


def whole(edition: str = "2027a") -> str:
    """Every table of PS3.15 as shipped, under another edition's name."""
    return book(
        attributes(shipped(TABLE)), content(shipped(CONTENT_TABLE)), safe_private(shipped(SAFE_TABLE)), edition=edition
    )
