"""Gives back the space of deleted workflows in an embedded store (engine.md condition 9)."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

from sqlalchemy import make_url

from gateway.observe import log, origin

WORTH_BYTES = 16 << 20  # of free pages; less is used again soon


def compact_store(store_url: str) -> bool:
    """VACUUM a SQLite store that is half empty, while nobody has it open. True when it was done.

    PostgreSQL does this by itself. What cannot be compacted is left as it is: the engine will say why.
    """
    url = make_url(store_url)
    if url.get_backend_name() != "sqlite" or not url.database or not Path(url.database).exists():
        return False
    try:
        connection = sqlite3.connect(url.database, isolation_level=None)
        try:
            page_bytes, pages, free = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_size", "page_count", "freelist_count")
            )
            if free * 2 < pages or free * page_bytes < WORTH_BYTES:
                return False
            connection.execute("VACUUM")
        finally:
            connection.close()
    except sqlite3.Error as error:
        log("not_compacted", level=logging.WARNING, exception=origin(error))
        return False
    log("store_compacted", bytes=free * page_bytes)
    return True
