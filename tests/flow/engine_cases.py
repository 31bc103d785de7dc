"""An engine over steps that are told what to do, and a look into its store from beside."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, text

from gateway.errors import StudyError
from gateway.flow import Engine, Next
from gateway.flow.queues import EMBEDDED


class Script:
    """Steps over a dict of job states. `act[(leg, key)]` is called inside the leg and may raise or wait."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.ran: list[tuple[str, str]] = []
        self.times: dict[tuple[str, str], list[float]] = {}
        self.act: dict[tuple[str, str], Callable[[], None]] = {}
        self.due: dict[str, Next] = {}  # what our tables would say is unfinished
        self.failed: dict[str, StudyError] = {}
        self.noted: Counter[str] = Counter()
        self.lanes: dict[str, str] = {}
        self.learned: set[str] = set()
        self.ranks: dict[str, int] = {}
        self.closed: set[str] = set()  # keys whose destination takes nothing now
        self.pause = 0.05
        self.limit = 5

    def _run(self, leg: str, key: str) -> None:
        with self.lock:
            self.ran.append((leg, key))
            self.times.setdefault((leg, key), []).append(time.time())
        act = self.act.get((leg, key))
        if act is not None:
            act()

    def _to(self, key: str, following: tuple[Next, ...]) -> tuple[Next, ...]:
        with self.lock:
            self.due.pop(key, None)
            for task in following:
                self.due[key] = task
        return following

    def intake(self, study_key: str, generation: int) -> tuple[Next, ...]:
        self._run("intake", study_key)
        return self._to(study_key, (Next("scrub", study_key, 1),))  # type: ignore[arg-type]

    def scrub(self, job_key: str) -> tuple[Next, ...]:
        self._run("scrub", job_key)
        return self._to(job_key, (Next("gate", job_key, 1),))  # type: ignore[arg-type]

    def gate(self, job_key: str) -> tuple[Next, ...]:
        self._run("gate", job_key)
        return self._to(job_key, (Next("forward", job_key, 1),))  # type: ignore[arg-type]

    def forward(self, job_key: str) -> tuple[Next, ...]:
        self._run("forward", job_key)
        return self._to(job_key, ())

    def decide(self, serial: int) -> tuple[Next, ...]:
        self._run("decide", str(serial))
        return ()

    def release(self, serial: int) -> tuple[Next, ...]:
        self._run("release", str(serial))
        return ()

    def recall(self, serial: int) -> tuple[Next, ...]:
        self._run("recall", str(serial))
        return ()

    def retain(self) -> bool:
        self._run("retain", "")
        return False

    def rank(self, task: Next) -> int:
        return self.ranks.get(task.key, 3)

    def is_open(self, task: Next) -> bool:
        return task.key not in self.closed

    def lane(self, task: Next) -> str:
        return self.lanes.get(task.key, "archive")

    def is_learned(self, task: Next) -> bool:
        return task.key in self.learned

    def fail(self, task: Next, error: StudyError) -> None:
        self.failed[task.key] = error
        self._to(task.key, ())

    def pause_s(self, tries: int) -> float:
        return self.pause

    def attempts_left(self, task: Next) -> bool:
        return task.tries + 1 < self.limit

    def note_attempt(self, task: Next, reason: str) -> None:
        self.noted[task.key] += 1

    def unforeseen(self, task: Next) -> None:
        pass

    def count(self, leg: str, key: str) -> int:
        with self.lock:
            return self.ran.count((leg, key))

    def ended(self, *keys: str) -> bool:
        return all(self.count("forward", key) for key in keys)


class Store:
    """Where the engine keeps its workflows; engines over it, and SQL on it."""

    def __init__(self, url: str, lock: Path) -> None:
        self.url = url
        self.lock = lock
        self.engines: list[Engine] = []

    @property
    def table(self) -> str:
        return "workflow_status" if self.url.startswith("sqlite") else "dbos.workflow_status"

    def engine(
        self,
        script: Script,
        *,
        lock: Path | None = None,
        workers: int = 4,
        executor_id: str = "",
        queues: Sequence[str] = EMBEDDED,
    ) -> Engine:
        """A started engine whose pending list is what `script` says is due."""
        made = Engine(
            steps=script,
            pending=lambda: list(script.due.values()),
            store_url=self.url,
            lock=lock or self.lock,
            executor_id=executor_id,
            queues=queues,
        )
        made.start(workers=workers)
        self.engines.append(made)
        return made

    def sql(self, statement: str, **values: Any) -> list[tuple[Any, ...]]:
        server = create_engine(self.url)
        try:
            with server.begin() as connection:
                result = connection.execute(
                    text(statement.replace("FROM workflow_status", f"FROM {self.table}")), values
                )
                return [tuple(row) for row in result.all()] if result.returns_rows else []
        finally:
            server.dispose()

    def statuses(self) -> dict[str, str]:
        return dict(self.sql("SELECT workflow_uuid, status FROM workflow_status"))  # type: ignore[arg-type]

    def everything(self) -> str:
        """All text that the store holds."""
        if self.url.startswith("sqlite"):
            folder = Path(self.url.removeprefix("sqlite:///")).parent
            return "".join(path.read_bytes().decode("latin-1") for path in folder.glob("engine.sqlite*"))
        tables = self.sql("SELECT table_name FROM information_schema.tables WHERE table_schema = 'dbos'")
        return "".join(str(self.sql(f'SELECT * FROM dbos."{name}"')) for (name,) in tables)

    def close(self) -> None:
        for engine in self.engines:
            engine.stop(timeout_s=2)


def wait_for(true: Callable[[], bool], *, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.02)
