"""The monitor between the agents of an existing team.

- `wrapping`: `dig.wrap`, which puts the parts together. `switches`: what the environment says
  about it. `frameworks`: which adapter wraps which
  team.
- `base`: what every adapter is built from.
- One folder per framework, imported when its first team comes: `plain`, `langgraph`,
  `openai_agents`, `autogen`, `ag2`, `agent_framework`. No framework is imported here.
- `nats`: sessions on several machines. `claude_code`: hooks of Claude Code.
"""

from __future__ import annotations

from .base import (
    CAPABILITIES,
    Attached,
    Mode,
    Session,
    Statistics,
    Turn,
    WrapPlan,
    as_call,
    as_payload,
    need_version,
    notes,
    notes_about,
    report_usage,
    waiting,
)
from .frameworks import Adapter

__all__ = [
    "CAPABILITIES", "Adapter", "Attached", "Mode", "Session", "Statistics", "Turn", "WrapPlan",
    "as_call", "as_payload", "need_version", "notes", "notes_about", "report_usage", "waiting",
]  # fmt: skip
