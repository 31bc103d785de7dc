"""What runs in worker processes. These functions take paths, keys and policy snapshots, never values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pydicom

from gateway.app.policy.loaded import restore
from gateway.app.release.references import MODELS, References, facts_key, read_members
from gateway.app.workers import settle
from gateway.database import MemberRow
from gateway.durable import PART, publish, sync_file
from gateway.errors import Drop, Hold
from gateway.gate import Judgement, Pair, ReleaseJudgement, clear_by_review, folders_of, judge, judge_release, labelled
from gateway.header import STAGE_VERSION, scrub_file
from gateway.pixels import Instance, Work, drawn, run_stage
from gateway.policy import Policy
from gateway.pseudonyms import Pseudonyms
from gateway.study import Clearance, Step, Verdict


@lru_cache(maxsize=32)
def policy_of(snapshot: str) -> Policy:
    """The policy of a snapshot, kept between calls of one worker."""
    return restore(snapshot)


def scrub_instance(source: Path, target: Path, snapshot: str, pseudonyms: Pseudonyms) -> Step:
    """Header of one instance: `target` is whole and on disk afterwards, unless the step says that the instance is
    dropped. Raises Hold or Refuse.
    """
    policy = policy_of(snapshot)
    header, clears_bits = policy.header, any(name == "hidden_pixels" for name, _ in policy.pixels)
    if header.patient_id.pseudonym == "lookup" and not (pseudonyms.own and pseudonyms.own.listed):
        raise Hold("patient_unlisted")  # nobody looked: never a keyed pseudonym in place of the table's
    part = target.with_name(target.name + PART)
    try:
        step = scrub_file(source, part, policy=header, pseudonyms=pseudonyms, overlay_bits=clears_bits)
    except Drop as drop:
        return Step("header", STAGE_VERSION, {"dropped": 1}, dropped=drop.reason)
    settle()
    sync_file(part)
    publish(part, target)
    return step


def series_of(candidate: Path) -> str:
    """Which series a candidate belongs to: its new Series Instance UID."""
    return str(
        pydicom.dcmread(candidate, stop_before_pixels=True, specific_tags=["SeriesInstanceUID"]).SeriesInstanceUID
    )


def run_pixel_stage(
    name: str,
    group: Sequence[Instance],
    snapshot: str,
    seed: bytes,
    store: Path,
    models: Path | None = None,
    level: float | None = None,
    *,
    follow_up: bool = False,
) -> list[Step]:
    """One pixel stage of the policy on the instances that it sees together. Raises Hold."""
    policy = policy_of(snapshot)
    return run_stage(name, dict(policy.pixels)[name], group, Work(policy, seed, models, level, follow_up), store)


def run_drawn_boxes(
    boxes: tuple[tuple[int, int, int, int], ...], instance: Instance, snapshot: str, seed: bytes, store: Path
) -> Step:
    """What a reviewer drew on one instance. Raises Hold."""
    return run_stage(drawn.NAME, drawn.DrawnBoxes(boxes), [instance], Work(policy_of(snapshot), seed), store)[0]


def draw(original: Path, candidate: Path, folder: Path, name: str) -> int:
    """Pictures of before and after, for the person who asked for them; how many."""
    from gateway.app.pictures import draw_pictures  # heavy, and rarely wanted

    return draw_pictures(original, candidate, folder, name)


def judge_job(
    pairs: Sequence[Pair],
    snapshot: str,
    job_key: str,
    destination: str,
    seal_key: bytes,
    models: Path | None = None,
    look: int = 1,
) -> Judgement:
    """The gate on one job. `models` is a folder of cards of the site's own; `look` counts how often the study was made.
    Raises Hold.
    """
    return judge(
        pairs,
        policy=policy_of(snapshot),
        job_key=job_key,
        destination=destination,
        seal_key=seal_key,
        folders=folders_of(models),
        look=look,
    )


def judge_member(
    pairs: Sequence[Pair],
    snapshot: str,
    job_key: str,
    destination: str,
    seal_key: bytes,
    references: References,
    look: int = 1,
) -> tuple[Judgement, dict[str, dict[str, str]]]:
    """The gate on a job that a release will be judged with, and what the release needs of it. Raises Hold."""
    judgement = judge_job(pairs, snapshot, job_key, destination, seal_key, references.models, look)
    if judgement.clearance is None:
        return judgement, {}
    return judgement, embed_member(pairs, snapshot, references)


def embed_member(pairs: Sequence[Pair], snapshot: str, references: References) -> dict[str, dict[str, str]]:
    """Embeddings into the store, facts as keyed hashes. Raises Hold."""
    return references.make(pairs, policy_of(snapshot))


def judge_members(
    snapshot: str,
    home: Path,
    master: bytes,
    current: Sequence[MemberRow],
    before: Sequence[MemberRow],
    looks: Mapping[str, int],
    seed: int,
) -> ReleaseJudgement:
    """The gate on a release. Raises Hold, and EnvironmentFault for a damaged reference."""
    members = read_members(home, master, current, before)
    folders = folders_of(home / MODELS)
    judgement = judge_release(members, policy=policy_of(snapshot), looks=looks, seed=seed, folders=folders)
    return replace(judgement, strata=labelled(judgement.strata, facts_key(master)))


def clear_reviewed_job(
    pairs: Sequence[Pair],
    snapshot: str,
    job_key: str,
    destination: str,
    seal_key: bytes,
    reviewer: str,
    verdicts: Sequence[Verdict],
) -> Clearance:
    """A recorded review's clearance. Raises Hold when the files cannot even be described."""
    return clear_by_review(
        pairs,
        policy=policy_of(snapshot),
        job_key=job_key,
        destination=destination,
        seal_key=seal_key,
        reviewer=reviewer,
        verdicts=verdicts,
    )
