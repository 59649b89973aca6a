"""The exceptions raised by dig on purpose.

    DigError
    ├── RecordError       one JSON object is not a record
    ├── RuleError         a record breaks a rule of the graph
    ├── TraceError        a trace file cannot be read: path, line, reason
    │   └── DamageError   a line of a journal is damaged
    ├── ReplayError       a recorded run cannot be driven again, or continued
    │   ├── DivergenceError   it was driven again, and a record came out differently
    │   ├── CutOffError       it ends in the middle of what the monitor was doing
    │   └── UnresumableError  a record cannot be made again, so it cannot go on: record
    ├── DecisionError     a decision does not fit the activation that made it
    ├── RequestError      a host asked the monitor for something impossible now
    ├── PayloadError      a payload is not plain JSON
    ├── UndecidedError    two behaviours could not be compared in the time there was
    ├── ModelError        a language model gave no usable answer
    ├── StopRunError      an agent found out that the whole run cannot go on
    ├── BudgetExceeded    a request used up its budget, and no agent handed back an answer
    ├── JournalError      a run directory or its trace cannot be written
    ├── SessionError      the owner of a session on a server has to begin anew
    │   ├── FencedError         another owner is ahead
    │   ├── WrongSequenceError  a stream has another last message than expected
    │   └── ConsumerGoneError   a consumer has gone, or is silent
    ├── CallError         an agent that was called on another machine failed
    │   └── LostTurnError     its process ended while it waited for an answer
    ├── RawError          a session cannot understand a message from outside
    ├── RefusedError      the local server does not answer a request
    └── SettingsError     a setting, option or team makes no sense
        └── RealTimeError     an agent awaits something real in virtual time

Each message says what is wrong, where, and, if it can be told, what to do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from http import HTTPStatus
    from pathlib import Path


PART_ERRORS = (Exception, SystemExit)
"""What a part that was handed in may raise without ending the team; `sys.exit` ends no program."""


class DigError(Exception):
    """The base of all errors of this package."""


class RecordError(DigError):
    """One JSON object is not a record: a key is missing, or a value has the wrong type."""


class RuleError(DigError):
    """A record contradicts the records before; the graph is unchanged."""


class TraceError(DigError):
    """A trace file cannot be read, or breaks a rule.

    Attributes:
        path: The file.
        line: The line at fault, counted from 1; ``None`` if the file as a whole is.
        reason: The mistake in the line or the file.
    """

    def __init__(self, path: str | Path, line: int | None, reason: str) -> None:
        from pathlib import Path  # slow to import

        self.path = Path(path)
        self.line = line
        self.reason = reason
        place = f"{path}" if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {reason}")


class DamageError(TraceError):
    """A line of a journal differs from the written line; the lines before are whole."""


class ReplayError(DigError):
    """A recorded run cannot be driven again, or cannot be continued as requested."""


class DivergenceError(ReplayError):
    """A repeated run made another record than the recorded run.

    Attributes:
        record: The number `t` of the record.
        expected: The recorded line; ``None``: the recorded run has ended before.
        got: The line that came instead, or the reason for which none came.
    """

    def __init__(self, record: int, expected: str | None, got: str) -> None:
        self.record = record
        self.expected = expected
        self.got = got
        pairs = enumerate(zip(expected or "", got, strict=False))
        at = max(0, next((i for i, (a, b) in pairs if a != b), 0) - _BEFORE)
        recorded = _from(at, expected) if expected else "nothing more"
        super().__init__(
            f"record {record} differs\n  expected: {recorded}\n  got: {_from(at, got)}"
        )


_BEFORE, _SHOWN = 300, 600
"""Characters of a line that are shown before the first that differs, and altogether."""


def _from(at: int, line: str) -> str:
    """The characters of a line for a message, from a position on."""
    shown = line[at : at + _SHOWN]
    return f"{'…' if at else ''}{shown}{'…' if at + _SHOWN < len(line) else ''}"


class CutOffError(ReplayError):
    """A recorded run ends in the middle of a call of the monitor."""


class UnresumableError(ReplayError):
    """A run cannot go on from its records, since they cannot be made again.

    Attributes:
        record: The number `t` of the record that came out differently, or not at all.
    """

    def __init__(self, record: int, reason: str) -> None:
        """Make an error; `reason` is what the driver of the records says."""
        self.record = record
        super().__init__(f"the run cannot go on: record {record} cannot be made again: {reason}")


class DecisionError(DigError):
    """A decision does not fit the activation: an unknown input, a fate without a meaning, ..."""


class RequestError(DigError):
    """A host asked the monitor for something impossible now; the monitor is unchanged."""


class PayloadError(DigError):
    """A payload holds a non-JSON value; the message names the place."""


class UndecidedError(DigError):
    """The comparison of two behaviours reached the time limit without a verdict."""


class ModelError(DigError):
    """A language model gave no usable answer; another try may."""


class StopRunError(DigError):
    """An agent found out that the whole run cannot go on: a wrong key, a budget used up, ...

    Attributes:
        is_limit: Whether a limit that was set has been reached, and nothing is wrong.
    """

    def __init__(self, message: str, *, is_limit: bool = False) -> None:
        """Make an error; the message gives the reason."""
        super().__init__(message)
        self.is_limit = is_limit


class BudgetExceeded(DigError):
    """The budget of a request is used up, and the entry agent handed back no answer.

    Attributes:
        limit: The limit that was reached: `turns`, `tokens`, `dollars` or `seconds`.
        spent: The spending by then.
        most: The limit.
        partial: The last outputs to the entry agent, oldest first, as plain JSON.
        request: The event that posed the request; ``None``: it is not known.
    """

    def __init__(
        self, message: str, *, limit: str = "", spent: float = 0, most: float = 0,
        partial: Sequence[Any] = (), request: str | None = None,
    ) -> None:  # fmt: skip
        """Make an error; the message names the reached limit and the entry agent."""
        super().__init__(message)
        self.limit, self.spent, self.most = limit, spent, most
        self.partial, self.request = [*partial], request


class BudgetStop(BaseException):  # so that no `except Exception` of an agent holds it up
    """Unwinds the calls of a team at a limit of the budget, up to the call from outside."""


class JournalError(DigError):
    """A run directory or a trace cannot be written."""


class SessionError(DigError):
    """The owner of a session on a server has to begin anew."""


class FencedError(SessionError):
    """Another owner of the session is ahead, and only that one may change anything."""


class WrongSequenceError(SessionError):
    """A stream, or a subject, has another last message than the guard expects."""


class ConsumerGoneError(SessionError):
    """A consumer has gone, or is silent, and has to be made anew."""


class CallError(DigError):
    """An agent that was called on another machine failed; the message has the reason."""


class LostTurnError(CallError):
    """A process ended while a function of its waited for an answer."""


class RawError(DigError):
    """A session cannot understand a message from outside, which becomes an incident."""


class RefusedError(DigError):
    """The local server does not answer a request.

    Attributes:
        status: The HTTP status of its response.
    """

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        self.status = status
        super().__init__(reason)


class SettingsError(DigError):
    """A setting, an option or a team makes no sense."""


class RealTimeError(SettingsError):
    """An agent of a run in virtual time awaits something real; the message names the line."""


@contextmanager
def file_errors(path: Path, action: str) -> Iterator[None]:
    """Raise an OSError of the block as a SettingsError: `PATH cannot be ACTION: reason`."""
    try:
        yield
    except OSError as error:
        raise SettingsError(f"{path} cannot be {action}: {error.strerror or error}") from None


@contextmanager
def trace_errors(path: Path, action: str = "read") -> Iterator[None]:
    """Raise an OSError of the block as a TraceError: `PATH: cannot be ACTION: reason`."""
    try:
        yield
    except OSError as error:
        raise TraceError(path, None, f"cannot be {action}: {error.strerror or error}") from None
