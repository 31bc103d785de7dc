"""`demo`: a gateway with embedded defaults and a local archive on loopback, and real studies sent to it over DICOM.

The studies are pydicom's bundled test files, so nothing here is anybody's secret and values may be shown. The path is
the one that production takes: receiver, engine, header, gate, C-STORE. Only the PACS and the archive are the demo's.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pydicom
import yaml
from pydicom.data import get_testdata_file
from pydicom.uid import UID
from pynetdicom import AE, AllStoragePresentationContexts, evt
from pynetdicom.presentation import build_context

from gateway.app.serve import Gateway
from gateway.database import JobRow
from gateway.errors import EnvironmentFault
from gateway.pseudonyms import Pseudonyms
from gateway.settings import SHIPPED_POLICIES, Home, load_settings

STUDIES = (
    "CT_small.dcm",  # plain CT
    "693_J2KI.dcm",  # CT, JPEG 2000
    "MR_small.dcm",  # plain MR
    "examples_overlay.dcm",  # MR with an overlay plane
    "rtplan.dcm",  # implicit VR
    "rtdose.dcm",
    "examples_ybr_color.dcm",  # ultrasound clip, JPEG baseline
    "examples_palette.dcm",  # ultrasound, palette colour
    "SC_rgb_rle.dcm",  # secondary capture, RLE
    "waveform_ecg.dcm",
    "liver_1frame.dcm",  # segmentation
    "test-SR.dcm",  # structured report, no Patient ID
    "image_dfl.dcm",  # deflated, no Patient ID
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
LIMIT_S = 75.0


@dataclass(frozen=True, slots=True)
class DemoStudy:
    """One study of the demo as it ended; `file` is the pydicom test file it came from."""

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


def send_study(path: Path, port: int) -> int:
    """What a PACS does: one association, one object. Returns the DIMSE status, -1 when there was no answer."""
    dataset = pydicom.dcmread(path)
    pacs = AE(ae_title=PACS)
    pacs.requested_contexts = [build_context(dataset.SOPClassUID, dataset.file_meta.TransferSyntaxUID)]
    association = pacs.associate("127.0.0.1", port, ae_title="DEID")
    if not association.is_established:
        return -1
    try:
        status = association.send_c_store(dataset)
        return int(status.Status) if "Status" in status else -1
    finally:
        association.release()


def demo_policies(folder: Path, archive_port: int) -> Path:
    """The shipped policies, with the archive of the demo as research-archive."""
    shutil.copytree(SHIPPED_POLICIES, folder, ignore=shutil.ignore_patterns("__pycache__", "*.py"))
    text = yaml.safe_load((folder / "destinations.yaml").read_text("utf-8"))
    text["research-archive"] = f"dicom://{ARCHIVE}@127.0.0.1:{archive_port}"
    (folder / "destinations.yaml").write_text(yaml.safe_dump(text), "utf-8")
    return folder


def perform(root: Path, files: Sequence[str] = STUDIES) -> DemoReport:
    """Run the demo in `root`. Raises EnvironmentFault when the studies do not end in time."""
    began = time.monotonic()
    home = Home(root / "home")
    home.create()
    with local_archive(root / "archive") as archive_port:
        settings = load_settings(
            home.root,
            policies=demo_policies(root / "policies", archive_port),
            dicom_port=0,
            http_port=0,
            allowed_peers=(f"{PACS}@127.0.0.1",),
            quiet_s=1.5,
            poll_s=0.25,
            min_free_bytes=1 << 26,
        )
        gateway = Gateway(home, settings)
        gateway.start()
        try:
            paths = [Path(str(get_testdata_file(name, download=False))) for name in files]
            refused = [path.name for path in paths if send_study(path, gateway.receiver.port) != 0]
            if refused:
                raise EnvironmentFault(f"the gateway did not take {', '.join(refused)}; see {root / 'gateway.log'}")
            while not gateway.idle():
                if time.monotonic() - began > LIMIT_S:
                    raise EnvironmentFault(
                        f"the studies did not end within {LIMIT_S:.0f} s; see {root / 'gateway.log'}"
                    )
                time.sleep(0.1)
            return DemoReport(
                root=root,
                studies=tuple(_ended(gateway, path) for path in paths),
                excerpt=_excerpt(gateway, paths[0], root / "archive"),
                metrics=_metrics(gateway),
                archived=len(list((root / "archive").glob("*.dcm"))),
                seconds=time.monotonic() - began,
            )
        finally:
            gateway.stop()


def _ended(gateway: Gateway, path: Path) -> DemoStudy:
    dataset = pydicom.dcmread(path, stop_before_pixels=True)
    parts = gateway.parts
    study_key = parts.keys.opaque("study", str(dataset.StudyInstanceUID))
    count = len(parts.database.instances_of(study_key, 1))
    jobs = parts.database.jobs_of(study_key, 1)
    if jobs:
        return DemoStudy(path.name, dataset.Modality, count, jobs[0], str(jobs[0].state), jobs[0].reason)
    study = parts.database.study(study_key, 1)
    return DemoStudy(
        path.name, dataset.Modality, count, None, study.state if study else "?", study.reason if study else ""
    )


def _excerpt(gateway: Gateway, path: Path, archive: Path) -> tuple[tuple[str, str, str], ...]:
    before = pydicom.dcmread(path, stop_before_pixels=True)
    job = _ended(gateway, path).job
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
    """The demo's folder. Raises EnvironmentFault for one that has something in it."""
    if keep is None:
        return Path(tempfile.mkdtemp(prefix="deid-demo-"))
    if keep.exists() and any(keep.iterdir()):
        raise EnvironmentFault(f"{keep} is not empty; name a new folder")
    keep.mkdir(parents=True, exist_ok=True)
    return keep.absolute()
