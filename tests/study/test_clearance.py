"""A clearance holds only while nothing of it changes: its seal covers every field."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.study import FINAL_STATES, Clearance, ClearedInstance, NotAssessed, State, canonical_json

KEY = bytes(range(32))
INSTANCE = ClearedInstance(
    "0001", "1.2.840.10008.5.1.4.1.1.2", "2.25.1", "1.2.840.10008.1.2.1", "ab" * 32, "cd" * 32, 9
)
ACCEPTED = NotAssessed("recognizable_features", "CT", 1, "skull base only", "DPO")
CLEARANCE = Clearance("job", "ef" * 32, "archive", "gate", ("residual_identifiers=pass",), (ACCEPTED,), (INSTANCE,))
OTHER = {int: 10, str: "other", tuple: ()}

texts = st.text(max_size=12)
instances = st.builds(ClearedInstance, texts, texts, texts, texts, texts, texts, st.integers(0, 1 << 40))
accepted = st.builds(NotAssessed, texts, texts, st.integers(0, 999), texts, texts)
clearances = st.builds(
    Clearance,
    texts,
    texts,
    texts,
    texts,
    st.lists(texts, max_size=3).map(tuple),
    st.lists(accepted, max_size=2).map(tuple),
    st.lists(instances, max_size=3).map(tuple),
)


def test_the_seal_is_the_hmac_of_everything_else() -> None:
    body = json.loads(CLEARANCE.sealed(KEY).to_json())
    mac = body.pop("mac")
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    assert mac == hmac.new(KEY, text, hashlib.sha256).hexdigest()


@given(clearances, st.binary(min_size=1, max_size=40))
def test_a_sealed_clearance_survives_storing_and_no_other_key_made_it(clearance: Clearance, key: bytes) -> None:
    stored = Clearance.from_json(clearance.sealed(key).to_json())
    assert stored == clearance.sealed(key)
    assert stored.is_sealed_by(key)
    assert not stored.is_sealed_by(key + b"x")


def test_an_unsealed_clearance_is_nobodys() -> None:
    assert not CLEARANCE.is_sealed_by(KEY)


@pytest.mark.parametrize("name", [field.name for field in fields(Clearance)])
def test_a_change_of_any_field_breaks_the_seal(name: str) -> None:
    sealed = CLEARANCE.sealed(KEY)
    assert not replace(sealed, **{name: OTHER[type(getattr(sealed, name))]}).is_sealed_by(KEY)


@pytest.mark.parametrize("name", [field.name for field in fields(ClearedInstance)])
def test_a_change_of_any_field_of_an_instance_breaks_the_seal(name: str) -> None:
    sealed = CLEARANCE.sealed(KEY)
    changed = replace(INSTANCE, **{name: OTHER[type(getattr(INSTANCE, name))]})
    assert not replace(sealed, instances=(changed,)).is_sealed_by(KEY)
    assert not replace(sealed, instances=(INSTANCE, INSTANCE)).is_sealed_by(KEY)


@pytest.mark.parametrize("name", [field.name for field in fields(NotAssessed)])
def test_a_change_of_what_was_accepted_breaks_the_seal(name: str) -> None:
    changed = replace(ACCEPTED, **{name: OTHER[type(getattr(ACCEPTED, name))]})
    assert not replace(CLEARANCE.sealed(KEY), not_assessed=(changed,)).is_sealed_by(KEY)


def test_the_hashed_form_of_json_is_sorted_without_spaces_in_utf_8() -> None:
    assert canonical_json({"b": [1, "ä"], "a": None}) == '{"a":null,"b":[1,"ä"]}'.encode()


def test_a_clearance_of_another_shape_is_not_read() -> None:
    body = json.loads(CLEARANCE.to_json())
    with pytest.raises(TypeError):
        Clearance.from_json(json.dumps({**body, "more": 1}))
    del body["instances"]
    with pytest.raises(KeyError):
        Clearance.from_json(json.dumps(body))


def test_waiting_for_a_release_is_not_final() -> None:
    assert {state.value for state in FINAL_STATES} == {"sent", "recalled", "shadowed", "held", "rejected", "refused"}
    assert State.AWAITING_RELEASE not in FINAL_STATES
