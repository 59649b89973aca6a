"""Goals: tests of finished runs.

goal = Goal.parse("score.rmse<=250 and seconds<60")
print(goal(Finished(records, result=json.loads(...))).why)
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

from dig._util.text import name, names, one_line
from dig.detectors.finding import Finding
from dig.detectors.headline import Headline, Headlines, standing_headline
from dig.detectors.mended import Mending
from dig.detectors.patterns import BY_NAME
from dig.detectors.protocols import Detector
from dig.detectors.watch import Watch
from dig.errors import SettingsError
from dig.graph.records import FindingRow, Finish, Record, Run
from dig.runtime.result import RunResult
from dig.tasks.milestones import MOST, Milestone
from dig.tasks.task import Score
from dig.tasks.user_objects import load
from dig.traces.run import RecordedRun, recorded_rows

from .progress import any_milestones, share_reached


@dataclass(frozen=True)
class Finished:
    """A finished run, for goals to judge.

    Attributes:
        records: Its records, with payloads.
        result: The content of its `result.json`; empty if there is none.
        unhealed: Its errors that were neither mended nor silenced.
        healed: The patterns whose errors and warnings were healed in it.
        name: The name of the run in errors.
        milestones: The task's own, from the records; ``None``: those of any run.
        headline: The failed request, or the answer that lacks an agent's work; ``None``: none.
        run: The records as events and activations; ``None``: they are made when they are needed.
    """

    records: Sequence[Record]
    result: Mapping[str, Any]
    unhealed: Sequence[Finding] = ()
    healed: Sequence[str] = ()
    name: str = "the run"
    milestones: Callable[[Sequence[Record]], Sequence[Milestone]] | None = None
    headline: Headline | None = None
    run: RecordedRun | None = None

    @classmethod
    def of(
        cls,
        records: Sequence[Record], result: RunResult | Mapping[str, Any],
        detectors: Sequence[Detector] | Standing, *,
        score: Score | None = None, since: int = 0, task: object = None, name: str = "the run",
        run: RecordedRun | None = None,
    ) -> Finished:  # fmt: skip
        """Find the unhealed errors of a run; healed errors are left open.

        Args:
            records: Its records.
            result: The result of the run; or the content of `result.json`, which has the score,
                too.
            detectors: Fresh detectors, which look at the records; or the result of their look.
            score: The score of its answer, if `result` does not have it.
            since: The first record whose findings count. A fork is judged by what was found since
                its change: what is past cannot be mended.
            task: Its task, if it is known; it may have `milestones`.
            name: The name of the run in errors.
            run: The same records as events and activations, if they are there.

        Raises:
            RuleError: A record contradicts those before it.
        """
        if isinstance(result, RunResult):
            result = result.to_json()
        if score is not None:
            result = {**result, "score": asdict(score)}
        standing = detectors if isinstance(detectors, Standing) else Standing(detectors)
        for record in records if standing is not detectors else ():
            standing.feed(record)
        unhealed, headline = standing.since(since)
        milestones = getattr(task, "milestones", None)
        return cls(records, result, unhealed, (), name, milestones, headline, run)

    @cached_property
    def recorded(self) -> RecordedRun:
        """The records as events and activations."""
        return self.run or RecordedRun(self.records)

    @property
    def score(self) -> Score | None:
        """The score of the answer, if the result has a score."""
        score = self.result.get("score")
        if not isinstance(score, Mapping) or not isinstance(score.get("valid"), bool):
            return None
        return Score(**{key.name: score[key.name] for key in fields(Score) if key.name in score})

    @property
    def notes(self) -> tuple[str, ...]:
        """Limits of a judgement: a plain trace has no score, for instance."""
        if not has_answer(self).good or self.score is not None:
            return ()
        return ("the answer was not checked: no score is known",)


class Standing(Watch):
    """The errors of a run, neither mended nor silenced, and the headline."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        """Start before the first record.

        Args:
            detectors: Fresh detectors.
        """
        super().__init__(detectors)
        self._mending, self._headlines = Mending(), Headlines()
        self._findings, self._rows = list[Finding](), list[FindingRow]()
        self._headings: list[Headline | None] = []

    def feed(self, record: Record) -> list[Finding]:
        """Apply a record; the findings are kept here, and none is returned."""
        # Findings of a time that has passed come before the record, as they did in the run.
        due = self.advance(record.us)
        self.graph.apply(record)
        for finding in due:
            self._mending.add(self.graph, finding)
        self._mending.look(self.graph, record)
        self._headlines.look(record)
        raised = self.look(record)
        for finding in raised:
            self._mending.add(self.graph, finding)
        for finding in due + raised:
            self._findings.append(finding)
            self._headings.append(self._headlines.of(self.graph, finding))
        if isinstance(record, FindingRow):
            self._rows.append(record)
        return []

    def since(self, t: int) -> tuple[list[Finding], Headline | None]:
        """Return the errors found since a record, neither mended nor silenced, and the headline."""
        recorded, _ = recorded_rows(self._findings, self._rows)  # some were silenced by a policy
        findings = [
            replace(each, silenced=str(row.silenced)) if row and row.silenced is not None else each
            for each, row in zip(self._findings, recorded, strict=True)
        ]
        unhealed = [each for each in self._mending.unmended_errors(findings) if each.t >= t]
        mended = [
            each.t < t or is_mended
            for each, is_mended in zip(findings, self._mending.mended, strict=True)
        ]
        return unhealed, standing_headline(findings, self._headings, mended)


class Judgement(NamedTuple):
    """A judgement about a run.

    Attributes:
        good: Whether the run is good.
        progress: The share of the milestones that it reached; ``None``: not asked, or not known.
        why: The lack of the run, in words; if it is good, the test.
    """

    good: bool
    progress: float | None
    why: str


Test = Callable[[Finished], Judgement]
"""A test of a finished run; it may leave the progress open."""


def has_answer(run: Finished) -> Judgement:
    """Judge the answer of a run: accepted, and valid and complete by the score.

    A session, such as that of a wrapped team, is stopped at some moment, or goes on: each of its
    problems needs an accepted answer that is no error.
    """
    first, finish = (run.records[0], run.records[-1]) if run.records else (None, None)
    if not isinstance(finish, Finish) and not (isinstance(first, Run) and first.session):
        return Judgement(False, None, "the run has no end")
    if not isinstance(finish, Finish) or is_session(run.records):
        return _has_answers(run.recorded)
    if finish.outcome != "submitted":
        reason = run.result.get("reason")
        ending = f": {one_line(reason, 80)}" if reason else ""
        return Judgement(False, None, f"no answer was accepted (outcome {finish.outcome}{ending})")
    score = run.score
    if score is not None and not score.valid:
        return Judgement(False, None, "the answer is not valid")
    if score is not None and score.complete is False:
        return Judgement(False, None, "the answer is not complete")
    return Judgement(True, None, "an answer was accepted")


def is_session(records: Sequence[Record]) -> bool:
    """Whether some records are of a session, stopped at some moment."""
    first, last = (records[0], records[-1]) if records else (None, None)
    is_stopped = isinstance(last, Finish) and last.outcome == "stopped"
    return isinstance(first, Run) and first.session and is_stopped


def _has_answers(run: RecordedRun) -> Judgement:
    """Judge whether each problem of a session has an accepted answer without an error."""
    accepted = [event for event in run.events.values() if event.accepted_t is not None]
    good = [event for event in accepted if event.by and not run.activations[event.by].has_failed]
    behind, stack = set[str](), [event.id for event in good]
    while stack:
        event = run.events[stack.pop()]
        if event.id not in behind:
            behind.add(event.id)
            by = run.activations.get(event.by or "")
            stack += by.with_fate("consume") if by is not None else ()
    posed = [event.id for event in run.events.values() if event.by is None and event.is_work]
    missing = [event for event in posed if event not in behind]
    if missing or not posed:
        lacks = f"{names(missing, 4)} {'has' if len(missing) == 1 else 'have'} no answer"
        return Judgement(False, None, lacks if missing else "no problem came")
    return Judgement(True, None, "each problem has an answer")


def is_unfailed(run: Finished) -> Judgement:
    """Judge by default: the run has an answer (`has_answer`), and no unhealed error."""
    answered, headline = has_answer(run), run.headline
    if headline is not None and headline.stage == "request":
        return Judgement(False, None, headline.says)
    if answered.good and run.unhealed:
        patterns = dict.fromkeys(finding.pattern for finding in run.unhealed)
        titles = [f"{BY_NAME[each].title} ({each})" if each in BY_NAME else each
                  for each in patterns]  # fmt: skip
        return Judgement(False, None, f"errors that were not healed: {names(titles)}")
    return answered if headline is None else answered._replace(why=headline.says)


def is_healthy(run: Finished) -> Judgement:
    """Judge a run to learn from: with an answer, and without a healed error or warning.

    A session is good: `digmon learn` judges each of its problems by itself.
    """
    first = run.records[0] if run.records else None
    if isinstance(first, Run) and first.session:
        return Judgement(True, None, "a session")
    answered = has_answer(run)
    if answered.good and run.healed:
        return Judgement(False, None, f"an error or a warning was healed: {names([*run.healed])}")
    return answered


def _never(run: Finished) -> Judgement:
    return Judgement(False, None, "by the goal `none` no run is good")


# --- goals that users write ---

_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, ">": operator.gt,
}  # fmt: skip
# Parts that cannot overlap: a long text of blanks would make a careless pattern slow.
_COMPARISON = re.compile(r"([\w.-]+)\s*(<=|>=|==|!=|<|>)\s*+([^<>=!]+)")
_AND = re.compile(r"(?<!\s)\s+and\s+")


@dataclass(frozen=True)
class Condition:
    """A value in the result of a run, compared with a constant.

    Attributes:
        key: The place of the value: `score.rmse`, `findings.ET`.
        sign: One of `<= < >= > == !=`.
        value: The constant.
    """

    key: str
    sign: str
    value: Any

    def __str__(self) -> str:
        return f"{self.key}{self.sign}{self.value}"

    def holds(self, value: Any) -> bool:
        """Whether the condition holds of a value; no number is smaller or larger than a text."""
        if self.sign not in ("==", "!=") and not (_is_number(value) and _is_number(self.value)):
            return False
        return _COMPARE[self.sign](value, self.value)


@dataclass(frozen=True)
class Goal:
    """A test of a finished run, in the words of a user.

    Attributes:
        text: The goal in the user's words.
        test: The test that comes first.
        conditions: Further ones, on the run's result.
        is_own: Whether the test is the user's own, in place of the default.
    """

    text: str
    test: Test
    conditions: tuple[Condition, ...] = ()
    is_own: bool = False

    @classmethod
    def parse(cls, text: str, default: Test = is_unfailed) -> Goal:
        """Read a goal from a text.

        Args:
            text: `default`; `none` (no run is good); comparisons of keys of `result.json`, such as
                `score.rmse<=250 and findings.ET==0`, which are added to the default; or
                `module:function`, a test of the user's own in its place.
            default: The default test.

        Raises:
            SettingsError: The text is no goal; the message says how one is written.
        """
        if text == "default":
            return cls(text, default)
        if text == "none":
            return cls(text, _never, is_own=True)
        if any(sign in text for sign in _COMPARE):
            return cls(text, default, tuple(map(_condition, _AND.split(text.strip()))))
        return cls(text, _load_test(text), is_own=True)

    def __call__(self, run: Finished) -> Judgement:
        """Judge a run, with the progress.

        Raises:
            SettingsError: A key is not in the run's result, or a user's own test fails, or the
                milestones of the task do.
        """
        judged = self.verdict(run)
        if judged.progress is None and run.records:
            share = share_reached(milestones(run, judged), judged.good)
            judged = judged._replace(progress=share)
        return judged

    def verdict(self, run: Finished) -> Judgement:
        """Judge a run without the progress, since milestones take longer.

        Raises:
            SettingsError: A key is not in the run's result, or a user's own test fails.
        """
        judged = self.test(run)
        unmet = self.unmet(run) if judged.good else None
        return judged._replace(good=False, why=f"{unmet} does not hold") if unmet else judged

    def unmet(self, run: Finished) -> Condition | None:
        """Return the first condition without success.

        Raises:
            SettingsError: A key is not in the run's result.
        """
        return next((c for c in self.conditions if not c.holds(_value(c.key, run))), None)


def _condition(text: str) -> Condition:
    match = _COMPARISON.fullmatch(text.strip())
    if match is None:
        raise SettingsError(
            f"{one_line(repr(text), 80)} is no comparison; a goal is written as "
            "'score.rmse<=250 and findings.ET==0'"
        )
    key, sign, constant = match.groups()  # the constant as JSON or, failing that, a word
    try:
        value = json.loads(constant)
    except ValueError:
        value = constant  # a word: outcome==submitted
    if sign not in ("==", "!=") and not _is_number(value):
        raise SettingsError(f"{one_line(text, 80)}: {constant!r} is no number to compare with")
    return Condition(key, sign, value)


def _load_test(text: str) -> Test:
    function = load(text, "goal")
    if not callable(function):
        raise SettingsError(f"the goal {text!r} is no function")

    def test(run: Finished) -> Judgement:
        try:
            judged = function(run)
        except Exception as error:
            raise SettingsError(f"the goal {text!r} raised {error!r} of {run.name}") from error
        if isinstance(judged, Judgement):
            return judged
        if isinstance(judged, bool):
            return Judgement(judged, None, f"{text} said {'yes' if judged else 'no'}")
        raise SettingsError(f"the goal {text!r} returned {judged!r:.60}, not a Judgement or a bool")

    return test


def _value(key: str, run: Finished) -> Any:
    """The value of a key in the result of a run; a pattern without findings was raised 0 times.

    Raises:
        SettingsError: There is no such key.
    """
    first, _, pattern = key.partition(".")
    measures = run.result.get("measures") or {}
    if first == "findings" and pattern and isinstance(run.result.get("raised"), Mapping):
        return run.result["raised"].get(pattern, 0)
    cost = {"tokens": measures.get("tokens"), **(measures.get("cost") or {})} if measures else None
    place: Any = {**run.result, "cost": cost}
    for step in key.split("."):
        if not isinstance(place, Mapping) or step not in place:
            keys = names([key for key in run.result if key not in ("findings", "raised")], 12)
            has = f"its result has: {keys}" if run.result else "no result.json lies beside it"
            raise SettingsError(f"{run.name} has no {name(key)} for the goal; {has}")
        place = place[step]
    return place


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- progress ---


def milestones(run: Finished, judged: Judgement) -> tuple[Milestone, ...]:
    """Return the milestones of a run: of the task or, without any, of any run.

    Args:
        run: The run; it has a record at least.
        judged: Whether the run is good.

    Raises:
        SettingsError: The task's own milestones fail, or are too many.
    """
    own: tuple[Milestone, ...] = ()
    if run.milestones is not None:
        try:
            own = tuple(run.milestones(run.records))
        except Exception as error:  # a user's own code
            reason = f"the milestones of the task raised {error!r} of {run.name}"
            raise SettingsError(reason) from error
    if len(own) > MOST:
        raise SettingsError(f"a task has at most {MOST} milestones, not {len(own)}")
    return own or any_milestones(run.recorded, judged.good, judged.why)
