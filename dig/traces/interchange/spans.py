"""Spans of any agent framework as a run: agents' spans are turns, nested spans calls.

docs/files.md has the rules, and what spans cannot show.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dig.detectors.thresholds import Thresholds
from dig.errors import RuleError, TraceError
from dig.graph.records import SYSTEM, Failure, Record, Run

from . import span_words
from .calls import Calls, CallTurn
from .own_spans import is_own, own_run
from .scribe import Guesses, Scribe
from .span_rows import SpanRow
from .span_words import AGENT, Side
from .workflow_spans import with_agents

NO_AGENT = "has spans, but none that names an agent (gen_ai.agent.name, agent.name)"
"""The reason not to read a file, such as one with spans of models alone."""

_HANDOFF_TOOLS = ("transfer_to_agent", "handoff")
_TARGETS = ("agent_name", "to_agent", "agent", "target")
_LIMITS = ("max turns", "max iterations", "recursion limit", "limit reached")
_CALLED_OFF = ("CancelledError", "Cancelled", "GeneratorExit", "Span orphaned", "called off")


@dataclass(eq=False)
class SpanNode:
    """A span in the tree of a trace.

    Attributes:
        row: The span.
        kind: `agent`, `tool`, `model`, or empty for plumbing.
        above: The span above it in the file.
        agent: The agent's span around it.
        start: When it began, in nanoseconds on the clock of the root.
        end: When it ended; ``None``: it has not.
        parts: The spans whose nearest agent's span this is.
        calls: Those of them that are agents; for other spans, the agents inside.
        giver: The agent that has handed over to it.
        taker: The agent that it hands over to.
        is_late: Whether an agent inside begins or ends at the very end of it.
    """

    row: SpanRow
    kind: str
    above: SpanNode | None = None
    agent: SpanNode | None = None
    start: int = 0
    end: int | None = None
    depth: int = 0
    parts: list[SpanNode] = field(default_factory=list)
    calls: list[SpanNode] = field(default_factory=list)
    giver: SpanNode | None = None
    taker: SpanNode | None = None
    is_late: bool = False
    turn: CallTurn | None = None

    @property
    def name(self) -> str:
        """The name of the agent or tool."""
        keys = span_words.TOOL if self.kind == "tool" else AGENT
        plain = self.row.name.removesuffix(".run")
        for prefix in span_words.PREFIXES:
            plain = plain.removeprefix(prefix)
        name = span_words.first(self.row.attributes, keys) or plain.strip("[]") or "agent"
        return f"{name} (agent)" if name == SYSTEM else name

    @property
    def frames(self) -> Iterator[SpanNode]:
        """The spans up to the agent around the span, innermost first."""
        frame = self.above
        while frame is not None and frame is not self.agent:
            yield frame
            frame = frame.above

    @property
    def models(self) -> list[SpanNode]:
        """The model calls of the agent."""
        return [part for part in self.parts if part.kind == "model"]

    @property
    def error(self) -> str:
        """The error; empty: the span tells of none."""
        row = self.row
        raised = next((about for name, about in row.events if name == "exception"), {})
        kind, text = (str(raised.get(f"exception.{key}") or "") for key in ("type", "message"))
        kind = kind.rpartition(".")[2] or str(row.attributes.get("error.type") or "")
        if row.status == "OK" or not (row.status == "ERROR" or kind or text):
            return ""
        return row.message or ": ".join(filter(None, (kind, text))) or "an error"

    def words(self, side: Side, limit: int | None = None) -> Any:
        """The question or the answer, from this span, a span around it alone, or a model's span."""
        is_question = side == "question"
        around = [
            frame for frame in self.frames
            if len(frame.calls) == 1 and (is_question or (frame.end or 0) >= (self.end or 0))
        ]  # fmt: skip
        spans = [self, *around, *(self.models[:1] if is_question else self.models[-1:])]
        payloads = (span_words.words(span.row.attributes, side, limit) for span in spans)
        return next((payload for payload in payloads if payload is not None), None)

    @property
    def usage(self) -> dict[str, int] | None:
        """The tokens in the span, else in the model calls."""
        calls = (part.row.attributes for part in self.models)
        return span_words.tokens([self.row.attributes]) or span_words.tokens([*calls]) or None


# --- the tree ---


def tree(rows: Iterable[SpanRow], guesses: Guesses) -> list[SpanNode]:
    """The spans from the roots down, on the clocks of the roots."""
    nodes = {row.id: SpanNode(row, span_words.kind_of(row.attributes, row.name)) for row in rows}
    below: defaultdict[tuple[str, str] | None, list[SpanNode]] = defaultdict(list)
    for node in nodes.values():
        node.start = node.row.start
        node.end = None if node.row.end is None else max(node.row.end, node.start)
        node.above = nodes.get(node.row.parent) if node.row.parent else None
        below[node.above.row.id if node.above else None].append(node)
        if node.row.parent and node.above is None and node.kind == "agent":
            guesses.note("an agent below a span that is not in the file was asked from outside",
                         node.name)  # fmt: skip
    order, waiting = list[SpanNode](), deque(below[None])
    while waiting:
        node = waiting.popleft()
        order.append(node)
        if node.above is not None:
            node.depth = node.above.depth + 1
            _fit(node, node.above, guesses)
        waiting.extend(below[node.row.id])
    _place(order)
    _mark_plumbing(order)
    _place(order)
    for node in order:
        if node.agent is not None:
            node.agent.parts.append(node)
        for frame in (*node.frames, *filter(None, [node.agent])) if node.kind == "agent" else ():
            frame.calls.append(node)
    return order


def _fit(node: SpanNode, above: SpanNode, guesses: Guesses) -> None:
    """Put a span on the clock of the span above, and not before the start there."""
    shift = above.start - above.row.start
    if node.row.host != above.row.host and node.end is not None and above.end is not None:
        early, late = above.start - node.start - shift, node.end + shift - above.end
        is_call = (above.row.kind, node.row.kind) == ("CLIENT", "SERVER")
        fits = node.end - node.start <= above.end - above.start
        more = early if early > 0 else -late if is_call and fits and late > 0 else 0
        if more:
            guesses.note("the clocks of hosts differ: what one did was put inside the call of the "
                         "other", node.row.name)  # fmt: skip
        shift += more
    if node.start + shift < above.start:
        guesses.note("a span that began before the one above it began with it", node.row.name)
    node.start = max(node.start + shift, above.start)
    node.end = None if node.end is None else max(node.end + shift, node.start)


def _place(order: Sequence[SpanNode]) -> None:
    """Find the agent around each span."""
    for node in order:
        if node.above is not None:
            node.agent = node.above if node.above.kind == "agent" else node.above.agent


def _mark_plumbing(order: Sequence[SpanNode]) -> None:
    """Mark as plumbing the agents' spans around the real agents.

    These are spans without a name and without work, and a client's span around the agent's own.
    """
    at_work = {node.agent for node in order if node.kind in ("tool", "model")}
    for node in reversed(order):
        frame = node.agent if node.kind == "agent" else None
        while frame is not None:
            is_agent = frame in at_work or span_words.first(frame.row.attributes, AGENT)
            if is_agent and not (frame.row.kind == "CLIENT" and frame.name == node.name):
                break
            frame.kind, frame = "", frame.agent


def _pair_handoffs(agents: Sequence[SpanNode]) -> None:
    """Pair agents side by side, if the earlier agent has handed over to the later agent."""
    beside: defaultdict[object, defaultdict[str, list[tuple[int, SpanNode]]]]
    beside = defaultdict(lambda: defaultdict(list))
    for node in sorted(agents, key=lambda node: node.start):
        tool = next((frame for frame in node.frames if frame.kind == "tool"), None)
        offers = beside[tool or node.agent or node.row.id[0]]  # what a tool asks is handed nothing
        above = node.row.attributes.get("graph.node.parent_id")
        keys = (f"after {above}", f"to {node.name}", f"to {_slug(node.name)}", "to the next")
        takes = (offers[key][-1] for key in keys if offers[key])
        givers = [giver for at, giver in takes if at <= node.start and giver.taker is None]
        for giver in givers[:1]:
            node.giver, giver.taker = giver, node
            giver.end = min(giver.end or node.start, node.start)
        offers[f"after {node.name}"].append((node.start, node))
        for tool in node.parts:
            if tool.kind == "tool" and (target := _target(tool)):
                offers[f"to {target}"].append((tool.start, node))


def _target(tool: SpanNode) -> str:
    """The agent to which a tool hands over, or `the next`; empty for another tool."""
    name = tool.name.lower()
    if name in _HANDOFF_TOOLS:
        arguments = span_words.words(tool.row.attributes, "question")
        arguments = arguments.get("kwargs", arguments) if isinstance(arguments, dict) else {}
        return span_words.first(arguments, _TARGETS) or "the next"
    if name.startswith("handoff to "):
        return tool.name[len("handoff to ") :]
    return name.removeprefix("transfer_to_") if name.startswith("transfer_to_") else ""


def _text(error: str) -> str:
    """An error without the type, for a connection may change the type."""
    return error.partition(": ")[2] or error


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name).lower()


# --- the records ---


def as_run(paths: Sequence[Path], rows: Sequence[SpanRow]) -> tuple[list[Record], Guesses]:
    """The records of the run behind spans, and the guesses.

    Args:
        paths: The paths of the files; the first gives the run its name.
        rows: The spans.

    Raises:
        TraceError: No span is of an agent.
    """
    source = ", ".join(path.name for path in paths)
    if any(map(is_own, rows)):
        try:
            return own_run(paths[0].stem, source, rows)
        except (RuleError, ValueError, TypeError, LookupError, AttributeError) as error:
            raise TraceError(paths[0], None, f"is no export of a run: {error}") from None
    guesses = Guesses()
    order = tree(with_agents(rows), guesses)
    agents = [node for node in order if node.kind == "agent"]
    if not agents:
        raise TraceError(paths[0], None, NO_AGENT)
    _pair_handoffs(agents)
    return _Writer(paths[0].stem, order, agents, guesses).records(source), guesses


class _Writer:
    """Writes the turns of agents, in order of time."""

    def __init__(
        self, name: str, order: Sequence[SpanNode], agents: list[SpanNode], guesses: Guesses
    ) -> None:
        self._agents, self._guesses = agents, guesses
        self._limit = span_words.cut_length(node.row.attributes for node in order)
        self._began = min(node.start for node in agents)
        guesses.note("a span of an agent inside another's is a call that this awaited")
        ids = (span_words.first(node.row.attributes, span_words.SESSION)
               for node in agents if node.agent is None)  # fmt: skip
        is_one = len({conversation for conversation in ids if conversation}) < 2
        guesses.note(
            "the run is a session, and its agents remember what they have seen" if is_one else
            "several conversations stand in one run, as requests"
        )  # fmt: skip
        if any(node.row.name.endswith("._execute_core") for node in agents):
            guesses.note("CrewAI has no spans of agents that were asked by delegation")
        names = dict.fromkeys(node.name for node in agents)
        run = Run(0, 0, name, tuple(names), limits=self._limits(), session=True, memory=is_one)
        self._scribe = Scribe(run, guesses)
        self._calls = Calls(self._scribe)

    def _limits(self) -> Any:
        limits, leave_out = Thresholds().limits, self._guesses.leave_out
        limits = leave_out(limits, ("MC", "DL", "OE", "LATE"), "spans show no buffer, and no "
                           "message on its way; a span that hangs is not exported")  # fmt: skip
        limits = leave_out(limits, ("ER", "CLA", "RSP"), "spans show calls, each an event of its "
                           "own, and none that is passed on or shared")  # fmt: skip
        if not any(node.words("question") or node.words("answer") for node in self._agents):
            limits = leave_out(limits, ("LOOP", "VOID"), "no words were captured")
        roots = [node for node in self._agents if node.agent is None and node.giver is None]
        framed = [next(iter(node.frames)).row.id for node in roots if node.above is not None]
        if len(framed) > len(set(framed)):
            limits = leave_out(limits, ("LIVELOCK",), "agents of one workflow stand side by side, "
                               "and no span says who gave the floor to whom")  # fmt: skip
        return limits

    def records(self, source: str) -> list[Record]:
        """The whole trace."""
        steps = []
        for node in sorted(self._agents, key=lambda node: -node.depth):
            if node.end is not None:
                ends = (node.start, *(call.start for call in node.calls),
                        *(call.end or 0 for call in node.calls if call.is_late))  # fmt: skip
                node.is_late = max(ends) >= node.end
                steps.append((node.end, 2 if node.is_late else 0, -node.depth, node))
            steps.append((node.start, 1, node.depth, node))
        for at, phase, _, node in sorted(steps, key=lambda step: step[:3]):
            self._scribe.at(max(0, at - self._began) // 1000)
            if phase == 1:
                self._begin(node)
            else:
                self._end(node)
        return self._scribe.finish("submitted" if self._calls.has_answer else "stopped", source)

    def _begin(self, node: SpanNode) -> None:
        outer = node.agent.turn if node.agent else None
        if node.turn is None:
            question = node.words("question", self._limit)
            if outer is not None and outer.is_open:
                node.turn = self._calls.call(outer, node.name, question)
            else:
                if outer is not None:
                    self._guesses.note("an agent that began after the one around it had ended was "
                                       "asked from outside", node.name)  # fmt: skip
                node.turn = self._calls.request(node.name, question)
        self._calls.begin(node.turn)

    def _end(self, node: SpanNode) -> None:
        turn, answer, error = node.turn, node.words("answer", self._limit), node.error
        assert turn is not None
        if node.taker is not None and node.taker.turn is None:
            self._guesses.note("a hand-off gave the floor to the agent that followed",
                               f"{node.name} to {node.taker.name}")  # fmt: skip
            node.taker.turn = self._calls.hand_over(turn, node.taker.name, answer, node.usage)
            return
        if not error and answer is None and any(f.error for f in node.frames if f.kind == "tool"):
            error = _CALLED_OFF[-1]
            self._guesses.note("an agent without an answer in a tool that failed was called off",
                               node.name)  # fmt: skip
        cancelled = error.startswith(_CALLED_OFF)
        failure: Failure | None = None if cancelled else "error"
        if turn.caller is None and any(limit in error.lower() for limit in _LIMITS):
            cancelled, failure = True, "limit"
        raisers = [] if cancelled or not error else [
            call.turn.latest for call in node.calls
            if call.turn and call.turn.has_failed
            and (_text(call.error) in error or _text(error) in call.error)
        ]  # fmt: skip
        self._calls.answer(
            turn, answer, error=error, failure=failure, usage=node.usage, cancelled=cancelled,
            because=raisers[-1] if raisers else None,
        )  # fmt: skip
