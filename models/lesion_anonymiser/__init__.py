"""The lesion-preserving anonymiser on arrays: a new background around a lesion that stays (paper B, made whole-volume).

`anonymise` takes one study's sequences, its lesion and keyed noise, and gives new volumes. What a DICOM study is, which
of its series may leave and who holds the key is the gateway's business.
"""

from models.lesion_anonymiser.anonymise import anonymise
from models.lesion_anonymiser.carry import carried, kept_of, moved
from models.lesion_anonymiser.domain import Domain, OutOfDomain, domain_of
from models.lesion_anonymiser.noise import seeded_noise
from models.lesion_anonymiser.outline import Outline
from models.lesion_anonymiser.parts import ALGORITHM, LesionParts, parts_of
from models.lesion_anonymiser.study import Anonymised, LesionStudy, Noise, NotAnonymised, Settings

__all__ = [
    "ALGORITHM",
    "Anonymised",
    "Domain",
    "LesionParts",
    "LesionStudy",
    "Noise",
    "NotAnonymised",
    "OutOfDomain",
    "Outline",
    "Settings",
    "anonymise",
    "carried",
    "domain_of",
    "kept_of",
    "moved",
    "parts_of",
    "seeded_noise",
]
