"""The base of every adapter; adapters import from the package, and from no module in here.

- `session`: the reports of an adapter to the monitor. `turn`: one agent at work; `context`: the
  turn of the running code. `call_errors`: the activation that raised. `calls`: one agent calls
  another and awaits the answer. `trampoline`: nested calls, as deep as without the monitor.
- `agent_instances`: overlapping turns of one agent. `relief`: another agent is asked in place of an
  agent that does not answer.
- `patching`: replacing a framework's methods, and the state of an adapter, which may fail.
- `budget`: the turns that a budget refuses, and the last turn of the entry agent.
- `plan`: the plan for wrapping a team. `capabilities`: the possible interventions in a team.
- `payload`: a framework's objects as plain JSON.
- `guard`: the steps of a session, which contain failures. `held_events`: waiting for held
  events. `watchdog`: the thread that keeps time.
"""

from __future__ import annotations

from dig.runtime.agent_errors import MOST_IN_ERROR, RECORDED_STACK, STACK, describe

from .agent_instances import Seats
from .call_errors import CalledOffError, is_stop
from .calls import Call, HookedCall, RunAgent, StreamedCall, ToolCalls, current_turn, draw_session
from .capabilities import CAPABILITIES, HOOKED, RELIEVING, allowing, names_in
from .context import current, enclosing, inside, notes, notes_about, report_usage, waiting
from .guard import Guard, in_step
from .held_events import LoopCaller, RecipientOrder
from .patching import ADAPTER_FAILED, NOTE, AdapterState, Patches, like
from .payload import as_call, as_payload, is_whole, unjson
from .plan import (
    WITHIN,
    Attached,
    Deliver,
    NoteDelivery,
    ServedSession,
    WrapPlan,
    agents_by_name,
    importing,
    members_by_name,
    need_attributes,
    need_one_name,
    need_version,
)
from .relief import RELIEVED
from .session import Mode, Session, Statistics
from .turn import HandedOver, Turn, TurnNotes
from .watchdog import LONG_ACTIVATION

__all__ = [
    "ADAPTER_FAILED", "CAPABILITIES", "HOOKED", "LONG_ACTIVATION", "MOST_IN_ERROR", "NOTE",
    "RECORDED_STACK", "RELIEVED", "RELIEVING", "STACK", "WITHIN", "AdapterState", "Attached",
    "Call", "CalledOffError", "Deliver", "Guard", "HandedOver", "HookedCall", "LoopCaller",
    "Mode", "NoteDelivery", "Patches", "RecipientOrder", "RunAgent", "Seats", "ServedSession",
    "Session", "Statistics", "StreamedCall", "ToolCalls", "Turn", "TurnNotes", "WrapPlan",
    "agents_by_name", "allowing", "as_call", "as_payload", "current", "current_turn",
    "describe", "draw_session", "enclosing", "importing", "in_step", "inside", "is_stop",
    "is_whole", "like", "members_by_name", "names_in", "need_attributes", "need_one_name",
    "need_version", "notes", "notes_about", "report_usage", "unjson", "waiting",
]  # fmt: skip
