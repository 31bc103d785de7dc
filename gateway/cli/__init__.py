"""The command line. Thin: each command wires what `app` offers, prints, and ends with a documented exit code.

Command modules import `app` inside their functions: `--help` and a typing error should not wait for an engine to load.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from gateway.cli import (
    audit,
    backload,
    backup,
    calibrate,
    database,
    demo,
    destination,
    embeddings,
    gateway_commands,
    held,
    keys,
    learn,
    ledger,
    lookup,
    models,
    notify,
    policy,
    recall,
    release,
    retention,
    review,
    route,
    scrub,
    subject,
    text,
    train,
    vault,
)
from gateway.cli.endings import ENVIRONMENT, INTERRUPTED, USAGE, ending
from gateway.cli.output import complain, say

PROGRAM = "deid-gateway"

app = typer.Typer(
    name=PROGRAM,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a pretty traceback prints local variables, and those hold values
    help="De-identification gateway between a PACS and a research archive.\n\n"
    "Begin with `init HOME`, then `serve`; or `scrub` files and folders; or look at the `demo`.\n\n"
    "Exit codes: 0 done, 1 something was held, 2 usage or policy error, 3 environment (port, disk, key), "
    "130 interrupted.",
)


def _version(asked: bool) -> None:
    if asked:
        say(f"{PROGRAM} {version(PROGRAM)}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Options of the program itself. The help text is the app's."""


for command in (
    gateway_commands.init,
    gateway_commands.serve,
    demo.demo,
    scrub.scrub,
    gateway_commands.status,
    gateway_commands.settings,
    backup.backup,
    backup.restore,
):
    app.command()(command)
app.add_typer(policy.app, name="policy")
app.add_typer(held.app, name="held")
policy.app.command()(lookup.lookup)
app.add_typer(release.app, name="release")
release.app.command(name="recall")(recall.recall_release)
app.add_typer(recall.app, name="recall")
app.add_typer(subject.app, name="subject")
app.add_typer(retention.app, name="retention")
app.add_typer(route.app, name="route")
app.add_typer(destination.app, name="destination")
app.add_typer(backload.app, name="backload")
app.add_typer(keys.app, name="keys")
app.add_typer(review.app, name="review")
app.add_typer(vault.app, name="vault")
app.add_typer(ledger.app, name="ledger")
app.add_typer(database.app, name="database")
app.add_typer(notify.app, name="notify")
app.add_typer(text.app, name="text")
app.add_typer(models.app, name="models")
app.add_typer(learn.app, name="learn")
app.command()(train.train)
app.command()(calibrate.calibrate)
app.add_typer(audit.app, name="audit")
app.add_typer(embeddings.app, name="embeddings")
app.command(name="cohort-hash")(gateway_commands.cohort_hash)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Every error becomes one message on stderr, never a traceback."""
    try:
        result = app(list(arguments), prog_name=PROGRAM, standalone_mode=False)
    except typer.TyperException as error:
        _show_usage(error)
        return USAGE
    except (typer.Abort, KeyboardInterrupt):
        result = INTERRUPTED
    except SystemExit:  # how typer ends when whoever read our output has gone
        return ENVIRONMENT
    except Exception as error:  # noqa: BLE001 - top of the process: a traceback would quote values
        code, words = ending(error)
        complain(words)
        return code
    if result == INTERRUPTED:
        goes_on = "; what was decided stays decided, and the same command goes on from there"
        complain("interrupted" + (goes_on if "scrub" in arguments[:1] else ""))
    return result if isinstance(result, int) else 0


def _show_usage(error: typer.TyperException) -> None:
    """What was typed wrong, and where to read on. Nothing more when typer has printed the help already."""
    if not error.message.strip() and type(error).__name__ == "NoArgsIsHelpError":
        return
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else PROGRAM
    complain(f"{error.format_message()}\nsee: {where} --help")
