"""Kinds of faults that are in no catalogue, and failing runs that were made elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dig.errors import SettingsError
from dig.faults.inject.fault import Fault
from dig.graph.records import Finish
from dig.lab.benchmark.answer_file import Answer, Answers, RootCause
from dig.lab.benchmark.attributing import attribute_all
from dig.lab.benchmark.brought import bring_set
from dig.lab.benchmark.candidates import Configuration, InstanceDraft, Recipe, Stratum
from dig.lab.benchmark.hidden import Made, attempt
from dig.lab.benchmark.instances import FaultSet
from dig.lab.benchmark.scores_answers import score
from dig.lab.benchmark.scores_healing import ROWS, score_healing
from dig.lab.benchmark.storing import make_set
from dig.lab.benchmark.trying import score_trials
from dig.lab.run_pair import lines, play
from dig.lab.truth.baseline import Baseline
from dig.lab.truth.verification import SILENT, Dropped
from tests.faults.plays import STEADY

OWN = '''
"""A kind of fault of a user's own."""

from dig.faults.inject.fault_catalogue import Kind
from dig.faults.inject.injector import Occasion, OnMessage
from dig.runtime.agents import NewEvent, View


class Whisper(OnMessage):
    """Half of what it sends cannot be heard."""

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """A message without contents."""
        return self.change_message(message, occasion, "a message was whispered", payload=None)


WHISPER = Kind("it whispers", "mine", "Half of what it sends cannot be heard.", Whisper)


class Nothing(OnMessage):
    """It acts, and nothing is changed."""

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """The same message."""
        return self.change_message(message, occasion, "nothing was done")
'''


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with the user's module, in which the commands are given."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    (place / "my_faults.py").write_text(OWN)
    monkeypatch.chdir(place)
    monkeypatch.syspath_prepend(str(place))
    return place


FOREIGN = Recipe(
    seed=3,
    count=4,
    configurations=(Configuration("newsgroups", 60, 3),),
    baseline_runs=20,
    salt="x",
    foreign=("my_faults:WHISPER",),
)


def test_a_foreign_kind_is_made_attributed_and_scored(own: Path) -> None:
    """Its name is free; it counts as exact by that name alone."""
    make_set(own / "set", FOREIGN)
    known = FaultSet.open(own / "set")
    labels = {one.entry.id: one.label() for one in known.instances()}
    assert {label.kind for label in labels.values()} == {"it whispers"}
    assert {label.stratum for label in labels.values()} == {"foreign"}
    assert attribute_all("rules", known).answers.keys() == labels.keys()
    for kind, exact in (("it whispers", 1.0), ("corrupt", 0.0)):
        told = {
            name: Answer(root_causes=(RootCause(component=label.causes[0].component, kind=kind),))
            for name, label in labels.items()
        }
        runs = score(Answers(answers=told), known, with_floors=False).failures
        assert runs and all(one.marks["exact"] == exact for one in runs)
        assert all(one.marks["agent"] == 1 for one in runs)


def test_healing_and_experiments_are_measured_on_foreign_kinds(own: Path) -> None:
    """By every method, if the kind is named; else no code is run for it."""
    make_set(own / "set", replace(FOREIGN, count=2))
    known = FaultSet.open(own / "set")
    for do in (score_healing, score_trials):
        with pytest.raises(SettingsError, match="of a kind to be named here too"):
            do(known)
    healed = score_healing(known, kinds=FOREIGN.foreign)
    harmful = [one for one in known.instances() if one.label().harm]
    assert len(healed.pairs) == len(harmful) > 0
    assert [*healed.to_json()["methods"]] == [*ROWS]
    assert not score_healing(known, kinds=["drop"]).pairs
    (tried, *_) = score_trials(known, kinds=FOREIGN.foreign, count=1).judged
    assert tried.kind == "it whispers" and tried.verdicts["culprit"] == "validated"


@pytest.mark.parametrize(
    "place",
    [
        Configuration("newsgroups", 60, 3),
        Configuration("newsgroups", 150, 6, problems=2),
        Configuration("count-frequency", 5000, 3, remembers=True),
    ],
)
def test_a_fault_that_changes_nothing_admits_nothing(own: Path, place: Configuration) -> None:
    """It acts, goes through the same admission, and is refused, also beside a fault that does."""
    recipe = replace(FOREIGN, configurations=(place,), foreign=("my_faults:Nothing",))
    baseline = Baseline.from_runs([play(run) for run in recipe.baseline(place)])

    def admitted(*kinds: str) -> list[Made | Dropped]:
        stratum = Stratum(place, kinds, "foreign")
        drafts = (InstanceDraft(stratum, number, recipe.key) for number in range(6))
        return [attempt((draft, baseline)) for draft in drafts]

    alone = admitted("my_faults:Nothing")
    assert {one.reason for one in alone if isinstance(one, Dropped)} == {SILENT}
    assert not any(isinstance(one, Made) for one in alone)
    beside = [one for one in admitted("silent", "my_faults:Nothing") if isinstance(one, Made)]
    assert any(one.label.harm for one in beside)
    for one in beside:
        assert "my_faults:Nothing" not in {cause.kind for cause in one.label.causes}
        assert {cause.kind for cause in one.graph.root_causes} <= {"silent"}


def test_no_module_is_imported_because_a_label_names_it(own: Path) -> None:
    """Who plays a foreign fault again has to name it."""
    row = Fault(kind="my_faults:WHISPER", target="agent-1").to_json()
    with pytest.raises(SettingsError, match="of a kind to be named here too"):
        Fault.read(row)
    assert Fault.read(row, foreign=["my_faults:WHISPER"]).row.name == "it whispers"


def test_what_is_no_kind_is_refused(own: Path) -> None:
    """With a sentence that says what it must be."""
    with pytest.raises(SettingsError, match="is no kind of fault: it must be a subclass of"):
        Fault(kind="json:dumps", target="agent-1")


# --- runs that were made elsewhere ---

FAILING = Fault(kind="silent", target="agent-2")


def bring(place: Path, change: Callable[[dict[str, Any]], None] = lambda label: None) -> Path:
    """A folder with one failing run."""
    run = play(STEADY, [FAILING])
    end = run.records[-1]
    assert isinstance(end, Finish) and end.outcome != "submitted"
    act = run.injections[0]
    label = {"agent": "agent-2", "kind": "gremlins", "activation": act.activation, "t": act.t}
    change(label)
    folder = place / "runs" / "one"
    folder.mkdir(parents=True)
    (folder / "trace.dig.jsonl").write_bytes(lines(run.records))
    (folder / "twin.dig.jsonl").write_bytes(lines(play(STEADY).records))
    (folder / "label.json").write_text(json.dumps(label))
    return place / "runs"


def test_runs_that_were_made_elsewhere_become_a_set(tmp_path: Path) -> None:
    """They are attributed and scored as all others; headers are neutral."""
    bring_set(tmp_path / "set", bring(tmp_path))
    known = FaultSet.open(tmp_path / "set")
    (one,) = known.instances()
    assert one.records()[0].run == one.entry.id  # type: ignore[union-attr]
    label = one.label()
    assert (label.kind, label.stratum, label.harm) == ("gremlins", "brought", True)
    (cause,) = label.causes
    pairs = zip(one.records(), one.twin(), strict=False)
    assert cause.first_effect == next(t for t, (a, b) in enumerate(pairs) if a != b)
    told = Answer(root_causes=(RootCause(component="agent-2", kind="gremlins"),), step=cause.step)
    scored = score(Answers(answers={one.entry.id: told}), known).to_json()
    assert scored["strata"]["all"]["exact"]["mean"] == scored["strata"]["all"]["step"]["mean"] == 1
    assert scored["oracle"]["agent"]["mean"] == 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"agent": "nobody"}, "no agent is called 'nobody'"),
        ({"activation": "a1"}, "'a1' is no activation of 'agent-2'"),
        ({"t": 10**6}, "the run has no record 1000000"),
        ({"t": 0}, "t: input should be greater than or equal to 1"),
        ({"more": 1}, "more: extra inputs are not permitted"),
    ],
)
def test_a_label_that_contradicts_the_run_is_refused(
    tmp_path: Path, changes: dict[str, Any], said: str
) -> None:
    """The message names the folder and what is wrong; nothing is left."""
    source = bring(tmp_path, lambda label: label.update(changes))
    with pytest.raises(SettingsError, match=said):
        bring_set(tmp_path / "set", source)
    assert not (tmp_path / "set").exists()


def test_a_run_that_differs_before_its_fault_is_refused(tmp_path: Path) -> None:
    """The twin must be the same run."""
    source = bring(tmp_path, lambda label: label.update(activation=None))
    other = play(replace(STEADY, seed=2)).records
    (source / "one" / "twin.dig.jsonl").write_bytes(lines(other))
    with pytest.raises(SettingsError, match="run and twin differ at record 3, before the fault"):
        bring_set(tmp_path / "set", source)
