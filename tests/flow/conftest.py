"""The same engine tests on both stores: SQLite always, PostgreSQL where it is installed (in CI it must be)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from engine_cases import Store
from peers import Postgres
from sqlalchemy import create_engine, text


@pytest.fixture(scope="session")
def engine_postgres() -> Iterator[str]:
    with Postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.peer)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store. Engines that a test leaves running are stopped."""
    url = f"sqlite:///{tmp_path}/engine.sqlite"
    if request.param == "postgres":
        url = request.getfixturevalue("engine_postgres")
        server = create_engine(url)
        with server.begin() as connection:
            connection.execute(text("DROP SCHEMA IF EXISTS dbos CASCADE"))
        server.dispose()
    made = Store(url, tmp_path / "engine.lock")
    yield made
    made.close()


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[Store]:
    """An empty SQLite store, for what does not depend on the store."""
    made = Store(f"sqlite:///{tmp_path}/engine.sqlite", tmp_path / "engine.lock")
    yield made
    made.close()
