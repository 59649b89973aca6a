"""Graphs under a session whose time is virtual, and what they left in it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import anyio

from dig import InteractionGraph
from dig.detectors import standard, standard_healers
from dig.records import HealRow, IncidentRow
from dig.runtime.host import Setup
from dig.runtime.wrap import Session
from dig.runtime.wrap import langgraph as adapter
from tests.helpers import Recorder

from .harness import Scenario, Script
from .langgraph_asked import ask
from .watching import Watched as Live


class Watched:
    """Wraps graphs, and remembers their session and records."""

    def __init__(
        self, mode: Any = "observe", setup: Setup | None = None, *, strict: bool = True,
        **options: Any,
    ) -> None:  # fmt: skip
        self.mode = mode
        self.now = 0.0
        self.strict = strict
        self.more: dict[str, Any] = {}  # further arguments of the session
        self.setup = setup or Setup(detectors=standard, healers=standard_healers)
        self.options = options
        self.records = Recorder()

    def __call__(self, team: Any) -> Any:
        plan = adapter.plan(team, **self.options)
        more = {"sink": self.records, **self.more}
        self.session = Session(
            plan.agents, self.setup, mode=self.mode, capabilities=plan.capabilities,
            veto=plan.veto, clock=self.clock, keeps_time=False, strict=self.strict, **more,
        )  # fmt: skip
        return plan.attach(self.session).team

    def clock(self) -> float:
        """The loop's time; when there is no loop any more, the last there was."""
        with suppress(RuntimeError):
            self.now = anyio.current_time()
        return self.now

    @property
    def patterns(self) -> list[str]:
        return [finding.pattern for finding in self.session.findings]

    def healed(self) -> list[str]:
        return [record.action for record in self.records if isinstance(record, HealRow)]

    def incidents(self) -> list[str]:
        return [record.what for record in self.records if isinstance(record, IncidentRow)]

    def must_be_sound(self) -> None:
        """Whoever reads the trace finds in it what was found live, and nothing lost."""
        live = Live(self.session, self.records)
        live.must_be_sound()

    def leaves_nothing_open(self) -> bool:
        """Whether no turn, buffer, reservation or instance is left over, and nothing went wrong."""
        seen, monitored = self.session.statistics(), self.session.monitor.graph
        return (
            (seen.open_turns, seen.faults, seen.missed) == (0, 0, 0)
            and not monitored.activations
            and not any(agent.buffer or agent.incoming for agent in monitored.agents.values())
            and set(monitored.agents) == set(monitored.run.agents)
        )


def team(build: Callable[[Script], Any], drive: Callable[[Any], Any] = ask) -> Scenario:
    return Scenario(build.__name__, build, drive)


def seats(monitored: InteractionGraph) -> set[str]:
    """Who has worked: agents and their instances."""
    history = monitored.history
    return {history.agent(v) for v in range(len(history.activation_ids))}
