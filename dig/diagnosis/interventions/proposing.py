"""Rules that propose interventions: what would undo the signs that speak against an agent.

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
"""The words for an agent that holds work at the end of a run."""
TOGETHER: Mapping[str, int] = MappingProxyType({"lost": MOST_INTERVENTIONS, "waiting": 2})
"""Mechanisms that are undone at so many agents at once, too: one alone may be of no use."""

DECIDED = ("discarded", "early", "waiting")
"""Mechanisms that lie in a decision: the agent might have decided otherwise."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Proposal:
    """A change that may have made a run good.

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
    """Proposes changes beside those of the rules, such as a language model."""

    def interventions(self, case: Case, candidate: Candidate) -> Sequence[Proposal]:
        """The changes at the place of a candidate, the most promising first."""
        ...


def proposals(case: Case, candidates: Sequence[Candidate]) -> Iterator[tuple[Candidate, Proposal]]:
    """Changes that would undo the signs about some candidates.

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
    others = dict.fromkeys(mechanism for mechanism, _ in signs if mechanism not in REMEDIES)
    table = {**REMEDIES, **dict.fromkeys(others, (_again,))}
    for number in range(max(map(len, table.values()))):
        for mechanism, remedies in table.items():
            found = [
                (one, Proposal(change, mechanism=mechanism, activation=some[0].activation))
                for one in candidates
                if number < len(remedies) and (some := signs.get((mechanism, one.agent)))
                and (change := remedies[number](case.analysis, some)) is not None
            ]  # fmt: skip
            yield from found
            if number == 0 and mechanism in TOGETHER:
                yield from _together(case.run, found)


def _together(
    run: RecordedRun, found: Sequence[tuple[Candidate, Proposal]]
) -> Iterator[tuple[Candidate, Proposal]]:
    """Changes at several agents at once; of agents that wait, those that only waited."""
    some = [pair for pair in found if pair[1].mechanism != "waiting" or _is_idle(run, pair[1])]
    some.sort(key=lambda pair: (pair[1].change["at"], _started(run, pair[1])))
    if len(some) > 1:
        (first, said), *others = some[: TOGETHER[str(some[0][1].mechanism)]]
        beside = tuple(other.change for _, other in others)
        yield first, replace(said, beside=beside, activation=None)


def _is_idle(run: RecordedRun, said: Proposal) -> bool:
    one = run.activations.get(said.activation or "")
    return one is not None and one.end is not None and not one.fates and not one.outputs


def _started(run: RecordedRun, said: Proposal) -> int:
    one = run.activations.get(said.activation or "")
    return one.t if one is not None else len(run.records)


# --- remedies ---


def _readdressed(analysis: RunAnalysis, some: Sequence[Sign]) -> Row | None:
    """An event goes to the agent that was meant: by its name, or by what the payload says."""
    event = analysis.run.events[some[0].event or ""]
    strange = [to for to in event.to if to not in analysis.run.agents]
    right = [_nearest(to, analysis.run) if to in strange else to for to in event.to]
    wanted = analysis.parts.report_to(event) if analysis.parts is not None else None
    if some[0].mechanism == "astray" and wanted is not None:
        right = [wanted]
    if not right or not all(right):
        return None
    return {"kind": "edit", "at": event.t, "edit": {"to": right}}


def _resent(analysis: RunAnalysis, some: Sequence[Sign]) -> Row | None:
    """The work that signs are about is sent once more, to others than the agent that lost it."""
    run, agent = analysis.run, some[0].agent
    events = list({e.id: e for sign in some for e in analysis.events_of(sign)}.values())
    events = [event for event in events if event.is_work and event.t < quiet(run)]
    if not events:
        return None
    here = [one for one in run.agents if one not in run.leaves and one != agent]
    wanted = [to for to in events[0].to if to in here]
    given = [one for event in events if (one := event.agent) in here]
    is_common = all([one for one in event.to if one in here] == wanted for event in events)
    change: dict[str, Any] = {
        "kind": "resend",
        "at": quiet(run),
        "events": [event.id for event in events],
    }
    if not wanted or is_common:
        change["to"] = wanted or given[:1] or here[:1] or [agent]
    if some[0].mechanism == "lost" and run.answer is not None:  # it must come before that
        change["at"] = min(change["at"], _after(run, max(sign.t for sign in some)))
    return change


def _sooner(analysis: RunAnalysis, some: Sequence[Sign]) -> Row | None:
    """An event that was kept back on its way is delivered."""
    event = analysis.run.events[some[0].event or ""]
    record = analysis.run.records[event.t]
    if not isinstance(record, Emit) or record.policy is None:
        return None
    return {"kind": "sooner", "at": _after(analysis.run, event.t), "event": event.id}


def _stays(analysis: RunAnalysis, some: Sequence[Sign]) -> Row | None:
    """An agent does not leave; an instance `NAME#2` of a wrapped agent leaves after its turn."""
    if "#" in some[0].agent:
        return None
    return {"kind": "omit", "at": some[0].t, "t": some[0].t}


def _waits(analysis: RunAnalysis, some: Sequence[Sign]) -> Row | None:
    """An agent waits instead of answering."""
    activation = analysis.run.activations.get(some[0].activation or "")
    if activation is None or activation.end is None:
        return None
    return {"kind": "edit", "at": activation.end.t, "edit": {"fates": [], "outputs": []}}


def _again(analysis: RunAnalysis, some: Sequence[Sign]) -> Row | None:
    """An activation is decided once more."""
    activation = analysis.run.activations.get(some[0].activation or "")
    return None if activation is None else again(activation.id, activation.t)


def again(activation: str, at: int) -> Row:
    """The change that has an activation, which starts at a record, decided once more."""
    return {"kind": "again", "at": at, "activation": activation}


def _told(analysis: RunAnalysis, some: Sequence[Sign]) -> Row | None:
    """An agent that holds work at the end is told so."""
    agent = some[0].agent
    if not analysis.held_by(agent):
        return None
    return {"kind": "tell", "at": quiet(analysis.run), "agent": agent, "note": NOTE}


def _handed_over(analysis: RunAnalysis, some: Sequence[Sign]) -> Row | None:
    """The work that an agent holds at the end is sent to others."""
    held = [replace(some[0], event=event.id) for event in analysis.held_by(some[0].agent)]
    return _resent(analysis, held) if held else None


Remedy = Callable[[RunAnalysis, Sequence[Sign]], Row | None]
"""Makes the change that would undo what the signs of one mechanism about one agent show."""
REMEDIES: Mapping[str, tuple[Remedy, ...]] = MappingProxyType(
    {
        "misaddressed": (_readdressed, _resent),
        "astray": (_readdressed, _resent),
        "left": (_stays, _resent),
        "lost": (_resent, _sooner),
        "discarded": (_resent,),
        "late": (_sooner, _resent),
        "early": (_waits,),
        "silent": (_resent,),
        "withheld": (_again, _resent),
        "waiting": (_told, _handed_over),
        "failed": (_again, _resent),
        "hung": (_resent,),
        "slow": (_resent,),
    }
)
"""The remedies of each mechanism, the most promising mechanisms first; the activation of any other
one is decided once more."""


def _nearest(to: str, run: RecordedRun) -> str | None:
    found = get_close_matches(to, [*run.agents], 1, 0.8)
    return found[0] if found else None


def _after(run: RecordedRun, t: int) -> int:
    """The first record after `t` that is later than its moment: a request has been completed."""
    later = (one.t for one in run.records[t + 1 :] if one.us > run.times[t])
    return next(later, len(run.records) - 1)


def quiet(run: RecordedRun) -> int:
    """The last moment at which an agent could still be reached.

    That is the start of the activation that submitted the accepted answer; without an answer the
    record after the last end of an activation, and after the events that it generated.
    """
    answer = run.answer
    if answer is not None and answer.by in run.activations:
        return run.activations[answer.by].t
    ends = [one.end.t + len(one.outputs) for one in run.activations.values() if one.end]
    return min(max(ends, default=0) + 1, len(run.records) - 1)
