"""The process pool: who kills a worker is to blame alone, nothing outlives us, a stop cuts off without a verdict."""

from __future__ import annotations

import gc
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from pathlib import Path

import pytest

from gateway.app import workers as workers_module
from gateway.app.workers import Workers, settle
from gateway.errors import EnvironmentFault, Hold, Stopping
from gateway.process_settings import LEAST_WORKER_BYTES


def double(number: int) -> int:
    return 2 * number


def slow_double(number: int, seconds: float = 0.2) -> int:
    time.sleep(seconds)
    return 2 * number


def die() -> int:
    os.kill(os.getpid(), signal.SIGKILL)
    return 0


def die_once(mark: Path) -> str:
    """Dies the first time, and is well the second: an out-of-memory kill that hit the wrong one."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "well"


def loaded(*modules: str) -> list[str]:
    return [name for name in modules if name in sys.modules]


def held() -> int:
    raise Hold("header_failed", at="(0010,0010)")


def sleep_long(mark: Path) -> None:
    mark.write_text(str(os.getpid()))
    time.sleep(120)


def unfold(size_bytes: int) -> int:
    return len(bytearray(size_bytes))


def learned(size: int) -> float:
    """What maps much and writes little: torch with threads, and a codec."""
    import imagecodecs
    import numpy as np
    import torch

    image = np.arange(size * size, dtype=np.uint16).reshape(size, size)
    assert (imagecodecs.jpeg2k_decode(imagecodecs.jpeg2k_encode(image, reversible=True)) == image).all()
    return float(torch.nn.functional.conv2d(torch.ones(1, 1, size, size), torch.ones(1, 1, 3, 3)).max())


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers(2)
    yield made
    made.close()


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"


def looked_at_when_settled() -> tuple[int, int]:
    """How many objects the collector looks at once a worker has settled, and how many it passes over."""
    settle()
    return len(gc.get_objects()), gc.get_freeze_count()


def test_a_settled_worker_does_not_look_at_what_it_loaded_again(workers: Workers) -> None:
    looked_at, passed_over = workers.run(looked_at_when_settled)
    assert looked_at < 500 < 20_000 < passed_over


def test_results_come_in_order(workers: Workers) -> None:
    assert workers.each([partial(double, n) for n in range(40)]) == [2 * n for n in range(40)]
    assert workers.run(double, 21) == 42
    assert workers.gather([workers.submit(double, n) for n in (3, 1)]) == [6, 2]


def test_the_first_error_in_order_is_raised_after_all_have_ended(workers: Workers, tmp_path: Path) -> None:
    with pytest.raises(Hold) as error:
        workers.each([partial(slow_double, 1), held, partial(slow_double, 2, 0.5)])
    assert (error.value.reason, error.value.at) == ("header_failed", "(0010,0010)")


def test_who_kills_its_worker_is_to_blame_and_the_pool_is_whole_again(workers: Workers) -> None:
    with pytest.raises(BrokenProcessPool):
        workers.run(die)
    assert workers.run(double, 4) == 8


def test_a_worker_that_died_once_is_no_blame(workers: Workers, tmp_path: Path) -> None:
    assert workers.each([partial(die_once, tmp_path / "mark"), partial(double, 1)]) == ["well", 2]


def test_a_killer_beside_others_takes_nobody_with_it(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several studies at once in one pool; one of them kills every worker it gets, again and again."""
    blamed: list[int] = []
    ended: list[ProcessPoolExecutor] = []
    shutdown = ProcessPoolExecutor.shutdown

    def slowly(pool: ProcessPoolExecutor, **how: bool) -> None:
        ended.append(pool)
        time.sleep(0.05)  # time for another thread to come in
        shutdown(pool, **how)

    monkeypatch.setattr(ProcessPoolExecutor, "shutdown", slowly)

    def innocent(number: int) -> list[int]:
        return workers.each([partial(slow_double, number, 0.05) for _ in range(6)])

    def killer(_number: int) -> None:
        try:
            workers.each([partial(slow_double, 1, 0.02), die])
        except BrokenProcessPool:
            blamed.append(1)

    with ThreadPoolExecutor(6) as legs:
        killers = [legs.submit(killer, n) for n in range(2)]
        others = [legs.submit(innocent, n) for n in range(8)]
        assert [other.result() for other in others] == [[2 * n] * 6 for n in range(8)]
        for one in killers:
            one.result()
    assert len(blamed) == 2
    assert len(ended) == len({id(pool) for pool in ended})  # nobody's pipes are closed twice


def test_a_worker_that_hangs_is_killed_and_who_hung_it_is_to_blame(
    workers: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers.run(double, 1)
    monkeypatch.setattr(workers_module, "STALLED_S", 6.0)
    with ThreadPoolExecutor(2) as legs:
        hanging = legs.submit(workers.run, sleep_long, tmp_path / "mark")
        other = legs.submit(workers.each, [partial(slow_double, n, 0.7) for n in range(11)])  # longer than that
        assert other.result() == [2 * n for n in range(11)]
        with pytest.raises(BrokenProcessPool):
            hanging.result()
    assert not alive(int((tmp_path / "mark").read_text()))
    assert workers.run(double, 4) == 8


def test_closing_cuts_off_what_runs_without_a_verdict_and_leaves_no_process(tmp_path: Path) -> None:
    workers = Workers(2)
    ended: list[type[BaseException]] = []

    def leg() -> None:
        try:
            workers.each([partial(sleep_long, tmp_path / f"{n}") for n in range(4)])
        except BaseException as error:  # noqa: BLE001 - whatever it is
            ended.append(type(error))

    thread = threading.Thread(target=leg)
    thread.start()
    deadline = time.monotonic() + 20
    while len([path for path in tmp_path.iterdir() if path.read_text()]) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    pids = [int(path.read_text()) for path in tmp_path.iterdir()]
    began = time.monotonic()
    workers.close()
    thread.join(timeout=10)
    assert ended == [Stopping]
    assert time.monotonic() - began < 5
    assert not any(map(alive, pids))
    with pytest.raises(Stopping):
        workers.run(double, 1)
    workers.close()  # once more does no harm


def test_workers_outlive_the_thread_that_used_them_first(workers: Workers) -> None:
    """Legs come on threads that may end."""
    first = threading.Thread(target=lambda: workers.run(double, 1))
    first.start()
    first.join()
    time.sleep(0.3)
    pool = workers._pool
    assert workers.run(double, 2) == 4
    assert workers._pool is pool


def test_a_worker_loads_neither_the_engine_nor_torch(workers: Workers) -> None:
    assert workers.run(loaded, "dbos", "torch", "pynetdicom") == []


def test_workers_die_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; from test_workers import sleep_long; from gateway.app.workers import Workers\n"
        "if __name__ == '__main__':\n"
        "    Workers(1).run(sleep_long, pathlib.Path(sys.argv[1]))\n"
    )
    (tmp_path / "parent.py").write_text(script)
    mark = tmp_path / "mark"
    here = Path(__file__).parent
    parent = subprocess.Popen(
        [sys.executable, str(tmp_path / "parent.py"), str(mark)],
        env={"PYTHONPATH": f"{here}:{here.parent.parent}", "PATH": "/usr/bin:/bin"},
    )
    deadline = time.monotonic() + 30
    while not mark.exists() or not mark.read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    pid = int(mark.read_text())
    assert alive(pid)
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 10
    while alive(pid):
        assert time.monotonic() < deadline, "an orphan goes on"
        time.sleep(0.02)


@pytest.fixture
def limited() -> Iterator[Workers]:
    made = Workers(1, memory_bytes=LEAST_WORKER_BYTES)
    yield made
    made.close()


def test_a_call_that_unfolds_beyond_the_limit_ends_alone_and_the_worker_goes_on(limited: Workers) -> None:
    with pytest.raises(MemoryError):
        limited.run(unfold, 2 * LEAST_WORKER_BYTES)
    assert limited.run(unfold, 1 << 20) == 1 << 20


def test_the_least_limit_leaves_room_for_codecs_and_learned_parts(limited: Workers) -> None:
    assert limited.run(learned, 256) == 9.0


def test_without_a_limit_there_is_none(workers: Workers) -> None:
    assert workers.run(resource.getrlimit, resource.RLIMIT_DATA) == resource.getrlimit(resource.RLIMIT_DATA)


def test_a_path_of_temporary_files_that_no_socket_fits_under_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """unix(7): 107 bytes, of which 32 are the server's own."""
    code = (
        "from gateway.app.workers import Workers\nworkers = Workers(1)\nprint(workers.run(int, '7'))\nworkers.close()"
    )
    with tempfile.TemporaryDirectory() as short:
        longest = Path(short) / ("x" * (75 - len(short) - 1))
        longest.mkdir()
        environment = {**os.environ, "TMPDIR": str(longest)}
        ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert ran.stdout == "7\n"
        monkeypatch.setattr(tempfile, "tempdir", f"{longest}x")
        with pytest.raises(EnvironmentFault, match="TMPDIR is too long"):
            Workers(1)
