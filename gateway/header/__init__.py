"""Header de-identification: the Basic Profile of PS3.15 and its options, on encoded bytes, at every depth.

    source -> admission -> rewrite (plan: table, options, Types, beyond_table; values: keyed replacements) -> stamp

What the policy does not name leaves as the bytes that came. This room must not decide what may leave: the gate judges
its output with code that shares nothing with it.
"""

from gateway.header.actions import Act, Decision, action_of
from gateway.header.describe import TagAction, describe
from gateway.header.scrub import STAGE_VERSION, scrub_file

__all__ = ["STAGE_VERSION", "Act", "Decision", "TagAction", "action_of", "describe", "scrub_file"]
