"""AutoGen teams, monitored: a handoff that goes round and round, and an answer without a part.

    python examples/wrap_autogen.py [DIRECTORY]

Two swarms, both run twice: observed, then healed. In the first, two desks of a shop each believe
that the other one is responsible. In the second, somebody gives out two parts at once, of which
AutoGen carries out one, and whoever has that answers for both. The models are scripted; no key,
no network.
"""

import json
import sys
import tempfile
import warnings
from collections.abc import Sequence
from typing import Any

import anyio
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination, TextMentionTermination
from autogen_agentchat.teams import Swarm
from autogen_core import FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage

import dig

warnings.filterwarnings("ignore", "Multiple handoffs detected")  # that is what this is about


class Scripted(ChatCompletionClient):
    """A scripted model: it does one thing, or another one, once a note is in front of it."""

    def __init__(self, usually: Any, when_told: Any = None) -> None:
        self.usually = usually
        self.when_told = when_told or usually

    async def create(self, messages: Sequence[Any], **more: Any) -> CreateResult:
        told = str(messages[-1].content).startswith("[monitor]")
        does = self.when_told if told else self.usually
        if not isinstance(does, str):
            does = [FunctionCall(id=to, name=f"transfer_to_{to}", arguments="{}") for to in does]
        usage = RequestUsage(prompt_tokens=0, completion_tokens=0)
        return CreateResult(finish_reason="stop", content=does, usage=usage, cached=False)

    async def create_stream(self, messages: Sequence[Any], **more: Any) -> Any:
        yield await self.create(messages)

    async def close(self) -> None:
        pass

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(prompt_tokens=0, completion_tokens=0)

    def total_usage(self) -> RequestUsage:
        return self.actual_usage()

    def count_tokens(self, messages: Sequence[Any], **more: Any) -> int:
        return len(json.dumps([str(message) for message in messages]))

    def remaining_tokens(self, messages: Sequence[Any], **more: Any) -> int:
        return 100_000

    @property
    def capabilities(self) -> ModelInfo:
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False, function_calling=True, json_output=False, structured_output=False,
            family="unknown",
        )  # fmt: skip


SHOP = {
    "refunds": Scripted(["billing"], "Paid back. DONE"),
    "billing": Scripted(["refunds"], "Paid back. DONE"),
}
WRITERS = {
    "editor": Scripted(["rain", "snow"]),
    "rain": Scripted("It rains on 140 days. DONE", ["snow"]),
    "snow": Scripted("It rains on 140 days, and snows on 12. DONE"),
}


def tell(finding: dig.Finding) -> None:
    """Findings are told of while the team works."""
    print(f"  found {finding.pattern} at {finding.ts:.2f} s: {finding.evidence}")


async def ask(models: dict[str, Scripted], mode: Any, runs: str, question: str) -> str:
    """Ask a team one question, and say what the monitor has seen and done."""
    print(f"{mode}:")
    agents = [
        AssistantAgent(name, model, handoffs=[other for other in models if other != name])
        for name, model in models.items()
    ]
    enough = TextMentionTermination("DONE") | MaxMessageTermination(12)
    team = dig.wrap(
        Swarm(agents, termination_condition=enough), mode=mode, journal=runs, on_finding=tell
    )
    result = await team.run(task=question)
    session = dig.session_of(team)
    dig.unwrap(team)
    answer = str(result.messages[-1].content)
    print(f"  answer: {answer}")
    print(f"  healed: {session.result().heals or 'nothing'}")
    print(f"  trace and result: {session.directory}")
    print(f"  why: digmon check {session.directory}")
    print(f"  as a page: digmon report {session.directory}\n")
    return answer


def main(runs: str) -> list[str]:
    """Both teams, observed and healed; returns the four answers."""
    asked = ((SHOP, "I was charged twice."), (WRITERS, "A text about rain and snow, please."))
    return [
        anyio.run(ask, models, mode, runs, question)
        for models, question in asked
        for mode in ("observe", "heal")
    ]


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="wrapped-"))
