"""The monitor between the agents of a team that exists already.

- `session`: what a wrapper says to the monitor. `turn`: one turn of an agent; `running`: the turn
  of the running code. `seats`: overlapping turns. `steps`: how nothing that fails reaches the team.
  `holding`: waiting for what is held. `timekeeper`: who keeps time. `entrance`: the lock.
- `taps`: in place of a framework's methods, and taken away again. `lines`: waiting in order.
- `capabilities`: what a team can be made to do. `payload`: a host's objects as plain JSON.
- `adapters`: which one wraps which team. One file a framework, imported when its first team comes:
  `plain` (with `calls`).

`dig.wrap` puts the parts together (`dig.adapters.wrapping`). No framework is imported here.
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
