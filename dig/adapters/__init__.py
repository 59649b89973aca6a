"""The monitor between the agents of a team that exists already.

- `wrapping`: `dig.wrap`, which puts the parts together. `registry`: which adapter wraps which team.
- `base`: what every adapter is built from.
- A folder a framework, imported when its first team comes: `plain`, `langgraph`, `openai_agents`,
  `autogen`, `ag2`, `ag2_classic`, `agent_framework`. No framework is imported here.
"""

from __future__ import annotations

from .base.capabilities import CAPABILITIES
from .base.payload import as_call, as_payload
from .base.running import notes
from .base.session import Mode, Session, Statistics
from .base.turn import Turn
from .registry import Adapter, Attached, Plan, need_version

__all__ = [
    "CAPABILITIES",
    "Adapter",
    "Attached",
    "Mode",
    "Plan",
    "Session",
    "Statistics",
    "Turn",
    "as_call",
    "as_payload",
    "need_version",
    "notes",
]
