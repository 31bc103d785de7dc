"""Pixel stages by the name a policy gives them. Adding one: a file here and a line in STAGES (contract: `stage`).

They run on header-clean candidates, before the gate, in the order of the policy. What no stage and no check answers for
is `not_assessed`, so a study that bears pixels leaves only where the policy accepts that with reason and approver.
"""

from __future__ import annotations

from gateway.pixels.burned_in_text import BurnedInText
from gateway.pixels.deface import Deface
from gateway.pixels.documents import Documents
from gateway.pixels.estimates import run_stage
from gateway.pixels.hidden import HiddenPixels
from gateway.pixels.lesion_preserving import LesionPreserving
from gateway.pixels.resynthesize import Resynthesize
from gateway.pixels.stage import Estimate, Instance, Scope, Stage, Work
from gateway.pixels.transcode import Transcode

STAGES: dict[str, type] = {
    "burned_in_text": BurnedInText,
    "deface": Deface,
    "documents": Documents,
    "hidden_pixels": HiddenPixels,
    "lesion_preserving": LesionPreserving,
    "resynthesize": Resynthesize,
    "transcode": Transcode,
}

__all__ = ["STAGES", "Estimate", "Instance", "Scope", "Stage", "Work", "run_stage"]
