"""The peers that other tests rely on start, answer, and end."""

from __future__ import annotations

import io
import subprocess
from pathlib import Path

import pydicom
import pytest
import sqlalchemy

from tests import peers

pytestmark = pytest.mark.peer


def test_dcmtk_tools_are_dcmtks_and_not_the_namesakes_in_our_environment() -> None:
    said = subprocess.run([peers.dcmtk("storescu"), "--version"], capture_output=True, text=True, check=False)
    assert "dcmtk" in said.stdout + said.stderr


def test_storescp_answers_an_echo_and_is_gone_after_its_block(tmp_path: Path) -> None:
    with peers.storescp(tmp_path / "in") as scp:
        subprocess.run([peers.dcmtk("echoscu"), scp.host, str(scp.port)], check=True)
    assert not peers.listening(scp.port)


def test_orthanc_gives_back_the_pixels_it_was_sent(tmp_path: Path, pydicom_files: list[Path]) -> None:
    source = next(path for path in pydicom_files if path.name == "CT_small.dcm")
    with peers.Orthanc(tmp_path) as orthanc:
        assert orthanc.instances() == []
        subprocess.run([peers.dcmtk("storescu"), "127.0.0.1", str(orthanc.dicom.port), str(source)], check=True)
        (stored,) = orthanc.files_by_sop_uid().values()
    assert not peers.listening(orthanc.dicom.port)
    assert pydicom.dcmread(io.BytesIO(stored)).PixelData == pydicom.dcmread(source).PixelData


def test_postgres_takes_a_table() -> None:
    with peers.Postgres() as url:
        engine = sqlalchemy.create_engine(url)
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text("create table t (x integer)"))
            connection.execute(sqlalchemy.text("insert into t values (7)"))
            assert connection.execute(sqlalchemy.text("select x from t")).scalar_one() == 7
        engine.dispose()


def test_a_missing_peer_skips_here_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "available", lambda peer: False)
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="apt-get install orthanc"):
        peers.need("orthanc")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="apt-get install orthanc"):
        peers.need("orthanc")
