"""AgentChat teams with scripted agents and models, and what is asked of them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from autogen_agentchat import conditions, teams
from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.base import Response, TaskResult
from autogen_agentchat.messages import HandoffMessage, TextMessage
from autogen_core import CancellationToken, FunctionCall, SingleThreadedAgentRuntime
from autogen_core.models import ChatCompletionClient, CreateResult, ModelInfo, RequestUsage

from dig.adapters import autogen

from . import framework_watch
from .harness import Scenario, Script


class Watched(framework_watch.Watched):
    """Wraps teams and runtimes."""

    adapter = autogen


for name in ("autogen_core", "autogen_core.events", "autogen_agentchat.events"):
    logging.getLogger(name).setLevel(logging.CRITICAL + 1)  # they log what agents raise

Act = Callable[[list[str], int], Any]
"""What an agent does: `(texts it is given, number of its turn)` -> text, handoff or exception."""

DONE = "TERMINATE"


class To:
    """Says that somebody else is next."""

    def __init__(self, *agents: str, said: str = "") -> None:
        self.agents = agents
        self.said = said


class Agent(BaseChatAgent):  # type: ignore[misc]
    """A participant without a model: it does what it is told."""

    produced_message_types = (TextMessage, HandoffMessage)

    def __init__(self, script: Script, name: str, act: Act) -> None:
        super().__init__(name, f"This is {name}.")
        self.script = script
        self.act = act

    async def on_messages(self, messages: Sequence[Any], token: CancellationToken) -> Response:
        texts = [message.content for message in messages]
        does = await self.script.act(self.name, self.act, texts)
        if isinstance(does, To):
            (target,) = does.agents
            handoff = HandoffMessage(content=does.said, target=target, source=self.name)
            return Response(chat_message=handoff)
        return Response(chat_message=TextMessage(content=does, source=self.name))

    async def on_reset(self, token: CancellationToken) -> None:
        self.script.log.append((self.name, "reset", ""))


class Model(ChatCompletionClient):  # type: ignore[misc]
    """A model without a network, behind an `AssistantAgent` or a manager."""

    component_type = "model"
    component_config_schema = None

    def __init__(self, script: Script, name: str, act: Act) -> None:
        self.script = script
        self.name = name
        self.act = act

    async def create(self, messages: Sequence[Any], **more: Any) -> CreateResult:
        texts = [str(message.content) for message in messages[-4:]]
        does = await self.script.act(self.name, self.act, texts)
        if isinstance(does, To):
            does = [call(f"transfer_to_{agent}") for agent in does.agents]
        return CreateResult(
            finish_reason="stop", content=does, usage=RequestUsage(1, 1), cached=False
        )

    async def create_stream(self, messages: Sequence[Any], **more: Any) -> AsyncIterator[Any]:
        result = await self.create(messages)
        if isinstance(result.content, str):
            for word in result.content.split():
                yield word
        yield result

    async def close(self) -> None: ...

    def actual_usage(self) -> Any:
        return RequestUsage(0, 0)

    total_usage = actual_usage

    def count_tokens(self, messages: Any, **more: Any) -> int:
        return 0

    def remaining_tokens(self, messages: Any, **more: Any) -> int:
        return 1000

    @property
    def capabilities(self) -> Any:
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False, function_calling=True, json_output=True, structured_output=False,
            family="unknown",
        )  # fmt: skip


def call(name: str, **arguments: Any) -> FunctionCall:
    return FunctionCall(id=f"call_{name}", name=name, arguments=json.dumps(arguments))


def says(*texts: str) -> Act:
    return lambda given, number: texts[min(number, len(texts)) - 1]


def is_told(texts: Sequence[str]) -> bool:
    return any("[monitor]" in text for text in texts)


def assistant(script: Script, name: str, act: Act, **more: Any) -> AssistantAgent:
    return AssistantAgent(name, Model(script, name, act), **more)


def two_handoffs(script: Script) -> AssistantAgent:
    """Ann hands over to Bob and Cyd at once, of whom AutoGen takes the first."""
    return assistant(script, "ann", lambda texts, n: To("bob", "cyd"), handoffs=["bob", "cyd"])


def agents(script: Script, **acts: Act) -> list[Agent]:
    return [Agent(script, name, act) for name, act in acts.items()]


def flow(people: Sequence[Any], *edges: str, end: Any = None, **conditions: Any) -> Any:
    """A graph of agents.

    Args:
        people: The agents.
        edges: Who speaks after whom: `ann bob`.
        end: The condition at which it ends before its end.
        conditions: Those of the edges to some agents.
    """
    named, built = {one.name: one for one in people}, teams.DiGraphBuilder()
    for one in people:
        built.add_node(one)
    for source, target in map(str.split, edges):
        built.add_edge(named[source], named[target], condition=conditions.get(target))
    return teams.GraphFlow([*people], graph=built.build(), termination_condition=end)


def until(most: int = 12) -> Any:
    return conditions.TextMentionTermination(DONE) | conditions.MaxMessageTermination(most)


# --- what is asked ---


def shown(message: Any) -> Any:
    if isinstance(message, TaskResult):
        return [message.stop_reason, [shown(one) for one in message.messages]]
    return message.type, getattr(message, "source", ""), str(message.content)


async def ask(team: Any, task: Any = "What now?") -> Any:
    return shown(await team.run(task=task))


async def stream(team: Any) -> Any:
    return [shown(message) async for message in team.run_stream(task="What now?")]


async def ask_twice(team: Any) -> Any:
    return [await ask(team), await ask(team, "And then?"), await ask(team, None)]


async def ask_after_reset(team: Any) -> Any:
    first = await ask(team)
    await team.reset()
    state = await team.save_state()
    await team.load_state(state)
    return [first, await ask(team), sorted(state["agent_states"])]


async def cancelled(team: Any) -> Any:
    """The run is cancelled by its token while an agent speaks; AutoGen itself may hang then."""
    token = CancellationToken()
    asyncio.get_running_loop().call_later(0.15, token.cancel)
    async with asyncio.timeout(60):
        return shown(await team.run(task="What now?", cancellation_token=token))


async def left_alone(team: Any) -> Any:
    """Whoever listens has heard enough."""
    heard = []
    listening = team.run_stream(task="What now?")
    async for message in listening:
        heard.append(shown(message))
        if len(heard) == 2:
            break
    await listening.aclose()
    return [heard, await ask(team, "Again")]


async def caught_and_again(team: Any) -> Any:
    try:
        await team.run(task="What now?")
    except RuntimeError as error:
        return [str(error).splitlines()[0], await ask(team, "Again")]
    return "nothing was raised"


# --- teams ---

WORK: dict[str, Act] = {"ann": says("A part", DONE), "bob": says("More", "Even more")}


def round_robin(script: Script) -> Any:
    return teams.RoundRobinGroupChat(agents(script, **WORK), termination_condition=until())


def limited(script: Script) -> Any:
    return teams.RoundRobinGroupChat(agents(script, **WORK), max_turns=2)


def events_told(script: Script) -> Any:
    return teams.RoundRobinGroupChat(
        agents(script, **WORK), termination_condition=until(), emit_team_events=True
    )


def selector(script: Script) -> Any:
    """A model chooses; once it names nobody, and is asked again."""
    chooses = Model(script, "chooser", says("bob", "nobody", "ann", "bob"))
    return teams.SelectorGroupChat(
        agents(script, ann=says(DONE), bob=says("One")), chooses, termination_condition=until()
    )


def swarm(script: Script) -> Any:
    """Handoffs with models and tools: of `bob` to `cyd` after a tool."""

    async def look_up(what: str) -> str:
        """Look something up."""
        return f"{what}: 42"

    two = {1: [call("look_up", what="it")], 2: To("cyd")}
    return teams.Swarm(
        [
            assistant(script, "ann", lambda texts, number: To("bob"), handoffs=["bob"]),
            assistant(
                script, "bob", lambda texts, number: two.get(number, To("cyd")),
                handoffs=["cyd"], tools=[look_up], reflect_on_tool_use=False,
                max_tool_iterations=3,
            ),
            assistant(script, "cyd", says(DONE), model_client_stream=True),
        ],
        termination_condition=until(),
    )  # fmt: skip


def dropping(script: Script) -> Any:
    """Two handoffs at once, of which AutoGen carries out one; the other one is made up for."""
    others = agents(script, bob=lambda texts, number: To("cyd", said="Yours"), cyd=says(DONE))
    return teams.Swarm([two_handoffs(script), *others], termination_condition=until())


def handing_to_user(script: Script) -> Any:
    return teams.Swarm(
        agents(script, ann=lambda texts, number: To("user", said="Which one?")),
        termination_condition=conditions.HandoffTermination("user"),
    )


async def ask_and_answer(team: Any) -> Any:
    first = await ask(team)
    answer = HandoffMessage(source="user", target="ann", content="The left one")
    return [first, await ask(team, answer)]


def graph(script: Script) -> Any:
    """Two branches that are joined, and a leaf beside them."""
    people = agents(
        script, ann=says("Split"), bob=says("Left"), cyd=says("Right"), dan=says("Both"),
        eve=says("Aside"),
    )  # fmt: skip
    return flow(people, "ann bob", "ann cyd", "bob dan", "cyd dan", "cyd eve")


def several_first(script: Script) -> Any:
    """Two begin at once, and one of them takes longer than a round."""
    people = agents(script, ann=says("One"), bob=says("Two"), cyd=says("Sum"))
    return flow(people, "ann cyd", "bob cyd")


def ledger(speaker: str, done: bool) -> str:
    answers = {
        "is_request_satisfied": done, "is_in_loop": False, "is_progress_being_made": True,
        "next_speaker": speaker, "instruction_or_question": f"Go on, {speaker}",
    }  # fmt: skip
    return json.dumps({name: {"reason": "so", "answer": one} for name, one in answers.items()})


def magentic(script: Script) -> Any:
    plan = ("Facts", "Plan", ledger("bob", False), ledger("ann", False), ledger("ann", True), "42")
    return teams.MagenticOneGroupChat(
        agents(script, ann=says("From Ann"), bob=says("From Bob")),
        Model(script, "orchestrator", says(*plan)),
    )


def nested(script: Script) -> Any:
    """A team as a participant."""
    inner = teams.RoundRobinGroupChat(agents(script, cyd=says("In"), dan=says("Out")), max_turns=2)
    inner._name = "inner"
    return teams.RoundRobinGroupChat(
        [*agents(script, ann=says("A part", DONE)), inner], termination_condition=until()
    )


def elsewhere(script: Script) -> Any:
    """A team on a runtime of the host's own."""
    return teams.RoundRobinGroupChat(
        agents(script, **WORK), termination_condition=until(), runtime=SingleThreadedAgentRuntime()
    )


async def ask_elsewhere(team: Any) -> Any:
    team._runtime.start()
    result = await ask_twice(team)
    await team._runtime.stop_when_idle()
    return result


def raises(texts: list[str], number: int) -> Any:
    return ValueError("no model today") if number == 1 else DONE


def failing(script: Script) -> Any:
    return teams.RoundRobinGroupChat(
        agents(script, ann=says("A part"), bob=raises), termination_condition=until()
    )


def failing_beside(script: Script) -> Any:
    """One of two branches fails, while the other one works."""
    people = agents(script, ann=says("Split"), bob=raises, cyd=says("Right"))
    return flow(people, "ann bob", "ann cyd")


def choosing_wrong(script: Script) -> Any:
    """The manager itself raises: nobody is called so."""
    return teams.SelectorGroupChat(
        agents(script, ann=says("One"), bob=says("Two")),
        Model(script, "chooser", says("ann")),
        selector_func=lambda thread: "nobody" if len(thread) > 1 else "ann",
        termination_condition=until(),
    )


def scenario(build: Callable[[Script], Any], drive: Callable[[Any], Any] = ask) -> Scenario:
    return Scenario(f"{build.__name__}-{drive.__name__}", build, drive)


SCENARIOS = [
    *(
        scenario(build, drive)
        for build in (round_robin, selector, swarm, graph)
        for drive in (ask, stream, ask_twice, cancelled)
    ),
    *(scenario(build) for build in (limited, events_told, several_first, magentic, nested)),
    *(scenario(round_robin, drive) for drive in (ask_after_reset, left_alone)),
    *(scenario(build) for build in (dropping, failing, failing_beside, choosing_wrong)),
    scenario(failing, caught_and_again),
    scenario(magentic, stream),
    scenario(handing_to_user, ask_and_answer),
    scenario(elsewhere, ask_elsewhere),
]
