"""The adapter for each kind of team.

A team is recognised by the module of its class, or of a base class, so no framework is imported;
the adapter's own module is imported when its first team comes.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol, runtime_checkable

from dig.errors import SettingsError

from .base import WrapPlan

KINDS = (
    ("langgraph.", "dig.adapters.langgraph"),
    ("agents.agent.", "dig.adapters.openai_agents"),
    ("autogen_agentchat.", "dig.adapters.autogen"),
    ("autogen_core.", "dig.adapters.autogen"),
    ("agent_framework.", "dig.adapters.agent_framework"),
    ("ag2.", "dig.adapters.ag2"),
    ("pydantic_ai.", "dig.adapters.pydantic_ai"),
    ("google.adk.", "dig.adapters.google_adk"),
    ("a2a.", "dig.adapters.a2a"),
    ("llama_index.", "dig.adapters.llama_index"),
    ("workflows.workflow.", "dig.adapters.llama_index"),
    ("crewai.", "dig.adapters.crewai"),
)
"""Prefixes of the modules of classes, and the modules of adapters; all other teams are `plain`."""

COLLECTED = ("a2a.", "pydantic_ai.", "llama_index.", "workflows.workflow.")
"""The frameworks whose agents may know nothing of each other, so that a team may be several."""

WHOLE = {
    "google.adk.": "the root agent, the Workflow, the App or the Runner",
    "crewai.": "the Crew, or one Agent",
}
"""The frameworks of which a team is one object that knows its agents, and that object."""

SHARED = {"agents.agent.": "agents:Runner", "workflows.workflow.": "workflows.events:StopEvent"}
"""By a prefix that may be a user's own: a module of the framework, and what it has."""

PLAIN = "dig.adapters.plain.adapter"

NOT_YET = (
    "agno", "autogen", "beeai_framework", "camel", "dspy", "haystack",
    "haystack_experimental", "langroid", "letta", "metagpt",
    "semantic_kernel", "smolagents", "starlette", "strands", "swarm", "swarms",
)  # fmt: skip
"""The packages of frameworks without adapter: as plain objects their teams would show no messages
between agents."""


@runtime_checkable
class Adapter(Protocol):
    """The interface of an adapter's module."""

    def plan(self, team: Any, **options: Any) -> WrapPlan:
        """Make the plan for wrapping a team.

        Raises:
            SettingsError: The team, its framework's version or an option does not fit.
        """
        ...


def adapter_of(team: Any) -> Adapter:
    """Import the adapter for a team.

    Raises:
        SettingsError: There is no adapter for the team's framework.
    """
    origins = _origins(team)
    members = [*team.values()] if isinstance(team, Mapping) else team
    if isinstance(members, list | tuple) and members:
        origins += [origin for origin in _origins(members[0]) if origin.startswith(COLLECTED)]
        inner = [origin for member in members for origin in _origins(member)]
        for prefix, whole in WHOLE.items():
            if any(origin.startswith(prefix) for origin in inner):
                raise SettingsError(
                    f"a {type(team).__name__} of agents is no team of {prefix.strip('.')}: give "
                    f"dig.wrap {whole}; of several, wrap each"
                )
    for prefix, module in KINDS:
        if not any(origin.startswith(prefix) for origin in origins):
            continue
        # Users have packages called so of their own.
        package, _, its_own = SHARED.get(prefix, "").partition(":")
        if not package or hasattr(sys.modules.get(package), its_own):
            return _load(module, team)
    refused = next((f for f in NOT_YET if any(o.startswith(f"{f}.") for o in origins)), None)
    if refused is not None:
        move = "move to AG2 1.x, which has one, or " if refused == "autogen" else ""
        raise SettingsError(
            f"a team of {refused} ({type(team).__qualname__}) has no wrapper: {move}wrap the "
            "functions that call its agents, dig.wrap({'NAME': function, ..}), or write an adapter "
            "and give it as adapter=.. (docs/wrapping.md has one in fifty lines)"
        )
    return _load(PLAIN, team)


def _origins(team: Any) -> list[str]:
    """The modules of an object's classes, each with a dot at the end."""
    return [f"{kind.__module__}." for kind in type(team).__mro__]


def _load(module: str, team: Any) -> Adapter:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        kind = f"{type(team).__module__}.{type(team).__qualname__}"
        raise SettingsError(f"there is no wrapper for {kind} yet") from None
