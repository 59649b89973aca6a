"""One run of an agent, from its call to its result: who has the turn, and what goes to whom."""

from __future__ import annotations

import asyncio  # noqa: TID251  the SDK runs on it alone
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agents import Agent, ModelResponse, RunState

from dig.adapters import Turn, as_payload
from dig.adapters.base.patching import LOST_TRACK, Teller
from dig.adapters.base.running import current

from .again import further, joined, turns_left
from .asking import Asking, Question
from .messages import Heard

if TYPE_CHECKING:
    from .runner import Team


class Run(Teller):
    """What a session is told of one run; it stands in for its turn of the moment (`as_turn`).

    Of a run that got lost nothing more is told.

    Attributes:
        team: Whose run it is.
        turn: The turn of the agent that works; ``None``: what it is given is held.
        outer: The turn or run in whose code this one was begun.
    """

    tells_on = False

    def __init__(
        self, team: Team, agent: Agent[Any], given: Any, *, caller: Run | None = None,
        is_streamed: bool = False, is_kept: bool = False,
    ) -> None:  # fmt: skip
        """Tell the session that an agent is called.

        Args:
            team: Whose run it is.
            agent: The agent that begins, or goes on.
            given: What it is called with.
            caller: The run that calls it; ``None``: somebody outside.
            is_streamed: Whether its result is handed over before it is there.
            is_kept: Whether its conversation is kept elsewhere, so that it cannot be taken up.
        """
        super().__init__(team.session)
        self.team = team
        self.turn: Turn | None = None
        self.outer: Any = None
        self._caller = caller
        self._asker = caller.turn if caller is not None else None
        self._may_bounce = not (is_streamed or is_kept)
        self._answer = ""
        self._heard = Heard()
        self._asked = Asking(team.session)
        self._lost: list[str] = []  # handoffs that the SDK has dropped
        payload = {"$resumed": agent.name} if isinstance(given, RunState) else as_payload(given)
        self._question: Question = ("", agent.name, payload)
        self._seat, self._mail = agent.name, [""]
        self.step(self._place, otherwise=None)

    # --- as a turn: what others ask of whatever turn runs ---

    @property
    def as_turn(self) -> Turn:
        """This, where a turn is wanted: what runs inside of it belongs to its turn."""
        return cast(Turn, self)

    @property
    def is_open(self) -> bool:
        """Whether an agent of it has the turn."""
        return self.turn is not None and self.turn.is_open

    @property
    def notes(self) -> tuple[str, ...]:
        """What the monitor has told the agent that has the turn."""
        return self.turn.notes if self.turn is not None else ()

    # --- what happens in it ---

    async def begun(self) -> None:
        """Have the agent begin, once what it is given is not held any more; twice does no harm."""
        if self.turn is None:
            for event in self._mail:
                await self.session.released(event)
            self.step(self._begin, otherwise=None)

    def hear(self, agent: Agent[Any], response: ModelResponse) -> None:
        """A model has spoken."""
        self._heard = Heard(response, agent)

    def hand_over(self, to: str) -> None:
        """An agent hands over to another, which `begun` has begin."""
        self.step(self._hand_over, to, otherwise=None)

    def annotated(self, items: list[Any]) -> list[Any] | None:
        """What a model shall be given; ``None``: what it is given already."""
        return self.step(self._annotated, items, otherwise=None)

    async def is_handed_back(self, result: Any, options: Mapping[str, Any]) -> bool:
        """Hand over a result; says whether it has come back, to be looked at again."""
        left = turns_left(result, options)
        self._may_bounce = self._may_bounce and (left is None or left > 0)
        self.step(self._hand, result, otherwise=None)
        await self.session.released(self._answer)
        return self.step(self._came_back, otherwise=False)

    async def once_more(self, runner: Any, result: Any, options: Mapping[str, Any]) -> Any:
        """Run the last agent once more; if that fails, what there was stands."""
        try:
            more = await further(runner, result, options)
        except Exception as error:
            self._may_bounce = False
            detail = {"agent": result.last_agent.name, "why": repr(error)}
            self.step(self.session.incident, "bounce failed", detail, otherwise=None)
            return result
        return joined(result, more)

    def fail(self, error: BaseException) -> None:
        """The run has raised, or was cancelled; nothing may stay open."""
        self.step(self._fail, error, otherwise=None)

    def follow(self, result: Any) -> None:
        """A streamed run has begun: what becomes of it is known when its task is done."""
        result.run_loop_task.add_done_callback(partial(self._streamed, result))

    # --- steps ---

    def lose_track(self) -> None:
        """What this run was asked comes to nothing."""
        self.team.is_lost = True
        self._fail(LOST_TRACK)

    def _place(self) -> None:
        """Make the event of the call: a problem, or a message of who calls."""
        _, agent, payload = self._question
        self._seat = self.session.reserve(agent)
        if self._caller is None:
            event = self.session.request(payload, (self._seat,))
        else:
            event = self._caller._asked.ask(self._caller._turn(), payload, agent, self._seat)
        self._question, self._mail = (event, agent, payload), [event]
        if not self.session.is_held(event):
            self._begin()

    def _begin(self) -> None:
        if self.turn is None:
            self.turn = self.session.begin(self._seat, self._mail)

    def _hand_over(self, to: str) -> None:
        """End a turn: what it was given goes on if it has said nothing, else what it has said."""
        turn, talk = self._turn(), self._heard.handing(to)
        self._heard, self._asked = Heard(), Asking(self.session)
        seat = self.session.reserve(to)
        before = len(turn.outputs)
        if talk.is_silent and not before and turn.events:
            self._mail = [event.id for event in turn.events]
            for event in self._mail:
                turn.pass_on(event, (seat,))
            turn.end()
        else:
            turn.emit(as_payload(talk.payload(to)), (seat,), "handoff")
            for lost in talk.lost():
                turn.emit(as_payload(lost), (), "handoff")
            turn.end()
            self._mail, self._lost = (
                [turn.outputs[before]],
                [*self._lost, *turn.outputs[before + 1 :]],
            )
        self._seat, self.turn = seat, None

    def _annotated(self, items: list[Any]) -> list[Any] | None:
        notes, annotate = self._turn().listen(), self.team.annotate
        if not notes or self.team.is_lost:
            return None
        return self.session.guard(lambda: [*annotate([*items], notes)], otherwise=None)

    def _hand(self, result: Any) -> None:
        turn, payload = self._turn(), _answer(result)
        if result.interruptions:
            self._gather(turn)
        if self._caller is None:
            is_whole = not (result.interruptions or self.team.is_lost)
            self._answer = turn.submit(payload, bounces=self._may_bounce and is_whole)
        else:
            kind = "notice" if payload is None else "message"
            self._answer = turn.end(payload, _seat(self._asking()), kind)

    def _gather(self, turn: Turn) -> None:
        """A person is waited for: what was dropped is a part of what that is asked."""
        lost, self._lost = self._lost, []
        turn.wait_for(len(lost))
        for event in lost:
            if not self.session.seats_of(event):
                self.session.redirect(event, (turn.seat,))
                self.session.let_go(event)
            turn.receive(event)

    def _came_back(self) -> bool:
        turn = self._turn()
        if self._caller is None:
            return turn.came_back(self._answer)
        self._reply(self._answer, failed=False)
        return False

    def _reply(self, answer: str, *, failed: bool) -> None:
        asker = self._asking()
        if self._caller is not None and asker is not None:
            self._caller._asked.answered(self._question, failed=failed)
            asker.receive(answer)

    def _asking(self) -> Turn | None:
        """Who gets an answer: who has asked, or has the turn of that run now; maybe nobody."""
        if self._asker is not None and not self._asker.is_open and self._caller is not None:
            self._asker = self._caller.turn  # a guardrail's answer may come after a handoff
        return self._asker if self._asker is not None and self._asker.is_open else None

    def _turn(self) -> Turn:
        self._begin()
        assert self.turn is not None
        return self.turn

    def _fail(self, error: BaseException) -> None:
        for event in (*self._mail, self._answer):
            self.session.let_go(event)
        turn = self._turn()
        if self._caller is not None:
            self._reply(turn.fail(error, _seat(self._asking())) or self._answer, failed=True)
            return
        if not (self._answer and self.session.monitor.graph.is_accepted(self._answer)):
            turn.fail(error, submits=True)
        turn.came_back(self._answer)

    def _streamed(self, result: Any, task: asyncio.Task[Any]) -> None:
        """The task of a streamed run is done; nobody can wait for anything any more."""
        error = _failure(result, task)
        if error is not None:
            self.fail(error)
            return
        self.step(self._hand, result, otherwise=None)
        self.step(self.session.let_go, self._answer, otherwise=None)
        self.step(self._came_back, otherwise=False)


def running() -> Run | None:
    """The run that the running code belongs to, if an agent of it has the turn, or it is lost."""
    turn: Any = current.get()
    while turn is not None and not (isinstance(turn, Run) and (turn.is_open or turn.is_lost)):
        turn = turn.outer
    return turn


def _seat(turn: Turn | None) -> tuple[str, ...]:
    return () if turn is None else (turn.seat,)


def _answer(result: Any) -> Any:
    """What a run has come to, or what it asks somebody outside before it goes on."""
    if result.interruptions:
        return {"$asks": [as_payload(one.raw_item) for one in result.interruptions]}
    return as_payload(result.final_output)


def _failure(result: Any, task: asyncio.Task[Any]) -> BaseException | None:
    if task.cancelled():
        return asyncio.CancelledError("the stream was cancelled")
    return task.exception() or result._stored_exception
