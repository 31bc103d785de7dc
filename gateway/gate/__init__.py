"""The gate: judges the encoded bytes about to leave, with code that shares nothing with the scrubbers it judges.

It imports the nouns, the policy and observe; it reads with its own scan and with pydicom (DESIGN.md section 2,
*Independence*). Here and in a recorded review, and nowhere else, a `Clearance` is made.
"""

from gateway.gate.aspects import ASPECTS
from gateway.gate.attackers import Folders, all_cards, cards_in, digest_of_card, folders_of, identity_cards
from gateway.gate.checks import CHECKS, RELEASE_CHECKS
from gateway.gate.judgement import Judgement, clear_by_review, judge
from gateway.gate.lesion_facts import lesion_facts
from gateway.gate.lesion_views import embed_lesion_views, views_wanted
from gateway.gate.notes import mentions
from gateway.gate.reading import Pair
from gateway.gate.release_facts import Facts, facts_of
from gateway.gate.release_judgement import ReleaseJudgement, judge_release
from gateway.gate.release_sample import ALL, BACKGROUND, LESION, RELEASE, WHOLE, Member, ReleaseVerdict, Score
from gateway.gate.release_selftest import blind_cards, blind_to_figures
from gateway.gate.release_strata import Stratum, labelled
from gateway.gate.residual import ResidualIdentifiers
from gateway.gate.views import Embedded, accepted_in, embed_study

__all__ = [
    "ALL",
    "ASPECTS",
    "BACKGROUND",
    "CHECKS",
    "LESION",
    "RELEASE",
    "RELEASE_CHECKS",
    "WHOLE",
    "Embedded",
    "Facts",
    "Folders",
    "Judgement",
    "Member",
    "Pair",
    "ReleaseJudgement",
    "ReleaseVerdict",
    "ResidualIdentifiers",
    "Score",
    "Stratum",
    "accepted_in",
    "all_cards",
    "blind_cards",
    "blind_to_figures",
    "cards_in",
    "clear_by_review",
    "digest_of_card",
    "embed_lesion_views",
    "embed_study",
    "facts_of",
    "folders_of",
    "identity_cards",
    "judge",
    "judge_release",
    "labelled",
    "lesion_facts",
    "mentions",
    "views_wanted",
]
