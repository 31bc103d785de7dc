"""`policy check|explain|schema`; the other commands of the group have files of their own."""

from __future__ import annotations

import json as json_module
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from gateway.cli import (
    policy_approvals,
    policy_conformance,
    policy_diff,
    policy_drift,
    policy_new,
    policy_preview,
    policy_signers,
)
from gateway.cli.homes import HomeOption, named_home, policy_at, registry_at, settings_of
from gateway.cli.output import JsonOption, complain, say, say_json, table
from gateway.errors import Fault, PolicyError

app = typer.Typer(
    help="What a policy says, whether it can be loaded, and what it does to each tag.", no_args_is_help=True
)
FilesArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[FILE]...", readable=False, help="Policy files, or a folder as a whole. Default: the policies folder."
    ),
]
FolderOption = Annotated[
    Path | None,
    typer.Option(
        "--policies",
        readable=False,
        help="The policies folder; else DEID_POLICIES, also of HOME/.env.",
    ),
]


@app.command()
def check(
    files: FilesArgument = None, policies: FolderOption = None, home: HomeOption = None, json: JsonOption = False
) -> int:
    """Load policy files and print every fault of all of them, with file, line and hint. Exit 2 when there is one."""
    from gateway.policy import Policy, load_policies, load_policy

    faults: set[Fault] = set()
    sound: dict[str, Policy] = {}  # by digest: a file may be named beside its folder
    place = named_home(home)
    registry = registry_at(place)
    for path, is_folder in _chosen(files, lambda: policies or settings_of(place).policies):
        try:
            if is_folder:
                found = list(load_policies(path, registry).policies.values())
            else:
                found = [load_policy(path, registry)]
        except PolicyError as error:
            faults |= set(error.faults)
        else:
            sound |= {policy.digest: policy for policy in found}
    if json:
        listed = [{"file": f.file, "line": f.line, "says": f.says, "hint": f.hint} for f in sorted(faults)]
        say_json({"sound": [{"name": p.name, "digest": p.digest} for p in sound.values()], "faults": listed})
    else:
        for fault in sorted(faults):
            complain(str(fault))
        for policy in sound.values():
            say(f"sound: {policy.name} {policy.digest[:12]}")
    return 2 if faults else 0


def _chosen(files: list[Path] | None, default: Callable[[], Path]) -> Iterator[tuple[Path, bool]]:
    """Each thing to load, and whether it is a folder; routes and destinations are judged with what is around them."""
    from gateway.policy.folder import DESTINATIONS, ROUTES

    if not files:
        yield default(), True
    for path in files or ():
        around = path.name in (ROUTES, DESTINATIONS)
        yield (path.parent if around else path), around or path.is_dir()


@app.command()
def explain(
    file: Annotated[str, typer.Argument(metavar="FILE", help="A policy file, or a name in the policies folder.")],
    tags: Annotated[bool, typer.Option(help="List what happens to each attribute too.")] = True,
    home: HomeOption = None,
    json: JsonOption = False,
) -> int:
    """Say in plain language what a policy does, and to each attribute."""
    from gateway.header import describe
    from gateway.policy.explain import explain_policy

    policy = policy_at(file, named_home(home))
    lines = explain_policy(policy)
    actions = list(describe(policy.header))
    if json:
        rows = [{"tag": a.tag, "keyword": a.keyword, "action": a.action, "because": a.because} for a in actions]
        say_json({"name": policy.name, "digest": policy.digest, "says": lines, "attributes": rows})
        return 0
    for line in lines:
        say(line)
    if tags:
        columns = ["tag", "attribute", "what happens", "because"]
        table("Attributes", columns, [(a.tag, a.keyword, a.action, a.because) for a in actions])
    return 0


@app.command()
def schema() -> int:
    """Print the JSON schema of policy files, for editors that check while one types."""
    from gateway.app.policy.registry import REGISTRY
    from gateway.policy.schema import policy_schema

    typer.echo(json_module.dumps(policy_schema(REGISTRY), indent=2, ensure_ascii=False))
    return 0


app.command()(policy_preview.preview)
app.command()(policy_diff.diff)
app.command()(policy_conformance.conformance)
app.command()(policy_drift.drift)
app.command()(policy_new.new)
app.command()(policy_approvals.approve)
app.command()(policy_approvals.revoke)
app.command(name="approvals")(policy_approvals.list_approvals)
app.add_typer(policy_signers.app, name="signer")
