"""Rules that propose interventions, and interventions as JSON and in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dig.diagnosis.interventions.kinds import KINDS, in_words, read_interventions, size
from dig.diagnosis.interventions.proposing import oddities
from dig.errors import SettingsError
from dig.traces.run import RecordedRun
from tests.diagnosis.failed_runs import failed

ROWS: tuple[dict[str, Any], ...] = (
    {"kind": "edit", "at": 5, "edit": {"fates": [], "outputs": []}},
    {"kind": "resend", "at": 5, "events": ["e1"]},
    {"kind": "sooner", "at": 5, "event": "e1"},
    {"kind": "again", "at": 5, "activation": "a1"},
    {"kind": "tell", "at": 5, "agent": "a", "note": "go"},
    {"kind": "omit", "at": 5, "t": 5},
    {"kind": "wait", "at": 5, "seconds": 3.0},
    {"kind": "seat", "at": 5, "agent": "a", "by": "b"},
)


@pytest.mark.parametrize(
    ("fault", "mechanism", "kind"),
    [
        ("drop", "lost", "resend"),
        ("drop", "late", "sooner"),
        ("address_nobody", "lost", "resend"),
        ("discard_needed", "discarded", "resend"),
        ("leave", "left", "omit"),
        ("submit_early", "early", "edit"),
        ("silent", "silent", "resend"),
        ("crash", "failed", "again"),
        ("hoard", "waiting", "tell"),
    ],
)
def test_what_a_fault_leaves_in_the_records_is_named(
    fault: str, mechanism: str, kind: str, tmp_path: Path
) -> None:
    """The agent at fault, how it went wrong, and a change that can be made there."""
    run = RecordedRun.read(failed(tmp_path, fault), payloads=True)
    mine = [one for one in oddities(run) if one.agent == "agent-3"]
    assert (mechanism, kind) in [(one.mechanism, one.change["kind"]) for one in mine]
    for one in mine:
        read_interventions([one.change])
        assert one.evidence.t is not None and 0 < one.weight < 1
        assert 0 <= one.change["at"] < len(run.records)


def test_each_kind_has_json_and_words() -> None:
    """What is read is what is written, and a sentence names the place or the amount."""
    assert tuple(row["kind"] for row in ROWS) == KINDS
    for row in ROWS:
        (change,) = read_interventions([row])
        assert change.to_json() == row or row["kind"] == "tell"
        assert "5" in in_words(row) or "3 s" in in_words(row)


def test_changes_are_ordered_by_what_they_say() -> None:
    """An edit is smaller than a seat; one record is less than two; later is less than earlier."""
    sizes = [size([row]) for row in ROWS]
    assert sizes == sorted(set(sizes))
    one, two = ({**ROWS[1], "events": events} for events in (["e1"], ["e1", "e2"]))
    assert size([one]) < size([two])
    assert size([{**one, "at": 9}]) < size([one])


@pytest.mark.parametrize("row", [{"kind": "edit"}, {**ROWS[5], "surplus": 1}, {"at": 3}])
def test_other_json_is_refused(row: dict[str, Any]) -> None:
    """Interventions are read strictly."""
    with pytest.raises(SettingsError, match="no change of a run"):
        read_interventions([row])
