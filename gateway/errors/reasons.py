"""Every reason code as data: what happened, what becomes of the study, what a person does next."""

from __future__ import annotations

from gateway.errors.reason import Disposition, Reason
from gateway.errors.reasons_lesion import LESION_REASONS
from gateway.errors.reasons_release import RELEASE_REASONS
from gateway.errors.reasons_rights import RIGHTS_REASONS

__all__ = ["REASONS", "Disposition", "Reason"]

_H, _R, _X, _D = Disposition.HOLD, Disposition.RETRY, Disposition.REFUSE, Disposition.DROP

REASONS: dict[str, Reason] = {
    reason.code: reason
    for reason in (
        # intake and routing
        Reason("no_route", _H, "no rule in routes.yaml matches this study", "add a rule, or reject the study"),
        Reason(
            "unreadable_object",
            _H,
            "an object cannot be parsed as DICOM, or lacks its Study, Series or SOP Instance UID",
            "look at the spooled file and send a repaired one",
        ),
        Reason(
            "file_unreadable",
            _H,
            "a file or folder of the source cannot be read",
            "look at its permissions and at the disk, then run it again",
        ),
        Reason(
            "conflicting_instance",
            _H,
            "one SOP Instance UID arrived with different contents",
            "find out which one is right at the PACS, reject this study and send it again",
        ),
        Reason(
            "mixed_patients",
            _H,
            "one study bears several Patient IDs",
            "correct it at the PACS, reject this study and send it again; or rerun it with a merge table in the policy",
        ),
        Reason("missing_patient_id", _H, "an object has no Patient ID", "correct it at the PACS and send it again"),
        Reason("no_instances", _H, "nothing of this study is left to send", "look at what was dropped and why"),
        Reason(
            "policy_withdrawn",
            _H,
            "the policy this study began under is gone, or this version reads it differently",
            "rerun it under the policies of now",
        ),
        Reason(
            "destination_unknown", _H, "the destination is not in destinations.yaml", "add it, then release the study"
        ),
        # objects that the header stage cannot clean
        Reason("private_sop_class", _H, "de-identification of private SOP classes is undefined (PS3.15 E.1)", "reject"),
        Reason("unknown_sop_class", _H, "the SOP class is not a storage class of the standard", "reject, or list it"),
        Reason("dicomdir", _X, "a DICOMDIR is never forwarded (PS3.3 Annex F)", "build a new one from cleaned files"),
        Reason(
            "structured_content",
            _H,
            "a structured report needs the Clean Structured Content Option",
            "use a policy that has it, or reject",
        ),
        Reason(
            "encapsulated_document",
            _H,
            "an encapsulated document cannot be cleaned by this policy",
            "review it by eye, or reject",
        ),
        Reason(
            "overlay_in_pixels",
            _H,
            "an overlay hides in unused bits of the pixel data",
            "send it with the overlay as an element of its own, or reject",
        ),
        Reason(
            "slide_label",
            _D,
            "a picture of a slide's label, or of the slide with its label",
            "nothing; the other pictures of the slide go on without it",
        ),
        Reason("audio_waveform", _H, "the samples are speech", "reject"),
        Reason("unsupported_transfer_syntax", _H, "the transfer syntax is not known here", "send it in another one"),
        Reason("header_failed", _H, "the header could not be rewritten", "look at the object; report the tag named"),
        # pixels
        Reason(
            "pixels_unreadable",
            _H,
            "the pixel data cannot be decoded, or is not what the header says of it",
            "look at the object; send it in another transfer syntax, or reject",
        ),
        Reason(
            "video_unsupported",
            _H,
            "video cannot be looked at frame by frame here",
            "a region rule may allow it to be decoded; otherwise reject",
        ),
        Reason(
            "transcoding_failed",
            _H,
            "the pixels cannot be written in the transfer syntax that the policy asks for without changing them",
            "name another transfer syntax, or leave transcode out",
        ),
        Reason(
            "text_uncertain",
            _H,
            "there may be text in the pixels that could not be read with confidence",
            "look at the frames; add a region rule, or a policy with on_low_confidence: redact, then rerun; or reject",
        ),
        Reason(
            "report_in_pixels",
            _H,
            "a frame shows a page of a report, and the policy holds those",
            "look at the frame; reject, or a policy with report_page: redact, then rerun",
        ),
        Reason(
            "device_unknown",
            _H,
            "no region rule knows this device, and the policy wants one",
            "add a rule to policies/regions, or allow detection alone",
        ),
        Reason(
            "residual_text",
            _H,
            "text is still in the pixels to be sent",
            "look at the finding's box; redact it, or release with a reason",
        ),
        Reason(
            "residual_document",
            _H,
            "a document to be sent says more than it may",
            "look at the finding's place; redact or replace the document, or release with a reason",
        ),
        Reason(
            "geometry_unsuitable",
            _H,
            "the slices do not make a volume: gaps, tilt, mixed orientations or sizes",
            "look at the series; send the missing slices, or reject",
        ),
        Reason(
            "face_not_found",
            _H,
            "the head could not be aligned with the template, so that the face cannot be placed",
            "look at the series; rerun under a policy without deface, or reject",
        ),
        Reason(
            "deface_failed",
            _H,
            "removing the face did not come out as measured: brain touched, or face left",
            "look at the series; rerun under a policy without deface, or reject",
        ),
        Reason(
            "uncovered",
            _D,
            "an object that may show what was taken out of the others, and that cannot be treated like them",
            "nothing; the rest of the study goes on without it",
        ),
        *LESION_REASONS,
        Reason(
            "residual_face",
            _H,
            "a face can still be seen in the volume to be sent",
            "look at the rendering; deface it, or release with a reason",
        ),
        Reason(
            "patient_unlisted",
            _H,
            "the lookup table has no entry for this Patient ID",
            "add it to the table, then rerun",
        ),
        Reason(
            "lookup_unusable",
            _H,
            "the policy's lookup or merge table cannot be read, or contradicts itself",
            "see `deid-gateway policy lookup POLICY`; mend the table, then rerun",
        ),
        Reason(
            "lookup_unreachable",
            _R,
            "the database with the lookup table does not answer",
            "check it and DEID_LOOKUP_URLS; it is tried again",
        ),
        Reason(
            "pseudonym_changed",
            _H,
            "studies of this person have left under another pseudonym in this project",
            "restore the table's entry, then rerun; or use a new project",
        ),
        Reason(
            "pseudonym_taken",
            _H,
            "this pseudonym was issued to somebody else in this project",
            "give this person another one in the table, then rerun",
        ),
        Reason(
            "mapping_changed",
            _H,
            "part of this study has left as another person's, or under another key",
            "undo the merge that the table says, then rerun; or reject",
        ),
        # gate
        Reason(
            "residual_identifier",
            _H,
            "an identifying value of the original is still in the bytes to be sent",
            "look at the finding's tag; extend the policy, or release with a reason",
        ),
        Reason(
            "not_assessed",
            _H,
            "no check of this policy can judge something that this study carries",
            "add a check, or an entry under gate.not_assessed with reason and approver",
        ),
        Reason("gate_failed", _H, "a gate check could not be carried out", "look at the object; nothing was judged"),
        Reason("output_invalid", _H, "the file to be sent is not the DICOM file it claims to be", "report the object"),
        Reason(
            "clearance_broken",
            _H,
            "the bytes to be sent are not those that the gate cleared",
            "somebody or something changed them: investigate",
        ),
        *RELEASE_REASONS,
        *RIGHTS_REASONS,
        Reason("too_few_subjects", _H, "the release has fewer people than min_subjects", "collect more, then close"),
        Reason("release_pending", _H, "cleared; waits for its release to close", "close the release"),
        # forward
        Reason("archive_unreachable", _R, "the archive does not answer", "check it; sending is tried again"),
        Reason("archive_busy", _R, "the archive is out of resources", "free space there; sending is tried again"),
        Reason("archive_aborted", _R, "the association was lost while sending", "nothing; sending is tried again"),
        Reason("archive_refuses", _H, "the archive refused an instance", "read its status code; correct and release"),
        Reason(
            "archive_refuses_syntax",
            _H,
            "the archive accepts no offered transfer syntax for an instance",
            "enable the syntax there, then release the study",
        ),
        Reason("archive_rejects_us", _R, "the archive rejects our AE title, token or user", "register it there"),
        Reason(
            "archive_untrusted",
            _R,
            "the archive's certificate is none that we believe",
            "see ca_file and server_name in destinations.yaml; sending is tried again",
        ),
        Reason(
            "commitment_pending",
            _R,
            "the archive has not committed to every instance yet",
            "see that it may reach our DICOM port and is in DEID_ALLOWED_PEERS",
        ),
        Reason("commitment_refused", _R, "the archive does not keep every instance", "they are sent again; look there"),
        Reason(
            "commitment_unsupported",
            _H,
            "the archive cannot be asked for storage commitment",
            "enable it there, or write verify: status in the policy",
        ),
        Reason(
            "archive_access",
            _R,
            "what it takes to be let in at the archive cannot be read",
            "mend the file that destinations.yaml names; sending is tried again",
        ),
        Reason(
            "folder_conflict", _H, "another file with that name is in the folder", "look at it; nothing was changed"
        ),
        Reason(
            "object_conflict", _H, "another object with that name is in the bucket", "look at it; nothing was changed"
        ),
        Reason("gave_up", _H, "the archive did not take the study within the retry limit", "mend it, then release"),
        # anything else
        Reason("stage_failed", _H, "a stage failed in a way nobody foresaw", "see the log by job key; report it"),
        Reason(
            "memory_exceeded",
            _H,
            "a step needed more memory than one worker may take",
            "raise DEID_WORKER_MEMORY_BYTES and rerun it; a small study that does so was made to: reject it",
        ),
        Reason("worker_lost", _R, "a worker process died", "nothing; the step is tried again"),
        Reason(
            "retention_expired",
            _X,
            "nobody decided within the policy's retain.held_days; its originals were removed",
            "send it again if it is still wanted",
        ),
        Reason("reviewer_rejected", _X, "a reviewer rejected the study", "nothing"),
    )
}
