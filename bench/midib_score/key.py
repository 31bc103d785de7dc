"""The answer key: one SQLite row an instance, its checks as JSON, in the layout of the challenge's `answer_data`.

Every string is wrapped in < >. A check names what is done (`action`), where (`tag_ds`, see `paths`), the value that was
there (`value`), what is looked for (`action_text`) and a reporting category.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ACTIONS = (
    "tag_retained",
    "text_notnull",
    "text_retained",
    "text_removed",
    "date_shifted",
    "uid_changed",
    "uid_consistent",
    "patid_consistent",
    "pixels_retained",
    "pixels_hidden",
)

_LAYOUT = """CREATE TABLE answer_data ("index" INTEGER PRIMARY KEY, "group" TEXT, Modality TEXT, SOPClassUID TEXT,
PatientID TEXT, StudyInstanceUID TEXT, SeriesInstanceUID TEXT, SOPInstanceUID TEXT, Digest TEXT, AnswerData TEXT)"""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one instance. Categories are the challenge's: HIPAA letters, DICOM-IOD types, TCIA's practice."""

    action: str
    tag_ds: str
    tag_name: str
    value: str
    action_text: str
    answer_category: str
    scope: str = "Instance"


@dataclass(frozen=True, slots=True)
class Instance:
    """One row: whose object it is, where its file lies in the corpus, and its checks."""

    file: str
    modality: str
    sop_class: str
    patient: str
    study: str
    series: str
    sop_instance: str
    digest: str
    checks: tuple[Check, ...]


def wrapped(text: str) -> str:
    return f"<{text}>"


def unwrapped(text: str) -> str:
    return text[1:-1] if text.startswith("<") and text.endswith(">") else text


def digest_of(pixels: bytes) -> str:
    """MD5 of Pixel Data as stored, or empty without pixels."""
    return hashlib.md5(pixels, usedforsecurity=False).hexdigest() if pixels else ""


def write_key(path: Path, instances: Iterable[Instance]) -> None:
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as database:
        database.execute(_LAYOUT)
        for number, row in enumerate(instances):
            checks = {
                str(n): {name: text if name == "action" else wrapped(text) for name, text in asdict(check).items()}
                for n, check in enumerate(row.checks)
            }
            values = (row.modality, row.sop_class, row.patient, row.study, row.series, row.sop_instance, row.digest)
            database.execute(
                f"INSERT INTO answer_data VALUES ({', '.join('?' * 10)})",
                (number, row.file, *map(wrapped, values), json.dumps(checks, ensure_ascii=False)),
            )
    database.close()


def read_key(path: Path) -> Iterator[Instance]:
    database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        for _, file, *values, answers in database.execute('SELECT * FROM answer_data ORDER BY "index"'):
            modality, sop_class, patient, study, series, sop_instance, digest = map(unwrapped, values)
            checks = tuple(
                Check(**{name: text if name == "action" else unwrapped(text) for name, text in check.items()})
                for check in json.loads(answers).values()
            )
            yield Instance(file, modality, sop_class, patient, study, series, sop_instance, digest, checks)
    finally:
        database.close()
