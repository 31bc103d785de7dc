"""Write the dated data files of `policies/standard/` from a source of the standard.

    python tools/generate_standard.py --edition 2026d --taken 2026-11-30 ../shared/standard
    python tools/generate_standard.py --edition 2027a --taken 2027-02-01 part15.xml

A folder holds reviewed CSV copies (`ps3_15_e1_1.csv` and its companions) and gives all files. The standard's own
DocBook `part15.xml` gives Tables E.1-1, E.3.4-1 and E.3.10-1; keywords, which it does not print, come from the
dictionary of PS3.6. Any surprise (another heading, an unknown code, a tag twice) stops with exit 2 and writes nothing:
a wrong table is worse than an old one. `deid-gateway policy drift part15.xml` says beforehand what would change.
Source: DICOM PS3.15 Annex E, own reviewed copy, row by row and per edition.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from gateway.policy.drift_docbook import read_docbook
from gateway.policy.drift_tables import (
    CONTENT_FIELDS,
    CSV_COLUMNS,
    FIELDS,
    SAFE_FIELDS,
    SourceError,
    content_rows,
    row_of,
    safe_rows,
)
from gateway.policy.standard import CONTENT_TABLE, FOLDER, SAFE_TABLE, TABLE

sys.path.insert(0, str(Path(__file__).resolve().parent))  # loaded by path, its neighbour is not a module of a package
from standard_lists import TCIA_FIELDS, tcia_rows

KINDS = {
    "instance-UID (remap)": "instance-uid",
    "structural-UID (keep)": "structural-uid",
    "other-UID": "other-uid",
    "date/time": "date-time",
    "text": "text",
    "URI (may embed identifiers/UIDs)": "uri",
    "OB": "bulk",
}


def read_csv(text: str) -> list[dict[str, str]]:
    """Table E.1-1 from the reviewed CSV form."""
    return [
        row_of(row, {option: row[column] for column, option in CSV_COLUMNS.items()}, row["keyword"])
        for row in csv.DictReader(io.StringIO(text))
    ]


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


def companions(folder: Path, edition: str, taken: str) -> dict[str, str]:
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
    files |= content_file(content_rows(content), edition, data, taken)
    data, private = rows("safe_private.csv")
    safe = safe_rows(private)
    files |= safe_file(safe, edition, data, taken)

    data, known = rows("tcia_private_kb.csv")
    head = head_of("dispositions of private attributes", "2024-02-01", "TCIA private tag knowledge base", data, taken)
    files["tcia_private_2024.csv"] = dated(head, TCIA_FIELDS, tcia_rows(known, safe), None)
    return files


def table_file(rows: Iterable[Mapping[str, str]], edition: str, data: bytes, taken: str) -> dict[str, str]:
    head = head_of("Application Level Confidentiality Profile Attributes", edition, "PS3.15 Table E.1-1", data, taken)
    return {f"{TABLE}{edition}.csv": dated(head, FIELDS, rows, "tag")}


def content_file(rows: Iterable[Mapping[str, str]], edition: str, data: bytes, taken: str) -> dict[str, str]:
    head = head_of(
        "Application Level Confidentiality Profile Content Items", edition, "PS3.15 Table E.3.4-1", data, taken
    )
    return {f"{CONTENT_TABLE}{edition}.csv": dated(head, CONTENT_FIELDS, rows, None)}


def safe_file(rows: Iterable[Mapping[str, str]], edition: str, data: bytes, taken: str) -> dict[str, str]:
    head = head_of("Safe Private Attributes", edition, "PS3.15 Table E.3.10-1", data, taken)
    return {f"{SAFE_TABLE}{edition}.csv": dated(head, SAFE_FIELDS, rows, None)}


def generate(source: Path, edition: str, taken: str) -> dict[str, str]:
    """File name -> text of everything that `source` gives. Raises SourceError, OSError."""
    table = source / "ps3_15_e1_1.csv" if source.is_dir() else source
    data = table.read_bytes()
    if table.suffix != ".xml":
        files = table_file(read_csv(data.decode("utf-8")), edition, data, taken)
        return files | (companions(source, edition, taken) if source.is_dir() else {})
    book = read_docbook(data)
    if book.attributes is None:
        raise SourceError("no table with xml:id table_E.1-1")
    if book.edition not in ("", edition):
        raise SourceError(f"the book says that it is edition {book.edition}, not {edition}")
    files = table_file(book.attributes, edition, data, taken)
    if book.content is not None:
        files |= content_file(book.content, edition, data, taken)
    if book.safe_private is not None:
        files |= safe_file(book.safe_private, edition, data, taken)
    return files


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
    except (SourceError, OSError, KeyError, ValueError) as error:
        print(f"{chosen.source}: {error}", file=sys.stderr)
        return 2
    for name, text in files.items():
        (chosen.into / name).write_text(text, "utf-8", newline="\n")
        print(f"{name}: {text.count(chr(10))} lines")
    if chosen.into == FOLDER:
        print("then: deid-gateway policy schema > policies/schema.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
