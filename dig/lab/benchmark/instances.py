"""A set of instances on disk: the names of the files, and readers of the files.

    set.json                     the index, with checksums
    CARD.md  dropped.json        the datasheet; the dropped candidates, and why
    baseline/CONFIGURATION/      runs without a fault: their traces, and endings.json
    baseline/CONFIGURATION.json  their numbers, measure by measure
    public/INSTANCE/             trace.dig.jsonl twin.dig.jsonl label.json causal_graph.json
    held-out/INSTANCE/           trace.dig.jsonl
    held-out-labels/INSTANCE/    twin.dig.jsonl label.json causal_graph.json
    held-out-labels/secret.json  the seed and the salt of the set
    structure-only/INSTANCE/     trace.dig.jsonl of held-out instances, without contents

The labels of the held-out part are in a folder of their own, which can be kept back.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, TypeVar, get_args

import pydantic

from dig._util.text import one_line
from dig.diagnosis.causes import CausalGraph
from dig.errors import RecordError, SettingsError
from dig.faults.inject.fault import Fault
from dig.faults.inject.fault_catalogue import KINDS, is_foreign
from dig.faults.inject.injections import Injection
from dig.graph.records import Record
from dig.lab.experiment.results import MOST, Amount, Count
from dig.lab.run_pair import Played
from dig.tasks.run.team_run import Recipients, TeamRun
from dig.traces.journal.reader import TRACE

from .set_reading import check_sum, read_model, read_run, read_text

INDEX = "set.json"
DROPPED = "dropped.json"
CARD = "CARD.md"
BASELINE = "baseline"
ENDINGS = "endings.json"
LABELS = "held-out-labels"
STRUCTURE = "structure-only"
SECRET = "secret.json"

TWIN = "twin.dig.jsonl"
LABEL = "label.json"
GRAPH = "causal_graph.json"
FILES = (TRACE, TWIN, LABEL, GRAPH)

T = TypeVar("T")

Split = Literal["public", "held-out"]
InstanceId = Annotated[str, pydantic.StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
"""The name of a folder, without a path."""
Sum = Annotated[str, pydantic.StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class _Part(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="forbid")


class RunEnding(_Part):
    """The end of a run: outcome; validity, completeness and error of the answer; raised patterns.

    A session ends well if all of its problems do; `problems` has the end of each.
    """

    outcome: str
    valid: bool
    complete: bool | None = None
    rmse: Amount | None
    seconds: Amount
    raised: Mapping[str, Count]
    problems: tuple[RunEnding, ...] = ()

    @pydantic.model_serializer(mode="wrap")
    def _without_nothing(self, dump: pydantic.SerializerFunctionWrapHandler) -> dict[str, Any]:
        body: dict[str, Any] = dump(self)
        # Most runs have one problem; a key for none would change the bytes of their labels.
        return body if self.problems else {k: v for k, v in body.items() if k != "problems"}

    @property
    def is_bad(self) -> bool:
        """Whether there is no valid answer, or an incomplete answer."""
        return not self.valid or self.complete is False

    @classmethod
    def of(cls, played: Played) -> RunEnding:
        """Measure the end of a played run."""
        if len(played.problems) > 1:
            return cls._of_session(tuple(map(cls.of, played.problems)))
        result, score = played.result, played.score
        return cls(
            outcome=result.outcome,
            valid=result.outcome == "submitted" and (score is None or score.valid),
            complete=score.complete if score and score.valid else None,
            rmse=played.rmse,
            seconds=result.seconds,
            raised=played.raised,
        )

    @classmethod
    def _of_session(cls, problems: tuple[RunEnding, ...]) -> RunEnding:
        errors = [problem.rmse for problem in problems if problem.rmse is not None]
        ended = [problem.outcome for problem in problems if problem.outcome != "submitted"]
        return cls(
            outcome=ended[0] if ended else "submitted",
            valid=all(problem.valid for problem in problems),
            complete=all(problem.complete is not False for problem in problems),
            rmse=fmean(errors) if len(errors) == len(problems) else None,
            seconds=max(problem.seconds for problem in problems),
            raised=problems[0].raised,
            problems=problems,
        )


class Endings(pydantic.RootModel[tuple[RunEnding, ...]]):
    """The ends of the runs of a baseline, in order."""


class _Candidates(pydantic.BaseModel):
    """The counts of all candidates in `dropped.json`."""

    raised: Mapping[str, Mapping[str, Count]] = pydantic.Field(default_factory=dict)
    raised_in_sessions: Mapping[str, Mapping[str, Count]] = pydantic.Field(default_factory=dict)


def _run(run: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(run.get("method"), str) or run.get("to") not in [*get_args(Recipients)]:
        raise ValueError("it does not say by which method it went, or who was given the problem")
    return run


def _fault(row: Mapping[str, Any]) -> Mapping[str, Any]:
    if not isinstance(row.get("kind"), str) or not isinstance(row.get("target"), str):
        raise ValueError("a fault has a kind and a target")
    if row["kind"] not in KINDS and (is_foreign(row["kind"]) or {*row} == {"kind", "target"}):
        return row  # a user's own kind, or one of a run that was made elsewhere
    try:
        Fault.read(row)
    except SettingsError as error:
        raise ValueError(str(error)) from None
    return row


_INJECTION = pydantic.TypeAdapter(Injection)


def _injection(row: Mapping[str, Any]) -> Mapping[str, Any]:
    injection = _INJECTION.validate_python(row)
    if not (0 <= injection.t <= MOST and 0 <= injection.ts <= MOST):
        raise ValueError("no record has such a number, or such a time")
    return asdict(injection)


_FaultRow = Annotated[Mapping[str, Any], pydantic.AfterValidator(_fault)]
_InjectionRow = Annotated[Mapping[str, Any], pydantic.AfterValidator(_injection)]


class TrueCause(_Part):
    """A fault of a run.

    Attributes:
        number: Its place among the faults of the label.
        component: The agent at fault.
        kind: The name of its kind.
        step: The activation in which it first acted, counted from 0 in the order of starts.
        first_act: The first record that it may have changed.
        first_effect: The first record that is another one than without it.
    """

    number: int = 0
    component: str
    kind: str
    step: Count
    first_act: Count
    first_effect: Count


class Label(_Part):
    """The faults of a run, and the end of the run with and without faults.

    Attributes:
        instance: The instance; empty until it has a name.
        configuration: The name of its configuration.
        run: All settings of the run, without the faults.
        faults: The faults; the prominent one first.
        injections: The acts of the faults in the trace.
        faulted: The end of the run.
        twin: The end of the same run without faults.
        stratum: The difficulty: the reason why the cause is hard to tell.
        harm: Whether the run has no right and complete answer.
        causes: The faults that led to what the run came to.
        bystanders: The faults that did not.
        innocent: The decoys: oddities that are in the twin as well, and did no harm.
    """

    instance: str
    configuration: str
    run: Annotated[Mapping[str, Any], pydantic.AfterValidator(_run)]
    faults: Annotated[tuple[_FaultRow, ...], pydantic.Field(min_length=1)]
    injections: Annotated[tuple[_InjectionRow, ...], pydantic.Field(min_length=1)]
    faulted: RunEnding
    twin: RunEnding
    stratum: str = "plain"
    harm: bool = True
    causes: tuple[TrueCause, ...] = ()
    bystanders: tuple[TrueCause, ...] = ()
    innocent: tuple[_FaultRow, ...] = ()

    @property
    def team_run(self) -> TeamRun:
        """The run, to be played again.

        Raises:
            SettingsError: The run is not one of simulated agents; no other code is run for a file.
        """
        try:
            return TeamRun.read_simulated(self.run)
        except SettingsError as error:
            raise SettingsError(f"{self.instance} cannot be played again: {error}") from None

    @property
    def problems(self) -> int:
        """The number of problems at once in the run."""
        return int(self.run.get("problems", 1))

    @property
    def is_healed(self) -> bool:
        """Whether failures were healed in the run."""
        return bool(self.run["method"] != "mas")

    def read_faults(self, foreign: Collection[str] = ()) -> tuple[Fault, ...]:
        """Read the faults, also of users' own kinds; a file runs no other code.

        Args:
            foreign: The kinds, as `module:object`, that the caller allows.

        Raises:
            SettingsError: The faults are of another kind that is in no catalogue.
        """
        try:
            return tuple(Fault.read(fault, foreign) for fault in self.faults)
        except SettingsError as error:
            raise SettingsError(f"{self.instance} cannot be played again: {error}") from None

    def is_of(self, kinds: Collection[str]) -> bool:
        """Whether a fault has a given kind, by name or `module:object`; true without kinds."""
        named = {*self.kind.split(" + "), *(str(fault["kind"]) for fault in self.faults)}
        return not kinds or not named.isdisjoint(kinds)

    @property
    def decoys(self) -> tuple[Fault, ...]:
        """The decoys."""
        return tuple(Fault.read(fault) for fault in self.innocent)

    @property
    def kind(self) -> str:
        """The kinds of the faults: `drop`, or `drop + slow`."""
        # The label has module paths of users' own kinds; causes have their plain names.
        names = {component.number: component.kind for component in (*self.causes, *self.bystanders)}
        return " + ".join(names.get(i, str(fault["kind"])) for i, fault in enumerate(self.faults))


def by_kind(items: Iterable[T], kind_of: Callable[[T], str]) -> dict[str, list[T]]:
    """Group items by the kinds of faults: single kinds first, then hybrids."""
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(kind_of(item), []).append(item)
    return dict(sorted(groups.items(), key=lambda item: (" + " in item[0], item[0])))


def _of_each_file(sums: Mapping[str, str]) -> Mapping[str, str]:
    if {*sums} - {STRUCTURE} != {*FILES}:
        raise ValueError(f"there is one for each of {', '.join(FILES)}")
    return sums


class Entry(_Part):
    """A line of the index: the public facts about an instance."""

    id: InstanceId
    split: Split
    configuration: str
    task: str
    size: Count
    agents: Count
    records: Count
    sha256: Annotated[Mapping[str, Sum], pydantic.AfterValidator(_of_each_file)]


def _each_once(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    for name, times in Counter(entry.id for entry in entries).items():
        if times > 1:
            raise ValueError(f"{name} stands there {times} times")
    return entries


class Index(_Part):
    """The index of a set."""

    format: Literal["digmon-fault-set"] = "digmon-fault-set"
    version: Literal[2] = 2
    instances: Annotated[tuple[Entry, ...], pydantic.AfterValidator(_each_once)]


@dataclass(frozen=True)
class Instance:
    """An instance of a set; every read compares the checksum of the file.

    Attributes:
        entry: Its line in the index.
        folder: The folder of its trace.
        labels: The folder of all other files, which may be kept back.
        structure: The folder of the trace without contents, if there is one.
    """

    entry: Entry
    folder: Path
    labels: Path
    structure: Path | None = None

    @property
    def is_labelled(self) -> bool:
        """Whether the instance's label is there."""
        return (self.labels / LABEL).is_file()

    def records(self) -> tuple[Record, ...]:
        """The run's records."""
        return read_run(self._check(self.folder / TRACE))

    def structure_only(self) -> tuple[Record, ...]:
        """The run's records without contents.

        Raises:
            SettingsError: There are none.
        """
        if self.structure is None:
            raise SettingsError(f"{self.entry.id} has no trace without contents")
        path = self.structure / TRACE
        # The file is called like the full trace, under whose sum `_check` would look.
        check_sum(path, self.entry.sha256[STRUCTURE])
        return read_run(path)

    def twin(self) -> tuple[Record, ...]:
        """The records of the same run without faults."""
        return read_run(self._check(self.labels / TWIN))

    def label(self) -> Label:
        """The label of the run."""
        return read_model(Label, self._check(self.labels / LABEL))

    def graph(self) -> CausalGraph:
        """The causal graph of the run."""
        path = self._check(self.labels / GRAPH)
        try:
            return CausalGraph.read(json.loads(read_text(path)))
        except RecordError as error:
            raise SettingsError(f"{path} is no causal graph: {one_line(error)}") from None

    def _check(self, path: Path) -> Path:
        """Compare the checksum of a file with the index."""
        check_sum(path, self.entry.sha256[path.name])
        return path


@dataclass(frozen=True)
class FaultSet:
    """A set of instances.

    Attributes:
        path: The path of the set.
    """

    path: Path
    index: Index

    @classmethod
    def open(cls, path: Path) -> FaultSet:
        """The set in a directory.

        Raises:
            SettingsError: The directory has no index.
        """
        if not (path / INDEX).is_file():
            raise SettingsError(
                f"{path} holds no set, since it has no {INDEX}; `digmon bench make` makes one"
            )
        return cls(path, read_model(Index, path / INDEX))

    def instances(self, *splits: Split) -> Iterator[Instance]:
        """Read the instances in order of ids; with names of parts, only these parts."""
        for entry in self.index.instances:
            if not splits or entry.split in splits:
                folder = self.path / entry.split / entry.id
                # Labels of held-out instances lie apart, so that one folder can be kept back.
                labels = folder if entry.split == "public" else self.path / LABELS / entry.id
                structure = self.path / STRUCTURE / entry.id if STRUCTURE in entry.sha256 else None
                yield Instance(entry, folder, labels, structure)

    def baseline_endings(self) -> Iterator[tuple[str, tuple[RunEnding, ...]]]:
        """The ends of the runs without a fault, by configuration.

        Raises:
            SettingsError: A file of them cannot be read.
        """
        for path in sorted((self.path / BASELINE).glob(f"*/{ENDINGS}")):
            yield path.parent.name, read_model(Endings, path).root

    def raised(self, *, in_sessions: bool = False) -> Mapping[str, Mapping[str, int]]:
        """For each pattern, the numbers of candidates with a good and with a bad end.

        Args:
            in_sessions: Whether in candidates with several problems, or in all others.

        Raises:
            SettingsError: The file of them cannot be read.
        """
        path = self.path / DROPPED
        if not path.is_file():
            return {}
        # Only sets of our own making have the counts; sets from elsewhere have no candidates.
        candidates = read_model(_Candidates, path)
        return candidates.raised_in_sessions if in_sessions else candidates.raised

    def labelled(self, *splits: Split) -> list[Instance]:
        """The instances with labels.

        Raises:
            SettingsError: No labels are there.
        """
        labelled = [instance for instance in self.instances(*splits) if instance.is_labelled]
        if not labelled:
            raise SettingsError(f"{self.path} has no labels of the instances that are asked for")
        return labelled
