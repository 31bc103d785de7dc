"""The list of a back-load: a CSV file that says which studies. Its values go nowhere but to the PACS.

    accession_number                      one column of: accession_number, study_instance_uid, patient_id
    A1000
    A1001

    patient_id,from,to                    with patient_id also the days of its studies, each may be empty
    P17,2020-01-01,2024-12-31

What lies in the database is sealed with AES-GCM under a key of its own; its name there is a keyed hash.
"""

from __future__ import annotations

import csv
import io
import json
import re
import secrets
from collections.abc import Mapping
from datetime import date
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from gateway.database.backloads import ENTRY, NewItem
from gateway.errors import EnvironmentFault, Fault, PolicyError
from gateway.pseudonyms import Keys, derive

KEYWORDS = {  # column -> keyword and the longest value (PS3.5 6.2: SH, UI, LO)
    "accession_number": ("AccessionNumber", 16),
    "study_instance_uid": ("StudyInstanceUID", 64),
    "patient_id": ("PatientID", 64),
}
MAX_BYTES = 256 << 20
_NONCE_BYTES = 12
_PURPOSE = b"backload"


def read_list(path: Path, keys: Keys) -> list[NewItem]:
    """Its entries, sealed. Raises PolicyError with every fault by its line, and no value."""
    faults: list[Fault] = []
    found: list[NewItem] = []
    try:
        if path.stat().st_size > MAX_BYTES:
            raise PolicyError([Fault(str(path), 0, "the list is too long", "split it")])
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        raise PolicyError([Fault(str(path), 0, "cannot be read as UTF-8 text", "save it as CSV, UTF-8")]) from None
    rows = csv.reader(io.StringIO(text))
    try:
        header = [name.strip().lower() for name in next(rows, [])]
    except csv.Error:  # one cell longer than csv takes
        header = []
    named = [name for name in header if name in KEYWORDS]
    others = set(header) - set(named) - ({"from", "to"} if named == ["patient_id"] else set())
    if len(named) != 1 or others or len(set(header)) < len(header):
        hint = f"name one of {', '.join(KEYWORDS)}; with patient_id also from and to"
        raise PolicyError([Fault(str(path), 1, "the first line does not name the columns", hint)])
    try:
        for row in rows:
            line = rows.line_num
            if not any(cell.strip() for cell in row):
                continue
            says = "another number of columns than the first line has" if len(row) != len(header) else ""
            asked = {} if says else dict(zip(header, (cell.strip() for cell in row), strict=True))
            says = says or _fault(named[0], asked)
            if says:
                faults.append(Fault(str(path), line, says, "correct it; nothing was begun"))
            else:
                found.append(sealed(keys, ENTRY, line, _query(named[0], asked)))
    except csv.Error:
        faults.append(Fault(str(path), rows.line_num, "not CSV", "save it as CSV, UTF-8"))
    if not found and not faults:
        faults.append(Fault(str(path), 0, "the list is empty"))
    if faults:
        raise PolicyError(faults)
    return found


def _fault(column: str, asked: Mapping[str, str]) -> str:
    value, longest = asked[column], KEYWORDS[column][1]
    if not value or len(value) > longest or not value.isprintable():
        return f"{column} needs 1 to {longest} signs"
    if set(value) & set("*?\\"):
        return f"{column} has a sign that matches others (* ? \\)"
    if column == "study_instance_uid" and not re.fullmatch(r"[0-9]+(\.[0-9]+)*", value):
        return "study_instance_uid is none"
    days = [asked.get("from", ""), asked.get("to", "")]
    try:
        first, last = (date.fromisoformat(day) if day else None for day in days)
    except ValueError:
        return "from and to are days, such as 2026-11-30"
    return "from is after to" if first and last and first > last else ""


def _query(column: str, asked: Mapping[str, str]) -> dict[str, str]:
    query = {KEYWORDS[column][0]: asked[column]}
    first, last = (
        date.fromisoformat(day).strftime("%Y%m%d") if day else ""
        for day in (asked.get("from", ""), asked.get("to", ""))
    )
    if first or last:
        query["StudyDate"] = f"{first}-{last}"
    return query


def sealed(keys: Keys, kind: str, line: int, query: Mapping[str, str], expected: int = 0) -> NewItem:
    """An item whose query only we can read."""
    text = json.dumps(dict(sorted(query.items())))
    nonce = secrets.token_bytes(_NONCE_BYTES)
    data = nonce + AESGCM(derive(keys.master, "backload")).encrypt(nonce, text.encode(), _PURPOSE)
    return NewItem(kind, line, keys.opaque("backload", text), data.hex(), expected)


def opened(keys: Keys, text: str) -> dict[str, str]:
    """The query of an item. Raises EnvironmentFault for another key, or a row that was changed."""
    data = bytes.fromhex(text)
    try:
        query = AESGCM(derive(keys.master, "backload")).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], _PURPOSE)
    except InvalidTag:
        raise EnvironmentFault(
            "an entry of a back-load was changed in the database, or belongs to another master key; stop that "
            "back-load, and start it anew"
        ) from None
    return dict(json.loads(query))
