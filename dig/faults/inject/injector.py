"""The base of all kinds of faults: hooks, parameters, and the occasions of acts.

A kind changes an agent's view (`change_view`) or plan (`change_plan`), unknown to the agent and to
the monitor. Random numbers come from `Occasion` alone.
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

from .payload_changes import Payloads

_T = TypeVar("_T")

NO_TURN = 0
"""The turn of acts outside activations: to leave and to join."""

Change = Literal["leave", "join"]
"""A change of an agent's membership in the team."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kind of fault.

    Attributes:
        meaning: A description, with its unit.
        default: The default value, of the parameter's type; ``None``: no limit, else a whole
            number.
        null: The value with which the fault has no effect at all, if there is such a value.
        choices: All values, if the values are names.
    """

    meaning: str
    default: float | int | str | None
    _: KW_ONLY
    null: float | int | None = None
    least: float = 0
    most: float = float("inf")
    choices: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """As plain JSON; an infinite bound is ``None``."""
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
class Act:
    """An act of a fault, before the place in the trace is known.

    Attributes:
        fault: The fault's place in the list of faults.
        agent: The target.
        turn: The number of the target's activation, from 1; `NO_TURN` outside activations.
        what: A description of the act.
        ts: Seconds since the faults were put around the team; `GameDay` alone sets the field.
        since_start: Whether the activation differs from its start on, not only from its end.
        output: The changed event, if the act changed a generated one.
        place: The place of that event among the outputs of the activation.
        since_end: Whether the record of the activation's end differs already.
    """

    fault: int
    agent: str
    turn: int
    what: str = ""
    ts: float = 0.0
    since_start: bool = False
    output: NewEvent | None = None
    place: int | None = None
    since_end: bool = True


class Occasion:
    """An activation, or call, of the target in the fault's window: random numbers and acts.

    Attributes:
        payloads: The transforms of the task's payloads.
        since_s: Seconds since the fault began.
    """

    def __init__(
        self, purpose: str, draws: KeyedRandom, payloads: Payloads, template: Act,
        on_act: Callable[[Act], None], since_s: float = 0.0,
    ) -> None:  # fmt: skip
        """Begin without an act.

        Args:
            purpose: The label of the random numbers.
            draws: The random numbers of the activation.
            payloads: The transforms of the task's payloads.
            template: An act with the fault, the target and the turn.
            on_act: Called with each act.
            since_s: Seconds since the fault began.
        """
        self.payloads, self.since_s = payloads, since_s
        self._purpose, self._draws, self._template = purpose, draws, template
        self._on_act = on_act
        self._acts: list[Act] = []

    # The purpose keeps these draws apart from all others of the run: where a fault does not act,
    # the run and its twin draw the same numbers.

    def chance(self, probability: float, purpose: str = "", index: int = 0) -> bool:
        """Draw whether an event of some probability happens."""
        return self._draws.chance(probability, f"{self._purpose} {purpose}", index)

    def choice(self, items: Sequence[_T], purpose: str = "", index: int = 0) -> _T:
        """Draw an item; there must be at least a single item."""
        return self._draws.choice([*items], f"{self._purpose} {purpose}", index)

    def add_act(
        self, what: str, *, since_start: bool = False, output: NewEvent | None = None
    ) -> None:
        """Record an act of the fault, at the moment of the act.

        Args:
            what: A description of the act.
            since_start: Whether the act changes the activation from its start on, not only its end.
            output: The generated event that is changed, if the act changes one.
        """
        act = replace(self._template, what=what, since_start=since_start, output=output)
        self._acts.append(act)
        self._on_act(act)

    def place_acts(self, outputs: Sequence[NewEvent], are_as_many: bool) -> None:
        """Find the changed events among the final outputs of the activation.

        Args:
            outputs: The final outputs.
            are_as_many: Whether there would have been as many without faults, so that the `end`
                record, which names them, may be the same.
        """
        for act in self._acts:
            # By identity: faults may send equal events several times.
            places = (i for i, output in enumerate(outputs) if output is act.output)
            act.place = next(places, None)
            act.since_end = act.place is None or not are_as_many


@dataclass(frozen=True, slots=True)
class AgentCall:
    """A call of an agent in a team of async callables.

    Attributes:
        agent: The called agent.
        caller: The calling agent; ``None``: code outside the team.
        args: The positional arguments.
        kwargs: The arguments by name.
        method: The name of the agent's method, if the agent has several.
        others: The agents that could be called instead.
        remaining_s: Seconds until the fault ends.
        make: Makes a call, this or another; returns and raises as the called agent does.
    """

    agent: str
    caller: str | None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    method: str = ""
    others: tuple[str, ...] = ()
    remaining_s: float = MOST_SECONDS
    _: KW_ONLY
    make: Callable[[AgentCall], Awaitable[Any]]

    def proceed(self) -> Awaitable[Any]:
        """Make the call, through the remaining faults."""
        return self.make(self)


class Injector:
    """The base of all kinds of faults: does nothing.

    An object belongs to one fault in one run, and may remember earlier turns of the target.

    Attributes:
        parameters: The parameters of the kind, by name, besides those of `COMMON`.
        has_amount: Whether the fault's amount grows while the fault rises; else the probability.
    """

    parameters: ClassVar[Parameters] = MappingProxyType({})
    has_amount: ClassVar[bool] = False

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Begin, with a value for each parameter."""
        self.values = values
        self.act_count = 0

    def should_act(self, occasion: Occasion, purpose: str = "", index: int = 0) -> bool:
        """Draw whether the fault acts now, by the probability and the limit on acts.

        Args:
            occasion: The activation.
            purpose: Keeps several draws of one activation apart; empty if there is one.
            index: Keeps draws for the same purpose apart.
        """
        limit = self.values["at_most"]
        if limit is not None and self.act_count >= limit:
            return False
        probability: float = self.values["probability"]
        if not self.has_amount:
            probability *= self.strength(occasion)
        return occasion.chance(probability, purpose, index)

    def strength(self, occasion: Occasion) -> float:
        """The growth of the fault so far, from 0 to 1."""
        rise_s: float = self.values["rise_s"]
        return min(1.0, occasion.since_s / rise_s) if rise_s else 1.0

    def observe(self, view: View, decision: Decision) -> None:
        """See every decision of the target, also outside the window, before any change."""

    def change_view(self, view: View, occasion: Occasion) -> View:
        """Change the target's view, in an activation that starts in the window."""
        return view

    def change_plan(self, view: View, plan: Plan, occasion: Occasion) -> Plan:
        """Change the target's plan, in an activation that starts in the window."""
        return plan

    def membership_changes(
        self, occasion: Occasion, start_s: float, end_s: float | None
    ) -> Sequence[tuple[float, Change]]:
        """When the target leaves and joins the team, in seconds since the run began."""
        return ()

    async def outgoing_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Make a call of the target, an async callable, to another agent."""
        acts = self.should_act(occasion)
        return await (self.faulty_outgoing_call(call, occasion) if acts else call.proceed())

    async def incoming_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Answer a call of the target, an async callable."""
        acts = self.should_act(occasion)
        return await (self.faulty_incoming_call(call, occasion) if acts else call.proceed())

    async def faulty_outgoing_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Make a call on which the fault acts."""
        return await call.proceed()

    async def faulty_incoming_call(self, call: AgentCall, occasion: Occasion) -> Any:
        """Answer a call on which the fault acts."""
        return await call.proceed()


class OnTurn(Injector):
    """A kind for decisions as a whole."""

    def change_plan(self, view: View, plan: Plan, occasion: Occasion) -> Plan:
        """Replace the decision, unless the target has failed."""
        if isinstance(plan.decision, str) or not self.should_act(occasion):
            return plan
        return Plan(plan.think_s, self.change_decision(view, plan.decision, occasion))

    def change_decision(self, view: View, decision: Decision, occasion: Occasion) -> Decision:
        """Change the target's decision."""
        return decision


class OnMessage(Injector):
    """A kind for single messages of the target.

    Attributes:
        takes_final: Whether the fault acts on answers too, which have no recipient in the team.
    """

    takes_final: ClassVar[bool] = False

    def change_plan(self, view: View, plan: Plan, occasion: Occasion) -> Plan:
        """Replace the affected messages."""
        if isinstance(plan.decision, str):
            return plan
        outputs: list[NewEvent] = []
        for i, message in enumerate(plan.decision.outputs):
            acts = self.takes_final or not message.final
            acts = acts and self.should_act(occasion, "message", i)
            outputs += self.send(view, message, occasion, i) if acts else [message]
        return Plan(plan.think_s, plan.decision.model_copy(update={"outputs": outputs}))

    def change_message(
        self, message: NewEvent, occasion: Occasion, what: str, **update: Any
    ) -> list[NewEvent]:
        """Change attributes of a message, and record the act.

        Args:
            message: The message that the target sends.
            occasion: The activation, which takes the act.
            what: A description of the act.
            update: The new values of attributes.
        """
        changed_message = message.model_copy(update=update)
        occasion.add_act(what, output=changed_message)
        return [changed_message]

    def send(self, view: View, message: NewEvent, occasion: Occasion, index: int) -> list[NewEvent]:
        """The messages to send in place of a message.

        Args:
            view: The view of the activation.
            message: The message.
            occasion: The activation, for random numbers and acts.
            index: The place of the message in the decision, from 0.
        """
        return [message]


def is_work(event: Pending) -> bool:
    """Whether an event is work: no system event, returned answer or notice."""
    return not (event.final or event.sender == SYSTEM or event.type == "notice")


def is_solution(event: Pending) -> bool:
    """Whether an event is work with a solution."""
    return is_work(event) and event.type == "solution"


def solutions(view: View, decision: Decision) -> list[Any]:
    """The payloads of all solutions of an agent, in the buffer or generated now."""
    received = [event.payload for event in view.events if is_solution(event)]
    return received + [o.payload for o in decision.outputs if o.type == "solution" and not o.final]


def parts_of(decision: Decision) -> list[NewEvent]:
    """The parts of a problem in a decision: several problems at once; else none."""
    parts = [o for o in decision.outputs if o.type == "problem" and not o.final]
    return parts if len(parts) > 1 else []
