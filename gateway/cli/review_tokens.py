"""`review token new|list|revoke`: secrets by which programs use the review page's API in the name of an account."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import JsonOption, say, say_json, table

app = typer.Typer(help="Tokens of the review page's API.", no_args_is_help=True)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="Small letters, digits, dots and dashes.")]


@app.command()
def new(
    context: typer.Context,
    name: NameArgument,
    account: Annotated[str, typer.Option("--account", help="The account that it stands for; its role is the most.")],
    scope: Annotated[list[str], typer.Option("--scope", help="What it is for, such as studies:read; several times.")],
    days: Annotated[int, typer.Option("--days", help="How long it counts, 1 to 366.")] = 90,
    home: HomeOption = None,
) -> int:
    """Make a token and print its secret, once: nothing keeps it. It stands for an account, within scopes, for a time.

    Scopes: studies:read, originals:read, decisions:write, releases:read, releases:write, policies:read, audit:read.
    """
    from gateway.app.review.accounts import new_token

    place = made_home(home or context.obj)
    secret, token = new_token(place, settings_of(place), name, account, scope, days, by=f"uid {os.getuid()}")
    typer.echo(f"{name} stands for {account} until {_day(token.until)}; its secret is shown only now:", err=True)
    say(secret)
    return 0


@app.command(name="list")
def list_tokens(context: typer.Context, home: HomeOption = None, json: JsonOption = False) -> int:
    """Names, accounts, scopes and ends; never a secret."""
    from gateway.app.review.page import accounts_of, tokens_of

    place = made_home(home or context.obj)
    accounts = accounts_of(place).all()
    columns = ("name", "account", "scopes", "until", "state")
    rows = [
        (
            one.name,
            one.account,
            " ".join(sorted(one.scopes)),
            _day(one.until),
            _state(one.until, one.account in accounts),
        )
        for one in tokens_of(place).all().values()
    ]
    if json:
        say_json([dict(zip(columns, row, strict=True)) for row in rows])
    elif rows:
        table("Tokens", list(columns), rows)
    else:
        say("there is no token; deid-gateway review token new NAME --account ACCOUNT --scope studies:read")
    return 0


@app.command()
def revoke(context: typer.Context, name: NameArgument, home: HomeOption = None) -> int:
    """Take a token back. It is out with its next call."""
    from gateway.app.review.accounts import revoke_token

    place = made_home(home or context.obj)
    revoke_token(place, settings_of(place), name, by=f"uid {os.getuid()}")
    say(f"the token {name} counts no longer")
    return 0


def _state(until: float, has_account: bool) -> str:
    return "over" if until <= time.time() else "counts" if has_account else "without account"


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
