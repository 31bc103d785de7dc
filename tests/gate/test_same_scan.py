"""The own original of a scan among impostors: an untouched image is found, one without a trace is not."""

from __future__ import annotations

import hashlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pydicom
import pytest
from releasing import film, radiograph, write_card

from gateway.errors import Hold
from gateway.gate.attackers import Folders, ImpostorDistances
from gateway.gate.reading import Pair
from gateway.gate.same_scan import SameScan
from gateway.gate.views import axial, embed_study, scaled
from gateway.study import Outcome, Verdict
from gateway.volumes import Plane, only_stack
from models.audit_encoders import BASELINES
from models.cards import SHIPPED

POLICY: Any = SimpleNamespace(pixels=(), release=None, attempts=1, gate=SimpleNamespace(not_assessed=()))
NAME = "near"


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return write_card(tmp_path_factory.mktemp("models"))


def pair(folder: Path, original: pydicom.FileDataset, candidate: pydicom.FileDataset, name: str = "00001") -> Pair:
    paths = folder / f"{name}-o.dcm", folder / f"{name}-c.dcm"
    for ds, path in zip((original, candidate), paths, strict=True):
        ds.save_as(path, enforce_file_format=True)
    return Pair(name, *paths)


def noise(seed: int) -> bytes:
    return np.random.default_rng(seed).integers(0, 4096, (48, 48), dtype=np.uint16).tobytes()


def judged(cards: Folders, *pairs: Pair, **parameters: Any) -> Verdict:
    return SameScan(NAME, **parameters).judge_by_cards(pairs, POLICY, cards)


def test_an_untouched_image_is_found(tmp_path: Path, cards: Folders) -> None:
    verdict = judged(cards, pair(tmp_path, film(1), film(1)))
    assert (verdict.outcome, verdict.reason) == (Outcome.HOLD, "same_scan")
    (finding,) = verdict.findings
    assert finding.rule == f"p {1 / 241:.4f} of its own original by near"
    assert verdict.assessed == {"images": 1, "impostors": 240}


def test_an_image_without_a_trace_passes_about_as_often_as_it_should(tmp_path: Path, cards: Folders) -> None:
    held = 0
    for person in range(30):
        folder = tmp_path / str(person)
        folder.mkdir()
        held += judged(cards, pair(folder, film(person), film(500 + person)), hold_below_p=0.05).outcome is Outcome.HOLD
    assert held <= 5  # of 30 at 0.05: more has a chance of 0.003


def test_the_worst_image_of_a_study_decides(tmp_path: Path, cards: Folders) -> None:
    clean = pair(tmp_path, film(2), film(2, PixelData=noise(1)), "00001")
    assert judged(cards, clean).outcome is Outcome.PASS
    verdict = judged(cards, clean, pair(tmp_path, film(3), film(3), "00002"))
    assert [finding.instance for finding in verdict.findings] == ["00002"]


def test_it_says_what_it_judges_and_raises_for_what_cannot_be_read(tmp_path: Path, cards: Folders) -> None:
    assert SameScan.judges == {"image_identity"}
    with pytest.raises(Hold, match="gate_failed"):
        judged(cards, Pair("00001", tmp_path / "none", tmp_path / "none"))


def test_no_evidence_holds(tmp_path: Path, cards: Folders) -> None:
    of_ct = judged(cards, pair(tmp_path, film(1, modality="XC"), film(1, modality="XC", PixelData=noise(2))))
    assert (of_ct.outcome, of_ct.reason) == (Outcome.HOLD, "no_identity_evidence")
    one = pair(tmp_path, film(1), film(1, PixelData=noise(2)), "00002")
    for check in (SameScan("grey-similarity"), SameScan("nobody")):  # no impostors; no card
        verdict = check.judge_by_cards([one], POLICY, cards)
        assert (verdict.outcome, verdict.reason) == (Outcome.HOLD, "no_identity_evidence")


def test_what_no_card_knows_may_be_accepted_by_a_person(tmp_path: Path, cards: Folders) -> None:
    of_photograph = pair(tmp_path, film(1, modality="XC"), film(1, modality="XC"), "00002")
    clean = pair(tmp_path, film(2), film(2, PixelData=noise(1)), "00001")
    entry = SimpleNamespace(aspects=("image_identity",), modality=("XC",))
    policy: Any = SimpleNamespace(pixels=(), release=None, attempts=1, gate=SimpleNamespace(not_assessed=(entry,)))
    assert SameScan(NAME).judge_by_cards([clean, of_photograph], POLICY, cards).reason == "no_identity_evidence"
    verdict = SameScan(NAME).judge_by_cards([clean, of_photograph], policy, cards)
    assert (verdict.outcome, verdict.assessed["images"]) == (Outcome.PASS, 1)


def test_frames_that_the_original_does_not_have_are_no_evidence(tmp_path: Path, cards: Folders) -> None:
    more = film(1, NumberOfFrames="2", PixelData=noise(1) + radiograph(1).tobytes())
    assert judged(cards, pair(tmp_path, film(1), more)).reason == "no_identity_evidence"


def test_pictures_beside_the_pixel_data_are_no_evidence(tmp_path: Path, cards: Folders) -> None:
    icon = pydicom.Dataset()
    icon.Rows, icon.Columns, icon.SamplesPerPixel, icon.PhotometricInterpretation = 8, 8, 1, "MONOCHROME2"
    icon.BitsAllocated, icon.BitsStored, icon.HighBit, icon.PixelRepresentation = 8, 8, 7, 0
    icon.PixelData = bytes(range(64))
    verdict = judged(cards, pair(tmp_path, film(1), film(1, PixelData=noise(3), IconImageSequence=[icon])))
    assert verdict.reason == "no_identity_evidence"


def test_polarity_and_two_bytes_of_scale_hide_nothing(tmp_path: Path, cards: Folders) -> None:
    """MONOCHROME1 turned, values halved: the same picture for whoever looks at it."""
    turned = film(4)
    pixels = np.frombuffer(turned.PixelData, np.uint16)
    turned.PhotometricInterpretation = "MONOCHROME1"
    turned.PixelData = ((4095 - pixels) // 2).astype(np.uint16).tobytes()
    assert judged(cards, pair(tmp_path, film(4), turned)).reason == "same_scan"


def test_cine_frames_are_looked_at_in_three_places(tmp_path: Path, cards: Folders) -> None:
    frames = np.stack([radiograph(n) for n in range(9)])
    whole = film(1, NumberOfFrames="9", PixelData=frames.tobytes())
    changed = film(1, NumberOfFrames="9", PixelData=b"".join(map(noise, range(9))))
    (embedded,) = embed_study([pair(tmp_path, whole, changed)], [NAME], cards)
    assert embedded.originals.shape == (3, 1024)
    for row, frame in zip(embedded.originals, (2, 4, 6), strict=True):
        assert np.array_equal(row, BASELINES["raw"](scaled(frames[frame])))


def test_p_is_conformal_over_people() -> None:
    found = ImpostorDistances("cosine", np.arange(1, 401, dtype=np.float32).reshape(200, 2), "by hand")
    assert found.p_value(0.5) == pytest.approx(1 / 201)
    assert found.p_value(3.0) == pytest.approx((1 + 1.5) / 201)
    assert found.p_value(1e9) == 1


@pytest.mark.parametrize("people", [199, 200])
def test_impostors_are_at_least_two_hundred_people(tmp_path: Path, people: int) -> None:
    folders = write_card(tmp_path / "models", people=people)
    faults = [says for says, _ in SameScan(NAME).misfits(POLICY, folders)]
    assert bool(faults) == (people < 200)


def test_a_changed_file_of_impostors_is_no_evidence(tmp_path: Path) -> None:
    folders = write_card(tmp_path / "models")
    (tmp_path / "models" / "near.npz").write_bytes(b"another")
    assert judged(folders, pair(tmp_path, film(1), film(2))).reason == "no_identity_evidence"
    assert "another file" in next(iter(SameScan(NAME).misfits(POLICY, folders)))[0]


def test_a_limit_that_can_hold_nothing_is_refused(cards: Folders) -> None:
    (fault,) = SameScan(NAME, hold_below_p=0.004).misfits(POLICY, cards)
    assert "can never hold" in fault[0]
    with pytest.raises(ValueError, match="hold_below_p"):
        SameScan(NAME, hold_below_p=0.5)


def test_an_attacker_and_a_stage_that_share_people_are_refused(tmp_path: Path) -> None:
    from models.cards import people_lines

    folder = tmp_path / "models"
    lines = people_lines("nih", ["1", "2"])
    folder.mkdir()
    (folder / "p.txt").write_bytes(lines)
    part = {"cohort": "nih", "people": 2, "people_file": "p.txt", "synthetic": False}
    trained = [{**part, "people_sha256": hashlib.sha256(lines).hexdigest()}]
    folders = write_card(folder, trained_on=trained)
    (folder / "maker.yaml").write_text(
        (folder / "near.yaml").read_text().replace("name: near", "name: maker").replace("attacker", "anonymiser")
    )
    policy: Any = SimpleNamespace(
        pixels=(("stage", SimpleNamespace(card="maker")),), release=None, attempts=1, gate=POLICY.gate
    )
    (fault,) = SameScan(NAME).misfits(policy, folders)
    assert "2 of the same people" in fault[0]
    several: Any = SimpleNamespace(**{**vars(policy), "pixels": (("stage", SimpleNamespace(cards=("near", "maker"))),)})
    assert "2 of the same people" in next(iter(SameScan(NAME).misfits(several, folders)))[0]
    one = pair(tmp_path, film(1), film(2))
    assert SameScan(NAME).judge_by_cards([one], policy, folders).reason == "no_identity_evidence"


@pytest.mark.parametrize("seen_from", ["axial", "sagittal", "coronal"])
def test_a_volume_is_turned_to_axial(seen_from: str) -> None:
    """Values say where a voxel lies: slices must go up, rows back, columns to the left (LPS), whatever was scanned."""
    row, column, through = {
        "axial": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
        "sagittal": ((0, 1, 0), (0, 0, -1), (1, 0, 0)),
        "coronal": ((-1, 0, 0), (0, 0, -1), (0, 1, 0)),
    }[seen_from]
    planes = [
        Plane(
            instance=number,
            frame=0,
            position=tuple(np.multiply(through, 3.0 * number).tolist()),
            along_row=tuple(map(float, row)),
            along_column=tuple(map(float, column)),
            row_spacing_mm=1.0,
            column_spacing_mm=2.0,
            thickness_mm=3.0,
            rows=4,
            columns=5,
            slope=1.0,
            intercept=0.0,
            series="1",
            frame_of_reference="1",
            order=(float(number),),
        )
        for number in range(6)
    ]
    stack = only_stack(planes, ["x"] * 6)
    for axis, world in enumerate((2, 1, 0)):

        def stored(plane: Plane, world: int = world) -> np.ndarray:
            rows, columns = np.mgrid[:4, :5]
            places = (
                np.array(plane.position)
                + rows[..., None] * np.multiply(column, 1.0)
                + columns[..., None] * np.multiply(row, 2.0)
            )
            return places[..., world]

        array, spacing = axial(stack, stored)  # type: ignore[arg-type]
        assert (np.diff(array, axis=axis) > 0).all()
        assert sorted(spacing) == [1.0, 2.0, 3.0]
        assert array.size == 4 * 5 * 6


def test_baselines_ship_with_their_cards() -> None:
    for name, dimensions in (("grey-similarity", 1024), ("gradients", 1764)):
        from gateway.embed import open_embedder

        assert open_embedder(name, [SHIPPED]).embed(np.eye(64, dtype=np.float32)).shape == (dimensions,)
