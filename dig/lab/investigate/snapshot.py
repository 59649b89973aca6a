"""A directory as a world: topology, alarms and evidence of a system at the time of an incident.

    topology.json   {"entities": [{"id", "kind", "aliases"}],
                     "edges": [{"source", "target", "kind"}]}
    alerts.json     [{"entity", "ts", "name", "until", "severity"}]
    evidence.jsonl  {"id", "entity", "ts", "type", "about", "text", "value", "usual"}
    truth.json      {"roots": [], "propagation": []}: read by `scoring` alone

The order of files, rows and keys changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from hashlib import sha256
from math import isfinite
from pathlib import Path
from typing import Any

from dig._util.files import read_file
from dig._util.text import first_wrong, name
from dig.errors import SettingsError, TraceError, trace_errors

from .beliefs import Alert, Fact, Neighbour, Window

MOST_ENTITIES = 100_000
MOST_LINES = 1_000_000
MOST_LINE_BYTES = 64 * 1024
MARGIN_S = 300.0
"""So many seconds before and after the alarms count, unless a window is given."""

TOPOLOGY, ALERTS, EVIDENCE, TRUTH = (
    "topology.json", "alerts.json", "evidence.jsonl", "truth.json"
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class EntityRow:
    """An entity of the topology, with other names; several rows for an entity are merged."""

    id: str
    kind: str = ""
    aliases: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TopologyEdge:
    """An edge of the topology, of a kind such as `calls`."""

    source: str
    target: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Topology:
    """The known entities and dependencies, possibly incomplete."""

    entities: list[EntityRow] = field(default_factory=list)
    edges: list[TopologyEdge] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """A line of evidence; the id is optional."""

    entity: str
    ts: float
    type: str
    id: str | None = None
    about: str | None = None
    text: str = ""
    value: float | None = None
    usual: float | None = None


@dataclass(frozen=True, slots=True)
class SnapshotTruth:
    """The known causes, and the pairs (source, target) of the propagation."""

    roots: list[str]
    propagation: list[tuple[str, str]] = field(default_factory=list)


class Snapshot:
    """A system at the time of an incident.

    Attributes:
        topology: Its entities and edges, also undeclared ones.
    """

    def __init__(
        self, name: str, topology: Topology, alerts: Iterable[Alert], rows: Iterable[EvidenceLine]
    ) -> None:
        """Sort the content, so that the order of files and rows does not matter.

        Args:
            name: Its name.
            topology: Its entities and edges.
            alerts: The alarms.
            rows: The evidence; ids are unique.

        Raises:
            SettingsError: Two entities share an alias, two facts an id, a number is none, or there
                are too many entities.
        """
        self.name = name
        self._names = _canonical_names(topology.entities)
        # Of several rows the last kind in the alphabet wins, so an empty one never does.
        kinds = {row.id: row.kind for row in sorted(topology.entities, key=lambda row: row.kind)}
        edges = [
            TopologyEdge(self.canonical(edge.source), self.canonical(edge.target), edge.kind)
            for edge in topology.edges
        ]
        facts = _facts(rows, self.canonical)
        # Undeclared entities count too: topologies of real systems are never complete.
        ends = (end for edge in edges for end in (edge.source, edge.target))
        self._kinds = {name: kinds.get(name, "") for name in sorted({*kinds, *ends, *facts})}
        if len(self._kinds) > MOST_ENTITIES:
            raise SettingsError(
                f"there are {len(self._kinds):,} entities; at most {MOST_ENTITIES:,} can be read"
            )
        self._facts = facts
        self._alerts = sorted(
            (_rename(alert, self.canonical) for alert in alerts),
            key=lambda alert: (alert.ts, alert.entity, alert.name),
        )
        # After `_kinds`, which the rows of neighbours need.
        self._neighbours = self._all_neighbours(sorted(set(edges), key=astuple))
        # Over sorted content, so that the checksum does not change with the order in files.
        digest = sha256(repr([self._kinds, sorted(self._names.items()), self._alerts]).encode())
        digest.update(repr(sorted(self._neighbours.items())).encode())
        for entity, lines in facts.items():
            digest.update(repr((entity, lines)).encode())
        self.sha256 = digest.hexdigest()

    @classmethod
    def read(cls, directory: Path) -> Snapshot:
        """Read a directory.

        Raises:
            SettingsError: It is no directory, has nothing in it, or contradicts itself.
            TraceError: A file cannot be read; the message says which, and where.
        """
        if not directory.is_dir():
            raise SettingsError(f"{directory} is no directory")
        if not any((directory / file).exists() for file in (TOPOLOGY, ALERTS, EVIDENCE)):
            raise SettingsError(f"{directory} has none of {TOPOLOGY}, {ALERTS} and {EVIDENCE}")
        topology = _read(directory / TOPOLOGY, Topology) or Topology()
        alerts = _read(directory / ALERTS, list[Alert]) or []
        rows = _lines(directory / EVIDENCE)
        try:
            return cls(directory.resolve().name, topology, alerts, rows)
        except SettingsError as error:
            raise SettingsError(f"{directory}: {error}") from None

    def canonical(self, entity: str) -> str:
        """The main name of an entity, found by name or alias."""
        return self._names.get(entity, entity)

    @property
    def window(self) -> Window:
        """The time of the alarms and five minutes around; without alarms, unlimited."""
        if not self._alerts:
            return float("-inf"), float("inf")
        ends = [
            alert.ts if alert.until is None else max(alert.ts, alert.until)
            for alert in self._alerts
        ]
        return self._alerts[0].ts - MARGIN_S, max(ends) + MARGIN_S

    def alerts(self) -> Sequence[Alert]:
        """The alarms in order of (time, entity, name)."""
        return self._alerts

    def suspects(self, window: Window) -> Sequence[str]:
        """The entities with a change or an event in the window, by the time of the first."""
        first: dict[str, float] = {}
        for entity, facts in self._facts.items():
            for fact in facts:
                if fact.type in ("change", "event") and window[0] <= fact.ts <= window[1]:
                    first.setdefault(entity, fact.ts)
        return sorted(first, key=lambda entity: (first[entity], entity))

    def entities(self) -> Sequence[str]:
        """All entities: declared, at the end of an edge, or with evidence."""
        return [*self._kinds]

    def kind(self, entity: str) -> str:
        """The kind of an entity; empty if undeclared."""
        return self._kinds.get(entity, "")

    def evidence(self, entity: str, window: Window) -> Sequence[Fact]:
        """The facts about an entity in a window, in order of time."""
        return [fact for fact in self._facts.get(entity, ()) if window[0] <= fact.ts <= window[1]]

    def neighbours(self, entity: str) -> Sequence[Neighbour]:
        """The neighbours in the topology, by name."""
        return self._neighbours.get(entity, ())

    def _all_neighbours(self, edges: Iterable[TopologyEdge]) -> Mapping[str, Sequence[Neighbour]]:
        neighbours: dict[str, list[Neighbour]] = {}
        for edge in edges:
            if edge.source != edge.target:
                ends = ((edge.source, edge.target, False), (edge.target, edge.source, True))
                for source, other, is_source in ends:
                    row = Neighbour(other, self.kind(other), edge.kind, is_source)
                    neighbours.setdefault(source, []).append(row)
        return {
            entity: sorted(rows, key=lambda row: (row.entity, row.relation, row.is_source))
            for entity, rows in neighbours.items()
        }


def read_truth(directory: Path) -> SnapshotTruth:
    """Read the truth of a snapshot from its directory.

    Raises:
        SettingsError: There is none.
        TraceError: It cannot be read.
    """
    truth: SnapshotTruth | None = _read(directory / TRUTH, SnapshotTruth)
    if truth is None:
        raise SettingsError(f"{directory} has no {TRUTH}, so that nothing can be scored")
    return truth


def _canonical_names(entities: Iterable[EntityRow]) -> dict[str, str]:
    """The name of the entity by each alias."""
    rows = [*entities]
    declared = {row.id for row in rows}
    names: dict[str, str] = {}
    for row in rows:
        for alias in row.aliases:
            if alias == row.id:
                continue
            if alias in declared or names.get(alias, row.id) != row.id:
                raise SettingsError(f"{name(alias)} is a name of two entities")
            names[alias] = row.id
    return names


def _rename(alert: Alert, canonical: Any) -> Alert:
    if not all(map(isfinite, (alert.ts, alert.until or 0.0))):
        raise SettingsError(f"the time of an alarm about {name(alert.entity)} is no number")
    return Alert(canonical(alert.entity), alert.ts, alert.name, alert.until, alert.severity)


def _facts(rows: Iterable[EvidenceLine], canonical: Any) -> dict[str, list[Fact]]:
    """The facts by entity in order of time; ids do not depend on the order of the rows."""
    lines: dict[str, list[EvidenceLine]] = {}
    ids: set[str] = set()
    for row in rows:
        if not all(map(isfinite, (row.ts, row.value or 0.0, row.usual or 0.0))):
            raise SettingsError(f"evidence about {name(row.entity)} has a number that is none")
        if row.id is not None and row.id in ids:
            raise SettingsError(f"two lines of evidence have the id {name(row.id)}")
        if row.id is not None:
            ids.add(row.id)
        lines.setdefault(canonical(row.entity), []).append(row)
    facts: dict[str, list[Fact]] = {}
    for entity, rows_of_entity in sorted(lines.items()):
        rows_of_entity.sort(
            # `repr` breaks all ties: numbers in ids must not depend on the order in the file.
            key=lambda row: (row.ts, row.type, row.about or "", row.text, repr(row))
        )
        facts[entity] = []
        for number, row in enumerate(rows_of_entity, 1):
            line_id = row.id if row.id is not None else f"{entity}/{number}"
            # An explicit id may look like a number of ours, and would then be cited in its place.
            if row.id is None and line_id in ids:
                raise SettingsError(f"{name(line_id)} is an id of a line that has another place")
            about = canonical(row.about) if row.about is not None else None
            facts[entity].append(
                Fact(line_id, row.ts, row.type, about, row.text, row.value, row.usual)
            )
    return facts


# --- files ---


def _read(path: Path, shape: Any) -> Any:
    """The content of a JSON file; ``None`` if the file is missing."""
    if not path.exists():
        return None
    if not path.is_file():
        raise TraceError(path, None, "is no file")
    with trace_errors(path):
        data = read_file(path)
    return _parse(path, None, data, _adapter(shape))


def _lines(path: Path) -> Iterator[EvidenceLine]:
    if not path.exists():
        return
    if not path.is_file():
        raise TraceError(path, None, "is no file")
    adapter = _adapter(EvidenceLine)
    with trace_errors(path), path.open("rb") as file:
        number = 0
        # Bounded, since a file without line ends would be read into memory at once.
        while line := file.readline(MOST_LINE_BYTES + 1):
            number += 1
            if number > MOST_LINES:
                raise TraceError(path, number, f"is more than {MOST_LINES:,} lines")
            if len(line) > MOST_LINE_BYTES:
                raise TraceError(path, number, f"is longer than {MOST_LINE_BYTES:,} bytes")
            if line.strip():
                yield _parse(path, number, line, adapter)


def _adapter(shape: Any) -> Any:
    from pydantic import TypeAdapter  # slow to import

    return TypeAdapter(shape)


def _parse(path: Path, line: int | None, data: bytes, adapter: Any) -> Any:
    from pydantic import ValidationError

    try:
        return adapter.validate_json(data)
    except ValidationError as error:
        place, reason = first_wrong(error)
        raise TraceError(path, line, f"{place}: {reason}" if place else reason) from None
