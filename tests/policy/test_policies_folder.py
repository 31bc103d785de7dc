"""A policies folder is checked as a whole: routes, destinations, cohorts, and what they say about each other."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gateway.errors import PolicyError
from gateway.policy import PolicySet, Registry, cohort_hash, load_cohort, load_policies

ROUTES = """\
routes:
  - name: brain
    when: {modality: MR, description: ["*brain*", "*head*"]}
    targets: [{project: brain, policy: small, destination: archive}]
  - name: rest
    when: {calling_ae: PACS}
    targets:
      - {project: brain, policy: small, destination: archive}
      - {project: other, policy: small, destination: folder}
"""
DESTINATIONS = "archive: dicom://ARCHIVE@10.0.0.8:104\nfolder: folder:out\n"
HASH = "ab" * 32


class Folder:
    def __init__(self, root: Path, registry: Registry, small: str) -> None:
        self.root, self.registry = root, registry
        self.write("routes.yaml", ROUTES)
        self.write("destinations.yaml", DESTINATIONS)
        self.write("small.yaml", small)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")

    def load(self) -> PolicySet:
        return load_policies(self.root, self.registry)

    def faults(self) -> list[tuple[str, int, str, str]]:
        with pytest.raises(PolicyError) as caught:
            self.load()
        return [(Path(f.file).name, f.line, f.says, f.hint) for f in caught.value.faults]

    def rule(self, when: str, targets: str = "[{project: a, policy: small, destination: archive}]") -> None:
        self.write("routes.yaml", f"routes:\n  - name: one\n    when: {when}\n    targets: {targets}\n")


@pytest.fixture
def folder(tmp_path: Path, registry: Registry, small: str) -> Folder:
    return Folder(tmp_path, registry, small)


def test_a_sound_folder_loads(folder: Folder, tmp_path: Path) -> None:
    loaded = folder.load()
    assert list(loaded.policies) == ["small"]
    assert loaded.destinations["archive"].url == "dicom://ARCHIVE@10.0.0.8:104"
    assert loaded.destinations["folder"].url == f"folder:{tmp_path / 'out'}"
    assert [rule.name for rule in loaded.routes.routes] == ["brain", "rest"]
    assert dict(loaded.routes.routes[0].when) == {"modality": ("MR",), "description": ("*brain*", "*head*")}
    assert [(t.project, t.policy, t.destination) for t in loaded.routes.routes[1].targets] == [
        ("brain", "small", "archive"),
        ("other", "small", "folder"),
    ]


def test_the_faults_of_all_files_come_at_once(folder: Folder, small: str) -> None:
    folder.write("routes.yaml", ROUTES.replace("policy: small", "policy: smallx").replace("modality", "modalty"))
    folder.write("destinations.yaml", DESTINATIONS.replace(":104", ":99999"))
    folder.write("broken.yaml", small.replace("name: small", "name: broken") + "x: 1\n")
    folder.write("twin.yaml", small)
    folder.write("old.yml", small)
    found = {(name, line, says) for name, line, says, _ in folder.faults()}
    assert {
        ("routes.yaml", 3, "unknown predicate modalty"),
        ("routes.yaml", 4, "unknown policy smallx"),
        ("routes.yaml", 4, "unknown destination archive"),
        ("destinations.yaml", 1, "archive: the port must be a number from 1 to 65535"),
        ("broken.yaml", 4, "unknown key x"),
        ("twin.yaml", 1, "another file has a policy named small too"),
        ("old.yml", 0, "would not be read"),
    } <= found


def test_a_route_to_a_policy_that_has_faults_is_not_called_unknown(folder: Folder, small: str) -> None:
    folder.write("small.yaml", small + "x: 1\n")
    assert [says for _, _, says, _ in folder.faults()] == ["unknown key x"]


@pytest.mark.parametrize("name", ["routes.yaml", "destinations.yaml"])
def test_a_missing_file_is_a_fault(folder: Folder, name: str) -> None:
    (folder.root / name).unlink()
    assert (name, 0) in [(file, line) for file, line, _, _ in folder.faults()]


@pytest.mark.parametrize("name", ["routes.yaml", "destinations.yaml"])
def test_an_empty_mapping_is_a_fault(folder: Folder, name: str) -> None:
    folder.write(name, "{}\n")
    assert name in [file for file, _, _, _ in folder.faults()]


def test_a_missing_folder_is_a_fault(tmp_path: Path, registry: Registry) -> None:
    with pytest.raises(PolicyError, match="does not exist"):
        load_policies(tmp_path / "none", registry)


@pytest.mark.parametrize(
    ("when", "says"),
    [
        ("{}", "at least one predicate"),
        ("[]", "at least one predicate"),
        ("MR", "at least one predicate"),
        ("{colour: red}", "unknown predicate colour"),
        ("{modality: []}", "modality has no value"),
        ("{modality: 7}", "must be text"),
        ("{modality: [MR, MR]}", "has a value twice"),
        ("{modality: mr}", "capitals"),
        ("{modality: ' '}", "capitals"),
        ("{body_part: Brain}", "capitals"),
        ("{sop_class: CTImageStorag}", "unknown SOP class CTImageStorag"),
        ("{sop_class: 1.2.840.10008.5.1.4.1.1.2.99}", "unknown SOP class"),
        ("{calling_ae: A_NAME_OF_17_CHAR}", "1 to 16 ASCII characters"),
        ("{called_ae: 'A\\B'}", "no backslash"),
        ("{manufacturer: ''}", "an empty value"),
        ("{description: ' '}", "an empty value"),
        ("{in_cohort: none.csv}", "does not exist"),
        ("{in_cohort: ../none.csv}", "file below this folder"),
        ("{in_cohort: /etc/passwd}", "file below this folder"),
        ("{in_cohort: a/../../b.csv}", "file below this folder"),
    ],
)
def test_a_predicate_that_cannot_work_is_a_fault(folder: Folder, when: str, says: str) -> None:
    folder.rule(when)
    found = folder.faults()
    assert len(found) == 1
    assert found[0][:2] == ("routes.yaml", 3)
    assert says in found[0][2]


def test_a_misspelt_sop_class_gets_a_hint(folder: Folder) -> None:
    folder.rule("{sop_class: CTImageStorag}")
    assert folder.faults()[0][3] == "did you mean CTImageStorage?"


def test_sop_classes_are_named_by_uid_keyword_or_name(folder: Folder) -> None:
    for value in ("1.2.840.10008.5.1.4.1.1.2", "CTImageStorage", "CT Image Storage", "ctimagestorage"):
        folder.rule(f"{{sop_class: {value}}}")
        assert folder.load().routes.routes[0].when["sop_class"] == ("1.2.840.10008.5.1.4.1.1.2",)
    folder.rule("{sop_class: 1.3.12.2.1107.5.9.1}")
    assert folder.load().routes.routes[0].when["sop_class"] == ("1.3.12.2.1107.5.9.1",)


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        ("[]", "needs a list"),
        ("{project: a}", "needs a list"),
        ("[x]", "is a mapping"),
        ("[{project: a, policy: small}]", "the key destination is missing"),
        ("[{project: a, policy: small, destination: archive, extra: 1}]", "unknown key extra"),
        ("[{project: A B, policy: small, destination: archive}]", "project must be"),
        ("[{project: 7, policy: small, destination: archive}]", "are text"),
        ("[{project: a, policy: smallx, destination: archive}]", "unknown policy smallx"),
        ("[{project: a, policy: small, destination: archivex}]", "unknown destination archivex"),
        (
            "[{project: a, policy: small, destination: archive}, {destination: archive, policy: small, project: a}]",
            "the same target twice",
        ),
    ],
)
def test_a_target_that_cannot_work_is_a_fault(folder: Folder, targets: str, says: str) -> None:
    folder.rule("{modality: MR}", targets)
    found = folder.faults()
    assert len(found) == 1
    assert found[0][:2] == ("routes.yaml", 4)
    assert says in found[0][2]


@pytest.mark.parametrize(
    ("first", "second", "never"),
    [
        ("{modality: MR}", "{modality: MR}", True),
        ("{modality: [CT, MR]}", "{modality: MR}", True),
        ("{modality: [CT, MR]}", "{modality: MR, body_part: BRAIN}", True),
        ("{modality: MR, body_part: BRAIN}", "{modality: MR}", False),
        ("{modality: MR}", "{modality: [CT, MR]}", False),
        ("{modality: MR}", "{body_part: BRAIN}", False),
    ],
)
def test_a_rule_that_never_applies_is_a_fault(folder: Folder, first: str, second: str, never: bool) -> None:
    target = "[{project: a, policy: small, destination: archive}]"
    rules = [f"  - {{name: r{i}, when: {when}, targets: {target}}}\n" for i, when in enumerate((first, second))]
    folder.write("routes.yaml", "routes:\n" + "".join(rules))
    if never:
        assert [(line, says) for _, line, says, _ in folder.faults()] == [
            (3, "this rule never applies: r0 matches first whatever it would match")
        ]
    else:
        assert len(folder.load().routes.routes) == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("routes: []\n", "needs a list of rules"),
        ("routes: {}\n", "needs a list of rules"),
        ("rules: []\n", "unknown key rules"),
        ("routes: [x]\n", "a rule is a mapping"),
        ("routes: [{name: a}]\n", "the key when is missing"),
        (ROUTES.replace("name: rest", "name: brain"), "is here twice"),
        (ROUTES.replace("name: rest", "name: Rest of it"), "the name of a rule must be"),
    ],
)
def test_a_routes_file_that_cannot_work_is_a_fault(folder: Folder, text: str, says: str) -> None:
    folder.write("routes.yaml", text)
    assert any(says in found for _, _, found, _ in folder.faults())


def test_a_policy_may_bind_its_studies_to_one_destination(folder: Folder, small: str) -> None:
    folder.write("small.yaml", small + "forward: {to: archive}\n")
    found = folder.faults()
    assert [(line, says) for _, line, says, _ in found] == [
        (9, "the policy small lets studies go to archive only (forward.to)")
    ]
    folder.write("small.yaml", small + "forward: {to: archives}\n")
    assert ("small.yaml", 4, "unknown destination archives", "did you mean archive?") in folder.faults()


@pytest.mark.parametrize(
    ("url", "final"),
    [
        ("dicom://ARCHIVE@10.0.0.8:104", None),
        ("dicom://A B@archive.example:1", "dicom://A B@archive.example:1"),
        ("dicom://ARCHIVE@[::1]:11112", None),
        ("dicom://A@host:65535", None),
        ("folder:/srv/out", None),
        ("folder:/srv/../out", "folder:/out"),
    ],
)
def test_urls_that_name_a_place(folder: Folder, url: str, final: str | None) -> None:
    folder.write("destinations.yaml", f"archive: {url}\nfolder: folder:out\n")
    assert folder.load().destinations["archive"].url == (final or url)


@pytest.mark.parametrize(
    "url",
    [
        *(
            "ftp://host/x",
            "dicom://host:104",
            "dicom://@host:104",
            "dicom://A@host",
            "dicom://A@:104",
            "dicom://A@host:0",
        ),
        *("dicom://A@host:65536", "dicom://A@host:abc", "dicom://A@host:-1", "dicom://A_NAME_OF_17_CHAR@host:1"),
        *(
            "dicom://A@ho st:104",
            "dicom://A@-host:104",
            "dicom://A@[::g]:104",
            "dicom://A@ho_st:1",
            "dicom://A@::1:104",
        ),
        *("folder:", "folder:~/x", "folder://x", "/srv/out", "archive", "7", "[a]", "", "dicom://A@host:٣"),
    ],
)
def test_urls_that_name_none_are_faults(folder: Folder, url: str) -> None:
    folder.write("destinations.yaml", f"archive: {url}\nfolder: folder:out\n")
    assert [(file, line) for file, line, _, _ in folder.faults() if file == "destinations.yaml"] == [
        ("destinations.yaml", 1)
    ]


def test_a_cohort_file_is_checked_with_its_lines(folder: Folder) -> None:
    folder.rule("{in_cohort: cohorts/a.csv}")
    folder.write(
        "cohorts/a.csv",
        f"hash,from,to\n# comment\n{HASH},2020-01-01,2021-01-01\nZZSYNTH,,\n{HASH},2021-01-01,2020-01-01\n"
        f"{HASH},01.02.2020,\n{HASH},,,\n\n{HASH}\n",
    )
    found = folder.faults()
    assert [(file, line) for file, line, _, _ in found] == [("a.csv", line) for line in (4, 5, 6, 7)]
    assert "ZZSYNTH" not in str(found)


def test_a_cohort_holds_every_window_of_a_person(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text(f"hash,from,to\n{HASH},2020-01-01,2020-12-31\n{HASH},2022-01-01,\n{'cd' * 32}\n")
    cohort = load_cohort(path)
    first, second = cohort[HASH]
    assert first.holds(date(2020, 1, 1))
    assert first.holds(date(2020, 12, 31))
    assert not first.holds(date(2021, 1, 1))
    assert not first.holds(None)
    assert second.holds(date(2099, 1, 1))
    (always,) = cohort["cd" * 32]
    assert always.holds(None)


def test_a_cohort_that_names_nobody_or_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    for data in (b"", b"hash,from,to\n", b"\xff\xfe\n"):
        path.write_bytes(data)
        with pytest.raises(PolicyError):
            load_cohort(path)
    with pytest.raises(PolicyError):
        load_cohort(tmp_path / "none.csv")


def test_a_cohort_hash_is_hmac_sha256_of_the_stripped_patient_id() -> None:
    key = bytes(range(32))
    expected = hmac.new(key, b"LEAK0001", hashlib.sha256).hexdigest()
    assert cohort_hash(key, "LEAK0001") == expected
    assert cohort_hash(key, " LEAK0001 \0") == expected


WORDS = (
    *("routes", "name", "when", "targets", "project", "policy", "destination", "modality", "small", "archive", "MR"),
    *("description", "in_cohort", "a"),
)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4),
    max_leaves=14,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.sampled_from(["routes.yaml", "destinations.yaml"]), st.dictionaries(st.sampled_from(WORDS), DATA, max_size=3))
def test_no_shape_of_data_makes_the_folder_raise_anything_but_policy_errors(
    folder: Folder, name: str, data: dict[str, object]
) -> None:
    folder.write("routes.yaml", ROUTES)
    folder.write("destinations.yaml", DESTINATIONS)
    folder.write(name, json.dumps(data))
    try:
        loaded = folder.load()
    except PolicyError:
        return
    assert loaded.routes.routes


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_make_the_cohort_loader_raise_anything_but_policy_errors(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "c.csv"
    path.write_bytes(data)
    with pytest.raises(PolicyError):
        load_cohort(path)
