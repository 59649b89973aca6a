"""Typical uses of the public interface: type-checked with the rest, never run.

What a user writes must pass `mypy --strict` without a cast, and what comes back has a known type.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import assert_type

import networkx as nx

import dig
from dig import (
    Budget,
    Create,
    Detector,
    Fate,
    Finding,
    Gate,
    Healer,
    Hold,
    Inject,
    InteractionGraph,
    Limits,
    Monitor,
    Output,
    Pending,
    Record,
    Reroute,
    Step,
    Watch,
)
from dig.adapters import Session, Turn
from dig.detectors import standard, standard_healers
from dig.detectors.finding import Explanation
from dig.detectors.interventions import Intervention
from dig.graph.behaviour import Behaviour, same_behaviour, signature
from dig.graph.codec import decode, encode
from dig.graph.records import Emit, End
from dig.monitor.messages import Answered, DeliveryPolicy, Effect, Over, Situation, Started, Wake
from dig.runtime import (
    Agent,
    Bus,
    Decision,
    NewEvent,
    Plan,
    PlannedAgent,
    RunResult,
    Setup,
    View,
    simulate,
)
from dig.testing import assert_same_behaviour
from dig.traces.journal.reader import check_trace, read_graph, read_records

# -- agents: an async function, a class, a policy for virtual time ---


async def parrot(view: View) -> Decision:
    return Decision.submit(view, view.events[0].payload)


class Splitter:
    async def act(self, view: View) -> Decision:
        if not view.others:
            return Decision.wait()
        parts = [NewEvent(payload=n, to=[name]) for n, name in enumerate(view.others)]
        return Decision.respond(view, *parts)


class Passer:
    def plan(self, view: View) -> Plan:
        return Plan(0.5, Decision.reroute(view.events, view.others[:1]))


an_agent: Agent = Splitter()
a_policy: PlannedAgent = Passer()


async def on_the_bus() -> None:
    setup = Setup(
        seed=1, detectors=standard, healers=standard_healers, limits=Limits(dl_window_s=5)
    )
    result = await Bus({"a": parrot, "b": an_agent}, setup).run("hello", to=["b"])
    assert_type(result, RunResult)
    assert_type(result.findings, tuple[Finding, ...])


def in_virtual_time(sink: Callable[[Record], None]) -> None:
    team = {"a": a_policy, "b": Passer()}
    result = simulate(team, Output("hello", ("a",)), setup=Setup(seed=1), sink=sink)
    assert_type(result.raised(), dict[str, int])


# -- a team that exists already ---


async def wrapped(team: dict[str, Callable[[str], Awaitable[int]]]) -> None:
    team = assert_type(
        dig.wrap(team, mode="heal", journal="runs", require={"bounce"}, allow={"bounce"}),
        dict[str, Callable[[str], Awaitable[int]]],
    )
    assert_type(await team["a"]("hello"), int)
    session = assert_type(dig.session_of(team), Session)
    assert_type(session.findings, tuple[Finding, ...])
    assert_type(session.statistics().stopped, str | None)
    async with session.activation("a", [session.request({"question": 1}, ["a"])]) as turn:
        assert_type(turn, Turn)
        assert_type(turn.notes, tuple[str, ...])
        assert_type(dig.notes(), tuple[str, ...])
    dig.unwrap(team)


# -- a loop of one's own around the monitor ---


def own_loop(clock: Callable[[], float], lines: list[str]) -> None:
    monitor = Monitor(
        ["a", "b"],
        clock=clock,
        detectors=standard(),
        healers=standard_healers(),
        gates=[Approval()],
        budget=Budget(per_run=10),
        sink=lambda record: lines.append(encode(record)),
    )
    effects: Sequence[Effect] = monitor.inject(Output({"question": 1}, ("a",), "problem"))
    while effects and not monitor.is_over:
        effects = [more for effect in effects for more in carry_out(monitor, effect)]
    assert_type(monitor.graph, InteractionGraph)
    assert_type(monitor.next_deadline(), float | None)
    monitor.finish("stopped", usage={"tokens": 1})


def carry_out(monitor: Monitor, effect: Effect) -> list[Effect]:
    match effect:
        case Wake(agent):
            return monitor.start(agent)
        case Started(activation, _, events):
            fates = [Fate(event.id, "consume") for event in events]
            return monitor.end(activation, fates, [Output(1, type="solution", final=True)])
        case Answered(_, payload, problems):
            print(payload, *problems)
        case Over(outcome):
            print(outcome)
        case _:
            pass
    return []


# -- a detector, a healer, a gate and a delivery policy of one's own ---


class Chatter(Detector):
    """Raised for an event that goes to more agents than it should."""

    pattern = "CHATTER"

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        if isinstance(record, Emit) and len(record.to) > 5:
            evidence = {"recipients": list(record.to)}
            yield Finding(self.pattern, record.t, record.us, {"event": record.event}, evidence)


class Silence(Detector):
    """Raised once, when a second has gone by since the last end of an activation."""

    pattern = "SILENCE"

    def __init__(self) -> None:
        self.due: int | None = None

    def detect(self, graph: InteractionGraph, record: Record) -> Sequence[Finding]:
        if isinstance(record, End):
            self.due = record.us + 1_000_000
        return ()

    def expire(self, graph: InteractionGraph, us: int) -> Sequence[Finding]:
        self.due = None
        return [Finding(self.pattern, graph.t, us, {}, {})]


class Hush(Healer):
    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterable[Intervention]:
        event: str = finding.subject["event"]
        yield Inject(event, "Say less.")
        yield Reroute(event, "Ask one only.", to=(next(iter(graph.agents)),))
        yield Create("Be quiet.", to=tuple(graph.agents))


class Approval:
    name = "approval"

    def hold(self, graph: InteractionGraph, event: Pending) -> Hold | None:
        return Hold(60.0, otherwise=(Inject(event.id, "Nobody looked."),)) if event.final else None

    async def decide(self, event: Pending) -> Iterable[Intervention]:
        return [Reroute(event.id, "No.", to=())] if event.payload is None else []


class ToTheFirst:
    def step(self, now: Situation) -> Step:
        return Step(tuple(now.graph.agents)[:1])


detectors: list[Detector] = [*standard(), Chatter(), Silence()]
healers: dict[str, Healer] = {**standard_healers(), "CHATTER": Hush()}
gate: Gate = Approval()
policy: DeliveryPolicy = ToTheFirst()
output = Output("x", policy=policy)


# -- after the fact ---


def after_the_fact(path: Path) -> None:
    found = check_trace(path, Watch([*standard(), Chatter()]))
    assert_type(found, Iterator[Finding])
    assert_type([dig.explain(Watch([]).graph, finding) for finding in found], list[Explanation])
    graph = read_graph(path)
    assert_type([event.id for event in graph.open_events()], list[str])
    assert_type(graph.orphans(), dict[str, str])
    assert_type(graph.roots("e1"), frozenset[str])
    whole: nx.DiGraph[str] = graph.at(10).cleaned().to_networkx()
    print(whole.number_of_nodes(), graph.cleaned().node_link()["edges"])
    for record in read_records(path):
        assert_type(record, Record)
        assert decode({"t": record.t}) != record


# -- behaviour: of a graph, of records, of what was stored ---


def compare(graph: InteractionGraph, records: Iterable[Record], path: Path) -> None:
    assert_type(signature(graph, strict=True), str)
    assert_type(same_behaviour(graph, records, strict=False, limit_s=1.0), bool)
    assert_type(Behaviour.of(records), Behaviour)
    for run in (graph, Behaviour.of(graph), path, str(path)):
        assert_same_behaviour(run, path)
    assert_same_behaviour(iter([Emit(1, 0, "e", None, (), "problem")]), "golden", update=True)
