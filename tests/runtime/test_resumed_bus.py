"""A run on the bus whose process ended goes on in real time; here that is virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from dig import Create
from dig.detectors.policy import Policy, Rule
from dig.errors import DigError, JournalError, ReplayError, SettingsError
from dig.graph.codec import encode
from dig.graph.records import IncidentRow, Record, Start
from dig.monitor.messages import Proposed
from dig.runtime import Alarm, Bus, Decision, NewEvent, Plan, Setup, View
from dig.runtime.checkpoint import PastActivation
from dig.runtime.result import RunResult
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import read_records
from dig.traces.replay.rerun import rerun
from dig.traces.replay.tape import RecordedLines
from dig.traces.verify import verify
from tests.conservation import conservation
from tests.helpers import CALM, Heals, Sees, backends, on_emit

SETUP = Setup(limits=CALM)


class Ends(Journal):
    """A journal that knows after how many records its requests end."""

    ends: list[int]

    def write(self, records: Sequence[Record]) -> None:
        super().write(records)
        self.ends = [*getattr(self, "ends", ()), records[-1].t + 1]


@dataclass(frozen=True)
class Relay:
    """Passes on what it gets, with its name; the last one answers."""

    calls: list[str]

    async def act(self, view: View) -> Decision:
        self.calls.append(view.agent)
        await anyio.sleep(0.1)
        payload = [*view.events[0].payload, view.agent]
        if view.agent == "c":
            return Decision.submit(view, payload)
        to = {"a": ["b"], "b": ["c"]}[view.agent]
        return Decision.respond(view, NewEvent(payload=payload, to=to), NewEvent(type="notice"))


def play(bus: Bus, backend: str = "asyncio", problem: Any = None) -> RunResult:
    """Open a bus until the run ends."""

    async def go() -> None:
        async with bus.open():
            if problem is not None:
                bus.inject(problem, ["a"])
            await bus.wait()

    name, options = backends()[backend]()
    anyio.run(go, backend=name, backend_options=options)
    return bus.result


def journalled(path: Path, team: dict[str, Any], setup: Setup = SETUP) -> Ends:
    """The journal of a whole run."""
    journal = Ends(path, header=setup.header())
    play(Bus(team, setup, sink=journal), problem=[])
    journal.close()
    return journal


def cut(path: Path, records: int) -> None:
    """Leave the first records of a journal."""
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:records]))


def go_on(path: Path, team: dict[str, Any], setup: Setup = SETUP, **options: Any) -> Bus:
    """The bus of a run that goes on in its own journal."""
    journal = Journal(path, is_new=False)
    try:
        lines = RecordedLines(path)
        return Bus.resume(lines, team, setup, sink=journal, durable=journal, **options)
    except DigError:
        journal.close()
        raise


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_run_that_stopped_anywhere_comes_to_the_same_end(tmp_path: Path, backend: str) -> None:
    """Its journal goes on as one; nobody is called for what had ended."""
    whole = journalled(tmp_path / "whole.dig.jsonl", dict.fromkeys("abc", Relay([])))
    lines = whole.path.read_bytes().splitlines(keepends=True)
    records = list(read_records(whole.path))
    for end in whole.ends[1:-1]:
        path = tmp_path / f"{end}.dig.jsonl"
        path.write_bytes(b"".join(lines[:end]))
        calls: list[str] = []
        resumed = {"down_s": 60.0}
        bus = go_on(path, dict.fromkeys("abc", Relay(calls)), resumed=resumed)
        assert play(bus, backend).answer == ["a", "b", "c"]
        ended = sum(row.kind == "end" for row in records[:end])
        assert calls == ["a", "b", "c"][ended:]
        assert path.read_bytes().startswith(b"".join(lines[:end]))
        assert not verify(path).problems
        assert rerun(path).is_finished
        added = list(read_records(path))
        if added[end].kind != "finish":  # nothing else may follow an answer
            assert added[end] == IncidentRow(end, records[end - 1].us, "resumed", resumed)
        conservation(added)


def test_a_run_that_was_over_but_for_its_last_record_ends_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.dig.jsonl"
    journalled(path, dict.fromkeys("abc", Relay([])))
    cut(path, len(path.read_bytes().splitlines()) - 1)
    result = play(go_on(path, dict.fromkeys("abc", Relay([]))))
    assert (result.outcome, result.answer) == ("submitted", ["a", "b", "c"])


def test_an_agent_with_a_state_is_told_what_it_did(tmp_path: Path) -> None:
    """Not the activation in progress, which begins again; without `restore` it is refused."""

    class Counting:
        def __init__(self) -> None:
            self.turns: list[int] = []

        async def act(self, view: View) -> Decision:
            await anyio.sleep(0.1)
            self.turns.append(view.turn)
            if len(self.turns) == 3:
                return Decision.submit(view, self.turns)
            return Decision.respond(view, NewEvent(payload="again", to=["a"]))

    class Restored(Counting):
        def restore(self, past: Sequence[PastActivation]) -> None:
            self.turns += [activation.view.turn for activation in past]

    path = tmp_path / "x.dig.jsonl"
    journalled(path, {"a": Counting()})
    starts = [row.t for row in read_records(path) if isinstance(row, Start)]
    cut(path, starts[2] + 1)
    before = path.read_bytes()
    with pytest.raises(ReplayError, match="give it `restore"):
        go_on(path, {"a": Counting()})
    assert path.read_bytes() == before
    assert play(go_on(path, {"a": Restored()})).answer == [1, 2, 3]


def test_an_agent_that_waited_after_a_failure_waits_for_the_rest(tmp_path: Path) -> None:
    """Of the back-off, on the clock of the run."""
    times: list[float] = []

    async def shaky(view: View) -> Decision:
        times.append(view.time_s)
        if len(times) % 2:
            raise ValueError("not yet")
        return Decision.submit(view, "there")

    setup = Setup(limits=CALM, backoff_s=4.0)
    path = tmp_path / "x.dig.jsonl"
    journalled(path, {"a": shaky}, setup)
    failed = next(row.t for row in read_records(path) if row.kind == "end")
    cut(path, failed + 1)
    times[:] = [0.0]
    play(go_on(path, {"a": shaky}, setup))
    assert times[1] == pytest.approx(4.0)


def test_a_person_is_asked_again_and_an_alarm_is_sent_once(tmp_path: Path) -> None:
    asked: list[int] = []
    alarms: list[Alarm] = []

    async def approve(proposed: Proposed) -> bool:
        asked.append(proposed.row)
        await anyio.sleep(5.0)
        return True

    async def writer(view: View) -> Decision:
        await anyio.sleep(10.0)
        return Decision.submit(view, [note for event in view.events for note in event.notes])

    setup = Setup(
        limits=CALM, approve=approve, policy=Policy((Rule(action="ask", pattern="SEEN"),)),
        detectors=lambda: [Sees(on_emit)],
        healers=lambda: {"SEEN": Heals(lambda graph, finding: [Create("look", ("a",))])},
    )  # fmt: skip
    path = tmp_path / "x.dig.jsonl"
    journalled(path, {"a": writer}, setup)
    decided = next(row.t for row in read_records(path) if "decided" in str(row))
    cut(path, decided)
    before = asked.copy()
    asked.clear()
    bus = go_on(path, {"a": writer}, setup, on_alarm=alarms.append)
    assert play(bus).outcome == "submitted"
    assert asked[:1] == before[:1]
    assert rerun(path, setup).is_finished


def test_agents_that_only_plan_take_their_time_here_too(tmp_path: Path) -> None:
    """Simulated agents are such."""

    @dataclass(frozen=True)
    class Planner:
        def plan(self, view: View) -> Plan:
            return Plan(3.0, Decision.submit(view, "planned"))

    path = tmp_path / "x.dig.jsonl"
    journalled(path, {"a": Relay([]), "c": Relay([])})
    start = next(row for row in read_records(path) if isinstance(row, Start))
    cut(path, start.t + 1)
    result = play(go_on(path, {"a": Planner(), "c": Planner()}))
    assert result.answer == "planned"
    assert result.seconds == pytest.approx(3.0, abs=0.2)


def test_a_team_without_an_agent_that_is_present_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.dig.jsonl"
    cut(path, journalled(path, dict.fromkeys("abc", Relay([]))).ends[2])
    with pytest.raises(SettingsError, match="no agent called 'b', 'c'"):
        go_on(path, {"a": Relay([])})


def test_no_second_process_goes_on_with_the_same_journal(tmp_path: Path) -> None:
    path = tmp_path / "x.dig.jsonl"
    journalled(path, dict.fromkeys("abc", Relay([])))
    cut(path, 5)
    first = Journal(path, is_new=False)
    with pytest.raises(JournalError, match="another process has locked it"):
        Journal(path, is_new=False)
    first.close()
    Journal(path, is_new=False).close()


def test_a_plain_trace_does_not_go_on_as_a_journal(tmp_path: Path) -> None:
    """Its lines have no chain to go on with; a sink of another kind takes the records."""
    ends = journalled(tmp_path / "x.dig.jsonl", dict.fromkeys("abc", Relay([]))).ends
    rows = [encode(row) for row in read_records(tmp_path / "x.dig.jsonl")][: ends[2]]
    plain = tmp_path / "plain.dig.jsonl"
    plain.write_text("".join(f"{row}\n" for row in rows))
    records: list[Record] = []
    bus = Bus.resume(
        RecordedLines(plain), dict.fromkeys("abc", Relay([])), SETUP, sink=records.append
    )
    assert play(bus).answer == ["a", "b", "c"]
    assert records[0].t == ends[2]
    with pytest.raises(ReplayError, match="a plain trace cannot go on as a journal"):
        play(go_on(plain, dict.fromkeys("abc", Relay([]))))
