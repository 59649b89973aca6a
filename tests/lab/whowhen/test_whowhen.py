"""The benchmark Who&When: loader, evaluators, floors, fit and folds."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pytest

from bench.whowhen import conversation_benchmark as whowhen
from bench.whowhen.conversation_benchmark import (
    BlamedStep,
    by_chance,
    exchange_labels,
    floors,
    hits,
    load,
    read_labels,
    score_runs,
)
from bench.whowhen.fitting import FitChoice, Training, choose, fit, folds
from dig.diagnosis.conversations.ranking import Weights
from dig.errors import SettingsError, TraceError
from tests.diagnosis.conversations.talks import BRIDGES, TASK, history, talk, write

DATA = os.environ.get("DIG_WHOWHEN", "")
real_data = pytest.mark.skipif(not DATA, reason="DIG_WHOWHEN names no directory")


def files(folder: Path, labels: Sequence[tuple[str, str]]) -> Path:
    """A directory as the benchmark has it."""
    for number, (agent, step) in enumerate(labels, 9):
        write(folder / f"{number}.json", history(mistake_agent=agent, mistake_step=step))
    return folder


def test_the_benchmarks_own_files_are_read(tmp_path: Path) -> None:
    """In order of their numbers; a step in a label is a string there."""
    known = files(tmp_path, [("Map_Expert", "3"), ("Check_Expert", "4")])
    write(known / "README.json", {})
    assert [one.name for one in load(known)] == ["9", "10"]
    assert read_labels(known) == {
        "9": BlamedStep("Map_Expert", 3), "10": BlamedStep("Check_Expert", 4)
    }  # fmt: skip


def test_both_layouts_give_one_case(tmp_path: Path) -> None:
    """`cases.json` and `labels.json` hold the same as the files, and case and label stay apart."""
    (old := tmp_path / "old").mkdir()
    files(old, [("Map_Expert", "3")])
    steps = [{"agent": who, "content": text} for who, text in BRIDGES]
    case = {"id": "9", "question": TASK, "ground_truth": "12", "steps": steps}
    write(tmp_path / "cases.json", {"cases": [case]})
    label = {"agent": "Map_Expert", "step": 3, "reason": "invented"}
    write(tmp_path / "labels.json", {"labels": {"9": label}})
    assert load(tmp_path)[0].steps == load(old)[0].steps
    assert load(tmp_path)[0].expected is None
    assert read_labels(tmp_path) == read_labels(old)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("1.json", {**history(), "mistake_agent": "A"}),
        ("1.json", {**history(), "mistake_agent": "A", "mistake_step": "first"}),
        ("1.json", "["),
    ],
)
def test_a_missing_label_is_told(tmp_path: Path, name: str, content: object) -> None:
    """The file is named."""
    write(tmp_path / name, content)
    with pytest.raises(TraceError, match=r"1\.json"):
        read_labels(tmp_path)


def test_an_empty_directory_is_refused(tmp_path: Path) -> None:
    """And so is a case of another shape."""
    with pytest.raises(TraceError, match="neither"):
        load(tmp_path)
    write(tmp_path / "cases.json", {"cases": [{"id": "1"}]})
    with pytest.raises(TraceError, match="another shape"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("said", "true", "strict", "official"),
    [
        (("A", 1), ("A", 1), (1, 1), (1, 1)),
        (("A", 10), ("A", 1), (1, 0), (1, 1)),
        (("A", 1), ("A", 10), (1, 0), (1, 0)),
        (("Blu-Ray_Expert", 1), ("Blu-Ray_Expert", 1), (1, 1), (0, 1)),
        (("Expert_Two", 1), ("Expert", 1), (0, 1), (1, 1)),
        (("expert", 1), ("Expert", 1), (0, 1), (0, 1)),
        (None, ("A", 1), (0, 0), (0, 0)),
    ],
)
def test_strict_and_official_evaluator(
    said: tuple[str, int] | None, true: tuple[str, int],
    strict: tuple[int, int], official: tuple[int, int],
) -> None:  # fmt: skip
    """Strictly, texts are equal; officially, the true one is contained in the answer's."""
    found = hits({"x": BlamedStep(*said) if said else None}, {"x": BlamedStep(*true)})
    assert (found.agent[0], found.step[0]) == strict
    assert (found.official_agent[0], found.official_step[0]) == official


def test_distances_and_the_first_three() -> None:
    """A near miss counts by its distance; the first three are those of largest share."""
    found = hits({"x": BlamedStep("A", 5, (5, 1, 7, 2))}, {"x": BlamedStep("A", 2)})
    assert {far: flags[0] for far, flags in found.within.items()} == {1: 0.0, 3: 1.0, 5: 1.0}
    assert found.first == [0.0]
    found = hits({"x": BlamedStep("A", 5, (5, 1, 2))}, {"x": BlamedStep("A", 2)})
    assert found.first == [1.0]


def test_floors_look_at_order_and_number_alone() -> None:
    """The terminal is never the most frequent agent, and a missing step is no answer."""
    rows = [*BRIDGES[:3], ("Computer_terminal", "exitcode: 0 (all is well now)"), *BRIDGES[3:5]]
    found = floors([talk(rows)])
    assert found["most frequent agent"]["talk"] == BlamedStep("Map_Expert", 1)
    assert found["last worker"]["talk"] == BlamedStep("Check_Expert", 5)
    assert found["step 0"]["talk"] == BlamedStep("Survey_Expert", 0)
    assert found["step 8"]["talk"] is None


def test_chance_is_a_mean_over_cases() -> None:
    """One of the agents and one of the steps that can be at fault; none, if the label is none."""
    cases = [talk(name="a"), talk(name="b")]
    labels = {"a": BlamedStep("Map_Expert", 3), "b": BlamedStep("Computer_terminal", 2)}
    assert by_chance(cases, labels) == pytest.approx((1 / 6, 1 / 10))


def test_scores_tell_the_best_floor_and_both_evaluators() -> None:
    """The tables and the JSON say the same, with hits that are due to the official one alone."""
    cases = [talk(name=str(number)) for number in range(4)]
    labels = {one.name: BlamedStep("Map_Expert", 3) for one in cases}
    answers = {one.name: BlamedStep("Map_Expert", 3) for one in cases}
    answers["3"] = BlamedStep("Map_Expert", 33)
    found = score_runs("mine", cases, [answers], labels)
    row = found.to_json(official=True)
    assert row["step"]["share"] == 0.75 and row["agent"]["share"] == 1
    assert row["official"]["step"] == {"share": 1.0, "only_official": 1, "only_strict": 0}
    assert row["step"]["floor"] == "step 3"
    assert found.p("agent") == 1.0
    text = "\n".join(table.markdown() for table in found.tables(official=True))
    assert "75.0 [30, 95]" in text and found.version in text
    with pytest.raises(SettingsError, match="no label for 3"):
        score_runs("mine", cases, [answers], {k: v for k, v in labels.items() if k != "3"})


def test_exchanged_labels_are_labels_of_other_cases() -> None:
    """The same steps as far as cases are long enough, with the agents that speak there."""
    cases = [talk(name=str(number)) for number in range(6)]
    labels = {str(number): BlamedStep(BRIDGES[number][0], number) for number in range(6)}
    found = exchange_labels(cases, labels, 1)
    assert sorted(one.step for one in found.values()) == list(range(6))
    assert found != labels and found == exchange_labels(cases, labels, 1)
    assert all(one.agent == BRIDGES[one.step][0] for one in found.values())
    short = exchange_labels([talk(BRIDGES[:2], name="a")], {"a": BlamedStep("A", 5)}, 1)
    assert short == {"a": BlamedStep("Map_Expert", 1)}


# --- fitting ---


def training() -> Training:
    """Thirty cases in which code is at fault, wherever it stands."""
    cases, steps = [], []
    for number in range(30):
        rows = [(f"Agent {n}", f"There is nothing of note here, friend {n}.") for n in range(6)]
        at = 1 + number % 4
        rows[at] = (f"Agent {at}", "I run this.\n```python\nprint('a')\n```")
        cases.append(talk(rows, name=str(number)))
        steps.append(at)
    return Training.of(cases, steps)


def test_a_fit_finds_what_is_at_fault() -> None:
    """The likeliest step is the true one, and the weights say that code made it so."""
    found = fit(training(), FitChoice(1.0))
    known = training()
    for rows, target in zip(known.rows, known.targets, strict=True):
        shares = found.shares(rows)
        assert shares.index(max(shares)) == target
    assert found.features["has code"].weight > 0.3
    assert found.cases == 30


def test_weights_are_where_the_slope_is_nothing() -> None:
    """A step aside from the fitted weights makes the penalised likelihood smaller."""
    from math import log

    known = training()
    best = fit(known, FitChoice(3.0))

    def likelihood(weights: Weights) -> float:
        fits = sum(
            log(weights.shares(rows)[target or 0])
            for rows, target in zip(known.rows, known.targets, strict=True)
        )
        return fits - 1.5 * sum(one.weight**2 for one in weights.features.values())

    for name, one in best.features.items():
        for aside in (-0.01, 0.01):
            moved = one.model_copy(update={"weight": one.weight + aside})
            other = best.model_copy(update={"features": {**best.features, name: moved}})
            assert likelihood(other) < likelihood(best)


def test_choices_are_made_by_cases_that_were_not_fitted_to() -> None:
    """The group with features of code is kept if only code matters."""
    assert choose(training(), "1").without != "execution"


def test_folds_are_parts() -> None:
    """Each case is in one fold; another seed makes others."""
    found = folds(17, 5, "1")
    assert sorted(n for part in found for n in part) == list(range(17))
    assert max(map(len, found)) - min(map(len, found)) <= 1
    assert folds(17, 5, "1") == found != folds(17, 5, "2")


def test_a_case_whose_label_is_no_candidate_is_left_out() -> None:
    """Nothing can be learned from it, and alone it is refused."""
    known = Training.of([talk()], [2])
    assert known.targets == [None]
    with pytest.raises(SettingsError, match="no conversation"):
        fit(known, FitChoice(1.0))


# --- real conversations ---


@real_data
def test_shipped_weights_are_the_fit_of_these_cases() -> None:
    """The command that stands in the file gives the file, but for the last digits."""
    cases, labels = load(Path(DATA)), read_labels(Path(DATA))
    found, shipped = whowhen.train(cases, labels, 1), Weights.read()
    assert (found.data, found.l2, found.command) == (shipped.data, shipped.l2, shipped.command)
    assert {name: one.weight for name, one in found.features.items()} == pytest.approx(
        {name: one.weight for name, one in shipped.features.items()}, abs=1e-4
    )


@real_data
def test_the_figures_of_the_page() -> None:
    """In 10 folds at least 62 % of agents and 45 % of steps; floors are those that are known."""
    cases, labels = load(Path(DATA)), read_labels(Path(DATA))
    found = score_runs("", cases, whowhen.cross_validated(cases, labels, 10, 1), labels)
    assert fmean(fmean(run.agent) for run in found.runs) >= 0.62
    assert fmean(fmean(run.step) for run in found.runs) >= 0.45
    for what, name, share in (("agent", "most frequent agent", 0.5), ("step", "step 1", 23 / 84)):
        best, flags = found.best_floor(what)
        assert (best, round(fmean(flags), 3)) == (name, round(share, 3))


@real_data
def test_real_files_and_cases_are_one() -> None:
    """The files that a user has give the steps that the benchmark's list has."""
    from dig.diagnosis.conversations.reading import read_conversation

    for case in load(Path(DATA)):
        found = read_conversation(Path(DATA, "logs", f"{case.name}.json"))
        assert (found.steps, found.task) == (case.steps, case.task)


def attribute(case: object) -> tuple[str, int]:
    """An attributor of a user's own."""
    return ("Map_Expert", 3)


def test_an_attributor_of_ones_own(tmp_path: Path) -> None:
    """It gets conversations, and what it raises or returns amiss is told."""
    here = "tests.lab.whowhen.test_whowhen"
    assert whowhen.ask_cases(f"{here}:attribute", [talk()]) == {"talk": BlamedStep("Map_Expert", 3)}
    with pytest.raises(SettingsError, match="failed about talk"):
        whowhen.ask_cases("json:dumps", [talk()])
    with pytest.raises(SettingsError, match="no attributor"):
        whowhen.ask_cases("nothing", [talk()])
