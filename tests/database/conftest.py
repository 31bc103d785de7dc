"""The same tests on both databases: SQLite always, PostgreSQL where it is installed (in CI it must be)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from gateway.database import Database
from tests import peers


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with peers.Postgres() as url:
        yield url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.peer)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """Fresh tables."""
    url = request.getfixturevalue("postgres") if request.param == "postgres" else ""
    if url:
        emptied = Database(url)
        with emptied.transaction() as connection:
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))
        emptied.close()
    opened = Database.in_home(tmp_path / "database.sqlite", url)
    yield opened
    opened.close()
