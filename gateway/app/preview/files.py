"""Files for a preview: which there are, what of each groups and names it, and what there is to tell of it."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydicom._uid_dict import UID_dictionary

from gateway.app.preview.rows import Outcome, Row
from gateway.app.preview.sides import Side
from gateway.errors import StudyError, UsageError
from gateway.gate import Pair
from gateway.header.admission import PATIENT_ID, SOP_CLASS, SOP_INSTANCE, STUDY
from gateway.header.text import decoded
from gateway.study import Step

NOT_ASKED = "not asked"  # the gate, about a study that does not come so far


@dataclass(frozen=True, slots=True)
class FilePreview:
    """What a policy does to one file.

    `reason` is a key of REASONS where the file could not be cleaned, `at` the place; it has rows all the same where
    only the study as a whole could not. `held_by` is another file of its study that could not: the rows are those of
    this file alone. `gate_reason` and `gate_at` say why the gate would hold the study, "" where it would not.
    `pictures` are PNG of before, after and what changed.
    """

    file: Path
    sop_class: str = ""
    rows: tuple[Row, ...] = ()
    counts: Mapping[Outcome, int] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    reason: str = ""
    at: str = ""
    held_by: Path | None = None
    gate_reason: str = NOT_ASKED
    gate_at: str = ""
    pictures: tuple[bytes, ...] = field(default=(), repr=False)

    @property
    def leaves(self) -> bool:
        """True when nothing here would keep the file back."""
        return not self.reason and self.held_by is None and not self.gate_reason

    @property
    def kind(self) -> str:
        """The SOP class in words."""
        return UID_dictionary[self.sop_class][0] if self.sop_class in UID_dictionary else "an unknown kind of object"


def files_of(sources: Iterable[Path]) -> list[Path]:
    """Regular files, folders to the bottom, links in them not followed. Raises UsageError for what is not there."""
    found: list[Path] = []
    for source in sources:
        if not source.exists():
            raise UsageError(f"{source} does not exist")
        if not source.is_dir():
            found.append(source)
            continue
        for folder, folders, names in os.walk(source):
            folders.sort()
            paths = (Path(folder) / name for name in sorted(names))
            found += [path for path in paths if path.is_file() and not path.is_symlink()]
    if not found:
        raise UsageError("there is no file to preview; name DICOM files, or a folder that holds some")
    return list(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class Subject:
    """A file and what of it groups, names and maps it."""

    pair: Pair
    study: str
    sop_class: str
    instance: str
    patient_id: str

    def is_copied_by(self, other: Subject) -> bool:
        """True for the same instance in the same bytes."""
        paths = self.pair.original, other.pair.original
        return self.instance == other.instance and filecmp.cmp(*paths, shallow=False)

    def held(self, error: StudyError) -> FilePreview:
        return FilePreview(self.pair.original, self.sop_class, reason=error.reason, at=error.at)


def subject_of(pair: Pair) -> Subject:
    """Raises Hold for a file that cannot be read. One without a Study Instance UID stands alone."""
    side = Side.of_file(pair.original)
    study, sop_class, instance = (
        bytes(side.value((tag, 0)) or b"").decode("latin-1").strip(" \0") for tag in (STUDY, SOP_CLASS, SOP_INSTANCE)
    )
    patient_id = decoded(bytes(side.value((PATIENT_ID, 0)) or b""), side.character_set)
    return Subject(pair, study or str(pair.original), sop_class, instance or str(pair.original), patient_id)
