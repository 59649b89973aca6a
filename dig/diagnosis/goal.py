"""Goals: when a finished run is good.

goal = Goal.parse("score.rmse<=250 and seconds<60")
print(goal(Finished(records, result=json.loads(...))).why)
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
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

from .progress import any_milestones, progress


@dataclass(frozen=True)
class Finished:
    """A run that is judged.

    Attributes:
        records: Its records, with payloads.
        result: The content of its `result.json`; empty if there is none.
        unhealed: Its errors that were neither mended nor silenced.
        healed: The patterns whose errors and warnings were healed in it.
        name: The name of the run in errors.
        milestones: The task's own, from the records; ``None``: those of any run.
        headline: The failed request, or the answer that lacks an agent's work; ``None``: none.
    """

    records: Sequence[Record]
    result: Mapping[str, Any]
    unhealed: Sequence[Finding] = ()
    healed: Sequence[str] = ()
    name: str = "the run"
    milestones: Callable[[Sequence[Record]], Sequence[Milestone]] | None = None
    headline: Headline | None = None

    @classmethod
    def of(
        cls,
        records: Sequence[Record],
        result: RunResult | Mapping[str, Any],
        detectors: Sequence[Detector],
        *,
        score: Score | None = None,
        since: int = 0,
        task: object = None,
        name: str = "the run",
    ) -> Finished:
        """A run whose unhealed findings are not known yet; what was healed in it is left open.

        Args:
            records: Its records.
            result: The result of the run; or the content of `result.json`, which has the score,
                too.
            detectors: Fresh detectors, which look at the records.
            score: The score of its answer, if `result` does not have it.
            since: The first record whose findings count. A fork is judged by what was found since
                its change: what is past cannot be mended.
            task: Its task, if it is known; it may have `milestones`.
            name: The name of the run in errors.

        Raises:
            RuleError: A record contradicts those before it.
        """
        if isinstance(result, RunResult):
            result = result.to_json()
        if score is not None:
            result = {**result, "score": asdict(score)}
        unhealed, headline = _standing(records, detectors, since)
        milestones = getattr(task, "milestones", None)
        return cls(records, result, unhealed, (), name, milestones, headline)

    @property
    def score(self) -> Score | None:
        """The score of its answer, if it is known."""
        score = self.result.get("score")
        if not isinstance(score, Mapping) or not isinstance(score.get("valid"), bool):
            return None
        return Score(**{one.name: score[one.name] for one in fields(Score) if one.name in score})

    @property
    def notes(self) -> tuple[str, ...]:
        """Limits of what a goal can say about it: a plain trace has no score, for instance."""
        if not has_answer(self).good or self.score is not None:
            return ()
        return ("the answer was not checked: no score is known",)


def _standing(
    records: Iterable[Record], detectors: Sequence[Detector], since: int
) -> tuple[list[Finding], Headline | None]:
    """The errors in a run that are neither mended nor silenced, and its headline.

    Args:
        records: Its records.
        detectors: Fresh detectors.
        since: The first record whose findings count.
    """
    watch, mending, headlines = Watch(detectors), Mending(), Headlines()
    found, rows = list[Finding](), list[FindingRow]()
    headings: list[Headline | None] = []
    for record in records:
        due = watch.advance(record.us)
        watch.graph.apply(record)
        for finding in due:
            mending.add(watch.graph, finding)
        mending.look(watch.graph, record)
        headlines.look(record)
        raised = watch.look(record)
        for finding in raised:
            mending.add(watch.graph, finding)
        found += due + raised
        headings += [headlines.of(watch.graph, one) for one in due + raised]
        if isinstance(record, FindingRow):
            rows.append(record)
    recorded, _ = recorded_rows(found, rows)
    ruled = [
        replace(one, silenced=str(row.silenced)) if row and row.silenced is not None else one
        for one, row in zip(found, recorded, strict=True)
    ]
    unhealed = [one for one in mending.unmended_errors(ruled) if one.t >= since]
    is_past = [one.t < since for one in ruled]
    mended = [past or was for past, was in zip(is_past, mending.mended, strict=True)]
    return unhealed, standing_headline(ruled, headings, mended)


class Judgement(NamedTuple):
    """Whether a run is good.

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
    """Whether a run ended with an accepted answer, valid and complete as far as a score tells.

    A session, such as that of a wrapped team, is stopped at some moment: each of its problems needs
    an accepted answer that is no error.
    """
    finish = run.records[-1] if run.records else None
    if not isinstance(finish, Finish):
        return Judgement(False, None, "the run has no end")
    if is_session(run.records):
        return _has_answers(RecordedRun(run.records))
    if finish.outcome != "submitted":
        said = run.result.get("reason")
        why = f": {one_line(said, 80)}" if said else ""
        return Judgement(False, None, f"no answer was accepted (outcome {finish.outcome}{why})")
    score = run.score
    if score is not None and not score.valid:
        return Judgement(False, None, "the answer is not valid")
    if score is not None and score.complete is False:
        return Judgement(False, None, "the answer is not complete")
    return Judgement(True, None, "an answer was accepted")


def is_session(records: Sequence[Record]) -> bool:
    """Whether some records are those of a session that was stopped at some moment."""
    first, last = (records[0], records[-1]) if records else (None, None)
    is_stopped = isinstance(last, Finish) and last.outcome == "stopped"
    return isinstance(first, Run) and first.session and is_stopped


def _has_answers(run: RecordedRun) -> Judgement:
    """Whether each problem of a session has an accepted answer that is no error."""
    accepted = [event for event in run.events.values() if event.accepted_t is not None]
    good = [one for one in accepted if one.by and not run.activations[one.by].has_failed]
    answered = frozenset[str]().union(*(run.ancestors(one.id) for one in good))
    posed = [event.id for event in run.events.values() if event.by is None and event.is_work]
    left = [event for event in posed if event not in answered]
    if left or not posed:
        lacks = f"{names(left, 4)} has" if len(left) == 1 else f"{names(left, 4)} have"
        return Judgement(False, None, f"{lacks} no answer" if left else "no problem came")
    return Judgement(True, None, "each problem has an answer")


def is_unfailed(run: Finished) -> Judgement:
    """The default: a run with such an answer, and without an unhealed error."""
    answered, headline = has_answer(run), run.headline
    if headline is not None and headline.stage == "request":
        return Judgement(False, None, headline.says)
    if answered.good and run.unhealed:
        left = names([*dict.fromkeys(_titled(finding.pattern) for finding in run.unhealed)])
        return Judgement(False, None, f"errors that were not healed: {left}")
    return answered if headline is None else answered._replace(why=headline.says)


def _titled(pattern: str) -> str:
    known = BY_NAME.get(pattern)
    return f"{known.title} ({pattern})" if known else pattern


def is_healthy(run: Finished) -> Judgement:
    """A run with such an answer, in which no error and no warning was healed; or a session.

    Of a session `digmon learn` judges each problem by itself.
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
        """Whether the condition holds of a value; nothing is smaller or larger than a text."""
        if self.sign not in ("==", "!=") and not (_is_number(value) and _is_number(self.value)):
            return False
        return _COMPARE[self.sign](value, self.value)


@dataclass(frozen=True)
class Goal:
    """A test of a finished run, as a user writes it.

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
        """The goal that a text describes.

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
        return cls(text, _own(text), is_own=True)

    def __call__(self, run: Finished) -> Judgement:
        """Judge a run, and say how far it came.

        Raises:
            SettingsError: A key is not in the run's result, or a user's own test fails, or the
                milestones of the task do.
        """
        judged = self.verdict(run)
        if judged.progress is None and run.records:
            reached = progress(milestones(run, judged), judged.good)
            judged = judged._replace(progress=reached)
        return judged

    def verdict(self, run: Finished) -> Judgement:
        """Judge a run; its progress is left open, since that takes longer.

        Raises:
            SettingsError: A key is not in the run's result, or a user's own test fails.
        """
        judged = self.test(run)
        unmet = self.unmet(run) if judged.good else None
        return judged._replace(good=False, why=f"{unmet} does not hold") if unmet else judged

    def unmet(self, run: Finished) -> Condition | None:
        """The first condition that does not hold.

        Raises:
            SettingsError: A key is not in the run's result.
        """
        return next((one for one in self.conditions if not one.holds(_value(one.key, run))), None)


def _condition(text: str) -> Condition:
    found = _COMPARISON.fullmatch(text.strip())
    if found is None:
        raise SettingsError(
            f"{one_line(repr(text), 80)} is no comparison; a goal is written as "
            "'score.rmse<=250 and findings.ET==0'"
        )
    key, sign, constant = found.groups()
    try:
        value = json.loads(constant)
    except ValueError:
        value = constant  # a word: outcome==submitted
    if sign not in ("==", "!=") and not _is_number(value):
        raise SettingsError(f"{one_line(text, 80)}: {constant!r} is no number to compare with")
    return Condition(key, sign, value)


def _own(text: str) -> Test:
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
    """The value of a key in the result of a run; a pattern that was not raised was raised 0 times.

    Raises:
        SettingsError: There is no such key.
    """
    first, _, rest = key.partition(".")
    measures = run.result.get("measures") or {}
    if first == "findings" and rest and isinstance(run.result.get("raised"), Mapping):
        return run.result["raised"].get(rest, 0)
    cost = {"tokens": measures.get("tokens"), **(measures.get("cost") or {})} if measures else None
    place: Any = {**run.result, "cost": cost}
    for step in key.split("."):
        if not isinstance(place, Mapping) or step not in place:
            known = names([one for one in run.result if one not in ("findings", "raised")], 12)
            has = f"its result has: {known}" if run.result else "no result.json lies beside it"
            raise SettingsError(f"{run.name} has no {name(key)} for the goal; {has}")
        place = place[step]
    return place


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


# --- progress ---


def milestones(run: Finished, judged: Judgement) -> tuple[Milestone, ...]:
    """The milestones of a run: the task's own; of a task that has none, those of any run.

    Args:
        run: The run; it has a record at least.
        judged: Whether the run is good.

    Raises:
        SettingsError: The task's own milestones fail, or are too many.
    """
    own = _own_milestones(run)
    return own or any_milestones(RecordedRun(run.records), judged.good, judged.why)


def _own_milestones(run: Finished) -> tuple[Milestone, ...]:
    if run.milestones is None:
        return ()
    try:
        own = tuple(run.milestones(run.records))
    except Exception as error:  # a user's own code
        raise SettingsError(f"the milestones of the task raised {error!r} of {run.name}") from error
    if len(own) > MOST:
        raise SettingsError(f"a task has at most {MOST} milestones, not {len(own)}")
    return own
