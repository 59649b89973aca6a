"""What parts of the monitor say is masked before it is a record, whoever raises it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from dig import Detector, Finding, Healer, Hold, Inject, InteractionGraph, Pending, Record
from dig.graph.records import Emit, FindingRow, HealRow, IncidentRow
from dig.monitor.messages import ComponentFailed, Started
from tests.helpers import Stage, out

KEY = "sk-proj-0123456789abcdef"
ADDRESS = "https://ann:hunter2@db.example/?sig=a1b2c3d4e5"


class Leaky(RuntimeError):
    """What a part raises that asks a server: its message quotes the request."""

    def __init__(self) -> None:
        super().__init__(f"401 of {ADDRESS}, Authorization: Bearer {KEY}")


class Raises(Detector):
    """A detector that fails, and one that finds a secret."""

    pattern = "RAISES"
    kinds = (Emit,)

    def __init__(self, finds: bool) -> None:
        self.finds = finds

    def detect(self, graph: InteractionGraph, record: Record) -> Iterator[Finding]:
        if not self.finds:
            raise Leaky
        assert isinstance(record, Emit)
        evidence = {"answer": [f"it said {KEY}"]}
        yield Finding("RAISES", graph.t, graph.now, {"event": record.event}, evidence)


class Notes(Healer):
    """Heals by a note with a secret in it, or fails."""

    def __init__(self, fails: bool = False) -> None:
        self.fails = fails

    def heal(self, graph: InteractionGraph, finding: Finding) -> Iterable[Inject]:
        if self.fails:
            raise Leaky
        return [Inject(finding.subject["event"], f"ask {ADDRESS} with {KEY}")]


class Gate:
    """A gate that cannot decide."""

    def hold(self, graph: InteractionGraph, pending: Pending) -> Hold | None:
        raise Leaky


def secrets_in(value: object) -> list[str]:
    return [secret for secret in (KEY, "hunter2", "a1b2c3d4e5") if secret in str(value)]


def played(*, finds: bool, fails: bool, **settings: Any) -> tuple[Stage, list[Any], Started]:
    """A turn with everything broken; its effects, and what the next agent is shown."""
    healers = {"RAISES": Notes(fails)}
    parts = {"detectors": [Raises(finds)], "healers": healers, "gates": [Gate()]}
    stage = Stage("ab", **parts, **settings)
    effects = [*stage.give("a"), *stage.turn("a", out("b"))]
    return stage, effects, stage.start("b")


@pytest.mark.parametrize("finds", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_what_a_part_raises_is_masked_in_records_and_effects(finds: bool, fails: bool) -> None:
    """Of detectors, healers and gates; the rest of the sentence stays."""
    stage, effects, shown = played(finds=finds, fails=fails)
    failed = [one for one in effects if isinstance(one, ComponentFailed)]
    told = [row.detail["what"] for row in stage.sink if isinstance(row, IncidentRow)]
    assert told and failed
    assert all("Leaky('401 of https://ann:***@db.example/?sig=***, Author" in one for one in told)
    assert [one.what for one in failed] == told
    assert not secrets_in([*stage.sink, *effects, shown])


def test_evidence_and_notes_are_masked_for_the_trace_and_for_agents_alike() -> None:
    """An agent is shown what is journalled."""
    stage, _, shown = played(finds=True, fails=False)
    rows = {type(row): row for row in stage.sink}
    found, healed = rows[FindingRow], rows[HealRow]
    assert isinstance(found, FindingRow) and isinstance(healed, HealRow)
    assert found.evidence == {"answer": ["it said ***"]}
    assert healed.note == "ask https://ann:***@db.example/?sig=*** with ***"
    assert healed.note in str(shown)


def test_masking_of_parts_can_be_switched_off_with_that_of_payloads() -> None:
    stage, _, _ = played(finds=False, fails=False, redacts=False)
    assert secrets_in(stage.sink) == [KEY, "hunter2", "a1b2c3d4e5"]


def test_names_in_incidents_stay_as_they_are() -> None:
    """An agent that is called like a header is found again by a replay."""
    stage = Stage(["a", "Basic Reviewer12"])
    stage.monitor.tell("a word", ["Basic Reviewer12"])
    told = [row for row in stage.sink if isinstance(row, IncidentRow)]
    assert told[0].detail["to"] == ["Basic Reviewer12"]
