"""A framework's team under a session whose time is virtual, and what it left in it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import anyio

from dig.adapters import Attached, Session
from dig.detectors import standard, standard_healers
from dig.detectors.protocols import Detector, Healer
from dig.detectors.thresholds import Thresholds
from dig.graph.records import Emit, End, HealRow, IncidentRow, Limits, Start
from dig.runtime.setup import Setup
from tests.helpers import Recorder

from .harness import Outcome, Scenario, play
from .watching import Watched as Live


class Watched:
    """Wraps teams, one after the other, and remembers the session and records of the last.

    Attributes:
        adapter: The module that wraps them.
        more: Further arguments of the session.
        options: Those of the adapter.
    """

    adapter: Any

    def __init__(
        self, mode: Any = "observe", setup: Setup | None = None, *, limits: Limits | None = None,
        strict: bool = True, same_work: bool = False, **options: Any,
    ) -> None:  # fmt: skip
        self.mode = mode
        self.now = 0.0
        self.strict = strict
        self.more: dict[str, Any] = {"same_work": same_work}
        self.setup = setup or Setup(
            detectors=standard, healers=standard_healers, limits=limits or Thresholds().limits
        )
        self.options = options
        self.records = Recorder()
        self.attached: Attached | None = None

    def __call__(self, team: Any) -> Any:
        plan = self.adapter.plan(team, **self.options)
        self.records = Recorder()
        self.session = Session(
            plan.agents, self.setup, mode=self.mode, capabilities=plan.capabilities,
            veto=plan.veto, on_note=plan.on_note, clock=self.clock, keeps_time=False,
            strict=self.strict, **{"sink": self.records, **self.more},
        )  # fmt: skip
        self.attached = plan.attach(self.session)
        return self.attached.team

    def detach(self) -> None:
        """Give the team back what is its own."""
        if self.attached is not None:
            self.attached.restore()

    def ticking(self, asked: Scenario) -> Scenario:
        """The same, and time makes itself felt while a team is asked."""

        async def keep_time() -> None:
            while True:
                await asyncio.sleep(1)
                self.session.tick()

        async def drive(team: Any) -> Any:
            keeper = asyncio.ensure_future(keep_time())
            try:
                return await asked.drive(team)
            finally:
                keeper.cancel()

        return replace(asked, drive=drive)

    def clock(self) -> float:
        """The loop's time; when there is no loop any more, the last there was."""
        with suppress(RuntimeError):
            self.now = anyio.current_time()
        return self.now

    @property
    def patterns(self) -> list[str]:
        return [finding.pattern for finding in self.session.findings]

    def rows(self, kind: type[Any]) -> list[Any]:
        return [row for row in self.records if isinstance(row, kind)]

    def healed(self) -> list[str]:
        return [row.action for row in self.rows(HealRow)]

    def incidents(self) -> list[str]:
        return [row.what for row in self.rows(IncidentRow)]

    def ran(self) -> list[str]:
        """The agents that have had a turn, one for each activation."""
        return [row.agent for row in self.rows(Start)]

    def answers(self) -> list[Any]:
        """What was submitted."""
        return [row.payload for row in self.rows(Emit) if row.final]

    def errors(self) -> dict[str, tuple[str, str | None, bool]]:
        """By agent: its error, the agent that this comes from, and whether it was called off."""
        agents = {row.activation: row.agent for row in self.rows(Start)}
        return {
            agents[row.activation]: (row.error, agents.get(row.because or ""), bool(row.cancelled))
            for row in self.rows(End)
            if row.error is not None
        }

    def ends(self) -> dict[str, str]:
        """By agent with an error: the error, `by` the agent that it comes from, or `called off`."""
        return {
            agent: f"by {because}" if because else "called off" if cancelled else error
            for agent, (error, because, cancelled) in self.errors().items()
        }

    def failed(self) -> list[tuple[str, str | None]]:
        """How each request has failed, and the agent whose error ended it."""
        agents = {row.activation: row.agent for row in self.rows(Start)}
        details = [row.detail for row in self.rows(IncidentRow) if row.what == "request_failed"]
        return [(one["how"], agents.get(one.get("activation") or "")) for one in details]

    def must_change_nothing(
        self, asked: Scenario, *, seed: int = 0, ticks: bool = False
    ) -> Outcome:
        """The host sees what it sees without a monitor, which is returned."""
        bare = play(asked, seed=seed)
        assert play(self.ticking(asked) if ticks else asked, self, seed=seed) == bare
        return bare

    def must_be_over(self) -> None:
        """The trace is sound, and nothing is left open."""
        assert self.leaves_nothing_open()
        self.must_be_sound()

    def must_be_sound(self) -> None:
        """A reader of the trace finds in it what was found live, and nothing lost.

        The team is its own again before.
        """
        self.detach()
        Live(self.session, self.records).must_be_sound()

    def leaves_nothing_open(self) -> bool:
        """Whether no turn, buffer, reservation or instance is left over, and nothing went wrong."""
        seen, monitored = self.session.statistics(), self.session.monitor.graph
        return (
            (seen.open_turns, seen.faults, seen.missed) == (0, 0, 0)
            and not monitored.activations
            and not any(agent.buffer or agent.incoming for agent in monitored.agents.values())
            and set(monitored.agents) >= set(monitored.run.agents)
            and not any("#" in name for name in monitored.agents)
        )


def ladder() -> Setup:
    """Healing step by step, by the thresholds of the commands."""
    limits = Thresholds().limits
    return Setup(detectors=standard, healers=standard_healers, limits=limits, ladder=True)


def limited(turns: int | None = None, **limits: float) -> Callable[[], Setup]:
    """What makes a setup in which nothing but a budget intervenes."""
    budget = {**limits, **({} if turns is None else {"turns": turns})}
    return lambda: Setup(detectors=standard, healers=dict).ruled(None, budget)


def ticking(asked: Scenario, wrap: Callable[[Any], Any]) -> Scenario:
    """A scenario whose team is wrapped, and in which time makes itself felt while it is asked."""
    wrapped = replace(asked, build=lambda script: wrap(asked.build(script)))
    return wrap.ticking(wrapped) if isinstance(wrap, Watched) else wrapped


class Broken(Detector, Healer):
    """A detector, a healer, a gate, a sink, a listener: all of them broken."""

    pattern = "BROKEN"
    name = "broken"

    def __call__(self, *args: Any) -> Any:
        raise RuntimeError("planted")

    detect = heal = hold = __call__  # type: ignore[assignment]

    async def decide(self, *args: Any) -> Any:
        raise RuntimeError("planted")
