"""What every pixel stage promises, run over all of STAGES. A new stage adds its parameters here."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pydicom
import pydicom.data
import pytest

from gateway.errors import Drop, Hold, Refuse
from gateway.gate import Pair
from gateway.gate.encoding import judge_encoding
from gateway.header import scrub_file
from gateway.pixels import STAGES, Instance, Scope, Work, run_stage
from gateway.policy import Policy
from gateway.policy.model import GatePolicy, HeaderPolicy
from gateway.pseudonyms import Pseudonyms
from gateway.study import Outcome, Step

TEST_FILES = Path(pydicom.data.__file__).parent / "test_files"
PARAMETERS: dict[str, Mapping[str, Any]] = {
    "burned_in_text": {},
    "deface": {},
    "documents": {},
    "hidden_pixels": {},
    "lesion_preserving": {"card": "lesion-brain-small-1"},
    "resynthesize": {"card": "chest-resynth-small-1", "levels": (0.4,)},
    "transcode": {"to": "explicit-little"},
}
OBJECTS = (
    *("CT_small.dcm", "MR_small_RLE.dcm", "examples_ybr_color.dcm", "examples_palette.dcm", "693_J2KI.dcm"),
    *(
        "SC_rgb_small_odd.dcm",
        "rtplan.dcm",
        "rtdose_1frame.dcm",
        "liver_1frame.dcm",
        "JPEG-lossy.dcm",
        "waveform_ecg.dcm",
    ),
)
HEADER = HeaderPolicy(options=frozenset({"clean-structured-content", "clean-graphics"}))
POLICY = Policy(name="contract", header=HEADER, gate=GatePolicy(study={}))
WORK = Work(POLICY, bytes(range(32)))


def stage(name: str) -> Any:
    return STAGES[name](**PARAMETERS[name])


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def header_clean(folder: Path, name: str) -> Instance:
    """An original and its candidate as a stage gets them."""
    original, candidate = folder / "original.dcm", folder / "candidate.dcm"
    shutil.copy(TEST_FILES / name, original)
    try:
        scrub_file(original, candidate, policy=HEADER, pseudonyms=Pseudonyms(b"k" * 32))
    except (Hold, Drop, Refuse):
        pytest.skip("the header stage does not let this object through")
    return Instance("00001", original, candidate)


def test_every_stage_has_its_parameters_here() -> None:
    assert PARAMETERS.keys() == STAGES.keys()


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_describes_itself_and_is_a_frozen_value(name: str) -> None:
    one = stage(name)
    assert dataclasses.is_dataclass(one)
    assert one == stage(name)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.anything = 1
    assert isinstance(one.SCOPE, Scope)
    assert one.VERSION
    said = one.describe()
    assert said.strip() == said
    assert said.endswith(".")
    assert "\n" not in said
    assert inspect.getdoc(type(one))


@pytest.mark.parametrize("name", STAGES)
@pytest.mark.parametrize("file", OBJECTS)
def test_a_stage_repeats_itself_and_leaves_a_file_that_tells_the_truth(name: str, file: str, tmp_path: Path) -> None:
    ends = []
    for turn in ("first", "second"):
        folder = tmp_path / turn
        folder.mkdir()
        instance = header_clean(folder, file)
        before = sha256(instance.original), sha256(instance.candidate)
        try:
            steps = run_stage(name, stage(name), [instance], WORK, tmp_path / "estimates")
        except Hold as held:
            assert sha256(instance.candidate) == before[1]  # what is held was not half changed
            ends.append(held.reason)
            continue
        assert sha256(instance.original) == before[0]
        assert [type(step) for step in steps] == [Step]
        assert steps[0].stage == name
        if steps[0].dropped:
            ends.append(steps[0].dropped)
            continue
        encoding = judge_encoding([Pair("00001", instance.original, instance.candidate)])
        assert encoding.outcome is Outcome.PASS, encoding.findings
        ends.append(sha256(instance.candidate))
        again = run_stage(name, stage(name), [instance], WORK, tmp_path / "again")  # on its own output: nothing new
        assert [type(step) for step in again] == [Step]
    assert ends[0] == ends[1]


@pytest.mark.parametrize("name", sorted(set(STAGES) - {"transcode"}))
def test_a_stage_leaves_an_object_without_pixels_and_documents_alone(name: str, tmp_path: Path) -> None:
    instance = header_clean(tmp_path, "rtplan.dcm")
    before = sha256(instance.candidate)
    run_stage(name, stage(name), [instance], WORK, tmp_path / "estimates")
    assert sha256(instance.candidate) == before
