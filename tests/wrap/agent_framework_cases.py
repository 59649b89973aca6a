"""Cases that together come through every call that agent-framework's adapter makes of a session."""

from __future__ import annotations

from .agent_framework_asked import SCENARIOS
from .framework_cases import Case

CASES = [
    *(Case(one) for one in SCENARIOS),
]
