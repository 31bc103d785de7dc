"""What is written about a study carries no identifier: our own lines by construction, others' by losing their text."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from gateway.observe import FIELDS, log, origin, start_logging
from gateway.observe.metrics import Metrics

NAME = "Zamenhof^Ludwik"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Everything that this process logs; the process is as before afterwards."""
    root = logging.getLogger()
    handlers, level, raising = root.handlers[:], root.level, logging.raiseExceptions
    hooks = sys.excepthook, threading.excepthook
    written = io.StringIO()
    with warnings.catch_warnings():
        start_logging(written, level=logging.DEBUG)
        yield written
    logging.captureWarnings(capture=False)
    root.handlers[:], logging.raiseExceptions = handlers, raising
    root.setLevel(level)
    sys.excepthook, threading.excepthook = hooks


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_with_its_event_and_fields(stream: io.StringIO) -> None:
    log("job_held", job="ab12", reason="no_route", attempt=0, seconds=0.25, at="")
    (line,) = lines(stream)
    assert str(line.pop("time")).endswith("Z")
    assert line == {
        "level": "info",
        "event": "job_held",
        "job": "ab12",
        "reason": "no_route",
        "attempt": 0,
        "seconds": 0.25,
    }


@pytest.mark.parametrize("field", ["message", "patient", "value", "text", "error", "name", "uid"])
def test_there_is_no_field_for_a_value(stream: io.StringIO, field: str) -> None:
    assert field not in FIELDS
    with pytest.raises(KeyError, match=field):
        log("job_held", **{field: NAME})
    assert stream.getvalue() == ""


def test_an_event_alone_makes_a_line(stream: io.StringIO) -> None:
    log("stopped")
    assert lines(stream)[0]["event"] == "stopped"


def test_an_object_is_named_by_its_type_and_a_path_by_itself(stream: io.StringIO) -> None:
    log("started", home=Path("/var/lib/deid"), kind=ValueError(NAME))
    (line,) = lines(stream)
    assert (line["home"], line["kind"]) == ("/var/lib/deid", "ValueError")


def test_other_libraries_records_keep_their_origin_and_lose_their_text(stream: io.StringIO) -> None:
    for library in ("pydicom", "pynetdicom.acse", "dbos", "sqlalchemy.engine", "something.else"):
        logging.getLogger(library).warning("Patient %s", NAME)
        logging.getLogger(library).error("broken format %d", NAME)
    try:
        raise ValueError(NAME)
    except ValueError:
        logging.getLogger("pynetdicom").exception(NAME)
    written = lines(stream)
    assert "Zamenhof" not in stream.getvalue()
    assert len(written) == 11
    assert {line["event"] for line in written} == {"library_message"}
    assert str(written[0]["origin"]).startswith("pydicom:test_observe:")
    assert written[-1]["exception"] == "ValueError"


def test_a_dict_that_another_library_logs_is_not_taken_for_ours(stream: io.StringIO) -> None:
    logging.getLogger("pydicom").warning("%(patient)s", {"patient": NAME})
    assert "Zamenhof" not in stream.getvalue()


def test_warnings_of_pydicom_that_quote_a_value_do_not_reach_the_stream(stream: io.StringIO) -> None:
    from pydicom.dataset import Dataset

    dataset = Dataset()
    dataset.add_new(0x00100030, "DA", "19xx-Zamenhof")  # BirthDate: pydicom warns and quotes it
    dataset.add_new(0x0020000D, "UI", "1.2.Zamenhof")
    warnings.warn(f"invalid value for VR PN: {NAME}", stacklevel=1)
    written = lines(stream)
    assert len(written) >= 2  # they are counted, not lost
    assert "Zamenhof" not in stream.getvalue()
    assert {line["event"] for line in written} == {"library_message"}


def test_a_thread_that_dies_says_where_and_not_what(stream: io.StringIO) -> None:
    def fail() -> None:
        raise ValueError(NAME)

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    (line,) = lines(stream)
    assert line["event"] == "thread_failed"
    assert str(line["exception"]).startswith("ValueError in ")
    assert "Zamenhof" not in stream.getvalue()


def test_a_process_that_dies_says_where_and_not_what() -> None:
    program = textwrap.dedent(
        f"""
        import logging, warnings
        from gateway.observe import start_logging
        start_logging()
        warnings.warn("value {NAME}")
        logging.getLogger("pydicom").warning("value %s %s", "{NAME}")
        raise RuntimeError("value {NAME}")
        """
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert "Zamenhof" not in ended.stdout + ended.stderr
    assert json.loads(ended.stderr.splitlines()[-1])["exception"] == "RuntimeError in __main__:7"


def test_the_origin_of_an_exception_is_its_type_and_innermost_place() -> None:
    def fail() -> None:
        int(NAME)

    with pytest.raises(ValueError, match="invalid literal") as failed:
        fail()
    assert origin(failed.value) == f"ValueError in {__name__}:{fail.__code__.co_firstlineno + 1}"
    assert origin(KeyError(NAME)) == "KeyError in ?"


def test_metrics_are_in_a_registry_of_their_own_and_ours_by_name() -> None:
    one, two = Metrics(), Metrics()
    one.received.labels("stored").inc()
    one.decided.labels("held", "no_route").inc(2)
    text = generate_latest(one.registry).decode()
    assert 'deid_instances_received_total{result="stored"} 1.0' in text
    assert 'deid_jobs_decided_total{reason="no_route",state="held"} 2.0' in text
    assert 'result="stored"' not in generate_latest(two.registry).decode()
    names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
    assert all(name.startswith("deid_") for name in names)
    assert all(f"# HELP {name} " in text for name in names)


def test_what_other_processes_count_is_added() -> None:
    here, there = Metrics(), Metrics()
    here.received.labels("success").inc(2)
    here.store_seconds.observe(0.2)
    there.received.labels("success").inc(3)
    there.received.labels("refused").inc()
    there.store_seconds.observe(0.2)
    there.open_associations.set(4)
    here.elsewhere = lambda: [there.totals(), there.totals()]
    lines = generate_latest(here).decode().splitlines()
    assert 'deid_instances_received_total{result="success"} 8.0' in lines
    assert 'deid_instances_received_total{result="refused"} 2.0' in lines
    assert "deid_store_seconds_count 3.0" in lines
    assert 'deid_store_seconds_bucket{le="0.25"} 3.0' in lines
    assert 'deid_store_seconds_bucket{le="0.1"} 0.0' in lines
    assert "deid_open_associations 4.0" not in lines
    assert "deid_open_associations 8.0" in lines
    assert here.registry.get_sample_value("deid_instances_received_total", {"result": "success"}) == 2
    here.elsewhere = list
    assert generate_latest(here) == generate_latest(here.registry)


def test_no_label_is_meant_for_a_value() -> None:
    several = [metric for metric in vars(Metrics()).values() if isinstance(metric, tuple)]
    metrics = [*vars(Metrics()).values(), *(one for pair in several for one in pair)]
    labels = {label for metric in metrics for label in getattr(metric, "_labelnames", ())}
    told = {"result", "stage", "state", "reason", "check", "destination", "source", "kind", "part", "what", "channel"}
    told |= {"role", "place"}  # of a process; of a picture, in the domain of its card
    of_releases = {"policy", "release", "card", "encoder", "attribute", "attack", "scope", "level"}  # files, numbers
    of_releases |= {"view"}  # of an image: whole, background, lesion
    assert labels <= told | of_releases
