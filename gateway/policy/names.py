"""What policies, routes, projects and destinations may be called."""

from __future__ import annotations

import re
from typing import Any


def name_fault(kind: str, value: Any) -> str:
    """What is wrong with the name of a policy, route, project or destination, or "". Names become metric labels."""
    if isinstance(value, str) and re.fullmatch(r"[a-z0-9][a-z0-9.-]{0,62}", value):
        return ""
    return f"{kind} must be 1 to 63 small letters, digits, dots and dashes, and start with a letter or digit"
