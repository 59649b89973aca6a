"""Unlike its peers: the general signs. They name no way of going wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dig._util.text import counted, name

from .seen import Seen, Shown
from .traits import Trait

LEAST_KNOWN = 12
"""With fewer answers of peers, nothing is unusual."""
RARE = 0.04
"""The largest share of peers that may do the same as an unusual agent."""
FAR = 1.5
"""An unusual number is so many times the largest of peers, or so small a part of the smallest."""


RESULTS = ("makes", "outputs", "said", "about", "amount", "profile")
"""The respects that are about what an agent made."""


def acts(seen: Seen) -> Iterator[Shown]:
    """Acts that peers hardly ever do."""
    yield from _unusual(seen, [one for one in seen.traits if one.question[0] not in RESULTS])


def results(seen: Seen) -> Iterator[Shown]:
    """Results that peers hardly ever have."""
    yield from _unusual(seen, [one for one in seen.traits if one.question[0] in RESULTS])


def _unusual(seen: Seen, traits: Iterable[Trait]) -> Iterator[Shown]:
    measures = {agent: seen.unlike(agent) for agent in seen.run.agents}
    for one in traits:
        measure = measures[one.agent]
        known = measure.known(one.question)
        if known < LEAST_KNOWN:
            continue
        alike = measure.alike(one)
        if (alike + 1) / (known + 2) > RARE:
            continue
        is_number = not isinstance(one.answer, str)
        if is_number and not _is_far(one, measure.numbers[one.question]):
            continue
        rarity = 1 - (alike + 1) / (known + 2) / RARE
        yield Shown(
            agent=one.agent,
            t=one.t,
            says=_says(one, alike, known),
            activation=one.activation or None,
            event=one.event,
            part=0.5 + 0.5 * rarity,
        )


def _is_far(one: Trait, values: list[float]) -> bool:
    assert not isinstance(one.answer, str)
    if one.answer > FAR * values[-1] + 0.001:
        return True
    # What was cut short by the end of the run is no wonder.
    return one.question[0] != "lasted" and one.answer < values[0] / FAR - 0.001


_TITLES = {
    "stays": "{place} stayed in the team: {answer}",
    "lasted": "{place} lasted {answer:.1f} s",
    "ended": "{place} ended {answer}",
    "seconds": "{place} took {answer:.1f} s with {about}",
    "fate": "{place} has the fate {answer} for a {about}",
    "makes": "{place} made {answer} of {about}",
    "outputs": "{place} made {answer:.0f} events of {about}",
    "to": "{place}, a {about}, went to {answer}",
    "recipients": "{place}, a {about}, went to {answer:.0f} agents",
    "shape": "{place}, a {about}, has another shape",
    "length": "{place}, a {about}, is {answer:.0f} characters long",
    "said": "{place}, a {about}, was said {answer}",
    "about": "{place} made of {about} work about {answer}",
    "amount": "{place}, a {about}, has {answer:.2f} for each element",
    "profile": "{place}, a {about}, has amounts {answer:.2f} apart from those of others",
    "comes": "{place}, a {about}, arrived: {answer}",
    "way": "{place}, a {about}, was on its way for {answer:.1f} s",
}


def _says(one: Trait, alike: int, known: int) -> str:
    what, *about = one.question
    place = name(one.event or one.activation or one.agent)
    told = _TITLES[what].format(place=place, answer=one.answer, about=", ".join(about))
    return f"{told}; of {counted(known, 'like act')} of peers {alike} did so"
