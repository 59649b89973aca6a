"""Coverage: the provenance of an answer, and the work lost on the way to the answer."""

from __future__ import annotations

from .graph_state import GraphState
from .history import History
from .lineage import Provenance


def provenance(state: GraphState, event: int) -> Provenance:
    """Collect the provenance of a final event, by number.

    An agent whose answer was bounced builds its next one upon it, so the provenance of the latest
    answer of a run is not walked through again.
    """
    history, latest = state.history, state.latest_provenance
    v = history.generator[event]
    if latest is not None and latest.submitter == v:
        return latest
    counts_memory = state.run.memory or not history.inputs(v)
    behind = Provenance(v, counts_memory)
    stack = [v, *history.ended_before(v)] if counts_memory else [v]
    while stack:
        w = stack.pop()
        if w in behind.activations or history.settled[w]:
            continue
        # The walk meets the latest answer: everything behind that is known already.
        if latest is not None and w == latest.submitter and _holds(history, latest, behind):
            behind.take_over(latest)
            latest = None
        else:
            stack += behind.add(history, w)
    state.latest_provenance = behind
    return behind


def _holds(history: History, latest: Provenance, behind: Provenance) -> bool:
    """Whether the answer `behind`, a descendant of `latest.submitter`, contains `latest`."""
    if not latest.counts_memory:
        return True
    agents = (history.agent_of[latest.submitter], history.agent_of[behind.submitter])
    return behind.counts_memory and agents[0] == agents[1]


def unconsumed_work(state: GraphState, behind: Provenance) -> list[int]:
    """The needed work not consumed by anything behind a final event, in order of generation.

    Args:
        state: The graph at the record that generated the final event.
        behind: The event's `provenance`.

    Returns:
        Numbers of work events: problems from outside, and outputs of problem-generating
        activations behind the event; in a session those that the event should answer. Those of
        them that are not open were lost on the way: the event does not cover them (paper, section
        4.4; the AND-join reading of a path from each part to the answer).
    """
    history = state.history
    work = set(behind.parts)
    if not state.run.session:
        work.update(e for e in history.source_events if history.is_work(e))
        return sorted(work - behind.consumed)
    sources = state.problems.standing(behind)
    return sorted(e for e in work if not state.sources_of(e).isdisjoint(sources))
