"""Failures: what says that a run is not good.

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
"""The number of characters of a sentence at most: payloads and texts from outside are in it."""


def failures(run: Finished, goal: Goal) -> tuple[Failure, ...]:
    """Everything by which a run is not good; nothing, if the goal is met.

    Args:
        run: The run; it has a record at least.
        goal: Says when it is good.

    Raises:
        SettingsError: A key is not in the run's result, or a user's own test fails.
    """
    judged = goal.verdict(run)
    if judged.good:
        return ()
    recorded = RecordedRun(run.records)
    found = [
        *_of_the_end(run, recorded),
        *(_of_finding(recorded, finding) for finding in run.unhealed),
    ]
    if not found or goal.is_own:
        found.append(_of_the_goal(run, goal, recorded, judged.why))
    return tuple(found)


def _of_the_end(run: Finished, recorded: RecordedRun) -> Iterator[Failure]:
    """Failures by how the run ended, and by its answer."""
    finish, answer = recorded.finish, recorded.answer
    how = _HOW.get(finish.outcome, NO_ANSWER) if finish else "the trace ends without an outcome"
    end = (Evidence(recorded.last.t, how),)
    if is_session(run.records):
        judged = has_answer(run)
        if not judged.good:
            yield Failure("no-answer", OUTCOME, (Evidence(recorded.last.t, judged.why),))
    elif answer is None or finish is None or finish.outcome != "submitted":
        late = answer is not None and finish is not None and finish.outcome == "timeout"
        yield Failure("timeout" if late else "no-answer", OUTCOME, end)
    score = run.score
    if answer is not None and score is not None:
        if not score.valid:
            yield _of_answer(answer, one_line(score, LONGEST))
        elif score.complete is False:
            yield _of_answer(answer, "the answer is not complete")


_HOW = {
    "timeout": "the run ended by its time limit",
    "stopped": "the run was stopped",
    "error": "the run ended with an error",
}


def _of_answer(answer: RecordedEvent, says: str) -> Failure:
    return Failure("bad-answer", answer.id, (Evidence(answer.accepted_t, says),))


def _of_finding(run: RecordedRun, finding: Finding) -> Failure:
    """The failure that an unhealed finding shows; it is about the first thing that it names."""
    subject = finding.subject
    about = subject.get("event") or run.agent_of(subject.get("activation", "")) or finding.pattern
    says = one_line(f"{finding.pattern}: {finding_text(finding)}", LONGEST)
    return Failure("finding", about, (Evidence(finding.t, says),))


def _of_the_goal(run: Finished, goal: Goal, recorded: RecordedRun, why: str) -> Failure:
    """The failure of a run that only the user's goal calls one."""
    says = one_line(why, LONGEST)
    unmet = goal.unmet(run)
    if unmet is not None and unmet.key.startswith("score.") and recorded.answer is not None:
        return _of_answer(recorded.answer, says)
    return Failure("complaint", OUTCOME, (Evidence(recorded.last.t, says),))
