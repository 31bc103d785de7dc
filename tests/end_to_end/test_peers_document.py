"""policies/peers.md is used as it is written: Orthanc to the gateway to Orthanc, DCMTK to the gateway to DCMTK."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydicom
import pytest
import yaml
from peers import Orthanc, OrthancServer, dcmtk, need, storescp, wait_until
from pydicom.data import get_testdata_file
from running import policies_for, running, wait_idle

from gateway.settings import SHIPPED_POLICIES, Home

sys.path.append(str(Path(__file__).parents[1] / "cli"))

from commands import in_process

pytestmark = [pytest.mark.peer]

BLOCKS = dict(
    re.findall(
        r"^```\w+ (\S+)\n(.*?)^```$", (SHIPPED_POLICIES / "peers.md").read_text(), flags=re.MULTILINE | re.DOTALL
    )
)
CT = Path(str(get_testdata_file("CT_small.dcm")))


def on_loopback(text: str, ports: Mapping[str, int] = {}) -> str:
    """The addresses of this test in place of those of the document."""
    for place, port in ports.items():
        host, _, old = place.partition(":")
        text = text.replace(place, f"127.0.0.1:{port}").replace(f'"{host}", {old}', f'"127.0.0.1", {port}')
    return re.sub(r"10\.0\.0\.\d", "127.0.0.1", text)


def settings() -> dict[str, tuple[str, ...]]:
    """What the .env of the document sets."""
    pairs = [line.partition("=") for line in on_loopback(BLOCKS[".env"]).splitlines()]
    return {name.removeprefix("DEID_").lower(): tuple(value.split(",")) for name, _, value in pairs}


def policies(folder: Path, ports: Mapping[str, int]) -> Path:
    def as_written(there: Path) -> None:
        (there / "routes.yaml").write_text(BLOCKS["routes.yaml"])
        (there / "destinations.yaml").write_text(on_loopback(BLOCKS["destinations.yaml"], ports))

    return policies_for(folder, "dicom://X@127.0.0.1:1", change=as_written)


def post(server: OrthancServer, path: str, body: bytes) -> Any:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.http_port}{path}", data=body, timeout=60) as answer:
        return json.loads(answer.read())


def test_orthanc_to_the_gateway_to_orthanc(home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need("orthanc")
    archive_settings = json.loads(on_loopback(BLOCKS["orthanc-archive.json"]))
    del archive_settings["DicomPort"]  # any free one
    with Orthanc(tmp_path, **archive_settings) as archive:
        folder = policies(tmp_path / "policies", {"10.0.0.8:4242": archive.dicom.port})
        command = in_process(capsys)
        answers = {one["destination"]: one for one in command("route", "echo", "--policies", folder, "--json").json}
        assert answers["orthanc"]["state"] == "answers"
        (folder / "destinations.yaml").write_text(
            (folder / "destinations.yaml").read_text().replace("RESEARCH@", "RESAERCH@")
        )
        misspelt = command("route", "echo", "orthanc", "--policies", folder, "--json")
        assert (misspelt.code, misspelt.json[0]["state"]) == (3, "wrong-ae")
        folder_again = policies(tmp_path / "again", {"10.0.0.8:4242": archive.dicom.port})
        with running(home, folder_again, **settings()) as gateway:
            pacs_settings = json.loads(
                on_loopback(BLOCKS["orthanc-pacs.json"], {"10.0.0.5:11112": gateway.receiver.port})
            )
            with Orthanc(tmp_path, **pacs_settings) as pacs:
                study = post(pacs, "/instances", CT.read_bytes())["ParentStudy"]
                told = post(pacs, "/modalities/deid/store", study.encode())
                assert told["FailedInstancesCount"] == 0
                wait_idle(gateway)
        (data,) = archive.files_by_sop_uid().values()
        (tmp_path / "arrived.dcm").write_bytes(data)
        arrived = pydicom.dcmread(tmp_path / "arrived.dcm")
        assert arrived.PatientID.startswith("DEMO-")
        assert arrived.PixelData == pydicom.dcmread(CT).PixelData
    asked = command("route", "test", CT, "--ae", "ORTHANC", "--policies", folder_again, "--json").json
    assert asked["studies"][0]["rule"] == "from-the-pacs"


def test_dcmtk_to_the_gateway_to_dcmtk(home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    send, receive = map(shlex.split, BLOCKS["dcmtk"].splitlines())
    assert receive[:3] == ["storescp", "-aet", "STORESCP"]
    options = [word for word in receive[3:-1] if word not in {"-od", "received/"}]
    with storescp(tmp_path / "received", *options, ae_title="STORESCP") as archive:
        folder = policies(tmp_path / "policies", {"10.0.0.8:11113": archive.port})
        with running(home, folder, **settings()) as gateway:
            (tmp_path / "folder").mkdir()
            (tmp_path / "folder/a.dcm").write_bytes(CT.read_bytes())
            port = str(gateway.receiver.port)
            words = [{"10.0.0.5": "127.0.0.1", "11112": port}.get(word, word) for word in send[1:]]
            done = subprocess.run([dcmtk(send[0]), *words], cwd=tmp_path, capture_output=True, timeout=60, check=False)
            assert done.returncode == 0, done.stderr.decode()[-500:]
            wait_idle(gateway)
        wait_until(lambda: any((tmp_path / "received").iterdir()), seconds=10, what="a file in received/")
    (path,) = (tmp_path / "received").iterdir()
    assert pydicom.dcmread(path).PatientID.startswith("DEMO-")
    command = in_process(capsys)
    words = ("--ae", "STORESCU", "--called", "DEID-TRIAL", "--policies", folder, "--json")
    (study,) = command("route", "test", CT, *words).json["studies"]
    assert (study["rule"], study["jobs"][0]["project"]) == ("trial", "trial-17")


def test_the_document_is_short_and_its_files_load(tmp_path: Path) -> None:
    from gateway.app.policy.registry import REGISTRY
    from gateway.policy import load_policies

    assert set(BLOCKS) == {
        ".env", "routes.yaml", "destinations.yaml", "orthanc-pacs.json", "orthanc-archive.json", "dcmtk",
    }  # fmt: skip
    loaded = load_policies(policies(tmp_path / "policies", {}), REGISTRY)
    assert [route.name for route in loaded.routes.routes] == ["trial", "from-the-pacs"]
    assert set(yaml.safe_load(BLOCKS["destinations.yaml"])) == set(loaded.destinations)
