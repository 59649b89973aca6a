"""Golden files: the behaviour of a run, in lines that a person can read and compare.

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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dig._util.files import open_file, read_file
from dig.errors import RecordError, TraceError
from dig.graph.behaviour import (
    MARKS,
    ActivationEnd,
    ActivationStart,
    Behaviour,
    BehaviourStep,
    Generation,
)
from dig.graph.records import FATES
from dig.traces.journal.files import write_output

VERSION = 1
_KINDS = {"e": "event", "v": "activation", "a": "agent"}


def lines(behaviour: Behaviour) -> Iterator[str]:
    """A behaviour as lines of JSON, without their newlines."""
    yield json.dumps({"behaviour": VERSION})
    events = activations = 0
    seen: list[tuple[int, ...]] = []
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
            seen.append(step.events)
            activations += 1
        else:
            fates = zip(seen[step.activation], step.fates, strict=True)
            row = {"end": f"v{step.activation}", "fates": {f"e{e}": fate for e, fate in fates}}
        yield json.dumps(row)


def write(behaviour: Behaviour, path: Path) -> None:
    """Write a behaviour to a file, and the folders above it.

    Raises:
        TraceError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_output(path, "".join(f"{line}\n" for line in lines(behaviour)).encode())
    except OSError as error:
        raise TraceError(path, None, f"cannot be written: {error.strerror or error}") from None


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
                reader.take(row)
            elif row != {"behaviour": VERSION}:
                raise RecordError(f'the first line must be {{"behaviour": {VERSION}}}')
        except (RecordError, ValueError, RecursionError) as error:
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
    """Takes one step after the other, and checks that each refers only to earlier ones."""

    def __init__(self) -> None:
        self.steps: list[BehaviourStep] = []
        self._events = 0
        self._agents = 0
        self._seen: list[tuple[int, ...]] = []
        self._ended: set[int] = set()

    def take(self, row: dict[str, Any]) -> None:
        takers: dict[str, Callable[[dict[str, Any]], BehaviourStep]] = {
            "event": self._event, "activation": self._activation, "end": self._end,
        }  # fmt: skip
        taker = next((take for key, take in takers.items() if key in row), None)
        if taker is None:
            raise RecordError(f"it has none of the keys {', '.join(takers)}")
        self.steps.append(taker(row))

    def _event(self, row: dict[str, Any]) -> BehaviourStep:
        self._expect(row["event"], f"e{self._events}")
        self._events += 1
        marks = row.get("marks", [])
        known = [mark for mark, _ in MARKS]
        if not isinstance(marks, list) or [m for m in known if m in marks] != marks:
            raise RecordError(f"`marks` must be some of {known}, in that order")
        origin = row.get("from")
        if origin == "outside" or origin == "system":
            return Generation(origin, None, tuple(marks))
        return Generation("agent", self._number(origin, "v", len(self._seen)), tuple(marks))

    def _activation(self, row: dict[str, Any]) -> BehaviourStep:
        self._expect(row["activation"], f"v{len(self._seen)}")
        agent = self._number(row.get("agent"), "a", self._agents + 1)
        self._agents = max(self._agents, agent + 1)
        events = row.get("events")
        if not isinstance(events, list):
            raise RecordError("`events` must be a list")
        numbers = tuple(self._number(event, "e", self._events) for event in events)
        if list(numbers) != sorted(set(numbers)):
            raise RecordError("`events` must name each event once, in order of appearance")
        self._seen.append(numbers)
        return ActivationStart(agent, numbers)

    def _end(self, row: dict[str, Any]) -> BehaviourStep:
        number = self._number(row["end"], "v", len(self._seen))
        if number in self._ended:
            raise RecordError(f"{row['end']} has ended already")
        self._ended.add(number)
        fates = row.get("fates")
        wanted = [f"e{event}" for event in self._seen[number]]
        if not isinstance(fates, dict) or list(fates) != wanted:
            raise RecordError(f"`fates` must have the keys {wanted}, in that order")
        if any(fate not in FATES for fate in fates.values()):
            raise RecordError(f"a fate must be one of {', '.join(FATES)}")
        return ActivationEnd(number, tuple(fates.values()))

    def _expect(self, found: object, name: str) -> None:
        if found != name:
            raise RecordError(f"it names {found!r}, but {name} comes next")

    def _number(self, name: object, letter: str, count: int) -> int:
        """The number in a name such as `e3`; there must be one of that kind already."""
        if isinstance(name, str) and name[:1] == letter and name[1:].isdecimal():
            number = int(name[1:])
            if name == f"{letter}{number}" and number < count:
                return number
        raise RecordError(f"{name!r} is no {_KINDS[letter]} that is there by then")
