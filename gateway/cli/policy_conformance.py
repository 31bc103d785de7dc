"""`policy conformance`: the DICOM conformance statement of a policy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.homes import HomeOption, named_home, policy_at
from gateway.cli.output import say
from gateway.cli.policy_preview import PolicyArgument


def conformance(
    policy: PolicyArgument,
    html: Annotated[
        Path | None,
        typer.Option("--html", readable=False, help="Write a page for a browser instead of Markdown on the terminal."),
    ] = None,
    home: HomeOption = None,
) -> int:
    """Write the DICOM conformance statement that PS3.15 asks of a de-identifier, from the policy and this version.

    Markdown on the terminal: redirect it into a file. It describes objects de-identified under this policy's digest.
    """
    from gateway.app.policy.conformance import conformance_statement, statement_page
    from gateway.app.policy.page import require_page, write_page
    from gateway.policy.conformance import markdown

    chosen = policy_at(policy, named_home(home))
    if html is not None:
        require_page(html)
    statement = conformance_statement(chosen)
    if html is None:
        typer.echo(markdown(statement), nl=False)
        return 0
    write_page(html, statement_page(statement))
    say(f"the conformance statement of {chosen.name} is in {html}")
    return 0
