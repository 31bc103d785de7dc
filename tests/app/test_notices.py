"""What people are told: the words, and that nothing in them identifies anybody."""

from __future__ import annotations

import json

from gateway.app.message.notices import EVENTS, OF_LEDGER, Notice, identity, lines_of, of_line, subject_of

LINE = {
    "decision": "held/286d596e3f32d4285f13fff3/r1",
    "event": "held",
    "job": "286d596e3f32d4285f13fff3",
    "study": "8820a4759edd01d8752e5276",
    "time": 1796067334.5,
    "reason": "no_route",
    "stage": "intake",
    "at": "00001 00100010",
}


def notice(event: str, number: int = 1, **more: object) -> Notice:
    return Notice(identity(event, number), event, 1796067334.0 + number, **more)  # type: ignore[arg-type]


def test_a_line_of_the_ledger_becomes_a_notice_without_keys() -> None:
    found = of_line(LINE)
    assert found is not None
    assert (found.event, found.reason, found.stage, found.at) == ("held", "no_route", "intake", 1796067334.5)
    told = json.dumps(found.as_json())
    for secret in (LINE["job"], LINE["study"], LINE["at"]):
        assert str(secret) not in told
    assert of_line({**LINE, "event": "viewed"}) is None


def test_a_recall_is_told_by_its_release_and_never_by_a_key_or_a_person() -> None:
    line = {
        "decision": "intent/7",
        "event": "recalled",
        "time": 1796067334.5,
        "scope": "release",
        "key": "research-basic-1",
        "code": "113037",
        "actor": "J. Doe",
        "reason_given": "asked for by the site",
        "stopped": ["286d596e3f32d4285f13fff3"],
        "studies": 3,
        "receivers": 2,
    }
    found = of_line(line)
    assert found is not None
    assert (found.subject, found.reason, found.studies) == ("research-basic-1", "113037", 3)
    assert subject_of([found]) == "1 recall"
    (said,) = lines_of([found])
    assert said == (
        "2026-11-30 19:35 UTC  Recall of release research-basic-1 (Rejected for Patient Safety Reasons): 3 studies "
        "that receivers have. Next: deid-gateway recall list, and tell the receivers that take no rejection notes."
    )
    for scope in ("study", "pseudonym", "subject"):
        other = of_line({**line, "scope": scope, "key": "8820a4759edd01d8752e5276", "studies": 1})
        assert other is not None
        told = json.dumps(other.as_json()) + lines_of([other])[0]
        assert "Recall (Rejected for Patient Safety Reasons): one study that receivers have." in told
        for secret in ("8820a4759edd01d8752e5276", "286d596e3f32d4285f13fff3", "Doe", "asked", scope + '"'):
            assert secret not in told
    (old,) = lines_of([of_line({**line, "studies": 0})])  # type: ignore[list-item]
    assert "research-basic-1 (Rejected for Patient Safety Reasons): what receivers have. Next" in old
    assert of_line({**line, "event": "job_recalled"}) is None


def test_the_same_line_is_the_same_notice_and_another_one_is_not() -> None:
    assert of_line(LINE) == of_line(dict(LINE))
    other = of_line({**LINE, "decision": "held/286d596e3f32d4285f13fff3/r2"})
    assert other is not None
    assert other.id != of_line(LINE).id  # type: ignore[union-attr]


def test_every_event_has_its_words_and_says_what_to_do() -> None:
    for event in EVENTS:
        for over in (False, True) if event not in OF_LEDGER else (False,):
            told = notice(event, subject="research-archive", reason="linkability", over=over)
            assert subject_of([told])
            (line,) = lines_of([told])
            assert line.endswith((".", ")", "verify", "research-archive")), line
    (line,) = lines_of([notice("held", reason="no_route", stage="intake")])
    assert line == (
        "1 study was held in intake: no_route (no rule in routes.yaml matches this study; "
        "add a rule, or reject the study)"
    )


def test_many_holds_are_one_line_for_each_reason_and_the_subject_counts() -> None:
    notices = [notice("held", number, reason="no_route", stage="intake") for number in range(900)]
    notices += [
        notice("held", 1000, reason="residual_text", stage="gate"),
        notice("release_blocked", 1001, subject="p-1"),
    ]
    assert subject_of(notices) == "901 studies held; 1 release blocked"
    lines = lines_of(notices)
    assert len(lines) == 3
    assert lines[1].startswith("900 studies were held in intake: no_route")


def test_a_flood_of_other_things_is_cut_with_how_many_more() -> None:
    lines = lines_of([notice("release_cleared", number, subject=f"p-{number}", people=3) for number in range(60)])
    assert len(lines) == 41
    assert lines[-1] == "… and 20 more"


def test_urgent_things_come_first() -> None:
    lines = lines_of([notice("release_cleared", 1, subject="p-1"), notice("ledger_broken", 2)])
    assert "ledger was changed" in lines[0]


def test_a_notice_survives_its_way_through_json() -> None:
    one = notice("archive_down", subject="a", over=True)
    assert Notice.of_json(json.loads(json.dumps(one.as_json()))) == one
