"""Graphs of the reference implementation: the same nodes, edges and fates come out."""

from __future__ import annotations

import copy
import json
import random
from pathlib import Path
from typing import Any

import pytest

from dig.errors import TraceError
from dig.graph.graph import InteractionGraph
from dig.graph.records import Emit, FindingRow, HealRow, Run
from dig.lab.reference.reference import FATE_OF
from dig.traces.interchange.imports import Imported, import_file, save
from dig.traces.journal.reader import read_graph

DATA = Path(__file__).parent / "data"
TEAM, EXTERNAL = DATA / "dig-graph-team.json", DATA / "dig-graph-external.json"

Body = dict[str, Any]


def body(path: Path = TEAM) -> Body:
    loaded: Body = json.loads(path.read_text())
    return loaded


def read(folder: Path, whole: Body) -> Imported:
    path = folder / "graph.json"
    path.write_text(json.dumps(whole))
    return import_file(path)


def edges(imported: Imported) -> set[tuple[str, str, str | None]]:
    found = InteractionGraph.of(imported.records).to_networkx().edges(data=True)
    return {(source, target, keys.get("fate")) for source, target, keys in found}


def stored_edges(whole: Body) -> set[tuple[str, str, str | None]]:
    """The edges that a stored graph says, as its own edge view derives them."""
    found: set[tuple[str, str, str | None]] = set()
    for name, activation in whole["activations"].items():
        if activation["agent_id"] == "system":
            continue
        failed = activation["metadata"]["dig"].get("failed")
        for event in activation["inputs"]:
            reaction = activation["input_reactions"].get(event["id"], {"label": "consume"})
            fate = "delay" if failed else FATE_OF[reaction["label"]]
            found.add((event["id"], name, fate))
    for name, event in whole["events"].items():
        maker = whole["activations"].get(event["source_activation_id"])
        if maker and maker["agent_id"] != "system":
            found.add((event["source_activation_id"], name, None))
    return found


@pytest.mark.parametrize("path", [TEAM, EXTERNAL], ids=["team", "external delivery"])
def test_the_graph_is_the_stored_one(path: Path) -> None:
    """Splits, reroutes, waits, a failure, healing, a late tool result, a submission, a discard."""
    imported = import_file(path)
    assert imported.format == "dig-graph"
    assert edges(imported) == stored_edges(body(path))


def test_agents_events_and_answer_are_the_stored_ones() -> None:
    imported = import_file(TEAM)
    graph, whole = InteractionGraph.of(imported.records), body()
    assert set(graph.history.event_ids) == set(whole["events"])
    assert list(graph.agents) == ["planner", "reviewer", "worker_1", "worker_2"]
    assert graph.is_accepted("e8")
    payloads = {r.event: r.payload for r in imported.records if isinstance(r, Emit)}
    assert payloads["e2"] == whole["events"]["e2"]["payload"]
    assert payloads["e7"] == "please submit"
    first = imported.records[0]
    assert isinstance(first, Run)
    assert first.session is True


def test_healing_is_kept_with_its_notes() -> None:
    """What was annotated or created stands as findings and healing, in the source's words."""
    records = import_file(TEAM).records
    patterns = {r.t: r.pattern for r in records if isinstance(r, FindingRow)}
    heals = [r for r in records if isinstance(r, HealRow)]
    assert [(patterns[r.finding], r.action, r.event, r.note) for r in heals] == [
        ("excessive_rerouting", "inject", "e3", "do it now"),
        ("orphan", "inject", "e5", "to reviewer"),
        ("missed_submission", "create", "e7", "please submit"),
    ]


def test_every_guess_is_told() -> None:
    guesses = list(import_file(TEAM).guesses)
    assert "what was attached to an activation after its end came at its end: e6" in guesses
    assert "a submitted answer was accepted: e8" in guesses
    assert list(import_file(EXTERNAL).guesses) == [
        "all agents were there from the beginning to the end",
        "the run ended with what was stored last",
    ]


def test_an_imported_graph_is_a_trace_like_any_other(tmp_path: Path) -> None:
    """As a run directory, and as a file; neither is written over."""
    imported = import_file(TEAM)
    for out in (tmp_path / "run", tmp_path / "t.dig.jsonl"):
        path = save(imported, out)
        assert read_graph(path).t == len(imported.records) - 1
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(Exception, match="File exists"):
            save(imported, out)


# --- where times and rules do not fit ---


def test_times_that_contradict_the_graph_give_way_to_it(tmp_path: Path) -> None:
    """Whatever the times are, the edges stay, and what was moved is told."""
    rng = random.Random(2)
    for _ in range(60):
        whole = body(rng.choice([TEAM, EXTERNAL]))
        wanted = stored_edges(whole)
        base = whole["created_at"]
        for event in whole["events"].values():
            for stamp in event["timestamps"]:
                if rng.random() < 0.3:
                    stamp["at"] = base + rng.random() / 10
        for activation in whole["activations"].values():
            if rng.random() < 0.3:
                activation["started_at"] = base + rng.random() / 10
        imported = read(tmp_path, whole)
        extra = edges(imported) - wanted
        assert wanted <= edges(imported)
        assert all(fate == "delay" for _, _, fate in extra)
        told = "\n".join(imported.guesses)
        assert not extra or "though the source does not list it" in told


def test_turns_of_one_agent_that_overlap_come_one_after_the_other(tmp_path: Path) -> None:
    whole = body()
    whole["activations"]["a6"]["started_at"] = whole["activations"]["a3"]["started_at"]
    imported = read(tmp_path, whole)
    assert edges(imported) == stored_edges(whole)
    assert any("began later than stored" in guess for guess in imported.guesses)


def test_an_event_of_an_activation_that_is_not_stored_is_from_outside(tmp_path: Path) -> None:
    whole = body(EXTERNAL)
    whole["events"]["e1"]["source_activation_id"] = "a99"
    imported = read(tmp_path, whole)
    assert any("is from outside: e1" in guess for guess in imported.guesses)


def test_a_submission_to_agents_is_ordinary_work(tmp_path: Path) -> None:
    whole = body()
    whole["events"]["e8"]["recipients"] = {"planner": {"label": "pending"}}
    imported = read(tmp_path, whole)
    assert not InteractionGraph.of(imported.records).is_accepted("e8")
    assert any("taken for ordinary work: a10" in guess for guess in imported.guesses)


def change(path: str, value: Any) -> Body:
    """The stored graph with one value replaced; `...` takes it out."""
    whole = body()
    place = whole
    *before, last = path.split("/")
    for key in before:
        place = place[int(key)] if isinstance(place, list) else place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return whole


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("events", ..., "`events` of the graph is missing, or is not an object"),
        ("activations", [], "`activations` of the graph"),
        ("events/e1/timestamps", 3, "`timestamps` of event 'e1'"),
        ("events/e1/timestamps", [1], "a timestamp of event 'e1' has no time"),
        ("events/e1/recipients", ["a"], "`recipients` of event 'e1'"),
        ("events/e1/label", ..., "`label` of event 'e1'"),
        ("events/e1/source_activation_id", 3, "`source_activation_id` of event 'e1' is no id"),
        ("events/e1/payload", 1e999, "payload of event 'e1'"),
        ("activations/a1/agent_id", None, "`agent_id` of activation 'a1'"),
        ("activations/a1/inputs", [{}], "an input of activation 'a1'"),
        ("activations/a1/inputs", [{"id": "e99"}], "was shown 'e99', which is not in the file"),
        ("activations/a1/started_at", "noon", "`started_at` of activation 'a1' is no time"),
        ("activations/a1/input_reactions", {"e1": {"label": "eat"}}, "has the reaction 'eat'"),
        ("activations/a1/inputs", [{"id": "e2"}], "in a circle"),
    ],
)
def test_what_is_no_such_graph_is_refused_with_its_place(
    tmp_path: Path, path: str, value: Any, reason: str
) -> None:
    with pytest.raises(TraceError) as error:
        read(tmp_path, change(path, value))
    assert reason in str(error.value)


def test_another_schema_is_not_taken_for_this_one(tmp_path: Path) -> None:
    whole = copy.deepcopy(body())
    whole["schema"] = "dig.graph.v3"
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(whole))
    with pytest.raises(TraceError, match=r"must be 'dig\.graph\.v2'"):
        import_file(path, "dig-graph")
