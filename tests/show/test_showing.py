"""`digmon show`: a run, an event, an activation, an agent, a finding, as data and in words."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from dig.errors import TraceError
from dig.show.explain.facts import show
from dig.show.explain.lines import WIDTH, explanation_lines
from tests import failing
from tests.histories import arrive, emit, end, row, start, trace, turn
from tests.oracle import Row, State
from tests.strategies import traces
from tests.traces.runs import directory, hasty, solved, store


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return directory(tmp_path, "r", hasty(), method="dig")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return directory(tmp_path, "g", solved(tokens=3), score=0.5)


def told(path: Path, name: str | None = None) -> str:
    lines = list(explanation_lines(show(path, name)))
    assert max(map(len, lines)) <= WIDTH
    return "\n".join(lines)


# --- a run ---


def test_a_run_is_explained_with_what_was_raised_and_left(run: Path) -> None:
    """Who worked on what, how it ended, findings with their record numbers, healing, leftovers."""
    found = show(run)
    assert (found["what"], found["state"], found["method"]) == ("run", "in progress", "dig")
    assert (found["team"], found["problems"]) == (["a", "b", "c"], ["p"])
    assert [(f["record"], f["pattern"]) for f in found["raised"]] == [(11, "ET")]
    assert [(h["record"], h["finding"], h["note"]) for h in found["healing"]] == [
        (13, 11, "q is open")
    ]
    assert found["left"]["orphaned"] == {"q": "left"}
    text = told(run)
    assert "record 11, 2.0 s: error ET: answer f was submitted too early; still open: q" in text
    assert "orphaned: q (left)" in text


def test_a_run_that_went_well_says_so(good: Path) -> None:
    text = told(good)
    assert text.startswith("run r on adding\n  verdict: ")
    assert "  submitted, 16 records" in text.splitlines()
    assert "findings: none" in text
    assert "score: 0.5" in text
    assert " 4 tokens (3 sent, 1 received)" in " ".join(text.split())


@pytest.mark.parametrize(
    ("score", "text"),
    [
        ({"valid": True, "rmse": 45.09212791607865, "reason": ""}, "score: rmse 45.09"),
        ({"valid": False, "rmse": None, "reason": "no list"}, "It is not valid: no list."),
        ({"f1": 0.5, "of": 12}, "score: f1 0.5, of 12"),
        (0.75, "score: 0.75"),
    ],
)
def test_a_score_is_told_in_words(tmp_path: Path, score: Any, text: str) -> None:
    """Whatever a task writes; never as Python shows it."""
    assert text in told(directory(tmp_path, "s", solved(), score=score))


# --- an event ---


def test_the_story_of_an_event_is_whole_and_in_order(run: Path) -> None:
    """Emitted, raised, healed, sent back, delivered, shown, given a fate: with record numbers."""
    found = show(run, "f")
    assert [(c["record"], c["kind"]) for c in found["story"]] == [
        (11, "emit"), (12, "finding"), (13, "heal"), (14, "redirect"), (15, "deliver"),
        (16, "start"), (17, "end"),
    ]  # fmt: skip
    says = [chapter["says"] for chapter in found["story"]]
    assert says[0] == "emitted by w of a as an answer, and held"
    assert "with a note: q is open" in says[2]
    assert says[4] == "delivered to a, after 0.5 s"
    assert says[6] == "delayed by x of a"
    assert found["path"] == ["p", "v", "m", "w", "f"]
    assert found["state"]["bounced"] is True
    assert found["state"]["lies_with"] == ["a"]
    assert "p -> v -> m -> w -> f" in told(run, "f")


def test_an_event_that_left_with_its_agent_says_so(run: Path) -> None:
    found = show(run, "q")
    assert found["story"][-1]["says"] == "lost with b, who left"
    assert found["state"]["orphaned"] == "left"


def test_an_accepted_answer_is_one(good: Path) -> None:
    text = told(good, "f")
    assert text.startswith("event f [final solution]: accepted as the answer\n")
    assert "p -> v -> q -> w -> s -> x -> f" in text


def test_an_implied_fate_is_told(tmp_path: Path) -> None:
    """A note that an activation did not name was read, as the graph has it."""
    rows = trace(arrive(0, "n", "system", "a", "system"), start(1, "v", "a", "n"), end(1, "v"))
    found = show(store(tmp_path / "t.dig.jsonl", rows), "n")
    assert found["story"][-1]["fate"] == "consume"


# --- an activation, an agent ---


def test_an_activation_tells_inputs_outputs_and_ancestors(run: Path) -> None:
    found = show(run, "w")
    assert [(i["event"], i["fate"], i["by"], i["agent"]) for i in found["inputs"]] == [
        ("m", "consume", "v", "a")
    ]
    assert [(o["event"], o["final"]) for o in found["outputs"]] == [("f", True)]
    assert found["ancestors"] == ["v"]
    assert found["paths"] == [["p", "v", "m"]]
    text = told(run, "w")
    assert "activation w of a, 2.0 s to 2.0 s" in text
    assert "consumed m [problem], from v of a" in text


def test_an_activation_that_failed_says_why(tmp_path: Path) -> None:
    rows = trace(arrive(0, "p", None, "a"), start(1, "v", "a", "p"), end(1, "v"))
    rows[-1]["error"] = "the model is gone"
    path = store(tmp_path / "t.dig.jsonl", rows)
    assert "failed: the model is gone" in told(path, "v")


def test_an_agent_tells_what_it_did(run: Path) -> None:
    found = show(run, "a")
    assert [one["activation"] for one in found["activations"]] == ["v", "w", "x"]
    assert found["fates"] == {"consume": 2, "delay": 1}
    assert found["buffer"] == ["f"]
    assert "agent a: 3 activations" in told(run, "a") and "used" not in told(run, "a")
    gone = show(run, "b")
    assert (gone["present"], gone["activations"]) == (False, [])
    assert [one["kind"] for one in gone["came_and_went"]] == ["leave"]


def test_the_turns_of_an_agent_are_told_with_what_they_used(good: Path) -> None:
    """A limit of tokens or dollars leads to the agent, and from there to the dear turn."""
    assert "; used 4 tokens (3" in told(good, "a")


# --- a finding ---


def test_a_finding_goes_by_the_record_that_raised_it_as_in_check(run: Path) -> None:
    """The number of its row, which rows of kind `heal` name, finds it too."""
    found = show(run, "12")
    assert (found["pattern"], found["severity"], found["record"], found["row"]) == (
        "ET", "error", 11, 12,
    )  # fmt: skip
    assert [one["record"] for one in found["healing"]] == [13]
    assert ["p", "v", "q"] in [path["nodes"] for path in found["paths"]]
    assert show(run, "11") == found
    text = told(run, "12")
    assert "answer f was submitted too early" in text
    assert "q is open" in text


def test_a_number_that_is_no_finding_names_those_there_are(run: Path) -> None:
    with pytest.raises(TraceError, match="record 3 is no finding or incident; findings are at: 11"):
        show(run, "3")


def test_what_is_not_there_is_a_clear_error(run: Path) -> None:
    with pytest.raises(TraceError, match="no event, activation or agent 'zed'"):
        show(run, "zed")


def test_an_id_goes_before_a_number(tmp_path: Path) -> None:
    """An event may be called 3, and is meant then."""
    path = store(tmp_path / "t.dig.jsonl", trace(arrive(0, "3", None, "a")))
    assert show(path, "3")["what"] == "event"


# --- any run ---


@given(rows=traces(most=40))
def test_everything_in_any_run_can_be_explained(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    """Each id and agent has an explanation that is JSON, fits 80 columns and tells the truth."""
    path = store(tmp_path_factory.getbasetemp() / "any.dig.jsonl", rows)
    state = State.of(rows)
    assert told(path)
    copies = state.copies
    for name in [*copies, *(r["activation"] for r in rows if r["kind"] == "start")][::3]:
        found: dict[str, Any] = show(path, name)
        assert told(path, name)
        json.dumps(found, allow_nan=False)
        if found["what"] == "event":
            assert set(found["state"]["lies_with"]) == copies[name]
            assert set(pairwise(found["path"])) <= set(state.cleaned().edges)
    for agent in rows[0]["agents"][:1]:
        assert told(path, agent)


def test_nothing_in_a_trace_can_write_to_the_terminal(tmp_path: Path) -> None:
    """Control characters in names, notes, payloads and errors are shown, not sent."""
    evil = "\x1b[2J\u202e"
    rows = trace(
        arrive(0, evil, None, "a", evil),
        turn(1, f"v{evil}", "a", **{evil: "consume"}),
        row(1, "finding", pattern=evil, stage=evil, subject={"event": evil}, evidence={evil: evil}),
        row(1, "heal", finding=5, action=evil, event=evil, note=evil),
        row(1, "incident", what=evil, detail=evil),
    )
    rows[4]["error"] = evil
    path = store(tmp_path / "t.dig.jsonl", rows)
    for name in (None, evil, f"v{evil}", "a", "5"):
        text = told(path, name)
        assert "\x1b" not in text
        assert "\u202e" not in text


def test_a_long_stack_trace_keeps_the_cause_and_the_lines_of_the_user() -> None:
    """The frames of libraries are left out, but for the one that raised."""
    library = [
        line
        for n in range(60)
        for line in (f'  File "/v/site-packages/a.py", line {n}', "    go()")
    ]
    head, own = "Traceback (most recent call last):", ['  File "/u/own.py", line 26', "    read(x)"]
    text = [head, *library, *own, *library, "ValueError: 503", "", "The above", "", head, *library]
    detail = {"activation": "a", "text": "\n".join([*text, "KeyError: 1"])}
    facts = {"what": "incident", "record": 1, "ts": 0, "incident": "i", "detail": detail}
    lines = [line.strip() for line in explanation_lines(facts)]
    last = 'File "/v/site-packages/a.py", line 59'
    assert lines[lines.index(head) :] == [
        head, "...", *map(str.strip, own), "...", last, "go()", "ValueError: 503", "The above",
        head, "...", last, "go()", "KeyError: 1",
    ]  # fmt: skip


def test_a_failed_turn_shows_what_it_was_given_and_its_stack_trace(tmp_path: Path) -> None:
    """And so does an event its content; the record of the stack trace is shown, too."""
    rows = failing.failed()
    given = next(made for made in rows if made.get("event") == "x")
    given["payload"] = {"topic": "Plan a trip to Oslo \x1b[2J"}
    stack = {"activation": "a4", "text": "Traceback:\n  File x\nValueError: 503"}
    at = next(i for i, made in enumerate(rows) if made["kind"] == "end" and "error" in made) + 1
    rows.insert(at, row(0.2, "incident", what="stack trace", detail=stack))
    run = directory(tmp_path, "r", [{**made, "t": t} for t, made in enumerate(rows)])
    lines = [*explanation_lines(show(run, "a4"))]
    assert any("Plan a trip to Oslo" in line for line in lines)
    assert lines[lines.index("stack trace:") + 3] == "  ValueError: 503"
    assert "Plan a trip to Oslo" in [*explanation_lines(show(run, "x"))][1]
    assert "  ValueError: 503" in explanation_lines(show(run, str(at)))
    assert not any("\x1b" in line for line in explanation_lines(show(run, "x")))
    assert any(line.startswith("  turns: ") for line in explanation_lines(show(run)))


def test_a_trace_that_stops_before_an_output_is_told(tmp_path: Path) -> None:
    """A file may stop after any record, also within what a turn sends."""
    parts = arrive(0, "p", None, "a"), turn(1, "v", "a", "q r", p="consume"), emit(1, "q", "v", "b")
    path = store(tmp_path / "t.dig.jsonl", trace(*parts))
    assert [row["event"] for row in show(path, "v")["outputs"]] == ["q"]
    (turn_of_a,) = show(path, "a")["activations"]
    assert turn_of_a["generated"] == ["q", "r"]
