"""Tables. Times are UTC seconds since the epoch (float); keys are opaque hex; states and reasons are codes."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Index, Integer, MetaData, String, Table, Text, UniqueConstraint

SCHEMA_VERSION = 3  # what each step adds: migrations.py

metadata = MetaData()
_Serial = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows only in a column declared INTEGER

schema = Table("schema_version", metadata, Column("version", Integer, primary_key=True))

# One row per study and generation: a generation is what arrived before a quiet period; late instances open the next.
studies = Table(
    "studies",
    metadata,
    Column("study_key", String(64), primary_key=True),
    Column("generation", Integer, primary_key=True),
    Column("first_at", Float, nullable=False),
    Column("last_at", Float, nullable=False),
    Column("expected", Integer, nullable=False, default=0),  # 0 = not told
    Column("closed_at", Float),  # NULL while instances may still come
    Column("routed_at", Float),  # NULL until its jobs exist
    Column("reason", String(64), nullable=False, default=""),  # why it was held before any job existed
    Column("state", String(32), nullable=False, default="received"),
    Column("round", Integer, nullable=False, default=1),  # reruns asked for: names the next intake leg
    Column("changed_at", Float),  # last change of state
)

instances = Table(
    "instances",
    metadata,
    Column("serial", _Serial, primary_key=True, autoincrement=True),
    Column("study_key", String(64), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("name", String(64), nullable=False),  # in the spool
    Column("sop_key", String(64), nullable=False),  # keyed hash of the SOP Instance UID
    Column("received_at", Float, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False, default=""),  # of the data set; filled at intake
    Column("patient_key", String(64), nullable=False, default=""),  # keyed hash of the Patient ID; filled at intake
    Column("issuer_key", String(64), nullable=False, default="", server_default=""),  # of its issuer, "" = none named
    Column("use", String(16), nullable=False, default="new"),  # new, use, duplicate, conflict, dropped
    Column("removed_at", Float),  # when retention took the file out of the spool
    UniqueConstraint("study_key", "name"),
    Index("instances_by_study", "study_key", "generation"),
    Index("instances_by_sop", "sop_key"),
)

# One row per target of a study generation.
jobs = Table(
    "jobs",
    metadata,
    Column("job_key", String(64), primary_key=True),
    Column("study_key", String(64), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("route", String(128), nullable=False),
    Column("project", String(128), nullable=False),
    Column("policy", String(128), nullable=False),
    Column("policy_digest", String(64), nullable=False),
    Column("destination", String(128), nullable=False),
    Column("subject", String(64), nullable=False, default=""),  # pseudonymous Patient ID within the project
    Column("issue", Integer, nullable=False, default=1, server_default="1"),  # enters instance and series UIDs
    Column("level", Integer, nullable=False, default=0, server_default="0"),  # of the policy's `escalate`, from 0
    Column("state", String(32), nullable=False),
    Column("reason", String(64), nullable=False, default=""),
    Column("at", String(256), nullable=False, default=""),  # tag path or our file name
    Column("held_in", String(16), nullable=False, default=""),  # header, gate, forward
    Column("attempt", Integer, nullable=False, default=0),  # forward attempts since the last decision
    Column("round", Integer, nullable=False, default=1),  # decisions taken: names the next legs
    Column("created_at", Float, nullable=False),
    Column("updated_at", Float, nullable=False),
    Column("clearance", Text, nullable=False, default=""),  # JSON
    Column("verdicts", Text, nullable=False, default=""),  # JSON
    Column("steps", Text, nullable=False, default=""),  # JSON: what the stages did, as counts
    Index("jobs_by_study", "study_key", "generation"),
    Index("jobs_by_state", "state"),
)

# One row per instance that a job sends.
outgoing = Table(
    "outgoing",
    metadata,
    Column("job_key", String(64), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("status", Integer, nullable=False),  # DIMSE status of the last attempt
    Column("kind", String(16), nullable=False),  # success, warning, failure
    Column("attempts", Integer, nullable=False),
    Column("at", Float, nullable=False),
)

# Requests for storage commitment to archives, by a Transaction UID of ours. `asked` maps new UIDs to instance names.
promises = Table(
    "promises",
    metadata,
    Column("transaction_uid", String(64), primary_key=True),
    Column("job_key", String(64), nullable=False, index=True),
    Column("asked_at", Float, nullable=False),
    Column("answered_at", Float),  # NULL until the archive has said
    Column("asked", Text, nullable=False),
    Column("kept", Text, nullable=False),  # names that the archive committed to
)

# Other processes append here; the one engine process polls, acts, and marks them done.
intents = Table(
    "intents",
    metadata,
    Column("serial", _Serial, primary_key=True, autoincrement=True),
    Column("kind", String(32), nullable=False),  # release, rerun, reject
    Column("key", String(64), nullable=False),  # job key or study key
    Column("actor", String(128), nullable=False),
    Column("reason", String(512), nullable=False),
    Column("created_at", Float, nullable=False),
    Column("done_at", Float),
    Column("outcome", String(128), nullable=False, default=""),
)

# Processes that share this database: who is there, and when each was last heard of, by the clock of the database.
processes = Table(
    "processes",
    metadata,
    Column("executor", String(32), primary_key=True),  # new at every start
    Column("roles", String(64), nullable=False),
    Column("machine", String(64), nullable=False),  # whose kernel it runs on
    Column("entered_at", Float, nullable=False),
    Column("beat_at", Float, nullable=False),
)

# Which key of the ring a person of a project was first mapped with; it stays through every rotation.
people = Table(
    "people",
    metadata,
    Column("project", String(128), primary_key=True),
    Column("person_key", String(64), primary_key=True),  # keyed hash of the (surviving) Patient ID
    Column("key_id", String(32), nullable=False),
    Column("first_at", Float, nullable=False),
)

# What one piece of work (a job, a study of a `scrub`) was mapped with. What has left binds what comes after it.
mapped = Table(
    "mapped",
    metadata,
    Column("work_key", String(64), primary_key=True),
    Column("project", String(128), nullable=False),
    Column("study_key", String(64), nullable=False),
    Column("person_key", String(64), nullable=False),
    Column("key_id", String(32), nullable=False),
    Column("source", String(16), nullable=False),  # keyed, lookup
    Column("table_key", String(64), nullable=False, default=""),  # keyed hash of the tables that were followed
    Column("mapped_at", Float, nullable=False),
    Column("issued_at", Float),  # NULL until something of it may have left
    Index("mapped_by_study", "project", "study_key"),
)

# Pseudonyms that may have left, for good: none is ever given to somebody else.
issued = Table(
    "issued",
    metadata,
    Column("project", String(128), primary_key=True),
    Column("pseudonym_key", String(64), primary_key=True),  # keyed hash
    Column("person_key", String(64), nullable=False),
    Column("source", String(16), nullable=False),
    Column("issued_at", Float, nullable=False),
    Index("issued_by_person", "project", "person_key"),
)

# Studies of a policy that are judged together. `policy` and `number` make its name; a digest of its own for each row.
releases = Table(
    "releases",
    metadata,
    Column("serial", _Serial, primary_key=True, autoincrement=True),
    Column("policy", String(128), nullable=False),
    Column("number", Integer, nullable=False),
    Column("policy_digest", String(64), nullable=False),
    Column("project", String(128), nullable=False),
    Column("destination", String(128), nullable=False),
    Column("state", String(32), nullable=False),  # open, auditing, cleared, sent, blocked
    Column("round", Integer, nullable=False, default=1),  # names its legs
    Column("opened_at", Float, nullable=False),
    Column("checked_at", Float, nullable=False),  # last night that asked whether it may close
    Column("updated_at", Float, nullable=False),
    Column("closed_at", Float),
    Column("looks", Integer, nullable=False, default=0),  # how often it was judged
    Column("reason", String(64), nullable=False, default=""),
    Column("at", String(256), nullable=False, default=""),
    Column("scores", Text, nullable=False, default=""),  # JSON: figures by check, card and attack
    UniqueConstraint("policy", "number"),
    Index("releases_by_state", "state"),
)

# A job in a release. It stays in one that was blocked when it is tried again in another.
release_members = Table(
    "release_members",
    metadata,
    Column("job_key", String(64), primary_key=True),
    Column("release", BigInteger, primary_key=True),
    Column("person", String(64), nullable=False),  # keyed hash
    Column("session", String(64), nullable=False),  # keyed hash of the day, or the study's key
    Column("references", String(80), nullable=False),  # folder of its embeddings, encrypted
    Column("facts", Text, nullable=False, default=""),  # JSON: attributes as keyed hashes
    Column("joined_at", Float, nullable=False),
    Column("removed_at", Float),  # when retention removed the references
    Index("members_by_release", "release"),
)

# As what a job leaves: written before anything of it does. New UIDs, and the pseudonym encrypted.
shipments = Table(
    "shipments",
    metadata,
    Column("job_key", String(64), primary_key=True),
    Column("sealed_pseudonym", Text, nullable=False),
    Column("study_uid", String(64), nullable=False),
    Column("series", Text, nullable=False),  # JSON: name of an instance -> new Series Instance UID
)

# At which level of `escalate` a study leaves: written before the first of it does, and what follows keeps to it.
levels = Table(
    "levels",
    metadata,
    Column("project", String(128), primary_key=True),
    Column("study_key", String(64), primary_key=True),
    Column("issue", Integer, primary_key=True),
    Column("policy_digest", String(64), nullable=False),
    Column("level", Integer, nullable=False),
    Column("since", Float, nullable=False),
)

# What somebody asked receivers to give up, and each job of it.
recalls = Table(
    "recalls",
    metadata,
    Column("serial", _Serial, primary_key=True, autoincrement=True),
    Column("intent", BigInteger, nullable=False, unique=True),
    Column("scope", String(16), nullable=False),  # release, study, pseudonym, subject
    Column("key", String(160), nullable=False),  # name of the release, else an opaque key
    Column("code", String(16), nullable=False),  # of CID 7011: why
    Column("actor", String(128), nullable=False),
    Column("reason", String(512), nullable=False),
    Column("created_at", Float, nullable=False),
)

recalled = Table(
    "recalled",
    metadata,
    Column("serial", _Serial, primary_key=True, autoincrement=True),
    Column("recall", BigInteger, nullable=False),
    Column("job_key", String(64), nullable=False),
    Column("destination", String(128), nullable=False),
    Column("instances", Integer, nullable=False),
    Column("note", String(16), nullable=False),  # none, due, sent, failed: the rejection note to this receiver
    Column("reason", String(64), nullable=False, default=""),  # why it was not sent
    Column("at", String(256), nullable=False, default=""),
    Column("attempt", Integer, nullable=False, default=0),
    Column("round", Integer, nullable=False, default=1),  # names its legs
    Column("changed_at", Float, nullable=False),
    UniqueConstraint("recall", "job_key"),
    Index("recalled_by_job", "job_key"),
)

# Instances and series that were issued anew, by the number of their last issue.
reissued = Table(
    "reissued",
    metadata,
    Column("project", String(128), primary_key=True),
    Column("study_key", String(64), primary_key=True),
    Column("uid_key", String(64), primary_key=True),  # keyed hash of the original UID
    Column("issue", Integer, nullable=False),
)

# People who do not want to be in any release. Keyed hashes only.
opted_out = Table(
    "opted_out",
    metadata,
    Column("person_key", String(64), primary_key=True),
    Column("issuer_key", String(64), primary_key=True),  # "" = whoever issued the Patient ID
    Column("since", Float, nullable=False),
    Column("ended_at", Float),  # when they opted in again
    Column("actor", String(128), nullable=False),
    Column("reason", String(512), nullable=False),
)

# People whose data is to be gone: whatever had arrived by then.
erasures = Table(
    "erasures",
    metadata,
    Column("serial", _Serial, primary_key=True, autoincrement=True),
    Column("person_key", String(64), nullable=False),
    Column("issuer_key", String(64), nullable=False),
    Column("requested_at", Float, nullable=False),
    Column("actor", String(128), nullable=False),
    Column("reason", String(512), nullable=False),
    Column("done_at", Float),
    Column("removed", Text, nullable=False, default=""),  # JSON: how many of each kind
    UniqueConstraint("person_key", "issuer_key", "requested_at"),
)
