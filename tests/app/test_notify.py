"""Messages to people, over real servers: signed, by TLS, tried again, and none lost by a crash."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from houses import House, house, route_nobody, study
from message_servers import Authority, Hook, Post, authority, mail_server, webhook
from planting import found_in

from gateway.app.message.channels import Message, NotSent, signature
from gateway.app.message.notices import Notice, identity
from gateway.app.message.queue import Outbox
from gateway.app.message.setup import channels_of
from gateway.app.message.watch import GIVE_UP_S, LOOK_S, REMIND_S, Watch
from gateway.errors import UsageError
from gateway.settings import Home, Settings, load_settings
from gateway.study import State

KEY = "k" * 40
MESSAGE = Message("a" * 32, 1796067334.0, (Notice("b" * 32, "held", 1796067334.0, reason="no_route", stage="intake"),))


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def hook(signed: Authority) -> Iterator[Hook]:
    with webhook(signed) as made:
        yield made


def settings(home: Home, **more: object) -> Settings:
    return load_settings(home.root, **more)


def by_hook(hook: Hook, signed: Authority, **more: object) -> dict[str, object]:
    return {"notify_webhook_url": hook.url, "notify_webhook_key": KEY, "notify_ca": signed.certificate, **more}


def by_mail(post: Post, signed: Authority, **more: object) -> dict[str, object]:
    return {
        "notify_mail_url": f"smtp://127.0.0.1:{post.port}",
        "notify_mail_from": "deid@hospital.example",
        "notify_mail_to": "dpo@hospital.example, ops@hospital.example",
        "notify_ca": signed.certificate,
        **more,
    }


# -- channels ---------------------------------------------------------------------------------------------------------


def test_what_is_posted_is_signed_and_says_it_in_words_and_in_codes(home: Home, hook: Hook, signed: Authority) -> None:
    values = settings(home, **by_hook(hook, signed, review_url="https://deid.example"))
    (channel,) = channels_of(values)
    assert channel.send(MESSAGE) == "answered 204"
    ((headers, body),) = hook.came
    parts = dict(part.split("=") for part in headers["X-Deid-Signature"].split(","))
    mac = hmac.new(KEY.encode(), f"{parts['t']}.".encode() + body, hashlib.sha256).hexdigest()
    assert hmac.compare_digest(parts["v1"], mac)
    assert abs(int(parts["t"]) - time.time()) < 60
    told = json.loads(body)
    assert (told["id"], headers["X-Deid-Message"]) == ("a" * 32, "a" * 32)
    assert told["subject"] == "1 study held"
    assert told["page"] == "https://deid.example/queue"
    notice = {"id": "b" * 32, "event": "held", "at": 1796067334.0, "reason": "no_route", "stage": "intake"}
    assert told["notices"] == [notice]


def test_a_signature_is_that_of_a_known_key_and_body() -> None:
    """openssl: printf '1700000000.{}' | openssl dgst -sha256 -hmac kkkk"""
    expected = hmac.new(b"kkkk", b"1700000000.{}", "sha256").hexdigest()
    assert signature(b"kkkk", b"{}", 1700000000) == f"t=1700000000,v1={expected}"


@pytest.mark.parametrize("status", [301, 307, 400, 404, 500, 503])
def test_an_answer_that_is_no_success_is_a_failure_and_no_redirect_is_followed(
    home: Home, hook: Hook, signed: Authority, status: int
) -> None:
    hook.answers = [status]
    (channel,) = channels_of(settings(home, **by_hook(hook, signed)))
    with pytest.raises(NotSent, match=f"answered {status}"):
        channel.send(MESSAGE)
    assert len(hook.came) == 1


def test_a_server_whose_certificate_nobody_vouches_for_gets_nothing(home: Home, hook: Hook, signed: Authority) -> None:
    values = by_hook(hook, signed)
    del values["notify_ca"]
    (channel,) = channels_of(settings(home, **values))
    with pytest.raises(NotSent, match="certificate is not trusted"):
        channel.send(MESSAGE)
    assert hook.came == []


def test_a_server_that_is_not_there_is_told_without_its_address(home: Home, signed: Authority) -> None:
    (channel,) = channels_of(settings(home, notify_webhook_url="https://127.0.0.1:1/secret", notify_webhook_key=KEY))
    with pytest.raises(NotSent) as caught:
        channel.send(MESSAGE)
    assert caught.value.says == "the connection was refused"
    assert "secret" not in repr(channel) + str(caught.value)
    assert KEY not in repr(channel)


def test_mail_goes_by_starttls_with_an_account_to_everybody(home: Home, signed: Authority) -> None:
    with mail_server(signed, ("deid", "a password")) as post:
        values = by_mail(post, signed, notify_mail_user="deid", notify_mail_password="a password")
        (channel,) = channels_of(settings(home, **values))
        assert channel.send(MESSAGE) == "taken"
        (letter,) = post.letters
        assert post.by_tls == [True]
        assert post.receivers == [["dpo@hospital.example", "ops@hospital.example"]]
        assert letter["Subject"] == "[deid-gateway] 1 study held"
        assert letter["Message-ID"] == f"<{'a' * 32}@hospital.example>"
        assert letter["Auto-Submitted"] == "auto-generated"
        assert "no_route" in letter.get_content()
        (wrong,) = channels_of(settings(home, **{**values, "notify_mail_password": "another"}))
        with pytest.raises(NotSent, match="does not take the account"):
            wrong.send(MESSAGE)
        assert "another" not in repr(wrong)


def test_a_mail_server_without_starttls_gets_nothing(home: Home, signed: Authority) -> None:
    with mail_server(None) as post:
        (channel,) = channels_of(settings(home, **by_mail(post, signed)))
        with pytest.raises(NotSent, match="no STARTTLS"):
            channel.send(MESSAGE)
        assert post.letters == []


def test_a_letter_that_is_refused_is_a_failure(home: Home, signed: Authority) -> None:
    with mail_server(signed) as post:
        post.refuse = ["451 4.3.0 try later dpo@hospital.example"]
        (channel,) = channels_of(settings(home, **by_mail(post, signed)))
        with pytest.raises(NotSent, match=r"^the mail server answered 451$"):
            channel.send(MESSAGE)


GOOD_HOOK = {"notify_webhook_url": "https://alerts.example/x", "notify_webhook_key": KEY}
GOOD_MAIL = {
    "notify_mail_url": "smtp://mail.example",
    "notify_mail_from": "a@b.example",
    "notify_mail_to": "c@d.example",
}


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({**GOOD_HOOK, "notify_webhook_url": "http://alerts.example/x"}, "https://"),
        ({**GOOD_HOOK, "notify_webhook_url": "ftp://alerts.example/x"}, "an address such as"),
        ({**GOOD_HOOK, "notify_webhook_url": "https://user:pw@alerts.example/x"}, "an address such as"),
        ({**GOOD_HOOK, "notify_webhook_url": "https://alerts.example:port/"}, "an address such as"),
        ({**GOOD_HOOK, "notify_webhook_url": "https://alerts.example/\r\nX: y"}, "an address such as"),
        ({**GOOD_HOOK, "notify_webhook_key": "short"}, "32 characters"),
        ({"notify_webhook_url": "https://alerts.example/x"}, "32 characters"),
        ({"notify_webhook_key": KEY}, "an address such as"),
        ({**GOOD_MAIL, "notify_mail_url": ""}, "DEID_NOTIFY_MAIL_URL"),
        ({**GOOD_MAIL, "notify_mail_url": "http://mail.example"}, "DEID_NOTIFY_MAIL_URL"),
        ({**GOOD_MAIL, "notify_mail_from": ""}, "DEID_NOTIFY_MAIL_FROM"),
        ({**GOOD_MAIL, "notify_mail_to": ""}, "DEID_NOTIFY_MAIL_TO"),
        ({**GOOD_MAIL, "notify_mail_to": "Dr <c@d.example>"}, "DEID_NOTIFY_MAIL_TO"),
        ({**GOOD_MAIL, "notify_mail_from": "a@b.example\nBcc: x@y.example"}, "DEID_NOTIFY_MAIL_FROM"),
        ({**GOOD_MAIL, "notify_mail_user": "me"}, "go together"),
        ({**GOOD_MAIL, "notify_mail_password": "pw"}, "go together"),
        ({**GOOD_HOOK, "notify_events": "held, fire"}, "no event fire"),
        ({**GOOD_HOOK, "notify_ca": Path("/no/such.pem")}, "DEID_NOTIFY_CA"),
    ],
)
def test_settings_under_which_no_message_would_arrive_are_refused(home: Home, given: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says) as caught:
        channels_of(settings(home, **given))
    assert KEY not in str(caught.value)


def test_without_settings_there_is_no_channel_and_the_gateway_does_not_start_on_bad_ones(
    home: Home, policies: Path
) -> None:
    from gateway.app.serve import Gateway

    assert channels_of(settings(home)) == []
    with pytest.raises(UsageError, match="32 characters"):
        Gateway(home, settings(home, policies=policies, notify_webhook_url="https://alerts.example/x"))


# -- the watch --------------------------------------------------------------------------------------------------------


@pytest.fixture
def told(home: Home, policies: Path, hook: Hook, signed: Authority) -> Iterator[House]:
    """A house in which every study is held, and whose watch posts at once."""
    route_nobody(policies)
    with house(home, policies, **by_hook(hook, signed, notify_digest_s=0.0)) as made:
        yield made


def watch_of(made: House) -> Watch:
    return Watch(made.parts, channels_of(made.parts.settings))


def posted(hook: Hook) -> list[dict[str, Any]]:
    return [notice for _, body in hook.came for notice in json.loads(body)["notices"]]


def test_what_was_before_the_watch_is_not_told_and_what_comes_is_told_once(told: House, hook: Hook) -> None:
    told.deliver(*study(1))
    watch = watch_of(told)
    watch.once(time.time())
    assert hook.came == []
    told.deliver(*study(1, patient="LEAK0002"))
    for _ in range(3):
        watch.once(time.time())
    (notice,) = posted(hook)
    assert (notice["event"], notice["reason"], notice["stage"]) == ("held", "no_route", "intake")
    assert told.metric("deid_notifications_total", channel="webhook", result="sent") == 1
    assert told.metric("deid_notifications_waiting") == 0
    assert found_in(hook.came[0][1]) == []
    assert b"LEAK" not in hook.came[0][1]
    for key in [str(line.get("study")) for line in told.events() if line.get("study")]:
        assert key.encode() not in hook.came[0][1]


def test_a_watch_that_died_anywhere_loses_nothing(told: House, hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each write of the queue is a place to die at; the next watch goes on from the disk."""

    class Died(BaseException):
        pass

    watch_of(told).once(time.time())
    for number, name in enumerate(("add", "keep", "bundle", "due", "done"), 1):
        told.deliver(*study(1, patient=f"LEAK1{number:03d}"))
        real = getattr(Outbox, name)

        def die(*_given: object, **_more: object) -> None:
            raise Died

        monkeypatch.setattr(Outbox, name, die)
        with pytest.raises(Died):
            watch_of(told).once(time.time())
        monkeypatch.setattr(Outbox, name, real)
        watch_of(told).once(time.time())
        assert len({notice["id"] for notice in posted(hook)}) == number, name
    ids = [json.loads(body)["id"] for _, body in hook.came]
    assert len(ids) - len(set(ids)) <= 1  # died after it was sent: the same message again, by the same name


def test_a_server_that_is_down_is_tried_again_with_longer_and_longer_pauses(told: House, hook: Hook) -> None:
    watch, now = watch_of(told), time.time()
    watch.once(now)
    told.deliver(*study(1))
    hook.answers = [503, 503]
    watch.once(now)
    assert told.metric("deid_notifications_waiting") == 1
    watch.once(now + 0.5)  # retry_base_s is 1 here
    assert len(hook.came) == 1
    watch.once(now + 1.1)
    watch.once(now + 2.5)
    assert len(hook.came) == 2
    assert told.metric("deid_notifications_oldest_seconds") >= 2
    watch.once(now + 3.2)
    assert len(hook.came) == 3
    assert len({body for _, body in hook.came}) == 1
    assert told.metric("deid_notifications_waiting") == 0
    assert told.metric("deid_notifications_oldest_seconds") == 0
    assert told.metric("deid_notifications_total", channel="webhook", result="failed") == 2


def test_what_nobody_took_for_a_week_is_given_up_and_counted(told: House, hook: Hook) -> None:
    watch, now = watch_of(told), time.time()
    watch.once(now)
    told.deliver(*study(1))
    hook.answers = [500]
    watch.once(now)
    watch.once(now + GIVE_UP_S + 10)
    assert len(hook.came) == 1
    assert told.metric("deid_notifications_total", channel="webhook", result="given_up") == 1
    assert Outbox(told.parts.home.root).due() == []


def test_a_digest_collects_what_is_not_urgent_and_urgent_things_go_at_once(
    home: Home, policies: Path, hook: Hook, signed: Authority
) -> None:
    route_nobody(policies)
    with house(home, policies, **by_hook(hook, signed, notify_digest_s=3600.0)) as made:
        watch, now = watch_of(made), time.time()
        watch.once(now)
        for number in range(3):
            made.deliver(*study(1, patient=f"LEAK000{number}"))
        watch.once(now + 60)
        assert hook.came == []
        assert made.metric("deid_notifications_waiting") == 3
        made.parts.ledger.fault = "the line was changed"
        watch.once(now + 60 + LOOK_S)
        assert [notice["event"] for notice in posted(hook)] == ["ledger_broken"]
        watch.once(now + 3700)
        assert [notice["event"] for notice in posted(hook)][1:] == ["held"] * 3
        assert json.loads(hook.came[1][1])["subject"] == "3 studies held"


def test_only_the_events_that_were_asked_for_are_told(
    home: Home, policies: Path, hook: Hook, signed: Authority
) -> None:
    route_nobody(policies)
    with house(home, policies, **by_hook(hook, signed, notify_digest_s=0.0, notify_events="release_blocked")) as made:
        watch = watch_of(made)
        watch.once(time.time())
        made.deliver(*study(1))
        watch.once(time.time())
        assert hook.came == []
        assert Outbox(home.root).waiting() == []


def test_a_condition_is_told_when_it_begins_each_day_and_when_it_is_over(
    home: Home, policies: Path, hook: Hook, signed: Authority
) -> None:
    with house(home, policies, **by_hook(hook, signed, notify_digest_s=0.0)) as made:
        key = made.deliver(*study(1))
        job, now = made.job(key).job_key, time.time()
        watch = watch_of(made)
        watch.once(now)
        made.parts.database.set_job(job, state=State.CLEARED, attempt=2, reason="archive_unreachable")
        watch.once(now + LOOK_S)
        assert hook.came == []  # two tries may be a restart over there
        made.parts.database.set_job(job, state=State.CLEARED, attempt=3, reason="archive_unreachable")
        for moment in (2 * LOOK_S, 3 * LOOK_S, REMIND_S):
            watch_of(made).once(now + moment)  # another watch knows what was told
        assert [(one["event"], one["subject"]) for one in posted(hook)] == [("archive_down", "research-archive")]
        watch_of(made).once(now + 2 * LOOK_S + REMIND_S)
        assert len(posted(hook)) == 2
        made.parts.database.set_job(job, state=State.SENT, attempt=0, reason="")
        watch_of(made).once(now + 3 * LOOK_S + REMIND_S)
        assert posted(hook)[2]["over"] is True


def test_a_full_disk_and_a_certificate_that_ends_are_told(
    home: Home, policies: Path, hook: Hook, signed: Authority
) -> None:
    """The authority's own certificate ends in two days."""
    more = {"min_free_bytes": 1 << 60, "review_tls_certificate": signed.certificate, "review_tls_key": signed.key}
    with house(home, policies, **by_hook(hook, signed, notify_digest_s=0.0, **more)) as made:
        watch_of(made).once(time.time())
        found = {one["event"]: one for one in posted(hook)}
        assert found.keys() == {"disk_low", "expiring"}
        assert found["expiring"]["subject"] == "review_certificate"
        assert found["expiring"]["reason"].startswith("20")


def test_a_ledger_that_was_cut_does_not_stop_the_watch(told: House, hook: Hook) -> None:
    told.deliver(*study(1))
    watch, now = watch_of(told), time.time()
    watch.once(now)
    path = told.parts.home.ledger
    path.write_bytes(path.read_bytes()[:200])
    watch._verify(1e9)
    watch.once(now + LOOK_S)
    assert [one["event"] for one in posted(hook)] == ["ledger_broken"]


def test_a_release_that_is_blocked_or_cleared_is_told_by_name(
    home: Home, policies: Path, hook: Hook, signed: Authority
) -> None:
    from releasing import film, judged

    judged(policies, {"record_isolation": {"k": 2}}, people=2)
    with house(home, policies, **by_hook(hook, signed, notify_digest_s=0.0)) as made:
        watch = watch_of(made)
        watch.once(time.time())
        for person in range(2):
            made.deliver(film(person))
        assert made.decide("close", "research-basic-1") == "done"
        watch.once(time.time())
        (notice,) = posted(hook)
        assert (notice["event"], notice["subject"], notice["people"]) == ("release_cleared", "research-basic-1", 2)
        hook.came.clear()
        recalled = made.decide("recall:release:113039", "research-basic-1", reason="consent withdrawn")
        assert recalled == "done: recall 1"
        watch.once(time.time())
        (notice,) = posted(hook)
        assert {name: notice[name] for name in sorted(notice.keys() - {"id", "at"})} == {
            "event": "recalled",
            "reason": "113039",
            "studies": 2,
            "subject": "research-basic-1",
        }
        assert b"consent" not in hook.came[0][1]


def test_both_channels_get_each_message_and_one_that_fails_keeps_the_other_from_nothing(
    home: Home, policies: Path, hook: Hook, signed: Authority
) -> None:
    route_nobody(policies)
    with mail_server(signed) as post:
        both = {**by_hook(hook, signed), **by_mail(post, signed), "notify_digest_s": 0.0}
        with house(home, policies, **both) as made:
            watch, now = watch_of(made), time.time()
            watch.once(now)
            made.deliver(*study(1))
            hook.answers = [500]
            watch.once(now)
            assert len(post.letters) == 1
            watch.once(now + 2)
            assert (len(post.letters), len(hook.came)) == (1, 2)
            assert found_in(post.letters[0].as_bytes()) == []


def test_a_damaged_file_of_the_queue_is_put_aside(told: House, hook: Hook) -> None:
    box = Outbox(told.parts.home.root)
    box.open()
    box.add([Notice(identity("x"), "held", time.time())])
    (path,) = (told.parts.home.root / "notify" / "waiting").glob("*.json")
    path.write_bytes(b"{")
    watch_of(told).once(time.time())
    assert hook.came == []
    assert path.with_suffix(".damaged").exists()


def test_the_queue_is_for_our_eyes_alone(told: House) -> None:
    watch_of(told).once(time.time())
    folders = [told.parts.home.root / "notify", told.parts.home.root / "notify" / "outbox"]
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}
