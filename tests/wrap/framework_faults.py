"""A fault at every call that an adapter makes of a session or a turn."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dig.detectors import standard, standard_healers
from dig.runtime.host import Setup
from dig.runtime.wrap import Session, Turn, taps
from dig.runtime.wrap.holding import Holding
from tests.helpers import Recorder

from .framework_watch import Broken, Watched

PARTS = ["detectors", "healers", "gates", "sink", "on_finding"]
"""What a user may hand in, and what may break."""

KINDS: dict[str, Any] = {"session": Session, "turn": Turn}
GUARDS = {"session.step", "session.guard"}  # these contain what others raise; see tests of the base
INSIDE: dict[str, tuple[Any, str]] = {"session.released": (Holding, "released")}
"""What breaks instead of a call that contains all that can fail in it."""

SHARED = Path(taps.__file__)  # what adapters call by way of the base
NAMES = re.compile(r"\b_?(session|turn)s?(?:\[.*\])?$")


def call_sites(adapter: Any, **also: str) -> list[str]:
    """What the modules of an adapter call: `session.begin`, `turn.end`.

    Args:
        adapter: Its package.
        also: Further names of variables, each for `session` or `turn`.
    """
    found = set()
    for path in (*folder(adapter).glob("*.py"), SHARED):
        for part in ast.walk(ast.parse(path.read_text())):
            if isinstance(part, ast.Attribute):
                owner = ast.unparse(part.value)
                named = NAMES.search(owner)
                kind = named[1] if named else also.get(owner.rpartition(".")[2].lstrip("_"))
                if kind and callable(getattr(KINDS[kind], part.attr, None)):
                    found.add(f"{kind}.{part.attr}")
    return sorted(found - GUARDS)


def folder(adapter: Any) -> Path:
    return Path(str(adapter.__file__)).parent


@contextmanager
def broken(site: str, adapter: Any, at: int) -> Iterator[list[str]]:
    """While a block lasts, a call site of an adapter raises from its `at`-th call on.

    Yields:
        A list that gets longer with every fault.
    """
    kind, _, method = site.partition(".")
    owner, name = INSIDE.get(site) or (KINDS[kind], method)
    whole, inside = getattr(owner, name), str(folder(adapter))
    count, planted = 0, list[str]()

    def breaks(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        # The adapter's own calls break, not what the base does for itself.
        caller = sys._getframe(1).f_code.co_filename
        is_ours = site in INSIDE or caller.startswith((inside, str(SHARED)))
        count += is_ours
        if is_ours and count >= at:
            planted.append(site)
            raise RuntimeError(f"planted in {site}")
        return whole(*args, **kwargs)

    with patch.object(owner, name, breaks):
        yield planted


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
