"""How DBOS is set up in this process: one name and version for ever, JSON only, nothing sent to anybody."""

from __future__ import annotations

from typing import Any

from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer
from dbos._serialization import DefaultSerializer

from gateway.flow.compact import compact_store
from gateway.observe import silence_libraries

APPLICATION_VERSION = "deid-gateway-1"  # condition 2: pinned, or an upgrade strands what is queued


def set_up(store_url: str, executor_id: str) -> None:
    """Before workflows are registered and DBOS is launched. Numbers of conditions are those of engine.py."""
    DefaultSerializer.serialize = _no_pickle  # type: ignore[method-assign,assignment]
    DefaultSerializer.deserialize = _no_pickle  # type: ignore[method-assign,assignment]
    config: DBOSConfig = {
        "name": "deid-gateway",
        "system_database_url": store_url,
        "application_version": APPLICATION_VERSION,
        "executor_id": executor_id,
        "serializer": DBOSPortableJSONSerializer(),
        "enable_otlp": False,
        "log_level": "WARNING",
    }
    compact_store(store_url)
    DBOS(config=config)
    silence_libraries()  # DBOS has just given itself a handler that prints texts


def _no_pickle(*_arguments: object) -> Any:
    # Condition 4: a planted py_pickle row would otherwise execute code.
    raise RuntimeError("pickle is blocked in the engine's store")
