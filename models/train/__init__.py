"""Training: `Cohort`s in, tensors and a card out; never a path to data. One entry for each card.

An entry is a module with `train(cohorts, options, tick) -> Trained`. Entries of anonymisers import neither
`models.audit_encoders` nor `models.train.attacker`, nor entries of attackers.
"""

# Card -> module, imported (and torch with it) when it is trained.
ENTRIES: dict[str, str] = {
    "chest-audit-1": "models.train.chest_audit",
    "fundus-audit-1": "models.train.fundus_audit",
    "brain-audit-1": "models.train.brain_audit",
    "lesion-brain-1": "models.train.lesion",
    "reid-chest-1": "models.train.reid",
    "decoupling-chest-1": "models.train.decoupling",
    "resynthesis-chest-1": "models.train.resynthesis",
    "onestep-chest-1": "models.train.onestep",
    "lesion-brain-small-1": "models.train.lesion_small",
    "lesion-segment-small-1": "models.train.lesion_segment",
    "chest-resynth-small-1": "models.train.chest_resynth_small",
    "fundus-resynth-small-1": "models.train.fundus_resynth_small",
}

# Entries whose losses are sums over people and whose stages clip each person. Contrastive losses compare people with
# each other, the codec's opponent and joint stage as well: no epsilon is claimed of those.
PRIVATE = frozenset({"lesion-brain-1", "lesion-brain-small-1"})


def entry_of(text: str) -> str:
    """The entry that a text names: itself, or the only one that begins with it and a dash; else the text as it is."""
    begun = [name for name in ENTRIES if name.startswith(f"{text}-")]
    return begun[0] if text not in ENTRIES and len(begun) == 1 else text
