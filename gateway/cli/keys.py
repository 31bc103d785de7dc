"""`keys list|rotate|verify`: the keys that pseudonyms are made with. No key is ever shown, only its id."""

from __future__ import annotations

import typer

from gateway.cli.homes import HomeOption, made_home, settings_of
from gateway.cli.output import ActorOption, JsonOption, ReasonOption, complain, say, say_json, table

app = typer.Typer(help="The keys that pseudonyms, UIDs and date shifts are made with.", no_args_is_help=True)


@app.command(name="list")
def list_keys(home: HomeOption = None, json: JsonOption = False) -> int:
    """Every key by its id: since when, in force or kept, and how many people it has mapped."""
    from gateway.app.keyring import key_states

    place = made_home(home)
    rows = [
        {
            "key": one.key.id,
            "since": one.key.since,
            "state": "active" if one.key.active else "missing" if one.key.fault else "kept",
            "people": one.people,
        }
        for one in key_states(place, settings_of(place))
    ]
    if json:
        say_json(rows)
        return 0
    shown = [(row["key"], row["since"] or "the master key", row["state"], row["people"]) for row in rows]
    table("Keys", ["key", "since", "state", "people"], shown, keyed=True)
    return 0


@app.command()
def rotate(by: ActorOption, reason: ReasonOption, home: HomeOption = None, json: JsonOption = False) -> int:
    """Make a new key for people who come from now on. Whoever came before keeps key, pseudonym, UIDs and date shift.

    A running gateway uses it from its next study on. Back up HOME/keys and the database afterwards: both are needed.
    """
    from gateway.app.keyring import rotate as put_in_force
    from gateway.cli.held import worded

    by, reason = worded(by, reason)
    place = made_home(home)
    new = put_in_force(place, settings_of(place), actor=by, reason=reason)
    if json:
        say_json({"key": new})
    else:
        say(f"the key {new} is in force for new people; back up {place.keys} and the database")
    return 0


@app.command()
def verify(home: HomeOption = None, json: JsonOption = False) -> int:
    """Look whether every key that somebody was mapped with is there, strong, and closed to others. Exit 3 if not."""
    from gateway.app.keyring import faults

    place = made_home(home)
    found = faults(place, settings_of(place))
    if json:
        say_json({"sound": not found, "faults": found})
    elif not found:
        say("sound: every key is there")
    for fault in found if not json else ():
        complain(fault)
    return 3 if found else 0
