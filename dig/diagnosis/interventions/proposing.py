"""Rules that propose interventions: by what the records show about an agent.

Each rule names a *trace* of a mechanism in the records (an event that got lost, an activation that
failed, work that is left) with the smallest change that would undo it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Protocol

from dig._util.text import counted, name, names
from dig.diagnosis.case import Case
from dig.diagnosis.concepts import MOST_INTERVENTIONS, Candidate
from dig.graph.records import Emit, Leave, Record
from dig.tasks.milestones import Evidence
from dig.traces.run import RecordedActivation, RecordedEvent, RecordedRun

NOTE = "You still hold work that is not finished. Look at it again, and go on."
"""What an agent is told that holds work at the end of a run."""


@dataclass(frozen=True)
class Oddity:
    """Something in the records about an agent that may be why the run failed.

    Attributes:
        agent: The agent.
        mechanism: How it went wrong, in a word.
        weight: How much it says, from 0 to 1.
        evidence: The record that shows it.
        change: The smallest change that would undo it.
        beside: Further changes that are made with it.
        activation: The activation that it lies in, if it lies in one.
        event: The event that it is about, if it is about one.
    """

    agent: str
    mechanism: str
    weight: float
    evidence: Evidence
    change: dict[str, Any]
    activation: str | None = None
    event: str | None = None
    beside: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Proposal:
    """A change that may have made a run good.

    Attributes:
        change: The change, as plain JSON.
        expects: What must happen in the fork for it to count as carried out; ``None``: nothing
            more than its kind asks for.
    """

    change: dict[str, Any]
    expects: dict[str, Any] | None = None


class Proposes(Protocol):
    """Proposes changes beside those of the rules, such as a language model."""

    def interventions(self, case: Case, candidate: Candidate) -> Sequence[Proposal]:
        """What may be changed at the place of a candidate, the most promising first."""
        ...


def oddities(run: RecordedRun) -> list[Oddity]:
    """What is odd in a run, the weightiest first."""
    found = [one for rule in RULES for one in rule(run)]
    return sorted(found, key=lambda one: (-one.weight, one.evidence.t or 0))


# --- rules ---


def _misaddressed(run: RecordedRun) -> Iterator[Oddity]:
    """Events to a name that no agent has; one letter off, the right one is known."""
    for event in run.events.values():
        if event.agent is None or event.final or not event.to:
            continue
        strange = [to for to in event.to if to not in run.agents]
        right = [_nearest(to, run) if to in strange else to for to in event.to]
        if strange and all(right):
            says = f"{name(event.id)} was sent to {names(strange)}, a name that no agent has"
            change = {"kind": "edit", "at": event.t, "edit": {"to": right}}
            yield _of_event(event, "misaddressed", 0.9, event.t, says, change)


def _lost(run: RecordedRun) -> Iterator[Oddity]:
    """Work that no agent can reach, or that never arrived: all of it is sent once more."""
    thrown = {e for one in run.activations.values() for e in one.with_fate("discard")}
    lost: dict[str, list[RecordedEvent]] = {}
    for event in run.events.values():
        gone = run.orphaned_t(event.id)
        is_lost = not event.consumed_by and (gone is not None or not event.arrivals)
        is_lost = is_lost and event.id not in thrown
        if is_lost and not event.final and event.agent is not None and event.t < _quiet(run):
            lost.setdefault(_loser(run, event), []).append(event)
    found = list[Oddity]()
    for agent, events in lost.items():
        ids = [event.id for event in events]
        says = f"{names(ids)} reached no agent that could use it"
        first, t = events[0], max(run.orphaned_t(event.id) or event.t for event in events)
        shown = Evidence(run.orphaned_t(first.id) or first.t, says)
        change = _resent(run, events, agent)
        if run.answer is not None:  # it must come before that
            change["at"] = min(change["at"], _after(run, t))
        found.append(Oddity(agent, "lost", 0.8, shown, change, first.by, first.id))
    yield from (*found, *_together(found[:MOST_INTERVENTIONS]))


def _together(some: Sequence[Oddity]) -> Iterator[Oddity]:
    """What is odd about several agents, undone at once: one alone may be of no use."""
    if len(some) > 1:
        first, *others = sorted(some, key=lambda one: int(one.change["at"]))
        yield replace(first, activation=None, beside=tuple(one.change for one in others))


def _loser(run: RecordedRun, event: RecordedEvent) -> str:
    """The agent that lost an event: the recipient that left, else the one that sent it."""
    assert event.agent is not None
    return next((to for to in event.to if to in run.leaves), event.agent)


def _discarded(run: RecordedRun) -> Iterator[Oddity]:
    """Work that an agent threw away: another one gets it."""
    for activation in run.activations.values():
        work = [run.events[one] for one in activation.with_fate("discard")]
        events = [one for one in work if one.is_work and not one.consumed_by]
        if events:
            ids = names([one.id for one in events])
            says = f"{name(activation.agent)} discarded {ids}"
            change = _resent(run, events, activation.agent)
            yield _of_activation(activation, "discarded", 0.7, says, change, events[0].id)


def _resent(run: RecordedRun, events: list[RecordedEvent], agent: str) -> dict[str, Any]:
    """Events sent once more when nothing else happens, to agents other than the one that lost them.

    Args:
        run: The run.
        events: The events.
        agent: The agent that lost them; it is given none of them if there is another one.
    """
    at = _quiet(run)
    here = [one for one in run.agents if one not in run.leaves and one != agent]
    wanted = [to for to in events[0].to if to in here]
    given = [*dict.fromkeys(e.agent for e in events if e.agent in here and e.agent != agent)]
    to = wanted or [one for one in given if one][:1] or here[:1] or [agent]
    is_common = all([one for one in e.to if one in here] == wanted for e in events)
    change: dict[str, Any] = {"kind": "resend", "at": at, "events": [e.id for e in events]}
    if not wanted or is_common:
        change["to"] = to
    return change


def _early(run: RecordedRun) -> Iterator[Oddity]:
    """An answer that was accepted while work was on its way: the agent waits instead."""
    answer = run.answer
    activation = run.activations.get(answer.by or "") if answer else None
    if answer is None or activation is None or activation.end is None:
        return
    left = [event.id for event in run.graph.live.values() if event.work and not event.consumed]
    if left:
        says = f"{name(answer.id)} was submitted before {names(left)} was used"
        row = {"kind": "edit", "at": activation.end.t, "edit": {"fates": [], "outputs": []}}
        yield _of_activation(activation, "early", 0.6, says, row, answer.id)


def _failed(run: RecordedRun) -> Iterator[Oddity]:
    """Activations that ended with an error."""
    for activation in run.activations.values():
        if activation.end is not None and activation.has_failed:
            says = f"activation {name(activation.id)} of {name(activation.agent)} failed"
            change = {"kind": "again", "at": activation.t, "activation": activation.id}
            yield _of_activation(activation, "failed", 0.4, says, change)


def answered_otherwise(activation: RecordedActivation) -> Oddity:
    """An agent that may answer otherwise when it is asked again; nothing else speaks against it."""
    says = f"{name(activation.agent)} answered in activation {name(activation.id)}"
    change = {"kind": "again", "at": activation.t, "activation": activation.id}
    return _of_activation(activation, "answered", 0.0, says, change)


def _left(run: RecordedRun) -> Iterator[Oddity]:
    """Agents that left the team; an instance `NAME#2` of a wrapped agent leaves after its turn."""
    for record in run.records:
        if isinstance(record, Leave) and "#" not in record.agent:
            says = f"{name(record.agent)} left the team"
            change = {"kind": "omit", "at": record.t, "t": record.t}
            yield Oddity(record.agent, "left", 0.9, Evidence(record.t, says), change)


def _late(run: RecordedRun) -> Iterator[Oddity]:
    """Events that were kept back on their way."""
    for record in run.records:
        if isinstance(record, Emit) and record.policy is not None:
            event = run.events[record.event]
            arrived = event.arrivals[0][1] if event.arrivals else None
            if event.agent is None or (arrived is not None and _us(run, arrived) == record.us):
                continue
            says = f"{name(event.id)} was kept back on its way"
            change = {"kind": "sooner", "at": _after(run, record.t), "event": event.id}
            yield _of_event(event, "late", 0.6, record.t, says, change)


def _waiting(run: RecordedRun) -> Iterator[Oddity]:
    """Agents that hold work at the end, and do nothing about it."""
    held: dict[str, list[str]] = {}
    for event in run.graph.live.values():
        for agent in sorted(event.copies):
            held.setdefault(agent, []).append(event.id)
    last = _quiet(run)
    still = list[tuple[int, Oddity]]()  # agents that did nothing in the end, and since when
    for agent, events in held.items():
        says = f"{name(agent)} held {counted(len(events), 'event')} at the end ({names(events)})"
        mine = [one for one in run.activations.values() if one.agent == agent]
        place = mine[-1].id if mine else None
        change = {"kind": "tell", "at": last, "agent": agent, "note": NOTE}
        weight = 0.2 + 0.2 * len(events) / max(map(len, held.values()))
        shown = Evidence(run.last.t, says)
        told = Oddity(agent, "waiting", weight, shown, change, place)
        yield told
        if mine and mine[-1].end and not mine[-1].fates and not mine[-1].outputs:
            still.append((mine[-1].t, told))
        work = [run.events[event] for event in events if run.events[event].is_work]
        work = [event for event in work if event.t < last]
        if work:
            yield Oddity(agent, "waiting", weight / 2, shown, _resent(run, work, agent), place)
    yield from _together([one for _, one in sorted(still, key=lambda pair: pair[0])[:2]])


def _swallowed(run: RecordedRun) -> Iterator[Oddity]:
    """Work that an agent consumed without a result, of a type that mostly leads to one."""
    ended = [one for one in run.activations.values() if one.end is not None and not one.has_failed]
    results: dict[str, list[bool]] = {}
    for activation in ended:
        for kind in {event.type for event in run.inputs(activation) if event.is_work}:
            results.setdefault(kind, []).append(bool(activation.outputs))
    fruitful = {kind for kind, some in results.items() if 2 * sum(some) > len(some)}
    lost: dict[str, list[RecordedEvent]] = {}
    for activation in ended:
        if not activation.outputs:
            used = (one for one in run.inputs(activation) if one.is_work and one.type in fruitful)
            lost.setdefault(activation.agent, []).extend(used)
    for agent, events in lost.items():
        if events:
            says = f"{name(agent)} used {names([one.id for one in events])} and generated nothing"
            end = run.consumption(events[-1])
            shown = Evidence(end.t if end else events[-1].t, says)
            yield Oddity(
                agent, "silent", 0.5, shown, _resent(run, events, agent), None, events[0].id
            )


Rule = Callable[[RecordedRun], Iterator[Oddity]]
RULES: tuple[Rule, ...] = (
    _misaddressed, _left, _lost, _late, _discarded, _early, _swallowed, _failed, _waiting,
)  # fmt: skip


def _of_event(
    event: RecordedEvent, mechanism: str, weight: float, t: int, says: str, change: dict[str, Any]
) -> Oddity:
    assert event.agent is not None
    shown = Evidence(t, says)
    return Oddity(event.agent, mechanism, weight, shown, change, event.by, event.id)


def _of_activation(
    activation: RecordedActivation, mechanism: str, weight: float, says: str,
    change: dict[str, Any], event: str | None = None,
) -> Oddity:  # fmt: skip
    assert activation.end is not None
    shown = Evidence(activation.end.t, says)
    return Oddity(activation.agent, mechanism, weight, shown, change, activation.id, event)


def _nearest(to: str, run: RecordedRun) -> str | None:
    found = get_close_matches(to, [*run.agents], 1, 0.8)
    return found[0] if found else None


def _us(run: RecordedRun, t: int) -> int:
    return run.times[t]


def _after(run: RecordedRun, t: int) -> int:
    """The first record after `t` that is later than its moment: a request has been completed."""
    records: list[Record] = run.records
    later = (one.t for one in records[t + 1 :] if one.us > records[t].us)
    return min(next(later, len(records) - 1), len(records) - 1)


def _quiet(run: RecordedRun) -> int:
    """The last moment at which an agent could still be reached.

    That is the start of the activation that submitted the accepted answer; without an answer the
    record after the last end of an activation, and after the events that it generated.
    """
    answer = run.answer
    if answer is not None and answer.by in run.activations:
        return run.activations[answer.by].t
    ends = [one.end.t + len(one.outputs) for one in run.activations.values() if one.end]
    return min(max(ends, default=0) + 1, len(run.records) - 1)
