"""The judge: reads the log of a run and the taxonomy of failures, and may intervene.

It reads every so many activations, while all agents wait (`reviewer`). It returns a
`Verdict`, of which `dig.lab.judge.judged` makes findings and interventions. There are two judges,
which see the same log: a language model (`model_judge`), and a simulated one (`simulated`) whose
recall, precision and latency are stated instead of measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field

from dig.detectors.patterns import NAMES
from dig.errors import SettingsError
from dig.graph.codec import encode
from dig.graph.records import NOTICE
from dig.runtime.agents import Decision, NewEvent, View

from .reviewer import ReviewMaterial, ReviewView

MOST_LOG = 120_000
"""Of a log that is longer, in characters, a model is shown the beginning and the end."""

if TYPE_CHECKING:
    # mypy cannot read a Literal made from a tuple at run time.
    PatternName = str
else:
    PatternName = Literal[NAMES]


class _Strict(BaseModel):
    # A misspelt field is an error, not dropped in silence.
    model_config = ConfigDict(extra="forbid")


class Remedy(_Strict):
    """The action against a failure."""

    do: Literal["none", "inject", "reroute", "create"]
    event: str = Field(default="", description="For inject and reroute: the event's id.")
    to: list[str] = Field(default=[], description="For reroute and create: who gets it.")
    note: str = Field(default="", description="What the agents are told.")


class JudgeReport(_Strict):
    """A failure, as reported by a judge."""

    pattern: PatternName
    subject: str = Field(default="", description="The event, activation or agent concerned.")
    reason: str = Field(description="What in the log shows it.")
    action: Remedy


class Verdict(_Strict):
    """The reports of a judge after a reading; most often none."""

    reports: list[JudgeReport] = []

    def decision(self) -> Decision:
        """The decision of an activation of the judge, with the verdict as the payload."""
        report = NewEvent(payload=self.model_dump(), type=NOTICE)
        # Without reports there is no event, and nothing for detectors to read.
        return Decision(outputs=[report] if self.reports else [])


def reading_of(view: View) -> ReviewMaterial:
    """The log that a judge gets to read.

    Raises:
        SettingsError: The view has none, since the agent is not a reviewer.
    """
    if not isinstance(view, ReviewView):
        raise SettingsError("a judge that is no reviewer is shown nothing to judge")
    return view.reading


def log_text(reading: ReviewMaterial, most: int = MOST_LOG) -> str:
    """A log as text for a judge: one record per line, as in a trace.

    Args:
        reading: The records so far.
        most: The most characters; of a longer log, the middle is left out.
    """
    lines = [encode(record) for record in reading.log]
    if sum(map(len, lines)) + len(lines) <= most:
        return "\n".join(lines)
    # The first record has the team and the limits, which explain all others.
    first, last, room = lines[:1], list[str](), most - len(lines[0])
    for line in reversed(lines[1:]):
        room -= len(line) + 1
        if room < 0:
            break
        last.insert(0, line)
    gap = f"... {len(lines) - len(first) - len(last)} records are left out here ..."
    return "\n".join([*first, gap, *last])
