"""Cards: what a learned part is, on whom it was trained, what it was measured at, what it is for, and until when.

`models/cards/*.yaml` ship; a site's own lie in HOME/models beside their weights. A card without its weights, with other
weights, or past its date does not load (DESIGN.md section 4).
"""

from models.cards.card import (
    Calibration,
    Card,
    CardError,
    Imported,
    Impostors,
    PatientPrivacy,
    Published,
    Risk,
    TrainedOn,
    Weights,
)
from models.cards.folder import (
    SHIPPED,
    CardFolder,
    find_card,
    people_hash,
    people_lines,
    read_card,
    read_people,
    weights_of,
)
from models.cards.limits import DomainLimits, Outside

__all__ = [
    "SHIPPED",
    "Calibration",
    "Card",
    "CardError",
    "CardFolder",
    "DomainLimits",
    "Imported",
    "Impostors",
    "Outside",
    "PatientPrivacy",
    "Published",
    "Risk",
    "TrainedOn",
    "Weights",
    "find_card",
    "people_hash",
    "people_lines",
    "read_card",
    "read_people",
    "weights_of",
]
