"""A diagnosis in at most 15 lines for a terminal: the answer first, then why, then what to do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

from dig._util.text import counted, name, names, one_line
from dig.detectors.patterns import BY_NAME
from dig.graph.records import End, Record
from dig.traces.journal.journal import SIDE, read_side
from dig.traces.journal.reader import read_records
from dig.traces.replay.planned import ChangeableRecord
from dig.traces.run import RecordedRun

from .case import RunSource
from .causes import OUTCOME
from .document import ChangedArm, Diagnosis, EvidenceRow, HypothesisRow, UnchangedArm
from .interventions.kinds import KINDS, in_words
from .interventions.proposing import oddities
from .trials.verdict import interval

MOST_LINES = 15
MOST_IN_LINE = 200


def tell(found: Diagnosis, source: RunSource, forks: Path | None = None) -> list[str]:
    """A diagnosis in lines, 15 at most.

    Args:
        found: The diagnosis.
        source: The run that it explains.
        forks: Where its forks lie; ``None``: beside the run.
    """
    forks = forks or source.forks
    best = _best(found)
    last = []
    if best is not None and best.arms.changed.forks:
        last = [f"Compare them: digmon diff {source.path} {forks / best.arms.changed.forks[0]}"]
    lines = [
        one_line(line, MOST_IN_LINE) if line[:1] != " " else _indented(line)
        for line in _lines(found, best, source, forks)
    ]
    return [*lines[: MOST_LINES - len(last)], *last]


def _indented(line: str) -> str:
    return "  " + one_line(line, MOST_IN_LINE)


def _lines(
    found: Diagnosis, best: HypothesisRow | None, source: RunSource, forks: Path
) -> Iterator[str]:
    run = name(found.source.name)
    if found.goal.good:
        yield f"{run} is good ({one_line(found.goal.why, 80)}): nothing to explain"
        return
    yield f"{run} failed: {found.goal.why}"
    said = sorted(found.failures, key=lambda one: one.about == OUTCOME)
    for failure in said[: 1 if said and said[0].about != OUTCOME else 2]:
        yield f"  {_shown(failure.evidence[0])}"
    yield from _answer(found, best)
    if best is not None:
        yield from _experiment(found, best, source, forks)
    yield from _further(found)
    if not found.hypotheses and not found.cost.replays:
        yield from _to_try(source)
    yield from _costs(found, best)


def _shown(evidence: EvidenceRow) -> str:
    """A sentence with its record; the pattern that a finding's sentence begins with comes last."""
    pattern, colon, said = evidence.says.partition(": ")
    says = f"{said} ({pattern})" if colon and pattern in BY_NAME else evidence.says
    return f"record {evidence.t}: {says}"


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
    if found.confidence != "verified" and best is not None and best.verdict == "partial":
        how = "confirmed in part by experiment"
    others = [one.agent for one in found.candidates[1:] if one.status == "origin"]
    beside = f", together with {names(others)}" if others and found.fix else ""
    since = f", from record {answer.t} on" if answer.t is not None else ""
    seat = _seat(found)
    if seat is not None:
        since = f", from record {seat.onset or answer.t} on"
    yield f"Cause: {name(answer.agent)}{since}{beside} ({how})"
    told = [one for one in found.candidates[0].evidence if not one.says.startswith("tried: ")]
    for evidence in told[: max(1, len(told) - 1)][:2]:  # the last one says how often it acted
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
        f"{'after that, ' if number else ''}{_change(row, run, fork)}"
        for number, (run, fork, rows) in enumerate(stages)
        for row in rows
    ]
    if several:
        yield f"{heading}:"
        yield from (f"  {number}. {words}" for number, words in enumerate(changes, 1))
    else:
        yield f"{heading}: {changes[0]}"
    yield f"  {_arms(best, len(stages) > 1)}{_dots(found, best)}"
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
        origin = read_side(fork)["forked_from"] if fork else {}
        number = len(origin.get("changes", ())) or len(rows)
        above = forks / Path(str(origin.get("run", ""))).parent.name
        is_first = number >= len(rows)
        run = source.run if is_first else RecordedRun.read(above)
        stages.append(_Stage(run, fork, rows[-number:]))
        rows, fork = rows[:-number], None if is_first else above
    return stages[::-1]


def _fork(best: HypothesisRow, forks: Path) -> Path | None:
    """The first fork with the changes, if it is there."""
    made = best.arms.changed.forks
    return forks / made[0] if made and (forks / made[0] / SIDE).exists() else None


def _change(row: Mapping[str, Any], run: RecordedRun, fork: Path | None) -> str:
    """A change in words, with what was recorded in its place.

    Args:
        row: The change, as plain JSON.
        run: The run that is changed.
        fork: A fork with the change; it tells what came instead.
    """
    record = run.records[row["at"]] if row["at"] < len(run.records) else None
    if isinstance(record, End) and row["kind"] == "edit":
        activation = run.activations[record.activation]
        agent = name(activation.agent)
        instead = _did(row["edit"].get("fates", ()), row["edit"].get("outputs", ()), 0)
        recorded = _did([asdict(fate) for fate in record.fates], run.outputs(activation), 1)
        return f"{agent} {instead} at record {record.t}; without the change it {recorded}"
    words = in_words(row)
    new = first_other(run.records, [*read_records(fork, payloads=False)]) if fork else None
    if new is None or row["kind"] in ("tell", "resend"):
        return words
    old = run.records[new.t] if new.t < len(run.records) else None
    before = _record(old) if old else "nothing, the run was over"
    return f"{words}; then record {new.t} is {_record(new)}, not {before}"


def _did(fates: Iterable[Mapping[str, Any]], outputs: Iterable[Any], past: int) -> str:
    """A decision in words, such as `uses e4, e5 and sends 2 events`.

    Args:
        fates: What became of the inputs.
        outputs: The events that were generated.
        past: 1 for the past tense, 0 for the present.
    """
    made = [one if isinstance(one, Mapping) else asdict(one) for one in outputs]
    parts: list[str] = []
    for fate, words in _DOES.items():
        events = [one["event"] for one in fates if one["fate"] == fate]
        if events:
            parts.append(f"{words[past]} {names(events, 3)}")
    if any(one.get("final") for one in made):
        parts.append(("submits an answer", "submitted an answer")[past])
    elif made:
        parts.append(f"{('sends', 'sent')[past]} {counted(len(made), 'event')}")
    return " and ".join(parts) or ("only waits", "only waited")[past]


_DOES = {
    "consume": ("uses", "used"), "reroute": ("passes on", "passed on"),
    "discard": ("throws away", "threw away"),
}  # fmt: skip


def _arms(one: HypothesisRow, in_stages: bool = False) -> str:
    """Both arms in words.

    Args:
        one: The hypothesis.
        in_stages: Whether its last changes were made in a fork, which is then their control.
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
        f"{name(one.agent)}{_tried(found, one.id)}"
        for one in found.candidates[1:]
        if one.status != "origin"
    ]
    if others:
        yield f"Less likely: {', '.join(others[:2])}"


_VERDICTS = {
    "validated": "confirmed", "partial": "a change there helps in part",
    "refuted": "a change there is of no use", "inconclusive": "not decided",
}  # fmt: skip


def _tried(found: Diagnosis, candidate: str) -> str:
    verdicts = [_VERDICTS[one.verdict] for one in found.hypotheses if one.candidate == candidate]
    return f" ({', '.join(dict.fromkeys(verdicts))})" if verdicts else ""


def _to_try(source: RunSource) -> Iterator[str]:
    """What `--try` could try, without trying it."""
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


def _costs(found: Diagnosis, best: HypothesisRow | None) -> Iterator[str]:
    if not found.hypotheses and not found.cost.replays:
        return
    usd = f", {found.cost.usd:.4f} US dollars" if found.cost.usd is not None else ""
    replays = counted(found.cost.replays, "replay")
    made = (
        f"{replays} made (the run goes on from one of its records), {found.cost.seconds:.1f} s of "
        f"processor time{usd}"
    )
    yield made if found.cost.replays else "No replay was made: all of them were there already"
    told = {one.id for one in found.hypotheses} - {best.id if best else None}
    yield from (f"  {note}" for note in found.notes if note.partition(":")[0] not in told)
