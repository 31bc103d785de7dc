"""`embeddings release`: embeddings as a data set, sanitised, attacked, and written only when no attack succeeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gateway.cli.audit import Metadata, Replicates, Synthetic, progress
from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import say

app = typer.Typer(help="Embeddings as a release of their own.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keeps `release` a subcommand while it is the only one."""


@app.command()
def release(
    embeddings: Annotated[
        Path, typer.Argument(metavar="EMBEDDINGS.npz", help="`scan`, and an array for each encoder.")
    ],
    metadata: Metadata,
    auxiliary: Annotated[
        Path, typer.Option("--auxiliary", metavar="AUX.npz", help="Other people; the method is fitted on them.")
    ],
    policy: Annotated[Path, typer.Option("--policy", metavar="YAML", help="Erasure, levels, limits.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Where the release and its report go.")],
    home: HomeOption = None,
    synthetic: Synthetic = False,
    replicates: Replicates = 1000,
) -> int:
    """Sanitise, attack, and write the first level that passes every limit. Exit 1 when none does: nothing is written
    then but the report."""
    from gateway.app.embeddings import Sources, release_embeddings
    from gateway.audit import Options

    place = made_home(home)
    with progress() as tick:
        ended = release_embeddings(
            place,
            settings_of(place),
            Sources(embeddings, auxiliary, metadata),
            policy,
            out,
            tick,
            Options(replicates=replicates, permutations=replicates - 1, synthetic=synthetic),
        )
    for reason in ended.reasons:
        say(f"held: {reason}", "bold red")
    if not ended.reasons:
        say(f"{ended.people} people released at level {ended.level}: {out}")
    say(
        f"open {ended.page}"
        if ended.page
        else "decided before; the same input under the same policy is not judged again"
    )
    return 1 if ended.reasons else 0
