"""In which of four wrappings weights come: a torch zip, a legacy torch pickle, a tar around a file, or safetensors.

Told by content, never by suffix: authors call a torch zip `.tar` and a pickle `.pth` (papers/facts.md 1.2). Nothing is
extracted under a name that an archive gives; the one member that holds weights is copied to a file without a name.
"""

from __future__ import annotations

import lzma
import struct
import tarfile
import tempfile
import zipfile
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Literal

from models.checkpoints.errors import CheckpointError

Container = Literal["torch zip", "legacy pickle", "safetensors", "tar"]
MAX_BYTES = 16 << 30  # of weights inside an archive
MAX_RATIO = 50  # weights hardly compress: what does more is a bomb
MAX_MEMBERS = 10_000
MAX_HEADER_BYTES = 100 << 20  # of safetensors, as its own library allows
LEGACY_MAGIC = b"\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."  # LONG1 of torch.serialization's magic number
_PIECE = 1 << 20
_UNREADABLE = (tarfile.TarError, OSError, EOFError, ValueError, zlib.error, lzma.LZMAError)


def recognise(path: Path) -> Container:
    """Which wrapping a file is in. Raises CheckpointError for any other file."""
    try:
        with open(path, "rb") as file:
            head = file.read(512)
            file.seek(0, 2)
            size = file.tell()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read ({error.strerror or type(error).__name__})") from None
    if head[:4] == b"PK\x03\x04" and zipfile.is_zipfile(path):
        return "torch zip"
    if head[:1] == b"\x80" and head[2:].startswith(LEGACY_MAGIC):
        return "legacy pickle"
    if len(head) > 9 and head[8:9] == b"{" and 2 <= struct.unpack("<Q", head[:8])[0] <= min(size - 8, MAX_HEADER_BYTES):
        return "safetensors"
    if head[257:262] == b"ustar" or head[:2] == b"\x1f\x8b" or head[:3] == b"BZh" or head[:6] == b"\xfd7zXZ\x00":
        return "tar"
    raise CheckpointError(
        f"{path}: neither a torch file, nor safetensors, nor a tar with one inside; a web page saved in its place?"
    )


def weights_in_tar(path: Path, stack: ExitStack) -> Path:
    """The one torch or safetensors file of a tar, as a temporary file that lives as long as `stack`.

    Raises CheckpointError when there is none or more than one, and for archives that grow beyond reason.
    """
    found: list[tuple[str, Path]] = []
    left = min(MAX_BYTES, MAX_RATIO * path.stat().st_size)
    try:
        with tarfile.open(path, "r:*") as archive:
            for number, member in enumerate(archive):
                if number >= MAX_MEMBERS:
                    raise CheckpointError(
                        f"{path}: an archive with more than {MAX_MEMBERS} members; unpack it yourself"
                    )
                if not member.isreg() or member.issparse() or not member.size:
                    continue  # links, devices, holes: nothing that weights need
                left -= member.size
                if left < 0:
                    raise CheckpointError(f"{path}: it grows beyond reason when unpacked; take it from its owner again")
                stream = archive.extractfile(member)
                if stream is not None and (copy := _copy_if_weights(stream, stack)):
                    found.append((member.name, copy))
    except CheckpointError:
        raise
    except _UNREADABLE:
        raise CheckpointError(
            f"{path}: an archive that is damaged or ends early; take it from its owner again"
        ) from None
    if len(found) != 1:
        names = ", ".join(repr(name[:80]) for name, _ in found[:5])
        raise CheckpointError(
            f"{path}: {len(found) or 'no'} files of weights inside{': ' + names if found else ''}; "
            "unpack it and name the right one"
        )
    return found[0][1]


def _copy_if_weights(stream: IO[bytes], stack: ExitStack) -> Path | None:
    """A copy of one member when it is a file of weights itself; archives within archives are not."""
    copy = stack.enter_context(tempfile.NamedTemporaryFile(prefix="deid-weights-"))  # noqa: SIM115 - the stack closes it
    while piece := stream.read(_PIECE):
        copy.write(piece)
    copy.flush()
    path = Path(copy.name)
    try:
        kind = recognise(path)
    except CheckpointError:
        kind = "tar"
    if kind == "tar":
        copy.truncate(0)  # the space is wanted, the name goes with the stack
        return None
    return path
