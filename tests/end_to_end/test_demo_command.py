"""`demo` on a fresh machine: it ends by itself, shows what it must, and leaves nothing running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from processes import alive_in_group, wait_until

from gateway.app.demo_releases import ANEW, PEOPLE, UNTOUCHED

pytestmark = pytest.mark.timeout(900)


def listening() -> set[int]:
    """Inodes of sockets that listen on this machine (proc(5), state 0A)."""
    found = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A":
                found.add(int(fields[1].rpartition(":")[2], 16))
    return found


def demo(*words: object, env: dict[str, str], seconds: float = 800) -> tuple[int, str, str, int]:
    """Exit code, stdout, stderr, process group."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("DEID_", "COLUMNS"))}
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "demo", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**clean, **env},
        start_new_session=True,
        text=True,
    )
    out, err = process.communicate(timeout=seconds)
    return process.returncode, out, err, process.pid


def test_it_shows_everything_ends_and_leaves_nothing_running(tmp_path: Path) -> None:
    """With settings in the environment that would break it, or point it at somebody's database, if it used them."""
    theirs = {
        "DEID_DATABASE_URL": "postgresql+psycopg://user:pw@127.0.0.1:1/theirs",
        "DEID_KEY": "weak",
        "DEID_HOME": str(tmp_path / "their-home"),
        "DEID_POLICIES": str(tmp_path / "nowhere"),
        "DEID_NO_SUCH_SETTING": "1",
        "COLUMNS": "140",
    }
    code, out, err, group = demo("--keep", tmp_path / "kept", env=theirs)
    assert (code, err) == (0, "")
    for column in ("route", "policy", "instances", "verdict", "reason", "went to"):
        assert column in out
    lines = out.splitlines()
    sent = [line for line in lines if "│ sent" in line and ANEW not in line]
    held = [line for line in lines if "│ held" in line]
    assert len(sent) >= 5
    assert len(held) >= 4
    assert any("examples_ybr_color" in line and "research-pictures" in line for line in sent)
    assert all("research-archive" in line for line in sent)
    assert any("77654033/CT2 (CT)" in line and "│ 4 " in line for line in sent)
    assert any("not_assessed" in line for line in held)
    name = next(line for line in lines if "PatientName" in line)
    assert "CompressedSamples^CT1" in name
    assert "DEMO-" in name
    assert 'deid_instances_sent_total{destination="research-archive",kind="success"} 13.0' in out
    for folder in ("archive", "home", "policies", "gateway.log"):
        assert (tmp_path / "kept" / folder).exists()
        assert str(tmp_path / "kept" / folder) in out
    assert len(list((tmp_path / "kept" / "archive").glob("*.dcm"))) == 13 + PEOPLE  # and the films that were made anew
    untouched, anew = (next(line for line in lines if line.startswith(f"│ {name}")) for name in (UNTOUCHED, ANEW))
    assert "blocked" in untouched
    assert "sent" in anew
    assert not (tmp_path / "their-home").exists()
    assert all(json.loads(line)["event"] for line in (tmp_path / "kept" / "gateway.log").read_text().splitlines())
    port = next(
        json.loads(line)["port"]
        for line in (tmp_path / "kept" / "gateway.log").read_text().splitlines()
        if json.loads(line)["event"] == "started"
    )
    assert port not in listening()
    wait_until(lambda: alive_in_group(group) == [], seconds=10, what="nothing is left running")

    # What it advises works.
    advice = next(line for line in lines if line.startswith("further:")).split("deid-gateway ")[1].split()
    done = subprocess.run([sys.executable, "-m", "gateway", *advice, "--json"], capture_output=True, check=True)
    assert len(json.loads(done.stdout)) == len(held) + PEOPLE  # the films of the blocked release are held too


def test_eighty_columns_are_enough_and_scripts_get_one_document(tmp_path: Path) -> None:
    code, out, err, _ = demo("--keep", tmp_path / "narrow", env={"COLUMNS": "80"})
    assert (code, err) == (0, "")
    tables = [line for line in out.splitlines() if line[:1] in "┏┃┡│└"]
    assert len(tables) > 40
    assert all(len(line) <= 80 for line in tables)
    assert "held: not_assessed" in out
    code, out, err, _ = demo("--keep", tmp_path / "json", "--json", "--no-releases", env={})
    assert (code, err) == (0, "")
    told = json.loads(out)
    states = {study["file"]: study["state"] for study in told["studies"]}
    assert states["CT_small.dcm"] == "sent"
    assert states["test-SR.dcm"] == "held"
    assert {study["reason"] for study in told["studies"] if study["state"] == "sent"} == {""}
    assert told["archived"] == sum(s["instances"] for s in told["studies"] if s["state"] == "sent")
    assert Path(told["root"]) == tmp_path / "json"


def test_it_takes_no_folder_that_holds_something(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("x")
    for place in (tmp_path / "mine", tmp_path / "mine" / "letter.txt"):
        code, out, err, _ = demo("--keep", place, env={})
        assert (code, out) == (2, "")
        assert "name a new one" in err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letter.txt"]


def test_ctrl_c_ends_it_with_130_and_leaves_nothing_running(tmp_path: Path) -> None:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("DEID_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "gateway", "demo", "--keep", str(tmp_path / "kept")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean,
        start_new_session=True,
    )
    log = tmp_path / "kept" / "gateway.log"
    wait_until(lambda: log.exists() and '"started"' in log.read_text(), seconds=60, what="the gateway has started")
    os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == b""
    assert err.startswith(b"error: interrupted")
    assert b"Traceback" not in err
    wait_until(lambda: alive_in_group(process.pid) == [], seconds=10, what="nothing is left running")
