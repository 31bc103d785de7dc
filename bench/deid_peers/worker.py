"""Runs inside a peer's environment: `worker.py NAME SOURCES TARGET`. Cleans a folder, prints figures as JSON.

Each tool is called file by file as its own documentation shows, reading and writing included. Imports, set-up and the
first file, which is cleaned once before the clock starts, are not counted.
"""

import json
import logging
import resource
import sys
import time
from pathlib import Path


def dicognito():
    import pydicom
    from dicognito.anonymizer import Anonymizer

    anonymizer = Anonymizer(seed="bench")

    def clean(source, target):
        with pydicom.dcmread(source, force=False) as dataset:
            anonymizer.anonymize(dataset)
            dataset.save_as(target, enforce_file_format=True)

    return clean


def deid():
    from deid.dicom import replace_identifiers
    from deid.logger import bot

    bot.level = -3

    def clean(source, target):
        replace_identifiers(
            dicom_files=[str(source)], deid="dicom", save=True, overwrite=True, output_folder=str(target.parent)
        )

    return clean


def dicom_anonymizer():
    from dicomanonymizer import anonymize_dicom_file

    return lambda source, target: anonymize_dicom_file(str(source), str(target))


def idiscore():
    import pydicom
    from idiscore.defaults import create_default_core

    core = create_default_core()

    def clean(source, target):
        core.deidentify(pydicom.dcmread(source)).save_as(target)

    return clean


def dicom_dre():
    from dicom_dre import DeidParameters, ProfileSpec, deidentify_paths

    spec, parameters = ProfileSpec(name="default"), DeidParameters()

    def clean(source, target):
        results = list(
            deidentify_paths(
                sources=[source],
                output_dir=target.parent,
                parameters=parameters,
                profile_spec=spec,
                rename_to_sop_uid=False,
            )
        )
        if not target.exists():
            raise RuntimeError(str(results[0].result.outcome))

    return clean


TOOLS = {
    "dicognito": dicognito,
    "deid": deid,
    "dicom-anonymizer": dicom_anonymizer,
    "idiscore": idiscore,
    "dicom-dre": dicom_dre,
}


def main():
    name, sources, target = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    logging.disable(logging.CRITICAL)
    target.mkdir(parents=True, exist_ok=True)
    clean = TOOLS[name]()
    files = sorted(sources.iterdir())
    errors: dict[str, int] = {}

    def attempt(source):
        try:
            clean(source, target / source.name)
        except Exception as error:  # noqa: BLE001 - what a peer raises is its own affair, and counted
            (target / source.name).unlink(missing_ok=True)
            return type(error).__name__ if type(error) is not RuntimeError else str(error)[:40]
        return ""

    attempt(files[0])  # tables are loaded when they are first needed, which is not what is measured
    (target / files[0].name).unlink(missing_ok=True)
    began, cpu = time.perf_counter(), time.process_time()
    for source in files:
        error = attempt(source)
        if error:
            errors[error] = errors.get(error, 0) + 1
    figures = {
        "files": len(files),
        "failed": sum(errors.values()),
        "seconds": time.perf_counter() - began,
        "cpu_seconds": time.process_time() - cpu,
        "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "errors": errors,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
