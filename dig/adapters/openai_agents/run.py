"""One run, from its call to its result: which agent has the turn, and what it sends where."""

from __future__ import annotations

import asyncio  # noqa: TID251  the SDK runs on it alone
from collections.abc import Mapping
from functools import partial
from traceback import walk_tb
from typing import Any, cast

from agents import Agent, MaxTurnsExceeded, ModelResponse, RunState
from agents.run import DEFAULT_MAX_TURNS
from agents.tool_context import ToolContext

from dig.adapters.base import (
    ADAPTER_FAILED,
    AdapterState,
    CalledOffError,
    Guard,
    ToolCalls,
    Turn,
    as_payload,
    enclosing,
    unjson,
)
from dig.graph.records import HANDOFF, Failure

from .messages import AgentTeam, HandoffMessage, handing_over, words_of


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


NEVER_TOLD = CalledOffError("the SDK has not told what came of this call")
"""The reason in a trace for a tool that the run has left behind."""

CALLED_OFF = CalledOffError("the run ended before this did")
"""The reason in a trace for what was at work, or waited for a person, when a run failed."""

STREAM_CANCELLED = CalledOffError("the stream was cancelled")
"""The reason in a trace for a run whose caller wants no more of its stream."""

FORGOTTEN = CalledOffError("too many runs wait for a person, and this one waits longest")
"""The reason in a trace for a run whose person is not waited for any more."""


class MonitoredRun(AdapterState):
    """One run as a session is told of it; it serves as its present turn, too (`as_turn`).

    After a failure nothing more is reported of it.

    Attributes:
        team: The team of the run.
        caller: The run that has called it; ``None``: it was called from outside.
        turn: The turn of the agent that works; ``None``: what it is given is held.
        outer: The turn or run in whose code this one was begun.
    """

    reports_after_failure = False
    turn: Turn | None = None

    def __init__(
        self, team: AgentTeam, agent: Agent[Any], given: Any, *, caller: MonitoredRun | None = None,
        may_bounce: bool = True,
    ) -> None:  # fmt: skip
        """Tell the session that an agent is called.

        Args:
            team: The team of the run.
            agent: The agent that begins, or goes on.
            given: The input of the run.
            caller: The run that calls it; ``None``: it is called from outside.
            may_bounce: Whether the answer can come back: not if it is handed over before it is
                there, nor if the conversation is kept elsewhere.
        """
        super().__init__(team.session)
        self.team = team
        self.outer: Any = None
        self.caller = caller
        self._asker = caller.turn if caller is not None else None
        self._may_bounce = may_bounce
        self._answer = ""
        # By the agent that has the turn: its model's latest response.
        self._heard: tuple[Agent[Any], ModelResponse] | None = None
        self._next = ""  # the agent that is handed over to, and has not begun
        self._tools = ToolCalls(team.session)
        name = team.name_of(agent)
        payload = {"$resumed": name} if isinstance(given, RunState) else words_of(given)
        self._question = ""  # the event that it is called with
        self._instance, self._deliveries = name, [""]
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

    def __getattr__(self, name: str) -> Any:
        """Anything else that is asked of a turn: the present one says it, or one that is over."""
        turn = self.turn
        if turn is None:
            turn = Turn(self.guard, self.session.holds, "", ())
            turn.is_open = False
        return getattr(turn, name)

    # --- what happens in it ---

    async def begun(self) -> None:
        """Have the agent begin, once what it is given is not held any more; twice does no harm."""
        if self._next:
            self.step(self._hand_over, default=None)
        if self.turn is None:
            await self.session.wait_until_released(*self._deliveries)
            self.step(self._begin, default=None)

    def hear(self, agent: Agent[Any], response: ModelResponse) -> None:
        """A model has spoken."""
        self._heard = agent, response

    def hand_over(self, to: Agent[Any]) -> None:
        """An agent hands over to another; what the SDK raises before that begins is its error."""
        self._next = self.team.name_of(to)

    def resume(self, *, may_bounce: bool) -> None:
        """Go on after an approval; the answer may go back or not."""
        self._may_bounce = may_bounce
        self.step(self._resume, default=None)

    async def tool_called(self, call: ToolContext[Any]) -> None:
        """An agent calls a function tool, which begins when no gate keeps the call any more."""
        await self.session.wait_until_released(self.step(self._call_tool, call, default=""))
        self.step(self._tools.begin, call.tool_call_id, default=None)

    def tool_returned(self, call: ToolContext[Any], result: Any) -> None:
        """A function tool has returned."""
        self.step(self._tools.complete, call.tool_call_id, result, default=None)

    def annotated(self, items: list[Any]) -> list[Any] | None:
        """The input for a model; ``None``: the one that it is given already."""
        return self.step(self._annotated, items, default=None)

    async def is_handed_back(self, result: Any, options: Mapping[str, Any]) -> bool:
        """Hand over a result; says whether it has come back, to be looked at again."""
        has_turns = self.step(_has_turns_left, result, options, default=False)
        self._may_bounce = self._may_bounce and has_turns
        self.step(self._hand, result, default=None)
        await self.session.wait_until_released(self._answer)
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
        if self.caller is None:
            event = self.session.request(payload, (self._instance,))
        else:
            event = self.caller._turn().call(payload, self._instance)
        self._question, self._deliveries = event, [event]
        if not self.session.is_held(event):
            self._begin()

    def _begin(self) -> None:
        if self.turn is None:
            self.turn = self.session.begin(self._instance, self._deliveries)

    def _resume(self) -> None:
        self._turn().resumes()

    def _call_tool(self, call: ToolContext[Any]) -> str:
        arguments = unjson(call.tool_arguments)
        return self._tools.call(call.tool_call_id, self._turn(), call.tool_name, arguments)

    def _hand_over(self) -> None:
        """End a turn: what it was given goes on if it has said nothing, else what it has said."""
        self._tools.give_up(NEVER_TOLD)
        to, turn, talk = self._next, self._turn(), HandoffMessage()
        if self._heard is not None:
            talk = handing_over(self.team, *self._heard)
        self._heard, self._next = None, ""
        instance = self.session.reserve_instance(to)
        handed = turn.hand_over(
            instance, as_payload(talk.payload(to)), HANDOFF,
            silent=talk.is_silent, dropped=map(as_payload, talk.lost()),
        )  # fmt: skip
        self._deliveries = [*handed.events]
        self._instance, self.turn = instance, None

    def _annotated(self, items: list[Any]) -> list[Any] | None:
        notes, annotate = self._turn().listen(), self.team.annotate
        if not notes or self.team.has_failed:
            return None
        return self.session.guard.call(lambda: [*annotate([*items], notes)], default=None)

    def _hand(self, result: Any) -> None:
        self._tools.give_up(NEVER_TOLD)
        turn, self._answer = self._turn(), ""
        if result.interruptions:
            self._wait(turn, result)
            return
        for run, calls in self.team.waiting.take_inner(self):
            run._answer_caller({"$asks": [as_payload(call) for call in calls]})
        payload = as_payload(result.final_output)
        if self.caller is None:
            bounces = self._may_bounce and not self.team.has_failed
            self._answer = turn.submit(payload, bounces=bounces)
        else:
            self._answer = turn.reply(payload, _address(self._asking()))

    def _wait(self, turn: Turn, result: Any) -> None:
        """A person is waited for, and the turn goes on when the state of the run is resumed."""
        turn.waits()
        self._heard = None
        for run in self.team.waiting.add(self, result.interruptions):
            run._fail(FORGOTTEN)

    def _answer_caller(self, payload: Any) -> None:
        """The caller goes on with what it has, although this run waits for a person."""
        self._reply(self._turn().reply(payload, _address(self._asking())))

    def _came_back(self) -> bool:
        if not self._answer:  # it waits, or nobody hears of its end
            return False
        if self.caller is None:
            return self._turn().was_bounced(self._answer)
        self._reply(self._answer)
        return False

    def _reply(self, answer: str) -> None:
        asker = self._asking()
        if asker is not None:
            asker.receive(answer)

    def _asking(self) -> Turn | None:
        """The turn that gets an answer: the one that has asked, or the present one of that run."""
        if self._asker is not None and not self._asker.is_open and self.caller is not None:
            self._asker = self.caller.turn  # a guardrail's answer may come after a handoff
        return self._asker if self._asker is not None and self._asker.is_open else None

    def _turn(self) -> Turn:
        self._begin()
        assert self.turn is not None
        return self.turn

    def _fail(self, error: BaseException) -> None:
        self.session.release(*self._deliveries, self._answer)
        for call in _calls_around(error):
            self._tools.fail(call, error)
        self._tools.give_up(CALLED_OFF)
        for run, _ in self.team.waiting.take_inner(self):
            run._fail(CALLED_OFF)
        if self.caller is None:
            how: Failure = "limit" if isinstance(error, MaxTurnsExceeded) else "error"
            self._turn().abandon(error, answer=self._answer, kind=how)
            return
        asker = self._asking()
        if asker is not None:
            asker.call_failed(self._question)
        if self.turn is None and asker is not None:  # the agent never ran
            self.session.withdraw(self._instance, self._deliveries, asker.instance)
            for event in self._deliveries:
                asker.receive(event)
            return
        self._reply(self._turn().abandon(error, _address(asker), answer=self._answer))

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


def _calls_around(error: BaseException) -> set[str]:
    """The ids of the calls of tools in whose code an error was raised."""
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    places = (value for frame in frames for value in frame.f_locals.values())
    return {value.tool_call_id for value in places if isinstance(value, ToolContext)}


def _failure(result: Any, task: asyncio.Task[Any]) -> BaseException | None:
    if task.cancelled():
        return STREAM_CANCELLED
    is_left = result._cancel_mode != "none" and result.final_output is None
    left = STREAM_CANCELLED if is_left and not result.interruptions else None
    return task.exception() or result._stored_exception or left
