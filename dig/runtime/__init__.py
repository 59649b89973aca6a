"""Agents, and the shells that run a team: the bus in real time, the simulator in virtual time.

- `agents`: what an agent is, sees and decides. `keyed_random`: random numbers that repeat.
- `setup`: the settings of a run. `host`: what bus and simulator do alike. `bus`: anyio, real time;
  `observers`: what it keeps for agents and questions, and what is entered while an agent acts;
  `group_commit`: effects that wait for the disk. `simulator`: virtual time.
- `agent_errors`: errors as a trace has them, and the requests that they leave without an answer.
- `checkpoint`: a run as it stands, from which bus and simulator can go on.
- `driver`: drives a monitor through a recorded run. `resume`: a monitor that goes on after it.
- `spending`: what requests use of a budget; `host_budget`: which activation may still start.
- `alerts`: sends alarms, and blocks no team; `destinations`: where they go.
- `result`: how a run ended. `llm`: agents that are language models.
- `workers`: work over several processes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dig._util.on_demand import names_on_demand

if TYPE_CHECKING:
    from .agents import Agent, Decision, EventFate, NewEvent, Plan, PlannedAgent, View
    from .alerts import Alerts
    from .bus import Bus
    from .destinations import Alarm, CommandAlerts, LogAlerts, WebhookAlerts
    from .result import RunResult
    from .setup import Setup
    from .simulator import simulate

__all__ = [
    "Agent", "Alarm", "Alerts", "Bus", "CommandAlerts", "Decision", "EventFate", "LogAlerts",
    "NewEvent", "Plan", "PlannedAgent", "RunResult", "Setup", "View", "WebhookAlerts", "simulate",
]  # fmt: skip

# A journal needs the group commit alone, not bus and simulator.
_HOME, __getattr__, __dir__ = names_on_demand(
    __name__,
    {
        ".agents": "Agent Decision EventFate NewEvent Plan PlannedAgent View",
        ".alerts": "Alerts",
        ".bus": "Bus",
        ".destinations": "Alarm CommandAlerts LogAlerts WebhookAlerts",
        ".result": "RunResult",
        ".setup": "Setup",
        ".simulator": "simulate",
    },
)
