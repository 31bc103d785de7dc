"""A crash before any write or removal of a recall, an issue anew, an opt-out and an erasure: a restart ends where an
undisturbed run ends.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from houses import House, edit, house, to_folder
from persons import with_vault
from test_crash_between_writes import KEY, Crash, Tripwire, World, datasets

from gateway.app.person.subjects import Subjects
from gateway.app.person.wishes import Rights
from gateway.settings import Home
from gateway.vault import Vault

WORDS = {"actor": "dpo", "reason": "a letter of May"}


Turn = Callable[[House], None]


def arrive(made: House) -> None:
    made.receive(*datasets(1, 1))


def recall(made: House) -> None:
    (job,) = made.parts.database.jobs_in()
    made.parts.database.add_intent(kind="recall:study:113039", key=job.study_key, **WORDS)


def reissue(made: House) -> None:
    made.parts.database.add_intent(kind="reissue", key="1", **WORDS)


def _rights(made: House) -> Rights:
    return Rights(made.parts.database, made.parts.ledger, made.parts.keys)


def opt_out(made: House) -> None:
    _rights(made).opt_out(_rights(made).subject("LEAK0001", ""), **WORDS)


def erase(made: House) -> None:
    _rights(made).ask_erasure(_rights(made).subject("LEAK0001", ""), **WORDS)


# What had happened before, undisturbed; and what happens in turn.
SCENARIOS: dict[str, tuple[tuple[Turn, ...], tuple[Turn, ...]]] = {
    "recalled": ((arrive,), (recall,)),
    "issued anew": ((arrive, recall), (reissue,)),
    "opted out, then sent again": ((), (opt_out, arrive)),
    "erased": ((arrive,), (erase,)),
}
# Jobs by issue, files at the receiver, originals, vault records, erasures that are done.
ENDS: dict[str, tuple[Any, ...]] = {
    "recalled": ([(1, "recalled", "")], 2, 1, 1, []),
    "issued anew": ([(1, "recalled", ""), (2, "sent", "")], 3, 1, 2, []),
    "opted out, then sent again": ([], 0, 0, 0, []),
    "erased": ([(1, "sent", "")], 1, 0, 0, [True]),
}


class Place(World):
    """Sends to a folder that takes rejection notes, with a vault. A copy of another one, where that is named."""

    def __init__(self, root: Path, of: Place | None = None) -> None:
        if of is not None:
            shutil.copytree(of.root, root)
            self.root, self.home, self.policies = root, Home(root / "home"), root / "policies"
            return
        super().__init__(root)
        shutil.rmtree(self.policies)
        self.policies = to_folder(self.root / "policies", self.root / "archive", change=_change)

    def live_through(self, turns: Sequence[Turn]) -> None:
        """Every turn; after a crash another process takes over."""
        left, begun = list(turns), False
        while left:
            try:
                with house(self.home, self.policies) as made:
                    Subjects(made.parts).enforce(everything=True)  # as at every start
                    while left:
                        if not begun:
                            left[0](made)
                            begun = True
                        made.settle()
                        left.pop(0)
                        begun = False
            except Crash:
                continue


def _change(folder: Path) -> None:
    with_vault(folder)
    entry = {"url": "folder:../archive", "rejection_notes": True}
    edit(folder, "destinations", lambda body: body.update({"research-archive": entry}))


def picture(world: Place) -> dict[str, Any]:
    """Of what does not hang on the clock: a note's UID does not, its time does."""
    found = world.picture()
    found["sent"] = sorted(found["sent"])
    found["decisions"] = sorted(
        line.partition("'at_time'")[0] for line in found["decisions"] if "subject_" not in line and "vault" not in line
    )
    with house(world.home, world.policies) as made:
        database = made.parts.database
        found["erased"] = [one.done_at is not None for one in database.erasures()]
        found["notes"] = [(row.job_key, row.note, row.instances) for row in database.notes("due", "sent", "failed")]
        found["issues"] = sorted((job.issue, str(job.state), job.reason) for job in database.jobs_in())
        found["records"] = len(list(made.parts.home.vault.rglob("*.rec")))
    return found


@contextmanager
def removals(wire: Tripwire, patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Removing counts as writing."""

    def before(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            if getattr(arguments[0], "suffix", "") in {"", ".dcm", ".rec"}:
                wire.touch()
            return function(*arguments, **more)

        return call

    with patch.context() as patched:
        patched.setattr(shutil, "rmtree", before(shutil.rmtree))
        patched.setattr(Path, "unlink", before(Path.unlink))
        patched.setattr(Vault, "remove", before(Vault.remove))
        yield


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_end_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scenario: str) -> None:
    assert len(KEY) == 64
    before, turns = SCENARIOS[scenario]
    base = Place(tmp_path / "base")
    base.live_through(before)
    calm, world = Tripwire(), Place(tmp_path / "calm", base)
    with calm.strung(monkeypatch), removals(calm, monkeypatch):
        world.live_through(turns)
    expected = picture(world)
    assert expected["due"] == []
    told = (expected["issues"], len(expected["sent"]), expected["spooled"], expected["records"], expected["erased"])
    assert told == ENDS[scenario]
    assert calm.count > 5
    for number in range(calm.count):
        wire, world = Tripwire(at=number), Place(tmp_path / "world", base)
        with wire.strung(monkeypatch), removals(wire, monkeypatch):
            world.live_through(turns)
        found = picture(world)
        assert {name: found[name] for name in expected} == expected, f"write {number} of {calm.count}"
        shutil.rmtree(world.root)
