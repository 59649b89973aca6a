"""Behaviours as files: they come back as they were, and nothing else is taken for one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given

from dig.errors import TraceError
from dig.graph.behaviour import Behaviour
from dig.show.compare import golden
from tests.behaviours import behaviour_of
from tests.oracle import Row
from tests.strategies import traces
from tests.traces.runs import solved


@given(rows=traces())
def test_a_behaviour_comes_back_from_its_file(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Row]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.behaviour"
    behaviour = behaviour_of(rows)
    golden.write(behaviour, path)
    assert golden.is_golden(path)
    assert golden.read(path).steps == behaviour.steps


def test_the_file_can_be_read_by_a_person(tmp_path: Path) -> None:
    """One step a line, named by order of appearance, without a word of what was said."""
    assert list(golden.lines(behaviour_of(solved()))) == [
        '{"behaviour": 1}',
        '{"event": "e0", "from": "outside"}',
        '{"activation": "v0", "agent": "a0", "events": ["e0"]}',
        '{"end": "v0", "fates": {"e0": "consume"}}',
        '{"event": "e1", "from": "v0"}',
        '{"activation": "v1", "agent": "a1", "events": ["e1"]}',
        '{"end": "v1", "fates": {"e1": "consume"}}',
        '{"event": "e2", "from": "v1"}',
        '{"activation": "v2", "agent": "a0", "events": ["e2"]}',
        '{"end": "v2", "fates": {"e2": "consume"}}',
        '{"event": "e3", "from": "v2", "marks": ["final", "accepted"]}',
    ]


def test_it_makes_the_folders_it_needs(tmp_path: Path) -> None:
    golden.write(Behaviour(()), tmp_path / "a" / "b")
    assert golden.read(tmp_path / "a" / "b").steps == ()


START = ['{"behaviour": 1}', '{"event": "e0", "from": "outside"}']
TURN = [*START, '{"activation": "v0", "agent": "a0", "events": ["e0"]}']


@pytest.mark.parametrize(
    ("lines", "at", "reason"),
    [
        ([], None, "is empty"),
        (["{}"], 1, "the first line must be"),
        (['{"behaviour": 2}'], 1, "the first line must be"),
        ([*START, "{"], 3, "is no step"),
        ([*START, "[]"], 3, "no JSON object"),
        ([*START, '{"what": 1}'], 3, "none of the keys"),
        ([*START, '{"event": "e2", "from": "outside"}'], 3, "e1 comes next"),
        ([*START, '{"event": "e1", "from": "v0"}'], 3, "'v0' is no activation"),
        ([*START, '{"event": "e1", "from": "v00"}'], 3, "'v00' is no activation"),
        ([*START, '{"event": "e1", "from": 3}'], 3, "3 is no activation"),
        ([*START, '{"event": "e1", "from": "outside", "marks": ["odd"]}'], 3, "`marks`"),
        ([*START, '{"activation": "v0", "agent": "a1", "events": []}'], 3, "'a1' is no agent"),
        ([*START, '{"activation": "v0", "agent": "a0", "events": ["e1"]}'], 3, "'e1' is no event"),
        ([*START, '{"activation": "v0", "agent": "a0", "events": ["e0", "e0"]}'], 3, "each event"),
        ([*START, '{"activation": "v0", "agent": "a0"}'], 3, "`events` must be a list"),
        ([*TURN, '{"end": "v0", "fates": {}}'], 4, "`fates` must have the keys"),
        ([*TURN, '{"end": "v0", "fates": {"e0": "eat"}}'], 4, "a fate must be one of"),
        ([*TURN, '{"end": "v0", "fates": {"e0": []}}'], 4, "a fate must be one of"),
        ([*TURN, *['{"end": "v0", "fates": {"e0": "delay"}}'] * 2], 5, "has ended already"),
        (["[" * 100_000], 1, "is no step"),
    ],
)
def test_what_is_no_behaviour_is_refused_with_its_line(
    tmp_path: Path, lines: list[str], at: int | None, reason: str
) -> None:
    path = tmp_path / "x"
    path.write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(TraceError, match="x") as error:
        golden.read(path)
    assert error.value.line == at
    assert reason in error.value.reason


def test_a_trace_is_no_golden_file(tmp_path: Path) -> None:
    path = tmp_path / "t.dig.jsonl"
    path.write_text(json.dumps(solved()[0]))
    assert not golden.is_golden(path)
    assert not golden.is_golden(tmp_path / "nothing")
