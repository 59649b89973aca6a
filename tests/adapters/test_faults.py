"""Whatever fails in here, the team gets its results and its exceptions: one test a call site."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import anyio
import pytest

import dig
from dig import Budget, Finding, Hold, InteractionGraph, Pending, Record
from dig.adapters import Session
from dig.adapters.base import session as module
from dig.adapters.base.watchdog import Watchdog
from dig.adapters.plain import adapter as plain
from dig.detectors.interventions import Inject
from dig.detectors.protocols import Detector, Healer
from dig.detectors.watch import Timing
from dig.graph.records import Emit
from dig.monitor.holds import Holds
from dig.traces.journal.reader import TRACE
from tests.helpers import Recorder

from .watching import Clock, setup_of

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]


class Boom(Exception):
    """What a part raises."""


def boom(*args: Any, **kwargs: Any) -> Any:
    raise Boom


def leave(*args: Any, **kwargs: Any) -> Any:
    raise SystemExit(3)


def make_team() -> dict[str, Any]:
    team: dict[str, Any] = {}

    async def ann(question: str) -> list[Any]:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(team["bob"], "quick")
            await anyio.sleep(0.1)
        answers = [await team["bob"]("2"), await team["cyd"]("2")]
        try:
            await team["bob"]("fail")
        except KeyError as error:
            answers.append(repr(error))
        return answers

    async def bob(task: str) -> str:
        await anyio.sleep(0.1)
        if task == "fail":
            raise KeyError(task)
        return f"bob {task}"

    async def cyd(task: str) -> str:
        return f"cyd {task}"

    team.update(ann=ann, bob=bob, cyd=cyd)
    return team


ANSWERS = ["bob 2", "cyd 2", "KeyError('fail')"]


class Fails(Detector):
    """A detector that fails in some way."""

    pattern = "FAILS"

    def __init__(self, fail: Callable[..., Any]) -> None:
        self.fail = fail

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        result: Iterable[Finding] = self.fail()
        return result


class FailingClock(Fails):
    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        return ()

    @property
    def due(self) -> int | None:  # type: ignore[override]
        result: int | None = self.fail()
        return result

    def expire(self, graph: InteractionGraph, us: int) -> Iterable[Finding]:
        return ()


class Flags(Detector):
    """Finds something about every event."""

    pattern = "RSP"

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        if isinstance(record, Emit):
            yield Finding("RSP", record.t, record.us, {"event": record.event}, {})


class Healing(Healer):
    """A healer made of a function."""

    def __init__(self, heal: Callable[..., Any] = lambda graph, finding: ()) -> None:
        self._heal = heal

    def heal(self, graph: InteractionGraph, finding: Finding) -> Any:
        return self._heal(graph, finding)


class Keeper:
    """A gate that keeps everything."""

    name = "keeper"

    def __init__(self, decide: Callable[..., Any], hold: Callable[..., Any] | None = None) -> None:
        self._decide = decide
        self._hold = hold

    def hold(self, graph: InteractionGraph, event: Pending) -> Hold | None:
        return Hold(1.0) if self._hold is None else self._hold()

    async def decide(self, event: Pending) -> Any:
        return self._decide() if self._decide in (boom, leave) else await self._decide()


async def for_ever() -> None:
    await anyio.sleep_forever()


async def nonsense() -> Any:
    return ["fly"]


def note(graph: InteractionGraph, finding: Finding) -> Iterable[Inject]:
    yield Inject(finding.subject["event"], "look!")


def flagged(*others: Detector) -> dict[str, Any]:
    return {"detectors": lambda: [Flags(), *others], "budget": Budget(100, 100, 100)}


PARTS: dict[str, dict[str, Any]] = {
    "a detector raises": {"detectors": lambda: [Fails(boom)]},
    "a detector returns nonsense": {"detectors": lambda: [Fails(lambda: ["?"])]},
    "a detector returns nothing": {"detectors": lambda: [Fails(lambda: None)]},
    "a detector's clock raises": {"detectors": lambda: [FailingClock(boom)]},
    "a detector's clock stands still": {"detectors": lambda: [FailingClock(lambda: 0)]},
    "a healer raises": {**flagged(), "healers": lambda: {"RSP": Healing(boom)}},
    "a healer says nonsense": {
        **flagged(), "healers": lambda: {"RSP": Healing(lambda graph, finding: ["fly"])},
    },
    "a gate's wish raises": {"gates": [Keeper(boom, boom)]},
    "a gate wishes nonsense": {"gates": [Keeper(boom, lambda: "?")]},
    "a gate raises": {"gates": [Keeper(boom)]},
    "a gate decides nonsense": {"gates": [Keeper(nonsense)]},
    "a gate never decides": {"gates": [Keeper(for_ever)]},
    "two gates never decide": {"gates": [Keeper(for_ever), Keeper(for_ever)]},
    "a detector exits": {"detectors": lambda: [Fails(leave)]},
    "a detector's clock exits": {"detectors": lambda: [FailingClock(leave)]},
    "a healer exits": {**flagged(), "healers": lambda: {"RSP": Healing(leave)}},
    "a gate's wish exits": {"gates": [Keeper(leave, leave)]},
    "a gate exits": {"gates": [Keeper(leave)]},
}  # fmt: skip


async def with_faults(
    setup: dict[str, Any], options: dict[str, Any] | None = None, **session: Any
) -> Session:
    """Run the team with something that fails around it, and see that it does not notice."""
    team = make_team()
    plan = plain.plan(team, **(options or {}))
    watching = Session(
        plan.agents, setup_of(**setup), capabilities=plan.capabilities,
        **{"mode": "heal", "keeps_time": False, "clock": anyio.current_time, **session},
    )  # fmt: skip
    attached = plan.attach(watching)
    assert await team["ann"]("?") == ANSWERS
    with pytest.raises(KeyError, match="fail"):
        await team["bob"]("fail")
    attached.restore()
    return watching


@pytest.mark.parametrize("what", PARTS)
async def test_a_part_that_fails_changes_nothing_and_is_written_down(what: str) -> None:
    """The results and exceptions are those of the team alone; there is an incident about it."""
    trace = Recorder()
    session = await with_faults(PARTS[what], sink=trace)
    session.close()
    kinds = [record.kind for record in trace]
    assert "incident" in kinds
    assert kinds[-1] == "finish"
    assert session.statistics().open_turns == 0


@pytest.mark.parametrize("at", [1, 2, 7, 20, 30])
@pytest.mark.parametrize("error", [OSError("full"), Boom()])
async def test_where_the_sink_fails_monitoring_stops_and_the_team_goes_on(
    at: int, error: Exception
) -> None:
    """Nothing more is written, what is not seen is counted, and it is said why."""
    trace = Recorder(fail_at=at, error=error)
    session = await with_faults({}, sink=trace)
    assert len(trace) == at
    statistics = session.statistics()
    assert statistics.stopped is not None
    assert repr(error) in statistics.stopped
    assert statistics.missed > 0


async def test_where_the_trace_is_taken_away_the_team_goes_on_and_its_result_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A trace that was cut by another program is not taken for that of the whole run."""
    team = dig.wrap(make_team(), journal=tmp_path)
    session = dig.session_of(team)
    folder = session.directory
    assert folder is not None
    os.truncate(folder / TRACE, 0)
    assert await team["ann"]("?") == ANSWERS
    dig.unwrap(team)
    stopped = session.statistics().stopped or ""
    assert f"{TRACE} was cut" in stopped
    assert f"{TRACE} was cut" in caplog.text
    assert (folder / f"{TRACE}.unreplayable").exists()
    result = json.loads((folder / "result.json").read_text())
    assert result["reason"] == stopped
    assert result["unreplayable_from"] > 0


async def test_slow_parts_are_told_in_the_log_and_in_statistics(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sink below what anybody would notice by itself: the share of the time that it takes."""
    now = [0.0]

    def slow(record: Record) -> None:
        now[0] += 0.2

    monkeypatch.setattr(module, "REAL_TIME", Timing(lambda: now[0]))
    session = await with_faults({}, sink=slow)
    statistics = session.statistics()
    assert (statistics.detector_share, statistics.sink_share) == (0.0, 1.0)
    told = [one.getMessage() for one in caplog.records if "the team has waited" in one.getMessage()]
    assert len(told) == 1
    assert "the sink 100%" in told[0]


async def test_what_a_sink_raises_is_masked_in_statistics_result_and_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With its traceback, and what it was raised from."""
    error = OSError("cannot post to https://hooks.slack.com/services/T0/B0/abcdef1234")
    error.__cause__ = ValueError("api_key=abcdef1234")
    session = await with_faults({}, sink=Recorder(fail_at=3, error=error))
    told = f"{session.statistics()} {session.result().to_json()}"
    assert "cannot post to https://hooks.slack.com/services/***" in told
    assert "Traceback" in caplog.text
    assert "abcdef1234" not in told + caplog.text


async def test_a_monitor_that_fails_itself_ends_its_trace_and_lets_go_of_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An event that it was about to deliver is not waited for; the trace says what happened."""
    deliver, count = Holds._deliver, iter(range(99))

    def fails(holds: Holds, event: str, agent: str) -> None:
        if next(count) == 2:
            raise Boom
        deliver(holds, event, agent)

    monkeypatch.setattr(Holds, "_deliver", fails)
    trace = Recorder()
    session = await with_faults({}, sink=trace)
    assert session.stopped == "monitoring stopped: Boom()"
    assert [record.kind for record in trace][-2:] == ["incident", "finish"]
    assert session.result().outcome == "error"


@pytest.mark.parametrize("fail", [boom, leave])
async def test_a_function_that_is_told_of_findings_may_raise(fail: Callable[..., Any]) -> None:
    """`on_finding` raises, or exits: counted, and written down."""
    session = await with_faults(flagged(), on_finding=fail)
    assert session.statistics().faults == len(session.findings) > 0


@pytest.mark.parametrize("annotate", [boom, leave, lambda *given: None, lambda *given: (1, 2)])
async def test_a_function_that_annotates_may_fail(annotate: Any) -> None:
    """The agent is called with what it was to be called with."""
    healing = {**flagged(), "healers": lambda: {"RSP": Healing(note)}}
    session = await with_faults(healing, {"annotate": annotate})
    assert session.statistics().faults > 0


async def test_ctrl_c_in_a_part_reaches_the_program() -> None:
    """A person who ends the program ends it, whatever part was at work."""

    def interrupt() -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Session(["ann"], setup_of(detectors=lambda: [Fails(interrupt)]), keeps_time=False)


async def test_a_clock_that_fails_later_stops_monitoring_only() -> None:
    """The clock that the session goes by is one of the parts that may fail."""
    clock = Clock()
    session = await with_faults({}, clock=clock)
    session.guard._clock = boom
    for _ in range(3):
        assert session.begin("ann").is_open
    assert session.statistics().faults > 0


async def test_what_an_agent_is_called_with_may_be_anything() -> None:
    """Objects that cannot be told of, or that raise when they are looked at, are passed on."""

    class Odd:
        def __getattribute__(self, name: str) -> Any:
            raise Boom(name)

        def __eq__(self, other: object) -> bool:
            raise Boom

        __hash__ = None  # type: ignore[assignment]

    async def ann(*args: Any, **kwargs: Any) -> Any:
        return args[0]

    team = {"ann": ann}
    plan = plain.plan(team)
    plan.attach(Session(plan.agents, setup_of(), keeps_time=False, strict=True))
    things: list[Any] = [Odd(), float("nan"), 10**5000, b"x", {1: {2: {3}}}, object, team]
    for odd in things:
        assert await team["ann"](odd, also=odd) is odd
    endless: list[Any] = []
    endless.append(endless)
    assert await team["ann"](endless) is endless


async def test_a_detector_that_calls_the_team_is_not_let_in() -> None:
    """It would see a graph in the middle of a change; it is counted, and nothing hangs."""
    sessions: list[Session] = []

    def call() -> list[Finding]:
        for session in sessions:
            session.request("?", ("ann",))
        return []

    class Calls(Fails):
        pass

    plan = plain.plan(make_team())
    sessions.append(Session(plan.agents, setup_of(detectors=lambda: [Calls(call)])))
    assert sessions[0].request("!", ("ann",)) == "e1"
    assert sessions[0].statistics().missed > 0
    sessions[0].close()


async def test_a_step_that_does_not_come_back_is_reported() -> None:
    """The watchdog says where it is, once; the step goes on when it can."""
    stuck, free = threading.Event(), threading.Event()

    def hang() -> list[Finding]:
        stuck.set()
        free.wait(20)
        return []

    session = Session(["ann"], setup_of(), keeps_time=True)
    keeper = session._watchdog
    assert isinstance(keeper, Watchdog)
    keeper._hangs_s = 0.02
    thread = threading.Thread(target=lambda: session.guard.run(hang, default=list[Finding]()))
    session.request("?", ("ann",))
    thread.start()
    stuck.wait(20)
    while keeper.hanging == 0:
        threading.Event().wait(0.01)
    free.set()
    thread.join()
    assert session.statistics().hanging == 1
    assert session.stopped is None
    session.close()
