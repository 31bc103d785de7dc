"""Everything that the steps of a gateway work with, wired once by `serve`."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.app.person.mapping import Mapper
from gateway.app.policy.loaded import Policies
from gateway.app.workers import Workers
from gateway.database import Database
from gateway.ledger import Ledger
from gateway.observe.metrics import Metrics
from gateway.pseudonyms import Keys
from gateway.settings import Home, Settings
from gateway.spool import Spool


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that the steps work with."""

    home: Home
    settings: Settings
    keys: Keys
    spool: Spool
    database: Database
    ledger: Ledger
    metrics: Metrics
    policies: Policies
    workers: Workers
    mapper: Mapper
