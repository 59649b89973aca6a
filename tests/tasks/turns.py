"""Single activations of a simulated agent: views to show it, and what it decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dig.monitor.messages import About, Pending
from dig.runtime.agents import Decision, View
from dig.tasks.count_frequency import CountFrequency
from dig.tasks.simulated.parts import Job, Partial
from dig.tasks.simulated.profile import Profile
from dig.tasks.simulated.simulated_agent import SimulatedAgent

PERFECT = Profile.perfect()
TEAM = ("a1", "a2", "a3")
TASK = CountFrequency(3000, 1)
JOB = Job(TASK.name, (0, 3000), (0, 3000), 1000, "a1")
DATA = TASK.tools()["raw_data"]


def with_habit(name: str, probability: float) -> Profile:
    """A profile that is perfect but for one habit."""
    habit: dict[str, Any] = {name: probability}
    return replace(PERFECT, **habit)


def see(*events: Pending, turn: int = 1, team: tuple[str, ...] = TEAM, agent: str = "a1") -> View:
    return View(agent, team, turn, 0.0, events, TASK.tools())


def problem(start: int = 0, stop: int = 3000, report_to: str | None = None) -> Pending:
    payload = replace(JOB, report_to=report_to).at([start, stop]).payload()
    return Pending(f"p{start}", "problem", None, payload)


def raw(start: int, stop: int, report_to: str = "a1") -> Pending:
    job = replace(JOB, report_to=report_to).at([start, stop])
    return Pending(f"r{start}", "raw_data", "a1", job.payload(data=DATA([start, stop])))


def solution(
    start: int, stop: int, *, report_to: str = "a1", name: str = "", notes: tuple[str, ...] = (),
    final: bool = False, is_for_all: bool = False,
) -> Pending:  # fmt: skip
    job = replace(JOB, report_to=report_to)
    payload = Partial({"1": stop - start}, ((start, stop),), job).payload(is_for_all=is_for_all)
    return Pending(name or f"s{start}", "solution", "a2", payload, notes, final)


def noted(event: Pending, about: About) -> Pending:
    """The event with a note beside it."""
    return replace(event, notes=(*event.notes, "Something is wrong."), about=(about,))


def named(pattern: str, *work: Pending, lost: tuple[str, ...] = (), agents: tuple[str, ...] = ()
    ) -> About:  # fmt: skip
    """What a note about some work says, as data."""
    payloads = {event.id: event.payload for event in work}
    return About(pattern, tuple(payloads), agents, payloads, lost)


WAKE_UP = Pending("n1", "system", "system", "Continue.")


def system(about: About) -> Pending:
    """A system event with a note."""
    return replace(WAKE_UP, about=(about,))


def decide(view: View, profile: Profile = PERFECT, seed: int = 1) -> Decision:
    decision = SimulatedAgent(seed, profile).plan(view).decision
    assert isinstance(decision, Decision)
    return decision


def fates(decision: Decision) -> dict[str, str]:
    return {fate.event: fate.fate for fate in decision.fates}
