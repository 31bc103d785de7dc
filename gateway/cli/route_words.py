"""What `route test` tells of a study, for people and for scripts. Imported by the command when it runs."""

from __future__ import annotations

from gateway.app.routing.foresight import Foreseen
from gateway.app.routing.rules import StudyRoute
from gateway.cli.output import say
from gateway.route import ATTRIBUTES, META, Outcome, Predicate


def show(study: StudyRoute, *, show_values: bool) -> None:
    if study.files:
        more = f" and {len(study.files) - 1} more" if len(study.files) > 1 else ""
        say(f"Study of {study.files[0]}{more}", "bold")
    if study.explanation is None:
        say(f"  held before routing: {study.reason}" + (f" ({study.at})" if study.at else ""))
        return
    for trial in study.explanation.trials:
        word = {
            Outcome.MATCHES: "fires" if study.explanation.rule is trial.rule else "fires, if none before it does",
            Outcome.DIFFERS: "does not",
            Outcome.UNKNOWN: "may fire",
            Outcome.UNTRUSTED: "holds the study",
        }[trial.outcome]
        say(f"  rule {trial.rule.name}: {word}")
        for predicate in trial.predicates:
            say(f"    {_predicate(predicate, study, show_values=show_values)}")
    if study.reason:
        say("  no rule fires: held, no_route")
    tried = {p.name for t in study.explanation.trials for p in t.predicates if p.outcome is Outcome.UNKNOWN}
    if study.files and tried & set(META):
        say("  the files do not say who sent them: name the sender with --ae")
    for job in study.jobs:
        _show_job(job, with_files=bool(study.files))


def _predicate(predicate: Predicate, study: StudyRoute, *, show_values: bool) -> str:
    says = {
        Outcome.MATCHES: "matches",
        Outcome.DIFFERS: "no instance has a value that the rule asks for",
        Outcome.ABSENT: "no instance has it",
        Outcome.UNKNOWN: "not known"
        + (": name the home, whose key the list needs" if predicate.name == "in_cohort" else ""),
        Outcome.UNTRUSTED: "the cohort file cannot be read",
    }[predicate.outcome]
    tags = ", ".join(_tags(predicate.name))
    line = f"{predicate.name} {tags}, asks for {' or '.join(predicate.wanted)}: {says}"
    found = sorted(study.facts.of(predicate.name))
    return f"{line}; found: {', '.join(found)}" if show_values and found else line


def _tags(name: str) -> list[str]:
    """The attributes that a predicate reads, as (gggg,eeee)."""
    if name == "in_cohort":
        tags = (*ATTRIBUTES["patient_id"], *ATTRIBUTES["study_date"])
    else:
        tags = (META[name],) if name in META else ATTRIBUTES[name]
    return [f"({tag >> 16:04X},{tag & 0xFFFF:04X})" for tag in tags]


def _show_job(job: Foreseen, *, with_files: bool) -> None:
    target = job.target
    say(f"  -> project {target.project}, policy {target.policy}, destination {target.destination} ({job.url})")
    if job.reason:
        say(f"     would be held: {job.reason}")
    for aspect, modality, count in job.holds:
        where = f"{aspect} of {modality or 'no modality'} in {count} instance(s)"
        say(f"     would be held: not_assessed; no check judges {where}, and nobody accepted it")
    for aspect, modality, count in job.accepted:
        say(f"     not judged, accepted by the policy: {aspect} of {modality} in {count} instance(s)")
    if job.waits_for_people:
        say(f"     would wait in a release for {job.waits_for_people} people")
    checks = ", ".join(job.judged_by)
    run = f" and the stages {', '.join(job.stages)}" if job.stages else ""
    say(f"     not known before they run: the header{run}, the checks {checks}; see `policy preview`")
    if not with_files:
        say("     what a study carries that no check judges (not_assessed) is not known without its files")


def document(study: StudyRoute, *, show_values: bool) -> dict[str, object]:
    trials = study.explanation.trials if study.explanation is not None else ()
    rule = study.explanation.rule if study.explanation is not None else None
    return {
        "files": [str(path) for path in study.files],
        "rule": rule.name if rule is not None else None,
        "possible": [trial.rule.name for trial in study.explanation.possible] if study.explanation is not None else [],
        "reason": study.reason,
        "at": study.at,
        "held": study.is_held,
        "rules": [
            {
                "name": trial.rule.name,
                "outcome": trial.outcome,
                "predicates": [
                    {
                        "name": one.name,
                        "tags": _tags(one.name),
                        "outcome": one.outcome,
                        **({"found": sorted(study.facts.of(one.name))} if show_values else {}),
                    }
                    for one in trial.predicates
                ],
            }
            for trial in trials
        ],
        "jobs": [
            {
                "project": job.target.project,
                "policy": job.target.policy,
                "destination": job.target.destination,
                "url": job.url,
                "not_assessed": [{"aspect": a, "modality": m, "instances": n} for a, m, n in job.holds],
                "accepted": [{"aspect": a, "modality": m, "instances": n} for a, m, n in job.accepted],
                "reason": job.reason,
                "min_subjects": job.waits_for_people,
                "not_run": {"stages": list(job.stages), "checks": list(job.judged_by)},
            }
            for job in study.jobs
        ],
    }
