"""What the report of a release says in words."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from gateway.gate import ALL, RELEASE
from gateway.policy import Policy

NO_CLAIM = (
    "This report makes no claim of anonymity. It says what was taken out, which attacks were tried, on how many "
    "people, and how well they did at most. Whether the release is anonymous is a legal judgement about all means "
    "reasonably likely to be used, by whoever holds the data."
)
STATES: Mapping[str, str] = {
    "open": "The release still collects studies. Nothing was judged over its people yet, and nothing of it has left.",
    "auditing": "The release is closed and is being judged. Nothing of it has left.",
    "cleared": "Every figure kept to its limit. The release was cleared as a whole, and is being sent.",
    "sent": "Every figure kept to its limit. The release was cleared as a whole, and has been sent.",
    "escalating": "A figure did not keep to its limit. What was made at the weakest level is made at the next "
    "one, and the release is judged again then. Nothing of it has left.",
    "blocked": "A figure did not keep to its limit, or there was no evidence. Nothing of the release has left.",
}
EVENTS: Mapping[str, str] = {
    "release_closed": "Closing",
    "release_cleared": "Clearing",
    "release_escalated": "Escalation",
    "release_blocked": "Blocking",
    "release_sent": "Sending",
    "release_recalled": "Recall",
}
SCOPES: Mapping[str, str] = {RELEASE: "this release", ALL: "all released so far"}
ATTACKS: Mapping[str, str] = {"same_scan": "holds the original of this very scan", "other_visit": "holds another visit"}
LOOKS = (
    "A limit compares with a one-sided upper bound, by person. Each look at the same people spends a part of the error "
    "that the policy allows, 6/(π²k²) of it for the k-th, so that trying again until it passes does not pay."
)
CRITERIA: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "Isolation (singling out)",
        (
            "Can a person be told apart from everybody else in the release by the attributes that the policy keeps, "
            "and by those of the lesion that it names? The figure is the size of the smallest group of people who "
            "share all of them."
        ),
        ("record_isolation",),
    ),
    (
        "Linkage",
        (
            "Can a released image be linked to another image of the same person? Attackers compare released images "
            "with originals. Linkability is D_sys, less what shuffled labels read: 0 where nothing links, 1 where all "
            "does. Rank-1 is how often a person is found first in a gallery of originals. Anonymity by pixels "
            "(anonymity_psnr) is the share of depths of the brain that lie nearer to their own original than the "
            "policy's margin; within it the own original may still be the nearest, so it never clears a release alone. "
            "Where a policy has background and lesion judged apart, the whole image says what the release risks; the "
            "background alone says how well anatomy was replaced, and the lesion alone what stays with it."
        ),
        ("linkability", "rank1", "anonymity_psnr"),
    ),
    (
        "Inference",
        (
            "Can an attribute that was taken out be inferred from the released images? The figure is balanced "
            "accuracy: 0.5 is chance for two classes, 1 is certainty."
        ),
        ("attribute_inference",),
    ),
)
STUDY_CHECKS: Mapping[str, str] = {"same_scan": "Linkage"}  # every other check of a study looks for identifiers
TABLE = (
    "The bound decides, never the estimate. A figure without enough people, or of an attacker that fails on untouched "
    "originals, is no evidence."
)
FILTERS = "Checks of every single study before it joined the release."
NOTES: Mapping[str, str] = {
    "too_few_people": "no evidence: too few people",
    "too_few_to_tell": "too few people to tell; left out",
    "attacker_void": "void: the attacker fails on untouched originals",
    "no_identity_evidence": "no evidence: no card could judge",
    "lesion_undrawn": "no evidence: no mask shows the lesion",
}
REMOVED = (
    "Counts of elements, frames, boxes or voxels, by stage. No value is in this report, and none is in the ledger."
)
NO_LEVELS = "No stage of this policy has levels: every study was treated the same way."
UNASSESSED = (
    "What no check of the policy judges holds a study, unless the policy names it below and somebody answers for it."
)
HISTORY = "Of each check and attacker the figure that decided, over the last releases of the policy."
ATTACKERS = "Frozen encoders that never saw these people. A figure holds for them, and says little about better ones."
LIMITS = (
    "Figures hold for the attackers named here. A better encoder, or one trained on such data, may do better.",
    "An attacker is assumed to hold images. Knowledge from elsewhere (news, registers, relatives) is not modelled.",
    (
        "Bounds hold with the confidence that the policy names, for people like those of this release; rare anatomy, "
        "implants and rare diseases may give a single person away without moving a figure over all."
    ),
    "Attributes other than those named under inference were not tried.",
    "What receivers join with other data after the release is outside of what is measured here.",
)
_HEADER: Mapping[str, str] = {
    "X": "elements removed (X)",
    "Z": "elements emptied (Z)",
    "D": "elements replaced by a dummy (D)",
    "U": "UIDs replaced (U)",
    "C": "dates and times moved (C)",
    "K": "elements kept by an option or by the policy (K)",
    "cleaned": "texts cleaned of what identifies",
    "recurse": "sequences kept, and the profile applied to their items",
    "patient_id": "Patient IDs replaced by a pseudonym",
    "patient_name": "patient names replaced by a pseudonym",
    "dropped": "objects left out",
}


def counted(stage: str, what: str) -> str:
    """What a stage's count is a count of."""
    plain = what.replace("_", " ")
    return _HEADER.get(what, plain) if stage == "header" else plain


def not_measured(checks: Collection[str], *, judged: bool, policy: Policy | None) -> str:
    """Why a criterion has no figure."""
    if policy is not None and not set(checks) & set(policy.gate.release):
        return "Not assessed: the policy has no check of releases for this."
    return "Not assessed: no figure was computed." if judged else "Not assessed: the release was not judged yet."
