"""Signs of activations: hung, failed, slow, silent, idle; and work thrown away or passed on."""

from __future__ import annotations

from collections.abc import Iterator

from dig._util.text import name, names
from dig.tasks.accounting import SOLUTION
from dig.tasks.ranges import Ranges, without
from dig.traces.run import RecordedActivation, RecordedEvent

from .seen import Seen, Shown

HUNG_S = 59.0
"""Seconds after which a host usually ends an activation."""
SLOW = 1.3
"""A slow activation takes so many times the longest of good runs."""
SLOW_ALONE = 6.0
"""Without good runs: so many times the median."""
AT_ONCE = 0.9
"""Work of a type is done at once if peers that see it consume it with this share."""


def _shown(
    one: RecordedActivation, says: str, event: str | None = None, part: float = 1.0
) -> Shown:
    t = one.t if one.end is None else one.end.t
    return Shown(agent=one.agent, t=t, says=says, activation=one.id, event=event, part=part)


def _is_long(seen: Seen, one: RecordedActivation, event: str = "seconds") -> bool:
    """Whether an activation lasts longer than is usual for what lay before it."""
    measure, lasted = seen.unlike(one.agent), seen.lasted(one)
    used = "+".join(sorted({e.type for e in seen.run.inputs(one) if not e.final})) or "nothing"
    of = (
        [(event, used)]
        if one.end and not one.has_failed
        else [q for q in measure.numbers if q[0] == event]
    )
    if seen.usual.runs:
        most = max((measure.most(question) or 0.0 for question in of), default=0.0)
        return lasted > SLOW * most > 0
    middle = max((measure.middle(question) for question in of), default=0.0)
    return lasted > SLOW_ALONE * middle > 0


def hung(seen: Seen) -> Iterator[Shown]:
    """An activation was cut off by the host, or never ended."""
    slow = {one.agent for one in seen.ended if _is_long(seen, one)}
    for one in seen.run.activations.values():
        lasted = seen.lasted(one)
        if one.agent in slow or one.agent in seen.run.leaves:
            continue
        if one.has_raised and lasted >= HUNG_S and _is_long(seen, one):
            yield _shown(
                one, f"{name(one.id)} of {name(one.agent)} was cut off after {lasted:.0f} s"
            )
        elif one.end is None and _is_long(seen, one):
            yield _shown(one, f"{name(one.id)} of {name(one.agent)} never ended, in {lasted:.0f} s")


def slow(seen: Seen) -> Iterator[Shown]:
    """An activation took long and ended by itself; so did others of the agent that were cut off."""
    agents = {one.agent for one in seen.ended if _is_long(seen, one)}
    for one in seen.run.activations.values():
        is_own = one.has_raised or not one.has_failed
        if is_own and one.agent in agents and _is_long(seen, one):
            how = f"took {seen.lasted(one):.0f} s"
            yield _shown(one, f"{name(one.id)} of {name(one.agent)} {how}, longer than usual")


def failed(seen: Seen) -> Iterator[Shown]:
    """An activation ended with an error of its own, and was not cut off."""
    for one in seen.run.activations.values():
        if one.has_raised and (seen.lasted(one) < HUNG_S or not _is_long(seen, one)):
            yield _shown(one, f"{name(one.id)} of {name(one.agent)} ended with an error")


def _used(seen: Seen, one: RecordedActivation) -> list[RecordedEvent]:
    return [event for event in seen.run.inputs(one) if event.is_work or event.final]


def silent(seen: Seen) -> Iterator[Shown]:
    """An activation consumed work of a type that leads to something, and nothing came of it."""
    for one in seen.ended:
        used = _used(seen, one)
        if one.outputs or not used or _solves_whole(seen, used):
            continue
        measure = seen.unlike(one.agent).words.get(
            ("makes", "+".join(sorted({e.type for e in used})))
        )
        if measure is None or measure["nothing"] * 2 <= measure.total():
            for event in used:
                says = f"{name(one.agent)} used {name(event.id)} and generated nothing"
                yield _shown(one, says, event.id)


def withheld(seen: Seen) -> Iterator[Shown]:
    """An activation consumed solutions of a whole problem, and there is no answer to it."""
    answered = seen.about(event for event in seen.sent if event.final)
    for one in seen.ended:
        used = _used(seen, one)
        if not used or one.outputs:
            continue
        if any(without(whole, answered) for whole in _solves_whole(seen, used)):
            says = f"{name(one.agent)} used {names([e.id for e in used])}, the whole, and kept it"
            yield _shown(one, says)


def _solves_whole(seen: Seen, used: list[RecordedEvent]) -> list[Ranges]:
    """The problems from outside that some solutions solve as a whole."""
    solved = seen.about(event for event in used if event.type == SOLUTION)
    return [whole for whole in seen.problems if not without(whole, solved)]


def waiting(seen: Seen) -> Iterator[Shown]:
    """An activation did nothing although there was work that is done at once, or the whole."""
    for one in seen.ended:
        if one.outputs or any(fate != "delay" for fate in one.fates.values()):
            continue
        before = seen.work(one.inputs)
        words = seen.unlike(one.agent).words
        idle = [
            event
            for event in before
            if (counts := words.get(("fate", event.type)))
            and counts["consume"] > AT_ONCE * counts.total()
        ]
        for event in idle:
            yield _shown(one, f"{name(one.agent)} did nothing with {name(event.id)}", event.id)
        if not idle and _solves_whole(seen, before):
            yield _shown(one, f"{name(one.agent)} waited with the whole before it", part=0.95)


def holding(seen: Seen) -> Iterator[Shown]:
    """An agent holds work at the end, and did nothing with it in its last activation."""
    last = {one.agent: one for one in seen.run.activations.values()}
    for agent, one in last.items():
        held = [event for event in seen.held_by(agent) if event.id in one.inputs]
        is_own = one.has_raised or not one.has_failed
        if held and is_own and one.end is not None and one.agent not in seen.run.leaves:
            ids = [event.id for event in held]
            says = f"{name(agent)} held {names(ids)} at the end and did nothing about it"
            idle = not one.fates and not one.outputs
            yield _shown(one, says, part=1.0 if idle else 0.5)


def discarded(seen: Seen) -> Iterator[Shown]:
    """An activation threw work away that no solution had been about."""
    for one in seen.ended:
        for event in seen.work(one.with_fate("discard")):
            if is_unreadable(seen, event):
                continue
            known = [e for e in seen.sent if e.type == SOLUTION and e.t < one.t and e is not event]
            about = seen.about([event])
            if not about or without(about, seen.about(known)):
                says = f"{name(one.agent)} discarded {name(event.id)}"
                yield _shown(one, says, event.id)


def is_unreadable(seen: Seen, event: RecordedEvent) -> bool:
    """Whether the payload of an event has not the shape of its type, or tells no part."""
    if event.agent is None or event.payload is None:
        return False
    shapes = seen.unlike(event.agent).words.get(("shape", event.type))
    if shapes is None or shapes.total() < 3:
        return False
    shape = seen.shapes.get(event.id, "")
    return shapes[shape] == 0 and shape == "other"


def passed_on(seen: Seen) -> Iterator[Shown]:
    """An activation sent work on to others; a result that is for another agent may be."""
    of: dict[str, int] = {}
    for one in seen.ended:
        for event in seen.work(one.with_fate("reroute")):
            wanted = seen.parts.report_to(event) if seen.parts is not None else None
            if event.type == SOLUTION and wanted not in (None, one.agent):
                continue
            of[one.agent] = number = of.get(one.agent, 0) + 1
            says = f"{name(one.agent)} passed {name(event.id)} on"
            yield _shown(one, says, event.id, 1.0 if number > 1 else 1 / 3)
