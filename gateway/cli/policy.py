"""`policy check|explain|schema`."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from gateway.app.registry import REGISTRY
from gateway.cli.output import JsonOption, complain, say, say_json, table
from gateway.errors import Fault, PolicyError
from gateway.header import describe
from gateway.policy import load_policies, load_policy
from gateway.policy.explain import explain_policy
from gateway.policy.folder import DESTINATIONS, ROUTES
from gateway.policy.schema import policy_schema
from gateway.settings import SHIPPED_POLICIES

app = typer.Typer(
    help="What a policy says, whether it can be loaded, and what it does to each tag.", no_args_is_help=True
)
FilesArgument = Annotated[
    list[Path] | None,
    typer.Argument(metavar="[FILE]...", help="Policy files, or a folder as a whole. Default: DEID_POLICIES."),
]


@app.command()
def check(
    files: FilesArgument = None,
    policies: Annotated[Path, typer.Option(envvar="DEID_POLICIES", help="The policies folder.")] = SHIPPED_POLICIES,
    json: JsonOption = False,
) -> int:
    """Load policy files and print every fault of all of them, with file, line and hint. Exit 2 when there is one."""
    faults: list[Fault] = []
    sound: list[dict[str, str]] = []
    for path in files or [policies]:
        try:
            if path.is_dir() or path.name in (ROUTES, DESTINATIONS):
                loaded = load_policies(path if path.is_dir() else path.parent, REGISTRY)
                sound += [{"name": p.name, "digest": p.digest} for p in loaded.policies.values()]
            else:
                policy = load_policy(path, REGISTRY)
                sound.append({"name": policy.name, "digest": policy.digest})
        except PolicyError as error:
            faults += error.faults
    if json:
        listed = [{"file": f.file, "line": f.line, "says": f.says, "hint": f.hint} for f in sorted(set(faults))]
        say_json({"sound": sound, "faults": listed})
    else:
        for fault in sorted(set(faults)):
            complain(str(fault))
        for entry in sound:
            say(f"sound: {entry['name']} {entry['digest'][:12]}")
    return 2 if faults else 0


@app.command()
def explain(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A policy file.")],
    tags: Annotated[bool, typer.Option(help="List what happens to each attribute too.")] = True,
    json: JsonOption = False,
) -> int:
    """Say in plain language what a policy does, and to each attribute."""
    policy = load_policy(file, REGISTRY)
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
    typer.echo(json_module.dumps(policy_schema(REGISTRY), indent=2, ensure_ascii=False))
    return 0
