"""The scores of answers, of detectors and of healing, with values that were worked out by hand."""

from __future__ import annotations

import random
from statistics import fmean

import pytest

from bench.budgets import LARGEST, SWEPT, heal_within
from dig.detectors.patterns import NAMES
from dig.errors import SettingsError
from dig.lab.benchmark.answer_file import Answer, Answers, CausalStep, RootCause
from dig.lab.benchmark.attributing import FLOORS, attribute_all
from dig.lab.benchmark.instances import FILES, TWIN, Entry, FaultSet, RunEnding
from dig.lab.benchmark.scores_answers import METRICS, NO_HARM, ScoredRun, Scores, score
from dig.lab.benchmark.scores_detectors import DetectorScores, FaultFree, SeenKind, score_detectors
from dig.lab.benchmark.scores_healing import NO_ERRORS, ROWS, HealingScores, Pair, score_healing


def perfect(known: FaultSet) -> Answers:
    """What somebody answers who has read the labels; every record is named as evidence."""
    answers = {}
    for one in known.instances():
        graph, every = one.graph().project(), tuple(range(one.entry.records))
        answers[one.entry.id] = Answer(
            root_causes=tuple(
                RootCause(component=cause.component, kind=cause.kind, evidence=every[-1:])
                for cause in graph.root_causes
            ),
            propagation=tuple(
                CausalStep(source=edge.source, target=edge.target) for edge in graph.edges
            ),
            # The first act of all may be a bystander's.
            step=min(cause.step for cause in one.label().causes),
        )
    return Answers(by="somebody who knows", answers=answers)


def test_who_knows_all_is_right_in_all(small: FaultSet) -> None:
    """Every metric about causes and steps is 1 in every run."""
    for one in score(perfect(small), small, with_floors=False).scored:
        assert one.marks.get("innocents", 0.0) == 0.0
        others = one.marks.keys() - {"evidence", "innocents"}
        assert {one.marks[name] for name in others} == {1.0}


def test_labels_that_are_exchanged_leave_chance(small: FaultSet) -> None:
    """The shuffle test: right answers to other runs get what any pairing would give.

    With labels exchanged at random the expected score is the mean over all pairs of runs of one
    configuration; over twenty shuffles the mean must be close to it, and far from 1.
    """
    answers = perfect(small)
    metrics = ("exact", "recall", "any_agent", "edge_f1")
    shuffled = [score(answers, small, shuffle, with_floors=False) for shuffle in range(20)]
    got = {m: fmean(one.marks[m] for s in shuffled for one in s.scored) for m in metrics}
    causes = [
        (one.entry.configuration, frozenset((c.component, c.kind) for c in one.graph().root_causes))
        for one in small.instances()
    ]
    expected = fmean(
        fmean(other == true for where, other in causes if where == configuration)
        for configuration, true in causes
    )
    assert got["exact"] == pytest.approx(expected, abs=0.05)
    assert expected < 0.25
    assert all(got[m] < 0.6 for m in metrics)


def test_runs_without_an_answer_count_as_empty_and_are_told(small: FaultSet) -> None:
    """They lower the mean; the notes say how many there were."""
    known = perfect(small)
    ids = sorted(one.entry.id for one in small.instances() if one.label().harm)
    half = Answers(answers={name: known.answers[name] for name in ids[::2]})
    found = score(half, small, with_floors=False)
    assert {*found.missing} == {*known.answers} - {*ids[::2]}
    assert found.to_json()["strata"]["all"]["exact"]["mean"] == len(ids[::2]) / len(ids)
    assert f"{30 - len(ids[::2])} runs without an answer" in " ".join(found.notes())


def test_answers_about_runs_that_are_not_there_are_refused(small: FaultSet) -> None:
    """A name that was mistyped must not count as a run without an answer."""
    with pytest.raises(SettingsError, match=r"answers\.i9999: .* has no such run"):
        score(Answers(answers={"i9999": Answer()}), small)


def test_each_stratum_has_its_runs(small: FaultSet) -> None:
    """Parts, tasks, sizes of teams and kinds partition all failures."""
    strata = dict(score(perfect(small), small, with_floors=False).strata())
    count = len(strata["all"])
    assert len(strata["public"]) + len(strata["held-out"]) == count
    assert count + len(strata[NO_HARM]) == 30
    assert len(strata["3 agents"]) + len(strata["6 agents"]) == count
    kinds = {one.kind for one in strata["all"]}
    assert sum(len(strata[kind]) for kind in kinds) == count


def test_a_table_has_every_metric_and_every_stratum(small: FaultSet) -> None:
    """As Markdown, with intervals."""
    found = score(perfect(small), small)
    table = "\n".join(one.markdown() for one in found.tables())
    assert all(name in table for name in METRICS)
    assert all(f"| {stratum} |" in table for stratum, _ in found.strata())
    assert "1.00 [0.88, 1.00]" in table  # 30 of 30, by Clopper and Pearson


# --- detectors ---


def seen(kind: str, should: str, may: str, **delays: tuple[int, float]) -> SeenKind:
    return SeenKind(kind, frozenset(should.split()), frozenset(may.split()), delays)


DETECTED = DetectorScores(
    (
        seen("drop", "OE", "DL", OE=(4, 5.0), DL=(9, 12.0)),
        seen("drop", "OE", "DL", OE=(8, 7.0)),
        seen("drop", "OE", "DL"),
        seen("crash", "DL", "", OE=(1, 1.0)),
    ),
    (
        FaultFree(" 3 agents", frozenset({"OE"}), is_bad=False),
        FaultFree(" 6 agents", frozenset(), is_bad=False),
        FaultFree(" 6 agents", frozenset({"OE"}), is_bad=True),
    ),
    {"OE": {"bad": 3, "good": 1}},
)


def test_recall_false_alarms_and_delay_of_a_pattern() -> None:
    """OE: in 2 of the 3 failures that should have it, in 1 of 2 good runs without a fault; 3 of 4
    candidates that have it end badly. A run that fails by itself is no false alarm."""
    found = DETECTED.pattern("OE")
    assert found.expected == (True, True, False)
    assert found.false == (True, False)
    row = found.to_json()
    assert (row["recall"]["mean"], row["false_alarms"]["mean"]) == (2 / 3, 0.5)
    assert row["bad_if_raised"]["mean"] == 0.75
    teams = DETECTED.to_json()["false_alarms"]
    assert [teams[where]["OE"]["mean"] for where in ("3 agents", "6 agents")] == [1.0, 0.0]
    assert row["delay_records"] == (6.0, 5.0, 7.0)
    assert row["delay_s"] == (6.0, 5.5, 6.5)


def test_intervals_cover_what_they_are_of() -> None:
    """In simulated sets: runs of one twin are alike, which the interval of a mean knows of; and
    Wilson's of a rare false alarm."""
    chance = random.Random("intervals")
    covered = {"mean": 0, "rate": 0}
    for _ in range(120):
        runs = []
        for twin in range(40):
            p = chance.choice((0.2, 0.9))  # 0.55 on average, and the same for all runs of a twin
            for number in range(3):
                runs.append(run_of(f"{twin}-{number}", str(twin), float(chance.random() < p)))
        found = Scores("x", tuple(runs), (), 0).to_json()["strata"]["all"]["exact"]
        covered["mean"] += found["low"] <= 0.55 <= found["high"]
        free = [
            FaultFree(" 3 agents", frozenset({"OE"} if chance.random() < 0.03 else ()), False)
            for _ in range(450)
        ]
        rate = DetectorScores((), tuple(free)).pattern("OE").to_json()["false_alarms"]
        covered["rate"] += rate["low"] <= 0.03 <= rate["high"]
    assert all(0.9 < times / 120 < 1 for times in covered.values())


def run_of(name: str, twin: str, exact: float) -> ScoredRun:
    sums = dict.fromkeys(FILES, "0" * 64) | {TWIN: f"{int(twin):064x}"}
    entry = Entry(
        id=name, split="public", configuration="c", task="t", size=1, agents=3, records=9,
        sha256=sums,
    )  # fmt: skip
    return ScoredRun(entry, "drop", {"exact": exact})


def test_chance_stands_beside_every_figure(small: FaultSet) -> None:
    """The same answers with exchanged labels, as `--shuffle` gives them, in table and JSON."""
    answers = attribute_all("rules", small)
    found = score(answers, small)
    exchanged = score(answers, small, 0, with_floors=False)
    assert found.to_json()["exchanged"] == exchanged.to_json()["strata"]["all"]
    names = [str(row[0]) for row in found.tables()[1].rows]
    assert names == ["rules", "labels exchanged", *FLOORS, "oracle"]


def test_kinds_against_patterns() -> None:
    """Shares of runs, with a mark where the catalogue expects it, and the baseline as a row."""
    confusion = DETECTED.tables("everywhere")[2]
    lines = [dict(zip(confusion.columns, map(str, row), strict=True)) for row in confusion.rows]
    rows = {line["fault"]: line for line in lines}
    never = dict.fromkeys(NAMES, "0.00")
    assert rows["no fault"] == {
        **never, "fault": "no fault", "runs": "3", "OE": "0.67", "nothing": "0.33",
    }  # fmt: skip
    assert rows["drop"] == {
        **never, "fault": "drop", "runs": "3", "OE": "0.67!", "DL": "0.33?", "nothing": "0.33",
    }  # fmt: skip
    assert confusion.columns == ["fault", "runs", *NAMES, "nothing"]


def test_detectors_are_judged_by_failures_and_by_the_baseline(small: FaultSet) -> None:
    """Each instance gives a run with its kind, each run of the baseline one without a fault; no
    finding is before a fault."""
    (found,) = score_detectors(small).values()
    assert len(found.failures) == sum(one.label().harm for one in small.instances())
    assert len(found.fault_free) == 2 * 20
    late = [delay for one in found.failures for delay in one.delays.values()]
    assert late
    assert all(records >= 0 and seconds >= 0 for records, seconds in late)


# --- healing ---


def ended(rmse: float | None, seconds: float = 10.0) -> RunEnding:
    submitted = rmse is not None
    outcome = "submitted" if submitted else "stopped"
    return RunEnding(outcome=outcome, valid=submitted, rmse=rmse, seconds=seconds, raised={})


HEALED = HealingScores(
    (
        Pair("drop", ended(None), ended(2.0), ended(2.0)),
        Pair("drop", ended(9.0), ended(5.0, 14.0), ended(2.0)),
        Pair("drop", ended(1.0), ended(None), ended(1.0)),
        Pair("drop", ended(1.0), ended(3.0, 12.0), ended(1.0)),
    )
)


def test_what_healing_saves_and_what_it_makes_worse() -> None:
    """Worked out by hand: one saved, two worse (no answer any more, a larger RMSE)."""
    found = HEALED.to_json()["drop"]
    assert HEALED.to_json()["methods"]["dig+"]["valid"]["mean"] == 0.75
    assert [*found] == [*HEALED.table().columns[2:]]
    assert (found["saved"], found["made worse"]) == (1, 2)
    assert found["none"]["mean"] == found["dig+"]["mean"] == 0.75
    assert found["RMSE, gained"]["mean"] == (-4 + 2) / 2
    assert found["s, more"]["mean"] == (4 + 2) / 2
    assert found["lost for good"]["mean"] == 0.25
    assert found["RMSE, left"]["mean"] == pytest.approx((0 + 3 + 2) / 3)


def test_methods_are_compared_run_by_run_with_the_exact_test() -> None:
    """Six runs that `dig+` alone saves, and one that `retry` alone does: 16 of 128 as far."""
    pairs = [Pair("drop", ended(None), ended(1.0), ended(1.0), {"retry": ended(None)})] * 6
    pairs += [Pair("drop", ended(None), ended(None), ended(1.0), {"retry": ended(1.0)})]
    pairs += [Pair("slow", ended(1.0), ended(1.0), ended(1.0), good=frozenset({"dig+", "none"}))]
    methods, by_kind, good = HealingScores(tuple(pairs)).tables()
    assert by_kind.rows[0][:2] == ["drop", 7]
    assert [str(cell)[:4] for cell in by_kind.rows[0][2:5]] == ["0.00", "0.14", "0.86"]
    assert good.columns[2:] == ["none", "retry", "dig+"]
    assert [str(cell)[:4] for cell in good.rows[1]] == ["slow", "1", "1.00", "0.00", "1.00"]
    page = methods.markdown()
    assert (
        "Valid with `retry` and not with `dig+`: 1; the other way round: 6 (exact p 0.12)" in page
    )


def test_a_budget_bounds_attempts_and_steps(small: FaultSet) -> None:
    """With none nothing is done, so the answer of a run that is saved with eight comes later."""
    label = next(one.label() for one in small.labelled() if "drop" in one.label().kind)
    valid = heal_within((label, NO_ERRORS))
    assert [*valid] == [*SWEPT] and {len(row) for row in valid.values()} == {LARGEST + 1}
    assert {row[0] for name, row in valid.items() if name != "dig+, steps"} == {label.faulted.valid}
    assert valid["dig+, findings"][LARGEST] and valid["dig+, steps"][LARGEST]


def test_healing_is_played_on_the_same_runs(small: FaultSet) -> None:
    """Every run with its own faults; how it ended without healing is what its label says."""
    found = score_healing(small)
    labels = [one.label() for one in small.instances() if one.label().harm]
    assert [pair.plain for pair in found.pairs] == [label.faulted for label in labels]
    assert any(pair.healed.valid and not pair.plain.valid for pair in found.pairs)
    assert f"| all | {len(labels)} |" in found.table().markdown()
    methods = found.to_json()["methods"]
    assert [*methods] == [*ROWS]
    assert methods["dig"]["complete"]["mean"] > methods["none"]["complete"]["mean"]
