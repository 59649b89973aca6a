"""Golden files: the behaviour of a run, in lines for a person to read and compare.

One JSON object a line, each a step in which the graph grew:

    {"behaviour": 1}
    {"event": "e0", "from": "outside"}
    {"activation": "v0", "agent": "a0", "events": ["e0"]}
    {"end": "v0", "fates": {"e0": "consume"}}
    {"event": "e1", "from": "v0", "marks": ["final", "accepted"]}

Events, activations and agents are named by order of appearance, so that runs which differ only in
names, payloads and times give the same file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dig._util.files import open_file, read_file
from dig.errors import RecordError, TraceError, trace_errors
from dig.graph.behaviour import MARKS, ActivationEnd, ActivationStart, Behaviour, Generation
from dig.graph.records import FATES
from dig.traces.journal.durable_files import write_output
from dig.traces.journal.reader import read_graph

VERSION = 1
_KINDS = {"e": "event", "v": "activation", "a": "agent"}


def lines(behaviour: Behaviour) -> Iterator[str]:
    """A behaviour as lines of JSON, without newlines."""
    yield json.dumps({"behaviour": VERSION})
    events = activations = 0
    inputs: list[tuple[int, ...]] = []  # by activation
    # Numbers by appearance instead of names: runs that differ in ids alone give the same lines.
    for step in behaviour.steps:
        row: dict[str, Any]
        if isinstance(step, Generation):
            origin = step.origin if step.by is None else f"v{step.by}"
            row = {"event": f"e{events}", "from": origin}
            if step.marks:
                row["marks"] = list(step.marks)
            events += 1
        elif isinstance(step, ActivationStart):
            names = [f"e{event}" for event in step.events]
            row = {"activation": f"v{activations}", "agent": f"a{step.agent}", "events": names}
            inputs.append(step.events)
            activations += 1
        else:
            fates = zip(inputs[step.activation], step.fates, strict=True)
            row = {"end": f"v{step.activation}", "fates": {f"e{e}": fate for e, fate in fates}}
        yield json.dumps(row)


def write(behaviour: Behaviour, path: Path) -> None:
    """Write a behaviour to a file; missing folders are made.

    Raises:
        TraceError: It cannot be written.
    """
    with trace_errors(path, "written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_output(path, "".join(f"{line}\n" for line in lines(behaviour)).encode())


def read(path: Path) -> Behaviour:
    """Read a behaviour from a file.

    Raises:
        TraceError: The file cannot be read, or holds no behaviour; the line is named.
    """
    try:
        text = read_file(path).decode("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(path, None, f"cannot be read: {error}") from None
    reader = _Reader()
    for number, line in enumerate(text, 1):
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise RecordError("it is no JSON object")
            if number > 1:
                reader.add(row)
            elif row != {"behaviour": VERSION}:
                raise RecordError(f'the first line must be {{"behaviour": {VERSION}}}')
        except (RecordError, ValueError, RecursionError) as error:  # deep JSON raises the last
            raise TraceError(path, number, f"is no step of a behaviour: {error}") from None
    if not text:
        raise TraceError(path, None, 'is empty; a behaviour begins with {"behaviour": 1}')
    return Behaviour(reader.steps)


def is_golden(path: Path) -> bool:
    """A file looks like a behaviour rather than like a trace."""
    try:
        with open_file(path) as file:
            return file.readline(64).lstrip().startswith(b'{"behaviour"')
    except OSError:
        return False


class _Reader:
    """Reads steps in order, and refuses references to later steps."""

    def __init__(self) -> None:
        self.steps: list[Generation | ActivationStart | ActivationEnd] = []
        self._events = 0
        self._agents = 0
        self._inputs: list[tuple[int, ...]] = []  # by activation
        self._ended: set[int] = set()

    def add(self, row: dict[str, Any]) -> None:
        if "event" in row:
            self.steps.append(self._event(row))
        elif "activation" in row:
            self.steps.append(self._activation(row))
        elif "end" in row:
            self.steps.append(self._end(row))
        else:
            raise RecordError("it has none of the keys event, activation, end")

    def _event(self, row: dict[str, Any]) -> Generation:
        self._expect(row["event"], f"e{self._events}")
        self._events += 1
        marks = row.get("marks", [])
        mark_names = [mark for mark, _ in MARKS]
        if not isinstance(marks, list) or [m for m in mark_names if m in marks] != marks:
            raise RecordError(f"`marks` must be some of {mark_names}, in that order")
        origin = row.get("from")
        if origin == "outside" or origin == "system":
            return Generation(origin, None, tuple(marks))
        return Generation("agent", self._number(origin, "v", len(self._inputs)), tuple(marks))

    def _activation(self, row: dict[str, Any]) -> ActivationStart:
        self._expect(row["activation"], f"v{len(self._inputs)}")
        agent = self._number(row.get("agent"), "a", self._agents + 1)
        self._agents = max(self._agents, agent + 1)
        events = row.get("events")
        if not isinstance(events, list):
            raise RecordError("`events` must be a list")
        numbers = tuple(self._number(event, "e", self._events) for event in events)
        if list(numbers) != sorted(set(numbers)):
            raise RecordError("`events` must name each event once, in order of appearance")
        self._inputs.append(numbers)
        return ActivationStart(agent, numbers)

    def _end(self, row: dict[str, Any]) -> ActivationEnd:
        number = self._number(row["end"], "v", len(self._inputs))
        if number in self._ended:
            raise RecordError(f"{row['end']} has ended already")
        self._ended.add(number)
        fates = row.get("fates")
        keys = [f"e{event}" for event in self._inputs[number]]
        if not isinstance(fates, dict) or list(fates) != keys:
            raise RecordError(f"`fates` must have the keys {keys}, in that order")
        if any(fate not in FATES for fate in fates.values()):
            raise RecordError(f"a fate must be one of {', '.join(FATES)}")
        return ActivationEnd(number, tuple(fates.values()))

    def _expect(self, value: object, name: str) -> None:
        if value != name:
            raise RecordError(f"it names {value!r}, but {name} comes next")

    def _number(self, name: object, letter: str, count: int) -> int:
        """The number in the name of an earlier step, such as `e3`."""
        if isinstance(name, str) and name[:1] == letter and name[1:].isdecimal():
            number = int(name[1:])
            # `e03` would be a second name for `e3`.
            if name == f"{letter}{number}" and number < count:
                return number
        raise RecordError(f"{name!r} is no {_KINDS[letter]} that is there by then")


def behaviour_at(path: Path) -> Behaviour:
    """The behaviour of a trace, of a run directory, or in a golden file.

    Raises:
        TraceError: The file cannot be read, or breaks a rule; the line is named.
    """
    return read(path) if is_golden(path) else Behaviour.of(read_graph(path))
