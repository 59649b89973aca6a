"""What stands in place of the methods that messages come through, while a hub is wrapped.

A hub knows its agents by name, but not what receives for them. So one method of the class
`AgentClient` is replaced for as long as any hub is wrapped; for agents of others it does nothing.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  the hub runs on it alone
from collections.abc import Callable
from functools import partial, wraps
from typing import Any

from ag2.network import AgentClient

from dig.adapters import Turn, as_call, as_payload
from dig.adapters.base.calls import Call
from dig.adapters.base.patching import Taps
from dig.adapters.base.running import current, inside

from .notes import as_parts, showing, waiting
from .team import Sending, Team, Work

_taps: dict[int, HubTaps] = {}  # by the id of their hub
_receive = AgentClient.receive


def attach(hub: Any, team: Team) -> HubTaps:
    """Put a session between the agents of a hub."""
    taps = _taps[id(hub)] = HubTaps(hub, team)
    AgentClient.receive = _received
    return taps


@wraps(_receive)
async def _received(client: Any, envelope: Any) -> None:
    taps = _taps.get(id(client._hub_client._hub))
    if taps is None:
        await _receive(client, envelope)
    else:
        await taps.receive(client, envelope)


class HubTaps:
    """The taps of one hub."""

    def __init__(self, hub: Any, team: Team) -> None:
        """Put them in place."""
        self._hub = hub
        self._team = team
        self._session = team.session
        self._sent: dict[int, Sending] = {}  # by the id of an envelope that is being posted
        self._step = team.step
        self._taps = Taps()
        self._clients: dict[str, Any] = {}  # name -> AgentClient
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken: set[asyncio.Task[None]] = set()
        for name in ("post_envelope", "_dispatch", "report_turn_failure", "register"):
            self._taps.tap(hub, name, getattr(self, name))
        for owned in hub._owned_clients:
            for client in owned._clients.values():
                self._know(client)

    def restore(self) -> Any:
        """Take them away again; returns the hub."""
        self._taps.restore()
        _taps.pop(id(self._hub), None)
        if not _taps:
            AgentClient.receive = _receive
        return self._hub

    def _know(self, client: Any) -> None:
        """An agent of this hub is seen for the first time."""
        name, agent = client.passport.name, getattr(client, "agent", None)
        if agent is not None and self._clients.get(name) is not client:
            self._clients[name] = client
            if "ask" not in vars(agent):
                self._taps.tap(agent, "ask", self.ask, client)

    # --- the hub ---

    async def register(self, whole: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """An agent comes."""
        client = await whole(*args, **kwargs)
        self._step(self._know, client, otherwise=None)
        return client

    async def post_envelope(self, whole: Callable[..., Any], envelope: Any) -> Any:
        """An agent sends something; an answer is put to the monitor before the hub has it."""
        self._loop = asyncio.get_running_loop()
        sending = self._step(self._team.look_at, envelope, otherwise=None)
        if sending is None:
            return await whole(envelope)
        if sending.answer:
            await self._session.released(sending.answer)
            if self._step(self._team.is_back, sending, otherwise=False):
                return ""  # AG2's own handler, which posts this, does not look at it
        self._sent[id(envelope)] = sending
        try:
            return await whole(envelope)
        finally:
            self._sent.pop(id(envelope), None)

    async def _dispatch(self, whole: Callable[..., Any], envelope: Any, metadata: Any) -> Any:
        sending = self._sent.pop(id(envelope), None)
        if sending is not None:
            self._step(self._team.deliver, sending, otherwise=None)
        return await whole(envelope, metadata)

    async def report_turn_failure(self, whole: Callable[..., Any], **what: Any) -> Any:
        """A handler has caught an exception of its agent."""
        self._step(self._team.report, what["agent_id"], what["exc"], otherwise=None)
        return await whole(**what)

    # --- an agent ---

    async def receive(self, client: Any, envelope: Any) -> None:
        """Something is delivered to an agent, whose handler runs in here."""
        self._step(self._know, client, otherwise=None)
        event = self._step(self._team.event_for, client, envelope, otherwise="")
        if not event:
            again = self._step(self._team.look_again, client, envelope, otherwise=None)
            await self._run(again, partial(_receive, client, envelope))
            return
        try:
            await self._session.released(event)
        except BaseException as error:
            self._step(self._give_up, client, envelope, event, error, otherwise=None)
            raise
        if self._step(self._team.takes_up, client, envelope, event, otherwise=False):
            await _receive(client, envelope)
            return
        work = self._step(self._team.begin, client, envelope, event, otherwise=None)
        await self._run(work, partial(_receive, client, envelope))

    async def _run(self, work: Work | None, handle: Callable[[], Any]) -> None:
        """Have a handler run, and once more for as long as its answers come back."""
        if work is None:
            await handle()
            return
        try:
            with inside(work.turn):
                await handle()
                while await self._comes_again(work):
                    await work.client._on_envelope(work.envelope)
        except BaseException as error:
            self._step(work.turn.fail, error, otherwise="")
            raise
        finally:
            self._step(self._team.forget, work, otherwise=None)

    async def _comes_again(self, work: Work) -> bool:
        if work.comes_again:
            work.comes_again = False
            return True
        answer = self._step(self._team.finish, work, otherwise="")
        if not answer:
            return False
        await self._session.released(answer)
        return self._step(self._team.has_back, work, answer, otherwise=False)

    def _give_up(self, client: Any, envelope: Any, event: str, error: BaseException) -> None:
        """Who waited for a message that is held is cancelled."""
        self._session.let_go(event)
        work = self._team.begin(client, envelope, event)
        work.turn.fail(error)
        self._team.forget(work)

    async def ask(self, whole: Callable[..., Any], client: Any, *said: Any, **how: Any) -> Any:
        """An agent's model is asked: by its handler, or directly, by anybody."""
        work = self._step(self._team.work_on, client.agent, otherwise=None)
        if work is not None:
            return await self._show(work.turn, whole, said, how)
        name = client.passport.name
        # What channels bring meanwhile goes to the agent itself.
        beside = self._step(self._session.reserve, name, otherwise="")
        call = Call(
            self._session, name, as_call(said, {}), tell=_body,
            bounces=lambda: "stream" not in how and not self._team.is_lost,
        )  # fmt: skip
        self._step(self._session.unreserve, beside, otherwise=None)

        async def asked(name: str, notes: tuple[str, ...]) -> Any:
            turn = current.get()
            mine = turn and self._step(self._team.adopt, client, None, turn, otherwise=None)
            try:
                return await self._show(turn, whole, said, how)
            finally:
                if mine:
                    self._step(self._team.forget, mine, otherwise=None)

        return await call.through(asked)

    async def _show(
        self, turn: Turn | None, whole: Callable[..., Any], said: Any, how: dict[str, Any]
    ) -> Any:
        """Call the model, show it the notes of its turn, and see whether that asks a person."""
        if turn is None or self._team.is_lost:
            return await whole(*said, **how)
        middleware = [*how.pop("middleware", ()), waiting(partial(self._waits, turn))]
        if self._team.only_looks:
            return await whole(*said, middleware=middleware, **how)
        middleware.append(showing(lambda: turn.notes))
        return await whole(*said, *as_parts(turn.notes), middleware=middleware, **how)

    def _waits(self, turn: Turn) -> None:
        self._step(turn.waits, otherwise=None)

    # --- healing speaks to an agent that nobody speaks to ---

    def wake(self, name: str) -> None:
        """Have an agent look again at what its channels wait for; from any thread."""
        client, loop = self._clients.get(name), self._loop
        if self._team.only_looks:
            return
        if client is not None and loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._start, client)

    def _start(self, client: Any) -> None:
        task = asyncio.ensure_future(self._look_again(client))
        self._woken.add(task)
        task.add_done_callback(self._woken.discard)

    async def _look_again(self, client: Any) -> None:
        for turn in await self._hub.pending_turns_for(client.agent_id):
            for envelope in await self._hub.read_wal(turn.channel_id):
                if envelope.envelope_id == turn.triggering_envelope_id:
                    work = self._step(self._team.look_again, client, envelope, otherwise=None)
                    if work is not None:  # else it is busy, and reads the note with its next turn
                        await self._run(work, partial(client._on_envelope, envelope))


def _body(reply: Any) -> Any:
    return as_payload(getattr(reply, "body", None))
