"""The ten checks of one instance, as the challenge judges them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.midib_score import textrule
from bench.midib_score.boxes import ink_shows
from bench.midib_score.key import Check, Instance, digest_of
from bench.midib_score.paths import indexed, read

# What each check answers when the file is not there, and when the file lacks the attribute.
WITHOUT_FILE = frozenset({"text_removed", "date_shifted", "uid_changed", "pixels_hidden"})
WITHOUT_TAG = WITHOUT_FILE | {"uid_consistent", "patid_consistent"}


@dataclass(frozen=True, slots=True)
class Output:
    """A cleaned object as it is judged. `shown` are the boxes (as the key's JSON) whose text can still be seen."""

    table: Mapping[str, str]
    digest: str
    shown: frozenset[str]

    @classmethod
    def of(cls, instance: Instance, path: Path) -> Output | None:
        """The cleaned object of an instance; None when there is no such file."""
        if not path.exists():
            return None
        image = read(path)
        pixels = bytes(image.get("PixelData") or b"")
        boxes = [check.action_text for check in instance.checks if check.action == "pixels_hidden"]
        shown = frozenset(box for box in boxes if ink_shows(json.loads(box), image, pixels))
        return cls(indexed(image), digest_of(pixels), shown)


@dataclass(frozen=True, slots=True)
class Mappings:
    """Original to new: UIDs of every kind, and Patient IDs. The first one met wins for an old id."""

    uids: Mapping[str, str] = field(default_factory=dict)
    patients: Mapping[str, str] = field(default_factory=dict)


def mappings(outputs: Iterable[tuple[Instance, Output | None]]) -> Mappings:
    """Read off the outputs themselves: what an original id became where it was first met."""
    uids: dict[str, str] = {}
    patients: dict[str, str] = {}
    for instance, output in outputs:
        if output is None:
            continue
        for check in instance.checks:
            if check.action in ("uid_consistent", "patid_consistent") and check.tag_ds in output.table:
                known = uids if check.action == "uid_consistent" else patients
                known.setdefault(check.value, output.table[check.tag_ds])
    return Mappings(uids, patients)


@dataclass(frozen=True, slots=True)
class Result:
    """One judged check. `share` is the part that fulfils a text check; `got` is what the output holds."""

    check: Check
    passed: bool
    share: float
    got: str


def judge(instance: Instance, output: Output | None, known: Mappings) -> list[Result]:
    """Every check of one instance."""
    return [_judged(check, output, known) for check in instance.checks]


def _judged(check: Check, output: Output | None, known: Mappings) -> Result:
    action = check.action
    if output is None:
        passed, got = action in WITHOUT_FILE, "no file"
    elif action == "pixels_retained":
        passed, got = output.digest == check.action_text, output.digest
    elif action == "pixels_hidden":
        passed, got = check.action_text not in output.shown, ""
    elif check.tag_ds not in output.table:
        passed, got = action in WITHOUT_TAG, "absent"
    else:
        got = output.table[check.tag_ds]
        share = _share(check, got, known)
        return Result(check, share == 1, share, got)
    return Result(check, passed, float(passed), got)


def _share(check: Check, got: str, known: Mappings) -> float:
    action, original = check.action, check.value
    if action == "tag_retained":
        return 1.0
    if action == "text_notnull":
        return float(bool(got))
    if action == "text_retained":
        return textrule.kept_share(check.action_text, got) if got else 0.0
    if action == "text_removed":
        return 1 - textrule.kept_share(check.action_text, got) if got else 1.0
    if action in ("date_shifted", "uid_changed"):
        return float(original.replace("\\", "") not in got.replace("\\", ""))
    mapping = known.patients if action == "patid_consistent" else known.uids
    return float(original in mapping and got == mapping[original])
