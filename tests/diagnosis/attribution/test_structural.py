"""From signs to an answer: what matters, what follows from another sign, and the way to the end."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dig.diagnosis.attribution.lineage import chain
from dig.diagnosis.attribution.structural import StructuralAnswer
from dig.diagnosis.case import Case, read_case
from dig.diagnosis.diagnosing import diagnose
from dig.diagnosis.goal import Goal
from dig.diagnosis.signs.analysis import UsualTeam
from dig.diagnosis.suspects import SUSPECTS, Asking, Together, load_suspects, merge_candidates
from dig.errors import SettingsError
from dig.graph.codec import decode, to_row
from dig.graph.records import Join, Record
from dig.show.document import Candidate, Evidence, Status
from dig.tasks.run.execute import execute
from dig.tasks.run.team_run import TeamRun
from dig.traces.run import RecordedRun
from tests.diagnosis.failed_runs import failed
from tests.diagnosis.written import Written, counts, good, part, usual


@pytest.fixture(scope="module")
def peers() -> UsualTeam:
    return usual()


def answered(peers: UsualTeam, trace: Written) -> list[tuple[str, str, str]]:
    """The agents, signs and statuses of an answer."""
    found = StructuralAnswer(trace.case(peers)).suspicions
    return [(one.agent, one.first.name, one.status) for one in found]


def test_what_was_put_right_later_is_not_at_fault(peers: UsualTeam) -> None:
    """`b` fails and does it again; `c` throws its part away for good."""
    trace = Written()
    trace.act("a", ("q1", "problem", part(0, 10), "b"), ("q2", "problem", part(10, 20), "c"))
    trace.act("b", error="no")
    trace.act("b", ("d1", "raw_data", part(0, 10, data="x"), "b"))
    trace.act("b", ("s1", "solution", counts(0, 10), "a"))
    trace.act("c", q2="discard")
    found = answered(peers, trace.finish())
    assert found[0] == ("c", "threw away", "origin")
    assert ("b", "failed", "recovered") in found


def test_a_lost_message_whose_copy_arrived_does_not_matter(peers: UsualTeam) -> None:
    """The same content came by another event; what came of neither does matter."""
    trace = Written()
    trace.act(
        "a",
        ("q1", "lost", part(0, 10), "b"),
        ("q2", "problem", part(0, 10), "b"),
        ("q3", "problem", part(10, 20), "c"),
    )
    trace.expire("q1")
    trace.act("b", ("d1", "raw_data", part(0, 10, data="x"), "b"))
    trace.act("b", ("s1", "solution", counts(0, 10), "a"))
    trace.act("c")
    found = answered(peers, trace.finish())
    assert found[0][:2] == ("c", "silent")
    assert ("a", "lost on the way", "recovered") in found


def test_wrong_contents_explain_what_was_made_of_them(peers: UsualTeam) -> None:
    """`a` answers with what it got; the answer is odd as well, and `b` is at fault."""
    trace = Written()
    trace.act("a", ("q1", "problem", part(0, 20), "b"))
    trace.act("b", ("d1", "raw_data", part(0, 20, data="x"), "b"))
    trace.act("b", ("s1", "solution", counts(0, 20, 10.0), "a"))
    trace.act("a", ("f", "answer", counts(0, 30, 25.0)))
    found = answered(peers, trace.finish("submitted"))
    assert found[0] == ("b", "wrong amounts", "origin")
    assert ("a", "grown", "propagated") in found


def returned(wrong: Sequence[str], refused: Sequence[str]) -> Written:
    """`a` deals out to three agents; some return another type, and `a` throws some returns away."""
    trace = Written("a", "b", "c", "d")
    trace.act("a", *((f"q{to}", "problem", part(i, i + 1), to) for i, to in enumerate("bcd")))
    for i, agent in enumerate("bcd"):
        kind = "problem" if agent in wrong else "solution"
        trace.act(agent, (f"s{agent}", kind, counts(i, i + 1), "a"))
    fates: dict[str, Any] = {f"s{agent}": "discard" for agent in refused}
    trace.act("a", **fates)
    return trace.finish()


def test_who_throws_away_what_is_unlike_the_others_is_not_at_fault(peers: UsualTeam) -> None:
    """`b` returns another type; `a`, which cannot read it, follows."""
    found = answered(UsualTeam(), returned("b", "b"))
    assert found[0] == ("b", "unlike its siblings", "origin")
    assert ("a", "threw away", "propagated") in found
    found = answered(UsualTeam(), returned("", "b"))
    assert ("a", "threw away", "propagated") not in found


def test_what_two_agents_throw_away_speaks_against_its_maker(peers: UsualTeam) -> None:
    """One of them alone is the agent that threw it away."""
    for refusing, culprit in (("bc", "a"), ("b", "b")):
        trace = Written("a", "b", "c", "d")
        trace.act("a", *((f"q{to}", "problem", part(i, i + 1), to) for i, to in enumerate("bcd")))
        for agent in refusing:
            fates: dict[str, Any] = {f"q{agent}": "discard"}
            trace.act(agent, **fates)
        found = answered(peers, trace.finish())
        assert (found[0][0], found[0][2]) == (culprit, "origin"), found


def test_the_strongest_sign_alone_follows_no_way(tmp_path: Path) -> None:
    """The suspect `signs` names an agent whose failure was put right; `attribution` does not."""
    case = read_case(failed(tmp_path, "silent"))
    first = SUSPECTS["attribution"].candidates(case)[0]
    assert (first.agent, first.mechanism, first.status) == ("agent-3", "silent", "origin")
    assert all(one.status != "recovered" for one in SUSPECTS["signs"].candidates(case))


def test_shares_are_one_together_and_evidence_is_about_the_agent(tmp_path: Path) -> None:
    """Of every suspect and of all of them together; ids follow the order."""
    case = read_case(failed(tmp_path, "crash"))
    together = Together(tuple(SUSPECTS.values()), names_all=True)
    for found in (*(one.candidates(case) for one in SUSPECTS.values()), together.candidates(case)):
        assert sum(one.share for one in found) == pytest.approx(1)
        assert [one.id for one in found] == [f"c{n}" for n in range(1, len(found) + 1)]
        assert all(one.evidence and one.agent in case.run.agents for one in found)
    assert {one.agent for one in together.candidates(case)} == {*case.run.agents}


def test_the_same_place_is_one_candidate() -> None:
    """Its weight is 1 - (1 - v)(1 - w), and it has the names and the evidence of both."""

    def one(by: str, share: float, activation: str) -> Candidate:
        return Candidate(
            id="c1", agent="a", share=share, by=(by,), activation=activation,
            evidence=(Evidence(1, by),),
        )  # fmt: skip

    both, other = merge_candidates(
        [[one("x", 0.5, "v1")], [one("y", 0.5, "v1"), one("y", 0.5, "v2")]]
    )
    assert (both.by, both.evidence) == (("x", "y"), (Evidence(1, "x"), Evidence(1, "y")))
    assert both.share == pytest.approx(0.75 / 1.25) and other.share == pytest.approx(0.5 / 1.25)


def test_no_sign_and_no_finding_is_no_candidate(peers: UsualTeam) -> None:
    """A run in which nothing is odd names nobody."""
    assert answered(peers, good()) == []


def test_unknown_suspects_are_refused() -> None:
    """The error names those that there are."""
    with pytest.raises(SettingsError, match="attribution"):
        load_suspects("nobody")


def test_a_document_has_the_asked_suspects_and_as_many_candidates_as_wanted(tmp_path: Path) -> None:
    """`by` and `top`; without experiments the answer is a suspicion."""
    run = failed(tmp_path, "silent")
    found = diagnose(run, asking=Asking(by=("signs", "agents"), top=2))
    assert [one.name for one in found.stages] == ["signs", "agents"]
    assert len(found.candidates) == 2
    assert found.confidence == "suspected"
    answer = diagnose(run).answer
    assert answer is not None and answer.agent == "agent-3"


def test_a_run_that_is_called_failed_is_answered_without_confidence(tmp_path: Path) -> None:
    """Nothing is wrong with it; and without that claim there is nothing to explain."""
    run = execute(TeamRun(seed=5, method="dig"), tmp_path).directory
    found = diagnose(run, Goal.parse("none"))
    assert found.answer is None or found.answer.confidence == "low"


# --- the way to the end ---


def test_a_way_to_the_end_follows_lineage(tmp_path: Path) -> None:
    """From the activation at fault on, each uses what one before it generated."""
    case = read_case(failed(tmp_path, "silent"))
    first = SUSPECTS["attribution"].candidates(case)[0]
    way = [case.run.activations[name] for name in chain(case.run, first.activation or "")]
    assert way[0].id == first.activation
    for before, after in pairwise(way):
        assert not {*before.outputs}.isdisjoint(after.inputs)


def test_a_damaged_copy_beside_a_good_one_does_not_matter(peers: UsualTeam) -> None:
    """`b` sends its data twice, once damaged; `c` only damaged. Contents are not read."""
    trace = Written()
    trace.act("a", ("q1", "problem", part(0, 10), "b"), ("q2", "problem", part(10, 20), "c"))
    data = part(0, 10, data="x")
    trace.act("b", ("d1", "raw_data", "####", "b"), ("d2", "raw_data", data, "b"))
    trace.act("b", ("s1", "solution", counts(0, 10), "a"), d1="discard")
    trace.act("c", ("d3", "raw_data", "####", "c"))
    trace.act("c", d3="discard")
    case = replace(trace.finish().case(peers), accounting=None)
    found = {
        (one.agent, one.status)
        for one in StructuralAnswer(case).suspicions
        if one.first.name == "unreadable"
    }
    assert found == {("b", "recovered"), ("c", "origin")}


# --- metamorphic: what changes nothing about a run changes nothing about its answer ---


def blamed(records: Sequence[Record]) -> list[tuple[str, int | None, str | None, Status]]:
    """The candidates of a trace, by agent, step, mechanism and status."""
    case = Case("made", "trace", RecordedRun(records), (), ())
    found = SUSPECTS["attribution"].candidates(case)
    return [(one.agent, one.step, one.mechanism, one.status) for one in found]


@pytest.mark.parametrize("kind", ["silent", "drop", "crash"])
def test_names_of_events_and_activations_are_of_no_importance(kind: str, tmp_path: Path) -> None:
    """Renamed so that their order by name is another one, they give the same candidates."""
    records = RecordedRun.read(failed(tmp_path, kind), payloads=True).records

    def another(found: re.Match[str]) -> str:
        return f'"{"ba"[found[1] == "e"]}{99_999 - int(found[2])}"'

    text = json.dumps([to_row(one) for one in records])
    renamed = [decode(row) for row in json.loads(re.sub(r'"([ae])(\d+)"', another, text))]
    assert renamed[5] != records[5]
    assert blamed(renamed) == blamed(records) != []


def test_agents_that_come_at_the_end_and_do_nothing_change_nothing(tmp_path: Path) -> None:
    """The first candidate stays who, where and why it was."""
    *before, last = RecordedRun.read(failed(tmp_path), payloads=True).records
    joined = [Join(last.t + n, last.us, f"new-{n}") for n in range(5)]
    longer = [*before, *joined, replace(last, t=last.t + 5)]
    assert blamed(longer)[0] == blamed([*before, last])[0]
