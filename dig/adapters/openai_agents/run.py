"""A run, from call to result: the agent at turn, and messages to other agents."""

from __future__ import annotations

import asyncio  # noqa: TID251  the SDK runs on it alone
from collections.abc import Mapping
from contextlib import suppress
from traceback import walk_tb
from typing import Any, cast

from agents import Agent, AgentsException, ItemHelpers, MaxTurnsExceeded, ModelResponse, RunState
from agents.run import DEFAULT_MAX_TURNS
from agents.tool_context import ToolContext

from dig.adapters import base
from dig.errors import BudgetExceeded
from dig.graph.records import HANDOFF, Failure

from .messages import AgentTeam, HandoffMessage, handing_over, question, words_of


def remaining_turns(result: Any, options: Mapping[str, Any]) -> int | None:
    """The turns of a caller's limit not used by a run yet; ``None``: any number."""
    limit = options.get("max_turns", DEFAULT_MAX_TURNS)
    return None if limit is None else limit - len(result.raw_responses)


def _has_turns(result: Any, options: Mapping[str, Any]) -> bool:
    turns = remaining_turns(result, options)
    return turns is None or turns > 0


async def continue_run(runner: Any, result: Any, options: Mapping[str, Any]) -> Any:
    """Continue an ended run, as a single run: the last agent is given the whole conversation."""
    options = {**options, "max_turns": remaining_turns(result, options)}
    return await _run_on(runner, result, result.last_agent, result.to_input_list(), options)


async def _run_on(
    runner: Any, first: Any, agent: Agent[Any], inputs: list[Any], options: Mapping[str, Any]
) -> Any:
    """Run an agent after the items of a first run, and join the results."""
    # A session of the SDK has the conversation already: to give it again would double it.
    inputs = [] if options.get("session") is not None else inputs
    second = await runner.run(agent, inputs, **{**options, "context": first.context_wrapper})
    second.input = first.input
    for name in (
        "new_items", "raw_responses", "input_guardrail_results", "output_guardrail_results",
        "tool_input_guardrail_results", "tool_output_guardrail_results",
    ):  # fmt: skip
        setattr(second, name, [*getattr(first, name), *getattr(second, name)])
    return second


NEVER_TOLD = base.CalledOffError("the SDK has not told what came of this call")
"""The reason in a trace for a tool that the run has left behind."""

CALLED_OFF = base.CalledOffError("the run ended before this did")
"""The reason in a trace for what was at work, or waited for a person, when a run failed."""

STREAM_CANCELLED = base.CalledOffError("the stream was cancelled")
"""The reason in a trace for a run whose caller wants no more of its stream."""

FORGOTTEN = base.CalledOffError("too many runs wait for a person, and this one waits longest")
"""The reason in a trace for a run whose person is not waited for any more."""

RESUMES = "call approve() or reject() on the run's state, and run the agent with that"
"""The way to answer the question for an approval."""


class MonitoredRun(base.AdapterState):
    """A run, as reported to a session; serves as the present turn too (`as_turn`).

    After a failure nothing more is reported of it.

    Attributes:
        team: The team of the run.
        caller: The run that has called it; ``None``: it was called from outside.
        response: The latest response of a model in the present turn, with the agent.
        turn: The turn of the agent that works; ``None``: what it is given is held.
        outer: The turn or run in whose code this one was begun.
    """

    reports_after_failure = False
    turn: base.Turn | None = None

    def __init__(
        self, team: AgentTeam, agent: Agent[Any], inputs: Any, *,
        caller: MonitoredRun | None = None, may_bounce: bool = True, is_streamed: bool = False,
    ) -> None:  # fmt: skip
        """Tell the session that an agent is called.

        Args:
            team: The team of the run.
            agent: The agent that begins, or goes on.
            inputs: The input of the run.
            caller: The run that calls it; ``None``: it is called from outside.
            may_bounce: Whether the answer can come back: not if it is handed over before it is
                there, nor if the conversation is kept elsewhere.
            is_streamed: Whether its caller is given a stream.
        """
        super().__init__(base.draw_session(team.session, caller))
        self._is_streamed, self._is_last = is_streamed, False
        self.team = team
        self.outer: Any = None
        self.caller = caller
        self._asker = caller.turn if caller is not None else None
        self._may_bounce = may_bounce
        self._answer = ""
        self.response: tuple[Agent[Any], ModelResponse] | None = None
        self._next = ""  # the agent that is handed over to, and has not begun
        self._tools = base.ToolCalls(self.session)
        self._seats = base.Seats(self.session.instances)  # of agents that have handed over
        name = team.name_of(agent)
        payload = {"$resumed": name} if isinstance(inputs, RunState) else words_of(inputs)
        self._question = ""  # the event that it is called with
        self._instance, self._deliveries = name, [""]
        self.step(self._place, payload, default=None)

    # --- as a turn: what other code asks of the turn that runs ---

    @property
    def as_turn(self) -> base.Turn:
        """The run, where a turn is wanted: inner code belongs to the run's present turn."""
        return cast(base.Turn, self)

    @property
    def guard(self) -> base.Guard:
        """The guard of the session."""
        return self.session.guard

    def __getattr__(self, name: str) -> Any:
        """Delegate to the present turn, or to a turn already over."""
        turn = self.turn
        if turn is None:
            turn = base.Turn(self.guard, self.session.holds, "", ())
            turn.is_open = False
        return getattr(turn, name)

    # --- what happens in it ---

    async def wait_to_begin(self) -> None:
        """Begin the agent's turn after the release of the input; twice does no harm."""
        if self._next:
            self.step(self._hand_over, default=None)
        if self.turn is None:
            await self.session.wait_until_released(*self._deliveries)
            self.check_budget(*self._deliveries)
            self.step(self._begin, default=None)

    def check_budget(self, *events: str) -> None:
        """Refuse a turn about some events, or without events the next call of a model in a turn.

        Raises:
            MaxTurnsExceeded: There is no budget; of a stream from outside `BudgetExceeded`.
        """
        if self.session.budget is None or self._is_last or self.has_failed:
            return
        within = "" if events else "turns"
        events = events or tuple(event.id for event in self._turn().events)
        session = self.session
        account = session.guard.run(lambda: session.refuses(*events, but=within), default=None)
        if account is not None:
            is_final = self.caller is None and (self._is_streamed or not account.entry)
            raise account.exceeded() if is_final else MaxTurnsExceeded(account.note)

    async def last_turn(self, runner: Any, error: AgentsException, options: Any) -> Any:
        """Run the entry agent once after an error at a limit of the budget; else raise the error.

        Raises:
            BudgetExceeded: The agent has handed over, called a tool or raised.
        """
        account = self.step(self.session.stopped_by, error, self._question, default=None)
        data = error.run_data
        if account is None or self.caller is not None or data is None:
            raise error
        inputs = ItemHelpers.input_to_new_input_list(data.input)
        inputs += [item.to_input_item() for item in data.new_items]
        agent, self._may_bounce, self._is_last = self.team.agents.get(account.entry), False, True
        if agent is not None and self.step(self.session.hand_back, account, default=False):
            self.step(self._begin_last, account.entry, default=None)
            inputs = [*self.team.annotate(inputs, (account.note,))]
            with suppress(Exception):
                return await _run_on(runner, data, agent, inputs, {**options, "max_turns": 1})
        raise account.exceeded() from error

    def hand_over(self, to: Agent[Any]) -> None:
        """Note the next agent; an error before the next turn is still the old agent's."""
        self._next = self.team.name_of(to)

    def resume(self, *, may_bounce: bool) -> None:
        """Go on after an approval; the answer may go back or not."""
        self._may_bounce = may_bounce
        self.step(self._resume, default=None)

    async def tool_called(self, call: ToolContext[Any]) -> None:
        """Begin a function tool after the release of the call."""
        await self.session.wait_until_released(self.step(self._call_tool, call, default=""))
        self.step(self._tools.begin, call.tool_call_id, default=None)

    async def tool_returned(self, call: ToolContext[Any], result: Any) -> None:
        """Hand over a function tool's result, after its release."""
        event = self.step(self._tools.complete, call.tool_call_id, result, default="")
        await self.session.wait_until_released(event)
        self.step(self._tools.receive, call.tool_call_id, default=None)

    def annotate_input(self, items: list[Any]) -> list[Any] | None:
        """The input of a model with notes; ``None``: no change."""
        return self.step(self._annotate, items, default=None)

    async def is_handed_back(self, result: Any, options: Mapping[str, Any]) -> bool:
        """Hand over a result; returns whether the result came back."""
        has_turns = self.step(_has_turns, result, options, default=False)
        self._may_bounce = self._may_bounce and has_turns
        self.step(self._hand, result, default=None)
        await self.session.wait_until_released(self._answer)
        return self.step(self._came_back, default=False)

    async def once_more(self, runner: Any, result: Any, options: Mapping[str, Any]) -> Any:
        """Run the last agent once more; after a failure, the first result stands."""
        try:
            return await continue_run(runner, result, options)
        except Exception as error:
            self._may_bounce = False
            detail = {"agent": result.last_agent.name, "why": repr(error)}
            self.step(self.session.guard.incident, "bounce failed", detail, default=None)
            return result

    def fail(self, error: BaseException) -> None:
        """The run has raised, or was cancelled; nothing may stay open."""
        self.step(self._fail, error, default=None)

    # --- steps ---

    def on_failure(self) -> None:
        """Drop the request of the run."""
        self.team.has_failed = True
        self._fail(base.ADAPTER_FAILED)

    def _place(self, payload: Any) -> None:
        """Make the event of the call: a problem, or a message of the calling run."""
        self._instance = self.session.reserve_instance(self._instance)
        if self.caller is None:
            event = self.session.request(payload, (self._instance,))
        else:
            event = self.caller._turn().call(payload, self._instance)
        self._question, self._deliveries = event, [event]
        if self.session.budget is None and not self.session.is_held(event):
            self._begin()

    def _begin(self) -> None:
        if self.turn is None:
            self.turn = self.session.begin(self._instance, self._deliveries)

    def _begin_last(self, entry: str) -> None:
        """Begin a turn of the entry agent in place of the refused or interrupted turn."""
        self._tools.give_up(NEVER_TOLD)
        instance, self.response = self._seats.take(entry), None
        if self.turn is None and instance != self._instance:
            self.session.withdraw(self._instance, self._deliveries, instance)
        elif self.turn is not None:
            self._deliveries = [self.turn.end(None, (instance,), "notice")]
        self._instance, self.turn = instance, None
        self._begin()

    def _resume(self) -> None:
        self._turn().resumes()

    def _call_tool(self, call: ToolContext[Any]) -> str:
        arguments = base.unjson(call.tool_arguments)
        return self._tools.call(call.tool_call_id, self._turn(), call.tool_name, arguments)

    def _hand_over(self) -> None:
        """End a turn: a silent agent's input goes on, else the agent's words."""
        self._tools.give_up(NEVER_TOLD)
        to, turn, talk = self._next, self._turn(), HandoffMessage()
        if self.response is not None:
            talk = handing_over(self.team, *self.response)
        self.response, self._next = None, ""
        self._seats.keep(turn.instance)
        instance = self._seats.take(to)
        handed = turn.hand_over(
            instance, base.as_payload(talk.payload(to)), HANDOFF,
            silent=talk.is_silent, dropped=map(base.as_payload, talk.ignored_payloads()),
        )  # fmt: skip
        self._deliveries = [*handed.events]
        self._instance, self.turn = instance, None

    def _annotate(self, items: list[Any]) -> list[Any] | None:
        notes, annotate = self._turn().listen(), self.team.annotate
        if not notes or self.team.has_failed:
            return None
        return self.session.guard.call(lambda: [*annotate([*items], notes)], default=None)

    def _hand(self, result: Any) -> None:
        self._tools.give_up(NEVER_TOLD)
        turn, self._answer = self._turn(), ""
        if result.interruptions:
            # Until the state of the run is resumed.
            turn.waits(question(result.interruptions), RESUMES)
            self.response = None
            for run in self.team.waiting.add(self, result.interruptions):
                run._fail(FORGOTTEN)
            return
        # The caller goes on without the runs inside that wait for a person.
        for run, calls in self.team.waiting.take_inner(self):
            asks = {"$asks": [base.as_payload(call) for call in calls]}
            run._reply(run._turn().reply(asks, run._caller_address()))
        payload = base.as_payload(result.final_output)
        if self.caller is None:
            bounces = self._may_bounce and not self.team.has_failed
            self._answer = turn.submit(payload, bounces=bounces)
        else:
            self._answer = turn.reply(payload, self._caller_address())

    def _came_back(self) -> bool:
        is_back = self._is_back()
        if not is_back and not (self.turn and self.turn.is_open):
            self._seats.leave()
        return is_back

    def _is_back(self) -> bool:
        if not self._answer:  # it waits, or nobody hears of its end
            return False
        if self.caller is None:
            return self._turn().was_bounced(self._answer)
        self._reply(self._answer)
        return False

    def _reply(self, answer: str) -> None:
        asker = self._caller_turn()
        if asker is not None:
            asker.receive(answer)

    def _caller_turn(self) -> base.Turn | None:
        """The caller's turn at the call, if open, else the present turn of the calling run."""
        if self._asker is not None and not self._asker.is_open and self.caller is not None:
            self._asker = self.caller.turn  # a guardrail's answer may come after a handoff
        return self._asker if self._asker is not None and self._asker.is_open else None

    def _caller_address(self) -> tuple[str, ...]:
        asker = self._caller_turn()
        return () if asker is None else asker.address

    def _turn(self) -> base.Turn:
        self._begin()
        assert self.turn is not None
        return self.turn

    def _fail(self, error: BaseException) -> None:
        self._end_without_answer(error)
        self._seats.leave()

    def _end_without_answer(self, error: BaseException) -> None:
        self.session.release(*self._deliveries, self._answer)
        for call in _calls_around(error):
            self._tools.fail(call, error)
        self._tools.give_up(CALLED_OFF)
        for run, _ in self.team.waiting.take_inner(self):
            run._fail(CALLED_OFF)
        if self.caller is None:
            is_limit = isinstance(error, MaxTurnsExceeded | BudgetExceeded)
            kind: Failure = "limit" if is_limit else "error"
            self._turn().abandon(error, answer=self._answer, kind=kind)
            return
        asker = self._caller_turn()
        if asker is not None:
            asker.call_failed(self._question)
        if self.turn is None and asker is not None:  # the agent never ran
            self.session.withdraw(self._instance, self._deliveries, asker.instance)
            for event in self._deliveries:
                asker.receive(event)
            return
        self._reply(self._turn().abandon(error, self._caller_address(), answer=self._answer))

    def end_stream(self, result: Any, task: asyncio.Task[Any]) -> None:
        """Report the end of a streamed run; nothing can be waited for any more."""
        if task.cancelled():
            self.fail(STREAM_CANCELLED)
            return
        is_dropped = result._cancel_mode != "none" and result.final_output is None
        error = task.exception() or result._stored_exception
        if error is None and is_dropped and not result.interruptions:
            error = STREAM_CANCELLED
        if error is not None:
            self.fail(error)
            return
        self.step(self._hand, result, default=None)
        self.step(self.session.release, self._answer, default=None)
        self.step(self._came_back, default=False)


def running() -> MonitoredRun | None:
    """The run of the running code, if open or failed."""
    runs = (run for run in base.enclosing() if isinstance(run, MonitoredRun))
    return next((run for run in runs if run.is_open or run.has_failed), None)


def _calls_around(error: BaseException) -> set[str]:
    """The ids of the tool calls around the place of an error."""
    frames = (frame for frame, _ in walk_tb(error.__traceback__))
    places = (value for frame in frames for value in frame.f_locals.values())
    return {value.tool_call_id for value in places if isinstance(value, ToolContext)}
