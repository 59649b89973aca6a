"""Unlike peers: the general signs, without a mechanism."""

from __future__ import annotations

from collections.abc import Iterator

from dig._util.text import counted, name
from dig.detectors.siblings import WORDS

from .analysis import Occurrence, RunAnalysis

LEAST_KNOWN = 12
"""With fewer answers of peers, nothing is unusual."""
RARE = 0.04
"""The largest share of peers that may do the same as an unusual agent."""


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
        norm, answer = analysis.norm_for(trait.agent), str(trait.answer)
        total, alike = norm.answer_count(trait.question), norm.count(trait.question, answer)
        # One more of each is counted, so that a few answers of peers make no result rare.
        share = (alike + 1) / (total + 2)
        if total < LEAST_KNOWN or share > RARE:
            continue
        respect, types = trait.question
        deed = f"{name(trait.activation)} {_RESULTS[respect].format(answer=answer, types=types)}"
        yield Occurrence(
            agent=trait.agent, t=trait.t, activation=trait.activation,
            says=f"{deed}; of {counted(total, 'like act')} of peers {alike} did so",
            part=0.5 + 0.5 * (1 - share / RARE),
        )  # fmt: skip


_RESULTS = {"makes": "made {answer} of {types}", "about": "made of {types} work about {answer}"}
"""The respects about the results of an agent, in words."""
