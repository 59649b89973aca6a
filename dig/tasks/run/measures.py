"""The measures of a run, and the origin of agents and data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from dig._util.text import safe_text
from dig.detectors import JUDGE
from dig.errors import RuleError, TraceError
from dig.graph.records import SYSTEM, Deliver, Emit, End, HealRow, IncidentRow, Record, Start
from dig.runtime.result import RunResult
from dig.show.summary_text import Row
from dig.tasks.task import Score
from dig.traces.journal.reader import read_records
from dig.traces.usage import Costs, tokens

from .team_run import OWN, SIMULATED


class Counts(Costs):
    """Adds up the usage, the activations and the notes of a run; a sink.

    Attributes:
        calls: The number of the agents' activations.
        judge_calls: The number of the judge's activations.
        notes: The number of notes with words that healing gave, and of preventive ones.
        is_invented: Whether no data were read for the answer that was accepted last.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls = self.judge_calls = self.notes = 0
        self.is_invented = False
        self._dataless: set[str] = set()  # events and activations with no data behind them

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
        self._trace_data(record)

    def check_evidence(self, score: Score | None) -> Score | None:
        """The score of the accepted answer, which is not valid if no data were read for it."""
        if score is None or not score.valid or not self.is_invented:
            return score
        reason = "this answer read no data: no tool that reads data was called for it"
        return Score(False, reason=reason, says=f"It is not valid: {reason}.")

    def _trace_data(self, record: Record) -> None:
        """Follow the data from the activations that read them to the answer."""
        ids = self._dataless
        match record:
            case Emit(event=event, by=by) if by in (None, SYSTEM) or by in ids:
                ids.add(event)
            # Only agents that count their reads, as those with a model do, can be without.
            case End(activation=name, usage={"reads": 0}, fates=fates):
                if all(fate.event in ids for fate in fates if fate.fate == "consume"):
                    ids.add(name)
            case Deliver(event=event, to=None):
                self.is_invented = event in ids


def with_mistakes(
    score: Score | None, mistakes: Callable[..., Any] | None, run: Path
) -> Score | None:
    """The score of a wrong answer with the agents behind it.

    Args:
        score: The score of the answer; ``None``: there is none.
        mistakes: The method of the task; ``None``: the task has none.
        run: The directory of the run, with a trace that is closed.
    """
    if score is None or not score.wrong or mistakes is None:
        return score
    try:
        return replace(score, mistakes=tuple(mistakes(read_records(run))))
    except (TraceError, RuleError):  # the run went on without its journal
        return score


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
