"""The sets of stages that `bench.pipeline` compares: a policy for each, and the AE title under which it is called."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from gateway.settings import SHIPPED_POLICIES

HEADS, FILMS = "heads", "films"  # the studies that a set is for
MODALITIES = {HEADS: "MR", FILMS: "CR"}
TEXT, FACE, IDENTITY = "burned_in_text", "recognizable_features", "image_identity"


@dataclass(frozen=True)
class StageSet:
    """`checks` are those of the gate beside the search for identifiers, which is never left out; `accepted` is what
    nobody assesses then. `called`: the AE title that leads here.
    """

    called: str
    studies: str
    pixels: list[dict[str, object]] = field(default_factory=list)
    checks: dict[str, object] = field(default_factory=dict)
    accepted: tuple[str, ...] = (TEXT, FACE, IDENTITY)


_TEXT: dict[str, object] = {"burned_in_text": {}}
_FACE: dict[str, object] = {"deface": {}}
_NO_TEXT: dict[str, object] = {"residual_text": {"max": 0}}
_ANEW: list[dict[str, object]] = [  # as in policies/starters/cxr-adjustable.yaml
    {"hidden_pixels": {}},
    {"resynthesize": {"card": "chest-resynth-small-1", "levels": [0.4], "uncovered": "hold", "followups": "hold"}},
]
STAGES: dict[str, StageSet] = {
    "header": StageSet("DEID", HEADS),
    "header+text": StageSet("DEID-TEXT", HEADS, [_TEXT]),
    "header+text+gate": StageSet("DEID-TEXT-GATE", HEADS, [_TEXT], _NO_TEXT, (FACE, IDENTITY)),
    "header+text+deface": StageSet("DEID-FACE", HEADS, [_TEXT, _FACE]),
    "header+text+deface+gate": StageSet(
        "DEID-FACE-GATE", HEADS, [_TEXT, _FACE], {**_NO_TEXT, "residual_face": {}}, (IDENTITY,)
    ),
    "film header": StageSet("DEID-FILM", FILMS),
    "film header+resynthesize": StageSet("DEID-ANEW", FILMS, _ANEW),
    "film header+resynthesize+gate": StageSet("DEID-ANEW-GATE", FILMS, _ANEW, _NO_TEXT, (FACE, IDENTITY)),
}


def write_policies(folder: Path, stages: str | Sequence[str], archive_url: str) -> Path:
    """A folder of policies that sends what is called by the titles of these sets through them, to the archive."""
    shutil.copytree(SHIPPED_POLICIES, folder, ignore=shutil.ignore_patterns("__pycache__", "*.yaml"))
    routes = []
    for number, name in enumerate([stages] if isinstance(stages, str) else stages):
        chosen, policy = STAGES[name], f"bench-{number}"
        target = {"project": "bench", "policy": policy, "destination": "archive"}
        routes.append({"name": policy, "when": {"called_ae": chosen.called}, "targets": [target]})
        _write(folder, policy, _policy(policy, chosen))
    _write(folder, "routes", {"routes": routes})
    _write(folder, "destinations", {"archive": archive_url})
    return folder


def _policy(name: str, stages: StageSet) -> dict[str, object]:
    accepted = {
        "aspects": list(stages.accepted),
        "modality": [MODALITIES[stages.studies]],
        "reason": "a benchmark",
        "approver": "bench",
    }
    return {
        "name": name,
        "extends": ["ps3.15-basic@2026d"],
        "header": {
            "options": ["retain-longitudinal-modified-dates"],
            "dates": {"shift_days": [-365, 365], "scope": "patient"},
            "patient_id": {"pseudonym": "keyed", "prefix": "BENCH-"},
        },
        "pixels": stages.pixels,
        "gate": {"study": {"residual_identifiers": {"max": 0}, **stages.checks}, "not_assessed": [accepted]},
        "retain": {"originals_days": 30, "held_days": 90, "references_days": 365},
    }


def _write(folder: Path, name: str, content: object) -> None:
    (folder / f"{name}.yaml").write_text(yaml.dump(content, Dumper=_Plain, sort_keys=False))


class _Plain(yaml.SafeDumper):
    """Stages that several policies share are written out in each: the loader takes no aliases."""

    def ignore_aliases(self, _data: object) -> bool:
        return True
