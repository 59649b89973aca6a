"""Signs of contents: unreadable, grown, wrong amounts, stale, doubled; an answer that is hasty."""

from __future__ import annotations

from collections.abc import Iterator

from dig._util.text import name, names
from dig.tasks.accounting import SOLUTION
from dig.tasks.ranges import common, length, without
from dig.traces.run import RecordedEvent

from .activations import is_unreadable
from .peers import LEAST_KNOWN
from .seen import Seen, Shown
from .traits import amounts_of

BEYOND = 1.5
"""Wrong amounts are so many times the largest usual ones, or so small a part of the smallest."""
PROFILE, PROFILE_ALONE = 1.1, 2.0
"""Amounts that are shared out otherwise are so many times as far from others as is usual; more, if
only the other agents of the run say what is usual."""
SHARE = 0.02
"""The share of an amount that may be missing or too much."""


def _shown(event: RecordedEvent, says: str, part: float = 1.0) -> Shown:
    assert event.agent is not None
    return Shown(
        agent=event.agent, t=event.t, says=says, activation=event.by, event=event.id, part=part
    )


def unreadable(seen: Seen) -> Iterator[Shown]:
    """A message has not the shape of its type."""
    for event in seen.sent:
        if is_unreadable(seen, event):
            yield _shown(event, f"{name(event.id)} of {name(event.agent)} cannot be read")


def grown(seen: Seen) -> Iterator[Shown]:
    """A message is about parts of the task that its activation did not use."""
    for event in seen.sent:
        before, about = seen.about_used(event), seen.about([event])
        is_again = event.id in seen.first_said
        if before and without(about, before) and not is_again:
            yield _shown(event, f"{name(event.id)} is about parts that were not before it")


def amounts(seen: Seen) -> Iterator[Shown]:
    """The amounts of a result are unlike those of all peers for so many elements."""
    for event in seen.sent:
        share = seen.amounts.get(event.id)
        usual = _usual(seen, event, "amount")
        if share is None or len(usual) < 3:
            continue
        was = [seen.amounts[one.id] for one in seen.used_by(event) if one.id in seen.amounts]
        if _is_beyond(share, usual) and not any(_is_beyond(one, usual) for one in was):
            yield _shown(event, f"{name(event.id)} has {share:.2f} for each element")


def profiles(seen: Seen) -> Iterator[Shown]:
    """The amounts of a result are shared out otherwise than those of all peers."""
    for event in seen.sent:
        far = seen.profiles.get(event.id)
        usual = _usual(seen, event, "profile")
        if far is None or len(usual) < LEAST_KNOWN:
            continue
        most = (PROFILE if seen.usual.runs else PROFILE_ALONE) * max(usual)
        was = [seen.profiles[one.id] for one in seen.used_by(event) if one.id in seen.profiles]
        if far > most and all(one <= most for one in was):
            yield _shown(event, f"{name(event.id)} has amounts that are shared out otherwise")


def _usual(seen: Seen, event: RecordedEvent, what: str) -> list[float]:
    assert event.agent is not None
    numbers = seen.unlike(event.agent).numbers
    return [
        value
        for kind in (event.type, f"final {event.type}")
        for value in numbers.get((what, kind), ())
    ]


def _is_beyond(share: float, usual: list[float]) -> bool:
    return share > BEYOND * max(usual) or share < min(usual) / BEYOND


def not_conserved(seen: Seen) -> Iterator[Shown]:
    """A result is not the sum of the results that it was made of."""
    for event in seen.sent:
        used = [one for one in seen.used_by(event) if one.type == SOLUTION]
        if event.type != SOLUTION or not used or len(used) < len(seen.used_by(event)):
            continue
        before, after = [amounts_of(one.payload) for one in used], amounts_of(event.payload)
        if not all(before) or not after:
            continue
        total = sum(sum(one.values()) for one in before)
        if sum(after.values()) > total * (1 + SHARE):
            yield _shown(event, f"{name(event.id)} has more than the results that it was made of")


def counted_twice(seen: Seen) -> Iterator[Shown]:
    """A result that was put together has parts of the task in it several times."""
    for event in seen.sent:
        used = [one for one in seen.used_by(event) if one.type == SOLUTION]
        if event.type != SOLUTION or len(used) < 2:
            continue
        before, after = [amounts_of(one.payload) for one in used], amounts_of(event.payload)
        overlaps = sum(length(seen.about([one])) for one in used) > length(seen.about(used))
        if overlaps and after and all(before):
            total = sum(sum(one.values()) for one in before)
            if sum(after.values()) >= total * (1 - SHARE):
                yield _shown(
                    event, f"{name(event.id)} counts parts of {names([e.id for e in used])} twice"
                )


def stale(seen: Seen) -> Iterator[Shown]:
    """An agent says again what it has said, and part of what it used is in nothing that it made."""
    for event in seen.said_again:
        if _lacks(seen, event):
            first = seen.first_said[event.id]
            yield _shown(event, f"{name(event.id)} says again what {name(first.id)} said")


def _lacks(seen: Seen, event: RecordedEvent) -> bool:
    """Whether the activation of an event used parts that nothing is about that it made."""
    made = seen.run.outputs(seen.run.activations[event.by or ""])
    return bool(without(seen.about_used(event), seen.about(made)))


def doubled(seen: Seen) -> Iterator[Shown]:
    """An agent says the same twice in one activation, to the same agents."""
    for event in seen.said_again:
        first = seen.first_said[event.id]
        if first.by == event.by and first.to == event.to and not _lacks(seen, event):
            yield _shown(event, f"{name(event.id)} and {name(first.id)} are the same")


def dealt_twice(seen: Seen) -> Iterator[Shown]:
    """An agent says the same twice in one activation, to different agents."""
    for event in seen.said_again:
        first = seen.first_said[event.id]
        if first.by == event.by and first.to != event.to and not _lacks(seen, event):
            yield _shown(event, f"{name(event.id)} gives away what {name(first.id)} gave away")


def kept_a_copy(seen: Seen) -> Iterator[Shown]:
    """An agent sends work to others and to itself."""
    for event in seen.sent:
        if (
            len(event.to) == 2
            and event.agent in event.to
            and event.type != SOLUTION
            and not event.final
        ):
            yield _shown(event, f"{name(event.agent)} kept a copy of {name(event.id)}")


def hasty(seen: Seen) -> Iterator[Shown]:
    """An answer that is not about the whole, or given while work was open."""
    for event in seen.sent:
        if not event.final:
            continue
        if without(seen.whole, seen.about([event])):
            was = length(seen.whole) - common(seen.whole, seen.about([event]))
            yield _shown(
                event, f"the answer {name(event.id)} lacks {was} of {length(seen.whole)} elements"
            )
        elif left := seen.open_at(event):
            says = f"{name(event.id)} was submitted before {names([e.id for e in left])} was used"
            yield _shown(event, says, 0.4 if seen.whole else 0.8)
