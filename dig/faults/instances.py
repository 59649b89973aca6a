"""A set of instances on disk: what its files are called, and how they are read.

    set.json                     what there is, with checksums
    CARD.md  dropped.json        what the set is, and what was left out of it, and why
    baseline/CONFIGURATION/      runs without a fault: their traces, and endings.json
    baseline/CONFIGURATION.json  what they come to, measure by measure
    public/INSTANCE/             trace.dig.jsonl twin.dig.jsonl label.json causal_graph.json
    held-out/INSTANCE/           trace.dig.jsonl
    held-out-labels/INSTANCE/    twin.dig.jsonl label.json causal_graph.json

The labels of the held-out part are in a folder of their own, which can be kept back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dig.errors import RecordError, SettingsError
from dig.plain import one_line
from dig.records import Record
from dig.tasks.runs import TeamRun
from dig.traces.reader import TRACE, read_records

from .causal_graph import CausalGraph
from .fault import Fault
from .playing import Played

FORMAT: Final = "digmon-fault-set"
VERSION: Final = 1

INDEX = "set.json"
DROPPED = "dropped.json"
CARD = "CARD.md"
BASELINE = "baseline"
LABELS = "held-out-labels"

TWIN = "twin.dig.jsonl"
LABEL = "label.json"
GRAPH = "causal_graph.json"
FILES = (TRACE, TWIN, LABEL, GRAPH)

Split = Literal["public", "held-out"]
T = TypeVar("T", bound=BaseModel)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Ending(_Part):
    """How a run ended: what it came to, whether its answer is valid and how far off, and what was
    found in it, by pattern."""

    outcome: str
    valid: bool
    rmse: float | None
    seconds: float
    raised: Mapping[str, int]

    @classmethod
    def of(cls, played: Played) -> Ending:
        """How a run that was played ended."""
        result, score = played.result, played.score
        return cls(
            outcome=result.outcome,
            valid=result.outcome == "submitted" and (score is None or score.valid),
            rmse=score.rmse if score else None,
            seconds=result.seconds,
            raised=result.raised(),
        )


class Label(_Part):
    """What was done to a run, and what came of it.

    Attributes:
        instance: The instance.
        configuration: What sort of run it is.
        run: All settings of the run, without the faults.
        faults: The faults; the prominent one first.
        injections: Where they showed themselves in the trace.
        faulted: How the run ended.
        twin: How the same run ends without faults.
    """

    instance: str
    configuration: str
    run: Mapping[str, Any]
    faults: tuple[Mapping[str, Any], ...]
    injections: tuple[Mapping[str, Any], ...]
    faulted: Ending
    twin: Ending

    @property
    def team_run(self) -> TeamRun:
        """The run, to be played again."""
        return TeamRun.read(self.run)

    @property
    def is_healed(self) -> bool:
        """Whether failures were healed in the run."""
        return bool(self.run["method"] != "mas")

    @property
    def injected(self) -> tuple[Fault, ...]:
        """The faults."""
        return tuple(Fault.read(fault) for fault in self.faults)

    @property
    def kind(self) -> str:
        """The kinds of the faults: `drop`, or `drop + slow`."""
        return " + ".join(fault["kind"] for fault in self.faults)


class Entry(_Part):
    """A line of the index: what may be known of an instance without its label."""

    id: str
    split: Split
    configuration: str
    task: str
    size: int
    agents: int
    records: int
    sha256: Mapping[str, str]


class Index(_Part):
    """What a set holds."""

    format: Literal["digmon-fault-set"] = FORMAT
    version: Literal[1] = VERSION
    seed: int
    instances: tuple[Entry, ...]


@dataclass(frozen=True)
class Instance:
    """One instance of a set.

    Attributes:
        entry: Its line in the index.
        folder: Where its trace is.
        labels: Where all else is, unless it was kept back.
    """

    entry: Entry
    folder: Path
    labels: Path

    @property
    def is_labelled(self) -> bool:
        """Whether its label is there."""
        return (self.labels / LABEL).is_file()

    def records(self) -> tuple[Record, ...]:
        """The run's records."""
        return tuple(read_records(self.folder / TRACE))

    def twin(self) -> tuple[Record, ...]:
        """The records of the same run without faults."""
        return tuple(read_records(self.labels / TWIN))

    def label(self) -> Label:
        """What was done to the run."""
        return _read(Label, self.labels / LABEL)

    def graph(self) -> CausalGraph:
        """What came of it, and how."""
        path = self.labels / GRAPH
        try:
            return CausalGraph.read(json.loads(_text(path)))
        except (RecordError, ValueError) as error:
            raise SettingsError(f"{path} is no causal graph: {one_line(error)}") from None


@dataclass(frozen=True)
class FaultSet:
    """A set of instances.

    Attributes:
        path: Where it is.
        index: What it holds.
    """

    path: Path
    index: Index

    @classmethod
    def open(cls, path: Path) -> FaultSet:
        """The set in a directory.

        Raises:
            SettingsError: There is none.
        """
        if not (path / INDEX).is_file():
            raise SettingsError(
                f"{path} holds no set, since it has no {INDEX}; `digmon bench make` makes one"
            )
        return cls(path, _read(Index, path / INDEX))

    def instances(self, *splits: Split) -> Iterator[Instance]:
        """The instances, those of some parts alone if parts are named, in order of their ids."""
        for entry in self.index.instances:
            if not splits or entry.split in splits:
                folder = self.path / entry.split / entry.id
                labels = folder if entry.split == "public" else self.path / LABELS / entry.id
                yield Instance(entry, folder, labels)

    def labelled(self, *splits: Split) -> list[Instance]:
        """The same, as far as their labels are there.

        Raises:
            SettingsError: None is.
        """
        found = [one for one in self.instances(*splits) if one.is_labelled]
        if not found:
            raise SettingsError(f"{self.path} has no labels of the instances that are asked for")
        return found


def _read(model: type[T], path: Path) -> T:
    try:
        return model.model_validate_json(_text(path))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "it"
        raise SettingsError(f"{path}: {place}: {one_line(first['msg'])}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {one_line(error)}") from None
