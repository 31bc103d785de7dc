"""The command line. Thin: each command wires what `app` offers, prints, and ends with a documented exit code."""

from __future__ import annotations

from collections.abc import Sequence

import typer
from click.exceptions import Abort, ClickException, Exit

from gateway.cli import demo, gateway_commands, held, ledger, policy, scrub
from gateway.cli.output import complain
from gateway.errors import GatewayError

INTERRUPTED = 130

app = typer.Typer(
    name="deid-gateway",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # a pretty traceback prints local variables, and those hold values
    help="De-identification gateway between a PACS and a research archive. "
    "Exit codes: 0 done, 1 something was held, 2 usage or policy error, 3 environment (port, disk, key), "
    "130 interrupted.",
)
for command in (
    gateway_commands.init,
    gateway_commands.serve,
    demo.demo,
    gateway_commands.status,
    gateway_commands.settings,
    scrub.scrub,
):
    app.command()(command)
app.add_typer(policy.app, name="policy")
app.add_typer(held.app, name="held")
app.add_typer(ledger.app, name="ledger")
app.command(name="cohort-hash")(gateway_commands.cohort_hash)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. Our errors become one message on stderr, never a traceback."""
    try:
        result = app(list(arguments), standalone_mode=False)
    except Exit as leave:
        return leave.exit_code
    except Abort:
        complain("interrupted")
        return INTERRUPTED
    except KeyboardInterrupt:
        complain("interrupted; run the same command again to go on")
        return INTERRUPTED
    except ClickException as error:
        error.show()
        return 2
    except GatewayError as error:
        complain(str(error))
        return error.exit_code
    return result if isinstance(result, int) else 0
