"""A checkpoint as a tree of containers and tensors. Only the tensors that somebody asks for are read from the disk."""

from __future__ import annotations

import mmap
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from models.checkpoints.containers import Container, recognise, weights_in_tar
from models.checkpoints.errors import CheckpointError
from models.checkpoints.references import Storage, TensorReference, item_bytes
from models.checkpoints.unpickler import ByteReader, unpickle

if TYPE_CHECKING:
    import torch

LEGACY_PROTOCOL = 1001  # torch.serialization.PROTOCOL_VERSION
MAX_PICKLE_BYTES = 256 << 20  # names and shapes of a checkpoint; its numbers lie elsewhere
_LOCAL_HEADER_BYTES = 30  # of a zip member, before its name


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """`tree`: what the pickle holds, with a leaf for each tensor. `inert`: names that were not run (facts.md 1.7)."""

    file: str
    container: str
    tree: Any
    inert: tuple[str, ...]
    _places: Mapping[str, memoryview] = field(repr=False)
    _checksums: Mapping[str, int] = field(repr=False, default_factory=dict)  # CRC-32 of a zip's storages
    _checked: set[str] = field(repr=False, default_factory=set)

    def tensor(self, leaf: Any) -> torch.Tensor:
        """The numbers of a leaf, as a tensor of its own. Raises CheckpointError when the file has not got them."""
        import torch

        if isinstance(leaf, torch.Tensor):
            return leaf
        storage: Storage = leaf.storage
        place = self._places.get(storage.key)
        size = item_bytes(storage.dtype)
        if place is None or len(place) < storage.count * size:
            raise CheckpointError(f"{self.file}: the numbers of a tensor are missing; take it from its owner again")
        if storage.key in self._checksums and storage.key not in self._checked:
            _must_be_whole(place, self._checksums[storage.key], self.file)
            self._checked.add(storage.key)
        dtype = getattr(torch, storage.dtype)
        if 0 in leaf.shape:
            return torch.empty(leaf.shape, dtype=dtype)
        last = leaf.offset + sum((count - 1) * step for count, step in zip(leaf.shape, leaf.strides, strict=True))
        # Only what the tensor covers: many may share one large storage.
        flat = torch.frombuffer(bytearray(place[leaf.offset * size : (last + 1) * size]), dtype=dtype)
        return flat.as_strided(leaf.shape, leaf.strides).clone(memory_format=torch.contiguous_format)


def is_tensor(leaf: Any) -> bool:
    """Whether a value of the tree is a tensor."""
    return isinstance(leaf, TensorReference) or type(leaf).__name__ == "Tensor"


@contextmanager
def open_checkpoint(path: Path) -> Iterator[Checkpoint]:
    """The file's tree, for as long as the block lasts. Raises CheckpointError; runs nothing that the file says."""
    with ExitStack() as stack:
        kind: Container = recognise(path)
        inner = path
        if kind == "tar":
            inner = weights_in_tar(path, stack)
            kind = recognise(inner)
        name = kind if inner == path else f"tar around {kind}"
        if kind == "safetensors":
            yield _safetensors(inner, str(path), name)
            return
        file = stack.enter_context(open(inner, "rb"))
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        reader = _torch_zip if kind == "torch zip" else _legacy
        yield reader(inner, whole, str(path), name)


def _safetensors(path: Path, file: str, container: str) -> Checkpoint:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return Checkpoint(file, container, load_file(path), (), {})
    except SafetensorError:
        raise CheckpointError(f"{file}: safetensors that are damaged; take it from its owner again") from None


def _torch_zip(path: Path, whole: memoryview, file: str, container: str) -> Checkpoint:
    """PREFIX/data.pkl, and PREFIX/data/KEY for each storage, uncompressed (torch.serialization since 1.6)."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {info.filename: info for info in archive.infolist()}
    except (zipfile.BadZipFile, ValueError, EOFError, NotImplementedError):
        raise CheckpointError(f"{file}: a zip that is damaged or ends early; take it from its owner again") from None
    pickles = [name for name in members if name.count("/") == 1 and name.endswith("/data.pkl")]
    if len(pickles) != 1:
        raise CheckpointError(f"{file}: a zip, but not of torch; unpack it and name the file of weights")
    prefix = pickles[0].removesuffix("data.pkl")
    if (order := members.get(f"{prefix}byteorder")) is not None and bytes(_record(whole, order, file)) != b"little":
        raise CheckpointError(f"{file}: written on a big-endian machine; save it again on another one")
    program = _record(whole, members[pickles[0]], file)
    if len(program) > MAX_PICKLE_BYTES:
        raise CheckpointError(
            f"{file}: its pickle is larger than {MAX_PICKLE_BYTES >> 20} MiB; this is no file of weights"
        )
    _must_be_whole(program, members[pickles[0]].CRC, file)
    read = unpickle(ByteReader(program), file)
    stored = {
        name.removeprefix(f"{prefix}data/"): info for name, info in members.items() if name.startswith(f"{prefix}data/")
    }
    places = {key: _record(whole, info, file) for key, info in stored.items()}
    checksums = {key: info.CRC for key, info in stored.items()}
    return Checkpoint(file, container, read.found, read.inert, places, checksums)


def _must_be_whole(record: memoryview, checksum: int, file: str) -> None:
    if zlib.crc32(record) != checksum:
        raise CheckpointError(
            f"{file}: a checksum is wrong, so the file is damaged (or was saved without checksums); "
            "take it from its owner again"
        )


def _record(whole: memoryview, info: zipfile.ZipInfo, file: str) -> memoryview:
    """The bytes of a stored member, where they lie."""
    if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 1 or info.file_size != info.compress_size:
        raise CheckpointError(f"{file}: a compressed or encrypted member, which torch does not write; unpack it first")
    local = whole[info.header_offset : info.header_offset + _LOCAL_HEADER_BYTES]
    if len(local) < _LOCAL_HEADER_BYTES:
        raise CheckpointError(f"{file}: a zip that ends early; take it from its owner again")
    start = info.header_offset + _LOCAL_HEADER_BYTES + int.from_bytes(local[26:28], "little")
    start += int.from_bytes(local[28:30], "little")
    if start + info.file_size > len(whole):
        raise CheckpointError(f"{file}: a zip that ends early; take it from its owner again")
    return whole[start : start + info.file_size]


def _legacy(_path: Path, whole: memoryview, file: str, container: str) -> Checkpoint:
    """Five pickles (magic, protocol, system, object, keys), then for each key its count and its items (torch < 1.6)."""
    reader = ByteReader(whole)
    _, protocol, system, tree, keys = (unpickle(reader, file) for _ in range(5))
    little = isinstance(system.found, dict) and system.found.get("little_endian") is True
    if protocol.found != LEGACY_PROTOCOL or not little or not isinstance(keys.found, list):
        raise CheckpointError(f"{file}: a legacy torch file of an unknown form; save it again with a newer torch")
    places: dict[str, memoryview] = {}
    for key in map(str, keys.found):
        count = int.from_bytes(reader.read(8), "little")
        storage = tree.storages.get(key)
        length = count * item_bytes(storage.dtype) if storage is not None else 0
        if storage is None or length > len(whole) - reader.at:
            raise CheckpointError(f"{file}: it ends early, or names numbers that no tensor has; take it again")
        places[key] = whole[reader.at : reader.at + length]
        reader.at += length
    return Checkpoint(file, container, tree.found, tree.inert, places)
