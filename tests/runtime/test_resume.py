"""Resumption: from the records of a run that stopped anywhere, a run that goes on as it was."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any, get_args

import pytest

from dig import Budget, Create, Fate, Finding, Inject, InteractionGraph, Output
from dig.detectors.interventions import Refuse, Replace
from dig.detectors.policy import HEAL_ALL, Policy, Rule
from dig.detectors.watch import Timing
from dig.errors import CutOffError, DamageError, ReplayError, UnresumableError
from dig.graph.chain import SealedLines
from dig.graph.records import (
    FAILED,
    Deliver,
    Emit,
    End,
    FindingRow,
    IncidentRow,
    Record,
    Run,
    Start,
    Usual,
)
from dig.monitor.messages import Answered, Effect, Proposed, Started, Wake
from dig.monitor.monitor import Monitor
from dig.monitor.policies import Delayed, ToAgents
from dig.runtime.host import Host
from dig.runtime.resume import Resumption, resume
from dig.runtime.setup import Setup
from dig.runtime.simulator import Happening, Simulation
from dig.traces.journal.journal import Journal
from dig.traces.replay.rerun import rerun
from tests.chaos import ChaosRun
from tests.helpers import CALM, Clock, Heals, Keeper, Sees, answer, flag, of, on_emit
from tests.traces.journals import LARGE, simple_run


@dataclass
class Requests:
    """A sink that remembers the lines of each request, and what had come from outside by then.

    Attributes:
        lines: The lines of the journal.
        ends: After how many lines each request ends.
        script: How many happenings of the script had happened by then.
    """

    sealed: SealedLines
    lines: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    script: list[int] = field(default_factory=list)
    happened: int = 0
    went_on: int = 0

    def go_on(self, lines: SealedLines, records: int) -> None:
        """What a journal is told when its run goes on."""
        self.went_on = records

    def __call__(self, record: Record) -> None:
        self.write([record])

    def write(self, records: Sequence[Record]) -> None:
        self.lines += map(self.sealed.line, records)
        self.ends.append(len(self.lines))
        self.script.append(self.happened)

    def counting(self, happening: Callable[[Monitor], list[Effect]]) -> Any:
        """A happening that is counted."""

        def happen(monitor: Monitor) -> list[Effect]:
            self.happened += 1
            return happening(monitor)

        return happen


def plan(simulation: Simulation, run: ChaosRun, requests: Requests, since: int = 0) -> None:
    """Plan what comes from outside, from the first problem on."""
    problem: Happening = (0.0, partial(Monitor.inject, output=run.problem))
    script = [*run.script, problem]
    for at, happening in sorted(script, key=lambda item: item[0])[since:]:
        simulation.plan(at, requests.counting(happening))


def unbroken(run: ChaosRun) -> Requests:
    """The requests of a simulated run."""
    requests = Requests(SealedLines(run.setup.header()))
    simulation = Simulation(run.team, run.setup, requests)
    plan(simulation, run, requests)
    simulation.run()
    return requests


def resumed(run: ChaosRun, whole: Requests, cut: int) -> list[bytes]:
    """The lines of a run that stopped after some lines, and went on."""
    resumption = resume(whole.lines[:cut], run.setup, remembers=True)
    assert isinstance(resumption, Resumption) and resumption.lines is not None
    requests = Requests(resumption.lines)
    simulation = Simulation.resume(resumption.checkpoint(requests), run.team)
    plan(simulation, run, requests, whole.script[whole.ends.index(cut)])
    simulation.run()
    return whole.lines[:cut] + requests.lines


@pytest.mark.sampled(20)
@pytest.mark.parametrize("seed", range(100))
def test_a_run_that_stopped_after_any_request_ends_as_if_it_had_not(seed: int) -> None:
    run = simple_run(seed)
    whole = unbroken(run)
    for cut in whole.ends[:-1]:
        assert resumed(run, whole, cut) == whole.lines, f"simple_run({seed}) after {cut} lines"


# --- the lines ---


def test_a_cut_request_is_completed_and_an_activation_without_its_outputs_is_refused() -> None:
    """A file has no marks between requests; what is missing follows from what is there."""
    run = simple_run(3)
    whole = unbroken(run)
    refused = 0
    for cut in sorted({*range(1, len(whole.lines))} - {*whole.ends}):
        try:
            resumption = resume(whole.lines[:cut], run.setup, completes=True)
        except UnresumableError as error:
            refused += "cut off before all outputs" in str(error)
            continue
        assert resumption.lines is not None
        added = [resumption.lines.line(record) for record in resumption.unwritten]
        assert whole.lines[:cut] + added == whole.lines[: cut + len(added)]
        assert cut + len(added) in whole.ends
        sink = Requests(SealedLines({}))
        resumption.go_live(sink)
        assert (sink.ends, sink.went_on) == ([len(added)], cut)
    assert 0 < refused < len(whole.lines) / 2


def test_lines_of_half_a_request_are_refused_where_requests_are_whole() -> None:
    run = simple_run(3)
    whole = unbroken(run)
    cut = next(end for before, end in pairwise(whole.ends) if end - before > 1) - 1
    with pytest.raises(CutOffError):
        resume(whole.lines[:cut], run.setup)


def test_a_standby_is_fed_as_the_journal_grows() -> None:
    """By iterators that are read once; at any moment it is the run that was read at once."""
    run = simple_run(12)
    whole = unbroken(run)
    standby = Resumption(iter(whole.lines[: whole.ends[0]]), run.setup, remembers=True)
    for before, end in pairwise(whole.ends[:-1]):
        standby.feed(iter(whole.lines[before:end]))
        at_once = resume(whole.lines[:end], run.setup, remembers=True)
        assert standby.t == at_once.t == end - 1
        assert (standby.wakes, standby.again) == (at_once.wakes, at_once.again)
        assert standby.running == at_once.running
    assert len(standby.monitor.graph.history.event_ids) > 5


def test_a_damaged_line_is_named() -> None:
    run = simple_run(3)
    whole = unbroken(run).lines
    for lines in (
        [*whole[:7], whole[7].replace(b'"ts"', b'"tz"'), *whole[8:]],
        [*whole[:7], *whole[8:]],
        [*whole[:8], *whole[7:]],
    ):
        with pytest.raises(DamageError) as caught:
            resume(lines, run.setup)
        assert caught.value.line in (8, 9)


def test_a_large_payload_may_stay_in_its_line() -> None:
    """As in a stream; in a file it lies beside, and the line names it."""
    live = Live()
    live.request(lambda monitor: monitor.inject(Output(LARGE, ("a",), "problem")))
    sealed = SealedLines(live.setup.header())
    stay = [sealed.line(record, keeps_payload=True) for record in live.records]
    assert b"blobs" not in b"".join(stay) and len(b"".join(stay)) > len(LARGE)
    resumption = resume(stay, live.setup)
    resumption.go_live()
    (started,) = of(Started, resumption.monitor.start("a"))
    assert started.events[0].payload == LARGE


# --- the state ---


class Live:
    """A monitor whose requests are recorded, each with its lines."""

    def __init__(self, agents: str = "ab", setup: Setup | None = None) -> None:
        self.setup = setup or Setup(limits=CALM)
        self.clock = Clock()
        self.records: list[Record] = []
        self.monitor = self.setup.monitor(tuple(agents), self.clock, self.records.append)
        self.host = Host(self.setup, self.monitor)

    def request(self, request: Callable[[Monitor], Any], after_s: float = 1.0) -> Any:
        self.clock.now += after_s
        return request(self.monitor)

    def turn(self, agent: str, *outputs: Output, **end: Any) -> Any:
        """An agent consumes what it has."""
        (started,) = of(Started, self.request(lambda monitor: monitor.start(agent)))
        fates = [Fate(event.id, "consume") for event in started.events]
        return self.request(lambda monitor: monitor.end(started.activation, fates, outputs, **end))

    @property
    def lines(self) -> list[bytes]:
        sealed = SealedLines(self.setup.header())
        return [sealed.line(record) for record in self.records]


def test_what_goes_on_is_told_with_its_record() -> None:
    """Activations in progress, agents to start now or later, answers and questions to persons."""

    def see(graph: InteractionGraph, row: Record) -> list[Finding]:
        return on_emit(graph, row) if isinstance(row, Emit) and row.payload == "ask" else []

    setup = Setup(
        session=True, limits=CALM, backoff_s=8.0, detectors=lambda: [Sees(see)],
        policy=Policy((Rule(action="ask", pattern="SEEN"),)),
        healers=lambda: {"SEEN": Heals(lambda graph, finding: [Create("well?", ("a",))])},
    )  # fmt: skip
    live = Live("abcd", setup)
    for agent in "abc":
        live.request(partial(Monitor.inject, output=Output("?", (agent,), "problem")))
    live.turn("a", answer(1))
    live.turn("b", answer(2))
    (started,) = of(Started, live.request(lambda monitor: monitor.start("c")))
    live.host.view(started)
    failed = live.request(lambda monitor: live.host.fail_activation(started, ValueError("no")))[1]
    live.request(lambda monitor: monitor.inject(Output("?", ("b", "d"), "problem")))
    live.request(lambda monitor: monitor.start("d"))
    live.request(lambda monitor: monitor.inject(Output("ask", ("d",), "problem")))
    resumption = resume(live.lines, setup)
    rows = [row for row in live.records if row.kind in ("deliver", "start", "finding")]
    accepted = [row.t for row in rows if isinstance(row, Deliver) and row.to is None]
    asked = [row.t for row in rows if isinstance(row, FindingRow)]
    (start,) = [row for row in rows if isinstance(row, Start) and row.agent == "d"]
    assert [t for t, effect in resumption.effects if isinstance(effect, Answered)] == accepted
    assert [effect.payload for _, effect in resumption.effects[:2]] == [1, 2]  # type: ignore[union-attr]
    assert [t for t, effect in resumption.effects if isinstance(effect, Proposed)] == asked
    assert len(asked) == 1
    (running,) = resumption.running.values()
    assert (running.started.agent, running.view.agent, running.t) == ("d", "d", start.t)
    assert running.mark == json.loads(live.lines[start.t])["chain"][:16]
    assert resumption.wakes == ["b"]
    assert resumption.again == {"c": live.clock.now - 3.0 + failed}
    assert resumption.now_s == live.clock.now


def test_an_agent_that_left_or_was_taken_out_is_not_started() -> None:
    """It was to be started before; the team goes on without it, or with an empty buffer."""
    out_of_team = Heals(lambda graph, finding: [Replace("b", "it sleeps")])
    setup = Setup(
        limits=CALM, ladder=True, policy=HEAL_ALL, healers=lambda: {"SEEN": out_of_team},
        detectors=lambda: [Sees(lambda graph, row: on_emit(graph, row) if row.t > 2 else [])],
    )  # fmt: skip
    live = Live("ab", setup)
    live.request(lambda m: m.inject(Output("?", ("b",), "problem")))
    assert resume(live.lines, setup).wakes == ["b"]
    taken_out = Live("ab", setup)
    taken_out.request(lambda m: m.inject(Output("?", ("b",), "problem")))
    taken_out.request(lambda m: m.inject(Output("!", ("a",), "problem")))
    assert "leave" in {row.kind for row in taken_out.records}
    assert resume(taken_out.lines, setup).wakes == ["a"]
    live.request(lambda m: m.leave("b"))
    live.request(lambda m: m.join("b"))
    assert resume(live.lines, setup).wakes == []


def test_every_optional_field_of_every_record_comes_out_again(tmp_path: Path) -> None:
    """Trace contexts and delivery policies too, of which the monitor only gets to know."""
    live = everything()
    says = {
        (row.kind, field.name)
        for row in live.records
        for field in optional_fields(type(row))
        if getattr(row, field.name) not in (None, False, (), field.default)
    }
    named = {
        (kind.kind, field.name) for kind in get_args(Record) for field in optional_fields(kind)
    }
    assert named - says == {("run", "version")}
    assert resume(live.lines, live.setup).t == len(live.records) - 1
    journal = Journal(tmp_path / "all.dig.jsonl", header=live.setup.header())
    journal.write(live.records)
    journal.close()
    assert rerun(journal.path, live.setup).records == len(live.records)


def optional_fields(kind: Any) -> list[Any]:
    """The fields of a kind of records that have a default."""
    return [
        field
        for field in fields(kind)
        if field.default is not MISSING or field.default_factory is not MISSING
    ]


def everything() -> Live:
    """A run in which each optional field of some record says something."""
    context = f"00-{'1' * 32}-{'2' * 16}-01"

    def see(graph: InteractionGraph, row: Record) -> list[Finding]:
        if isinstance(row, Emit) and row.payload == "see":
            return [flag(row, event=row.event), flag(row, pattern="QUIET", event=row.event)]
        return []

    setup = Setup(
        task="all", seed=7, session=True, memory=True, limits=replace(CALM, reroute_limit=1),
        usual=Usual(20, {"OE": (3, 2)}), budget=Budget(per_subject=1),
        detectors=lambda: [Sees(see), Sees(lambda graph, row: [], "QUIET")],
        healers=lambda: {
            "SEEN": Heals(lambda graph, finding: [
                Inject(finding.subject["event"], "look", ("c",)), Refuse("enough"),
            ]),
        },
        policy=Policy((Rule(action="off", pattern="QUIET", reason="it is known"),)),
    )  # fmt: skip
    live = Live("abc", setup)
    live.request(lambda m: m.inject(Output("?", ("a", "b"), "problem", traceparent=context)))
    live.turn("a", Output("!", ("b",), traceparent=context), usage={"tokens": 7})
    live.turn("b", error="ValueError: no")
    failed = next(row for row in live.records if isinstance(row, End) and row.error)
    live.request(lambda m: m.inject(Output("later", policy=Delayed(ToAgents(("a",)), 3.0))))
    live.request(lambda m: m.tick(), after_s=3.0)
    live.turn("a", error="ValueError: no", because=failed.activation)
    live.request(lambda m: m.join("d"))
    live.request(lambda m: m.inject(Output("see", ("c",))))
    live.turn("c", error="CancelledError", cancelled=True)
    live.turn("c", answer("done"))
    live.request(lambda m: m.leave("d"))
    live.request(lambda m: m.finish("submitted", "done", {"a9": {"tokens": 1}}))
    return live


# --- what cannot be repeated ---


def test_a_record_that_cannot_be_made_again_is_named() -> None:
    """A detector that counts its looks beyond its life is none that can be repeated."""
    looks = count()

    def see(graph: InteractionGraph, row: Record) -> list[Finding]:
        if isinstance(row, Start) and next(looks) != 1:
            raise RuntimeError("it is Monday")
        return [flag(row)] if isinstance(row, Start) else []

    setup = Setup(limits=CALM, detectors=lambda: [Sees(see)])
    live = Live("ab", setup)
    for agent in "ab":
        live.request(partial(Monitor.inject, output=Output("?", (agent,), "problem")))
        live.request(partial(Monitor.start, agent=agent))
    with pytest.raises(UnresumableError, match="cannot be made again") as caught:
        resume(live.lines, setup)
    (found,) = [row.t for row in live.records if isinstance(row, FindingRow)]
    assert caught.value.record == found


def test_a_detector_that_raises_again_can_be_repeated() -> None:
    def see(graph: InteractionGraph, row: Record) -> list[Finding]:
        if isinstance(row, Start):
            raise RuntimeError("it is never here")
        return []

    setup = Setup(limits=CALM, detectors=lambda: [Sees(see)])
    live = Live("ab", setup)
    live.request(lambda m: m.inject(Output("?", ("a",), "problem")))
    live.request(lambda m: m.start("a"))
    assert any(isinstance(row, IncidentRow) and row.what == FAILED for row in live.records)
    assert resume(live.lines, setup).t == live.records[-1].t


@pytest.mark.parametrize("is_timed", [False, True])
def test_no_detector_is_timed_before_a_host_goes_on(is_timed: bool) -> None:
    """And none after it, in a session that others are to resume: that is no function of records."""
    clock = Clock()

    def see(graph: InteractionGraph, row: Record) -> list[Finding]:
        clock.now += 7.0
        return []

    setup = Setup(limits=CALM, detectors=lambda: [Sees(see)])
    live = Live("ab", setup)
    live.request(lambda m: m.inject(Output("?", ("a",), "problem")))
    timing = Timing(clock, clock) if is_timed else None
    resumption = resume(live.lines, setup, timing=timing)
    added: list[Record] = []
    resumption.go_live(added.append, clock=lambda: 2.0)
    resumption.monitor.start("a")
    resumption.monitor.incident("nothing", None)
    failures = [row for row in added if isinstance(row, IncidentRow) and row.what == FAILED]
    assert len(failures) == is_timed


def test_a_run_with_gates_or_with_other_parts_is_refused() -> None:
    live = Live()
    with pytest.raises(ReplayError, match="gates"):
        resume(Live(setup=Setup(gates=[Keeper()])).lines, Setup(gates=[Keeper()]))
    with pytest.raises(ReplayError, match="was made with"):
        resume(live.lines, Setup(limit_s=7.0))
    older = SealedLines(live.setup.header())
    lines = [older.line(replace(row, patterns=1)) for row in live.records if isinstance(row, Run)]
    with pytest.raises(ReplayError, match="edition 1"):
        resume(lines, live.setup)


# --- how it goes on ---


def test_history_that_the_header_says_is_kept_is_kept() -> None:
    """A session of any length has the memory that it had, and no more."""
    setup = Setup(session=True, limits=CALM, keep=20)
    live = Live("a", setup)
    for _ in range(200):
        live.request(lambda m: m.inject(Output("?", ("a",), "problem")))
        live.turn("a", answer())
    resumption = resume(live.lines, replace(setup, keep=None))
    assert resumption.setup.keep == 20
    rows = resumption.monitor.graph.history.rows
    assert rows == live.monitor.graph.history.rows < 100
    assert "keep" not in Setup(session=True).header() and "keep" not in Setup(keep=3).header()


def test_time_goes_on_from_the_last_record_and_an_incident_tells_the_break() -> None:
    live = Live()
    live.request(lambda m: m.inject(Output("?", ("a",), "problem")), after_s=5.0)
    resumption = resume(live.lines, live.setup)
    assert resumption.monitor.graph.now == 5_000_000
    assert resumption.lines is not None
    added = Requests(resumption.lines)
    resumption.go_live(added, clock=Clock(6.5))
    (first,) = resumption.checkpoint(resumed={"down_s": 77.0}).outside
    first.request(resumption.monitor)
    resumption.monitor.start("a")
    told = [json.loads(line) for line in added.lines]
    assert [(row["kind"], row["ts"]) for row in told] == [("incident", 6.5), ("start", 6.5)]
    assert (told[0]["what"], told[0]["detail"]) == ("resumed", {"down_s": 77.0})
    assert resume([*live.lines, *added.lines], live.setup).t == resumption.t


def test_an_event_that_a_delivery_policy_still_keeps_is_released() -> None:
    """The policy is code: it is lost with its process, the event is not."""
    live = Live()
    live.request(lambda m: m.inject(Output("?", policy=Delayed(ToAgents(("a",)), 60.0))))
    fed = Resumption(live.lines[:1], live.setup)
    for unknown in (lambda: resume(iter(live.lines), live.setup), lambda: fed.feed(live.lines[1:])):
        with pytest.raises(UnresumableError, match="delivery policy"):
            unknown()
    resumption = resume(live.lines, live.setup)
    assert resumption.wakes == []
    resumption.go_live()
    (release,) = resumption.checkpoint().outside
    assert of(Wake, release.request(resumption.monitor)) == [Wake("a")]
    assert of(Wake, release.request(resumption.monitor)) == []
