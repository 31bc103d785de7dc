"""What is cleared, what is held, what a clearance says, and that nothing else makes one."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pydicom
import pytest
from gate_cases import SEAL, encode, files, identified_ct, plain_scrub, policy, verdict
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence as Items

from gateway.errors import REASONS, Hold
from gateway.gate import ASPECTS, CHECKS, Pair, ResidualIdentifiers, clear_by_review, judge
from gateway.gate.aspects import aspects_of
from gateway.gate.bytescan import scan_bytes
from gateway.policy import GatePolicy, HeaderPolicy, NotAssessedEntry, Policy
from gateway.study import Outcome

BASE = identified_ct()
ORIGINAL, CLEAN = encode(BASE), encode(plain_scrub(BASE))
PIXEL_ASPECTS = {"burned_in_text", "recognizable_features", "image_identity"}
JOB = {"job_key": "job-1", "destination": "research", "seal_key": SEAL}


def leaking() -> bytes:
    ds = plain_scrub(BASE)
    ds.ImageComments = "Zzsynth"
    return encode(ds)


def cut_in_the_header() -> bytes:
    """An original in which a wrong length hides everything from the patient's name on."""
    at = ORIGINAL.index(b"\x10\x00\x10\x00PN")
    return ORIGINAL[: at + 6] + b"\xff\xff" + ORIGINAL[at + 8 :]


def test_a_clearance_names_the_bytes_that_may_leave(tmp_path):
    pair = files(tmp_path, ORIGINAL, CLEAN)
    used = policy()
    clearance = judge([pair], policy=used, **JOB).clearance
    data = pair.candidate.read_bytes()
    ds = pydicom.dcmread(pair.candidate)
    at = 132 + 12 + ds.file_meta.FileMetaInformationGroupLength
    one = clearance.instances[0]
    assert one.sha256_file == hashlib.sha256(data).hexdigest()
    assert one.sha256_dataset == hashlib.sha256(data[at:]).hexdigest()
    assert (one.name, one.size_bytes) == ("0001", len(data))
    assert one.sop_class_uid == ds.SOPClassUID
    assert one.sop_instance_uid == ds.SOPInstanceUID
    assert one.transfer_syntax_uid == ds.file_meta.TransferSyntaxUID
    assert (clearance.job_key, clearance.destination, clearance.issuer) == ("job-1", "research", "gate")
    assert clearance.policy_digest == used.digest
    assert clearance.verdicts == ("encoding=pass", "residual_identifiers=pass")
    assert clearance.is_sealed_by(SEAL)


def test_a_clearance_that_was_changed_is_not_sealed(tmp_path):
    clearance = judge([files(tmp_path, ORIGINAL, CLEAN)], policy=policy(), **JOB).clearance
    assert not clearance.is_sealed_by(bytes(32))
    for change in ({"destination": "elsewhere"}, {"instances": ()}, {"issuer": "review:x"}, {"not_assessed": ()}):
        assert not replace(clearance, **change).is_sealed_by(SEAL)


def test_a_residual_identifier_holds(tmp_path):
    judgement = verdict(tmp_path, ORIGINAL, leaking())
    assert (judgement.reason, judgement.at) == ("residual_identifier", "0001 (0020,4000)")
    assert judgement.clearance is None
    assert judgement.verdicts[1].findings[0].rule == "name of (0010,0010)"


def test_max_findings_of_the_policy_is_honoured(tmp_path):
    allowed = policy(checks={"residual_identifiers": ResidualIdentifiers(max=1)})
    assert verdict(tmp_path, ORIGINAL, leaking(), allowed).clearance is not None
    with pytest.raises(ValueError, match="0 or more"):
        ResidualIdentifiers(max=-1)


def test_no_pairs_hold():
    with pytest.raises(Hold) as held:
        judge([], policy=policy(), **JOB)
    assert held.value.reason == "no_instances"


def test_two_pairs_of_one_name_or_one_file_hold(tmp_path):
    first = files(tmp_path, ORIGINAL, CLEAN)
    for second in (replace(first, candidate=tmp_path / "other"), replace(first, name="0002")):
        (tmp_path / "other").write_bytes(CLEAN)
        with pytest.raises(Hold, match="gate_failed"):
            judge([first, second], policy=policy(), **JOB)


@pytest.mark.parametrize("which", ["original", "candidate"])
def test_a_missing_file_holds(tmp_path, which):
    pair = files(tmp_path, ORIGINAL, CLEAN)
    getattr(pair, which).unlink()
    with pytest.raises(Hold, match="gate_failed"):
        judge([pair], policy=policy(), **JOB)


@pytest.mark.parametrize("original", [b"", b"x" * 500, ORIGINAL[:-40], ORIGINAL[:200], cut_in_the_header()])
def test_an_original_that_cannot_be_read_whole_holds(tmp_path, original):
    """Half a list of identities would let the other half pass."""
    with pytest.raises(Hold) as held:
        verdict(tmp_path, original, CLEAN)
    assert (held.value.reason, held.value.at) == ("gate_failed", "0001")


def test_an_original_without_preamble_or_file_meta_is_read(tmp_path):
    at = 132 + 12 + pydicom.dcmread(files(tmp_path, ORIGINAL, CLEAN).original).file_meta.FileMetaInformationGroupLength
    for original in (ORIGINAL[132:], ORIGINAL[at:]):
        assert verdict(tmp_path, original, CLEAN).clearance is not None
        assert verdict(tmp_path, original, leaking()).reason == "residual_identifier"


@pytest.mark.parametrize("junk", [bytes(64), b"ZZSYNTH^LEAKTEST", b"\x10\x00\x10\x00"])
def test_bytes_behind_the_end_of_an_original_do_not_matter(tmp_path, junk):
    assert verdict(tmp_path, ORIGINAL + junk, CLEAN).clearance is not None
    assert verdict(tmp_path, ORIGINAL + junk, leaking()).reason == "residual_identifier"


def test_a_file_that_changes_while_it_is_judged_holds(tmp_path, monkeypatch):
    pair = files(tmp_path, ORIGINAL, CLEAN)
    real = ResidualIdentifiers.judge

    def meddling(self, pairs, used):
        found = real(self, pairs, used)
        pair.candidate.write_bytes(leaking())
        return found

    monkeypatch.setattr(ResidualIdentifiers, "judge", meddling)
    with pytest.raises(Hold, match="changed while it was judged"):
        judge([pair], policy=policy(), **JOB)


# What nobody judges


def carrying(tag: int, vr: str, value: object) -> frozenset[str]:
    ds = Dataset()
    ds.add_new(tag, vr, value)
    ds.SOPClassUID, ds.SOPInstanceUID = "1.2.840.10008.5.1.4.1.1.7", "1.2.3"
    return aspects_of(scan_bytes(encode(ds)))


def icon() -> Items:
    inner = Dataset()
    inner.add_new(0x7FE00010, "OB", bytes(64))
    return Items([inner])


@pytest.mark.parametrize(
    ("element", "aspects"),
    [
        ((0x7FE00010, "OW", bytes(8)), PIXEL_ASPECTS),
        ((0x7FE00008, "OF", bytes(8)), PIXEL_ASPECTS),
        ((0x7FE00009, "OD", bytes(8)), PIXEL_ASPECTS),
        ((0x00880200, "SQ", icon()), PIXEL_ASPECTS),
        ((0x60023000, "OW", bytes(8)), {"burned_in_text"}),
        ((0x00420011, "OB", b"%PDF"), {"document_content"}),
        ((0x54001010, "OW", bytes(8)), {"waveform_content"}),
        ((0x00660016, "OF", bytes(12)), {"recognizable_features"}),
        ((0x00191001, "OB", bytes(2048)), PIXEL_ASPECTS),
        ((0x00191001, "OB", bytes(64)), set()),
        ((0x00080070, "LO", "ACME"), set()),
    ],
    ids=lambda value: hex(value[0]) if isinstance(value, tuple) else "",
)
def test_aspects_follow_from_content(element, aspects):
    assert carrying(*element) == aspects | {"header"}


def test_what_no_check_judges_and_nobody_accepted_holds(tmp_path):
    judgement = verdict(tmp_path, ORIGINAL, CLEAN, policy(accept=False))
    assert judgement.reason == "not_assessed"
    assert judgement.clearance is None
    assert {(n.aspect, n.modality, n.instances, n.approver) for n in judgement.not_assessed} == {
        (aspect, "CT", 1, "") for aspect in PIXEL_ASPECTS
    }


def test_what_a_person_accepted_is_reported_as_such(tmp_path):
    clearance = verdict(tmp_path, ORIGINAL, CLEAN).clearance
    assert {(n.aspect, n.modality, n.instances, n.reason, n.approver) for n in clearance.not_assessed} == {
        (aspect, "CT", 1, "no check yet", "DPO") for aspect in PIXEL_ASPECTS
    }


def test_acceptance_is_for_its_own_modality(tmp_path):
    assert verdict(tmp_path, ORIGINAL, CLEAN, policy(modality=("MR",))).reason == "not_assessed"


def test_a_claim_about_burned_in_text_is_no_evidence(tmp_path):
    ds = plain_scrub(BASE)
    ds.BurnedInAnnotation, ds.RecognizableVisualFeatures = "NO", "NO"
    assert verdict(tmp_path, ORIGINAL, encode(ds), policy(accept=False)).reason == "not_assessed"


def test_without_pixels_the_header_check_is_enough(tmp_path):
    original = identified_ct()
    del original.PixelData
    judgement = verdict(tmp_path, encode(original), encode(plain_scrub(original)), policy(accept=False))
    assert judgement.clearance is not None
    assert judgement.not_assessed == ()


def test_without_a_header_check_the_header_is_not_assessed(tmp_path):
    assert verdict(tmp_path, ORIGINAL, CLEAN, policy(checks={})).reason == "not_assessed"


def test_a_check_that_this_build_does_not_have_holds(tmp_path):
    with pytest.raises(Hold, match="gate_failed"):
        verdict(tmp_path, ORIGINAL, CLEAN, policy(checks={"same_scan": ResidualIdentifiers()}))


# Reviews


def test_a_review_clears_what_a_check_held_and_says_so(tmp_path):
    pair = files(tmp_path, ORIGINAL, leaking())
    judgement = judge([pair], policy=policy(accept=False), **JOB)
    clearance = clear_by_review(
        [pair], policy=policy(accept=False), reviewer="privacy officer", verdicts=judgement.verdicts, **JOB
    )
    assert clearance.issuer == "review:privacy officer"
    assert clearance.verdicts == ("encoding=pass", "residual_identifiers=hold")
    assert {n.approver for n in clearance.not_assessed} == {"review:privacy officer"}
    assert {n.aspect for n in clearance.not_assessed} == PIXEL_ASPECTS
    assert clearance.instances[0].sha256_file == hashlib.sha256(pair.candidate.read_bytes()).hexdigest()
    assert clearance.is_sealed_by(SEAL)


def test_a_review_cannot_clear_a_file_that_is_not_what_it_claims(tmp_path):
    pair = files(tmp_path, ORIGINAL, CLEAN + b"ZZSYNTH^LEAKTEST")
    with pytest.raises(Hold) as held:
        clear_by_review([pair], policy=policy(), reviewer="x", verdicts=(), **JOB)
    assert held.value.reason == "output_invalid"


def test_a_review_needs_instances_and_a_reviewer(tmp_path):
    with pytest.raises(Hold, match="no_instances"):
        clear_by_review([], policy=policy(), reviewer="x", verdicts=(), **JOB)
    with pytest.raises(ValueError, match="reviewer"):
        clear_by_review([files(tmp_path, ORIGINAL, CLEAN)], policy=policy(), reviewer=" ", verdicts=(), **JOB)


# The extension point


@pytest.mark.parametrize("name", sorted(CHECKS.keys() - {"same_scan"}))  # needs a card: test_same_scan
def test_every_check_says_what_it_judges_and_passes_a_clean_study(tmp_path, name):
    check = CHECKS[name]()
    assert check.judges
    assert check.judges <= ASPECTS
    judged = check.judge([files(tmp_path, ORIGINAL, CLEAN)], policy())
    assert (judged.check, judged.outcome) == (name, Outcome.PASS)
    bad = check.judge([files(tmp_path, ORIGINAL, leaking())], policy())  # in the header: no fault of the pixels
    assert bad.reason in REASONS or "header" not in check.judges
    with pytest.raises(Hold, match="gate_failed"):
        check.judge([Pair("0001", tmp_path / "none", tmp_path / "none")], policy())


def test_only_the_gate_seals_a_clearance():
    root = Path(__file__).resolve().parents[2] / "gateway"
    sealing = {
        path.relative_to(root).parts[0] for path in root.rglob("*.py") if re.search(r"\.sealed\(", path.read_text())
    }
    assert sealing == {"gate"}


def test_a_policy_accepts_only_aspects_by_name():
    entry = NotAssessedEntry(aspects=("image_identity",), modality=("CT",), reason="r", approver="a")
    gate = GatePolicy(study={"residual_identifiers": ResidualIdentifiers()}, not_assessed=(entry,))
    assert Policy(name="x", header=HeaderPolicy(), gate=gate).gate.not_assessed[0].aspects == ("image_identity",)


def test_large_files_are_mapped_and_judged_alike(tmp_path, monkeypatch):
    monkeypatch.setattr("gateway.gate.bytescan.IN_MEMORY_BYTES", 100)
    judgement = verdict(tmp_path, ORIGINAL, CLEAN)
    assert judgement.clearance.instances[0].sha256_file == hashlib.sha256(CLEAN).hexdigest()
    assert verdict(tmp_path, ORIGINAL, leaking()).at == "0001 (0020,4000)"


def test_a_study_of_several_instances_is_judged_as_a_whole(tmp_path):
    pairs = []
    for number in range(5):
        original = identified_ct()
        original.SOPInstanceUID += str(number)
        pairs.append(files(tmp_path, encode(original), encode(plain_scrub(original)), f"{number:04d}"))
    clearance = judge(pairs, policy=policy(), **JOB).clearance
    assert [one.name for one in clearance.instances] == ["0000", "0001", "0002", "0003", "0004"]
    assert {n.instances for n in clearance.not_assessed} == {5}
