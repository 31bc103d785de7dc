"""Settings are few and strict: unknown names and wrong values are refused, all at once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from sqlalchemy import make_url

from gateway.errors import UsageError
from gateway.settings import SHIPPED_POLICIES, Settings, load_settings


@pytest.fixture(autouse=True)
def without_the_testers_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.upper().startswith("DEID_")]:
        monkeypatch.delenv(name)


def test_the_defaults_stay_on_loopback_and_let_nobody_send(tmp_path: Path) -> None:
    settings = load_settings(tmp_path)
    assert (settings.dicom_host, settings.http_host) == ("127.0.0.1", "127.0.0.1")
    assert settings.allowed_peers == ()
    assert settings.key is None
    assert settings.policies == SHIPPED_POLICIES


def test_the_environment_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEID_DICOM_PORT", "104")
    monkeypatch.setenv("DEID_QUIET_S", "2.5")
    monkeypatch.setenv("DEID_USE_EXPECTED_COUNT", "false")
    settings = load_settings(tmp_path)
    assert (settings.dicom_port, settings.quiet_s, settings.use_expected_count) == (104, 2.5, False)


def test_arguments_win_over_the_environment_and_that_over_the_env_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("DEID_AE_TITLE=FILE\nDEID_WORKERS=3\nDEID_DICOM_PORT=3000\n")
    monkeypatch.setenv("DEID_WORKERS", "4")
    monkeypatch.setenv("DEID_DICOM_PORT", "4000")
    settings = load_settings(tmp_path, dicom_port=5000)
    assert (settings.ae_title, settings.workers, settings.dicom_port) == ("FILE", 4, 5000)


@pytest.mark.parametrize("written", ["PACS@10.0.0.7,CT1@*", "PACS@10.0.0.7, CT1@*", "PACS@10.0.0.7 CT1@*\n"])
def test_peers_are_ae_titles_at_hosts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str) -> None:
    monkeypatch.setenv("DEID_ALLOWED_PEERS", written)
    assert load_settings(tmp_path).allowed_peers == ("PACS@10.0.0.7", "CT1@*")


@pytest.mark.parametrize("written", ["PACS", "@10.0.0.7", "PACS@", "SEVENTEENLETTERSX@*", "PACS@*,NOHOST", "*"])
def test_a_peer_that_is_no_title_at_host_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv("DEID_ALLOWED_PEERS", written)
    with pytest.raises(UsageError, match="DEID_ALLOWED_PEERS"):
        load_settings(tmp_path)


def test_an_unknown_name_is_refused_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEID_QUIET_SECONDS", "3")
    monkeypatch.setenv("DEID_ALOWED_PEERS", "PACS@*")
    with pytest.raises(UsageError, match="DEID_ALOWED_PEERS, DEID_QUIET_SECONDS"):
        load_settings(tmp_path)


def test_an_unknown_name_is_refused_in_the_env_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DEID_ALOWED_PEERS=PACS@*\nOTHER_PROGRAM=1\n")
    with pytest.raises(UsageError, match="DEID_ALOWED_PEERS") as refused:
        load_settings(tmp_path)
    assert "OTHER_PROGRAM" not in str(refused.value)


def test_the_home_may_be_named_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEID_HOME", str(tmp_path))
    assert load_settings(tmp_path).ae_title == "DEID"


def test_all_wrong_values_are_told_at_once_and_none_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEID_DICOM_PORT", "70123")
    monkeypatch.setenv("DEID_WORKERS", "none-given")
    monkeypatch.setenv("DEID_POLL_S", "17")
    with pytest.raises(UsageError) as refused:
        load_settings(tmp_path)
    text = str(refused.value)
    assert all(name in text for name in ("DEID_DICOM_PORT", "DEID_WORKERS", "DEID_POLL_S"))
    assert "70123" not in text
    assert "none-given" not in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[("dicom_port", port) for port in (-1, 65536)],
        *[("max_pdu_bytes", size) for size in (0, 4095, (1 << 24) + 1)],
        *[("receivers", processes) for processes in (0, 65)],
        *[(name, -1) for name in ("max_associations_per_peer", "max_instances_per_s", "max_waiting_studies")],
        *[("poll_s", seconds) for seconds in (0, 1.01)],
        *[(name, 0) for name in ("network_timeout_s", "forced_complete_s", "workers", "max_associations")],
        *[("quiet_s", -1), ("min_free_bytes", -1), ("ae_title", "SEVENTEENLETTERSX")],
    ],
)
def test_a_value_out_of_range_is_refused(tmp_path: Path, name: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"DEID_{name.upper()}"):
        load_settings(tmp_path, **{name: value})


def test_a_worker_has_room_to_start_or_no_limit(tmp_path: Path) -> None:
    assert load_settings(tmp_path).worker_memory_bytes == 0
    assert load_settings(tmp_path, worker_memory_bytes=1 << 30).worker_memory_bytes == 1 << 30
    with pytest.raises(UsageError, match=r"DEID_WORKER_MEMORY_BYTES: .*no worker can start"):
        load_settings(tmp_path, worker_memory_bytes=(1 << 30) - 1)


def test_settings_do_not_change_after_they_are_read(tmp_path: Path) -> None:
    settings: Settings = load_settings(tmp_path)
    with pytest.raises(ValueError, match="frozen"):
        settings.workers = 3  # type: ignore[misc]


def test_whoever_waits_for_postgresql_gives_up_in_time(tmp_path: Path) -> None:
    def parameters(url: str) -> dict[str, object]:
        return dict(make_url(load_settings(tmp_path, database_url=url).database_url).query)

    patience = {
        "connect_timeout": "10",
        "tcp_user_timeout": "20000",
        "keepalives_idle": "10",
        "keepalives_interval": "5",
        "keepalives_count": "3",
    }
    url = "postgresql+psycopg://gateway@db/gateway"
    assert parameters(url) == patience
    assert parameters(f"{url}?connect_timeout=3&sslmode=require") == {
        **patience,
        "connect_timeout": "3",
        "sslmode": "require",
    }
    assert load_settings(tmp_path).database_url == ""
