"""The short way for what a series repeats gives the same bytes and the same account as the long way, for any bytes."""

import threading
from pathlib import Path

import pytest
from header_objects import BASIC, BIG_ENDIAN, CT, EXPLICIT, IMPLICIT, KEY, MODIFIED, PSEUDONYMS, policy
from header_series import DATES_STAY, EVERYTHING, ROOT, compare, file_of_series
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_header_properties import TREES, Node

from gateway.errors import Hold
from gateway.header import repeats, repeats_store, scrub_file
from gateway.header.repeats_store import Repeats
from gateway.policy.private_lists import load_safe_private, vr_of
from gateway.pseudonyms import Pseudonyms

SAFE_ONLY = policy("retain-safe-private")
POLICIES = [BASIC, MODIFIED, EVERYTHING, DATES_STAY]
UNCOMPRESSED = [IMPLICIT, EXPLICIT, BIG_ENDIAN]
CHARACTER_SETS = ["ISO_IR 100", "ISO_IR 192", "\\ISO 2022 IR 87", "GB18030", "NONSENSE"]
SAFE = sorted(load_safe_private())  # (creator, group, element)


@pytest.fixture(autouse=True)
def _fresh() -> None:
    repeats.REPEATS.clear()


def element_of(creator: str, group: int, number: int, value: bytes, vr: str = "LO", block: int = 0x10) -> list[Node]:
    """A private element and its creator, in block 10 or another."""
    return [
        (group << 16 | block, "LO", creator.encode() + b" " * (len(creator) % 2)),
        (group << 16 | block << 8 | number, vr, value + b" " * (len(value) % 2)),
    ]


@st.composite
def texts(draw: st.DrawFn) -> Node:
    """A descriptor that may name the patient, the day or nobody."""
    tag = draw(st.sampled_from([0x00081030, 0x00081080, 0x00104000, 0x00204000, 0x00181400, 0x00080081, 0x00321060]))
    words = ["thorax", "ZZSYNTH0001", "ZZSYNTH0002^LEAKTEST", "LEAK0001", "31.01.2020", "19500131", "M\xfcller", "\xe9"]
    text = " ".join(draw(st.lists(st.sampled_from(words), min_size=1, max_size=4)))
    value = text.encode(draw(st.sampled_from(["latin-1", "utf-8"])))
    return tag, draw(st.sampled_from(["LO", "LO", "UN", "LT"])), value + b" " * (len(value) % 2)


@st.composite
def private(draw: st.DrawFn) -> list[Node]:
    """An element that a list calls safe, with a value that an object may say elsewhere, too."""
    creator, group, number = draw(st.sampled_from(SAFE[:: len(SAFE) // 40]))
    values = [b"12", b"ZZSYNTH0001", f"{ROOT}.1.0001.1.2".encode(), f"{ROOT}.2.0002".encode(), b"20200131", b"LEAK0002"]
    value, vr = draw(st.sampled_from(values)), draw(st.sampled_from(["LO", "DS", "UN", "UI", "DA", "LT"]))
    return element_of(creator, group, number, value, vr, draw(st.sampled_from([0x10, 0x11])))


relaxed = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@relaxed
@given(
    st.data(),
    st.lists(TREES | texts(), min_size=2, max_size=7, unique_by=lambda node: node[0]),
    st.lists(private(), max_size=3),
    st.sampled_from(UNCOMPRESSED),
)
def test_interleaved_series_of_any_content_come_out_as_the_long_way_writes_them(
    data: st.DataObject, pool: list[Node], private_pool: list[list[Node]], syntax: str
) -> None:
    repeats.REPEATS.clear()
    headers = data.draw(st.lists(st.sampled_from(POLICIES), min_size=1, max_size=2, unique=True))
    sets = data.draw(st.lists(st.sampled_from(CHARACTER_SETS), min_size=1, max_size=2, unique=True))
    steps = st.tuples(
        st.sampled_from(headers),
        st.sampled_from(["0001", "0002"]),
        st.sampled_from(["1", "2"]),
        st.integers(1, 3),
        st.sampled_from(sets),
        st.sets(st.integers(0, len(pool) - 1)),
        st.sets(st.integers(0, len(private_pool) - 1)) if private_pool else st.just(set()),
    )
    for header, patient, series, instance, character_set, left_out, used in data.draw(
        st.lists(steps, min_size=3, max_size=9)
    ):
        nodes = [node for number, node in enumerate(pool) if number not in left_out]
        nodes += [node for number in used for node in private_pool[number]]
        compare(
            file_of_series(
                syntax, nodes, patient=patient, series=series, instance=instance, character_set=character_set
            ),
            header,
        )


@relaxed
@given(st.data(), st.sampled_from(UNCOMPRESSED), st.sampled_from(POLICIES))
def test_bytes_that_change_anywhere_between_two_objects_never_bring_an_old_outcome(
    data: st.DataObject, syntax: str, header: object
) -> None:
    repeats.REPEATS.clear()
    sequence: Node = (0x00081115, "SQ", (True, [(False, [(0x0020000E, "UI", b"1.2.3.4 ")])]))
    nodes = [sequence, *element_of("GEMS_PARM_01", 0x0043, 0x01, b"12", "DS")]
    files = [file_of_series(syntax, nodes, instance=number) for number in (1, 2, 3)]
    for file in files:
        assert compare(file, header)  # type: ignore[arg-type]
    for _ in range(4):
        changed = bytearray(data.draw(st.sampled_from(files)))
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(132, len(changed) - 1))
            changed[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
        compare(bytes(changed), header)  # type: ignore[arg-type]


def test_every_file_of_pydicom_comes_out_the_same_the_first_time_and_again(pydicom_files: list[Path]) -> None:
    taken = 0
    for header in (EVERYTHING, BASIC, EVERYTHING):
        for path in pydicom_files:
            if path.stat().st_size < 4_000_000:
                taken += compare(path, header)
    assert taken > 150


@pytest.mark.parametrize("syntax", UNCOMPRESSED)
def test_a_private_value_goes_in_the_object_whose_uid_it_repeats_and_stays_in_its_neighbours(
    tmp_path: Path, syntax: str
) -> None:
    """cases.md 12: the words are those of the object, although everything else repeats."""
    creator, group, number = next(key for key in SAFE if vr_of(key) == "LO")
    nodes = element_of(creator, group, number, f"{ROOT}.1.0001.1.2".encode())
    stays = []
    for instance in (1, 2, 3, 2, 1):
        file = file_of_series(syntax, nodes, instance=instance)
        assert compare(file, SAFE_ONLY)
        (tmp_path / "in").write_bytes(file)
        scrub_file(tmp_path / "in", tmp_path / "out", policy=SAFE_ONLY, pseudonyms=PSEUDONYMS)
        stays.append(f"{ROOT}.1.0001.1.2".encode() in (tmp_path / "out").read_bytes())
    assert stays == [True, False, True, False, True]


def test_two_keys_and_two_policies_never_share_an_outcome(tmp_path: Path) -> None:
    other = Pseudonyms(bytes(reversed(KEY)))
    outputs = set()
    for _ in range(3):
        for header in POLICIES:
            for pseudonyms in (PSEUDONYMS, other):
                file = file_of_series(EXPLICIT, [])
                assert compare(file, header, pseudonyms)
                (tmp_path / "in").write_bytes(file)
                scrub_file(tmp_path / "in", tmp_path / "out", policy=header, pseudonyms=pseudonyms)
                outputs.add((tmp_path / "out").read_bytes())
    assert len(outputs) == 8


def test_an_object_of_another_class_in_the_same_series_is_not_taken_for_its_neighbours() -> None:
    files = [file_of_series(EXPLICIT, [], instance=number) for number in (1, 2)]
    enhanced = [file.replace(CT.encode() + b"\0", b"1.2.840.10008.5.1.4.1.1.4\0") for file in files]
    assert enhanced != files
    for file in (files[0], enhanced[0], files[1], enhanced[1], files[0]):
        assert compare(file, EVERYTHING)


def test_what_is_kept_in_memory_is_bounded_whatever_arrives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats_store, "MAX_BYTES", 1 << 20)
    monkeypatch.setattr(repeats_store, "MAX_SERIES_BYTES", 1 << 18)
    monkeypatch.setattr(repeats_store, "MAX_SERIES", 16)
    for number in range(24):
        for instance in (1, 2):
            texts = [(tag, "LT", f"{number} {instance} ".encode() * 800) for tag in (0x00104000, 0x00204000)]
            compare(file_of_series(EXPLICIT, texts, series=str(number), instance=instance), BASIC)
    held = repeats.REPEATS._series.values()
    assert 0 < sum(series.size for series in held) <= 1 << 20
    assert 2 <= len(held) <= 16


def test_a_series_with_different_elements_in_every_object_keeps_few_of_them() -> None:
    repeats.REPEATS.clear()
    for instance in range(40):
        compare(file_of_series(EXPLICIT, [(0x00204000, "LT", b"%04d" % instance * 50)], instance=instance), BASIC)
    (series,) = repeats.REPEATS._series.values()
    assert sum(map(len, series.runs.values())) < 60


def test_a_second_thread_goes_the_long_way_instead_of_waiting(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(file_of_series(EXPLICIT, []))
    done = []
    with repeats.REPEATS.lock:
        thread = threading.Thread(
            target=lambda: done.append(
                scrub_file(tmp_path / "in", tmp_path / "out", policy=EVERYTHING, pseudonyms=PSEUDONYMS)
            )
        )
        thread.start()
        thread.join(30)
    again = scrub_file(tmp_path / "in", tmp_path / "again", policy=EVERYTHING, pseudonyms=PSEUDONYMS)
    assert done == [again]
    assert (tmp_path / "out").read_bytes() == (tmp_path / "again").read_bytes()


def test_an_object_that_is_held_is_held_for_the_same_reason_after_its_series_was_scrubbed(tmp_path: Path) -> None:
    good = file_of_series(EXPLICIT, [])
    assert compare(good, BASIC)
    (tmp_path / "in").write_bytes(good[:-40])
    with pytest.raises(Hold) as held:
        scrub_file(tmp_path / "in", tmp_path / "out", policy=BASIC, pseudonyms=PSEUDONYMS)
    assert held.value.reason == "unreadable_object"


def test_repeats_forget_everything_on_demand() -> None:
    held = Repeats()
    assert held.series("a", BASIC, CT) is held.series("a", BASIC, CT)
    first = held.series("a", BASIC, CT)
    held.clear()
    assert held.series("a", BASIC, CT) is not first
