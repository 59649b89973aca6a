"""Healing works: a team that fails when it is only observed ends well with it.

And where it cannot help, the run still ends, within budget, and says what is missing. The teams
are in `scenarios`; the same ones on the bus in `test_healing_on_the_bus`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest

from dig import Budget, Limits, Monitor, Output, Watch
from dig.detectors import standard, standard_healers
from dig.detectors.protocols import Healer
from dig.monitor.messages import Effect
from dig.runtime import RunResult, Setup, simulate
from tests.conservation import Allowed, conservation
from tests.helpers import Recorder, bodies, found_again, rows

from . import scenarios as the

SHORT = Limits(mc_window_s=10.0, oe_window_s=5.0, dl_window_s=10.0)


def setup(scene: the.Scene, seed: int, heal: bool = True, **more: Any) -> Setup:
    """How a scene is run."""
    designate = more.pop("designate", False)
    healers = partial(standard_healers, designate=designate) if heal else None
    return Setup(seed=seed, memory=scene.memory, detectors=standard, healers=healers,
                 limits=SHORT, limit_s=scene.limit_s, **more)  # fmt: skip


def play(scene: the.Scene, setup: Setup) -> tuple[RunResult, Recorder]:
    """A scene in virtual time; every law of a run holds in it, and a look back finds the same."""
    sink = Recorder()
    script = [(at_s, partial(_happen, what=what)) for at_s, what in scene.script]
    result = simulate(scene.team, scene.problem, setup=setup, script=script, sink=sink)
    conservation(sink, Allowed(interference=True))
    assert found_again(sink, Watch(standard())) == bodies(result.findings)
    return result, sink


def _happen(monitor: Monitor, what: Output | str) -> list[Effect]:
    return monitor.leave(what) if isinstance(what, str) else monitor.inject(what)


def healed(sink: Recorder) -> Counter[tuple[str, str | None, str]]:
    """How often what was done about which pattern, at which stage."""
    raised = {row.t: row for row in rows(sink, "finding")}
    done = [(raised[row.finding], row.action) for row in rows(sink, "heal")]
    return Counter((row.pattern, row.stage, action) for row, action in done)


def is_within(budget: Budget, sink: Recorder) -> bool:
    """Whether no more findings were healed than may be; what was refused does not count."""
    raised = {row.t: row for row in rows(sink, "finding")}
    helped = {row.finding for row in rows(sink, "heal") if row.action != "refused"}
    patterns = Counter(raised[t].pattern for t in helped)
    about = [(raised[t].pattern, raised[t].subject, raised[t].evidence) for t in helped]
    subjects = Counter(str((kind, on, seen.get("waiting"))) for kind, on, seen in about)
    return (
        len(helped) <= budget.per_run
        and all(n <= budget.per_pattern for n in patterns.values())
        and all(n <= budget.per_subject for n in subjects.values())
    )


# --- it helps -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Helped:
    """A scene that healing turns round, how it ends without, and what is done about what."""

    scene: Callable[[int], the.Scene]
    ends: str
    pattern: str
    action: str
    stage: str | None = None


HELPED = {
    "ET": Helped(the.early_termination, "submitted", "ET", "reroute"),
    "MC": Helped(the.missing_termination, "stopped", "MC", "create"),
    "OE, sent to nobody": Helped(the.sent_to_nobody, "stopped", "OE", "reroute"),
    "OE, left": Helped(the.left_behind, "stopped", "OE", "reroute"),
    "OE, discarded": Helped(the.thrown_away, "stopped", "OE", "reroute"),
    "DL": Helped(the.deadlock, "stopped", "DL", "create"),
    "ER": Helped(the.excessive_rerouting, "timeout", "ER", "inject"),
    "CLA, delivery": Helped(the.mixed_up, "submitted", "CLA", "inject", "delivery"),
    "CLA, consumption": Helped(
        partial(the.mixed_up, by="dan"), "submitted", "CLA", "inject", "consumption"
    ),
    "RSP": Helped(the.repeated_solving, "submitted", "RSP", "inject"),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("session", "seeds"), [(False, 20), (True, 5)], ids=["run", "session"])
@pytest.mark.parametrize("case", HELPED.values(), ids=HELPED)
def test_what_fails_without_healing_ends_well_with_it(
    case: Helped, session: bool, seeds: int
) -> None:
    """The same seed, observed only, gives no answer or a wrong one; healed, the right one."""
    for seed in range(seeds):
        scene = case.scene(seed)
        result, sink = play(scene, setup(scene, seed, heal=False, session=session))
        if not session:  # which always goes on, after an answer too
            assert result.outcome == case.ends
        assert result.answer != scene.right
        assert case.pattern in result.raised() and result.heals == {}

        scene = case.scene(seed)
        result, sink = play(scene, setup(scene, seed, session=session))
        assert result.answer == scene.right
        assert result.outcome == ("stopped" if session else "submitted")
        assert healed(sink)[case.pattern, case.stage, case.action] == 1
        assert "refused" not in result.heals
        assert not (result.left.unconsumed or result.left.orphaned or result.left.undelivered)


@pytest.mark.parametrize("case", HELPED.values(), ids=HELPED)
def test_it_is_the_healing_of_this_pattern_that_helps(case: Helped) -> None:
    """With that of all other patterns the run ends no better than without."""

    def others() -> dict[str, Healer]:
        return {k: healer for k, healer in standard_healers().items() if k != case.pattern}

    for seed in range(3):
        scene = case.scene(seed)
        result, _ = play(scene, replace(setup(scene, seed), healers=others))
        assert result.answer != scene.right


@pytest.mark.parametrize("case", HELPED.values(), ids=HELPED)
def test_in_a_session_each_problem_is_healed(case: Helped) -> None:
    """The same team is given the same again after its answer, and ends well again."""
    for seed in range(3):
        first = case.scene(seed)
        again = [(50.0 + at_s, event) for at_s, event in first.script if isinstance(event, Output)]
        scene = replace(first, script=[*first.script, (50.0, first.problem), *again])
        result, sink = play(scene, replace(setup(scene, seed, session=True), limit_s=120.0))
        answers = {row.event: row.payload for row in rows(sink, "emit") if row.final}
        accepted = [answers[row.event] for row in rows(sink, "deliver") if row.to is None]
        assert accepted == [scene.right, scene.right]
        assert healed(sink)[case.pattern, case.stage, case.action] == 2
        assert "refused" not in result.heals


def test_a_team_that_gets_stuck_again_and_again_is_helped_each_time() -> None:
    """Deadlocks about other work are other ones: they do not use up one another's budget."""
    for seed in range(5):
        scene = the.deadlocks(seed)
        result, _ = play(scene, setup(scene, seed))
        assert (result.outcome, result.answer) == ("submitted", scene.right)
        assert result.raised() == {"DL": 6} and result.heals == {"create": 6}


def test_a_handler_that_is_named_beforehand_prevents_the_pattern() -> None:
    """RSP is not even raised; who was told what stands in the trace."""
    for seed in range(20):
        scene = the.repeated_solving(seed)
        result, sink = play(scene, setup(scene, seed, designate=True))
        assert (result.outcome, result.answer) == ("submitted", scene.right)
        assert result.findings == ()
        told = [row.detail["to"] for row in rows(sink, "incident") if row.what == "prevented"]
        assert told == [("bob",), ("cyd",)]


# --- it cannot help -------------------------------------------------------------------------

USED_UP = "the budget of {} for this {} is used up"


@dataclass(frozen=True)
class Hopeless:
    """A scene that nothing mends, how it ends, and what it says.

    Attributes:
        scene: Makes it from a seed.
        ends: The outcome.
        refused: Which patterns were refused healing, and why.
        raised: What was raised, and how often; ``None``: it depends on the seed.
        orphaned: What nobody can reach at the end, and why.
        unconsumed: What somebody still holds; ``None``: it depends on the seed.
        answers: Whether there is an answer, a wrong one.
        budget: How much healing there may be.
        designate: Whether handlers are named beforehand.
        in_session: What of all this is different in a session.
    """

    scene: Callable[[int], the.Scene]
    ends: str = "stopped"
    refused: dict[str, set[str]] = field(default_factory=dict)
    raised: dict[str, int] | None = None
    orphaned: dict[str, str] = field(default_factory=dict)
    unconsumed: tuple[str, ...] | None = ()
    answers: bool = False
    budget: Budget = field(default_factory=Budget)
    designate: bool = False
    in_session: dict[str, Any] = field(default_factory=dict)


def deaf(scene: Callable[..., the.Scene], **more: Any) -> Callable[[int], the.Scene]:
    """A scene in which nobody heeds what the monitor says."""
    return partial(scene, heeds=False, **more)


SUBJECT = USED_UP.format(3, "subject")
ONCE = Budget(per_pattern=1)
ONCE_USED = USED_UP.format(1, "pattern")

# In a session a note is about no problem, so that to read it is no progress with one.
ONE_NOTE = {"refused": {}, "raised": {"MC": 1}}

HOPELESS = {
    "ET, a part that never comes": Hopeless(
        partial(the.early_termination, cyd=the.idle),
        refused={"DL": {SUBJECT}}, raised={"ET": 1, "DL": 4}, unconsumed=("e3",),
    ),
    "ET, and she insists": Hopeless(
        deaf(the.early_termination, cyd=the.idle),
        ends="submitted", unconsumed=("e3",), answers=True,
    ),
    "ET, out of budget": Hopeless(
        deaf(the.early_termination), ends="submitted", refused={"ET": {ONCE_USED}},
        raised={"ET": 2}, unconsumed=None, answers=True, budget=ONCE,
    ),
    "MC, nobody listens": Hopeless(
        deaf(the.missing_termination), refused={"MC": {SUBJECT}}, raised={"MC": 4},
        in_session=ONE_NOTE,
    ),
    "MC, who knew is gone": Hopeless(
        partial(the.missing_termination, script=[(12.0, "dan")]),
        refused={"MC": {SUBJECT}}, raised={"MC": 4}, in_session=ONE_NOTE,
    ),
    "OE, sent to nobody again": Hopeless(
        deaf(the.sent_to_nobody), refused={"OE": {SUBJECT}, "DL": {SUBJECT}},
        raised={"OE": 4, "DL": 4}, orphaned={"e2": "no_recipient"}, unconsumed=("e4",),
    ),
    "OE, thrown away again": Hopeless(
        deaf(the.thrown_away), refused={"DL": {SUBJECT}},
        raised={"OE": 2, "DL": 4}, orphaned={"e3": "discarded"}, unconsumed=("e4",),
    ),
    "OE, who sent it is gone too": Hopeless(
        partial(the.left_behind, then=[(6.0, "ann")]), refused={"DL": {SUBJECT}},
        raised={"OE": 2, "DL": 4}, orphaned={"e3": "left"}, unconsumed=("e4",),
    ),
    "DL, nobody listens": Hopeless(
        deaf(the.deadlock), refused={"DL": {SUBJECT}}, raised={"DL": 4}, unconsumed=("e2", "e3")
    ),
    "ER, nobody listens": Hopeless(
        deaf(the.excessive_rerouting), ends="timeout", refused={"ER": {SUBJECT}},
        unconsumed=("e1",),
    ),
    "CLA, nobody listens": Hopeless(
        deaf(the.mixed_up), ends="submitted", refused={"CLA": {ONCE_USED}},
        raised={"CLA": 2}, answers=True, budget=ONCE,
    ),
    "CLA, nobody listens further on": Hopeless(
        deaf(the.mixed_up, by="dan"), ends="submitted", refused={"CLA": {ONCE_USED}},
        raised={"CLA": 2}, answers=True, budget=ONCE,
    ),
    "RSP, out of budget": Hopeless(
        partial(the.repeated_solving, asked=["bob", "cyd", "eve"]), ends="submitted",
        refused={"RSP": {ONCE_USED}}, raised={"RSP": 2}, answers=True, budget=ONCE,
    ),
    "RSP, nobody listens": Hopeless(
        deaf(the.repeated_solving), ends="submitted", raised={"RSP": 1}, answers=True
    ),
    "RSP, the handler does nothing": Hopeless(
        partial(the.repeated_solving, bob=the.idle), refused={"DL": {SUBJECT}},
        raised={"DL": 4}, unconsumed=("e2", "e4"), designate=True,
    ),
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("session", [False, True], ids=["run", "session"])
@pytest.mark.parametrize("case", HOPELESS.values(), ids=HOPELESS)
def test_where_healing_cannot_help_the_run_ends_and_says_so(case: Hopeless, session: bool) -> None:
    """It ends by itself or at its time limit, within budget; what is missing is named."""
    if session:
        ends = "stopped" if case.ends == "submitted" else case.ends  # it goes on after an answer
        case = replace(case, ends=ends, **case.in_session)
    for seed in range(5):
        scene = case.scene(seed)
        how = setup(scene, seed, session=session, budget=case.budget, designate=case.designate)
        result, sink = play(scene, how)
        assert result.outcome == rows(sink, "finish")[0].outcome == case.ends
        assert result.answer is None or case.answers
        assert result.answer != scene.right
        assert case.raised is None or result.raised() == case.raised
        assert is_within(case.budget, sink)
        assert refusals(sink) == case.refused
        assert case.unconsumed is None or result.left.unconsumed == case.unconsumed
        assert result.left.orphaned == case.orphaned


def refusals(sink: Recorder) -> dict[str, set[str]]:
    """Why healing was refused, by pattern."""
    raised = {row.t: row for row in rows(sink, "finding")}
    reasons: dict[str, set[str]] = {}
    for row in rows(sink, "heal"):
        if row.action == "refused":
            reasons.setdefault(raised[row.finding].pattern, set()).add(row.reason)
    return reasons


def test_an_early_answer_of_who_does_not_listen_is_put_off_until_the_work_is_done() -> None:
    """It comes back after longer and longer, and at last together with what was missing."""
    for seed in range(20):
        scene = the.early_termination(seed, heeds=False)
        result, sink = play(scene, setup(scene, seed))
        assert (result.outcome, result.answer) == ("submitted", scene.right)
        assert healed(sink)["ET", None, "reroute"] > 1 and result.notes == ()


def test_an_early_answer_of_who_leaves_meanwhile_is_accepted_as_it_is() -> None:
    """One that was put off can never come back to its submitter any more."""
    accepted = 0
    for tenth in range(20, 60):
        leaves_s = tenth / 10
        scene = the.early_termination(1, heeds=False, script=[(leaves_s, "ann")])
        result, sink = play(scene, setup(scene, 1))
        sent = {row.event for row in rows(sink, "redirect") if row.ts < leaves_s}
        back = {row.event for row in rows(sink, "deliver") if row.ts < leaves_s}
        if sent - back:
            accepted += 1
            assert (result.outcome, result.seconds) == ("submitted", leaves_s)
            assert "Take care of this work" in result.notes[-2]
            assert result.notes[-1].endswith("has left: it is taken as it is.")
        else:
            assert result.outcome == "submitted" or result.left.unconsumed
    assert accepted > 3


def test_an_early_answer_that_nobody_can_complete_is_accepted_as_it_is() -> None:
    """The second time nothing can move any more; the note says so, and what is missing."""
    for seed in range(20):
        scene = the.early_termination(seed, heeds=False, cyd=the.idle)
        result, sink = play(scene, setup(scene, seed))
        last = rows(sink, "heal")[-1]
        assert (result.outcome, last.action) == ("submitted", "inject")
        assert result.notes == (last.note,)
        assert "Not consumed by anybody yet: `e3`" in last.note
        assert last.note.endswith("It is accepted as it is.")
