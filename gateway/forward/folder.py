"""`folder:/path`: cleared files under `<path>/<Study Instance UID>/<SOP Instance UID>.dcm`, each whole or not there.

The UIDs are those of the cleared file, so new ones, and are checked before they become names (cases.md 27). A file that
is there already with the same bytes is delivered; one with other bytes is left alone and holds the study.
"""

from __future__ import annotations

import errno
import hashlib
import io
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pydicom
from pydicom.errors import InvalidDicomError

from gateway.durable import make_folder, writing
from gateway.errors import EnvironmentFault, UsageError
from gateway.forward.transport import Outgoing, Tally, TransportOptions, is_uid
from gateway.forward.verified import Verified, open_verified
from gateway.study import Receipt

_FULL = frozenset((errno.ENOSPC, errno.EDQUOT))
# What pydicom raises on bytes that are no DICOM file.
_UNREADABLE = (
    InvalidDicomError,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    NotImplementedError,
    EOFError,
)


@dataclass(frozen=True, slots=True)
class FolderTransport:
    """Files into one folder."""

    root: Path

    @classmethod
    def at(cls, url: str, options: TransportOptions) -> FolderTransport:
        """The transport of `folder:/abs` or `folder:relative` (to `options.base`). Raises UsageError."""
        scheme, _, path = url.partition(":")
        if scheme != "folder" or not path:
            raise UsageError("a folder is folder:/absolute/path or folder:relative/path")
        return cls(options.base / path)

    def send(self, items: Sequence[Outgoing], on_receipt: Callable[[Receipt], None]) -> None:
        tally = Tally(on_receipt)
        for item in items:
            try:
                with open_verified(item) as file:
                    self._put(file, tally)
            except OSError as error:
                reason = "archive_busy" if error.errno in _FULL else "archive_unreachable"
                tally.postponed(item.cleared.name, reason, f"the folder (errno {error.errno})")
                break  # the next file would fare no better
        tally.close()

    def _put(self, file: Verified, tally: Tally) -> None:
        cleared = file.item.cleared
        study_uid = study_uid_of(file)
        if not (is_uid(study_uid) and is_uid(cleared.sop_instance_uid)):
            tally.refused(cleared.name, "output_invalid", f"instance {cleared.name}")
            return
        target = self.root / study_uid / f"{cleared.sop_instance_uid}.dcm"
        if not target.exists():
            make_folder(target.parent)
            with writing(target) as out:
                for piece in file.everything():
                    out.write(piece)
        elif _sha256(target) != cleared.sha256_file:
            tally.refused(cleared.name, "folder_conflict", f"instance {cleared.name}")
            return
        tally.delivered(cleared.name)

    def probe(self) -> None:
        """The folder exists, or can be made, and takes a file. Raises EnvironmentFault."""
        try:
            make_folder(self.root)
            with tempfile.TemporaryFile(dir=self.root):
                pass
        except OSError as error:
            raise EnvironmentFault(f"{self.root} is not a folder that can be written to ({error.strerror})") from None


def study_uid_of(file: Verified) -> str:
    """The new Study Instance UID in the verified bytes, "" when there is none."""
    source = io.BytesIO(file.source) if isinstance(file.source, memoryview) else file.source
    source.seek(0)
    try:
        return str(
            pydicom.dcmread(source, stop_before_pixels=True, specific_tags=["StudyInstanceUID"]).StudyInstanceUID
        )
    except _UNREADABLE:
        return ""


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
