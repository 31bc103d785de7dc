"""Policies: YAML that a privacy officer edits -> frozen, strict values, or every fault at once (DESIGN section 3)."""

from gateway.policy.cohorts import cohort_hash, load_cohort
from gateway.policy.destinations import Access, Destination
from gateway.policy.explain import explain_policy
from gateway.policy.folder import PolicySet, load_policies
from gateway.policy.loading import load_policy, read_snapshot
from gateway.policy.model import (
    CAME_LATER,
    DatePolicy,
    ForwardPolicy,
    GatePolicy,
    HeaderPolicy,
    NotAssessedEntry,
    Policy,
    Registry,
)
from gateway.policy.patient_id_section import PatientIdPolicy
from gateway.policy.release_section import EscalatePolicy, ReleasePolicy, RetainPolicy
from gateway.policy.routes import Route, Routes, Target
from gateway.policy.schema import policy_schema
from gateway.policy.standard import Row, load_table

__all__ = [
    "CAME_LATER",
    "Access",
    "DatePolicy",
    "Destination",
    "EscalatePolicy",
    "ForwardPolicy",
    "GatePolicy",
    "HeaderPolicy",
    "NotAssessedEntry",
    "PatientIdPolicy",
    "Policy",
    "PolicySet",
    "Registry",
    "ReleasePolicy",
    "RetainPolicy",
    "Route",
    "Routes",
    "Row",
    "Target",
    "cohort_hash",
    "explain_policy",
    "load_cohort",
    "load_policies",
    "load_policy",
    "load_table",
    "policy_schema",
    "read_snapshot",
]
