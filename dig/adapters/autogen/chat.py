"""A group chat, as reported to a session: speakers, and messages between speakers.

A participant's turn goes on until its manager has selected the next ones, since its words are for
these. The session calls each method inside a guard, so an exception here never reaches the team.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from autogen_agentchat.agents import UserProxyAgent
from autogen_agentchat.base import Handoff
from autogen_agentchat.messages import HandoffMessage, ToolCallExecutionEvent, ToolCallRequestEvent
from autogen_core._queue import QueueShutDown

from dig.adapters import base
from dig.detectors.interventions import Reroute
from dig.graph.records import Failure

if TYPE_CHECKING:
    from dig.runtime.spending import Account

CALLED_OFF = base.CalledOffError("a participant has failed, and the chat ended")
"""The reason in a trace for what was open when a participant failed; it is never raised."""

STOPPED = base.CalledOffError("the chat was stopped before it had ended")
"""The reason in a trace for a chat whose caller is gone; it is never raised."""


def payload_of(message: Any) -> Any:
    """The payload of a chat message: text, with the target of a handoff; or type and content."""
    content = message.content
    if isinstance(message, HandoffMessage):
        return {"handoff": message.target, "said": content}
    if isinstance(content, str):
        return content
    return {"type": message.type, "content": base.as_payload(content)}


def answer_of(message: Any) -> Any:
    """The answer in a participant's response; for an inner team, the last message."""
    result = getattr(message, "result", None)
    if result is None:
        return message.response.chat_message
    return result.messages[-1] if result.messages else None


def listeners(team: Any, message: Any, speakers: Collection[str] = ()) -> list[str]:
    """The recipients of a response in a graph: the nodes behind, now or after a join.

    Args:
        team: The team.
        message: The response.
        speakers: The next speakers.
    """
    graph = getattr(team, "_graph", None)
    if graph is None or message.name not in graph.nodes:
        return []
    answer = answer_of(message)
    # A condition that is a function of the user is not called twice: it may have side effects.
    behind = [
        edge.target
        for edge in graph.nodes[message.name].edges
        if edge.target in speakers
        or (edge.condition_function is None and edge.check_condition(answer))
    ]
    return [*dict.fromkeys(behind)]


def is_silent(message: Any, handoffs: Mapping[str, Any]) -> bool:
    """Whether a handoff only names the next speaker, in standard words.

    Args:
        message: The handoff.
        handoffs: The handoffs that the agent can make, by the names of their tools.
    """
    standard = {"", Handoff(target=message.target).message}
    standard.update(handoff.message for handoff in handoffs.values())
    return not message.context and message.content.strip() in standard


def ignored_handoffs(message: Any, handoffs: Mapping[str, Any]) -> list[str]:
    """The targets of ignored handoffs: AutoGen carries out the first only.

    Args:
        message: The response.
        handoffs: The handoffs that the agent can make, by the names of their tools.
    """
    response = getattr(message, "response", None)
    if response is None or not isinstance(response.chat_message, HandoffMessage):
        return []
    calls: Sequence[Any] = ()
    for event in response.inner_messages or ():
        if isinstance(event, ToolCallRequestEvent):
            calls = event.content  # the last request for tools
    return [handoffs[call.name].target for call in calls if call.name in handoffs][1:]


IsHandoff = Callable[[Any], bool]
"""Whether a handoff passes on what its sender was given, instead of saying something."""


class GroupChatState(base.AdapterState):
    """The floor of a group chat.

    Attributes:
        again: The participant whose answer came back, so that it has to speak once more.
        stopped: The account of the request, once a budget has stopped it.
    """

    def __init__(self, session: base.Session, team: Any, is_handoff: IsHandoff | None) -> None:
        super().__init__(session)
        self.again: str | None = None
        self.stopped: Account | None = None
        self._team = team
        self._is_handoff = is_handoff
        agents = {agent.name: agent for agent in team._participants}
        self._handoffs = {
            name: getattr(agent, "_handoffs", None) or {} for name, agent in agents.items()
        }
        # A message from outside, until its recipients are known.
        self._task: tuple[Any] | None = None
        self._next: list[str] = []  # the next speakers, until all of them are known
        # By participant: what it is given with its next turn.
        self._deliveries: dict[str, list[str]] = {}
        # By participant: speaking, or until the next speakers are known.
        self._turns: dict[str, base.Turn] = {}
        self._responses: dict[str, Any] = {}  # by participant: its response, in the order of these
        self._shown: dict[base.Turn, int] = {}  # how many notes a turn was shown
        self._ignored: dict[str, list[str]] = {}  # by participant: handoffs to it that were dropped
        self._persons = {
            name for name, agent in agents.items() if isinstance(agent, UserProxyAgent)
        }
        self._is_over = False
        self._has_raised = False  # a participant has, and others may be about to begin
        self._tools = base.ToolCalls(session)

    # --- the manager ---

    def begin_request(self, messages: Any) -> None:
        """Somebody outside asks the team; whatever was left over from before is over."""
        self.close()
        self._ignored.clear()
        self._is_over, self.stopped = False, None
        if messages is None:  # the team resumes an earlier task
            self._task = ({"$resumed": self._team.name},)
        else:
            payloads = [payload_of(message) for message in messages]
            self._task = (payloads[0] if len(payloads) == 1 else payloads,)

    def hear(self, message: Any) -> None:
        """Note a response, in front of the manager."""
        if message.name in self._turns:
            self._responses[message.name] = message
            if self.session.budget is not None:
                self._spend(message)
            if message.name in self._persons:
                self._turns[message.name].resumes()
        self._next.clear()

    def ask(self, participant: str) -> None:
        """The manager asks a participant to speak."""
        self._next.append(participant)

    def refuse(self) -> Account | None:
        """The account of a stopped request, before the next speakers are selected."""
        events = [event.id for name in self._pending() for event in self._turns[name].events]
        self.stopped = self.session.refuses(*events) or self.stopped
        return self.stopped

    def hands_back(self, account: Account) -> bool:
        """Whether the entry agent is to speak now, for the last time."""
        return account.entry in self._handoffs and self.session.hand_back(account)

    def has_answer(self) -> bool:
        """Whether the last speaker has said something, instead of handing over."""
        messages = [answer_of(self._responses[name]) for name in self._pending()[-1:]]
        return bool(messages) and not isinstance(messages[0], HandoffMessage | None)

    def _spend(self, message: Any) -> None:
        """Add the usage in the messages of a response."""
        agent = next(it for it in self._team._participants if it.name == message.name)
        settings = getattr(getattr(agent, "_model_client", None), "_create_args", {})
        response = getattr(message, "response", None)
        messages = [*(response.inner_messages or ()), response.chat_message] if response else []
        for usage in filter(None, (getattr(it, "models_usage", None) for it in messages)):
            self._turns[message.name].spend({**vars(usage), "model": settings.get("model")})

    def place(self) -> None:
        """Send all pending words to the selected speakers."""
        speakers, self._next = self._next, []
        if not speakers or self.again in speakers:
            return
        if self._task is not None:
            (task,), self._task = self._task, None
            self._begin_with(task, speakers)
        for name in self._pending():
            behind = listeners(self._team, self._responses[name], speakers)
            self._hand_over(name, behind or speakers)

    def submit(self, bounces: bool, pauses: bool, runs_dry: bool = False) -> str:
        """The chat is about to end: the last word is the answer, and is held.

        Args:
            bounces: Whether the answer can be sent back; never what a person has said.
            pauses: Whether a person is waited for, with all that is open.
            runs_dry: Whether no node of a graph is ready: what comes behind is a join that waits.
        """
        for name in self._pending() if runs_dry else ():
            for join in listeners(self._team, self._responses[name]):
                event = self._turns[name].send(self._words(name), join, awaits=False)
                self._post(join, [event])
        *branches, last = self._pending() or [""]
        if not last:
            return ""
        turn = self._turns[last]
        if pauses:
            branches += [name for name in self._turns if name not in self._responses]
            # All that is open elsewhere becomes a part of the question to the person.
            events = self._withdraw_to(turn.instance)
            turn.wait_for(len(events))
            for event in events:
                turn.receive(event, at_once=True)
        if branches:  # of a graph, ended beside the last speaker: the answer is the words of all
            turn.wait_for(len(branches))
            for name in branches:
                words = self._words(name) if name in self._responses else None
                event = self._turns[name].end(words, (turn.instance,))
                turn.receive(event, at_once=True)
                self._forget(name)
        may_bounce = bounces and not self.has_failed and last not in self._persons
        may_bounce = may_bounce and self.stopped is None
        return turn.submit(self._words(last), bounces=may_bounce)

    def has_back(self, answer: str) -> bool:
        """Whether the answer came back, so that the participant speaks once more."""
        for name in self._pending():
            if self._turns[name].was_bounced(answer):
                self.again = name
                del self._responses[name]
                return True
            self._forget(name)
        return False

    def end_request(self) -> None:
        """The chat has ended."""
        self._is_over = True
        for name in self._pending():
            self.end_response(name)

    def fail_request(self, error: BaseException, kind: Failure = "error") -> None:
        """End the chat without an answer, at an error of the manager or at a limit."""
        if not self._is_over:
            self._is_over = True
            self._end_at_manager(error, submits=True, kind=kind)

    def stop(self) -> None:
        """No participant will run any more."""
        self.fail_request(STOPPED)
        if self._has_raised:
            self._has_raised = False
            self._end_at_manager(CALLED_OFF)

    def _end_at_manager(
        self, error: BaseException, *, submits: bool = False, kind: Failure = "error"
    ) -> None:
        """End a turn of the manager with all pending words and undelivered messages."""
        manager = self.session.reserve_instance(self._team._group_chat_manager_name)
        events = self._withdraw_to(manager)
        if self._task is not None:
            (task,), self._task = self._task, None
            events.append(self.session.request(task, manager))
        for name in [*self._pending(), *filter(None, [self.again])]:
            turn = self._turns[name]
            words = self._words(name) if name in self._responses else turn.events[-1].payload
            events.append(turn.end(words, manager))
            self._forget(name)
        if events:
            turn = self.session.begin(manager, events, at_once=True)
            turn.fail(error, submits=submits, kind=kind)
        else:
            self.session.release_instance(manager)

    def _withdraw_to(self, instance: str) -> list[str]:
        """Move undelivered messages to an instance; gives the events."""
        deliveries, self._deliveries = self._deliveries, {}
        ignored = [event for events in self._ignored.values() for event in events]
        self._ignored.clear()
        for event in ignored:
            self.session.redirect(event, instance)
        for name, events in deliveries.items():
            self.session.withdraw(self.session.reserve_instance(name), events, instance)
        return [*ignored, *(event for events in deliveries.values() for event in events)]

    # --- a participant ---

    def deliveries_for(self, participant: str) -> tuple[str, ...]:
        """The input of a participant's next turn; may be held."""
        self.place()
        return tuple(self._deliveries.get(participant, ()))

    def begin(self, participant: str) -> base.Turn:
        """Begin a participant's turn, or go on after a bounced answer."""
        if self.again == participant:
            self.again = None
            return self._turns[participant]
        events = self._deliveries.pop(participant, [])
        turn = self._turns[participant] = self.session.begin(participant, events)
        if self.stopped is not None:
            turn.notebook.texts.append(self.stopped.note)
        return turn

    def wait_for_person(self, participant: str, turn: base.Turn) -> None:
        """Report a wait, if the speaker is a person."""
        if participant in self._persons:
            turn.waits()

    def tell_tools(self, participant: str, message: Any) -> tuple[str, ...]:
        """Report tool calls or results of a participant; gives their events."""
        turn, events = self._turns.get(participant), []
        if isinstance(message, ToolCallRequestEvent) and turn is not None:
            for call in message.content:
                if call.name not in self._handoffs[participant]:
                    arguments, key = base.unjson(call.arguments), (participant, call.id)
                    events.append(self._tools.call(key, turn, call.name, arguments))
        elif isinstance(message, ToolCallExecutionEvent):
            for result in message.content:
                key = participant, result.call_id
                events.append(self._tools.complete(key, result.content))
        return tuple(events)

    def go_on(self, participant: str, message: Any) -> None:
        """Begin a participant's tools, or hand over their results, after the release."""
        if isinstance(message, ToolCallRequestEvent):
            for call in message.content:
                self._tools.begin((participant, call.id))
        elif isinstance(message, ToolCallExecutionEvent):
            for result in message.content:
                self._tools.receive((participant, result.call_id))

    def notes_for(self, turn: base.Turn) -> tuple[str, ...]:
        """The notes of a turn not shown to the agent yet."""
        shown, self._shown[turn] = self._shown.get(turn, 0), len(turn.notes)
        return () if self.only_observes and self.stopped is None else turn.notes[shown:]

    def end_response(self, participant: str) -> None:
        """End a participant's turn, if the chat is over."""
        if self._is_over and participant in self._turns:
            self._turns[participant].end()
            self._forget(participant)

    def fail(self, participant: str, error: BaseException) -> None:
        """End a participant's turn by an error; the error is the answer of the team."""
        turn = self._turns.get(participant)
        if turn is not None:
            self._tools.give_up(error, turn)
            is_shut = self._is_over and isinstance(error, QueueShutDown)  # AutoGen has stopped
            turn.fail(CALLED_OFF if is_shut else error, submits=not self._is_over)
            self._forget(participant)
            self._has_raised = self._is_over = True

    def counts(self, participant: str, is_response: bool) -> bool:
        """Whether a participant's words count: nobody was asked in place of the participant."""
        turn, relief = self._turns.get(participant), self.session.relief
        counts = relief.answers if is_response else relief.counts
        return turn is None or all(counts(event.id) for event in turn.events)

    def relieve(self, participant: str, other: str) -> None:
        """Give a hanging participant's messages to another participant."""
        turn = self._turns[participant]
        self._tools.give_up(base.RELIEVED, turn)
        turn.relieve()
        self._forget(participant)
        state = self.session.monitor.graph.agents[other]
        moved = {*state.buffer, *state.incoming}
        self._post(other, [event.id for event in turn.events if event.id in moved])

    def why_not(self, wish: Reroute) -> str | None:
        """The reason against asking a participant in place of another; ``None``: possible."""
        (other,), work = wish.to, self.session.relief.find(wish.event)
        if work is None or other not in self._handoffs:
            return f"{other} is no participant"
        if not self._persons.isdisjoint((other, work.agent)):
            return "a person is not cancelled, nor asked in the place of another"
        is_free = self.session.instances.is_free(other, work.events)
        return None if is_free else f"{other} is at work"

    # --- inside ---

    def close(self) -> None:
        """End all turns: nothing more will be reported."""
        if self._has_raised:
            self.stop()
        for name in tuple(self._turns):
            self._turns[name].end()
            self._forget(name)

    def _pending(self) -> list[str]:
        """The participants with a response, until the next speakers are known."""
        return [name for name in self._responses if name in self._turns]

    def _begin_with(self, task: Any, speakers: list[str]) -> None:
        """Give the task to the first speakers; the manager splits a task for several."""
        if len(speakers) == 1:
            self._post(speakers[0], [self.session.request(task, speakers)])
            return
        manager = self.session.reserve_instance(self._team._group_chat_manager_name)
        event = self.session.request(task, manager)
        turn = self.session.begin(manager, (event,), at_once=True)  # a manager waits for nothing
        parts = turn.hand_over(speakers, task, split=True).events
        for name, part in zip(speakers, parts, strict=True):
            self._post(name, [part])

    def _post(self, name: str, events: list[str]) -> None:
        """Put events in front of a participant, with earlier ignored handoffs."""
        ignored = self._ignored.pop(name, [])
        for event in ignored:
            self.session.redirect(event, (name,))
        self._deliveries.setdefault(name, []).extend([*events, *ignored])

    def _hand_over(self, name: str, to: list[str]) -> None:
        """End a turn: a silent participant's input goes on, else the participant's words."""
        turn, message = self._turns[name], answer_of(self._responses[name])
        ignored = ignored_handoffs(self._responses[name], self._handoffs[name])
        handed = turn.hand_over(
            to, self._words(name), "handoff" if isinstance(message, HandoffMessage) else "message",
            silent=not ignored and partial(self._passes_on, name, message),
            dropped=[{"handoff": target} for target in ignored], split=True,
        )  # fmt: skip
        for number, listener in enumerate(to):
            own = handed.events[number : number + 1]  # each listener has an event of its own
            self._post(listener, [*(handed.events if handed.is_passed_on else own)])
        for target, event in zip(ignored, handed.dropped, strict=False):
            self._ignored.setdefault(target, []).append(event)
        self._forget(name)

    def _passes_on(self, name: str, message: Any) -> bool:
        if not isinstance(message, HandoffMessage):
            return False
        if self._is_handoff is not None:
            return bool(self.session.guard.call(self._is_handoff, message, default=False))
        return is_silent(message, self._handoffs[name])

    def _words(self, name: str) -> Any:
        message = answer_of(self._responses[name])
        return None if message is None else payload_of(message)

    def _forget(self, name: str) -> None:
        turn = self._turns.pop(name, None)
        self._responses.pop(name, None)
        if turn is not None:
            self._shown.pop(turn, None)
        if self.again == name:
            self.again = None
