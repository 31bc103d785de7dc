"""Reason codes of identity: what is measured of images, of a single study and over the people of a release."""

from __future__ import annotations

from gateway.errors.reason import Disposition, Reason

_H = Disposition.HOLD

RELEASE_REASONS: tuple[Reason, ...] = (
    Reason(
        "same_scan",
        _H,
        "whoever holds the original of this scan would find it in what was to be sent",
        "look at the finding's image; rerun under a policy that changes more, or reject",
    ),
    Reason(
        "no_level_passed",
        _H,
        "the study was found at every level of the stage that the policy lets it be tried at",
        "see each attempt in its history; rerun under a policy that changes more, or reject",
    ),
    Reason(
        "another_level_sent",
        _H,
        "the same study has left at another level meanwhile, and nothing leaves twice with other bytes",
        "rerun it: it is then made at the level that left; or recall what was sent and issue it anew",
    ),
    Reason(
        "no_identity_evidence",
        _H,
        "no attacker's card can judge whose image this is: modality, card or impostors are missing",
        "name a card that knows the modality, drop what none knows, then rerun; or reject",
    ),
    Reason(
        "lesion_undrawn",
        _H,
        "the lesion is judged by itself, and no mask that leaves shows where it lies on the images",
        "send a segmentation or contours drawn on these images into the study, then rerun; or a policy that judges "
        "whole images only",
    ),
    Reason(
        "too_few_people",
        _H,
        "a figure over people needs more of them than this release has",
        "collect more people, then rerun under the policies of now",
    ),
    Reason(
        "attacker_void",
        _H,
        "an attacker does not find the untouched originals of the same people, so that its silence says nothing",
        "name another card for this kind of image, then rerun",
    ),
    Reason(
        "linkability",
        _H,
        "studies of the release can be linked to originals of the same people beyond the policy's limit",
        "rerun under a policy that changes more, or reject",
    ),
    Reason(
        "rank1",
        _H,
        "people of the release are found in a gallery of originals more often than the policy allows",
        "rerun under a policy that changes more, or reject",
    ),
    Reason(
        "attribute_inference",
        _H,
        "an attribute that was taken out can be inferred from the images of the release",
        "rerun under a policy that changes more, or reject",
    ),
    Reason(
        "record_isolation",
        _H,
        "people of the release are alone, or nearly, with the attributes that the policy keeps",
        "keep fewer of the attributes that are named, or collect more people, then rerun",
    ),
    Reason(
        "anonymity_psnr",
        _H,
        "brains of the release lie nearer to their own originals, pixel by pixel, than the policy's margin allows",
        "rerun under a policy that changes more, or reject",
    ),
)
