"""Running a recorded team again, with answers of stateless agents from the journal at first.

    served = Served(RecordedRun.read(run, payloads=True), at=41, runs=folder)
    await served.run(entry, dig.unwrap)  # `entry` makes and runs the team again, in `dig.wrap`

The session of the team begins anew, with the recorded times. Each agent's step waits for its place
in the record, and each record before `at` must equal the recorded one. So the activations have
their recorded ids, by which the recorded answers are found. From `at` on the run is free.
"""

from __future__ import annotations

import builtins
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import anyio

from dig._util.redaction import MASK
from dig._util.text import name, one_line
from dig.adapters import base
from dig.adapters.base import Session, Turn, describe
from dig.errors import DigError, DivergenceError, ReplayError, SettingsError
from dig.graph import records
from dig.graph.codec import encode
from dig.graph.records import Emit, End, Record
from dig.monitor.messages import Effect
from dig.runtime.driver.recorded_requests import check_edition
from dig.traces.replay.changes import AskAgain, EditRecord, RunChange, TellAgent
from dig.traces.run import RecordedActivation, RecordedEvent, RecordedRun

from .callables import NOT_PLAIN, serving

PATIENCE_S = 60.0
"""The time limit of a repeated run, beyond three times the recorded duration."""

GRACE_S = 1.0
"""The time that a differing step waits for another task to make the recorded step."""

_IMPOSSIBLE = {
    "seat": "the agents of such a team do different work",
    "resend": "an event of such a team is a call, and its caller waits for the answer",
    "omit": "its code decides which calls come from outside",
    "sooner": "no delivery policy keeps its events",
    "wait": "it has no time limit",
}
"""The reasons why other kinds of changes cannot be made in a team of plain callables."""

Fits = Callable[[Record], bool | None]
"""Whether a recorded step is the waiting one; ``None``: the step is another agent's; ``False``: the
step is another one of the same turn, and another task of the turn may make it."""


class Served:
    """A repeated run of a recorded team.

    Attributes:
        at: The first record that may differ from the recorded one.
        directory: The run directory of the new run, once the run has begun.
        about: Further fields of the side file.
        session_parts: The changes in the session of the team.
    """

    def __init__(
        self, parent: RecordedRun, at: int, runs: Path, *, changes: Sequence[RunChange] = (),
        about: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Prepare; nothing runs yet.

        Args:
            parent: The recorded run, with payloads.
            at: The first record that may differ.
            runs: The folder in which the new run directory is made.
            changes: The changes: an `edit` of an answer, `again`, `tell`.
            about: Further fields of the new side file.

        Raises:
            ReplayError: There is no such record, or a change cannot be made in such a run; the
                message says why.
        """
        if at > len(parent.records):
            raise ReplayError(f"there is no record {at}; the last is {parent.last.t}")
        if at:
            check_edition(parent.graph.run)
        for change in changes:
            check_change(parent, change, at)
        self.at, self._parent = at, parent
        self.directory: Path | None = None
        self.session_parts = base.ServedSession(self._clock, self._take, runs)
        self.about = {} if about is None else about
        edits = (_new_answer(parent, edit) for edit in changes if isinstance(edit, EditRecord))
        self._edits = dict(filter(None, edits))
        self._again = {change.activation for change in changes if isinstance(change, AskAgain)}
        tells = [change for change in changes if isinstance(change, TellAgent)]
        self._tells = sorted(tells, key=lambda change: change.at)
        self._limit_s = PATIENCE_S + 3 * parent.times[-1] / 1_000_000
        self._stacks = {
            row.detail["activation"]: row.detail["text"]
            for row in parent.incidents
            if row.what == base.STACK
        }
        self._count = 0  # records of the new run
        self._freed: float | None = None if at else time.monotonic()
        self._due: set[int] = set()  # the ends of the answers that the journal is to give
        self._team: Any = None
        self._session: Session | None = None
        self._refused: Exception | None = None
        self._loop = base.LoopCaller()
        self._is_repeating = self._keeps_time = False

    # --- the run ---

    async def run(
        self, entry: Callable[[], Awaitable[object]], unwrap: Callable[[Any], object]
    ) -> None:
        """Make and run the team again.

        Args:
            entry: Wraps one team of plain callables, and awaits its answers. An exception from
                `at` on belongs to the run.
            unwrap: Ends the session of the team, if the entry has left the session open.

        Raises:
            ReplayError: Another record came out before `at`, or the journal cannot answer.
        """
        reason = ""
        self._moved = anyio.Event()
        self._loop.bind_to_current_loop()
        token = serving.set(self)
        try:
            with anyio.move_on_after(self._limit_s) as self._scope:
                try:
                    await entry()
                except Exception as error:  # of the user's own code
                    reason = f"; the entry raised {describe(error)}"
                    if self._session is None and isinstance(error, DigError):
                        raise
            if self._session is None:
                raise ReplayError(f"the entry wraps no team of plain callables{reason}")
            if self._count < self.at and self._refused is None:
                self._refused = self._missing(f"by the end of the entry{reason}")
        finally:
            serving.reset(token)
            if self._session is not None:
                if self._scope.cancelled_caught and self._refused is None:
                    self._session.close("it took too long", "timeout")
                unwrap(self._team)
        if self._refused is not None:
            raise self._refused

    def attach(self, team: Any, session: Session) -> None:
        """Follow the session of the team from the beginning.

        Raises:
            SettingsError: The team is the second of the entry.
        """
        if self._session is not None:
            raise self._refuse(SettingsError("the entry wraps two teams; a run has one"))
        self._team, self._session, self.directory = team, session, session.directory
        guard = session.guard
        note_effects, before = guard.on_effects, guard.on_step_end

        def on_effects(effects: list[Effect]) -> None:
            note_effects(effects)
            self._tell(session)

        def on_step_end() -> Callable[[], None]:
            follow_up = before()

            def follow() -> None:
                follow_up()
                self._end_step(session)

            return follow

        # Hooks of the guard run inside the step, so no other record comes between.
        guard.on_effects, guard.on_step_end = on_effects, on_step_end
        guard.run(self._tell, session, default=None)
        self._end_step(session)

    def _end_step(self, session: Session) -> None:
        if not self._is_repeating:  # the steps in here end, too
            self._is_repeating = True
            while self._repeat_due(session):
                pass
            self._is_repeating = False
        if self._freed is not None and not self._keeps_time and session.stopped is None:
            self._keeps_time = True
            session.keep_time()
        self._on_loop(self._wake)

    def _tell(self, session: Session) -> None:
        """Send agents the notes due by the records so far; inside a step."""
        while self._tells and self._count >= self._tells[0].at:
            change = self._tells.pop(0)
            session.guard.ask(session.monitor.tell, change.note, [change.agent])

    def _repeat_due(self, session: Session) -> bool:
        """Repeat a next finding or incident of time alone; returns whether there was any."""
        count, step = self._count, self._next_step()
        due = self._parent.records[count] if count < self.at else None
        if isinstance(due, records.FindingRow) and (step is None or due.us < step.us):
            session.tick()
        elif isinstance(due, records.IncidentRow) and due.what == base.LONG_ACTIVATION:
            session.guard.incident(due.what, due.detail)
        return self._count > count

    def _on_loop(self, fn: Callable[[], object]) -> None:
        # Steps may end on other threads; anyio's events belong to the loop of the run.
        with suppress(RuntimeError):  # the loop is closed, so nothing waits there
            self._loop.call(fn)

    def _wake(self) -> None:
        self._moved.set()
        self._moved = anyio.Event()

    def _missing(self, moment: str) -> ReplayError:
        record = one_line(encode(self._parent.records[self._count]), 200)
        return ReplayError(f"record {self._count} did not come again {moment}: {record}")

    def _refuse(self, error: Exception) -> Exception:
        """End the run with an error; the first error counts."""
        self._refused = self._refused or error
        self._on_loop(self._scope.cancel)
        return error

    # --- records and times ---

    def _clock(self) -> float:
        """Seconds since the run began: the recorded times, then real time from `at` on."""
        times = self._parent.times
        if self._freed is None:
            return times[self._count] / 1_000_000
        return times[min(self.at, len(times) - 1)] / 1_000_000 + time.monotonic() - self._freed

    def _take(self, record: Record) -> None:
        """Compare a record before `at` with the recorded record; the sink of the session."""
        if record.t < self.at:
            expected, actual = encode(self._parent.records[record.t]), encode(record)
            if expected != actual and self._scope.cancel_called:
                self._refuse(self._missing(f"in {self._limit_s:g} s"))
            elif expected != actual:
                self._refuse(DivergenceError(record.t, expected, actual))
        self._count = record.t + 1
        if self._freed is None and self._count >= self.at:
            self._freed = time.monotonic()

    # --- steps of the agents ---

    async def before_call(self, session: Session, agent: str, payload: Any) -> None:
        """Wait for the place of a call of the running code in the record.

        Args:
            session: The session of the team.
            agent: The callee.
            payload: The arguments of the call, as plain JSON.
        """
        caller = base.current_turn(session)

        def is_same(to: Sequence[str], recorded: Any) -> bool:
            return recorded == payload and all(name.partition("#")[0] == agent for name in to)

        def compare(record: Record) -> bool | None:
            if caller is None:
                if isinstance(record, Emit) and record.by is None:
                    return is_same(record.to, record.payload)
                return None
            step = self._step_of(caller, record)
            if step is None:
                return None
            calls = [*_calls(self._parent, step)]
            return not calls or any(is_same(*call) for call in calls)

        await self._wait(compare)

    async def answer(
        self, function: Callable[..., object], run: Callable[[], Awaitable[Any]], *,
        is_stateless: bool,
    ) -> Any:  # fmt: skip
        """Answer for the agent of the running turn: from the journal, or by running the agent.

        Args:
            function: The agent's own function.
            run: Runs the function with the arguments of the call.
            is_stateless: Whether the call may be answered from the journal.
        """
        turn = base.current.get()
        assert turn is not None
        recorded = self._recorded_activation(turn)
        if recorded is not None and recorded.id in self._again and not is_stateless:
            raise self._refuse(ReplayError(
                f"{recorded.agent} is not declared stateless, so it runs again in any case; if it "
                f"keeps nothing between calls: dig.wrap(team, stateless={{{recorded.agent!r}}})"
            ))  # fmt: skip
        is_served = is_stateless and recorded is not None and recorded.id not in self._again
        result, error = None, None
        if is_served and recorded and recorded.end and is_single(self._parent, recorded):
            result, error = self._from_journal(recorded, function)
            await self._come_due(turn, recorded.end)
        else:
            try:
                result = await run()
            except Exception as raised:
                error = raised
            await self._wait(partial(self._ends, turn))
        # The turn ends with the activation in progress, or with the next one to start.
        step = self._next_step()
        last = (step and self._step_of(turn, step)) or self._recorded_activation(turn)
        name = last.id if last else ""
        if name in self._edits:
            return self._edits[name]
        if error is not None:
            stack = self._stacks.get(name)
            if stack is not None:  # the code may have other lines by now
                setattr(error, base.RECORDED_STACK, stack)
            raise error
        return result

    async def _wait(self, fits: Fits) -> None:
        """Wait until the next recorded step fits, or the run is free."""
        while self._count < self.at:
            step = self._next_step()
            fit = step is None or fits(step)
            if fit:
                return
            moved = self._moved
            with anyio.move_on_after(None if fit is None else GRACE_S) as grace:
                await moved.wait()
            if grace.cancelled_caught:
                return  # the step differs, as the comparison of its record will report

    def _ends(self, turn: Turn, record: Record) -> bool | None:
        """Whether a turn ends with a record (see `Fits`)."""
        step = self._step_of(turn, record)
        return None if step is None else not [*_calls(self._parent, step)]

    def _step_of(self, turn: Turn, record: Record) -> RecordedActivation | None:
        """The recorded activation whose start or end a record is, if a turn goes on there."""
        match record:
            case End(activation=activation) if activation == turn.activation:
                return self._parent.activations[activation]
            case records.Start(activation=activation, agent=agent) if turn.activation is None:
                return self._parent.activations[activation] if agent == turn.instance else None
        return None

    def _next_step(self) -> Record | None:
        """The next recorded step; the join of an instance belongs to the call after the join."""
        for t in range(self._count, len(self._parent.records)):
            if not isinstance(self._parent.records[t], (*records.ASIDE, records.Join)):
                return self._parent.records[t]
        return None

    async def _come_due(self, turn: Turn, end: End) -> None:
        """Wait until an answer from the journal comes.

        If the run is free before that, such answers keep their recorded order and times.
        """
        self._due.add(end.t)
        try:
            await self._wait(partial(self._ends, turn))
            while self._freed is not None and min(self._due) < end.t:
                moved = self._moved
                await moved.wait()
            if self._freed is not None:
                await anyio.sleep(max(0.0, end.us / 1_000_000 - self._clock()))
        finally:
            self._due.discard(end.t)

    def _recorded_activation(self, turn: Turn) -> RecordedActivation | None:
        """The recorded activation for the activation in progress, if both have the same events."""
        activation = self._parent.activations.get(turn.activation or "")
        if activation is None or activation.t > self.at:
            return None
        consumed = (self._parent.events[event] for event in activation.with_fate("consume"))
        events = {event.id for event in consumed if event.by != records.SYSTEM}
        return activation if events <= {event.id for event in turn.events} else None

    def _from_journal(
        self, recorded: RecordedActivation, function: Callable[..., object]
    ) -> tuple[Any, Exception | None]:
        """The recorded answer of an agent, or the recorded exception."""
        answer = answer_of(self._parent, recorded)
        reason = why_not_served(self._parent, recorded)
        if answer is None or reason:
            message = f"activation {recorded.id} of {recorded.agent}: {reason}"
            raise self._refuse(ReplayError(message))
        if recorded.end is None or recorded.end.error is None:
            return answer.payload, None
        error = _exception_of(recorded.end.error, function)
        if error is None:
            raise self._refuse(ReplayError(
                f"{recorded.agent} raised {one_line(recorded.end.error, 80)!r}, which is neither "
                "an exception of Python nor one of its own module: it cannot be raised again"
            ))  # fmt: skip
        return None, error


# --- answers from the journal ---


def answer_of(run: RecordedRun, activation: RecordedActivation) -> RecordedEvent | None:
    """The event at the end of a turn, if the activation is the last of the turn."""
    outputs = run.outputs(activation)
    if len(outputs) != 1 or _is_continuation(outputs[0], activation):
        return None
    return outputs[0]


def _calls(run: RecordedRun, activation: RecordedActivation) -> Iterator[tuple[Sequence[str], Any]]:
    """The calls at the end of an activation: recipients and payload."""
    if activation.end is None or answer_of(run, activation) is not None:
        return
    for fate in activation.end.fates:
        if fate.fate == "reroute":
            yield fate.to, run.events[fate.event].payload
    for event in run.outputs(activation):
        if not _is_continuation(event, activation):
            yield event.to, event.payload


def is_single(run: RecordedRun, activation: RecordedActivation) -> bool:
    """Whether an activation is a whole turn, without calls of other agents."""
    consumed = [run.events[event] for event in activation.with_fate("consume")]
    is_continued = any(event.agent == activation.agent for event in consumed)
    return answer_of(run, activation) is not None and not is_continued


def why_not_served(run: RecordedRun, activation: RecordedActivation) -> str:
    """Return why a recorded answer cannot be given again; empty: possible."""
    answer = answer_of(run, activation)
    if answer is None or not is_single(run, activation):
        return "it was no call of its own that called no other agent"
    kinds = {
        detail["type"]
        for row in run.incidents
        if row.what == NOT_PLAIN and (detail := row.detail).get("activation") == activation.id
    }
    if kinds or any(text.startswith("$") for text in _texts(answer.payload, keys=True)):
        was = f", but a {min(kinds)}" if kinds else ""
        return f"its answer {name(answer.id)} was no plain JSON{was}"
    if any(MASK in text for text in _texts(answer.payload, keys=False)):
        return f"its answer {name(answer.id)} has a masked secret ({MASK})"
    return ""


def check_change(run: RecordedRun, change: RunChange, at: int) -> None:
    """Check a change for a repeated run of plain callables.

    Args:
        run: The recorded run.
        change: The change.
        at: The first record that may differ.

    Raises:
        ReplayError: The change cannot be made; the message says why.
    """
    match change:
        case EditRecord():
            edit = _new_answer(run, change)
            recorded = None if edit is None else run.activations[edit[0]]
        case AskAgain(activation=activation, note=note):
            recorded = run.activations.get(activation)
            if recorded is None:
                _impossible(change, f"there is no activation {activation!r}")
            if reason := why_not_again(run, recorded):
                _impossible(change, reason)
            if note is not None:
                _impossible(change, "an agent that is asked again gets no note; see `tell`")
        case TellAgent(agent=agent, once=once):
            recorded = None
            if agent not in run.agents or not once:
                _impossible(change, f"there is no agent {agent!r}" if once else "it is done once")
        case _:
            reason = _IMPOSSIBLE[change.kind]
            _impossible(change, f"it cannot be made in a team of plain callables: {reason}")
    if recorded is not None and recorded.t > at:
        _impossible(change, f"{recorded.id} begins later than record {at}, where the run is free")


def why_not_again(run: RecordedRun, activation: RecordedActivation) -> str:
    """Return why an agent cannot be asked again instead of the journal; empty: possible."""
    if is_single(run, activation):
        return ""
    return (
        f"{activation.id} belongs to a turn in which {activation.agent} called others: its code "
        "runs again in any case"
    )


def _new_answer(run: RecordedRun, change: EditRecord) -> tuple[str, Any] | None:
    """The activation of an edited answer, and the new answer; ``None``: nothing changes.

    Raises:
        ReplayError: The change edits no answer.
    """
    record = run.records[change.at] if change.at < len(run.records) else None
    by = getattr(record, "by", None) or getattr(record, "activation", None)
    activation, keys = run.activations.get(by or ""), {*change.edit}
    answer = answer_of(run, activation) if activation else None
    if activation is None or answer is None or not isinstance(record, Emit | End):
        _impossible(change, "the record is no answer of an agent, which alone can be changed")
    if isinstance(record, End):
        fates = [{"event": f.event, "fate": f.fate, "to": [*f.to]} for f in record.fates]
        fields = {"error": record.error, "fates": fates}
        if all(change.edit[key] == fields.get(key) for key in keys):
            return None
        outputs = change.edit.get("outputs")
        if keys != {"outputs"} or not isinstance(outputs, list) or len(outputs) != 1:
            _impossible(change, 'of this record `{"outputs": [{"payload": ...}]}` can be changed')
        value = outputs[0].get("payload")
    elif activation.has_failed and keys:
        end = activation.end.t if activation.end else record.t
        _impossible(change, f"{activation.agent} raised, as record {end} says; edit that one")
    elif keys - {"payload"}:
        _impossible(change, "of an answer only the `payload` can be changed")
    else:
        value = change.edit.get("payload", answer.payload)
    is_same = value == answer.payload and not activation.has_failed
    return None if is_same else (activation.id, value)


def _impossible(change: RunChange, reason: str) -> NoReturn:
    raise ReplayError(f"{change.kind} at record {change.at}: {reason}")


def _is_continuation(event: RecordedEvent, activation: RecordedActivation) -> bool:
    return event.type == records.NOTICE and event.to == (activation.agent,)


def _texts(payload: Any, *, keys: bool) -> Iterator[str]:
    """The keys of all objects in a payload, or the other texts."""
    if isinstance(payload, dict):
        for key, value in payload.items():
            if keys:
                yield key
            yield from _texts(value, keys=keys)
    elif isinstance(payload, list):
        for value in payload:
            yield from _texts(value, keys=keys)
    elif isinstance(payload, str) and not keys:
        yield payload


def _exception_of(text: str, function: Callable[..., object]) -> Exception | None:
    """Make the described exception again, if the class is in reach and gives the same text."""
    name, _, message = text.partition(": ")
    kind = {**vars(builtins), **getattr(function, "__globals__", {})}.get(name)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        return None
    try:
        error = kind(message) if message else kind()
    except Exception:  # a class of the user may take other arguments
        return None
    return error if describe(error) == text and len(text) < base.MOST_IN_ERROR else None
