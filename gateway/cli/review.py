"""`review`: the page for held studies alone, the accounts of those who may use it, and what its API is."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Annotated

import typer

from gateway.cli import review_tokens
from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import JsonOption, say, say_json, table
from gateway.errors import EnvironmentFault, UsageError

app = typer.Typer(help="The review page and its accounts.", invoke_without_command=True)
users = typer.Typer(help="Who may sign in on the review page.", no_args_is_help=True)
app.add_typer(users, name="user")
app.add_typer(review_tokens.app, name="token")
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Small letters, digits, dots and dashes.")]


@app.callback()
def review(context: typer.Context, home: HomeOption = None) -> None:
    """Serve the review page alone, on loopback (DEID_REVIEW_PORT, 8081 by default), until it is told to stop.

    `serve` brings it along where DEID_REVIEW_PORT is set. Alone, decisions are written down, and the running gateway
    carries them out. Accounts come from `review user add`.
    """
    if context.invoked_subcommand is not None:
        context.obj = home
        return
    from gateway.app.review.page import ReviewPage
    from gateway.app.serve import wire
    from gateway.observe import start_logging

    place = made_home(home)
    values = settings_of(place)
    start_logging()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    parts = wire(place, values)
    page = ReviewPage(parts)
    try:
        page.start()
        say(f"review page: {page.url}")
        if not page.has_accounts:
            say("nobody can sign in yet: deid-gateway review user add NAME --role reviewer")
        sys.stdout.flush()
        while not stop.wait(0.5):
            if not page.alive:
                raise EnvironmentFault("the review page has died; see the log, and start it again")
    finally:
        page.stop()
        parts.workers.close()
        parts.database.close()


@users.command()
def add(
    context: typer.Context,
    name: NameArgument,
    role: Annotated[str, typer.Option("--role", help="viewer, reviewer, privacy-officer, vault-keeper or admin.")],
    home: HomeOption = None,
) -> int:
    """Add an account, or give it another role and password. The password is asked for, or read from stdin.

    Whoever is signed in under that name must sign in again.
    """
    from gateway.app.review.accounts import put_account
    from gateway.review import Role

    if role not in set(Role):
        raise UsageError(f"no role {role}; one of {', '.join(Role)}")
    place = made_home(home or context.obj)
    new = put_account(place, settings_of(place), name, Role(role), _password(), by=f"uid {os.getuid()}")
    say(f"{name} may sign in as {role}" if new else f"{name} is now {role}, with the new password")
    return 0


@users.command(name="list")
def list_users(context: typer.Context, home: HomeOption = None, json: JsonOption = False) -> int:
    """Names and roles; also of those who came by the sign-in provider, with the role that they had the last time."""
    from gateway.app.review.page import accounts_of, people_of

    place = made_home(home or context.obj)
    found = [*accounts_of(place).all().values(), *people_of(place).all().values()]
    rows = [(one.name, str(one.role), "provider" if one.is_vouched else "password") for one in found]
    if json:
        say_json([dict(zip(("name", "role", "by"), row, strict=True)) for row in rows])
    elif rows:
        table("Who may sign in on the review page", ["name", "role", "by"], rows)
    else:
        say("there is no account; deid-gateway review user add NAME --role reviewer")
    return 0


@users.command()
def remove(context: typer.Context, name: NameArgument, home: HomeOption = None) -> int:
    """Take away an account and its tokens, or the name of somebody who came by the sign-in provider.

    Whoever is signed in under it is out with the next request. Another may have the name; who may come by the provider
    is decided there.
    """
    from gateway.app.review.accounts import remove_account

    place = made_home(home or context.obj)
    local = remove_account(place, settings_of(place), name, by=f"uid {os.getuid()}")
    again = "is out, and the name is free; to keep that person out, take the role away at the sign-in provider"
    say(f"{name} may no longer sign in" if local else f"{name} {again}")
    return 0


@app.command()
def openapi() -> int:
    """Print the OpenAPI document of the page's API, for generators of clients."""
    from gateway.review.api import OPERATIONS, document

    say_json(document(OPERATIONS))
    return 0


def _password() -> str:
    """Typed twice without an echo at a terminal, else the first line of stdin."""
    if sys.stdin.isatty():
        return str(typer.prompt("password", hide_input=True, confirmation_prompt=True))
    return sys.stdin.readline().rstrip("\r\n")
