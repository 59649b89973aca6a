"""A group chat as a session is told of it: which agent has the floor, and what it sends where.

A participant's turn goes on until its manager has selected the next ones, since its words are for
these. Each method is made in one step of the session, so whatever fails in here stays in here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from autogen_agentchat.agents import UserProxyAgent
from autogen_agentchat.base import Handoff
from autogen_agentchat.messages import (
    HandoffMessage,
    ToolCallExecutionEvent,
    ToolCallRequestEvent,
)
from autogen_core._queue import QueueShutDown

from dig.adapters.base import (
    RELIEVED,
    AdapterState,
    CalledOffError,
    Session,
    ToolCalls,
    Turn,
    as_payload,
    unjson,
)
from dig.detectors.interventions import Reroute
from dig.graph.records import Failure

CALLED_OFF = CalledOffError("a participant has failed, and the chat ended")
"""The reason in a trace for what was open when a participant failed; it is never raised."""

STOPPED = CalledOffError("the chat was stopped before it had ended")
"""The reason in a trace for a chat whose caller is gone; it is never raised."""


def payload_of(message: Any) -> Any:
    """A chat message: its text, with the target of a handoff; or its type with its content."""
    content = message.content
    if isinstance(message, HandoffMessage):
        return {"handoff": message.target, "said": content}
    if isinstance(content, str):
        return content
    return {"type": message.type, "content": as_payload(content)}


def task_of(messages: Sequence[Any] | None, team: str) -> Any:
    """The task of a team; without a task it goes on where it has stopped."""
    if messages is None:
        return {"$resumed": team}
    told = [payload_of(message) for message in messages]
    return told[0] if len(told) == 1 else told


def answer_of(message: Any) -> Any:
    """The answer in a participant's response; in that of a team: what was said in it last."""
    result = getattr(message, "result", None)
    if result is None:
        return message.response.chat_message
    return result.messages[-1] if result.messages else None


def listeners(team: Any, message: Any, speakers: Collection[str] = ()) -> list[str]:
    """The recipients of a response in a graph: the nodes behind its node, now or after a join.

    Args:
        team: The team.
        message: The response.
        speakers: The next speakers.
    """
    graph = getattr(team, "_graph", None)
    if graph is None or message.name not in graph.nodes:
        return []
    said = answer_of(message)
    behind = [
        edge.target
        for edge in graph.nodes[message.name].edges
        if edge.target in speakers
        or (edge.condition_function is None and edge.check_condition(said))
    ]
    return [*dict.fromkeys(behind)]


def is_silent(message: Any, handoffs: Mapping[str, Any]) -> bool:
    """Whether a handoff only names the next speaker, in the words that stand for that.

    Args:
        message: The handoff.
        handoffs: The handoffs that the agent can make, by the names of their tools.
    """
    standing = {"", Handoff(target=message.target).message}
    standing.update(one.message for one in handoffs.values())
    return not message.context and message.content.strip() in standing


def dropped(message: Any, handoffs: Mapping[str, Any]) -> list[str]:
    """The targets that a response hands over to in vain: AutoGen carries out the first only.

    Args:
        message: The response.
        handoffs: The handoffs that the agent can make, by the names of their tools.
    """
    response = getattr(message, "response", None)
    if response is None or not isinstance(response.chat_message, HandoffMessage):
        return []
    return _handoffs_in(response.inner_messages or (), handoffs)[1:]


def _handoffs_in(messages: Iterable[Any], handoffs: Mapping[str, Any]) -> list[str]:
    """The targets that the last request for tools wanted to hand over to."""
    requests = [one.content for one in messages if isinstance(one, ToolCallRequestEvent)]
    return [handoffs[call.name].target for call in (requests or [()])[-1] if call.name in handoffs]


IsHandoff = Callable[[Any], bool]
"""Whether a handoff passes on what its sender was given, instead of saying something."""


class GroupChatState(AdapterState):
    """The floor of one group chat.

    Attributes:
        again: The participant whose answer came back, so that it has to speak once more.
    """

    def __init__(self, session: Session, team: Any, is_handoff: IsHandoff | None) -> None:
        """Begin with no participant speaking."""
        super().__init__(session)
        self.again: str | None = None
        self._team = team
        self._is_handoff = is_handoff
        self._handoffs = {
            one.name: getattr(one, "_handoffs", None) or {} for one in team._participants
        }
        # A message from outside, until its recipients are known.
        self._task: tuple[Any] | None = None
        self._next: list[str] = []  # the next speakers, until all of them are known
        # By participant: what it is given with its next turn.
        self._deliveries: dict[str, list[str]] = {}
        self._turns: dict[str, Turn] = {}  # by participant: speaking, or until the next is known
        self._said: dict[str, Any] = {}  # by participant: its response, in the order of these
        self._shown: dict[Turn, int] = {}  # how many notes a turn was shown
        self._lost: dict[str, list[str]] = {}  # by participant: handoffs to it that were dropped
        self._persons = {one.name for one in team._participants if isinstance(one, UserProxyAgent)}
        self._is_over = False
        self._has_raised = False  # a participant has, and others may be about to begin
        self._tools = ToolCalls(session)

    # --- the manager ---

    def begin_request(self, messages: Any) -> None:
        """Somebody outside asks the team; whatever was left over from before is over."""
        self.close()
        self._lost.clear()
        self._is_over = False
        self._task = (task_of(messages, self._team.name),)

    def hear(self, message: Any) -> None:
        """The manager looks at what a participant has said."""
        if message.name in self._turns:
            self._said[message.name] = message
            if message.name in self._persons:
                self._turns[message.name].resumes()
        self._next.clear()

    def ask(self, participant: str) -> None:
        """The manager asks a participant to speak."""
        self._next.append(participant)

    def place(self) -> None:
        """The next speakers are known: what was said is for them."""
        speakers, self._next = self._next, []
        if not speakers or self.again in speakers:
            return
        if self._task is not None:
            (task,), self._task = self._task, None
            self._begin_with(task, speakers)
        for name in self._pending():
            behind = listeners(self._team, self._said[name], speakers)
            self._hand_over(name, behind or speakers)

    def submit(self, bounces: bool, pauses: bool, runs_dry: bool = False) -> str:
        """The chat is about to end: the last word is the answer, and is held.

        Args:
            bounces: Whether the answer can be sent back; never what a person has said.
            pauses: Whether a person is waited for, with all that is open.
            runs_dry: Whether no node of a graph is ready: what comes behind is a join that waits.
        """
        for name in self._pending() if runs_dry else ():
            for join in listeners(self._team, self._said[name]):
                said = self._turns[name].send(self._words(name), join, awaits=False)
                self._post(join, [said])
        *others, last = self._pending() or [""]
        if not last:
            return ""
        turn = self._turns[last]
        if pauses:
            others += [name for name in self._turns if name not in self._said]
            self._gather(turn)
        if others:  # branches of a graph have ended beside it: the answer is what all have said
            turn.wait_for(len(others))
            for name in others:
                words = self._words(name) if name in self._said else None
                said = self._turns[name].end(words, (turn.instance,))
                turn.receive(said, at_once=True)
                self._forget(name)
        may_bounce = bounces and not self.has_failed and last not in self._persons
        return turn.submit(self._words(last), bounces=may_bounce)

    def has_back(self, answer: str) -> bool:
        """Whether the answer has come back, and its participant has to speak once more."""
        for name in self._pending():
            if self._turns[name].was_bounced(answer):
                self.again = name
                del self._said[name]
                return True
            self._forget(name)
        return False

    def end_request(self) -> None:
        """The chat has ended."""
        self._is_over = True
        for name in self._pending():
            self.spoken(name)

    def fail_request(self, error: BaseException, how: Failure = "error") -> None:
        """The chat ends without an answer: its manager has raised, or it has come to a limit."""
        if not self._is_over:
            self._is_over = True
            self._end_at_manager(error, submits=True, how=how)

    def stop(self) -> None:
        """No participant will run any more."""
        self.fail_request(STOPPED)
        if self._has_raised:
            self._has_raised = False
            self._end_at_manager(CALLED_OFF)

    def _end_at_manager(
        self, error: BaseException, *, submits: bool = False, how: Failure = "error"
    ) -> None:
        """The manager ends with what was said, and with what participants that never ran have."""
        manager = self.session.reserve_instance(self._team._group_chat_manager_name)
        events = self._withdraw_to(manager)
        if self._task is not None:
            (task,), self._task = self._task, None
            events.append(self.session.request(task, manager))
        for name in [*self._pending(), *filter(None, [self.again])]:
            turn = self._turns[name]
            words = self._words(name) if name in self._said else turn.events[-1].payload
            events.append(turn.end(words, manager))
            self._forget(name)
        if events:
            turn = self.session.begin(manager, events, at_once=True)
            turn.fail(error, submits=submits, kind=how)
        else:
            self.session.release_instance(manager)

    def _withdraw_to(self, instance: str) -> list[str]:
        """Take back what participants that never ran were to be given; gives its events."""
        deliveries, self._deliveries = self._deliveries, {}
        lost = [event for events in self._lost.values() for event in events]
        self._lost.clear()
        for event in lost:
            self.session.redirect(event, instance)
        for name, events in deliveries.items():
            self.session.withdraw(self.session.reserve_instance(name), events, instance)
        return [*lost, *(event for events in deliveries.values() for event in events)]

    # --- a participant ---

    def deliveries_for(self, participant: str) -> tuple[str, ...]:
        """The input of a participant's next turn; it may be held."""
        self.place()
        return tuple(self._deliveries.get(participant, ()))

    def begin(self, participant: str) -> Turn:
        """A participant begins to speak, or goes on when its answer came back."""
        if self.again == participant:
            self.again = None
            return self._turns[participant]
        events = self._deliveries.pop(participant, [])
        turn = self._turns[participant] = self.session.begin(participant, events)
        return turn

    def wait_for_person(self, participant: str, turn: Turn) -> None:
        """The participant that has the floor may be a person."""
        if participant in self._persons:
            turn.waits()

    def tell_tools(self, participant: str, message: Any) -> tuple[str, ...]:
        """A participant calls tools, or has their results; gives the events of the calls."""
        turn, events = self._turns.get(participant), []
        if isinstance(message, ToolCallRequestEvent) and turn is not None:
            own = [one for one in message.content if one.name not in self._handoffs[participant]]
            events = [
                self._tools.call((participant, one.id), turn, one.name, unjson(one.arguments))
                for one in own
            ]
        elif isinstance(message, ToolCallExecutionEvent):
            for one in message.content:
                self._tools.complete((participant, one.call_id), one.content)
        return tuple(events)

    def begin_tools(self, participant: str, message: Any) -> None:
        """The tools that a participant calls begin, since no gate keeps the calls any more."""
        if isinstance(message, ToolCallRequestEvent):
            for one in message.content:
                self._tools.begin((participant, one.id))

    def notes_for(self, turn: Turn) -> tuple[str, ...]:
        """The notes that a turn was given, and that its agent has not been shown."""
        shown, self._shown[turn] = self._shown.get(turn, 0), len(turn.notes)
        return () if self.only_observes else turn.notes[shown:]

    def spoken(self, participant: str) -> None:
        """A participant has spoken; if the chat is over, so is its turn."""
        if self._is_over and participant in self._turns:
            self._turns[participant].end()
            self._forget(participant)

    def fail(self, participant: str, error: BaseException) -> None:
        """A participant has raised or was cancelled, which is the answer of the original team."""
        turn = self._turns.get(participant)
        if turn is not None:
            self._tools.give_up(error, turn)
            is_shut = self._is_over and isinstance(error, QueueShutDown)  # AutoGen has stopped
            turn.fail(CALLED_OFF if is_shut else error, submits=not self._is_over)
            self._forget(participant)
            self._has_raised = self._is_over = True

    def counts(self, participant: str, is_response: bool) -> bool:
        """Whether what a participant says counts: no other one was asked in its place."""
        turn, relief = self._turns.get(participant), self.session.relief
        counts = relief.answers if is_response else relief.counts
        return turn is None or all(counts(one.id) for one in turn.events)

    def relieve(self, participant: str, other: str) -> None:
        """Another participant is asked to speak in the place of one that does not come back."""
        turn = self._turns[participant]
        self._tools.give_up(RELIEVED, turn)
        turn.relieve()
        self._forget(participant)
        held = self.session.monitor.graph.agents[other]
        self._post(
            other, [one.id for one in turn.events if one.id in {*held.buffer, *held.incoming}]
        )

    def why_not(self, wish: Reroute) -> str | None:
        """Why a participant cannot be asked in place of another one; ``None``: it can."""
        (other,), one = wish.to, self.session.relief.find(wish.event)
        if one is None or other not in self._handoffs:
            return f"{other} is no participant"
        if not self._persons.isdisjoint((other, one.agent)):
            return "a person is not cancelled, nor asked in the place of another"
        is_free = self.session.instances.is_free(other, one.events)
        return None if is_free else f"{other} is at work"

    # --- inside ---

    def close(self) -> None:
        """End all turns: nothing more will be reported."""
        if self._has_raised:
            self.stop()
        for name in tuple(self._turns):
            self._turns[name].end()
            self._forget(name)

    def _gather(self, turn: Turn) -> None:
        """A person is waited for: what is open elsewhere is a part of what that is asked."""
        gathered = self._withdraw_to(turn.instance)
        turn.wait_for(len(gathered))
        for event in gathered:
            turn.receive(event, at_once=True)

    def _pending(self) -> list[str]:
        """The participants that have spoken, while the next speakers are not known."""
        return [name for name in self._said if name in self._turns]

    def _begin_with(self, task: Any, speakers: list[str]) -> None:
        """Give what came from outside to the first speakers; the manager splits it for several."""
        if len(speakers) == 1:
            self._post(speakers[0], [self.session.request(task, speakers)])
            return
        manager = self.session.reserve_instance(self._team._group_chat_manager_name)
        event = self.session.request(task, manager)
        turn = self.session.begin(manager, (event,), at_once=True)  # a manager waits for nothing
        for name, part in zip(
            speakers, turn.hand_over(speakers, task, split=True).events, strict=True
        ):
            self._post(name, [part])

    def _post(self, name: str, events: list[str]) -> None:
        """Put events in front of a participant, with handoffs to it that were dropped before."""
        lost = self._lost.pop(name, [])
        for event in lost:
            self.session.redirect(event, (name,))
        self._deliveries.setdefault(name, []).extend([*events, *lost])

    def _hand_over(self, name: str, to: list[str]) -> None:
        """End a turn: what it was given goes on if it has said nothing, else what it has said."""
        turn, message = self._turns[name], answer_of(self._said[name])
        lost = dropped(self._said[name], self._handoffs[name])
        handed = turn.hand_over(
            to, self._words(name), "handoff" if isinstance(message, HandoffMessage) else "message",
            silent=not lost and partial(self._passes_on, name, message),
            dropped=[{"handoff": target} for target in lost], split=True,
        )  # fmt: skip
        for number, listener in enumerate(to):
            one = slice(number, number + 1)
            self._post(listener, [*handed.events[slice(None) if handed.is_passed_on else one]])
        for target, event in zip(lost, handed.dropped, strict=False):
            self._lost.setdefault(target, []).append(event)
        self._forget(name)

    def _passes_on(self, name: str, message: Any) -> bool:
        if not isinstance(message, HandoffMessage):
            return False
        if self._is_handoff is not None:
            return bool(self.session.guard.call(self._is_handoff, message, default=False))
        return is_silent(message, self._handoffs[name])

    def _words(self, name: str) -> Any:
        message = answer_of(self._said[name])
        return None if message is None else payload_of(message)

    def _forget(self, name: str) -> None:
        turn = self._turns.pop(name, None)
        self._said.pop(name, None)
        if turn is not None:
            self._shown.pop(turn, None)
        if self.again == name:
            self.again = None
