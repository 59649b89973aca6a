"""The agents of a team: those that take part in its group chats, and whoever talks to them."""

from __future__ import annotations

from collections import Counter
from typing import Any

from autogen import ConversableAgent, GroupChat, GroupChatManager
from autogen.agentchat.group.group_tool_executor import GroupToolExecutor
from autogen.agentchat.group.patterns.pattern import Pattern

from dig.errors import SettingsError

ASKS_MODEL = "_generate_oai_reply_from_client"
"""What every way to ask an agent's model comes through; not public."""

READS = "process_all_messages_before_reply"
"""What gives the messages that an agent replies to, once all hooks have seen them."""


def of(team: Any) -> list[Any]:
    """The agents and managers of a team that are known before it is asked anything.

    Raises:
        SettingsError: It is no team, or two agents are called the same.
    """
    if not hasattr(ConversableAgent, ASKS_MODEL):
        raise SettingsError(f"this AG2 is put together in another way: no {ASKS_MODEL}")
    if is_pattern(team):
        found = [*team.agents, *([team.user_agent] if team.user_agent else [])]
    elif isinstance(team, ConversableAgent):
        found = [team]
    else:
        raise SettingsError(
            f"{type(team).__name__} is no team of AG2 classic; wrap a GroupChatManager, a pattern "
            "of a group chat, or the agent that begins a chat"
        )
    found = [member for agent in found for member in with_members(agent)]
    found = list({id(agent): agent for agent in found}.values())
    twice = [name for name, count in Counter(agent.name for agent in found).items() if count > 1]
    if twice:
        raise SettingsError(f"two agents are called {twice[0]!r}; give each its own name")
    return found


def with_members(agent: Any) -> list[Any]:
    """An agent, and if it manages a group chat, those that take part in it."""
    if not isinstance(agent, ConversableAgent):
        return []  # whatever else can be in a group chat is not asked in the same way
    if not isinstance(agent, GroupChatManager):
        return [agent]
    inner = [member for one in agent.groupchat.agents for member in with_members(one)]
    return [agent, *inner]


def is_agent(agent: Any) -> bool:
    """Whether it acts; managers only say who is next, and a group's tools are its agents' own."""
    return not isinstance(agent, GroupChatManager | GroupToolExecutor)


def group_chats(agent: Any) -> list[Any]:
    """The group chats that an agent manages: AG2 gives a copy to each way of running one."""
    if not isinstance(agent, GroupChatManager):
        return []
    configs = [function["config"] for function in agent._reply_func_list]
    return [config for config in configs if isinstance(config, GroupChat)]


def may_reply(agent: Any, to: Any) -> bool:
    """Whether AG2 has an agent reply once more: at its limit it is silent, or asks a person."""
    most = agent._max_consecutive_auto_reply_dict.get(to, agent.max_consecutive_auto_reply())
    return bool(agent._consecutive_auto_reply_counter.get(to, 0) < most)


def is_pattern(team: Any) -> bool:
    """Whether its manager and some of its agents are made anew for each chat."""
    return isinstance(team, Pattern)
