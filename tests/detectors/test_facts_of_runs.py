"""The facts about a run from which the five answers are written."""

from __future__ import annotations

import pytest

from dig.detectors import standard
from dig.detectors.five_answers import five_answers
from dig.detectors.run_so_far import RunSoFar
from dig.detectors.watch import Watch
from dig.graph.codec import decode
from tests import failing
from tests.histories import arrive, deliver, emit, end, final, row, start, trace, turn
from tests.oracle import Row


def follow(rows: list[Row]) -> RunSoFar:
    """A run with the findings that the detectors of today make."""
    watch = Watch(standard())
    so_far = RunSoFar(watch.graph)
    for record in map(decode, rows):
        so_far(record, watch.feed(record))
    return so_far


def early(agents: str, at_work: str, done: str = "") -> list[Row]:
    """`a` gives work to all others and answers, when some are at work and some are done."""
    parts = [f"to_{agent}" for agent in agents[1:]]
    return trace(
        arrive(0, "p", None, "a"),
        turn(0, "u", "a", " ".join(["own", *parts]), p="consume"),
        [emit(0, part, "u", agent) for part, agent in zip(["own", *parts], agents, strict=True)],
        [deliver(0, part, agent) for part, agent in zip(["own", *parts], agents, strict=True)],
        [start(1, "v", "a", "own")],
        *(
            turn(1, f"w_{x}", x, f"of_{x}", **{f"to_{x}": "consume"})
            + arrive(1, f"of_{x}", f"w_{x}", "a")
            for x in done
        ),
        [start(1, f"w_{x}", x, f"to_{x}") for x in at_work],
        [end(2, "v", "f", own="consume"), final(2, "f", "v"), deliver(2, "f", None)],
        row(3, "finish", outcome="submitted"),
        agents=agents,
    )


def test_an_early_answer_names_all_open_work_and_what_lies_unread() -> None:
    """Work that was handed in is no work that others still had to do."""
    tally = follow(early("abcdefgh", at_work="defgh", done="b")).raised["error"]["ET"]
    assert tally.plain.endswith(
        ", while 6 messages were still in front of c, d, e and 3 more and 1 message was still "
        "unread in front of a (from b)"
    )
    assert tally.unread == {"b": 1}
    assert tally.open_work.total() == 7


def test_a_failed_turn_has_its_length() -> None:
    """A turn that hung, and was cut by a limit of the team, is told with the time that it took."""
    rows = trace(
        arrive(0, "p", None, "a"),
        [start(1, "v", "a", "p"), end(31, "v", p="delay") | {"error": "TimeoutError: 30 s"}],
        [*turn(32, "w", "a", "f", p="consume"), final(32, "f", "w"), deliver(32, "f", None)],
    )
    assert follow(rows).failed["a"].us_worked == 30_000_000


def test_an_accepted_answer_that_is_none_is_known() -> None:
    """And the next one is an answer again."""
    call = '{"name": "search", "arguments": {"q": "x"}}'
    rows = trace(
        *(
            [*arrive(ts, f"p{ts}", None, "a"), start(ts, f"v{ts}", "a", f"p{ts}"),
             end(ts, f"v{ts}", f"f{ts}", **{f"p{ts}": "consume"}),
             final(ts, f"f{ts}", f"v{ts}") | {"payload": payload}, deliver(ts, f"f{ts}", None)]
            for ts, payload in ((1, "Yes."), (2, call))
        ),
        session=True,
    )  # fmt: skip
    assert follow(rows).void == "a call that was written down and not made"
    assert follow(rows[:-6]).void == ""


@pytest.mark.parametrize(
    ("payload", "void"), [("", "empty"), ('{"name": "find", "arguments": {}}', "a call that was")]
)
@pytest.mark.parametrize("session", [False, True])
def test_an_answer_that_is_none_is_no_good_end(payload: str, void: str, session: bool) -> None:
    """The verdict is bad, and the next step leads to the turn."""
    rows = trace(
        [*arrive(1, "p", None, "a"), start(1, "v", "a", "p"), end(1, "v", "f", p="consume")],
        [final(1, "f", "v") | {"payload": payload}, deliver(1, "f", None)],
        row(2, "finish", outcome="stopped" if session else "submitted"),
        session=session,
    )
    answers = five_answers(follow(rows))
    assert (answers.verdict, answers.grade) == ("No real answer", "bad")
    assert answers.ended.startswith("What was submitted")
    assert f"is no answer: it is {void}" in answers.ended
    assert answers.headline.endswith("`a` submitted what is no answer.")
    assert answers.command == "digmon show RUN v"


def test_a_turn_that_hung_up_to_a_limit_is_told_with_its_length() -> None:
    rows = trace(
        arrive(0, "p", None, "a"),
        [start(1, "v", "a", "p"), end(31, "v", p="delay") | {"error": "TimeoutError: too long"}],
        [*turn(32, "w", "a", "f", p="consume"), final(32, "f", "w"), deliver(32, "f", None)],
        row(33, "finish", outcome="submitted"),
    )
    (step, *_) = five_answers(follow(rows)).wrong
    assert "after 30.0 s" in step.says


def test_what_open_requests_ask_is_told() -> None:
    """A request that failed is not open any more."""
    words = {"p": "When?", "q": "Where?", "r": "Who?", "s": "Why?", "f": "On Friday."}
    error = [*failing.request_failed(2, "error", "q", "w", "boom")]
    rows = trace(
        *(arrive(0, *asked) for asked in (("p", None, "a"), ("q", None, "b"), ("r", None, "c"))),
        arrive(0, "s", None, "c"),
        [*turn(1, "v", "a", "f", p="consume"), final(1, "f", "v"), deliver(1, "f", None)],
        [start(2, "w", "b", "q"), end(2, "w", q="consume") | {"error": "boom"}, *error],
        row(3, "finish", outcome="stopped"),
        session=True,
    )
    said = [{**one, "payload": words.get(one.get("event", ""))} for one in rows[:-1]]
    ended = five_answers(follow(said), state="cut off").ended
    assert "2 were left without an answer (“Who?” and “Why?”)" in ended


def test_a_turn_that_goes_on_too_long_stands_at_its_beginning() -> None:
    """It did not leave its work lying, and the next step is about that turn."""
    rows = trace(
        arrive(6, "p", None, "a"), start(7, "v", "a", "p"),
        row(20, "finding", pattern="STALL", stage=None, severity="error",
            subject={"activation": "v"}, evidence={}),
        session=True,
    )  # fmt: skip
    watch = Watch([])
    so_far = RunSoFar(watch.graph)
    for record in map(decode, rows):
        so_far(record, watch.feed(record))
    answers = five_answers(so_far)
    (step,) = answers.wrong
    assert (step.us, answers.command) == (7_000_000, "digmon show RUN v")
    assert step.says.startswith("a began a turn, and was still at it 13.0 s later")
    assert answers.next.startswith("See what `a` hangs on; if it stays so, cancel that turn")


def test_a_node_of_the_framework_is_not_the_author_of_an_answer() -> None:
    """The author is the agent whose words the node passed on; a remark has what it is about."""
    rows = trace(
        [*arrive(0, "p", None, "a"), *turn(0, "u", "a", "q", p="consume")],
        [emit(0, "q", "u", "b") | {"payload": "Roof: 61,000 EUR."}, deliver(0, "q", "b")],
        turn(1, "v", "b", "r", q="consume"),
        [emit(1, "r", "v") | {"to": ["__end__"], "payload": "It is right."}],
        deliver(1, "r", "__end__"),
        turn(2, "w", "__end__", "f", r="consume"),
        [final(2, "f", "w") | {"payload": "It is right."}, deliver(2, "f", None)],
        row(3, "finish", outcome="stopped"),
        session=True,
        agents=["a", "b", "__end__"],
    )
    answers = five_answers(follow(rows))
    by = "The request was answered by `b`: “It is right” (on “Roof: 61,000 EUR” from `a`)."
    assert answers.ended.startswith(by)
    assert answers.command == "digmon show RUN r"


@pytest.mark.parametrize("is_kept", [True, False])
def test_who_kept_the_work_is_at_fault_and_not_who_was_last(is_kept: bool) -> None:
    """Without such an agent nobody is; work that another put out later got lost there."""
    rows = trace(
        [*arrive(0, "p", None, "a"), *(arrive(0, "q", None, "b") if not is_kept else [])],
        [*turn(1, "v", "a", "m", p="consume"), *arrive(1, "m", "v", "c")],
        turn(3, "x", "c", m="consume"),
        [*turn(4, "w", "b", "k", q="consume"), emit(4, "k", "w")] if not is_kept else [],
        turn(5, "y", "a"),
        row(90, "finish", outcome="stopped"),
        limits={"mc_window_s": 30},
    )  # fmt: skip
    answers = five_answers(follow(rows))
    assert "missing termination (MC)" in answers.wrong[-1].says
    assert [step.says for step in answers.wrong[:-1]] == [
        "c took 1 message and sent nothing on"
    ] * is_kept
    assert [(agent.agent, agent.is_at_fault) for agent in answers.who] == (
        [("c", True), ("a", False)] if is_kept else [("a", False)]
    )


def test_a_miscount_stands_before_the_answer_of_the_same_moment() -> None:
    """The agent counts first, and then submits."""
    rows = trace(
        [*arrive(0, "p", None, "a"), *turn(2, "v", "a", "f", p="consume"), final(2, "f", "v")],
        [deliver(2, "f", None), row(2, "finish", outcome="submitted")],
    )
    mistake = {
        "agent": "a", "activation": "v", "t": 9, "us": 2_000_000, "says": "misread 6 of 16 posts",
        "counts": {"f": "misread 6 of 16 posts"},
    }  # fmt: skip
    score = {"valid": True, "complete": False, "rmse": 2.0, "mistakes": [mistake]}
    act = {"agent": "a", "ts": 2.0, "t": 4, "activation": "v", "what": "submitted 2 parts"}
    steps = five_answers(follow(rows), score=score, injections=[act]).wrong
    assert [step.says.split()[1] for step in steps] == ["misread", "submitted"]


def test_who_handed_its_work_over_was_done() -> None:
    """It does not wait for the agent whose turn is called off."""
    off = {"error": "CancelledError", "cancelled": True}
    rows = trace(
        [*arrive(0, "p", None, "a"), *turn(0, "u", "a", "q", p="consume")],
        [
            *arrive(0, "q", "u", "b"),
            *turn(1, "v", "b", "r", q="consume"),
            *arrive(1, "r", "v", "c"),
        ],
        [start(1, "w", "c", "r"), end(6, "w", r="consume") | off],
        failing.request_failed(6, "limit", "p", None, "TimeoutError: 5 s"),
        row(6, "finish", outcome="stopped"),
        session=True,
    )
    assert "Done until then: `a`, `b`." in five_answers(follow(rows)).ended


def test_rounds_are_counted_where_an_agent_asks_again_and_again_in_one_turn() -> None:
    """Its turns would contradict the round that the same answers tell of."""
    rounds = [row for n in range(5) for row in (
        *turn(n, f"v{n}", "a", f"q{n} n{n + 1}", **(
            {f"n{n}": "consume", f"r{n}": "consume"} if n else {"p": "consume"}
        )),
        emit(n, f"q{n}", f"v{n}", "b"), emit(n, f"n{n + 1}", f"v{n}", "a", "notice"),
        deliver(n, f"q{n}", "b"), deliver(n, f"n{n + 1}", "a"),
        *turn(n, f"w{n}", "b", f"r{n + 1}", **{f"q{n}": "consume"}),
        *arrive(n, f"r{n + 1}", f"w{n}", "a", "message"),
    )]  # fmt: skip
    limit = [*failing.request_failed(6, "limit", "p", None, "UsageLimitExceeded: 10")]
    rows = trace(arrive(0, "p", None, "a"), rounds, limit, session=True)
    answers = five_answers(follow(rows))
    assert "rounds of `a` and `b`" in answers.headline
    (deed,) = (agent.says for agent in answers.who if agent.agent == "a")
    assert deed.startswith("asked `b` ")


def test_all_agents_that_hand_on_again_and_again_are_named() -> None:
    """The next step leads to what went round, and not to the first of them."""
    hops = [
        row
        for n, (agent, to) in enumerate(zip("abcab", "bcabc", strict=True))
        for row in (*turn(n, f"v{n}", agent, m=(to,)), deliver(n, "m", to))
    ]
    rows = trace(
        [*arrive(0, "p", None, "a"), *turn(0, "u", "a", "m", p="consume")],
        arrive(0, "m", "u", "a"), hops,
        [*turn(6, "w", "c", "f", m="consume"), final(6, "f", "w"), deliver(6, "f", None)],
        session=True,
    )  # fmt: skip
    answers = five_answers(follow(rows))
    assert "`a`, `b` and `c` handed work on again and again" in answers.headline
    assert answers.command == "digmon show RUN m"


def test_a_hang_that_was_put_in_is_told_with_the_length_that_it_had() -> None:
    """The team's own limit ended it: no server is to blame."""
    error = {"error": "TimeoutError: took longer than 60 s"}
    rows = trace(
        [*arrive(0, "p", None, "a"), start(2, "v", "a", "p"), end(62, "v", p="delay") | error],
        [*turn(63, "w", "a", "f", p="consume"), final(63, "f", "w"), deliver(63, "f", None)],
        row(63, "finish", outcome="submitted"),
    )
    plan = {"agent": "a", "ts": 2.0, "t": 3, "activation": "v", "what": "took 400 s longer"}
    for injections in ([plan], []):
        answers = five_answers(follow(rows), injections=injections)
        assert "400 s" not in str(answers) and "a server or tool" not in str(answers)
        (agent,) = answers.who
        put_in = " (a fault put in on purpose)" * bool(injections)
        assert agent.says == f"failed 1 of 2 turns, after 60.0 s{put_in}; its work went on"


def test_an_agent_that_handed_over_is_done_and_does_not_wait() -> None:
    """Only the agent that was called off is not."""
    rows = trace(
        [*arrive(0, "p", None, "a"), *turn(1, "u", "a", "h", p="consume")],
        arrive(1, "h", "u", "b", "handoff"),
        [start(2, "v", "b", "h"), end(6, "v", h="delay") | {"error": "late", "cancelled": True}],
        [*failing.request_failed(6, "limit", "p", None, "WorkflowTimeoutError: 6 s")],
        session=True,
    )
    answers = five_answers(follow(rows))
    assert "Done until then: `a`" in answers.ended
    assert not any("waited for it" in step.says for step in answers.wrong)


def test_what_is_left_of_a_short_answer_is_told_in_the_next_step() -> None:
    """Although the fault was put in on purpose."""
    rows = trace(
        [
            *arrive(0, "p", None, "a"),
            start(1, "v", "a", "p"),
            end(2, "v", p="delay") | {"error": "x"},
        ],
        [*turn(3, "w", "b", "f"), final(3, "f", "w"), deliver(3, "f", None)],
        row(3, "finish", outcome="submitted"),
    )
    score = {"valid": True, "complete": False, "says": "It covers 2 of 3; [2, 3] is missing."}
    act = {"agent": "a", "ts": 2.0, "t": 4, "activation": "v", "what": "failed"}
    says = five_answers(follow(rows), score=score, injections=[act]).next
    assert says.startswith("Do not use the answer as a whole: [2, 3] is missing; the fault of `a`")


def test_a_monitor_that_was_to_heal_did_not_only_watch() -> None:
    """Although nothing had to be healed, or nothing could be."""
    bad = end(2, "v", p="delay") | {"error": "ValueError: x"}
    rows = trace(
        [*arrive(0, "p", None, "a"), start(1, "v", "a", "p"), bad],
        row(3, "finish", outcome="stopped"),
    )
    says = [five_answers(follow(rows), can_heal=can_heal).monitor for can_heal in (True, False)]
    assert says[0].startswith("It was ready to heal")
    assert says[1].startswith("It watched only")


def asked_again(words: object, late: bool) -> list[Row]:
    """A request fails, one with equal words has an answer, and later maybe the first one, too."""
    fails = failing.request_failed(1, "timeout", "p")
    rows = trace(
        [*arrive(0, "p", None, "a"), start(0, "v", "a", "p"), *fails, *arrive(2, "q", None, "b")],
        [*turn(2, "w", "b", "f", q="consume"), final(2, "f", "w"), deliver(2, "f", None)],
        [end(3, "v", "g", p="consume"), final(3, "g", "v"), deliver(3, "g", None)] * late,
        session=True,
    )
    said = {"payload": words, "to": ["a", "b"]}
    return [one | said if one.get("event") in ("p", "q") and "type" in one else one for one in rows]


@pytest.mark.parametrize("words", [None, {"$cut": "0a1b"}])
def test_a_failure_is_not_made_good_by_words_that_are_not_recorded(words: object) -> None:
    """A trace without contents does not tell which requests are the same."""
    assert follow(asked_again(words, late=False)).counts["again"] == 0


def test_a_request_that_was_asked_again_counts_once_when_it_is_answered_after_all() -> None:
    so_far = follow(asked_again("Where?", late=False))
    assert so_far.requests == {"answered": 1, "asked again after a failure": 1}
    so_far = follow(asked_again("Where?", late=True))
    assert so_far.requests == {"answered": 2}
    assert five_answers(so_far).verdict == "Answered"


def test_a_message_that_was_put_off_is_not_unread() -> None:
    rows = trace(
        [*arrive(0, "p", None, "a"), *turn(0, "u", "a", "x y", p="consume")],
        [
            emit(0, "x", "u", "a"),
            emit(0, "y", "u", "a"),
            deliver(0, "x", "a"),
            deliver(0, "y", "a"),
        ],
        [start(1, "v", "a", "x y"), end(2, "v", "f", x="consume", y="delay"), final(2, "f", "v")],
        [deliver(2, "f", None), row(3, "finish", outcome="submitted")],
    )
    tally = follow(rows).raised["error"]["ET"]
    assert tally.plain.endswith("while 1 message was still in front of a")
    assert not tally.unread


def test_handovers_are_kept_for_agents_of_the_team_alone() -> None:
    """An instance counts as its agent; a name that nobody has would be kept for ever."""
    rows = trace(
        arrive(0, "p", None, "a"), arrive(0, "q", None, "a"),
        [row(1, "join", agent="b#2"), start(1, "v", "a", "p q")],
        row(2, "end", activation="v", outputs=[], fates=[
            {"event": "p", "fate": "reroute", "to": ["nobody"]},
            {"event": "q", "fate": "reroute", "to": ["b#2"]},
        ]),
        session=True,
    )  # fmt: skip
    assert [*follow(rows).handed_by] == ["b"]


def test_a_session_counts_the_answers_that_are_none() -> None:
    """Whether such an answer is the latest one or not."""
    for payloads in (("Yes.", ""), ("", "Yes.")):
        rows = trace(
            *(
                [*arrive(ts, f"p{ts}", None, "a"), start(ts, f"v{ts}", "a", f"p{ts}"),
                 end(ts, f"v{ts}", f"f{ts}", **{f"p{ts}": "consume"}),
                 final(ts, f"f{ts}", f"v{ts}") | {"payload": payload}, deliver(ts, f"f{ts}", None)]
                for ts, payload in enumerate(payloads)
            ),
            session=True,
        )  # fmt: skip
        answers = five_answers(follow(rows))
        assert (answers.verdict, answers.grade) == ("1 of 2 answered", "bad")
        assert "1 was answered and 1 was answered by what is no answer" in answers.ended


def test_a_score_without_words_was_a_check_all_the_same() -> None:
    rows = trace(
        [*arrive(0, "p", None, "a"), start(0, "v", "a", "p"), end(1, "v", "f", p="consume")],
        [final(1, "f", "v"), deliver(1, "f", None), row(2, "finish", outcome="submitted")],
    )
    answers = five_answers(follow(rows), score={"valid": True, "rmse": 1.0, "complete": True})
    assert answers.headline.startswith("Wrong answer") and "checked" not in answers.ended


def test_a_sum_without_bound_of_a_foreign_monitor_is_left_out() -> None:
    detail = {"stage": "stopped", "limit": "tokens", "most": 5, "spent": 10**400}
    rows = trace(
        [*arrive(0, "p", None, "a"), row(1, "incident", what="budget", detail=detail)],
        row(2, "finish", outcome="stopped"),
    )
    answers = five_answers(follow(rows))
    assert answers.wrong and all(len(step.says) < 200 for step in answers.wrong)


def test_an_empty_answer_is_told_with_what_its_author_was_given() -> None:
    """The work may well be done, and lie in that message."""
    given = emit(1, "q", "u", "b") | {"payload": "15 weeks"}
    rows = trace(
        [*arrive(0, "p", None, "a"), *turn(0, "u", "a", "q", p="consume"), given],
        [deliver(1, "q", "b"), *turn(2, "v", "b", "f", q="consume")],
        [final(2, "f", "v") | {"payload": ""}, deliver(2, "f", None)],
        row(3, "finish", outcome="submitted"),
    )
    (agent,) = five_answers(follow(rows)).who
    assert (agent.agent, agent.is_at_fault) == ("b", True)
    assert agent.says == "submitted what is no answer (on “15 weeks” from `a`)"
