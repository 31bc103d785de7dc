"""Which home a command is about, and the settings that hold there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.errors import UsageError
from gateway.settings import Home, Settings, load_settings

if TYPE_CHECKING:
    from gateway.policy import Policy, Registry

HomeOption = Annotated[
    Path | None,
    typer.Option(
        "--home",
        readable=False,
        help="The gateway's home folder; else DEID_HOME.",
    ),
]
_NO_FOLDER = Path(os.devnull)  # holds no .env


def named_home(given: Path | None) -> Home | None:
    """The home named by --home or DEID_HOME, None when neither is there. It need not exist."""
    path = given or (Path(os.environ["DEID_HOME"]) if os.environ.get("DEID_HOME") else None)
    return Home(path.expanduser().absolute()) if path is not None else None


def made_home(given: Path | None) -> Home:
    """The named home, which `init` has made. Raises UsageError or EnvironmentFault."""
    home = named_home(given)
    if home is None:
        raise UsageError("which home? name it with --home or DEID_HOME; `deid-gateway init HOME` makes one")
    home.require()
    return home


def settings_of(home: Home | None, **overrides: object) -> Settings:
    """Settings of the environment and, where a home is named, of its .env. Raises UsageError."""
    return load_settings(home.root if home is not None else _NO_FOLDER, **overrides)


def registry_at(home: Home | None) -> Registry:
    """What a policy may name: parts of this build and, where a home is named, cards of its own."""
    from gateway.app.policy.registry import registry_of
    from gateway.app.release.references import MODELS

    return registry_of(home.root / MODELS if home is not None else None)


def policy_at(reference: str, home: Home | None) -> Policy:
    """A policy by path, or by its name in the policies folder. Raises PolicyError or UsageError."""
    from gateway.app.batch.studies import find_policy

    return find_policy(reference, lambda: settings_of(home).policies, registry_at(home))
