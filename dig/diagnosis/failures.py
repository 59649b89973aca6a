"""Failures: reasons why a run is not good.

for failure in failures(run, Goal.parse("default")):
    print(failure.kind, failure.about, failure.evidence)
"""

from __future__ import annotations

from collections.abc import Iterator

from dig._util.text import one_line
from dig.detectors.describe import finding_text
from dig.detectors.finding import Finding
from dig.show.document import Evidence, Failure
from dig.tasks.milestones import NO_ANSWER
from dig.traces.run import RecordedEvent, RecordedRun

from .causes import OUTCOME
from .goal import Finished, Goal, has_answer, is_session

LONGEST = 120
"""The most characters of a sentence: payloads and texts from outside are in it."""


def failures(run: Finished, goal: Goal) -> tuple[Failure, ...]:
    """List the reasons why a run is not good; empty if the goal is met.

    Args:
        run: The run; it has a record at least.
        goal: Says when it is good.

    Raises:
        SettingsError: A key is not in the run's result, or a user's own test fails.
    """
    judged = goal.verdict(run)
    if judged.good:
        return ()
    recorded = run.recorded
    failures = [
        *_end_failures(run, recorded),
        *(_finding_failure(recorded, finding) for finding in run.unhealed),
    ]
    if not failures or goal.is_own:
        failures.append(_goal_failure(run, goal, recorded, judged.why))
    return tuple(failures)


def _end_failures(run: Finished, recorded: RecordedRun) -> Iterator[Failure]:
    """The failures by the end of the run, and by the answer."""
    finish, answer = recorded.finish, recorded.answer
    end_text = (
        _ENDS.get(finish.outcome, NO_ANSWER) if finish else "the trace ends without an outcome"
    )
    end = (Evidence(recorded.last.t, end_text),)
    if run.headline is not None and run.headline.stage == "request":
        pass  # the request that failed is a finding, which also says why there is no answer
    elif is_session(run.records):
        judged = has_answer(run)
        if not judged.good:
            yield Failure("no-answer", OUTCOME, (Evidence(recorded.last.t, judged.why),))
    elif answer is None or finish is None or finish.outcome != "submitted":
        late = answer is not None and finish is not None and finish.outcome == "timeout"
        yield Failure("timeout" if late else "no-answer", OUTCOME, end)
    score = run.score
    if answer is not None and score is not None:
        if not score.valid:
            yield _answer_failure(answer, one_line(score, LONGEST))
        elif score.complete is False:
            yield _answer_failure(answer, "the answer is not complete")


_ENDS = {
    "timeout": "the run ended by its time limit",
    "stopped": "the run was stopped",
    "error": "the run ended with an error",
}


def _answer_failure(answer: RecordedEvent, says: str) -> Failure:
    return Failure("bad-answer", answer.id, (Evidence(answer.accepted_t, says),))


def _finding_failure(run: RecordedRun, finding: Finding) -> Failure:
    """The failure of an unhealed finding, about the first part of the subject."""
    subject = finding.subject
    about = subject.get("event") or run.agent_of(subject.get("activation", "")) or finding.pattern
    says = one_line(f"{finding.pattern}: {finding_text(finding)}", LONGEST)
    return Failure("finding", about, (Evidence(finding.t, says),))


def _goal_failure(run: Finished, goal: Goal, recorded: RecordedRun, reason: str) -> Failure:
    """The failure of a run by the user's goal alone."""
    says = one_line(reason, LONGEST)
    unmet = goal.unmet(run)
    if unmet is not None and unmet.key.startswith("score.") and recorded.answer is not None:
        return _answer_failure(recorded.answer, says)
    return Failure("complaint", OUTCOME, (Evidence(recorded.last.t, says),))
