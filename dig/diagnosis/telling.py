"""A diagnosis in at most 15 lines for a terminal: the answer first, then why, then what to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dig._util.text import counted, name, names, one_line
from dig.graph.codec import to_row
from dig.graph.records import Record
from dig.traces.journal.reader import read_records
from dig.traces.replay.planned import ChangeableRecord

from .case import RunSource
from .document import CandidateRow, ChangedArm, Diagnosis, EvidenceRow, HypothesisRow, UnchangedArm
from .interventions.kinds import KINDS, in_words
from .interventions.proposing import oddities
from .trials.verdict import interval

MOST_LINES = 15
MOST_IN_LINE = 200


def tell(found: Diagnosis, source: RunSource | None = None, forks: Path | None = None) -> list[str]:
    """A diagnosis in lines, 15 at most.

    Args:
        found: The diagnosis.
        source: The run that it explains; ``None``: it explains a conversation.
        forks: Where its forks lie; ``None``: beside the run.
    """
    lines = _lines(found, source, forks)
    return [one_line(line, MOST_IN_LINE) if line[:1] != " " else _indented(line) for line in lines][
        :MOST_LINES
    ]


def _indented(line: str) -> str:
    return "  " + one_line(line, MOST_IN_LINE)


def _lines(found: Diagnosis, source: RunSource | None, forks: Path | None) -> Iterator[str]:
    run = name(found.source.name)
    if found.goal.good:
        yield f"{run} is good ({one_line(found.goal.why, 80)}): nothing to explain"
        return
    yield f"{run} failed: {found.goal.why}"
    for failure in found.failures[:2]:
        shown = failure.evidence[0]
        yield f"  {shown.says} ({_place(shown)})"
    best = _best(found)
    yield from _answer(found, best)
    if source is None:
        yield from _further(found)
        yield from (f"  {note}" for note in found.notes)
        return
    forks = forks or source.forks
    if best is not None:
        yield from _experiment(found, best)
        yield from _difference(best, source, forks)
    yield from _further(found)
    if not found.hypotheses and not found.cost.replays:
        yield from _to_try(source)
    yield from _costs(found)
    if best is not None and best.arms.changed.forks:
        fork = forks / best.arms.changed.forks[0]
        yield f"Compare them: digmon diff {source.path} {fork}"


def _place(shown: EvidenceRow) -> str:
    return f"step {shown.step}" if shown.t is None else f"record {shown.t}"


def _best(found: Diagnosis) -> HypothesisRow | None:
    """The hypothesis to be told: the fix, or the one that came furthest."""
    fixed = found.hypothesis(found.fix)
    if fixed is not None:
        return fixed
    partial = [one for one in found.hypotheses if one.verdict == "partial"]
    if partial:
        return max(partial, key=lambda one: sum(p or 0 for p in one.arms.changed.progress))
    return next(iter(found.hypotheses), None) if len(found.hypotheses) == 1 else None


def _answer(found: Diagnosis, best: HypothesisRow | None) -> Iterator[str]:
    answer = found.answer
    if answer is None:
        yield "No agent can be named." if not found.hypotheses else "The change was tried:"
        return
    how = {
        "verified": "confirmed by experiment",
        "suspected": f"suspected, confidence {answer.confidence}",
    }[found.confidence]
    since = f", step {answer.step}" if found.source.kind == "conversation" else ""
    since = f", from record {answer.t} on" if answer.t is not None else since
    seat = _seat(found)
    if seat is not None:
        since = f", from record {seat.onset or answer.t} on"
    yield f"Cause: {name(answer.agent)}{since} ({how})"
    shown = [e for e in found.candidates[0].evidence if not e.says.startswith("tried: ")]
    for evidence in shown[:2]:
        yield f"  {_place(evidence)}: {evidence.says}"
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


def _experiment(found: Diagnosis, best: HypothesisRow) -> Iterator[str]:
    if best.verdict == "validated":
        heading = "Smallest change that makes the run good"
    elif best.verdict == "partial":
        heading = "Furthest change, which helps only in part"
    else:
        reason = f" ({best.reason})" if best.reason else ""
        heading = f"Verdict: {best.verdict}{reason}"
    words = " and ".join(map(in_words, best.interventions))
    yield f"{heading}: {words}"
    yield f"  {_arms(best)}"
    seat = _seat(found)
    if seat is not None and seat.id != best.id:
        yield f"  also good if {in_words(seat.interventions[0])}: {_arms(seat)}"
    if seat is not None and seat.no_return is not None:
        yield f"  After record {seat.no_return} it is too late for another agent to help."


def _arms(one: HypothesisRow) -> str:
    """Both arms in words, with a dot for each replay."""
    changed, unchanged = one.arms.changed, one.arms.unchanged
    if one.verdict == "partial":
        return (
            f"with it {_share(changed.progress)} of the way in {changed.n} replays, without it "
            f"{_share(unchanged.progress)}"
        )
    said = f"good in {changed.good} of {changed.n} replays {_dots(changed)}"
    if not unchanged.n:
        return said
    return f"{said}, without it in {unchanged.good} of {unchanged.n} {_dots(unchanged)}"


def _share(progress: Sequence[float | None]) -> str:
    known = [one for one in progress if one is not None]
    return f"{sum(known) / len(known):.0%}" if known else "an unknown part"


def _dots(arm: ChangedArm | UnchangedArm) -> str:
    low, high = interval(arm.good, arm.n)
    return f"[{'*' * arm.good}{'.' * (arm.n - arm.good)}] (95 %: {low:.0%} to {high:.0%})"


def _difference(best: HypothesisRow, source: RunSource, forks: Path) -> Iterator[str]:
    """The first record that is otherwise in the first fork with the change."""
    if not best.arms.changed.forks:
        return
    path = forks / best.arms.changed.forks[0]
    fork = [*read_records(path, payloads=source.is_plain_team)]
    if source.is_plain_team:
        new, told = _first_other_content(source.run.records, fork), _content
    else:
        new, told = first_other(source.run.records, fork), _record
    if new is not None:
        old = source.run.records[new.t] if new.t < len(source.run.records) else None
        before = told(old) if old else "nothing, the run was over"
        yield f"  First record that differs: {new.t}: {told(new)}; recorded was {before}"


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
    others = [
        f"{name(one.agent)}{_step(found, one)}{_tried(found, one.id)}"
        for one in found.candidates[1:3]
        if found.answer is not None
    ]
    if others:
        yield f"Next candidates: {', '.join(others)}"


def _step(found: Diagnosis, one: CandidateRow) -> str:
    return f" (step {one.step})" if found.source.kind == "conversation" else ""


def _tried(found: Diagnosis, candidate: str) -> str:
    verdicts = [one.verdict for one in found.hypotheses if one.candidate == candidate]
    return f" ({', '.join(dict.fromkeys(verdicts))})" if verdicts else ""


def _to_try(source: RunSource) -> Iterator[str]:
    """What `--try` could try, without trying it."""
    if source.is_plain_team:
        yield f"Try it: digmon why {source.path} --try --entry MODULE:FUNCTION"
        return
    if source.wrapped is not None:
        yield "A run of a wrapped team cannot be continued, so nothing can be tried"
        return
    changes = sorted(
        (one.change for one in oddities(source.run)), key=lambda row: KINDS.index(row["kind"])
    )
    if changes:
        words = "; ".join(in_words(row) for row in changes[:2])
        yield f"What could be tried: {words}"
    yield f"Try it: digmon why {source.path} --try"


def _costs(found: Diagnosis) -> Iterator[str]:
    if not found.hypotheses and not found.cost.replays:
        return
    usd = f", {found.cost.usd:.4f} US dollars" if found.cost.usd is not None else ""
    tried = counted(len(found.hypotheses), "change")
    replays = counted(found.cost.replays, "replay")
    yield f"{tried} tried in full, {replays}, {found.cost.seconds:.1f} s of processor time{usd}"
    for note in found.notes[:2]:
        yield f"  {note}"
