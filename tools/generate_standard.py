"""Write the dated data files of `policies/standard/` from a source of the standard.

    python tools/generate_standard.py --edition 2026d --taken 2026-11-30 ../shared/standard
    python tools/generate_standard.py --edition 2027a --taken 2027-02-01 part15.xml

A folder holds reviewed CSV copies (`ps3_15_e1_1.csv` and its companions) and gives all files. A DocBook
`part15.xml` of the standard gives Table E.1-1 only; keywords, which that table does not print, come from the dictionary
of PS3.6. Any surprise (another heading, an unknown code, a tag twice) stops with exit 2 and writes nothing: a wrong
table is worse than an old one. Source: DICOM PS3.15 Annex E, own reviewed copy, row by row and per edition.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydicom.datadict import keyword_for_tag

from gateway.policy.standard import BASIC_CODES, FOLDER, OPTIONS, PRIVATE

sys.path.insert(0, str(Path(__file__).resolve().parent))  # loaded by path, its neighbour is not a module of a package
from standard_lists import (
    CONTENT_FIELDS,
    SAFE_FIELDS,
    TCIA_FIELDS,
    content_rows,
    safe_rows,
    tcia_rows,
)

TABLE_ID = "table_E.1-1"
FIELDS = ("tag", "keyword", "retired", "in_std_comp_iod", "basic", "options")
OPTION_CELLS = frozenset({"", "K", "C", "U"})

# Column of the CSV form and heading of the DocBook form (letters and digits only, lower case) -> option.
CSV_COLUMNS = dict(
    zip(
        (
            *("rtn_safe_priv", "rtn_uids", "rtn_dev_id", "rtn_inst_id", "rtn_pat_chars", "rtn_long_full_dates"),
            *("rtn_long_modif_dates", "clean_desc", "clean_struct_cont", "clean_graph"),
        ),
        OPTIONS,
        strict=True,
    )
)
HEADINGS = {column.replace("_", "") + "opt": option for column, option in CSV_COLUMNS.items()} | {
    "attributename": "name",
    "tag": "tag",
    "retdfromps36": "retired",
    "instdcompiodfromps33": "in_std_comp_iod",
    "basicprof": "basic",
}
KINDS = {
    "instance-UID (remap)": "instance-uid",
    "structural-UID (keep)": "structural-uid",
    "other-UID": "other-uid",
    "date/time": "date-time",
    "text": "text",
    "URI (may embed identifiers/UIDs)": "uri",
    "OB": "bulk",
}


class SourceError(Exception):
    """The source is not what this generator knows."""


def tag_form(text: str) -> str:
    """The file's form of "(0010,0010)", "00100010", "(50xx,xxxx)" or "(gggg,eeee) where gggg is odd"."""
    squeezed = re.sub(r"[\s\u200b()]", "", text)
    if squeezed.lower() == "gggg,eeeewhereggggisodd":
        return PRIVATE
    plain = squeezed.replace(",", "")
    if re.fullmatch(r"[0-9A-Fa-f]{8}", plain):
        return plain.upper()
    if re.fullmatch(r"(50xxxxxx|60xx[0-9A-Fa-f]{4})", plain, re.IGNORECASE):
        return plain.upper().replace("X", "x")
    raise SourceError(f"a tag in a form that is not known: {text!r}")


def keyword_of(tag: str) -> str:
    """The keyword of a tag in file form; repeating groups by their first group; "" where the dictionary has none."""
    if tag in (PRIVATE, "50xxxxxx"):
        return ""
    return keyword_for_tag(int(tag.replace("x", "0"), 16))


def row_of(cells: Mapping[str, str], options: Mapping[str, str], keyword: str | None = None) -> dict[str, str]:
    """One row in the file's form. Raises SourceError for a code that Table E.1-1a does not define."""
    tag = tag_form(cells["tag"])
    basic = re.sub(r"[\s\u200b]", "", cells["basic"])
    if basic not in BASIC_CODES:
        raise SourceError(f"{tag}: Basic Profile code {basic!r} is not in Table E.1-1a")
    flags = {name: cells[name].strip()[:1] for name in ("retired", "in_std_comp_iod")}
    bad = [name for name, flag in flags.items() if flag not in ("Y", "N")]
    bad += [name for name, code in options.items() if code not in OPTION_CELLS]
    if bad:
        raise SourceError(f"{tag}: a cell that is not known: {', '.join(bad)}")
    return {
        "tag": tag,
        "keyword": keyword_of(tag) if keyword is None else keyword,
        **flags,
        "basic": basic,
        "options": " ".join(f"{name}={options[name]}" for name in OPTIONS if options.get(name)),
    }


def read_csv(text: str) -> list[dict[str, str]]:
    """Table E.1-1 from the reviewed CSV form."""
    return [
        row_of(row, {option: row[column] for column, option in CSV_COLUMNS.items()}, row["keyword"])
        for row in csv.DictReader(io.StringIO(text))
    ]


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


def read_docbook(data: bytes) -> list[dict[str, str]]:
    """Table E.1-1 from DocBook: the table whose xml:id is table_E.1-1, columns found by heading, not by position."""
    root = ET.fromstring(data)  # noqa: S314 - the standard's own file, given by the person who runs this
    xml_id = "{http://www.w3.org/XML/1998/namespace}id"
    table = next((element for element in root.iter() if element.get(xml_id) == TABLE_ID), None)
    if table is None:
        raise SourceError(f"no table with xml:id {TABLE_ID}")
    lines = [element for element in table.iter() if element.tag.rpartition("}")[2] == "tr"]
    texts = [[cell_text(cell) for cell in line if cell.tag.rpartition("}")[2] in ("td", "th")] for line in lines]
    if not texts:
        raise SourceError("the table has no rows")
    names = [re.sub(r"[^a-z0-9]", "", heading.lower()) for heading in texts[0]]
    unknown = [name for name in names if name not in HEADINGS]
    if unknown or len(set(names)) != len(HEADINGS):
        raise SourceError(f"the headings changed: {unknown or names}")
    columns = [HEADINGS[name] for name in names]
    rows = []
    for text in texts[1:]:
        if len(text) != len(columns):
            raise SourceError(f"a row with {len(text)} cells instead of {len(columns)}: {text[:2]}")
        cells = dict(zip(columns, text, strict=True))
        rows.append(row_of(cells, {option: cells[option] for option in OPTIONS}))
    return rows


def dated(head: Mapping[str, str], fields: Sequence[str], rows: Iterable[Mapping[str, str]], key: str | None) -> str:
    """The text of a data file: head lines, then CSV, sorted by `key`. Raises SourceError for a key that comes twice."""
    body = list(rows)
    if key is not None:
        body.sort(key=lambda row: row[key])
        twice = {row[key] for row in body if sum(other[key] == row[key] for other in body) > 1}
        if twice:
            raise SourceError(f"more than one row for {', '.join(sorted(twice))}")
    out = io.StringIO()
    for name, value in head.items():
        out.write(f"# {name}: {value}\n")
    writer = csv.DictWriter(out, fieldnames=fields, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(body)
    return out.getvalue()


def head_of(title: str, edition: str, source: str, data: bytes, taken: str) -> dict[str, str]:
    return {
        "title": title,
        "edition": edition,
        "source": f"{source}, sha256 {hashlib.sha256(data).hexdigest()}",
        "taken": taken,
        "written-by": "tools/generate_standard.py",
    }


def companions(folder: Path, taken: str) -> dict[str, str]:
    """The files beside Table E.1-1, by file name."""

    def rows(name: str) -> tuple[bytes, list[dict[str, str]]]:
        data = (folder / name).read_bytes()
        return data, list(csv.DictReader(io.StringIO(data.decode("utf-8"), newline="")))

    data, watched = rows("not_in_e1_1_watchlist.csv")
    watched = [{**row, "kind": KINDS[row["class"]]} for row in watched]
    title = "attributes of standard IODs that PS3.15 Table E.1-1 does not list and that may carry identity or UIDs"
    head = head_of(title, "2026c", "PS3.3 and PS3.6", data, taken)
    files = {"beyond_e1_1_2026c.csv": dated(head, ("tag", "keyword", "vr", "kind"), watched, "tag")}

    data, conflicts = rows("type_conflicts.csv")
    conflicts = [{**row, "basic": row["basic_code"], "type": row["ps3_3_type"]} for row in conflicts]
    title = "places where a literal code of PS3.15 Table E.1-1 breaks the Type that PS3.3 gives"
    head = head_of(title, "2026c", "PS3.3 and PS3.15", data, taken)
    fields = ("keyword", "basic", "type", "module", "sequence_path")
    files["type_conflicts_2026c.csv"] = dated(head, fields, conflicts, None)

    data, missing = rows("pydicom_302_missing.csv")
    title = "attributes of PS3.6 that the dictionary of pydicom 3.0.2 lacks"
    head = head_of(title, "2026d", "PS3.6", data, taken)
    files["missing_in_pydicom_3_0_2.csv"] = dated(head, ("tag", "keyword", "vr", "vm"), missing, "tag")

    data, content = rows("ps3_15_e3_4_1.csv")
    head = head_of(
        "Application Level Confidentiality Profile Content Items", "2026d", "PS3.15 Table E.3.4-1", data, taken
    )
    files["ps3_15_e3_4_1_2026d.csv"] = dated(head, CONTENT_FIELDS, content_rows(content), None)

    data, private = rows("safe_private.csv")
    safe = safe_rows(private)
    head = head_of("Safe Private Attributes", "2026d", "PS3.15 Table E.3.10-1", data, taken)
    files["ps3_15_e3_10_1_2026d.csv"] = dated(head, SAFE_FIELDS, safe, None)

    data, known = rows("tcia_private_kb.csv")
    head = head_of("dispositions of private attributes", "2024-02-01", "TCIA private tag knowledge base", data, taken)
    files["tcia_private_2024.csv"] = dated(head, TCIA_FIELDS, tcia_rows(known, safe), None)
    return files


def generate(source: Path, edition: str, taken: str) -> dict[str, str]:
    """File name -> text of everything that `source` gives. Raises SourceError, OSError, ET.ParseError."""
    table = source / "ps3_15_e1_1.csv" if source.is_dir() else source
    data = table.read_bytes()
    rows = read_docbook(data) if table.suffix == ".xml" else read_csv(data.decode("utf-8"))
    title = "Application Level Confidentiality Profile Attributes"
    head = head_of(title, edition, "PS3.15 Table E.1-1", data, taken)
    files = {f"ps3_15_e1_1_{edition}.csv": dated(head, FIELDS, rows, "tag")}
    return files | (companions(source, taken) if source.is_dir() else {})


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("source", type=Path, help="folder of reviewed CSV files, one such CSV, or part15.xml")
    parser.add_argument("--edition", required=True, help="edition of the standard, e.g. 2026d")
    parser.add_argument("--taken", required=True, help="date the source was taken, ISO 8601")
    parser.add_argument("--into", type=Path, default=FOLDER, help="folder to write to")
    chosen = parser.parse_args(arguments)
    if not re.fullmatch(r"20\d\d[a-e]", chosen.edition) or not re.fullmatch(r"\d{4}-\d\d-\d\d", chosen.taken):
        parser.error("an edition looks like 2026d, a date like 2026-11-30")
    try:
        files = generate(chosen.source, chosen.edition, chosen.taken)
    except (SourceError, OSError, ET.ParseError, KeyError, ValueError) as error:
        print(f"{chosen.source}: {error}", file=sys.stderr)
        return 2
    for name, text in files.items():
        (chosen.into / name).write_text(text, "utf-8", newline="\n")
        print(f"{name}: {text.count(chr(10))} lines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
