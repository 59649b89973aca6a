"""Random traces: valid ones that visit the corners, and ones that are broken on purpose.

A `Model` knows just enough of a run to tell which record may come next. A `_Writer` picks among
those records; a breaker of `BREAKERS` makes one that may not come.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

Row = dict[str, Any]
T = TypeVar("T")

GHOSTS = ["ghost", "Phantom 2"]  # named as recipients only, never there
SIDE_KINDS = ("finding", "heal", "incident")
TYPES = ["problem", "solution", "raw_data", "message", "notice", "system", "my own"]
TYPE_WEIGHTS = [8, 8, 4, 4, 4, 1, 2]
MOODS = {"respond": 9, "submit": 4, "wait": 3, "reroute": 3, "discard": 1, "mix": 5, "fail": 1}

# Corners that a trace reaches only if it does more of something than others do. Each has one
# habit: the steps and moods named here are that many times as likely in it, and an activation
# keeps the others waiting `patience` times as long.
CALM = dict.fromkeys(("redirect", "expire", "join", "leave", "side", "start_empty"), 0.2)
HABITS: dict[str, dict[str, float]] = {
    "none": {},
    "merge": CALM | {"respond": 6, "hub": 2.5, "pose": 2, "reroute": 0.2, "deliver": 2},
    "pass on": CALM | {"reroute": 6, "respond": 0.3},
    "answer": CALM | {"submit": 3, "accept": 9, "pose": 2, "hub": 2, "deliver": 2},
    "lose and find": {"discard": 8, "redirect": 5, "expire": 3, "note": 2},
    "come and go": {"leave": 3, "join": 6, "submit": 6},
    "linger": {"end": 0.2, "start": 0.6, "leave": 4, "wait": 2, "patience": 4},
    "go round": CALM | {"rally": 100, "accept": 3},
    "toss": CALM | {"toss": 100, "submit": 2},
    "nag": CALM | {"nag": 100, "accept": 3},
    "toil": {"toil": 80, "end": 0.25, "start": 2, "patience": 4},
    "falter": CALM | {"falter": 100, "fail": 6, "submit": 3, "accept": 3, "give_up": 6},
    "idle": CALM | {"end": 0.3, "deliver": 3, "wait": 5, "waits": 6, "patience": 0.4},
    "dawdle": {"deliver": 0.15, "start": 0.5, "redirect": 0.5, "expire": 0.3, "emit_policy": 2},
}
HABIT_WEIGHTS = [6, 6, 2, 5, 2, 5, 5, 3, 3, 4, 4, 5, 3, 1]

ABSENT: Any = object()
PAYLOADS = [
    *[ABSENT, ABSENT, ABSENT, None, "text", "text", "other", 1, 1.0, True, {}],
    {"a": [1], "b": {"c": 1, "d": 2}},
    {"b": {"d": 2, "c": 1}, "a": [1]},
    *[{"$cut": "0a1b", "a": [1]}, {"a": {"$cut": "0a1b"}}],
]
GROWN = [
    *["text", {"$given": 1, "$new": "text"}, {"$given": [], "$new": {"$given": 2, "$new": "text"}}],
    *[{"a": ["text"]}, {"a": [{"$new": "text", "$given": {"$cut": 1}}]}],
    *[{"$given": 1, "$new": "text", "more": 1}, {"$given": "text", "$new": None}],
    *[{"$given": 1, "$new": {"$cut": 1}}, {"$new": "text"}],
]
"""Payloads with what was given before in them; some are the same, some cannot be compared."""
ALIKE = [
    *[["text"], [PAYLOADS[-4], PAYLOADS[-3]], [PAYLOADS[-1]], [{}], GROWN, GROWN[:3]],
    *[[PAYLOADS[-2]], [None]],
]
"""Payloads of messages that are the same; those of the last two are never taken for that."""
CALL = '{"name": "add", "arguments": {"a": 1}}'
ANSWERS = [
    *["", " \n\t", CALL, f"\n{CALL} ", '{"parameters": [], "name": ""}'],
    *[
        '{"name": 1, "arguments": {}}',
        '{"name": "add", "arguments": 1, "id": 2}',
        '{"name": "add"}',
    ],
    *["[]", '{"name": "add", "arguments": {}', {"name": "add", "arguments": {}}, [""], "an answer"],
]
"""Payloads of answers, some of which are none."""
ODD: list[Any] = [None, "error", {}, [], 3, {"how": "error", "event": {}}, {"activation": ["v"]}]
"""Details of incidents that have no right form."""
WRONG: list[Row] = [
    {"how": "other"},
    {"how": None},
    {"how": []},
    {"event": 1},
    {"error": 1},
    {"error": {}},
    {"activation": [1]},
]
"""What makes a failed request one that is not looked at."""
ERRORS = ["timed out", "e" * 199 + "\U0001f600" * 2, "\U0001f600" * 201, " "]
POLICIES = ["fault", "fault", "batch", "on demand", None]
KEYS = [
    *["MC", "OE", "DL", "ER", "CLA delivery", "CLA consumption", "CLA", "RSP", "STALL", "LATE"],
    *["LOOP", "LIVELOCK", "VOID", "FAIL turn", "FAIL answer", "FAIL request", "FAIL"],
    *["ET", "ET problem", "ET problem", "ET solution", "ET message", "ET problem,solution"],
]
"""Under which findings may be usual, and some under which none is."""


class Model:
    """What the writer of a trace has to remember to break no rule.

    Lists and dicts only: the order of a set of strings differs from one process to the next,
    and a seed must always give the same trace.
    """

    def __init__(self, rows: Sequence[Row] = ()) -> None:
        self.t = -1
        self.us = 0
        self.session = False
        self.over = self.finished = False
        self.absent: list[str] = []
        self.buffers: dict[str, list[str]] = {}
        self.busy: dict[str, str] = {}
        self.inputs: dict[str, list[str]] = {}
        self.ended: list[str] = []
        self.agents: dict[str, str] = {}
        self.failed: list[str] = []
        self.flight: dict[str, list[str]] = {}
        self.system: list[str] = []
        self.finals: list[str] = []
        self.bounced: list[str] = []
        self.accepted: list[str] = []
        self.author = ""
        self.outputs: list[str] = []
        self.pending: list[str] = []
        self.raised: list[int] = []
        for row in rows:
            self.apply(row)

    @property
    def calm(self) -> bool:
        """Whether a record of any usual kind may come."""
        return self.t >= 0 and not (self.pending or self.over or self.finished)

    @property
    def ids(self) -> list[str]:
        """The ids that are used up, those of outputs still to come among them."""
        return [*self.flight, *self.inputs, *self.pending]

    @property
    def idle(self) -> list[str]:
        """The agents that may be started."""
        return [agent for agent in self.buffers if agent not in self.busy]

    @property
    def lost(self) -> list[str]:
        """The events that are nowhere any more, consumed or not."""
        held = {event for buffer in self.buffers.values() for event in buffer}
        return [e for e, to in self.flight.items() if not (to or e in held or e in self.finals)]

    @property
    def movable(self) -> list[str]:
        """The events that may still be sent to somebody."""
        return [event for event in self.flight if event not in self.accepted]

    @property
    def waiting_finals(self) -> list[str]:
        """The final events that the environment may still take."""
        return [e for e in self.finals if e not in self.bounced and e not in self.accepted]

    def apply(self, row: Row) -> None:
        """Takes note of a valid record."""
        self.t, self.us = row["t"], round(row["ts"] * 1e6)
        getattr(self, f"_{row['kind']}", lambda _: None)(row)

    def _run(self, row: Row) -> None:
        self.session = row.get("session", False)
        self.buffers = {agent: [] for agent in row["agents"]}

    def _emit(self, row: Row) -> None:
        self.flight[row["event"]] = [] if row["final"] else self._reachable(row)
        if row["final"]:
            self.finals.append(row["event"])
        if row["by"] == "system":
            self.system.append(row["event"])
        if self.pending:
            self.pending.pop(0)

    def _reachable(self, row: Row) -> list[str]:
        there = [a for a in row["to"] if row["event"] not in self.buffers.get(a, [row["event"]])]
        return list(dict.fromkeys(there))

    def _deliver(self, row: Row) -> None:
        event, agent = row["event"], row["to"]
        if agent is None:
            self.accepted.append(event)
            self.flight[event] = []
            self.over = not self.session
            return
        self.flight[event].remove(agent)
        self.buffers[agent].append(event)
        if event in self.finals:
            self.bounced.append(event)

    def _start(self, row: Row) -> None:
        self.busy[row["agent"]] = row["activation"]
        self.inputs[row["activation"]] = row["inputs"]
        self.agents[row["activation"]] = row["agent"]

    def _end(self, row: Row) -> None:
        self.author, self.outputs = row["activation"], row["outputs"]
        self.pending = list(self.outputs)
        self.ended.append(self.author)
        if row.get("error"):
            self.failed.append(self.author)
        agent = next(a for a, v in self.busy.items() if v == self.author)
        del self.busy[agent]
        notes = [e for e in self.inputs[self.author] if e in self.system]
        fates = {e: {"event": e, "fate": "consume"} for e in notes}
        fates |= {fate["event"]: fate for fate in row["fates"]}
        for event, fate in fates.items():
            if fate["fate"] != "delay":
                self.buffers[agent].remove(event)
            if fate["fate"] == "reroute":
                self.flight[event] += self._reachable(fate)
                self.flight[event] = list(dict.fromkeys(self.flight[event]))

    def _join(self, row: Row) -> None:
        self.buffers[row["agent"]] = []
        self.absent = [agent for agent in self.absent if agent != row["agent"]]

    def _leave(self, row: Row) -> None:
        agent = row["agent"]
        self.absent.append(agent)
        self.busy.pop(agent, None)
        del self.buffers[agent]
        self.flight = {e: [a for a in to if a != agent] for e, to in self.flight.items()}

    def _redirect(self, row: Row) -> None:
        self.flight[row["event"]] = self._reachable(row)

    def _expire(self, row: Row) -> None:
        self.flight[row["event"]] = []

    def _finding(self, row: Row) -> None:
        self.raised.append(row["t"])

    def _finish(self, _: Row) -> None:
        self.finished = True


# -- valid traces ---


def random_trace(
    rng: random.Random,
    *,
    length: int = 60,
    session: bool | None = None,
    memory: bool | None = None,
    coverage: bool | None = None,
    agents: int | None = None,
) -> list[Row]:
    """Makes up a valid trace.

    Args:
        rng: Where all choices come from: equal generators give equal traces.
        length: About how many rows the trace gets; it may stop earlier.
        session: Whether it is a session; left to chance, like what follows, if not given.
        memory: Whether its agents remember.
        coverage: Whether lost parts of an answer count.
        agents: With how many agents it begins, by chance 1 to 6.

    Returns:
        Its rows, ready to be written as JSON.
    """
    writer = _Writer(rng)
    writer.open(session, memory, coverage, agents or rng.choice([1, 2, 2, 3, 3, 4, 5, 6]))
    writer.stage = length
    if rng.random() < 0.015:
        writer.flood()
    while len(writer.rows) < length and not (writer.model.over and rng.random() < 0.4):
        writer.step()
    writer.close()
    return writer.rows


class _Writer:
    """Writes one trace, choosing among what its model allows."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.model = Model()
        self.rows: list[Row] = []
        self.stage = 0
        self.scale = rng.choice([1, 1, 1000, 500_000])
        self.spans: list[int] = []
        self.submits = False
        self.hub = ""
        self.said: list[Any] = []  # what the next events say, if that is not left to chance
        self.habit = HABITS[rng.choices(list(HABITS), HABIT_WEIGHTS)[0]]

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def add(self, kind: str, us: int | None = None, **keys: Any) -> None:
        """Writes a record, if not told otherwise at some time not before the last."""
        if us is None:
            us = self._time() if self.rows else self.rng.choice([0, 0, 3])
        row = {"t": len(self.rows), "ts": us / 1e6, "kind": kind, **keys}
        self.model.apply(row)
        self.rows.append(row)

    def _time(self) -> int:
        """The next time: often the same, or exactly that at which some window is over."""
        now = self.model.us
        recent = [round(float(row["ts"]) * 1e6) for row in self.rows[-12:]]
        deadlines = [us + span for us in recent for span in self.spans]
        due = [us for us in deadlines if us >= now] or [now]
        far = now + self.rng.randint(1, 6 * self.scale)
        near = max(now, self.rng.choice(due) + self.rng.choice([-1, 1]))
        choices = [now, now + 1, min(due), self.rng.choice(due), near, far]
        return self.rng.choices(choices, [45, 12, 12, 9, 6, 10])[0]

    def name(self, letter: str) -> str:
        """A fresh id, whose place in the alphabet tells nothing about its age."""
        while True:
            name = f"{letter}{self.rng.randint(1, 999)}"
            if name not in self.model.ids:
                return name

    # -- beginning, end, and one step between ---

    def open(
        self, session: bool | None, memory: bool | None, coverage: bool | None, agents: int
    ) -> None:
        keys: Row = {"session": session, "memory": memory}
        for key, value in keys.items():
            keys[key] = self.chance(0.5) if value is None else value
        keys = {key: value for key, value in keys.items() if value or self.chance(0.5)}
        if self.chance(0.35):
            keys["usual"] = self.usual()
        windows = ["mc_window_s", "oe_window_s", "dl_window_s", "activation_limit_s"]
        limits: Row = {key: self.rng.randint(1, 5) * self.scale / 1e6 for key in windows}
        limits["activation_limit_s"] *= max(self.habit.get("patience", 1), 1 / self.scale)
        limits["reroute_limit"] = self.rng.choice([1, 1, 2, 3])
        limits["coverage"] = self.chance(0.75) if coverage is None else coverage
        if coverage is None and self.chance(0.2):
            limits.pop(self.rng.choice(list(limits)))
        keys |= self._maybe(patterns=self.rng.choice([1, 2, 2, None]))
        if self.chance(0.85):
            limits |= self.new_limits()
            windows += [key for key in ("late_window_s", "stall_min_s") if limits.get(key)]
        if coverage is None and self.chance(0.05):
            limits[self.rng.choice(list(limits))] = None  # as if it were not there
        self.spans = [round(limits[key] * 1e6) for key in windows if limits.get(key)]
        names = [f"agent {n}" if n % 3 else f"A{n}" for n in range(agents)]
        if self.chance(0.5):  # some are instances of the one before, which need not be there
            names = [f"{names[n - 1]}#{n}" if n % 2 else names[n] for n in range(agents)]
        self.rng.shuffle(names)
        self.hub = names[0]  # often addressed, so that lineages meet there
        if not self.chance(0.03):
            keys["limits"] = limits
        self.add("run", version=1, run="random", agents=names, **keys)

    def new_limits(self) -> Row:
        """Those that switch patterns on, so small that the patterns are seen, or null."""
        rng, span = self.rng, self.scale / 1e6
        limits: Row = {
            "stall_factor": rng.choice([0.5, 1, 1, 1.5, 2]),
            "stall_min_s": rng.choice([span, 2 * span, 3 * span]),
            "late_window_s": rng.randint(1, 5) * span,
            "loop_limit": rng.choice([2, 2, 3]),
            "livelock_turns": rng.choice([2, 2, 3, 4]),
            "livelock_agents": rng.choice([2, 2, 3, 4]),
        }
        for key in ("stall_factor", "late_window_s", "loop_limit", "livelock_turns"):
            if self.chance(0.1):
                limits[key] = None
        if self.chance(0.2):
            del limits[rng.choice(list(limits))]
        return limits

    def usual(self) -> Row:
        """How often what was found in good runs of this team."""
        runs = self.rng.choice([0, 18, 19, 39, 60])
        counts: dict[str, list[int]] = {}
        for key in self.rng.sample(KEYS, self.rng.randint(0, len(KEYS))):
            some = [self.rng.randint(0, runs) for _ in range(self.rng.randint(0, 4))]
            counts[key] = sorted([*some, runs // 20], reverse=True)
        return {"runs": runs, "counts": counts}

    def flood(self) -> None:
        """An agent splits a problem into more parts than evidence lists."""
        me, names = self.rng.choice(self.model.idle), [f"part {n}" for n in range(101)]
        self._act(me, [{"event": self._serve(me), "fate": "consume"}], names)
        for name in names:
            self.emit(name, self.model.author, "problem", [self.hub], final=False)
        for name in names if self.chance(0.7) else []:
            self.add("deliver", event=name, to=self.hub)
        if self.chance(0.5):  # let a window pass
            self.add("incident", us=self.model.us + 9 * self.scale, what="x", detail="y")
        self.stage += len(self.rows)

    def step(self) -> None:
        """Writes one record."""
        model, rng = self.model, self.rng
        if model.over or (model.pending and self.chance(0.15)):
            return self.side()
        if model.pending:
            return self.output()
        flying = [e for e, to in model.flight.items() if to]
        posed = any(row["kind"] == "emit" for row in self.rows)
        late = model.session or len(self.rows) > 0.75 * self.stage
        options: list[tuple[Callable[[], None], float]] = [
            (self.pose, (0.7 if model.session else 0.5) if posed else 12),
            (self.note, 0.5),
            (self.side, 0.5),
            (self.join, 0.4 if model.buffers else 3),
            (self.deliver, min(8, 2.5 * len(flying))),
            (self.start, 3 if any(model.buffers[a] for a in model.idle) else 0),
            (self.start_empty, 0.4 if model.idle else 0),
            (self.end, 5 if model.busy else 0),
            (self.leave, 0.3 if model.buffers else 0),
            (self.redirect, 0.7 if model.movable else 0),
            (self.expire, 0.4 if model.flight else 0),
            (self.bounce, 1.5 if model.waiting_finals and model.buffers else 0),
            (self.accept, (2 if late else 0.1) if model.waiting_finals else 0),
            (self.rally, 0.015 if len(model.idle) > 1 else 0),
            (self.toss, 0.015 if len(model.idle) > 1 else 0),
            (self.nag, 0.015 if model.idle else 0),
            (self.falter, 0.015 if len(model.idle) > 1 else 0),
            (self.waits, 0.25),
            (self.give_up, 0.04),
            (self.toil, 0.015 if model.idle else 0),
        ]
        weights = [weight * self.habit.get(do.__name__, 1) for do, weight in options]
        rng.choices([do for do, _ in options], weights)[0]()

    def close(self) -> None:
        """Ends the file: properly, at any record, or with outputs still owed."""
        if self.model.pending and self.chance(0.5):
            return
        while self.model.pending:
            self.output()
        if self.chance(0.5):
            outcome = self.rng.choice(["submitted", "timeout", "stopped", "error"])
            usage = {v: {"output_tokens": 3} for v in self.model.busy.values()}
            self.add("finish", outcome=outcome, **self._maybe(answer="42", usage=usage))

    def _maybe(self, **keys: Any) -> Row:
        """Some of the optional keys."""
        return {key: value for key, value in keys.items() if self.chance(0.3)}

    # -- recipients ---

    def to(self, me: str | None = None) -> list[str]:
        """Recipients: mostly present agents; sometimes nobody, absent ones, `me`, one twice."""
        here = list(self.model.buffers)
        wanted = self.rng.choice([0, 1, 1, 1, 2, 2, 3, 6])
        names = self.rng.sample(here, min(wanted, len(here)))
        if (
            self.hub in here
            and self.hub not in names
            and self.chance(0.35 * self.habit.get("hub", 1))
        ):
            names.append(self.hub)
        if me is not None and me not in names and self.chance(0.15):
            names.append(me)
        if self.chance(0.2):
            names.append(self.rng.choice(GHOSTS + self.model.absent))
        self.rng.shuffle(names)
        if names and self.chance(0.03):
            names.append(names[0])
        return names

    # -- the kinds of records ---

    def emit(self, event: str, by: str | None, kind: str, to: list[str], final: bool) -> None:
        payload = self.rng.choice(self.said or (self.answers() if final else PAYLOADS))
        extra: Row = {} if payload is ABSENT else {"payload": payload}
        if self.chance(0.15 * self.habit.get("emit_policy", 1)):
            extra["policy"] = self.rng.choice(POLICIES)
        self.add("emit", event=event, by=by, to=to, type=kind, final=final, **extra)

    def answers(self) -> list[Any]:
        """What an answer may say: also what was asked, more or less."""
        asked = [r.get("payload") for r in self.rows if r["kind"] == "emit" and r["by"] is None]
        asked = [words for words in asked if isinstance(words, str)]
        echoes = [f"{self.rng.choice(['', ' '])}{words}\n" for words in asked]
        return self.rng.choice([PAYLOADS, PAYLOADS, ANSWERS, echoes or ANSWERS])

    def any_type(self) -> str:
        return self.rng.choices(TYPES, TYPE_WEIGHTS)[0]

    def pose(self) -> None:
        """An event from the environment, often for several agents."""
        to = list(self.model.buffers) if self.chance(0.4) else self.to()
        kind = self.rng.choices(["problem", "notice", "system"], [12, 2, 1])[0]
        self.emit(self.name("e"), None, kind, to, final=False)

    def note(self) -> None:
        """A system event, whatever its type says."""
        kind = self.rng.choices(["system", "notice", "problem"], [6, 1, 1])[0]
        self.emit(self.name("s"), "system", kind, self.to(), final=False)

    def output(self) -> None:
        """The next event of the activation that has just ended."""
        author = self.model.author
        me = next(r["agent"] for r in self.rows if r.get("activation") == author)
        kind = "solution" if self.submits else self.any_type()
        self.emit(self.model.pending[0], author, kind, self.to(me), final=self.submits)

    def deliver(self) -> None:
        event = self.rng.choice([e for e, to in self.model.flight.items() if to])
        self.add("deliver", event=event, to=self.rng.choice(self.model.flight[event]))

    def start(self) -> None:
        self._start([a for a in self.model.idle if self.model.buffers[a]])

    def start_empty(self) -> None:
        """Any idle agent, most of which have nothing to do."""
        self._start(self.model.idle)

    def _start(self, agents: list[str]) -> None:
        most = max(agents, key=lambda agent: len(self.model.buffers[agent]))
        agent = most if self.chance(0.3) else self.rng.choice(agents)
        inputs = list(self.model.buffers[agent])
        self.add("start", activation=self.name("v"), agent=agent, inputs=inputs)

    def end(self) -> None:
        agent, activation = self.rng.choice(list(self.model.busy.items()))
        inputs = self.model.inputs[activation]
        weights = [weight * self.habit.get(mood, 1) for mood, weight in MOODS.items()]
        mood = self.rng.choices(list(MOODS), weights)[0]
        if mood == "wait" or (mood == "fail" and self.chance(0.7)):
            fates = [self.fate(e, agent, "delay") for e in inputs if self.chance(0.5)]
        else:
            fates = [self.fate(e, agent, self.taste(mood)) for e in inputs if self.chance(0.92)]
        self.rng.shuffle(fates)
        self.submits = mood == "submit"
        count = {"respond": [1, 1, 1, 2, 3], "submit": [1], "mix": [0, 1, 2]}.get(mood, [0])
        outputs = list({self.name("e"): None for _ in range(self.rng.choice(count))})
        extra = self._maybe(usage={"input_tokens": 7})
        if mood == "fail" or (count != [1] and self.chance(0.02)):
            extra |= self.failure(agent)
        self.add("end", activation=activation, fates=fates, outputs=outputs, **extra)

    def failure(self, agent: str) -> Row:
        """The error of an activation, sometimes that of another's, or no error of anybody."""
        failed = [v for v in self.model.failed if self.model.agents[v] != agent]
        words: Row = {"error": self.rng.choice(ERRORS)}
        if failed and self.chance(0.4):
            return words | {"because": self.rng.choice(failed)}
        if self.chance(0.15):
            return words | {"cancelled": True}
        return words | self._maybe(**{self.rng.choice(["because", "cancelled"]): None})

    def taste(self, mood: str) -> str:
        """The fate of one input; in a mixed mood they differ."""
        main = {"reroute": "reroute", "discard": "discard"}.get(mood, "consume")
        fates = ["consume", "delay", "reroute", "discard"]
        return self.rng.choice(fates) if mood == "mix" or self.chance(0.1) else main

    def fate(self, event: str, agent: str, fate: str) -> Row:
        named: Row = {"event": event, "fate": fate}
        return named | ({"to": self.to(agent)} if fate == "reroute" else {})

    # -- several records at once, by agents that all are idle ---

    def rally(self) -> None:
        """Few agents hand on to each other for long."""
        team = self._team()
        ball = self._serve(team[0])
        turns = self.rng.choice([4, 8, 9, 17, 17, 17])
        if self.rows[0].get("limits", {}).get("livelock_turns") == 2 and self.chance(0.25):
            turns = 33
            self.stage += 4 * turns
        for n in range(turns):
            me, after = team[n % len(team)], team[(n + 1) % len(team)]
            if len(self.rows) >= self.stage or ball not in self.model.buffers[me]:
                return
            new = self.name("e")
            self._act(me, [{"event": ball, "fate": "consume"}], [new])
            self.emit(new, self.model.author, self.any_type(), [after], final=False)
            self._arrive(new, after)
            ball = new

    def toss(self) -> None:
        """Few agents reroute an event to each other for long, or each to another one."""
        team = self._team() if self.chance(0.8) else self.rng.sample(self.model.idle, 2)
        ball = self._serve(team[0])
        for n in range(self.rng.choice([3, 5, 9, 17, 17])):
            me, after = team[n % len(team)], team[(n + 1) % len(team)]
            if len(self.rows) >= self.stage or ball not in self.model.buffers[me]:
                return
            to = self.to(me) if self.chance(0.05) else [after]
            self._act(me, [{"event": ball, "fate": "reroute", "to": to}], [])
            self._arrive(ball, after)

    def nag(self) -> None:
        """An agent says the same again and again, of itself or to the same question."""
        me, to, kind = self.rng.choice(self.model.idle), self.to(), self.any_type()
        alike = self.rng.choices(ALIKE, [5, 5, 3, 1, 4, 2, 1, 1])[0]
        asked = [e for e in self._ask(me) if e in self.model.flight] if self.chance(0.5) else []
        for n in range(self.rng.choice([3, 8, 9, 12])):
            if len(self.rows) >= self.stage or me not in self.model.idle:
                return
            fates = []
            if n < len(asked):
                self._arrive(asked[n], me)
                held = asked[n] in self.model.buffers[me]
                fates = [{"event": asked[n], "fate": "consume"}] if held else []
            new = self.name("e")
            self._act(me, fates, [new])
            self.said = alike
            self.emit(new, self.model.author, kind, to, final=False)
            self.said = []
            other = [a for a in self.model.idle if a.split("#")[0] == me.split("#")[0]]
            me = self.rng.choice(other) if self.chance(0.2) and not asked else me

    def falter(self) -> None:
        """An agent fails with its work; it, or another one, may do it after all; one answers."""
        team = self.rng.sample(self.model.idle, min(len(self.model.idle), 3))
        self.said = self.rng.choice([["text"], GROWN[:2], [PAYLOADS[-2]], []])
        work = list({self._serve(team[0]): None for _ in range(self.rng.choice([1, 1, 1, 2]))})
        twins = list({self._serve(team[-1]): None for _ in self.rng.choice([[], work])})
        self.said = []
        for _ in range(self.rng.choice([1, 1, 2])):
            self._act(team[0], [], [], **self.failure(team[0]))
        if self.chance(0.2):
            held = [e for e in work if e in self.model.buffers[team[0]]]
            self._act(team[0], [{"event": e, "fate": "consume"} for e in held], [])
        for event in work if self.chance(0.4) else ():  # they go to somebody else, too
            self.add("redirect", event=event, to=[self.rng.choice(team[1:])])
            for agent in list(self.model.flight[event]):
                self._arrive(event, agent)
        helper = self.rng.choice(team[1:])
        if len(team) > 2 and self.chance(0.6):
            used = [e for e in {**dict.fromkeys(work), **dict.fromkeys(twins)} if self.chance(0.9)]
            held = [e for e in used if e in self.model.buffers[helper]]
            more = self.failure(helper) if self.chance(0.1) else {}
            self._act(helper, [{"event": e, "fate": "consume"} for e in held], [], **more)
        me = self.rng.choice(team[1:])
        fates = [{"event": e, "fate": "consume"} for e in self.model.buffers[me]]
        self._act(me, fates, [final := self.name("e")])
        self.emit(final, self.model.author, "solution", [], final=True)

    def toil(self) -> None:
        """An agent gets some things done, and begins with one that may take longer."""
        me = self.rng.choice(self.model.idle)
        for _ in range(self.rng.choice([2, 5, 6, 7])):
            if len(self.rows) >= self.stage:
                break
            new = self.name("e")
            self._act(me, [], [new])
            self.emit(new, self.model.author, "notice", [], final=False)
        self._serve(me)
        self._start([me])

    def _team(self) -> list[str]:
        idle = self.model.idle
        return self.rng.sample(idle, min(len(idle), self.rng.choice([2, 2, 2, 3])))

    def _serve(self, agent: str) -> str:
        """An event in the agent's buffer, mostly a new one."""
        if self.model.buffers[agent] and self.chance(0.3):
            return self.rng.choice(self.model.buffers[agent])
        event = self.name("e")
        self.emit(event, None, "problem", [agent], final=False)
        self._arrive(event, agent)
        return event

    def _arrive(self, event: str, agent: str) -> None:
        if self.chance(0.05):
            self.side()
        if agent in self.model.flight[event]:
            self.add("deliver", event=event, to=agent)

    def _ask(self, agent: str) -> list[str]:
        """Questions that are all alike, parts of one problem."""
        by = self.rng.choice([agent, *self.model.idle])
        problem = self._serve(by)
        if problem not in self.model.buffers[by]:
            return []
        names = list({self.name("e"): None for _ in range(9)})
        self._act(by, [{"event": problem, "fate": "consume"}], names)
        self.said = ["question"]
        for name in names:
            self.emit(name, self.model.author, "notice", [agent], final=False)
        self.said = []
        return names

    def _act(self, agent: str, fates: list[Row], outputs: list[str], **extra: Any) -> None:
        """An activation, whose outputs are still to come."""
        activation, inputs = self.name("v"), list(self.model.buffers[agent])
        self.add("start", activation=activation, agent=agent, inputs=inputs)
        self.add("end", activation=activation, fates=fates, outputs=outputs, **extra)

    def join(self) -> None:
        """An agent that comes back, or a new one."""
        some = ["A0#7", "agent 1#12"] if self.chance(0.3) else []
        fresh = [*some, *(f"new {n}" for n in range(99))]
        fresh = [a for a in fresh if a not in self.model.buffers and a not in self.model.absent]
        self.add("join", agent=self.rng.choice(self.model.absent * 3 + fresh[:2]))

    def leave(self) -> None:
        busy = list(self.model.busy)
        self.add("leave", agent=self.rng.choice([*self.model.buffers, *busy, *busy]))

    def redirect(self) -> None:
        flying = [e for e, to in self.model.flight.items() if to]
        likely = self.model.lost if self.chance(0.35) else flying
        likely = [event for event in likely if event in self.model.movable]
        self.add("redirect", event=self._pick(likely, self.model.movable), to=self.to())

    def expire(self) -> None:
        flying = [e for e, to in self.model.flight.items() if to]
        self.add("expire", event=self._pick(flying, list(self.model.flight)))

    def _pick(self, likely: list[str], any_of_them: list[str]) -> str:
        return self.rng.choice(likely if likely and self.chance(0.6) else any_of_them)

    def bounce(self) -> None:
        """On its way back; the delivery is left to chance."""
        event = self.rng.choice(self.model.waiting_finals)
        self.add("redirect", event=event, to=self.rng.sample(list(self.model.buffers), 1))

    def accept(self) -> None:
        self.add("deliver", event=self.rng.choice(self.model.waiting_finals), to=None)

    def side(self) -> None:
        """A record that tells of something and changes nothing."""
        event = self.rng.choice([*self.model.flight, None])
        kind = self.rng.choice(SIDE_KINDS)
        if kind == "finding":
            pattern, stage = self.rng.choice([("OE", None), ("CLA", "delivery"), ("my own", "x")])
            subject = {} if event is None else {"event": event}
            extra = self._maybe(severity=self.rng.choice(["error", "warning", "notice"]))
            extra |= self._maybe(silenced="known")
            self.add(kind, pattern=pattern, stage=stage, subject=subject, evidence={}, **extra)
        elif kind == "heal" and self.model.raised and event is not None:
            action = self.rng.choice(["inject", "reroute", "create", "refused"])
            why: Row = {"reason": "too late"} if action == "refused" else {"note": "look again"}
            finding = self.rng.choice(self.model.raised)
            self.add(kind, finding=finding, action=action, event=event, **why)
        elif self.chance(0.3):
            self.add("incident", what="gate_deadline", detail="passed")
        elif self.chance(0.7):
            self.waits()
        else:
            self.give_up()

    def waits(self) -> None:
        """The host waits on purpose, for what may be over or was never begun."""
        some = [*self.model.busy.values()] * 3 + [*self.model.inputs, "nothing"]
        detail: Any = {"activation": self.rng.choice(some)}
        flying = [e for e, to in self.model.flight.items() if to]
        event = {"event": self.rng.choice(flying * 3 + [*self.model.flight, "nothing"])}
        detail = self.rng.choices(
            [detail, event, detail | event, {**detail, "event": None, "why": 1}, *ODD],
            [10, 10, 1, 2, *[0.3] * len(ODD)],
        )[0]
        self.add("incident", what="waits", detail=detail)

    def give_up(self) -> None:
        """A request ends without an answer; some incidents say so in a wrong way."""
        outside = [r["event"] for r in self.rows if r["kind"] == "emit" and r["by"] is None]
        event = self.rng.choice([None, *outside * 3, *self.model.flight, "nothing"])
        some = [*self.model.failed * 3, *self.model.inputs, "nothing", None]
        detail: Any = {"how": self.rng.choice(["error", "error", "limit", "timeout"])}
        detail |= {"event": event} if event or self.chance(0.3) else {}
        detail |= self._maybe(activation=self.rng.choice(some), error=self.rng.choice(ERRORS))
        unknown = {"event": next(iter(self.model.inputs), "v")}
        wrong = self.rng.choice([*WRONG, unknown])
        detail = self.rng.choices(
            [detail, detail | {"more": 1, "error": None}, detail | wrong, *ODD],
            [10, 2, 2, *[0.2] * len(ODD)],
        )[0]
        self.add("incident", what="request_failed", detail=detail)


# -- broken traces ---

Breaker = Callable[[random.Random, Model, Row], Row | None]

REQUIRED = {
    "run": ["version", "run", "agents"],
    "emit": ["event", "by", "to", "type", "final"],
    "deliver": ["event", "to"],
    "start": ["activation", "agent", "inputs"],
    "end": ["activation", "fates", "outputs"],
    "join": ["agent"],
    "leave": ["agent"],
    "redirect": ["event", "to"],
    "expire": ["event"],
    "finding": ["pattern", "stage", "subject", "evidence"],
    "heal": ["finding", "action", "event"],
    "incident": ["what", "detail"],
    "finish": ["outcome"],
}


def break_trace(
    rng: random.Random, rows: Sequence[Row], kinds: Sequence[str] | None = None
) -> tuple[list[Row], int, str]:
    """Puts a wrong row in the place of a right one, or behind the last.

    Args:
        rng: Where all choices come from.
        rows: A valid trace, left as it is.
        kinds: What may be wrong, keys of `BREAKERS`; anything, if it is left out.

    Returns:
        The broken rows, the index of the first one that must be refused, what is wrong with it.

    Raises:
        ValueError: Not every trace can be broken in every way.
    """
    kinds = list(BREAKERS) if kinds is None else kinds
    before = cache(lambda index: Model(rows[:index]))
    for kind in rng.sample(kinds, len(kinds)):
        for index in rng.sample(range(len(rows) + 1), len(rows) + 1):
            model = before(index)
            spare = {"t": index, "ts": model.us / 1e6, "kind": "incident"}
            row = rows[index] if index < len(rows) else spare | {"what": "x", "detail": "y"}
            wrong = BREAKERS[kind](rng, model, row)
            if wrong is not None:
                return [*rows[:index], wrong, *rows[index + 1 :]], index, kind
    raise ValueError("no way to break these rows")


def _any(rng: random.Random, choices: Sequence[T]) -> T | None:
    return rng.choice(choices) if choices else None


def _new(model: Model, row: Row, kind: str, **keys: Any) -> Row | None:
    """A record in the place of `row`, where any usual one could be; no key of it may be missing."""
    if not model.calm or None in [v for k, v in keys.items() if k not in ("by", "to")]:
        return None
    return {"t": row["t"], "ts": row["ts"], "kind": kind, **keys}


def _event(model: Model, row: Row, event: str | None, /, **keys: Any) -> Row | None:
    """An `emit` by the environment, but for `keys`."""
    usual: Row = {"by": None, "to": [], "type": "problem", "final": False}
    return _new(model, row, "emit", event=event, **(usual | keys))


def _edit(row: Row, kind: str, **keys: Any) -> Row | None:
    """The row with some keys replaced, if it is of that kind."""
    return {**row, **keys} if row["kind"] == kind else None


def _without_key(rng: random.Random, _: Model, row: Row) -> Row:
    key = rng.choice([*REQUIRED[row["kind"]], "t", "ts", "kind"])
    return {k: v for k, v in row.items() if k != key}


def _other_type(rng: random.Random, _: Model, row: Row) -> Row | None:
    if row["kind"] in SIDE_KINDS:  # of most of their keys the values are free
        return {**row, "ts": "0.5"}
    return {**row, rng.choice(REQUIRED[row["kind"]]): {"no": "such type"}}


def _bool_number(_: random.Random, __: Model, row: Row) -> Row:
    return {**row, "t": bool(row["t"])} if row["t"] < 2 else {**row, "ts": True}


def _limit(row: Row, name: str, value: Any) -> Row | None:
    return _edit(row, "run", limits=row.get("limits", {}) | {name: value})


def _inputs(row: Row, least: int, change: Callable[[Any], Any]) -> Row | None:
    fits = row["kind"] == "start" and len(row["inputs"]) >= least
    return {**row, "inputs": change(row["inputs"])} if fits else None


def _fates(rng: random.Random, row: Row, change: Callable[[Row], list[Row]]) -> Row | None:
    """The `end` with one of its fates replaced."""
    if row["kind"] != "end" or not row["fates"]:
        return None
    fate = rng.choice(row["fates"])
    return {**row, "fates": [f for f in row["fates"] if f != fate] + change(fate)}


def _stranger_fate(rng: random.Random, model: Model, row: Row) -> Row | None:
    seen = model.inputs[row["activation"]] if row["kind"] == "end" else []
    other = _any(rng, [e for e in model.flight if e not in seen])
    more = [{"event": other, "fate": "consume"}]
    return _edit(row, "end", fates=row.get("fates", []) + more) if other else None


def _delivery(rng: random.Random, model: Model, row: Row, *, again: bool) -> Row | None:
    """A delivery to an agent that the event is not on its way to, and that has it or has not."""
    pairs = [
        (e, agent)
        for e, to in model.flight.items()
        for agent, held in model.buffers.items()
        if agent not in to and (e in held) == again
    ]
    event, agent = _any(rng, pairs) or (None, None)
    return _new(model, row, "deliver", event=event, to=agent)


def _out_of_turn(_: random.Random, model: Model, row: Row) -> Row | None:
    later = [*model.pending[1:], "e-none"][0]
    return _edit(row, "emit", event=later) if model.pending else None


def _between(rng: random.Random, model: Model, row: Row) -> Row | None:
    if not model.pending:
        return None
    place = {"t": row["t"], "ts": row["ts"]}
    emit: Row = {"event": "e-none", "by": None, "to": [], "type": "problem", "final": False}
    finish: Row = {"kind": "finish", "outcome": "error"}
    return place | rng.choice([{"kind": "emit", **emit}, finish, {"kind": "join", "agent": "n"}])


def _not_alone(_: random.Random, model: Model, row: Row) -> Row | None:
    return _edit(row, "emit", final=True) if model.pending and len(model.outputs) > 1 else None


def _after(ended: bool, row: Row, **keys: Any) -> Row | None:
    return {"t": row["t"], "ts": row["ts"], **keys} if ended else None


def _dead(model: Model) -> list[str]:
    """The activations that ended, or were cut off when their agent left."""
    return [v for v in model.inputs if v not in model.busy.values()]


def _fails(row: Row, **keys: Any) -> Row | None:
    """The `end` with an error, and more about it."""
    return _edit(row, "end", error="x", **keys) if None not in keys.values() else None


def _others(model: Model, row: Row, failed: bool, same: bool = False) -> list[str]:
    """Activations that ended, with or without an error, of the agent that ends now or others."""
    if row["kind"] != "end":
        return []
    me = model.agents[row["activation"]]
    ended = [v for v in model.ended if (v in model.failed) == failed]
    return [v for v in ended if (model.agents[v] == me) == same]


def _heal(model: Model, row: Row, finding: int) -> Row | None:
    why = {"action": "inject", "event": next(iter(model.flight), None), "note": "x"}
    return _new(model, row, "heal", finding=finding, **why)


BREAKERS: dict[str, Breaker] = {
    "t jumps": lambda g, m, r: {**r, "t": r["t"] + 1},
    "t stands still": lambda g, m, r: {**r, "t": r["t"] - 1},
    "ts falls": lambda g, m, r: {**r, "ts": (m.us - 1) / 1e6} if m.us else None,
    "unknown kind": lambda g, m, r: {**r, "kind": "telepathy"},
    "key missing": _without_key,
    "other type": _other_type,
    "bool as number": _bool_number,
    "run is not first": lambda g, m, r: {**r, "kind": "join", "agent": "n"} if m.t < 0 else None,
    "second run": lambda g, m, r: _new(m, r, "run", version=1, run="again", agents=["a"]),
    "other version": lambda g, m, r: _edit(r, "run", version=2),
    "window 0": lambda g, m, r: _limit(r, g.choice(["mc", "oe", "dl"]) + "_window_s", 0),
    "window below 0": lambda g, m, r: _limit(r, g.choice(["mc", "oe", "dl"]) + "_window_s", -1.5),
    "bool as limit": lambda g, m, r: _limit(r, "reroute_limit", True),
    "number as bool": lambda g, m, r: _limit(r, "coverage", 1),
    "agent system": lambda g, m, r: _edit(r, "run", agents=["system"]),
    "system joins": lambda g, m, r: _new(m, r, "join", agent="system"),
    "event system": lambda g, m, r: _event(m, r, "system"),
    "activation system": lambda g, m, r: _edit(r, "start", activation="system"),
    "event id again": lambda g, m, r: _event(m, r, _any(g, m.ids)),
    "activation id again": lambda g, m, r: _edit(r, "start", activation=_any(g, m.ids) or "system"),
    "unknown event flies": lambda g, m, r: _new(m, r, "redirect", event="e-none", to=[]),
    "unknown event arrives": lambda g, m, r: _new(
        m, r, "deliver", event="e-none", to=_any(g, [*m.buffers])
    ),
    "unknown event expires": lambda g, m, r: _new(m, r, "expire", event=_any(g, ["e", *m.inputs])),
    "unknown author": lambda g, m, r: _event(m, r, "e-none", by=g.choice(["v", *m.flight])),
    "late output": lambda g, m, r: _event(m, r, "e-none", by=_any(g, m.ended) or "v"),
    "early output": lambda g, m, r: _event(m, r, "e-none", by=_any(g, [*m.busy.values()]) or "v"),
    "final from outside": lambda g, m, r: _event(m, r, "e-none", final=True),
    "final by healing": lambda g, m, r: _event(m, r, "e-none", by="system", final=True),
    "final beside another": _not_alone,
    "output out of order": _out_of_turn,
    "record between outputs": _between,
    "not on its way": lambda g, m, r: _delivery(g, m, r, again=False),
    "delivered twice": lambda g, m, r: _delivery(g, m, r, again=True),
    "delivered to a ghost": lambda g, m, r: _new(
        m, r, "deliver", event=_any(g, [*m.flight]), to=g.choice(GHOSTS + m.absent)
    ),
    "no final is accepted": lambda g, m, r: _new(
        m, r, "deliver", event=_any(g, [e for e in m.flight if e not in m.finals]), to=None
    ),
    "accepted after all": lambda g, m, r: _new(
        m, r, "deliver", event=_any(g, m.bounced + m.accepted), to=None
    ),
    "start of a busy agent": lambda g, m, r: _new(
        m, r, "start", activation="v-none", agent=_any(g, [*m.busy]), inputs=[]
    ),
    "start of a ghost": lambda g, m, r: _new(
        m, r, "start", activation="v-none", agent=g.choice(GHOSTS + m.absent), inputs=[]
    ),
    "an input too few": lambda g, m, r: _inputs(r, 1, lambda events: events[1:]),
    "an input too many": lambda g, m, r: _inputs(r, 1, lambda events: events + events[:1]),
    "inputs in other order": lambda g, m, r: _inputs(r, 2, lambda events: events[::-1]),
    "end of what is over": lambda g, m, r: _new(
        m, r, "end", activation=_any(g, _dead(m)), fates=[], outputs=[]
    ),
    "end of nothing": lambda g, m, r: _edit(r, "end", activation=g.choice(["v", *m.flight])),
    "fate of no input": _stranger_fate,
    "fate twice": lambda g, m, r: _fates(g, r, lambda f: [f, {**f, "fate": "delay"}]),
    "unknown fate": lambda g, m, r: _fates(g, r, lambda f: [{**f, "fate": "eat"}]),
    "reroute to no list": lambda g, m, r: _fates(
        g, r, lambda f: [{"event": f["event"], "fate": "reroute"}]
    ),
    "because of nothing": lambda g, m, r: _fails(r, because=g.choice(["v-none", *m.flight])),
    "because of what goes on": lambda g, m, r: _fails(r, because=_any(g, [*m.busy.values()])),
    "because of what went well": lambda g, m, r: _fails(
        r, because=_any(g, _others(m, r, failed=False))
    ),
    "because of itself": lambda g, m, r: _fails(
        r, because=_any(g, _others(m, r, failed=True, same=True))
    ),
    "because and cancelled": lambda g, m, r: _fails(
        r, because=_any(g, _others(m, r, failed=True)), cancelled=True
    ),
    "because without an error": lambda g, m, r: (
        _edit(r, "end", error=None, because=_any(g, _others(m, r, failed=True)))
        if _others(m, r, failed=True)
        else None
    ),
    "cancelled without an error": lambda g, m, r: _edit(r, "end", error=None, cancelled=True),
    "cancelled in a wrong way": lambda g, m, r: _fails(r, cancelled=g.choice([1, "yes", [True]])),
    "because in a wrong way": lambda g, m, r: _fails(r, because=g.choice([1, True, ["v"]])),
    "edition no number": lambda g, m, r: _edit(r, "run", patterns=g.choice(["2", True, 2.5])),
    "redirect of an accepted answer": lambda g, m, r: _new(
        m, r, "redirect", event=_any(g, m.accepted), to=[]
    ),
    "join of a present agent": lambda g, m, r: _new(m, r, "join", agent=_any(g, [*m.buffers])),
    "leave of a ghost": lambda g, m, r: _new(m, r, "leave", agent=g.choice(GHOSTS + m.absent)),
    "record after the answer": lambda g, m, r: _after(m.over, r, kind="join", agent="n"),
    "record after finish": lambda g, m, r: _after(
        m.finished, r, kind="incident", what="x", detail="y"
    ),
    "heal of no finding": lambda g, m, r: _heal(
        m, r, g.choice([t for t in range(m.t + 3) if t not in m.raised])
    ),
}
