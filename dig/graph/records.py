"""The record vocabulary: every possible happening in a run, one small type per kind.

A trace file holds one record per line; `dig.graph.codec` turns a line into a `Record` and back.
Whether a record may follow the ones before it is the business of the graph (`dig.graph.rules`).

Every record has `t`, its place in the trace counted from 0 (logical time), and `us`, wall time
in whole microseconds since the run began (the file's `ts` is the same in seconds).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, ClassVar, Literal, get_args

from dig._util.frozen import frozen

VERSION = 1
EDITION = 2
"""The edition of the patterns by which findings are made; a file that names none has the first."""

SYSTEM = "system"
NOTICE = "notice"
TOOL_CALL = "tool_call"
HANDOFF = "handoff"

WAITS = "waits"
"""The incident of an activation or an event that waits on purpose, for a person for instance."""

REQUEST_FAILED = "request_failed"
"""The incident of a request that ended without an answer, by an error or at a limit."""

BUDGET = "budget"
"""The incident of a limit of a budget: its detail has `event` (the request; null: the team),
`scope`, `limit`, `spent`, `most`, and `stage`: `warning`, `stopped` or `partial` (answered)."""

WORK_AFTER_ANSWER = "work_after_answer"
"""The incident of an activation that goes on after the end of its request: its detail has `event`,
the request, `activation` and `agent`."""

Failure = Literal["error", "limit", "timeout"]
FAILURES: tuple[Failure, ...] = get_args(Failure)

STOPPED_FROM_OUTSIDE = "stopped from outside"
"""The incident of a run, no session, that a person or a program ended: its detail has `reason`."""

NEVER_RAN = "never ran"
"""The incident of an agent that was to begin and did not: its detail has `agent` and `events`."""

FAILED = "failed"
"""The incident of a part that was handed in and failed: its detail has `who` and `what`."""

TRIED_AGAIN = "tried again"
"""The incident of a detector that was off because it had been slow: its detail has `who`, and
`place`, as the incident `failed` of that time."""

LEFT_OUT = "findings left out"
"""The incident of findings that a minute had no room for: its detail has `pattern` and `count`."""

DISTURBANCE = "fault"
"""The word that an `emit` has for its policy if a disturbance keeps it; it counts as none."""

FateName = Literal["consume", "delay", "reroute", "discard"]
Outcome = Literal["submitted", "timeout", "stopped", "error"]
FATES: tuple[FateName, ...] = get_args(FateName)
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

TOOL = "tool:"  # prefix of the agents that stand for tools

_INSTANCE = re.compile(r"(?<=.)#[0-9]+\Z", re.DOTALL)


def base_name(agent: str) -> str:
    """The agent of an instance (`NAME#2`, see docs/wrapping.md); any other name unchanged."""
    return _INSTANCE.sub("", agent) if "#" in agent else agent


def micros(seconds: float) -> int:
    """Convert seconds to whole microseconds, the unit of all comparisons of time."""
    return round(seconds * 1_000_000)


@frozen
class Limits:
    """The thresholds of one run: "reasonable" times, in seconds, and "reasonable" numbers.

    The defaults are those of a file that does not say. A threshold of ``None`` switches its pattern
    off.
    """

    mc_window_s: float = 30.0
    oe_window_s: float = 10.0
    dl_window_s: float = 30.0
    activation_limit_s: float = 300.0
    reroute_limit: int = 3
    coverage: bool = True
    stall_factor: float | None = None
    stall_min_s: float = 20.0
    late_window_s: float | None = None
    loop_limit: int | None = None
    livelock_turns: int | None = None
    livelock_agents: int = 3


@frozen
class Usual:
    """The number of findings of each pattern in good runs of the same team.

    Attributes:
        runs: The number of good runs that it was learned from.
        counts: By pattern: in how many of these runs it was raised once or more, twice or more, ...
    """

    runs: int
    counts: Mapping[str, tuple[int, ...]]


@frozen
class Fate:
    """The fate of one input of an activation; `to` only for a reroute."""

    event: str
    fate: FateName
    to: tuple[str, ...] = ()


@frozen
class _Row:
    kind: ClassVar[str]
    t: int
    us: int

    @property
    def ts(self) -> float:
        """Wall time in seconds since the run began."""
        return self.us / 1_000_000


@frozen
class Run(_Row):
    """The first record: the agents, and the limits for the patterns.

    `patterns` is the edition of the patterns by which its findings were made.
    """

    kind = "run"
    run: str
    agents: tuple[str, ...]
    task: Any = None
    seed: Any = None
    session: bool = False
    memory: bool = False
    limits: Limits = field(default_factory=Limits)
    usual: Usual | None = None
    version: int = VERSION
    patterns: int = 1


@frozen
class Emit(_Row):
    """An event comes into being. `by` is an activation, `None` (from outside) or `"system"`.

    `policy` names the kind of delivery policy that decides about it, if one does; `traceparent`
    is the W3C trace context of the sender, for tools that follow requests.
    """

    kind = "emit"
    event: str
    by: str | None
    to: tuple[str, ...]
    type: str
    final: bool = False
    payload: Any = None
    policy: str | None = None
    traceparent: str | None = None


@frozen
class Deliver(_Row):
    """An event reaches an agent's buffer; `to` is `None` for an accepted final event."""

    kind = "deliver"
    event: str
    to: str | None


@frozen
class Start(_Row):
    """The activation of an idle agent; `inputs` is the whole buffer in order of delivery."""

    kind = "start"
    activation: str
    agent: str
    inputs: tuple[str, ...]


@frozen
class End(_Row):
    """The end of an activation, with a fate for each input and the ids of the outputs.

    An `error` may be another's: it passes on that of the activation `because`, or was `cancelled`.
    """

    kind = "end"
    activation: str
    fates: tuple[Fate, ...] = ()
    outputs: tuple[str, ...] = ()
    usage: Any = None
    error: str | None = None
    because: str | None = None
    cancelled: bool = False


@frozen
class Join(_Row):
    """An agent becomes present, with an empty buffer."""

    kind = "join"
    agent: str


@frozen
class Leave(_Row):
    """An agent leaves; the buffer and the events on their way to the agent are lost."""

    kind = "leave"
    agent: str


@frozen
class Redirect(_Row):
    """The recipients of an event on its way are replaced."""

    kind = "redirect"
    event: str
    to: tuple[str, ...]


@frozen
class Expire(_Row):
    """An event's delivery policy is used up: the event is on its way to no agent any more."""

    kind = "expire"
    event: str


@frozen
class FindingRow(_Row):
    """A finding of a monitor. Changes no graph.

    `severity` is missing in old files; `silenced` says why it is no alarm, if a policy says so.
    """

    kind = "finding"
    pattern: str
    stage: str | None
    subject: Any
    evidence: Any
    severity: Any = None
    silenced: Any = None


@frozen
class HealRow(_Row):
    """An intervention about the finding at record `finding`. Changes no graph.

    `about` says as data what the note says in words: its pattern, events and agents.
    """

    kind = "heal"
    finding: int
    action: str
    event: str | None = None
    to: tuple[str, ...] | None = None
    note: str | None = None
    reason: str | None = None
    about: Any = None


@frozen
class IncidentRow(_Row):
    """An incident: a fact to be kept, without a change of the graph."""

    kind = "incident"
    what: str
    detail: Any


@frozen
class Finish(_Row):
    """The last record: how the run ended."""

    kind = "finish"
    outcome: Outcome
    answer: Any = None
    usage: Any = None


Record = (
    Run | Emit | Deliver | Start | End | Join | Leave | Redirect | Expire
    | FindingRow | HealRow | IncidentRow | Finish
)  # fmt: skip

CHANGING = (Run, Emit, Deliver, Start, End, Join, Leave, Redirect, Expire)
"""The kinds of records that change the graph."""

ASIDE = (FindingRow, HealRow, IncidentRow)
"""The kinds that report findings, interventions and incidents; they change no graph."""

# --- what a record has changed ---

CLOSED, LOST_OR_FOUND, SENT_OFF, ANSWERED = 1, 2, 4, 8
REROUTED, MERGED, SOLVED_AGAIN, MET = 16, 32, 64, 128
DONE, STUCK = 256, 512
"""Changes by the latest record (`GraphState.changed`), besides its kind: it closed an event
or brought one back; work was lost or found; work began to be on its way alone; a final event was
generated; an activation rerouted, consumed events of several roots, or solved one again; an event
came to lie beside others of other lineage. `DONE` and `STUCK`: it concerned a problem that now
was posed and has no open work and no answer under way, or has work in buffers and none on its
way. `UNTIMED`: not every idle window for that has an alarm already."""

POSED, WAITING, UNANSWERED, ERRED, UNTIMED = 1 << 20, 1 << 21, 1 << 22, 1 << 23, 1 << 24
"""Further changes: an event came from outside; the host says that something waits on purpose, or
that a request ended without an answer; an activation failed, or ended after another had failed."""

KINDS: dict[type, int] = {kind: 1 << n for n, kind in enumerate((*CHANGING, IncidentRow), 10)}
"""The flag in `GraphState.changed` for each kind of record that a detector may be shown."""
