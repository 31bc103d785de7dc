"""What people decide on the page: approve, reject, run again, redact; reasons, rounds, two people, other policies."""

from __future__ import annotations

import json
import re
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from houses import House, add_policy, edit, late, route_all, study
from planting import ID
from review_site import Site, csrf_of, site_of, site_over

from gateway.app.person.retention import Retention
from gateway.app.review.agreement import ON_THE_PAGE, SAME_PERSON
from gateway.app.review.wishes import FIRST, MOVED
from gateway.review import Role
from gateway.study import Clearance, State

ACCEPTED = [
    {
        "aspects": ["burned_in_text", "recognizable_features", "image_identity"],
        "modality": ["CT"],
        "reason": "a test",
        "approver": "tests",
    }
]


def accept(folder: Path, name: str = "research-basic") -> None:
    edit(folder, name, lambda body: body["gate"].update(not_assessed=ACCEPTED))


def two_person(body: dict[str, Any]) -> None:
    body["review"] = {"two_person": True}


def pixels(target: Path) -> list[Any]:
    return [pydicom.dcmread(path).pixel_array for path in sorted(target.rglob("*.dcm"))]


def test_an_approval_sends_the_study_under_the_name_of_who_was_signed_in(site: Site, target: Path) -> None:
    assert site.decide(site.signed_in(name="anna"), "release", reason="nothing to be seen") == "done"
    assert site.job().state == State.SENT
    assert Clearance.from_json(site.job().clearance).issuer == "review:anna@review"
    (line,) = site.events("released")
    assert (line["actor"], line["reason_given"]) == ("anna@review", "nothing to be seen")
    assert len(pixels(target)) == 2


def test_no_decision_goes_without_a_reason(site: Site) -> None:
    browser = site.signed_in()
    reasons = ("", "    ", "shrt", "a" * 513, "two\nlines")
    for verb, reason in product(("release", "reject", "rerun", "redact"), reasons):
        answer = site.decide(browser, verb, reason=reason, top=0, left=0, bottom=2, right=2, name="00001")
        assert answer.status_code == 409
        assert "needs a reason" in answer.text
    assert site.house.parts.database.intents_of(site.held) == []


def test_a_reason_that_names_somebody_is_refused_and_not_kept(site: Site) -> None:
    outcome = site.decide(site.signed_in(), "reject", reason=f"this is {ID} again")
    assert outcome.startswith("the reason names something out of the study")
    assert site.job().state == State.HELD
    assert ID not in str(site.house.parts.database.intents_of(site.held))


def test_another_verb_is_no_decision(site: Site) -> None:
    browser = site.signed_in()
    for verb in ("", "forget", "release:r1", "RELEASE"):
        assert site.decide(browser, verb).status_code == 409
    assert site.house.parts.database.intents_of(site.held) == []


def test_what_was_on_the_screen_is_what_is_decided(site: Site) -> None:
    """Somebody ran it again meanwhile: an approval of the earlier round approves nothing."""
    first, second = site.signed_in(name="anna"), site.signed_in(name="ben")
    form = {"csrf": csrf_of(first.get(f"/study/{site.held}").text), "verb": "release", "reason": "looked at it"}
    assert site.decide(second, "rerun") == "done"
    assert site.job().round == 2
    answer = first.post(f"/study/{site.held}/decide", data={**form, "round": 1})
    assert answer.status_code == 409
    assert "changed since you opened it" in answer.text
    # and between writing it down and carrying it out
    database = site.house.parts.database
    serial = database.add_intent(kind="release:r1", key=site.held, actor="anna@review", reason="looked at it")
    site.house.settle()
    assert database.intent(serial).outcome == MOVED  # type: ignore[union-attr]
    assert site.job().state == State.HELD


def test_what_could_not_be_cleaned_to_the_end_is_shown_and_decided_too(site: Site) -> None:
    """Held in the leg `scrub` of `serve`, which is not the command `scrub`: a header, or text that a stage doubts."""
    parts = site.house.parts
    row = min(parts.database.instances_of(site.job().study_key), key=lambda row: row.sop_key)
    path = parts.spool.path(row.study_key, row.name)
    whole = path.read_bytes()
    number = b"\x20\x00\x13\x00IS"  # InstanceNumber, and a VR that there is not
    path.write_bytes(whole.replace(number, number[:5] + b"\xff"))
    browser = site.signed_in()
    assert site.decide(browser, "rerun") == "done"
    assert (site.job().state, site.job().held_in, site.job().round) == (State.HELD, "scrub", 2)
    page = browser.get(f"/study/{site.held}").text
    assert "run `scrub` again" not in page
    assert re.search(r'value="release" required disabled', page)
    for what in ("frame/00002/0/before", "header/00002"):
        assert browser.get(f"/study/{site.held}/{what}").status_code == 200
    assert site.decide(browser, "release").startswith("its header could not be cleaned")
    assert site.decide(browser, "redact", **{**BOX, "name": "00002"}) == "done"
    assert (site.job().state, site.job().held_in, site.job().round) == (State.HELD, "scrub", 3)
    assert site.decide(browser, "reject") == "done"
    assert site.job().state == State.REJECTED


# -- two people ---------------------------------------------------------------------------------------------------


@pytest.fixture
def two(gateway_house: House, policies: Path) -> Any:
    edit(policies, "research-basic", two_person)
    gateway_house.parts.policies.reload()
    with site_over(gateway_house, datasets=study(2)) as made:
        yield made


def test_where_two_must_agree_one_alone_changes_nothing(two: Site, target: Path) -> None:
    anna, ben = two.signed_in(name="anna"), two.signed_in(name="ben")
    assert two.decide(anna, "release", reason="nothing to be seen") == FIRST
    assert two.job().state == State.HELD
    assert two.job().round == 1
    assert not target.exists()
    assert "1 of 2 agreed" in anna.get("/queue").text
    assert "<strong>anna@review</strong> has" in ben.get(f"/study/{two.held}").text
    assert two.decide(anna, "release", reason="I am still sure") == SAME_PERSON
    assert two.job().state == State.HELD
    assert two.decide(ben, "release", reason="I see nothing either") == "done"
    assert two.job().state == State.SENT
    assert [line["actor"] for line in two.house.events() if line["event"] in ("agreed", "released")] == [
        "anna@review",
        "ben@review",
    ]


def test_a_command_line_is_not_two_people(two: Site, target: Path) -> None:
    for by in ("Dr Able", "Dr Baker"):
        assert two.house.decide("release", two.held, by=by) == ON_THE_PAGE
    assert two.decide(two.signed_in(name="anna"), "release") == FIRST
    assert two.house.decide("release", two.held, by="Dr Baker") == ON_THE_PAGE
    assert two.job().state == State.HELD
    assert not target.exists()


def test_an_agreement_does_not_outlive_what_was_agreed_to(two: Site) -> None:
    anna, ben = two.signed_in(name="anna"), two.signed_in(name="ben")
    assert two.decide(anna, "release") == FIRST
    assert two.decide(ben, "rerun") == "done"
    assert "0 of 2 agreed" in ben.get("/queue").text
    assert two.decide(ben, "release") == FIRST
    assert two.job().state == State.HELD


def test_one_person_may_reject_and_run_again(two: Site) -> None:
    anna = two.signed_in(name="anna")
    assert two.decide(anna, "rerun") == "done"
    assert two.decide(anna, "reject") == "done"
    assert two.job().state == State.REJECTED


def test_another_policy_is_no_way_around_two_people(two: Site, policies: Path, target: Path) -> None:
    add_policy(policies, "lax", lambda body: body.pop("review"))
    accept(policies, "lax")
    two.house.parts.policies.reload()
    lax = two.house.parts.policies.current.policies["lax"].digest
    dora, dan = (two.signed_in(Role.PRIVACY_OFFICER, name=name) for name in ("dora", "dan"))
    assert two.decide(dora, "rerun", policy=lax) == FIRST
    assert two.job().policy == "research-basic"
    assert two.decide(dora, "rerun", policy=lax) == SAME_PERSON
    assert two.decide(dan, "rerun", policy=lax) == "done"
    assert (two.job().policy, two.job().state) == ("lax", State.SENT)


# -- another policy -----------------------------------------------------------------------------------------------


def test_a_privacy_officer_may_run_it_under_another_policy(site: Site, policies: Path, target: Path) -> None:
    add_policy(policies, "other", lambda body: body["header"]["patient_id"].update(prefix="OTHER-"))
    accept(policies, "other")
    site.house.parts.policies.reload()
    other = site.house.parts.policies.current.policies["other"].digest
    reviewer = site.signed_in()
    assert site.decide(reviewer, "rerun", policy=other).status_code == 403
    assert other not in reviewer.get(f"/study/{site.held}").text
    dora = site.signed_in(Role.PRIVACY_OFFICER)
    assert other in dora.get(f"/study/{site.held}").text
    assert site.decide(dora, "rerun", policy="f" * 64).status_code == 409
    assert site.decide(dora, "rerun", policy=other) == "done"
    assert (site.job().policy, site.job().policy_digest, site.job().state) == ("other", other, State.SENT)
    assert all(str(pydicom.dcmread(path).PatientID).startswith("OTHER-") for path in target.rglob("*.dcm"))


def test_one_study_never_leaves_under_two_policies(site: Site, policies: Path) -> None:
    dora = site.signed_in(Role.PRIVACY_OFFICER)
    assert site.decide(dora, "release") == "done"
    more = late(site.datasets[0])
    site.house.deliver(more)
    job = site.house.job(site.job().study_key, 2)
    assert job.state == State.HELD
    add_policy(policies, "other", lambda body: body["header"]["patient_id"].update(prefix="OTHER-"))
    site.house.parts.policies.reload()
    other = site.house.parts.policies.current.policies["other"].digest
    second = Site(site.house, site.pages, site.accounts, job.job_key)
    assert second.decide(dora, "rerun", policy=other).startswith("part of this study has left under another policy")


def test_a_policy_for_another_archive_is_not_offered_and_not_taken(site: Site, policies: Path) -> None:
    edit(policies, "destinations", lambda body: body.update(elsewhere="folder:/nowhere"))
    add_policy(policies, "away", lambda body: body.update(forward={"to": "elsewhere"}))
    site.house.parts.policies.reload()
    away = site.house.parts.policies.current.policies["away"].digest
    dora = site.signed_in(Role.PRIVACY_OFFICER)
    assert away not in dora.get(f"/study/{site.held}").text
    assert site.decide(dora, "rerun", policy=away) == "that policy forwards to elsewhere only"


def test_what_a_route_sends_there_under_that_policy_already_is_not_sent_twice(
    gateway_house: House, policies: Path
) -> None:
    add_policy(policies, "other", lambda body: body["header"]["patient_id"].update(prefix="OTHER-"))
    targets = [("demo", name, "research-archive") for name in ("research-basic", "other")]
    route_all(policies, *targets)
    gateway_house.parts.policies.reload()
    key = gateway_house.deliver(*study())
    jobs = {job.policy: job for job in gateway_house.parts.database.jobs_of(key, 1)}
    site = site_of(gateway_house, jobs["research-basic"].job_key)
    dora = site.signed_in(Role.PRIVACY_OFFICER)
    outcome = site.decide(dora, "rerun", policy=jobs["other"].policy_digest)
    assert outcome == "its route sends it there under that policy already; reject this one"


# -- a drawn box --------------------------------------------------------------------------------------------------

BOX = {"top": 1, "left": 2, "bottom": 4, "right": 6, "name": "00001", "scope": "series"}


def drawings(site: Site) -> Path:
    return site.house.parts.home.root / "review" / "drawn" / site.job().study_key


def masked(values: Any) -> Any:
    """What is outside the box, the box itself set to 0."""
    out = values.copy()
    out[1:4, 2:6] = 0
    return out


def test_a_drawn_box_goes_on_every_object_of_its_series_and_the_gate_judges_again(
    site: Site, policies: Path, target: Path
) -> None:
    browser = site.signed_in(name="anna")
    assert site.decide(browser, "redact", reason="there is writing in the corner", **BOX) == "done"
    job = site.job()
    assert (job.state, job.reason, job.held_in, job.round) == (State.HELD, "not_assessed", "gate", 2)
    assert json.loads(job.steps)["drawn_boxes@1"] == {"instances": 2, "boxes": 2, "frames": 2}
    (line,) = site.events("redacted")
    assert (line["actor"], line["box"], line["whole_series"]) == ("anna@review", [1, 2, 4, 6], True)
    assert site.decide(browser, "release", reason="now it is clean") == "done"
    original = np.arange(64).reshape(8, 8)
    sent = pixels(target)
    assert len(sent) == 2
    for values in sent:
        np.testing.assert_array_equal(values, masked(original))
    for path in target.rglob("*.dcm"):
        codes = [item.CodeValue for item in pydicom.dcmread(path).DeidentificationMethodCodeSequence]
        assert codes.count("113101") == 1


def test_a_box_for_one_object_stays_on_that_object(site: Site, target: Path) -> None:
    browser = site.signed_in()
    assert site.decide(browser, "redact", **{**BOX, "scope": "object"}) == "done"
    assert site.decide(browser, "release") == "done"
    changed = sorted(int((values == 0).sum()) for values in pixels(target))
    assert changed == [1, 1 + 12]


def test_boxes_add_up_and_the_same_bytes_come_out_in_whatever_order(site: Site) -> None:
    browser = site.signed_in()
    other = {**BOX, "top": 5, "bottom": 8}
    work = site.house.parts.home.work / site.held

    def candidates() -> list[bytes]:
        return [path.read_bytes() for path in sorted(work.glob("*.dcm"))]

    assert site.decide(browser, "redact", **BOX) == "done"
    assert site.decide(browser, "redact", **other) == "done"
    both = candidates()
    assert site.decide(browser, "redact", **BOX) == "done"  # drawn again: it is the same box
    assert candidates() == both
    assert site.decide(browser, "rerun") == "done"
    assert candidates() == both
    assert len(list(drawings(site).glob("*.json"))) == 2


def test_what_arrives_late_is_redacted_like_the_rest(site: Site, policies: Path) -> None:
    browser = site.signed_in()
    assert site.decide(browser, "redact", **BOX) == "done"
    site.house.deliver(late(site.datasets[0]))
    job = site.house.job(site.job().study_key, 2)
    (path,) = (site.house.parts.home.work / job.job_key).glob("*.dcm")
    np.testing.assert_array_equal(pydicom.dcmread(path).pixel_array, masked(np.arange(64).reshape(8, 8)))


def test_what_arrives_after_retention_is_redacted_all_the_same(site: Site) -> None:
    """Retention takes the originals and the estimates made of them; what a person drew stays."""
    browser = site.signed_in()
    assert site.decide(browser, "redact", **BOX) == "done"
    assert site.decide(browser, "release") == "done"
    Retention(site.house.parts).run(time.time() + 40 * 86400)
    assert not (site.house.parts.home.estimates / site.job().study_key).exists()
    site.house.deliver(late(site.datasets[0]))
    job = site.house.job(site.job().study_key, 2)
    (path,) = (site.house.parts.home.work / job.job_key).glob("*.dcm")
    np.testing.assert_array_equal(pydicom.dcmread(path).pixel_array, masked(np.arange(64).reshape(8, 8)))


def test_a_box_that_lies_nowhere_is_refused(site: Site) -> None:
    browser = site.signed_in()
    for wrong in (
        *({"bottom": 9}, {"right": 9}, {"bottom": 1}, {"right": 2}, {"top": -1}, {"top": "a"}, {"name": "00003"}),
        *({"name": ""}, {"top": ""}, {"left": "1e9"}),
    ):
        assert site.decide(browser, "redact", **{**BOX, **wrong}).status_code == 409, wrong
    assert site.house.parts.database.intents_of(site.held) == []


def test_a_drawing_that_was_changed_holds(site: Site) -> None:
    browser = site.signed_in()
    assert site.decide(browser, "redact", **BOX) == "done"
    (path,) = drawings(site).glob("*.json")
    path.write_bytes(path.read_bytes().replace(b'"whole_series":true', b'"whole_series":null'))
    assert site.decide(browser, "rerun") == "done"
    assert (site.job().state, site.job().reason) == (State.HELD, "stage_failed")
    assert site.job().at.startswith("the drawing ")


def test_what_is_stored_of_a_box_identifies_nobody(site: Site) -> None:
    assert site.decide(site.signed_in(), "redact", **BOX) == "done"
    (path,) = drawings(site).glob("*.json")
    text = path.read_text()
    ds = site.datasets[0]
    assert not any(str(value) in text for value in (ds.SOPInstanceUID, ds.SeriesInstanceUID, ds.PatientID))
    assert path.stat().st_mode & 0o777 == 0o600
