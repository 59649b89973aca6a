"""A diagnosis in at most 15 lines for a terminal: the answer first, then why, then what to do."""

from __future__ import annotations

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
    _best,
    _fork,
    _how,
)
from dig.traces.journal.journal import read_side
from dig.traces.journal.reader import read_records
from dig.traces.replay.kinds import in_words
from dig.traces.replay.planned import ChangeableRecord
from dig.traces.run import RecordedRun

from .case import RunSource
from .causes import OUTCOME
from .reporting import TO_TRY
from .trials.significance import interval

MOST_LINES = 15
MOST_IN_LINE = 200


def tell(found: Diagnosis, source: RunSource | None = None, forks: Path | None = None) -> list[str]:
    """A diagnosis in lines, 15 at most.

    Args:
        found: The diagnosis.
        source: The run that it explains; ``None``: it explains a conversation.
        forks: The directory of its forks; ``None``: beside the run.
    """
    best = _best(found)
    if source is not None:
        forks = forks or source.forks
    last = []
    if best is not None and best.arms.changed.forks and source is not None and forks is not None:
        last = [f"Compare them: digmon diff {source.path} {forks / best.arms.changed.forks[0]}"]
    lines = [
        one_line(line, MOST_IN_LINE) if line[:1] != " " else _indented(line)
        for line in _lines(found, best, source, forks)
    ]
    return [*lines[: MOST_LINES - len(last)], *last]


def _indented(line: str) -> str:
    return "  " + one_line(line, MOST_IN_LINE)


def _lines(
    found: Diagnosis, best: HypothesisRow | None, source: RunSource | None, forks: Path | None
) -> Iterator[str]:
    run = name(found.source.name)
    if found.goal.good and found.answer is not None:
        yield f"{run} is good, but {found.goal.why}"
        yield from _answer(found, best)
        return
    if found.goal.good:
        yield f"{run} is good ({one_line(found.goal.why, 80)}): nothing to explain"
        return
    yield f"{run} failed: {found.goal.why}"
    said = sorted(found.failures, key=lambda one: one.about == OUTCOME)
    others = [one for one in said if not one.evidence[0].says.startswith("FAIL: ")]
    if len(others) < len(said):  # the first line says it, and how the run ended
        said = [one for one in others if one.about != OUTCOME]
    for failure in said[: 1 if said and said[0].about != OUTCOME else 2]:
        yield f"  {_shown(failure.evidence[0])}"
    yield from _answer(found, best)
    if source is None:
        yield from _further(found)
        yield from _asked(found)
        return
    if best is not None and forks is not None:
        yield from _experiment(found, best, source, forks)
    yield from _further(found)
    if not found.hypotheses and not found.cost.replays:
        yield from _to_try(found, source)
    yield from _costs(found, best)


def _shown(evidence: Evidence) -> str:
    """A sentence with its record; the pattern that a finding's sentence begins with comes last."""
    pattern, colon, said = evidence.says.partition(": ")
    says = f"{said} ({pattern})" if colon and pattern in BY_NAME else evidence.says
    return f"{_place(evidence)}: {says}"


def _place(shown: Evidence) -> str:
    return f"step {shown.step}" if shown.t is None else f"record {shown.t}"


def _answer(found: Diagnosis, best: HypothesisRow | None) -> Iterator[str]:
    answer = found.answer
    if answer is None:
        yield "No agent can be named." if not found.hypotheses else "The change was tried:"
        return
    others = [one.agent for one in found.candidates[1:] if one.status == "origin"]
    beside = f", together with {names(others)}" if others and found.fix else ""
    since = f", step {answer.step}" if found.source.kind == "conversation" else ""
    since = f", from record {answer.t} on" if answer.t is not None else since
    seat = _seat(found)
    if seat is not None:
        since = f", from record {seat.onset or answer.t} on"
    yield f"Cause: {name(answer.agent)}{since}{beside} ({_how(found, best)})"
    told = [one for one in found.candidates[0].evidence if not one.says.startswith("tried: ")]
    for evidence in [one for one in told if " acted " not in one.says or one == told[0]][:2]:
        yield f"  {_shown(evidence)}"
    if best is None and found.hypotheses:
        yield "  None of the changes that were tried makes the run good."


def _seat(found: Diagnosis) -> HypothesisRow | None:
    """The seat that helps, if one does."""
    return next(
        (
            one
            for one in found.hypotheses
            if one.verdict == "validated" and one.interventions[0]["kind"] == "seat"
        ),
        None,
    )


def _experiment(
    found: Diagnosis, best: HypothesisRow, source: RunSource, forks: Path
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
        yield f"  {_arms(best, len(stages) > 1)}{_dots(found, best)}"
        yield from _difference(stages[-1], source.is_plain_team)
    seat = _seat(found)
    if seat is not None and seat.id != best.id:
        yield f"  also good if {in_words(seat.interventions[0])}: {_arms(seat)}"
    if seat is not None and seat.no_return is not None:
        yield f"  After record {seat.no_return} it is too late for another agent to help."


def _dots(found: Diagnosis, best: HypothesisRow) -> str:
    """Both arms as dots, filled for a good replay, for the person that asked."""
    if found.candidates[0].by != ("person",):
        return ""
    arms = (best.arms.changed, best.arms.unchanged)
    shown = [
        "\N{BLACK CIRCLE}" * arm.good + "\N{WHITE CIRCLE}" * (arm.n - arm.good) for arm in arms
    ]
    return "  " + " | ".join(filter(None, shown))


class _Stage(NamedTuple):
    """The changes that were made in one run; that may be the fork with the changes before them."""

    run: RecordedRun
    fork: Path | None
    rows: list[dict[str, Any]]


def _stages(best: HypothesisRow, source: RunSource, forks: Path) -> list[_Stage]:
    """The changes of a hypothesis, by the run in which they were made."""
    stages: list[_Stage] = []
    rows, fork = [*best.interventions], _fork(best, forks)
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
    """A change in words, with what was recorded in its place.

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
    """The first record that is otherwise in the fork with the change, unless the change says it.

    Args:
        stage: The last changes.
        is_plain: Whether a team of plain callables ran again, in real time.
    """
    is_said = all(row["kind"] in ("tell", "resend") or _is_decision(row) for row in stage.rows)
    if stage.fork is None or (is_said and not is_plain):
        return
    fork = [*read_records(stage.fork, payloads=is_plain)]
    old = stage.run.records
    new = (_first_other_content if is_plain else first_other)(old, fork)
    told = _content if is_plain else _record
    if new is not None:
        before = told(old[new.t]) if new.t < len(old) else "nothing, the run was over"
        yield f"  First record that differs: {new.t}: {told(new)}; recorded was {before}"


def _arms(one: HypothesisRow, in_stages: bool = False) -> str:
    """Both arms in words.

    Args:
        one: The hypothesis.
        in_stages: Whether the last changes were made in a fork, which is then their control.
    """
    changed, unchanged = one.arms.changed, one.arms.unchanged
    with_it = "with them" if len(one.interventions) > 1 else "with it"
    without = "without the last" if in_stages else with_it.replace("with", "without")
    if one.verdict == "partial":
        return (
            f"{with_it} {_share(changed.progress)} of the way in {changed.n} replays, {without} "
            f"{_share(unchanged.progress)}"
        )
    said = f"{with_it} {changed.good} of {changed.n} replays are good ({_interval(changed)})"
    if not unchanged.n:
        return said
    return f"{said}, {without} {unchanged.good} of {unchanged.n} ({_interval(unchanged)})"


def _interval(arm: ChangedArm | UnchangedArm) -> str:
    low, high = interval(arm.good, arm.n)
    return f"95 %: {100 * low:.0f} to {100 * high:.0f} %"


def _share(progress: Sequence[float | None]) -> str:
    known = [one for one in progress if one is not None]
    return f"{sum(known) / len(known):.0%}" if known else "an unknown part"


def _first_other_content(parent: Sequence[Record], fork: Sequence[Record]) -> Record | None:
    """The first record of a run in real time that differs from its parent's in more than time."""
    rows = [{**to_row(record), "ts": 0} for record in parent[: len(fork)]]
    same = (old == {**to_row(new), "ts": 0} for old, new in zip(rows, fork, strict=False))
    return next((new for new, is_same in zip(fork, same, strict=False) if not is_same), None)


def _content(record: Record) -> str:
    """A record in a few words, with its error or payload."""
    said = getattr(record, "error", None) or getattr(record, "payload", None)
    return _record(record) + (f": {one_line(said, 60)}" if said is not None else "")


def first_other(parent: Sequence[Record], fork: Sequence[Record]) -> Record | None:
    """The first record of a fork that its parent does not have at this place."""
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


def _record(record: Record) -> str:
    fates = getattr(record, "fates", ())
    did = f" ({names([f'{one.fate} {one.event}' for one in fates], 3)})" if fates else ""
    if record.kind == "end" and not fates:
        did = " (nothing done)"
    return f"{record.kind} {_about(record)}{did}".strip()


def _further(found: Diagnosis) -> Iterator[str]:
    if found.answer is None:
        return
    others = [
        f"{name(one.agent)}{_step(found, one)}{_tried(found, one.id)}"
        for one in found.candidates[1:]
        if one.status != "origin" or not found.fix
    ]
    if others:
        yield f"Less likely: {', '.join(others[:2])}"


_VERDICTS = {
    "validated": "confirmed", "partial": "a change there helps in part",
    "refuted": "a change there is of no use", "inconclusive": "not decided",
}  # fmt: skip


def _step(found: Diagnosis, one: Candidate) -> str:
    return f" (step {one.step})" if found.source.kind == "conversation" else ""


def _tried(found: Diagnosis, candidate: str) -> str:
    verdicts = [_VERDICTS[one.verdict] for one in found.hypotheses if one.candidate == candidate]
    return f" ({', '.join(dict.fromkeys(verdicts))})" if verdicts else ""


def _to_try(found: Diagnosis, source: RunSource) -> Iterator[str]:
    """The changes that `--try` could try, without trying them."""
    if source.is_plain_team:
        yield f"Try it: digmon why {source.path} --try --entry MODULE:FUNCTION"
        return
    if source.wrapped is not None:
        yield "A run of a wrapped team cannot be continued, so nothing can be tried"
        return
    yield from (note[:1].upper() + note[1:] for note in found.notes if note.startswith(TO_TRY))
    team = "" if source.side else " --team MODULE:TEAM"
    yield f"Try it: digmon why {source.path} --try{team}"


def _asked(found: Diagnosis) -> Iterator[str]:
    """The model that was asked, if one was, and what it cost; then what is left to say."""
    cost = found.cost
    if found.model is not None:
        tokens = counted(cost.input_tokens + cost.output_tokens, "token")
        usd = f", {cost.usd:.4f} US dollars" if cost.usd is not None else ""
        yield (
            f"{name(found.model)} was asked ({found.method}): "
            f"{counted(cost.model_calls, 'request')}, {tokens}{usd}"
        )
    yield from (f"  {note}" for note in found.notes)


def _costs(found: Diagnosis, best: HypothesisRow | None) -> Iterator[str]:
    if not found.hypotheses and not found.cost.replays:
        yield from _asked(found) if found.model else ()
        return
    usd = f", {found.cost.usd:.4f} US dollars" if found.cost.usd is not None else ""
    replays = counted(found.cost.replays, "replay")
    made = (
        f"{replays} made (the run goes on from one of its records), {found.cost.seconds:.1f} s of "
        f"processor time{usd}"
    )
    if not found.cost.replays:
        made = "No replay was made"
    yield f"{made}; {found.cost.found} found, not made" if found.cost.found else made
    told = {one.id for one in found.hypotheses} - {best.id if best else None}
    yield from (f"  {note}" for note in found.notes if note.partition(":")[0] not in told)
