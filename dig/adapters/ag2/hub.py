"""The replacements of the methods that messages come through, while a hub is wrapped.

A hub knows its agents by name, but not what receives for them. So one method of the class
`AgentClient` is replaced for as long as any hub is wrapped; for agents of others it does nothing.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  the hub runs on it alone
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from typing import Any

from ag2.events import ModelRequest, TextInput
from ag2.middleware import BaseMiddleware
from ag2.network import AgentClient

from dig.adapters.base import NOTE, Call, Patches, Turn, as_call, as_payload, current, inside

from .team import AgentRun, HubTeam, OutgoingEnvelope

Read = Callable[[], tuple[str, ...]]
"""Gives the notes of a turn, oldest first; it grows."""


def as_parts(notes: Sequence[str]) -> list[str]:
    """Notes as parts of a message."""
    return [NOTE.format(note) for note in notes]


class TurnMiddleware(BaseMiddleware):  # type: ignore[misc]
    """Shows a model the notes that come while its turn goes on; reports that a person is asked."""

    def __init__(
        self, event: Any, context: Any, *, read: Read, known: int,
        waiting: Callable[[], AbstractContextManager[None]],
    ) -> None:  # fmt: skip
        """Begin with `known` notes shown already; in `waiting()` a person is asked."""
        super().__init__(event, context)
        self._read = read
        self._waiting = waiting
        self._known = known
        self._shown: list[tuple[int, Any]] = []  # after how many events, the note

    async def on_llm_call(self, call_next: Any, events: Sequence[Any], context: Any) -> Any:
        """The model is called."""
        for note in as_parts(self._read()[self._known :]):
            self._shown.append((len(events), ModelRequest([TextInput(note)])))
            self._known += 1
        told = list(events)
        for place, note in reversed(self._shown):
            told.insert(place, note)
        return await call_next(told if self._shown else events, context)

    async def on_human_input(self, call_next: Any, event: Any, context: Any) -> Any:
        """A person is asked (`hitl_hook`)."""
        with self._waiting():
            return await call_next(event, context)


_patches: dict[int, HubPatches] = {}  # by the id of their hub
_receive = AgentClient.receive


def attach(hub: Any, team: HubTeam) -> HubPatches:
    """Put a session between the agents of a hub."""
    patches = _patches[id(hub)] = HubPatches(hub, team)
    AgentClient.receive = _received
    return patches


@wraps(_receive)
async def _received(client: Any, envelope: Any) -> None:
    patches = _patches.get(id(client._hub_client._hub))
    if patches is None:
        await _receive(client, envelope)
    else:
        await patches.receive(client, envelope)


class HubPatches:
    """The patches of one hub."""

    def __init__(self, hub: Any, team: HubTeam) -> None:
        """Put them in place."""
        self._hub = hub
        self._team = team
        self._session = team.session
        # By the id of an envelope that is being posted.
        self._sent: dict[int, OutgoingEnvelope] = {}
        self._step = team.step
        self._patches = Patches()
        self._clients: dict[str, Any] = {}  # name -> AgentClient
        self._loop: asyncio.AbstractEventLoop | None = None
        self._woken: set[asyncio.Task[None]] = set()
        self._to_wake: set[Any] = set()
        self._postponed: set[Any] = set()  # they were to look again while they were busy
        for name in ("post_envelope", "_dispatch", "report_turn_failure", "register"):
            self._patches.patch(hub, name, getattr(self, name))
        for owned in hub._owned_clients:
            for client in owned._clients.values():
                self._know(client)

    def restore(self) -> None:
        """Take them away again."""
        self._patches.restore()
        _patches.pop(id(self._hub), None)
        if not _patches:
            AgentClient.receive = _receive

    def _know(self, client: Any) -> None:
        """An agent of this hub is seen for the first time."""
        name, agent = client.passport.name, getattr(client, "agent", None)
        if agent is not None and self._clients.get(name) is not client:
            self._clients[name] = client
            if "ask" not in vars(agent):
                self._patches.patch(agent, "ask", self.ask, client)

    # --- the hub ---

    async def register(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """An agent comes."""
        client = await original(*args, **kwargs)
        self._step(self._know, client, default=None)
        return client

    async def post_envelope(self, original: Callable[..., Any], envelope: Any) -> Any:
        """An agent sends something; an answer is put to the monitor before the hub has it."""
        self._loop = asyncio.get_running_loop()
        sending = self._step(self._team.look_at, envelope, default=None)
        if sending is None:
            return await original(envelope)
        if sending.answer:
            await self._session.wait_until_released(sending.answer)
            if self._step(self._team.is_back, sending, default=False):
                return ""  # AG2's own handler, which posts this, does not look at it
        self._sent[id(envelope)] = sending
        try:
            return await original(envelope)
        finally:
            self._sent.pop(id(envelope), None)

    async def _dispatch(self, original: Callable[..., Any], envelope: Any, metadata: Any) -> Any:
        sending = self._sent.pop(id(envelope), None)
        if sending is not None:
            self._step(self._team.deliver, sending, default=None)
        return await original(envelope, metadata)

    async def report_turn_failure(self, original: Callable[..., Any], **what: Any) -> Any:
        """A handler has caught an exception of its agent."""
        self._step(self._team.report, what["agent_id"], what["exc"], default=None)
        return await original(**what)

    # --- an agent ---

    async def receive(self, client: Any, envelope: Any) -> None:
        """Something is delivered to an agent, whose handler runs in here."""
        self._step(self._know, client, default=None)
        event, instance = self._step(self._team.event_for, client, envelope, default=("", ""))
        if not event:
            again = self._step(self._team.look_again, client, envelope, default=None)
            await self._run(again, partial(_receive, client, envelope))
            return
        try:
            await self._session.wait_until_released(event)
        except BaseException as error:
            self._step(self._team.give_up, event, instance, error, default=None)
            raise
        if self._step(self._team.takes_up, client, envelope, event, default=False):
            await _receive(client, envelope)
            return
        work = self._step(self._team.begin, client, envelope, event, instance, default=None)
        await self._run(work, partial(_receive, client, envelope))

    async def _run(self, work: AgentRun | None, handle: Callable[[], Any]) -> None:
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
            self._step(work.turn.fail, error, default="")
            raise
        finally:
            self._step(self._team.forget, work, default=None)
            if work.client in self._postponed:
                self._postponed.discard(work.client)
                self._start(work.client)

    async def _comes_again(self, work: AgentRun) -> bool:
        if work.comes_again:
            work.comes_again = False
            return True
        answer = self._step(self._team.finish, work, default="")
        if not answer:
            return False
        await self._session.wait_until_released(answer)
        return self._step(self._team.has_back, work, answer, default=False)

    async def ask(self, original: Callable[..., Any], client: Any, *said: Any, **how: Any) -> Any:
        """An agent's model is asked: by its handler, or directly by other code."""
        work = self._step(self._team.work_on, client.agent, default=None)
        if work is not None:
            return await self._show(work.turn, original, said, how)
        name = client.passport.name
        # What channels bring meanwhile goes to the agent itself.
        beside = self._step(self._session.reserve_instance, name, default="")
        call = Call(
            self._session, name, as_call(said, {}), tell=_body,
            bounces=lambda: "stream" not in how and not self._team.has_failed,
        )  # fmt: skip
        self._step(self._session.release_instance, beside, default=None)

        async def asked(name: str, notes: tuple[str, ...]) -> Any:
            turn = current.get()
            mine = turn and self._step(self._team.adopt, client, None, turn, default=None)
            try:
                return await self._show(turn, original, said, how)
            finally:
                if mine:
                    self._step(self._team.forget, mine, default=None)

        return await call.run(asked)

    async def _show(
        self, turn: Turn | None, original: Callable[..., Any], said: Any, how: dict[str, Any]
    ) -> Any:
        """Call the model, show it the notes of its turn, and see whether that asks a person."""
        if turn is None or self._team.has_failed:
            return await original(*said, **how)
        notes = self._notes(turn)
        middleware = partial(
            TurnMiddleware, read=partial(self._notes, turn), known=len(notes),
            waiting=partial(self._waiting, turn),
        )  # fmt: skip
        how["middleware"] = [*how.pop("middleware", ()), middleware]
        return await original(*said, *as_parts(notes), **how)

    def _notes(self, turn: Turn) -> tuple[str, ...]:
        return () if self._team.only_observes else turn.notes

    @contextmanager
    def _waiting(self, turn: Turn) -> Iterator[None]:
        self._step(turn.waits, default=None)
        try:
            yield
        finally:
            self._step(turn.resumes, default=None)

    # --- healing speaks to an agent that gets no message ---

    def wake(self, name: str) -> None:
        """Have an agent look again at what its channels wait for; from any thread."""
        client, loop = self._clients.get(name), self._loop
        if self._team.only_observes or client in self._to_wake:
            return
        if client is not None and loop is not None and not loop.is_closed():
            # A finding may be told to hundreds of instances of an agent, and to look again means
            # to read each of its channels: once is enough for all that were told by then.
            self._to_wake.add(client)
            loop.call_soon_threadsafe(self._start, client)

    def _start(self, client: Any) -> None:
        task = asyncio.ensure_future(self._look_again(client))
        self._woken.add(task)
        task.add_done_callback(self._woken.discard)

    async def _look_again(self, client: Any) -> None:
        self._to_wake.discard(client)
        for turn in await self._hub.pending_turns_for(client.agent_id):
            if not self._step(self._team.has_note, client, turn.channel_id, default=False):
                continue
            for envelope in await self._hub.read_wal(turn.channel_id):
                if envelope.envelope_id == turn.triggering_envelope_id:
                    work = self._step(self._team.look_again, client, envelope, default=None)
                    if work is None:  # it is busy
                        self._postponed.add(client)
                    else:
                        await self._run(work, partial(client._on_envelope, envelope))


def _body(reply: Any) -> Any:
    return as_payload(getattr(reply, "body", None))
