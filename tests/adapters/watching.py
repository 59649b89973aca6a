"""A wrapped team under test: strict, in virtual time, and its trace looked at afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

from dig import Budget, Limits, Watch
from dig.adapters import Mode, Session
from dig.adapters.plain import adapter as plain
from dig.detectors import standard, standard_healers
from dig.detectors.policy import HEAL_ALL
from dig.graph.codec import encode
from dig.runtime import Setup
from tests.conservation import Allowed, conservation
from tests.helpers import Recorder, bodies, found_again


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now = 77.7

    def __call__(self) -> float:
        return self.now


def setup_of(**options: Any) -> Setup:
    """Healing does all it can, whatever a finding is worth."""
    return Setup(
        **{"policy": HEAL_ALL, "detectors": standard, "healers": standard_healers, **options}
    )


class Watched:
    """A session with what it has written.

    Attributes:
        session: The session.
        trace: Its records.
    """

    def __init__(self, session: Session, trace: Recorder) -> None:
        self.session = session
        self.trace = trace

    @property
    def patterns(self) -> list[str]:
        return [finding.pattern for finding in self.session.findings]

    def rows(self, kind: str) -> list[dict[str, Any]]:
        every = (json.loads(encode(record)) for record in self.trace)
        return [row for row in every if row["kind"] == kind]

    def must_be_sound(self, *, allowed: Allowed | None = None) -> None:
        """The trace is one, its findings are found again in it, and nothing is going on."""
        statistics = self.session.statistics()
        assert (statistics.open_turns, statistics.faults, statistics.missed) == (0, 0, 0)
        self.session.close()
        account = conservation(list(self.trace), allowed or Allowed(interference=True))
        found = found_again(self.trace, Watch(standard()))
        assert found == bodies(self.session.findings)
        assert not account.unfinished and not account.undelivered and not account.unconsumed


@contextmanager
def watched(
    team: Any,
    mode: Mode = "observe",
    *,
    clock: Callable[[], float] | None = None,
    limits: Limits | None = None,
    budget: Budget | None = None,
    gates: Any = (),
    healers: Any = standard_healers,
    same_work: bool = False,
    setup: Mapping[str, Any] = MappingProxyType({}),
    **options: Any,
) -> Iterator[Watched]:
    """Wrap a team of plain callables for as long as a block lasts; `setup`: further parts of it."""
    trace = Recorder()
    plan = plain.plan(team, **options)
    parts = {"limits": limits or Limits(), "budget": budget or Budget(), "gates": gates}
    whole = setup_of(**parts, healers=healers, **setup)
    session = Session(
        plan.agents, whole, mode=mode, capabilities=plan.capabilities,
        veto=plan.veto, on_note=plan.on_note,
        sink=trace, strict=True, keeps_time=False, clock=clock or Clock(),
        same_work=same_work,
    )  # fmt: skip
    attached = plan.attach(session)
    try:
        yield Watched(session, trace)
    finally:
        attached.restore()
        session.close()
