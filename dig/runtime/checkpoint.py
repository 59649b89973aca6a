"""A run at one moment, for simulator or bus to continue.

`dig.traces.replay.rewind` makes one out of a recorded run; an agent that keeps a state of its own
is told what it did before (`restore`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from dig.errors import ReplayError, SettingsError
from dig.graph.records import End
from dig.monitor.messages import Effect, Output, Started
from dig.monitor.monitor import Monitor

from .agents import Immediate, View
from .host import Host
from .setup import Setup


class Clock:
    """The clock of a monitor between two hosts: shows the time of `source`."""

    def __init__(self) -> None:
        """Begin at zero, and stand still."""
        self.source: Callable[[], float] = float

    def __call__(self) -> float:
        """Seconds since the run began."""
        return self.source()


@dataclass(frozen=True)
class Phase:
    """A part of a run, from a record on, with one way to decide.

    Attributes:
        at: Its first record.
        repeats: The repeats whose random numbers are drawn (`keyed_random.repeated`).
        seats: By agent: the member whose behaviour decides for it instead of its own.
        notes: By agent: what it is told in each of its activations.
        wait_s: Seconds by which the time limit of the run is longer.
    """

    at: int = 0
    repeats: tuple[int, ...] = ()
    seats: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    wait_s: float = 0.0


def phase_at(phases: Sequence[Phase], t: int) -> Phase:
    """The phase of a record."""
    return next((phase for phase in reversed(phases) if phase.at <= t), Phase())


@dataclass(frozen=True)
class PastActivation:
    """An earlier activation of an agent.

    Attributes:
        view: The view that the agent was given.
        end: Its end; ``None``: before it did, the run ended or the agent left.
        outputs: The outputs of the activation.
        by: The member whose behaviour decided; empty: the agent itself.
        repeats: The repeats whose random numbers were drawn.
    """

    view: View
    end: End | None
    outputs: tuple[Output, ...] = ()
    by: str = ""
    repeats: tuple[int, ...] = ()


@runtime_checkable
class Restorable(Protocol):
    """An agent with a restorable state of its own."""

    def restore(self, past: Sequence[PastActivation]) -> None:
        """Rebuild the state after these activations, in order, without calling anything."""
        ...


@dataclass(frozen=True)
class PendingStart:
    """A planned start of an agent: since a moment, or at a moment, in microseconds.

    It waits since record `t`.
    """

    agent: str
    since_us: int
    until_us: int | None = None
    t: int = 0


@dataclass(frozen=True)
class RunningActivation:
    """An activation is in progress.

    Attributes:
        started: The activation that was started.
        view: The view that its agent is given.
        since_us: When it began.
        end: Its recorded end: its agent was called before, and is not called again; ``None`` if
            there is none.
        outputs: The outputs that the activation generates then.
        stack: The recorded stack trace of its error.
        t: The number of the record of its start.
        mark: The first half of the checksum of that record's line, which no other start has.
    """

    started: Started
    view: View
    since_us: int
    end: End | None = None
    outputs: tuple[Output, ...] = ()
    stack: str = ""
    t: int = 0
    mark: str = ""

    @property
    def agent(self) -> str:
        """The agent."""
        return self.started.agent


@dataclass(frozen=True)
class ExternalInput:
    """A request from outside at a moment (in microseconds), as in the recorded run.

    Attributes:
        us: The moment.
        t: The number of its record there; ``None``: it was not made there.
        request: Makes it.
    """

    us: int
    t: int | None
    request: Callable[[Monitor], list[Effect]]


@dataclass
class Checkpoint:
    """A run at one moment.

    Attributes:
        setup: The setup of the run.
        host: With its monitor.
        clock: The monitor's clock.
        us: The moment, in microseconds since the run began.
        agenda: The activations and waits that were going on, in the order in which they were begun.
        outside: The inputs that are to come from outside, in order.
        past: The past activations of each agent.
        effects: The effects of the last call, which are not carried out yet.
        unrecorded_us: The first moment, in microseconds, of which the recording says nothing.
        phases: The phases of the run, in order; the last one has begun.
        begin: Is called when a host takes the run up.
    """

    setup: Setup
    host: Host
    clock: Clock
    us: int
    agenda: list[PendingStart | RunningActivation] = field(default_factory=list)
    outside: list[ExternalInput] = field(default_factory=list)
    past: dict[str, list[PastActivation]] = field(default_factory=dict)
    effects: list[Effect] = field(default_factory=list)
    unrecorded_us: int = 0
    phases: tuple[Phase, ...] = (Phase(),)
    begin: Callable[[], None] = lambda: None


T = TypeVar("T")


def restore(team: Mapping[str, T], checkpoint: Checkpoint) -> dict[str, T]:
    """Restore the agents of a team at a checkpoint, and seat them by the last phase.

    Args:
        team: The agents by name.
        checkpoint: The run as it stands.

    Returns:
        The team that goes on.

    Raises:
        SettingsError: An agent that is present at that moment, or that is to decide for another
            one, is not in the team.
        ReplayError: An agent keeps a state of its own and cannot be brought back.
    """
    now = checkpoint.phases[-1]
    missing = [name for name in checkpoint.host.monitor.graph.agents if name not in team]
    missing += [name for pair in now.seats.items() for name in pair if name not in team]
    if missing:
        names = ", ".join(map(repr, dict.fromkeys(missing)))
        raise SettingsError(f"the team has no agent called {names}")
    seated: dict[str, T] = {}
    for name in team:
        by = now.seats.get(name, name)
        # An agent in two seats must not share one memory between them.
        is_copied = by != name and keeps_state(team[by])
        seated[name] = deepcopy(team[by]) if is_copied else team[by]
    decided: dict[str, list[PastActivation]] = {}
    for name, past in checkpoint.past.items():
        if name in seated and keeps_state(seated[name]):
            _bring_back(name, seated[name], past)
        for activation in past:
            decided.setdefault(activation.by or name, []).append(activation)
    for name, past in decided.items():
        agent = team.get(name)
        if isinstance(agent, Restorable) and not keeps_state(agent):  # in whichever seats it was
            agent.restore(sorted(past, key=lambda activation: activation.view.time_s))
    return {name: _reseed(agent, now.repeats) for name, agent in seated.items()}


def _bring_back(name: str, agent: object, past: Sequence[PastActivation]) -> None:
    if isinstance(agent, Immediate):
        agent = agent.agent
    if not isinstance(agent, Restorable):
        raise ReplayError(
            f"agent {name!r} ({type(agent).__name__}) may keep a state of its own, and did "
            f"{len(past)} activations before: give it `restore(past)`, or, if it keeps none, "
            "set `stateless = True` on its class"
        )
    agent.restore(past)


def _reseed(agent: Any, repeats: Sequence[int]) -> Any:
    """Give an agent the random numbers of repeats, if the agent draws any."""
    for number in repeats:
        if number and hasattr(agent, "reseeded"):
            agent = agent.reseeded(number)
    return agent


def is_deterministic(team: Mapping[str, object]) -> bool:
    """Whether all repeats of a fork with this team decide in the same way."""
    return not any(hasattr(a, "reseeded") or not hasattr(a, "plan") for a in team.values())


def keeps_state(agent: object) -> bool:
    """Whether an agent may remember earlier activations: an object with settable attributes.

    A function, a frozen dataclass and a class that says `stateless = True` keep none.
    """
    if isinstance(agent, Immediate):
        agent = agent.agent
    if callable(agent) and not hasattr(agent, "act") and not hasattr(agent, "plan"):
        return False
    params = getattr(agent, "__dataclass_params__", None)
    is_frozen = params is not None and params.frozen
    if is_frozen or getattr(agent, "stateless", False):
        return False
    slots = any(getattr(cls, "__slots__", ()) for cls in type(agent).__mro__)
    return slots or bool(getattr(agent, "__dict__", None))
