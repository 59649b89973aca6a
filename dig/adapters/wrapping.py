"""`dig.wrap`: monitor an existing team, and keep a journal of its run."""

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
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dig.detectors import standard, standard_healers
from dig.detectors.finding import Finding
from dig.detectors.policy import Policy
from dig.detectors.protocols import Detector
from dig.detectors.spending_limits import AsBudget
from dig.detectors.thresholds import Thresholds
from dig.errors import JournalError, RuleError, SettingsError
from dig.graph.records import Limits, Record, Usual
from dig.monitor.messages import Gate
from dig.monitor.monitor import KEEP
from dig.monitor.sinks import FanOut, Sink
from dig.runtime.setup import Approve, Setup
from dig.traces.journal.segments import SEGMENT_BYTES

from .base import Attached, Mode, Session, WrapPlan
from .base.capabilities import demand
from .base.guard import logger
from .base.session import fit_setup
from .frameworks import Adapter, adapter_of
from .switches import is_switched_off, read_off, switch_mode

# Parts that only some teams use are imported on use: each import delays the first call.
if TYPE_CHECKING:
    from dig.detectors.team_usual import TeamUsual
    from dig.runtime.alerts import OnAlarm
    from dig.traces.journal.journal import RunDirectory
    from dig.traces.otel.follow import Exporting
    from dig.traces.otel.otlp import ExportReport

    from .nats.sent_journal import SentRun

_T = TypeVar("_T")

_KINDS = {
    "setup": Setup, "limits": Limits, "adapter": Adapter, "policy": Policy, "same_work": bool,
    "tools": bool, "inside": bool, "contents": bool,
}  # fmt: skip
"""Types of the arguments that are no functions."""

_CHECKED = ("annotate", "deliver", "handoff", "tools", "inside")
"""Options of adapters that are checked alike in every adapter."""

_OTHER_TEAMS = {
    "inside": "graphs of LangGraph and workflows of agent-framework",
    "tools": "agents of the OpenAI Agents SDK, graphs of LangGraph and teams of AutoGen",
}
"""The teams with an option that other teams lack."""


def wrap(
    team: _T, *, mode: Mode = "observe",
    journal: str | Path | None = None, segment_bytes: int | None = SEGMENT_BYTES,
    limits: Limits | None = None, usual: Usual | TeamUsual | str | Path | None = None,
    detectors: Sequence[Detector | type[Detector]] = (), gates: Sequence[Gate] = (),
    policy: Policy | str | Path | None = None, approve: Approve | None = None,
    budget: AsBudget | None = None, setup: Setup | None = None, keep: int | None = KEEP,
    sample: float = 1.0,
    require: Iterable[str] = (), same_work: bool = False, adapter: Adapter | None = None,
    sink: Sink | None = None, on_finding: Callable[[Finding], object] | None = None,
    on_alarm: OnAlarm | None = None, otlp: str | None = None, contents: bool = False,
    **options: Any,
) -> _T:  # fmt: skip
    """Put the monitor between a team's agents until `unwrap`; a failed monitor lets the team go on.

    Args:
        team: A dict, list, tuple or object of callables, or a framework's team (docs/wrapping.md).
        mode: `observe` changes nothing; `heal` adds notes and does what the team allows.
        journal: The directory of runs, or the address of a NATS server; ``None``: no trace is kept.
        segment_bytes: The size of a file of the trace; ``None``: the trace stays one file.
        limits: The thresholds of the patterns; by default those of our commands.
        usual: The usual findings of the team: the file that `digmon learn` made, or counts.
        detectors: Further detectors, beside the standard ones or those of the setup.
        gates: Further gates, asked about each event of an agent before its release.
        policy: The policy about findings, or a TOML file with all settings (docs/policy.md).
        approve: Asks a person about healing where the policy says so, on a thread of its own.
        budget: The budget of requests, such as `{"turns": 20}` (docs/policy.md).
        setup: The further settings of the run; by default the standard detectors and healers.
        keep: The records of closed history that stay in memory; ``None``: all. A setup has its own.
        sample: The share of requests that are monitored, each whole; gates and budget hold for all.
        require: The capabilities that the team must have (`dig.adapters.CAPABILITIES`).
        same_work: Whether equal messages of an agent to several others are one piece of work.
        adapter: An adapter of your own, for a team that ours do not know (docs/wrapping.md).
        sink: Called with every record, too.
        on_finding: Called with each finding; maybe on another thread.
        on_alarm: The alarms' destination: `dig.runtime.Alerts`, or a function, called on a thread.
        otlp: The address of an OpenTelemetry receiver; ``None``: the variable `DIG_OTLP` has it.
        contents: Whether payloads are exported, too.
        options: The further options of the team's adapter.

    Returns:
        The team, with the same interface.

    Raises:
        JournalError: The run directory cannot be made.
        SettingsError: The team cannot be wrapped, or an option does not fit; nothing was changed.
    """
    parts = {"limits": limits, "approve": approve}
    more: dict[str, Any] = {"on_finding": on_finding, "same_work": same_work}
    _check(setup=setup, adapter=adapter, sink=sink, contents=contents, **more, **parts)
    setup = _setup(setup, policy, keep, parts, detectors, gates).ruled(None, budget)
    if id(team) in _wrapped or is_switched_off(setup):
        return team
    mode = switch_mode(mode, setup)
    plan = _plan(adapter or adapter_of(team), team, options, sample)
    setup = fit_setup(_with_usual(setup, plan, usual), mode, plan.capabilities)
    files = _Files(_directory(journal, plan, mode, setup, segment_bytes))
    sinks = (files, sink, None if plan.served else _alarm_sink(on_alarm, policy))
    make = partial(_session, plan, setup, sinks, mode=mode, require=require, **more)
    return cast(_T, _attach(team, plan, make, files, _Export(plan, otlp, contents=contents)))


def _alarm_sink(on_alarm: OnAlarm | None, policy: Policy | str | Path | None) -> Sink | None:
    """The sink for alarms, maybe of a file with settings; ``None``: there are no alarms."""
    file = Path(policy) if isinstance(policy, str | Path) else None
    if on_alarm is None and file is None:
        return None
    from dig.runtime.alerts import Alerts

    alerts = Alerts.load((), file) if on_alarm is None else Alerts.of(on_alarm)
    return None if alerts is None else alerts.sink()


class _Export:
    """The export of a session to an OpenTelemetry receiver; none without an address."""

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

        def log(report: ExportReport) -> None:
            logger.log(WARNING if report.lost else INFO, "dig: OTLP: %s", report)

        content = Content(payloads=contents)
        self._follow = self._stack.enter_context(sending(address, log, content=content))

    def follow(self, session: Session) -> None:
        """Export a session from the first record on."""
        if self._follow is not None:
            self._follow(session.directory).attach(session.monitor)

    def close(self) -> None:
        """Send all waiting spans, and log the result; a second call does nothing."""
        self._stack.close()


def _session(plan: WrapPlan, setup: Setup, sinks: Sequence[Sink | None], **options: Any) -> Session:
    """Begin the session of a team, with the first record."""
    if plan.served is not None:  # a repeated run exports and alarms nothing
        sinks = (sinks[0], plan.served.sink)
        options |= {"clock": plan.served.clock, "keeps_time": False}
        if setup.gates or setup.approve:
            raise SettingsError(
                f"{plan.description} with gates, or with a person who is asked, cannot run again "
                "from its record: what they decided is not repeated"
            )
    try:
        session = Session(
            plan.agents, setup, capabilities=plan.capabilities, description=plan.description,
            veto=plan.veto, on_note=plan.on_note, **options,
            sink=FanOut.of([sink for sink in sinks if sink is not None]) or FanOut(),
        )  # fmt: skip
    except RuleError as error:  # an agent has a name that is not allowed
        raise SettingsError(f"{plan.description} cannot be monitored: {error}") from None
    if plan.sample < 1:
        unsampled_setup = replace(
            setup, detectors=tuple, healers=None, ladder=False, usual=None, approve=None,
            policy=replace(setup.policy, rules=()),
        )  # fmt: skip
        unsampled = _session(
            replace(plan, sample=1.0), unsampled_setup, (), **options | {"on_finding": None}
        )
        draw = Random().random  # the user's own random numbers stay the same
        session.leave_out(unsampled, lambda: draw() < plan.sample)
    return session


def _directory(
    journal: str | Path | None, plan: WrapPlan, mode: Mode, setup: Setup, segment_bytes: int | None
) -> Callable[[], RunDirectory | SentRun] | None:
    """Return a maker of the run directory; ``None``: no trace is kept."""
    if plan.served is not None:
        journal = plan.served.runs
    if journal is None:
        return None
    if not isinstance(journal, str | Path):
        raise SettingsError(f"journal={journal!r:.60} is no path of a directory")
    about = {
        "run": setup.run, "mode": mode, "team": plan.description,
        "capabilities": sorted(plan.capabilities), **plan.about,
    }  # fmt: skip
    if str(journal).startswith(("nats://", "tls://", "ws://", "wss://")):
        from .nats import need_nats

        need_nats()
        from .nats.connection import check_url
        from .nats.sent_journal import SentRun

        return partial(SentRun, check_url(str(journal)), about, header=setup.header())
    from dig.traces.journal.journal import Keeping, RunDirectory

    keeping = Keeping(segment_bytes=segment_bytes)
    return partial(RunDirectory, Path(journal), about, header=setup.header(), keeping=keeping)


def _attach(
    team: Any, plan: WrapPlan, make: Callable[[], Session], files: _Files, export: _Export
) -> Any:
    """Put the monitor into a team; on failure the session ends and the files are closed."""
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


def _check(**arguments: Any) -> None:
    """Refuse an argument of the wrong type, or no function."""
    for name, value in arguments.items():
        kind = _KINDS.get(name)
        if not (value is None or (isinstance(value, kind) if kind else callable(value))):
            expected = kind.__name__ if kind else "function"
            raise SettingsError(f"{name}={value!r:.60} is no {expected}")


def _read_settings(file: Path, detectors: Iterable[Any]) -> tuple[Policy, Thresholds]:
    """Read a policy, maybe about further detectors, and thresholds as the commands do."""
    from dig.detectors.policy_settings import load_policy

    patterns = [str(detector.pattern) for detector in detectors]
    return load_policy(file, patterns=patterns), Thresholds.load((), file)


def _setup(
    setup: Setup | None, policy: Policy | str | Path | None, keep: int | None,
    parts: Mapping[str, Any], detectors: Sequence[Detector | type[Detector]], gates: Sequence[Gate],
) -> Setup:  # fmt: skip
    """The setup of a call of `wrap`, with replacements by other arguments."""
    if setup is not None and keep != KEEP:
        raise SettingsError(f"keep={keep!r} beside a setup: it goes into that, Setup(keep=...)")
    thresholds = Thresholds()
    if isinstance(policy, str | Path):
        policy, thresholds = _read_settings(Path(policy), detectors)
    _check(policy=policy)
    setup = setup or Setup(
        "wrapped", keep=keep, limits=thresholds.limits, budget=thresholds.budget,
        detectors=standard, healers=partial(
            standard_healers, cooldown_s=thresholds.cooldown_s, designate=thresholds.designate
        ),
        ladder=True,
    )  # fmt: skip
    parts = {**parts, "policy": policy}
    setup = replace(setup, **{name: part for name, part in parts.items() if part is not None})
    if detectors:
        make = setup.detectors
        further = [it() if isinstance(it, type) else it for it in detectors]
        setup = replace(setup, detectors=lambda: [*make(), *further])
    return replace(setup, gates=(*setup.gates, *gates)) if gates else setup


def _with_usual(setup: Setup, plan: WrapPlan, usual: object) -> Setup:
    """The setup with the usual findings of the team."""
    if usual is None:
        return setup
    from dig.detectors.team_usual import TeamUsual

    if isinstance(usual, str | Path):
        usual = TeamUsual.read(Path(usual))
    if isinstance(usual, TeamUsual):
        usual = usual.of_team(plan.agents, setup.limits)  # refuses the findings of another team
    if not isinstance(usual, Usual):
        raise SettingsError(
            f"usual={usual!r:.60} is no file that `digmon learn` made, and no Usual"
        )
    return replace(setup, usual=usual)


def _plan(adapter: Adapter, team: Any, options: Mapping[str, Any], sample: float) -> WrapPlan:
    parameters = [*signature(adapter.plan).parameters.values()][1:]
    names = [it.name for it in parameters if it.kind != Parameter.VAR_KEYWORD]
    unknown = sorted(options.keys() - names)
    if unknown and len(names) == len(parameters):
        close = get_close_matches(unknown[0], [*names, *signature(wrap).parameters], 1)
        hint = f"besides those of dig.wrap it has: {', '.join(names) or 'none'}"
        if unknown[0] in _OTHER_TEAMS:
            hint = f"{_OTHER_TEAMS[unknown[0]]} have it; {hint}"
        elif close:
            hint = f"did you mean {close[0]}?"
        raise SettingsError(f"there is no option {unknown[0]!r} for this team; {hint}")
    _check(**{name: options[name] for name in _CHECKED if name in options})
    plan = adapter.plan(team, **options)
    if isinstance(sample, bool) or not (isinstance(sample, int | float) and 0 <= sample <= 1):
        raise SettingsError(f"sample={sample!r:.60} is no share of the requests, from 0 to 1")
    if plan.served or sample == 1:  # a run from a journal is one of the sample
        return plan
    demand({"sample"}, plan.capabilities, plan.description)
    return replace(plan, sample=sample, about={**plan.about, "sample": sample})


def unwrap(team: _T) -> _T:
    """Take the monitor out of a team, and end the session; a second call does nothing.

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
        reason = "DIG_OFF is set" if read_off() else "give what dig.wrap has returned"
        raise SettingsError(f"this team is not wrapped; {reason}")
    return wrapped.session


@atexit.register
def _close_all() -> None:
    """End all sessions: a program without `unwrap` has a complete trace and a result, too."""
    while _wrapped:
        _wrapped.pop(next(iter(_wrapped))).end("the program ended")


def _leave_to_parent() -> None:
    """Abandon all sessions in a forked process, since all files are the parent's."""
    while _wrapped:
        session = _wrapped.popitem()[1].session
        session.abandon("this process was forked from the one that is monitored")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_parent)


@dataclass(frozen=True)
class _Wrapped:
    """A wrapped team with its session, kept until `unwrap`."""

    original: Any
    attached: Attached
    session: Session
    files: _Files
    export: _Export

    def end(self, reason: str) -> None:
        self.session.close(reason)
        self.files.close(self.session)
        self.export.close()


_wrapped: dict[int, _Wrapped] = {}  # by the id of the user's object, which is kept alive in here


class _Files:
    """The run directory of a wrapped team, made with the first record; a sink."""

    def __init__(self, make: Callable[[], RunDirectory | SentRun] | None) -> None:
        self._make = make
        self._directory: RunDirectory | SentRun | None = None

    def __call__(self, record: Record) -> None:
        self.write([record])

    def write(self, records: Sequence[Record]) -> None:
        if self._make is not None:
            self._directory, self._make = self._make(), None
        if self._directory is not None:
            self._directory.journal.write(records)

    @property
    def path(self) -> Path | None:
        """The run directory; ``None``: no trace is kept."""
        return None if self._directory is None else self._directory.path

    def close(self, session: Session) -> None:
        """Write the result, and close the files; a second call does nothing."""
        directory, self._directory, self._make = self._directory, None, None
        if directory is None:
            return
        try:
            directory.write_result(session.result().to_json())
        except JournalError as error:
            logger.warning("dig: %s", error)
        finally:
            directory.journal.close()
