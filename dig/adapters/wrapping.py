"""`dig.wrap`: a team that exists already, monitored, with a journal of what happens in it."""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from inspect import Parameter, signature
from logging import INFO, WARNING
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dig.detectors import standard, standard_healers
from dig.detectors.finding import Finding
from dig.detectors.policy import Policy
from dig.detectors.team_usual import TeamUsual
from dig.detectors.thresholds import Thresholds
from dig.errors import JournalError, RuleError, SettingsError
from dig.graph.records import Limits, Record, Usual
from dig.monitor.monitor import KEEP
from dig.monitor.sinks import FanOut, Sink
from dig.runtime.alerts import Alerts, OnAlarm
from dig.runtime.host import Approve, Setup
from dig.traces.journal.journal import SEGMENT_BYTES, Keeping, RunDirectory

from .base import Attached, Mode, Session, WrapPlan
from .base.guard import logger
from .base.session import fit_setup
from .registry import Adapter, adapter_of

if TYPE_CHECKING:
    from dig.traces.otel.follow import Exporting
    from dig.traces.otel.otlp import ExportReport

_T = TypeVar("_T")

_KINDS = {
    "setup": Setup, "limits": Limits, "adapter": Adapter, "policy": Policy, "same_work": bool,
    "tools": bool, "inside": bool, "contents": bool,
}  # fmt: skip
"""Types of arguments that are no function."""

_CHECKED = ("annotate", "deliver", "handoff", "tools", "inside")
"""Options of adapters that are checked alike, wherever they are taken."""

_ELSEWHERE = {
    "inside": "graphs of LangGraph and workflows of agent-framework",
    "tools": "agents of the OpenAI Agents SDK, graphs of LangGraph and teams of AutoGen",
}
"""The teams that have an option which others lack."""


def wrap(
    team: _T,
    *,
    mode: Mode = "observe",
    journal: str | Path | None = None, segment_bytes: int | None = SEGMENT_BYTES,
    limits: Limits | None = None,
    usual: Usual | TeamUsual | str | Path | None = None,
    policy: Policy | None = None, approve: Approve | None = None,
    setup: Setup | None = None, keep: int | None = KEEP,
    require: Iterable[str] = (),
    same_work: bool = False,
    adapter: Adapter | None = None,
    sink: Sink | None = None,
    on_finding: Callable[[Finding], object] | None = None,
    on_alarm: OnAlarm | None = None,
    otlp: str | None = None, contents: bool = False,
    **options: Any,
) -> _T:  # fmt: skip
    """Put the monitor between the agents of a team, until `unwrap`; if it fails, the team goes on.

    Args:
        team: A dict, list, tuple or object of callables, or a framework's (docs/wrapping.md).
        mode: `observe` changes nothing; `heal` adds notes and does what the team allows.
        journal: The directory in which the trace's run directory is made; ``None``: none is kept.
        segment_bytes: The size of a file of the trace; ``None``: it stays one file.
        limits: The thresholds of the patterns; by default those of our commands.
        usual: The usual findings of the team: the file that `digmon learn` made, or counts.
        policy: The policy about findings (docs/policy.md).
        approve: Asks a person about healing where the policy says so, on a thread of its own.
        setup: All else about the run; by default the standard detectors and healers.
        keep: The records of closed history that stay in memory; ``None``: all. A setup has its own.
        require: The capabilities that the team must have (`dig.adapters.CAPABILITIES`).
        same_work: Whether equal messages of an agent to several others are one piece of work.
        adapter: The function that wraps a team which no adapter of ours knows (docs/wrapping.md).
        sink: Is given every record too.
        on_finding: Told of each finding; maybe on another thread.
        on_alarm: The alarms' destination: `dig.runtime.Alerts`, or a function, called on a thread.
        otlp: The address of an OpenTelemetry receiver; ``None``: the variable `DIG_OTLP` has it.
        contents: Whether payloads are sent there, too.
        options: The further options of the team's adapter.

    Returns:
        The team, with the same interface.

    Raises:
        JournalError: The run directory cannot be made.
        SettingsError: The team cannot be wrapped, or an option does not fit; nothing was changed.
    """
    if id(team) in _wrapped:
        return team
    given = {"limits": limits, "policy": policy, "approve": approve}
    more: dict[str, Any] = {"on_finding": on_finding, "same_work": same_work}
    _check(setup=setup, adapter=adapter, sink=sink, contents=contents, **more, **given)
    plan = _plan(adapter or adapter_of(team), team, options)
    setup = fit_setup(_setup(setup, plan, keep, usual, given), mode, plan.capabilities)
    files = _Files(_directory(journal, plan, mode, setup, segment_bytes))
    more |= {"sink": _sinks(plan, files, sink, on_alarm), "mode": mode, "require": require}
    make, export = partial(_session, plan, setup, **more), _Export(plan, otlp, contents=contents)
    return cast(_T, _attach(team, plan, make, files, export))


class _Export:
    """The export of a session to the receiver that a call or the environment names, if one does."""

    def __init__(self, plan: WrapPlan, otlp: str | None, *, contents: bool) -> None:
        self._stack = ExitStack()
        self._follow: Exporting | None = None
        address = otlp or os.environ.get("DIG_OTLP")
        if not address or plan.served is not None:
            return
        if not isinstance(address, str):
            raise SettingsError(f"otlp={otlp!r:.60} is no address, such as http://localhost:4318")
        from dig.traces.otel.content import Content
        from dig.traces.otel.follow import sending  # the SDK takes a while to import

        content = Content(payloads=contents)
        self._follow = self._stack.enter_context(sending(address, self._tell, content=content))

    def follow(self, session: Session) -> None:
        """Follow a session from its first record on."""
        if self._follow is not None:
            self._follow(session.directory).attach(session.monitor)

    def close(self) -> None:
        """Send what waits, and log what became of it; twice does no harm."""
        self._stack.close()

    def _tell(self, report: ExportReport) -> None:
        logger.log(WARNING if report.lost else INFO, "dig: OTLP: %s", report)


def _session(plan: WrapPlan, setup: Setup, **given: Any) -> Session:
    """The session of a team, which begins with its first record."""
    if plan.served is not None:
        given |= {"clock": plan.served.clock, "keeps_time": False}
        if setup.gates or setup.approve:
            raise SettingsError(
                f"{plan.who} with gates, or with a person who is asked, cannot run again from its "
                "record: what they decided is not repeated"
            )
    try:
        session = Session(
            plan.agents, setup, capabilities=plan.capabilities, who=plan.who,
            veto=plan.veto, on_note=plan.on_note, **given,
        )  # fmt: skip
    except RuleError as error:  # an agent has a name that is not allowed
        raise SettingsError(f"{plan.who} cannot be monitored: {error}") from None
    return session


def _directory(
    journal: str | Path | None, plan: WrapPlan, mode: Mode, setup: Setup, segment_bytes: int | None
) -> Callable[[], RunDirectory] | None:
    """Makes the run directory, if one is to be kept."""
    if plan.served is not None:
        journal = plan.served.runs
    if journal is None:
        return None
    if not isinstance(journal, str | Path):
        raise SettingsError(f"journal={journal!r:.60} is no path of a directory")
    about = {
        "run": setup.run, "mode": mode, "team": plan.who,
        "capabilities": sorted(plan.capabilities), **plan.about,
    }  # fmt: skip
    keeping = Keeping(segment_bytes=segment_bytes)
    return partial(RunDirectory, Path(journal), about, header=setup.described(), keeping=keeping)


def _sinks(plan: WrapPlan, files: _Files, sink: Sink | None, on_alarm: OnAlarm | None) -> FanOut:
    """The sinks of the records; a team that runs again from its record sends nothing elsewhere."""
    if plan.served is not None:
        return FanOut(files, plan.served.sink)
    alerts = Alerts.of(on_alarm)
    further = (sink, None if alerts is None else alerts.sink())
    return FanOut(files, *(one for one in further if one is not None))


def _attach(
    team: Any, plan: WrapPlan, make: Callable[[], Session], files: _Files, export: _Export
) -> Any:
    """Put the monitor into a team, and return it; if that cannot be, the session is over."""
    with ExitStack() as undo:
        undo.callback(export.close)
        session = make()
        undo.callback(files.close, session)
        undo.callback(session.close, "the team could not be wrapped")
        session.directory = files.path
        export.follow(session)
        attached = plan.attach(session)
        undo.pop_all()
    _wrapped[id(attached.team)] = _Wrapped(team, attached, session, files, export)
    return attached.team


def _check(**given: Any) -> None:
    """Refuse what is not of its kind, or no function, unless it was left out."""
    for name, value in given.items():
        kind = _KINDS.get(name)
        if not (value is None or (isinstance(value, kind) if kind else callable(value))):
            wanted = kind.__name__ if kind else "function"
            hint = "; load_policy of dig.detectors.policy_settings reads one from a file"
            raise SettingsError(f"{name}={value!r:.60} is no {wanted}{hint * (kind is Policy)}")


def _setup(
    setup: Setup | None, plan: WrapPlan, keep: int | None, usual: object, given: Mapping[str, Any]
) -> Setup:
    """The setup of a call of `wrap`; what was given beside it replaces its parts."""
    if setup is not None and keep != KEEP:
        raise SettingsError(f"keep={keep!r} beside a setup: it goes into that, Setup(keep=...)")
    setup = setup or Setup(
        "wrapped", keep=keep, limits=Thresholds().limits,
        detectors=standard, healers=standard_healers, ladder=True,
    )  # fmt: skip
    setup = replace(setup, **{name: part for name, part in given.items() if part is not None})
    return setup if usual is None else replace(setup, usual=_counts(usual, plan, setup.limits))


def _counts(usual: object, plan: WrapPlan, limits: Limits) -> Usual:
    """The usual findings of a team, which must be the one that they were learned from."""
    if isinstance(usual, str | Path):
        usual = TeamUsual.read(Path(usual))
    if isinstance(usual, TeamUsual):
        return usual.of_team(plan.agents, limits)
    if isinstance(usual, Usual):
        return usual
    raise SettingsError(f"usual={usual!r:.60} is no file that `digmon learn` made, and no Usual")


def _plan(adapter: Adapter, team: Any, options: Mapping[str, Any]) -> WrapPlan:
    takes = [*signature(adapter.plan).parameters.values()][1:]
    known = [parameter.name for parameter in takes if parameter.kind != Parameter.VAR_KEYWORD]
    unknown = sorted(options.keys() - known)
    if unknown and len(known) == len(takes):
        close = get_close_matches(unknown[0], [*known, *signature(wrap).parameters], 1)
        listed = ", ".join(known) or "none"
        hint = f"besides those of dig.wrap it has: {listed}"
        if unknown[0] in _ELSEWHERE:
            hint = f"{_ELSEWHERE[unknown[0]]} have it; {hint}"
        elif close:
            hint = f"did you mean {close[0]}?"
        raise SettingsError(f"there is no option {unknown[0]!r} for this team; {hint}")
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
        SettingsError: The team is not wrapped.
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
    export: _Export

    def end(self, reason: str) -> None:
        self.session.close(reason)
        self.files.close(self.session)
        self.export.close()


_wrapped: dict[int, _Wrapped] = {}  # by the id of what the user has; kept alive in here


class _Files:
    """The run directory of a wrapped team; a sink, which makes it with the first record."""

    def __init__(self, make: Callable[[], RunDirectory] | None) -> None:
        self._make = make
        self._directory: RunDirectory | None = None

    def __call__(self, record: Record) -> None:
        self.write([record])

    def write(self, records: Sequence[Record]) -> None:
        if self._make is not None:
            self._directory, self._make = self._make(), None
        if self._directory is not None:
            self._directory.journal.write(records)

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
