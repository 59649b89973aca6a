"""Rules to propose interventions: changes undo the signs against an agent.

`REMEDIES` has for each mechanism the changes that would undo it: what got lost is sent once more,
an agent that left stays. `proposals` makes them of the signs about candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Protocol

from dig.diagnosis.case import Case
from dig.diagnosis.signs.analysis import RunAnalysis, Sign
from dig.graph.records import Emit
from dig.show.document import Candidate
from dig.traces.replay.kinds import MOST_INTERVENTIONS
from dig.traces.run import RecordedRun

NOTE = "You still hold work that is not finished. Look at it again, and go on."
"""The note to an agent with work at the end of a run."""
TOGETHER: Mapping[str, int] = MappingProxyType({"lost": MOST_INTERVENTIONS, "waiting": 2})
"""Mechanisms to undo at so many agents at once, too: a single agent may not be enough."""

DECIDED = ("discarded", "early", "waiting")
"""Mechanisms of a decision: the agent might have decided otherwise."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Proposal:
    """A change, in the hope of a good run.

    Attributes:
        change: The change, as plain JSON.
        expects: The acts that must happen in the fork for it to count as carried out; ``None``:
            nothing more than its kind asks for.
        beside: Further changes that are made with it.
        mechanism: The mechanism that it would undo, if a rule proposes it.
        activation: The activation that it is about, if it is about one.
    """

    change: Row
    expects: Row | None = None
    beside: tuple[Row, ...] = ()
    mechanism: str | None = None
    activation: str | None = None


class Proposes(Protocol):
    """A source of changes beside the rules, such as a language model."""

    def interventions(self, case: Case, candidate: Candidate) -> Sequence[Proposal]:
        """Propose changes at the place of a candidate, the most promising first."""
        ...


def proposals(case: Case, candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, Proposal]]:
    """Propose changes to undo the signs about some candidates.

    The first remedies of all mechanisms come first, in the order of `REMEDIES`, then the second
    ones; those of one mechanism in the order of the candidates, then several of them at once.

    Args:
        case: The run.
        candidates: The candidates, the likeliest first.
    """
    signs: dict[tuple[str, str], list[Sign]] = {}
    for sign in case.signs:
        if sign.mechanism is not None:
            signs.setdefault((sign.mechanism, sign.agent), []).append(sign)
    generic = dict.fromkeys(mechanism for mechanism, _ in signs if mechanism not in REMEDIES)
    table = {**REMEDIES, **dict.fromkeys(generic, (_ask_again,))}
    for number in range(max(map(len, table.values()))):
        for mechanism, remedies in table.items():
            pairs = [
                (candidate, Proposal(change, mechanism=mechanism, activation=own[0].activation))
                for candidate in candidates
                if number < len(remedies) and (own := signs.get((mechanism, candidate.agent)))
                and (change := remedies[number](case.analysis, own)) is not None
            ]  # fmt: skip
            yield from pairs
            if number == 0 and mechanism in TOGETHER:
                yield from _together(case.run, pairs)


def _together(
    run: RecordedRun, pairs: Sequence[tuple[Candidate, Proposal]]
) -> Iterator[tuple[Candidate, Proposal]]:
    """Join changes at several agents; of waiting agents, only idle agents count."""

    def is_idle(proposal: Proposal) -> bool:
        act = run.activations.get(proposal.activation or "")
        return act is not None and act.end is not None and not act.fates and not act.outputs

    def order(pair: tuple[Candidate, Proposal]) -> tuple[int, int]:
        act = run.activations.get(pair[1].activation or "")
        return pair[1].change["at"], act.t if act is not None else len(run.records)

    usable = [pair for pair in pairs if pair[1].mechanism != "waiting" or is_idle(pair[1])]
    if len(usable) > 1:
        usable.sort(key=order)
        (first, proposal), *generic = usable[: TOGETHER[str(usable[0][1].mechanism)]]
        beside = tuple(other.change for _, other in generic)
        yield first, replace(proposal, beside=beside, activation=None)


# --- remedies ---


def _readdress(analysis: RunAnalysis, signs: Sequence[Sign]) -> Row | None:
    """An event goes to the intended agent: by a similar name, or by the payload."""
    event = analysis.run.events[signs[0].event or ""]
    strange = [to for to in event.to if to not in analysis.run.agents]
    right = [_nearest(to, analysis.run) if to in strange else to for to in event.to]
    collector = analysis.parts.report_to(event) if analysis.parts is not None else None
    if signs[0].mechanism == "astray" and collector is not None:
        right = [collector]
    if not right or not all(right):
        return None
    return {"kind": "edit", "at": event.t, "edit": {"to": right}}


def _resend(analysis: RunAnalysis, signs: Sequence[Sign]) -> Row | None:
    """The work of some signs is sent once more, to others than the agent at fault."""
    run, agent = analysis.run, signs[0].agent
    events = list({e.id: e for sign in signs for e in analysis.events_of(sign)}.values())
    events = [event for event in events if event.is_work and event.t < last_chance(run)]
    if not events:
        return None
    present = [name for name in run.agents if name not in run.leaves and name != agent]
    recipients = [to for to in events[0].to if to in present]
    senders = [sender for event in events if (sender := event.agent) in present]
    is_common = all([to for to in event.to if to in present] == recipients for event in events)
    ids = [event.id for event in events]
    change: dict[str, Any] = {"kind": "resend", "at": last_chance(run), "events": ids}
    # With recipients that differ, each event goes to its own once more.
    if not recipients or is_common:
        change["to"] = recipients or senders[:1] or present[:1] or [agent]
    if signs[0].mechanism == "lost" and run.answer is not None:  # it must come before that
        change["at"] = min(change["at"], _next_moment(run, max(sign.t for sign in signs)))
    return change


def _release(analysis: RunAnalysis, signs: Sequence[Sign]) -> Row | None:
    """A delayed event is delivered sooner."""
    event = analysis.run.events[signs[0].event or ""]
    record = analysis.run.records[event.t]
    if not isinstance(record, Emit) or record.policy is None:
        return None
    return {"kind": "sooner", "at": _next_moment(analysis.run, event.t), "event": event.id}


def _stay(analysis: RunAnalysis, signs: Sequence[Sign]) -> Row | None:
    """An agent does not leave."""
    # An instance `NAME#2` of a wrapped agent leaves after its turn: that is right.
    if "#" in signs[0].agent:
        return None
    return {"kind": "omit", "at": signs[0].t, "t": signs[0].t}


def _wait(analysis: RunAnalysis, signs: Sequence[Sign]) -> Row | None:
    """An agent waits instead of answering."""
    activation = analysis.run.activations.get(signs[0].activation or "")
    if activation is None or activation.end is None:
        return None
    return {"kind": "edit", "at": activation.end.t, "edit": {"fates": [], "outputs": []}}


def _ask_again(analysis: RunAnalysis, signs: Sequence[Sign]) -> Row | None:
    """An activation is decided once more."""
    activation = analysis.run.activations.get(signs[0].activation or "")
    return None if activation is None else ask_again(activation.id, activation.t)


def ask_again(activation: str, at: int) -> Row:
    """Return the change to decide an activation once more."""
    return {"kind": "again", "at": at, "activation": activation}


def _tell(analysis: RunAnalysis, signs: Sequence[Sign]) -> Row | None:
    """An agent with work at the end is told so."""
    agent = signs[0].agent
    if agent not in analysis.held:
        return None
    return {"kind": "tell", "at": last_chance(analysis.run), "agent": agent, "note": NOTE}


def _hand_over(analysis: RunAnalysis, signs: Sequence[Sign]) -> Row | None:
    """The work of an agent at the end is sent to others."""
    held = [replace(signs[0], event=event.id) for event in analysis.held[signs[0].agent]]
    return _resend(analysis, held) if held else None


Remedy = Callable[[RunAnalysis, Sequence[Sign]], Row | None]
"""Makes the change that undoes the signs of a mechanism about an agent."""
REMEDIES: Mapping[str, tuple[Remedy, ...]] = MappingProxyType(
    {
        "misaddressed": (_readdress, _resend),
        "astray": (_readdress, _resend),
        "left": (_stay, _resend),
        "lost": (_resend, _release),
        "discarded": (_resend,),
        "late": (_release, _resend),
        "early": (_wait,),
        "silent": (_resend,),
        "withheld": (_ask_again, _resend),
        "waiting": (_tell, _hand_over),
        "failed": (_ask_again, _resend),
        "hung": (_resend,),
        "slow": (_resend,),
    }
)
"""The remedies of each mechanism, the most promising mechanisms first; for all others an
activation is decided once more."""


def _nearest(to: str, run: RecordedRun) -> str | None:
    matches = get_close_matches(to, [*run.agents], 1, 0.8)
    return matches[0] if matches else None


def _next_moment(run: RecordedRun, t: int) -> int:
    """The first record at a later time than `t`: a request has been completed."""
    later = (record.t for record in run.records[t + 1 :] if record.us > run.times[t])
    return next(later, len(run.records) - 1)


def last_chance(run: RecordedRun) -> int:
    """Return the last record with a chance to reach an agent.

    That is the start of the activation that submitted the accepted answer; without an answer the
    record after the last end of an activation, and after the events that it generated.
    """
    answer = run.answer
    if answer is not None and answer.by in run.activations:
        return run.activations[answer.by].t
    ends = [act.end.t + len(act.outputs) for act in run.activations.values() if act.end]
    return min(max(ends, default=0) + 1, len(run.records) - 1)
