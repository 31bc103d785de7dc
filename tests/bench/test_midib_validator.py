"""The validator: a perfect output has every point, a fault costs its own check, doing nothing costs what it should."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pydicom
import pytest
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian

from bench.midib_corpus import pixels
from bench.midib_corpus.corpus import Recipe, write_corpus
from bench.midib_score.judge import Mappings, Output, judge, mappings
from bench.midib_score.key import ACTIONS, Check, Instance, digest_of, read_key, write_key
from bench.midib_score.paths import indexed
from bench.midib_score.scoring import Score
from bench.midib_score.strict import strict
from bench.midib_score.textrule import gone, gone_strictly, kept_share, words_of

Scored = tuple[Score, list[tuple[Instance, Output | None]], Mappings]


def scored(key: list[Instance], folder: Path) -> Scored:
    outputs = [(instance, Output.of(instance, folder / instance.file)) for instance in key]
    known = mappings(outputs)
    score = Score()
    for instance, output in outputs:
        score.add(instance, judge(instance, output, known))
    return score, outputs, known


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("midib")
    write_corpus(folder, Recipe(patients=40, half="development"), twins=True)
    return folder


@pytest.fixture(scope="module")
def key(corpus: Path) -> list[Instance]:
    return list(read_key(corpus / "key.sqlite"))


def test_a_perfect_output_has_every_point(corpus: Path, key: list[Instance]) -> None:
    score, outputs, known = scored(key, corpus / "clean")
    assert not score.misses
    assert score.percent(series=True) == score.percent(series=False) == 100.0
    found = strict(((i, o, corpus / "clean" / i.file) for i, o in outputs), known)
    assert found.files_with_planted_bytes == 0
    assert found.planted_words_left == 0
    assert found.patients_with_several_shifts == 0
    assert found.new_uids_of_several_old == 0
    assert found.dates_compared > 100


def test_a_cleaner_that_does_nothing_keeps_all_and_hides_nothing(corpus: Path, key: list[Instance]) -> None:
    score, outputs, known = scored(key, corpus / "dirty")
    for action, (passed, total) in score.by_action(series=False).items():
        expected = 0 if action in ("text_removed", "date_shifted", "uid_changed", "pixels_hidden") else total
        assert passed == expected, action
        assert total > 0, action
    found = strict(((i, o, corpus / "dirty" / i.file) for i, o in outputs), known)
    assert found.files_with_planted_bytes == len(key)


def test_a_cleaner_that_writes_nothing_passes_only_what_must_go(tmp_path: Path, key: list[Instance]) -> None:
    score, _, _ = scored(key, tmp_path)
    for action, (passed, total) in score.by_action(series=False).items():
        gone_too = action in ("text_removed", "date_shifted", "uid_changed", "pixels_hidden")
        assert passed == (total if gone_too else 0), action


def test_a_cleaner_that_empties_every_text_fails_only_what_must_stay(corpus: Path, key: list[Instance]) -> None:
    instance = next(one for one in key if one.modality == "CT")
    image = pydicom.dcmread(corpus / "clean" / instance.file)
    image.SeriesDescription = ""
    output = Output(indexed(image), digest_of(image.PixelData), frozenset())
    _, _, known = scored(key, corpus / "clean")
    failed = [result for result in judge(instance, output, known) if not result.passed]
    assert {(r.check.action, r.check.tag_name) for r in failed} == {("text_retained", "Series Description")}


def fault_in(instance: Instance, output: Output, known: Mappings, tag: str, value: str | None) -> set[str]:
    """The actions that fail when one attribute of a perfect output is changed, or taken out (None)."""
    table = dict(output.table)
    if value is None:
        del table[tag]
    else:
        table[tag] = value
    return {r.check.action for r in judge(instance, dataclasses.replace(output, table=table), known) if not r.passed}


def test_each_fault_costs_its_own_check(corpus: Path, key: list[Instance]) -> None:
    _, outputs, known = scored(key, corpus / "clean")
    instance, output = next((i, o) for i, o in outputs if i.modality == "MR")
    assert output is not None
    of = {check.action: check for check in instance.checks if "[" not in check.tag_ds}
    name = next(c for c in instance.checks if c.action == "text_removed" and c.tag_ds == "(0010,0010)")

    def change(tag: str, value: str | None) -> set[str]:
        return fault_in(instance, output, known, tag, value)

    assert change("(0010,0010)", name.value) == {"text_removed"}
    assert change("(0010,0010)", None) == {"tag_retained"}
    assert change("(0010,0010)", "X " + name.action_text.split(" ")[0] + "son") == {"text_removed"}
    assert change("(0010,0020)", "another") == {"patid_consistent"}
    assert change("(0008,0020)", of["date_shifted"].value) == {"date_shifted"}
    assert change("(0020,000d)", "1.2.3") == {"uid_consistent"}
    assert change("(0020,000d)", instance.study) == {"uid_changed", "uid_consistent"}
    assert change("(0018,0020)", "") == {"text_notnull", "text_retained"}
    assert change("(0018,0020)", None) == {"text_notnull", "text_retained", "tag_retained"}
    assert change("(0018,0087)", "7") == {"text_retained"}
    damaged = dataclasses.replace(output, digest="0" * 32)
    assert {r.check.action for r in judge(instance, damaged, known) if not r.passed} == {"pixels_retained"}
    mapped_elsewhere = Mappings({**known.uids, instance.series: "1.2.3"}, known.patients)
    assert {r.check.action for r in judge(instance, output, mapped_elsewhere) if not r.passed} == {"uid_consistent"}


def test_burned_in_text_counts_as_hidden_only_when_ink_and_ground_are_alike(corpus: Path, key: list[Instance]) -> None:
    instance = next(one for one in key if any(check.action == "pixels_hidden" for check in one.checks))
    box = next(check.action_text for check in instance.checks if check.action == "pixels_hidden")
    image = pydicom.dcmread(corpus / "dirty" / instance.file)
    path = corpus / "box.dcm"

    def shows(data: bytes) -> bool:
        image.PixelData = data
        image.save_as(path)
        output = Output.of(instance, path)
        assert output is not None
        return box in output.shown

    data, columns = bytearray(image.PixelData), int(image.Columns)
    (left, top), (right, bottom) = json.loads(box)["top_left"], json.loads(box)["bottom_right"]
    assert shows(bytes(data))
    for y in range(top, bottom - 12):  # the last line of text stays
        data[2 * (y * columns + left) : 2 * (y * columns + right)] = bytes(2 * (right - left))
    assert shows(bytes(data))
    for y in range(top, bottom):
        data[2 * (y * columns + left) : 2 * (y * columns + right)] = bytes(2 * (right - left))
    assert not shows(bytes(data))


def test_one_failing_instance_fails_its_series_and_a_series_counts_once() -> None:
    check = Check("text_retained", "(0008,0060)", "Modality", "CT", "CT", "TCIA-REV")
    row = ("1.2", "P", "1.3", "1.4")
    many = [Instance(f"{n}.dcm", "CT", *row, f"1.5.{n}", "", (check,)) for n in range(10)]
    score = Score()
    for number, instance in enumerate(many):
        output = Output({"(0008,0060)": "MR" if number == 3 else "CT"}, "", frozenset())
        score.add(instance, judge(instance, output, Mappings()))
    assert score.by_action(series=True)["text_retained"] == (0, 1)
    assert score.by_action(series=False)["text_retained"] == (9, 10)
    (miss,) = score.misses.values()
    assert (miss.file, miss.instances, miss.got, miss.why) == ("3.dcm", 1, "MR", "lost: ct")


@pytest.mark.parametrize(
    ("expected", "value", "share"),
    [
        ("10", "10.0", 1.0),  # numbers are equal as numbers
        ("T1 post", "t1 POST contrast", 1.0),  # a substring, whatever the case
        ("CHEST WITH CONTRAST", "contrast chest", 1.0),  # word by word, stop words aside
        ("P4^P101^S108^I0, Gated, 0.0%", "P4^P101^S108^I0, Gated", 2 / 3),
        ("Marrow", "tomorrow marrows", 1.0),  # a substring: the challenge's weakness
        ("Leah Marrow", "Leah", 0.5),
        ("Leah Marrow", "", 0.0),
        ("", "anything", 0.0),
    ],
)
def test_the_text_rule_is_the_challenge_s(expected: str, value: str, share: float) -> None:
    assert kept_share(expected, value) == pytest.approx(share)


def test_words_are_split_as_nltk_splits_them() -> None:
    text = "P4^P101^S108^I0, Gated, 0.0% (ACRIN) at 12:30 for the patient."
    assert words_of(text) == ["p4^p101^s108^i0", "gated", "0.0", "acrin", "12:30", "patient"]


def test_the_strict_rule_looks_at_whole_words_digits_and_accents() -> None:
    assert gone("Marrow", "bone narrow")
    assert not gone("Ann", "scanned")  # the challenge calls this a leak
    assert gone_strictly("Ann", "scanned")
    assert not gone_strictly("Müller", "seen by MULLER")
    assert not gone_strictly("542-18-2994", "SSN 542 18 2994")
    assert not gone_strictly("5556667777", "(555) 666-7777")
    assert not gone_strictly("05/22/2009", "done 05.22.2009")


def test_a_path_names_the_private_creator_and_not_its_block() -> None:
    image = Dataset()
    image.add_new(0x00290011, "LO", "Siemens Med")
    image.add_new(0x00291119, "LO", "one")
    image.add_new(0x00310099, "LO", "no creator")
    inner = Dataset()
    inner.ReferencedSOPInstanceUID = "1.2.3"
    image.ReferencedImageSequence = [inner]
    image.ImageType = ["ORIGINAL", "PRIMARY"]
    assert indexed(image) == {
        "(0008,0008)": "['ORIGINAL', 'PRIMARY']",
        "(0008,1140)": "sequence",
        "(0008,1140)[<0000>](0008,1155)": "1.2.3",
        "(0029,0011)": "Siemens Med",
        '(0029,"SIEMENS MED",19)': "one",
        "(0031,0099)": "no creator",
    }


def test_the_key_comes_back_as_it_was_written(tmp_path: Path) -> None:
    checks = tuple(Check(action, "(0008,0060)", "Modality", "<CT>", 'a "b" <c>', "X") for action in ACTIONS)
    instance = Instance("a.dcm", "CT", "1.2", "P<1>", "1.3", "1.4", "1.5", "", checks)
    write_key(tmp_path / "key.sqlite", [instance])
    assert list(read_key(tmp_path / "key.sqlite")) == [instance]


def test_an_rle_frame_is_what_pydicom_decodes() -> None:
    frame = bytes(range(256)) * 2
    image = Dataset()
    image.file_meta = FileMetaDataset()
    image.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    (encoded,) = pixels.rle([frame])
    offsets = [int.from_bytes(encoded[4 + 4 * n : 8 + 4 * n], "little") for n in range(2)]
    assert int.from_bytes(encoded[:4], "little") == 2
    planes = []
    for start, stop in zip(offsets, [*offsets[1:], len(encoded)], strict=True):
        plane, at = b"", start
        while at < stop and len(plane) < 256:
            count = encoded[at] + 1
            plane += encoded[at + 1 : at + 1 + count]
            at += 1 + count
        planes.append(plane)
    assert bytes(b for pair in zip(planes[1], planes[0], strict=True) for b in pair) == frame
