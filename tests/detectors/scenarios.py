"""A small team for each pattern: what goes wrong, and what an agent does with the monitor's note.

Everybody is honest and knows one thing about notes in general; nobody knows what is going to go
wrong. The problem is always a list of numbers, and the right answer is their sum. With
`heeds=False` the same team pays no attention to notes, and healing cannot help.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dig import Output, Pending
from dig.runtime import Decision, EventFate, NewEvent, Plan, Policy, View
from dig.runtime.draws import Draws

Habit = Callable[[View, Draws], Decision]
Happens = tuple[float, Output | str]
"""At a time in seconds: a further event from outside, or the agent of this name leaves."""


@dataclass(frozen=True)
class Member:
    """An agent: a habit, and about how long it thinks; the seed says how long exactly."""

    seed: int
    habit: Habit
    think_s: float = 1.0

    def plan(self, view: View) -> Plan:
        draws = Draws(self.seed, view.agent, view.turn)
        return Plan(draws.lognormal(self.think_s, 0.2, "think"), self.habit(view, draws))


@dataclass(frozen=True)
class Scene:
    """A team in front of a problem, and the answer that it should give."""

    team: dict[str, Policy]
    problem: Output
    right: int
    script: Sequence[Happens] = ()
    memory: bool = False
    limit_s: float = 120.0


@dataclass(frozen=True)
class Numbers:
    """The problem of a seed."""

    seed: int
    values: list[int] = field(init=False)

    def __post_init__(self) -> None:
        draws = Draws(self.seed, "world", 0)
        values = [1 + int(9 * draws.uniform("number", i)) for i in range(6)]
        object.__setattr__(self, "values", values)

    def scene(self, habits: dict[str, tuple[Habit, float]], **more: object) -> Scene:
        """A team with these habits; the first agent is given the numbers."""
        team = {name: Member(self.seed, *habit) for name, habit in habits.items()}
        problem = Output(self.values, tuple(habits)[:1], "problem")
        return Scene(team, problem, sum(self.values), **more)  # type: ignore[arg-type]

    def either(self, *choices: str) -> str:
        return Draws(self.seed, "world", 0).choice(choices, "either")


# --- what anybody does ----------------------------------------------------------------------


def work(view: View) -> list[Pending]:
    """What is not only a note."""
    return [event for event in view.events if event.type != "system"]


def is_told(view: View) -> bool:
    """Whether the monitor says something to it beside all events."""
    return len(work(view)) < len(view.events)


def problems(view: View) -> list[Pending]:
    return [event for event in view.events if event.type == "problem"]


def reports(view: View) -> list[Pending]:
    return [event for event in view.events if event.type == "report" or event.final]


def total(events: Sequence[Pending]) -> int:
    return sum(event.payload for event in events)


def halve(view: View, *to: Sequence[str]) -> Decision:
    """Hand one half to each of two (groups of) colleagues."""
    values = problems(view)[0].payload
    halves = values[: len(values) // 2], values[len(values) // 2 :]
    outputs = [
        NewEvent(payload=half, to=list(who), type="problem")
        for half, who in zip(halves, to, strict=True)
    ]
    return Decision.respond(view, *outputs)


def count(view: View, draws: Draws) -> Decision:
    """Add up what lies in front of it, and report to whoever asked."""
    outputs = [
        NewEvent(payload=sum(event.payload), to=[event.sender or "ann"], type="report")
        for event in problems(view)
    ]
    return Decision.respond(view, *outputs) if outputs else Decision.wait()


def collect(view: View, expected: int) -> Decision:
    """Wait for so many reports, then submit their sum."""
    if len(reports(view)) < expected:
        return Decision.wait()
    return Decision.submit(view, total(reports(view)))


# --- the patterns ---------------------------------------------------------------------------


def early_termination(seed: int, heeds: bool = True, *, cyd: Habit = count) -> Scene:
    """ET: ann submits as soon as she has something.

    An answer of hers that comes back with a note is a part of the whole; she keeps it until
    something else has come.
    """
    numbers = Numbers(seed)

    def ann(view: View, draws: Draws) -> Decision:
        if problems(view):
            return halve(view, ["bob"], ["cyd"])
        if not reports(view) or (heeds and all(event.final for event in reports(view))):
            return Decision.wait()
        return Decision.submit(view, total(reports(view)))

    slow = numbers.either("bob", "cyd")
    times = {name: 6.0 if name == slow else 1.0 for name in ("bob", "cyd")}
    return numbers.scene(
        {"ann": (ann, 0.5), "bob": (count, times["bob"]), "cyd": (cyd, times["cyd"])}
    )


def missing_termination(seed: int, heeds: bool = True, *, script: Sequence[Happens] = ()) -> Scene:
    """MC: each adds the next number and passes the rest on; dan is last, and thinks that is all.

    Told that there is no answer, whoever knows the sum submits it.
    """
    numbers = Numbers(seed)
    sums: list[int] = []

    def add(view: View, draws: Draws) -> Decision:
        if not problems(view):
            return Decision.wait()
        *rest, last, so_far = problems(view)[0].payload
        sums_now = [*rest, last + so_far]
        who = draws.choice(["bob", "cyd"], "pass on to") if len(sums_now) > 1 else "dan"
        return Decision.respond(view, NewEvent(payload=sums_now, to=[who], type="problem"))

    def dan(view: View, draws: Draws) -> Decision:
        sums.extend(event.payload[0] for event in problems(view))
        if heeds and is_told(view) and sums:
            return Decision.submit(view, sums[-1])
        return Decision.respond(view)

    habits: dict[str, tuple[Habit, float]] = dict.fromkeys(("ann", "bob", "cyd"), (add, 1.0))
    return numbers.scene({**habits, "dan": (dan, 1.0)}, script=script, memory=True)


def _sending_out(first: str, heeds: bool, drops: bool = False) -> Habit:
    """Halves the problem between bob and `first`, and sees to what comes back."""

    def ann(view: View, draws: Draws) -> Decision:
        mine = [event for event in problems(view) if event.sender == view.agent]
        if mine and drops:
            return Decision.discard(mine)
        if mine and heeds and any("discarded" in note for note in mine[0].notes):
            done = NewEvent(payload=sum(mine[0].payload), to=["ann"], type="report")
            return Decision(fates=[EventFate(event=mine[0].id, fate="consume")], outputs=[done])
        if mine:
            who = draws.choice(view.others, "instead") if heeds else first
            return Decision.reroute(mine, [who])
        return halve(view, [first], ["bob"]) if problems(view) else collect(view, 2)

    return ann


def sent_to_nobody(seed: int, heeds: bool = True) -> Scene:
    """OE: ann misspells cyd. When the event comes back she sends it to somebody who is there."""
    numbers = Numbers(seed)
    ann = _sending_out(numbers.either("cid", "zyd", "cyd-assistant"), heeds)
    return numbers.scene({"ann": (ann, 0.5), "bob": (count, 1.0), "cyd": (count, 1.0)})


def left_behind(seed: int, heeds: bool = True, *, then: Sequence[Happens] = ()) -> Scene:
    """OE: cyd leaves with work in front of it. Ann gives it to somebody who is there."""
    numbers = Numbers(seed)
    team: dict[str, tuple[Habit, float]] = {
        "ann": (_sending_out("cyd", heeds), 0.5), "bob": (count, 1.0), "cyd": (count, 20.0)
    }  # fmt: skip
    return numbers.scene(team, script=[(5.0, "cyd"), *then])


def thrown_away(seed: int, heeds: bool = True) -> Scene:
    """OE: cyd discards what is not its field. Ann, to whom it comes back, does it herself.

    If she does not heed notes she throws it away too.
    """

    def cyd(view: View, draws: Draws) -> Decision:
        return Decision.discard(problems(view))

    ann = _sending_out("cyd", heeds, drops=not heeds)
    return Numbers(seed).scene({"ann": (ann, 0.5), "bob": (count, 1.0), "cyd": (cyd, 1.0)})


def deadlock(seed: int, heeds: bool = True) -> Scene:
    """DL: bob and cyd each report only after the other, out of modesty.

    Told that everybody waits, they do what they hold.
    """

    def modest(view: View, draws: Draws) -> Decision:
        if reports(view) or (heeds and is_told(view)):
            return count(view, draws)
        return Decision.wait()

    def ann(view: View, draws: Draws) -> Decision:
        return halve(view, ["bob"], ["cyd"]) if problems(view) else collect(view, 2)

    return Numbers(seed).scene({"ann": (ann, 0.5), "bob": (modest, 1.0), "cyd": (modest, 1.0)})


def excessive_rerouting(seed: int, heeds: bool = True) -> Scene:
    """ER: everybody thinks that somebody else is better at this.

    Who is told that an event has been passed on too often does it.
    """

    def anybody(view: View, draws: Draws) -> Decision:
        task = problems(view)
        if heeds and any(event.notes for event in task):
            return Decision.submit(view, sum(task[0].payload))
        return Decision.reroute(task, [draws.choice(view.others, "better")])

    return Numbers(seed).scene(dict.fromkeys(("ann", "bob", "cyd"), (anybody, 0.4)), limit_s=30.0)


def _twice(seed: int, submits: bool, heeds: bool) -> Scene:
    """Bob and cyd are asked the same by two people, and both report to ann."""
    numbers = Numbers(seed)

    def together(view: View) -> int:
        """The sum of parts; of answers that were found independently, their mean."""
        values = [value for event in reports(view) for value in _values(event)]
        apart = heeds and any(event.notes for event in reports(view))
        return sum(values) // len(values) if apart else sum(values)

    def ann(view: View, draws: Draws) -> Decision:
        if len(reports(view)) < 2:
            return Decision.wait()
        if submits:
            return Decision.submit(view, together(view))
        both = [event.payload for event in reports(view)]
        return Decision.respond(view, NewEvent(payload=both, to=["dan"], type="report"))

    def dan(view: View, draws: Draws) -> Decision:
        return Decision.submit(view, together(view)) if reports(view) else Decision.wait()

    team: dict[str, tuple[Habit, float]] = {
        "bob": (count, 1.0), "cyd": (count, 1.0), "ann": (ann, 1.0), "dan": (dan, 1.0)
    }  # fmt: skip
    again = Output(numbers.values, ("cyd",), "problem")
    return numbers.scene(team, script=[(0.5, again)])


def _values(event: Pending) -> list[int]:
    return event.payload if isinstance(event.payload, list) else [event.payload]


def mixed_up(seed: int, heeds: bool = True) -> Scene:
    """CLA at delivery: ann adds two reports, as if they were parts of one thing.

    Told that they have no origin in common, she takes them for two answers to one question.
    """
    return _twice(seed, True, heeds)


def mixed_up_before(seed: int, heeds: bool = True) -> Scene:
    """CLA at consumption: ann puts both into one letter to dan, and pays no attention to notes.

    Dan, who adds up what she sends, is told by the note on her letter.
    """
    return _twice(seed, False, heeds)


def repeated_solving(
    seed: int,
    heeds: bool = True,
    *,
    bob: Habit | None = None,
    asked: Sequence[str] = ("bob", "cyd"),
) -> Scene:
    """RSP: ann asks both bob and cyd for one half, whoever has time, and gets it twice.

    Two reports about one half may be two parts of it, so she adds them; but a report with the
    note that it may be there twice she leaves out. Whoever is told that another handles an event
    leaves it to that one.
    """
    numbers = Numbers(seed)

    def ann(view: View, draws: Draws) -> Decision:
        if problems(view):
            return halve(view, asked, ["dan"])
        senders = {event.sender for event in reports(view)}
        if "dan" not in senders or len(senders) < 2:
            return Decision.wait()
        once = [event for event in reports(view) if not (heeds and event.notes)]
        return Decision.submit(view, total(once))

    def clerk(view: View, draws: Draws) -> Decision:
        others = [e for e in problems(view) if any("leave it to `" in note for note in e.notes)]
        return Decision.discard(others) if others and heeds else count(view, draws)

    clerks: dict[str, tuple[Habit, float]] = dict.fromkeys(asked, (clerk, 1.0))
    clerks["bob"] = (bob or clerk, 1.0)
    return numbers.scene({"ann": (ann, 0.5), **clerks, "dan": (count, 10.0)})


def idle(view: View, draws: Draws) -> Decision:
    """An agent that never does anything."""
    return Decision.wait()
