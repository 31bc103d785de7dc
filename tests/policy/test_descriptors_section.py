"""The site's own list of words in a policy: strict, by line, part of the digest, whole in a snapshot."""

from __future__ import annotations

from pathlib import Path

import pytest

from gateway.app.policy.registry import REGISTRY
from gateway.errors import PolicyError
from gateway.policy import HeaderPolicy, explain_policy, load_policies, load_policy, read_snapshot
from gateway.policy.descriptors_section import load_words
from gateway.settings import SHIPPED_POLICIES

TEXT = """name: small
extends: [ps3.15-basic@2026d]
gate: {study: {residual_identifiers: {max: 0}}}
header:
  options: [clean-descriptors]
  descriptors: {allow_list: site-words.txt}
"""


def written(folder: Path, words: str | bytes, text: str = TEXT) -> Path:
    data = words if isinstance(words, bytes) else words.encode()
    (folder / "site-words.txt").write_bytes(data)
    path = folder / "small.yaml"
    path.write_text(text)
    return path


def test_words_of_the_file_are_known_once_in_order_and_without_case(tmp_path: Path) -> None:
    policy = load_policy(written(tmp_path, "# ours\nZoomscout\n\nBRAINO  # the old protocol\nGrößix\n"), REGISTRY)
    assert policy.header.descriptors is not None
    assert policy.header.descriptors.words == ("braino", "grössix", "zoomscout")


def test_words_may_stand_in_the_policy_itself(tmp_path: Path) -> None:
    text = TEXT.replace("allow_list: site-words.txt", "words: [Zoomscout, BRAINO]")
    here = load_policy(written(tmp_path, "x1", text), REGISTRY)
    there = load_policy(written(tmp_path, "braino\nzoomscout\n"), REGISTRY)
    assert here.digest == there.digest


def test_the_contents_of_the_file_are_part_of_the_digest(tmp_path: Path) -> None:
    first = load_policy(written(tmp_path, "zoomscout\n"), REGISTRY).digest
    assert load_policy(written(tmp_path, "# why\nZOOMSCOUT\n"), REGISTRY).digest == first
    assert load_policy(written(tmp_path, "zoomscout\nbraino\n"), REGISTRY).digest != first


def test_a_snapshot_holds_the_words_and_needs_no_file(tmp_path: Path) -> None:
    path = written(tmp_path, "zoomscout\nbraino\n")
    policy = load_policy(path, REGISTRY)
    snapshot = policy.to_snapshot()
    (tmp_path / "site-words.txt").unlink()
    again = read_snapshot(snapshot, REGISTRY)
    assert again == policy
    assert again.digest == policy.digest


def test_every_fault_of_the_file_is_told_by_its_line_and_quotes_no_word(tmp_path: Path) -> None:
    path = written(tmp_path, "fine\ntwo words\nLEAK00012\n12345\n\nfine\nzz-synth\n" + "x" * 65 + "\n")
    with pytest.raises(PolicyError) as caught:
        load_policy(path, REGISTRY)
    faults = [(fault.line, fault.says) for fault in caught.value.faults]
    assert all(fault.file.endswith("site-words.txt") for fault in caught.value.faults)
    digits = "a word with more than 4 digits, or of digits only, could be somebody's number"
    assert sorted(faults) == [
        (2, "a word is letters and digits only"),
        (3, digits),
        (4, digits),
        (6, "the same word as in line 1"),
        (7, "a word is letters and digits only"),
        (8, "a word has 1 to 64 letters and digits"),
    ]
    assert "LEAK" not in str(caught.value)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (b"", "names no word"),
        (b"# nothing\n", "names no word"),
        (b"\xff\xfe", "is not UTF-8 text"),
        (b"a" * ((1 << 20) + 1), "is larger than 1 MiB"),
    ],
)
def test_a_file_that_cannot_be_a_list_is_refused(tmp_path: Path, words: bytes, says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        load_policy(written(tmp_path, words), REGISTRY)


def test_a_missing_file_is_a_fault(tmp_path: Path) -> None:
    path = written(tmp_path, "x1")
    (tmp_path / "site-words.txt").unlink()
    with pytest.raises(PolicyError, match="cannot be read: No such file"):
        load_policy(path, REGISTRY)


@pytest.mark.parametrize("name", ["../words.txt", "/etc/passwd", "sub/words.txt", "routes.yaml", ".hidden"])
def test_only_a_text_file_of_the_policies_folder_can_be_named(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, "x1", TEXT.replace("site-words.txt", name))
    with pytest.raises(PolicyError, match="allow_list is the name of a text file in the policies folder"):
        load_policy(path, REGISTRY)


def test_the_list_needs_the_option(tmp_path: Path) -> None:
    path = written(tmp_path, "x1", TEXT.replace("[clean-descriptors]", "[retain-uids]"))
    with pytest.raises(PolicyError, match="but the option clean-descriptors is not on"):
        load_policy(path, REGISTRY)
    with pytest.raises(ValueError, match="descriptors needs the option"):
        HeaderPolicy.model_validate({"descriptors": {"words": ("abc",)}})


def test_the_list_lies_beside_the_policies_of_a_folder(tmp_path: Path) -> None:
    written(tmp_path, "zoomscout\n")
    (tmp_path / "routes.yaml").write_text(
        (SHIPPED_POLICIES / "routes.yaml")
        .read_text()
        .replace("research-basic", "small")
        .replace("research-pictures", "small")
    )
    (tmp_path / "destinations.yaml").write_text((SHIPPED_POLICIES / "destinations.yaml").read_text())
    assert load_policies(tmp_path, REGISTRY).policies["small"].header.descriptors is not None


def test_explain_says_what_stays_of_descriptions(tmp_path: Path) -> None:
    says = explain_policy(load_policy(written(tmp_path, "zoomscout\nbraino\n"), REGISTRY))
    line = next(line for line in says if line.startswith("Descriptions:"))
    assert "2 words of the site's own among them" in line
    assert any("recorded in the objects as 113105" in line for line in says)


def test_a_byte_order_mark_and_windows_lines_do_no_harm(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_bytes(b"\xef\xbb\xbfzoomscout\r\nbraino\r\n")
    assert load_words(tmp_path / "words.txt") == ("zoomscout", "braino")
