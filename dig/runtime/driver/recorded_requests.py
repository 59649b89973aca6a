"""A recorded run, read request by request."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from dig.errors import ReplayError
from dig.graph.chain import BLOBS, HEADER
from dig.graph.records import EDITION, Emit, Record, Redirect, Run
from dig.monitor.messages import Output
from dig.monitor.monitor import KEEP
from dig.runtime.setup import Setup

from .deliveries import RecordedPolicies

UNNAMED = "unnamed_policies"
"""The key in the header of a fork of a plain trace, which may not name its delivery policies."""

DOWNGRADED, PREVENTED = "downgraded", "prevented"
"""The incidents about an intervention that was carried out only in part, or not at all, and about
a note that came before any finding."""

_BESIDE = ("version", "keep", UNNAMED)
"""Header keys that name no part; how much history is kept changes no record."""


class Recorded(NamedTuple):
    """A recorded line, and the record in the line.

    Attributes:
        text: The line, with its newline.
        record: The record.
        header: The description of the run, in the first line of a journal.
        is_lightened: Whether the line names a payload that lies beside the journal.
    """

    text: bytes
    record: Record
    header: Mapping[str, Any] | None = None
    is_lightened: bool = False

    @classmethod
    def of_row(cls, text: bytes, row: Mapping[str, Any], record: Record) -> Recorded:
        """A line of a trace.

        Args:
            text: The line.
            row: The JSON object in it.
            record: The record.
        """
        header = row.get(HEADER)
        return cls(text, record, header if isinstance(header, dict) else None, BLOBS in row)


class RecordedRequests:
    """A recorded run, read ahead as far as needed.

    Attributes:
        name: The name of the recording, for errors.
        header: The description of the run in its first line; ``None`` for a plain trace.
        behind: The record that was popped last.
        omitted: The numbers of records that are not to be made again.
    """

    def __init__(
        self,
        lines: Iterable[Recorded],
        name: str,
        *,
        again: Callable[[], Iterable[Record]] | None = None,
        omitted: Collection[int] = (),
    ) -> None:
        """Begin with the first line.

        Args:
            lines: The lines of the run, each read when it is needed.
            name: The name of the recording, for errors.
            again: Reads all records once more, which only delivery policies and redirects need;
                ``None``: the recording can be read only once.
            omitted: The numbers of records that are not to be made again.

        Raises:
            TraceError: The first line cannot be read.
        """
        self.name = name
        self.behind: Record | None = None
        self.omitted = omitted
        self._lines = iter(lines)
        self._again = again
        self._ahead: deque[Recorded] = deque()
        first = self.ahead()
        self._first = first and first.record
        self.header = first.header if first else None

    def extend(self, lines: Iterable[Recorded]) -> None:
        """Add lines recorded meanwhile; from then on no line is read twice."""
        self._lines, self._again = chain(self._lines, lines), None

    def ahead(self, count: int = 0) -> Recorded | None:
        """The line `count` lines ahead; ``None`` after the end."""
        while len(self._ahead) <= count:
            line = next(self._lines, None)
            if line is None:
                return None
            self._ahead.append(line)
        return self._ahead[count]

    def pop(self) -> Recorded | None:
        """Take the next line."""
        recorded = self.ahead()
        if recorded is not None:
            self._ahead.popleft()
            self.behind = recorded.record
        return recorded

    def later(self) -> Iterator[Record]:
        """All remaining records, in order."""
        while (recorded := self.pop()) is not None:
            yield recorded.record

    @cached_property
    def redirected(self) -> dict[str, Any]:
        """The payloads of all redirected events, by id.

        By then the monitor may have dropped a payload, since all recipients have used it, and only
        the host still knew it; a `redirect` itself does not contain it.
        """
        again = self._again or tuple
        events = {record.event for record in again() if isinstance(record, Redirect)}
        return {
            record.event: record.payload
            for record in again()
            if isinstance(record, Emit) and record.event in events
        }

    @property
    def run(self) -> Run:
        """The first record.

        Raises:
            ReplayError: It is another one.
        """
        if not isinstance(self._first, Run):
            raise ReplayError(f"{self.name}: the first record is not of kind `run`")
        return self._first

    @property
    def parts(self) -> dict[str, Any]:
        """The parts of the run, by the header; empty: unknown."""
        return _parts(self.header or {})

    @cached_property
    def policies(self) -> RecordedPolicies:
        """The acts of delivery policies in the run.

        Raises:
            ReplayError: The recording can be read only once.
        """
        # To know whether an event was kept takes the records after it, so they are read apart.
        if self._again is None:
            raise ReplayError(
                f"{self.name}: record {self._ahead[0].record.t} is about an event with a delivery "
                "policy, whose later acts cannot be read ahead here"
            )
        return RecordedPolicies(self._again(), are_named=self._are_policies_named)

    @property
    def _are_policies_named(self) -> bool:
        return self.header is not None and self.header.get(UNNAMED) is not True

    def fit(self, setup: Setup) -> Setup:
        """Copy name, task, seed, thresholds and so on from the first record to a setup.

        Args:
            setup: The parts that the run was made with.

        Raises:
            ReplayError: The run was made with other parts.
        """
        run, ours = self.run, _parts(setup.header())
        if self.parts and self.parts != ours:
            raise ReplayError(f"the run was made with {self.parts}, not with {ours}")
        keep = (self.header or {}).get("keep", KEEP) if self.parts else setup.keep
        return replace(
            setup, run=run.run, task=run.task, seed=run.seed, session=run.session,
            memory=run.memory, limits=run.limits, usual=run.usual, keep=keep,
        )  # fmt: skip

    def output(self, emit: Emit) -> Output:
        """An event for the monitor, with the recorded acts of the delivery policy."""
        # A journal names all policies, and then an event without one costs no second reading.
        is_free = self._are_policies_named and emit.policy is None
        policy = None if is_free else self.policies.of(emit, self.omitted)
        return Output(emit.payload, emit.to, emit.type, emit.final, policy, emit.traceparent)

    def is_act_of_policy(self, redirect: Redirect) -> bool:
        """Whether a delivery policy has made a redirect, and not a host."""
        return self._again is not None and redirect.t in self.policies.acts


def _parts(header: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in header.items() if key not in _BESIDE}


def check_edition(run: Run) -> None:
    """Refuse a run of another edition of the patterns: today's findings would be others.

    Raises:
        ReplayError: The first record names another edition.
    """
    if run.patterns != EDITION:
        raise ReplayError(
            f"the findings of the run are of edition {run.patterns} of the patterns, and this "
            f"version raises those of edition {EDITION}: it can be read and checked, but can "
            "neither be driven again nor go on"
        )
