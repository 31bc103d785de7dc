"""Errors of the gateway as a tree, and every reason code as data.

    GatewayError
    ├── UsageError          a person typed or wrote something wrong          exit 2
    │   └── PolicyError     a policy, routes or destinations file; all faults at once
    ├── EnvironmentFault    port, disk, key, lock: the machine is not ready  exit 3
    └── StudyError          something about one study; `disposition` says what happens to it
        ├── Retry           try again later (archive down)
        ├── Hold            a person must look; nothing leaves
        ├── Drop            this instance is left out, the rest of the study goes on
        └── Refuse          never acceptable here; nothing leaves, nobody needs to look

Messages name the reason, the place (tag path, our own file name, policy line) and the next action. They never carry a
value out of a data set: such a text would end in logs and in the engine's database (DESIGN.md invariant 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Disposition(StrEnum):
    """What becomes of a study after an error."""

    RETRY = "retry"
    HOLD = "hold"
    DROP = "drop"
    REFUSE = "refuse"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason code: `says` what happened, `hint` what a person does next."""

    code: str
    disposition: Disposition
    says: str
    hint: str


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
            "correct the patient merge at the PACS, reject this study and send it again",
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
        Reason("archive_rejects_us", _R, "the archive rejects our AE title", "register it there"),
        Reason(
            "folder_conflict", _H, "another file with that name is in the folder", "look at it; nothing was changed"
        ),
        Reason("gave_up", _H, "the archive did not take the study within the retry limit", "mend it, then release"),
        # anything else
        Reason("stage_failed", _H, "a stage failed in a way nobody foresaw", "see the log by job key; report it"),
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


class GatewayError(Exception):
    """Root of all our errors; `exit_code` is what a command ends with."""

    exit_code = 3


class UsageError(GatewayError):
    """A command line, setting or file that a person wrote is wrong."""

    exit_code = 2


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """One fault in a file that a person edits. `line` counts from 1, 0 when no line applies."""

    file: str
    line: int
    says: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.says}" + (f" ({self.hint})" if self.hint else "")


class PolicyError(UsageError):
    """All faults of a policy, routes or destinations file at once."""

    def __init__(self, faults: list[Fault]) -> None:
        self.faults = tuple(sorted(faults))
        super().__init__("\n".join(str(fault) for fault in self.faults))


class EnvironmentFault(GatewayError):
    """The machine is not ready: port taken, disk full, key missing or weak, home locked."""

    exit_code = 3


class StudyError(GatewayError):
    """Something about one study. `reason` is a key of REASONS; `at` a place, never a value.

    Raises KeyError when the reason is not in REASONS or belongs to another disposition: reason codes are metric
    labels and review texts, so an unlisted one is a programming fault.
    """

    exit_code = 1
    disposition = Disposition.HOLD

    def __init__(self, reason: str, *, at: str = "") -> None:
        entry = REASONS[reason]
        if entry.disposition is not self.disposition:
            raise KeyError(f"{reason} is a {entry.disposition} reason, not {self.disposition}")
        self.reason = reason
        self.at = at
        super().__init__(f"{reason}: {entry.says}" + (f" at {at}" if at else "") + f"; {entry.hint}")

    def __reduce__(self) -> tuple[object, ...]:
        """Exceptions cross from pool workers by pickle."""
        return _rebuild, (type(self), self.reason, self.at)


def _rebuild(kind: type[StudyError], reason: str, at: str) -> StudyError:
    return kind(reason, at=at)


class Retry(StudyError):
    """Try again later."""

    disposition = Disposition.RETRY


class Hold(StudyError):
    """A person must look."""

    disposition = Disposition.HOLD


class Drop(StudyError):
    """One instance is left out of its study; nothing of it leaves."""

    disposition = Disposition.DROP


class Refuse(StudyError):
    """Never acceptable."""

    disposition = Disposition.REFUSE


class Stopping(BaseException):
    """The process is ending, and what a leg was doing was cut off: nothing of it counts, the next process repeats it.

    Not an Exception: nothing may take it for a failure of the study, and the engine must not store an outcome.
    """
