"""Settings of messages to people: webhook and mail. Part of `settings.Settings`, read like all of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, NoDecode

Words = Annotated[tuple[str, ...], NoDecode]


def words_of(value: object) -> object:
    """A text with commas or spaces between as a list; anything else as it is."""
    return [word for word in re.split(r"[,\s]+", value) if word] if isinstance(value, str) else value


class MessageSettings(BaseSettings):
    """`app.message.setup` says which of these go together."""

    notify_webhook_url: SecretStr | None = Field(
        None, description="where messages are posted as JSON; https:// (http:// on this machine only)"
    )
    notify_webhook_key: SecretStr | None = Field(
        None, description="signs what is posted (HMAC-SHA256); 32 characters and more"
    )
    notify_mail_url: str = Field(
        "",
        description="mail server: smtp://host:587 speaks STARTTLS or not at all, smtps://host:465 TLS from the start",
    )
    notify_mail_user: str = Field("", description="account at the mail server; empty = none is asked for")
    notify_mail_password: SecretStr | None = Field(None, description="password of that account")
    notify_mail_from: str = Field("", description="sender of messages by mail")
    notify_mail_to: Words = Field((), description="who gets messages by mail")
    notify_events: Words = Field((), description="events that are told; empty = all (`notify events` lists them)")
    notify_digest_s: float = Field(
        300.0, ge=0, description="what is not urgent is collected for this long and told in one message; 0 = at once"
    )
    notify_ca: Path | None = Field(
        None, description="PEM file of authorities for webhook and mail server; unset = those of the machine"
    )

    @field_validator("notify_mail_to", "notify_events", mode="before")
    @classmethod
    def _split_words(cls, value: object) -> object:
        return words_of(value)
