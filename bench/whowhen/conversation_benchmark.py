"""The benchmark Who&When: cases, labels, both evaluators, and the floors.

    cases = load(Path("DIR"))                       # conversations, without labels
    scores = score_runs("mine", cases, [answers], read_labels(Path("DIR")))

A directory has the benchmark's own files `N.json`, with labels inside, or `cases.json` and
`labels.json`. Cases and labels are read apart, so that what names a step never sees a label.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from dig._util.intervals import wilson
from dig.diagnosis.conversations.ranking import Attribution, Weights, rank
from dig.diagnosis.conversations.reading import (
    Conversation,
    build_step,
    fold_name,
    read_conversation,
    with_roles,
)
from dig.errors import SettingsError, TraceError
from dig.lab.experiment.markdown_table import Table
from dig.lab.experiment.statistics import sign_flip
from dig.tasks.user_objects import load as load_object
from dig.traces.interchange.imports import read_text

from .fitting import Training, choose, cross_fitted, fit

CASES, LABELS = "cases.json", "labels.json"
DISTANCES = (1, 3, 5)
FIRST = 3
_PREDICTED = re.compile(r"[\w_]+")


@dataclass(frozen=True, slots=True)
class BlamedStep:
    """The agent and the step at fault: as annotators say, or as an answer says.

    Attributes:
        step: The step, counted from 0.
        steps: Of an answer: all steps in the order of their shares.
    """

    agent: str
    step: int
    steps: tuple[int, ...] = ()


Predictions = Mapping[str, BlamedStep | None]
"""The answer about each case, by its name."""


# --- reading ---


def load(directory: Path) -> list[Conversation]:
    """The cases of a directory, without labels.

    Raises:
        TraceError: A file cannot be read, or there is none.
    """
    if (directory / CASES).exists():
        path = directory / CASES
        return [_case(path, row) for row in _rows(path, "cases", list)]
    return [read_conversation(path, "whowhen") for path in _files(directory)]


def _case(path: Path, row: Mapping[str, Any]) -> Conversation:
    try:
        steps = [
            build_step(n, line.get("speaker") or line["agent"], line["content"] or "")
            for n, line in enumerate(row["steps"])
        ]
        text = json.dumps([row["question"], row["steps"]], sort_keys=True)
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        return Conversation(row["id"], digest, with_roles(steps), row["question"] or None)
    except (KeyError, TypeError, AttributeError) as error:
        raise TraceError(path, None, f"holds a case of another shape: {error!r}") from None


def _files(directory: Path) -> list[Path]:
    files_found = [file for file in directory.glob("*.json") if file.stem.isdigit()]
    if not files_found:
        raise TraceError(directory, None, f"has neither {CASES} nor files of the form 1.json")
    return sorted(files_found, key=lambda file: int(file.stem))


def _rows(path: Path, key: str, kind: type) -> Any:
    try:
        value = json.loads(read_text(path))[key]
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise TraceError(path, None, f"is no JSON object with `{key}`: {error}") from None
    if not isinstance(value, kind):
        raise TraceError(path, None, f"`{key}` has another shape")
    return value


def read_labels(directory: Path) -> dict[str, BlamedStep]:
    """The labels of a directory, by the name of the case.

    Raises:
        TraceError: A file cannot be read, or has no label.
    """
    if (directory / CASES).exists():
        path = directory / LABELS
        return {
            name: _label(path, row, "agent", "step")
            for name, row in _rows(path, "labels", dict).items()
        }
    labels_by_case = {}
    for path in _files(directory):
        try:
            row = json.loads(read_text(path))
        except (ValueError, RecursionError) as error:
            raise TraceError(path, None, f"is no JSON: {error}") from None
        labels_by_case[path.stem] = _label(path, row, "mistake_agent", "mistake_step")
    return labels_by_case


def _label(path: Path, row: Any, agent: str, step: str) -> BlamedStep:
    try:
        return BlamedStep(str(row[agent]), int(row[step]))
    except (KeyError, TypeError, ValueError):
        raise TraceError(path, None, f"has no label (`{agent}`, `{step}`)") from None


def exchange_labels(
    cases: Sequence[Conversation], labels: Mapping[str, BlamedStep], seed: int
) -> dict[str, BlamedStep]:
    """Exchange the labelled steps between cases, so that nothing can be learned from labels.

    Args:
        cases: The cases.
        labels: Their labels.
        seed: Of the random numbers.
    """
    steps = [labels[case.name].step for case in cases]
    # Steps move, agents follow from them, so the labels stay consistent in themselves.
    random.Random(seed).shuffle(steps)
    at = [case.steps[min(n, len(case.steps) - 1)] for case, n in zip(cases, steps, strict=True)]
    pairs = zip(cases, at, strict=True)
    return {case.name: BlamedStep(step.agent, step.number) for case, step in pairs}


def checksum(labels: Mapping[str, BlamedStep]) -> str:
    """The version of labels: the beginning of a checksum."""
    rows = sorted((name, label.agent, label.step) for name, label in labels.items())
    return sha256(json.dumps(rows).encode()).hexdigest()[:16]


# --- answering ---

FIT = "python -m bench.whowhen DIR --fit FILE"
REPETITIONS = 5


def blamed_step(attribution: Attribution) -> BlamedStep | None:
    """The agent and step of an attribution."""
    if not attribution.candidates:
        return None
    steps = tuple(row.step for row in attribution.candidates if row.step is not None)
    return BlamedStep(attribution.candidates[0].agent, steps[0], steps)


def train(cases: Sequence[Conversation], labels: Mapping[str, BlamedStep], seed: int) -> Weights:
    """Choose and fit weights on all cases.

    Args:
        cases: The cases.
        labels: Their labels.
        seed: Of the parts by which L2 and groups of features are chosen.

    Raises:
        SettingsError: numpy is not installed.
    """
    training = Training.of(cases, [labels[case.name].step for case in cases])
    return fit(training, choose(training, str(seed)), checksum(labels), FIT)


def cross_validated(
    cases: Sequence[Conversation],
    labels: Mapping[str, BlamedStep],
    parts: int,
    seed: int,
    tell: Callable[[str, int, int], None] = lambda *_: None,
) -> list[Predictions]:
    """Answer each case with weights fitted on other cases.

    Args:
        cases: The cases.
        labels: Their labels.
        parts: In how many parts the cases are divided, each answered by weights of the others.
        seed: Of the random numbers; each repetition has parts of its own.
        tell: Takes a word for what is counted, how many are done, and how many there are.

    Raises:
        SettingsError: numpy is not installed.
    """
    training = Training.of(cases, [labels[case.name].step for case in cases])
    runs: list[Predictions] = []
    for repetition in range(REPETITIONS):
        answers: dict[str, BlamedStep | None] = {}
        for part, weights in cross_fitted(training, parts, f"{seed} {repetition}"):
            answers |= {cases[n].name: blamed_step(rank(cases[n], weights)) for n in part}
        runs.append(answers)
        tell("repetitions", repetition + 1, REPETITIONS)
    return runs


def attribute_cases(
    attribute: Callable[[Conversation], Attribution],
    cases: Sequence[Conversation],
    tell: Callable[[str, int, int], None] = lambda *_: None,
) -> Predictions:
    """Answer the cases in turn with an attributor.

    Args:
        attribute: Names the candidates of a conversation.
        cases: The cases.
        tell: Takes a word for what is counted, how many are done, and how many there are.
    """
    return _answer_all(lambda case: blamed_step(attribute(case)), cases, tell)


def _answer_all(
    answer: Callable[[Conversation], BlamedStep | None], cases: Sequence[Conversation],
    tell: Callable[[str, int, int], None],
) -> Predictions:  # fmt: skip
    answers: dict[str, BlamedStep | None] = {}
    for finished, case in enumerate(cases, 1):
        answers[case.name] = answer(case)
        tell("answers", finished, len(cases))
    return answers


def ask_cases(
    by: str, cases: Sequence[Conversation], tell: Callable[[str, int, int], None] = lambda *_: None
) -> Predictions:
    """The answers of a function of the user's own.

    Args:
        by: Its name, as `module:object`: it takes a `Conversation`, and returns an agent and a
            step, or ``None``.
        cases: The cases.
        tell: Takes a word for what is counted, how many are done, and how many there are.

    Raises:
        SettingsError: There is no such function, or it raised an error or returned another thing.
    """
    if ":" not in by:
        raise SettingsError(f"there is no attributor {by!r}; try attribution, or module:object")
    attribute = load_object(by, "attributor")

    def ask(case: Conversation) -> BlamedStep | None:
        try:
            answer = attribute(case)
            return None if answer is None else BlamedStep(str(answer[0]), int(answer[1]))
        except Exception as error:  # it is the user's, and may raise anything
            raise SettingsError(f"{by} failed about {case.name}: {error!r}") from error

    return _answer_all(ask, cases, tell)


# --- scoring ---


@dataclass(frozen=True)
class Hits:
    """For each case, whether an answer is right.

    Attributes:
        agent: The agent is the label's.
        step: The step is the label's.
        within: By distance: the step is at most so far from the label's.
        first: The label's step is among the first few.
        official_agent: The agent is right by the benchmark's own evaluator.
        official_step: So is the step.
    """

    agent: list[float]
    step: list[float]
    within: dict[int, list[float]]
    first: list[float]
    official_agent: list[float]
    official_step: list[float]


def hits(answers: Predictions, labels: Mapping[str, BlamedStep]) -> Hits:
    """Hold answers against labels; a case without an answer counts as wrong.

    Args:
        answers: The answers.
        labels: The labels.
    """

    def flags(is_hit: Callable[[BlamedStep, BlamedStep], bool]) -> list[float]:
        pairs = ((answers.get(name), true) for name, true in labels.items())
        return [float(answer is not None and is_hit(answer, true)) for answer, true in pairs]

    def is_within(far: int, answer: BlamedStep, true: BlamedStep) -> bool:
        return abs(answer.step - true.step) <= far

    return Hits(
        agent=flags(lambda answer, true: answer.agent == true.agent),
        step=flags(lambda answer, true: answer.step == true.step),
        within={far: flags(partial(is_within, far)) for far in DISTANCES},
        first=flags(lambda answer, true: true.step in (answer.steps or (answer.step,))[:FIRST]),
        official_agent=flags(is_agent_official),
        official_step=flags(lambda answer, true: str(true.step) in str(answer.step)),
    )


def is_agent_official(blamed: BlamedStep, true: BlamedStep) -> bool:
    """Whether the true agent is in the part of an answer read by the official evaluator.

    It reads an agent up to the first character that is no letter, digit or underscore.

    Args:
        blamed: The answer.
        true: The label.
    """
    read = _PREDICTED.match(blamed.agent)
    return read is not None and true.agent in read[0]


# --- floors ---


def floors(cases: Sequence[Conversation]) -> dict[str, Predictions]:
    """Predictions from nothing but the order and number of the steps.

    Args:
        cases: The cases.
    """
    rules: dict[str, Callable[[Conversation], int | None]] = {
        "first agent": lambda case: 0,
        "last": lambda case: case.candidates[-1].number,
        "most frequent agent": _of_most_frequent,
        "last worker": _of_last_worker,
        "last of the planner": _of_last_planner,
        "last of all": lambda case: case.steps[-1].number,
    }
    for number in range(9):
        rules[f"step {number}"] = lambda case, number=number: (  # type: ignore[misc]
            number if number < len(case.steps) else None
        )
    return {
        title: {case.name: _at(case, rule(case)) for case in cases} for title, rule in rules.items()
    }


def _at(case: Conversation, number: int | None) -> BlamedStep | None:
    return None if number is None else BlamedStep(case.steps[number].agent, number)


def _of_most_frequent(case: Conversation) -> int:
    counts = Counter(
        fold_name(step.agent) for step in case.steps if step.role in ("planner", "worker")
    )
    # A conversation of other roles alone has a most frequent agent as well.
    counts = counts or Counter(fold_name(step.agent) for step in case.steps)
    most = max(counts, key=lambda name: counts[name])
    return next(step.number for step in case.steps if fold_name(step.agent) == most)


def _of_last_worker(case: Conversation) -> int:
    workers = [candidate.number for candidate in case.candidates if candidate.role == "worker"]
    return workers[-1] if workers else case.candidates[-1].number


def _of_last_planner(case: Conversation) -> int | None:
    return next((step.number for step in case.steps[::-1] if step.role == "planner"), None)


def by_chance(
    cases: Iterable[Conversation], labels: Mapping[str, BlamedStep]
) -> tuple[float, float]:
    """The chance that a random agent, and a random step, is right.

    Args:
        cases: The cases.
        labels: The labels.
    """
    agents, steps = [], []
    for case in cases:
        true = labels[case.name]
        names = {candidate.agent for candidate in case.candidates}
        numbers = {candidate.number for candidate in case.candidates}
        agents.append((true.agent in names) / len(names))
        steps.append((true.step in numbers) / len(numbers))
    return fmean(agents), fmean(steps)


# --- the report ---


@dataclass(frozen=True)
class WhoWhenScores:
    """The scores of answers, beside the floors of the same files.

    Attributes:
        by: The name of what answered.
        version: The checksum of the labels.
        runs: The hits of each repetition.
        floors: The hits of each floor.
        chance: The share of cases in which a random agent and a random step are right.
        notes: The notes for readers of the table.
    """

    by: str
    version: str
    runs: Sequence[Hits]
    floors: Mapping[str, Hits]
    chance: tuple[float, float]
    notes: Sequence[str] = ()

    def best_floor(self, measure: str) -> tuple[str, list[float]]:
        """The floor with the most hits of `agent` or `step`.

        Args:
            measure: `agent` or `step`.
        """
        name = max(self.floors, key=lambda floor: fmean(getattr(self.floors[floor], measure)))
        return name, getattr(self.floors[name], measure)

    def p(self, measure: str) -> float:
        """McNemar's exact p of the first repetition against the best floor."""
        _, floor = self.best_floor(measure)
        own: list[float] = getattr(self.runs[0], measure)
        return sign_flip([a - b for a, b in zip(own, floor, strict=True)])

    def to_json(self, *, official: bool) -> dict[str, Any]:
        """The scores as plain JSON.

        Args:
            official: Whether the benchmark's own evaluator is told of.
        """
        body: dict[str, Any] = {
            "by": self.by, "labels": self.version, "cases": len(self.runs[0].agent),
            "repetitions": len(self.runs),
            "chance": {"agent": self.chance[0], "step": self.chance[1]},
        }  # fmt: skip
        for measure in ("agent", "step"):
            each = [fmean(getattr(run, measure)) for run in self.runs]
            low, high = self._interval(measure)
            body[measure] = {
                "share": fmean(each), "spread": pstdev(each), "low": low, "high": high,
                "floor": self.best_floor(measure)[0], "p": self.p(measure),
            }  # fmt: skip
        body["within"] = {
            str(far): fmean(fmean(run.within[far]) for run in self.runs) for far in DISTANCES
        }
        body["first_3"] = fmean(fmean(run.first) for run in self.runs)
        body["floors"] = {
            name: {"agent": fmean(floor.agent), "step": fmean(floor.step)}
            for name, floor in self.floors.items()
        }
        if official:
            body["official"] = self._official()
        return body | {"notes": [*self.notes]}

    def _official(self) -> dict[str, Any]:
        run, count = self.runs[0], len(self.runs[0].agent)
        return {
            measure: {
                "share": sum(theirs) / count,
                "only_official": sum(a > b for a, b in zip(theirs, own, strict=True)),
                "only_strict": sum(a < b for a, b in zip(theirs, own, strict=True)),
            }
            for measure, theirs, own in (
                ("agent", run.official_agent, run.agent), ("step", run.official_step, run.step),
            )
        }  # fmt: skip

    def _interval(self, measure: str) -> tuple[float, float]:
        count = len(self.runs[0].agent)
        share = fmean(fmean(getattr(run, measure)) for run in self.runs)
        return wilson(round(share * count), count)

    def tables(self, *, official: bool) -> list[Table]:
        """The scores as tables.

        Args:
            official: Whether the benchmark's own evaluator is told of.
        """
        rows: list[list[str | int]] = [[self.by, *self._cells(self.runs)]]
        rows += [[name, *self._cells([floor])] for name, floor in self.floors.items()]
        rows.append(["random", *(f"{100 * share:.1f}" for share in self.chance), *["-"] * 4])
        notes = [
            f"{len(self.runs[0].agent)} cases, labels {self.version}; percent of the cases with "
            f"Wilson's 95 % interval.",
            *(self._against(measure) for measure in ("agent", "step")), *self.notes,
        ]  # fmt: skip
        heads = ["by", "agent", "step", *(f"step +-{far}" for far in DISTANCES), f"first {FIRST}"]
        all_tables = [Table("whowhen", "Who&When", heads, rows, notes)]
        if official:
            lines = [
                [label, f"{100 * share['share']:.1f}", share["only_official"], share["only_strict"]]
                for label, share in self._official().items()
            ]
            note = "The true text is contained in the answer's; the first repetition."
            heads = ["what", "official", "hits by it alone", "hits that it misses"]
            all_tables.append(
                Table("official", "By the benchmark's own evaluator", heads, lines, [note])
            )
        return all_tables

    def _cells(self, runs: Sequence[Hits]) -> list[str]:
        parts = [[run.agent for run in runs], [run.step for run in runs]]
        parts += [[run.within[far] for run in runs] for far in DISTANCES]
        return [
            *map(_interval_text, parts[:2]),
            *map(_text, [*parts[2:], [run.first for run in runs]]),
        ]

    def _against(self, measure: str) -> str:
        name, flags = self.best_floor(measure)
        return (
            f"The best floor of the {measure}: {name} ({100 * fmean(flags):.1f}); McNemar's exact "
            f"p = {self.p(measure):.2g}."
        )


def _text(runs: Sequence[Sequence[float]]) -> str:
    each = [100 * fmean(run) for run in runs]
    return f"{fmean(each):.1f}" + (f" +- {pstdev(each):.1f}" if len(each) > 1 else "")


def _interval_text(runs: Sequence[Sequence[float]]) -> str:
    count = len(runs[0])
    low, high = wilson(round(fmean(map(fmean, runs)) * count), count)
    return f"{_text(runs)} [{100 * low:.0f}, {100 * high:.0f}]"


def score_runs(
    by: str,
    cases: Sequence[Conversation],
    runs: Sequence[Predictions],
    labels: Mapping[str, BlamedStep],
    notes: Sequence[str] = (),
) -> WhoWhenScores:
    """Score answers, and the floors of the same cases.

    Args:
        by: The name of what answered.
        cases: The cases.
        runs: The answers of each repetition.
        labels: The labels.
        notes: The notes for readers of the table.

    Raises:
        SettingsError: A case has no label.
    """
    missing = [case.name for case in cases if case.name not in labels]
    if missing or not cases:
        raise SettingsError(f"no label for {missing[0]}" if missing else "there is no case")
    return WhoWhenScores(
        by, checksum(labels), [hits(run, labels) for run in runs],
        {name: hits(floor, labels) for name, floor in floors(cases).items()},
        by_chance(cases, labels), notes,
    )  # fmt: skip
