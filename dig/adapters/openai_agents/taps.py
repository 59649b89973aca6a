"""Where a run is told of what happens in it, and where notes get to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from agents import Agent, ModelResponse, RunHooks
from agents.lifecycle import RunHooksBase
from agents.run import CallModelData, ModelInputData

if TYPE_CHECKING:
    from .run import Run

Annotate = Callable[[list[Any], tuple[str, ...]], Sequence[Any]]
"""Puts notes into what a model is given: `(input items, notes) -> input items`."""

HOOKS = ("on_llm_start", "on_agent_end", "on_tool_start", "on_tool_end")
"""Hooks that nothing is added to."""


def as_message(items: list[Any], notes: tuple[str, ...]) -> Sequence[Any]:
    """The input of a model with the notes at its end, each a message of the user.

    It is not the system's: a note quotes what agents have said.
    """
    return [*items, *({"role": "user", "content": f"[monitor] {note}"} for note in notes)]


def tapped(options: Mapping[str, Any], run: Run) -> dict[str, Any]:
    """The options of a run, with what tells it of handoffs and gives notes to its models."""
    changed = dict(options)
    hooks = options.get("hooks")
    if hooks is None or isinstance(hooks, RunHooksBase):
        changed["hooks"] = Hooks(run, hooks or RunHooks())
    if run.session.mode == "heal":
        changed["run_config"] = _with_filter(options.get("run_config"), run)
    return changed


def _with_filter(config: Any, run: Run) -> Any:
    key = "call_model_input_filter"
    if config is None or isinstance(config, dict):
        config = config or {}
        return {**config, key: Filter(run, config.get(key))}
    return replace(config, **{key: Filter(run, getattr(config, key))})


class Hooks(RunHooks[Any]):  # type: ignore[misc]
    """The hooks of a run: the caller's own, and what the run must know."""

    def __init__(self, run: Run, hooks: RunHooksBase[Any, Any]) -> None:
        self._run = run
        self._hooks = hooks
        for name in HOOKS:
            setattr(self, name, getattr(hooks, name))

    async def on_agent_start(self, context: Any, agent: Any) -> None:
        """An agent is about to begin; what it is given may be held."""
        await self._run.begun()
        await self._hooks.on_agent_start(context, agent)

    async def on_llm_end(self, context: Any, agent: Agent[Any], response: ModelResponse) -> None:
        """A model has spoken."""
        await self._hooks.on_llm_end(context, agent, response)
        self._run.hear(agent, response)

    async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
        """An agent hands over to another; what that is given may be held."""
        await self._hooks.on_handoff(context=context, from_agent=from_agent, to_agent=to_agent)
        self._run.hand_over(to_agent.name)
        await self._run.begun()


class Filter:
    """Gives notes to a model, after whatever filter the caller has."""

    def __init__(self, run: Run, inner: Any) -> None:
        self._run = run
        self._inner: Any = inner._inner if isinstance(inner, Filter) else inner

    def __call__(self, data: CallModelData[Any]) -> Any:
        """What a model shall be given."""
        given = data.model_data if self._inner is None else self._inner(data)
        return self._later(given) if isawaitable(given) else self._annotated(given)

    async def _later(self, given: Any) -> Any:
        return self._annotated(await given)

    def _annotated(self, given: Any) -> Any:
        if not isinstance(given, ModelInputData):
            return given  # the SDK says what is wrong with it
        items = self._run.annotated(given.input)
        return given if items is None else replace(given, input=items)
