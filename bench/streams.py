"""Message streams for `bench.rivals`: healthy teams, and teams with one failure each.

A stream is data, made by a seed. It can be fed to any tool that looks at messages between agents;
nothing in it is in the form of a tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

OUTSIDE = "user"
WORDS = (
    "draft", "check", "table", "figure", "source", "claim", "style", "scope", "budget", "title",
    "quote", "summary", "region", "quarter", "margin", "test", "branch", "merge", "review", "patch",
    "server", "cache", "token", "schema",
)  # fmt: skip


@dataclass(frozen=True)
class Message:
    """A message of a stream.

    Attributes:
        id: Its id.
        sender: The agent that sends it, or `user`.
        to: Its recipients: agents, or `user` for an answer.
        at: When it is sent, in seconds.
        text: Its words.
        replies_to: The messages that its sender has used for it.
        kind: `handoff`; `spawn`: a subagent is begun; `return`: a result goes back to the caller;
            `notice`: a status that nobody has to answer.
    """

    id: str
    sender: str
    to: tuple[str, ...]
    at: float
    text: str
    replies_to: tuple[str, ...] = ()
    kind: str = "handoff"


@dataclass(frozen=True)
class Stream:
    """A stream with what is wrong in it.

    Attributes:
        name: Its name.
        failure: What is wrong; empty: the team is healthy.
        culprits: The agents that have to be named.
        messages: The messages, in order of time.
    """

    name: str
    failure: str
    culprits: frozenset[str]
    messages: tuple[Message, ...]


class _Writer:
    """Writes messages one after the other, a few seconds apart."""

    def __init__(self, name: str) -> None:
        self._random = Random(name)  # the same on all machines, unlike `hash`
        self._at = 0.0
        self.messages: list[Message] = []

    def words(self) -> str:
        return " ".join(self._random.choices(WORDS, k=self._random.randint(6, 30)))

    def other(self, agents: Sequence[str], agent: str) -> str:
        """Any of some agents but one."""
        return self._random.choice([name for name in agents if name != agent])

    def wait(self, seconds: float) -> None:
        self._at += seconds

    def say(
        self, sender: str, to: str | Sequence[str], *replies_to: str, kind: str = "handoff",
        text: str | None = None, together: bool = False,
    ) -> str:  # fmt: skip
        """Send a message; `together`: in the same turn as the one before. Its id."""
        if not together:
            self._at = round(self._at + 2 + 6 * self._random.random(), 3)
        recipients = (to,) if isinstance(to, str) else tuple(to)
        id, text = f"m{len(self.messages) + 1}", self.words() if text is None else text
        self.messages.append(Message(id, sender, recipients, self._at, text, replies_to, kind))
        return id

    def ask(self, to: str) -> str:
        return self.say(OUTSIDE, to)

    def report(self, sender: str, to: str, *replies_to: str, text: str | None = None) -> str:
        """Give a result back to the caller."""
        return self.say(sender, to, *replies_to, kind="return", text=text)

    def answer(self, sender: str, *replies_to: str) -> str:
        return self.say(sender, OUTSIDE, *replies_to, kind="return")

    def fan_out(self, caller: str, workers: Sequence[str], cause: str, kind: str) -> list[str]:
        return [
            self.say(caller, worker, cause, kind=kind, together=number > 0)
            for number, worker in enumerate(workers)
        ]

    def stream(self, name: str, failure: str = "", culprits: Iterable[str] = ()) -> Stream:
        return Stream(name, failure, frozenset(culprits), tuple(self.messages))


def _ring(
    agents: Sequence[str], turns: int, *, same: bool = False, answered: bool = False
) -> Stream:
    words = "same words" if same else "other words"
    name = f"{'rounds' if answered else 'ring'} of {len(agents)}, {turns} hand-offs, {words}"
    writer = _Writer(name)
    before = writer.ask(agents[0])
    for turn in range(turns):
        sender, to = agents[turn % len(agents)], agents[(turn + 1) % len(agents)]
        text = f"please look at this, {to}" if same else None
        before = writer.say(sender, to, before, text=text)
    if answered:
        writer.answer(agents[turns % len(agents)], before)
        return writer.stream(name)
    return writer.stream(name, "they hand on to each other, and nobody answers", agents)


EDITORS = ("writer", "critic", "editor")


def _ring_among_others() -> Stream:
    """Three agents go round while two others answer requests of their own."""
    writer = _Writer("ring among others")
    before = writer.ask("writer")
    for turn in range(30):
        before = writer.say(EDITORS[turn % 3], EDITORS[(turn + 1) % 3], before)
        if turn % 5 == 0:
            asked = writer.ask("clerk")
            hit = writer.report("archive", "clerk", writer.say("clerk", "archive", asked))
            writer.answer("clerk", hit)
    return writer.stream("ring of 3 among others", "three of five agents go round", EDITORS)


def _crowd() -> Stream:
    """Four agents hand on to each other in no order."""
    writer = _Writer("crowd")
    team, speaker, before = ("ann", "bob", "cyd", "dan"), "ann", writer.ask("ann")
    for _ in range(40):
        to = writer.other(team, speaker)
        speaker, before = to, writer.say(speaker, to, before)
    return writer.stream("four hand on at random, 40 hand-offs", "and nobody answers", team)


def _spawner(unread: int, name: str) -> Stream:
    """A lead begins nineteen subagents, and answers without the reports of some."""
    writer = _Writer(name)
    workers = [f"worker-{n}" for n in range(1, 20)]
    tasks = writer.fan_out("lead", workers, writer.ask("lead"), "spawn")
    reports = {
        worker: writer.report(worker, "lead", task)
        for worker, task in zip(workers, tasks, strict=True)
    }
    lost = [worker for n, worker in enumerate(workers) if n % 4 == 2][:unread]
    writer.answer("lead", *(report for worker, report in reports.items() if worker not in lost))
    failure = "the lead never reads the reports of four workers" if lost else ""
    return writer.stream(name, failure, lost)


def _nested(unread: bool) -> Stream:
    """A lead has three managers with four subagents each; a report may stay unread."""
    writer = _Writer("nested")
    managers = [f"manager-{n}" for n in range(1, 4)]
    tasks = writer.fan_out("lead", managers, writer.ask("lead"), "spawn")
    reports, lost = [], "worker-2-3" if unread else ""
    for number, (manager, task) in enumerate(zip(managers, tasks, strict=True), 1):
        workers = [f"worker-{number}-{n}" for n in range(1, 5)]
        parts = writer.fan_out(manager, workers, task, "spawn")
        done = {w: writer.report(w, manager, p) for w, p in zip(workers, parts, strict=True)}
        read = [report for worker, report in done.items() if worker != lost]
        reports.append(writer.report(manager, "lead", *read))
    writer.answer("lead", *reports)
    name = "managers of four, a report never read" if unread else "managers of four"
    failure = "a manager never reads the report of a worker" if unread else ""
    return writer.stream(name, failure, {lost} - {""})


def _silent_worker() -> Stream:
    """A worker never comes back, and its caller waits; the clerk serves others meanwhile."""
    writer = _Writer("silent worker")
    tasks = writer.fan_out("lead", ("ann", "bob", "cyd"), writer.ask("lead"), "spawn")
    for worker, task in zip(("ann", "cyd"), (tasks[0], tasks[2]), strict=True):
        writer.report(worker, "lead", task)
    writer.wait(600)
    writer.answer("clerk", writer.ask("clerk"))
    return writer.stream("a worker never answers", "the lead waits for ever", ["bob"])


def _hasty() -> Stream:
    """The lead answers before the slowest worker has reported."""
    writer = _Writer("hasty")
    tasks = writer.fan_out("lead", ("ann", "bob", "cyd"), writer.ask("lead"), "spawn")
    done = [writer.report("ann", "lead", tasks[0]), writer.report("bob", "lead", tasks[1])]
    writer.answer("lead", *done)
    writer.wait(60)
    writer.report("cyd", "lead", tasks[2])
    return writer.stream("answer before the last report", "the lead does not wait", ["cyd"])


def _asks_again() -> Stream:
    """An agent asks a tool agent the same again and again, and hears the same."""
    writer = _Writer("asks again")
    before = writer.ask("planner")
    for _ in range(12):
        asked = writer.say("planner", "search", before, text="find the flights to Oslo")
        before = writer.report("search", "planner", asked, text="no result")
    return writer.stream(
        "the same question 12 times", "and always the same answer", ["planner", "search"]
    )


# --- healthy ---


def _requests() -> Stream:
    writer = _Writer("requests")
    for _ in range(6):
        tasks = writer.fan_out("planner", ("ann", "bob"), writer.ask("planner"), "handoff")
        first = writer.report("ann", "planner", tasks[0])
        writer.answer("planner", first, writer.report("bob", "planner", tasks[1]))
    return writer.stream("six requests, two workers")


def _map_reduce() -> Stream:
    """Four rounds of six mappers; the reducer reads all parts of each."""
    writer = _Writer("map-reduce")
    mappers = [f"mapper-{n}" for n in range(1, 7)]
    before = writer.ask("splitter")
    for _ in range(4):
        tasks = writer.fan_out("splitter", mappers, before, "spawn")
        parts = [writer.say(m, "reducer", t) for m, t in zip(mappers, tasks, strict=True)]
        before = writer.say("reducer", "splitter", *parts)
    writer.answer("splitter", before)
    return writer.stream("map-reduce, four rounds of six")


def _retries() -> Stream:
    """A driver has some mappers do their part again, and a reducer reads all."""
    writer, parts = _Writer("retries"), []
    mappers = [f"mapper-{n}" for n in range(1, 9)]
    tasks = writer.fan_out("driver", mappers, writer.ask("driver"), "spawn")
    for number, (mapper, task) in enumerate(zip(mappers, tasks, strict=True)):
        part = writer.report(mapper, "driver", task)
        for _ in range(2 if number % 3 == 0 else 0):
            again = writer.say("driver", mapper, part, text="that part is damaged: once more")
            part = writer.report(mapper, "driver", again)
        parts.append(part)
    whole = writer.report("reducer", "driver", writer.say("driver", "reducer", *parts))
    writer.answer("driver", whole)
    return writer.stream("map-reduce with retries")


def _phases() -> Stream:
    """A supervisor has thirty workers do a part each, three times."""
    writer = _Writer("phases")
    workers = [f"worker-{n}" for n in range(1, 31)]
    done = [writer.ask("boss")]
    for _ in range(3):
        tasks = [writer.say("boss", worker, *done, kind="spawn", together=worker != workers[0])
                 for worker in workers]  # fmt: skip
        done = [writer.report(w, "boss", task) for w, task in zip(workers, tasks, strict=True)]
    writer.answer("boss", *done)
    return writer.stream("a supervisor of thirty, three phases")


def _group_chat() -> Stream:
    """Eight agents speak, each to the next speaker, and all others hear it."""
    writer = _Writer("group chat")
    team = [f"speaker-{n}" for n in range(1, 9)]
    speaker, before = team[0], writer.ask(team[0])
    for _ in range(60):
        to = writer.other(team, speaker)
        others = [agent for agent in team if agent not in (speaker, to)]
        said = writer.say(speaker, to, before)
        writer.say(speaker, others, before, kind="notice", together=True)
        speaker, before = to, said
    writer.answer(speaker, before)
    return writer.stream("group chat of eight, sixty turns")


def _votes() -> Stream:
    """A chair asks five agents the same, four times."""
    writer = _Writer("votes")
    done, voters = [writer.ask("chair")], [f"voter-{n}" for n in range(1, 6)]
    for _ in range(4):
        asked = [writer.say("chair", voter, *done, text="yes or no?", together=voter != voters[0])
                 for voter in voters]  # fmt: skip
        pairs = zip(voters, asked, strict=True)
        done = [writer.report(voter, "chair", vote, text="yes") for voter, vote in pairs]
    writer.answer("chair", *done)
    return writer.stream("five voters, four rounds with the same words")


def _chatter() -> Stream:
    """Five agents tell all others what they do, beside the work."""
    writer = _Writer("chatter")
    team = [f"agent-{n}" for n in range(1, 6)]
    for number in range(12):
        agent, other = team[number % 5], team[(number + 1) % 5]
        asked = writer.ask(agent)
        writer.say(agent, [a for a in team if a != agent], asked, kind="notice")
        done = writer.report(other, agent, writer.say(agent, other, asked, together=True))
        writer.answer(agent, done)
    return writer.stream("broadcast chatter beside 12 requests")


def _debate() -> Stream:
    """Two sides speak in turn, and a judge closes after five rounds."""
    writer = _Writer("debate")
    before = writer.ask("pro")
    for _ in range(5):
        before = writer.say("con", "pro", writer.say("pro", "con", before))
    writer.answer("judge", writer.say("pro", "judge", before))
    return writer.stream("debate of two, five rounds, and a judge")


def _pipeline() -> Stream:
    writer = _Writer("pipeline")
    stages = ("intake", "parser", "checker", "writer", "sender")
    for _ in range(10):
        before = writer.ask(stages[0])
        for stage, after in pairwise(stages):
            before = writer.say(stage, after, before)
        writer.answer(stages[-1], before)
    return writer.stream("pipeline of five, ten requests")


def _manager() -> Stream:
    """A manager has a builder do nine things, one after the other."""
    writer = _Writer("manager")
    before = writer.ask("manager")
    for _ in range(9):
        before = writer.report("builder", "manager", writer.say("manager", "builder", before))
    writer.answer("manager", before)
    return writer.stream("a manager and a builder, nine tasks")


def _service() -> Stream:
    """A triage desk hands each customer on; some come back once."""
    writer = _Writer("service")
    for number in range(12):
        desk = ("billing", "travel", "refunds")[number % 3]
        before = writer.say("triage", desk, writer.ask("triage"))
        if number % 4 == 0:
            before = writer.say("triage", desk, writer.say(desk, "triage", before))
        writer.answer(desk, before)
    return writer.stream("a service desk, twelve customers")


def streams() -> Iterator[Stream]:
    """All streams: those with a failure first."""
    for turns in (15, 30, 60, 300):
        yield _ring(EDITORS, turns)
        yield _ring(EDITORS, turns, same=True)
    yield _ring(("coder", "tester"), 20)
    yield _ring(("ann", "bob", "cyd", "dan", "eve"), 30)
    yield _ring_among_others()
    yield _crowd()
    yield _spawner(4, "19 spawned, 4 reports never read")
    yield _nested(unread=True)
    yield _hasty()
    yield _silent_worker()
    yield _asks_again()
    yield _requests()
    yield _spawner(0, "19 spawned, all reports read")
    yield _nested(unread=False)
    yield _map_reduce()
    yield _retries()
    yield _phases()
    yield _group_chat()
    yield _votes()
    yield _chatter()
    yield _debate()
    yield _pipeline()
    yield _manager()
    yield _service()
    yield _ring(("writer", "critic"), 16, answered=True)
    yield _ring(("writer", "critic"), 40, answered=True)
    yield _ring(EDITORS, 18, answered=True)
