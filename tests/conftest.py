"""Fixtures that several packages' tests share."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pydicom.data
import pytest

from gateway.pseudonyms import Keys, master_key
from gateway.settings import Home, Settings, load_settings

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
MEMORY = Path("/dev/shm")
ENOUGH_BYTES = 8 << 30


def pytest_configure() -> None:
    """For us, and for every program that a test starts: temporary files in memory, where there is enough of it (most
    tests wait for fsync otherwise, and none pulls the plug), and modules that are compiled once.

    Who wants files on a disk sets TMPDIR or --basetemp.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    if "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    there = os.statvfs(MEMORY)
    if there.f_bavail * there.f_frsize >= ENOUGH_BYTES and not there.f_flag & os.ST_NOEXEC:
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A fresh home with a generated master key."""
    made = Home(tmp_path / "home")
    assert made.create()
    return made


@pytest.fixture
def settings(home: Home, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Settings]:
    """`settings(quiet_s=0)`: defaults on any free ports, with overrides; the tester's own DEID_* are not seen."""
    for name in [name for name in os.environ if name.startswith("DEID_")]:
        monkeypatch.delenv(name)

    def build(**overrides: object) -> Settings:
        return load_settings(home.root, **{"dicom_port": 0, "http_port": 0, **overrides})

    return build


@pytest.fixture
def keys(home: Home, settings: Callable[..., Settings]) -> Keys:
    """Keys of the home."""
    return Keys(master_key(home, settings()))


def is_dicom_file(path: Path) -> bool:
    """True for a regular file with the PS3.10 preamble and prefix."""
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(132)[128:] == b"DICM"


@pytest.fixture(scope="session")
def pydicom_files() -> list[Path]:
    """Every file with a DICOM prefix that pydicom installs with itself, in a fixed order (188 in 3.0.2)."""
    found = sorted(path for path in Path(pydicom.data.__file__).parent.rglob("*") if is_dicom_file(path))
    assert len(found) > 150
    return found


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of shared test data; skips where there is none. Mark such tests `shared`."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no shared data at {SHARED_DATA}")
    return SHARED_DATA
