"""The served runs, by names from a directory, never by requested paths."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from threading import Lock

from dig.errors import TraceError
from dig.show.runs.index import overview, run_paths
from dig.show.runs.summary import RunSummary
from dig.traces.journal.reader import Tail
from dig.traces.journal.segments import is_run

LEAST_AGE_S = 1.0
PATIENCE = 10
"""A list is made again when it is ten times as old as the time that making it took."""


class Shelf:
    """A run, or the runs of a directory.

    Attributes:
        path: The run, its trace, or the directory, which may come later.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        """Find the run or the directory.

        Args:
            path: A run directory, a trace file, or a directory of runs.
            clock: Seconds.

        Raises:
            TraceError: The directory cannot be read, or the file is no trace.
        """
        self.path = path.absolute()
        self._clock = clock
        self._lock = Lock()
        self._listed: list[RunSummary] = []
        self._until = float("-inf")
        self.paths()
        if self.is_one:  # the first line of what is no trace is refused
            next(Tail(self.path).read(is_growing=True), None)

    @property
    def is_one(self) -> bool:
        """Whether the shelf holds a single run."""
        return self.path.is_file() or is_run(self.path)

    def paths(self) -> dict[bytes, Path]:
        """The present runs, by name.

        Raises:
            TraceError: The directory cannot be read.
        """
        if not self.path.exists():
            return {}
        paths = [self.path] if self.is_one else run_paths(self.path)
        return {os.fsencode(path.name): path for path in paths}

    def find(self, name: bytes) -> Path | None:
        """The run of a name; ``None``: there is none."""
        try:
            return self.paths().get(name)
        except TraceError:
            return None

    def summaries(self) -> list[RunSummary]:
        """The summaries of all runs, possibly a moment old; a long list is made seldom.

        Raises:
            TraceError: The directory cannot be read.
        """
        # Threads of several visitors share a list, and only the first makes it.
        with self._lock:
            began = self._clock()
            if began >= self._until:
                self._listed = overview(self.path) if self.path.exists() else []
                took = self._clock() - began
                # In proportion to the cost, so that a huge directory is not read all the time.
                self._until = began + max(LEAST_AGE_S, PATIENCE * took)
            return self._listed
