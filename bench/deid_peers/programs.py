"""What is no Python de-identifier: gdcmanon, dcmodify, a plain copy, and pydicom reading and writing unchanged.

gdcmanon and dcmodify take a whole folder in one call; the call on no file is measured too and taken off, so that their
start does not count. gdcmanon is from Debian's libgdcm-tools, which `apt` installs where the benchmark runs as root.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pydicom

# What the programs are told to do away with, by tag: names, ids, addresses, institution, accession.
IDENTITY = (
    *("0010,0010", "0010,0020", "0010,0030", "0010,1040", "0008,0080"),
    *("0008,0081", "0008,0090", "0008,1050", "0008,1070", "0008,0050"),
)


def apt(package: str, program: str) -> bool:
    """True when the program is there, installing its package when that is possible."""
    if shutil.which(program):
        return True
    if os.geteuid() == 0 and shutil.which("apt-get"):
        call = ["apt-get", "-qq", "-o", "DPkg::Lock::Timeout=300", "install", "-y", "--no-install-recommends", package]
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(call, check=False, capture_output=True, env=environment)
    return shutil.which(program) is not None


def certificate(folder: Path) -> list[str]:
    """A throw-away certificate, which gdcmanon's own profile encrypts the original attributes for."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    call = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=bench", "-days", "2"]
    subprocess.run([*call, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    return ["-c", str(certificate)]


def gdcmanon(arguments: list[str]) -> Callable[[Path, Path], list[str]]:
    return lambda sources, target: ["gdcmanon", *arguments, "-r", "--continue", "-i", str(sources), "-o", str(target)]


def dumb_arguments() -> list[str]:
    return ["--dumb", *(part for tag in IDENTITY for part in ("--empty", tag))]


def dcmodify(_: Path, target: Path) -> list[str]:
    """In place: the caller has put the files there."""
    erased = [part for tag in IDENTITY for part in ("-ea", f"({tag})")]
    return ["dcmodify", "-q", "-nb", "-ie", "-ep", "-gst", "-gse", "-gin", *erased, *map(str, sorted(target.iterdir()))]


def run_program(call: list[str], *, any_end: bool = False) -> tuple[float, float]:
    """Seconds of wall and of CPU time of a program. `any_end`: it may complain, as one that is given no file does."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(call, check=False, capture_output=True)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode and not any_end:
        raise RuntimeError(f"{call[0]} ended with {done.returncode}")
    return seconds, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def in_process(clean: Callable[[Path, Path], object], sources: Path, target: Path) -> tuple[float, float]:
    """Seconds of wall and of CPU time of a function over every file of a folder."""
    began, cpu = time.perf_counter(), time.process_time()
    for source in sorted(sources.iterdir()):
        clean(source, target / source.name)
    return time.perf_counter() - began, time.process_time() - cpu


def read_and_write(source: Path, target: Path) -> None:
    pydicom.dcmread(source).save_as(target)
