"""Replacements of the methods through which messages pass, while a hub is wrapped.

A hub knows its agents by name, but not the clients that receive for them. So one method of the
class `AgentClient` is replaced while any hub is wrapped; agents of other hubs pass it unchanged.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  the hub runs on it alone
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

from ag2.events import ModelRequest, TextInput
from ag2.middleware import BaseMiddleware
from ag2.network import EV_CHANNEL_CLOSED, EV_PACKET, EV_TEXT, AgentClient, HumanClient

from dig.adapters import base
from dig.detectors.spending_limits import limit_text

from .team import AgentRun, HubTeam, OutgoingEnvelope

if TYPE_CHECKING:
    from dig.runtime.spending import Account


class TurnMiddleware(BaseMiddleware):  # type: ignore[misc]
    """Show a model the notes of a turn; report questions to a person."""

    def __init__(
        self, event: Any, context: Any, *, read_notes: Callable[[], tuple[str, ...]], shown: int,
        waiting: Callable[[], AbstractContextManager[None]],
        spend: Callable[[Mapping[str, Any]], object],
    ) -> None:  # fmt: skip
        """Begin with the first `shown` notes in the request; ask persons in `waiting()`."""
        super().__init__(event, context)
        self._read_notes = read_notes
        self._waiting, self._spend = waiting, spend
        self._count = shown
        self._requests: list[tuple[int, ModelRequest]] = []  # after how many events, the note

    async def on_llm_call(self, call_next: Any, events: Sequence[Any], context: Any) -> Any:
        """Insert each note at the place in the conversation at which it came."""
        # Notes go into no agent's history, so all earlier ones are inserted again for each call.
        for note in self._read_notes()[self._count :]:
            request = ModelRequest([TextInput(base.NOTE.format(note))])
            self._requests.append((len(events), request))
            self._count += 1
        messages = list(events)
        for place, request in reversed(self._requests):
            messages.insert(place, request)
        response = await call_next(messages if self._requests else events, context)
        self._spend(usage_of(response))
        return response

    async def on_human_input(self, call_next: Any, event: Any, context: Any) -> Any:
        """Ask a person (`hitl_hook`), and report the wait."""
        with self._waiting():
            return await call_next(event, context)


def usage_of(response: Any) -> dict[str, Any]:
    """The usage of a model's response, for the budget."""
    names = {
        "input_tokens": "prompt_tokens", "output_tokens": "completion_tokens",
        "cached_tokens": "cache_read_input_tokens",
    }  # fmt: skip
    usage = getattr(response, "usage", None)
    counts = {key: getattr(usage, name, None) or 0 for key, name in names.items()}
    return {**counts, "model": getattr(response, "model", None)}


# Events of these types begin a turn; in a stopped channel they begin none.
MESSAGES = (EV_TEXT, EV_PACKET)

_patches: dict[int, HubPatches] = {}  # by the id of their hub
_receive = AgentClient.receive
_waits = {client: client.wait_for_channel_event for client in (AgentClient, HumanClient)}


def attach(hub: Any, team: HubTeam) -> HubPatches:
    """Put a session between the agents of a hub."""
    patches = _patches[id(hub)] = HubPatches(hub, team)
    AgentClient.receive = _receive_patched
    for client, wait in _waits_patched.items():
        client.wait_for_channel_event = wait
    return patches


def _raising_at_limit(wait: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a method of clients for waiting, to raise if a budget ends the channel."""

    @wraps(wait)
    async def wait_patched(
        client: Any, *, channel_id: str, predicate: Callable[[Any], bool], **options: Any
    ) -> Any:
        patches = _patches.get(id(client._hub_client._hub))

        def is_awaited(envelope: Any) -> bool:
            is_right = predicate(envelope)
            if patches is not None and not is_right and envelope.event_type == EV_CHANNEL_CLOSED:
                patches.raise_at_limit(channel_id)
            return is_right

        return await wait(client, channel_id=channel_id, predicate=is_awaited, **options)

    return wait_patched


_waits_patched = {client: _raising_at_limit(wait) for client, wait in _waits.items()}


@wraps(_receive)
async def _receive_patched(client: Any, envelope: Any) -> None:
    patches = _patches.get(id(client._hub_client._hub))
    if patches is None:
        await _receive(client, envelope)
    else:
        await patches.receive(client, envelope)


class HubPatches:
    """The patches of one hub."""

    def __init__(self, hub: Any, team: HubTeam) -> None:
        self._hub = hub
        self._team = team
        self._session = team.session
        self._step = team.step
        self._patches = base.Patches()
        self._sent: dict[int, OutgoingEnvelope] = {}  # by id: envelopes that are being posted
        self._clients: dict[str, Any] = {}  # agent -> its AgentClient
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wakes: set[asyncio.Task[None]] = set()  # a loop keeps weak references only
        self._to_wake: set[Any] = set()
        self._postponed: set[Any] = set()  # clients that were busy when they were to wake
        for name in ("post_envelope", "_dispatch", "report_turn_failure", "register"):
            self._patches.patch(hub, name, getattr(self, name))
        for owned in hub._owned_clients:
            for client in owned._clients.values():
                self._add_client(client)

    def restore(self) -> None:
        """Restore the methods of the hub, and of the class after the last wrapped hub."""
        self._patches.restore()
        _patches.pop(id(self._hub), None)
        if not _patches:
            AgentClient.receive = _receive
            for client, wait in _waits.items():
                client.wait_for_channel_event = wait

    def _add_client(self, client: Any) -> None:
        name, agent = client.passport.name, getattr(client, "agent", None)
        if agent is not None and self._clients.get(name) is not client:
            self._clients[name] = client
            if "ask" not in vars(agent):
                self._patches.patch(agent, "ask", self.ask, client)

    # --- the hub ---

    async def register(self, original: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Register an agent with the hub."""
        client = await original(*args, **kwargs)
        self._step(self._add_client, client, default=None)
        return client

    async def post_envelope(self, original: Callable[..., Any], envelope: Any) -> Any:
        """Post a message; put an answer to the monitor before the hub."""
        self._loop = asyncio.get_running_loop()
        outgoing = self._step(self._team.prepare, envelope, default=None)
        if outgoing is None:
            return await original(envelope)
        if outgoing.answer:
            await self._session.wait_until_released(outgoing.answer)
            if self._step(self._team.is_bounced, outgoing, default=False):
                return ""  # AG2's own handler, which posts this, does not look at it
        self._sent[id(envelope)] = outgoing
        try:
            posted = await original(envelope)
        finally:
            self._sent.pop(id(envelope), None)
        if outgoing.closes is not None:
            await self._close(envelope, outgoing.closes)
        return posted

    async def _close(self, envelope: Any, account: Account) -> None:
        """Close the channel of a request at a limit of the budget."""
        reason = limit_text(account.reached)
        await self._hub.close_channel(envelope.channel_id, reason=reason)

    def raise_at_limit(self, channel: str) -> None:
        """Raise for a caller from outside whose channel a budget has closed without an answer."""
        exceeded = self._team.stopped.get(channel)
        if exceeded is not None and base.current_turn(self._session) is None:
            raise exceeded

    async def _dispatch(self, original: Callable[..., Any], envelope: Any, metadata: Any) -> Any:
        # The hub has accepted the envelope: the last place before an agent can have it.
        outgoing = self._sent.pop(id(envelope), None)
        if outgoing is not None:
            self._step(self._team.deliver, outgoing, default=None)
        return await original(envelope, metadata)

    async def report_turn_failure(self, original: Callable[..., Any], **failure: Any) -> Any:
        """Note an exception of an agent; AG2's handler, having caught the exception, returns."""
        self._step(self._team.report, failure["agent_id"], failure["exc"], default=None)
        return await original(**failure)

    # --- an agent ---

    async def receive(self, client: Any, envelope: Any) -> None:
        """Deliver an envelope to an agent, and run the agent's handler."""
        self._step(self._add_client, client, default=None)
        event, instance = self._step(self._team.event_for, client, envelope, default=("", ""))
        if event:
            try:
                await self._session.wait_until_released(event)
            except BaseException as error:
                self._step(self._team.give_up, event, instance, error, default=None)
                raise
            if self._step(self._team.resume, client, envelope, event, default=False):
                await _receive(client, envelope)
                return
            refuse = self._team.refuse
            account = self._step(refuse, client, envelope, event, instance, default=None)
            if account is not None:
                await self._close(envelope, account)
                return
            run = self._step(self._team.begin, client, envelope, event, instance, default=None)
        elif envelope.channel_id in self._team.stopped and envelope.event_type in MESSAGES:
            return
        else:
            run = self._step(self._team.look_again, client, envelope, default=None)
        await self._handle(run, partial(_receive, client, envelope))

    async def _handle(self, run: AgentRun | None, handle: Callable[[], Any]) -> None:
        """Run a handler, and again as long as an answer comes back."""
        if run is None:
            await handle()
            return
        try:
            with base.inside(run.turn):
                await handle()
                while await self._comes_again(run):
                    await run.client._on_envelope(run.envelope)
        except BaseException as error:
            self._step(run.turn.fail, error, default="")
            raise
        finally:
            self._step(self._team.forget, run, default=None)
            if run.client in self._postponed:
                self._postponed.discard(run.client)
                self._start_wake(run.client)

    async def _comes_again(self, run: AgentRun) -> bool:
        if run.comes_again:
            run.comes_again = False
            return True
        answer = self._step(self._team.finish, run, default="")
        if not answer:
            return False
        await self._session.wait_until_released(answer)
        return self._step(self._team.takes_back, run, answer, default=False)

    async def ask(
        self, original: Callable[..., Any], client: Any, *parts: Any, **options: Any
    ) -> Any:
        """Ask an agent's model: from its handler, or directly from other code."""
        unknown: Any = object()
        run = self._step(self._team.current_run, client.agent, default=unknown)
        if run is unknown:  # the monitor failed: whose question this is cannot be said
            return await original(*parts, **options)
        if run is not None:
            return await self._ask_model(run.turn, original, parts, options)
        name = client.passport.name
        # What channels bring meanwhile goes to the agent itself.
        beside = self._step(self._session.reserve_instance, name, default="")
        call = base.Call(
            self._session, name, base.as_call(parts, {}),
            tell=lambda reply: base.as_payload(getattr(reply, "body", None)),
            bounces=lambda: "stream" not in options and not self._team.has_failed,
        )  # fmt: skip
        self._step(self._session.release_instance, beside, default=None)

        async def run_agent(name: str, notes: tuple[str, ...]) -> Any:
            turn = base.current.get()
            run = turn and self._step(self._team.adopt, client, None, turn, default=None)
            try:
                return await self._ask_model(turn, original, parts, options)
            finally:
                if run:
                    self._step(self._team.forget, run, default=None)

        return await call.run(run_agent)

    async def _ask_model(
        self, turn: base.Turn | None, original: Callable[..., Any], parts: Any,
        options: dict[str, Any],
    ) -> Any:  # fmt: skip
        if turn is None or self._team.has_failed:
            return await original(*parts, **options)

        def read_notes() -> tuple[str, ...]:
            is_hidden = self._team.only_observes and self._session.budget is None
            return () if is_hidden else turn.notes

        @contextmanager
        def waiting() -> Iterator[None]:
            self._step(turn.waits, default=None)
            try:
                yield
            finally:
                self._step(turn.resumes, default=None)

        notes = read_notes()
        middleware = partial(
            TurnMiddleware, read_notes=read_notes, shown=len(notes), waiting=waiting,
            spend=turn.spend,
        )  # fmt: skip
        options["middleware"] = [*options.pop("middleware", ()), middleware]
        return await original(*parts, *map(base.NOTE.format, notes), **options)

    # --- healing speaks to an agent that gets no message ---

    def wake(self, name: str) -> None:
        """Have an agent look again at the messages that channels wait for; from any thread."""
        client, loop = self._clients.get(name), self._loop
        if self._team.only_observes or client in self._to_wake:
            return
        if client is not None and loop is not None and not loop.is_closed():
            # A finding may be told to hundreds of instances of an agent, and to look again means
            # to read each of its channels: once is enough for all that were told by then.
            self._to_wake.add(client)
            loop.call_soon_threadsafe(self._start_wake, client)

    def _start_wake(self, client: Any) -> None:
        task = asyncio.ensure_future(self._look_again(client))
        self._wakes.add(task)
        task.add_done_callback(self._wakes.discard)

    async def _look_again(self, client: Any) -> None:
        self._to_wake.discard(client)
        for pending in await self._hub.pending_turns_for(client.agent_id):
            if not self._step(self._team.has_note, client, pending.channel_id, default=False):
                continue
            for envelope in await self._hub.read_wal(pending.channel_id):
                if envelope.envelope_id == pending.triggering_envelope_id:
                    run = self._step(self._team.look_again, client, envelope, default=None)
                    if run is None:  # the agent is busy
                        self._postponed.add(client)
                    else:
                        await self._handle(run, partial(client._on_envelope, envelope))
