"""A run as it stands at one moment, from which a shell can go on: simulator or bus.

`dig.traces.replay.fork` makes one out of a recorded run; an agent that keeps a state of its own is
told what it did before (`restore`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from dig.errors import ReplayError, SettingsError
from dig.graph.records import End
from dig.monitor.messages import Effect, Output, Started
from dig.monitor.monitor import Monitor

from .agents import View
from .host import Host, Setup


class Clock:
    """The clock of a monitor that changes hands: it shows what `source` does."""

    def __init__(self) -> None:
        """Begin at zero, and stand still."""
        self.source: Callable[[], float] = float

    def __call__(self) -> float:
        """Seconds since the run began."""
        return self.source()


@dataclass(frozen=True)
class PastActivation:
    """One earlier activation of an agent.

    Attributes:
        view: What it saw.
        end: Its end; ``None``: the run ended before it did.
        outputs: What it generated.
    """

    view: View
    end: End | None
    outputs: tuple[Output, ...] = ()


@runtime_checkable
class Restorable(Protocol):
    """An agent with a state of its own that can be brought back to an earlier moment."""

    def restore(self, past: Sequence[PastActivation]) -> None:
        """Become what it was after these activations, in order, without calling anything."""
        ...


@dataclass(frozen=True)
class PendingStart:
    """An agent waits to be started: since a moment, or until one, in microseconds."""

    agent: str
    since_us: int
    until_us: int | None = None


@dataclass(frozen=True)
class RunningActivation:
    """An activation is in progress.

    Attributes:
        started: Which one.
        view: What its agent sees.
        since_us: When it began.
        end: Its recorded end: its agent was called before, and is not called again; ``None`` if
            there is none.
        outputs: What it generates then.
    """

    started: Started
    view: View
    since_us: int
    end: End | None = None
    outputs: tuple[Output, ...] = ()


@dataclass(frozen=True)
class ExternalInput:
    """A request from outside at a moment (in microseconds), as in the recorded run."""

    us: int
    request: Callable[[Monitor], list[Effect]]


@dataclass
class Checkpoint:
    """A run as it stands.

    Attributes:
        setup: What it is made with.
        host: With its monitor.
        clock: The monitor's clock.
        us: The moment, in microseconds since the run began.
        agenda: What was going on, in the order in which it was begun.
        outside: What is to come from outside, in order.
        past: What each agent did before.
        effects: The effects of the last call, which are not carried out yet.
        unrecorded_us: The first moment, in microseconds, of which the recording says nothing.
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


def restore(team: Mapping[str, object], checkpoint: Checkpoint) -> None:
    """Bring the agents of a team to a checkpoint.

    Raises:
        SettingsError: An agent that is present at that moment is not in the team.
        ReplayError: An agent keeps a state of its own and cannot be brought back.
    """
    missing = [name for name in checkpoint.host.monitor.graph.agents if name not in team]
    if missing:
        raise SettingsError(f"the team has no agent called {', '.join(map(repr, missing))}")
    for name, past in checkpoint.past.items():
        agent = team.get(name)
        if isinstance(agent, Restorable):
            agent.restore(past)
        elif agent is not None and keeps_state(agent):
            raise ReplayError(
                f"agent {name!r} ({type(agent).__name__}) may keep a state of its own, and did "
                f"{len(past)} activations before: give it `restore(past)`, or, if it keeps none, "
                "set `stateless = True` on its class"
            )


def keeps_state(agent: object) -> bool:
    """Whether an agent may remember things: an object with attributes that can be set.

    A function, a frozen dataclass and a class that says `stateless = True` keep none.
    """
    if callable(agent) and not hasattr(agent, "act") and not hasattr(agent, "plan"):
        return False
    params = getattr(agent, "__dataclass_params__", None)
    is_frozen = params is not None and params.frozen
    if is_frozen or getattr(agent, "stateless", False):
        return False
    slots = any(getattr(cls, "__slots__", ()) for cls in type(agent).__mro__)
    return slots or bool(getattr(agent, "__dict__", None))
