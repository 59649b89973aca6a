"""The measures of a run, and the origin of agents and data."""

from __future__ import annotations

from typing import Any

from dig._util.text import safe_text
from dig.detectors import JUDGE
from dig.graph.records import HealRow, IncidentRow, Record, Start
from dig.runtime.result import RunResult
from dig.show.summary_text import Row
from dig.tasks.task import Score
from dig.traces.usage import Costs, tokens

from .team_run import OWN, SIMULATED


class Counts(Costs):
    """Adds up the usage, the activations and the notes of a run; a sink.

    Attributes:
        calls: The number of the agents' activations.
        judge_calls: The number of the judge's activations.
        notes: The number of notes with words that healing gave, and of preventive ones.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls = self.judge_calls = self.notes = 0

    def __call__(self, record: Record) -> None:
        """Take a record into account."""
        super().__call__(record)
        if isinstance(record, Start):
            self.judge_calls += record.agent == JUDGE
            self.calls += record.agent != JUDGE
        elif isinstance(record, HealRow):
            self.notes += bool(record.note)
        elif isinstance(record, IncidentRow):
            self.notes += record.what == "prevented"


def measures(result: RunResult, score: Score | None, clock: str, counts: Counts) -> dict[str, Any]:
    """The figures for comparisons of runs, as plain JSON.

    Args:
        result: The result of the run.
        score: The score of its answer.
        clock: `virtual`, or the speed of a real clock.
        counts: The usage and the activations, added up.
    """
    return {
        "valid": score.valid if score else None,
        "rmse": score.rmse if score else None,
        "seconds": result.seconds,
        "clock": clock,
        "calls": result.activations - counts.judge_calls,
        "judge_calls": counts.judge_calls,
        "tokens": tokens(counts.sums),
        "cost": dict(counts.sums),
        "findings": result.raised(),
        "worth": result.worth,
    }


def origin_rows(agents_are: str, data_are: str | None) -> list[Row]:
    """Rows of a summary about the origin of agents and data."""
    rows = [("agents", _ORIGINS.get(agents_are) or safe_text(agents_are, 80))]
    return rows + ([("data", safe_text(data_are, 200))] if data_are else [])


_ORIGINS = {
    SIMULATED: "simulated agents; no language model was called",
    OWN: "those that the task brought with it",
}
