"""Checkpoints: read bit for bit as torch reads them, whatever they are wrapped in."""

from __future__ import annotations

import argparse
import io
import os
import pickle
import tarfile
import zipfile
from collections import OrderedDict
from pathlib import Path

import pytest
import torch
from checkpoint_files import LEGACY, ZIP, saved
from safetensors.torch import save_file

from models.checkpoints import CheckpointError, Layout, map_keys, open_checkpoint
from models.checkpoints.containers import recognise
from models.checkpoints.references import Stub


def tensors() -> dict[str, torch.Tensor]:
    base = torch.arange(24, dtype=torch.float32).reshape(4, 6)
    return {
        "whole": base,
        "transposed": base.t(),
        "slice": base[1:3, 2:5],
        "parameter": torch.nn.Parameter(torch.randn(3)),
        "scalar": torch.tensor(7.5),
        "empty": torch.empty(0, 3),
        "half": torch.randn(5).half(),
        "brain": torch.randn(5).bfloat16(),
        "double": torch.randn(5).double(),
        "long": torch.tensor([1 << 40, -1]),
        "int": torch.tensor([1, -2], dtype=torch.int32),
        "short": torch.tensor([1, -2], dtype=torch.int16),
        "char": torch.tensor([1, -2], dtype=torch.int8),
        "byte": torch.tensor([1, 255], dtype=torch.uint8),
        "bool": torch.tensor([True, False]),
    }


@pytest.mark.parametrize("as_zip", [ZIP, LEGACY])
def test_many_tensors_of_one_storage_are_each_read_alone(tmp_path: Path, as_zip: bool) -> None:
    flat = torch.arange(1000.0)
    path = saved({str(i): flat[10 * i : 10 * i + 10].view(2, 5).t() for i in range(100)}, tmp_path / "a", as_zip=as_zip)
    with open_checkpoint(path) as checkpoint:
        for i in range(100):
            assert torch.equal(checkpoint.tensor(checkpoint.tree[str(i)]), flat[10 * i : 10 * i + 10].view(2, 5).t())


@pytest.mark.parametrize("as_zip", [ZIP, LEGACY])
def test_every_tensor_is_what_torch_reads(tmp_path: Path, as_zip: bool) -> None:
    path = saved({"model": OrderedDict(tensors()), "epoch": 3}, tmp_path / "a.pth", as_zip=as_zip)
    with open_checkpoint(path) as checkpoint:
        assert checkpoint.container == ("torch zip" if as_zip else "legacy pickle")
        assert checkpoint.tree["epoch"] == 3
        assert checkpoint.inert == ()
        expected = torch.load(path, weights_only=True)["model"]
        for name, one in expected.items():
            read = checkpoint.tensor(checkpoint.tree["model"][name])
            assert read.dtype == one.dtype
            assert torch.equal(read, one), name
            assert read.is_contiguous()


class Extra:
    """Stands for a class of the authors' own that is not installed here."""

    def __init__(self) -> None:
        self.values = [1, 2]


@pytest.mark.parametrize("as_zip", [ZIP, LEGACY])
def test_extras_beside_the_weights_are_inert_and_reported(tmp_path: Path, as_zip: bool) -> None:
    extras = {"args": argparse.Namespace(lr=0.1), "own": Extra(), "path": Path("x"), "set": {1}, "f": os.getcwd}
    adam = torch.optim.Adam([torch.nn.Parameter(torch.ones(2))])
    path = saved(
        {"model": {"w": torch.ones(2)}, "optimizer": adam.state_dict(), **extras}, tmp_path / "a", as_zip=as_zip
    )
    with open_checkpoint(path) as checkpoint:
        assert {"argparse.Namespace", f"{__name__}.Extra"} <= set(checkpoint.inert)
        assert isinstance(checkpoint.tree["args"], Stub)
        assert torch.equal(checkpoint.tensor(checkpoint.tree["model"]["w"]), torch.ones(2))


def packed(path: Path, members: dict[str, bytes], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:xz", "w:bz2"])
@pytest.mark.parametrize("as_zip", [ZIP, LEGACY])
def test_a_tar_around_a_torch_file(tmp_path: Path, mode: str, as_zip: bool) -> None:
    inner = saved({"w": torch.arange(5.0)}, tmp_path / "in.pt", as_zip=as_zip).read_bytes()
    path = packed(tmp_path / "a.tar", {"README": b"hello", "../../model.pt": inner, "._model.pt": b"\0" * 20}, mode)
    with open_checkpoint(path) as checkpoint:
        assert checkpoint.container == f"tar around {'torch zip' if as_zip else 'legacy pickle'}"
        assert torch.equal(checkpoint.tensor(checkpoint.tree["w"]), torch.arange(5.0))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.tar", "in.pt"]  # nothing was extracted


def test_a_torch_zip_with_the_suffix_tar_is_a_torch_zip(tmp_path: Path) -> None:
    assert recognise(saved({"w": torch.ones(1)}, tmp_path / "simclr.tar")) == "torch zip"


def test_tars_that_are_not_around_one_file_are_refused(tmp_path: Path) -> None:
    inner = saved({"w": torch.ones(5)}, tmp_path / "in.pt").read_bytes()
    nested = packed(tmp_path / "nested.tar", {"model.pt": inner}).read_bytes()
    for members, says in (
        ({"a.pt": inner, "b.pt": inner}, "2 files"),
        ({"a.txt": b"x" * 600}, "no files"),
        ({"nested.tar": nested}, "no files"),
    ):
        with pytest.raises(CheckpointError, match=says), open_checkpoint(packed(tmp_path / "a.tar", members)):
            pass


def test_links_and_holes_in_a_tar_are_not_followed(tmp_path: Path) -> None:
    saved({"w": torch.ones(5)}, tmp_path / "in.pt")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        link = tarfile.TarInfo("model.pt")
        link.type, link.linkname = tarfile.SYMTYPE, str(tmp_path / "in.pt")
        archive.addfile(link)
    with pytest.raises(CheckpointError, match="no files"), open_checkpoint(tmp_path / "a.tar"):
        pass


def test_an_archive_that_grows_beyond_reason_is_refused(tmp_path: Path) -> None:
    path = packed(tmp_path / "a.tgz", {"model.pt": b"\0" * (64 << 20)}, "w:gz")
    assert path.stat().st_size < 1 << 20
    with pytest.raises(CheckpointError, match="beyond reason"), open_checkpoint(path):
        pass


def test_a_compressed_member_of_a_zip_is_refused(tmp_path: Path) -> None:
    whole = saved({"w": torch.zeros(4)}, tmp_path / "a.pth")
    with zipfile.ZipFile(whole) as source, zipfile.ZipFile(tmp_path / "b.pth", "w", zipfile.ZIP_DEFLATED) as target:
        for info in source.infolist():
            target.writestr(info.filename, source.read(info))
    with pytest.raises(CheckpointError, match="compressed"), open_checkpoint(tmp_path / "b.pth"):
        pass


def test_a_flipped_bit_of_a_tensor_is_told(tmp_path: Path) -> None:
    path = saved({"w": torch.arange(100.0)}, tmp_path / "a.pth")
    data = bytearray(path.read_bytes())
    at = data.index(torch.arange(100.0).numpy().tobytes())
    data[at + 40] ^= 1
    path.write_bytes(data)
    with open_checkpoint(path) as checkpoint, pytest.raises(CheckpointError, match="checksum"):
        checkpoint.tensor(checkpoint.tree["w"])


@pytest.mark.parametrize("data", [b"", b"<html>not found</html>", b"version https://git-lfs", pickle.dumps({"w": 1})])
def test_other_files_are_no_checkpoints(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.pth").write_bytes(data)
    with pytest.raises(CheckpointError, match="neither"):
        recognise(tmp_path / "a.pth")


def test_safetensors_are_read_as_they_are(tmp_path: Path) -> None:
    save_file({"w": torch.arange(3.0)}, tmp_path / "a.safetensors")
    with open_checkpoint(tmp_path / "a.safetensors") as checkpoint:
        assert torch.equal(checkpoint.tensor(checkpoint.tree["w"]), torch.arange(3.0))


@pytest.mark.parametrize("as_zip", [ZIP])
def test_tensors_of_other_types_are_inert_beside_the_weights_and_missed_among_them(
    tmp_path: Path, as_zip: bool
) -> None:
    others = {"complex": torch.ones(2, dtype=torch.complex64), "float8": torch.ones(2).to(torch.float8_e4m3fn)}
    tree = {"state": {"w": torch.ones(2), **others}, "optimizer": others}
    with open_checkpoint(saved(tree, tmp_path / "a", as_zip=as_zip)) as checkpoint:
        assert set(map_keys(checkpoint, Layout(("state",))).leaves) == {"w"}
        assert "torch.ComplexFloatStorage" in checkpoint.inert
