"""Recipients of a message: the agent at turn, all hearers, or nobody."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ag2 import network
from ag2.network.transport.local import LocalLinkEndpoint


@dataclass(frozen=True)
class EnvelopeRoute:
    """The way of a message.

    Attributes:
        agents: The ids of the agents in this process that are to act on it.
        is_answer: Whether none is: it ends its channel, or reaches people or other processes.
        asks: Whether the message gives the floor of a workflow, which goes on then, to one of
            those.
        is_limit: Whether its channel ends at a number of turns that guards another end.
    """

    agents: tuple[str, ...]
    is_answer: bool
    asks: bool = False
    is_limit: bool = False


def forecast(hub: Any, envelope: Any, awaited: str | None) -> EnvelopeRoute | None:
    """Forecast the way of an envelope before posting; ``None``: no message, or refused.

    Args:
        hub: The hub.
        envelope: The envelope.
        awaited: The agent that waits for a message of this channel, if there is one.
    """
    # A channel's adapter is pure: `fold` and `on_accepted` return a state, and change none.
    metadata = hub._channels.get(envelope.channel_id)
    if metadata is None or metadata.state != network.ChannelState.ACTIVE:
        return None
    adapter, state = hub.adapter_for(envelope.channel_id), hub.adapter_state(envelope.channel_id)
    is_known = envelope.event_type in (network.EV_TEXT, network.EV_PACKET)
    if not is_known and adapter.extract_turn_input(envelope) is None:
        return None
    if envelope.sender_id not in metadata.participant_ids():
        return None
    adapter.validate_send(metadata, envelope, state)  # what it raises, the hub will raise again
    state = adapter.fold(envelope, state)
    if awaited is not None:
        return EnvelopeRoute((awaited,), is_answer=False)
    result = adapter.on_accepted(metadata, envelope, state)
    if result.next_state is not None:
        is_limit = result.auto_close_reason == "max_turns" and _ends_otherwise(metadata, state)
        return EnvelopeRoute((), is_answer=True, is_limit=is_limit)
    expected = adapter.expected_next(metadata, state)
    if expected is not None:
        hearers = [expected.agent_id]
    else:
        audience = envelope.audience
        everybody = metadata.participant_ids() if audience is None else audience
        hearers = [id for id in everybody if id != envelope.sender_id]
    agents = tuple(id for id in hearers if is_here(hub, id))
    is_answer = not agents and any(is_elsewhere(hub, id) for id in hearers)
    asks = is_answer and metadata.manifest.type == "workflow"
    return EnvelopeRoute(agents, is_answer, asks=asks)


def _ends_otherwise(metadata: Any, state: Any) -> bool:
    """Whether a workflow can end by a transition, or by the lack of a next speaker."""
    graph = network.TransitionGraph.loads(state.graph_data)
    if any(isinstance(step.then, network.TerminateTarget) for step in graph.transitions):
        return True
    conditions = [step.when for step in graph.transitions]
    followed = {
        condition.agent_id for condition in conditions if isinstance(condition, network.FromSpeaker)
    }
    is_followed = followed.issuperset(metadata.participant_ids())
    goes_on = is_followed or any(isinstance(condition, network.Always) for condition in conditions)
    return isinstance(graph.default_target, network.TerminateTarget) and not goes_on


def has_floor(hub: Any, channel_id: str, agent_id: str, because: str | None = None) -> bool:
    """Whether a channel waits for an agent to speak; `because`: of a certain envelope."""
    metadata = hub._channels.get(channel_id)
    if metadata is None or metadata.state != network.ChannelState.ACTIVE:
        return False
    adapter = hub.adapter_for(channel_id)
    expected = adapter.expected_next(metadata, hub.adapter_state(channel_id))
    if expected is None or expected.agent_id != agent_id:
        return False
    return because in (None, expected.triggering_envelope_id)


def is_here(hub: Any, agent_id: str) -> bool:
    """Whether a participant is an agent in the process of the hub."""
    passport = hub._passports.get(agent_id)
    is_agent = passport is not None and passport.effective_kind == "agent"
    return is_agent and isinstance(hub._endpoint_for(agent_id), LocalLinkEndpoint)


def is_elsewhere(hub: Any, agent_id: str) -> bool:
    """Whether a participant is a person, or an agent in another process."""
    passport = hub._passports.get(agent_id)
    if passport is None:
        return False
    return passport.effective_kind != "agent" or hub._endpoint_for(agent_id) is not None


def is_handoff(event_data: Mapping[str, Any]) -> bool:
    """Whether a packet only hands over to the next agent."""
    routing = event_data.get("routing") or {}
    return routing.get("kind") == "handoff" and not str(event_data.get("body") or "").strip()
