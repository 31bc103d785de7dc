"""Settings of one process among several: where the tables lie, and which part of the work it does. Part of
`settings.Settings`.
"""

from __future__ import annotations

from urllib.parse import parse_qs, urlencode

from pydantic import Field, field_validator, model_validator

from gateway.message_settings import MessageSettings, Words, words_of

RECEIVE, WORK_CPU, WORK_GPU, WEB, ALL = "receive", "work-cpu", "work-gpu", "web", "all"
# A network that loses packets tells nobody: whoever waits for PostgreSQL gives up after some 25 s (libpq's parameters).
PATIENCE = {
    "connect_timeout": 10,
    "tcp_user_timeout": 20_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}
ROLES = (RECEIVE, WORK_CPU, WORK_GPU, WEB)
LEAST_WORKER_BYTES = 1 << 30  # codecs and torch write to some 250 MB before any study


class ProcessSettings(MessageSettings):
    """One process does everything on the embedded database; on PostgreSQL any number share the work and the home."""

    database_url: str = Field("", description="SQLAlchemy URL; empty = SQLite in HOME (embedded)")
    roles: Words = Field(
        (ALL,), description="what this process does: receive, work-cpu, work-gpu, web, comma separated; or all"
    )

    worker_memory_bytes: int = Field(
        0, ge=0, description="memory of one worker process, beyond which its study is held; 0 = all there is"
    )

    @field_validator("worker_memory_bytes")
    @classmethod
    def _room_to_start(cls, most: int) -> int:
        if 0 < most < LEAST_WORKER_BYTES:
            raise ValueError(f"no worker can start in that; 0, or {LEAST_WORKER_BYTES} and more")
        return most

    @field_validator("database_url")
    @classmethod
    def _patient(cls, url: str) -> str:
        base, _, said = url.partition("?")
        missing = {name: value for name, value in PATIENCE.items() if name not in parse_qs(said)}
        if not base.startswith("postgresql") or not missing:
            return url
        return f"{base}?{'&'.join(filter(None, (said, urlencode(missing))))}"

    @field_validator("roles", mode="before")
    @classmethod
    def _split_roles(cls, value: object) -> object:
        return words_of(value)

    @field_validator("roles")
    @classmethod
    def _role(cls, roles: tuple[str, ...]) -> tuple[str, ...]:
        if not roles or set(roles) - {*ROLES, ALL} or len(set(roles)) < len(roles):
            raise ValueError(f"one or more of {', '.join(ROLES)}, each once; or {ALL}")
        if ALL in roles and len(roles) > 1:
            raise ValueError(f"{ALL} is all of them; name it alone")
        return roles

    @model_validator(mode="after")
    def _one_process_when_embedded(self) -> ProcessSettings:
        if self.roles != (ALL,) and not self.clustered:
            raise ValueError(
                "DEID_ROLES other than all share the work between processes, and the embedded database takes one only; "
                "set DEID_DATABASE_URL to a PostgreSQL database"
            )
        return self

    @property
    def clustered(self) -> bool:
        """Several processes may work on this home."""
        return self.database_url.startswith("postgresql")

    def plays(self, *roles: str) -> bool:
        """Whether this process has one of these roles."""
        return self.roles == (ALL,) or bool(set(roles) & set(self.roles))
