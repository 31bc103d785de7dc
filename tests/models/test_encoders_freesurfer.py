"""FreeSurfer's fifteen measures and AnatCL's three descriptors, from the tables of recon-all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from encoder_tensors import shipped
from freesurfer_tables import REGIONS, write_subject

from models.audit_encoders import ENCODERS
from models.audit_encoders.freesurfer import MEASURES, descriptors, fifteen, measures_of
from models.audit_encoders.freesurfer_stats import StatsError, read_stats
from models.audit_encoders.inputs import NotPrepared

EXPECTED = {
    "intracranial": 1500000,
    "cortex": 450000,
    "cerebral white matter": 430000,
    "subcortical grey matter": 55000,
    "lateral ventricles": 2 * 8000.5 + 2 * 300.25,
    "third ventricle": 1100,
    "brain stem": 21000,
    "thalamus": 14000,
    "hippocampus": 8100,
    "amygdala": 3100,
    "caudate": 7000,
    "putamen": 10000,
    "pallidum": 3800,
    "mean thickness": (2.4 * 80000 + 2.6 * 82000) / 162000,  # by area
    "white surface area": 162000,
}


@pytest.mark.parametrize("version", [4, 5, 7])
def test_fifteen_measures_whatever_the_version_calls_them(tmp_path: Path, version: int) -> None:
    found = fifteen(read_stats(write_subject(tmp_path / "s", version=version)))
    assert len(MEASURES) == 15
    np.testing.assert_allclose(found, [EXPECTED[name] for name in MEASURES], rtol=1e-6)


def test_head_size_counts_once(tmp_path: Path) -> None:
    small, large = (
        fifteen(read_stats(write_subject(tmp_path / str(scale), scale=scale)), by_head=True) for scale in (1.0, 1.5)
    )
    assert large[0] == pytest.approx(1.5 * small[0])
    np.testing.assert_allclose(small[1:13], large[1:13], rtol=1e-6)  # volumes grew with the head
    assert large[14] == pytest.approx(small[14] / 1.5 ** (2 / 3), rel=1e-6)
    assert small[8] == pytest.approx(8100 / 1500000)


def test_three_descriptors_of_68_regions(tmp_path: Path) -> None:
    stats = read_stats(write_subject(tmp_path / "s"))
    found = descriptors(stats)
    assert found.shape == (204,)
    order = np.array([REGIONS.index(name) for name in sorted(REGIONS)])
    np.testing.assert_allclose(found[:34], 1 + order / 1000, rtol=1e-6)  # left thickness
    np.testing.assert_allclose(found[34:68], 1.1 + order / 1000, rtol=1e-6)  # right
    np.testing.assert_allclose(found[68:102], 2000 + order)  # volume
    np.testing.assert_allclose(found[136:170], 1000 + order)  # area
    np.testing.assert_array_equal(descriptors(stats, "volume"), found[68:136])


@pytest.mark.parametrize(
    ("skip", "says"),
    [
        ("3rd-Ventricle", "aseg.stats has no 3rd-Ventricle"),
        ("eTIV", "EstimatedTotalIntraCranialVol or IntraCranialVol"),
        ("insula", "not the 34 regions"),
        ("MeanThickness", "not the 34 regions"),
        ("ColHeaders", "does not fit its column names"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, skip: str, says: str) -> None:
    with pytest.raises(StatsError, match=says):
        measures_of(write_subject(tmp_path / "s", skip=skip))


def test_tables_that_are_not_there_or_hold_no_numbers(tmp_path: Path) -> None:
    with pytest.raises(StatsError, match="recon-all"):
        measures_of(tmp_path)
    folder = write_subject(tmp_path / "s")
    table = folder / "stats" / "aseg.stats"
    whole = table.read_text()
    for value, says in (("nan", "no measure"), ("-5", "no measure"), ("n/a", "no number")):
        table.write_text(whole.replace("21000.0", value))
        with pytest.raises(StatsError, match=says):
            measures_of(folder)


def test_the_cards_take_measures_and_no_pixels() -> None:
    for name, length in (("freesurfer-15", 15), ("anatcl-descriptors", 204), ("anatcl-area", 68)):
        encoder = ENCODERS["freesurfer"](shipped(name), {})
        values = np.arange(length, dtype=np.float32)
        np.testing.assert_array_equal(encoder(values), values)
        with pytest.raises(NotPrepared, match="recon-all"):
            encoder(np.zeros((64, 64), np.float32))
