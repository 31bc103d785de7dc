"""What operators see: logs here; `metrics` apart, so that a command that counts nothing does not load its library."""

from gateway.observe.logs import FIELDS, JsonLines, log, origin, silence_libraries, start_logging

__all__ = ["FIELDS", "JsonLines", "log", "origin", "silence_libraries", "start_logging"]
