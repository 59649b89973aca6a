"""An answer for which no data were read is not valid, however well it is formed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dig.cli import app
from dig.graph.records import SYSTEM, Deliver, Emit, End, Fate, Record
from dig.lab.experiment.run import carry_out
from dig.tasks.run.measures import Counts
from dig.tasks.task import Score
from tests.lab.experiment.test_experiment import asking
from tests.llm.server import Answer, says, serving, writes
from tests.llm.solver import results_in, solve

REASON = "this answer read no data"
VALID = Score(True, rmse=0.0)


def invents(request: dict[str, Any]) -> Answer:
    """A model that answers at once, in the right shape."""
    return says({
        "calls": [], "fates": [{"event": "e1", "fate": "consume", "to": []}],
        "outputs": [{"type": "solution", "payload": {"counts": {"3": 20}}, "final": True}],
    })  # fmt: skip


def measures_first(request: dict[str, Any]) -> Answer:
    """A model that asks how long the data are before it invents them."""
    called = list(results_in(request["messages"]))
    return invents(request) if called else writes(("size", {"part": [0, 20]}))


def run(folder: Path, url: str, *more: str) -> tuple[str, Any]:
    """What the command prints for a person, and the result that it writes."""
    fixed = ["run", "count-frequency", "--size", "20", "--agents", "1", "--runs", str(folder)]
    done = CliRunner().invoke(app, [*fixed, "--model", "m", "--base-url", url, *more])
    (result,) = folder.glob("*/result.json")
    return done.stdout, json.loads(result.read_text())


@pytest.mark.parametrize("script", [invents, measures_first])
def test_an_answer_that_read_no_data_is_told_and_not_valid(tmp_path: Path, script: Any) -> None:
    """In the verdict, the score and the measures; a tool that only calculates reads nothing."""
    with serving(script) as server:
        told, result = run(tmp_path, server.url)
    assert result["outcome"] == "submitted"
    assert (result["score"]["valid"], result["score"]["rmse"]) == (False, None)
    assert REASON in result["score"]["reason"] and REASON in result["verdict"]["ended"]
    assert (result["measures"]["valid"], result["measures"]["rmse"]) == (False, None)
    assert REASON in " ".join(told.split())


def test_an_answer_from_data_is_valid(tmp_path: Path) -> None:
    with serving(solve) as server:
        told, result = run(tmp_path, server.url, "--agents", "2")
    assert result["score"]["valid"] and result["score"]["rmse"] == 0 and REASON not in told


def test_an_experiment_counts_such_an_answer_as_not_valid(tmp_path: Path) -> None:
    with serving(invents) as server:
        outcome = carry_out(asking(server.url), tmp_path)
    assert [(row.valid, row.complete, row.rmse) for row in outcome.rows[:1]] == [
        (False, False, None)
    ]


class Chain:
    """Records of agents that pass work on, each with the usage that it tells."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.t = 0
        self.emit("e1", None)

    def emit(self, event: str, by: str | None, final: bool = False) -> None:
        self.add(Emit(self.t, 0, event, by, (), "message", final))

    def add(self, record: Record) -> None:
        self.counts(record)
        self.t += 1

    def act(self, name: str, usage: Any, output: str, **fates: str) -> None:
        """One activation with an output."""
        of_inputs = tuple(Fate(event, fate) for event, fate in fates.items())  # type: ignore[arg-type]
        self.add(End(self.t, 0, name, of_inputs, (output,), usage))
        self.emit(output, name)

    def is_valid(self, answer: str) -> bool:
        """Whether the answer is, once it is accepted."""
        self.add(Deliver(self.t, 0, answer, None))
        score = self.counts.check_evidence(VALID)
        assert score is not None
        return score.valid


READ, NONE = {"reads": 2, "model": "m"}, {"reads": 0, "model": "m"}


@pytest.mark.parametrize(
    ("first", "second", "fate", "valid"),
    [
        (READ, NONE, "consume", True),
        (NONE, READ, "consume", True),
        (READ, NONE, "delay", False),  # what was read is no part of the answer
        (NONE, NONE, "consume", False),
        (None, NONE, "consume", True),  # an agent that does not tell may have read
        ({"model": "m"}, NONE, "consume", True),
        (NONE, None, "consume", True),
    ],
)
def test_data_reach_an_answer_by_what_is_consumed(
    first: Any, second: Any, fate: str, valid: bool
) -> None:
    chain = Chain()
    chain.act("a1", first, "e2", e1="consume")
    chain.act("a2", second, "e3", e2=fate)
    assert chain.is_valid("e3") is valid


def test_notes_of_the_system_bring_no_data() -> None:
    chain = Chain()
    chain.emit("e2", SYSTEM)
    chain.act("a1", NONE, "e3", e2="consume")
    assert not chain.is_valid("e3")


def test_the_answer_that_was_accepted_last_counts() -> None:
    """In a session."""
    chain = Chain()
    chain.act("a1", NONE, "e2", e1="consume")
    assert not chain.is_valid("e2")
    chain.act("a2", READ, "e3", e1="consume")
    assert chain.is_valid("e3")


@pytest.mark.parametrize("score", [None, Score(False, reason="there is no answer")])
def test_a_score_that_is_none_or_not_valid_stays(score: Score | None) -> None:
    chain = Chain()
    chain.act("a1", NONE, "e2", e1="consume")
    chain.add(Deliver(9, 0, "e2", None))
    assert chain.counts.check_evidence(score) is score
