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
}
