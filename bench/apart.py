"""Processes of their own: each has a heap and a garbage collector that nothing else disturbs.

They are asked in turns, one at a time, so that a busy machine is unfair to all of them alike.
"""

from __future__ import annotations

import gc
import os
import resource
import sys
from collections.abc import Callable, Sequence
from multiprocessing import connection, get_context
from time import thread_time_ns
from typing import Any, TypeVar

T = TypeVar("T")

Serve = Callable[[Any], Callable[[Any], Any]]
"""Makes ready for a setting, and returns what answers questions from then on."""


class Apart:
    """A process that makes itself ready and then answers questions.

    Attributes:
        pipe: Has something to read when it is ready, or has answered.
    """

    def __init__(self, serve: Serve, setting: Any) -> None:
        context = get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process = context.Process(target=_run, args=(theirs, serve, setting), daemon=True)
        self._process.start()
        theirs.close()

    def wait(self) -> Any:
        """Wait until it is ready, or for its answer.

        Raises:
            EOFError: It has died; what it died of is on standard error.
        """
        return self.pipe.recv()

    def ask(self, question: Any = None) -> Any:
        """Ask it, and wait for the answer."""
        self.pipe.send(question)
        return self.wait()

    def close(self) -> None:
        """End it."""
        self.pipe.close()
        self._process.join()


def made_ready(serve: Serve, settings: Sequence[T], at_once: int = 2) -> dict[T, Apart]:
    """A process for each setting, all of them ready; so many make themselves ready at a time."""
    processes: dict[T, Apart] = {}
    waiting: dict[Any, Apart] = {}
    for setting in settings:
        if len(waiting) == at_once:
            for pipe in connection.wait(list(waiting)):
                waiting.pop(pipe).wait()
        processes[setting] = Apart(serve, setting)
        waiting[processes[setting].pipe] = processes[setting]
    for process in waiting.values():
        process.wait()
    return processes


def _run(pipe: Any, serve: Serve, setting: Any) -> None:
    answer = serve(setting)
    pipe.send(None)
    while True:
        try:
            question = pipe.recv()
        except EOFError:
            return
        pipe.send(answer(question))


class Pauses:
    """Counts how long the garbage collector stops the process, by generation."""

    def __init__(self) -> None:
        self.ns: tuple[list[int], list[int], list[int]] = ([], [], [])
        self._start = 0
        gc.callbacks.append(self._heard)

    def _heard(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._start = thread_time_ns()
        else:
            self.ns[info["generation"]].append(thread_time_ns() - self._start)

    def taken(self) -> tuple[list[int], list[int], list[int]]:
        """The pauses since the last time, in nanoseconds; the count begins anew."""
        taken, self.ns = self.ns, ([], [], [])
        return taken


def resident() -> int:
    """How many bytes of memory this process holds now (at most until now, without /proc)."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
