"""Agents: what they may return, and what they are shown."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig import Fate, Limits, Monitor, Output, Pending
from dig.errors import DecisionError, SettingsError
from dig.graph import records as kinds
from dig.monitor.policies import ToAgents
from dig.runtime import Bus, Decision, EventFate, NewEvent, Plan, Setup, View, simulate
from dig.runtime.agents import FunctionAgent, Thinking, as_agent, as_decision
from dig.runtime.host import _copy_event
from tests.helpers import Recorder, Scripted, Stage, backends, rows, submit, tell

EVENTS = (Pending("e1", "problem", None, 1), Pending("e2", "message", "b", 2))
VIEW = View("a", ("a", "b", "c"), 1, 0.0, EVENTS)


# --- decisions ------------------------------------------------------------------------------


def carried_out(decision: Decision) -> tuple[dict[str, str], list[kinds.Emit], list[str]]:
    """The fates, outputs and buffer that a decision of agent a about e1 and e2 leads to."""
    stage = Stage("abc")
    stage.give("a")
    stage.give("a")
    activation = stage.start("a").activation
    fates, outputs = decision.parts()
    stage.monitor.end(activation, fates, outputs)
    [end] = rows(stage.sink, "end")
    made = [row for row in rows(stage.sink, "emit") if row.by == activation]
    return {f.event: f.fate for f in end.fates}, made, list(stage.graph.agents["a"].buffer)


def test_respond_consumes_everything_and_generates_events() -> None:
    """RESPOND."""
    decision = Decision.respond(VIEW, NewEvent(payload="x", to=["b"]), NewEvent(payload="y"))
    fates, made, buffer = carried_out(decision)
    assert fates == {"e1": "consume", "e2": "consume"} and buffer == []
    assert [(row.payload, row.to, row.type, row.final) for row in made] == [
        ("x", ("b",), "message", False),
        ("y", (), "message", False),
    ]


def test_wait_changes_nothing() -> None:
    """WAIT."""
    assert carried_out(Decision.wait()) == ({}, [], ["e1", "e2"])


def test_reroute_passes_some_on_and_keeps_the_rest() -> None:
    """REROUTE."""
    decision = Decision.reroute(EVENTS[:1], ["b", "c"])
    assert decision.parts()[0] == (Fate("e1", "reroute", ("b", "c")),)
    assert carried_out(decision) == ({"e1": "reroute"}, [], ["e2"])


def test_discard_drops_some_and_keeps_the_rest() -> None:
    """DISCARD."""
    assert carried_out(Decision.discard(EVENTS[1:])) == ({"e2": "discard"}, [], ["e1"])


def test_submit_consumes_everything_and_generates_one_final_event() -> None:
    """SUBMIT."""
    fates, [final], buffer = carried_out(Decision.submit(VIEW, {"n": 3}))
    assert fates == {"e1": "consume", "e2": "consume"} and buffer == []
    assert (final.final, final.payload, final.type) == (True, {"n": 3}, "solution")


def test_a_decision_is_taken_as_it_is_and_a_dict_is_read_as_one() -> None:
    """What a language model filled in, for instance."""
    decision = Decision.wait()
    assert as_decision(decision) is decision
    read = as_decision({"fates": [{"event": "e1", "fate": "reroute", "to": ["b"]}]})
    assert read == Decision.reroute(EVENTS[:1], ["b"])


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (None, "NoneType"),
        ("wait", "str"),
        ([], "list"),
        ({"fate": []}, "fate"),
        ({"fates": "all"}, "fates"),
        ({"fates": [{"event": "e1", "fate": "eat"}]}, "fates.0.fate"),
        ({"fates": [{"event": 1, "fate": "consume"}]}, "fates.0.event"),
        ({"outputs": [{"payload": 1, "to": "b"}]}, "outputs.0.to"),
        ({"outputs": [{"payload": 1, "polic": None}]}, "outputs.0.polic"),
        ({"outputs": [{"payload": 1, "policy": "broadcast"}]}, "outputs.0.policy"),
        ({"outputs": [{"payload": 1, "final": "perhaps"}]}, "outputs.0.final"),
    ],
)
def test_what_is_no_decision_is_refused_with_its_place(value: Any, told: str) -> None:
    """The message is for whoever made it, a language model perhaps."""
    with pytest.raises(DecisionError, match=told):
        as_decision(value)


NAMES = st.sampled_from(["fates", "outputs", "event", "to"])
JSON = st.recursive(
    st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(NAMES, x)
)


@given(JSON)
def test_anything_is_a_decision_or_refused(value: Any) -> None:
    """Nothing else is raised, whatever it is."""
    try:
        decision = as_decision(value)
    except DecisionError:
        return
    assert isinstance(decision, Decision)


def test_the_schema_for_a_language_model_names_what_it_may_fill_and_no_more() -> None:
    """No delivery policy and no usage, which are for agents in Python; all else described."""
    schema = Decision.model_json_schema()
    text = json.dumps(schema)
    assert "policy" not in text and "usage" not in text
    assert set(schema["properties"]) == {"fates", "outputs"}
    event = schema["$defs"]["NewEvent"]["properties"]
    assert set(event) == {"payload", "to", "type", "final"}
    assert schema["$defs"]["EventFate"]["properties"]["fate"]["enum"] == [
        *("consume", "delay", "reroute", "discard")
    ]
    assert schema["additionalProperties"] is False


def test_a_policy_stays_with_its_event() -> None:
    """An agent in Python may hand one over; it is in no JSON that is made of the decision."""
    event = NewEvent(payload=1, policy=ToAgents(("b",)))
    decision = Decision.respond(VIEW, event)
    assert decision.parts()[1] == (Output(1, policy=ToAgents(("b",))),)
    assert "policy" not in decision.model_dump_json()


def test_usage_is_kept_in_the_trace() -> None:
    """What an activation cost stands in its end."""
    sink = Recorder()

    class Costly:
        def plan(self, view: View) -> Plan:
            decision = Decision.submit(view, 1)
            decision.usage = {"tokens": 12}
            return Plan(0.1, decision)

    simulate({"a": Costly()}, Output("?", ("a",)), sink=sink)
    assert [row.usage for row in rows(sink, "end")] == [{"tokens": 12}]


def test_two_decisions_share_nothing() -> None:
    """Empty lists of one are not those of another."""
    Decision.wait().fates.append(EventFate(event="e1", fate="consume"))
    assert Decision.wait().fates == []


# --- views ----------------------------------------------------------------------------------


def test_what_is_shown_has_a_payload_of_its_own() -> None:
    """An agent that changes it changes nothing for anybody else."""
    event = Pending("e1", "problem", None, {"list": [1]}, ("note",), True)
    copy = _copy_event(event)
    assert copy == event
    copy.payload["list"].append(2)
    assert event.payload == {"list": [1]}


def test_an_agent_cannot_change_what_others_are_shown_or_what_is_journalled() -> None:
    """In a run: two agents get one event, and the first one spoils its copy."""

    def spoil(view: View) -> Decision:
        view.events[0].payload.append("spoilt")
        return Decision.respond(view)

    sink, other = Recorder(), Scripted(submit(), think_s=1.0)
    simulate({"a": Scripted(spoil), "b": other}, Output([1], ("a", "b")), sink=sink)
    assert other.views[0].events[0].payload == [1]
    assert rows(sink, "emit")[0].payload == [1]


def test_a_payload_is_copied_once_for_an_agent_that_sees_it_again() -> None:
    """An event that waits in front of an agent is not copied for each of its activations."""
    waits = Scripted(lambda view: Decision.wait(), submit())
    sends = Scripted(lambda view: Decision.respond(view, NewEvent(payload=[2], to=["a"])))
    simulate({"a": waits, "b": sends}, Output([1], ("a", "b")))
    first, second = (view.events for view in waits.views)
    assert [event.payload for event in second] == [[1], [2]]
    assert first[0].payload is second[0].payload
    assert first[0].payload is not sends.views[0].events[0].payload


def test_the_others_are_the_team_without_oneself() -> None:
    """In the order in which they came."""
    assert VIEW.others == ("b", "c")
    with pytest.raises(AttributeError):
        VIEW.agent = "b"  # type: ignore[misc]


# --- agents ---------------------------------------------------------------------------------


def test_an_async_function_is_an_agent() -> None:
    """And an agent is one as it is."""

    async def parrot(view: View) -> Decision:
        return Decision.submit(view, view.events[0].payload)

    agent = Scripted()
    assert as_agent(agent) is agent
    assert as_agent(parrot) == FunctionAgent(parrot)

    class Callable:
        plan = ("a list of its own",)

        async def __call__(self, view: Any) -> Any:
            return parrot(view)

    assert isinstance(as_agent(Callable()), FunctionAgent)
    assert anyio.run(Bus({"polly": parrot}).run, "hello").answer == "hello"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_policy_on_the_bus_does_what_it_does_in_the_simulator(backend: str) -> None:
    """`Thinking` makes an agent of it that takes its time; a plan to fail makes it fail."""

    def team() -> dict[str, Scripted]:
        no = RuntimeError("no")
        return {"a": Scripted(no, tell("b"), think_s=0.5), "b": Scripted(submit(9), think_s=1.5)}

    problem, setup, simulated = Output("?", ("a",)), Setup(backoff_s=1.0), Recorder()
    expected = simulate(team(), problem, setup=setup, sink=simulated, latency_s=0.0)
    live = Recorder()
    bus = Bus({name: Thinking(policy) for name, policy in team().items()}, setup, sink=live)
    name, options = backends()[backend]()
    result = anyio.run(bus.run, problem, backend=name, backend_options=options)
    assert (result.answer, result.seconds) == (expected.answer, expected.seconds) == (9, 3.5)
    times = [(row.kind, row.us) for row in live]
    assert times == [(row.kind, row.us) for row in simulated]


def test_a_setup_makes_a_monitor_with_all_its_settings() -> None:
    """Nothing of a setup is forgotten on the way."""
    sink = Recorder()
    limits = Limits(dl_window_s=1.0)
    setup = Setup("name", "task", 7, True, True, limits)
    monitor = setup.monitor(("a",), lambda: 0.0, sink, stopwatch=None)
    assert isinstance(monitor, Monitor)
    assert list(sink) == [
        kinds.Run(0, 0, "name", ("a",), "task", 7, True, True, limits, patterns=2)
    ]


def test_what_is_no_agent_is_refused_before_the_run() -> None:
    """Not at its first activation, as one of many failures."""
    with pytest.raises(SettingsError, match=r"'hello' is no agent: no async function"):
        as_agent("hello")  # type: ignore[arg-type]
