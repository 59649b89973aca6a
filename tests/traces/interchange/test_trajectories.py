"""Trajectories in ATIF, as two producers write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dig.errors import TraceError
from dig.graph.records import Emit, End, Run, Start
from dig.show.gate.checked import runs_in
from dig.traces.interchange.imports import import_file

from .coding import at
from .test_coding_sessions import alarms, answers, raised, unread

Node = dict[str, Any]


def step(number: int, source: str, message: str, seconds: float | None, **keys: Any) -> Node:
    stamp = {} if seconds is None else {"timestamp": at(seconds)}
    return {"step_id": number, "source": source, "message": message, **stamp, **keys}


def call(use: str, tool: str, **given: Any) -> Node:
    return {"tool_call_id": use, "function_name": tool, "arguments": given}


def single(**keys: Any) -> Node:
    """A trajectory without subagents, in the form of 1.4, as a terminal agent writes it."""
    return {
        "schema_version": "ATIF-v1.4",
        "session_id": "s",
        "agent": {"name": "mini-agent", "version": "1"},
        "steps": [
            step(1, "system", "You are careful.", 0),
            step(2, "user", "Fix the test", 1),
            step(3, "agent", "I run it", 2, tool_calls=[call("c1", "bash", command="pytest")],
                 observation={"results": [{"source_call_id": "c1", "content": "1 failed"}]},
                 metrics={"prompt_tokens": 100, "completion_tokens": 7, "cost_usd": 0.25}),
            step(4, "agent", "It is fixed", 9, metrics={"prompt_tokens": 9}),
        ],
        **keys,
    }  # fmt: skip


def child(key: str, seconds: float | None) -> Node:
    return {
        "schema_version": "ATIF-v1.7",
        "trajectory_id": key,
        "agent": {"name": "coder", "version": "1"},
        "steps": [
            step(1, "user", f"Do {key}", seconds),
            step(2, "agent", f"{key} is done", seconds and seconds + 5),
        ],
    }


def team(*, pending: bool = False, seconds: float | None = 2) -> Node:
    """Two delegations of one step, whose trajectories are embedded; the second may be pending."""
    results: list[Node] = [
        {
            "source_call_id": "c1",
            "content": "ok",
            "subagent_trajectory_ref": [{"trajectory_id": "k1"}],
        },
        {
            "source_call_id": "c2",
            "subagent_trajectory_ref": [{"trajectory_id": "k2", "session_id": "s"}],
        },
    ]
    if pending:
        results[1]["extra"] = {"subagent_result_pending": True}
    calls = [call("c1", "delegate", task="one"), call("c2", "delegate", task="two")]
    return {
        "schema_version": "ATIF-v1.7",
        "trajectory_id": "root",
        "agent": {"name": "lead", "version": "2"},
        "steps": [
            step(1, "user", "Do both", seconds and 1),
            step(2, "agent", "", seconds, tool_calls=calls, observation={"results": results}),
            step(3, "agent", "Both are done", seconds and 20),
        ],
        "subagent_trajectories": [child("k1", seconds and 3), child("k2", seconds and 4)],
    }


def store(folder: Path, trajectory: Any, name: str = "t.json") -> Path:
    (folder / name).write_text(json.dumps(trajectory))
    return folder / name


def test_a_trajectory_of_one_agent_is_a_request_and_its_answer(tmp_path: Path) -> None:
    imported = import_file(path := store(tmp_path, single()))
    assert (imported.format, answers(imported), raised(path)) == ("atif", ["It is fixed"], [])
    assert isinstance(run := imported.records[0], Run) and run.agents == ("mini-agent",)
    (end,) = [record for record in imported.records if isinstance(record, End)]
    assert end.us == 8_000_000
    assert end.usage == {"input_tokens": 109, "output_tokens": 7, "cost_usd": 0.25}


@pytest.mark.parametrize("seconds", [2, None])
def test_subagents_are_called_and_their_reports_used(seconds: float | None, tmp_path: Path) -> None:
    path = store(tmp_path, team(seconds=seconds))
    assert raised(path) == []
    agents = [r.agent for r in import_file(path).records if isinstance(r, Start)]
    assert agents == ["lead", "coder", "coder#2", "lead"]


def test_a_report_that_is_still_to_come_at_the_answer_is_an_error(tmp_path: Path) -> None:
    path = store(tmp_path, team(pending=True))
    assert (raised(path), unread(path)) == ([("ET", "error")], ["coder#2's report"])


def test_subagents_may_lie_in_files_beside_it_but_not_elsewhere(tmp_path: Path) -> None:
    root = team()
    (inner := tmp_path / "in").mkdir()
    results = root["steps"][1]["observation"]["results"]
    children = root.pop("subagent_trajectories")
    for place, result, trajectory in zip(("k1.json", "../k2.json"), results, children, strict=True):
        store(inner, trajectory, place)
        result["subagent_trajectory_ref"] = [{"session_id": "s", "trajectory_path": place}]
    imported = import_file(path := store(inner, root))
    payloads = [r.payload for r in imported.records if isinstance(r, Emit)]
    assert raised(path) == []
    assert any(r.us == 7_000_000 for r in imported.records if isinstance(r, End))  # k1 said so
    assert "k2 is done" not in payloads


def test_a_subagents_file_beside_its_callers_is_no_run_of_its_own(tmp_path: Path) -> None:
    """A directory that is searched has one run, whose check names the lost report once."""
    root, skipped = team(), dict[str, list[Path]]()
    inner = store(tmp_path, root.pop("subagent_trajectories")[0], "./k1.json")
    (ref,) = root["steps"][1]["observation"]["results"][0]["subagent_trajectory_ref"]
    ref["trajectory_path"] = "./k1.json"
    path = store(tmp_path, root)
    assert runs_in([tmp_path], skipped) == [path]
    assert skipped["read as a part of another run"] == [inner]


def test_side_chains_among_the_steps_are_subagents(tmp_path: Path) -> None:
    """So Claude Code's sessions look after their conversion."""
    side = {"extra": {"is_sidechain": True}}
    use = call("c1", "Task", description="Look", subagent_type="Explore", prompt="Look there")
    steps = [
        step(1, "user", "Go", 1),
        step(2, "agent", "", 2, tool_calls=[use]),
        step(3, "user", "Look there", 3, **side),
        step(4, "agent", "found", 6, **side),
        step(5, "agent", "Done", 9),
    ]
    steps[1]["observation"] = {"results": [{"source_call_id": "c1", "content": "found"}]}
    path = store(tmp_path, single(steps=steps))
    assert raised(path) == []
    assert any(r.us == 5_000_000 for r in import_file(path).records if isinstance(r, End))


def test_copied_context_and_unknown_keys_are_passed_over(tmp_path: Path) -> None:
    copied = step(1, "user", "Old", 0, is_copied_context=True, odd=[1])
    root = single(odd={"a": 1})
    path = store(tmp_path, {**root, "steps": [copied, *root["steps"], 7, None]})
    assert answers(import_file(path)) == ["It is fixed"]
    assert len([r for r in import_file(path).records if isinstance(r, Emit) and r.by is None]) == 1


def test_a_subagent_without_steps_is_known_by_its_report_alone(tmp_path: Path) -> None:
    root = team()
    root["subagent_trajectories"][0].pop("steps")
    assert raised(store(tmp_path, root)) == []


def test_titles_that_look_like_numbered_ones_are_ids_of_their_own(tmp_path: Path) -> None:
    root = team()
    for number, title in enumerate(("Look", "Look", "Look-2"), 4):
        uses = [call(use := f"c{number}", "delegate", description=title)]
        result = {"source_call_id": use, "subagent_trajectory_ref": [{"session_id": use}]}
        delegation = step(number, "agent", "", number, tool_calls=uses)
        root["steps"].insert(-1, {**delegation, "observation": {"results": [result]}})
    assert raised(store(tmp_path, root)) == []


def test_a_trajectory_that_stops_at_a_tool_is_cut_off(tmp_path: Path) -> None:
    root = single()
    root["steps"] = root["steps"][:3]
    root["steps"][2].pop("observation")
    assert alarms(path := store(tmp_path, root)) == []
    assert answers(import_file(path)) == []


@pytest.mark.parametrize(
    "text", ['{"schema_version": "ATIF-v1.7", "steps": [', '{"a": "ATIF-v1.7"}']
)
def test_what_is_no_trajectory_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(TraceError, match=r"is no JSON|no trajectory"):
        import_file(tmp_path / "t.json", "atif")
