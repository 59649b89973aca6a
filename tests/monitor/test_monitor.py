"""The monitor: hold, detect, heal, release, in one call; and what its parts may do to it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from dig import Budget, Create, Fate, Finding, Inject, Limits, Output, Reroute, Watch
from dig.detectors.patterns.deadlock import Deadlock
from dig.detectors.watch import Timing
from dig.errors import DecisionError, PayloadError, RequestError
from dig.graph import records as kinds
from dig.graph.codec import encode
from dig.monitor.messages import (
    Answered,
    ComponentFailed,
    Delivered,
    Healed,
    Over,
    PartsSlow,
    Raised,
    Wake,
)
from tests.conservation import Allowed, conservation
from tests.helpers import (
    Heals,
    Recorder,
    Sees,
    Stage,
    answer,
    bodies,
    flag,
    found_again,
    of,
    on_emit,
    out,
    rows,
    story,
    two_detectors,
    two_healers,
)

SHORT = Limits(dl_window_s=10.0)


def healing(**settings: Any) -> Stage:
    """A stage on which ET and DL are healed."""
    settings.setdefault("detectors", two_detectors())
    return Stage(healers=two_healers(), **settings)


# --- hold -----------------------------------------------------------------------------------


def test_deliveries_come_after_the_last_output() -> None:
    """Nothing is in a buffer before all outputs are emitted and detectors have looked at them."""
    looks: list[tuple[str, list[str]]] = []

    def look(graph: Any, record: Any) -> list[Finding]:
        if isinstance(record, kinds.Emit) and record.by is not None:
            looks.append((record.event, [e for a in graph.agents.values() for e in a.buffer]))
        return []

    stage = Stage("abc", detectors=[Sees(look)])
    stage.give("a")
    stage.turn("a", out("bc"), out("b"), out("a"))
    assert stage.told() == [
        "emit e1 by world to a",
        "deliver e1 to a",
        "start a1 of a on e1",
        "end a1",
        "emit e2 by a1 to b+c",
        "emit e3 by a1 to b",
        "emit e4 by a1 to a",
        "deliver e2 to b",
        "deliver e2 to c",
        "deliver e3 to b",
        "deliver e4 to a",
    ]
    assert looks == [("e2", []), ("e3", []), ("e4", [])]


def test_effects_tell_a_host_what_to_do_in_order() -> None:
    """Each delivery is told, and an idle agent is woken once."""
    stage = Stage("ab")
    effects = stage.give("ab")
    assert [type(e) for e in effects] == [Delivered, Wake, Delivered, Wake]
    effects = stage.turn("a", out("b"), out("b"))
    assert [e.agent for e in of(Delivered, effects)] == ["b", "b"] and len(effects) == 2


def test_findings_and_heal_rows_stand_between_their_causes_and_effects() -> None:
    """What is found stands behind its record, healing behind the outputs, each before its act."""

    def heal(graph: Any, finding: Finding) -> list[Any]:
        if finding.subject["event"] == "e2":
            return [Create("look", ("b",)), Inject("e2", "hm")]
        return [Reroute("e3", "elsewhere", ("a",))] if finding.subject["event"] == "e3" else []

    stage = Stage("ab", detectors=[Sees(on_emit)], healers={"SEEN": Heals(heal)})
    stage.give("a", type="notice")
    stage.turn("a", out("b"), out("b"))
    assert stage.told()[4:] == [
        "end a1",
        "emit e2 by a1 to b",
        "finding SEEN",
        "emit e3 by a1 to b",
        "finding SEEN",
        "heal create e4",
        "emit e4 by system to b",
        "finding SEEN",
        "heal inject e2",
        "heal reroute e3",
        "redirect e3 to a",
        "deliver e2 to b",
        "deliver e3 to a",
        "deliver e4 to b",
    ]
    stage.monitor.finish("stopped")
    conservation(stage.sink)


def test_an_event_that_is_rerouted_is_held_again() -> None:
    """A reroute is delivered like an output, before the outputs of the same activation."""
    stage = Stage("abc")
    stage.give("a")
    started = stage.start("a")
    stage.monitor.end(started.activation, [Fate("e1", "reroute", ("c",))], [out("c")])
    assert stage.told()[3:] == ["end a1", "emit e2 by a1 to c", "deliver e1 to c",
                                "deliver e2 to c"]  # fmt: skip


def test_an_answer_is_handed_over_and_ends_the_run() -> None:
    """Accepting it is the last thing but `finish`, and nothing may be asked after it."""
    stage = Stage("ab")
    stage.give("a")
    effects = stage.turn("a", answer(7))
    assert effects == [Answered("e2", 7, ("e1",)), Over("submitted")]
    assert stage.monitor.is_over and stage.monitor.next_deadline() is None
    with pytest.raises(RequestError, match="over"):
        stage.give("b")
    stage.monitor.finish("submitted", 7)
    assert stage.told()[-3:] == ["emit e2 by a1 to nobody", "deliver e2 to world",
                                 "finish submitted"]  # fmt: skip


def test_what_is_held_beside_an_accepted_answer_is_left_on_its_way() -> None:
    """Healing that speaks when an answer comes does not get in the way of the run's end."""
    speak = Heals(lambda graph, finding: [Create("well done", ("b",))])
    detector = Sees(lambda graph, r: [flag(r)] if getattr(r, "final", False) else [])
    stage = Stage("ab", detectors=[detector], healers={"SEEN": speak})
    stage.give("a")
    effects = stage.turn("a", answer())
    assert effects[-1] == Over("submitted")
    stage.monitor.finish("submitted")
    assert conservation(stage.sink).undelivered == ["e3"]


def test_an_agent_is_woken_again_by_what_came_meanwhile_or_stayed() -> None:
    """At an end: something arrived since the start, or some but not all inputs have left."""

    def ended(consume: int, arrives: bool) -> bool:
        stage = Stage("a")
        stage.give("a")
        stage.give("a")
        started = stage.start("a")
        if arrives:
            stage.give("a")
        fates = [Fate(e.id, "consume") for e in started.events[:consume]]
        return bool(of(Wake, stage.monitor.end(started.activation, fates)))

    woken = {(n, arrives): ended(n, arrives) for n in (0, 1, 2) for arrives in (False, True)}
    assert woken == {
        (0, False): False,  # WAIT does not wake
        (1, False): True,
        (2, False): False,
        (0, True): True,
        (1, True): True,
        (2, True): True,
    }


# --- ET and DL, healed ----------------------------------------------------------------------


def test_an_early_answer_bounces_with_a_note_beside_it() -> None:
    """The submitter gets its answer back, unchanged, with what is missing written beside it."""
    stage = healing()
    stage.give("ab")
    effects = stage.turn("a", out("b"))
    effects = stage.turn("a", answer({"n": 1}))
    assert of(Answered, effects) == []
    assert of(Delivered, effects) == [Delivered("a", "e3")]
    assert stage.told()[-4:] == ["finding ET", "heal reroute e3", "redirect e3 to a",
                                 "deliver e3 to a"]  # fmt: skip
    assert not stage.monitor.is_over
    [back] = stage.start("a").events
    assert (back.payload, back.final) == ({"n": 1}, True)
    [note] = back.notes
    assert "`e2`" in note and "submit again" in note


def early(stage: Stage) -> None:
    """Agent a answers although e2 lies in front of b."""
    stage.give("a")
    stage.turn("a", out("b"))
    stage.give("a", type="notice")
    stage.turn("a", answer())


def test_the_same_bounce_is_not_repeated_when_nothing_can_move() -> None:
    """A second answer with the same lists is accepted, with a note, if nobody is at work on it."""
    stage = healing()
    early(stage)
    effects = stage.turn("a", answer(8))
    assert of(Answered, effects)[0].payload == 8
    assert [e.row.action for e in of(Healed, effects)] == ["inject"]
    stage.monitor.finish("submitted", 8)
    conservation(stage.sink)


def test_the_same_bounce_is_repeated_while_something_can_move() -> None:
    """Somebody is at work on what is missing: the second answer bounces too."""
    stage = healing()
    early(stage)
    stage.start("b")
    effects = stage.turn("a", answer(8))
    assert of(Answered, effects) == []
    assert [e.row.action for e in of(Healed, effects)] == ["reroute"]


def test_an_early_answer_of_somebody_else_bounces_too() -> None:
    """What was said to one submitter counts for that one only."""
    stage = healing(agents="abc")
    early(stage)
    stage.give("c", type="notice")
    assert of(Healed, stage.turn("c", answer()))[0].row.to == ("c",)


def test_a_deadlock_is_told_to_everybody_again_and_again_as_long_as_the_budget_lasts() -> None:
    """Agents that read the note and wait on are told again; beyond the budget it is refused."""
    stage = healing(limits=SHORT)
    stage.give("a")
    told = []
    for _ in range(5):
        effects = stage.wait(10.0)
        told.append([(e.row.action, e.row.to) for e in of(Healed, effects)])
        for agent in sorted({e.agent for e in of(Wake, effects)}):
            stage.turn(agent, fate="delay")
    create, refused = [("create", ("a", "b"))], [("refused", None)]
    assert told == [create, create, create, refused, []]
    assert "this subject" in rows(stage.sink, "heal")[-1].reason
    stage.monitor.finish("stopped")
    assert conservation(stage.sink).healed == 3


def test_a_deadlock_note_lists_who_holds_what() -> None:
    """It reaches all agents as a system event."""
    stage = healing(limits=SHORT)
    stage.give("a")
    delivered = of(Delivered, stage.wait(10.0))
    assert [d.agent for d in delivered] == ["a", "b"]
    note = stage.start("b").events[0]
    assert (note.id, note.sender, note.type) == (delivered[0].event, "system", "system")
    assert "holds `e1`" in note.payload


def test_deadlines_are_told_before_they_come() -> None:
    """A host that ticks at `next_deadline` raises a deadlock at its very moment."""
    stage = healing(limits=SHORT)
    assert stage.monitor.next_deadline() is None
    stage.clock.now = 1.5
    stage.give("a")
    assert stage.monitor.next_deadline() == 11.5
    stage.clock.now = 11.4
    assert of(Raised, stage.monitor.tick()) == []
    stage.clock.now = 13.0
    [raised] = of(Raised, stage.monitor.tick())
    assert raised.finding.ts == 11.5  # late told, but dated right


def test_any_call_raises_what_was_due_before_it() -> None:
    """A request that comes late does not hide what was due by then."""
    stage = healing(limits=SHORT)
    stage.give("a")
    stage.clock.now = 30.0
    effects = stage.give("b")
    assert [e.finding.ts for e in of(Raised, effects)] == [10.0]
    told = stage.told()
    assert told.index("finding DL") < told.index("emit e3 by world to b")


# --- budgets --------------------------------------------------------------------------------


def seen_again(budget: Budget, *patterns: str) -> list[str]:
    """What healing does about findings with these patterns, one a record, subjects as given."""
    plan = iter(patterns)

    def look(graph: Any, record: Any) -> list[Finding]:
        if not isinstance(record, kinds.Emit) or record.by == "system":
            return []
        pattern, subject = next(plan).split()
        return [flag(record, pattern, about=subject)]

    heal = Heals(lambda graph, finding: [Create("hm", ("a",))])
    stage = Stage("a", detectors=[Sees(look)], healers={"P": heal, "Q": heal}, budget=budget)
    for _ in patterns:
        stage.give("a")
    healed = rows(stage.sink, "heal")
    limits = (budget.per_run, budget.per_pattern, budget.per_subject, 0)
    stage.monitor.finish("stopped")
    conservation(stage.sink, Allowed(limits))
    return [r.reason.rpartition("this ")[2].split()[0] if r.reason else r.action for r in healed]


def test_the_budget_of_a_run_holds_over_all_patterns() -> None:
    """When it is used up, healing is refused, and the refusal written down."""
    budget = Budget(per_run=2, per_pattern=9, per_subject=9)
    assert seen_again(budget, "P 1", "Q 1", "P 2") == ["create", "create", "run"]


def test_the_budget_of_a_pattern_leaves_the_others_theirs() -> None:
    """One pattern cannot use up all."""
    budget = Budget(per_run=9, per_pattern=2, per_subject=9)
    assert seen_again(budget, "P 1", "P 2", "P 3", "Q 1") == ["create"] * 2 + ["pattern", "create"]


def test_the_budget_of_a_subject_leaves_other_subjects_theirs() -> None:
    """Of one pattern about one thing there may be so much healing, about others more."""
    budget = Budget(per_run=9, per_pattern=9, per_subject=1)
    told = seen_again(budget, "P 1", "P 1", "P 2", "Q 1")
    assert told == ["create", "subject", "create", "create"]


def test_a_session_begins_its_budget_anew_with_each_answer() -> None:
    """The next problem has a right to healing too."""
    stage = healing(session=True, limits=SHORT, budget=Budget(per_run=1))
    actions = []
    for _ in range(2):
        stage.give("a")
        for _ in range(2):
            actions += [e.row.action for e in of(Healed, stage.wait(10.0))]
            stage.turn("b", fate="consume") if stage.graph.agents["b"].buffer else None
            stage.turn("a", fate="delay")
        stage.turn("a", answer())
    assert actions == ["create", "refused"] * 2


def test_a_detector_that_always_finds_something_cannot_keep_a_call_from_ending() -> None:
    """Healing that is found fault with in turn ends with the budget."""
    always = Sees(lambda graph, record: [flag(record)])
    heal = Heals(lambda graph, finding: [Create("again", ("a",))])
    stage = Stage("a", detectors=[always], healers={"SEEN": heal}, budget=Budget(5, 5, 5))
    stage.give("a")
    assert story(stage.sink).count("heal refused") > 0
    stage.monitor.finish("stopped")
    assert conservation(stage.sink, Allowed((5, 5, 5, 0))).healed == 5


# --- observe, notes, payloads ---------------------------------------------------------------


def test_observing_changes_nothing_but_the_finding_rows() -> None:
    """Without healers a run with detectors is the run without, beside what was found."""

    def run(**settings: Any) -> list[str]:
        stage = Stage(limits=SHORT, **settings)
        early(stage)
        stage.monitor.finish("stopped")
        return stage.told()

    observed = run(detectors=two_detectors())
    assert [line for line in observed if line != "finding ET"] == run()
    assert len(observed) == len(run()) + 1


def test_a_note_stands_beside_the_payload_and_never_in_it() -> None:
    """Every payload in the trace and in front of an agent is the one that was generated."""
    heal = Heals(lambda graph, f: [Inject(f.subject["event"], "NOTE")])
    stage = Stage("ab", detectors=[Sees(on_emit)], healers={"SEEN": heal})
    stage.give("a", {"text": "x"})
    started = stage.start("a")
    assert (started.events[0].payload, started.events[0].notes) == ({"text": "x"}, ("NOTE",))
    stage.finish(started, answer("y"))
    stage.monitor.finish("submitted", "y")
    lines = [encode(r) for r in stage.sink if r.kind != "heal"]
    assert "NOTE" not in "".join(lines)


def test_a_note_for_one_recipient_is_shown_to_that_one_only() -> None:
    """`Inject.to` restricts who is shown a note."""
    heal = Heals(lambda graph, f: [Inject(f.subject["event"], "psst", ("b",))])
    stage = Stage("ab", detectors=[Sees(on_emit)], healers={"SEEN": heal})
    stage.give("ab")
    assert stage.start("a").events[0].notes == ()
    assert stage.start("b").events[0].notes == ("psst",)


def test_all_notes_about_an_event_go_with_one_delivery() -> None:
    """Of several reroutes the first decides, and the notes of all of them are kept."""

    def heal(graph: Any, f: Finding) -> list[Any]:
        return [Reroute(f.subject["event"], f.pattern, (f.subject["to"],))]

    def look(graph: Any, r: Any) -> list[Finding]:
        if r.kind != "emit":
            return []
        return [flag(r, "P", event=r.event, to="b"), flag(r, "Q", event=r.event, to="c")]

    stage = Stage("abc", detectors=[Sees(look)], healers={"P": Heals(heal), "Q": Heals(heal)})
    delivered = of(Delivered, stage.give("a"))
    assert [d.agent for d in delivered] == ["b"]
    assert stage.start("b").events[0].notes == ("P", "Q")
    assert [row.action for row in rows(stage.sink, "heal")] == ["reroute", "inject"]


def test_a_payload_is_copied_on_its_way_in() -> None:
    """A sender that changes its own object later changes nothing."""
    stage = Stage("ab")
    mine, cost = {"list": [1]}, {"tokens": 1}
    stage.give("a", mine)
    mine["list"].append(2)
    started = stage.start("a")
    assert started.events[0].payload == {"list": [1]}
    sent = {"list": [1]}
    stage.monitor.end(started.activation, (), [out("b", sent)], usage=cost)
    sent["list"].append(2)
    cost["tokens"] = 99
    assert stage.start("b").events[0].payload == {"list": [1]}
    assert [r.usage for r in rows(stage.sink, "end")] == [{"tokens": 1}]


# --- parts that fail ------------------------------------------------------------------------


def fail(*args: Any) -> Any:
    raise RuntimeError("I am broken")


def faults(stage: Stage) -> list[str]:
    """Who failed, by the incidents."""
    return [row.detail["who"] for row in rows(stage.sink, "incident")]


class OddClock(Sees):
    """A detector with a clock, of which one half is broken."""

    def __init__(self, deadline: Any, expire: Any = fail) -> None:
        super().__init__(lambda graph, record: [], "ODD")
        self._deadline, self._expire = deadline, expire

    @property
    def due(self) -> Any:  # type: ignore[override]
        return self._deadline() if callable(self._deadline) else self._deadline

    def expire(self, graph: Any, us: int) -> Any:
        return self._expire()


@pytest.mark.parametrize(
    "look",
    [
        fail,
        lambda graph, record: None,
        lambda graph, record: 5,
        lambda graph, record: ["a finding"],
        lambda graph, record: [Finding("SEEN", 0, 0, {"event": object()}, {})],
        lambda graph, record: [Finding("SEEN", 0, 0, {}, {"a": {1, 2}})],
        lambda graph, record: [Finding([], 0, 0, {}, {})],  # type: ignore[arg-type]
    ],
)
def test_a_detector_that_fails_is_disabled_after_three_failures(look: Any) -> None:
    """It raises or returns nonsense: three incidents, then it is never asked again."""
    broken, sound = Sees(look), Sees(on_emit, "OTHER")
    stage = Stage("a", detectors=[broken, sound], healers=two_healers())
    stage.give("a")
    stage.turn("a", out("a"))
    assert broken.looks == 3
    assert sound.looks > 3
    assert faults(stage) == ["detector SEEN"] * 3
    assert "disabled" in rows(stage.sink, "incident")[-1].detail["what"]
    assert len(rows(stage.sink, "finding")) == 2  # about e1 and e2, by the sound one
    stage.monitor.finish("stopped")
    conservation(stage.sink)


@pytest.mark.parametrize("deadline", [fail, 0, "soon", 1.5])
def test_a_clock_that_fails_is_disabled_at_once(deadline: Any) -> None:
    """Its deadline raises, stands still or is no moment; the run goes on."""
    stage = Stage("a", detectors=[OddClock(deadline, list), *two_detectors()], limits=SHORT)
    stage.give("a")
    assert of(Raised, stage.wait(10.0))
    assert faults(stage) == ["detector ODD"]


def test_a_failing_clock_is_told_in_the_call_in_which_it_fails() -> None:
    """Its incident does not wait for the next record."""
    stage = Stage("a", detectors=[OddClock(5_000_000)])
    stage.give("a")
    stage.wait(5.0)
    assert set(faults(stage)) == {"detector ODD"}


class MissesAnEnd(Deadlock):
    """DL, which fails when an activation ends."""

    def detect(self, graph: Any, record: Any) -> Any:
        return fail() if isinstance(record, kinds.End) else super().detect(graph, record)


def test_what_a_failed_look_has_missed_is_not_raised_at_a_moment_that_is_over() -> None:
    """A deadlock was due at the end at which DL failed: it is raised as soon as DL looks again."""
    limits = Limits(dl_window_s=1.0, activation_limit_s=10.0)
    stage = Stage("a", detectors=[MissesAnEnd()], limits=limits)
    stage.give("a")
    started = stage.start("a")
    stage.wait(5.0)
    stage.finish(started, fate="delay")
    deadline = stage.monitor.next_deadline()
    assert deadline is not None and deadline >= stage.clock.now
    [raised] = of(Raised, stage.wait(deadline - stage.clock.now))
    assert raised.finding.ts == deadline


def test_a_late_detector_is_disabled_after_it_returns() -> None:
    """What it found counts still; the stopwatch says how long it took."""
    now = [0.0]

    def look(graph: Any, record: Any) -> list[Finding]:
        now[0] += 6.0
        return [flag(record)]

    slow = Sees(look)
    stage = Stage("a", detectors=[slow], stopwatch=lambda: now[0])
    stage.give("a")
    assert slow.looks == 1
    assert faults(stage) == ["detector SEEN"] and stage.told().count("finding SEEN") == 1


def looks_for(seconds: float, works: float) -> tuple[Sees, Timing]:
    """A detector whose look takes so long, and the processor for so long, and its clocks."""
    now = {"wall": 0.0, "processor": 0.0}

    def look(graph: Any, record: Any) -> list[Finding]:
        now["wall"] += seconds
        now["processor"] += works
        return []

    return Sees(look), Timing(lambda: now["wall"], lambda: now["processor"])


def test_a_detector_that_stood_still_with_its_process_is_not_disabled() -> None:
    """Six seconds of a clock on the wall are no six seconds of work."""
    paused, timing = looks_for(6.0, works=0.01)
    stage = Stage("a", detectors=[paused], stopwatch=timing)
    stage.give("a")
    assert paused.looks == len(stage.sink)
    assert faults(stage) == []


def test_a_slow_detector_is_tried_again_after_a_while_and_later_each_time() -> None:
    """The trace says when it was off, and that it looks again."""
    slow, timing = looks_for(6.0, works=6.0)
    stage = Stage("a", detectors=[slow, Sees(lambda graph, record: [])], stopwatch=timing)
    for wait in (59.0, 1.0, 119.0, 1.0):
        stage.give("a")
        stage.wait(wait)
    incidents = [
        (row.ts, row.what, row.detail.get("off_s")) for row in rows(stage.sink, "incident")
    ]
    assert incidents == [
        (0.0, "failed", 60), (60.0, "tried again", None), (60.0, "failed", 120),
        (180.0, "tried again", None),
    ]  # fmt: skip
    assert rows(stage.sink, "incident")[1].detail == {"who": "detector SEEN", "place": 0}
    assert (
        "took longer than 5 s of processor time" in rows(stage.sink, "incident")[0].detail["what"]
    )


def test_a_detector_that_is_disabled_is_not_asked_to_forget() -> None:
    """It would fail again each time that a session evicts history."""

    class Forgetful(Sees):
        forgot = 0

        def forget(self, graph: Any) -> None:
            self.forgot += 1

    broken = Forgetful(lambda graph, record: fail())
    stage, watch = Stage("a"), Watch([broken])
    for _ in range(3):
        stage.give("a")
    for record in stage.sink:
        watch.feed(record)
    watch.forget()
    assert (broken.looks, broken.forgot) == (3, 0)


def test_a_flood_of_findings_is_bounded_and_counted() -> None:
    """Of each pattern 1,000 are raised a minute, live and later; the others are counted."""

    def many(graph: Any, record: Any) -> list[Finding]:
        flags = [flag(record, event=record.event, n=n) for n in range(700)] if emits(record) else []
        return [*flags, *(flag(record, "FEW") for _ in flags[:1])]

    stage, raised = Stage("a", detectors=[Sees(many)]), list[Finding]()
    for wait in (0.0, 70.0, 0.0, 0.0):
        raised += [one.finding for one in of(Raised, stage.give("a"))]
        stage.wait(wait)
    stage.monitor.finish("stopped")
    assert Counter(one.pattern for one in raised) == {"SEEN": 2_000, "FEW": 4}
    assert [(row.ts, row.what, row.detail) for row in rows(stage.sink, "incident")] == [
        (70.0, "findings left out", {"pattern": "SEEN", "count": 400}),
        (70.0, "findings left out", {"pattern": "SEEN", "count": 400}),
    ]
    assert found_again(stage.sink, Watch([Sees(many)])) == bodies(raised)


def emits(record: Any) -> bool:
    return isinstance(record, kinds.Emit)


def test_that_a_budget_is_used_up_is_told_once() -> None:
    """A thousand findings that nothing is done about need no thousand rows about that."""
    budget = Budget(per_run=2, per_pattern=1, per_subject=9)
    told = seen_again(budget, "P 1", "P 2", "P 3", "Q 1", "Q 2", "P 4", "Q 3")
    assert told == ["create", "pattern", "create", "run"]


def test_slow_parts_are_told_once_with_their_shares() -> None:
    """Detectors and sink, below what disables one: a second of each for every record."""
    now = [0.0]

    def passes(seconds: float) -> list[Finding]:
        now[0] += seconds
        return []

    class Slow(Recorder):
        def write(self, records: Any) -> None:
            passes(1.0)
            self.extend(records)

    detectors = [Sees(lambda graph, record: passes(0.5))]
    stage = Stage("a", detectors=detectors, sink=Slow(), stopwatch=lambda: now[0])
    told = [of(PartsSlow, stage.give("a")) for _ in range(5)]
    assert [len(effects) for effects in told] == [1, 0, 0, 0, 0]
    [slow] = told[0]
    looks = detectors[0].looks
    now[0] += 10.0
    assert stage.monitor.shares() == (looks * 0.5 / now[0], 6 * 1.0 / now[0])
    assert slow.slow_s >= 3.0
    assert slow.detectors + slow.sink == 1.0


def test_fast_parts_are_never_told_however_long_a_session_lasts() -> None:
    """A thousand looks of a hundredth of a second are what monitoring costs."""
    now = [0.0]

    def look(graph: Any, record: Any) -> list[Finding]:
        now[0] += 0.01
        return []

    stage = Stage("a", detectors=[Sees(look)], stopwatch=lambda: now[0])
    for _ in range(500):
        assert of(PartsSlow, stage.give("a")) == []
    assert now[0] > 9.0


def test_a_detector_that_fails_at_the_very_end_does_not_spoil_it() -> None:
    """`finish` is the last record: no detector looks at it, as nothing could be written after."""
    at_end = Sees(lambda graph, record: fail() if record.kind == "finish" else [])
    finds = Sees(lambda graph, record: [flag(record)] if record.kind == "finish" else [])
    stage = Stage("a", detectors=[at_end, finds])
    stage.give("a")
    assert of(Raised, stage.monitor.finish("stopped")) == []
    assert stage.told()[-1] == "finish stopped"


def test_what_is_due_at_the_end_is_found_before_it() -> None:
    """A window that passed just before the end is told, and not healed any more."""
    stage = healing(limits=SHORT)
    stage.give("a")
    stage.clock.now = 10.0
    effects = stage.monitor.finish("timeout")
    assert bodies([e.finding for e in of(Raised, effects)]) == found_again(
        stage.sink, Watch(two_detectors())
    )
    assert stage.told()[-2:] == ["finding DL", "finish timeout"]


@pytest.mark.parametrize(
    "heal",
    [
        fail,
        lambda graph, finding: None,
        lambda graph, finding: ["help"],
        lambda graph, finding: [Inject("nothing", "note")],
        lambda graph, finding: [Inject("e1", 5)],  # type: ignore[arg-type]
        lambda graph, finding: [Inject("e1", "note", "ab")],  # type: ignore[arg-type]
        lambda graph, finding: [Inject([], "note")],  # type: ignore[arg-type]
        lambda graph, finding: [Reroute("e1", "note", "ab")],  # type: ignore[arg-type]
        lambda graph, finding: [Reroute("e1", "note", None)],  # type: ignore[arg-type]
        lambda graph, finding: [Reroute("e1", "note", {"a"})],  # type: ignore[arg-type]
        lambda graph, finding: [Create("note", None)],  # type: ignore[arg-type]
        lambda graph, finding: [Create("note", (5,))],  # type: ignore[arg-type]
        lambda graph, finding: [Create("first", ("a",)), Inject("nothing", "second")],
    ],
)
def test_a_healer_that_fails_does_nothing(heal: Any) -> None:
    """It raises or wants nonsense: an incident, no half of an intervention, and the run goes on."""
    stage = Stage("ab", detectors=[Sees(on_emit)], healers={"SEEN": Heals(heal)})
    stage.give("a")
    assert faults(stage) == ["healer of SEEN"]
    assert stage.told()[-1] == "deliver e1 to a"
    stage.turn("a", fate="consume")
    stage.monitor.finish("stopped")
    conservation(stage.sink)


def test_a_healer_may_use_up_an_event_that_it_means_to_mention_again() -> None:
    """The second intervention is an incident; nothing is lost by it."""

    def heal(graph: Any, f: Finding) -> list[Any]:
        return [Reroute("e1", "away with it", ()), Inject("e1", "too late")]

    stage = Stage("a", detectors=[Sees(on_emit)], healers={"SEEN": Heals(heal)})
    stage.give("a", type="notice")
    assert stage.told() == ["emit e1 by world to a", "finding SEEN", "heal reroute e1",
                            "redirect e1 to nobody", "incident failed"]  # fmt: skip


def test_with_fail_closed_a_failing_part_ends_the_run() -> None:
    """The call still writes down all outputs; then nothing may be asked but `finish`."""
    broken = Sees(lambda graph, record: fail() if record.kind == "end" else [])
    stage = Stage("ab", detectors=[broken], fail_closed=True)
    stage.give("a")
    effects = stage.turn("a", out("b"), out("b"))
    failed, over = effects
    assert isinstance(failed, ComponentFailed) and failed.component == "detector SEEN"
    assert over == Over("error")
    assert stage.monitor.is_over
    stage.monitor.finish("error")
    assert stage.told()[-4:] == ["incident failed", "emit e2 by a1 to b", "emit e3 by a1 to b",
                                 "finish error"]  # fmt: skip
    assert conservation(stage.sink).undelivered == ["e2", "e3"]


def test_with_fail_closed_a_failing_clock_ends_the_run_by_itself() -> None:
    """A tick that finds it out returns the end, and raises nothing."""
    stage = Stage("a", detectors=[OddClock(5_000_000)], fail_closed=True)
    stage.give("a")
    assert stage.wait(5.0)[1] == Over("error")


def test_with_fail_closed_the_end_comes_with_the_next_call_if_this_one_is_refused() -> None:
    """A request that the end overtakes is refused; the effects are not lost."""
    stage = Stage("a", detectors=[OddClock(5_000_000)], fail_closed=True)
    stage.give("a")
    stage.clock.now = 5.0
    with pytest.raises(RequestError, match="over"):
        stage.give("a")
    assert stage.monitor.tick()[1] == Over("error")


def test_when_the_sink_fails_nothing_happens_any_more() -> None:
    """Its error goes to the host as it is, no effect comes out, and the monitor is closed."""
    error = OSError("the disk is full")
    for fail_at in range(4, 8):
        stage = Stage("ab", sink=Recorder(fail_at, error))
        stage.give("a")
        started = stage.start("a")
        with pytest.raises(OSError, match="disk is full") as raised:
            stage.finish(started, out("b"), out("b"))
        assert raised.value is error
        assert stage.monitor.is_over
        assert stage.monitor.tick() == [] and stage.monitor.finish("error") == []
        assert len(stage.sink) == fail_at
        with pytest.raises(RequestError):
            stage.give("a")


def test_when_the_sink_fails_no_answer_and_no_finding_gets_out() -> None:
    """What is not journalled has not happened, although it was decided in the same call."""
    stage = healing(sink=Recorder(7))
    stage.give("ab")
    with pytest.raises(OSError, match="disk"):
        stage.turn("a", answer())
    assert stage.told()[-1].startswith("emit e2") and stage.monitor.tick() == []


# --- requests -------------------------------------------------------------------------------


def refused(stage: Stage, request: Any, error: type[Exception] = RequestError) -> str:
    """A request raises, and neither graph nor sink nor effects have changed; returns why."""
    before, t = list(stage.sink), stage.graph.t
    with pytest.raises(error) as raised:
        request(stage.monitor)
    assert stage.sink == before and stage.graph.t == t
    assert stage.monitor.tick() == []
    return str(raised.value)


def test_requests_that_cannot_be_fulfilled_change_nothing() -> None:
    """They say what is wrong."""
    stage = Stage("ab")
    stage.give("a")
    stage.start("a")
    why = [
        refused(stage, lambda m: m.start("a")),
        refused(stage, lambda m: m.start("nobody")),
        refused(stage, lambda m: m.end("a9")),
        refused(stage, lambda m: m.end("e1")),
        refused(stage, lambda m: m.join("b")),
        refused(stage, lambda m: m.join("system")),
        refused(stage, lambda m: m.leave("nobody")),
        refused(stage, lambda m: m.redirect("e9", ("a",))),
    ]
    assert "busy" in why[0] and "present" in why[1] and "'a9'" in why[2] and "must be" in why[5]


@pytest.mark.parametrize(
    ("fates", "outputs"),
    [
        ([Fate("e9", "consume")], []),
        ([Fate("e1", "consume"), Fate("e1", "delay")], []),
        ([Fate("e1", "eat")], []),  # type: ignore[arg-type]
        ([Fate("e1", "reroute", "ab")], []),  # type: ignore[arg-type]
        ([Fate("e1", "reroute", None)], []),  # type: ignore[arg-type]
        ([], [Output("x", "ab")]),  # type: ignore[arg-type]
        ([], [Output("x", ("a", 5))]),  # type: ignore[arg-type]
        ([], [Output("x", {"a"})]),  # type: ignore[arg-type]
        ([], [out("b", type="")]),
        ([], [answer(), out("b")]),
        ([], [answer(), answer()]),
    ],
)
def test_a_decision_that_does_not_fit_is_refused_and_the_activation_goes_on(
    fates: Any, outputs: Any
) -> None:
    """Nothing of it happens, and the agent may decide again."""
    stage = Stage("ab")
    stage.give("a")
    activation = stage.start("a").activation
    refused(stage, lambda m: m.end(activation, fates, outputs), DecisionError)
    stage.monitor.end(activation, [Fate("e1", "consume")])


@pytest.mark.parametrize("payload", [object(), {1: 2}, {"a": {1}}, float("nan"), b"x"])
def test_a_payload_that_is_no_json_is_refused(payload: Any) -> None:
    """From outside and from an agent, as usage and as an answer; the activation goes on."""
    stage = Stage("ab")
    stage.give("a")
    activation = stage.start("a").activation
    refused(stage, lambda m: m.inject(Output(payload, ("a",))), PayloadError)
    refused(stage, lambda m: m.end(activation, (), [out("b", payload)]), PayloadError)
    refused(stage, lambda m: m.end(activation, usage=payload), PayloadError)
    refused(stage, lambda m: m.finish("stopped", payload), PayloadError)
    refused(stage, lambda m: m.incident("odd", payload), PayloadError)
    stage.monitor.end(activation, [Fate("e1", "consume")])


def test_nothing_final_comes_from_outside() -> None:
    """Only an activation submits."""
    refused(Stage("a"), lambda m: m.inject(answer()), DecisionError)


def test_after_the_end_only_finish_is_heard_and_twice_does_no_harm() -> None:
    """Requests raise; ticks, decisions of gates and incidents that come late are ignored."""
    stage = Stage("a")
    stage.give("a")
    stage.monitor.finish("stopped")
    last = len(stage.sink)
    refused(stage, lambda m: m.inject(out("a")))
    refused(stage, lambda m: m.start("a"))
    refused(stage, lambda m: m.leave("a"))
    assert stage.monitor.incident("late", None) == []
    assert stage.monitor.finish("error") == []
    assert len(stage.sink) == last


def test_a_clock_that_falls_stands_still() -> None:
    """Time in the trace never falls."""
    stage = Stage("a")
    stage.clock.now = 5.0
    stage.give("a")
    stage.clock.now = 3.0
    stage.give("a")
    assert [r.ts for r in stage.sink] == [0.0, 5.0, 5.0, 5.0, 5.0]
    assert stage.monitor.now == 5.0


def test_an_incident_is_written_down_as_it_is_told() -> None:
    """With its detail copied."""
    stage = Stage("a")
    detail = {"why": ["no"]}
    stage.monitor.incident("odd", detail)
    detail["why"].append("more")
    [row] = rows(stage.sink, "incident")
    assert (row.what, row.detail) == ("odd", {"why": ["no"]})


def test_an_agent_that_leaves_takes_what_it_had_with_it() -> None:
    """Its activation has no end, what lay before it is orphaned, and it may come back empty."""
    stage = Stage("ab")
    stage.give("a")
    started = stage.start("a")
    stage.monitor.leave("a")
    refused(stage, lambda m: m.end(started.activation))
    stage.monitor.join("a")
    assert stage.start("a").events == ()
    stage.monitor.finish("stopped")
    account = conservation(stage.sink)
    assert account.orphaned == {"e1": "left"}
    assert account.unfinished == {"a2": "a"}


def test_ids_are_those_of_the_source_that_was_handed_in() -> None:
    """The prefix says what for."""
    numbers = iter(range(100))
    stage = Stage("a", ids=lambda prefix: f"{prefix}-{next(numbers)}")
    stage.give("a")
    assert stage.start("a").activation == "a-1"
    assert stage.told()[0] == "emit e-0 by world to a"


# --- sessions -------------------------------------------------------------------------------


def test_overlapping_problems_of_a_session_get_their_own_answers() -> None:
    """Each answer names the problems behind it, and the run goes on."""
    stage = Stage("ab", session=True)
    stage.give("a")
    stage.give("b")
    second = of(Answered, stage.turn("b", answer("two")))
    first = of(Answered, stage.turn("a", answer("one")))
    assert second == [Answered("e3", "two", ("e2",))]
    assert first == [Answered("e4", "one", ("e1",))]
    assert not stage.monitor.is_over


def test_in_a_session_only_work_on_the_same_problem_counts_against_an_answer() -> None:
    """An answer to one problem is not early because of another one."""
    stage = healing(session=True)
    stage.give("a")
    stage.give("b")
    assert of(Answered, stage.turn("a", answer()))
    stage.give("a")
    stage.turn("a", out("b"))
    stage.give("a", type="notice")
    assert of(Answered, stage.turn("a", answer())) == [Answered("e7", 42, ("e6",))]


def test_what_is_settled_is_not_asked_for_again() -> None:
    """A second answer that rests on the same problem answers nothing new, and is no ET."""
    stage = healing(session=True, memory=True)
    stage.give("a")
    assert of(Answered, stage.turn("a", answer(1)))[0].problems == ("e1",)
    stage.give("a")
    [answered] = of(Answered, stage.turn("a", answer(2)))
    assert answered.problems == ("e3",)


def test_in_a_session_each_problem_has_its_own_deadlock() -> None:
    """Work on one problem does not hide that another one stands still."""
    stage = healing(session=True, limits=SHORT)
    stage.give("a")
    stage.clock.now = 6.0
    stage.give("b")
    raised = of(Raised, stage.wait(4.0))
    assert [e.finding.subject for e in raised] == [{"event": "e1"}]
    raised = of(Raised, stage.wait(6.0))
    assert {"event": "e2"} in [e.finding.subject for e in raised]


def test_a_run_ends_with_a_known_outcome() -> None:
    """Nothing is written that no reader would take."""
    stage = Stage("a")
    with pytest.raises(RequestError, match="'won' is no outcome; choose one of submitted"):
        stage.monitor.finish("won")  # type: ignore[arg-type]
    assert len(stage.sink) == 1


def test_what_is_no_output_is_refused() -> None:
    """A payload alone says nothing about who should get it."""
    with pytest.raises(DecisionError, match="'hello' is no Output; write Output"):
        Stage("a").monitor.inject("hello")  # type: ignore[arg-type]
