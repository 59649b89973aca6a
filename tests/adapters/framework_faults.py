"""What an adapter calls of a session or a turn, or a user has handed in, is broken for good."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dig.adapters import Session, Turn
from dig.adapters.base import Guard, patching
from dig.adapters.base.held_events import HoldWaiter
from dig.detectors import standard, standard_healers
from dig.runtime.setup import Setup
from tests.helpers import Recorder

from .framework_watch import Broken, Watched

PARTS = ("detectors", "healers", "gates", "sink", "on_finding")
"""What a user may hand in, and what may break."""

KINDS: dict[str, Any] = {"session": Session, "turn": Turn, "guard": Guard}
INSIDE: dict[str, tuple[Any, str]] = {
    f"session.{name}": (HoldWaiter, "wait_until_released")
    for name in ("wait_until_released", "block_until_released")
}
"""What breaks instead of a call that contains all that can fail in it."""

SHARED = Path(patching.__file__)  # what adapters call by way of the base


def folder(adapter: Any) -> Path:
    return Path(str(adapter.__file__)).parent


@contextmanager
def broken(called: str, adapter: Any, at: int) -> Iterator[None]:
    """While a block lasts, what an adapter calls (`turn.end`) raises from its `at`-th call on."""
    kind, _, method = called.partition(".")
    owner, name = INSIDE.get(called) or (KINDS[kind], method)
    whole, inside = getattr(owner, name), str(folder(adapter))
    count = 0

    def breaks(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        # The adapter's own calls break, not what the base does for itself.
        caller = sys._getframe(1).f_code.co_filename
        is_ours = called in INSIDE or caller.startswith((inside, str(SHARED)))
        count += is_ours
        if is_ours and count >= at:
            raise RuntimeError(f"planted in {called}")
        return whole(*args, **kwargs)

    with patch.object(owner, name, breaks):
        yield


def break_part(watched: Watched, part: str) -> None:
    """Have one of `PARTS` fail whenever it is asked, or an option of the adapter; nothing heals."""
    watched.setup = Setup(detectors=standard)
    match part:
        case "detectors":
            watched.setup = Setup(detectors=lambda: [Broken(), *standard()])
        case "healers":
            healers = dict.fromkeys(standard_healers(), Broken())
            watched.setup = Setup(detectors=standard, healers=lambda: healers)
        case "gates":
            watched.setup = Setup(detectors=standard, gates=[Broken()])
        case "sink":
            watched.more[part] = Recorder(fail_at=7)
        case "on_finding":
            watched.more[part] = Broken()
        case _:
            watched.options[part] = Broken()
