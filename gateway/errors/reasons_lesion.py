"""Reason codes of stages that make new anatomy: around a lesion, or a whole picture."""

from __future__ import annotations

from gateway.errors.reason import Disposition, Reason

_H = Disposition.HOLD

LESION_REASONS = (
    Reason(
        "card_unusable",
        _H,
        "the card that the policy's stage names is not there, past its date, or without its weights",
        "see `deid-gateway models`; put card and weights into HOME/models, then rerun",
    ),
    Reason(
        "no_sequence",
        _H,
        "no series of this study is a volume of a sequence that the card can make",
        "look at the series; rerun under a policy without lesion_preserving, or reject",
    ),
    Reason(
        "lesion_mask_missing",
        _H,
        "no segmentation or contour of this study draws a lesion",
        "send the segmentation into the study, or name its label in the policy (labels); then rerun",
    ),
    Reason(
        "lesion_mask_empty",
        _H,
        "what draws or marks the lesion of this study marks no voxel, and nothing says that there is none",
        "look at the images and the segmentation; send a right one, or reject",
    ),
    Reason(
        "lesion_mask_uncertain",
        _H,
        "nothing draws the lesion, and the card that marks it is not certain of what it found",
        "draw the lesion and send the segmentation into the study, then rerun; or reject",
    ),
    Reason(
        "lesion_mask_unusable",
        _H,
        "what draws the lesion has no place on the grid of the images",
        "look at the object; send one drawn on these images, or reject",
    ),
    Reason(
        "lesion_surroundings",
        _H,
        "an object shows the anatomy that is replaced, and cannot be changed like the rest",
        "look at the object; a policy with uncovered: drop leaves such objects out, then rerun; or reject",
    ),
    Reason(
        "outside_domain",
        _H,
        "the study is not of the kind that the stage's card was trained on",
        "look at the statistic named; train a card on such studies, or reject",
    ),
    Reason(
        "no_picture",
        _H,
        "no picture of this study is of a kind that the card can make",
        "look at modality, body part and projection; rerun under a policy without resynthesize, or reject",
    ),
    Reason(
        "picture_uncovered",
        _H,
        "an object shows the anatomy that is replaced, and the card cannot make it anew",
        "look at the object; a policy with uncovered: drop leaves such objects out, then rerun; or reject",
    ),
    Reason(
        "follow_up",
        _H,
        "an earlier study of this person left, and pictures that are made anew show no change between visits",
        "reject it, or rerun it under a policy with followups: accept",
    ),
    Reason(
        "level_not_calibrated",
        _H,
        "no calibrated level of the stage's card keeps the target that the policy sets, or the level tried does not",
        "calibrate the card anew, take another card, or another target; then rerun",
    ),
    Reason(
        "not_anonymised",
        _H,
        "the anatomy around the lesion could not be replaced as the policy asks",
        "look at the series and at the place named; another card or policy, or reject",
    ),
)
