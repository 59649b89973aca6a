"""Agents: what they are shown, and what they may decide.

An agent is one method, `async act(view) -> Decision`; a plain async function is one too
(`as_agent`). A `View` is everything an agent gets to see in an activation; a `Decision` names a
fate for each event and what to generate. `Decision` is a pydantic model, so it is also the schema
that a language model has to fill.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol, cast

import anyio
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic.json_schema import SkipJsonSchema

from dig._util.text import first_wrong
from dig.errors import DecisionError, RealTimeError, SettingsError
from dig.graph.records import Fate, FateName
from dig.monitor.messages import DeliveryPolicy, Output, Pending

from .reviewer import ReviewMaterial

Tool = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class View:
    """The world as an agent sees it in one activation.

    Attributes:
        agent: Its own name.
        team: The names of all present agents, itself included.
        turn: The number of this activation among those of the agent, counted from 1.
        time_s: Seconds since the run began.
        events: Its whole buffer in order of delivery, with the system's notes.
        tools: The tools that the agent may call, by name; a call is no part of the graph.
        reading: For a reviewer: what has happened.
        usage: The cost of the activation so far (tokens and the like), plain JSON, for the agent
            to write down as it goes: that is kept in the trace even if the activation fails or is
            cut off.
    """

    agent: str
    team: tuple[str, ...]
    turn: int
    time_s: float
    events: tuple[Pending, ...]
    tools: Mapping[str, Tool] = field(default_factory=lambda: MappingProxyType({}))
    reading: ReviewMaterial | None = None
    usage: dict[str, Any] = field(default_factory=dict, compare=False)

    @property
    def others(self) -> tuple[str, ...]:
        """The names of all other present agents."""
        return tuple(name for name in self.team if name != self.agent)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)


class EventFate(_Strict):
    """What the agent does with one event in front of it."""

    event: str = Field(description="The event's id.")
    fate: FateName
    to: list[str] = Field(default=[], description="For a reroute: the agents it goes to instead.")


class NewEvent(_Strict):
    """An event that the agent generates."""

    payload: Any = None
    to: list[str] = Field(default=[], description="The agents it goes to.")
    type: str = Field(default="message", description="problem, solution, raw_data, message, ...")
    final: bool = Field(default=False, description="Whether it submits the team's answer.")
    policy: SkipJsonSchema[Any] = Field(default=None, exclude=True)
    """A `DeliveryPolicy` that decides the recipients instead of `to`; for agents in Python."""

    @field_validator("policy")
    @classmethod
    def _is_policy(cls, policy: Any) -> Any:
        if policy is not None and not callable(getattr(policy, "step", None)):
            raise ValueError("a delivery policy has a method `step`")
        return policy


class Decision(_Strict):
    """What an agent does in one activation.

    Every event in front of it has a fate; one that is not named is delayed, except that a note
    from the system counts as read. The classmethods make the five canonical actions; an agent
    may also mix them.
    """

    fates: list[EventFate] = Field(default=[], description="A fate for each event in front of you.")
    outputs: list[NewEvent] = Field(default=[], description="The events you generate, in order.")
    usage: SkipJsonSchema[dict[str, Any] | None] = None
    """What the activation cost, if that is not in `View.usage`; kept in the trace."""

    @classmethod
    def respond(cls, view: View, *outputs: NewEvent) -> Decision:
        """Consume everything, generate `outputs`."""
        return cls(fates=_all(view, "consume"), outputs=list(outputs))

    @classmethod
    def wait(cls) -> Decision:
        """Leave everything in the buffer."""
        return cls()

    @classmethod
    def reroute(cls, events: Sequence[Pending], to: Sequence[str]) -> Decision:
        """Pass some events on to other agents, and keep the rest."""
        fates = [EventFate(event=event.id, fate="reroute", to=list(to)) for event in events]
        return cls(fates=fates)

    @classmethod
    def discard(cls, events: Sequence[Pending]) -> Decision:
        """Drop some events, and keep the rest."""
        return cls(fates=[EventFate(event=event.id, fate="discard") for event in events])

    @classmethod
    def submit(cls, view: View, answer: Any) -> Decision:
        """Consume everything and submit an answer."""
        return cls.respond(view, NewEvent(payload=answer, type="solution", final=True))

    def parts(self) -> tuple[tuple[Fate, ...], tuple[Output, ...]]:
        """The fates and outputs as the monitor takes them."""
        fates = tuple(Fate(f.event, f.fate, tuple(f.to)) for f in self.fates)
        outputs = tuple(
            Output(o.payload, tuple(o.to), o.type, o.final, cast("DeliveryPolicy | None", o.policy))
            for o in self.outputs
        )
        return fates, outputs


def _all(view: View, fate: FateName) -> list[EventFate]:
    return [EventFate(event=event.id, fate=fate) for event in view.events]


class Agent(Protocol):
    """An agent: one method."""

    async def act(self, view: View) -> Decision:
        """Decide about the events in front of it."""
        ...


class PlannedAgent(Protocol):
    """An agent whose decision can be had without waiting, for runs in virtual time.

    It keeps no state that its past views do not determine, and draws every random number from
    `dig.runtime.keyed_random`, so that the same run gives the same bytes again.
    """

    def plan(self, view: View) -> Plan:
        """Decide, and say how long the agent thinks about it."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """A decision, and the think time in seconds that comes before it.

    Attributes:
        think_s: Seconds from the start of the activation to its end.
        decision: The decision at that time; an error's text, if the agent fails instead.
    """

    think_s: float
    decision: Decision | str


@dataclass(frozen=True)
class Thinking:
    """An agent made of a policy: it really takes the time that the policy thinks.

    Attributes:
        policy: The policy that the agent decides by.
        speed: The factor by which the clock goes faster than real time; `Setup.speed` of the same
            run.
    """

    policy: PlannedAgent
    speed: float = 1.0

    async def act(self, view: View) -> Decision:
        """Think, then decide.

        Raises:
            DecisionError: The policy has the agent fail.
        """
        plan = self.policy.plan(view)
        await anyio.sleep(plan.think_s / self.speed)
        if isinstance(plan.decision, str):
            raise DecisionError(plan.decision)
        return plan.decision


AgentFunction = Callable[[View], Awaitable[Decision]]


@dataclass(frozen=True)
class FunctionAgent:
    """A plain async function as an agent."""

    function: AgentFunction

    async def act(self, view: View) -> Decision:
        """Call the function."""
        return await self.function(view)


def as_agent(agent: Agent | AgentFunction) -> Agent:
    """An agent as it is, an async function made into one.

    Raises:
        SettingsError: The object is neither.
    """
    if hasattr(agent, "act"):
        return cast("Agent", agent)
    if not callable(agent):
        raise SettingsError(f"{agent!r:.60} is no agent: no async function, and no `act` method")
    return FunctionAgent(agent)


@dataclass(frozen=True)
class Immediate:
    """An agent without a `plan`, in virtual time: it must decide without awaiting anything real.

    Attributes:
        agent: The agent.
        think_s: Seconds that each of its activations takes.
    """

    agent: Agent
    think_s: float = 0.0

    def plan(self, view: View) -> Plan:
        """Have the agent decide at once.

        Raises:
            RealTimeError: The agent awaits something real; its coroutine is closed.
        """
        try:  # the agent's code may ask for an event loop, and must get one to be found out
            anyio.get_current_task()
        except RuntimeError:
            value = anyio.run(self._first_step, view)
        else:
            value = _first_step(self._decide(view), view.agent)
        return Plan(self.think_s, as_decision(value))

    async def _first_step(self, view: View) -> object:
        return _first_step(self._decide(view), view.agent)

    async def _decide(self, view: View) -> object:
        return await self.agent.act(view)


def _first_step(coroutine: Coroutine[Any, Any, object], name: str) -> object:
    """The return value of a coroutine that never pauses.

    Raises:
        RealTimeError: The coroutine pauses; the message names the agent and the line.
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration as done:
        return done.value
    line = _line(coroutine)
    with suppress(Exception):  # it may clean up as it likes
        coroutine.close()
    if hasattr(awaited, "add_done_callback"):  # a future, which would complain on its own
        awaited.add_done_callback(lambda future: future.cancelled() or future.exception())
        awaited.cancel()
    raise RealTimeError(
        f"agent {name!r} awaits something real{line}, which virtual time cannot wait for: "
        "leave --virtual out (in an experiment's file give `speed`; with fork, --real-time)"
    )


def _line(coroutine: Any) -> str:
    """The line at which a coroutine of the user's waits, as ` at FILE:LINE`; empty if unknown."""
    frame = None
    while frame is None or frame.f_code.co_filename == __file__:
        coroutine = getattr(coroutine, "cr_await", None)
        frame = getattr(coroutine, "cr_frame", None)
        if frame is None:
            return ""
    return f" at {Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def as_planned(agent: Agent | AgentFunction | PlannedAgent) -> PlannedAgent:
    """An agent for virtual time: as it is if it has a `plan`, else one that decides at once.

    An agent or function without a `plan` takes as many seconds as its attribute `think_s` says,
    and none without it.

    Raises:
        SettingsError: The object is no agent, or its `think_s` is no time.
    """
    if hasattr(agent, "plan"):
        return cast("PlannedAgent", agent)
    think_s = getattr(agent, "think_s", 0.0)
    if type(think_s) not in (int, float) or not (isfinite(think_s) and think_s >= 0):
        raise SettingsError(f"think_s of {agent!r:.60} must be seconds, 0 or more, got {think_s!r}")
    return Immediate(as_agent(agent), think_s)


def as_decision(value: object) -> Decision:
    """The return value of an agent as a decision; JSON-like dicts are read as one.

    Raises:
        DecisionError: The value is no decision; the message says what is wrong with it.
    """
    if isinstance(value, Decision):
        return value
    if not isinstance(value, dict):
        raise DecisionError(f"the agent returned {type(value).__name__}, which is no Decision")
    try:
        return Decision.model_validate(value)
    except ValidationError as error:
        place, why = first_wrong(error)
        raise DecisionError(f"the agent's decision is wrong at {place}: {why}") from None


def with_note(view: View, note: str) -> View:
    """A view with one more note beside its first input, if it has one."""
    events = tuple(
        replace(event, notes=(*event.notes, note)) if event is view.events[0] else event
        for event in view.events
    )
    return replace(view, events=events)
