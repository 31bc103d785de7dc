"""`policy signer new|add|remove|list`: who may approve policies, and with which keys."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import ActorOption, JsonOption, ReasonOption, say, say_json, table
from gateway.errors import EnvironmentFault, GatewayError, UsageError
from gateway.settings import Home, Settings

if TYPE_CHECKING:
    from gateway.app.policy.approvals import Approvals

app = typer.Typer(help="Who may approve policies, and with which keys.", no_args_is_help=True)

RolesOption = Annotated[list[str], typer.Option("--role", help="A role that they may sign in. Repeatable.")]
PassphraseOption = Annotated[
    Path | None,
    typer.Option("--passphrase-file", readable=False, help="A file with the key's passphrase; else it is asked for."),
]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Small letters, digits and dashes: jane-doe.")]


@app.command()
def new(
    name: NameArgument,
    roles: RolesOption,
    by: ActorOption,
    reason: ReasonOption,
    key: Annotated[Path, typer.Option("--key", readable=False, help="Where the private key goes: outside the home.")],
    passphrase_file: PassphraseOption = None,
    no_passphrase: Annotated[
        bool, typer.Option("--no-passphrase", help="Do not encrypt the private key; it is readable to its user only.")
    ] = False,
    home: HomeOption = None,
) -> int:
    """Make a key pair, list the public key, and write the private one (Ed25519) to a file that the signer keeps."""
    from gateway.app.policy.approvers import approver
    from gateway.cli.held import worded
    from gateway.policy.approvals import new_private, public_text

    by, reason = worded(by, reason)
    place, _, approvals = approvals_of(home)
    target = key.expanduser().absolute()
    if target.resolve().is_relative_to(place.root.resolve()):
        raise UsageError("the private key does not belong in the home: whoever has the home could sign with it")
    if name in {one.name for one, _ in approvals.signers()}:
        raise UsageError(f"{name} is listed already; `policy signer remove {name}` first")
    passphrase = None if no_passphrase else passphrase_of(passphrase_file, twice=True)
    private = new_private(target, passphrase)
    try:
        approvals.add_signer(approver(name, private.public_key(), tuple(roles)), actor=by, reason=reason)
    except GatewayError:
        target.unlink()  # a key that nobody knows
        raise
    say(f"{name} may sign as {' or '.join(sorted(set(roles)))}; public key {public_text(private.public_key())}")
    say(f"the private key is {target}; give it to {name} alone, and keep no copy here")
    return 0


@app.command()
def add(
    name: NameArgument,
    roles: RolesOption,
    by: ActorOption,
    reason: ReasonOption,
    public: Annotated[str, typer.Option("--public", help="The public key: base64 of 32 bytes, or a PEM file.")],
    home: HomeOption = None,
) -> int:
    """List somebody whose key was made elsewhere, for example with `openssl genpkey -algorithm ed25519`."""
    from gateway.app.policy.approvers import approver
    from gateway.cli.held import worded
    from gateway.policy.approvals import read_public

    by, reason = worded(by, reason)
    text = Path(public).read_text("ascii", errors="replace") if Path(public).is_file() else public
    _, _, approvals = approvals_of(home)
    approvals.add_signer(approver(name, read_public(text), tuple(roles)), actor=by, reason=reason)
    say(f"{name} may sign as {' or '.join(sorted(set(roles)))}")
    return 0


@app.command()
def remove(name: NameArgument, by: ActorOption, reason: ReasonOption, home: HomeOption = None) -> int:
    """Strike somebody off. Their approvals no longer count, also when they are listed again."""
    from gateway.cli.held import worded

    by, reason = worded(by, reason)
    _, _, approvals = approvals_of(home)
    approvals.remove_signer(name, actor=by, reason=reason)
    say(f"{name} may no longer sign; `policy approvals` shows what is approved now")
    return 0


@app.command(name="list")
def list_signers(home: HomeOption = None, json: JsonOption = False) -> int:
    """Who is listed. Exit 3 when the file says something else than the ledger: then that person counts for nothing."""
    _, _, approvals = approvals_of(home)
    found = approvals.signers()
    if json:
        say_json([{"signer": one.name, "roles": list(one.roles), "key": one.key, "known": ok} for one, ok in found])
    elif found:
        rows = [(one.name, ", ".join(one.roles), one.key, "" if ok else "not in the ledger") for one, ok in found]
        table("Signers", ["signer", "roles", "key", ""], rows, keyed=True)
    else:
        say("nobody may sign yet; `deid-gateway policy signer new`")
    return 0 if all(ok for _, ok in found) else 3


def approvals_of(home: Path | None) -> tuple[Home, Settings, Approvals]:
    """The named home, its settings and its approvals. Raises UsageError, EnvironmentFault."""
    from gateway.app.policy.approvals import Approvals

    place = made_home(home)
    settings = settings_of(place)
    return place, settings, Approvals(place, settings)


def passphrase_of(file: Path | None, *, twice: bool) -> bytes:
    """Of a file's first line, or asked for without showing it."""
    if file is not None:
        try:
            mode, text = file.stat().st_mode & 0o777, file.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            raise EnvironmentFault(f"the passphrase file {file} cannot be read") from None
        if mode & 0o077:
            raise EnvironmentFault(f"the passphrase file {file} is open to others; run chmod 600 on it")
        return text.partition("\n")[0].encode()
    if not sys.stdin.isatty():  # getpass would read on, and show what is typed
        raise UsageError("there is no terminal to ask for the key's passphrase on; name a file with --passphrase-file")
    asked: str = typer.prompt("Passphrase of the signing key", hide_input=True, confirmation_prompt=twice, err=True)
    return asked.encode()
