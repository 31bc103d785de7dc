"""What the rewriting of an object depends on beside its elements: policy, key, class, patient and character set."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from gateway.header.admission import Facts
from gateway.header.descriptors import Cleaner
from gateway.header.elements import Buffer, Reader, Syntax
from gateway.header.options_done import carried_out, item_rules
from gateway.header.plan import Plan, plan_for
from gateway.header.private import PrivateElements
from gateway.header.private_words import OwnWords
from gateway.header.rewrite import Rewriter
from gateway.header.stamp import stamps
from gateway.header.uids import is_uid, new_uid
from gateway.header.values import Patient, Values
from gateway.policy import HeaderPolicy
from gateway.policy.model import CLEAN_DESCRIPTORS, SAFE_PRIVATE
from gateway.pseudonyms import Pseudonyms


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """Shared by the objects of one patient and class; `Setting.of` is where they begin to be one."""

    policy: HeaderPolicy
    pseudonyms: Pseudonyms
    sop_class: str
    plan: Plan
    patient: Patient

    @classmethod
    def of(cls, facts: Facts, policy: HeaderPolicy, pseudonyms: Pseudonyms) -> Setting:
        """Raises Hold for an object of somebody else than its study's."""
        pseudonyms.require_own(facts.patient_id)
        plan = plan_for(policy, facts.sop_class)
        prefix = policy.patient_id.prefix
        days = pseudonyms.shift_days(facts.patient_id, *plan.shift) if plan.shift is not None else 0
        pseudonym = pseudonyms.patient_id(facts.patient_id, prefix=prefix)
        patient = Patient(pseudonym, days, prefix, facts.character_set)
        return cls(policy, pseudonyms, facts.sop_class, plan, patient)

    @property
    def keeps_private(self) -> bool:
        """True when private elements are judged one by one; without that they all go."""
        return SAFE_PRIVATE in self.policy.options

    def rewriter(
        self, reader: Reader, data: Buffer, cleaner: Cleaner | None, words: Callable[[], OwnWords]
    ) -> Rewriter:
        """A rewriter of one object: `data` is its encoded data set, `words` what private text may not repeat."""
        options, character_set = self.policy.options, self.patient.character_set
        cleans = cleaner is not None and CLEAN_DESCRIPTORS in options
        clean_text = cleaner.item_text(character_set) if cleaner is not None and cleans else None
        rules = item_rules(options, self.sop_class, data, clean_text, self.policy.edition)
        values = Values(self.patient, self.pseudonyms)
        private = None
        if self.keeps_private:
            private = PrivateElements(self.policy, values.days, words, cleaner, character_set)
        return Rewriter(reader, self.plan, values, rules=rules, private=private, cleaner=cleaner)

    def done(self, cleaned: AbstractSet[int], *, private: int, overlays: int) -> frozenset[str]:
        """The options that an object may claim."""
        return carried_out(self.policy.options, cleaned, private=private, overlays=overlays)

    def stamps(self, syntax: Syntax, earlier: list[str], done: AbstractSet[str]) -> list[tuple[int, bytes]]:
        """What the output says of itself."""
        return stamps(syntax, self.policy, earlier, done)

    def sop_instance(self, original: str) -> str:
        """The SOP Instance UID of the output's file meta."""
        retained = "retain-uids" in self.policy.options and is_uid(original)
        return original if retained else new_uid(original, self.pseudonyms)
