"""The one mapping: records into spans, log records and measurements."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig import Create, Output
from dig._util.redaction import mask_secrets
from dig.graph import records as kinds
from dig.graph.codec import decode, encode
from dig.graph.records import Record
from dig.runtime import simulate
from dig.traces.otel.content import Content
from dig.traces.otel.ids import MOST_NS, Origin, remote, segment
from dig.traces.otel.items import Count, Item, LogItem, Sample, Span
from dig.traces.otel.mapping import Mapping
from tests import failing
from tests.chaos import chaos_run
from tests.helpers import Heals, Recorder, Sees, Stage, answer, on_emit, out
from tests.histories import row, trace

ORIGIN = Origin("run-1", 1_000)
FAR = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SECRET = "sk-proj-0123456789abcdef"


def mapped(records: Iterable[Record], origin: Origin = ORIGIN, **settings: Any) -> list[Item]:
    mapping = Mapping(origin, **settings)
    return [item for record in records for item in mapping.feed(record)] + mapping.close()


def spans(records: Iterable[Record], **settings: Any) -> dict[str, Span]:
    """The spans of a run, by name and id."""
    found = {}
    for item in mapped(records, **settings):
        if isinstance(item, Span) and not item.is_open:
            name = item.attributes.get("dig.activation.id", item.name)
            assert name not in found
            found[str(name)] = item
    return found


def chaos(seed: int) -> Recorder:
    run = chaos_run(seed, heal=True)
    sink = Recorder()
    simulate(run.team, run.problem, setup=run.setup, script=run.script, sink=sink)
    return sink


def every_span(items: Iterable[Item]) -> Iterator[Span]:
    """All spans, that of the run with its end."""
    return (item for item in items if isinstance(item, Span) and not item.is_open)


seeds = st.integers(0, 10_000)


# --- ids and times ---


@given(seeds)
def test_what_is_exported_afterwards_is_what_is_exported_live(seed: int) -> None:
    """A trace that was written and read again gives the same spans, ids and numbers."""
    records = chaos(seed)
    stored = [decode(json.loads(encode(record))) for record in records]
    assert mapped(stored) == mapped(records)


@given(seeds)
def test_every_span_has_an_id_of_its_own_and_a_parent_in_its_trace(seed: int) -> None:
    """Ids are valid and unique, parents exist, and no tree is deeper than it may be."""
    found = [*every_span(mapped(chaos(seed), most_depth=3))]
    by_id = {span.span_id: span for span in found}
    assert len(by_id) == len(found)
    for span in found:
        assert 0 < span.span_id < 2**64 and 0 < span.trace_id < 2**128
        assert span.start_ns <= span.end_ns
        depth, above = 0, span
        while above.parent_id is not None:
            depth, above = depth + 1, by_id[above.parent_id]
            assert above.trace_id == span.trace_id
        assert depth <= 3


@given(seeds)
def test_links_lead_to_spans_that_are_exported(seed: int) -> None:
    """No link leads nowhere, and none to something that came later."""
    found = {span.span_id: span for span in every_span(mapped(chaos(seed)))}
    for span in found.values():
        for link in span.links:
            assert found[link.span_id].start_ns <= span.end_ns


def test_ids_differ_between_executions_and_only_then() -> None:
    """Two executions of one configuration are two traces."""
    records = chaos(26)
    assert mapped(records) == mapped(records)
    other = mapped(records, Origin("run-2", 1_000))
    ids = [{i.span_id for i in items if isinstance(i, Span)} for items in (mapped(records), other)]
    assert not ids[0] & ids[1]


def test_ids_are_the_same_in_every_version() -> None:
    """A stored run keeps its ids: this is a promise, not an accident."""
    assert f"{ORIGIN.trace_id(0):032x}" == "05f3c04313d0cbf9e64737e0e58af2c7"
    assert f"{ORIGIN.activation('a1'):016x}" == "67a9273f7612c5b0"


def test_a_time_that_no_format_can_hold_is_the_last_one() -> None:
    assert ORIGIN.moment(10**21) == MOST_NS


def test_a_segment_never_falls() -> None:
    """Records and hours both make a run go on in another trace."""
    assert segment(0, 0) == segment(19_999, 3_599_999_999) == 0
    assert segment(20_000, 0) == segment(0, 3_600_000_000) == 1


# --- trees ---


def ring(turns: int) -> Recorder:
    """A message passed to and fro, and then submitted."""
    stage = Stage()
    stage.give("a")
    for turn in range(turns):
        stage.turn("ab"[turn % 2], out("ba"[turn % 2]))
    stage.turn("ab"[turns % 2], answer())
    stage.monitor.finish("submitted")
    return stage.sink


def test_a_chain_is_cut_where_it_would_be_too_deep() -> None:
    """The first span too deep stands below the root; how long the chain is, is still told."""
    found = spans(ring(30))
    root = next(span for span in found.values() if span.parent_id is None)
    below_root = [name for name, span in found.items() if span.parent_id == root.span_id]
    assert below_root == ["a1", "a13", "a25"]
    assert found["a14"].parent_id == found["a13"].span_id
    assert found["a30"].attributes["dig.depth"] == 30
    assert found["a13"].links[0].span_id == found["a12"].span_id


def test_an_activation_that_a_note_triggers_stands_below_the_healing() -> None:
    """Healing that makes an event is where that event comes from."""
    stage = Stage(
        detectors=[Sees(lambda graph, record: on_emit(graph, record) if graph.t == 1 else [])],
        healers={"SEEN": Heals(lambda graph, finding: [Create("look", ("b",))])},
    )
    stage.give("a")
    stage.turn("b", out("a"))
    found = spans(stage.sink)
    assert found["a1"].parent_id == found["dig.heal"].span_id
    assert found["dig.heal"].parent_id == found["dig.finding SEEN"].span_id
    assert found["a1"].links[0].span_id == found["dig.heal"].span_id
    assert found["a1"].attributes["dig.in.producers"] == ["system"]


def test_the_trigger_is_what_is_new() -> None:
    """An event that lay there before did not start the activation."""
    stage = Stage("abc")
    stage.give("a")
    stage.give("b")
    stage.turn("a", fate="delay")
    stage.turn("b", out("a"))
    stage.turn("a", out("c"))
    found = spans(stage.sink)
    assert found["a3"].attributes["dig.trigger"] == "e3"
    assert found["a3"].parent_id == found["a2"].span_id
    assert found["a3"].attributes["dig.in.event_ids"] == ["e1", "e3"]


def test_what_never_ends_is_exported_with_where_it_was_cut_off() -> None:
    """An agent that leaves, the end of the run and a trace that stops."""
    stage = Stage("abc")
    for agent in "abc":
        stage.give(agent)
        stage.start(agent)
    stage.monitor.leave("a")
    unfinished = spans(stage.sink)
    assert {n: s.attributes["dig.unfinished"] for n, s in unfinished.items() if n in "a1a2a3"} == {
        "a1": "left", "a2": "still going", "a3": "still going",
    }  # fmt: skip
    stage.monitor.finish("stopped")
    assert spans(stage.sink)["a2"].attributes["dig.unfinished"] == "the run ended"


def test_fates_other_than_consume_are_marks() -> None:
    """A delay, a reroute with its targets and a discard happen in the span of who decided."""
    stage = Stage()
    for _ in range(3):
        stage.give("a")
    started = stage.start("a")
    fates = [kinds.Fate("e1", "reroute", ("b",)), kinds.Fate("e2", "discard")]
    stage.clock.now = 1.0
    stage.monitor.end(started.activation, fates)
    marks = spans(stage.sink)["a1"].marks
    assert [(m.name, dict(m.attributes), m.ns) for m in marks] == [
        ("dig.event.rerouted", {"dig.event.id": "e1", "dig.target": ["b"]}, 1_000_001_000),
        ("dig.event.discarded", {"dig.event.id": "e2"}, 1_000_001_000),
        ("dig.event.delayed", {"dig.event.id": "e3"}, 1_000_001_000),
    ]


def test_a_failure_is_an_error_that_keeps_its_inputs() -> None:
    stage = Stage()
    stage.give("a")
    stage.monitor.end(stage.start("a").activation, error=f"timeout, api_key={SECRET}")
    span = spans(stage.sink)["a1"]
    assert span.error == "timeout, api_key=***"
    assert span.attributes["error.type"] == "_OTHER"
    assert span.marks[0].attributes["dig.reason"] == "the activation failed"


def test_usage_has_the_names_of_the_conventions() -> None:
    """Tokens and model, under either of the names that are usual; nonsense is left out."""
    stage = Stage()
    stage.give("a")
    usage = {"prompt_tokens": 7, "output_tokens": 10**30, "model": "gpt-x"}
    stage.monitor.end(stage.start("a").activation, usage=usage)
    about = spans(stage.sink)["a1"].attributes
    assert about["gen_ai.usage.input_tokens"] == 7
    assert about["gen_ai.request.model"] == "gpt-x"
    assert "gen_ai.usage.output_tokens" not in about


# --- contexts of others ---


def test_a_trace_context_that_comes_with_an_event_is_a_link() -> None:
    """Whoever consumes the event refers to the span that sent it, in whatever trace it is."""
    stage = Stage()
    stage.monitor.inject(Output("?", ("a",), "problem", traceparent=FAR))
    stage.turn("a", out("b"))
    (link,) = spans(stage.sink)["a1"].links
    assert (link.trace_id, link.span_id) == remote(FAR)
    assert link.remote


@pytest.mark.parametrize(
    "context",
    [
        "",
        "nonsense",
        FAR.replace("00-", "ff-"),
        FAR.upper(),
        FAR.replace("b7ad6b7169203331", "0" * 16),
    ],
)
def test_a_trace_context_that_is_none_is_passed_over(context: str) -> None:
    assert remote(context) is None


def test_what_comes_after_a_break_of_the_run_has_its_real_time() -> None:
    """The run's clock stood still; what is no time, or another incident, is passed over."""
    stage = Stage()
    stage.give()
    for what, detail in [
        ("resumed", {"down_s": 60.0}), ("owner", {"down_s": 3}), ("resumed", {"down_s": "2"}),
        ("disconnected", {"down_s": float(10**12)}), ("mine", {"down_s": 7.0}), ("owner", None),
    ]:  # fmt: skip
        stage.clock.now += 1.0
        stage.monitor.incident(what, detail)
        stage.clock.now += 1.0
        stage.turn("a", out("a"))
    found = spans(stage.sink, origin=Origin("run-1", 0))
    begin = [found[f"a{number}"].start_ns for number in range(1, 7)]
    assert begin == [1_000_000_000 * s for s in (62, 67, 69, 71, 73, 75)]


# --- what may leave ---


def talk(**settings: Any) -> str:
    """Everything that is exported of a run with payloads, notes and an answer."""
    stage = Stage(
        detectors=[Sees(lambda graph, record: on_emit(graph, record) if graph.t == 1 else [])],
        healers={"SEEN": Heals(lambda graph, finding: [Create("the note", ("b",))])},
    )
    stage.give("a", payload=f"the question {SECRET}")
    stage.turn("a", out("b", payload="the payload"))
    stage.turn("b", answer("the answer" * 300))
    stage.monitor.finish("submitted", "the answer" * 300)
    return repr(mapped(stage.sink, **settings))


def test_payloads_stay_unless_they_are_asked_for() -> None:
    """By default no payload, note or answer leaves."""
    said = ("the question", "the payload", "the note", "the answer")
    assert [one for one in said if one in talk()] == []


def test_a_root_lasts_as_long_as_the_run_and_says_what_came_of_it() -> None:
    """Its output is the end in words or, if payloads may leave, the answer; then the request is
    its input."""
    stage = Stage()
    stage.give("a", payload="the question")
    stage.clock.now = 2.0
    stage.turn("a", answer("the answer"))
    stage.monitor.finish("submitted", "the answer")
    root = spans(stage.sink)["invoke_workflow run"]
    assert (root.start_ns, root.end_ns, root.error) == (1_000, 2_000_001_000, "")
    assert root.attributes["output.value"] == (
        "An answer was accepted after 2.0 s. No one outside the team checked whether it is right."
    )
    told = spans(stage.sink, content=Content(payloads=True))["invoke_workflow run"].attributes
    assert (told["input.value"], told["output.value"]) == ("the question", "the answer")


def test_a_run_without_an_answer_is_an_error() -> None:
    """Its root is red, and says how the run ended."""
    stage = Stage()
    stage.give("a")
    stage.monitor.finish("timeout")
    root = spans(stage.sink)["invoke_workflow run"]
    assert root.error == "The time limit ended the run after 0.0 s. There is no answer."


def test_payloads_that_leave_are_cut_and_without_secrets() -> None:
    """With content they do, each cut, with secrets masked, under the conventions' names."""
    text = talk(content=Content(payloads=True, most=100))
    assert "the note" in text
    assert "the payload" in text
    assert "the answer" in text
    assert "gen_ai.input.messages" in text and "gen_ai.output.messages" in text
    assert SECRET not in text
    assert "the answer" * 11 not in text


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Authorization: Bearer abcdef0123456789", "Authorization: Bearer ***"),
        ('{"api_key": "abcdef012345"}', '{"api_key": "***"}'),
        ("password=hunter2hunter2;", "password=***;"),
        ("AKIAABCDEFGHIJKLMNOP", "***"),
        ("a token of appreciation, the secret ingredient", None),
    ],
)
def test_secrets_are_masked(text: str, masked: str | None) -> None:
    assert mask_secrets(text) == (masked or text)


def test_names_from_outside_are_safe_and_short() -> None:
    """No control character, half a character or endless name gets to a viewer."""
    name = "eve\x1b[31m\ud800" + "x" * 1000
    stage = Stage([name])
    stage.give("", type="problem")
    stage.monitor.inject(Output("?", (name,)))
    stage.turn(name, answer())
    for item in mapped(stage.sink):
        if isinstance(item, Span):
            repr(item).encode()
            assert len(item.name) < 250 and "\x1b" not in item.name


# --- what is kept ---


def test_memory_follows_what_is_open() -> None:
    """After a run nothing is kept but numbers: no message, no arrival, nobody at work."""
    mapping = Mapping(ORIGIN)
    for record in ring(300):
        mapping.feed(record)
    work = mapping._work
    assert (work._messages, work._held, work._busy) == ({}, {}, {})
    assert not any(work._arrived.values())


def test_metrics_have_few_values() -> None:
    """Agents without end are one agent to a metric."""
    stage = Stage([f"agent {i}" for i in range(150)])
    for i in range(150):
        stage.monitor.inject(Output("?", (f"agent {i}",)))
        stage.turn(f"agent {i}")
    counted = [i for i in mapped(stage.sink) if isinstance(i, Count | Sample)]
    agents = {dict(i.attributes).get("gen_ai.agent.name") for i in counted} - {None}
    assert len(agents) == 101 and "other" in agents


@pytest.mark.parametrize(
    ("said", "level", "worth"),
    [
        ({"severity": "error"}, "ERROR", "error"),
        ({"severity": "warning"}, "WARN", "warning"),
        ({"severity": "notice"}, "INFO", "notice"),
        ({"severity": "error", "silenced": "a drill"}, "INFO", "silenced"),
        ({}, "ERROR", "error"),
    ],
)
def test_a_finding_is_exported_as_what_it_is_worth(
    said: dict[str, str], level: str, worth: str
) -> None:
    """Only an error that no policy silences makes its span an error."""
    lines = trace(row(1, "finding", pattern="ET", stage=None, subject={}, evidence={}, **said))
    items = mapped([decode(line) for line in lines])
    (span,) = (i for i in items if isinstance(i, Span) and i.name == "dig.finding ET")
    (log,) = (i for i in items if isinstance(i, LogItem))
    (count,) = (i for i in items if isinstance(i, Count) and i.metric == "dig.findings")
    assert (bool(span.error), log.severity) == (level == "ERROR", level)
    assert span.attributes["dig.severity"] == said.get("severity", "error")
    assert span.attributes.get("dig.silenced") == said.get("silenced")
    assert dict(count.attributes)["dig.severity"] == worth


def test_an_incident_is_a_log_record() -> None:
    stage = Stage()
    stage.monitor.incident("oops", {"who": "x", "what": "y"})
    (log,) = (i for i in mapped(stage.sink) if isinstance(i, LogItem))
    assert (log.name, log.severity, log.body) == ("dig.incident", "WARN", "x oops: y")


def test_lost_work_that_is_sent_again_keeps_where_it_comes_from() -> None:
    """An orphan may come back; its context and its wait are still known."""
    stage = Stage()
    stage.monitor.inject(Output("?", ("nobody",), "problem", traceparent=FAR))
    stage.clock.now = 2.0
    stage.monitor.redirect("e1", ("a",))
    stage.turn("a", answer())
    assert spans(stage.sink)["a1"].links[0].remote
    held = [i for i in mapped(stage.sink) if isinstance(i, Sample) and i.metric == "dig.event.hold"]
    assert [sample.seconds for sample in held] == [2.0, 0.0]


# --- failed requests ---


def root_of(rows: list[dict[str, Any]], **settings: Any) -> Span:
    (root,) = (
        span for span in every_span(mapped(map(decode, rows), **settings)) if span.parent_id is None
    )
    return root


@pytest.mark.parametrize("session", [False, True])
def test_the_root_of_a_failed_request_has_the_headline_and_the_exception(session: bool) -> None:
    """By the names of OpenTelemetry's conventions; a session that is stopped as well."""
    root = root_of(failing.failed(session=session))
    assert root.error == failing.FAILED
    (mark,) = root.marks
    assert (mark.name, mark.ns) == ("exception", ORIGIN.moment(200_000))
    assert mark.attributes == {
        "exception.type": "ValueError",
        "exception.message": "the hotel service answered 503. Try it later",
    }


@pytest.mark.parametrize("payloads", [False, True])
def test_a_stack_trace_leaves_with_payloads_alone(payloads: bool) -> None:
    """It quotes lines of the user's code."""
    rows = failing.failed()
    at = next(n for n, row in enumerate(rows) if row.get("what") == "request_failed")
    detail = {"activation": "a4", "text": "line 7, in hotels"}
    rows.insert(at, {**rows[at], "what": "stack trace", "detail": detail})
    rows = [{**row, "t": t} for t, row in enumerate(rows)]
    items = mapped(map(decode, rows), content=Content(payloads=payloads))
    (mark,) = next(span for span in every_span(items) if span.parent_id is None).marks
    assert mark.attributes.get("exception.stacktrace") == (
        "line 7, in hotels" if payloads else None
    )
    assert ("line 7" in str(items)) is payloads


def test_secrets_in_an_exception_are_masked() -> None:
    root = root_of(failing.failed(f"ValueError: {SECRET}"))
    assert SECRET not in str((root.error, root.marks, root.attributes))


def test_an_answer_that_lacks_work_is_no_error_of_the_root() -> None:
    root = root_of(failing.partial())
    assert (root.error, root.marks) == ("", [])
    assert failing.PARTIAL.partition(",")[0] in str(root.attributes["dig.verdict"])


def test_a_limit_is_an_error_without_an_exception_of_a_turn() -> None:
    """Its type is that of what the framework raised."""
    root = root_of(failing.at_limit())
    assert root.error.startswith("the run ended at a limit of its framework")
    assert root.marks[0].attributes["exception.type"] == "GraphRecursionError"
