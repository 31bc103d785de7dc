"""`notify test|events|list`: whether messages to people arrive, which there are, and which still wait."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import typer

from gateway.cli.homes import HomeOption, made_home, named_home, settings_of
from gateway.cli.output import JsonOption, say, say_json, table
from gateway.errors import EnvironmentFault, UsageError

app = typer.Typer(help="Messages to people: by webhook and by mail.", no_args_is_help=True)
SET_UP = (
    "set DEID_NOTIFY_WEBHOOK_URL and DEID_NOTIFY_WEBHOOK_KEY, or DEID_NOTIFY_MAIL_URL with DEID_NOTIFY_MAIL_FROM and "
    "DEID_NOTIFY_MAIL_TO"
)


@app.command(name="test")
def send_test(home: HomeOption = None, json: JsonOption = False) -> int:
    """Send a test through every channel that is set up, now, and say what came back. Exit 3 when one failed."""
    from gateway.app.message.channels import Message, NotSent
    from gateway.app.message.notices import TEST, Notice, identity
    from gateway.app.message.setup import channels_of

    channels = channels_of(settings_of(named_home(home)))
    if not channels:
        raise UsageError(f"no channel is set up: {SET_UP}")
    now = time.time()
    notice = Notice(identity(TEST, now), TEST, now)
    rows, failed = [], []
    for channel in channels:
        try:
            said = channel.send(Message(notice.id, now, (notice,)))
        except NotSent as error:
            said = error.says
            failed.append(channel.name)
        rows.append((channel.name, "failed" if channel.name in failed else "sent", said))
    if json:
        say_json([{"channel": name, "result": result, "said": said} for name, result, said in rows])
    else:
        table("Test message", ["channel", "result", "the other side"], rows)
    if failed:
        raise EnvironmentFault(f"no message left by {' and '.join(failed)}; mend what is named, then test again")
    return 0


@app.command()
def events(json: JsonOption = False) -> int:
    """What there is to be told of, for DEID_NOTIFY_EVENTS."""
    from gateway.app.message.notices import EVENTS, URGENT

    rows = [(name, "at once" if name in URGENT else "collected", says) for name, says in EVENTS.items()]
    if json:
        say_json([{"event": name, "told": when, "says": says} for name, when, says in rows])
    else:
        table("Events", ["event", "told", "when"], rows)
    return 0


@app.command(name="list")
def list_waiting(home: HomeOption = None, json: JsonOption = False) -> int:
    """Messages that no server took yet, and what is still being collected."""
    from gateway.app.message.notices import subject_of
    from gateway.app.message.queue import Outbox

    outbox = Outbox(made_home(home).root)
    due, waiting = outbox.due(), outbox.waiting()
    rows = [(_moment(one.message.at), one.channel, subject_of(one.message.notices)) for one in due]
    rows += [(_moment(one.at), "being collected", subject_of([one])) for one in waiting]
    if json:
        say_json([{"at": at, "channel": channel, "subject": subject} for at, channel, subject in rows])
    elif rows:
        table("Waiting", ["since", "channel", "what"], rows)
    else:
        say("nothing waits to be told")
    return 0


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M")
