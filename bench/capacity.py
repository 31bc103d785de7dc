"""What a back-load needs: receivers, workers, GPUs, disk, database, days; by a simulation from measured unit costs.

    python -m bench.capacity [--studies 10000000] [--days 365]

Unit costs come from `bench/results/*.json` (CPU of the machine that those were measured on; each with the file that it
stands in) and from two measurements made here: bytes of the database and of sealed references. Nobody has measured a
hospital's mix of studies or a GPU here: those are assumptions, named as such in the output. The simulation runs hour by
hour: the PACS gives studies in its hours at a pace, sizes vary from study to study, what the workers do not manage in
an hour waits, and the fewest cores are searched with which all is sent within the days.
"""

from __future__ import annotations

import argparse
import json
import platform
import secrets
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from gateway.database import Database, Job, NewInstance
from gateway.embed.sealed import Entry, SealingKeys, seal
from gateway.study import Clearance, ClearedInstance, State

RESULTS = Path(__file__).parent / "results"
HOURS_A_WEEK = 168
SPREAD = 0.6  # of the cost of a study of one kind, as a share of its mean
BUSY_MAX = 0.7  # of what is bought: the rest is for retries, failures of machines, and the hospital's own studies
CORES_A_NODE = 32
CT_CLASS, UID = "1.2.840.10008.5.1.4.1.1.2", "2.25." + "1" * 38


@dataclass(frozen=True)
class Kind:
    """One kind of study. `volumes`: series of a head that are defaced; `read_s`: CPU of one reading of one picture."""

    name: str
    share: float
    instances: int
    instance_mb: float
    pictures: int  # that a text reader looks at: slices, films, frames
    read_share: float  # of pictures that the screen does not settle
    read_s: float
    volumes: int = 0


def measured(name: str) -> dict[str, Any]:
    return dict(json.loads((RESULTS / f"{name}.json").read_text()))


def unit_costs() -> dict[str, float]:
    """CPU seconds, each as its result file has it."""
    receive, send, header = measured("receive"), measured("send"), measured("header")
    text, deface, memory = measured("gate_text"), measured("deface"), measured("deface_memory")
    kinds = text["clean"]["kinds"]
    return {
        "receive_s_per_file": receive["figures"]["gateway"]["light_4"]["cpu_ms_per_file"] / 1000,
        "header_s_per_file": header["figures"]["gateway"]["cpu_ms_per_file"] / 1000,
        "send_s_per_file": send["figures"]["gateway"]["nodelay_4"]["cpu_ms_per_file"] / 1000,
        "screen_s_per_slice": text["screen"]["cpu_ms_per_slice_median"] / 1000,
        "read_share_of_slices": text["screen"]["clean_slices_read_share"],
        "read_s_per_slice": kinds["slice"]["cpu_s_per_frame_median"],
        "read_s_per_film": kinds["radiograph"]["cpu_s_per_frame_median"],
        "read_s_per_frame": kinds["dicom"]["cpu_s_per_frame_median"],
        "deface_s_per_volume": deface["cpu_seconds_median"],
        "face_check_s_per_volume": memory["residual_face"]["cpu_seconds"],
        "lesion_s_per_study_cpu": measured("lesion")["seconds"]["flow, 4 steps"],
    }


def mix(cost: dict[str, float]) -> list[Kind]:
    """Assumed: a general hospital's studies. Ultrasound is read frame by frame, once for each still part of a loop."""
    slices = (cost["read_share_of_slices"], cost["read_s_per_slice"])
    return [
        Kind("radiograph", 0.50, 2, 12.0, 2, 1.0, cost["read_s_per_film"]),
        Kind("CT", 0.20, 400, 0.5, 400, *slices),
        Kind("head CT", 0.05, 200, 0.5, 200, *slices, volumes=2),
        Kind("MR", 0.09, 300, 0.3, 300, *slices),
        Kind("head MR", 0.06, 300, 0.3, 300, *slices, volumes=4),
        Kind("ultrasound", 0.10, 30, 1.0, 30, 1.0, cost["read_s_per_frame"]),
    ]


STAGES = {  # stage set -> what of a study's work it has
    "header only": (),
    "and burned-in text": ("text",),
    "and faces": ("text", "face"),
}
ASSUMED = {
    "gate_times_header": 2.0,  # reading and searching every byte of the candidate, in units of the header stage
    "passes_of_text": 2.0,  # stage and gate each look at every picture
    "gpu_times_core": 30.0,  # one GPU does what so many of these cores do, in the learned stages
    "lesion_share": 0.02,  # studies under `lesion_preserving`, where it is used
    "references_share": 1.0,  # studies whose policy has checks of releases
    "originals_days": 30.0,  # retention
}


def seconds_a_study(kind: Kind, cost: dict[str, float], stages: tuple[str, ...]) -> float:
    """CPU of the workers."""
    a_file = cost["header_s_per_file"] * (1 + ASSUMED["gate_times_header"]) + cost["send_s_per_file"]
    total = kind.instances * a_file
    if "text" in stages:
        screen = cost["screen_s_per_slice"] if kind.read_share < 1 else 0.0
        total += ASSUMED["passes_of_text"] * kind.pictures * (screen + kind.read_share * kind.read_s)
    if "face" in stages:
        total += kind.volumes * (cost["deface_s_per_volume"] + cost["face_check_s_per_volume"])
    return total


def open_hours(first: int, last: int) -> np.ndarray:
    """(168,) bool from Monday 00:00: from `first` to `last` o'clock overnight, and all of the weekend."""
    hour, day = np.arange(HOURS_A_WEEK) % 24, np.arange(HOURS_A_WEEK) // 24
    return (hour >= first) | (hour < last) | (day >= 5)


def simulate(
    studies: int, cores: float, per_hour: float, open_: np.ndarray, means: np.ndarray, shares: np.ndarray, seed: int = 1
) -> tuple[float, float, float]:
    """(days until all is sent, most studies that waited, share of the cores that was busy). `means`: CPU seconds (K,).

    It gives up after ten years.
    """
    random = np.random.default_rng(seed)
    left, waiting_s, waiting, most, busy_s, hour = float(studies), 0.0, 0.0, 0.0, 0.0, 0
    while (left > 0 or waiting_s > 1.0) and hour < 10 * 365 * 24:
        if open_[hour % HOURS_A_WEEK] and left > 0:
            came = random.poisson(np.minimum(per_hour, left) * shares)
            came_s = float(np.maximum(0.0, random.normal(came * means, SPREAD * means * np.sqrt(came))).sum())
            left, waiting, waiting_s = left - float(came.sum()), waiting + float(came.sum()), waiting_s + came_s
        done_s = min(waiting_s, cores * 3600.0)
        waiting *= 1 - done_s / waiting_s if waiting_s else 0.0
        waiting_s, busy_s = waiting_s - done_s, busy_s + done_s
        most, hour = max(most, waiting), hour + 1
    return hour / 24, most, busy_s / (cores * 3600.0 * hour)


def fewest_cores(
    studies: int, days: float, per_hour: float, open_: np.ndarray, means: np.ndarray, shares: np.ndarray
) -> int:
    """By halving; each try is a whole simulation."""
    low, high = 1, 1
    while simulate(studies, high, per_hour, open_, means, shares)[0] > days:
        low, high = high, 2 * high
        if high > 1 << 20:
            raise SystemExit("no number of cores is enough: the PACS's hours and pace are")
    while low < high:
        middle = (low + high) // 2
        if simulate(studies, middle, per_hour, open_, means, shares)[0] > days:
            low = middle + 1
        else:
            high = middle
    return high


def database_bytes(studies: int = 10, instances: int = 60) -> tuple[float, float]:
    """(bytes a study, bytes an instance) of our own tables, written as the gateway writes them, measured on SQLite."""

    def written(count: int) -> int:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "database.sqlite"
            database = Database.in_home(path)
            empty = path.stat().st_size
            for _ in range(studies):
                _write_study(database, count)
            database.checkpoint()
            database.close()
            return path.stat().st_size - empty

    one, many = written(1), written(instances)
    an_instance = (many - one) / (studies * (instances - 1))
    return max(0.0, one / studies - an_instance), an_instance


def _write_study(database: Database, count: int) -> None:
    """A study that was received, routed, cleared and sent."""
    key = secrets.token_hex(12)
    arrived = [NewInstance(key, f"{secrets.token_hex(16)}.dcm", secrets.token_hex(12), 1) for _ in range(count)]
    database.record_instances(arrived)
    job = Job(secrets.token_hex(12), key, 1, "brain-mr", "brain", "research-basic", "0" * 64, "research-archive")
    database.route_study(key, 1, [job])
    cleared = [
        ClearedInstance(f"{number:04d}", CT_CLASS, UID, UID, "0" * 64, "0" * 64, 500_000) for number in range(count)
    ]
    clearance = Clearance(
        job.job_key, "0" * 64, job.destination, "gate", ("residual_identifiers=pass",), (), tuple(cleared), "0" * 64
    )
    database.set_job(job.job_key, state=State.SENT, clearance=clearance.to_json(), verdicts="[]", steps="[]")
    with database.transaction() as connection:
        rows = [(job.job_key, one.name, 0, "success", 1, 0.0) for one in cleared]
        statement = "INSERT INTO outgoing (job_key, name, status, kind, attempts, at) VALUES (?, ?, ?, ?, ?, ?)"
        connection.exec_driver_sql(statement, rows)


def reference_bytes(dimensions: int = 256) -> int:
    """Of one sealed embedding of an original."""
    entry = Entry(np.zeros(dimensions, np.float32), "0" * 24)
    return len(seal(entry, SealingKeys.of(secrets.token_bytes(32)), name="a/b/c", now=0.0))


def plan(studies: int, days: float, first: int, last: int) -> dict[str, Any]:
    """All figures. The PACS is asked for a tenth more an hour than the days would need."""
    cost = unit_costs()
    kinds, open_ = mix(cost), open_hours(first, last)
    shares = np.array([kind.share for kind in kinds])
    per_hour = 1.1 * studies / (days / 7 * open_.sum())
    files = sum(kind.share * kind.instances for kind in kinds)
    megabytes = sum(kind.share * kind.instances * kind.instance_mb for kind in kinds)
    of_study, of_instance = database_bytes()
    rows = []
    for name, stages in STAGES.items():
        means = np.array([seconds_a_study(kind, cost, stages) for kind in kinds])
        cores = fewest_cores(studies, days, per_hour, open_, means, shares)
        lasted, most, busy = simulate(studies, cores, per_hour, open_, means, shares)
        bought = int(np.ceil(cores / BUSY_MAX))
        rows.append(
            {
                "stages": name,
                "cpu_s_per_study": round(float(means @ shares), 2),
                "worker_cores": bought,
                "nodes": int(np.ceil(bought / CORES_A_NODE)),
                "days": round(lasted, 1),
                "most_studies_waiting": round(most),
                "cores_busy": round(busy * cores / bought, 2),
            }
        )
    receive_s = per_hour * files * cost["receive_s_per_file"] / 3600
    lesion_s = studies * ASSUMED["lesion_share"] * cost["lesion_s_per_study_cpu"]
    return {
        "command": "python -m bench.capacity",
        "machine": platform.machine(),
        "studies": studies,
        "days_wanted": days,
        "synthetic": True,
        "measured": {name: round(value, 5) for name, value in cost.items()},
        "assumed": {
            **ASSUMED,
            "busy_max": BUSY_MAX,
            "cores_a_node": CORES_A_NODE,
            "mix": [asdict(one) for one in kinds],
        },
        "pacs_studies_per_hour": round(per_hour),
        "open_hours_a_week": int(open_.sum()),
        "files": round(studies * files),
        "terabytes": round(studies * megabytes / 1e6, 1),
        "network_mb_per_s": round(per_hour * megabytes / 3600, 1),
        "receiver_cores": int(np.ceil(receive_s / BUSY_MAX)),
        "workers": rows,
        "gpus": int(np.ceil(lesion_s / ASSUMED["gpu_times_core"] / (days * 86400) / BUSY_MAX)),
        "spool_terabytes": round(studies * megabytes / days * ASSUMED["originals_days"] / 1e6, 1),
        "database_bytes_per_study": round(of_study),
        "database_bytes_per_instance": round(of_instance),
        "database_gigabytes": round(studies * (of_study + files * of_instance) / 1e9, 1),
        "references_gigabytes": round(studies * ASSUMED["references_share"] * reference_bytes() / 1e9, 1),
    }


def show(result: dict[str, Any]) -> None:
    """For people: the assumptions first."""
    console = Console(width=110)
    console.print("measured, CPU seconds:", result["measured"])
    console.print("assumed, measured by nobody here:", result["assumed"])
    table = Table(title=f"{result['studies']:,} studies in {result['days_wanted']:g} days")
    for column in ("stages", "CPU s a study", "worker cores", f"nodes of {CORES_A_NODE}", "days", "most waiting"):
        table.add_column(column)
    for row in result["workers"]:
        names = ("stages", "cpu_s_per_study", "worker_cores", "nodes", "days", "most_studies_waiting")
        table.add_row(*(f"{row[name]:,}" if not isinstance(row[name], str) else row[name] for name in names))
    console.print(table)
    for name in ("pacs_studies_per_hour", "network_mb_per_s", "receiver_cores", "gpus", "files", "terabytes"):
        console.print(f"{name}: {result[name]:,}")
    for name in ("spool_terabytes", "database_gigabytes", "references_gigabytes"):
        console.print(f"{name}: {result[name]:,}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=10_000_000)
    parser.add_argument("--days", type=float, default=365.0)
    parser.add_argument("--nights", default="20-6", help="hours of the PACS on working days; weekends are open")
    asked = parser.parse_args(arguments)
    result = plan(asked.studies, asked.days, *map(int, asked.nights.split("-")))
    (RESULTS / "capacity.json").write_text(json.dumps(result, indent=1) + "\n")
    show(result)


if __name__ == "__main__":
    main()
