"""The five answers about a run agree with one another, whatever happened to the run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from dig.cli.run import disturbing
from dig.detectors import standard
from dig.detectors.answers import FiveAnswers
from dig.detectors.five_answers import five_answers
from dig.detectors.run_facts import PUT_IN
from dig.detectors.run_so_far import RunSoFar
from dig.detectors.watch import Watch
from dig.show.runs.summary import read_beside
from dig.tasks.run.execute import execute
from dig.tasks.run.team_run import TeamRun
from dig.traces.journal.journal import RESULT
from dig.traces.journal.reader import read_records

JOURNALS = sorted((Path(__file__).parents[1] / "traces/data/journals").rglob("*.dig.jsonl"))
PARTS = 5
"""The number of places at which a run is cut off."""


def told(path: Path) -> Iterator[tuple[FiveAnswers, RunSoFar]]:
    """The answers about a run and about its beginnings, as cut off and as going on."""
    records = [*read_records(path)]
    result = read_beside(path, RESULT)
    for part in range(1, PARTS + 1):
        watch = Watch(standard())
        so_far = RunSoFar(watch.graph)
        for record in records[: len(records) * part // PARTS]:
            so_far(record, watch.feed(record))
        score = result.get("score") if part == PARTS else None
        for state in ("cut off", "it goes on"):
            rows = result.get("injections") or ()
            acts = [act for act in rows if act["ts"] * 1e6 <= so_far.us]
            yield five_answers(so_far, state=state, score=score, injections=acts), so_far


def agree(answers: FiveAnswers, so_far: RunSoFar) -> None:
    """What the answers say of one another."""
    team, who = {*so_far.agents}, {agent.agent for agent in answers.who}
    texts = [answers.headline, answers.ended, *(step.says for step in answers.wrong)]
    assert all([answers.headline, answers.ended, answers.monitor, answers.next])
    assert "Nothing went wrong" not in answers.headline or answers.grade in ("good", "unknown")
    assert len(who) == len(answers.who)
    assert len({step.says for step in answers.wrong}) == len(answers.wrong)
    assert all(0 <= step.us <= so_far.us for step in answers.wrong)
    culprits = [agent.agent for agent in answers.who if agent.is_at_fault]
    named = {agent for agent in re.findall(r"`([^`]+)`", answers.next) if agent in team}
    known = who | {agent for agent in team if any(agent in text for text in texts)}
    assert named <= known
    if culprits and answers.grade == "bad" and not answers.verdict.endswith("answered"):
        assert culprits[0] in answers.headline or answers.verdict in ("Failed", "Cut off")
    for agent in answers.who:
        if PUT_IN in agent.says:
            assert f"Mend `{agent.agent}`" not in answers.next
    command = shlex.split(answers.command)
    assert command[:2] != ["digmon", "show"] or len(command) == 4
    if command[:2] == ["digmon", "show"] and so_far.graph is not None:
        h, place = so_far.graph.history, command[3]
        assert place in team or h.event(place) is not None or h.activation(place) is not None


@pytest.mark.parametrize("path", JOURNALS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_the_answers_about_stored_journals_agree(path: Path) -> None:
    """Also of every beginning of a journal."""
    for answers, so_far in told(path):
        agree(answers, so_far)


FAULTS = (
    "crash",
    "leave",
    "never_submit",
    "drop",
    "corrupt",
    "hoard",
    "submit_early",
    "slow",
    "delay",
    "silent",
)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_answers_about_runs_with_faults_agree(fault: str, tmp_path: Path) -> None:
    """With healing and without."""
    target = "agent-1" if "submit" in fault else "agent-2"
    method = ("mas", "dig")[FAULTS.index(fault) % 2]
    run = TeamRun(seed=7 + FAULTS.index(fault), agents=5, size=1_000, method=method)
    disturb = disturbing([f"{fault} target={target} start=2"])
    path = execute(run, tmp_path, disturb=disturb).directory
    for answers, so_far in told(path):
        agree(answers, so_far)
