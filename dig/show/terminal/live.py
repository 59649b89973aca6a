"""The live view in the terminal, while a team works and at the end.

Two threads meet here. The run's loop hands over records and must not be slowed; rich's refresh
thread paints eight times a second, also when no record comes, because clocks tick on. A painter
that read the changing state would sooner or later see it half changed. So a record and a shot of
the state each hold one lock, for microseconds, and laying out and writing, which take a thousand
times as long, work on the shot, outside of it.
"""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from threading import Lock
from types import TracebackType
from typing import TextIO

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from dig._util.text import one_line
from dig.graph.records import Record
from dig.graph.words import seconds
from dig.monitor.sinks import Eviction
from dig.show import summary_text

from .frame import LogLine
from .picture import STYLES, ascii_only, draw
from .terminal_state import TerminalState

FRAMES_PER_S = 8
MOST_ASIDE = 1_000_000
MOST_LINE = 700
"""Characters of a line that no record tells: a server's message and what is around it."""


class LiveView:
    """Shows a run, as a context manager and a sink for every record from the first on.

    On a terminal it paints a picture on the alternate screen, which can be resized without
    leaving shreds, and leaves the last one behind in the scrollback; what others print meanwhile
    is kept until then. Anywhere else, and on a dumb terminal, it prints a line when something
    worth telling happens.

    Whatever goes wrong in it stops the view, never the run.

    >>> with LiveView(Console(), title="demo", agents=team) as view:
    ...     anyio.run(Bus(team, sink=view).run, "hello")
    """

    def __init__(
        self, console: Console, *, title: str = "", agents: Iterable[str] = (), speed: float = 1.0
    ) -> None:
        """Prepare; nothing is shown before the block is entered.

        Args:
            console: Where to show it.
            title: What runs.
            agents: Who is expected, in order; others may come.
            speed: How many times faster than real time the run's clock goes, so that the clocks
                shown tick on between records.
        """
        self._console = console
        self._title = title
        self._speed = speed
        self._scene = TerminalState(agents)
        self._lock = Lock()
        self._latest_us = 0
        self._latest_at = time.monotonic()
        self._is_over = False
        self._fault = ""
        # FORCE_COLOR makes rich take any file for a terminal, the log of a CI job for instance.
        self._paints = console.is_terminal and console.is_interactive and console.file.isatty()
        self._asides: list[_Aside] = []
        self._stack = ExitStack()

    def __enter__(self) -> LiveView:
        """Begin to show."""
        if not self._paints:
            return self
        live = Live(
            console=self._console, screen=True, get_renderable=self._paint,
            refresh_per_second=FRAMES_PER_S, redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        # Output of others would tear the picture, so it is printed at the end.
        for stream, redirect in ((sys.stdout, redirect_stdout), (sys.stderr, redirect_stderr)):
            if stream.isatty():  # what goes to a file does not disturb
                aside = _Aside(stream)
                self._asides.append(aside)
                self._stack.enter_context(redirect(aside))
        self._stack.enter_context(live)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Print the last picture, and the collected output."""
        try:
            self._stack.close()
            for aside in self._asides:
                aside.hand_on()
        except OSError as problem:  # the terminal has gone
            self._fault = one_line(repr(problem))
        if self._paints:
            self._print(self._paint())
        if self._fault:
            self._print(Text(f"the live view failed, the run did not: {self._fault}"))

    def __call__(self, record: Record) -> None:
        """Take a record into account."""
        if self._fault:
            return
        with self._guard():
            with self._lock:
                news = self._scene.follow(record)
                self._latest_us, self._latest_at = record.us, time.monotonic()
                self._is_over = record.kind == "finish"
            if not self._paints:
                for item in news:
                    self._print(_line(item))

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Keep what fails in a block: a picture must never be able to stop a team."""
        try:
            yield
        except Exception as error:
            self._fault = one_line(repr(error))

    def tell(self, line: str) -> None:
        """Show a line without a record, such as a failed request to a model."""
        if self._fault:
            return
        with self._guard():
            with self._lock:
                news = LogLine(self._now_us(), "model", one_line(line, MOST_LINE), "warning")
                self._scene.add_news(news)
            if not self._paints:
                self._print(_line(news))

    def _now_us(self) -> int:
        # Clocks tick on between records, and stop with the run.
        passed_s = 0.0 if self._is_over else time.monotonic() - self._latest_at
        return self._latest_us + int(passed_s * self._speed * 1e6)

    def evicted(self, eviction: Eviction) -> None:
        """Repeat an eviction of the session."""
        if not self._fault:
            with self._guard(), self._lock:
                self._scene.evicted(eviction)

    def _paint(self) -> Group:
        """The picture of now."""
        try:
            with self._lock:
                shot = self._scene.frame(self._now_us())
            width, height = self._console.size
            # The last column stays free: some terminals break a line that reaches it.
            return Group(*map(self._fit, draw(self._title, shot, width - 1, height)))
        except Exception as error:
            self._fault = one_line(repr(error))
            return Group(Text(f"the live view failed: {self._fault}"))

    def _print(self, content: Text | Group) -> None:
        """Print as long as there is a terminal."""
        try:
            content = self._fit(content) if isinstance(content, Text) else content
            self._console.print(content, soft_wrap=isinstance(content, Text))
        except (OSError, ValueError, SystemExit) as error:  # SystemExit: rich, on a broken pipe
            self._fault = one_line(repr(error))

    def _fit(self, line: Text) -> Text:
        encoding = self._console.encoding
        return line if encoding.startswith("utf") else ascii_only(line, encoding)


class _Aside(io.StringIO):
    """Collects output during the live picture, and writes it at the end."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__()
        self.rich_proxied_file = stream  # the name by which rich finds the true stream
        self._is_full = False

    def write(self, text: str) -> int:
        self._is_full = self._is_full or self.tell() + len(text) > MOST_ASIDE
        return len(text) if self._is_full else super().write(text)

    def hand_on(self) -> None:
        """Write the collected output to the true stream."""
        self.rich_proxied_file.write(self.getvalue())
        if self._is_full:
            self.rich_proxied_file.write("\n(more was printed meanwhile than is kept)\n")


def print_summary(console: Console, rows: Sequence[summary_text.Row]) -> None:
    """Print the end of a run: labels on the left, wrapped values on the right."""
    indent = max((len(label) for label, _ in rows), default=0) + 2
    for label, value in rows:
        text = Text(value)
        lines = text.wrap(console, max(8, console.width - indent), overflow="fold")
        for number, line in enumerate(lines):
            head = label if number == 0 else ""
            line.rstrip()
            console.print(Text.assemble((head.ljust(indent), "bold"), line), soft_wrap=True)


def _line(item: LogLine) -> Text:
    text = Text(f"{seconds(item.us):>9}  ")
    text.append(f"{item.tag:<8}", STYLES[item.style])
    return text.append(f"  {item.text}")
