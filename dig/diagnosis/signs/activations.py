"""Signs of activations: hung, failed, slow, silent, idle; and work thrown away or passed on."""

from __future__ import annotations

from collections.abc import Iterator

from dig._util.text import name, names
from dig.tasks.accounting import SOLUTION
from dig.tasks.number_ranges import Ranges, difference
from dig.traces.run import RecordedActivation, RecordedEvent

from .analysis import Occurrence, RunAnalysis
from .traits import join_types

HUNG_S = 59.0
"""Seconds after which a host usually ends an activation."""
AT_ONCE = 0.9
"""Work of a type is done at once if peers that see it consume it with this share."""


def find_hung(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """An activation was cut off by the host, or never ended."""
    # A slow agent is cut off now and then, too: that is `find_slow`, and no second sign.
    slow = _slow_agents(analysis)
    for act in map(analysis.run.activations.__getitem__, analysis.lengthy):
        if act.agent in slow or act.agent in analysis.run.leaves:
            continue
        seconds, label = analysis.duration_s(act), f"{name(act.id)} of {name(act.agent)}"
        if act.has_raised and seconds >= HUNG_S:
            yield Occurrence.at_end(act, f"{label} was cut off after {seconds:.0f} s")
        elif act.end is None:
            yield Occurrence.at_end(act, f"{label} never ended, in {seconds:.0f} s")


def find_slow(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """An activation took long and ended alone; or was cut off, like others of a slow agent."""
    agents = _slow_agents(analysis)
    for act in map(analysis.run.activations.__getitem__, analysis.lengthy):
        is_own = act.has_raised or not act.has_failed
        if is_own and act.agent in agents:
            duration = f"took {analysis.duration_s(act):.0f} s, longer than usual"
            yield Occurrence.at_end(act, f"{name(act.id)} of {name(act.agent)} {duration}")


def _slow_agents(analysis: RunAnalysis) -> set[str]:
    return {act.agent for act in analysis.ended if act.id in analysis.lengthy}


def find_failed(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """An activation raised an error, and was not cut off."""
    for act in analysis.run.activations.values():
        if act.has_raised and (analysis.duration_s(act) < HUNG_S or act.id not in analysis.lengthy):
            yield Occurrence.at_end(act, f"{name(act.id)} of {name(act.agent)} ended with an error")


def find_silent(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """An activation consumed work with usual outputs, and generated nothing."""
    for act, used in _idle_consumers(analysis):
        if _solved_problems(analysis, used):
            continue
        question = ("makes", join_types(event.type for event in used))
        norm = analysis.norm_for(act.agent)
        if norm.count(question, "nothing") * 2 <= norm.answer_count(question):
            for event in used:
                says = f"{name(act.agent)} used {name(event.id)} and generated nothing"
                yield Occurrence.at_end(act, says, event.id)


def find_withheld(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """An activation consumed solutions of a whole problem, and the problem has no answer."""
    answered = analysis.about(event for event in analysis.sent if event.final)
    for act, used in _idle_consumers(analysis):
        if any(difference(problem, answered) for problem in _solved_problems(analysis, used)):
            ids = names([event.id for event in used])
            yield Occurrence.at_end(act, f"{name(act.agent)} used {ids}, the whole, and kept it")


def _idle_consumers(
    analysis: RunAnalysis,
) -> Iterator[tuple[RecordedActivation, list[RecordedEvent]]]:
    """List activations with consumed work or answers, but without outputs; each with the inputs."""
    for act in analysis.ended:
        used = [event for event in analysis.run.inputs(act) if event.is_work or event.final]
        if used and not act.outputs:
            yield act, used


def _solved_problems(analysis: RunAnalysis, events: list[RecordedEvent]) -> list[Ranges]:
    """The problems from outside, solved as a whole by some solutions."""
    solved = analysis.about(event for event in events if event.type == SOLUTION)
    return [problem for problem in analysis.problems if not difference(problem, solved)]


def find_waiting(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """An activation did nothing with work for immediate use, or with the whole."""
    for act in analysis.ended:
        if act.outputs or any(fate != "delay" for fate in act.fates.values()):
            continue
        work, norm = analysis.work(act.inputs), analysis.norm_for(act.agent)
        questions = [(event, ("fate", event.type)) for event in work]
        idle = [
            event
            for event, question in questions
            if norm.count(question, "consume") > AT_ONCE * norm.answer_count(question)
        ]
        for event in idle:
            says = f"{name(act.agent)} did nothing with {name(event.id)}"
            yield Occurrence.at_end(act, says, event.id)
        if not idle and _solved_problems(analysis, work):
            says = f"{name(act.agent)} waited with the whole before it"
            yield Occurrence.at_end(act, says, part=0.95)


def find_holding(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """An agent holds work at the end, and did nothing in the last activation."""
    last = {act.agent: act for act in analysis.run.activations.values()}
    for agent, act in last.items():
        held = [event.id for event in analysis.held.get(agent, ()) if event.id in act.inputs]
        is_own = act.has_raised or not act.has_failed
        if held and is_own and act.end is not None and agent not in analysis.run.leaves:
            says = f"{name(agent)} held {names(held)} at the end and did nothing about it"
            is_idle = not act.fates and not act.outputs
            yield Occurrence.at_end(act, says, part=1.0 if is_idle else 0.5)


def find_discarded(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """An activation threw unsolved work away."""
    solutions = [event for event in analysis.sent if event.type == SOLUTION]
    for act in analysis.ended:
        for event in analysis.work(act.with_fate("discard")):
            if is_unreadable(analysis, event):
                continue  # to throw that away is right, and the sender is to blame
            earlier = [other for other in solutions if other.t < act.t and other is not event]
            about = analysis.about([event])
            if not about or difference(about, analysis.about(earlier)):
                says = f"{name(act.agent)} discarded {name(event.id)}"
                yield Occurrence.at_end(act, says, event.id)


def is_unreadable(analysis: RunAnalysis, event: RecordedEvent) -> bool:
    """Report whether the payload of an event lacks the usual shape."""
    if event.agent is None or analysis.shapes.get(event.id) != "other":
        return False
    norm, question = analysis.norm_for(event.agent), ("shape", event.type)
    return norm.answer_count(question) >= 3 and not norm.count(question, "other")


def find_passed_on(analysis: RunAnalysis) -> Iterator[Occurrence]:
    """An activation sent work on to others; results for another agent do not count."""
    counts: dict[str, int] = {}
    for act in analysis.ended:
        for event in analysis.work(act.with_fate("reroute")):
            collector = analysis.parts.report_to(event) if analysis.parts is not None else None
            if event.type == SOLUTION and collector not in (None, act.agent):
                continue
            counts[act.agent] = number = counts.get(act.agent, 0) + 1
            says = f"{name(act.agent)} passed {name(event.id)} on"
            # Once may be right; an agent that does so again and again does not do its work.
            yield Occurrence.at_end(act, says, event.id, 1.0 if number > 1 else 1 / 3)
