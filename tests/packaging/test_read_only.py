"""The gateway runs where only its home and a temporary folder can be written to, and leaves nothing in the latter."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import peers

ROOT = Path(__file__).resolve().parents[2]

# In a mount namespace of its own: a volume at /mnt, the rest of the root file system read-only.
SCRIPT = """
set -eu
mount --bind "$VOLUME" /mnt
mkdir /mnt/tmp
mount -o remount,bind,ro /
cd /
! touch "$REPO/written" 2>/dev/null
"$PYTHON" -m gateway init /mnt/home
"$PYTHON" -m gateway serve &
serving=$!
tries=0
until "$PYTHON" -I -c "$HEALTHY"; do
    tries=$((tries + 1)); [ $tries -lt 60 ] || exit 9
    kill -0 $serving
    sleep 0.5
done
kill -TERM $serving
wait $serving
ls -A /mnt/tmp
"""
HEALTHY = """
import http.client, os, sys
connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["DEID_HTTP_PORT"]), timeout=4)
try:
    connection.request("GET", "/healthz")
    sys.exit(connection.getresponse().status != 200)
except OSError:
    sys.exit(1)
"""


def namespaces_work() -> bool:
    unshare = shutil.which("unshare")
    return (
        bool(unshare) and subprocess.run([str(unshare), "-m", "true"], capture_output=True, check=False).returncode == 0
    )


@pytest.mark.skipif(not namespaces_work(), reason="needs a mount namespace: root on Linux")
def test_serve_starts_answers_and_stops_on_a_read_only_root(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("DEID_")},
        "PYTHON": sys.executable,
        "HEALTHY": HEALTHY,
        "VOLUME": str(volume),
        "REPO": str(ROOT),
        "HOME": "/mnt/tmp",
        "TMPDIR": "/mnt/tmp",
        "PYTHONDONTWRITEBYTECODE": "1",
        "DEID_HOME": "/mnt/home",
        "DEID_DICOM_PORT": str(peers.free_port()),
        "DEID_HTTP_PORT": str(peers.free_port()),
    }
    ran = subprocess.run(
        ["unshare", "-m", "sh", "-c", SCRIPT], env=env, capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.strip().splitlines()[-1].startswith("nobody may send yet"), (
        "something was left behind"
    )  # init's last line
    assert '"event": "stopped"' in ran.stderr
    assert {"spool", "keys", "database.sqlite"} <= {path.name for path in (volume / "home").iterdir()}
