"""Things that run: agents, the bus in real time, the simulator in virtual time.

- `agents`: what an agent is, sees and decides. `draws`: random numbers that repeat.
- `delivery`: delivery policies.
- `host`: what bus and simulator do alike. `bus`: anyio, real time; `desk`: what it keeps for each
  agent; `commit`: what waits for the disk. `simulation`: virtual time.
- `reviewer`: a member of the team that reads along while all others wait.
- `moment`: a run as it stands, from which the bus (`Resumed`) and the simulator can go on.
- `result`: how a run ended.
"""

from __future__ import annotations

from .agents import Agent, Decision, EventFate, NewEvent, Plan, Policy, View
from .bus import Bus
from .host import Setup
from .result import RunResult
from .simulator import simulate

__all__ = [
    "Agent",
    "Bus",
    "Decision",
    "EventFate",
    "NewEvent",
    "Plan",
    "Policy",
    "RunResult",
    "Setup",
    "View",
    "simulate",
]
