"""Agents of a team, and words of agents as plain JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.apps import App
from google.adk.events import Event
from google.adk.plugins import BasePlugin
from google.adk.runners import Runner
from google.adk.tools.agent_tool import AgentTool
from google.adk.workflow import BaseNode, Workflow

from dig.adapters.base import as_payload, need_attributes, need_one_name
from dig.errors import SettingsError

IDS = {"function_call": {"id"}, "function_response": {"id"}, "thought_signature": True}
"""Fields of a part that no agent reads, and that are new each time the same is said."""

FINISHES = "finish_task"
"""The name of the tool that ends the work of an agent that another one has given a task."""


def nodes_of(team: Any) -> list[BaseNode]:
    """The nodes in reach of a team: the root, and the agents of each other as tools or below.

    Raises:
        SettingsError: The object is no team, or two agents have the same name.
    """
    need_attributes("Google ADK", (Runner, BaseAgent), ("run_async", "run_live"))
    need_attributes(
        "Google ADK", (BasePlugin,), ("before_model_callback", "on_tool_error_callback")
    )
    root = team.agent if isinstance(team, Runner) else team
    root = root.root_agent if isinstance(root, App) else root
    if not isinstance(root, BaseNode):
        raise SettingsError(f"{type(team).__name__} is no agent, workflow, app or runner")
    nodes, waiting = list[BaseNode](), [root]
    while waiting:
        node = waiting.pop(0)
        if any(node is other for other in nodes):
            continue
        nodes.append(node)
        waiting += getattr(node, "sub_agents", ())
        tools = getattr(node, "tools", ())
        waiting += [tool.agent for tool in tools if isinstance(tool, AgentTool)]
        if isinstance(node, Workflow) and node.graph is not None:
            waiting += node.graph.nodes
    need_one_name(reporters(nodes), "name one of them otherwise")
    return nodes


def is_agent(node: Any) -> bool:
    """Whether a node works itself: a `SequentialAgent`, for instance, only runs other agents."""
    return isinstance(node, LlmAgent) or (isinstance(node, BaseAgent) and not node.sub_agents)


def reporters(nodes: Sequence[BaseNode]) -> tuple[str, ...]:
    """The names in a trace: the agents, and the root."""
    return tuple(node.name for node in nodes if is_agent(node) or node is nodes[0])


def text_of(content: Any) -> str:
    """The text of a message, without the model's thoughts."""
    parts = (content and content.parts) or ()
    return "".join(part.text for part in parts if part.text and not part.thought)


def words_of(content: Any) -> Any:
    """The words of a message: a text, or a list if there is anything else."""
    parts = [part for part in (content and content.parts) or () if part.text is None]
    fields = [part.model_dump(exclude_none=True, exclude=IDS) for part in parts]
    return as_payload([*filter(None, [text_of(content)]), *fields] if fields else text_of(content))


def is_end(event: Event) -> bool:
    """Whether an agent ends with an event: an answer, or the result of a task."""
    results = (r for r in event.get_function_responses() if r.name == FINISHES)
    is_task = any("error" not in (result.response or {}) for result in results)
    return is_task or (bool(event.content or event.error_code) and event.is_final_response())
