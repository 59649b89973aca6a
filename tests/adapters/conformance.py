"""A framework: what `test_conformance` has to know of it, in a row of values.

What a framework does not promise it leaves out; each value of a list is a case of a test.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import dig
from dig.graph.records import Limits
from dig.runtime.setup import Setup

from .framework_cases import Cases
from .framework_faults import PARTS
from .framework_gates import Keeps
from .framework_signatures import Pair
from .framework_watch import ticking
from .harness import Scenario, Script

ROOT = Path(__file__).parents[2]

REQUESTS = 100
"""The number of requests that overlap in a crowd."""

Shown = list[tuple[int, Sequence[dig.About]]]
"""The notes of turns, as data, with the number of the request that each turn works for."""


@dataclass(frozen=True)
class Refused:
    """What cannot be wrapped.

    Attributes:
        team: Makes the team.
        why: What the message says.
        options: What it is to be wrapped with.
    """

    team: Callable[[], Any]
    why: str
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.why


@dataclass(frozen=True)
class Waiting:
    """A team in which a person is asked.

    Attributes:
        asked: What a host asks of it; where nothing is said, it waits for the person.
        waits: How many activations say that they wait.
        answers: How many answers are submitted.
        limits: Those of the session.
        overdue_s: After how many seconds something hangs that is done with the answer, at least.
    """

    asked: Scenario
    waits: int = 1
    answers: int = 1
    limits: Limits | None = None
    overdue_s: float = 0.0

    def __str__(self) -> str:
        return str(self.asked)


@dataclass(frozen=True)
class Failing:
    """A request that fails, or in which somebody does.

    Attributes:
        asked: The request, which the host has answered as without a monitor.
        ends: By agent, with what its activation ends (`Watched.ends`), or how that begins.
        failed: How the request fails, and by whose error; ``None``: it has an answer.
        never: Agents that have no turn.
        options: Those of the adapter.
    """

    asked: Scenario
    ends: Mapping[str, str]
    failed: tuple[str, str | None] | None
    never: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return str(self.asked)


@dataclass(frozen=True)
class Hanging:
    """A team of which an agent takes ten minutes in its fifth turn.

    Attributes:
        build: Makes it; `stubborn`: the agent swallows its cancellation.
        drive: Asks it five times.
        relieved: The answer if another agent is asked in its place, as a pattern.
        waited_for: What is in the answer else.
        downgrades: Whether healing wants what cannot be done in the example.
    """

    build: Callable[..., Any]
    drive: Callable[[Any], Awaitable[Any]]
    relieved: str
    waited_for: str
    downgrades: bool = False

    def asked(self, wrap: Any, **options: Any) -> Scenario:
        """Five requests while time makes itself felt."""
        return ticking(Scenario("hanging", partial(self.build, **options), self.drive), wrap)


@dataclass(frozen=True)
class Framework:
    """What is wrapped, by what, and where the framework's own nature allows less.

    Attributes:
        name: As the names of its files begin.
        watched: Makes what wraps a team, of a mode, a setup and options (`framework_watch`).
        marks: Those of all of its tests.
        package: The distribution whose version is looked at first.
        scenarios: What hosts ask of their teams.
        cancelled: The names of the scenarios that are cancelled at every await.
        cancelled_in: The mode in which they are.
        adds_no_step: Whether the loop makes as many steps as without a monitor.
        may_be_healed: Whether there is something to heal in some scenarios.
        healing: The setup of a session that may heal.
        is_over: Whether nothing is open any more, as far as the framework allows that.
        going_round: Two agents that each believe that the other one is responsible, until they are
            told, are asked something, in each way.
        unsolved: What comes of it without a monitor.
        solved: What the answer of one that was told says.
        asking: An agent asks others the same, and says so once it hears that this was done twice.
        told: What its answer says then.
        crowded: Makes a scenario that asks `REQUESTS` requests at once, whose texts have `request
            NUMBER`; some say the same again and again, some hang for longer than the activation
            limit. When a turn ends, its agent adds `dig.notes_about()` to the list that is given.
        in_a_crowd: What wraps the team of these requests, if that is something else.
        faults: The cases that come through the sites where the adapter calls the monitor.
        at_least: How many sites there are at least, or reading has missed some.
        fragile: Names of scenarios in which each method fails for good.
        broken_in: Scenarios in which parts that a user has handed in are broken; `fragile`, if
            there are none.
        parts: These parts.
        finding: The setup of a session that must not heal, since healing changes the result.
        options: The options of the adapter that a scenario needs.
        unhealed: Scenarios in which something is healed, with the setup, until the wrapper fails.
        unheld: Scenarios whose messages a gate keeps for no time, until the wrapper fails.
        tapped: The scenarios in which something is replaced.
        replaced: What is replaced by other means than patches.
        refused: What cannot be wrapped.
        lacks: What a framework that is put together in another way has not: the owner, the name,
            and what the message says.
        at_once: Three requests at once to one team.
        seats: Some who have worked then, agents and instances.
        beside: A scenario, an agent before which a gate keeps what goes to it, an agent that is not
            concerned, and options of the adapter with which the first one sees a note.
        kept: A scenario, and what keeps its answer.
        held: A scenario, and what keeps messages while the request is cancelled.
        waiting: Teams in which a person is asked.
        failing: Requests that fail.
        hanging: A team of which an agent hangs, and which may ask another one.
        example: The patterns that `examples/wrap_NAME.py` finds, and its four answers as patterns.
        docs: Runs the lines of its page in the docs, and says how many sessions there were.
    """

    name: str
    watched: Callable[..., Any]
    marks: Sequence[pytest.MarkDecorator] = ()
    package: str = ""
    scenarios: Sequence[Scenario] = ()
    cancelled: Sequence[str] = ()
    cancelled_in: str = "observe"
    adds_no_step: bool = False
    may_be_healed: bool = False
    healing: Setup | None = None
    is_over: Callable[[Any], bool] = lambda watched: bool(watched.leaves_nothing_open())
    going_round: Sequence[Scenario] = ()
    unsolved: str = ""
    solved: str = ""
    asking: Sequence[Scenario] = ()
    told: str = ""
    crowded: Callable[[Shown], Scenario] | None = None
    in_a_crowd: Callable[..., Any] | None = None
    faults: Cases | None = None
    at_least: int = 0
    fragile: Sequence[str] = ()
    broken_in: Sequence[Scenario] = ()
    parts: Sequence[str] = PARTS
    finding: Setup | None = None
    options: Callable[[Scenario], dict[str, Any]] = lambda scenario: {}
    unhealed: Sequence[tuple[Scenario, Setup | None]] = ()
    unheld: Sequence[Scenario] = ()
    tapped: Sequence[Scenario] = ()
    replaced: Callable[[], Iterable[Pair]] = list
    refused: Sequence[Refused] = ()
    lacks: tuple[Any, str, str] | None = None
    at_once: Scenario | None = None
    seats: Sequence[str] = ()
    beside: tuple[Scenario, str, str, dict[str, Any]] | None = None
    kept: tuple[Scenario, Keeps] | None = None
    held: tuple[Scenario, Keeps] | None = None
    waiting: Sequence[Waiting] = ()
    failing: Sequence[Failing] = ()
    hanging: Hanging | None = None
    example: tuple[Sequence[str], Sequence[str]] | None = None
    docs: Callable[[Sequence[Any]], Awaitable[int]] | None = None

    def __str__(self) -> str:
        return self.name

    def named(self, names: Iterable[str]) -> list[Scenario]:
        """Some of its scenarios."""
        scenarios = {one.name: one for one in self.scenarios}
        return [scenarios[name] for name in names]

    def team(self) -> Any:
        """The team of the first scenario."""
        return self.scenarios[0].build(Script())
