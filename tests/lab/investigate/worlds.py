"""Small worlds, and policies that answer by a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from hypothesis import strategies as st

from dig.lab.investigate.beliefs import Alert, LocalJudgement, Packet
from dig.lab.investigate.snapshot import EntityRow, EvidenceLine, Snapshot, Topology, TopologyEdge

FLASH_SALE = Path(__file__).parents[3] / "examples" / "flash-sale"

TYPES = ("change", "event", "exhausted", "error", "failed-call", "traffic", "log", "metric", "odd")


def world(
    entities: str | Sequence[str],
    calls: Sequence[tuple[str, str]] = (),
    *,
    alerts: Sequence[str] = (),
    evidence: Sequence[EvidenceLine] = (),
) -> Snapshot:
    """Entities that call one another; the alarms are a second apart, from second 100 on."""
    rows = [EntityRow(one, "service") for one in entities]
    edges = [TopologyEdge(a, b, "calls") for a, b in calls]
    raised = [Alert(one, 100.0 + n, "alarm") for n, one in enumerate(alerts)]
    return Snapshot("small", Topology(rows, edges), raised, evidence)


def noted(entities: str | Sequence[str]) -> list[EvidenceLine]:
    """A log line `ENTITY/1` about each entity: something to cite."""
    return [EvidenceLine(one, 100.0, "log", text=f"a line of {one}") for one in entities]


class Scripted:
    """Judges as a function says."""

    name = "scripted"

    def __init__(self, answer: Callable[[Packet], LocalJudgement]) -> None:
        self.answer = answer
        self.packets: list[Packet] = []

    def judge(self, packet: Packet) -> LocalJudgement:
        self.packets.append(packet)
        return self.answer(packet)


def cited(packet: Packet) -> tuple[str, ...]:
    return tuple(fact.id for fact in packet.evidence[:1])


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    """Worlds of up to seven entities with evidence of all types, hidden edges and cycles."""
    names = [f"e{n}" for n in range(draw(st.integers(1, 7)))]
    entity = st.sampled_from(names)
    edges = draw(st.lists(st.tuples(entity, entity), max_size=12))
    rows = draw(
        st.lists(
            st.builds(
                EvidenceLine,
                entity=entity,
                ts=st.integers(0, 300).map(float),
                type=st.sampled_from(TYPES),
                about=st.none() | entity | st.just("stranger"),
                text=st.sampled_from(["", "out of memory", "timeout"]),
                value=st.none() | st.sampled_from([1.0, 3.0]),
                usual=st.none() | st.sampled_from([1.0, 2.0]),
            ),
            max_size=25,
        )
    )
    alerts = draw(
        st.lists(st.builds(Alert, entity=entity | st.just("nowhere"), ts=st.just(150.0),
                           name=st.sampled_from(["errors", "latency"])), max_size=4)
    )  # fmt: skip
    topology = Topology([EntityRow(one, "service") for one in names],
                        [TopologyEdge(a, b, "calls") for a, b in edges])  # fmt: skip
    return Snapshot("drawn", topology, alerts, rows)
