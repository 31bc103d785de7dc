"""Words that say who somebody is, folded: titles, "by" and "tech", "for" and "patient", relatives, staff.

Only what stands behind (or before) them is masked, by the rules of `descriptors_titles` and `descriptors_people`.
"""

from __future__ import annotations

from collections.abc import Sequence

from gateway.header.descriptors_folding import fold
from gateway.header.descriptors_tokens import Token


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Titles in any writing; those that are modalities or abbreviations too only as "Dr." or "Dr".
TITLES = _set(
    """
    prof professor profdr herr herrn frau fraulein mrs mme mlle madame monsieur senor senora senorita signor signora
    dott dottssa dra srta schwester pfleger mister dhr mevr mevrouw drs doctor doktor docteur dottore dottoressa
    professore dona доктор проф
    """
)
SHORT_TITLES = _set("dr mr ms miss sr sra hr fr m mw")
DOTTED_ONLY = _set("sr sra hr fr m mw")
TITLE_TAILS = _set("dr med habil phil univ dent prof rer nat ra ssa na")
SPLIT_TITLES = _set("sig dott prof sr dr")  # Sig.ra, Dott.ssa, Prof.ssa, Sr.a
PARTICLES = _set("von van vom zu der den de del della di da do dos du la le ten ter al el bin ben ibn abu af av und")
NOT_A_NAME = _set(
    """
    a an and are as at by for from has have in is of on or requests said says sent the to was wants who will with
    mit hat ist und bittet wurde zur zum nach et avec est a le y con es e i w without no not
    """
)
AUTHORED = _set(
    """
    by per tech technologist technician mtra mta op operator initials radiographer radiologist performedby readby
    orderedby durch von par por da
    """
)
FOR = _set("for patient pt pat name patientin by of from signed")
NURSES = _set("rn lpn lvn arnp crna cna")  # before a name; others behind one
DEGREES = _set("rt rn md do mbbs phd np pa crna rdms rvt cnmt frcr facr msc bsc")
RELATIVES = _set(
    "mother father mom dad wife husband spouse partner son daughter sister brother guardian parent grandmother "
    "grandfather aunt uncle cousin niece nephew fiance fiancee carer caregiver kin nok "
    "mutter vater ehefrau ehemann madre padre mere epoux epouse moeder vader"
)
# Who stands beside the table or the bed: "assist Mark", "Interpreter: Grace".
COMPANIONS = _set(
    "assist assistant nurse resident fellow student trainee proctor witness chaperone interpreter translator helper "
    "escort friend neighbor neighbour roommate caller attending assistent assistentin arzthelferin krankenschwester "
    "infirmier infirmiere enfermera enfermero residente infermiere infermiera verpleegkundige"
)
# Capitalised behind "by" or "per", and yet no name.
ROLES = _set(
    """
    radiologist radiology physician surgeon doctor nurse technologist technician technique protocol request
    requested order ordered clinic clinician family patient parents mother father report referring referral
    department emergency consultant ward service team neurology neurosurgery oncology cardiology orthopedics surgery
    gastroenterology urology the
    """
)
CUES = TITLES | SHORT_TITLES | SPLIT_TITLES | NURSES | AUTHORED | FOR | RELATIVES | COMPANIONS


def cues_in(tokens: Sequence[Token]) -> tuple[int, ...]:
    """The numbers of the tokens that may say who somebody is: titles, "by", "for" and their like, initials."""
    return tuple([at for at, token in enumerate(tokens) if len(token.text) == 1 or fold(token.text) in CUES])
