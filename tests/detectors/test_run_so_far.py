"""The verdict on a run: what a reader learns who does not know the project."""

from __future__ import annotations

import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from dig.detectors import PATTERNS, standard
from dig.detectors.answers import FiveAnswers
from dig.detectors.five_answers import five_answers
from dig.detectors.interventions import STEPS
from dig.detectors.run_so_far import RunSoFar
from dig.detectors.watch import Watch
from dig.diagnosis.diagnosing import diagnose
from dig.graph.codec import decode
from dig.graph.graph import InteractionGraph
from dig.graph.records import Deliver, Finish, HealRow, Limits
from dig.tasks.run.execute import Execution, execute
from dig.tasks.run.team_run import TeamRun
from dig.tasks.simulated.profile import Profile
from dig.traces.journal.reader import read_records
from tests import failing
from tests.histories import arrive, deliver, emit, end, final, row, start, trace, turn
from tests.oracle import Row
from tests.traces.runs import store

STUCK = TeamRun(seed=668, method="dig", profile=Profile.of(["error=0"]))


def verdict(path: Path, *, watched: bool = False, **settings: Any) -> FiveAnswers:
    """The verdict on a stored run, whose findings may be found anew."""
    watch = Watch(standard())
    so_far = RunSoFar(watch.graph)
    for record in read_records(path):
        found = watch.feed(record)
        so_far(record, found if watched else ())
    return five_answers(so_far, **settings)


@pytest.fixture(scope="module")
def healed(tmp_path_factory: pytest.TempPathFactory) -> Execution:
    """A team that gets stuck, and submits too early, and is healed."""
    return execute(STUCK, tmp_path_factory.mktemp("runs"))


def test_the_failures_the_healing_and_the_answer_of_a_run_are_told(healed: Execution) -> None:
    """Patterns by name with their letters, with times and agents; the score with its scale."""
    told = dict(healed.verdict.lines())
    assert list(told) == ["verdict", "task", "ended", "wrong", "who", "monitor", "next", "cost"]
    assert told["verdict"].startswith(
        "Right answer after 46.0 s. On the way `agent-1` left 1 message lying from 1.6 s on and "
        "submitted too early; the monitor mended that."
    )
    assert told["task"].startswith("Count how often each value occurs")
    assert told["ended"].endswith("It counts all 10,000 elements right.")
    assert told["wrong"].startswith(
        "at 1.6 s agent-1 left 1 message lying -> at 30.0 s work was waiting, but nothing had moved"
    )
    assert "(agent-1): deadlock (DL)" in told["wrong"]
    assert " -> at 40.3 s an answer was submitted" in told["wrong"]
    assert told["who"].startswith(
        "agent-1: left 1 message lying from 1.6 s on and submitted too early; "
    )
    assert "a note to all 6 agents and at 40.3 s held the answer of agent-1" in told["monitor"]
    assert told["monitor"].endswith("That worked: an answer was accepted after it.")
    assert told["next"] == (
        f"Nothing must be done. No reason is recorded why `agent-1` let its work lie; the input of "
        f"that turn: digmon show {healed.directory} a1"
    )


def test_the_same_run_unwatched_is_told_as_one_without_an_answer(tmp_path: Path) -> None:
    """Nothing was done, nothing could go on, and no score is told."""
    told = dict(execute(replace(STUCK, method="mas"), tmp_path).verdict.lines())
    assert told["verdict"].startswith("Got stuck after 30.0 s: `agent-1` left 1 message lying")
    assert "There is no answer." in told["ended"]
    assert told["monitor"] == "It watched only, and changed nothing."


def test_a_verdict_names_no_ids_and_is_the_same_live_and_stored(healed: Execution) -> None:
    """Ids of events, activations and records mean nothing to a reader who sees no graph."""
    stored = verdict(healed.directory)
    assert stored == healed.result.verdict
    text = " ".join(text for label, text in healed.verdict.lines() if label != "next")
    assert re.findall(r"\b[ea]\d+\b|record", text) == []


def session(*parts: Row | list[Row]) -> list[Row]:
    return trace(*parts, row(9, "finish", outcome="stopped"), session=True)


def asked(ts: float, event: str, agent: str) -> list[Row]:
    return [emit(ts, event, None, agent), deliver(ts, event, agent)]


def test_a_session_is_told_by_what_happened_to_its_requests(tmp_path: Path) -> None:
    """Answered, ended by an error, or left without an answer."""
    good = [*turn(1, "v", "a", "f", p="consume"), final(1, "f", "v"), deliver(1, "f", None)]
    bad = end(2, "w", "g", q="consume") | {"error": "ValueError: no such city"}
    failed = [start(2, "w", "b", "q"), bad, final(2, "g", "w"), deliver(2, "g", None)]
    rows = session(
        *(asked(0, event, agent) for event, agent in [("p", "a"), ("q", "b"), ("r", "c")]),
        good,
        failed,
    )
    told = verdict(store(tmp_path / "s.dig.jsonl", rows))
    assert told.task.startswith("3 requests to a team of 3 agents")
    assert told.ended.startswith(
        "Of 3 requests 1 was answered, 1 was ended by an error and 1 was left without an answer."
    )
    assert told.wrong[0].says == "b failed: ValueError: no such city"


@pytest.mark.parametrize(
    ("error", "text"),
    [
        ("ValueError: no such city. Try Paris.", ": ValueError: no such city"),
        (f"ModelError: the key is {'long ' * 60}", f": ModelError: the key is{' long' * 19} ..."),
        ("x" * 400, f": {'x' * 120} ..."),
    ],
)
def test_an_error_is_cut_between_two_words(tmp_path: Path, error: str, text: str) -> None:
    """Three full stops stand behind a sentence that is not whole."""
    row = end(1, "v", q="delay") | {"error": error}
    rows = [*arrive(0, "q", None, "a"), start(1, "v", "a", "q"), row]
    told = verdict(store(tmp_path / "s.dig.jsonl", trace(*rows)))
    assert [step.says for step in told.wrong] == [f"a failed{text}"]


def test_a_session_without_a_request_has_a_verdict(tmp_path: Path) -> None:
    """A wrapped team may be closed before it was asked anything."""
    told = verdict(store(tmp_path / "s.dig.jsonl", session()))
    assert told.task == "0 requests to a team of 3 agents"
    assert told.ended.startswith("There was no request.")


def test_an_early_answer_is_told_when_requests_overlap(tmp_path: Path) -> None:
    """An answer to another request does not make it a whole one."""
    raised = {"pattern": "ET", "stage": None, "severity": "error"}
    evidence = {"unresolved": ["x"], "uncovered": []}
    rows = session(
        *(asked(0, event, agent) for event, agent in [("p", "a"), ("q", "b")]),
        [*turn(1, "v", "a", "f", p="consume"), final(1, "f", "v")],
        [row(1, "finding", subject={"event": "f"}, evidence=evidence, **raised)],
        [*turn(2, "w", "b", "g", q="consume"), final(2, "g", "w"), deliver(2, "g", None)],
        [deliver(3, "f", None)],
    )
    told = verdict(store(tmp_path / "s.dig.jsonl", rows))
    assert told.ended.startswith("Of 2 requests 1 was answered and 1 was answered, before all of")


def test_a_run_that_was_cut_off_is_told_as_one(healed: Execution, tmp_path: Path) -> None:
    """It has no end, and as yet no answer; that nothing was found says nothing of the rest."""
    lines = (healed.directory / "trace.dig.jsonl").read_text().splitlines(keepends=True)
    cut = tmp_path / "cut.dig.jsonl"
    cut.write_text("".join(lines[:60]))
    told = verdict(cut, state="cut off")
    assert "the run has no end (cut off)" in told.ended
    assert "There is no answer so far." in told.ended


def test_an_answer_that_lacks_work_is_told_as_such(tmp_path: Path) -> None:
    """It was accepted although the monitor saw that work is missing from it."""
    told = verdict(hasty(tmp_path), watched=True)
    assert "before all of its work was done" in told.ended
    assert told.wrong[0].us == 1_000_000 and told.wrong[0].says.endswith("early termination (ET)")
    assert [(one.agent, one.says) for one in told.who] == [
        ("a", "submitted too early"),
        ("b", "never ran, with 1 message in front of it"),
    ]
    assert "while 1 message was still in front of b" in told.wrong[0].says
    assert told.monitor == "It was not there: these findings were made after the run."
    assert (told.verdict, told.grade) == ("Early answer", "bad")
    assert told.ended.endswith("No one outside the team checked whether it is right.")


def hasty(folder: Path) -> Path:
    """A plain trace of a run that is submitted too early; it records no finding."""
    rows = trace(
        asked(0, "p", "a"),
        [start(0, "u", "a", "p"), end(0, "u", "q r", p="consume")],
        [emit(0, "q", "u", "a", "part"), emit(0, "r", "u", "b", "part")],
        [deliver(0, "q", "a"), deliver(0, "r", "b")],
        turn(1, "v", "a", "f", q="consume"),
        [final(1, "f", "v"), deliver(1, "f", None), row(2, "finish", outcome="submitted")],
    )
    return store(folder / "hasty.dig.jsonl", rows)


def test_findings_of_detectors_count_if_the_trace_has_none(tmp_path: Path) -> None:
    """An imported trace tells of no failure itself."""
    assert not verdict(hasty(tmp_path)).wrong
    assert verdict(hasty(tmp_path), watched=True).wrong


def test_a_private_verdict_has_none_of_the_words_of_agents(healed: Execution) -> None:
    """The task is told by its name."""
    told = verdict(healed.directory, private=True)
    assert told.task == "count-frequency (6 agents)"


def test_every_step_of_healing_says_plainly_what_was_done() -> None:
    """Once and several times, without the words of the graph."""
    for action in ("inject", "create", *STEPS):
        row = HealRow(9, 9, 7, action, "e1", ("ada",), "a note", "it stalled")
        so_far = RunSoFar()
        told = []
        for _ in range(2):
            so_far(row)
            told.append(five_answers(so_far, state="cut off").monitor)
        assert told[0] != told[1]
        for text in told:
            assert text.endswith(" That did not help: no answer came after it.")
            assert re.findall(r"e1|something else|another way", text) == []


def test_every_pattern_says_plainly_what_happened() -> None:
    """With thresholds that there are, and without the words of the graph."""
    for pattern in PATTERNS:
        said = pattern.plain.format_map(dict.fromkeys(asdict(Limits()), 7))
        assert re.findall(r"\b(event|activation|buffer|lineage|graph)s?\b|_", said) == []


def test_an_answer_counts_for_each_of_its_requests_and_notices_are_none(tmp_path: Path) -> None:
    """A further prompt in the middle of a turn has no answer of its own."""
    rows = session(
        [*asked(0, "p", "a"), *asked(0, "q", "a")],
        [*turn(1, "v", "a", "f", p="consume", q="consume"), final(1, "f", "v")],
        deliver(1, "f", None),
        arrive(1, "n", None, "a", "notice"),
        [*turn(2, "w", "a", "g", n="consume"), final(2, "g", "w"), deliver(2, "g", None)],
    )
    answers = verdict(store(tmp_path / "s.dig.jsonl", rows))
    assert (answers.verdict, answers.grade) == ("Answered", "good")
    assert answers.ended.startswith("Both requests were answered.")


def test_a_turn_that_was_called_off_counts_as_long_as_its_work_is_left(tmp_path: Path) -> None:
    """A person who interrupts an agent, and lets it go on, has nothing to ask again."""
    stop = end(1, "u", p="delay") | {"error": "Interrupted", "cancelled": True}
    rows = [*asked(0, "p", "a"), start(0, "u", "a", "p"), stop]
    answers = verdict(store(tmp_path / "left.dig.jsonl", session(rows)))
    assert answers.next.startswith("Ask `a` again") and answers.wrong
    rows += [*turn(1, "v", "a", "f", p="consume"), final(1, "f", "v"), deliver(1, "f", None)]
    answers = verdict(store(tmp_path / "gone.dig.jsonl", session(rows)))
    assert answers.ended.endswith("called off at 1.0 s (Interrupted); its work went on.")
    assert (answers.wrong, answers.who, answers.command) == ((), (), "")


def test_a_request_that_its_caller_cancelled_names_who_was_working(tmp_path: Path) -> None:
    """The turns that only waited for it are not named; the request was not ended by an error."""
    off = {"error": "CancelledError", "cancelled": True}
    rows = session(
        [
            *asked(0, "p", "a"),
            *turn(0, "u", "a", "q", p="consume"),
            emit(0, "q", "u", "b"),
            deliver(0, "q", "b"),
        ],
        [start(0, "v", "b", "q"), end(8, "v", "n", q="consume") | off],
        [emit(8, "n", "v", "a", "notice"), deliver(8, "n", "a"), start(8, "w", "a", "n")],
        [end(8, "w", "f", n="consume") | off, final(8, "f", "w"), deliver(8, "f", None)],
    )
    answers = verdict(store(tmp_path / "s.dig.jsonl", rows))
    assert answers.headline == (
        "Cancelled by the caller at 8.0 s: `b` was called off after 8.0 s of work."
    )
    assert "the request was cancelled by the caller." in answers.ended
    assert [agent.agent for agent in answers.who] == ["b"]


def test_a_handoff_that_the_framework_dropped_is_told_by_both_names(tmp_path: Path) -> None:
    """The agent that answers did nothing wrong, and nobody sees the id of the message."""
    dropped = emit(0, "r", "u", "", "handoff") | {"payload": {"handoff": "c"}}
    rows = session(
        [*asked(0, "p", "a"), *turn(0, "u", "a", "q r", p="consume")],
        [emit(0, "q", "u", "b", "handoff"), dropped, deliver(0, "q", "b")],
        [*turn(1, "v", "b", "f", q="consume"), final(1, "f", "v"), deliver(1, "f", None)],
    )
    path = store(tmp_path / "s.dig.jsonl", rows)
    answers = verdict(path, watched=True)
    told = "`a` handed over to c, too, which was dropped"
    assert answers.headline == f"Early answer after 1.0 s: {told}."
    evidence = [row.says for each in diagnose(path).candidates[:1] for row in each.evidence]
    assert evidence[0] == told.replace("`", "")


WRONG = {"valid": True, "complete": True, "rmse": 40.0, "wrong": 0.3, "says": "Of 9, 3 are wrong."}


def accepted(*parts: Row | list[Row], after: Row | None = None) -> list[Row]:
    """A run whose agent answers the request."""
    answer = [*turn(1, "v", "a", "f", p="consume"), final(1, "f", "v"), deliver(1, "f", None)]
    later = [after] if after else []
    return trace(asked(0, "p", "a"), *parts, answer, later, row(2, "finish", outcome="submitted"))


def test_a_wrong_answer_without_a_finding_leads_to_a_goal(tmp_path: Path) -> None:
    """A diagnosis finds nothing to explain unless it is told that the answer is wrong."""
    answers = verdict(store(tmp_path / "w.dig.jsonl", accepted()), score=WRONG)
    lines = dict(answers.lines())
    assert answers.headline == "Wrong answer after 2.0 s. Of 9, 3 are wrong."
    assert lines["wrong"] == "No pattern of failure was found."
    assert lines["monitor"] == "It watched only, and changed nothing."
    assert answers.command == "digmon why RUN --good score.rmse==0"


def test_a_limit_of_the_budget_is_told_in_all_answers(tmp_path: Path) -> None:
    """It is why the answer is partial; whether that is bad, the score says."""
    limit = {"limit": "turns", "spent": 14, "most": 14, "event": "p"}
    before, after = (
        row(1, "incident", what="budget", detail=limit | {"stage": stage})
        for stage in ("stopped", "partial")
    )
    path = store(tmp_path / "b.dig.jsonl", accepted(before, after=after))
    answers = verdict(path, score=WRONG | {"complete": False})
    assert (answers.verdict, answers.grade) == ("Partial answer", "bad")
    assert [step.says for step in answers.wrong] == [
        "the team was stopped at 14 turns; `b`, `c` never ran"
    ]
    assert answers.monitor.startswith(
        "It stopped the team at 14 turns, and gave `a` one turn more,"
    )
    assert (
        answers.next
        == "Raise `turns = 14` of the budget (`[budget]` or `budget=`), or see what `a` did"
    )
    assert verdict(path, score=WRONG | {"rmse": 0, "complete": None}).grade == "inexact"
    right = verdict(path, score=WRONG | {"rmse": 0})
    assert (right.verdict, right.grade) == ("Right answer", "good")
    assert right.monitor.endswith("That worked: the answer is about all parts.")
    before["detail"] |= {"spent": 16}
    more = verdict(store(tmp_path / "m.dig.jsonl", accepted(before, after=after)), score=WRONG)
    assert [step.says for step in more.wrong] == [
        "the team was stopped at 14 turns (16 turns spent)"
    ]
    # What is counted wrong in a whole answer is nobody's lack of turns.
    assert verdict(path, score=WRONG).command == "digmon why RUN --good score.rmse==0"


def test_what_failed_on_the_way_is_not_the_cause_of_a_wrong_count(tmp_path: Path) -> None:
    """The turn was tried again, and the answer covers all."""
    bad = end(1, "u", p="delay") | {"error": "ValueError: once"}
    path = store(tmp_path / "m.dig.jsonl", accepted(start(0, "u", "a", "p"), bad))
    headline = verdict(path, score=WRONG).headline
    assert headline == (
        "Wrong answer after 2.0 s. Of 9, 3 are wrong. Besides, `a` failed 1 of 2 turns; its work "
        "went on."
    )


def test_healing_before_an_answer_that_is_whole_but_wrong_did_not_fail() -> None:
    """It mended what it found."""
    so_far = RunSoFar()
    so_far(HealRow(9, 9, 7, "inject", "e1", ("ada",), "a note", "it stalled"))
    so_far.came_after = True
    so_far.finish = Finish(10, 10, "submitted")
    so_far.counts["answered"] = 1
    for score, text in [
        (WRONG, "What it found was mended; the answer is wrong for another reason."),
        (
            WRONG | {"complete": False},
            "That was not enough: the answer that was accepted lacks a part.",
        ),
    ]:
        assert five_answers(so_far, score=score).monitor.endswith(text)


def test_an_imported_run_was_read_by_a_monitor_that_was_not_there(tmp_path: Path) -> None:
    """Also if nothing was found."""
    told = [
        row(0, "incident", what="import", detail=detail)
        for detail in ("read from a file", {"not_looked_at": ["MC", "DL"], "because": "it is so"})
    ]
    answers = verdict(store(tmp_path / "i.dig.jsonl", accepted(told)))
    unseen = "which cannot show missing termination (MC), deadlock (DL)"
    assert answers.monitor == f"It was not there: this was read after the run, {unseen}."


def test_a_turn_without_an_end_is_told_of_a_session_that_is_over(tmp_path: Path) -> None:
    """Its agent may be why the request was not answered."""
    rows = session(asked(0, "p", "a"), start(1, "v", "a", "p"))
    answers = verdict(store(tmp_path / "u.dig.jsonl", rows))
    assert [(each.agent, each.says) for each in answers.who] == [("a", "did not end its turn")]


def test_a_dead_process_waits_for_nobody(tmp_path: Path) -> None:
    """The end of the process is told, and who waited then; an answer before is no good end."""
    path = store(tmp_path / "w.dig.jsonl", failing.waiting())
    answers = verdict(path, state="cut off")
    assert (answers.verdict, answers.grade) == ("Cut off", "bad")
    assert answers.headline == (
        "Cut off at 3.5 s or later: `buyer` waited for a person or for another system; that is the "
        "last record."
    )
    rows = [*asked(0, "p", "a"), *turn(1, "v", "a", "f", p="consume"), final(1, "f", "v")]
    whole = trace(rows, deliver(1, "f", None), session=True)
    answers = verdict(store(tmp_path / "c.dig.jsonl", whole), state="cut off")
    assert (answers.verdict, answers.grade) == ("Cut off", "inexact")
    assert answers.next == "See where it stopped"


def test_a_note_beside_the_accepted_answer_mended_nothing() -> None:
    """It came with the answer, too late for it; an answer that came later took it into account."""
    for event, text in [("f", "That was not enough"), ("e", "What it found was mended")]:
        so_far = RunSoFar()
        so_far(HealRow(9, 9, 7, "inject", event, ("ada",), "a note", "too early"))
        so_far(Deliver(10, 10, "f", None))
        so_far(Finish(11, 11, "submitted"))
        assert text in five_answers(so_far, score=WRONG).monitor


def test_an_answer_with_the_note_beside_it_came_all_the_same() -> None:
    """A session that ends has no answer of its own, but its requests have."""
    so_far = RunSoFar()
    so_far(HealRow(9, 9, 7, "inject", "f", ("ada",), "a note", "too early"))
    so_far(Deliver(10, 10, "f", None))
    so_far(Finish(11, 11, "stopped"))
    assert five_answers(so_far).monitor.endswith("the answer that was accepted is bad.")
    so_far(HealRow(12, 12, 7, "inject", "g", ("ada",), "a note", "too early"))
    assert five_answers(so_far).monitor.endswith("no answer came after it.")


def test_an_agent_that_hands_on_and_on_has_the_number_of_all_that_it_handed_on(
    tmp_path: Path,
) -> None:
    """Findings come at doublings only; and no limit is high enough for a circle."""
    circle = [
        part
        for n in range(26)
        for agent, other in [("a", "b") if n % 2 == 0 else ("b", "a")]
        for part in (*turn(n / 10, f"v{n}", agent, p=(other,)), deliver(n / 10, "p", other))
    ]
    failed = failing.request_failed(5, "limit", "p", None, "LimitError: 26 of 26")[:1]
    path = store(tmp_path / "c.dig.jsonl", session(asked(0, "p", "a"), circle, failed))
    told = verdict(path, watched=True)
    says = [agent.says for agent in told.who]
    assert says == ["handed work on 13 times", "handed work on 13 times", "never ran"]
    assert told.next == "Let `a` and `b` finish what they hand on; a higher limit would not help"
    assert told.command == "digmon show RUN p"


def test_the_next_step_about_a_wrong_count_is_its_cause(tmp_path: Path) -> None:
    """Also if a turn failed besides, which no count depends on."""
    bad = end(1, "u", p="delay") | {"error": "ValueError: once"}
    path = store(tmp_path / "m.dig.jsonl", accepted(start(0, "u", "a", "p"), bad))
    answers = verdict(path, score=WRONG)
    assert answers.command == "digmon why RUN --good score.rmse==0"
    (agent,) = answers.who
    assert (agent.says, agent.is_at_fault) == (
        "failed 1 of 2 turns; its work went on",
        False,
    )


def test_an_answer_names_the_agents_that_miscounted(tmp_path: Path) -> None:
    """The agent with the largest mistake first; a part that is not covered comes before."""
    rows = [
        {"agent": agent, "activation": "v", "t": 3, "us": 500_000, "says": f"left out {n} of 5"}
        for agent, n in [("b", 4), ("`c`\n", 2)]
    ]
    path = store(tmp_path / "w.dig.jsonl", accepted())
    answers = verdict(path, score=WRONG | {"mistakes": rows})
    text = "Wrong answer after 2.0 s. Of 9, 3 are wrong: `b` and ``c`` miscounted."
    assert answers.headline == text
    assert [step.says for step in answers.wrong] == [
        "from here on `b` and ``c`` miscounted, the most: b left out 4 of 5"
    ]
    assert [agent.says for agent in answers.who] == ["left out 4 of 5", "left out 2 of 5"]
    for odd in ("x", [7], [{"says": "x"}], None):
        assert verdict(path, score=WRONG | {"mistakes": odd}).who == ()


def test_the_largest_count_is_to_be_looked_at(tmp_path: Path) -> None:
    """The result with the largest miscount is to be looked at, and not the first turn."""
    rows = [
        {"agent": agent, "activation": "v", "t": 3, "us": 500_000, "says": f"left out {n} of 5",
         "share": n / 10, "counts": {f"e{n}": f"counts {5 - n} of 5 elements"}}
        for agent, n in [("b", 4), ("c", 3)]
    ]  # fmt: skip
    path = store(tmp_path / "w.dig.jsonl", accepted())
    answers = verdict(path, score=WRONG | {"mistakes": rows})
    assert answers.headline.endswith(": `b` and `c` miscounted.")
    assert answers.next.endswith("The largest miscount: `b` counts 1 of 5 elements")
    assert answers.command == "digmon show RUN e4"


def test_a_part_that_the_monitor_gave_out_once_more_did_harm(tmp_path: Path) -> None:
    """The steps to a double count are told in their order, and which of them was healing."""
    steps = [
        {"t": 1, "us": 100_000, "says": "a threw [0, 5] away", "is_healing": False},
        {"t": 2, "us": 200_000, "says": "the monitor gave [0, 5] to b", "is_healing": True},
    ]
    mistake = {"agent": "b", "activation": "v", "t": 3, "us": 500_000, "says": "added it twice",
               "origins": [*reversed(steps), 7]}  # fmt: skip
    told = row(0.2, "heal", finding=3, action="redeliver", event="p", to=["b"], note="n")
    found = row(0.2, "finding", pattern="OE", stage=None, severity="error",
                subject={"event": "p"}, evidence={"cause": "discarded"})  # fmt: skip
    path = store(tmp_path / "w.dig.jsonl", accepted(found, told))
    answers = verdict(path, score=WRONG | {"mistakes": [mistake]})
    says = [step.says for step in answers.wrong]
    assert [*says[:2], says[-1]] == ["a threw [0, 5] away", "the monitor gave [0, 5] to b",
                                     "b added it twice"]  # fmt: skip
    assert "That did harm: at 0.2 s the monitor gave [0, 5] to b" in answers.monitor
    assert answers.helped is False
    again = steps[0] | {"t": 2, "says": "a gave [0, 5] to c", "is_healing": True}
    other = mistake | {"agent": "c", "origins": [*steps, again]}
    answers = verdict(path, score=WRONG | {"mistakes": [mistake, other]})
    assert [step.says for step in answers.wrong][:3] == [
        "a threw [0, 5] away", "a gave [0, 5] to c", "the monitor gave [0, 5] to b"
    ]  # fmt: skip


STALLS = [
    row(0.1 * n, "finding", pattern="STALL", stage=None, severity="error",
        subject={"activation": f"gone{n}"}, evidence={"inputs": []})
    for n in (1, 2)
]  # fmt: skip
TOLD = row(0.3, "heal", finding=3, action="redeliver", event="p", to=["a"], note="n")


def test_an_error_that_was_not_mended_is_not_told_as_mended(tmp_path: Path) -> None:
    """A check counts the same."""
    run = accepted(STALLS, TOLD)
    answers = verdict(store(tmp_path / "w.dig.jsonl", run), score=WRONG)
    assert "By its own account none of the 2 errors was mended." in answers.monitor
    assert answers.helped is False


def test_errors_that_are_not_followed_are_not_counted_as_unmended_or_mended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the errors beyond a number, and of a session ahead of its records, nothing is known."""
    monkeypatch.setattr("dig.detectors.tallies.MOST_ERRORS", 1)
    run = accepted(STALLS, TOLD)
    answers = verdict(store(tmp_path / "w.dig.jsonl", run), score=WRONG)
    assert "By its own account not all errors are known to be mended." in answers.monitor
    records = [decode(line) for line in trace(STALLS[0], session=True)]
    graph = InteractionGraph()
    for record in records:
        graph.apply(record)
    so_far = RunSoFar(graph)
    so_far.write(records)
    assert so_far.errors == (1, None)


def test_the_question_of_a_wait_is_quoted(tmp_path: Path) -> None:
    """With the way to answer; not where contents are private."""
    rows = failing.waiting()
    wait = next(each for each in rows if each["kind"] == "incident")
    wait["detail"] |= {"asks": "May I pay 424 EUR?", "answer": "call resume()"}
    path = store(tmp_path / "w.dig.jsonl", rows)
    answers = verdict(path)
    assert "`buyer` waits for a person to answer “May I pay 424 EUR?”." in answers.headline
    text = "Answer `buyer`, which asks “May I pay 424 EUR?” (call resume()); its turn"
    assert answers.next == text
    private = verdict(path, private=True)
    assert "424" not in str(private)
    assert private.next.endswith("its question is left out, so see its input")
    cut_off = verdict(path, state="cut off")
    assert cut_off.next.startswith("Ask again, and answer `buyer`")
    (step,) = cut_off.wrong
    assert (step.us, step.says.endswith("; that is the last record")) == (3_500_000, True)


def test_a_waiting_run_says_since_when_and_for_what(tmp_path: Path) -> None:
    """By the clock, if the beginning is known; a queue is no person."""
    path = store(tmp_path / "w.dig.jsonl", failing.waiting())
    answers = verdict(path, date=lambda us: f"2026-01-02T10:00:0{us // 1_000_000}+00:00")
    assert answers.headline == (
        "Waits since 2026-01-02 10:00 UTC: `buyer` waits for a person or for another system."
    )
    assert [(agent.agent, agent.activation) for agent in answers.who] == [("buyer", "a1")]
    assert "since 2.0 s after its beginning" in verdict(path).headline


def test_a_request_that_failed_is_not_answered_by_the_next_answer(tmp_path: Path) -> None:
    """An agent with a memory takes part in all of its answers, but it was asked another thing."""
    failed = row(2, "incident", what="request_failed", detail={"how": "error", "event": "p"})
    answer = [*turn(4, "w", "a", "f", q="consume"), final(4, "f", "w"), deliver(4, "f", None)]
    broken = {**end(1, "v", "", p="consume"), "error": "ValueError: no"}
    parts: list[Row | list[Row]] = [
        asked(0, "p", "a"),
        start(1, "v", "a", "p"),
        broken,
        failed,
        asked(3, "q", "a"),
        answer,
    ]
    rows = trace(*parts, row(9, "finish", outcome="stopped"), session=True, memory=True)
    answers = verdict(store(tmp_path / "m.dig.jsonl", rows))
    assert answers.verdict == "1 of 2 answered"
    assert answers.ended.startswith("Of 2 requests 1 was answered and 1 was ended by an error.")
    assert (answers.next, answers.command) == ("Mend `a`: see its failed turn", "digmon show RUN v")


def test_the_agents_at_work_are_named_where_a_trace_breaks_off(tmp_path: Path) -> None:
    """The next step leads to their turn."""
    rows = trace(asked(0, "p", "a"), start(1, "v", "a", "p"), session=True)
    answers = verdict(store(tmp_path / "k.dig.jsonl", rows), state="cut off")
    ending = "when and why the process ended is not recorded; `a` was at work since 1.0 s."
    assert answers.headline.endswith(ending)
    who = [(agent.agent, agent.says) for agent in answers.who]
    assert who == [("a", "was at work since 1.0 s")]
    assert answers.next.startswith("See how the process ended (its exit code and its log)")
    assert answers.command == "digmon show RUN v"


def test_where_a_trace_breaks_off_callers_and_answers_are_named(tmp_path: Path) -> None:
    """The caller has no turn in progress: it waits, and has one of two answers."""
    rows = trace(
        asked(0, "p", "a"),
        [*turn(1, "v", "a", "q r", p="consume")],
        [emit(1, "q", "v", "b"), emit(1, "r", "v", "c")],
        [deliver(1, "q", "b"), deliver(1, "r", "c")],
        [*turn(2, "w", "c", "s", r="consume")],
        [*arrive(2, "s", "w", "a"), start(3, "x", "b", "q")],
        session=True,
    )
    answers = verdict(store(tmp_path / "k.dig.jsonl", rows), state="cut off")
    says = "`b` was at work since 3.0 s, `a` waited for it, `c` had answered"
    assert answers.wrong[-1].says.endswith(says)


def test_work_lost_with_an_agent_that_left_is_to_be_given_to_another(tmp_path: Path) -> None:
    """To wait for it would be in vain."""
    found = row(0.6, "finding", pattern="ET", stage=None, severity="error",
                subject={"event": "f"},
                evidence={"unresolved": [], "uncovered": ["q", "r"]})  # fmt: skip
    lost = accepted(
        turn(0.2, "u", "a", "q r", p="delay"),
        [emit(0.2, "q", "u", "b"), emit(0.2, "r", "u", "b")],
        [deliver(0.2, "q", "b"), row(0.5, "leave", agent="b"), found],
    )
    answers = verdict(store(tmp_path / "l.dig.jsonl", lost), score=WRONG | {"complete": False})
    says = "without the work on 2 messages of a (they were lost when b left)"
    assert any(says in step.says for step in answers.wrong)
    assert answers.next.startswith("Give the 2 messages that `b` had when it left to another agent")


def test_an_agent_that_left_has_a_part_in_what_went_wrong(tmp_path: Path) -> None:
    """And a fault that was put in on purpose is called so."""
    leave = row(0.5, "leave", agent="b")
    found = row(0.6, "finding", pattern="ET", stage=None, severity="error",
                subject={"event": "f"}, evidence={"unresolved": [], "uncovered": []})  # fmt: skip
    path = store(tmp_path / "l.dig.jsonl", accepted(leave, found))
    answers = verdict(path, injections=[{"agent": "b"}, 7])
    text = "left the team (a fault put in on purpose)"
    assert f"b {text}" in [step.says for step in answers.wrong]
    assert ("b", f"{text} at 0.5 s") in [(agent.agent, agent.says) for agent in answers.who]
