"""`review:` in a policy: off by default, strict, told in plain words, and no reason for other digests."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest

from gateway.errors import PolicyError
from gateway.policy import Policy
from gateway.policy.explain import explain_sections
from gateway.policy.model import plain
from gateway.policy.standard import standard_digest
from gateway.study import canonical_json

Load = Callable[[str | bytes], Policy]


def test_one_person_is_enough_where_the_policy_does_not_say_more(load: Load, small: str) -> None:
    assert load(small).review is None
    assert not load(small).needs_two
    assert not load(small + "review: {}\n").needs_two
    assert load(small + "review: {two_person: true}\n").needs_two


@pytest.mark.parametrize(
    "section", ["{two_person: 1}", "{two_person: yes please}", "{three_person: true}", "[]", "true"]
)
def test_what_is_written_otherwise_is_refused_with_its_line(load: Load, small: str, section: str) -> None:
    with pytest.raises(PolicyError) as error:
        load(small + f"review: {section}\n")
    assert all(fault.line for fault in error.value.faults)


def test_a_policy_without_it_keeps_the_digest_that_its_studies_began_under(load: Load, small: str) -> None:
    policy = load(small)
    told = plain(policy)
    assert (told.pop("review"), told["forward"].pop("shadow")) == (None, False)
    body = {"policy": told, "standard": standard_digest(policy.header.edition)}
    assert policy.digest == hashlib.sha256(canonical_json(body)).hexdigest()
    assert "review" not in policy.to_snapshot()
    assert load(small + "review: {two_person: true}\n").digest != policy.digest


def test_two_people_are_told_of_in_plain_words(load: Load, small: str) -> None:
    told = explain_sections(load(small + "review: {two_person: true}\n"))
    assert any("two people agreed" in line for line in told["afterwards"])
    assert not any("two people" in line for lines in explain_sections(load(small)).values() for line in lines)
