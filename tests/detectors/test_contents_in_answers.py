"""The five answers tell contents in place of ids, and the cause before its effect."""

from __future__ import annotations

from pathlib import Path

import pytest

from dig.detectors.message_words import goal_text, words_text
from dig.detectors.run_so_far import RunSoFar
from dig.graph.codec import decode
from dig.graph.graph import InteractionGraph
from tests import failing
from tests.histories import arrive, deliver, emit, end, final, row, start, trace, turn
from tests.oracle import Row
from tests.traces.runs import store

from .test_run_so_far import asked, session, verdict

OFF = {"error": "CancelledError", "cancelled": True}


def said(rows: list[Row], **words: str) -> list[Row]:
    """The rows, with the payloads of some events."""
    payloads = {event: {"payload": payload} for event, payload in words.items()}
    emits = [each["kind"] == "emit" for each in rows]
    return [
        each | payloads.get(each["event"], {}) if is_emit else each
        for each, is_emit in zip(rows, emits, strict=True)
    ]


def answered(ts: float, activation: str, agent: str, event: str, request: str) -> list[Row]:
    """An agent that answers a request by itself."""
    work = turn(ts, activation, agent, event, **{request: "consume"})
    return [*work, final(ts, event, activation), deliver(ts, event, None)]


def failure() -> list[Row]:
    """A caller, its agent that fails, and a request that is answered."""
    error = "KeyError: no such shelf"
    rows = [
        *asked(0, "p", "a"), *turn(0, "u", "a", "q", p="consume"), *arrive(0, "q", "u", "b"),
        start(1, "v", "b", "q"), end(2, "v", q="consume") | {"error": error},
        *failing.request_failed(2, "error", "p", "v", error),
        *asked(3, "r", "c"), *answered(4, "w", "c", "f", "r"),
    ]  # fmt: skip
    return said(session(rows), p="Are there skis?", q="How many skis?", r="Is it open?", f="Yes")


def test_a_failed_turn_is_told_with_what_it_was_given_and_by_whom(tmp_path: Path) -> None:
    """A request without an answer is named by its words, also where others were answered."""
    answers = verdict(store(tmp_path / "f.dig.jsonl", failure()))
    assert answers.headline.startswith("1 of 2 answered: `b` raised KeyError: no such shelf, at 2")
    assert answers.headline.endswith("“Are there skis?” has no answer.")
    (step,) = answers.wrong
    assert step.says == "b failed on “How many skis?” from `a`: KeyError: no such shelf"
    assert answers.next == "Mend `b`, then ask “Are there skis?” again; its failed turn"
    assert answers.command == "digmon show RUN v"
    private = verdict(store(tmp_path / "f.dig.jsonl", failure()), private=True)
    assert "ski" not in str(private)


def test_an_answer_is_quoted_and_a_wait_that_is_over_is_told(tmp_path: Path) -> None:
    """Who waited, how long, and for what; nobody has checked whether the answer is right."""
    wait = {"activation": "u", "asks": "May I buy it?"}
    rows = [
        *asked(0, "p", "a"), start(0, "u", "a", "p"), row(1, "incident", what="waits", detail=wait),
        end(7, "u", "f", p="consume"), final(7, "f", "u"), deliver(7, "f", None),
    ]  # fmt: skip
    path = store(tmp_path / "w.dig.jsonl", said(session(rows), p="Get it", f="It was refused"))
    answers = verdict(path)
    assert answers.ended.startswith("The request was answered by `a`: “It was refused”.")
    assert answers.ended.endswith("No one outside the team checked whether it is right.")
    (agent,) = answers.who
    assert agent.says == "waited 6.0 s for a person to answer “May I buy it?”"
    assert answers.command == "digmon show RUN f"


def test_the_agent_that_hung_stands_before_the_caller_that_gave_up(tmp_path: Path) -> None:
    """Its turn was called off, and only then did that of its caller fail."""
    rows = [
        *asked(0, "p", "a"), *turn(0, "u", "a", "q", p="consume"), *arrive(0, "q", "u", "b"),
        start(1, "v", "b", "q"), end(6, "v", "n", q="consume") | OFF,
        *arrive(6, "n", "v", "a", "notice"), start(6, "w", "a", "n"),
        end(6, "w", n="consume") | {"error": "TimeoutError"},
        *failing.request_failed(6, "error", "p", "w", "TimeoutError"),
    ]  # fmt: skip
    answers = verdict(store(tmp_path / "h.dig.jsonl", session(rows)))
    cause = "`b` was called off after 5.0 s of work"
    assert answers.headline == f"Failed: `a` raised TimeoutError, at 6.0 s; {cause}."
    assert [step.says.partition(" of work")[0] for step in answers.wrong] == [
        "a turn of b was called off after 5.0 s",
        "a failed 1 of 2 turns: TimeoutError",
    ]
    assert [agent.agent for agent in answers.who] == ["b", "a", "c"]
    assert answers.who[2].says == "never ran"
    assert answers.next.startswith("See why `b` did not come to an end, or give it more time")
    assert answers.command == "digmon show RUN v"


def test_a_caller_waited_for_its_own_agent_alone(tmp_path: Path) -> None:
    """Another turn that was called off, for another caller, is told of nobody else."""
    rows = [
        *asked(0, "p", "a"), *turn(0, "u", "a", "q", p="consume"), *arrive(0, "q", "u", "b"),
        *asked(0, "r", "c"), *turn(0, "x", "c", "s", r="consume"), *arrive(0, "s", "x", "d"),
        start(1, "y", "d", "s"), end(2, "y", s="consume") | OFF,
        start(2, "v", "b", "q"), end(3, "v", q="consume") | OFF,
    ]  # fmt: skip
    path = store(tmp_path / "c.dig.jsonl", trace(rows, agents="abcd", session=True))
    says = [step.says for step in verdict(path, state="cut off").wrong]
    assert "a turn of d was called off after 1.0 s of work; `c` waited for it" in says
    assert "a turn of b was called off after 1.0 s of work; `a` waited for it" in says


def test_called_off_turns_are_kept_of_a_thousand_agents(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A host may make an agent for every turn, and a session may go on for months."""
    monkeypatch.setattr("dig.detectors.run_so_far.MOST_AGENTS", 3)
    graph = InteractionGraph()
    so_far = RunSoFar(graph)
    parts = [
        [
            row(n, "join", agent=f"x{n}"),
            emit(n, f"p{n}", None) | {"to": [f"x{n}"]}, deliver(n, f"p{n}", f"x{n}"),
            start(n, f"v{n}", f"x{n}", f"p{n}"), end(n, f"v{n}", **{f"p{n}": "consume"}) | OFF,
        ]
        for n in range(9)
    ]  # fmt: skip
    for line in trace(*parts, agents="a", session=True):
        record = decode(line)
        graph.apply(record)
        so_far(record)
    assert [*so_far.cancelled] == ["x0", "x1"]
    assert len(so_far.called_off) == len(so_far.began) == len(so_far.callers) == 2


def test_turns_are_timed_though_the_graph_is_ahead() -> None:
    """As it is in a live session, where several records come at once."""
    graph = InteractionGraph()
    so_far = RunSoFar(graph)
    rows = [*asked(0, "p", "a"), start(1, "u", "a", "p"), end(3, "u", p="consume")]
    records = [decode(line) for line in trace(rows, agents="ab", session=True)]
    for record in records:
        graph.apply(record)
    graph.apply(decode(trace(rows, [start(4, "v", "b")], agents="ab", session=True)[-1]))
    for record in records:
        so_far(record)
    assert so_far.longest["a"][:2] == (2_000_000, "u")


ANYTHING = (None, 7, True, "x", [["x"]], {"x": 1}, 10**400)


@pytest.mark.parametrize("anything", ANYTHING, ids=str)
def test_a_foreign_trace_may_hold_anything_where_a_monitor_wrote(
    tmp_path: Path, anything: object
) -> None:
    """Who reads it learns what is known."""
    limit = {"limit": "turns", "spent": anything, "most": 3, "stage": "stopped", "event": "p"}
    waiting = {"waiting": {"a": anything}}
    rows = [
        *asked(0, "p", "a"),
        row(1, "incident", what="budget", detail=limit | {"events": anything}),
        row(1, "incident", what="budget", detail=limit | {"most": anything, "spent": 9}),
        row(1, "finding", pattern="DL", stage=None, severity="error", subject={}, evidence=waiting),
        row(1, "heal", finding=5, action="inject", event=anything, note="n"),
    ]
    score = {"rmse": 1.0, "mistakes": [{"agent": "a", "says": "x", "share": anything}]}
    act = {"agent": "a", "activation": anything, "what": anything, "ts": anything}
    path = store(tmp_path / "a.dig.jsonl", session(rows))
    answers = verdict(path, score=score, injections=[act])
    assert answers.headline.startswith("No answer after 9.0 s")
    limits = verdict(store(tmp_path / "b.dig.jsonl", session(rows[:-2])), injections=[act])
    assert limits.next.startswith("Raise `turns")


def test_work_that_was_thrown_away_is_told_first_and_given_out_again(tmp_path: Path) -> None:
    """Waiting would not bring it back; the act of a fault is told as one."""
    found = {"unresolved": [], "uncovered": ["q"]}
    rows = [
        *asked(0, "p", "a"), *turn(0, "u", "a", "q", p="consume"), *arrive(0, "q", "u", "b"),
        *turn(1, "v", "b", q="discard"), *turn(2, "x", "a", "f"), final(2, "f", "x"),
        row(2, "finding", pattern="ET", stage=None, severity="error", subject={"event": "f"},
            evidence=found),
        deliver(2, "f", None),
    ]  # fmt: skip
    path = store(tmp_path / "t.dig.jsonl", said(session(rows), q="Count the left half"))
    acts = [{"agent": "b", "activation": None, "what": "an input was thrown away"}]
    answers = verdict(path, injections=acts, score={"complete": False, "rmse": 3.0})
    deed = "threw “Count the left half” away (a fault put in on purpose)"
    assert answers.wrong[0].says == f"b {deed}"
    assert [(agent.agent, agent.says) for agent in answers.who[:2]] == [
        ("b", deed),
        ("a", "submitted too early"),
    ]
    assert f"`b` {deed}, and then `a` submitted too early" in answers.headline


def test_a_budget_is_told_by_who_spent_it(tmp_path: Path) -> None:
    """In the unit of the limit, and the agent that spent most comes first."""
    detail = {"limit": "tokens", "spent": 70, "most": 60, "event": "p", "stage": "stopped"}
    usage = {"usage": {"model": {"input_tokens": 50, "output_tokens": 20}}}
    rows = [
        *asked(0, "p", "a"), *turn(0, "u", "a", "q", p="consume"), *arrive(0, "q", "u", "b"),
        start(1, "v", "b", "q"), end(2, "v", q="consume") | usage,
        row(2, "incident", what="budget", detail=detail),
    ]  # fmt: skip
    answers = verdict(store(tmp_path / "b.dig.jsonl", session(rows)))
    assert [(agent.agent, agent.says) for agent in answers.who] == [
        ("b", "spent 70 tokens in 1 turn"),
        ("a", "spent nothing in 1 turn"),
        ("c", "never ran"),
    ]
    assert answers.wrong[0].says == (
        "the team was stopped at 60 tokens (70 tokens spent); `c` never ran"
    )
    says = "Raise `tokens = 60` of the budget (`[budget]` or `budget=`) to 90 or so, or see why"
    assert answers.next == f"{says} `b` needed most; its dearest turn"
    assert answers.command == "digmon show RUN v"


def test_a_stop_in_a_long_turn_is_told_apart_from_its_limit(tmp_path: Path) -> None:
    """A turn at work is not cut off: who was at work, and how long, is the reason."""
    detail = {"limit": "seconds", "spent": 6, "most": 4, "event": "p", "stage": "stopped"}
    rows = [
        *asked(0, "p", "a"), *turn(0, "u", "a", "q", p="consume"), *arrive(0, "q", "u", "b"),
        start(1, "v", "b", "q"), end(6, "v", q="consume"),
        row(6, "incident", what="budget", detail=detail),
    ]  # fmt: skip
    answers = verdict(store(tmp_path / "b.dig.jsonl", session(rows)))
    assert [step.says for step in answers.wrong] == [
        "b was at work for 5.0 s (v)",
        "the team was stopped past its limit of 4 s (6 s spent); `c` never ran",
    ]
    assert [(row.agent, row.says) for row in answers.who[::2]] == [
        ("b", "was at work for 5.0 s in 1 turn"),
        ("c", "never ran"),
    ]
    assert answers.monitor == "It stopped the team at 6.0 s, past its limit of 4 s."
    assert answers.next.endswith(" to 8 or so, or make `b` quicker; its longest turn")
    assert answers.command == "digmon show RUN v"


def test_a_wait_that_a_cancelled_request_ended_is_nobodys_work(tmp_path: Path) -> None:
    """Its question and its length are told, nobody is at fault, and it is to be answered."""
    wait = {"activation": "v", "asks": "May it go out?"}
    rows = [
        *asked(0, "p", "a"), *turn(0, "u", "a", "q", p="consume"), *arrive(0, "q", "u", "b"),
        start(1, "v", "b", "q"), row(1, "incident", what="waits", detail=wait),
        end(7, "v", "n", q="consume"), *arrive(7, "n", "v", "b", "notice"),
        start(7, "w", "b", "n"), end(7.05, "w", "f", n="consume") | OFF, final(7.05, "f", "w"),
        deliver(7.05, "f", None),
    ]  # fmt: skip
    answers = verdict(store(tmp_path / "w.dig.jsonl", session(rows)))
    question = "for a person to answer “May it go out?”"
    assert answers.headline == (
        f"Cancelled by the caller at 7.0 s: `b` waited {question}; none came in 6.0 s."
    )
    assert [(step.us, step.says) for step in answers.wrong] == [
        (1_000_000, f"`b` waited {question}; none came in 6.0 s"),
        (7_050_000, "the request was cancelled by the caller"),
    ]
    assert [(row.says, row.is_at_fault) for row in answers.who] == [
        (f"waited 6.0 s {question}; none came", False),
        ("never ran", False),
    ]
    assert answers.next == "Ask again, and answer `b`, which asks “May it go out?”; its turn"
    assert answers.command == "digmon show RUN v"
    late = [each | {"ts": 8.9} if each["ts"] > 7 else each for each in rows]
    answers = verdict(store(tmp_path / "l.dig.jsonl", session(late)))
    assert "after 1.9 s of work" in answers.wrong[0].says


def test_nothing_has_to_be_done_for_an_answer_after_turns_that_failed(tmp_path: Path) -> None:
    """Its agent was asked again, and then did its work."""
    rows = [
        *asked(0, "p", "a"), *turn(0, "u", "a", "q", p="consume"), *arrive(0, "q", "u", "b"),
        start(1, "v", "b", "q"), end(2, "v", "e", q="consume") | {"error": "KeyError: 1"},
        *arrive(2, "e", "v", "a", "notice"), *turn(2, "y", "a", "s", e="consume"),
        *arrive(2, "s", "y", "b"),
        *turn(3, "x", "b", "r", s="consume"), *arrive(3, "r", "x", "a"),
        *turn(4, "w", "a", "f", r="consume"), final(4, "f", "w"), deliver(4, "f", None),
    ]  # fmt: skip
    answers = verdict(store(tmp_path / "m.dig.jsonl", session(rows)))
    assert answers.who[0].says == "failed 1 of 2 turns"
    assert answers.next.startswith("Nothing has to be done for this answer. If `b` fails again")
    assert answers.command == "digmon show RUN v"


@pytest.mark.parametrize(
    ("payload", "first", "words"),
    [
        ({"routing": {"kind": "text"}, "body": "..."}, "...", "..."),
        ("A loan for Ms. Aas. Now", "A loan for Ms. Aas", "A loan for Ms. Aas. Now"),
        ("Right. Back to B.", "Right", "Right. Back to B"),
        ({"a": "No", "b": "The whole of it."}, "The whole of it", "The whole of it"),
        ({"n": 1}, "n: 1", "n: 1"),
        (None, "", ""),
    ],
)
def test_the_words_of_a_message_are_its_own(payload: object, first: str, words: str) -> None:
    """Those of an envelope's body, and not those that route it; a title ends no sentence."""
    assert (goal_text(payload), words_text(payload)) == (first, words)


def test_several_losses_have_the_moments_of_the_first_and_the_latest(tmp_path: Path) -> None:
    """A fault that was put in is the reason, whatever the trace has to say."""
    lost = [(1.0, "q"), (5.0, "r")]
    rows = [*asked(0, "p", "a"), *turn(1, "u", "a", "q r", p="consume")]
    rows += [emit(1, event, "u", "b") for _, event in lost]
    rows += [row(ts, "expire", event=event) for ts, event in lost]
    rows += [
        row(6, "finding", pattern="OE", stage=None, severity="error", subject={"event": event},
            evidence={"cause": "expired"})
        for _, event in lost
    ]  # fmt: skip
    answers = verdict(store(tmp_path / "l.dig.jsonl", session(rows)), injections=[{"agent": "a"}])
    (step,) = answers.wrong
    assert step.us == 1_000_000
    assert step.says.startswith("a message of a was lost (a fault put in on purpose); no agent")
    assert step.says.endswith(", 2 times (the latest loss at 5.0 s)")
