"""The base of all kinds of faults: hooks, parameters, and the moment of an act.

A kind changes the view of an agent (`seen`) or its decision (`decided`), unknown to the agent and
to the monitor. Random numbers come from `Moment` alone, under a purpose of
their own, so that a fault changes no other draw of the run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal, TypeVar

from dig.detectors.thresholds import MOST_SECONDS
from dig.graph.records import SYSTEM
from dig.monitor.messages import Pending
from dig.runtime.agents import Decision, NewEvent, Plan, View
from dig.runtime.keyed_random import KeyedRandom

from .payloads import Payloads

_T = TypeVar("_T")

NO_TURN = 0
"""The turn of acts outside activations: to leave and to join."""

Change = Literal["leave", "join"]
"""A change of an agent's membership in the team."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kind of fault.

    Attributes:
        meaning: A description, with its unit.
        default: The default value, of the parameter's type; ``None``: no limit, else a whole
            number.
        null: The value with which the fault has no effect at all, if there is one.
        least: The smallest value.
        most: The largest value.
        choices: All values, if they are names.
    """

    meaning: str
    default: float | int | str | None
    _: KW_ONLY
    null: float | int | None = None
    least: float = 0
    most: float = float("inf")
    choices: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain JSON; a bound that is not there is ``None``."""
        most = None if self.most == float("inf") else self.most
        return {**asdict(self), "most": most, "choices": list(self.choices)}


Parameters = Mapping[str, Parameter]
"""The parameters of a kind, by name."""

PROBABILITY = Parameter("Probability that it acts, each time it could.", 1.0, null=0, most=1)
AT_MOST = Parameter("How many times it acts at most.", None, null=0)
ONCE = replace(AT_MOST, default=1)
RISE = Parameter(
    "Seconds over which it grows to its full strength; 0: it has that at once.", 0.0,
    most=MOST_SECONDS,
)  # fmt: skip
COMMON: Parameters = MappingProxyType(
    {"probability": PROBABILITY, "at_most": AT_MOST, "rise_s": RISE}
)
"""The parameters of every kind."""


@dataclass(slots=True)
class Touch:
    """One act of a fault, before its place in the trace is known.

    Attributes:
        fault: The fault's place in the list of faults.
        agent: Its target.
        turn: The number of the target's activation, from 1; `NO_TURN` outside activations.
        what: A description of the act.
        since_start: Whether the activation is another one from its start on.
        output: The event that was changed, if one of those that the activation generates was.
        place: The place of that event among those that are generated in the end.
        since_end: Whether the end of the activation is another one already.
    """

    fault: int
    agent: str
    turn: int
    what: str = ""
    since_start: bool = False
    output: NewEvent | None = None
    place: int | None = None
    since_end: bool = True


class Moment:
    """One activation of the target while a fault is on: its random numbers, and its acts.

    Attributes:
        payloads: The transforms of the task's payloads.
        since_s: Seconds since the fault began.
    """

    def __init__(
        self, purpose: str, draws: KeyedRandom, payloads: Payloads, act: Touch,
        told: Callable[[Touch], None], since_s: float = 0.0,
    ) -> None:  # fmt: skip
        """Begin.

        Args:
            purpose: The label of the random numbers.
            draws: The random numbers of the activation.
            payloads: The transforms of the task's payloads.
            act: A template of the acts, with fault, target and turn.
            told: Takes each act.
            since_s: Seconds since the fault began.
        """
        self.payloads, self.since_s = payloads, since_s
        self._purpose, self._draws, self._act, self._told = purpose, draws, act, told
        self._touches: list[Touch] = []

    def chance(self, probability: float, what: str = "", index: int = 0) -> bool:
        """Whether something of this probability happens."""
        return self._draws.chance(probability, f"{self._purpose} {what}", index)

    def choice(self, items: Sequence[_T], what: str = "", index: int = 0) -> _T:
        """One of some items, which must not be empty."""
        return self._draws.choice([*items], f"{self._purpose} {what}", index)

    def tell(self, what: str, *, since_start: bool = False, output: NewEvent | None = None) -> None:
        """Note an act of the fault.

        Args:
            what: A description of the act.
            since_start: Whether the act changes the activation from its start on, not only its end.
            output: The generated event that is changed, if one is.
        """
        touch = replace(self._act, what=what, since_start=since_start, output=output)
        self._touches.append(touch)
        self._told(touch)

    def settle(self, outputs: Sequence[NewEvent], are_as_many: bool) -> None:
        """Find the events that were changed among those that are generated in the end.

        Args:
            outputs: The events that are generated in the end.
            are_as_many: Whether there would have been as many without faults, so that the `end`
                record, which names them, may be the same.
        """
        for touch in self._touches:
            found = (i for i, output in enumerate(outputs) if output is touch.output)
            touch.place = next(found, None)
            touch.since_end = touch.place is None or not are_as_many


@dataclass(frozen=True, slots=True)
class AgentCall:
    """One agent of a team of async callables calls another, or code outside the team calls one.

    Attributes:
        agent: The agent that is called.
        caller: The agent that calls; ``None``: code outside the team.
        args: The positional arguments.
        kwargs: The arguments by name.
        method: The name of the agent's method, if it has several.
        others: The agents that could be called instead.
        remaining_s: Seconds until the fault ends.
    """

    agent: str
    caller: str | None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    method: str = ""
    others: tuple[str, ...] = ()
    remaining_s: float = MOST_SECONDS


Go = Callable[[AgentCall], Awaitable[Any]]
"""Makes a call, the given one or another; returns and raises what the called agent does."""


class Injector:
    """The base of all kinds: it does nothing.

    An object of it belongs to one fault in one run, and may keep what it has seen of its target.

    Attributes:
        parameters: The kind's parameters, by name, besides those of `COMMON`.
        has_amount: Whether what it does grows while the fault rises; else its probability does.
    """

    parameters: ClassVar[Parameters] = MappingProxyType({})
    has_amount: ClassVar[bool] = False

    def __init__(self, chosen: Mapping[str, Any]) -> None:
        """Begin, with a value for each parameter."""
        self.chosen = chosen
        self.acted = 0  # how often `Moment.tell` was called

    def happens(self, moment: Moment, what: str = "", index: int = 0) -> bool:
        """Whether the fault acts now, by its probability and the number of its acts so far.

        Args:
            moment: The activation.
            what: Tells several draws of one activation apart; empty if there is one.
            index: Tells draws for the same `what` apart.
        """
        limit = self.chosen["at_most"]
        if limit is not None and self.acted >= limit:
            return False
        probability: float = self.chosen["probability"]
        if not self.has_amount:
            probability *= self.strength(moment)
        return moment.chance(probability, what, index)

    def strength(self, moment: Moment) -> float:
        """The growth of the fault so far, from 0 to 1."""
        rise_s: float = self.chosen["rise_s"]
        return min(1.0, moment.since_s / rise_s) if rise_s else 1.0

    def watch(self, view: View, decision: Decision) -> None:
        """Every decision of the target, inside and outside the window, before it is changed."""

    def seen(self, view: View, moment: Moment) -> View:
        """The view that the target gets, in an activation that starts in the window."""
        return view

    def decided(self, view: View, plan: Plan, moment: Moment) -> Plan:
        """The plan that counts, in an activation that starts in the window."""
        return plan

    def script(
        self, moment: Moment, start_s: float, end_s: float | None
    ) -> Sequence[tuple[float, Change]]:
        """When the target leaves and joins the team, in seconds since the run began."""
        return ()

    async def asks(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The target, an async callable, calls another one."""
        return await (self.asks_instead(call, go, moment) if self.happens(moment) else go(call))

    async def answers(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The target, an async callable, is called."""
        return await (self.answers_instead(call, go, moment) if self.happens(moment) else go(call))

    async def asks_instead(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The call of the target, when the fault acts on it."""
        return await go(call)

    async def answers_instead(self, call: AgentCall, go: Go, moment: Moment) -> Any:
        """The answer of the target, when the fault acts on it."""
        return await go(call)


class OnTurn(Injector):
    """A kind that acts on the decision of an activation as a whole."""

    def decided(self, view: View, plan: Plan, moment: Moment) -> Plan:
        """Have it decide something else, unless it has failed."""
        if isinstance(plan.decision, str) or not self.happens(moment):
            return plan
        return Plan(plan.think_s, self.instead(view, plan.decision, moment))

    def instead(self, view: View, decision: Decision, moment: Moment) -> Decision:
        """The decision that counts instead of the target's."""
        return decision


class OnMessage(Injector):
    """A kind that acts on each message of the target by itself.

    Attributes:
        takes_final: Whether the fault acts on answers too, which have no recipient in the team.
    """

    takes_final: ClassVar[bool] = False

    def decided(self, view: View, plan: Plan, moment: Moment) -> Plan:
        """Have other messages sent."""
        if isinstance(plan.decision, str):
            return plan
        outputs: list[NewEvent] = []
        for i, message in enumerate(plan.decision.outputs):
            acts = self.takes_final or not message.final
            acts = acts and self.happens(moment, "message", i)
            outputs += self.sent(view, message, moment, i) if acts else [message]
        return Plan(plan.think_s, plan.decision.model_copy(update={"outputs": outputs}))

    def changed(
        self, message: NewEvent, moment: Moment, what: str, **update: Any
    ) -> list[NewEvent]:
        """A message with other attributes, whose change is noted as an act of the fault.

        Args:
            message: The message that the target sends.
            moment: The activation, which takes the act.
            what: A description of the act.
            update: The attributes that are other ones.
        """
        other = message.model_copy(update=update)
        moment.tell(what, output=other)
        return [other]

    def sent(self, view: View, message: NewEvent, moment: Moment, index: int) -> list[NewEvent]:
        """The messages that are sent instead of one.

        Args:
            view: The view of the activation.
            message: The message.
            moment: The activation, for random numbers and acts.
            index: The place of the message in the decision, from 0.
        """
        return [message]


def is_work(event: Pending) -> bool:
    """Whether an event is work: no note of the system's, no answer that came back, no notice."""
    return not (event.final or event.sender == SYSTEM or event.type == "notice")


def is_solution(event: Pending) -> bool:
    """Whether an event is work that carries a solution."""
    return is_work(event) and event.type == "solution"


def solutions(view: View, decision: Decision) -> list[Any]:
    """The payloads of all solutions that lie in front of an agent, and that it has made itself."""
    there = [event.payload for event in view.events if is_solution(event)]
    return there + [o.payload for o in decision.outputs if o.type == "solution" and not o.final]


def parts_of(decision: Decision) -> list[NewEvent]:
    """The parts that a problem is split into: several problems at once; else none."""
    parts = [o for o in decision.outputs if o.type == "problem" and not o.final]
    return parts if len(parts) > 1 else []
