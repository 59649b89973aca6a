"""A recorded run as a world, and the suspect `beliefs`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dig.diagnosis.attribution.structural import SignGroup
from dig.diagnosis.case import Case, read_case
from dig.diagnosis.causes import OUTCOME
from dig.diagnosis.suspects import SUSPECTS
from dig.lab.investigate.beliefs import Claim, Fact, LocalJudgement, Message, Packet, complaint
from dig.lab.investigate.controller import Course
from dig.lab.investigate.investigation import investigate
from dig.lab.investigate.run import MISSING, SPOILT, RunRules, RunWorld, blame_by_beliefs
from tests.diagnosis.failed_runs import failed


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A run in which agent-3 says nothing."""
    return read_case(failed(tmp_path_factory.mktemp("silent")))


def test_the_silent_agent_is_the_frontier(silent: Case) -> None:
    """Its own sign makes it the origin, the outcome a symptom of it, and the alarm is explained."""
    found = investigate(RunWorld(silent), RunRules())
    assert found.frontier == ("agent-3",)
    assert found.converged
    labels = {one.name: one.label for one in found.entities}
    assert labels[OUTCOME] == "symptom"
    assert all(one.by[0] == "agent-3" for one in found.alerts_explained if one.explained)
    assert any(one.alert.entity == OUTCOME and one.explained for one in found.alerts_explained)


def test_the_suspect_beliefs_names_it_with_mechanism_and_evidence(silent: Case) -> None:
    """A candidate of status origin first, as the other suspects give it."""
    first, *others = SUSPECTS["beliefs"].candidates(silent)
    assert (first.agent, first.status, first.mechanism, first.by) == (
        "agent-3", "origin", "silent", ("beliefs",),
    )  # fmt: skip
    assert first.evidence and first.activation is not None
    assert all(one.status != "origin" for one in others)
    assert sum(one.share for one in [first, *others]) == pytest.approx(1)


def test_evidence_is_of_the_agent_alone(silent: Case) -> None:
    """A packet has the signs of its agent; ids begin with the record that shows them."""
    world = RunWorld(silent)
    for agent in silent.run.agents:
        for fact in world.evidence(agent, world.window):
            assert world.groups[fact.id].agent == agent
            assert float(fact.id.partition(".")[0]) == fact.ts
            assert 0 <= fact.ts <= world.window[1]
    assert [one.entity for one in world.neighbours(OUTCOME)] == sorted(silent.run.agents)


def test_without_a_failure_the_outcome_is_no_alarm(silent: Case) -> None:
    """It has no evidence then, and is not decided; agents are judged all the same."""
    world = RunWorld(replace(silent, failures=()))
    assert OUTCOME not in {one.entity for one in world.alerts()}
    assert world.evidence(OUTCOME, world.window) == []
    labels = {one.name: one.label for one in investigate(world, RunRules()).entities}
    assert labels[OUTCOME] == "defer" and labels["agent-3"] == "origin"


def test_the_strongest_belief_of_the_frontier_comes_first(silent: Case) -> None:
    """Signs of each agent, with the weight of its belief as their score."""
    groups: list[list[SignGroup]] = blame_by_beliefs(silent)
    scores = [some[0].score for some in groups]
    assert scores == sorted(scores, reverse=True)
    assert [some[0].status for some in groups].index("origin") == 0
    assert len({some[0].agent for some in groups}) == len(groups)


def test_another_order_of_records_is_another_world(silent: Case) -> None:
    """The checksum is that of the records."""
    cut = replace(silent, run=type(silent.run)(silent.run.records[:-1]))
    assert RunWorld(silent).sha256 == RunWorld(silent).sha256 != RunWorld(cut).sha256


# --- the rules, packet by packet ---


def fact(row: str, t: int, value: float, about: str | None = OUTCOME) -> Fact:
    return Fact(f"{t}.{row}.{about}", float(t), row, about, f"{row} at {t}", value)


def told(sender: str, condition: str, t: int, label: str = "origin") -> Message:
    claim = Claim(sender, "me", condition, "", (f"{t}.x",))
    by = "other" if label == "symptom" else None
    judgement = LocalJudgement(label, by, 0.9, (f"{t}.x",), "", (claim,))  # type: ignore[arg-type]
    return Message(sender, judgement.belief)


def packet(*facts: Fact, inbox: tuple[Message, ...] = (), kind: str = "agent") -> Packet:
    return Packet("me", kind, facts, (), inbox, (), None, 0, (0.0, 99.0))


@pytest.mark.parametrize(
    ("given", "label", "by"),
    [
        (packet(), "healthy", None),
        (packet(fact("silent", 5, 0.9)), "origin", None),
        (packet(fact("silent", 5, 0.0)), "healthy", None),
        (packet(fact("holds work", 5, 0.3)), "defer", None),  # weak
        (packet(fact("waits on work", 5, 0.8), inbox=(told("b", MISSING, 3),)), "symptom", "b"),
        (packet(fact("waits on work", 5, 0.8), inbox=(told("b", MISSING, 9),)), "origin", None),
        (packet(fact("waits on work", 5, 0.8), inbox=(told("b", MISSING, 5),)), "origin", None),
        (packet(fact("waits on work", 5, 0.8), inbox=(told("b", MISSING, 3, "defer"),)),
         "origin", None),
        (packet(fact("waits on work", 5, 0.8), inbox=(told("b", MISSING, 3, "symptom"),)),
         "symptom", "b"),
        (packet(fact("lost on the way", 5, 0.9), inbox=(told("b", MISSING, 3),)), "origin", None),
        (packet(fact("grown", 5, 0.9), inbox=(told("b", MISSING, 3),)), "origin", None),
        (packet(fact("grown", 5, 0.9), inbox=(told("b", SPOILT, 3),)), "symptom", "b"),
        (packet(fact("waits on work", 5, 0.8), fact("left", 7, 0.9),
                inbox=(told("b", MISSING, 3),)), "origin", None),  # a sign of its own beside
        (packet(Fact("9.f", 9.0, "failure"), kind=OUTCOME), "defer", None),
        (packet(Fact("9.f", 9.0, "failure"), kind=OUTCOME, inbox=(told("b", MISSING, 3),)),
         "symptom", "b"),
    ],
)  # fmt: skip
def test_a_sign_is_explained_by_a_neighbours_earlier_one(
    given: Packet, label: str, by: str | None
) -> None:
    """Waiting and silence follow from work that is missing, wrong content from wrong content."""
    judgement = RunRules().judge(given)
    assert (judgement.label, judgement.by) == (label, by)
    if given.kind != OUTCOME:
        assert (
            complaint(replace(given, inbox=(*given.inbox, told(OUTCOME, MISSING, 99))), judgement)
            is None
        )


def test_messages_turn_a_victim_into_a_symptom(silent: Case) -> None:
    """Without messages every agent with a strong sign is an origin, and the outcome not decided."""
    found = investigate(RunWorld(silent), RunRules(), Course(has_messages=False))
    assert {one.name: one.label for one in found.entities}[OUTCOME] == "defer"
    assert "agent-3" in found.frontier
