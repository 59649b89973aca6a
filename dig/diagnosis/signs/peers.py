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


def find_odd_siblings(analysis: RunAnalysis, *mechanisms: str) -> Iterator[Occurrence]:
    """Find work unlike the work of siblings."""
    for sign, act, part in analysis.deviations:
        if sign.mechanism in mechanisms:
            says = f"{name(sign.agent)} was given {name(part)}, and {WORDS[sign.mechanism]}"
            if sign.agent == sign.giver:
                says = f"{name(sign.agent)} gave {name(part)} out, and {WORDS[sign.mechanism]}"
            yield Occurrence.at_end(act, says, part)


def find_rare_results(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """An agent made something rare among peers with the same inputs."""
    for trait in analysis.traits.about(_RESULTS.__contains__):
        norm = analysis.norm_for(trait.agent)
        total, alike = norm.answer_count(trait.question), norm.count_like(trait)
        # One more of each is counted, so that a few answers of peers make no act rare.
        share = (alike + 1) / (total + 2)
        is_number = not isinstance(trait.answer, str)
        if total < LEAST_KNOWN or share > RARE or (is_number and not _is_far(trait, norm)):
            continue
        yield Occurrence(
            agent=trait.agent, t=trait.t, says=_sentence(trait, alike, total),
            activation=trait.activation, event=trait.event,
            part=0.5 + 0.5 * (1 - share / RARE),
        )  # fmt: skip


def _is_far(trait: Trait, norm: Norm) -> bool:
    assert not isinstance(trait.answer, str)
    least, most = norm.minimum(trait.question) / FAR, FAR * norm.maximum(trait.question)
    return not least - 0.001 <= trait.answer <= most + 0.001


_RESULTS = {
    "makes": "{place} made {answer} of {about}",
    "outputs": "{place} made {answer:.0f} events of {about}",
    "said": "{place}, a {about}, was said {answer}",
    "about": "{place} made of {about} work about {answer}",
    "amount": "{place}, a {about}, has {answer:.2f} for each element",
    "profile": "{place}, a {about}, has amounts {answer:.2f} apart from those of others",
}
"""The respects about what an agent made, in words."""


def _sentence(trait: Trait, alike: int, total: int) -> str:
    respect, *about = trait.question
    place = name(trait.event or trait.activation)
    deed = _RESULTS[respect].format(place=place, answer=trait.answer, about=", ".join(about))
    return f"{deed}; of {counted(total, 'like act')} of peers {alike} did so"
