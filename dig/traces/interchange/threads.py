"""Threads of work, the form of all files of coding agents, and the records of such threads.

A thread is the work of an agent: the main agent's over a whole session, a subagent's from a call to
the report. A message is a thread that only has a text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import Any, Literal

from dig._util.redaction import redact
from dig._util.text import one_line
from dig.detectors.thresholds import CALLER_TURNS, Thresholds
from dig.errors import TraceError
from dig.graph import records
from dig.graph.records import Record

from .scribe import Guesses, Scribe
from .turn_writer import TurnOutput, TurnWriter

MOST_TEXT, MOST_TITLE = 16_384, 80
NO_TURN = "holds no turn of an agent"
UNSEEN = ("MC", "OE", "DL", "STALL", "LATE", "ER")
WHY_UNSEEN = "such a file shows neither buffers nor what a turn waits for"

Kind = Literal["ask", "read", "act", "call", "tell", "answer", "report", "rest", "fail"]
"""From outside; a report or message; some work; a call; a message to others; an answer to the
outside; the report to the caller; nothing more; an error, or a cancellation."""


@dataclass
class ThreadStep:
    """A step of a thread, or an arrival from outside.

    Attributes:
        us: When, in microseconds.
        kind: What kind of step.
        thread: The thread that is called, or read; the message that is told.
        text: The contents.
        error: The error of a `report` or `fail`.
        is_cancelled: Whether the work was called off.
        usage: The costs of an `act`.
        type: The type of the event of an `ask`.
    """

    us: int
    kind: Kind
    thread: Thread | None = None
    text: str | None = None
    error: str | None = None
    is_cancelled: bool = False
    usage: Mapping[str, float] = field(default_factory=dict)
    type: str = "problem"


@dataclass(eq=False)
class Thread:
    """The work of an agent.

    Attributes:
        name: The name of the agent; of threads that overlap, the later ones are instances.
        title: What the work is, for a person.
        prompt: What was asked.
        text: The contents of a message.
        type: The type of the event: of the call, or of a message.
        is_background: Whether the caller goes on meanwhile.
        steps: The steps, in order.
        to: Those who have not read the report or message yet.
    """

    name: str
    title: str = ""
    prompt: str | None = None
    text: str | None = None
    type: str = "message"
    is_background: bool = False
    steps: list[ThreadStep] = field(default_factory=list)
    to: list[Thread] = field(default_factory=list)
    agent: str = ""  # from here on: where the writer stands
    place: int = 0
    request: str = ""
    event: str = ""
    activation: str = ""
    usage: Counter[str] = field(default_factory=Counter)

    def next_step(self) -> ThreadStep | None:
        """The step to come."""
        return self.steps[self.place] if self.place < len(self.steps) else None


def write_thread(
    path: Path, main: Thread, guesses: Guesses, name: str = "", *, is_over: bool = True
) -> tuple[list[Record], Guesses]:
    """The records of the main agent's thread with all called threads, and the guesses.

    Args:
        path: The path of the file.
        main: The thread.
        guesses: Gets what was guessed.
        name: The name of the run; empty: that of the file.
        is_over: Whether the file tells all of the session; else the run has no end.

    Raises:
        TraceError: The thread has no steps.
    """
    if not main.steps:
        raise TraceError(path, None, NO_TURN)
    writer = _ThreadWriter(name or path.name, main, guesses)
    return writer.write(path.name, is_over=is_over), guesses


class _ThreadWriter(TurnWriter):
    """Plays threads side by side, by time; a reader waits for the report.

    An agent's buffer gets only what the agent reads. So an activation uses all that it sees, and a
    report that nobody reads stays on its way, where ET sees it.
    """

    def __init__(self, name: str, main: Thread, guesses: Guesses) -> None:
        self._every = every = [main]
        for thread in every:  # grows meanwhile
            every += [step.thread for step in thread.steps if step.kind == "call" and step.thread]
        names = tuple(dict.fromkeys(thread.name for thread in every))
        limits = replace(Thresholds().limits, livelock_turns=CALLER_TURNS)
        limits = guesses.leave_out(limits, UNSEEN, WHY_UNSEEN)
        run = records.Run(0, 0, name, names, limits=limits, session=True)
        super().__init__(Scribe(run, guesses))
        self._guesses = guesses
        self._heap, self._order = list[tuple[int, int, Thread]](), count()
        self._waiting: dict[Thread, list[Thread]] = {}
        self._readers: dict[Thread, Thread] = {}
        self._senders: dict[Thread, Thread] = {}  # of messages
        for thread in every:
            for step in thread.steps:
                if step.kind == "read" and step.thread is not None:
                    self._readers.setdefault(step.thread, thread)
                elif step.kind == "tell" and step.thread is not None:
                    self._senders[step.thread] = thread
        times = (step.us for thread in every for step in thread.steps if step.us)
        self._base = min(times, default=0)
        main.agent = self._scribe.reserve(main.name)
        self._push(main)

    def write(self, source: str, *, is_over: bool) -> list[Record]:
        while self._heap or self._waiting:
            if not self._heap:  # what they wait for never comes: they go on without it
                for thread in self._waiting.pop(next(iter(self._waiting))):
                    thread.place += 1
                    self._push(thread)
                continue
            thread = heappop(self._heap)[2]
            step = thread.steps[thread.place]
            if step.kind == "read" and step.thread and not step.thread.event:
                self._waiting.setdefault(step.thread, []).append(thread)
                continue
            thread.place += 1
            self._scribe.at(step.us - self._base)
            getattr(self, f"_{step.kind}")(thread, step)
            self._push(thread)
        outcome: records.Outcome = "submitted" if self._ids["answer"] else "stopped"
        return self._scribe.finish(outcome if is_over else None, source)

    def _push(self, thread: Thread) -> None:
        if (step := thread.next_step()) is not None:
            heappush(self._heap, (step.us, next(self._order), thread))

    def _title(self, thread: Thread, noun: str) -> str:
        text = f"{thread.agent}'s {noun}" + f": {redact(thread.title)}" * bool(thread.title)
        event = text = one_line(text, MOST_TITLE)
        while event in self._ids:  # a title may look like a numbered one
            event = self.new_id(text)
        self._ids[event] += 1
        return event

    # --- what reaches a thread ---

    def _ask(self, thread: Thread, step: ThreadStep) -> None:
        self._pause(thread)
        thread.request = self.new_id("request")
        self.emit(TurnOutput(thread.request, [thread.agent], step.type, step.text), None)
        self._arrive(thread, thread.request)

    def _read(self, thread: Thread, step: ThreadStep) -> None:
        if step.thread is not None and thread in step.thread.to:  # else it was read before
            self._pause(thread)
            step.thread.to.remove(thread)
            self._arrive(thread, step.thread.event)

    def _arrive(self, thread: Thread, event: str) -> None:
        self._scribe.deliver(event, thread.agent)
        ahead = thread.next_step()
        if ahead is None or ahead.kind not in ("ask", "read"):
            self.begin(thread)

    # --- what a thread does ---

    def _act(self, thread: Thread, step: ThreadStep) -> None:
        self.begin(thread)
        for key, number in step.usage.items():
            thread.usage[key] += number  # type: ignore[assignment]  # costs are no whole numbers

    def _pause(self, thread: Thread) -> None:
        """End the activation in progress, if any; the thread goes on later."""
        if thread.activation:
            self._end(thread, goes_on=True)

    def _call(self, thread: Thread, step: ThreadStep) -> None:
        steps = [step]
        while (ahead := thread.next_step()) and (ahead.kind, ahead.us) == ("call", step.us):
            steps.append(ahead)
            thread.place += 1
        callees = [step.thread for step in steps if step.thread is not None]
        self.begin(thread)
        inputs = self._scribe.graph.running[thread.activation].inputs
        if len(callees) < len(inputs) and any(callee.is_background for callee in callees):
            # It reads first: what splits its work has to generate more than it consumes (ET).
            self._pause(thread)
            self.begin(thread)
        outputs = list[TurnOutput]()
        for callee in callees:
            callee.agent = self._scribe.reserve(callee.name)
            callee.to = [self._readers.get(callee, thread)]
            callee.request = self._title(callee, "task")
            to = [callee.agent]
            outputs.append(TurnOutput(callee.request, to, callee.type, callee.prompt))
        self._end(thread, *outputs, goes_on=True)
        for callee, output in zip(callees, outputs, strict=True):
            self.deliver(output)
            self.begin(callee)
            self._push(callee)

    def _tell(self, thread: Thread, step: ThreadStep) -> None:
        if (message := step.thread) is not None:
            message.to = message.to or [self._readers.get(message, thread)]
            self._send(thread, message, self.new_id(message.name), message.text, goes_on=True)

    def _report(self, thread: Thread, step: ThreadStep) -> None:
        event, how = self._title(thread, "report"), {"error": step.error}
        self._send(thread, thread, event, step.text, cancelled=step.is_cancelled, **how)
        reads = "#" in thread.agent and any(thread in callee.to for callee in self._every)
        self._scribe.release(thread.agent, leaves=not reads)

    def _send(
        self, thread: Thread, parcel: Thread, event: str, text: str | None, **how: Any
    ) -> None:
        self.begin(thread)
        parcel.event = event
        parcel.to = [reader for reader in parcel.to if reader.agent]  # those who are there
        type = "message" if parcel is thread else parcel.type
        # With a policy: it waits until somebody looks, and may arrive after what was sent later.
        to = [reader.agent for reader in parcel.to]
        self._end(thread, TurnOutput(event, to, type, text, "read"), **how)
        for reader in self._waiting.pop(parcel, ()):
            self._push(reader)

    def _answer(self, thread: Thread, step: ThreadStep) -> None:
        self.begin(thread)
        # Not only of its own calls: the reports of an agent whose caller has gone go on upwards.
        parcels = [parcel for parcel, reader in self._readers.items() if reader is thread]
        if any(self._is_on_its_way(parcel, thread) for parcel in parcels):
            guess = "an answer while subagents worked whose reports were read later is none yet"
            self._guesses.note(guess)
            self._pause(thread)
            return
        answer = TurnOutput(self.new_id("answer"), None, "solution", step.text)
        self._end(thread, answer)
        self.deliver(answer)

    def _is_on_its_way(self, parcel: Thread, reader: Thread) -> bool:
        """Whether the sender of a report or message is at work, or the reader has yet to read."""
        is_begun = self._senders.get(parcel, parcel).agent
        return bool(is_begun) and (not parcel.event or reader in parcel.to)

    def _rest(self, thread: Thread, step: ThreadStep) -> None:
        if thread.activation:
            self._end(thread)

    def _fail(self, thread: Thread, step: ThreadStep) -> None:
        """End with an error; the inputs stay in the buffer for the next turn."""
        self.begin(thread)
        activation = thread.activation
        self._end(thread, consumes=(), error=step.error, cancelled=step.is_cancelled)
        if not step.is_cancelled:
            detail = {"how": "error", "activation": activation, "error": step.error}
            detail |= {"event": thread.request} if thread.request else {}
            self._scribe.incident(records.REQUEST_FAILED, detail)

    def _end(self, thread: Thread, *outputs: TurnOutput, **how: Any) -> None:
        usage, thread.usage = dict(thread.usage) or None, Counter()
        self.end(thread, *outputs, usage=usage, **how)

    def emit(self, output: TurnOutput, by: str | None) -> None:
        """Write an event, with the beginning of a long text."""
        text = output.payload
        if text is not None and len(text) > MOST_TEXT:
            digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
            begin = redact(text)[:MOST_TEXT]  # masked as a whole: half a secret has no shape
            output = output._replace(payload={"$cut": digest, "$begins": begin})
        super().emit(output, by)
