"""Settings of what receiving takes on at once, and in how many processes. Part of `settings.Settings`."""

from __future__ import annotations

from pydantic import Field
from pydantic_settings import BaseSettings


class LimitSettings(BaseSettings):
    """All limits hold over all receiver processes of a gateway together."""

    receivers: int = Field(
        1, ge=1, le=64, description="processes that receive DICOM on one port; 1 = the gateway's own process does"
    )
    max_pdu_bytes: int = Field(131072, ge=4096, le=1 << 24, description="largest PDU we accept")
    network_timeout_s: float = Field(60.0, gt=0, description="a silent peer is dropped after this")
    max_associations: int = Field(50, ge=1, description="associations at once")
    max_associations_per_peer: int = Field(
        0, ge=0, description="associations at once of one calling AE title; 0 = as many as there are"
    )
    max_instances_per_s: int = Field(
        0, ge=0, description="instances a second of one calling AE title, whose answers are held back; 0 = any"
    )
    max_waiting_studies: int = Field(
        0, ge=0, description="studies that wait for the machine, above which none is taken in; 0 = any"
    )
    min_free_bytes: int = Field(1 << 30, ge=0, description="disk watermark: below it associations are refused")
