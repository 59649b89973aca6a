"""Rules that propose interventions, and interventions as JSON and in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dig.diagnosis.case import Case, read_case
from dig.diagnosis.interventions.proposing import proposals
from dig.diagnosis.suspects import SUSPECTS, Together
from dig.errors import SettingsError
from dig.show.document import Candidate
from dig.tasks.run.execute import execute
from dig.tasks.run.team_run import TeamRun
from dig.traces.replay.kinds import KINDS, in_words, read_interventions, size
from tests.diagnosis.failed_runs import ANSWERED, failed


def candidates(case: Case) -> Sequence[Candidate]:
    """All agents, the likeliest first."""
    return Together((SUSPECTS["attribution"],), names_all=True).candidates(case)


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
    ("fault", "mechanism", "kinds"),
    [
        ("drop", "lost", ["resend", "sooner"]),
        ("delay", "late", ["sooner", "resend"]),
        ("address_nobody", "misaddressed", ["resend"]),
        ("discard_needed", "discarded", ["resend"]),
        ("leave", "left", ["omit", "resend"]),
        ("submit_early", "early", ["edit"]),
        ("silent", "silent", ["resend"]),
        ("crash", "failed", ["again", "resend"]),
        ("hoard", "waiting", ["tell", "resend"]),
        ("corrupt", "damaged", ["again"]),
    ],
)
def test_what_a_sign_shows_is_undone(
    fault: str, mechanism: str, kinds: list[str], tmp_path: Path
) -> None:
    """Each mechanism about the agent at fault has its remedies, which can be made."""
    case = read_case(failed(tmp_path, fault), ANSWERED)
    found = [one for agent, one in proposals(case, candidates(case)) if agent.agent == "agent-3"]
    alone = [one.change["kind"] for one in found if one.mechanism == mechanism and not one.beside]
    assert alone == kinds
    for one in found:
        assert read_interventions([one.change, *one.beside])
        assert 0 <= one.change["at"] < len(case.run.records)


def test_agents_that_wait_are_told_together(tmp_path: Path) -> None:
    """One alone may be of no use: the two that stopped first are told in one hypothesis, too."""
    case = read_case(execute(TeamRun(seed=604, method="mas"), tmp_path).directory)
    several = [one for _, one in proposals(case, candidates(case)) if one.beside]
    assert [[row["agent"] for row in (one.change, *one.beside)] for one in several] == [
        ["agent-3", "agent-4"]
    ]


def test_an_agent_without_a_sign_has_nothing_to_undo(tmp_path: Path) -> None:
    """Rules propose by signs alone, in the order of the candidates."""
    case = read_case(failed(tmp_path, "leave"), ANSWERED)
    named = {sign.agent for sign in case.signs}
    found = [one.agent for one, _ in proposals(case, candidates(case))]
    assert found[0] == "agent-3" and {*found} <= named


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
