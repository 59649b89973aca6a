"""A diagnosis in 15 lines for a terminal: the answer first, then the reasons, then the fix."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from dig._util.text import counted, name, names, one_line
from dig.detectors.patterns import BY_NAME
from dig.graph.codec import to_row
from dig.graph.records import End, Record
from dig.graph.words import decision_text
from dig.show.document import (
    Candidate,
    ChangedArm,
    Diagnosis,
    Evidence,
    HypothesisRow,
    UnchangedArm,
    best_hypothesis,
    confidence_text,
    first_fork,
)
from dig.traces.journal.journal import read_side
from dig.traces.journal.reader import read_records
from dig.traces.replay.kinds import in_words
from dig.traces.replay.planned import ChangeableRecord
from dig.traces.run import RecordedRun
from dig.traces.usage import unknown_text

from .case import RunSource
from .causes import OUTCOME
from .reporting import TO_TRY
from .trials.significance import interval

MOST_LINES = 15
MOST_IN_LINE = 200


def tell(
    diagnosis: Diagnosis, source: RunSource | None = None, forks: Path | None = None
) -> list[str]:
    """Tell a diagnosis in lines, 15 at most.

    Args:
        diagnosis: The diagnosis.
        source: The run that it explains; ``None``: it explains a conversation.
        forks: The directory of its forks; ``None``: beside the run.
    """
    best = best_hypothesis(diagnosis)
    if source is not None:
        forks = forks or source.forks
    last = []
    if best is not None and best.arms.changed.forks and source is not None and forks is not None:
        last = [f"Compare them: digmon diff {source.path} {forks / best.arms.changed.forks[0]}"]
    # The call that compares stands last, however many lines there are before it.
    lines = [
        ("  " if line[:1] == " " else "") + one_line(line, MOST_IN_LINE)
        for line in _lines(diagnosis, best, source, forks)
    ]
    return [*lines[: MOST_LINES - len(last)], *last]


def _lines(
    diagnosis: Diagnosis, best: HypothesisRow | None, source: RunSource | None, forks: Path | None
) -> Iterator[str]:
    run = name(diagnosis.source.name)
    if diagnosis.goal.good and diagnosis.answer is not None:
        yield f"{run} is good, but {diagnosis.goal.why}"
        yield from _answer(diagnosis, best)
        return
    if diagnosis.goal.good:
        yield f"{run} is good ({one_line(diagnosis.goal.why, 80)}): nothing to explain"
        return
    yield f"{run} failed: {diagnosis.goal.why}"
    failures = sorted(diagnosis.failures, key=lambda failure: failure.about == OUTCOME)
    remaining = [each for each in failures if not each.evidence[0].says.startswith("FAIL: ")]
    if len(remaining) < len(
        failures
    ):  # the first line tells the failed request, and the end with it
        failures = [each for each in remaining if each.about != OUTCOME]
    for failure in failures[: 1 if failures and failures[0].about != OUTCOME else 2]:
        yield f"  {_evidence_text(failure.evidence[0])}"
    yield from _answer(diagnosis, best)
    if source is None:
        yield from _further(diagnosis)
        yield from _model_cost(diagnosis)
        return
    if best is not None and forks is not None:
        yield from _experiment(diagnosis, best, source, forks)
    yield from _further(diagnosis)
    if any(stage.name == "try" for stage in diagnosis.stages):
        yield from _costs(diagnosis, best)
    else:
        yield from _to_try(diagnosis, source)
        yield from _model_cost(diagnosis) if diagnosis.model else ()


def _evidence_text(evidence: Evidence) -> str:
    """A sentence with the number of the record; the pattern of a finding comes last."""
    pattern, colon, sentence = evidence.says.partition(": ")
    says = f"{sentence} ({pattern})" if colon and pattern in BY_NAME else evidence.says
    place = f"step {evidence.step}" if evidence.t is None else f"record {evidence.t}"
    return f"{place}: {says}"


def _answer(diagnosis: Diagnosis, best: HypothesisRow | None) -> Iterator[str]:
    answer = diagnosis.answer
    if answer is None:
        yield "No agent can be named." if not diagnosis.hypotheses else "The change was tried:"
        return
    remaining = [each.agent for each in diagnosis.candidates[1:] if each.status == "origin"]
    beside = f", together with {names(remaining)}" if remaining and diagnosis.fix else ""
    since = f", step {answer.step}" if diagnosis.source.kind == "conversation" else ""
    since = f", from record {answer.t} on" if answer.t is not None else since
    seat = _seat(diagnosis)
    if seat is not None:
        since = f", from record {seat.onset or answer.t} on"
    yield f"Cause: {name(answer.agent)}{since}{beside} ({confidence_text(diagnosis, best)})"
    evidence = [e for e in diagnosis.candidates[0].evidence if not e.says.startswith("tried: ")]
    # A mere act counts against an agent only where nothing else does.
    for row in [e for e in evidence if " acted " not in e.says or e == evidence[0]][:2]:
        yield f"  {_evidence_text(row)}"
    if best is None and diagnosis.hypotheses:
        yield "  None of the changes that were tried makes the run good."


def _seat(diagnosis: Diagnosis) -> HypothesisRow | None:
    """The validated seat, if there is one."""
    for hypothesis in diagnosis.hypotheses:
        if hypothesis.verdict == "validated" and hypothesis.interventions[0]["kind"] == "seat":
            return hypothesis
    return None


def _experiment(
    diagnosis: Diagnosis, best: HypothesisRow, source: RunSource, forks: Path
) -> Iterator[str]:
    several = len(best.interventions) > 1
    stages = _stages(best, source, forks)
    if best.verdict == "validated":
        heading = "These changes make the run good" if several else "This change makes the run good"
    elif best.verdict == "partial":
        heading = "What helps most, but only in part"
    else:
        reason = f" ({best.reason})" if best.reason else ""
        heading = f"Verdict: {best.verdict}{reason}"
    changes = [
        f"{'after that, ' if number else ''}{_change(row, run)}"
        for number, (run, _, rows) in enumerate(stages)
        for row in rows
    ]
    if several:
        yield f"{heading}:"
        yield from (f"  {number}. {words}" for number, words in enumerate(changes, 1))
    else:
        yield f"{heading}: {changes[0]}"
    if best.arms.changed.n:
        yield f"  {_arms(best, len(stages) > 1)}{_dots(diagnosis, best)}"
        yield from _difference(stages[-1], source.is_plain_team)
    seat = _seat(diagnosis)
    if seat is not None and seat.id != best.id:
        yield f"  also good if {in_words(seat.interventions[0])}: {_arms(seat)}"
    if seat is not None and seat.no_return is not None:
        yield f"  After record {seat.no_return} it is too late for another agent to help."


def _dots(diagnosis: Diagnosis, best: HypothesisRow) -> str:
    """Both arms as dots, filled for good replays, if a person asked."""
    if diagnosis.candidates[0].by != ("person",):
        return ""
    arms = (best.arms.changed, best.arms.unchanged)
    dots = ["\N{BLACK CIRCLE}" * arm.good + "\N{WHITE CIRCLE}" * (arm.n - arm.good) for arm in arms]
    return "  " + " | ".join(filter(None, dots))


class _Stage(NamedTuple):
    """The changes of a run or of a fork with earlier changes."""

    run: RecordedRun
    fork: Path | None
    rows: list[dict[str, Any]]


def _stages(best: HypothesisRow, source: RunSource, forks: Path) -> list[_Stage]:
    """The changes of a hypothesis, by the run before the change."""
    # The side file of a fork names its parent and how many of the changes were made there, so the
    # stages are found from the last fork back to the run.
    stages: list[_Stage] = []
    rows, fork = [*best.interventions], first_fork(best, forks)
    while rows:
        origin = read_side(fork).get("forked_from", {}) if fork else {}
        number = len(origin.get("changes", ())) or len(rows)
        above = forks / Path(str(origin.get("run", ""))).parent.name
        is_first = number >= len(rows)
        run = source.run if is_first else RecordedRun.read(above)
        stages.append(_Stage(run, fork, rows[-number:]))
        rows, fork = rows[:-number], None if is_first else above
    return stages[::-1]


def _change(row: Mapping[str, Any], run: RecordedRun) -> str:
    """A change in words, beside the recorded decision.

    Args:
        row: The change, as plain JSON.
        run: The run that is changed.
    """
    record = run.records[row["at"]] if row["at"] < len(run.records) else None
    if not isinstance(record, End) or not _is_decision(row):
        return in_words(row)
    activation = run.activations[record.activation]
    instead = decision_text(
        row["edit"].get("fates", ()), row["edit"].get("outputs", ()), past=False
    )
    recorded = decision_text(
        [asdict(fate) for fate in record.fates], run.outputs(activation), past=True
    )
    agent = name(activation.agent)
    return f"{agent} {instead} at record {record.t}; without the change it {recorded}"


def _is_decision(row: Mapping[str, Any]) -> bool:
    return row["kind"] == "edit" and {*row["edit"]} <= {"fates", "outputs"}


def _difference(stage: _Stage, is_plain: bool) -> Iterator[str]:
    """The first different record of the fork, unless the change says it.

    Args:
        stage: The last changes.
        is_plain: Whether a team of plain callables ran again, in real time.
    """
    is_clear = all(row["kind"] in ("tell", "resend") or _is_decision(row) for row in stage.rows)
    if stage.fork is None or (is_clear and not is_plain):
        return
    fork = [*read_records(stage.fork, payloads=is_plain)]
    old = stage.run.records
    new = (_first_other_content if is_plain else first_other)(old, fork)
    describe = _content_text if is_plain else _record_text
    if new is not None:
        before = describe(old[new.t]) if new.t < len(old) else "nothing, the run was over"
        yield f"  First record that differs: {new.t}: {describe(new)}; recorded was {before}"


def _arms(hypothesis: HypothesisRow, in_stages: bool = False) -> str:
    """Both arms in words.

    Args:
        hypothesis: The hypothesis.
        in_stages: Whether the last changes were made in a fork, which is then their control.
    """
    changed, unchanged = hypothesis.arms.changed, hypothesis.arms.unchanged
    with_it = "with them" if len(hypothesis.interventions) > 1 else "with it"
    without = "without the last" if in_stages else with_it.replace("with", "without")
    if hypothesis.verdict == "partial":
        return (
            f"{with_it} {_share(changed.progress)} of the way in {changed.n} replays, {without} "
            f"{_share(unchanged.progress)}"
        )
    result = f"{with_it} {changed.good} of {changed.n} replays are good ({_interval(changed)})"
    if not unchanged.n:
        return result
    return f"{result}, {without} {unchanged.good} of {unchanged.n} ({_interval(unchanged)})"


def _interval(arm: ChangedArm | UnchangedArm) -> str:
    low, high = interval(arm.good, arm.n)
    return f"95 %: {100 * low:.0f} to {100 * high:.0f} %"


def _share(progress: Sequence[float | None]) -> str:
    shares = [share for share in progress if share is not None]
    return f"{sum(shares) / len(shares):.0%}" if shares else "an unknown part"


def _first_other_content(parent: Sequence[Record], fork: Sequence[Record]) -> Record | None:
    """The first different record of a run in real time, times aside."""
    rows = [{**to_row(record), "ts": 0} for record in parent[: len(fork)]]
    same = (old == {**to_row(new), "ts": 0} for old, new in zip(rows, fork, strict=False))
    return next((new for new, is_same in zip(fork, same, strict=False) if not is_same), None)


def _content_text(record: Record) -> str:
    """A record in a few words, with the error or the payload."""
    content = getattr(record, "error", None) or getattr(record, "payload", None)
    return _record_text(record) + (f": {one_line(content, 60)}" if content is not None else "")


def first_other(parent: Sequence[Record], fork: Sequence[Record]) -> Record | None:
    """Return the first record of a fork unlike the parent's at the same place."""
    for place, record in enumerate(fork):
        if place >= len(parent):
            return record
        old = parent[place]
        if (old.kind, old.us, _about(old)) != (record.kind, record.us, _about(record)):
            return record
        if getattr(old, "fates", None) != getattr(record, "fates", None):
            return record
    return None


def _about(record: Record) -> str:
    return ChangeableRecord(record, (), ()).about


def _record_text(record: Record) -> str:
    fates = getattr(record, "fates", ())
    did = f" ({names([f'{fate.fate} {fate.event}' for fate in fates], 3)})" if fates else ""
    if record.kind == "end" and not fates:
        did = " (nothing done)"
    return f"{record.kind} {_about(record)}{did}".strip()


def _further(diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.answer is None:
        return
    remaining = [
        f"{name(each.agent)}{_step(diagnosis, each)}{_verdicts(diagnosis, each.id)}"
        for each in diagnosis.candidates[1:]
        if each.status != "origin" or not diagnosis.fix
    ]
    if remaining:
        yield f"Less likely: {', '.join(remaining[:2])}"


_VERDICTS = {
    "validated": "confirmed", "partial": "a change there helps in part",
    "refuted": "a change there is of no use", "inconclusive": "not decided",
}  # fmt: skip


def _step(diagnosis: Diagnosis, candidate: Candidate) -> str:
    return f" (step {candidate.step})" if diagnosis.source.kind == "conversation" else ""


def _verdicts(diagnosis: Diagnosis, candidate: str) -> str:
    verdicts = [_VERDICTS[h.verdict] for h in diagnosis.hypotheses if h.candidate == candidate]
    return f" ({', '.join(dict.fromkeys(verdicts))})" if verdicts else ""


def _to_try(diagnosis: Diagnosis, source: RunSource) -> Iterator[str]:
    """The call that would try changes, and the first of them."""
    goal = diagnosis.goal.test
    call = f"Try it: digmon why {source.path} --try"
    call += "" if goal == "default" else f" --good {shlex.quote(goal)}"
    if source.is_plain_team:
        yield f"{call} --entry MODULE:FUNCTION"
        return
    if source.wrapped is not None:
        yield "A run of a wrapped team cannot be continued, so nothing can be tried"
        return
    yield from (note[:1].upper() + note[1:] for note in diagnosis.notes if note.startswith(TO_TRY))
    team = "" if source.side else " --team MODULE:TEAM"
    yield f"{call}{team}"


def _model_cost(diagnosis: Diagnosis) -> Iterator[str]:
    """The model and its cost, if a model was asked; then all notes."""
    cost = diagnosis.cost
    if diagnosis.model is not None:
        count = cost.input_tokens + cost.output_tokens
        unknown = unknown_text(count, {"uncounted_calls": cost.uncounted_calls})
        tokens = ", ".join([counted(count, "token")] * bool(count or not unknown) + [unknown])
        usd = f", {cost.usd:.4f} US dollars" if cost.usd is not None else ""
        yield (
            f"{name(diagnosis.model)} was asked ({diagnosis.method}): "
            f"{counted(cost.model_calls, 'request')}, {tokens}{usd}"
        )
    yield from (f"  {note}" for note in diagnosis.notes)


def _costs(diagnosis: Diagnosis, best: HypothesisRow | None) -> Iterator[str]:
    usd = f", {diagnosis.cost.usd:.4f} US dollars" if diagnosis.cost.usd is not None else ""
    replays = counted(diagnosis.cost.replays, "replay")
    seconds = f"{diagnosis.cost.seconds:.1f} s of processor time"
    costs = f"{replays} made (the run goes on from one of its records), {seconds}{usd}"
    if not diagnosis.cost.replays:
        costs = "No replay was made"
    yield f"{costs}; {diagnosis.cost.found} found, not made" if diagnosis.cost.found else costs
    remaining = {each.id for each in diagnosis.hypotheses} - {best.id if best else None}
    yield from (f"  {note}" for note in diagnosis.notes if note.partition(":")[0] not in remaining)
