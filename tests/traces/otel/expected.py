"""What a run should look like when it is exported, told from its records by brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from dig import Fate, Output, Record
from dig.detectors import standard, standard_healers
from dig.detectors.protocols import Detector
from dig.graph import records as kinds
from dig.graph.records import Limits
from dig.runtime import NewEvent, Setup, View, simulate
from dig.runtime.keyed_random import KeyedRandom
from tests.chaos import Chaos
from tests.helpers import Recorder

BEGAN_NS = 1_750_000_000_123_456_000


@dataclass
class Acted:
    """One activation, as its records tell it."""

    id: str
    agent: str
    start: kinds.Start
    end: kinds.End | None = None
    stop: Record | None = None
    before: tuple[str, ...] = ()
    outputs: list[kinds.Emit] = field(default_factory=list)

    def fates(self, made: dict[str, kinds.Emit]) -> dict[str, Fate]:
        """The fate of each input, in order; the implied ones too."""
        if self.end is None:
            return {}
        named = {fate.event: fate for fate in self.end.fates}
        silent = {e: "consume" if made[e].by == "system" else "delay" for e in self.start.inputs}
        return {e: named.get(e) or Fate(e, silent[e]) for e in self.start.inputs}  # type: ignore[arg-type]


class Told:
    """A run's records, sorted by what they are about."""

    def __init__(self, records: Sequence[Record]) -> None:
        self.records = records
        self.made = {r.event: r for r in records if isinstance(r, kinds.Emit)}
        self.acted: dict[str, Acted] = {}
        self.delivered: dict[tuple[str, str], int] = {}
        self.first_delivery: dict[str, int] = {}
        before: dict[str, tuple[str, ...]] = {}
        busy: dict[str, str] = {}
        for record in records:
            match record:
                case kinds.Deliver():
                    self.first_delivery.setdefault(record.event, record.us)
                case kinds.Start():
                    acted = Acted(record.activation, record.agent, record)
                    acted.before = before.get(record.agent, ())
                    self.acted[record.activation] = acted
                    before[record.agent] = record.inputs
                    busy[record.agent] = record.activation
                case kinds.End():
                    acted = self.acted[record.activation]
                    acted.end = acted.stop = record
                    acted.outputs = [self.made[e] for e in record.outputs if e in self.made]
                    busy.pop(acted.agent)
                case kinds.Leave():
                    before.pop(record.agent, None)
                    if record.agent in busy:
                        self.acted[busy.pop(record.agent)].stop = record
                case kinds.Finish():
                    for activation in busy.values():
                        self.acted[activation].stop = record

    def of(self, kind: str) -> list[Any]:
        return [record for record in self.records if record.kind == kind]

    def healings(self) -> dict[str, int]:
        """Logical time of the healing that made a system event, by event."""
        return {row.event: row.t for row in self.of("heal") if row.action == "create"}

    def edges(self) -> Counter[tuple[str, str]]:
        """How many edges there are, by what was done and who did it."""
        counts: Counter[tuple[str, str]] = Counter()
        for emit in self.made.values():
            who = {None: "outside", "system": "system"}.get(emit.by)
            counts["generate", who or self.acted[str(emit.by)].agent] += 1
        for acted in self.acted.values():
            for fate in acted.fates(self.made).values():
                counts[fate.fate, acted.agent] += 1
        return counts


def _detectors() -> list[Detector]:
    """The standard ones, but those that would find something all the time."""
    return [detector for detector in standard() if detector.pattern not in ("CLA", "MC", "DL")]


class Lively(Chaos):
    """Does anything too, but keeps the talk going."""

    def _outputs(self, draws: KeyedRandom, view: View) -> list[NewEvent]:
        if draws.chance(0.05, "submit"):
            return [NewEvent(payload="answer", final=True)]
        to = [[name for name in view.team if draws.chance(0.3, name, i)] for i in range(2)]
        return [NewEvent(payload=i, to=names, type="message") for i, names in enumerate(to)]


def session(activations: int, seed: int = 7) -> list[Record]:
    """A session of agents that do anything, with at least so many activations."""
    team = {name: Lively(seed) for name in "abcdef"}
    setup = Setup(
        run="chaos", task="anything", seed=seed, session=True, limits=Limits(20.0, 0.4, 10.0),
        detectors=_detectors, healers=standard_healers, limit_s=activations / 9.5,
        activation_timeout_s=0.95, retries=1, backoff_s=0.3,
    )  # fmt: skip
    script = [
        (2.0 * i, lambda monitor, i=i: monitor.inject(Output(i, ("abcdef"[i % 6],), "problem")))
        for i in range(activations // 20)
    ]
    sink = Recorder()
    result = simulate(team, setup=setup, script=script, sink=sink)
    assert result.activations >= activations
    return list(sink)
