"""Spans of OpenTelemetry as runs: what is a turn, a call, a hand-off, and what is told."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.detectors import standard
from dig.detectors.watch import Watch
from dig.errors import TraceError
from dig.graph.records import Emit, End, IncidentRow, Record, Run, Start
from dig.traces.interchange.imports import Imported, import_file
from dig.traces.interchange.workflow_spans import _unquote

from .span_files import AGENT, MODEL, PRODUCERS, agent, console, otlp, protobuf, span, store, tool


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def imported(*spans: Mapping[str, Any]) -> Imported:
        return import_file(store(tmp_path / "spans.json", otlp(*spans)))

    return imported


def findings(imported: Imported) -> list[tuple[str, str | None, str]]:
    watch, rows = Watch(standard()), list[tuple[str, str | None, str]]()
    for record in imported.records:
        new = watch.feed(record)
        rows += [(str(finding.pattern), finding.stage, finding.severity) for finding in new]
    return rows


def emits(imported: Imported) -> list[tuple[str, tuple[str, ...], str, Any]]:
    """The sender, recipients, type and payload of each event but continuations."""
    agents = {r.activation: r.agent for r in imported.records if isinstance(r, Start)}
    return [
        (agents.get(r.by or "", ""), r.to, r.type, r.payload)
        for r in imported.records
        if isinstance(r, Emit) and not r.event.startswith("onward")
    ]


def ends(imported: Imported) -> list[End]:
    return [record for record in imported.records if isinstance(record, End)]


def told(imported: Imported) -> str:
    return "\n".join([*imported.guesses, *imported.not_looked_at])


def failed_requests(imported: Imported) -> list[Any]:
    return [r.detail for r in imported.records
            if isinstance(r, IncidentRow) and r.what == "request_failed"]  # fmt: skip


# --- the forms of six instrumentations ---


@pytest.mark.parametrize(
    ("name", "events", "loops"),
    [
        ("pydantic_ai.json", [
            ("", ("planner",), "problem", "Plan a walk"),
            ("planner", ("scout",), "message", "rain today?"),
            ("scout", ("planner",), "message", "no rain"),
            ("planner", (), "solution", "Walk at noon"),
        ], 0),
        ("openinference_openai_agents.jsonl", [
            ("", ("desk",), "problem", "My lamp is broken"),
            ("desk", ("refunds",), "handoff", "This is for refunds"),
            ("refunds", (), "solution", "You get 20 back"),
        ], 0),
        ("genai_openai_agents.json", [
            ("", ("packer",), "problem", None),
            *[("packer", ("weigher",), "message", {"input": "how heavy is it?"}),
              ("weigher", ("packer",), "message", "9 kg")] * 6,
            ("packer", (), "solution", None),
        ], 2),
        ("adk.json", [
            ("", ("porter",), "problem", None),
            ("porter", ("gardener",), "handoff", None),
            ("gardener", (), "solution", None),
        ], 0),
        ("crewai.json", [
            ("", ("buyer",), "problem", {"agent": {"role": "buyer", "goal": "sell jam"},
                                         "context": ""}),
            ("buyer", ("cook",), "handoff", "plums are cheap"),
            ("cook", (), "solution", "plum jam"),
        ], 0),
        ("llama_index.json", [
            ("", ("baker",), "problem", "Two loaves, please"),
            ("baker", ("waiter",), "handoff", {"to_agent": "waiter", "reason": "bread is ready"}),
            ("waiter", (), "solution", "Here it's: \"two\" loaves"),
        ], 0),
    ],
)  # fmt: skip
def test_a_producers_file_becomes_the_run_it_tells_of(
    name: str, events: list[Any], loops: int
) -> None:
    imported = import_file(PRODUCERS / name)
    assert imported.format == "spans"
    assert emits(imported) == events
    assert findings(imported) == [("LOOP", None, "warning")] * loops
    first = imported.records[0]
    assert isinstance(first, Run)
    assert first.session
    assert first.memory


def test_what_names_no_agent_is_refused_not_invented(tmp_path: Path) -> None:
    """A model alone is no agent, and LlamaIndex's steps name none if their inputs are hidden."""
    steps = (PRODUCERS / "llama_index.json").read_text().replace("input.value", "hidden")
    for text in (json.dumps(otlp(span(1, "chat gpt", 0, 1, None, MODEL))), steps):
        (tmp_path / "spans.json").write_text(text)
        with pytest.raises(TraceError, match="none that names an agent"):
            import_file(tmp_path / "spans.json")


def test_crewai_lacks_delegated_agents_and_the_run_says_so() -> None:
    assert "CrewAI has no spans of agents that were asked by deleg" in told(
        import_file(PRODUCERS / "crewai.json")
    )


# --- one form of all encodings ---


def records_of(imported: Imported) -> list[Record]:
    return [r for r in imported.records if not isinstance(r, IncidentRow | Run)]


def test_all_encodings_are_read_alike(tmp_path: Path) -> None:
    """Ids in hexadecimal or base64, times as texts or numbers, enums by name, nested keys."""
    spans = [
        agent(3, "b", 1, 2, 2, "q", "r", status={"code": 2, "message": "no"}),
        tool(2, "ask", 0.5, 2.5, 1, {"q": 1}),
        agent(1, "a", 0, 3, None, "p", "s"),
    ]
    numbers = [{**row, "startTimeUnixNano": int(row["startTimeUnixNano"]),
                "endTimeUnixNano": int(row["endTimeUnixNano"])} for row in spans]  # fmt: skip
    snake = json.loads(
        json.dumps(otlp(*spans))
        .replace("traceId", "trace_id")
        .replace("spanId", "span_id")
        .replace("parentSpanId", "parent_span_id")
        .replace("TimeUnixNano", "_time_unix_nano")
        .replace("resourceSpans", "resource_spans")
        .replace("scopeSpans", "scope_spans")
        .replace("stringValue", "string_value")
    )
    nested = [{**row, "attributes": tree(row["attributes"])} for row in spans]
    texts = {
        "lines": "".join(json.dumps(otlp(row)) + "\n" for row in spans),
        "list": json.dumps([otlp(*spans[:1]), otlp(*spans[1:])]),
        "pretty": json.dumps(otlp(*spans), indent=2),
        "numbers": json.dumps(otlp(*numbers)),
        "protobuf": json.dumps(protobuf(otlp(*spans))),
        "snake": json.dumps(snake),
        "bare": "\n".join(map(json.dumps, spans)),
        "nested": json.dumps({"spans": nested}),
        "console": "".join(map(console, spans)),
        "console, in a list": f"[{','.join(map(console, spans))}]",
        "mark": "\ufeff" + json.dumps(otlp(*spans)),
    }
    path = tmp_path / "x.json"
    path.write_text(json.dumps(otlp(*spans)))
    expected = records_of(import_file(path))
    assert len(expected) > 10
    for name, text in texts.items():
        path.write_text(text)
        imported = import_file(path)
        assert (name, imported.format) == (name, "spans")
        assert (name, records_of(imported)) == (name, expected)


def tree(attributes: list[Any]) -> dict[str, Any]:
    """Attributes as an object in an object for each dot."""
    root: dict[str, Any] = {}
    for pair in attributes:
        *steps, last = pair["key"].split(".")
        place = root
        for step in steps:
            place = place.setdefault(step, {})
        place[last] = next(iter(pair["value"].values()))
    return root


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"resourceSpans": [', "is no JSON"),
        ('{"resourceSpans": [{"scopeSpans": [{"spans": [{"spanId": "01"}]}]}]}', "no trace id"),
        (json.dumps(otlp({**agent(1, "a", 0, 1), "startTimeUnixNano": 0})), "no start time"),
        (json.dumps(otlp({**agent(1, "a", 0, 1), "startTimeUnixNano": "soon"})), "span 1 cannot"),
        (json.dumps(otlp({**agent(1, "a", 0, 1), "attributes": 3})), "span 1 cannot be read"),
        (json.dumps(otlp()) + '{"spanId": ""}', "none that names an agent"),
    ],
)
def test_an_unreadable_file_says_why(text: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text(text)
    with pytest.raises(TraceError, match=reason):
        import_file(path)


# --- turns and calls ---


def test_an_agent_that_outlives_its_caller_was_answered_too_early(read: Any) -> None:
    imported = read(agent(1, "lead", 0, 2), tool(2, "start", 0.5, 0.6, 1, {"q": 1}, "started"),
                    agent(3, "slow", 0.55, 5, 2))  # fmt: skip
    assert findings(imported) == [("ET", None, "error")]
    assert emits(imported)[-1] == ("slow", (), "notice", None)


def test_a_caller_waits_for_all_answers_of_parallel_calls(read: Any) -> None:
    """Overlapping spans of an agent are instances, which leave at their end."""
    imported = read(agent(1, "lead", 0, 9), agent(2, "b", 1, 5, 1), agent(3, "b", 2, 4, 1),
                    agent(4, "b", 3, 6, 1), agent(5, "b", 7, 8, 1))  # fmt: skip
    senders = [sender for sender, *_ in emits(imported)]
    assert senders == ["", *["lead"] * 3, "b#2", "b", "b#3", "lead", "b", "lead"]
    assert findings(imported) == []
    last = [r for r in imported.records if isinstance(r, Start) and r.agent == "lead"][-1]
    assert len(last.inputs) == 2  # the continuation, and the answer


@pytest.mark.parametrize("turns", [(2, 2), (2, 3)])
def test_turns_that_end_or_begin_at_one_moment_keep_their_order(
    turns: tuple[float, float], read: Any
) -> None:
    """A clock may be coarse: a call that ends with its caller is answered, not forgotten."""
    end, start = turns
    imported = read(agent(1, "lead", 0, 3), agent(2, "b", 1, end, 1), agent(3, "b", start, 3, 1),
                    agent(4, "c", 3, 3, 3))  # fmt: skip
    assert findings(imported) == []
    assert {r.agent for r in imported.records if isinstance(r, Start)} == {"lead", "b", "c"}


def test_usage_is_that_of_the_agent_or_else_of_its_models(read: Any) -> None:
    counts = {"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 1}
    imported = read(
        agent(1, "a", 0, 9, about={"llm.token_count.prompt": 70}), span(2, "m", 1, 2, 1, MODEL),
        agent(3, "b", 3, 8, 1), span(4, "m", 4, 5, 3, MODEL | counts),
        span(5, "m", 6, 7, 3, MODEL | counts),
    )  # fmt: skip
    assert [end.usage for end in ends(imported)][1:] == [
        {"input_tokens": 10, "output_tokens": 2}, {"input_tokens": 70},
    ]  # fmt: skip


def test_plumbing_is_no_agent(read: Any) -> None:
    """Workflows of all editions, an unnamed agent's span around others, a client's around one."""
    workflow = {"gen_ai.operation.name": "invoke_workflow", "gen_ai.agent.name": "flow"}
    imported = read(
        span(1, "invoke_workflow flow", 0, 9, None, workflow),
        span(2, "Agent workflow", 0, 9, 1, {"openinference.span.kind": "AGENT"}),
        span(3, "invoke_agent far", 1, 8, 2, AGENT | {"gen_ai.agent.name": "far"}, kind=3),
        agent(4, "far", 2, 7, 3), span(5, "chat", 3, 4, 4, MODEL),
    )  # fmt: skip
    assert [sender for sender, *_ in emits(imported)] == ["", "far"]


def test_an_unnamed_agent_that_works_itself_is_one(read: Any) -> None:
    """smolagents names its spans only."""
    kind = {"openinference.span.kind": "AGENT"}
    imported = read(span(1, "lead.run", 0, 9, None, kind), span(2, "m", 1, 2, 1, MODEL),
                    span(3, "helper.run", 3, 4, 1, kind))  # fmt: skip
    assert [sender for sender, *_ in emits(imported)] == ["", "lead", "helper", "lead"]


def test_spans_without_kinds_are_known_by_their_names(read: Any) -> None:
    """As older libraries write them."""
    imported = read(span(1, "agent_run [lead]", 0, 9), span(2, "running tool: ask", 1, 8, 1),
                    span(3, "agent run", 2, 7, 2, {"agent_name": "b", "all_messages_events": CHAT}),
                    span(4, "agent_run", 8, 9, 1))  # fmt: skip
    assert [(sender, words) for sender, *_, words in emits(imported)] == [
        ("", None), ("lead", "why?"), ("b", "so"), ("lead", None),
    ]  # fmt: skip


def test_an_unfinished_span_stays_at_work(read: Any) -> None:
    imported = read(agent(1, "lead", 0, 5), agent(2, "b", 1, None, 1))
    assert findings(imported) == [("ET", None, "error")]
    assert len(ends(imported)) == 2


# --- hand-offs ---


@pytest.mark.parametrize(
    "spans",
    [
        [tool(9, "handoff to Bill Ing", 0.5, 0.6, 1)],
        [tool(9, "transfer_to_bill_ing", 0.5, 0.6, 1)],
        [tool(9, "transfer_to_agent", 0.5, 0.6, 1)],
        [tool(9, "transfer_to_agent", 0.5, 0.6, 1, {"agent_name": "Bill Ing"})],
        [tool(9, "handoff", 0.5, 0.6, 1, {"kwargs": {"to_agent": "Bill Ing"}})],
    ],
)
def test_a_tool_that_hands_over_gives_the_floor(spans: list[Any], read: Any) -> None:
    imported = read(agent(1, "a", 0, 1, answer="over to you"), *spans, agent(2, "Bill Ing", 2, 3),
                    agent(3, "c", 4, 5))  # fmt: skip
    assert [(sender, to, kind) for sender, to, kind, _ in emits(imported)] == [
        ("", ("a",), "problem"), ("a", ("Bill Ing",), "handoff"), ("Bill Ing", (), "solution"),
        ("", ("c",), "problem"), ("c", (), "solution"),
    ]  # fmt: skip
    assert "a hand-off gave the floor to the agent that followed: a to Bill Ing" in told(imported)


@pytest.mark.parametrize("name", ["transfer_to_other", "handoff to other", "look_up"])
def test_another_tool_hands_nothing_over(name: str, read: Any) -> None:
    imported = read(agent(1, "a", 0, 1), tool(9, name, 0.5, 0.6, 1), agent(2, "b", 2, 3))
    assert [kind for *_, kind, _ in emits(imported)] == ["problem", "solution"] * 2


def test_a_ring_of_handoffs_goes_round(read: Any) -> None:
    """With words that differ it is no LOOP; its 25th turn is told."""
    ring = [agent(n, "ab"[n % 2], n, n + 0.9, answer=f"words {n}",
                  about={"graph.node.parent_id": "ab"[(n - 1) % 2]})
            for n in range(1, 31)]  # fmt: skip
    imported = read(*ring)
    assert findings(imported) == [("LIVELOCK", None, "notice")]
    assert [r.type for r in imported.records if isinstance(r, Emit)].count("problem") == 1


def test_agents_side_by_side_without_a_handoff_are_requests_and_no_ring_is_looked_for(
    read: Any,
) -> None:
    flow = span(99, "invoke_workflow", 0, 99, None, {"gen_ai.operation.name": "invoke_workflow"})
    imported = read(flow, *[agent(n, "ab"[n % 2], n, n + 0.9, 99) for n in range(1, 31)])
    assert findings(imported) == []
    assert "LIVELOCK: agents of one workflow stand side by side" in told(imported)


# --- errors ---


def error(text: str, **more: Any) -> dict[str, Any]:
    return {"status": {"code": 2, "message": text}, **more}


def test_an_error_that_the_caller_survives_fails_one_turn(read: Any) -> None:
    imported = read(agent(1, "lead", 0, 5, answer="done"), agent(2, "b", 1, 2, 1, **error("X: y")))
    assert findings(imported) == [("FAIL", "turn", "notice"), ("FAIL", "answer", "warning")]
    assert emits(imported)[2] == ("b", ("lead",), "notice", {"error": "X: y"})


def test_an_error_that_is_passed_on_is_that_of_the_agent_that_raised_it(read: Any) -> None:
    imported = read(agent(1, "lead", 0, 5, **error("wrapped: X: y")),
                    agent(2, "b", 1, 2, 1, **error("X: y")))  # fmt: skip
    assert findings(imported) == [("FAIL", "turn", "notice"), ("FAIL", "request", "error")]
    (detail,) = failed_requests(imported)
    assert detail == {
        "how": "error",
        "event": "e-1",
        "activation": "turn-2",
        "error": "wrapped: X: y",
    }


@pytest.mark.parametrize(
    "about",
    [
        {"about": {"error.type": "ValueError"}},
        {"events": ({"name": "exception", "exception.type": "builtins.ValueError",
                     "exception.message": "no"},)},
        {"status": {"code": 2}},
    ],
)  # fmt: skip
def test_each_way_to_tell_an_error_counts(about: Any, read: Any) -> None:
    imported = read(agent(1, "a", 0, 1, **about))
    assert findings(imported) == [("FAIL", "turn", "notice"), ("FAIL", "request", "error")]


def test_an_exception_in_a_span_that_says_ok_was_handled(read: Any) -> None:
    event = {"name": "exception", "exception.type": "ValueError"}
    assert findings(read(agent(1, "a", 0, 1, status={"code": 1}, events=(event,)))) == []


def test_a_limit_ends_a_request_by_no_agents_fault(read: Any) -> None:
    imported = read(agent(1, "a", 0, 1, **error("Max turns exceeded: {'max_turns': 30}")))
    assert findings(imported) == [("FAIL", "request", "error")]
    (detail,) = failed_requests(imported)
    assert (detail["how"], detail["activation"]) == ("limit", None)


def test_a_turn_without_words_in_a_tool_that_failed_was_called_off(read: Any) -> None:
    """Pydantic AI leaves the span of a cancelled agent without a status."""
    imported = read(agent(1, "lead", 0, 5, answer="late"),
                    tool(2, "ask", 1, 3, 1, {"q": 1}, status={"code": 2, "message": "timeout"}),
                    agent(3, "b", 1.5, 2.9, 2))  # fmt: skip
    (end,) = [end for end in ends(imported) if end.error]
    assert end.cancelled
    assert findings(imported) == []
    assert "called off: b" in told(imported)


def test_a_cancelled_span_is_called_off(read: Any) -> None:
    imported = read(agent(1, "lead", 0, 5, answer="x"),
                    agent(2, "b", 1, 2, 1, **error("CancelledError")))  # fmt: skip
    assert [end.cancelled for end in ends(imported) if end.error] == [True]


# --- words ---


def asks(words: str, answer: str = "9 kg", count: int = 12) -> list[Any]:
    return [agent(1, "lead", 0, 99), *[agent(n, "b", n, n + 0.5, 1, words, answer)
                                       for n in range(2, 2 + count)]]  # fmt: skip


def test_the_same_asked_again_and_again_is_a_loop(read: Any) -> None:
    """Said by the caller, and by the callee: the 5th and the 10th time of each."""
    patterns = [pattern for pattern, *_ in findings(read(*asks("how heavy?")))]
    assert patterns.count("LOOP") == 4


@pytest.mark.parametrize(
    "words",
    ["__REDACTED__", "call [REDACTED] now", "it is long" * 9 + "...", '{"input": "half of i',
     '{"input": "<redacted>"}', "text [truncated]"],
)  # fmt: skip
def test_words_with_a_hole_are_never_equal(words: str, read: Any) -> None:
    imported = read(*asks(words, words))
    assert "LOOP" not in [pattern for pattern, *_ in findings(imported)]
    assert all(set(payload) == {"$cut"} for *_, payload in emits(imported)[1:-1])


def test_texts_cut_at_one_length_are_never_equal(read: Any) -> None:
    """As `OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT` cuts them, without a mark."""
    imported = read(*asks("q" * 128, "r" * 128))
    assert "LOOP" not in [pattern for pattern, *_ in findings(imported)]
    alone = read(*asks("q" * 128, "r"))
    assert "LOOP" in [pattern for pattern, *_ in findings(alone)]


def test_without_words_no_loop_is_looked_for(read: Any) -> None:
    assert "LOOP, VOID: no words were captured" in told(read(*asks("", "")))
    assert "LOOP" not in told(read(*asks("x", "y")))


MESSAGES = json.dumps([
    {"role": "system", "parts": [{"type": "text", "content": "be brief"}]},
    {"role": "user", "parts": [{"type": "text", "content": "why?"}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "name": "t"},
                                    {"type": "text", "content": "so"}]},
    {"role": "user", "parts": [{"type": "tool_call_response", "result": "1"}]},
])  # fmt: skip
CHAT = json.dumps({"messages": [{"type": "human", "content": "why?"},
                                {"type": "ai", "content": "so"}]})  # fmt: skip


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ({"gen_ai.input.messages": MESSAGES}, {"gen_ai.output.messages": MESSAGES}),
        ({"pydantic_ai.all_messages": MESSAGES}, {"final_result": "so"}),
        ({"input.value": CHAT}, {"output.value": CHAT}),
        ({"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "why?"},
         {"gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "so"}),
        ({"llm.input_messages.0.message.role": "user",
          "llm.input_messages.0.message.contents.0.message_content.text": "why?"},
         {"llm.output_messages.0.message.role": "assistant",
          "llm.output_messages.0.message.content": "so"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", ["its own", "a model's"])
def test_words_are_those_of_the_span_or_of_its_models(
    place: str, asked: Any, answered: Any, read: Any
) -> None:
    if place == "its own":
        imported = read(agent(1, "a", 0, 9, about=asked | answered))
    else:
        imported = read(agent(1, "a", 0, 9), span(2, "chat", 1, 2, 1, MODEL | asked),
                        span(3, "chat", 3, 4, 1, MODEL | answered))  # fmt: skip
    assert [payload for *_, payload in emits(imported)] == ["why?", "so"]


def test_words_in_events_of_the_older_conventions_are_read(read: Any) -> None:
    events = ({"name": "gen_ai.user.message", "content": "why?"},
              {"name": "gen_ai.choice", "message": "so"})  # fmt: skip
    imported = read(agent(1, "a", 0, 9, events=events))
    assert [payload for *_, payload in emits(imported)] == ["why?", "so"]


def test_what_a_tool_around_two_agents_was_asked_is_neithers(read: Any) -> None:
    imported = read(agent(1, "a", 0, 9), tool(2, "both", 1, 8, 1, {"q": 1}, "r"),
                    agent(3, "b", 2, 3, 2), agent(4, "c", 4, 5, 2))  # fmt: skip
    assert {payload for *_, payload in emits(imported)} == {None}


# --- several files, hosts, and what is missing ---


@pytest.mark.parametrize("late", [-4, 4])
def test_a_call_of_a_host_with_another_clock_is_put_into_the_call(
    late: float, tmp_path: Path
) -> None:
    """Its clock goes four seconds wrong, which would look like work after the answer."""
    here = otlp(agent(1, "lead", 0, 3), span(2, "POST", 1, 2, 1, kind=3), host="one")
    there = otlp(span(3, "POST", 1.2 + late, 1.8 + late, 2, kind=2),
                 agent(4, "b", 1.3 + late, 1.7 + late, 3), host="two")  # fmt: skip
    imported = import_file(store(tmp_path / "x.json", here, there))
    assert findings(imported) == []
    assert "the clocks of hosts differ" in told(imported)


def test_a_span_that_begins_before_its_caller_begins_with_it(read: Any) -> None:
    imported = read(agent(1, "a", 1, 5), agent(2, "b", 0.9, 2, 1))
    assert [sender for sender, *_ in emits(imported)] == ["", "a", "b", "a"]
    assert "began before the one above it" in told(imported)


def test_an_agent_that_begins_after_its_caller_is_a_request(read: Any) -> None:
    imported = read(agent(1, "a", 0, 1), agent(2, "b", 3, 4, 1))
    assert [kind for *_, kind, _ in emits(imported)] == ["problem", "solution"] * 2
    assert "began after the one around it had ended" in told(imported)


def test_names_of_agents_may_be_any(read: Any) -> None:
    """`system` is nobody's name in a trace, and `b#2` may be an agent beside instances of `b`."""
    imported = read(agent(1, "system", 0, 9), agent(2, "b#2", 1, 8, 1), agent(3, "b", 2, 5, 1),
                    agent(4, "b", 3, 4, 1), agent(5, "", 6, 7, 1))  # fmt: skip
    names = {r.agent for r in imported.records if isinstance(r, Start)}
    assert names == {"system (agent)", "b#2", "b", "b#3", "agent"}


def test_spans_that_stand_twice_or_in_a_circle_do_no_harm(read: Any) -> None:
    circle = [agent(7, "c", 0, 1, 8), agent(8, "d", 0, 1, 7)]
    imported = read(agent(1, "a", 0, 1), agent(1, "a", 0, 1), *circle)
    assert [sender for sender, *_ in emits(imported)] == ["", "a"]


def test_agents_remember_within_a_conversation_alone(read: Any) -> None:
    both = [agent(n, "a", n, n + 0.5, about={"session.id": f"s{n}"}) for n in (1, 2)]
    for spans, remembers in ((both, False), (both[:1], True)):
        first = read(*spans).records[0]
        assert isinstance(first, Run)
        assert first.memory is remembers
    assert "several conversations stand in one run" in told(read(*both))


@pytest.mark.parametrize("seed", range(40))
def test_any_tree_of_spans_becomes_a_run(seed: int, read: Any) -> None:
    """Ends before starts, parents that are missing or later, errors, hand-offs: each turn ends."""
    random, rows = Random(seed), list[Any]()
    for number in range(1, random.randint(2, 14)):
        start = random.randint(0, 5)
        end = random.choice([None, start, start + 1, 9, start - 1])
        above = random.choice([None, random.randint(1, 14), number - 1 or None])
        status = random.choice([{}, {"code": 1}, {"code": 2, "message": "X: y"}])
        if random.random() < 0.7:
            about = {"graph.node.parent_id": random.choice("abc")}
            name = random.choice(["a", "b", "a#2", "system"])
            rows.append(agent(number, name, start, end, above, about=about, status=status))
        else:
            name = random.choice(["handoff to a", "transfer_to_agent", "look_up"])
            rows.append(tool(number, name, start, 9, above or 1, status=status))
    imported = read(agent(99, "first", 0, 9), *rows)
    finished = {end.activation for end in ends(imported)}
    begun = {r.activation for r in imported.records if isinstance(r, Start)}
    open_spans = sum("endTimeUnixNano" not in row for row in rows)
    assert len(begun - finished) <= open_spans


def test_a_log_that_names_spans_is_a_log(tmp_path: Path) -> None:
    rows = [{"from": "a", "to": "b", "span_id": "1", "content": 'of "resourceSpans"'}]
    path = tmp_path / "log.json"
    path.write_text(json.dumps(rows))
    assert import_file(path).format == "log"


@given(st.text(st.characters(codec=None)))
def test_a_text_that_python_printed_is_read_without_running_python(text: str) -> None:
    assert _unquote(repr(text)) == text


@given(st.text())
def test_a_text_that_python_would_not_print_is_read_too(text: str) -> None:
    assert isinstance(_unquote(f"'{text}\\'"), str)
