"""Readers of conversations: every layout, odd content, roles, and labels that are never read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dig.diagnosis.conversations.explaining import explain
from dig.diagnosis.conversations.reading import Role, layout_of, read_conversation
from dig.errors import SettingsError, TraceError
from dig.traces.interchange.imports import import_file, save
from tests.diagnosis.conversations.talks import BRIDGES, LOOP, TASK, history, read, talk, write

LABELS = {"mistake_agent": "Map_Expert", "mistake_step": "3", "mistake_reason": "It made it up."}


def said(conversation: Any) -> list[tuple[str, str]]:
    return [(one.speaker, one.text) for one in conversation.steps]


def test_the_layout_of_the_benchmark_is_read(tmp_path: Path) -> None:
    """Speakers are the names, the task is the question, and steps are counted from 0."""
    path = write(tmp_path / "7.json", history())
    found = read_conversation(path)
    assert layout_of(path) == "whowhen"
    assert said(found) == list(BRIDGES)
    assert (found.task, found.expected, found.name) == (TASK, None, "7")
    assert [one.number for one in found.steps] == list(range(len(BRIDGES)))


def test_a_speaker_may_stand_in_the_role(tmp_path: Path) -> None:
    """Without a name the role is the speaker; the agent is the part before ` (`."""
    rows = [{"role": who, "content": text} for who, text in LOOP]
    found = read(tmp_path / "a.json", {"history": rows, "question": TASK})
    assert [one.agent for one in found.steps[:4]] == [
        "human", "Orchestrator", "Orchestrator", "Browser"
    ]  # fmt: skip
    assert found.steps[2].speaker == "Orchestrator (-> Browser)"


@pytest.mark.parametrize("key", ["from", "sender", "who", "name", "agent", "role"])
@pytest.mark.parametrize("text", ["content", "payload", "text", "message"])
def test_messages_are_read_by_their_keys(tmp_path: Path, key: str, text: str) -> None:
    """A list, an object with `messages` and JSON lines say the same."""
    rows = [{key: who, text: words} for who, words in BRIDGES]
    shapes = [json.dumps(rows), json.dumps({"messages": rows}), "\n".join(map(json.dumps, rows))]
    for number, shape in enumerate(shapes):
        path = write(tmp_path / f"{number}.json", shape)
        assert layout_of(path) == "messages"
        found = read_conversation(path)
        assert said(found) == list(BRIDGES)
        assert found.task is None


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("", ""),
        ([{"type": "text", "text": "one"}, {"type": "image"}, "two"], "one\ntwo"),
        ({"count": 3}, '{"count": 3}'),
        ("half \ud83d a pair", "half \ufffd a pair"),
    ],
)
def test_content_of_any_shape_is_text(tmp_path: Path, content: Any, text: str) -> None:
    """Null, empty, in parts, an object, half a surrogate pair."""
    found = read(tmp_path / "a.json", {"history": [{"name": "A", "content": content}]})
    assert found.steps[0].text == text


def test_an_imported_trace_is_a_conversation(tmp_path: Path) -> None:
    """Each event is a step, although import puts several into one activation."""
    rows = [
        {"from": "user", "to": "A", "at": 1, "content": "count the bridges of the river"},
        {"from": "A", "to": "B", "at": 2, "content": "B, look them up"},
        {"from": "A", "to": "B", "at": 2, "content": "and the ferries, too"},
        {"from": "B", "to": "A", "at": 3, "content": "there are 17"},
    ]
    log = write(tmp_path / "log.json", rows)
    trace = save(import_file(log), tmp_path / "log.dig.jsonl")
    assert layout_of(trace) is None, "a trace is taken for a run unless it is said otherwise"
    found = read_conversation(trace, "conversation")
    assert said(found) == [
        ("environment", rows[0]["content"]),
        *((str(row["from"]), row["content"]) for row in rows[1:]),
    ]
    assert found.steps[0].role == "outside"


def test_labels_change_nothing(tmp_path: Path) -> None:
    """The document of a file with labels is that of the file without, but for its checksum."""
    without = {key: value for key, value in history().items() if key != "ground_truth"}
    rows = [{**row, "mistake": True} for row in without["history"]]
    labelled = {**history(), **LABELS, "is_correct": False, "history": rows}
    found = []
    for number, content in enumerate([without, labelled]):
        folder = tmp_path / str(number)
        folder.mkdir()
        document = explain(write(folder / "1.json", content), has_graph=True)
        text = document.to_json()
        assert document.source.sha256 in text
        found.append(text.replace(document.source.sha256, ""))
    assert found[0] == found[1]


def test_the_right_answer_is_read_only_on_purpose(tmp_path: Path) -> None:
    """`from-file` reads it, or says that there is none."""
    path = write(tmp_path / "1.json", history())
    assert read_conversation(path, expected="from-file").expected == "12"
    assert read_conversation(path, expected="13").expected == "13"
    bare = write(tmp_path / "2.json", [{"from": "A", "content": "hello there"}])
    with pytest.raises(SettingsError, match="no right answer"):
        read_conversation(bare, expected="from-file")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"history": 3}', "no list `history`"),
        ('{"history": []}', "holds no message"),
        ('{"history": [3]}', ":1: a message must be a JSON object"),
        ('{"history": [{"name": "A", "content": "x"}, {"content": "x"}]}', ":2: does not say who"),
        ("[]", "holds no message"),
        ('[{"from": "A", "from": "B"}]', "stands twice|twice"),
        ("[", "is no JSON"),
        ('{"messages": 3}', "must be a list"),
        ("[" * 5000 + "]" * 5000, "nested"),
    ],
)
def test_what_is_no_conversation_is_refused(tmp_path: Path, text: str, why: str) -> None:
    """The message names the place and what is wrong."""
    with pytest.raises(TraceError, match=why):
        read_conversation(write(tmp_path / "a.json", text))


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("human", "outside"), ("User", "outside"), (" ENVIRONMENT ", "outside"),
        ("Computer_terminal", "tool"), ("CodeExecutor", "tool"), ("python executor", "tool"),
        ("Orchestrator", "planner"), ("ResearchManager", "planner"), ("plan-router", "planner"),
        ("Blu-Ray_Expert", "worker"), ("Terminally_Ill_Expert", "worker"), ("Mana ger", "worker"),
    ],
)  # fmt: skip
def test_roles_by_name(name: str, role: Role) -> None:
    """A role is a whole word of a name, whatever its case."""
    assert talk([(name, "I have something of a certain length to say.")]).steps[0].role == role


def test_roles_by_what_is_said() -> None:
    """An agent that answers with exit codes is a tool; one that only delegates is a planner."""
    rows = [
        ("Lead", "Ann, please look up the bridges of the river Arvo."),
        ("Ann", "There are seventeen of them, says the map of the town."),
        ("Lead", "**Bob**: please check what Ann has found on the map."),
        ("Bob", "exitcode: 0 (execution succeeded)\nseventeen bridges were found"),
    ]
    assert [one.role for one in talk(rows).steps] == ["planner", "worker", "planner", "tool"]


def test_names_are_compared_without_case_and_space() -> None:
    """Two spellings are one agent in its role, and are shown as they stand."""
    rows = [("Box ", "exitcode: 0 (all is well with it)"), ("box", "there was nothing to run")]
    found = talk(rows)
    assert [one.role for one in found.steps] == ["tool", "tool"]
    assert [one.speaker for one in found.steps] == ["Box ", "box"]


def test_candidates_are_steps_that_say_something() -> None:
    """Tools, the outside and idle steps can't be at fault, unless there is nothing else."""
    assert [one.number for one in talk().candidates] == [0, 1, 3, 4, 5]
    assert [one.number for one in talk([("A", "TERMINATE"), ("human", "hi")]).candidates] == [0]
    assert [one.number for one in talk([("human", "hi"), ("human", "")]).candidates] == [0]
    assert [one.number for one in talk([("A", ""), ("B", " ")]).candidates] == [0, 1]
