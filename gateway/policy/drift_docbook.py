"""The tables of PS3.15 Annex E, and CID 7050 of PS3.16, out of the DocBook XML that DICOM publishes (`part15.xml`).

A table is found by its `xml:id`, its columns by their headings: rows and columns may move between editions. Another
heading, a row with another number of cells or a cell that nobody knows is an error, never a guess.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from gateway.policy.drift_tables import (
    CONTENT_COLUMNS,
    CSV_COLUMNS,
    Rows,
    SourceError,
    content_rows,
    row_of,
    safe_rows,
    squeezed,
)
from gateway.policy.standard import OPTIONS

ATTRIBUTES, CONTENT, SAFE_PRIVATE, METHODS = "table_E.1-1", "table_E.3.4-1", "table_E.3.10-1", "table_CID_7050"
XML_ID = "{http://www.w3.org/XML/1998/namespace}id"
MAX_BYTES = 256 << 20

# Heading (letters and digits only, lower case) -> column. A heading that ends in "*" may go on in any way.
_OPTION_HEADINGS = {column.replace("_", "") + "opt": option for column, option in CSV_COLUMNS.items()}
_ATTRIBUTE_HEADINGS = _OPTION_HEADINGS | {
    "attributename": "name",
    "tag": "tag",
    "retdfromps36": "retired",
    "instdcompiodfromps33": "in_std_comp_iod",
    "basicprof": "basic",
}
_CONTENT_HEADINGS = {column.replace("_", "") + "opt": column for column in CONTENT_COLUMNS} | {
    "codemeaning": "code_meaning",
    "codevalue": "code_value",
    "codingschemedesignator": "coding_scheme_designator",
    "valuetype": "value_type",
    "retd*": "retired",
    "instdtpl*": "in_std_tpl",
    "basicprof": "basic",
}
_SAFE_HEADINGS = {
    "dataelement": "element",
    "privatecreator": "private_creator",
    "vr": "vr",
    "vm": "vm",
    "meaning": "meaning",
}
_PRIVATE_ELEMENT = re.compile(r"\(([0-9A-Fa-f]{4}),xx([0-9A-Fa-f]{2})\)")


class Tables(NamedTuple):
    """What one file holds, in the form of the data files; None for a table that it has not.

    `edition` is that of the book's subtitle, "" where it names none. `methods` are meanings by code of CID 7050.
    """

    edition: str
    attributes: Rows | None
    content: Rows | None
    safe_private: Rows | None
    methods: Mapping[str, str] | None


def read_docbook(data: bytes) -> Tables:
    """Raises SourceError for what this version does not know, and for a file with none of the tables."""
    try:
        root = ET.fromstring(data)  # noqa: S314 - the standard's own file, given by the person who runs this
    except ET.ParseError as error:
        raise SourceError(f"not XML: {error}") from None
    found = {name: element for element in root.iter() if (name := element.get(XML_ID, ""))}
    if not {ATTRIBUTES, CONTENT, SAFE_PRIVATE, METHODS} & found.keys():
        raise SourceError(f"no table with xml:id {ATTRIBUTES}; is it the DocBook form of PS3.15?")
    return Tables(
        _edition(root),
        _attributes(found[ATTRIBUTES]) if ATTRIBUTES in found else None,
        _content(found[CONTENT]) if CONTENT in found else None,
        _safe_private(found[SAFE_PRIVATE]) if SAFE_PRIVATE in found else None,
        _methods(found[METHODS]) if METHODS in found else None,
    )


def read_file(path: Path) -> Tables:
    """As `read_docbook`. Raises OSError too."""
    with open(path, "rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise SourceError(f"larger than {MAX_BYTES >> 20} MiB")
    return read_docbook(data)


def _edition(root: ET.Element) -> str:
    for element in root.iter():
        if element.tag.rpartition("}")[2] == "subtitle":
            match = re.search(r"\b(20\d\d[a-e])\b", cell_text(element))
            return match[1] if match else ""
    return ""


def cell_text(cell: ET.Element) -> str:
    """The text of a cell: paragraphs, emphasis and line breaks joined; footnotes left out; one space between words."""
    parts: list[str] = []

    def walk(element: ET.Element) -> None:
        if element.tag.rpartition("}")[2] == "footnote":
            return
        parts.append(element.text or "")
        for child in element:
            walk(child)
            parts.append(" " + (child.tail or ""))

    walk(cell)
    return re.sub(r"\s+", " ", "".join(parts).replace("\u200b", "")).strip()


def _cells(table: ET.Element, headings: Mapping[str, str]) -> list[dict[str, str]]:
    """Rows by column name. Raises SourceError when the headings or the width of a row are not the known ones."""
    lines = [element for element in table.iter() if element.tag.rpartition("}")[2] == "tr"]
    texts = [[cell_text(cell) for cell in line if cell.tag.rpartition("}")[2] in ("td", "th")] for line in lines]
    name = table.get(XML_ID, "")
    if not texts:
        raise SourceError(f"{name}: the table has no rows")
    columns = [_column(heading, headings) for heading in texts[0]]
    if None in columns or len(set(columns)) != len(set(headings.values())):
        unknown = [heading for heading, column in zip(texts[0], columns, strict=True) if column is None]
        raise SourceError(f"{name}: the headings changed: {', '.join(unknown or texts[0])}")
    rows = []
    for text in texts[1:]:
        if len(text) != len(columns):
            raise SourceError(f"{name}: a row with {len(text)} cells instead of {len(columns)}: {text[:2]}")
        rows.append({str(column): cell for column, cell in zip(columns, text, strict=True)})
    return rows


def _column(heading: str, headings: Mapping[str, str]) -> str | None:
    bare = re.sub(r"[^a-z0-9]", "", heading.lower())
    if bare in headings:
        return headings[bare]
    return next((column for form, column in headings.items() if form[-1] == "*" and bare.startswith(form[:-1])), None)


def _attributes(table: ET.Element) -> Rows:
    rows = _cells(table, _ATTRIBUTE_HEADINGS)
    return [row_of(cells, {option: cells[option] for option in OPTIONS}) for cells in rows]


def _content(table: ET.Element) -> Rows:
    return content_rows(_cells(table, _CONTENT_HEADINGS))


def _safe_private(table: ET.Element) -> Rows:
    found = []
    for cells in _cells(table, _SAFE_HEADINGS):
        match = _PRIVATE_ELEMENT.fullmatch(squeezed(cells["element"]))
        if match is None:
            raise SourceError(f"{SAFE_PRIVATE}: a private element in a form that is not known: {cells['element']!r}")
        found.append({**cells, "group": match[1], "element_offset": match[2]})
    return safe_rows(found)


def _methods(table: ET.Element) -> Mapping[str, str]:
    """CID 7050: its table may have more columns than the two that count."""
    lines = [element for element in table.iter() if element.tag.rpartition("}")[2] == "tr"]
    texts = [[cell_text(cell) for cell in line if cell.tag.rpartition("}")[2] in ("td", "th")] for line in lines]
    names = [re.sub(r"[^a-z0-9]", "", heading.lower()) for heading in texts[0]] if texts else []
    if not {"codevalue", "codemeaning"} <= set(names):
        raise SourceError(f"{METHODS}: the headings changed")
    value, meaning = names.index("codevalue"), names.index("codemeaning")
    short = [text for text in texts[1:] if len(text) <= max(value, meaning)]
    if short:
        raise SourceError(f"{METHODS}: a row with {len(short[0])} cells")
    return {text[value]: text[meaning] for text in texts[1:]}
