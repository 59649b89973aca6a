"""A small team for each pattern: what goes wrong, and what an agent does with the monitor's note.

Everybody is honest and knows one thing about notes in general; nobody knows what is going to go
wrong. The problem is always a list of numbers, and the right answer is their sum. With
`heeds=False` the same team pays no attention to notes, and healing cannot help.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dig import Output, Pending
from dig.runtime import Decision, EventFate, NewEvent, Plan, PlannedAgent, View
from dig.runtime.keyed_random import KeyedRandom

Habit = Callable[[View, KeyedRandom], Decision]
Habits = dict[str, tuple[Habit, float]]
"""For each agent what it does, and about how many seconds it thinks."""

Happens = tuple[float, Output | str]
"""At a time in seconds: a further event from outside, or the agent of this name leaves."""


@dataclass(frozen=True)
class Member:
    """An agent; the seed says how long it really thinks, and what it draws."""

    seed: int
    habit: Habit
    think_s: float

    def plan(self, view: View) -> Plan:
        draws = KeyedRandom(self.seed, view.agent, view.turn)
        return Plan(draws.lognormal(self.think_s, 0.2, "think"), self.habit(view, draws))


@dataclass(frozen=True)
class Scene:
    """A team in front of a problem, and the answer that it should give."""

    team: dict[str, PlannedAgent]
    problem: Output
    right: int
    script: Sequence[Happens] = ()
    memory: bool = False
    limit_s: float = 120.0


def scene(seed: int, habits: Habits, **more: Any) -> Scene:
    """A team with these habits; the first agent is given the numbers of the seed."""
    team: dict[str, PlannedAgent] = {name: Member(seed, *habit) for name, habit in habits.items()}
    problem = Output(numbers(seed), tuple(habits)[:1], "problem")
    return Scene(team, problem, sum(numbers(seed)), **more)


def numbers(seed: int) -> list[int]:
    return [1 + int(9 * KeyedRandom(seed, "world", 0).uniform("number", i)) for i in range(6)]


def one_of(seed: int, *choices: str) -> str:
    return KeyedRandom(seed, "world", 0).choice(choices, "one of")


# --- what anybody does ----------------------------------------------------------------------


def is_told(view: View) -> bool:
    """Whether there is an event of the monitor's own."""
    return any(event.type == "system" for event in view.events)


def problems(view: View) -> list[Pending]:
    return [event for event in view.events if event.type == "problem"]


def reports(view: View) -> list[Pending]:
    """What others have found out, and answers of its own that came back."""
    return [event for event in view.events if event.type == "report" or event.final]


def total(events: Sequence[Pending]) -> int:
    return sum(event.payload for event in events)


def halve(view: View, *to: Sequence[str]) -> Decision:
    """Hand one half to the first, and one to the second."""
    values = problems(view)[0].payload
    halves = zip((values[:3], values[3:]), to, strict=True)
    return Decision.respond(
        view, *(NewEvent(payload=half, to=list(who), type="problem") for half, who in halves)
    )


def count(view: View, draws: KeyedRandom) -> Decision:
    """Add up what lies in front of it, and report to whoever asked; ann, if it was nobody."""
    outputs = [
        NewEvent(payload=sum(event.payload), to=[event.sender or "ann"], type="report")
        for event in problems(view)
    ]
    return Decision.respond(view, *outputs) if outputs else Decision.wait()


def share(view: View, draws: KeyedRandom) -> Decision:
    """Give bob and cyd a half each, wait for both reports, submit their sum."""
    return halve(view, ["bob"], ["cyd"]) if problems(view) else collect(view)


def collect(view: View) -> Decision:
    if len(reports(view)) < 2:
        return Decision.wait()
    return Decision.submit(view, total(reports(view)))


def idle(view: View, draws: KeyedRandom) -> Decision:
    """Never do anything."""
    return Decision.wait()


# --- ET -------------------------------------------------------------------------------------


def early_termination(
    seed: int, heeds: bool = True, *, cyd: Habit = count, script: Sequence[Happens] = ()
) -> Scene:
    """Ann submits as soon as she has something.

    An answer of hers that comes back with a note is a part of the whole to her: she keeps it
    until something else has come.
    """

    def ann(view: View, draws: KeyedRandom) -> Decision:
        if problems(view):
            return halve(view, ["bob"], ["cyd"])
        is_new = any(not event.final for event in reports(view))
        if not reports(view) or (heeds and not is_new):
            return Decision.wait()
        return Decision.submit(view, total(reports(view)))

    slow = one_of(seed, "bob", "cyd")
    bob_s, cyd_s = (6.0, 1.0) if slow == "bob" else (1.0, 6.0)
    team: Habits = {"ann": (ann, 0.5), "bob": (count, bob_s), "cyd": (cyd, cyd_s)}
    return scene(seed, team, script=script)


# --- MC -------------------------------------------------------------------------------------


def missing_termination(seed: int, heeds: bool = True, *, script: Sequence[Happens] = ()) -> Scene:
    """Each adds a number and passes the rest on; dan comes last, and thinks that is all.

    Told that there is no answer, he submits the sum that he remembers.
    """
    seen: list[int] = []

    def add(view: View, draws: KeyedRandom) -> Decision:
        if not problems(view):
            return Decision.wait()
        *rest, last, so_far = problems(view)[0].payload
        left = [*rest, last + so_far]
        who = draws.choice(["bob", "cyd"], "pass on to") if rest else "dan"
        return Decision.respond(view, NewEvent(payload=left, to=[who], type="problem"))

    def dan(view: View, draws: KeyedRandom) -> Decision:
        seen.extend(event.payload[0] for event in problems(view))
        if heeds and is_told(view):
            return Decision.submit(view, seen[-1])
        return Decision.respond(view)

    habits: Habits = dict.fromkeys(("ann", "bob", "cyd"), (add, 1.0))
    return scene(seed, {**habits, "dan": (dan, 1.0)}, script=script, memory=True)


# --- OE -------------------------------------------------------------------------------------


def sent_to_nobody(seed: int, heeds: bool = True) -> Scene:
    """Ann misspells cyd. What comes back to her she sends to somebody who is there.

    If she does not heed notes she makes the same mistake again.
    """
    wrong = one_of(seed, "cid", "zyd", "cyd-assistant")

    def ann(view: View, draws: KeyedRandom) -> Decision:
        returned = [event for event in problems(view) if event.notes]
        if returned:
            right = draws.choice(view.others, "instead")
            return Decision.reroute(returned, [right if heeds else wrong])
        return halve(view, [wrong], ["bob"]) if problems(view) else collect(view)

    return scene(seed, {"ann": (ann, 0.5), "bob": (count, 1.0), "cyd": (count, 1.0)})


def left_behind(seed: int, heeds: bool = True, *, then: Sequence[Happens] = ()) -> Scene:
    """Cyd leaves with work in front of it. What comes back to ann she gives to bob.

    If she does not heed notes she sends it to cyd again.
    """

    def ann(view: View, draws: KeyedRandom) -> Decision:
        returned = [event for event in problems(view) if event.notes]
        if returned:
            return Decision.reroute(returned, ["bob" if heeds else "cyd"])
        return share(view, draws)

    team: Habits = {"ann": (ann, 0.5), "bob": (count, 1.0), "cyd": (count, 20.0)}
    return scene(seed, team, script=[(5.0, "cyd"), *then])


def thrown_away(seed: int, heeds: bool = True) -> Scene:
    """Cyd discards what is not its field. What comes back to ann she does herself.

    If she does not heed notes she throws it away too.
    """

    def ann(view: View, draws: KeyedRandom) -> Decision:
        returned = [event for event in problems(view) if event.notes]
        if not returned:
            return share(view, draws)
        if not heeds:
            return Decision.discard(returned)
        done = NewEvent(payload=sum(returned[0].payload), to=["ann"], type="report")
        return Decision(fates=[EventFate(event=returned[0].id, fate="consume")], outputs=[done])

    def cyd(view: View, draws: KeyedRandom) -> Decision:
        return Decision.discard(problems(view))

    return scene(seed, {"ann": (ann, 0.5), "bob": (count, 1.0), "cyd": (cyd, 1.0)})


# --- DL -------------------------------------------------------------------------------------


def deadlock(seed: int, heeds: bool = True) -> Scene:
    """Bob and cyd are too modest to report before the other has.

    Told that everybody waits, they do what they hold.
    """

    def modest(view: View, draws: KeyedRandom) -> Decision:
        if reports(view) or (heeds and is_told(view)):
            return count(view, draws)
        return Decision.wait()

    return scene(seed, {"ann": (share, 0.5), "bob": (modest, 1.0), "cyd": (modest, 1.0)})


def deadlocks(seed: int) -> Scene:
    """Ann gives bob one number after the other, and each time he does nothing before he is told."""
    values: list[int] = []
    known: list[int] = []

    def ann(view: View, draws: KeyedRandom) -> Decision:
        if not (problems(view) or reports(view)):
            return Decision.wait()
        values.extend(value for event in problems(view) for value in event.payload)
        known.extend(event.payload for event in reports(view))
        if len(known) == len(values):
            return Decision.submit(view, sum(known))
        task = NewEvent(payload=[values[len(known)]], to=["bob"], type="problem")
        return Decision.respond(view, task)

    def bob(view: View, draws: KeyedRandom) -> Decision:
        return count(view, draws) if is_told(view) else Decision.wait()

    return scene(seed, {"ann": (ann, 0.5), "bob": (bob, 1.0)}, memory=True)


# --- ER -------------------------------------------------------------------------------------


def excessive_rerouting(seed: int, heeds: bool = True) -> Scene:
    """Everybody thinks that somebody else is better at this.

    Told that an event has been passed on too often, whoever has it does it.
    """

    def modest(view: View, draws: KeyedRandom) -> Decision:
        task = problems(view)
        if heeds and task[0].notes:
            return Decision.submit(view, sum(task[0].payload))
        return Decision.reroute(task, [draws.choice(view.others, "better")])

    team: Habits = dict.fromkeys(("ann", "bob", "cyd"), (modest, 0.4))
    return scene(seed, team, limit_s=30.0)


# --- CLA ------------------------------------------------------------------------------------


def mixed_up(seed: int, heeds: bool = True, *, by: str = "ann") -> Scene:
    """Bob and cyd are asked the same by two people; what they report is added up.

    Ann, who gets both reports, adds them as if they were parts of one thing (stage `delivery`),
    or, if it is dan who adds, puts them into one letter to him (stage `consumption`). Told that
    things have no origin in common, ann or dan takes them for two answers to one question.
    """

    def add_up(view: View) -> Decision:
        values = [n for event in reports(view) for n in _figures(event)]
        is_noted = heeds and any(event.notes for event in reports(view))
        return Decision.submit(view, sum(values) // len(values) if is_noted else sum(values))

    def ann(view: View, draws: KeyedRandom) -> Decision:
        if len(reports(view)) < 2:
            return Decision.wait()
        if by == "ann":
            return add_up(view)
        both = [event.payload for event in reports(view)]
        return Decision.respond(view, NewEvent(payload=both, to=["dan"], type="report"))

    def dan(view: View, draws: KeyedRandom) -> Decision:
        return add_up(view)

    again = Output(numbers(seed), ("cyd",), "problem")
    team: Habits = {"bob": (count, 1.0), "cyd": (count, 1.0), "ann": (ann, 1.0), "dan": (dan, 1.0)}
    return scene(seed, team, script=[(0.5, again)])


def _figures(event: Pending) -> list[int]:
    return event.payload if isinstance(event.payload, list) else [event.payload]


# --- RSP ------------------------------------------------------------------------------------


def repeated_solving(
    seed: int,
    heeds: bool = True,
    *,
    asked: Sequence[str] = ("bob", "cyd"),
    bob: Habit | None = None,
) -> Scene:
    """Ann asks bob and cyd for the same half, whoever has time, and both do it.

    Two reports about a half may be two parts of it, so she adds them; but one whose note names
    another of them she leaves out. Whoever is told beforehand that an event is another's to
    handle leaves it alone.
    """

    def ann(view: View, draws: KeyedRandom) -> Decision:
        if problems(view):
            return halve(view, asked, ["dan"])
        senders = {event.sender for event in reports(view)}
        if "dan" not in senders or len(senders) < 2:
            return Decision.wait()
        ids = [f"`{event.id}`" for event in reports(view)]
        twice = [event for event in reports(view) if any(i in n for i in ids for n in event.notes)]
        return Decision.submit(view, total(reports(view)) - (total(twice) if heeds else 0))

    def clerk(view: View, draws: KeyedRandom) -> Decision:
        others = [e for e in problems(view) if any("leave it to `" in note for note in e.notes)]
        return Decision.discard(others) if heeds and others else count(view, draws)

    clerks: Habits = dict.fromkeys(asked, (clerk, 1.0))
    clerks["bob"] = (bob or clerk, 1.0)
    return scene(seed, {"ann": (ann, 0.5), **clerks, "dan": (count, 10.0)})
