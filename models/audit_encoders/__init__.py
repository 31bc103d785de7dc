"""Encoders that attack: an image in, a vector out, in which one person's scans lie close together.

Anonymisers and their training must not import this: what judges shares nothing with what is judged.
"""

from models.audit_encoders.baselines import BASELINES, Encoder, embed

__all__ = ["BASELINES", "Encoder", "embed"]
