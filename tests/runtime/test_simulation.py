"""The simulator: nothing is lost, whatever a team does, and the end is accounted for."""

from __future__ import annotations

import asyncio
import gc
import math
from collections import Counter
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any

import anyio
import pytest
from hypothesis import settings

from dig import Limits, Monitor, Output, Watch
from dig.detectors import standard
from dig.errors import RealTimeError, RequestError, SettingsError, StopRunError
from dig.graph.records import IncidentRow
from dig.monitor.messages import Effect
from dig.runtime import Decision, Plan, RunResult, Setup, View, simulate
from dig.runtime.simulator import Simulation
from tests.chaos import Chaos, ChaosRun, chaos_run
from tests.conservation import conservation
from tests.helpers import (
    Keeper,
    Recorder,
    Scripted,
    bodies,
    drop,
    found_again,
    read,
    rows,
    story,
    submit,
    tell,
    two_detectors,
)

# Both with and without healing: 2,000 runs with `--whole`, 40,000 with
# `--hypothesis-profile=dev`.
CHUNKS, SEEDS = 10, 2 * settings().max_examples


def simulated(run: ChaosRun) -> tuple[RunResult, Recorder]:
    sink = Recorder()
    result = simulate(run.team, run.problem, setup=run.setup, script=run.script, sink=sink)
    return result, sink


def check(run: ChaosRun, result: RunResult, sink: Recorder) -> None:
    """The records keep all laws, and what the result tells is what they tell."""
    account = conservation(sink, run.allowed)
    left = asdict(result.left)
    assert list(left["undelivered"]) == account.undelivered
    assert list(left["unconsumed"]) == account.unconsumed
    assert left["orphaned"] == account.orphaned
    assert left["unfinished"] == account.unfinished
    assert result.records == len(sink)
    assert [result.outcome] == [row.outcome for row in rows(sink, "finish")]
    assert result.heals == dict(Counter(row.action for row in rows(sink, "heal")))


@pytest.mark.sampled(5)
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_no_event_is_lost_doubled_or_reordered(chunk: int) -> None:
    """Whatever agents, scripts, gates and policies do, every law of a run holds."""
    for seed in range(chunk * SEEDS, (chunk + 1) * SEEDS):
        for heal in (False, True):
            run = chaos_run(seed, heal=heal)
            result, sink = simulated(run)
            try:
                check(run, result, sink)
                assert found_again(sink, Watch(standard())) == bodies(result.findings)
            except AssertionError as error:
                error.add_note(f"chaos_run({seed}, {heal=})")
                raise


def test_the_chaos_visits_the_corners() -> None:
    """The runs above are worth something: each kind of record and outcome occurs."""
    seen: Counter[str] = Counter()
    for seed in range(150):
        result, sink = simulated(chaos_run(seed, heal=True))
        seen[result.outcome] += 1
        seen.update(record.kind for record in sink)
        seen.update(result.raised())
        seen.update(result.heals)
        seen["orphaned"] += len(result.left.orphaned)
        seen["unfinished"] += len(result.left.unfinished)
    rare = {name: seen[name] for name in CORNERS if seen[name] < 3}
    assert not rare


CORNERS = (
    *("submitted", "stopped", "timeout", "join", "leave", "redirect", "expire", "incident"),
    *("ET", "DL", "reroute", "create", "refused", "orphaned", "unfinished"),
)


def test_healing_changes_nothing_before_its_first_act() -> None:
    """A run with healing is the run without it, up to the first heal row."""
    for seed in range(40):
        _, plain = simulated(chaos_run(seed, heal=False))
        _, healed = simulated(chaos_run(seed, heal=True))
        both = zip(plain, healed, strict=False)
        before = [(a, b) for a, b in both if "heal" not in {r.kind for r in healed[: b.t + 1]}]
        assert all(a == b for a, b in before)


def test_observing_is_as_good_as_being_away() -> None:
    """Without healers detectors change nothing but the finding rows that they write.

    Except when a run that stands still ends: not before the last window has passed. No agent has
    a delivery policy here, whose delays may be counted in records, and finding rows are records.
    """
    for seed in range(40):
        run = chaos_run(seed, heal=False)
        run = replace(run, allowed=replace(run.allowed, interference=False))
        _, observed = simulated(run)
        _, alone = simulated(replace(run, setup=replace(run.setup, detectors=tuple)))
        aside = ("finding", "finish", "incident request_failed")
        plain, watched = (
            [line for line in story(sink) if not line.startswith(aside)]
            for sink in (alone, observed)
        )
        assert plain == watched


def test_an_agent_that_always_thinks_too_long_is_cut_off() -> None:
    """Think time counts up to the activation's time limit; then the activation has failed."""
    sink = Recorder()
    setup = Setup(activation_timeout_s=5.0, retries=0)
    slow = Scripted(read, think_s=99)
    result = simulate({"a": slow}, Output("?", ("a",), "problem"), setup=setup, sink=sink)
    assert [row.error for row in rows(sink, "end")] == ["TimeoutError: took longer than 5 s"]
    assert result.failures == {"a": 1} and result.left.unconsumed == ("e1",)


class Says:
    """A policy whose plan is whatever a test wants."""

    def __init__(self, plan: Any) -> None:
        self._plan = plan

    def plan(self, view: View) -> Plan:
        return self._plan()  # type: ignore[no-any-return]


def broken() -> Plan:
    raise RuntimeError("no plan")


@pytest.mark.parametrize(
    "plan",
    [
        broken,
        lambda: None,
        lambda: Plan(math.nan, Decision()),
        lambda: Plan(0.1, 5),  # type: ignore[arg-type]
        lambda: Plan(0.1, {"fates": "all"}),  # type: ignore[arg-type]
        lambda: Plan(0.1, Decision.model_construct(fates=None)),
    ],
)
def test_nonsense_from_a_policy_fails_the_activation_only(plan: Any) -> None:
    """A policy that raises or plans nonsense loses nothing and is started again a few times."""
    sink = Recorder()
    setup = Setup(retries=2)
    result = simulate({"a": Says(plan)}, Output("?", ("a",), "problem"), setup=setup, sink=sink)
    assert result.outcome == "error" and result.failures == {"a": 3}
    assert result.left.unconsumed == ("e1",)
    conservation(sink)


def test_a_negative_think_time_does_not_turn_time_back() -> None:
    """Nothing happens before now."""
    sink = Recorder()
    simulate({"a": Scripted(submit(), think_s=-3)}, Output("?", ("a",)), sink=sink)
    conservation(sink)


def test_a_failing_agent_is_tried_again_after_longer_and_longer() -> None:
    """The back-off doubles, and the number of attempts is bounded."""
    sink = Recorder()
    setup = Setup(retries=3, backoff_s=1.0)
    agent = Scripted(*[RuntimeError("no")] * 9, think_s=0.0)
    simulate({"a": agent}, Output("?", ("a",)), setup=setup, sink=sink, latency_s=0.0)
    assert [row.ts for row in rows(sink, "start")] == [0.0, 1.0, 3.0, 7.0]


def test_an_agent_that_comes_back_is_started_for_its_new_buffer() -> None:
    """A start that was planned before it left is forgotten, a back-off too."""
    sink = Recorder()
    setup = Setup(backoff_s=50.0, limit_s=200.0)
    script = [
        (1.0, lambda m: m.leave("a")),
        (2.0, lambda m: m.join("a")),
        (3.0, lambda m: m.inject(Output("again", ("a",)))),
    ]
    agent = Scripted(RuntimeError("no"), submit())
    problem = Output("?", ("a",))
    simulate({"a": agent}, problem, setup=setup, script=script, sink=sink, latency_s=0.0)
    assert [row.ts for row in rows(sink, "start")] == [0.0, 3.0]
    assert story(sink)[-1] == "finish submitted"


def test_an_unknown_newcomer_fails_and_harms_nobody() -> None:
    """Somebody joins for whom there is no policy."""
    script = [
        (0.0, lambda m: m.join("x")),
        (0.1, lambda m: m.inject(Output("?", ("x",)))),
        (9.0, lambda m: m.inject(Output("?", ("a",)))),
    ]
    result = simulate({"a": Scripted(tell("x"))}, setup=Setup(retries=0), script=script)
    assert result.outcome == "error" and result.failures == {"x": 2}


@pytest.mark.parametrize("decided", [None, 5, (5,), ("e2",)])
def test_a_gate_that_plans_nonsense_lets_the_event_go(decided: Any) -> None:
    """Nonsense from a gate is written down, and nobody waits for it."""

    class Odd(Keeper):
        def plan(self, event: Any) -> Any:
            return decided

    sink = Recorder()
    setup = Setup(gates=[Odd(["e2"])])
    team = {"a": Scripted(tell("b")), "b": Scripted(read)}
    simulate(team, Output("?", ("a",)), setup=setup, sink=sink)
    assert "incident failed" in story(sink) and "deliver e2 to b" in story(sink)
    conservation(sink)


def test_a_gate_without_a_plan_cannot_be_simulated() -> None:
    """It is said which gate, and the trace is complete."""

    class Real:
        name = "boss"
        hold = Keeper(["e2"]).hold
        decide = Keeper(["e2"]).decide

    sink = Recorder()
    team = {"a": Scripted(tell("a"))}
    with pytest.raises(SettingsError, match="'boss' has no `plan`"):
        simulate(team, Output("?", ("a",)), setup=Setup(gates=[Real()]), sink=sink)
    assert story(sink)[-1] == "finish error"


def test_what_a_script_raises_ends_the_run_with_a_complete_trace() -> None:
    """The error goes to whoever wrote the script."""

    def wrong(monitor: Monitor) -> list[Effect]:
        return monitor.leave("nobody")

    sink = Recorder()
    with pytest.raises(RequestError, match="nobody"):
        simulate({"a": Scripted()}, Output("?", ("a",)), script=[(1.0, wrong)], sink=sink)
    assert story(sink)[-1] == "finish error"
    conservation(sink)


def test_a_sink_that_fails_ends_the_run_with_its_error() -> None:
    """Without a journal nothing goes on."""
    sink = Recorder(fail_at=5)
    with pytest.raises(OSError, match="disk is full"):
        simulate({"a": Scripted(tell("a"), tell("a"))}, Output("?", ("a",)), sink=sink)
    assert len(sink) == 5


def test_an_answer_at_the_very_deadline_of_a_gate() -> None:
    """A gate whose time is up lets an answer go, which ends the run as submitted."""
    sink = Recorder()
    setup = Setup(gates=[Keeper(["e2"], seconds=2.0, after_s=99)])
    result = simulate({"a": Scripted(submit(7))}, Output("?", ("a",)), setup=setup, sink=sink)
    assert (result.outcome, result.answer) == ("submitted", 7)
    assert story(sink)[-3:] == ["incident gate deadline passed", "deliver e2 to world",
                                "finish submitted"]  # fmt: skip


def test_the_time_limit_ends_a_run_and_says_what_is_left() -> None:
    """Activations that the end cuts off are named."""
    setup = Setup(limit_s=1.0)
    result = simulate({"a": Scripted(read, think_s=5)}, Output("?", ("a",), "problem"), setup=setup)
    assert result.outcome == "timeout" and result.seconds == 1.0
    assert result.left.unfinished == {"a1": "a"} and result.left.unconsumed == ("e1",)


def test_a_run_where_nothing_can_happen_any_more_stops() -> None:
    """It does not wait for the time limit, and says what is orphaned."""
    result = simulate({"a": Scripted(drop)}, Output("?", ("a",), "problem"))
    assert (result.outcome, result.left.orphaned) == ("stopped", {"e1": "discarded"})
    assert result.seconds < 1


def test_an_empty_team_is_refused() -> None:
    """A team needs somebody."""
    with pytest.raises(SettingsError):
        Simulation({}, Setup(), Recorder())


def test_the_result_is_plain_json() -> None:
    """What `result.json` holds can be written as JSON, with findings and what is left."""
    import json

    setup = Setup(detectors=two_detectors, limits=Limits(dl_window_s=1.0))
    result = simulate({"a": Scripted()}, Output("?", ("a",), "problem"), setup=setup)
    body = json.loads(json.dumps(result.to_json()))
    assert body["raised"] == {"DL": 1} and body["findings"][0]["pattern"] == "DL"
    assert body["left"]["unconsumed"] == ["e1"]


def test_chaos_agents_draw_everything() -> None:
    """A chaos agent is a function of its view: the same view, the same plan."""
    view = View("a", ("a", "b"), 3, 1.5, ())
    assert Chaos(1, True).plan(view) == Chaos(1, True).plan(view)


# --- agents without a plan ---


async def parrot(view: View) -> Decision:
    return Decision.submit(view, view.events[0].payload)


class Slow:
    """An agent that says how long it thinks."""

    def __init__(self, think_s: Any) -> None:
        self.think_s = think_s

    async def act(self, view: View) -> Decision:
        return await parrot(view)


@pytest.mark.parametrize(("agent", "seconds"), [(parrot, 0.0), (Slow(2.5), 2.5), (Slow(3), 3.0)])
def test_an_agent_that_awaits_nothing_thinks_for_as_long_as_it_says(
    agent: Any, seconds: float
) -> None:
    """`think_s` seconds, and none without it; its decision counts as that of a policy does."""
    sink = Recorder()
    result = simulate({"ada": agent}, "?", sink=sink)
    start, end = (next(r for r in sink if r.kind == kind) for kind in ("start", "end"))
    assert (result.answer, (end.us - start.us) / 1_000_000) == ("?", seconds)


@pytest.mark.parametrize("think_s", [-1, math.nan, math.inf, "2", True])
def test_a_think_time_that_is_none_is_refused(think_s: Any) -> None:
    """Before anything happens."""
    with pytest.raises(SettingsError, match=r"think_s of .* must be seconds, 0 or more"):
        simulate({"ada": Slow(think_s)}, "?")


async def nothing() -> None:
    pass


async def sleeps() -> None:
    await asyncio.sleep(1)


async def yields() -> None:
    await asyncio.sleep(0)


async def gathers() -> None:
    await asyncio.gather(nothing(), sleeps())


async def starts_tasks() -> None:
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(nothing)


async def asks_a_thread() -> None:
    await anyio.to_thread.run_sync(int)


async def is_bounded() -> None:
    with anyio.fail_after(1):
        await anyio.sleep(1)


async def cleans_up() -> None:
    try:
        await asyncio.sleep(1)
    finally:
        raise ValueError("too late")


WAITS = [sleeps, yields, gathers, starts_tasks, asks_a_thread, is_bounded, cleans_up]


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("has_loop", [False, True])
def test_an_agent_that_awaits_something_real_is_refused_with_its_line(
    wait: Any, has_loop: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Even if it would catch every error; no coroutine is left over, and nothing is logged."""

    async def ada(view: View) -> Decision:
        with suppress(Exception):
            await wait()
        return Decision.submit(view, "waited")

    async def in_a_loop() -> None:
        simulate({"ada": ada}, "?")

    line = ada.__code__.co_firstlineno + 2
    said = rf"agent 'ada' awaits something real at test_simulation.py:{line}, .*leave --virtual out"
    with pytest.raises(RealTimeError, match=said):
        asyncio.run(in_a_loop()) if has_loop else simulate({"ada": ada}, "?")
    gc.collect()
    assert caplog.records == []


def test_an_agent_may_use_what_only_looks_as_if_it_waited() -> None:
    """A lock that is free, and a coroutine of its own."""

    async def ada(view: View) -> Decision:
        async with asyncio.Lock():
            return await parrot(view)

    assert simulate({"ada": ada}, "?").answer == "?"


def test_what_an_agent_without_a_plan_raises_or_returns_wrongly_fails_its_activation() -> None:
    """As on the bus: the events stay where they are, and the agent is started again."""

    async def bob(view: View) -> Any:
        return "no decision"

    async def ada(view: View) -> Decision:
        raise ValueError("no luck")

    told = simulate({"ada": ada, "bob": bob}, Output("?", ("ada", "bob"), "problem"))
    assert told.errors == {
        "ada": "ValueError: no luck",
        "bob": "DecisionError: the agent returned str, which is no Decision",
    }


def test_an_agent_may_stop_a_run_in_virtual_time() -> None:
    """As on the bus, with its message as the reason, and incidents in the trace."""

    async def ada(view: View) -> Decision:
        raise StopRunError("the key is wrong")

    sink = Recorder()
    result = simulate({"ada": ada}, "?", sink=sink)
    assert (result.outcome, result.reason) == ("error", "the key is wrong")
    told = {row.what: row.detail for row in sink if isinstance(row, IncidentRow)}
    assert told["gave up"] == {"who": "ada", "what": "the key is wrong"}
    assert told["request_failed"]["activation"] == "a1"
