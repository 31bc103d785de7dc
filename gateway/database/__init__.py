"""Our own tables: the truth about studies, jobs and what was sent. The engine only carries the work (engine.md).

SQLite in the home by default, PostgreSQL by `DEID_DATABASE_URL`; the same SQLAlchemy Core statements for both. No
column ever holds a value out of a data set: keys are keyed hashes, names are ours, reasons are codes.
"""

from gateway.database.arrivals import NewInstance
from gateway.database.connection import Database
from gateway.database.job import Intent, Job, JobRow
from gateway.database.mappings import Mapped
from gateway.database.pauses import Pause
from gateway.database.processes import ProcessRow
from gateway.database.promises import Promise
from gateway.database.recalls import RecalledRow, RecallRow, Shipment
from gateway.database.release_members import MemberRow
from gateway.database.releases import NewMember, ReleaseRow
from gateway.database.retained import Retained, RetainedJob
from gateway.database.rights import Erasure, OptedOut, Subject
from gateway.database.studies import InstanceRow, StudyRow
from gateway.database.tables import SCHEMA_VERSION

__all__ = [
    "SCHEMA_VERSION",
    "Database",
    "Erasure",
    "InstanceRow",
    "Intent",
    "Job",
    "JobRow",
    "Mapped",
    "MemberRow",
    "NewInstance",
    "NewMember",
    "OptedOut",
    "Pause",
    "ProcessRow",
    "Promise",
    "RecallRow",
    "RecalledRow",
    "ReleaseRow",
    "Retained",
    "RetainedJob",
    "Shipment",
    "StudyRow",
    "Subject",
]
