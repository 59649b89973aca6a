"""The simulator: a run in virtual time, without an event loop; the same seed, the same bytes.

The same monitor and the same host as on the bus, under a scheduler that keeps what is to happen
in a heap. An agent's think time is what its policy or its `think_s` says; how long a ready agent
takes to start is drawn from the seed, so that different seeds try different schedules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

from dig.errors import PART_ERRORS, DecisionError, RealTimeError, SettingsError, StopRunError
from dig.graph.records import Outcome, micros
from dig.monitor.messages import Asked, Effect, Output, Over, Proposed, Started, TakenOut, Wake
from dig.monitor.monitor import Monitor
from dig.monitor.sinks import Sink

from .agents import Team, View, as_planned
from .checkpoint import Checkpoint, PendingStart, Phase, RunningActivation, phase_at, restore
from .group_commit import Durable, waits
from .host import Host, make_host
from .keyed_random import KeyedRandom, repeat_key
from .result import RunResult
from .setup import Setup

Happening = tuple[float, Callable[[Monitor], list[Effect]]]
"""A time in seconds, and what is asked of the monitor then: a further problem, a leave, ..."""


_Entry = tuple[int, int, Callable[[], None], Callable[[], bool]]
"""When in microseconds, an order, what is done, and whether it still is to be done."""


def simulate(
    team: Team,
    problem: Any = None,
    *,
    setup: Setup | None = None,
    script: Iterable[Happening] = (),
    sink: Sink | None = None,
    latency_s: float = 0.05,
) -> RunResult:
    """Run a team in virtual time.

    Args:
        team: The agents by name.
        problem: The first event, at time zero: an `Output`, or a payload for the first agent.
        setup: Everything else about the run; its seed also orders what is simultaneous.
        script: The inputs from outside, besides.
        sink: Is given every record.
        latency_s: A ready agent starts after a random part of this many seconds.

    Returns:
        How the run ended.

    Raises:
        SettingsError: The team is empty, or a member of it is no agent.
        RealTimeError: An agent without a `plan` awaits something real.
    """
    simulation = Simulation(team, setup or Setup(), sink, latency_s)
    for at, happening in script:
        simulation.plan(at, happening)
    if problem is not None:
        first = problem if isinstance(problem, Output) else Output(problem, (*team,)[:1], "problem")
        simulation.plan(0.0, lambda monitor: monitor.inject(first))
    return simulation.run()


class Simulation:
    """A run in virtual time."""

    def __init__(
        self,
        team: Team,
        setup: Setup,
        sink: Sink | None = None,
        latency_s: float = 0.05,
        *,
        durable: Durable | None = None,
        host: Host | None = None,
    ) -> None:
        """Prepare the run; nothing happens before `run`.

        Args:
            team: The agents by name.
            setup: Everything else about the run.
            sink: Is given every record.
            latency_s: A ready agent starts after a random part of this many seconds.
            durable: Is synced before effects, as on the bus, but while time stands still.
            host: A host that has a monitor already; ``None``: a new one.

        Raises:
            SettingsError: The team is empty, or a member of it is no agent.
        """
        if not team:
            raise SettingsError("a team needs at least one agent")
        self._team = {name: as_planned(agent) for name, agent in team.items()}
        self._setup = setup
        self._latency_s = latency_s
        self._durable = durable
        self._now = 0  # microseconds
        # Breaks ties: entries of one time come first in, first out, and callables never compare.
        self._order = count()
        self._agenda: list[_Entry] = []
        self._waking: dict[str, object] = {}  # agent -> its next start
        self._taken_out: set[str | None] = set()  # activations of agents that healing took out
        self._repeats: tuple[int, ...] = ()  # whose random numbers are drawn
        self._phases: Sequence[Phase] = ()  # of the run before, if it goes on from a checkpoint
        self._outcome: tuple[Outcome, str] | None = None
        self.host = host or make_host(setup, setup.monitor(tuple(team), self._clock, sink))

    @classmethod
    def resume(
        cls,
        checkpoint: Checkpoint,
        team: Team,
        latency_s: float = 0.05,
        *,
        durable: Durable | None = None,
    ) -> Simulation:
        """Go on from a checkpoint, in virtual time.

        What comes from outside comes as it was recorded. An activation in progress ends as it
        was recorded, too, if that is known: its agent was called before the moment.

        Args:
            checkpoint: The run as it stands.
            team: The agents by name.
            latency_s: A ready agent starts after a random part of this many seconds.
            durable: Is synced before effects, as on the bus, but while time stands still.

        Raises:
            SettingsError: An agent that is present is missing in the team.
            ReplayError: An agent cannot be brought back to the moment.
        """
        team = restore(team, checkpoint)
        setup, host = checkpoint.setup, checkpoint.host
        simulation = cls(team, setup, None, latency_s, durable=durable, host=host)
        simulation._now = checkpoint.us
        simulation._phases = checkpoint.phases
        simulation._repeats = checkpoint.phases[-1].repeats
        checkpoint.begin()
        checkpoint.clock.source = simulation._clock
        for outside in checkpoint.outside:
            simulation.plan(outside.us / 1_000_000, outside.request)
        for item in sorted(checkpoint.agenda, key=simulation._overdue):
            simulation._take_up(item)
        simulation._carry_out(checkpoint.effects)
        simulation._begin_host_starts()
        return simulation

    def plan(self, at_s: float, happening: Callable[[Monitor], list[Effect]]) -> None:
        """Have something asked of the monitor at a time in seconds."""
        self._at(micros(at_s), lambda: self._take(happening(self.host.monitor)))

    def stop(self, reason: str = "it was stopped") -> None:
        """End the run, before whatever would come next, with the outcome `stopped`."""
        self._outcome = self._outcome or ("stopped", reason)

    @property
    def is_stopped(self) -> bool:
        """Whether the simulation has ended, or was stopped."""
        return self._outcome is not None

    def run(self) -> RunResult:
        """Run until the answer is accepted, nothing can happen any more, or time is up.

        What the script, the sink or the clock raises ends the run, with a complete trace.
        """
        try:
            while self._outcome is None:
                self._next()
        except BaseException as error:
            self.host.finish("error" if isinstance(error, Exception) else "stopped", repr(error))
            raise
        outcome, reason = self._outcome
        return self.host.finish(outcome, reason)

    def _next(self) -> None:
        """Do the next step; deadlines of the monitor come before other steps of the same time."""
        while self._agenda and not self._agenda[0][3]():
            heappop(self._agenda)  # what will not happen takes no time
        due = self.host.next_deadline()
        moments = [entry[0] for entry in self._agenda[:1]]
        if due is not None:
            moments.append(max(self._now, micros(due)))
        limit = micros(self._setup.limit_s)
        if not moments and self._now < limit:
            self._outcome = self.host.stand_still()
        elif not moments or min(moments) > limit:  # a fork may begin at the limit
            self._now = limit
            self._outcome = ("timeout", f"the time limit of {self._setup.limit_s:g} s passed")
        else:
            self._now = min(moments)
            if due is not None and moments[-1] == self._now:
                self._take(self.host.tick())
            else:
                heappop(self._agenda)[2]()

    # --- what happens ---

    def _due_us(self, item: PendingStart) -> int:
        if item.until_us is not None:
            return item.until_us
        repeats = phase_at(self._phases, item.t).repeats
        return item.since_us + micros(self._latency(item.agent, repeats))

    def _overdue(self, item: PendingStart | RunningActivation) -> int:
        """A sort key: agents whose start was due already come first, in order."""
        return min(self._now, self._due_us(item)) if isinstance(item, PendingStart) else self._now

    def _take_up(self, item: PendingStart | RunningActivation) -> None:
        """Plan the rest of an activation or a wait of the recorded run."""
        if isinstance(item, PendingStart):
            self._start_at(item.agent, self._due_us(item))
        elif item.end is None:
            self._think(item.started, item.view, item.since_us)
        else:
            end = partial(self.host.repeat_end, item.started, item.end, item.outputs, item.stack)
            self._end_at(item.started, item.end.us, end, item.end.error or item.outputs)

    def _take(self, effects: list[Effect]) -> None:
        """Count effects of a request, and carry them out."""
        self._carry_out(self.host.count_effects(effects))
        for exceeded in self.host.take_exceeded():
            if not self._setup.session:
                self._outcome = self._outcome or ("stopped", str(exceeded))

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        if self._durable is not None and waits(self._durable.durability, effects):
            self._durable.sync()
        for effect in effects:
            if isinstance(effect, Wake):
                latency_s = self._latency(effect.agent, self._repeats)
                self._start_at(effect.agent, self._now + micros(latency_s))
            elif isinstance(effect, Started):
                self._think(effect, self.host.view(effect), self._now)
            elif isinstance(effect, TakenOut):
                self._taken_out.add(effect.activation)
            elif isinstance(effect, Asked):
                self._ask(effect)
            elif isinstance(effect, Proposed):
                self._ask_person(effect)
            elif isinstance(effect, Over):
                if effect.outcome == "submitted":
                    self._outcome = ("submitted", "an answer was accepted")
                else:
                    self._outcome = ("error", "a part failed")

    def _start_at(self, agent: str, us: int) -> None:
        # A start that was planned before the agent left and came back is no start any more.
        agents, start = self.host.monitor.graph.agents, object()
        state, self._waking[agent] = agents.get(agent), start

        def is_due() -> bool:
            if state is None or agents.get(agent) is not state:
                return False
            return state.activation is None and self._waking.get(agent) is start

        self._at(us, lambda: self._take(self.host.start(agent)), is_due)

    def _think(self, started: Started, view: View, since_us: int) -> None:
        """Have an agent decide; the activation ends after the think time."""
        try:
            plan = self._team[started.agent].plan(view)
            value: Any = plan.decision
            think = micros(plan.think_s)
        except RealTimeError:
            raise
        except StopRunError as error:
            self._outcome = ("stopped" if error.is_limit else "error", str(error))
            self._take(self.host.fail_activation(started, error)[0])
            return
        except Exception as error:  # as on the bus: a failing agent loses nothing
            think, value = 0, error
        limit_s = self._setup.activation_timeout_s
        if think > micros(limit_s):
            think, value = micros(limit_s), TimeoutError(f"took longer than {limit_s:g} s")
        if isinstance(value, str):
            value = DecisionError(value)
        ask = (
            self.host.fail_activation if isinstance(value, Exception) else self.host.end_activation
        )
        self._end_at(started, since_us + think, partial(ask, started, value), value)

    def _end_at(
        self, started: Started, us: int, end: Callable[[], tuple[list[Effect], float | None]],
        value: object,
    ) -> None:  # fmt: skip
        activations, late = self.host.monitor.graph.activations, self._taken_out

        def happen() -> None:
            if started.activation not in activations:
                self._take(self.host.report_late_output(started, value))
                return
            effects, again_s = end()
            if again_s is not None:
                self._start_at(started.agent, self._now + micros(again_s))
            self._take(effects)
            self._begin_host_starts()

        def is_due() -> bool:  # else it has left by itself
            return started.activation in activations or started.activation in late

        self._at(us, happen, is_due)

    def _begin_host_starts(self) -> None:
        """Make the host's own requests after an activation, and start agents at its word."""
        if requests := self.host.after_activation():
            effects, starts = requests
            self._take(effects)
            for agent in starts:
                self._start_at(agent, self._now)

    def _ask(self, question: Asked) -> None:
        """Ask a gate; its `plan` returns the seconds until the decision, and the decision."""
        plan = getattr(question.gate, "plan", None)
        if plan is None:
            raise SettingsError(
                f"gate {question.gate.name!r} has no `plan`; it cannot be simulated"
            )
        at_s, decided, error = self._plan_answer(plan, question.event)
        self.plan(
            at_s, lambda monitor: monitor.resolve(question.gate, question.event.id, decided, error)
        )

    def _ask_person(self, proposed: Proposed) -> None:
        approve = self._setup.approve
        if approve is None:
            return
        plan = getattr(approve, "plan", None)
        if plan is None:
            raise SettingsError(f"approve={approve!r:.60} has no `plan`; it cannot be simulated")
        at_s, heal, error = self._plan_answer(plan, proposed)
        self.plan(at_s, lambda monitor: monitor.decide(proposed.row, bool(heal), error))

    def _plan_answer(
        self, plan: Callable[[Any], tuple[float, Any]], question: object
    ) -> tuple[float, Any, str | None]:
        """Call the `plan` of a gate or a person: the time of the answer, the answer, an error."""
        try:
            seconds, answer = plan(question)
            micros(seconds)  # raises for anything but a time
        except PART_ERRORS as error:  # a gate or a person must not end the team
            return self._clock(), None, f"raised {error!r}"
        return self._clock() + seconds, answer, None

    # --- time ---

    def _at(
        self, us: int, action: Callable[[], None], is_due: Callable[[], bool] = lambda: True
    ) -> None:
        heappush(self._agenda, (max(self._now, us), next(self._order), action, is_due))

    def _clock(self) -> float:
        return self._now / 1_000_000

    def _latency(self, agent: str, repeats: Sequence[int]) -> float:
        key = repeat_key(self._setup.draws_by, repeats)
        # By the activation that begins: a change elsewhere in the run leaves this latency alone.
        draws = KeyedRandom(key, agent, self.host.next_turn(agent))
        return self._latency_s * draws.uniform("latency")
