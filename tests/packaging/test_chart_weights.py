"""A site's cards and weights in a pod: mounted for reading, checked before the start by the chart's own command."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from tests.packaging.rendering import CHART, Render, environment


def weigh(render: Render, volume: Path, home: Path, digests: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run what the init container runs, with folders of this machine for those of the pod."""
    objects = render({"weights": {"existingClaim": "w", "sha256": digests}})
    pod = objects["StatefulSet/deid-gateway"]["spec"]["template"]["spec"]
    (check,) = [one for one in pod["initContainers"] if one["name"] == "weights"]
    (claim,) = [one for one in pod["volumes"] if one["name"] == "weights"]
    assert claim["persistentVolumeClaim"] == {"claimName": "w", "readOnly": True}
    env = {entry["name"]: entry["value"] for entry in check["env"]}
    assert env["MODELS"] == environment(pod["containers"][0])["DEID_HOME"] + "/models"
    (mount,) = [one for one in pod["containers"][0]["volumeMounts"] if one["name"] == "weights"]
    assert mount == {"name": "weights", "mountPath": env["WEIGHTS"], "readOnly": True}
    env |= {"WEIGHTS": str(volume), "MODELS": str(home / "models"), "PATH": "/usr/bin:/bin"}
    command = [*check["command"], *check["args"]]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=20, check=False)


@pytest.fixture
def site(tmp_path: Path) -> tuple[Path, Path, dict[str, str]]:
    """A volume with two files, a home, and the digests of the files."""
    volume, home = tmp_path / "volume", tmp_path / "home"
    for folder in (volume, home, volume / "lost+found"):
        folder.mkdir()
    texts = {"site-1.yaml": b"name: site-1\n", "site-1.safetensors": b"\0\1\2"}
    for name, data in texts.items():
        (volume / name).write_bytes(data)
    return volume, home, {name: hashlib.sha256(data).hexdigest() for name, data in texts.items()}


def test_weights_that_are_those_listed_are_laid_into_the_home(
    render: Render, site: tuple[Path, Path, dict[str, str]]
) -> None:
    volume, home, digests = site
    for _ in range(2):  # every start does it again
        ran = weigh(render, volume, home, digests)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert (home / "models").resolve() == volume.resolve()
    assert (home / "models" / "site-1.yaml").read_bytes() == b"name: site-1\n"


@pytest.mark.parametrize("fault", ["changed", "missing", "added", "renamed", "home"])
def test_weights_that_are_not_those_listed_keep_the_pod_from_starting(
    render: Render, site: tuple[Path, Path, dict[str, str]], fault: str
) -> None:
    volume, home, digests = site
    match fault:
        case "changed":
            (volume / "site-1.safetensors").write_bytes(b"\0\1\3")
        case "missing":
            (volume / "site-1.safetensors").unlink()
        case "added":
            (volume / "site-2.yaml").write_text("name: site-2\n")
        case "renamed":  # a dot in a name is no pattern
            (volume / "site-1xyaml").write_text("name: site-1\n")
        case "home":
            (home / "models").mkdir()
    ran = weigh(render, volume, home, digests)
    assert ran.returncode != 0
    assert ran.stderr
    assert not (home / "models").is_symlink()


def test_what_the_chart_packs_is_what_templates_read() -> None:
    assert [path.name for path in sorted((CHART / "scripts").iterdir())] == ["weights.sh"]
