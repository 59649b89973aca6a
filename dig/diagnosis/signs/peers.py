"""Unlike peers: the general signs, without a mechanism."""

from __future__ import annotations

from collections.abc import Iterator

from dig._util.text import counted, name
from dig.detectors.siblings import WORDS

from .analysis import Occurrence, RunAnalysis
from .traits import Norm, Trait

LEAST_KNOWN = 12
"""With fewer answers of peers, nothing is unusual."""
RARE = 0.04
"""The largest share of peers that may do the same as an unusual agent."""
FAR = 1.5
"""An unusual number is so many times the largest of peers, or so small a part of the smallest."""


RESULTS = ("makes", "outputs", "said", "about", "amount", "profile")
"""The respects that are about what an agent made."""


def find_rare_acts(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """Rare acts among peers."""
    return _find_rare(analysis, is_result=False)


def find_rare_results(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """Rare results among peers."""
    return _find_rare(analysis, is_result=True)


def find_odd_siblings(analysis: RunAnalysis, *mechanisms: str) -> Iterator[Occurrence]:
    """Find work unlike the work of siblings."""
    for sign, act, part in analysis.deviations:
        if sign.mechanism in mechanisms:
            says = f"{name(sign.agent)} was given {name(part)}, and {WORDS[sign.mechanism]}"
            if sign.agent == sign.giver:
                says = f"{name(sign.agent)} gave {name(part)} out, and {WORDS[sign.mechanism]}"
            yield Occurrence.at_end(act, says, part)


def _find_rare(analysis: RunAnalysis, is_result: bool) -> Iterator[Occurrence]:
    for trait in analysis.traits.about(lambda respect: (respect in RESULTS) == is_result):
        norm = analysis.norm_for(trait.agent)
        total, alike = norm.answer_count(trait.question), norm.count_like(trait)
        # One more of each is counted, so that a few answers of peers make no act rare.
        share = (alike + 1) / (total + 2)
        if total < LEAST_KNOWN or share > RARE:
            continue
        if not isinstance(trait.answer, str) and not _is_far(trait, norm):
            continue
        yield Occurrence(
            agent=trait.agent, t=trait.t, says=_sentence(trait, alike, total),
            activation=trait.activation or None, event=trait.event,
            part=0.5 + 0.5 * (1 - share / RARE),
        )  # fmt: skip


def _is_far(trait: Trait, norm: Norm) -> bool:
    assert not isinstance(trait.answer, str)
    if trait.answer > FAR * norm.maximum(trait.question) + 0.001:
        return True
    # What was cut short by the end of the run is no wonder.
    is_short = trait.answer < norm.minimum(trait.question) / FAR - 0.001
    return is_short and trait.question[0] != "lasted"


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


def _sentence(trait: Trait, alike: int, total: int) -> str:
    respect, *about = trait.question
    place = name(trait.event or trait.activation or trait.agent)
    deed = _TITLES[respect].format(place=place, answer=trait.answer, about=", ".join(about))
    return f"{deed}; of {counted(total, 'like act')} of peers {alike} did so"
