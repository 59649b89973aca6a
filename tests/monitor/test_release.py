"""Release: gates, delivery policies, and the order in which recipients get what was held."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from dig import Create, Fate, Hold, Inject, Reroute, Step
from dig.errors import RequestError, SettingsError
from dig.monitor.holds import LEFT
from dig.monitor.messages import (
    Answered,
    Asked,
    Delivered,
    DeliveryPolicy,
    Later,
    Over,
    Situation,
    Wake,
)
from dig.monitor.policies import AsRecorded, Delayed, Expiring, RecordedStep, ToAgents
from tests.conservation import Account, Allowed, conservation
from tests.delivery_policies import Broadcast, Escalating, LeastLoaded
from tests.helpers import Keeper, Stage, answer, of, out, rows

FREE = Allowed(interference=True, unordered=lambda payload: payload == "policy")


def account(stage: Stage) -> Account:
    """End the run and see that it keeps all laws."""
    stage.monitor.finish("stopped")
    return conservation(stage.sink, FREE)


def delivered(effects: Any) -> list[str]:
    return [f"{effect.event} to {effect.agent}" for effect in of(Delivered, effects)]


def gated(*gates: Keeper, agents: str = "abc", **settings: Any) -> Stage:
    """Agent a has a problem in front of it; the events it makes are e2, e3, ..."""
    stage = Stage(agents, gates=gates, **settings)
    stage.give("a")
    return stage


# --- gates ----------------------------------------------------------------------------------


def test_a_gate_keeps_an_event_until_it_has_decided() -> None:
    """The host is asked to run the gate; the event is delivered when it has decided."""
    gate = Keeper(["e2"])
    stage = gated(gate)
    effects = stage.turn("a", out("b", "secret"))
    [asked] = of(Asked, effects)
    assert asked.gate is gate and asked.event.payload == "secret"
    assert delivered(effects) == [] and not stage.monitor.is_quiet
    assert delivered(stage.monitor.resolve(gate, "e2", ())) == ["e2 to b"]
    assert account(stage).unconsumed == ["e2"]


def test_a_gate_is_asked_once_about_each_agent_made_event() -> None:
    """Not about events from outside or of the system, and not again after a reroute."""
    gate = Keeper([])
    stage = gated(gate)
    stage.turn("a", out("b"), out("", "to nobody"), out("c"))
    stage.turn("b", fate="delay")
    started = stage.start("b")
    stage.monitor.end(started.activation, [Fate("e2", "reroute", ("c",))])
    assert [event.id for event in gate.asked] == ["e2", "e4"]


def test_when_time_is_up_the_event_goes_and_what_was_agreed_is_done() -> None:
    """The deadline is told by `next_deadline`, written down, and `otherwise` happens."""
    gate = Keeper(["e2"], seconds=5.0, otherwise=(Reroute("e2", "nobody looked", ("c",)),))
    stage = gated(gate)
    stage.turn("a", out("b"))
    assert stage.monitor.next_deadline() == 5.0
    assert delivered(stage.wait(4.9)) == []
    effects = stage.wait(0.1)
    assert delivered(effects) == ["e2 to c"]
    assert stage.start("c").events[0].notes == ("nobody looked",)
    waits, incident = rows(stage.sink, "incident")
    detail = {"event": "e2", "gates": ["keeper"], "limit_s": 5.0}
    assert (waits.what, waits.detail) == ("waits", detail)
    assert incident.detail == {"gate": "keeper", "event": "e2", "seconds": 5.0}
    account(stage)


def test_a_decision_that_comes_too_late_or_twice_changes_nothing() -> None:
    """Nor does one about an event that the gate does not keep."""
    gate = Keeper(["e2"], seconds=5.0)
    stage = gated(gate)
    stage.turn("a", out("b"))
    stage.wait(5.0)
    before = len(stage.sink)
    assert stage.monitor.resolve(gate, "e2", [Inject("e2", "late")]) == []
    assert stage.monitor.resolve(gate, "e1", [Inject("e1", "what?")]) == []
    assert stage.monitor.resolve(Keeper(), "e2", []) == []
    assert len(stage.sink) == before


def test_what_is_held_later_waits_behind_a_gated_event_for_its_recipients_only() -> None:
    """Each recipient gets events in the order in which they were held; the others go on."""
    gate = Keeper(["e2"])
    stage = gated(gate)
    effects = stage.turn("a", out("b"), out("bc"))
    assert delivered(effects) == ["e3 to c"]
    assert delivered(stage.turn("c", out("ab"))) == ["e4 to a"]
    assert delivered(stage.give("b")) == []
    assert delivered(stage.monitor.resolve(gate, "e2", ())) == [
        *("e2 to b", "e3 to b", "e4 to b", "e5 to b")
    ]
    account(stage)


def test_two_gated_events_keep_their_order_whoever_decides_first() -> None:
    """The later event waits behind the earlier one, although its own gate has let it go."""
    gate = Keeper(["e2", "e3"])
    stage = gated(gate)
    stage.turn("a", out("b"), out("bc"))
    assert delivered(stage.monitor.resolve(gate, "e3", ())) == ["e3 to c"]
    assert delivered(stage.monitor.resolve(gate, "e2", ())) == ["e2 to b", "e3 to b"]
    account(stage)


def test_an_event_goes_when_all_its_gates_have_decided() -> None:
    """Each gate has its own deadline and its own say."""
    one, two = Keeper(["e2"], seconds=5.0, name="one"), Keeper(["e2"], seconds=9.0, name="two")
    stage = gated(one, two)
    stage.turn("a", out("b"))
    assert delivered(stage.monitor.resolve(one, "e2", [Inject("e2", "fine")])) == []
    assert stage.monitor.next_deadline() == 9.0
    effects = stage.wait(9.0)
    assert delivered(effects) == ["e2 to b"]
    assert stage.start("b").events[0].notes == ("fine",)


def test_a_gate_may_keep_an_answer() -> None:
    """The run ends when the gate lets it go."""
    gate = Keeper(["e2"])
    stage = gated(gate)
    assert of(Answered, stage.turn("a", answer(7))) == []
    effects = stage.monitor.resolve(gate, "e2", ())
    assert effects == [Answered("e2", 7, ("e1",)), Over("submitted")]


def test_an_answer_that_a_gate_lets_go_at_its_deadline_ends_the_run() -> None:
    """The tick returns the end; it does not complain that the run is over."""
    stage = gated(Keeper(["e2"], seconds=5.0))
    stage.turn("a", answer(7))
    assert stage.wait(5.0) == [Answered("e2", 7, ("e1",)), Over("submitted")]
    assert stage.monitor.tick() == []


def test_a_decision_in_the_moment_of_the_deadline_comes_too_late() -> None:
    """The answer has gone; the gate's decision raises nothing."""
    gate = Keeper(["e2"], seconds=5.0)
    stage = gated(gate)
    stage.turn("a", answer(7))
    stage.clock.now = 5.0
    effects = stage.monitor.resolve(gate, "e2", [Reroute("e2", "no", ("a",))])
    assert effects == [Answered("e2", 7, ("e1",)), Over("submitted")]


def test_a_gate_may_send_an_event_elsewhere() -> None:
    """With a note, to whom it says; a reroute of an answer bounces it."""
    gate = Keeper(["e2", "e3"])
    stage = gated(gate)
    stage.turn("a", out("b"))
    effects = stage.monitor.resolve(gate, "e2", [Reroute("e2", "for you", ("c",))])
    assert delivered(effects) == ["e2 to c"] and effects[-1] == Wake("c")
    stage.turn("c", answer())
    effects = stage.monitor.resolve(gate, "e3", [Reroute("e3", "not yet", ("c",))])
    assert delivered(effects) == ["e3 to c"] and not stage.monitor.is_over
    account(stage)


@pytest.mark.parametrize("made", [out("b"), out("b", type="notice"), answer()])
def test_a_reroute_to_nobody_withholds_an_event_for_good(made: Any) -> None:
    """Work is orphaned, and an answer is not accepted."""
    gate = Keeper(["e2"])
    stage = gated(gate)
    stage.turn("a", made)
    decided: list[Any] = [Reroute("e2", "never", ()), Inject("e2", "nor this")]
    effects = stage.monitor.resolve(gate, "e2", decided)
    assert delivered(effects) == [] and of(Answered, effects) == []
    assert not stage.monitor.is_over and stage.monitor.is_quiet
    found = account(stage)
    assert found.accepted == []
    assert found.orphaned == ({"e2": "no_recipient"} if made == out("b") else {})


def test_an_answer_that_was_sent_to_an_agent_that_leaves_is_taken_as_it_is() -> None:
    """Else nobody would ever hear of it; a gate that keeps it decides first."""
    gate = Keeper(["e2"])
    stage = gated(gate)
    stage.turn("a", answer())
    stage.monitor.redirect("e2", ("b",))
    assert of(Answered, stage.monitor.leave("b")) == []
    [answered] = of(Answered, stage.monitor.resolve(gate, "e2", ()))
    assert answered.notes == (LEFT,)


def test_what_a_gate_sends_arrives_at_once() -> None:
    """It has kept the event for as long as it liked."""
    gate = Keeper(["e2"])
    stage = gated(gate)
    stage.turn("a", out("b"))
    effects = stage.monitor.resolve(gate, "e2", [Reroute("e2", "now", ("c",), in_s=5.0)])
    assert delivered(effects) == ["e2 to c"] and stage.monitor.next_deadline() is None


def test_a_gate_may_speak() -> None:
    """A system event of a gate is delivered at once, the event after its note."""
    gate = Keeper(["e2"])
    stage = gated(gate)
    stage.turn("a", out("b"))
    effects = stage.monitor.resolve(gate, "e2", [Create("look out", ("b",)), Inject("e2", "hm")])
    assert sorted(delivered(effects)) == ["e2 to b", "e3 to b"]


def test_a_gate_cannot_change_the_payload() -> None:
    """What it does to the object that it is shown changes nothing for the recipients."""

    class Vandal(Keeper):
        def hold(self, graph: Any, event: Any) -> Any:
            event.payload.append("hold")
            return super().hold(graph, event)

    gate = Vandal(["e2"])
    stage = gated(gate)
    [asked] = of(Asked, stage.turn("a", out("b", [1])))
    asked.event.payload.append("decide")
    stage.monitor.resolve(gate, "e2", ())
    assert stage.start("b").events[0].payload == [1]


@dataclass
class Odd:
    """A gate that says something odd when it is asked."""

    say: Callable[[], Any]

    def hold(self, graph: Any, event: Any) -> Any:
        return self.say()

    async def decide(self, event: Any) -> Any: ...


def _hold(seconds: Any, otherwise: Any = ()) -> Callable[[], Any]:
    return lambda: Hold(seconds, otherwise)


def fail() -> Any:
    raise RuntimeError("broken")


@pytest.mark.parametrize(
    "say",
    [
        *(fail, lambda: True, lambda: 5, _hold(math.nan), _hold(math.inf), _hold("soon")),
        *(_hold(1.0, None), _hold(1.0, ("x",)), _hold(1.0, (Inject("e99", "?"),))),
    ],
)
def test_a_gate_that_fails_keeps_nothing(say: Any) -> None:
    """It raises or says nonsense: an incident, and the event goes; it needs no name for that."""
    stage = Stage("ab", gates=[Odd(say)])
    stage.give("a")
    assert delivered(stage.turn("a", out("b"))) == ["e2 to b"]
    assert [row.detail["who"] for row in rows(stage.sink, "incident")] == ["gate Odd"]
    account(stage)


@pytest.mark.parametrize(
    "decided",
    [5, ["x"], [Inject("e99", "?")], [Reroute("e2", "?", "ab")]],  # type: ignore[arg-type]
)
def test_a_gate_that_decides_nonsense_lets_the_event_go(decided: Any) -> None:
    """None of what it decided happens."""
    gate = Keeper(["e2"])
    stage = gated(gate)
    stage.turn("a", out("b"))
    assert delivered(stage.monitor.resolve(gate, "e2", decided)) == ["e2 to b"]
    assert "nonsense" in rows(stage.sink, "incident")[-1].detail["what"]


def test_a_gate_that_raises_while_it_decides_lets_the_event_go() -> None:
    """The host tells what it raised; with `fail_closed` the run ends instead."""
    for fail_closed in (False, True):
        gate = Keeper(["e2"])
        stage = gated(gate, fail_closed=fail_closed)
        stage.turn("a", out("b"))
        effects = stage.monitor.resolve(gate, "e2", (), "raised Oops()")
        assert effects[1:] == [Over("error")] if fail_closed else delivered(effects) == ["e2 to b"]
        failed = rows(stage.sink, "incident")[-1]
        assert failed.detail == {"who": "gate keeper", "what": "raised Oops()"}


def test_nobody_waits_for_a_gate_that_has_decided() -> None:
    """Its deadline is no moment to wait for any more, so a run that stands still can end."""
    gate = Keeper(["e2"], seconds=3600.0)
    stage = gated(gate)
    stage.turn("a", out("b"))
    stage.monitor.resolve(gate, "e2", ())
    assert stage.monitor.next_deadline() is None


def test_a_gate_is_given_up_when_its_time_is_up_although_the_event_is_gone() -> None:
    """The only recipient of a notice has left: the gate that still decides ends at its deadline."""
    stage = gated(Keeper(["e2"], seconds=5.0))
    stage.turn("a", out("b", type="notice"))
    stage.monitor.leave("b")
    assert not stage.monitor.is_quiet and stage.monitor.next_deadline() == 5.0
    stage.wait(5.0)
    assert stage.monitor.is_quiet and stage.monitor.next_deadline() is None
    account(stage)


def test_one_who_leaves_does_not_keep_the_others_waiting() -> None:
    """And gets nothing of what waited for it when it comes back."""
    gate = Keeper(["e2"])
    stage = gated(gate)
    stage.turn("a", out("bc"), out("bc"))
    stage.monitor.leave("b")
    stage.monitor.join("b")
    assert delivered(stage.give("b")) == ["e4 to b"]
    assert delivered(stage.monitor.resolve(gate, "e2", ())) == ["e2 to c", "e3 to c"]
    account(stage)


def test_a_redirect_of_a_gated_event_counts_when_it_is_let_go() -> None:
    """A host may change the recipients meanwhile; nothing is delivered before the gate is done."""
    gate = Keeper(["e2"])
    stage = gated(gate)
    stage.turn("a", out("b"), out("b"))
    assert delivered(stage.monitor.redirect("e2", ("c",))) == []
    assert delivered(stage.monitor.resolve(gate, "e2", ())) == ["e3 to b", "e2 to c"]
    account(stage)


# --- delivery policies ----------------------------------------------------------------------


def sent(policy: DeliveryPolicy, agents: str = "abcd") -> tuple[Stage, list[str]]:
    """Agent a makes e2 with a policy; whom it is delivered to at once."""
    stage = Stage(agents)
    stage.give("a", type="notice")
    effects = stage.turn("a", out(payload="policy", policy=policy))
    return stage, delivered(effects)


def test_to_agents() -> None:
    """At once, to those who are named and present."""
    stage, now = sent(ToAgents(("b", "nobody", "c")))
    assert now == ["e2 to b", "e2 to c"]
    account(stage)


def test_broadcast() -> None:
    """To everybody but the sender; from outside, to everybody."""
    stage, now = sent(Broadcast())
    assert now == ["e2 to b", "e2 to c", "e2 to d"]
    assert len(delivered(stage.give("", policy=Broadcast()))) == 4


def test_least_loaded() -> None:
    """To whoever has the fewest events in front of it or on their way, earliest comer first."""
    stage = Stage("abcd", gates=[Keeper(["e6"])])
    for agent in "bbc":
        stage.give(agent)
    stage.give("a", type="notice")
    effects = stage.turn("a", out(policy=LeastLoaded(2)))
    assert delivered(effects) == ["e5 to d", "e5 to c"]
    stage.give("a", type="notice")
    assert delivered(stage.turn("a", out(policy=LeastLoaded(1, ("b", "c"))))) == ["e7 to b"]


def test_delayed_in_seconds() -> None:
    """On its way until then, and the run does not end meanwhile."""
    stage, now = sent(Delayed(ToAgents(("b",)), after_s=5.0))
    assert now == [] and stage.monitor.next_deadline() == 5.0
    assert [e.id for e in stage.graph.flying()] == ["e2"]
    assert delivered(stage.wait(4.0)) == []
    assert delivered(stage.wait(1.0)) == ["e2 to b"]
    account(stage)


def test_what_a_policy_keeps_can_be_released() -> None:
    """It is delivered once, at once, and its policy is not asked any more."""
    stage, _ = sent(Expiring(Delayed(ToAgents(("b",)), after_s=5.0), after_s=3.0))
    assert delivered(stage.monitor.release("e2")) == ["e2 to b"]
    assert [row.detail for row in rows(stage.sink, "incident")] == [{"event": "e2"}]
    assert stage.monitor.next_deadline() is None
    assert delivered(stage.wait(9.0)) == [] and not rows(stage.sink, "expire")
    account(stage)


def test_only_what_a_policy_keeps_can_be_released() -> None:
    gate = Keeper(["e2"])
    stage = gated(gate)
    stage.turn("a", out("b"))
    for event in ("e1", "e2", "e9"):
        with pytest.raises(RequestError, match=f"event '{event}' is kept by no delivery policy"):
            stage.monitor.release(event)


def test_a_person_can_tell_agents_something() -> None:
    """An incident, and a system event that they are started for; to those who are present."""
    stage = Stage("abc")
    effects = stage.monitor.tell("Hurry.", ("b", "c"))
    assert delivered(effects) == ["e1 to b", "e1 to c"]
    assert [e.agent for e in effects if isinstance(e, Wake)] == ["b", "c"]
    [told], [event] = rows(stage.sink, "incident"), rows(stage.sink, "emit")
    assert (told.what, told.detail) == ("told", {"note": "Hurry.", "to": ["b", "c"]})
    assert (event.by, event.type, event.payload) == ("system", "system", "Hurry.")
    with pytest.raises(RequestError, match="agent 'x' is not present; it cannot be told"):
        stage.monitor.tell("Hurry.", ("b", "x"))
    account(stage)


def test_escalating_unless_it_was_consumed() -> None:
    """The second policy adds recipients, if nobody has consumed the event by then."""
    policy = Escalating(ToAgents(("b",)), Broadcast(), after_s=5.0)
    stage, now = sent(policy)
    assert now == ["e2 to b"]
    assert delivered(stage.wait(5.0)) == ["e2 to c", "e2 to d"]
    account(stage)
    stage, now = sent(policy)
    stage.turn("b")
    assert stage.monitor.next_deadline() is None and delivered(stage.wait(5.0)) == []


def test_expiring_calls_back_what_has_not_arrived() -> None:
    """Behind a gate for too long: orphaned, because expired; what has arrived stays."""
    gate = Keeper(["e2"])
    stage = Stage("ab", gates=[gate])
    stage.give("a")
    stage.turn("a", out(policy=Expiring(ToAgents(("b",)), after_s=5.0)))
    stage.wait(5.0)
    assert delivered(stage.monitor.resolve(gate, "e2", ())) == []
    assert account(stage).orphaned == {"e2": "expired"}
    stage, now = sent(Expiring(ToAgents(("b",)), after_s=5.0))
    assert now == ["e2 to b"]
    stage.wait(5.0)
    assert account(stage).unconsumed == ["e2"]


def test_policies_made_of_policies_keep_all_their_appointments() -> None:
    """A delay inside an escalation or an expiry is not forgotten."""
    late = Delayed(ToAgents(("b",)), after_s=2.0)
    stage, now = sent(Escalating(late, Broadcast(), after_s=5.0))
    assert now == []
    assert delivered(stage.wait(2.0)) == ["e2 to b"]
    assert delivered(stage.wait(3.0)) == ["e2 to c", "e2 to d"]
    stage, now = sent(Expiring(late, after_s=5.0))
    assert delivered(stage.wait(2.0)) == ["e2 to b"]
    assert delivered(stage.wait(3.0)) == []
    assert account(stage).orphaned == {}
    stage, now = sent(Expiring(Escalating(late, Broadcast(), after_s=3.0), after_s=9.0))
    assert [delivered(stage.wait(1.0)) for _ in range(3)] == [[], ["e2 to b"],
                                                              ["e2 to c", "e2 to d"]]  # fmt: skip
    stage, now = sent(Delayed(Escalating(ToAgents(("b",)), Broadcast(), after_s=3.0), after_s=1.0))
    assert [len(delivered(stage.wait(1.0))) for _ in range(4)] == [1, 0, 0, 2]


def test_what_expired_behind_a_gate_and_is_passed_on_later_waits_anew() -> None:
    """It has no place from before: what was held for the recipient meanwhile comes first."""
    gate = Keeper(["e2"])
    stage = gated(gate, agents="abcd")
    brief = Expiring(ToAgents(("c", "d")), after_s=1.0)
    assert delivered(stage.turn("a", out("d"), out(policy=brief))) == ["e3 to c"]
    stage.wait(1.0)
    stage.give("b")
    stage.turn("b", out("d"))
    passed = [Fate("e3", "reroute", ("d",))]
    stage.monitor.end(stage.start("c").activation, passed, [])
    last = stage.monitor.resolve(gate, "e2", ())
    assert delivered(last) == ["e2 to d", "e5 to d", "e3 to d"]
    account(stage)


def test_what_has_expired_stays_expired() -> None:
    """A delay that is over later delivers nothing any more."""
    stage, _ = sent(Expiring(Delayed(ToAgents(("b",)), after_s=9.0), after_s=2.0))
    stage.wait(2.0)
    assert stage.monitor.next_deadline() is None
    assert delivered(stage.wait(9.0)) == []
    assert account(stage).orphaned == {"e2": "expired"}


def recorded_at(t: int) -> Stage:
    """Agent a makes e2 for b, which its recorded policy delivers in record t, at second 5."""
    step = RecordedStep(t, 5_000_000, "deliver")
    stage = Stage("abc")
    stage.give("a", type="notice")
    stage.turn("a", out("b", "policy", policy=AsRecorded("Kept", False, (step,))))
    assert stage.graph.t == 5 and rows(stage.sink, "deliver")[1:] == []
    return stage


def test_a_recorded_act_has_its_place_among_what_happens_at_its_moment() -> None:
    """The message that came before it in the record comes before it again."""
    stage = recorded_at(t=8)
    stage.wait(5.0)
    assert stage.graph.t == 5
    assert delivered(stage.give("b")) == ["e3 to b", "e2 to b"]
    assert rows(stage.sink, "deliver")[-1].t == 8
    account(stage)


def test_a_recorded_act_that_comes_first_at_its_moment_does_so_again() -> None:
    stage = recorded_at(t=6)
    assert stage.monitor.next_deadline() == 5.0
    assert delivered(stage.wait(5.0)) == ["e2 to b"]
    assert delivered(stage.give("b")) == ["e3 to b"]
    account(stage)


def test_a_recorded_act_whose_place_never_comes_is_a_moment_late() -> None:
    """In a fork other records may come at its moment, so the number alone is no reason to wait."""
    stage = recorded_at(t=8)
    due = stage.monitor.next_deadline()
    assert due == 5.000001
    assert delivered(stage.wait(5.0)) == []
    assert delivered(stage.wait(0.000001)) == ["e2 to b"]
    assert stage.monitor.next_deadline() is None
    account(stage)


@pytest.mark.parametrize("policy", [Delayed, Expiring])
def test_a_delay_of_nothing_is_refused(policy: Any) -> None:
    for seconds in (0.0, -1.0, math.nan):
        with pytest.raises(SettingsError, match="more than 0 s"):
            policy(Broadcast(), seconds)


@dataclass
class Says:
    """A policy that says one thing."""

    what: Callable[[Situation], Any]

    def step(self, now: Situation) -> Any:
        return self.what(now)


@pytest.mark.parametrize(
    "what",
    [
        *(lambda now: fail(), lambda now: None, lambda now: ("b",), lambda now: Step("bc")),  # type: ignore[arg-type]
        *(lambda now: Step(("b", 5)), lambda now: Step({"b"})),  # type: ignore[arg-type]
        lambda now: Step(("b",), then=5, in_s=1.0),  # type: ignore[arg-type]
        lambda now: Step(("b",), then=Broadcast(), in_s=math.nan),
        lambda now: Step(("b",), then=Broadcast(), in_s=math.inf),
        lambda now: Step(("b",), also=(Later(Broadcast(), in_s=math.nan),)),
    ],
)
def test_a_policy_that_fails_at_first_sends_the_event_nowhere(what: Any) -> None:
    """It raises or says nonsense: an incident, the event is orphaned, and the team goes on."""
    stage, now = sent(Says(what))
    assert now == []
    [incident] = rows(stage.sink, "incident")
    assert incident.detail["who"] == "delivery policy Says"
    assert account(stage).orphaned == {"e2": "no_recipient"}


def test_a_policy_that_fails_later_leaves_things_as_they_are() -> None:
    """The event stays where it is."""
    step = Step(("b",), then=Says(lambda now: fail()), in_s=2.0)
    stage, now = sent(Says(lambda now: step))
    assert now == ["e2 to b"]
    assert delivered(stage.wait(2.0)) == []
    assert len(rows(stage.sink, "incident")) == 1
    assert account(stage).unconsumed == ["e2"]


def test_with_fail_closed_a_failing_policy_ends_the_run_after_all_outputs() -> None:
    """The outputs that its activation named are emitted still."""
    stage = Stage("ab", fail_closed=True)
    stage.give("a")
    effects = stage.turn("a", out(policy=Says(lambda now: fail())), out("b"))
    assert effects[1:] == [Over("error")]
    assert [r.event for r in rows(stage.sink, "emit")] == ["e1", "e2", "e3"]
    account(stage)


class Restless:
    """A policy that sends its event round and round, as soon as it can."""

    def __init__(self, *rounds: tuple[str, ...]) -> None:
        self.rounds = rounds
        self.asked = 0

    def step(self, now: Situation) -> Step:
        self.asked += 1
        return Step(self.rounds[self.asked % len(self.rounds)], then=self, in_s=0.0)


def test_a_policy_cannot_keep_a_call_from_ending() -> None:
    """One that never comes to rest is asked once a moment."""
    policy = Restless(("b",), ("c",))
    stage = Stage("abc")
    stage.give("a")
    stage.turn("a", out(payload="policy", policy=policy))
    for number in range(1, 5):
        assert policy.asked == number
        assert stage.monitor.next_deadline() == number / 1_000_000
        stage.clock.now = number / 1_000_000
        stage.monitor.tick()
    account(stage)


def test_a_plan_for_an_event_that_is_settled_is_forgotten() -> None:
    """Nobody waits for the escalation of an event that was consumed."""
    stage, _ = sent(Escalating(ToAgents(("b",)), Broadcast(), after_s=50.0))
    stage.turn("b")
    assert stage.monitor.next_deadline() is None and stage.monitor.is_quiet
