"""An AG2 team, monitored: a handoff that goes round and round, and an agent that falls silent.

    python examples/wrap_ag2.py [DIRECTORY]

Two workflows on a hub, both run twice: observed, then healed. In the first, two desks of a shop
each believe that the other one is responsible. In the second, the model of an agent whose turn it
is says nothing, and the others wait. The models are scripted; no key, no network.
"""

import json
import sys
import tempfile
from typing import Any

import anyio
from ag2 import Agent
from ag2.config import LLMClient, ModelConfig
from ag2.events import ModelMessage, ModelRequest, ModelResponse, ToolCallEvent, ToolCallsEvent
from ag2.knowledge import MemoryKnowledgeStore
from ag2.network import (
    EV_CHANNEL_CLOSED,
    AgentTarget,
    Finish,
    FromSpeaker,
    Handoff,
    Hub,
    HubClient,
    LocalLink,
    Passport,
    Transition,
    TransitionGraph,
)

import dig


class Scripted(ModelConfig, LLMClient):
    """A scripted model: it does one thing, or another one, once a note is in front of it."""

    provider = None
    model = "scripted"

    def __init__(self, usually: Any, when_told: Any) -> None:
        self.usually = usually
        self.when_told = when_told

    def copy(self) -> "Scripted":
        return self

    def create(self) -> "Scripted":
        return self

    def create_files_client(self) -> Any:
        raise NotImplementedError

    async def __call__(self, messages: Any, context: Any, **more: Any) -> ModelResponse:
        asked = messages[-1]
        if not isinstance(asked, ModelRequest):  # a tool has run; there is nothing to add
            return ModelResponse(ModelMessage(""))
        told = any(
            str(getattr(part, "content", "")).startswith("[monitor]") for part in asked.parts
        )
        does = self.when_told if told else self.usually
        if isinstance(does, str):
            return ModelResponse(ModelMessage(does))
        name, arguments = does
        call = ToolCallEvent(name=name, arguments=json.dumps(arguments))
        return ModelResponse(tool_calls=ToolCallsEvent([call]))


async def transfer(desk: str) -> Handoff:
    """Hand the customer to another desk."""
    return Handoff(target=desk)


async def settle(how: str) -> Finish:
    """End the conversation."""
    return Finish(summary=how)


SHOP = {
    "refunds": Scripted(("transfer", {"desk": "billing"}), ("settle", {"how": "Paid back."})),
    "billing": Scripted(("transfer", {"desk": "refunds"}), ("settle", {"how": "Paid back."})),
}
WRITERS = {
    "researcher": Scripted("", "It rains on 140 days a year."),
    "writer": Scripted(("settle", {"how": "A text about rain."}), ""),
}


def tell(finding: dig.Finding) -> None:
    """Findings are told of while the team works."""
    print(f"  found {finding.pattern} at {finding.ts:.2f} s: {finding.evidence}")


async def ask(models: dict[str, Scripted], mode: Any, runs: str, question: str) -> str:
    """Ask a team one question, and say what the monitor has seen and done."""
    print(f"{mode}:")
    hub = await Hub.open(MemoryKnowledgeStore())
    team = dig.wrap(
        hub, mode=mode, journal=runs, on_finding=tell, limits=dig.Limits(mc_window_s=0.5)
    )
    desks = [
        await team.register(Agent(name, config=model, tools=[transfer, settle]))
        for name, model in models.items()
    ]
    link = HubClient(LocalLink(team))
    user = await link.register_human(Passport(name="user"))
    first, second = (desk.agent_id for desk in desks)
    graph = TransitionGraph(
        initial_speaker=user.agent_id,
        transitions=[
            Transition(when=FromSpeaker(user.agent_id), then=AgentTarget(first)),
            Transition(when=FromSpeaker(first), then=AgentTarget(second)),
        ],
        max_turns=12,
    )
    knobs: Any = {"graph": graph.to_dict()}
    channel = await user.open(type="workflow", target=[*models], knobs=knobs)
    await user.send(channel.channel_id, question)
    answer = await heard(user, wait_s=3)
    session = dig.session_of(team)
    dig.unwrap(team)
    print(f"  answer: {answer}")
    print(f"  healed: {session.result().heals or 'nothing'}")
    print(f"  trace and result: {session.directory}")
    print(f"  why: digmon check {session.directory}")
    print(f"  as a page: digmon report {session.directory}\n")
    await link.close()
    await hub.close()
    return answer


async def heard(user: Any, wait_s: float) -> str:
    """What the user hears last before the channel is closed; it gives up after a while."""
    last = ""
    with anyio.move_on_after(wait_s):
        while True:
            envelope = await user.next_envelope()
            if envelope.event_type == EV_CHANNEL_CLOSED:
                return last or f"none: {envelope.event_data['reason']}"
            last = envelope.event_data.get("routing", {}).get("summary", last)
    return "none: nobody speaks"


def main(runs: str) -> list[str]:
    """Both teams, observed and healed; returns the four answers."""
    asked = ((SHOP, "I was charged twice."), (WRITERS, "A text about rain, please."))
    return [
        anyio.run(ask, models, mode, runs, question)
        for models, question in asked
        for mode in ("observe", "heal")
    ]


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="wrapped-"))
