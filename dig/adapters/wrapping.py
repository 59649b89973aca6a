"""`dig.wrap`: a team that exists already, monitored, with a journal of what happens in it."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, TypeVar

from dig.detectors import standard, standard_healers
from dig.detectors.finding import Finding
from dig.detectors.thresholds import Thresholds
from dig.errors import JournalError, RuleError, SettingsError
from dig.graph.records import Limits, Record
from dig.monitor.monitor import KEEP
from dig.monitor.sinks import FanOut, Sink
from dig.runtime.host import Setup
from dig.traces.journal.journal import SEGMENT_BYTES, Keeping, RunDirectory

from .base import Attached, Mode, Session, WrapPlan
from .base.guard import logger
from .base.session import fitting
from .registry import Adapter, adapter_of

_T = TypeVar("_T")

_KINDS = {"setup": Setup, "limits": Limits, "adapter": Adapter, "same_work": bool, "tools": bool}
"""What is handed in and is no function."""

_CHECKED = ("annotate", "deliver", "handoff", "tools")
"""Options of adapters that are checked alike, wherever they are taken."""


def wrap(
    team: _T,
    *,
    mode: Mode = "observe",
    journal: str | Path | None = None,
    segment_bytes: int | None = SEGMENT_BYTES,
    limits: Limits | None = None,
    setup: Setup | None = None,
    keep: int | None = KEEP,
    require: Iterable[str] = (),
    same_work: bool = False,
    adapter: Adapter | None = None,
    sink: Sink | None = None,
    on_finding: Callable[[Finding], object] | None = None,
    **options: Any,
) -> _T:
    """Put the monitor between the agents of a team.

    Each request from outside becomes a problem, each answer to it a submitted one, in a session
    that lasts until `unwrap`. Whatever fails in the monitor, the team goes on.

    Args:
        team: A dict, list or object of async callables, or a framework's (docs/wrapping.md).
        mode: `observe` changes nothing; `heal` adds notes and does what the team allows.
        journal: Where to make a run directory for the trace; ``None``: none is kept.
        segment_bytes: How large a file of the trace becomes; ``None``: it stays one file.
        limits: The thresholds of the patterns; by default those of our commands.
        setup: All else about the run; by default the standard detectors and healers.
        keep: How many records of closed history stay in memory; ``None``: all. A setup has its own.
        require: What it must be possible to make the team do (`dig.adapters.CAPABILITIES`).
        same_work: Whether equal messages of an agent to several others are one piece of work, so
            that a second answer is repeated work (RSP); else each call is an event of its own.
        adapter: How to wrap a team that no adapter of ours knows (docs/wrapping.md).
        sink: Is given every record too.
        on_finding: Told of each finding; maybe on another thread.
        options: What the team's adapter takes besides.

    Returns:
        The team, with the same interface; wrapped already, it is returned as it is.

    Raises:
        JournalError: The run directory cannot be made.
        SettingsError: The team cannot be wrapped, or an option does not fit; nothing was changed.
    """
    if id(team) in _wrapped:
        return team
    _check(setup=setup, limits=limits, adapter=adapter, sink=sink, same_work=same_work)
    _check(on_finding=on_finding)
    plan = _plan(adapter or adapter_of(team), team, options)
    setup = fitting(_setup(setup, limits, keep), mode)
    files = _Files(_directory(journal, plan, mode, setup, segment_bytes), sink)
    session = _session(
        plan, setup, mode=mode, require=require, sink=files, on_finding=on_finding,
        same_work=same_work,
    )  # fmt: skip
    session.directory = files.path
    attached = _attached(plan, session, files)
    _wrapped[id(attached.team)] = _Wrapped(team, attached, session, files)
    result: _T = attached.team
    return result


def _directory(
    journal: str | Path | None, plan: WrapPlan, mode: Mode, setup: Setup, segment_bytes: int | None
) -> Callable[[], RunDirectory] | None:
    """Makes the run directory, if one is to be kept."""
    if journal is None:
        return None
    if not isinstance(journal, str | Path):
        raise SettingsError(f"journal={journal!r:.60} is no path of a directory")
    about = {
        "run": setup.run, "mode": mode, "team": plan.who, "capabilities": sorted(plan.capabilities)
    }  # fmt: skip
    keeping = Keeping(segment_bytes=segment_bytes)
    return partial(RunDirectory, Path(journal), about, header=setup.described(), keeping=keeping)


def _session(plan: WrapPlan, setup: Setup, **given: Any) -> Session:
    """The session of a team that is to be wrapped."""
    try:
        return Session(
            plan.agents, setup, capabilities=plan.capabilities, who=plan.who, veto=plan.veto,
            on_note=plan.on_note, **given,
        )  # fmt: skip
    except RuleError as error:  # an agent has a name that is not allowed
        raise SettingsError(f"{plan.who} cannot be monitored: {error}") from None


def _attached(plan: WrapPlan, session: Session, files: _Files) -> Attached:
    """The team with the monitor in it; if that cannot be, the session is over."""
    try:
        return plan.attach(session)
    except BaseException:
        session.close("the team could not be wrapped")
        files.close(session)
        raise


def _check(**given: Any) -> None:
    """Refuse what is not of its kind, or no function, unless it was left out."""
    for name, value in given.items():
        kind = _KINDS.get(name)
        if not (value is None or (isinstance(value, kind) if kind else callable(value))):
            wanted = kind.__name__ if kind else "function"
            raise SettingsError(f"{name}={value!r:.60} is no {wanted}")


def _setup(setup: Setup | None, limits: Limits | None, keep: int | None) -> Setup:
    if setup is not None and keep != KEEP:
        raise SettingsError(f"keep={keep!r} beside a setup: it goes into that, Setup(keep=...)")
    setup = setup or Setup(
        "wrapped", keep=keep, limits=Thresholds().limits,
        detectors=standard, healers=standard_healers,
    )  # fmt: skip
    return replace(setup, limits=limits) if limits else setup


def _plan(adapter: Adapter, team: Any, options: Mapping[str, Any]) -> WrapPlan:
    takes = [*signature(adapter.plan).parameters.values()][1:]
    known = [parameter.name for parameter in takes if parameter.kind != Parameter.VAR_KEYWORD]
    unknown = sorted(options.keys() - known)
    if unknown and len(known) == len(takes):
        listed = ", ".join(known) or "none"
        raise SettingsError(f"there is no option {unknown[0]!r} for this team; there is: {listed}")
    _check(**{name: options[name] for name in _CHECKED if name in options})
    return adapter.plan(team, **options)


def unwrap(team: _T) -> _T:
    """Take the monitor out of a team again, and end its session; twice does no harm.

    Returns:
        The original team.
    """
    wrapped = _wrapped.pop(id(team), None)
    if wrapped is None:
        return team
    try:
        wrapped.attached.restore()
    finally:
        wrapped.end("the team was unwrapped")
    original: _T = wrapped.original
    return original


def session_of(team: Any) -> Session:
    """The session of a wrapped team.

    Raises:
        SettingsError: It is not wrapped.
    """
    wrapped = _wrapped.get(id(team))
    if wrapped is None:
        raise SettingsError("this team is not wrapped; give what dig.wrap has returned")
    return wrapped.session


def _forget_all() -> list[_Wrapped]:
    forgotten = [*_wrapped.values()]
    _wrapped.clear()
    return forgotten


@atexit.register
def _close_all() -> None:
    """Programs that never unwrap their team have a complete trace and a result too."""
    for wrapped in _forget_all():
        wrapped.end("the program ended")


def _leave_to_parent() -> None:
    """In a child process that was forked: the session and its files are the parent's."""
    for wrapped in _forget_all():
        wrapped.session.abandon("this process was forked from the one that is monitored")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


@dataclass(frozen=True)
class _Wrapped:
    """A wrapped team with its session; kept until it is unwrapped."""

    original: Any
    attached: Attached
    session: Session
    files: _Files

    def end(self, reason: str) -> None:
        self.session.close(reason)
        self.files.close(self.session)


_wrapped: dict[int, _Wrapped] = {}  # by the id of what the user has; kept alive in here


class _Files(FanOut):
    """The sinks of a wrapped team: a run directory, made with the first record, and one more."""

    def __init__(self, make: Callable[[], RunDirectory] | None, further: Sink | None) -> None:
        self._make = make
        self._directory: RunDirectory | None = None
        super().__init__(self._keep)
        if further is not None:
            self.add(further)

    def _keep(self, record: Record) -> None:
        if self._make is not None:
            self._directory, self._make = self._make(), None
        if self._directory is not None:
            self._directory.journal(record)

    @property
    def path(self) -> Path | None:
        """The run directory, if one is kept."""
        return None if self._directory is None else self._directory.path

    def close(self, session: Session) -> None:
        """Write down how it ended, and close the files; twice does no harm."""
        directory, self._directory, self._make = self._directory, None, None
        if directory is None:
            return
        try:
            directory.write_result(session.result().to_json())
        except JournalError as error:
            logger.warning("dig: %s", error)
        finally:
            directory.journal.close()
