"""A recorded team runs again; until some record, its stateless agents answer from the journal.

    served = Served(RecordedRun.read(run, payloads=True), at=41, runs=folder)
    await served.run(entry, dig.unwrap)  # `entry` makes and runs the team again, in `dig.wrap`

The session of the team begins anew, with the recorded times. Each agent's step waits until it is
its turn by the record, and each record before `at` must equal the recorded one. So the activations
have their recorded ids, by which the recorded answers are found. From `at` on the run is free.
"""

from __future__ import annotations

import builtins
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import anyio

from dig._util.redaction import MASK
from dig._util.text import name, one_line
from dig.adapters.base import (
    LONG_ACTIVATION,
    MOST_IN_ERROR,
    RECORDED_STACK,
    STACK,
    LoopCaller,
    ServedSession,
    Session,
    Turn,
    current,
    current_turn,
    describe,
)
from dig.errors import DigError, DivergenceError, ReplayError, SettingsError
from dig.graph.codec import encode
from dig.graph.records import (
    ASIDE,
    EDITION,
    NOTICE,
    SYSTEM,
    Emit,
    End,
    FindingRow,
    IncidentRow,
    Join,
    Record,
    Start,
)
from dig.monitor.messages import Effect
from dig.traces.replay.changes import AskAgain, EditRecord, RunChange, TellAgent
from dig.traces.replay.recorded_requests import NOT_COMPARED
from dig.traces.run import RecordedActivation, RecordedEvent, RecordedRun

NOT_PLAIN = "answer is no plain JSON"
"""The incident of an answer of a stateless agent that its caller would get otherwise from JSON."""

PATIENCE_S = 60.0
"""A run that goes again may take so much longer than three times what was recorded."""

GRACE_S = 1.0
"""A step that differs from the recorded one waits so long for another task to make that."""

_OTHERWISE = {
    "seat": "the agents of such a team do different work",
    "resend": "an event of such a team is a call, and its caller waits for the answer",
    "omit": "its code decides which calls come from outside",
    "sooner": "no delivery policy keeps its events",
    "wait": "it has no time limit",
}
"""Why the other kinds of changes cannot be made in a team of plain callables."""

_NO_VALUE = object()
Fits = Callable[[Record], bool | None]
"""Whether a recorded step is the one that waits: ``None``, it is another agent's; ``False``, it is
one of the same turn, and another task of it may be meant."""


class Served:
    """A run that goes again from its record.

    Attributes:
        at: The first record that may differ from the recorded one.
        directory: The run directory of the new run, once it has begun.
        about: Further fields of its side file.
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
        edition = parent.graph.run.patterns
        if at and edition != EDITION:
            raise ReplayError(f"{NOT_COMPARED.format(edition)}, and a team is wrapped as today")
        for change in changes:
            check_change(parent, change, at)
        self.at, self._parent = at, parent
        self.directory: Path | None = None
        self.session_parts = ServedSession(self._clock, self._take, runs)
        self.about = {} if about is None else about
        edits = (_edited(parent, one) for one in changes if isinstance(one, EditRecord))
        self._edits = dict(one for one in edits if one is not None)
        self._again = {one.activation for one in changes if isinstance(one, AskAgain)}
        self._tells = sorted(
            (one for one in changes if isinstance(one, TellAgent)), key=lambda one: one.at
        )
        self._limit_s = PATIENCE_S + 3 * parent.times[-1] / 1_000_000
        self._stacks = {
            row.detail["activation"]: row.detail["text"]
            for row in parent.incidents
            if row.what == STACK
        }
        self._count = 0  # records of the new run
        self._freed: float | None = None if at else time.monotonic()
        self._due: set[int] = set()  # the ends of the answers that the journal is to give
        self._team: Any = None
        self._session: Session | None = None
        self._refused: Exception | None = None
        self._loop = LoopCaller()
        self._is_repeating = self._keeps_time = False

    # --- the run ---

    async def run(
        self, entry: Callable[[], Awaitable[object]], unwrap: Callable[[Any], object]
    ) -> None:
        """Make and run the team again.

        Args:
            entry: Does that: wraps one team of plain callables, and awaits its answers. What it
                raises from `at` on belongs to the run.
            unwrap: Ends the session of the team, if the entry has left that open.

        Raises:
            ReplayError: Another record came out before `at`, or the journal cannot answer.
        """
        why = ""
        self._moved = anyio.Event()
        self._loop.bind_to_current_loop()
        token = serving.set(self)
        try:
            with anyio.move_on_after(self._limit_s) as self._scope:
                try:
                    await entry()
                except Exception as error:  # of the user's own code
                    why = f"; the entry raised {describe(error)}"
                    if self._session is None and isinstance(error, DigError):
                        raise
            if self._session is None:
                raise ReplayError(f"the entry wraps no team of plain callables{why}")
            if self._count < self.at and self._refused is None:
                self._refused = self._missing(f"by the end of the entry{why}")
        finally:
            serving.reset(token)
            if self._session is not None:
                if self._scope.cancelled_caught and self._refused is None:
                    self._session.close("it took too long", "timeout")
                unwrap(self._team)
        if self._refused is not None:
            raise self._refused

    def attach(self, team: Any, session: Session) -> None:
        """Follow the session of the team, which begins now.

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

            def after() -> None:
                follow_up()
                self._step_is_over(session)

            return after

        guard.on_effects, guard.on_step_end = on_effects, on_step_end
        guard.run(self._tell, session, default=None)
        self._step_is_over(session)

    def _step_is_over(self, session: Session) -> None:
        if not self._is_repeating:
            self._is_repeating = True
            while self._repeated_due(session):
                pass
            self._is_repeating = False
        if self._freed is not None and not self._keeps_time and session.stopped is None:
            self._keeps_time = True
            session.keep_time()
        self._on_loop(self._wake)

    def _tell(self, session: Session) -> None:
        """Tell agents what is due by the records so far; inside a step."""
        while self._tells and self._count >= self._tells[0].at:
            change = self._tells.pop(0)
            session.guard.ask(session.monitor.tell, change.note, [change.agent])

    def _repeated_due(self, session: Session) -> bool:
        """Raise what time alone has raised next, by the record; says whether it was raised."""
        count, step = self._count, self._coming()
        due = self._parent.records[count] if count < self.at else None
        if isinstance(due, FindingRow) and (step is None or due.us < step.us):
            session.tick()
        elif isinstance(due, IncidentRow) and due.what == LONG_ACTIVATION:
            session.guard.incident(due.what, due.detail)
        return self._count > count

    def _on_loop(self, fn: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed, so nothing waits there
            self._loop.call(fn)

    def _wake(self) -> None:
        self._moved.set()
        self._moved = anyio.Event()

    def _missing(self, when: str) -> ReplayError:
        record = one_line(encode(self._parent.records[self._count]), 200)
        return ReplayError(f"record {self._count} did not come again {when}: {record}")

    def _refuse(self, error: Exception) -> Exception:
        """Give up; the first reason counts."""
        self._refused = self._refused or error
        self._on_loop(self._scope.cancel)
        return error

    # --- records and times ---

    def _clock(self) -> float:
        """Seconds since the run began: the recorded moments, then real time from that of `at`."""
        times = self._parent.times
        if self._freed is None:
            return times[self._count] / 1_000_000
        return times[min(self.at, len(times) - 1)] / 1_000_000 + time.monotonic() - self._freed

    def _take(self, record: Record) -> None:
        """The sink of the session: each record before `at` must equal the recorded one."""
        if record.t < self.at:
            expected, got = encode(self._parent.records[record.t]), encode(record)
            if expected != got and self._scope.cancel_called:
                self._refuse(self._missing(f"in {self._limit_s:g} s"))
            elif expected != got:
                self._refuse(DivergenceError(record.t, expected, got))
        self._count = record.t + 1
        if self._freed is None and self._count >= self.at:
            self._freed = time.monotonic()

    # --- steps of the agents ---

    async def before_call(self, session: Session, agent: str, payload: Any) -> None:
        """Wait until it is the turn of a call that the running code makes.

        Args:
            session: The session of the team.
            agent: The agent that is called.
            payload: The arguments of the call, as plain JSON.
        """
        caller = current_turn(session)

        def is_sent(to: Sequence[str], told: Any) -> bool:
            return told == payload and all(one.partition("#")[0] == agent for one in to)

        def fits(record: Record) -> bool | None:
            if caller is None:
                if isinstance(record, Emit) and record.by is None:
                    return is_sent(record.to, record.payload)
                return None
            step = self._step_of(caller, record)
            if step is None:
                return None
            calls = [*_calls(self._parent, step)]
            return not calls or any(is_sent(*one) for one in calls)

        await self._wait(fits)

    async def answer(
        self, function: Callable[..., object], run: Callable[[], Awaitable[Any]], *,
        is_stateless: bool,
    ) -> Any:  # fmt: skip
        """The answer of the agent whose turn this is: from the journal, or by running it.

        Args:
            function: The agent's own function.
            run: Runs it with the arguments of the call.
            is_stateless: Whether the call may be answered from the journal.
        """
        turn = current.get()
        assert turn is not None
        recorded = self._recorded(turn)
        if recorded is not None and recorded.id in self._again and not is_stateless:
            raise self._refuse(ReplayError(
                f"{recorded.agent} is not declared stateless, so it runs again in any case; see "
                "`stateless` in docs/wrapping.md"
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
        ending = self._ending(turn)
        edited = self._edits.get(ending, _NO_VALUE)
        if edited is not _NO_VALUE:
            return edited
        if error is not None:
            stack = self._stacks.get(ending)
            if stack is not None:  # its lines are not those of this run
                setattr(error, RECORDED_STACK, stack)
            raise error
        return result

    async def _wait(self, fits: Fits) -> None:
        """Wait until the next recorded step fits, or the run is free."""
        while self._count < self.at:
            step = self._coming()
            fit = step is None or fits(step)
            if fit:
                return
            moved = self._moved
            with anyio.move_on_after(None if fit is None else GRACE_S) as grace:
                await moved.wait()
            if grace.cancelled_caught:
                return  # it is otherwise, as its records will show

    def _ends(self, turn: Turn, record: Record) -> bool | None:
        """Whether a turn ends with a record (see `Fits`)."""
        step = self._step_of(turn, record)
        return None if step is None else not [*_calls(self._parent, step)]

    def _step_of(self, turn: Turn, record: Record) -> RecordedActivation | None:
        """The recorded activation that a turn ends or starts with a record, if it goes on so."""
        match record:
            case End(activation=activation) if activation == turn.activation:
                return self._parent.activations[activation]
            case Start(activation=activation, agent=agent) if turn.activation is None:
                return self._parent.activations[activation] if agent == turn.instance else None
        return None

    def _coming(self) -> Record | None:
        """The next recorded step; an instance that joins belongs to the call after it."""
        coming = (self._parent.records[t] for t in range(self._count, len(self._parent.records)))
        return next((one for one in coming if not isinstance(one, (*ASIDE, Join))), None)

    async def _come_due(self, turn: Turn, end: End) -> None:
        """Wait until an answer from the journal comes.

        If the run is free before that, such answers keep their recorded order and moments.
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

    def _recorded(self, turn: Turn) -> RecordedActivation | None:
        """The recorded activation that the one in progress is, if what it was given is the same."""
        found = self._parent.activations.get(turn.activation or "")
        if found is None or found.t > self.at:
            return None
        used = (self._parent.events[event] for event in found.with_fate("consume"))
        given = {event.id for event in used if event.by != SYSTEM}
        return found if given <= {event.id for event in turn.events} else None

    def _ending(self, turn: Turn) -> str:
        """The activation that a turn ends with: the one in progress, or the next one to start."""
        coming = self._coming()
        step = None if coming is None else self._step_of(turn, coming)
        ending = step or self._recorded(turn)
        return ending.id if ending else ""

    def _from_journal(
        self, recorded: RecordedActivation, function: Callable[..., object]
    ) -> tuple[Any, Exception | None]:
        """The answer of an agent, or the exception that it raised."""
        answer = answer_of(self._parent, recorded)
        why = why_not_served(self._parent, recorded)
        if answer is None or why:
            raise self._refuse(ReplayError(f"activation {recorded.id} of {recorded.agent}: {why}"))
        if recorded.end is None or recorded.end.error is None:
            return answer.payload, None
        error = _raised_again(recorded.end.error, function)
        if error is None:
            raise self._refuse(ReplayError(
                f"{recorded.agent} raised {one_line(recorded.end.error, 80)!r}, which is neither "
                "an exception of Python nor one of its own module: it cannot be raised again"
            ))  # fmt: skip
        return None, error


serving: ContextVar[Served | None] = ContextVar("dig_serving", default=None)
"""The run that the running code makes again."""


# --- what the journal can answer ---


def answer_of(run: RecordedRun, activation: RecordedActivation) -> RecordedEvent | None:
    """The event that a turn ended with, if this is its last activation."""
    outputs = run.outputs(activation)
    if len(outputs) != 1 or _is_continuation(outputs[0], activation):
        return None
    return outputs[0]


def _calls(run: RecordedRun, activation: RecordedActivation) -> Iterator[tuple[Sequence[str], Any]]:
    """The calls that an activation ended with: to whom, and with what."""
    if activation.end is None or answer_of(run, activation) is not None:
        return
    for fate in activation.end.fates:
        if fate.fate == "reroute":
            yield fate.to, run.events[fate.event].payload
    for event in run.outputs(activation):
        if not _is_continuation(event, activation):
            yield event.to, event.payload


def is_single(run: RecordedRun, activation: RecordedActivation) -> bool:
    """Whether an activation is a whole turn, which called no other agent."""
    used = [run.events[event] for event in activation.with_fate("consume")]
    return answer_of(run, activation) is not None and not any(
        event.agent == activation.agent for event in used
    )


def why_not_served(run: RecordedRun, activation: RecordedActivation) -> str:
    """Why a recorded answer cannot be given again; empty: it can."""
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
    """Check that a change can be made in a run of plain callables that goes again.

    Args:
        run: The recorded run.
        change: The change.
        at: The first record that may differ.

    Raises:
        ReplayError: The change cannot be made; the message says why.
    """
    match change:
        case EditRecord():
            edited = _edited(run, change)
            recorded = None if edited is None else run.activations[edited[0]]
        case AskAgain(activation=activation, note=note):
            recorded = run.activations.get(activation)
            why = f"there is no activation {activation!r}"
            why = why_not_again(run, recorded) if recorded else why
            if why or note is not None:
                _impossible(change, why or "an agent that is asked again gets no note; see `tell`")
        case TellAgent(agent=agent, once=once):
            recorded = None
            if agent not in run.agents or not once:
                _impossible(change, f"there is no agent {agent!r}" if once else "it is done once")
        case _:
            why = _OTHERWISE[change.kind]
            _impossible(change, f"it cannot be made in a team of plain callables: {why}")
    if recorded is not None and recorded.t > at:
        _impossible(change, f"{recorded.id} begins later than record {at}, where the run is free")


def why_not_again(run: RecordedRun, activation: RecordedActivation) -> str:
    """Why an agent cannot be asked again in place of its recorded answer; empty: it can."""
    if is_single(run, activation):
        return ""
    return (
        f"{activation.id} belongs to a turn in which {activation.agent} called others: its code "
        "runs again in any case"
    )


def _edited(run: RecordedRun, change: EditRecord) -> tuple[str, Any] | None:
    """The activation whose answer an edit changes, and the new answer; ``None``: it changes none.

    Raises:
        ReplayError: The change is about something else.
    """
    record = run.records[change.at] if change.at < len(run.records) else None
    by = getattr(record, "by", None) or getattr(record, "activation", None)
    activation, keys = run.activations.get(by or ""), {*change.edit}
    answer = answer_of(run, activation) if activation else None
    if activation is None or answer is None or not isinstance(record, Emit | End):
        _impossible(change, "the record is no answer of an agent, which alone can be changed")
    if isinstance(record, End):
        fates = [{"event": f.event, "fate": f.fate, "to": [*f.to]} for f in record.fates]
        same = {"error": record.error, "fates": fates}
        if all(change.edit[key] == same.get(key) for key in keys):
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


def _impossible(change: RunChange, why: str) -> NoReturn:
    raise ReplayError(f"{change.kind} at record {change.at}: {why}")


def _is_continuation(event: RecordedEvent, activation: RecordedActivation) -> bool:
    return event.type == NOTICE and event.to == (activation.agent,)


def _texts(payload: Any, *, keys: bool) -> Iterator[str]:
    """The keys of all objects in a payload, or its other texts."""
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


def _raised_again(text: str, function: Callable[..., object]) -> Exception | None:
    """The exception that a text describes, if its class is known and makes the same text."""
    kind, _, message = text.partition(": ")
    known = {**vars(builtins), **getattr(function, "__globals__", {})}.get(kind)
    if not (isinstance(known, type) and issubclass(known, Exception)):
        return None
    try:
        made = known(message) if message else known()
    except Exception:  # it is the user's, and may take anything
        return None
    return made if describe(made) == text and len(text) < MOST_IN_ERROR else None
