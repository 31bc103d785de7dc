"""Metrics that carry no identifier: label values are codes and names of policy files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Metric
from prometheus_client.registry import Collector

Labels = tuple[tuple[str, str], ...]
Totals = Mapping[str, Mapping[tuple[str, Labels], float]]  # metric -> sample and its labels -> value


class Metrics(Collector):
    """Every metric of the gateway, in a registry of its own. Label values are bounded: codes, names of policy files."""

    def __init__(self) -> None:
        self.elsewhere: Callable[[], Iterable[Totals]] = list  # what other processes of this gateway count
        self.registry = CollectorRegistry(auto_describe=True)
        at = self.registry
        self.associations = Counter("deid_associations", "Associations by what became of them", ["result"], registry=at)
        self.open_associations = Gauge("deid_open_associations", "Associations open now", registry=at)
        self.receivers = Gauge("deid_receiver_processes", "Receiver processes that take associations", registry=at)
        self.receivers_lost = Counter(
            "deid_receiver_processes_lost", "Receiver processes that ended by themselves", registry=at
        )
        self.received = Counter("deid_instances_received", "C-STORE requests by answer", ["result"], registry=at)
        self.received_bytes = Counter("deid_received_bytes", "Bytes of data sets taken in", registry=at)
        self.store_seconds = Histogram("deid_store_seconds", "From C-STORE request to answer", registry=at)
        self.studies_closed = Counter("deid_study_generations_closed", "Study generations completed", registry=at)
        self.stage_seconds = Histogram(
            "deid_stage_seconds",
            "Time of one leg of a job",
            ["stage"],
            buckets=(0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800),
            registry=at,
        )
        self.decided = Counter(
            "deid_jobs_decided", "Jobs by final state, with reason", ["state", "reason"], registry=at
        )
        self.attempts = Counter(
            "deid_level_attempts",
            "Studies judged at a level: passed, escalated to the next one, held because none is left",
            ["policy", "level", "result"],
            registry=at,
        )
        self.findings = Counter("deid_gate_findings", "Residuals found by the gate", ["check"], registry=at)
        self.generated = Counter(
            "deid_generated_frames",
            "Frames that were made anew, by where their originals lie in the domain of the card",
            ["policy", "place"],
            registry=at,
        )
        self.sent = Counter(
            "deid_instances_sent", "Instances by answer of the archive", ["destination", "kind"], registry=at
        )
        self.archive_seconds = Histogram(
            "deid_archive_seconds",
            "From the study's close to the archive's last answer, holds and all",
            buckets=(60, 300, 900, 3600, 14400, 43200, 86400, 259200),
            registry=at,
        )
        self.sent_bytes = Counter("deid_sent_bytes", "Bytes of cleared files sent", ["destination"], registry=at)
        self.jobs = Gauge("deid_jobs", "Jobs by state and reason now", ["state", "reason"], registry=at)
        self.processes = Gauge("deid_processes", "Processes that share the work, by role", ["role"], registry=at)
        self.studies = Gauge(
            "deid_studies",
            "Study generations without a job yet, by state and reason now",
            ["state", "reason"],
            registry=at,
        )
        self.queue_depth = Gauge("deid_queue_depth", "Jobs that still have work to do", registry=at)
        self.oldest_seconds = Gauge("deid_oldest_unfinished_seconds", "Age of the oldest job at work", registry=at)
        self.disk_free_bytes = Gauge("deid_spool_free_bytes", "Free space where the spool lies", registry=at)
        self.ledger_lines = Gauge("deid_ledger_lines", "Decisions in the ledger", registry=at)
        self.releases = Gauge("deid_releases", "Releases by policy and state now", ["policy", "state"], registry=at)
        self.release_score = Gauge(
            "deid_release_score",
            "Leak scores of the last releases: estimate, upper bound and limit (the worst distance of a card)",
            ["policy", "release", "check", "card", "attack", "view", "scope", "kind"],
            registry=at,
        )
        self.library_failures = Counter("deid_unforeseen_failures", "Exceptions nobody foresaw", ["stage"], registry=at)
        self._add_machine(at)
        self._add_releases(at)

    def totals(self) -> Totals:
        """What this process has counted, for another one to add to its own."""
        return {
            family.name: {
                (sample.name, tuple(sample.labels.items())): sample.value
                for sample in family.samples
                if sample.value and not sample.name.endswith("_created")
            }
            for family in self.registry.collect()
        }

    def collect(self) -> Iterator[Metric]:
        """Every metric, with what is counted elsewhere added to it."""
        others = list(self.elsewhere())
        for family in self.registry.collect():
            added: dict[tuple[str, Labels], float] = {}
            for totals in others:
                for key, value in totals.get(family.name, {}).items():
                    added[key] = added.get(key, 0.0) + value
            family.samples = [
                sample._replace(value=sample.value + added.pop((sample.name, tuple(sample.labels.items())), 0.0))
                for sample in family.samples
            ]
            for (name, labels), value in added.items():
                family.add_sample(name, dict(labels), value)
            yield family

    def _add_machine(self, at: CollectorRegistry) -> None:
        """How well the gateway itself is, and what it tells people."""
        self.part_ok = Gauge("deid_part_ok", "1 while a part of the gateway is well", ["part"], registry=at)
        self.ledger_ok = Gauge("deid_ledger_ok", "1 while the ledger's chain holds", registry=at)
        self.oldest_held_seconds = Gauge("deid_oldest_held_seconds", "Age of the oldest held study", registry=at)
        self.disk_total_bytes = Gauge("deid_spool_total_bytes", "Size of the disk where the spool lies", registry=at)
        self.disk_least_bytes = Gauge("deid_spool_least_bytes", "Free space below which nothing is taken", registry=at)
        self.retrying = Gauge(
            "deid_destination_retrying_jobs", "Jobs whose last try to send failed", ["destination"], registry=at
        )
        self.destination_open = Gauge(
            "deid_destination_open",
            "1 while studies are sent there: in its hours, not paused",
            ["destination"],
            registry=at,
        )
        self.destination_waiting = Gauge(
            "deid_destination_waiting_jobs", "Cleared jobs that are not sent yet", ["destination"], registry=at
        )
        self.backload_items = Gauge(
            "deid_backload_items",
            "Entries and studies of back-loads under way",
            ["source", "kind", "state"],
            registry=at,
        )
        self.expires = Gauge(
            "deid_expires_timestamp_seconds", "When a certificate ends, in UTC seconds", ["what"], registry=at
        )
        self.notified = Counter(
            "deid_notifications", "Messages to people by what became of them", ["channel", "result"], registry=at
        )
        self.notifications = Gauge("deid_notifications_waiting", "Messages that wait to be sent", registry=at)
        self.notifications_seconds = Gauge(
            "deid_notifications_oldest_seconds", "Age of the oldest message that is overdue", registry=at
        )

    def _add_releases(self, at: CollectorRegistry) -> None:
        """What the last releases say of themselves. `encoder` is the card that found most, "" for a check without."""
        told = ["policy", "release", "encoder"]

        def figure(name: str, says: str, labels: list[str] = told) -> tuple[Gauge, Gauge]:
            """The estimate and its one-sided bound."""
            upper = Gauge(f"deid_release_{name}_upper", f"{says}: upper bound", labels, registry=at)
            return Gauge(f"deid_release_{name}", says, labels, registry=at), upper

        self.release_linkability = figure("linkability", "D_sys over its permutation null, worst attack")
        self.release_rank1 = figure("rank1", "Rate of people found first in a gallery, worst attack")
        self.release_accuracy = figure(
            "balanced_accuracy", "Balanced accuracy of inferring an attribute", [*told, "attribute"]
        )
        labels = ["policy", "release"]
        self.release_group = Gauge(
            "deid_release_smallest_group", "People who share all kept attributes, smallest group", labels, registry=at
        )
        self.release_people = Gauge("deid_release_people", "People of a release", labels, registry=at)
        self.release_looks = Gauge("deid_release_looks", "How often a release was judged", labels, registry=at)
        self.release_residuals = Gauge(
            "deid_release_residual_findings", "Residuals that the gate found", [*labels, "check"], registry=at
        )
        self.release_stages = Gauge(
            "deid_release_stage_instances", "Instances that a stage went over", [*labels, "stage"], registry=at
        )
        self.release_levels = Gauge(
            "deid_release_level_studies",
            "Studies of a release by the level they have now",
            [*labels, "level"],
            registry=at,
        )
        self.release_blocked = Gauge(
            "deid_release_last_blocked_timestamp_seconds", "When a release was last blocked", ["policy"], registry=at
        )
