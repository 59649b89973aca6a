"""Signs of contents: unreadable, grown, wrong amounts, stale, given twice; hasty answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dig._util.text import name, names
from dig.tasks.accounting import SOLUTION
from dig.tasks.number_ranges import common, difference, length
from dig.traces.run import RecordedEvent

from .activations import is_unreadable
from .analysis import Occurrence, RunAnalysis
from .peers import LEAST_KNOWN

BEYOND = 1.5
"""Wrong amounts are so many times the largest usual ones, or so small a part of the smallest."""
PROFILE, PROFILE_ALONE = 1.1, 2.0
"""Amounts that are shared out otherwise are so many times as far from others as is usual; more, if
only the other agents of the run say what is usual."""


def find_unreadable(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """A message has an unusual shape for the type."""
    for event in analysis.sent:
        if is_unreadable(analysis, event):
            says = f"{name(event.id)} of {name(event.agent)} cannot be read"
            yield Occurrence.at_event(event, says)


def find_refused(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """Several agents threw an activation's outputs away."""
    for maker, agents in analysis.refusals.items():
        if len(agents) > 1:
            act = analysis.run.activations[maker]
            unused = next(e for e in analysis.run.outputs(act) if not e.consumed_by)
            says = f"{name(act.agent)} made what {names(sorted(agents))} threw away"
            yield Occurrence.at_event(unused, says)


def find_grown(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """A message is about parts of the task outside the inputs of the activation."""
    for event in analysis.sent:
        before, about = analysis.parts_behind(event), analysis.about([event])
        if before and difference(about, before) and event.id not in analysis.originals:
            says = f"{name(event.id)} is about parts that were not before it"
            yield Occurrence.at_event(event, says)


def find_wrong_amounts(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """The amounts of a result, for each element, are unlike the amounts of all peers."""
    for event in analysis.sent:
        share = analysis.amounts.get(event.id)
        count, least, most = _usual_numbers(analysis, event, "amount")
        if share is None or count < 3:
            continue
        # An agent that only passes on a wrong amount did not make it wrong.
        amounts = [share, *_numbers_before(analysis, event, analysis.amounts)]
        is_beyond = [each > BEYOND * most or each < least / BEYOND for each in amounts]
        if is_beyond[0] and not any(is_beyond[1:]):
            says = f"{name(event.id)} has {share:.2f} for each element"
            yield Occurrence.at_event(event, says)


def find_odd_profiles(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """The amounts of a result are shared out unlike the amounts of all peers."""
    for event in analysis.sent:
        distance = analysis.profiles.get(event.id)
        count, _, usual = _usual_numbers(analysis, event, "profile")
        if distance is None or count < LEAST_KNOWN:
            continue
        most = (PROFILE if analysis.usual.runs else PROFILE_ALONE) * usual
        before = _numbers_before(analysis, event, analysis.profiles)
        if distance > most and all(earlier <= most for earlier in before):
            says = f"{name(event.id)} has amounts that are shared out otherwise"
            yield Occurrence.at_event(event, says)


def _usual_numbers(
    analysis: RunAnalysis, event: RecordedEvent, respect: str
) -> tuple[int, float, float]:
    """The count, the least and the largest of the numbers of peers, answers included."""
    norm = analysis.norm_for(str(event.agent))
    questions = [(respect, kind) for kind in (event.type, f"final {event.type}")]
    questions = [question for question in questions if norm.answer_count(question)]
    return (
        sum(map(norm.answer_count, questions)), min(map(norm.minimum, questions), default=0.0),
        max(map(norm.maximum, questions), default=0.0),
    )  # fmt: skip


def _numbers_before(
    analysis: RunAnalysis, event: RecordedEvent, numbers: Mapping[str, float]
) -> list[float]:
    used = (each.id for each in analysis.inputs_behind(event))
    return [numbers[each] for each in used if each in numbers]


def find_stale(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """An agent repeats a message, and part of the input is in no output."""
    for event, first in analysis.repeats:
        if _lacks_parts(analysis, event):
            says = f"{name(event.id)} says again what {name(first.id)} said"
            yield Occurrence.at_event(event, says)


def _lacks_parts(analysis: RunAnalysis, event: RecordedEvent) -> bool:
    """Report whether the activation of an event used parts without any output about the parts."""
    outputs = analysis.run.outputs(analysis.run.activations[event.by or ""])
    return bool(difference(analysis.parts_behind(event), analysis.about(outputs)))


def find_dealt_twice(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """An agent gives the same away twice in an activation, to different agents."""
    for event, first in analysis.repeats:
        is_dealt = first.by == event.by and first.to != event.to
        if is_dealt and not _lacks_parts(analysis, event):
            says = f"{name(event.id)} gives away what {name(first.id)} gave away"
            yield Occurrence.at_event(event, says)


def find_copies(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """An agent sends work to others and to itself."""
    for event in analysis.sent:
        is_work = event.type != SOLUTION and not event.final
        if is_work and len(event.to) == 2 and event.agent in event.to:
            says = f"{name(event.agent)} kept a copy of {name(event.id)}"
            yield Occurrence.at_event(event, says)


def find_hasty(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """An answer is not about the whole, or was given while work was open."""
    for event in analysis.sent:
        if not event.final:
            continue
        task, about = analysis.task_parts, analysis.about([event])
        if difference(task, about):
            lack = f"{length(task) - common(task, about)} of {length(task)} elements"
            yield Occurrence.at_event(event, f"the answer {name(event.id)} lacks {lack}")
        elif work := analysis.open_at_answers[event.id]:
            says = f"{name(event.id)} was submitted before {names(work)} was used"
            yield Occurrence.at_event(event, says, 0.4 if task else 0.8)
