"""Shapes of the answers of a model, for each stage and for the plain questions."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from dig.diagnosis.conversations.hierarchy import AgentLink, Scenario, SubtaskLink
from dig.diagnosis.conversations.reading import DataType

from .deciding import Responsible


# The names and docstrings below are part of the schemas that a model is sent, and so of the keys of
# cached answers: a change of one asks for all answers again.
class _Answer(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class PlannedSubtask(_Answer):
    """A range of steps."""

    id: str
    name: str
    goal: str
    first: int
    last: int


class SubtaskPlan(_Answer):
    """The log, cut into subtasks."""

    subtasks: list[PlannedSubtask]


class SaidPattern(_Answer):
    """A deviation upstream, and how it shows downstream."""

    bias: str
    anomaly: str
    scenario: Scenario


class ParsedAgent(_Answer):
    """An agent's part in a subtask."""

    subtask: str
    agent: str
    observation: str
    thought: str
    action: str
    result: str


class ParsedEdge(_Answer):
    """An edge between neighbouring subtasks, or between agents inside one."""

    level: Literal["subtask", "agent"]
    subtask: str | None
    source: str
    target: str
    type: SubtaskLink | AgentLink
    patterns: list[SaidPattern]


class Parsed(_Answer):
    """The parts of agents in subtasks, and the edges between them."""

    agents: list[ParsedAgent]
    edges: list[ParsedEdge]


class SaidFlow(_Answer):
    """A datum that goes from step to step."""

    source: int
    target: int
    output: str
    input: str
    type: DataType


class DataFlow(_Answer):
    """The data that went from step to step."""

    edges: list[SaidFlow]


class SaidOracle(_Answer):
    """The tests by which a subtask can be judged."""

    subtask: str
    goal: str
    preconditions: list[str]
    key_evidence: list[str]
    acceptance: list[str]


class Oracles(_Answer):
    """The tests of all subtasks."""

    oracles: list[SaidOracle]


class JudgedSubtask(_Answer):
    """The judgement of a subtask."""

    id: str
    deviates: bool
    why: str


class JudgedAgent(_Answer):
    """The judgement of an agent in a subtask."""

    subtask: str
    agent: str
    deviates: bool
    why: str


class JudgedStep(_Answer):
    """The judgement of a step."""

    step: int
    deviates: bool
    why: str


class Backtrack(_Answer):
    """The judgements of subtasks, agents in them, and their steps."""

    subtasks: list[JudgedSubtask]
    agents: list[JudgedAgent]
    steps: list[JudgedStep]


class ScreenedStep(_Answer):
    """The answers to the four questions about a candidate."""

    step: int
    upstream: list[int]
    upstream_why: str
    loop: bool
    responsible: Responsible
    loop_why: str
    spoilt_at: int | None
    spoilt_why: str
    recovered_at: int | None
    recovered_why: str


class StepVerdict(_Answer):
    """The agent and the step at fault."""

    agent: str
    step: int
    why: str


class Screening(_Answer):
    """The answers about all candidates, and a verdict."""

    candidates: list[ScreenedStep]
    verdict: StepVerdict


# --- if it is asked plainly ---


class JudgedLast(_Answer):
    """The judgement of the last step that is shown."""

    at_fault: bool
    why: str


class JudgedHalf(_Answer):
    """In which half of the steps the one at fault lies."""

    half: Literal["first", "second"]
    why: str
