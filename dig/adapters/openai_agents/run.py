"""One run, from its call to its result: which agent has the turn, and what it sends where."""

from __future__ import annotations

import asyncio  # noqa: TID251  the SDK runs on it alone
from collections.abc import Mapping
from functools import partial
from typing import Any, cast

from agents import Agent, ModelResponse, RunState
from agents.run import DEFAULT_MAX_TURNS
from agents.tool_context import ToolContext

from dig.adapters.base import (
    ADAPTER_FAILED,
    AdapterState,
    Guard,
    ToolCalls,
    Turn,
    as_payload,
    enclosing,
    unjson,
)

from .messages import AgentTeam, HandoffMessage, handing_over


def turns_left(result: Any, options: Mapping[str, Any]) -> int | None:
    """The turns that a run has left of those that its caller allows; ``None``: any number."""
    most = options.get("max_turns", DEFAULT_MAX_TURNS)
    return None if most is None else most - len(result.raw_responses)


def _has_turns_left(result: Any, options: Mapping[str, Any]) -> bool:
    left = turns_left(result, options)
    return left is None or left > 0


async def further(runner: Any, result: Any, options: Mapping[str, Any]) -> Any:
    """Go on where a run has ended: its last agent is given all that was said."""
    kept = {name: value for name, value in options.items() if name != "context"}
    kept["max_turns"] = turns_left(result, options)
    given = [] if options.get("session") is not None else result.to_input_list()
    return await runner.run(result.last_agent, given, context=result.context_wrapper, **kept)


def joined(first: Any, second: Any) -> Any:
    """The result of a run that was taken up again, as that of one run."""
    second.input = first.input
    for name in (
        "new_items", "raw_responses", "input_guardrail_results", "output_guardrail_results",
        "tool_input_guardrail_results", "tool_output_guardrail_results",
    ):  # fmt: skip
        setattr(second, name, [*getattr(first, name), *getattr(second, name)])
    return second


NEVER_TOLD = RuntimeError("the SDK has not told what came of this call")
"""Reason in a trace for a tool that the run has left behind; it is never raised."""


class MonitoredRun(AdapterState):
    """One run as a session is told of it; it serves as its present turn, too (`as_turn`).

    After a failure nothing more is reported of it.

    Attributes:
        team: The team of the run.
        turn: The turn of the agent that works; ``None``: what it is given is held.
        outer: The turn or run in whose code this one was begun.
    """

    reports_after_failure = False

    def __init__(
        self, team: AgentTeam, agent: Agent[Any], given: Any, *, caller: MonitoredRun | None = None,
        is_streamed: bool = False, is_kept: bool = False,
    ) -> None:  # fmt: skip
        """Tell the session that an agent is called.

        Args:
            team: The team of the run.
            agent: The agent that begins, or goes on.
            given: The input of the run.
            caller: The run that calls it; ``None``: it is called from outside.
            is_streamed: Whether the run's result is handed over before it is there.
            is_kept: Whether the run's conversation is kept elsewhere, so that it cannot be taken
                up.
        """
        super().__init__(team.session)
        self.team = team
        self.turn: Turn | None = None
        self.outer: Any = None
        self._caller = caller
        self._asker = caller.turn if caller is not None else None
        self._may_bounce = not (is_streamed or is_kept)
        self._answer = ""
        # By the agent that has the turn: its model's latest response.
        self._heard: tuple[Agent[Any], ModelResponse] | None = None
        self._tools = ToolCalls(team.session)
        self._lost: list[str] = []  # handoffs that the SDK has dropped
        payload = {"$resumed": agent.name} if isinstance(given, RunState) else as_payload(given)
        self._question = ""  # the event that it is called with
        self._instance, self._deliveries = agent.name, [""]
        self.step(self._place, payload, default=None)

    # --- as a turn: what other code asks of the turn that runs ---

    @property
    def as_turn(self) -> Turn:
        """This run, where a turn is wanted: what runs inside of it belongs to its turn."""
        return cast(Turn, self)

    @property
    def guard(self) -> Guard:
        """Makes the steps of its session."""
        return self.session.guard

    @property
    def is_open(self) -> bool:
        """Whether an agent of it has the turn."""
        return self.turn is not None and self.turn.is_open

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the monitor for the agent that has the turn."""
        return self.turn.notes if self.turn is not None else ()

    # --- what happens in it ---

    async def begun(self) -> None:
        """Have the agent begin, once what it is given is not held any more; twice does no harm."""
        if self.turn is None:
            await self.session.released(*self._deliveries)
            self.step(self._begin, default=None)

    def hear(self, agent: Agent[Any], response: ModelResponse) -> None:
        """A model has spoken."""
        self._heard = agent, response

    def hand_over(self, to: str) -> None:
        """An agent hands over to another, which `begun` has begin."""
        self.step(self._hand_over, to, default=None)

    async def tool_called(self, call: ToolContext[Any]) -> None:
        """An agent calls a function tool, which begins when no gate keeps the call any more."""
        await self.session.released(self.step(self._call_tool, call, default=""))
        self.step(self._tools.begin, call.tool_call_id, default=None)

    def tool_returned(self, call: ToolContext[Any], result: Any) -> None:
        """A function tool has returned."""
        self.step(self._tools.returned, call.tool_call_id, result, default=None)

    def annotated(self, items: list[Any]) -> list[Any] | None:
        """The input for a model; ``None``: the one that it is given already."""
        return self.step(self._annotated, items, default=None)

    async def is_handed_back(self, result: Any, options: Mapping[str, Any]) -> bool:
        """Hand over a result; says whether it has come back, to be looked at again."""
        has_turns = self.step(_has_turns_left, result, options, default=False)
        self._may_bounce = self._may_bounce and has_turns
        self.step(self._hand, result, default=None)
        await self.session.released(self._answer)
        return self.step(self._came_back, default=False)

    async def once_more(self, runner: Any, result: Any, options: Mapping[str, Any]) -> Any:
        """Run the last agent once more; if that fails, the first result stands."""
        try:
            more = await further(runner, result, options)
        except Exception as error:
            self._may_bounce = False
            detail = {"agent": result.last_agent.name, "why": repr(error)}
            self.step(self.session.guard.incident, "bounce failed", detail, default=None)
            return result
        return joined(result, more)

    def fail(self, error: BaseException) -> None:
        """The run has raised, or was cancelled; nothing may stay open."""
        self.step(self._fail, error, default=None)

    def follow(self, result: Any) -> None:
        """A streamed run has begun: what becomes of it is known when its task is done."""
        result.run_loop_task.add_done_callback(partial(self._streamed, result))

    # --- steps ---

    def on_failure(self) -> None:
        """Drop the request of this run."""
        self.team.has_failed = True
        self._fail(ADAPTER_FAILED)

    def _place(self, payload: Any) -> None:
        """Make the event of the call: a problem, or a message of the calling run."""
        self._instance = self.session.reserve_instance(self._instance)
        if self._caller is None:
            event = self.session.request(payload, (self._instance,))
        else:
            event = self._caller._turn().call(payload, self._instance)
        self._question, self._deliveries = event, [event]
        if not self.session.is_held(event):
            self._begin()

    def _begin(self) -> None:
        if self.turn is None:
            self.turn = self.session.begin(self._instance, self._deliveries)

    def _call_tool(self, call: ToolContext[Any]) -> str:
        arguments = unjson(call.tool_arguments)
        return self._tools.call(call.tool_call_id, self._turn(), call.tool_name, arguments)

    def _hand_over(self, to: str) -> None:
        """End a turn: what it was given goes on if it has said nothing, else what it has said."""
        self._tools.give_up(NEVER_TOLD)
        turn, talk = self._turn(), handing_over(*self._heard) if self._heard else HandoffMessage()
        self._heard = None
        instance = self.session.reserve_instance(to)
        handed = turn.hand_over(
            instance, as_payload(talk.payload(to)), "handoff",
            silent=talk.is_silent, dropped=map(as_payload, talk.lost()),
        )  # fmt: skip
        self._deliveries, self._lost = [*handed.events], [*self._lost, *handed.dropped]
        self._instance, self.turn = instance, None

    def _annotated(self, items: list[Any]) -> list[Any] | None:
        notes, annotate = self._turn().listen(), self.team.annotate
        if not notes or self.team.has_failed:
            return None
        return self.session.guard.call(lambda: [*annotate([*items], notes)], default=None)

    def _hand(self, result: Any) -> None:
        self._tools.give_up(NEVER_TOLD)
        turn, payload = self._turn(), _answer(result)
        if result.interruptions:
            self._gather(turn)
        if self._caller is None:
            is_whole = not (result.interruptions or self.team.has_failed)
            self._answer = turn.submit(payload, bounces=self._may_bounce and is_whole)
        else:
            self._answer = turn.reply(payload, _address(self._asking()))

    def _gather(self, turn: Turn) -> None:
        """A person is waited for: what was dropped is a part of what that is asked."""
        lost, self._lost = self._lost, []
        turn.wait_for(len(lost))
        for event in lost:
            if not self.session.recipients_of(event):
                self.session.redirect(event, (turn.instance,))
            turn.receive(event, at_once=True)

    def _came_back(self) -> bool:
        turn = self._turn()
        if self._caller is None:
            return turn.was_bounced(self._answer)
        self._reply(self._answer)
        return False

    def _reply(self, answer: str) -> None:
        asker = self._asking()
        if asker is not None:
            asker.receive(answer)

    def _asking(self) -> Turn | None:
        """The turn that gets an answer: the one that has asked, or the present one of that run."""
        if self._asker is not None and not self._asker.is_open and self._caller is not None:
            self._asker = self._caller.turn  # a guardrail's answer may come after a handoff
        return self._asker if self._asker is not None and self._asker.is_open else None

    def _turn(self) -> Turn:
        self._begin()
        assert self.turn is not None
        return self.turn

    def _fail(self, error: BaseException) -> None:
        self.session.release(*self._deliveries, self._answer)
        self._tools.give_up(error)
        turn = self._turn()
        if self._caller is None:
            turn.abandon(error, answer=self._answer)
        else:
            asker = self._asking()
            if asker is not None:
                asker.call_failed(self._question)
            self._reply(turn.abandon(error, _address(asker), answer=self._answer))

    def _streamed(self, result: Any, task: asyncio.Task[Any]) -> None:
        """The task of a streamed run is done, so that nothing can be waited for any more."""
        error = _failure(result, task)
        if error is not None:
            self.fail(error)
            return
        self.step(self._hand, result, default=None)
        self.step(self.session.release, self._answer, default=None)
        self.step(self._came_back, default=False)


def running() -> MonitoredRun | None:
    """The run that the running code belongs to, if it has an open turn, or has failed."""
    runs = (one for one in enclosing() if isinstance(one, MonitoredRun))
    return next((run for run in runs if run.is_open or run.has_failed), None)


def _address(turn: Turn | None) -> tuple[str, ...]:
    return () if turn is None else turn.address


def _answer(result: Any) -> Any:
    """The result of a run, or its question to a person before it goes on."""
    if result.interruptions:
        return {"$asks": [as_payload(one.raw_item) for one in result.interruptions]}
    return as_payload(result.final_output)


def _failure(result: Any, task: asyncio.Task[Any]) -> BaseException | None:
    if task.cancelled():
        return asyncio.CancelledError("the stream was cancelled")
    return task.exception() or result._stored_exception
