"""LangGraph, wrapped: nothing changes for who only watches, and what is found is healed."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("langgraph", reason="LangGraph is not installed: pip install .[dev,langgraph]")

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START
from langgraph.types import Command, Send

from dig.detectors import standard, standard_healers
from dig.records import HealRow, IncidentRow, Limits
from dig.runtime.host import Setup
from dig.runtime.wrap import Session, Turn
from dig.runtime.wrap import langgraph as adapter
from dig.runtime.wrap.langgraph.notes import as_messages
from dig.runtime.wrap.langgraph.routes import is_handoff
from tests.helpers import Recorder

from .harness import Scenario, Script, cancelled_everywhere, play
from .langgraph_teams import (
    QUESTION,
    SCENARIOS,
    ask,
    graph,
    node,
    thread,
)


class Watched:
    """Wraps graphs, and remembers their session and records."""

    def __init__(
        self, mode: Any = "observe", setup: Setup | None = None, *, strict: bool = True,
        **options: Any,
    ) -> None:  # fmt: skip
        self.mode = mode
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
            veto=plan.veto, clock=anyio.current_time, keeps_time=False, strict=self.strict, **more,
        )  # fmt: skip
        return plan.attach(self.session).team

    @property
    def patterns(self) -> list[str]:
        return [finding.pattern for finding in self.session.findings]

    def healed(self) -> list[str]:
        return [record.action for record in self.records if isinstance(record, HealRow)]

    def incidents(self) -> list[str]:
        return [record.what for record in self.records if isinstance(record, IncidentRow)]

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


# --- observe changes nothing ------------------------------------------------------------------


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_who_only_observes_changes_nothing_that_a_host_can_see(scenario: Scenario) -> None:
    for seed in range(4):
        watched = Watched()
        assert play(scenario, watched, seed=seed) == play(scenario, seed=seed)
        assert watched.leaves_nothing_open()
        assert watched.session.statistics().requests >= 1


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_where_nothing_is_found_healing_changes_nothing_either(scenario: Scenario) -> None:
    watched = Watched("heal")
    assert play(scenario, watched) == play(scenario)
    assert watched.leaves_nothing_open()


CANCELLED = [
    "chain-ask",
    "fan-ask",
    "send-ask",
    "two_teams-ask",
    "asking-answer_back",
    "fan-updates",
]


@pytest.mark.parametrize(
    "scenario", [one for one in SCENARIOS if one.name in CANCELLED], ids=str
)  # fmt: skip
def test_a_request_may_be_cancelled_at_every_await(scenario: Scenario) -> None:
    watched = Watched()
    for step, bare, mine in cancelled_everywhere(scenario, watched):
        assert mine == bare, f"cancelled before step {step}"
        assert watched.leaves_nothing_open(), f"cancelled before step {step}"


# --- found and healed -------------------------------------------------------------------------


def told(state: Any) -> list[str]:
    """The notes among the messages of a state."""
    return [one.content for one in state.get("messages", []) if one.name == "monitor"]


def half(script: Script) -> Any:
    """`j` waits for `b` and `c`, and `c` is never run."""
    j = node(script, "j", lambda state, number: {"done": ["j", *told(state)]})
    built = graph(script, "abc", [(START, "a"), (["b", "c"], "j")], j=j)
    built.add_conditional_edges("a", lambda state: "b", ["b", "c"])
    return built.compile(checkpointer=InMemorySaver())


async def ask_thread(graph: Any) -> Any:
    return (await graph.ainvoke(QUESTION, thread()))["done"]


def test_et_an_answer_without_a_join_that_never_ran_goes_back_and_the_join_runs() -> None:
    watched = Watched("heal")
    outcome = play(team(half, ask_thread), watched)
    assert watched.patterns == ["ET"] and watched.healed() == ["reroute"]
    assert "'j', 'This answer was submitted while work is missing" in str(outcome.returned)
    assert watched.leaves_nothing_open()


def test_et_without_a_checkpointer_no_answer_can_go_back_and_that_is_said() -> None:
    def kept(script: Script) -> Any:
        bare = half(script)
        bare.checkpointer = None
        return bare

    watched = Watched("heal")
    assert "'j'" not in str(play(team(kept), watched).returned)
    assert watched.patterns == ["ET"] and watched.incidents() == ["downgraded"]


def ghost(script: Script) -> Any:
    """`a` hands over to nobody, until it is told."""

    def go(state: Any, number: int) -> Any:
        return Command(goto="b" if told(state) else "ghost", update={"done": ["a"]})

    a = node(script, "a", go)
    return graph(script, "b", [(START, "a")], a=a).compile(checkpointer=InMemorySaver())


def test_et_a_message_to_nobody_is_missing_from_the_answer() -> None:
    watched = Watched("heal")
    outcome = play(team(ghost, ask_thread), watched)
    assert outcome.returned == "['?', 'a', 'a', 'b']"
    assert watched.patterns[0] == "ET" and watched.healed()[0] == "reroute"


def ping_pong(script: Script) -> Any:
    """Two that think the other one is in charge, until they are told."""

    def hand_to(other: str) -> Any:
        def act(state: Any, number: int) -> Any:
            return {"done": ["solved"]} if told(state) else Command(goto=other)

        return act

    a, b = node(script, "a", hand_to("b")), node(script, "b", hand_to("a"))
    return graph(script, [], [(START, "a")], a=a, b=b).compile()


async def ask_ping_pong(graph: Any) -> Any:
    return await graph.ainvoke(QUESTION, {"recursion_limit": 25})


def test_er_a_handoff_that_goes_round_and_round_ends_when_they_are_told() -> None:
    asked = team(ping_pong, ask_ping_pong)
    assert play(asked).raised[0][0] == "GraphRecursionError"
    watched = Watched("heal")
    outcome = play(asked, watched)
    assert "'solved'" in str(outcome.returned) and len(outcome.log) == 10
    assert watched.patterns == ["ER"] and watched.healed() == ["inject"]
    assert "monitor" not in str(outcome.returned)  # the note stays with the node that got it
    assert watched.leaves_nothing_open()


def twice(script: Script) -> Any:
    """The same part is given to two workers."""

    def plan(state: Any, number: int) -> Any:
        return Command(goto=[Send("work", {"name": name}) for name in ("rome", "oslo", "rome")])

    work = node(script, "work", lambda state, number: {"done": [state["name"]]})
    join = node(script, "join", lambda state, number: {"done": told(state)})
    edges: list[tuple[Any, str]] = [(START, "plan"), ("work", "join")]
    built = graph(script, [], edges, plan=node(script, "plan", plan), work=work, join=join)
    return built.compile()


def test_rsp_the_same_part_sent_twice_is_found_and_who_gets_the_results_is_told() -> None:
    watched = Watched("heal")
    outcome = play(team(twice), watched)
    assert watched.patterns == ["RSP"] and watched.healed() == ["inject"]
    assert "may repeat" in str(outcome.returned) or "twice" in str(outcome.returned)
    assert outcome.peak == 3
    assert watched.leaves_nothing_open()


def waiting_pair(watched: Watched) -> Scenario:
    """Two that wait for each other's word; LangGraph runs them again after a while."""
    import asyncio

    from langgraph.types import RetryPolicy, TimeoutPolicy

    words: dict[str, asyncio.Event] = {}

    def build(script: Script) -> Any:
        words.update(a=asyncio.Event(), b=asyncio.Event())
        built = graph(script, [], [(START, "a"), (START, "b")])
        for name, other in ("ab", "ba"):

            def act(name: str = name, other: str = other) -> Any:
                async def wait(state: Any) -> Any:
                    async with script.turn(name, told(state)):
                        if not told(state):
                            await words[other].wait()
                        words[name].set()
                        return {"done": [name]}

                return wait

            policy = RetryPolicy(initial_interval=0.1, jitter=False, retry_on=Exception)
            built.add_node(name, act(), retry_policy=policy, timeout=TimeoutPolicy(run_timeout=30))
        return built.compile()

    async def drive(graph: Any) -> Any:
        async def keep_time() -> None:
            while True:
                await asyncio.sleep(1)
                watched.session.tick()

        keeper = asyncio.create_task(keep_time())
        try:
            return (await graph.ainvoke(QUESTION))["done"]
        finally:
            keeper.cancel()

    return Scenario("waiting_pair", build, drive)


def test_dl_two_nodes_that_wait_for_each_other_are_told_when_they_are_tried_again() -> None:
    limits = Limits(dl_window_s=5, activation_limit_s=5)
    watched = Watched("heal", Setup(detectors=standard, healers=standard_healers, limits=limits))
    outcome = play(waiting_pair(watched), watched)
    assert outcome.returned == "['?', 'a', 'b']"
    assert watched.patterns == ["DL"] and watched.healed() == ["create"]
    assert 30 < outcome.elapsed < 40


# --- whatever fails in the monitor, the host does not see it ----------------------------------

SCENARIO = {one.name: one for one in SCENARIOS}
FRAGILE = [
    "fan-ask",
    "send-ask",
    "two_teams-ask",
    "failing-ask",
    "retried-ask",
    "asking-answer_back",
]
"""Between them they come through every call of the adapter."""


OWNERS: dict[str, Any] = {"session": Session, "turn": Turn}


def called(package: Path = Path(str(adapter.__file__)).parent) -> set[str]:
    """What the adapter calls of a session, a turn, and what a user may hand in."""
    found = set()
    for path in package.glob("*.py"):
        for part in ast.walk(ast.parse(path.read_text())):
            if isinstance(part, ast.Attribute):
                owner = ast.unparse(part.value).rpartition(".")[2].lstrip("_")
                if part.attr in _methods(owner):
                    found.add(f"{owner}.{part.attr}")
    return found


def _methods(owner: str) -> set[str]:
    if owner == "team":
        return {"annotate", "handoff"}
    kind = OWNERS.get(owner)
    return {name for name in dir(kind) if callable(getattr(kind, name))} if kind else set()


GUARD = "session.step"  # the one that contains what the others raise; see tests of the base
SITES = sorted(called() - {GUARD})


def breaking(monkeypatch: pytest.MonkeyPatch, watched: Watched, site: str, at: int) -> list[int]:
    """Have a call site raise from its `at`-th call on; returns a list with the number of calls."""
    owner, name = site.split(".")
    count = [0]

    def around(whole: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            count[0] += 1
            if count[0] >= at:
                raise RuntimeError(f"planted in {site}")
            return whole(*args, **kwargs)

        return call

    if owner == "team":
        plain: dict[str, Any] = {"annotate": as_messages, "handoff": is_handoff}[name]
        watched.options[name] = around(plain)
    else:
        kind = OWNERS[owner]
        monkeypatch.setattr(kind, name, around(getattr(kind, name)))
    return count


def test_the_enumeration_of_call_sites_knows_all_there_are() -> None:
    assert set(SITES) >= {"session.begin", "session.request", "turn.end", "team.annotate"}
    assert len(SITES) >= 15


@pytest.mark.parametrize("site", SITES)
def test_a_fault_at_a_call_site_changes_nothing_for_the_host(
    site: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in FRAGILE:
        for at in (1, 2, 4):
            watched = Watched("heal", strict=False)
            with monkeypatch.context() as patch:
                breaking(patch, watched, site, at)
                mine = play(SCENARIO[name], watched)
            assert mine == play(SCENARIO[name]), f"{site} raised in {name} from call {at} on"


class Broken:
    """A detector, a healer, a gate, a sink: all of them broken."""

    pattern = "BROKEN"
    name = "broken"

    def __call__(self, *args: Any) -> Any:
        raise RuntimeError("planted")

    def detect(self, *args: Any) -> Any:
        raise RuntimeError("planted")

    heal = hold = detect

    async def decide(self, *args: Any) -> Any:
        raise RuntimeError("planted")


@pytest.mark.parametrize("part", ["detectors", "healers", "gates", "sink", "on_finding"])
@pytest.mark.parametrize("name", [*FRAGILE, "half_join-ask"])
def test_broken_parts_change_nothing_for_the_host(part: str, name: str) -> None:
    setup = Setup(detectors=standard, healers=standard_healers)
    watched = Watched("heal", setup, strict=False)
    match part:
        case "detectors":
            watched.setup = Setup(detectors=lambda: [Broken(), *standard()])
        case "healers":
            watched.setup = Setup(detectors=standard, healers=lambda: {"ET": Broken()})
        case "gates":
            watched.setup = Setup(gates=[Broken()])
        case "sink":
            watched.more[part] = Recorder(fail_at=7)
        case _:
            watched.more[part] = Broken()
    assert play(SCENARIO[name], watched) == play(SCENARIO[name])
