"""What no input may bring about: that something is carried out, fetched or written elsewhere."""

from __future__ import annotations

import codecs
import gc
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

FORBIDDEN = (
    "compile", "exec", "import", "marshal.loads", "os.exec", "os.fork", "os.posix_spawn",
    "os.system", "pickle.find_class", "shutil.", "socket.connect", "socket.getaddrinfo",
    "subprocess.Popen", "urllib.Request", "webbrowser.open", "os.remove", "os.rename", "os.chmod",
)  # fmt: skip
MOST_S = 1.0  # of computing, which a busy machine does not make longer
PATIENCE_S = 20.0  # for an input that waits, and computes nothing

for name in ("utf-8-sig", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
    codecs.lookup(name)  # Python imports a codec when it is first used, whatever the input


class Carried(Exception):
    """An input had something done that no input may have done."""


class TooSlow(Exception):
    """An input took too long."""


class Watchman:
    """Looks at what the interpreter is asked to do while a block lasts.

    An audit hook cannot be taken away, so there is one, and it looks only while it is told to.
    """

    def __init__(self) -> None:
        self._folder: str | None = None
        self._seen: list[str] = []
        sys.addaudithook(self._hear)

    @contextmanager
    def watching(
        self, folder: Path, most_s: float = MOST_S, patience_s: float = PATIENCE_S
    ) -> Iterator[None]:
        """Watch a block; it may write below a folder only, and compute for a second.

        Raises:
            Carried: Something was done in it that must not be.
            TooSlow: It lasted too long; it is left in the middle.
        """
        before = signal.signal(signal.SIGALRM, _late), signal.signal(signal.SIGPROF, _late)
        left, _ = signal.setitimer(signal.ITIMER_REAL, patience_s)  # a test's own limit may run
        signal.setitimer(signal.ITIMER_PROF, most_s)
        gc.disable()  # what others have left to be cleaned up is none of the input's doing
        self._folder, self._seen = str(folder), []
        try:
            yield
        finally:
            self._folder = None
            gc.enable()
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before[0])
            signal.signal(signal.SIGPROF, before[1])
            signal.setitimer(signal.ITIMER_REAL, left)
        if self._seen:
            raise Carried("; ".join(self._seen))

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self._folder is None:
            return
        if event == "open":
            path, mode, _ = arguments
            if mode and set(mode) & set("wax+") and not str(path).startswith(self._folder):
                self._seen.append(f"writes {path!r}")
        elif event.startswith(FORBIDDEN):
            self._seen.append(f"{event} {arguments!r:.200}")


def _late(number: int, frame: FrameType | None) -> None:
    raise TooSlow(f"it computes for more than {MOST_S} s, or waits for more than {PATIENCE_S} s")
