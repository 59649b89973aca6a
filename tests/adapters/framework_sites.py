"""Each place in an adapter's code where it calls a session, a turn or the monitor; a fault there.

The places are read from the code. Which of them a play comes through is seen by standing in place
of what they call, and looking where each call is from.
"""

from __future__ import annotations

import ast
import asyncio
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from inspect import iscoroutinefunction
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import anyio

from dig import InteractionGraph, Monitor
from dig.adapters import Session, Turn
from dig.adapters.base import AdapterState, Guard, guard, patching, plan
from dig.graph.history import History

from . import framework_faults
from .framework_faults import folder

KINDS: dict[str, Any] = {
    "session": Session, "turn": Turn, "monitor": Monitor, "graph": InteractionGraph,
    "history": History, "guard": Guard,
}  # fmt: skip
OWNERS = re.compile(
    r"\b_?(session|turn)s?(?:\(\)|\[.*\])?$|\b(monitor)$|\bmonitor\.(graph)$|\b(history)$|\b(guard)$"
)
OURS = (__file__, framework_faults.__file__)
LOOPS = tuple(str(Path(str(module.__file__)).parent) for module in (asyncio, anyio))
STEPS = {"step": AdapterState, "guard.run": Guard, "guard.call": Guard}
"""These contain whatever is raised in them, so it is what they call that raises."""
CONTAIN = {name.rpartition(".")[2] for name in STEPS}


@dataclass(frozen=True, order=True)
class Site:
    """One place: `run.py:93 turn.emit`.

    Attributes:
        path: The file.
        first: The line on which the call begins, or the one that is handed the method.
        last: The line on which that ends.
        called: What is called; of `STEPS` the name alone.
    """

    path: str
    first: int
    last: int
    called: str

    def __str__(self) -> str:
        return f"{Path(self.path).name}:{self.first} {self.called}"

    @property
    def lines(self) -> range:
        return range(self.first, self.last + 1)

    @property
    def name(self) -> str:
        """What is called, without whose it is."""
        return self.called.rpartition(".")[2].lstrip("_")


@dataclass
class Passes:
    """What came through an adapter while a block lasted.

    Attributes:
        site: Where a fault is planted, if one is.
        at: The pass of it that fails, from 1.
        after: Whether what is called has done its work before.
        sites: All passes of any site, in order.
        unread: Calls from the adapter's code that are no site: reading has missed them.
        planted: How many faults were raised.
    """

    site: Site | None = None
    at: int = 1
    after: bool = False
    sites: list[Site] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)
    planted: int = 0

    def count(self, site: Site | None) -> bool:
        """One more pass; says whether it fails."""
        if site is None:
            return False
        self.sites.append(site)
        fails = site == self.site and self.sites.count(site) == self.at
        self.planted += fails
        return fails

    def fail(self) -> Any:
        raise RuntimeError(f"planted in {self.site}")


class Sites:
    """The sites of one adapter, with those of `patching.py` and `plan.py` if it uses these.

    Args:
        adapter: Its package.
        also: Further names of variables, each for one of `KINDS`.

    Attributes:
        all: The sites, in order.
        called: What of sessions and turns is called there: `turn.end`.
    """

    def __init__(self, adapter: Any, **also: str) -> None:
        self._also = also
        self._paths = {str(path) for path in folder(adapter).glob("*.py")}
        if any("AdapterState" in Path(path).read_text() for path in self._paths):
            self._paths.add(str(patching.__file__))
        if any("NoteDelivery" in Path(path).read_text() for path in self._paths):
            self._paths.add(str(plan.__file__))
        self.all = sorted({site for path in self._paths for site in self._read(path)})
        every = {site.called for site in self.all}
        self.called = sorted(
            one for one in every - STEPS.keys() if one.startswith(("session.", "turn.", "guard."))
        )
        self._by_name: dict[tuple[str, str], list[Site]] = defaultdict(list)
        for site in self.all:
            self._by_name[site.path, site.name].append(site)
        self._methods = self._called() | {
            (kind, name.rpartition(".")[2]) for name, kind in STEPS.items()
        }

    @contextmanager
    def passing(
        self, site: Site | None = None, at: int = 1, after: bool = False
    ) -> Iterator[Passes]:
        """While a block lasts, see what comes through; one pass of a site fails, if it is given."""
        passes = Passes(site, at, after)
        with ExitStack() as stack:
            for kind, name in self._methods:
                if site is not None and name.lstrip("_") != site.name:
                    continue  # nothing to be seen there
                stand_in = self._stand_in(kind, name, passes)
                stack.enter_context(patch.object(kind, name, stand_in))
            yield passes

    # --- reading ---

    def _read(self, path: str) -> Iterator[Site]:
        parent: dict[ast.AST, ast.AST] = {}
        for part in ast.walk(ast.parse(Path(path).read_text())):
            parent.update(dict.fromkeys(ast.iter_child_nodes(part), part))
            if isinstance(part, ast.Attribute) and (called := self._name(part)):
                if called in STEPS and getattr(parent[part], "func", None) is not part:
                    continue  # it is only given another name
                place: ast.AST = part
                while not isinstance(place, ast.Call | ast.stmt):
                    place = parent[place]
                yield Site(path, place.lineno, place.end_lineno or place.lineno, called)

    def _name(self, part: ast.Attribute) -> str | None:
        if part.attr.lstrip("_") in STEPS:
            return part.attr.lstrip("_")
        owner = ast.unparse(part.value)
        named = OWNERS.search(owner)
        last = owner.partition("(")[0].rpartition(".")[2].lstrip("_")
        kind = next(filter(None, named.groups())) if named else self._also.get(last)
        is_method = kind and callable(getattr(KINDS[kind], part.attr, None))
        return f"{kind}.{part.attr}" if is_method else None

    def _called(self) -> set[tuple[Any, str]]:
        """What sites call, and what else there is of sessions and turns: it may go unread."""
        pairs = [site.called.split(".") for site in self.all if "." in site.called]
        of_any = {(KINDS[kind], name) for kind, name in pairs}
        return of_any | {
            (kind, name)
            for kind in (Session, Turn)
            for name in dir(kind)
            if not name.startswith("_") and callable(getattr(kind, name))
        }

    # --- standing in place ---

    def _stand_in(self, kind: Any, name: str, passes: Passes) -> Any:
        whole: Callable[..., Any] = getattr(kind, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            if not passes.count(self._site(name, passes)):
                return whole(*args, **kwargs)
            if passes.after:
                whole(*args, **kwargs)
            return passes.fail()

        async def wait(*args: Any, **kwargs: Any) -> Any:
            if not passes.count(self._site(name, passes)):
                return await whole(*args, **kwargs)
            if passes.after:
                await whole(*args, **kwargs)
            return passes.fail()

        def contain(itself: Any, do: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
            def broken(*given: Any, **named: Any) -> Any:
                if passes.after:
                    do(*given, **named)
                return passes.fail()

            fails = passes.count(self._site(name, passes))
            return whole(itself, broken if fails else do, *args, **kwargs)

        async def wait_in_vain(session: Session, *events: str) -> None:
            async def broken(event: str) -> None:
                del session.holds.wait_until_released
                if passes.after:
                    await session.holds.wait_until_released(event)
                passes.fail()

            if events and passes.count(self._site(name, passes)):
                session.holds.wait_until_released = broken  # type: ignore[method-assign]
            await whole(session, *events)

        def wait_in_vain_now(session: Session, event: str) -> None:
            async def broken(event: str) -> None:
                if passes.after:
                    await type(holds).wait_until_released(holds, event)
                passes.fail()

            holds = session.holds
            if passes.count(self._site(name, passes)):
                holds.wait_until_released = broken  # type: ignore[method-assign]
            try:
                whole(session, event)
            finally:
                vars(holds).pop("wait_until_released", None)

        if kind in STEPS.values() and name in CONTAIN:
            return contain
        if name == "wait_until_released":
            return wait_in_vain
        if name == "block_until_released":
            return wait_in_vain_now
        return wait if iscoroutinefunction(whole) else call

    def _site(self, name: str, passes: Passes) -> Site | None:
        """Where a call is from: a site of the adapter, by way of steps at most."""
        frame: FrameType | None = sys._getframe(2)
        nearest: FrameType | None = None
        while frame is not None:
            path = frame.f_code.co_filename
            if path in self._paths:
                here = [
                    one
                    for one in self._by_name[path, name.lstrip("_")]
                    if frame.f_lineno in one.lines
                ]
                if here:
                    return min(here, key=lambda one: len(one.lines))
                nearest = nearest or frame
            elif not (
                _is_between(path) or (path == guard.__file__ and frame.f_code.co_name in CONTAIN)
            ):
                break
            frame = frame.f_back
        if nearest is not None:
            passes.unread.add(f"{nearest.f_code.co_filename}:{nearest.f_lineno} {name}")
        return None


def _is_between(path: str) -> bool:
    """Whether code stands between a site and what it calls: the tests', or a loop that it runs."""
    return path in OURS or path.startswith(LOOPS)
