"""The attributors: whom they blame in runs that were written by hand, and in a set."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dig.diagnosis.case import Case
from dig.errors import SettingsError
from dig.faults.inject.fault_catalogue import KINDS
from dig.graph.records import Record, Run
from dig.lab.benchmark.answer_file import Answer, Answers, read_answers
from dig.lab.benchmark.attributing import ATTRIBUTORS, attribute_all, attributor, of_candidates
from dig.lab.benchmark.instances import FaultSet
from dig.lab.benchmark.scores_answers import score
from dig.show.document import Candidate, Evidence, Status
from dig.traces.run import RecordedRun
from tests.diagnosis.written import Written
from tests.faults.test_components import RUN

Asked = Callable[[Sequence[Record]], Answer]


def case_by_hand(records: Sequence[Record]) -> Case:
    """A case whose records need not keep all rules."""
    header = records[0]
    assert isinstance(header, Run)
    return Case(header.run, "trace", RecordedRun(records), (), ())


@pytest.fixture
def made(small: FaultSet) -> Callable[[str], Asked]:
    def asked(name: str) -> Asked:
        attribute: Any = ATTRIBUTORS[name](small)
        return lambda run: attribute(case_by_hand(run))

    return asked


def test_chance_is_the_same_for_the_same_run(made: Callable[[str], Asked]) -> None:
    """And blames everybody and every kind sooner or later."""
    one = made("random")
    assert one(RUN) == one(RUN)
    runs = ([Run(0, 0, str(number), ("a", "b", "c"))] for number in range(300))
    causes = [one(run).root_causes[0] for run in runs]
    assert {cause.component for cause in causes} == {"a", "b", "c"}
    assert {cause.kind for cause in causes} == {*KINDS}


def test_an_attributor_sees_nothing_of_held_out_labels(
    small: FaultSet, answered: Callable[[str], Answers], tmp_path: Path
) -> None:
    """Answers are the same where those labels are not there."""
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(small.path, copy)
    shutil.rmtree(copy / "held-out-labels")
    for name in ATTRIBUTORS:
        assert attribute_all(name, FaultSet.open(copy)) == answered(name)


def test_deviations_find_more_than_chance(
    small: FaultSet, answered: Callable[[str], Answers]
) -> None:
    """On a set in which every fault has consequences, and so do findings."""
    names = ("earliest_deviation", "random")
    of = {name: score(answered(name), small, with_floors=False) for name in names}
    hits = {name: sum(one.marks["any_agent"] for one in got.scored) for name, got in of.items()}
    assert hits["earliest_deviation"] > hits["random"]


# --- one's own ---


def test_ones_own_is_a_function_of_a_case(small: FaultSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets each run of the set, with failures, and without its seed and its own name."""
    module = ModuleType("mine")
    seen: list[Case] = []

    def nobody(case: Case) -> Answer:
        seen.append(case)
        return Answer()

    module.nobody = nobody  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mine", module)
    answers = attribute_all("mine:nobody", small)
    assert len(seen) == len(answers.answers) == len(small.index.instances)
    assert answers.by == "mine:nobody"
    assert [case.name for case in seen] == [*answers.answers]
    for case in seen:
        header = case.run.records[0]
        assert isinstance(header, Run) and (header.run, header.seed) == (case.name, None)
        assert case.failures and case.attempts


def test_ones_own_may_answer_with_candidates(small: FaultSet) -> None:
    """Those of status origin are the causes, else the first; a mechanism is mapped to a kind."""

    def named(agent: str, mechanism: str | None, status: Status = "open") -> Candidate:
        return Candidate(
            id="c1", agent=agent, share=0.5, by=("me",), t=7, step=1, mechanism=mechanism,
            evidence=(Evidence(8, "it stands there"),), status=status,
        )  # fmt: skip

    trace = Written("a", "b")
    trace.act("a", ("q", "problem", {}, "b"))
    trace.act("b", error="no")
    case = case_by_hand(trace.finish().records)
    some = [named("b", "left"), named("a", "lost", "origin"), named("b", "odd", "origin")]
    found = of_candidates(case, some)
    assert [(one.component, one.kind) for one in found.root_causes] == [("a", "drop"), ("b", "odd")]
    assert (found.step, found.onset, found.root_causes[0].evidence) == (1, 7, (8,))
    # No activation is named, so nothing is followed.
    ways = [(step.source, step.target, step.evidence) for step in found.propagation]
    last = case.run.last.t
    assert ways == [("a", "outcome", (last,)), ("b", "outcome", (last,))]
    acting = replace(named("a", "lost"), activation=next(iter(case.run.activations)))
    followed = of_candidates(case, [acting]).propagation
    assert [(step.source, step.target) for step in followed] == [("a", "b"), ("b", "outcome")]
    first = of_candidates(case, [named("b", None), named("a", "lost")])
    assert [(one.component, one.kind) for one in first.root_causes] == [("b", "unknown")]
    assert of_candidates(case, []) == Answer()


class Unspeakable:
    """An answer that cannot even be shown."""

    def __repr__(self) -> str:
        raise ValueError("no words")


def unspeakable(case: Case) -> list[object]:
    return [Unspeakable()]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nobody", "there is no attributor 'nobody'; known are: random"),
        ("no_such_module:it", "there is no attributor 'no_such_module:it': No module"),
        ("json:no_such_thing", "there is no attributor 'json:no_such_thing': module"),
        ("math:pi", "math:pi is no function of a Case but 3.14"),
        ("math:sqrt", "math:sqrt raised TypeError.* about i0001"),
        ("builtins:id", "id raised TypeError.*not iterable.* about i0001"),
        ("sys:exit", r"sys:exit raised SystemExit.* about i0001"),
        (f"{__name__}:unspeakable", "answered a Unspeakable about i0001; it must be"),
    ],
)
def test_what_is_no_attributor_is_refused(small: FaultSet, name: str, said: str) -> None:
    """With a sentence that says why."""
    with pytest.raises(SettingsError, match=said):
        attribute_all(name, small)


def test_names_are_found(small: FaultSet) -> None:
    """All that there are can be had by name."""
    assert all(callable(attributor(name, small)) for name in ATTRIBUTORS)


def test_answers_of_all_can_be_read_again(
    answered: Callable[[str], Answers], tmp_path: Path
) -> None:
    """What an attributor says fits the schema."""
    for name in ATTRIBUTORS:
        answers = answered(name)
        path = tmp_path / f"{name}.json"
        path.write_text(answers.text())
        assert read_answers(path) == answers
