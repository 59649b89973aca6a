"""The routes of the server: the list of runs, the page of a run, and the events of a run.

/TOKEN/                   the list, or, if one run is served, a way to it
/TOKEN/runs               the list as JSON
/TOKEN/run/NAME/          the page of a run
/TOKEN/run/NAME/events    its head and rows, as server-sent events
/TOKEN/run/NAME/with/NAME the page of two runs, one below the other
/TOKEN/NAME.js, .css      the files of the list

And, by POST alone, what a person writes (see `acts`):

/TOKEN/run/NAME/note         a note on a run
/TOKEN/run/NAME/false-alarm  a rule that silences a finding
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dig._util.text import one_line, safe_text
from dig.errors import RefusedError, TraceError
from dig.show.follower import Standstill
from dig.show.page.about import clock_speed, page_head
from dig.show.page.html_page import live_page, policy
from dig.show.page.writing import comparison
from dig.show.runs.summary import RunSummary, figures_text, grade, read_beside
from dig.traces.journal.journal import SIDE

from .acts import Acts
from .following import TraceFollower
from .shelf import Shelf

HTML = "text/html; charset=utf-8"
JSON = "application/json; charset=utf-8"
_LIST = {
    b"": ("runs.html", HTML),
    b"runs.js": ("runs.js", "text/javascript; charset=utf-8"),
    b"dom.js": ("dom.js", "text/javascript; charset=utf-8"),
    b"runs.css": ("runs.css", "text/css; charset=utf-8"),
}
_LIST_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


@dataclass(frozen=True)
class PageResponse:
    """A response.

    Attributes:
        type: The media type of its content.
        content: Bytes, or a stream of events.
        policy: The content security policy of a page.
        location: The target of a redirection.
    """

    type: str
    content: bytes | Iterable[bytes] = b""
    policy: str = "default-src 'none'"
    status: HTTPStatus = HTTPStatus.OK
    location: str | None = None


@dataclass
class Routes:
    """Answers admitted requests.

    Attributes:
        shelf: The runs.
        root: The address below which all pages are.
        wait: Waits so many seconds, and says whether the server closes.
        acts: Carries out what a person writes.
    """

    shelf: Shelf
    root: str
    wait: Callable[[float], bool]
    acts: Acts

    def start(self) -> str:
        """The first page for a visitor, relative to the root."""
        return address(self.shelf.path.name) if self.shelf.is_one else ""

    def answer(self, parts: tuple[bytes, ...], last_event: str | None) -> PageResponse:
        """Answer a request.

        Args:
            parts: The parts of the path, as the guard returns them.
            last_event: The `Last-Event-ID` of the request.

        Raises:
            RefusedError: There is no such page.
        """
        match parts:
            case ():
                return _redirection(self.root + self.start())
            case (b"",) if self.shelf.is_one:
                return _redirection(self.start())
            case (b"runs",):
                return PageResponse(JSON, self._list())
            case (name,) if name in _LIST:
                file, kind = _LIST[name]
                return PageResponse(kind, _static(file), _LIST_POLICY)
            case (b"run", name, b""):
                title = f"{one_line(self._run(name).name, 120)} - dig-monitor"
                # A relative address keeps the secret of the root out of the page.
                back = "" if self.shelf.is_one else "../../"
                page = live_page("events", title, back).encode()
                return PageResponse(HTML, page, policy(live=True))
            case (b"run", name, b"with", other):
                return PageResponse(HTML, self._comparison(name, other), policy())
            case (b"run", name, b"events"):
                events = stream(self._run(name), _number(last_event), self.wait)
                return PageResponse(EVENTS, events)
            case _:
                raise RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")

    def act(self, parts: tuple[bytes, ...], body: bytes) -> PageResponse:
        """Carry out what a person writes, and answer.

        Args:
            parts: The parts of the path, as the guard returns them.
            body: The body of the request.

        Raises:
            RefusedError: There is no such act, or it is not to be done.
        """
        match parts:
            case (b"run", name, act):
                done = self.acts.carry_out(self._run(name), act, body)
                return PageResponse(JSON, json.dumps(done).encode())
            case _:
                raise RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _run(self, name: bytes) -> Path:
        path = self.shelf.find(name)
        if path is None:
            raise RefusedError(HTTPStatus.NOT_FOUND, "there is no such run")
        return path

    def _comparison(self, name: bytes, other: bytes) -> bytes:
        try:
            return comparison(self._run(name), self._run(other), "../../../")
        except TraceError as error:
            raise RefusedError(HTTPStatus.CONFLICT, one_line(error)) from None

    def _list(self) -> bytes:
        try:
            runs = self.shelf.summaries()
        except TraceError as error:
            raise RefusedError(HTTPStatus.NOT_FOUND, one_line(error)) from None
        rows = [_summary(run) for run in runs]
        return json.dumps({"folder": one_line(self.shelf.path), "runs": rows}).encode()


def _summary(run: RunSummary) -> dict[str, Any]:
    """A run for the list: the summary, and further columns."""
    return {
        **run.to_json(),
        "path": run.name,
        "address": address(run.name),
        "ending": run.ending,
        "figure": grade(run.score),
        "figures": figures_text(run.score),
    }


def _redirection(location: str) -> PageResponse:
    return PageResponse(HTML, status=HTTPStatus.FOUND, location=location)


def address(name: str) -> str:
    """The address of a run, relative to the root."""
    return f"run/{quote(name.encode(errors='surrogateescape'), safe='')}/"


def _number(text: str | None) -> int:
    """The record in a `Last-Event-ID`; -1: missing or invalid."""
    return int(text) if text and text.isascii() and text.isdecimal() and len(text) < 16 else -1


@cache
def _static(name: str) -> bytes:
    package = "dig.show.page" if name == "dom.js" else "dig.show.server"  # both pages use it
    return files(package).joinpath("page", name).read_bytes()


# --- server-sent events ---


EVENTS = "text/event-stream; charset=utf-8"

LOOK_S = 0.1
"""Seconds between two looks at the file."""

SETTLE = 10
HEARTBEAT = 100
"""Looks without news after which the run's end and (by a comment) the reader are checked."""

RETRY_MS = 500


def stream(path: Path, after: int, wait: Callable[[float], bool]) -> Iterator[bytes]:
    """The events of a run: the head, the rows in batches, and at last the end.

    The id of a batch is the number of its last record, which a browser that reconnects names as
    `Last-Event-ID`.

    Args:
        path: The trace file or run directory.
        after: The last record that the reader has; -1: none.
        wait: Waits so many seconds, and says whether the server closes.
    """
    follower = TraceFollower(path, after)
    yield f"retry: {RETRY_MS}\n\n".encode()
    yield _head(path, follower)
    quiet, is_last_look, is_closing = 0, False, False
    standstill: Standstill | None = None
    while True:
        for last, rows in follower.news():
            quiet = 0
            yield _event(rows, f"id: {last}\n")
        if standstill != follower.rows.follower.standstill:
            standstill = follower.rows.follower.standstill
            yield _clock(path, follower, standstill)
        if is_last_look or follower.state != "in progress":
            break
        if is_closing:
            return
        quiet += 1
        # A writer may write and end between two looks, so another look follows the check.
        is_last_look = quiet % SETTLE == 0 and follower.settle()
        if quiet % HEARTBEAT == 0:
            yield b":\n\n"
        is_closing = not is_last_look and wait(LOOK_S)
    yield _head(path, follower)
    yield _event(None, "event: end\n")


def _head(path: Path, follower: TraceFollower) -> bytes:
    head = page_head(path, follower.rows.follower, place=safe_text(path))
    return _event({**head, "state": follower.state, "problem": follower.problem}, "event: head\n")


def _clock(path: Path, follower: TraceFollower, standstill: Standstill | None) -> bytes:
    """The time and the speed of a run's clock, and the standstill of the team."""
    speed = clock_speed(read_beside(path, SIDE))
    clock = {
        "us": round(follower.rows.follower.graph.now + follower.age_s * speed * 1e6),
        "speed": speed,
        "standstill": standstill and standstill._asdict(),
    }
    return _event(clock, "event: clock\n")


def _event(data: Any, field: str) -> bytes:
    """An event with ASCII data on a single line, so no data can end the event."""
    return f"{field}data: {json.dumps(data, separators=(',', ':'))}\n\n".encode("ascii")
