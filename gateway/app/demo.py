"""`demo`: a gateway with embedded defaults and a local archive on loopback, and real studies sent to it over DICOM.
Then two releases of drawn films, of which one is blocked and one is cleared (`demo_releases`).

The studies are pydicom's bundled test files, so nothing here is anybody's secret and values may be shown. The path is
the one that production takes: receiver, engine, header, gate, C-STORE. Only the PACS and the archive are the demo's.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pydicom
import pydicom.data
import yaml
from pydicom.uid import UID
from pynetdicom import AE, AllStoragePresentationContexts, evt
from pynetdicom.presentation import build_context

from gateway.app.demo_releases import AE_TITLE, DemoRelease, add_film_policies, film_studies, releases_of
from gateway.app.serve import Gateway
from gateway.database import JobRow
from gateway.errors import EnvironmentFault, UsageError
from gateway.pseudonyms import Pseudonyms
from gateway.settings import SHIPPED_POLICIES, Home, load_settings

TEST_FILES = Path(pydicom.data.__file__).parent / "test_files"
STUDIES = (
    ("CT_small.dcm",),  # plain CT
    ("693_J2KI.dcm",),  # CT, JPEG 2000
    tuple(f"dicomdirtests/77654033/CT2/{name}" for name in ("17106", "17136", "17166", "17196")),  # a CT of four slices
    ("MR_small.dcm",),  # plain MR
    ("examples_overlay.dcm",),  # MR with an overlay plane
    ("rtplan.dcm",),  # implicit VR
    ("rtdose.dcm",),
    ("examples_ybr_color.dcm",),  # ultrasound clip, JPEG baseline
    ("examples_palette.dcm",),  # ultrasound, palette colour
    ("SC_rgb_rle.dcm",),  # secondary capture, RLE
    ("waveform_ecg.dcm",),
    ("liver_1frame.dcm",),  # segmentation
    ("test-SR.dcm",),  # structured report, no Patient ID
    ("image_dfl.dcm",),  # deflated, no Patient ID
)
EXCERPT = (
    *("PatientName", "PatientID", "PatientBirthDate", "PatientSex", "StudyDate", "StudyTime", "AccessionNumber"),
    *("InstitutionName", "ReferringPhysicianName", "StudyDescription", "SeriesDescription", "StationName"),
    *("Manufacturer", "SliceThickness", "KVP", "Rows", "StudyInstanceUID", "SOPInstanceUID", "PatientIdentityRemoved"),
)
DASHBOARD = (
    "deid_associations",
    "deid_instances_",
    "deid_jobs_decided",
    "deid_gate_findings",
    "deid_queue",
    "deid_ledger",
)
PACS = "PACS"
ARCHIVE = "ARCHIVE"
LIMIT_S = 300.0  # a guard against waiting for ever: quiet machines take 15 s


@dataclass(frozen=True, slots=True)
class DemoStudy:
    """One study of the demo as it ended; `file` is the pydicom test file, or folder, it came from."""

    file: str
    modality: str
    instances: int
    job: JobRow | None
    state: str
    reason: str


@dataclass(frozen=True, slots=True)
class DemoReport:
    """Everything that the demo shows."""

    root: Path
    studies: tuple[DemoStudy, ...]
    excerpt: tuple[tuple[str, str, str], ...]  # attribute, before, after
    metrics: tuple[str, ...]
    archived: int
    seconds: float
    releases: tuple[DemoRelease, ...] = ()


@contextmanager
def local_archive(folder: Path) -> Iterator[int]:
    """A storage SCP that writes what it gets, as it gets it. Yields its port."""
    folder.mkdir(parents=True, exist_ok=True)

    def store(event: Any) -> int:
        uid = UID(event.request.AffectedSOPInstanceUID)
        (folder / f"{uid}.dcm").write_bytes(event.encoded_dataset())
        return 0x0000

    archive = AE(ae_title=ARCHIVE)
    for context in AllStoragePresentationContexts:
        archive.add_supported_context(str(context.abstract_syntax), pydicom.uid.AllTransferSyntaxes)
    server = archive.start_server(("127.0.0.1", 0), block=False, evt_handlers=[(evt.EVT_C_STORE, store)])
    if server is None:
        raise EnvironmentFault("the archive of the demo did not start")
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()


def send_study(paths: Sequence[Path], port: int, calling: str = PACS) -> bool:
    """What a PACS does: one association for a study. True when every object was answered with success."""
    datasets = [pydicom.dcmread(path) for path in paths]
    pacs = AE(ae_title=calling)
    wanted = {(str(ds.SOPClassUID), str(ds.file_meta.TransferSyntaxUID)) for ds in datasets}
    pacs.requested_contexts = [build_context(*pair) for pair in sorted(wanted)]
    association = pacs.associate("127.0.0.1", port, ae_title="DEID")
    if not association.is_established:
        return False
    try:
        answers = [association.send_c_store(ds) for ds in datasets]
        return all("Status" in answer and answer.Status == 0x0000 for answer in answers)
    finally:
        association.release()


def _send_all(studies: Sequence[Sequence[Path]], port: int, calling: str = PACS) -> list[str]:
    """Send every study; returns the first file of each that was not taken.

    On a thread of its own: Ctrl-C then waits for the association that is under way. Cut off in the middle of one,
    pynetdicom leaves a thread behind that keeps the process from ending.
    """
    pacs = ThreadPoolExecutor(1, thread_name_prefix="pacs")
    try:
        answers = [pacs.submit(send_study, paths, port, calling) for paths in studies]
        return [paths[0].name for paths, answer in zip(studies, answers, strict=True) if not answer.result()]
    finally:
        pacs.shutdown(wait=True, cancel_futures=True)


def demo_policies(folder: Path, archive_port: int) -> Path:
    """The shipped policies, with the archive of the demo as research-archive."""
    shutil.copytree(SHIPPED_POLICIES, folder, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    text = yaml.safe_load((folder / "destinations.yaml").read_text("utf-8"))
    text["research-archive"] = f"dicom://{ARCHIVE}@127.0.0.1:{archive_port}"
    (folder / "destinations.yaml").write_text(yaml.safe_dump(text), "utf-8")
    add_film_policies(folder, "research-archive")
    return folder


@contextmanager
def unconfigured() -> Iterator[None]:
    """Without the user's own DEID_*: the demo must not touch their database, nor fail over their settings."""
    theirs = {name: value for name, value in os.environ.items() if name.upper().startswith("DEID_")}
    for name in theirs:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(theirs)


def perform(
    root: Path,
    studies: Sequence[Sequence[str]] = STUDIES,
    *,
    releases: bool = True,
    tick: Callable[[str], None] = lambda _said: None,
) -> DemoReport:
    """Run the demo in `root`, with pydicom's test files, and with drawn films if `releases` are asked for; `tick` is
    told what is waited for. Raises EnvironmentFault when they do not end in time.
    """
    with unconfigured():
        return _perform(root, [[TEST_FILES / name for name in study] for study in studies], releases, tick)


def _perform(
    root: Path,
    studies: Sequence[Sequence[Path]],
    releases: bool,  # noqa: FBT001
    tick: Callable[[str], None],
) -> DemoReport:
    began = time.monotonic()
    home = Home(root / "home")
    home.create()
    with local_archive(root / "archive") as archive_port:
        settings = load_settings(
            home.root,
            policies=demo_policies(root / "policies", archive_port),
            dicom_port=0,
            http_port=0,
            allowed_peers=(f"{PACS}@127.0.0.1", f"{AE_TITLE}@127.0.0.1"),
            quiet_s=1.5,
            poll_s=0.25,
            min_free_bytes=1 << 26,
        )
        gateway = Gateway(home, settings)
        gateway.start()
        try:
            refused = _send_all(studies, gateway.receiver.port)
            if refused:
                raise EnvironmentFault(f"the gateway did not take {', '.join(refused)}; see {root / 'gateway.log'}")
            while not gateway.idle():
                if time.monotonic() - began > LIMIT_S:
                    raise EnvironmentFault(
                        f"the studies did not end within {LIMIT_S:.0f} s; see {root / 'gateway.log'}"
                    )
                time.sleep(0.1)
            report = DemoReport(
                root=root,
                studies=tuple(_ended(gateway, paths) for paths in studies),
                excerpt=_excerpt(gateway, studies[0][0], root / "archive"),
                metrics=_metrics(gateway),
                archived=len(list((root / "archive").glob("*.dcm"))),
                seconds=time.monotonic() - began,
            )
            if not releases:
                return report
            films = film_studies(root / "films")
            if _send_all(films, gateway.receiver.port, AE_TITLE):
                raise EnvironmentFault(f"the gateway did not take every film; see {root / 'gateway.log'}")
            found = releases_of(gateway, tick)
            return replace(report, releases=found, seconds=time.monotonic() - began)
        finally:
            gateway.stop()


def _ended(gateway: Gateway, paths: Sequence[Path]) -> DemoStudy:
    dataset = pydicom.dcmread(paths[0], stop_before_pixels=True)
    parts = gateway.parts
    study_key = parts.keys.opaque("study", str(dataset.StudyInstanceUID))
    name = paths[0].name if len(paths) == 1 else "/".join(paths[0].parts[-3:-1])
    count = len(parts.database.instances_of(study_key, 1))
    job = next(iter(parts.database.jobs_of(study_key, 1)), None)
    if job is not None:
        return DemoStudy(name, dataset.Modality, count, job, str(job.state), job.reason)
    study = parts.database.study(study_key, 1)
    state, reason = (study.state, study.reason) if study is not None else ("lost", "")
    return DemoStudy(name, dataset.Modality, count, None, state, reason)


def _excerpt(gateway: Gateway, path: Path, archive: Path) -> tuple[tuple[str, str, str], ...]:
    before = pydicom.dcmread(path, stop_before_pixels=True)
    job = _ended(gateway, [path]).job
    if job is None:
        return ()
    mapping = Pseudonyms.of_project(gateway.parts.keys.master, job.project)
    arrived = archive / f"{mapping.uid(before.SOPInstanceUID)}.dcm"
    if not arrived.exists():
        return ()
    after = pydicom.dcmread(arrived, stop_before_pixels=True)
    return tuple(
        (word, str(before.get(word, "(absent)")), str(after.get(word, "(absent)")))
        for word in EXCERPT
        if word in before or word in after
    )


def _metrics(gateway: Gateway) -> tuple[str, ...]:
    with urlopen(f"http://127.0.0.1:{gateway.status.port}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    shown = [line for line in lines if line.startswith(DASHBOARD) and "_created" not in line]
    return tuple(line for line in shown if not line.endswith(" 0.0"))


def new_root(keep: Path | None) -> Path:
    """The demo's folder. Raises UsageError for one that has something in it."""
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="deid-demo-"))
    if keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise UsageError(f"{keep} is there already and is not an empty folder; name a new one")
    keep.mkdir(parents=True, exist_ok=True)
    return keep.absolute()
