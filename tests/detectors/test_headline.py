"""The headline of a run that failed: one sentence, the same in every place that reports the run."""

from __future__ import annotations

from typing import Any

import pytest

from dig.detectors.answers import FiveAnswers
from dig.detectors.five_answers import five_answers
from dig.detectors.headline import MOST_REMEMBERED, Headlines
from dig.detectors.run_so_far import RunSoFar
from dig.graph.codec import decode
from dig.graph.graph import InteractionGraph
from dig.graph.records import Record
from tests.failing import (
    ERROR,
    FAILED,
    PARTIAL,
    TEAM,
    asked,
    at_limit,
    ended,
    failed,
    partial,
    request_failed,
    sent,
)  # fmt: skip
from tests.histories import deliver, final, row, start, trace
from tests.oracle import Row


def followed(rows: list[Row]) -> RunSoFar:
    graph = InteractionGraph()
    so_far = RunSoFar(graph)
    for record in map(decode, rows):
        graph.apply(record)
        so_far(record)
    return so_far


def told(rows: list[Row], **settings: Any) -> FiveAnswers:
    return five_answers(followed(rows), **settings)


def headline(rows: list[Row], *, private: bool = False) -> str:
    found = followed(rows).headline
    return "" if found is None else found.private if private else found.says


def test_a_failed_request_names_who_raised_what_when_and_who_never_ran() -> None:
    """Not the agent that passed it on, nor the one that was called off."""
    assert headline(failed()) == FAILED


def test_the_headline_comes_first_and_nothing_repeats_it() -> None:
    """The finding behind it is no step of its own."""
    lines = told(failed()).lines()
    assert lines[0] == ("verdict", f"Failed: {FAILED}.")
    assert "FAIL" not in str(lines)
    who = [(one.agent, one.says) for one in told(failed()).who]
    assert who == [
        ("hotels", "failed"),
        ("flights", "was called off after 0.1 s of work"),
        ("writer", "never ran"),
    ]
    assert told(partial()).verdict == "Incomplete answer"


def test_an_activation_that_passes_an_error_on_leads_to_the_one_that_raised_it() -> None:
    """A host may name the caller, which it saw last."""
    rows = trace(asked(), request_failed(0.2, "error", "p", "a6", ERROR), agents=TEAM)
    assert headline(rows) == FAILED


def test_without_an_activation_the_error_is_told_alone() -> None:
    rows = trace(asked(), request_failed(0.2, "error", "p", None, ERROR), agents=TEAM)
    error = "ValueError: the hotel service answered 503"
    assert headline(rows) == f"the run ended with an error: {error}, at 0.2 s"


def test_a_limit_is_told_with_the_turns_and_their_agents() -> None:
    assert headline(at_limit()) == (
        "the run ended at a limit of its framework: GraphRecursionError: Recursion limit of 12 "
        "reached, after 4 turns of `writer` and `critic`"
    )


def test_a_long_error_is_cut_between_two_words() -> None:
    """Three full stops stand behind words that are not all."""
    error = f"WorkflowRuntimeError: raise the limit {'of iterations ' * 20}"
    ending = f"WorkflowRuntimeError: raise the limit{' of iterations' * 5} of ..., after 4 turns"
    assert ending in headline(at_limit(error=error))


def test_turns_that_are_model_calls_do_not_contradict_ours() -> None:
    """OpenAI Agents counts the calls of a model by `max_turns`."""
    text = headline(at_limit(error="MaxTurnsExceeded: Max turns (6) exceeded"))
    assert "Max turns (6) exceeded, which counts model calls, after 4 turns of" in text


@pytest.mark.parametrize(("error", "number"), [("Maximum number of turns 4 reached.", 4), ("?", 5)])
def test_a_manager_that_only_ends_a_chat_is_no_agent_of_the_team(error: str, number: int) -> None:
    """It stands in no roster, and its turn is called off with the words of the limit."""
    limit = "Maximum number of turns 4 reached."
    rows = at_limit(error=limit)
    at = next(t for t, record in enumerate(rows) if record["kind"] == "incident")
    last = ended(60, "m", "", "m4", error=error, cancelled=True)
    rows[0]["session"] = True
    joined, sends = row(4, "join", agent="Manager"), sent(4, "m4", "a3", "Manager")
    begin = start(60, "m", "Manager", "m4")
    rows[at - 3 : at] = [joined, rows[at - 3], *sends, begin, last]
    rows = [{**record, "t": t} for t, record in enumerate(rows)]
    names = "`writer` and `critic`" if number == 4 else "`writer`, `critic` and `Manager`"
    text = f"reached, after {number} turns of {names}"
    assert headline(rows).endswith(text)
    answers = told(rows)
    assert (answers.task, answers.cost[:7]) == (
        f"1 request to a team of {number - 2} agents",
        f"{number} turns",
    )


def test_a_budget_is_no_limit_of_the_framework() -> None:
    """Its sentence is whole; activations, which are no turns of the budget, are not counted."""
    stop = "the request was stopped at 20 turns, and `writer` handed back no answer"
    rows = at_limit(error=f"BudgetExceeded: {stop}")
    assert "of its framework" in headline(rows)  # the trace itself has to say it
    limit = {"event": "p", "stage": "stopped", "limit": "turns", "spent": 20, "most": 20}
    at = next(t for t, record in enumerate(rows) if record["kind"] == "incident")
    rows.insert(at, row(60, "incident", what="budget", detail=limit))
    rows = [{**record, "t": t} for t, record in enumerate(rows)]
    assert headline(rows) == f"{stop}, at 60.0 s"
    assert headline(rows, private=True) == ("the run ended at the limit of its budget, at 60.0 s")
    never_ran = row(60, "incident", what="never ran", detail={"agent": "critic", "events": ["m5"]})
    last = [start(60, "a4", "writer", "m4"), ended(60, "a4", "m5", "m4")]
    rows[at + 1 : at + 1] = [*last, *sent(60, "m5", "a4", "critic"), never_ran]
    rows = [{**record, "t": t} for t, record in enumerate(rows)]
    assert headline(rows) == f"{stop}, but asked `critic` again, at 60.0 s"


def test_a_time_limit_is_told_with_the_agents_at_work() -> None:
    assert headline(at_limit("timeout")) == (
        "the run was out of time after 60.0 s; `writer` was still working"
    )


def test_an_answer_without_the_work_of_an_agent_is_the_headline() -> None:
    assert headline(partial()) == PARTIAL


def test_an_answer_that_was_sent_back_is_no_headline() -> None:
    """Only what was accepted can lack work."""
    rows = [one for one in partial() if one["kind"] != "finish" and one.get("to", 0) is not None]
    assert headline(rows) == ""


def test_an_error_that_stands_is_worse_than_an_answer_that_lacks_work() -> None:
    """Nothing is said in the headline, since the failure below it says more."""
    lost = row(1, "finding", pattern="OE", stage=None, severity="error", subject={"event": "x"},
               evidence={"cause": "left"})  # fmt: skip
    rows = partial()
    at = next(t for t, one in enumerate(rows) if one["kind"] == "finding")
    rows = [{**one, "t": t} for t, one in enumerate([*rows[:at], lost, *rows[at:]])]
    assert headline(rows) == ""
    assert "orphaned event (OE)" in str(told(rows).wrong)


def test_a_silenced_failure_is_no_headline() -> None:
    rows = failed()
    for one in rows:
        if one.get("stage") == "request":
            one["silenced"] = "it is known"
    assert headline(rows) == ""


def test_a_request_that_is_answered_after_all_is_no_headline() -> None:
    """In a session, an answer to another request changes nothing about it."""
    again = [
        *sent(1, "again", None, "writer"),
        start(1, "b1", "writer", "w again"),
        ended(1, "b1", "f", "again"),
        final(1, "f", "b1"),
        deliver(1, "f", None),
    ]
    first = [asked(), request_failed(0.2, "error", "p", "a4", ERROR)]
    assert headline(trace(*first, again, agents=TEAM, session=True)) == FAILED
    again[3] = ended(1, "b1", "f", "again", "w")
    assert headline(trace(*first, again, agents=TEAM, session=True)) == ""


def test_in_a_session_only_what_belongs_to_the_request_counts() -> None:
    """The writer ran for another request, and that one took longer."""
    other = [*sent(0, "q", None, "writer"), start(0, "b1", "writer", "q"), ended(0, "b1", "", "q")]
    rows = trace(other, asked(), request_failed(0.2, "error", "p", "a4", ERROR), agents=TEAM,
                 session=True)  # fmt: skip
    assert headline(rows) == FAILED


@pytest.mark.parametrize(
    ("how", "state"),
    [("error", "ended by an error"), ("limit", "left without an answer")],
)
def test_a_session_counts_a_request_that_ended_by_an_error(how: str, state: str) -> None:
    rows = trace(sent(0, "p", None, "a"), request_failed(1, how, "p"), session=True)
    assert followed(rows).requests == {state: 1}


def test_private_headlines_keep_the_words_of_errors_back() -> None:
    """Where contents are not to be told, the agents and the time are."""
    assert headline(failed(), private=True) == (
        "`hotels` ended with an error, at 0.2 s; `writer` never ran"
    )
    assert "503" not in str(told(failed(), private=True))
    assert "route" not in str(told(partial(), private=True))


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (ERROR, "ValueError", "the hotel service answered 503. Try it later"),
        ("httpx.ReadTimeout", "httpx.ReadTimeout", ""),
        ("the model is gone: forever", "", "the model is gone: forever"),
    ],
)
def test_an_error_is_a_type_and_a_message(error: str, kind: str, message: str) -> None:
    found = followed(failed(error)).headline
    assert found is not None
    assert found.exception == (kind, message)
    assert ("raised" in found.says) is bool(kind)


HOSTILE = "::error::\n\x1b[31m`x"


def test_hostile_names_and_errors_stay_on_one_safe_line() -> None:
    """No control characters, no line of a workflow command, and a bounded length."""
    rows = failed("::warning::\n" + "x" * 10_000)
    text = str(rows).replace("'hotels'", repr(HOSTILE))
    found = headline(eval(text))
    assert found.isprintable()
    assert not found.startswith("::")
    assert len(found) < 400


@pytest.mark.parametrize("evidence", [{}, {"failed": 3}, {"activation": []}, None, "x"])
def test_a_finding_of_another_shape_breaks_nothing(evidence: Any) -> None:
    """A user's own detector may use the name of the pattern."""
    rows = failed()
    for one in rows:
        if one.get("stage") == "request":
            one |= {"evidence": evidence, "subject": evidence}
    assert headline(rows).partition(" ")[0] in ("", "the")


def test_no_more_errors_are_remembered_than_can_be_told() -> None:
    """A session may go on for ever."""
    headlines, graph = Headlines(), InteractionGraph()
    for record in map(decode, failed()):
        graph.apply(record)
        headlines.look(record)
    made = [made_of(number) for number in range(4 * MOST_REMEMBERED + 4)]
    for record in made:
        headlines.look(record)
    assert sizes(headlines) == [MOST_REMEMBERED] * 5


def made_of(number: int) -> Record:
    never_ran = {"agent": f"a{number}", "events": [f"e{number}"], "awaited": ["b"]}
    stopped = {"stage": "stopped", "event": f"e{number}"}
    kinds = (
        ended(1, f"v{number}", error="x"),
        sent(1, f"e{number}", None, "a")[0],
        {"ts": 1, "kind": "incident", "what": "never ran", "detail": never_ran},
        {"ts": 1, "kind": "incident", "what": "budget", "detail": stopped},
    )
    return decode({"t": number, **kinds[number % len(kinds)]})


def sizes(headlines: Headlines) -> list[int]:
    return [len(kept) for kept in vars(headlines).values() if not isinstance(kept, str)]


def test_an_agent_whose_work_was_taken_back_never_ran() -> None:
    """A host that takes back what was for an agent says so, and the headline names the agent."""
    rows = failed()
    at = next(n for n, row in enumerate(rows) if row.get("what") == "request_failed")
    detail = {"agent": "editor#2", "events": [rows[1]["event"]]}
    rows.insert(at, {**rows[at], "what": "never ran", "detail": detail})
    rows = [{**row, "t": t} for t, row in enumerate(rows)]
    assert "`editor`" in headline(rows) and "never ran" in headline(rows)
