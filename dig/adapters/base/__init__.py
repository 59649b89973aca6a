"""The base of every adapter; adapters import it from here, and from no module in here.

- `session`: what a wrapper tells the monitor. `turn`: one agent at work; `context`: that of the
  running code. `errors`: which activation raised. `calls`: one agent calls
  another and awaits the answer. `trampoline`: such calls within each other, as deep as alone.
- `instances`: overlapping turns of one agent. `relief`: another agent is asked in place of one
  that does not answer.
- `patching`: replacing a framework's methods, and the state of an adapter, which may fail.
- `plan`: what an adapter makes of a team. `capabilities`: what a team can be made to do.
- `payload`: what frameworks pass around, as plain JSON.
- `guard`: the steps of a session, in which failures stay. `holds`: waiting for what is held.
  `watchdog`: the thread that keeps time.
"""

from __future__ import annotations

from dig.runtime.errors import MOST_IN_ERROR, RECORDED_STACK, STACK, describe

from .calls import Call, RunAgent, StreamedCall, ToolCalls, current_turn
from .capabilities import CAPABILITIES, RELIEVING, allowing, names_in
from .context import current, enclosing, inside, notes, notes_about, waiting
from .errors import CalledOffError
from .guard import Guard
from .holds import LoopCaller, RecipientOrder
from .patching import ADAPTER_FAILED, NOTE, AdapterState, Patches, like
from .payload import as_call, as_payload, is_whole, unjson
from .plan import (
    Attached,
    Deliver,
    NoteDelivery,
    ServedSession,
    WrapPlan,
    importing,
    need_attributes,
    need_one_name,
    need_version,
)
from .relief import RELIEVED
from .session import Mode, Session, Statistics
from .turn import HandedOver, Turn
from .turn_notes import TurnNotes
from .watchdog import LONG_ACTIVATION

__all__ = [
    "ADAPTER_FAILED", "CAPABILITIES", "LONG_ACTIVATION", "MOST_IN_ERROR", "NOTE",
    "RECORDED_STACK", "RELIEVED", "RELIEVING", "STACK", "AdapterState", "Attached", "Call",
    "CalledOffError", "Deliver", "Guard", "HandedOver", "LoopCaller", "Mode", "NoteDelivery",
    "Patches", "RecipientOrder", "RunAgent", "ServedSession", "Session", "Statistics",
    "StreamedCall", "ToolCalls", "Turn", "TurnNotes", "WrapPlan", "allowing", "as_call",
    "as_payload", "current", "current_turn", "describe", "enclosing", "importing", "inside",
    "is_whole", "like", "names_in", "need_attributes", "need_one_name", "need_version",
    "notes", "notes_about", "unjson", "waiting",
]  # fmt: skip
