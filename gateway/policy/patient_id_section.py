"""The `header.patient_id:` part of a policy: how a person is named in what leaves.

    patient_id: {pseudonym: keyed, prefix: BT-}                     made with the project's key
    patient_id: {pseudonym: lookup, table: people.csv}              given by a table; who is not in it is held
    patient_id: {pseudonym: lookup, sql: site, table: research.people, original: mrn, replacement: subject}
    merge: merges.csv                                               old_id,new_id: IDs that mean one person

Files lie in the policies folder, mode 0600 or 0640: they name people. A database is named as in the setting
`lookup_urls`, so that its password stays out of the policy. Rows are no part of the policy or of its digest: a table
grows every day. What a study was mapped with is recorded beside it, and what has left is never mapped otherwise.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator

from gateway.errors import PolicyError
from gateway.policy.document import Document, Faulty
from gateway.policy.people_files import read_lookup, read_merges

MAX_PREFIX = 48  # LO holds 64 characters (PS3.5 6.2), the pseudonym takes 16
ORIGINAL, REPLACEMENT = "patient_id", "pseudonym"
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,123}\.csv")
_TABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62})?")
_COLUMN = re.compile(r"[A-Za-z_][A-Za-z0-9_ -]{0,62}")


def _prefix(value: str) -> str:
    if not re.fullmatch(rf"[A-Za-z0-9._-]{{0,{MAX_PREFIX}}}", value):
        raise ValueError(f"a prefix has at most {MAX_PREFIX} letters, digits, dots, dashes and underscores")
    return value


def _column(value: str) -> str:
    if not _COLUMN.fullmatch(value):
        raise Faulty("a column is named by letters, digits, spaces, dashes and underscores")
    return value


def _merge(value: str) -> str:
    if value and not _FILE.fullmatch(value):
        raise Faulty("merge is the name of a CSV file in the policies folder", "for example merges.csv")
    return value


def _database(value: str) -> str:
    if value and not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", value):
        raise Faulty("sql is the name of a database in DEID_LOOKUP_URLS", "write the name, never the URL itself")
    return value


class PatientIdPolicy(BaseModel):
    """How the Patient ID is replaced: by a keyed pseudonym after `prefix`, or by what a table gives (`lookup`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    pseudonym: Literal["keyed", "lookup"] = "keyed"
    prefix: Annotated[str, AfterValidator(_prefix)] = ""
    table: str = ""
    sql: Annotated[str, AfterValidator(_database)] = ""
    original: Annotated[str, AfterValidator(_column)] = ORIGINAL
    replacement: Annotated[str, AfterValidator(_column)] = REPLACEMENT
    missing: Literal["hold"] = "hold"
    merge: Annotated[str, AfterValidator(_merge)] = ""

    @model_validator(mode="after")
    def _consistent(self) -> PatientIdPolicy:
        if self.pseudonym == "keyed":
            if self.table or self.sql or (self.original, self.replacement) != (ORIGINAL, REPLACEMENT):
                raise Faulty("a table is named, but pseudonyms are keyed", "write pseudonym: lookup, or remove it")
        elif not self.table:
            raise Faulty("pseudonym: lookup needs a table", "write table: people.csv, or sql: and table:")
        elif self.prefix:
            raise Faulty("pseudonym: lookup gives whole pseudonyms", "remove prefix, or write it into the table")
        elif self.sql and not _TABLE.fullmatch(self.table):
            raise Faulty("table is the name of an SQL table here", "for example research.people")
        elif not self.sql and not _FILE.fullmatch(self.table):
            raise Faulty("table is the name of a CSV file in the policies folder", "for example people.csv")
        if self.original == self.replacement:
            raise Faulty("original and replacement are the same column", "name two columns")
        return self


def check_files(document: Document, rule: PatientIdPolicy) -> None:
    """Faults of the files that the rule names, each with its line, go to the document. Nothing for a snapshot."""
    if not Path(document.file).is_file():
        return
    folder = Path(document.file).parent
    try:
        if rule.table and not rule.sql:
            read_lookup(folder / rule.table, rule.original, rule.replacement)
    except PolicyError as error:
        document.faults += error.faults
    try:
        if rule.merge:
            read_merges(folder / rule.merge)
    except PolicyError as error:
        document.faults += error.faults
