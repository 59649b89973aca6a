"""Answers about the traces of a set: a JSON file with a schema.

    {"format": "digmon-answers", "version": 1, "by": "who answers",
     "answers": {"i0007": {
        "root_causes": [{"component": "agent-3", "kind": "drop", "evidence": [41]}],
        "propagation": [{"source": "agent-3", "target": "outcome", "evidence": [41, 97]}]}}}

A component is an agent's name, `task` (the parts that the work is made of) or `outcome` (what the
run came to). Evidence is numbers of records, the `t` of the trace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from dig.faults.inject.fault_catalogue import KINDS

from .set_reading import read_model


def _each_once(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(numbers))


Name = Annotated[str, StringConstraints(min_length=1)]
FaultKind = Annotated[Name, Field(json_schema_extra={"examples": [*KINDS]})]
RecordNumber = Annotated[int, Field(ge=0)]
Evidence = Annotated[tuple[RecordNumber, ...], AfterValidator(_each_once)]


class _Part(BaseModel):
    model_config = ConfigDict(
        extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True
    )


class RootCause(_Part):
    """Where a failure began, and how."""

    component: Name
    """The agent at fault, by name."""
    kind: FaultKind
    """The kind of fault: a name of the catalogue (`digmon faults`), or any other."""
    evidence: Evidence = ()
    """Numbers of records that show it; they should be about the component."""


class CausalStep(_Part):
    """A step from cause to consequence: a failure of `source` led to a failure of `target`."""

    source: Name
    """The component that the step leads from: an agent, `task` or `outcome`."""
    target: Name
    """The component that it leads to."""
    evidence: Evidence = ()
    """Numbers of records that show it; they should be about one of the two."""


class Answer(_Part):
    """An answer about a run; empty, if nothing went wrong."""

    root_causes: tuple[RootCause, ...] = ()
    """Every root cause: two, where two faults met."""
    propagation: tuple[CausalStep, ...] = ()
    """How the failure went on from there."""
    step: RecordNumber | None = None
    """The activation in which it began, counted from 0 in the order of their starts."""
    onset: RecordNumber | None = None
    """The record at which it began."""


class Answers(_Part):
    """Answers about a set. A run without an answer counts as a run with an empty answer."""

    format: Literal["digmon-answers"] = "digmon-answers"
    """Says what the file is."""
    version: Literal[1] = 1
    """Of this schema."""
    by: str = ""
    """Who answers."""
    answers: Mapping[str, Answer]
    """An answer for each run, by its name in the set."""

    def text(self) -> str:
        """The file."""
        return json.dumps(self.model_dump(exclude_none=True), ensure_ascii=True, indent=1) + "\n"


def read_answers(path: Path) -> Answers:
    """The answers of a file.

    Raises:
        SettingsError: The file cannot be read, or does not fit the schema; the message names the
            place in it.
    """
    return read_model(Answers, path)
