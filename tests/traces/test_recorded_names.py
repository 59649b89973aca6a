"""A trace's first line names detectors and healers; a move or a new name of a class changes none.

`data/first_lines.jsonl` has the first lines of three traces that version 0.1.0 wrote with the
classes where they were then: healed by `dig`, healed by a judge, and with designated handlers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dig import detectors
from dig.detectors.patterns.deadlock import Deadlock
from dig.detectors.recorded_names import RECORDED, recorded_name
from dig.lab.judge.judged import HealAsJudged, Judged
from dig.lab.rivals import HealByProblem, HealByWord, Silence
from dig.traces.replay.header import header_of

FIRST_LINES = Path(__file__).parent / "data/first_lines.jsonl"

# Without their common beginning, so that no search and replace takes them along with a move.
# No line is ever changed.
NAMES = {
    "CrossLineageAggregation": "cross_lineage.CrossLineageAggregation",
    "Deadlock": "deadlock.Deadlock",
    "DesignateHandler": "healing.DesignateHandler",
    "EarlyTermination": "early_termination.EarlyTermination",
    "ExcessiveRerouting": "excessive_rerouting.ExcessiveRerouting",
    "HealAsJudged": "judged.HealAsJudged",
    "HealByProblem": "rivals.HealByProblem",
    "HealByWord": "rivals.HealByWord",
    "HealCrossLineage": "healing.HealCrossLineage",
    "HealDeadlock": "healing.HealDeadlock",
    "HealEarlyTermination": "healing.HealEarlyTermination",
    "HealExcessiveRerouting": "healing.HealExcessiveRerouting",
    "HealMissingTermination": "healing.HealMissingTermination",
    "HealOrphanedEvent": "healing.HealOrphanedEvent",
    "HealRepeatedSolving": "healing.HealRepeatedSolving",
    "Judged": "judged.Judged",
    "MissingTermination": "missing_termination.MissingTermination",
    "OrphanedEvent": "orphaned_event.OrphanedEvent",
    "RepeatedSolving": "repeated_solving.RepeatedSolving",
    "Silence": "rivals.Silence",
}


def first_lines() -> list[dict[str, Any]]:
    """What each stored first line says about how its run was made, without the version."""
    lines = map(json.loads, FIRST_LINES.read_text(encoding="utf-8").splitlines())
    headers = [line["journal"] for line in lines]
    return [{k: v for k, v in header.items() if k != "version"} for header in headers]


@pytest.mark.parametrize("said", first_lines())
def test_an_old_first_line_makes_the_same_run_and_is_written_again_as_it_was(
    said: dict[str, Any],
) -> None:
    """All parts that it names can be made, and a journal of today names them in the same way."""
    header = header_of(FIRST_LINES, said)
    assert header.foreign == []
    assert json.dumps(header.setup().header()) == json.dumps(said)


def test_each_part_of_dig_has_the_recorded_name_that_it_always_had() -> None:
    """The names of the list above, and of each standard detector and healer, make its class."""
    healers = [detectors.standard_healers(designate=one) for one in (False, True)]
    parts = [*detectors.standard(), *(part for by_name in healers for part in by_name.values())]
    parts += [Judged(), HealAsJudged(), Silence(), HealByWord(), HealByProblem()]
    assert {recorded_name(part): type(part) for part in parts} == {**RECORDED}
    assert {f"dig.detectors.{name}": kind for kind, name in NAMES.items()}.items() <= {
        name: kind.__name__ for name, kind in RECORDED.items()
    }.items()


def test_each_class_of_dig_states_its_recorded_name() -> None:
    """A class that did not could not be moved without a change of the first line of its traces."""
    silent = [kind for name, kind in RECORDED.items() if vars(kind).get("recorded_as") != name]
    assert not silent, f"give these classes `recorded_as`, their place for a new one: {silent}"


def test_a_part_of_a_user_is_named_by_the_place_of_its_class() -> None:
    """A class that inherits from one of dig's is another class, with a name of its own."""

    class Own(Deadlock):
        pass

    assert recorded_name(Own()) == f"{__name__}.{Own.__qualname__}"
