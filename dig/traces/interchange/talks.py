"""Talks: all that an agent of a coding session heard, did and said, as steps of a thread.

The readers of all formats feed the same few methods. The talks of a session know one another, so
that a report that came by a notification is found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dig.graph.records import Record

from .scribe import Guesses
from .threads import Kind, Thread, ThreadStep, write_thread

Node = Mapping[str, Any]

CALLS = ("Task", "Agent")
"""The tools that start a subagent."""
_READERS = ("TaskOutput", "AgentOutputTool", "AgentOutput")
_STOPPERS = ("TaskStop", "KillShell", "KillTask")
_IDS = ("agentId", "agent_id", "teammate_id", "resumedAgentId", "taskId")
_LAUNCHED = ("async_launched", "remote_launched", "teammate_spawned", "forked")
_NOT_YET = ("timeout<", "not_ready<", "running<", "pending<")
_LOCAL = ("<local-command", "<bash-", "<command-name>", "<command-message>")
_LOCAL_ANSWER = ("<local-command-stdout>", "<bash-stdout>")
_WRAPPED = ("<", "Another Claude session")
_INTERRUPTED = "[Request interrupted by user"
_REFUSED = ("tool use was rejected", "<tool_use_error>", "InputValidationError")
_LEFT = "the turn was left before its end"


def micros_of(value: Any) -> int | None:
    """The microseconds of a time: ISO 8601 (UTC without a zone), or milliseconds."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
            value = moment.replace(tzinfo=moment.tzinfo or UTC).timestamp() * 1000
        return int(value * 1000) if 0 <= value < 1e14 else None
    except (TypeError, ValueError, OverflowError):
        return None


def as_node(value: Any) -> Node:
    """The object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def as_nodes(value: Any) -> list[Node]:
    """The objects in a list; a text is a list of one block."""
    value = [{"type": "text", "text": value}] if isinstance(value, str) else value
    return [node for node in value if isinstance(node, dict)] if isinstance(value, list) else []


def text_of(content: Any) -> str:
    """The text of a message: a text, or the texts in a list of blocks."""
    texts = [block.get("text") for block in as_nodes(content)]
    return "\n".join(text for text in texts if isinstance(text, str))


def elements(text: str, tag: str) -> Iterator[tuple[str, str]]:
    """The attributes and the contents of each `<tag ..>..</tag>` in a text."""
    for piece in text.split(f"<{tag}")[1:]:
        head, _, inner = piece.partition(">")
        body, end, _ = inner.partition(f"</{tag}>")
        if end:
            yield head, body.strip()


def _element(text: str, tag: str) -> str:
    return next((body for _, body in elements(text, tag)), "")


class Talks:
    """All talks of a session: the main agent's (``""``), and those of subagents by key.

    Attributes:
        guesses: The things that had to be guessed.
        calls: The calls, by the id of the use of the tool.
        keys: The calls of each subagent, by the agent's id or name.
        ends: What a caller says of a report.
    """

    def __init__(self, guesses: Guesses) -> None:
        self.guesses = guesses
        self.calls: dict[str, Thread] = {}
        self.keys: defaultdict[str, list[Thread]] = defaultdict(list)
        self.ends: dict[Thread, ThreadStep] = {}
        self.talks: dict[str, Talk] = {"": Talk(self, is_main=True)}

    def talk(self, key: str) -> Talk:
        """The talk of an agent."""
        return self.talks.setdefault(key, Talk(self))

    def called(self, use: str, key: str, summary: str = "") -> Thread | None:
        """The call with an id; else the agent's first call without an end, or the last.

        Args:
            use: The id of the use of the tool, if known.
            key: The agent's id or name.
            summary: A text that may quote the title of the call, for calls without an id.
        """
        threads = self.keys.get(key) or [
            call for call in self.calls.values() if call.title and f'"{call.title}"' in summary
        ]
        open_threads = [thread for thread in threads if thread not in self.ends]
        return self.calls.get(use) or next(iter(open_threads or threads[-1:]), None)

    def write(self, path: Path, name: str) -> tuple[list[Record], Guesses]:
        """The records of all talks, and the guesses.

        Args:
            path: The path of the file.
            name: The name of the main agent.

        Raises:
            TraceError: No turn of an agent was fed.
        """
        main = self.talks.pop("")
        is_over = main.finish()
        for key, talk in self.talks.items():
            talk.finish()
            self._bind(key, talk)
        if not is_over:
            self.guesses.note("the main agent's turn goes on, or was cut off: the file stops in it")
        for thread, end in self.ends.items():
            if not thread.steps:
                guess = "a subagent without rows worked until its report was read"
                self.guesses.note(guess, thread.title or thread.name)
            own = next((step for step in thread.steps if step.kind == "report"), end)
            thread.steps = [step for step in thread.steps if step is not own]
            end.us, end.text, end.error = own.us, end.text or own.text, end.error or own.error
            thread.steps.append(end)
        thread = Thread(name, steps=[step for run in main.runs for step in run])
        return write_thread(path, thread, self.guesses, is_over=is_over)

    def _bind(self, key: str, talk: Talk) -> None:
        """Give the runs of a talk to the calls."""
        alike = (call for call in self.calls.values() if talk.prompt and not call.steps
                 and (call.prompt or "").strip() == talk.prompt)  # fmt: skip
        call = self.calls.get(talk.use) or next(alike, None)
        threads = self.keys.get(key) or ([call] if call else [])
        if not threads:
            self.guesses.note("what no call asked for is the program's own, and left out", key)
        for number, run in enumerate(talk.runs if threads else ()):
            thread = threads[min(number, len(threads) - 1)]
            if not any(step.kind == "tell" for step in thread.steps):
                thread.steps = [step for step in thread.steps if step.kind != "report"] + run


class Talk:
    """All things heard, done and said by an agent.

    Attributes:
        runs: The steps, a list for each time the agent was called.
        prompt: What was asked first.
        use: The id of the use of the tool that called the agent, if known.
        us: The time of the latest row.
        is_answered: Whether the latest thing was an answer.
    """

    def __init__(self, session: Talks, *, is_main: bool = False) -> None:
        self._session, self._is_main = session, is_main
        self.runs: list[list[ThreadStep]] = [[]]
        self.prompt = self.use = ""
        self.us = 0
        self._asks: list[ThreadStep] = []
        self._tools: dict[str, tuple[str, Node, object]] = {}  # without a result; their messages
        self._batch = list[ThreadStep]()
        self._message: object = None
        self._counted: Mapping[str, float] = {}
        self._is_open = self.is_answered = False
        self._said: str | None = None
        self._error: str | None = None

    def _add(self, kind: Kind, thread: Thread | None = None, **more: Any) -> ThreadStep:
        self.runs[-1].append(step := ThreadStep(self.us, kind, thread, **more))
        return step

    # --- what reaches the agent ---

    def hear(self, us: int | None, text: str, *, is_queued: bool = False) -> None:
        """Take a prompt, a notification or an interruption.

        Args:
            us: When.
            text: The text.
            is_queued: Whether the text came in the middle of a turn, which goes on.
        """
        self._tick(us)
        wrapped = text if text.lstrip().startswith(_WRAPPED) else ""  # else it only quotes them
        notes = [body for _, body in elements(wrapped, "task-notification")]
        messages = list(elements(wrapped, "teammate-message"))
        for note in notes:
            self._notice(note)
        for head, body in messages:
            self.hear_from(us, head.partition('teammate_id="')[2].partition('"')[0], body)
        if text.startswith(_INTERRUPTED):
            if self._asks or self._is_open:
                self._flush()
                self.is_answered = False
                self._close(text.strip("[]"))
        elif text.startswith(_LOCAL_ANSWER):
            self._drop_local()
        elif text.strip() and not (notes or messages):
            self._ask(text, is_queued=is_queued)

    def _ask(self, text: str, type: str = "problem", *, is_queued: bool = False) -> None:
        self.prompt = self.prompt or text.strip()
        if self.is_answered or self._error is not None or (self._awaits() and not is_queued):
            self._close(_LEFT)
        self._drop_local()
        if self._is_main:
            self._asks.append(ThreadStep(self.us, "ask", text=text, type=type))

    def _drop_local(self) -> None:
        """Forget commands to the terminal: no model sees such text."""
        self._asks = [ask for ask in self._asks if not (ask.text or "").startswith(_LOCAL)]

    def _notice(self, note: str) -> None:
        status, summary = _element(note, "status") or "completed", _element(note, "summary")
        use, key = _element(note, "tool-use-id"), _element(note, "task-id")
        thread = self._session.called(use, key, summary)
        if thread is not None:
            error = None if status == "completed" else summary or status
            self.read(thread, _element(note, "result"), error, status in ("killed", "stopped"))
        elif not self._is_open or self.is_answered:  # of a command in the background: it wakes
            self._ask(summary, "notice")

    def hear_from(self, us: int | None, name: str, body: str) -> None:
        """Take a message of a teammate."""
        self._tick(us)
        thread = self._session.called("", name)
        is_notice = body.startswith("{")  # the program's own, as JSON
        if thread is None:
            self._ask(body, "notice" if is_notice else "problem", is_queued=True)
            return
        type = "notice" if is_notice else "message"
        message = Thread(f"message of {name}", text=body, type=type)
        thread.steps.append(ThreadStep(self.us, "tell", message))
        self._read(message)

    def read(
        self, thread: Thread, text: str | None, error: str | None = None, is_cancelled: bool = False
    ) -> None:
        """Take the report of a subagent."""
        end = ThreadStep(self.us, "report", None, text, error, is_cancelled)
        self._session.ends.setdefault(thread, end)
        self._read(thread)

    def _read(self, thread: Thread) -> None:
        if self.is_answered:
            self._close(_LEFT)
        self._add("read", thread)
        self._batch = []

    # --- what the agent does ---

    def work(self, us: int | None, usage: Mapping[str, float], message: object = None) -> None:
        """Take a part of a turn.

        Args:
            us: When.
            usage: The costs of the message up to now.
            message: The id of the message, of which there may be several parts.
        """
        self._tick(us)
        self._flush()
        if message is None or message != self._message:
            self._batch, self._message, self._counted = [], message or object(), {}
        more = {key: n - self._counted.get(key, 0) for key, n in usage.items()}
        self._counted, self._error, self.is_answered = usage, None, False
        self._add("act", usage={key: n for key, n in more.items() if n > 0})

    def say(self, text: str) -> None:
        """Take a text of the agent; the last of a turn is the answer."""
        if text.strip():
            self._said, self.is_answered = text, not self._awaits()

    def stop(self, error: str) -> None:
        """Take the program's error in the place of an answer."""
        self.is_answered, self._error = False, error

    def rest(self, *, is_over: bool = True) -> None:
        """Take the end of a message, or the file: the turn is over unless a tool is at work.

        Args:
            is_over: Whether the source says so; if not, a tool comes next.
        """
        if self._is_open and not self._awaits():
            self.is_answered = is_over and self._error is None

    def _awaits(self) -> bool:
        """Whether a tool of the latest message has no result; a later message proves a result.

        Calls in the background have none.
        """
        uses = [use for use, (_, _, message) in self._tools.items() if message == self._message]
        calls = [self._session.calls.get(use) for use in uses]
        return any(thread is None or not thread.is_background for thread in calls)

    def use_tool(self, use: str, name: str, given: Node) -> None:
        """Take the use of a tool."""
        self.is_answered = False
        self._tools[use] = name, given, self._message
        if name in CALLS:
            self.call(use, given)

    def call(self, use: str, given: Node, name: str = "agent") -> Thread:
        """Take a call of a subagent.

        Args:
            use: The id of the use of the tool.
            given: The arguments of the tool.
            name: The name of the agent, if the arguments do not tell.
        """
        name = str(given.get("name") or given.get("subagent_type") or given.get("skill") or name)
        prompt = given.get("prompt") or given.get("message") or given.get("task")
        thread = Thread(name, text_of(given.get("description")), text_of(prompt) or None)
        thread.is_background = bool(given.get("run_in_background"))
        self._session.calls[use] = thread
        if given.get("name"):
            self._session.keys[name].append(thread)
        # The calls of one message are made at once, so that all of them are parts of its work.
        for step in self._batch:
            self.runs[-1] = [other for other in self.runs[-1] if other is not step]
            step.us = self.us
        self.runs[-1] += self._batch
        self._batch.append(self._add("call", thread))
        return thread

    def result(
        self, us: int | None, use: str, text: str, *, is_error: bool = False, facts: Any = None
    ) -> None:
        """Take the result of a tool.

        Args:
            us: When.
            use: The id of the use of the tool.
            text: The result, as the agent reads it.
            is_error: Whether the result is an error.
            facts: What the program knows besides.
        """
        self._tick(us)
        self.is_answered = False
        name, given, _ = self._tools.pop(use, ("", {}, None))
        facts, session = as_node(facts), self._session
        thread = session.calls.get(use)
        resumed = session.keys.get(str(facts.get("resumedAgentId")), [])
        is_call = resumed or facts.get("agentId") or (facts.get("isAsync") and facts.get("taskId"))
        if thread is None and is_call and name not in _READERS:
            again = {"description": resumed[-1].title, "name": None} if resumed else {}
            thread = self.call(use, {**given, **again}, resumed[-1].name if resumed else name)
        if thread is not None:
            self._called(thread, text, is_error, facts)
        elif not (is_error or any(mark in text for mark in _NOT_YET)):
            self._look(name, {str(value) for value in given.values()}, text)

    def _look(self, name: str, values: set[str], text: str) -> None:
        """Read a tool's view of subagents: the output, or the order to stop."""
        session, error = self._session, "stopped by the caller" if name in _STOPPERS else None
        for key in [*session.keys]:
            is_shown = key in values and name in (*_READERS, *_STOPPERS)
            files = (f"tasks/{key}.output", f"tasks\\{key}.output", f"agent-{key}.jsonl")
            if not is_shown and any(file in value for file in files for value in values):
                talk = session.talks.get(key)  # without rows, nothing contradicts the end
                is_shown = talk is None or (talk.is_answered and talk.us <= self.us)
                session.guesses.note("who read the output of an ended subagent read its report")
            if is_shown and (thread := session.called("", key)) is not None:
                self.read(thread, text, error, is_cancelled=error is not None)

    def _called(self, thread: Thread, text: str, is_error: bool, facts: Node) -> None:
        """Take the result of a call: a report, or only the start in the background."""
        written = text.partition("agentId: ")[2].split()[:1]
        keys = [facts.get(key) for key in _IDS]
        for key in dict.fromkeys(str(key) for key in [*keys, *written] if key):
            if thread not in self._session.keys[key]:
                self._session.keys[key].append(thread)
            if key not in thread.title:
                thread.title = f"{thread.title} ({key})".strip()
        is_launched = facts.get("isAsync") or facts.get("status") in _LAUNCHED
        if is_launched or "resumedAgentId" in facts or text.startswith("Async agent launched"):
            thread.is_background = True
        elif is_error and any(mark in text for mark in _REFUSED):  # it never ran
            self._batch = []
            self.runs[-1] = [step for step in self.runs[-1] if step.thread is not thread]
        else:
            self.read(thread, text, text if is_error else None)

    # --- turns ---

    def _tick(self, us: int | None) -> None:
        if us is None or us < self.us:
            self._session.guesses.note("a row without a time, or an earlier one, is at the latest")
        self.us = max(self.us, us or 0)

    def _flush(self) -> None:
        """Begin a turn with the waiting prompts."""
        self.runs[-1] += self._asks
        self._asks, self._is_open = [], True

    def _close(self, error: str) -> None:
        """End the turn: with the answer, or an error."""
        if not self._is_open:
            return
        is_done = self.is_answered or self._error is not None
        failure = None if self.is_answered else self._error or error
        worked_us, self.is_answered = self.runs[-1][-1].us, False
        calls, self._tools = [self._session.calls.get(use) for use in self._tools], {}
        for thread in calls:
            if thread is not None and not thread.is_background:
                self.read(thread, None, None if is_done else error, is_cancelled=not is_done)
        kind: Kind = "report" if not self._is_main else "fail" if failure else "answer"
        end = self._add(kind, text=self._said, error=failure, is_cancelled=not is_done)
        end.us = worked_us if is_done else self.us
        self._is_open, self._said, self._error = False, None, None
        if not self._is_main:
            self.runs.append([])

    def finish(self) -> bool:
        """End the last turn, unless the file stops there; return whether there is an end."""
        self._drop_local()
        if self.is_answered or self._error is not None:
            self._close(_LEFT)
        is_over = not (self._asks or self._is_open)
        self.runs[-1] += self._asks
        self.runs = [run for run in self.runs if run]
        return is_over
