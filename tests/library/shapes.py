"""A shape of teams: a program that is well, its twin with one mistake, and how both are watched.

Programs run in virtual time, with `dig.wrap` in mode `observe` and its default limits. A fake model
takes seconds, as a real one does, and a program that never ends is given up.
"""

from __future__ import annotations

import asyncio
import tomllib
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, Literal
from unittest.mock import patch
from zlib import crc32

import dig
from dig.adapters import Session, wrapping
from dig.detectors.policy import Policy
from dig.detectors.policy_settings import load_policy
from dig.detectors.thresholds import Thresholds
from dig.graph.records import WORK_AFTER_ANSWER, Emit, IncidentRow, Record, Start, base_name
from tests.helpers import VirtualLoop

GIVE_UP_S = 1800.0
"""After how many seconds the user of a team that does not answer gives up."""

AFTER_S = 300.0
"""For how many seconds a team is watched after its last answer."""

GAVE_UP = "the user gave up"

Program = Callable[["Watch", bool], Awaitable[Any]]
"""Builds a team, wraps it with the `Watch`, asks it, and gives the answer; the flag says whether
the program has its mistake."""


@dataclass(frozen=True)
class Shape:
    """A shape that teams have.

    Attributes:
        name: Its name.
        does: What a healthy team does, in a sentence.
        program: The healthy program and its broken twin.
        answer: What the healthy program answers.
        mistake: What is wrong in the broken one, in a sentence.
        alarms: The alarms that the mistake raises: the patterns, each with its stage; none: it is
            not noticed.
        names: What FAIL, VOID, LOOP and LIVELOCK say about the broken program, alarms and notices:
            each with the question or the agents that it names.
        line: The line of configuration that the healthy team needs, if it does: of the table
            `[policy]`, or a threshold of the table `[thresholds]`.
        without_line: The alarms that the healthy team raises without it.
    """

    name: str
    does: str
    program: Program
    answer: Any
    mistake: str
    alarms: tuple[str, ...]
    names: tuple[str, ...] = ()
    line: str = ""
    without_line: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """What was seen of one program.

    Attributes:
        answer: What it answered; `GAVE_UP`, or the name of what it raised.
        alarms: How often each pattern was an alarm, each stage for itself.
        names: What FAIL, VOID, LOOP and LIVELOCK said, alarm or notice, and of whom.
        faults: Failures of the monitor, which must be none.
        findings: All findings, in order.
        late: The agents that worked on after the end of their request.
    """

    answer: Any
    alarms: Counter[str]
    names: frozenset[str]
    faults: int
    findings: tuple[dig.Finding, ...] = field(repr=False)
    late: frozenset[str] = frozenset()


class _Loop(VirtualLoop):
    """Does at once what is meant for a thread, since no time passes while a thread works."""

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Any, *args: Any
    ) -> asyncio.Future[Any]:
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future


Mode = Literal["observe", "heal", "bare"]
"""How the teams of a program run; `bare`: without the monitor."""


class Watch:
    """Wraps the teams of one program.

    Attributes:
        limits: The thresholds that they are wrapped with.
    """

    def __init__(self, line: str = "", mode: Mode = "observe") -> None:
        """Take one line of configuration, a threshold or a part of a policy."""
        self._mode = mode
        given = tomllib.loads(line)
        is_threshold = given.keys() <= Thresholds.model_fields.keys()
        self.limits = Thresholds(**given if is_threshold else {}).limits
        self._policy = Policy() if is_threshold else _policy(line)
        self._teams: list[Any] = []
        self._records: list[list[Record]] = []

    def __call__(self, team: Any, **options: Any) -> Any:
        if self._mode == "bare":
            return team
        records: list[Record] = []
        given = {"limits": self.limits, "policy": self._policy, "sink": records.append, **options}
        wrapped = dig.wrap(team, mode=self._mode, **given)
        self._teams.append(wrapped)
        self._records.append(records)
        return wrapped

    def agents(self, team: dict[str, Any], **agents: Any) -> Any:
        """Wrap a team of plain callables, and give the first of them."""
        team.update(agents)
        self(team)
        return team[next(iter(agents))]

    @property
    def sessions(self) -> list[Session]:
        return [dig.session_of(team) for team in self._teams]

    async def keep_time(self) -> None:
        """Tick once a second, as the watchdog's thread does in real time."""
        while True:
            await asyncio.sleep(1)
            for session in self.sessions:
                session.tick()

    def end(self, answer: Any) -> Seen:
        """Take the monitor out of the teams, and tell what it saw."""
        sessions = self.sessions
        faults = sum(session.statistics().faults for session in sessions)
        for team in self._teams:
            dig.unwrap(team)
        findings = tuple(finding for session in sessions for finding in session.findings)
        alarms = Counter(_key(finding) for finding in findings if finding.is_alarm)
        names = {
            f"{_key(finding)}: {_about(records, finding)}"
            for session, records in zip(sessions, self._records, strict=True)
            for finding in session.findings
            if finding.pattern in OF_FAILURES
        }
        incidents = (r for records in self._records for r in records if type(r) is IncidentRow)
        late = {base_name(r.detail["agent"]) for r in incidents if r.what == WORK_AFTER_ANSWER}
        return Seen(answer, alarms, frozenset(names), faults, findings, frozenset(late))


OF_FAILURES = ("FAIL", "VOID", "LOOP", "LIVELOCK")
"""The patterns of which a shape says what they name."""


def _key(finding: dig.Finding) -> str:
    return f"{finding.pattern} {finding.stage}" if finding.stage else finding.pattern


def _about(records: list[Record], finding: dig.Finding) -> str:
    """What a finding of `OF_FAILURES` names: agents, by the records alone, and the question."""
    agents = {row.activation: base_name(row.agent) for row in records if type(row) is Start}
    evidence: Any = finding.evidence
    if finding.pattern == "LIVELOCK":
        return ", ".join(sorted({base_name(agent) for agent in evidence["agents"]}))
    if finding.stage == "turn":
        assert base_name(evidence["agent"]) == agents[finding.subject["activation"]]
        return base_name(evidence["agent"])
    (emit,) = [r for r in records if type(r) is Emit and r.event == finding.subject["event"]]
    if finding.stage == "request":
        assert emit.by is None
        blamed = agents.get(evidence["activation"], "nobody")
        return f"{evidence['how']} of {blamed}"
    by = agents[str(emit.by)]
    if finding.stage == "answer":
        return f"{by} without {', '.join(sorted({agents[one] for one in evidence['failed']}))}"
    return f"{evidence['how']} of {by}" if finding.pattern == "VOID" else by


def _policy(line: str) -> Policy:
    """The policy of a settings file with one line."""
    with NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(f"[policy]\n{line}\n")
        file.flush()
        return load_policy(Path(file.name), {})


def play(shape: Shape, *, broken: bool, with_line: bool = True, mode: Mode = "observe") -> Seen:
    """Run a program of a shape, and watch its teams.

    Args:
        shape: The shape.
        broken: Whether it is the program with the mistake.
        mode: Whether its teams are observed, healed or left as they are.
        with_line: Whether the shape's line of configuration is read.
    """
    with asyncio.Runner(loop_factory=_Loop) as runner:
        loop = runner.get_loop()
        if broken:  # tasks that were left behind may raise anything when the loop ends
            loop.set_exception_handler(lambda loop, context: None)
        timed = partial(Session, clock=loop.time, keeps_time=False)
        with patch.object(wrapping, "Session", timed):
            watch = Watch(shape.line if with_line else "", mode)
            return runner.run(_watched(watch, shape.program(watch, broken)))


async def _watched(watch: Watch, program: Awaitable[Any]) -> Seen:
    keeper = asyncio.create_task(watch.keep_time())
    patience = asyncio.timeout(GIVE_UP_S)
    try:
        async with patience:
            answer = await program
    except Exception as error:  # a broken team may raise what it likes
        answer = GAVE_UP if patience.expired() else type(error).__name__
    await asyncio.sleep(AFTER_S)
    keeper.cancel()
    with suppress(asyncio.CancelledError):
        await keeper
    return watch.end(answer)


# --- what the programs are made of ------------------------------------------------------------


async def think(prompt: str, least_s: float = 1.0) -> None:
    """Take the time of a model: the least and up to five seconds, the same for each prompt."""
    await asyncio.sleep(least_s + crc32(prompt.encode()) % 50 / 10)


def pick(prompt: str, *choices: str) -> str:
    """One of some answers, the same for each prompt."""
    return choices[crc32(prompt.encode()) % len(choices)]


async def each(ask: Callable[[str], Awaitable[Any]], *questions: str) -> list[Any]:
    """Ask one question after the other."""
    return [await ask(question) for question in questions]


async def at_once(ask: Callable[[str], Awaitable[Any]], *questions: str) -> list[Any]:
    """Ask all questions at once."""
    return list(await asyncio.gather(*map(ask, questions)))
