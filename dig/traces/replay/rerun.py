"""Replay: a recorded run again, from its trace alone.

`replay` rebuilds the graph and looks for failures anew; `rerun` drives the same monitor with the
recorded decisions, and stops at the first record that is not the recorded one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dig.codec import dumps
from dig.detectors import HealAsJudged, Judged, standard, standard_healers
from dig.errors import CutOffError, ReplayError, RuleError, TraceError
from dig.findings import Budget, Detector, Finding, Healer
from dig.graph import InteractionGraph
from dig.plain import safe_text
from dig.records import FindingRow, Run
from dig.runtime.host import Setup
from dig.traces.segments import fault
from dig.watch import Watch

from .drive import Driver
from .tape import Tape

Part = dict[str, Any]
"""A detector or healer, as a journal's first line describes it."""


def _named(*parts: object) -> dict[str, Any]:
    return {f"{type(part).__module__}.{type(part).__qualname__}": type(part) for part in parts}


_OURS = _named(
    *standard(),
    *standard_healers().values(),
    *standard_healers(designate=True).values(),
    Judged(),
    HealAsJudged(),
)


def _is_ours(part: object) -> bool:
    return isinstance(part, dict) and part.get("class") in _OURS


def _made(part: Part) -> Any:
    """A fresh part like the one that is described."""
    return _OURS[part["class"]](**{k: v for k, v in part.items() if k != "class"})


@dataclass(frozen=True)
class Replayed:
    """A trace, replayed.

    Attributes:
        graph: The graph that its records lead to.
        findings: What detectors find in it, in order.
        recorded: How many findings the trace tells of.
        is_same: Whether these are the same ones; ``None`` if the run had other detectors, so
            that nobody can tell.
    """

    graph: InteractionGraph
    findings: tuple[Finding, ...]
    recorded: int
    is_same: bool | None


def replay(path: Path, at: int | None = None) -> Replayed:
    """Rebuild the graph of a trace, and look for failures in it anew.

    Args:
        path: The trace file or run directory.
        at: The last record to look at; all of them, if it is left out.

    Raises:
        TraceError: The trace cannot be read or breaks a rule, or has no record `at`.
    """
    tape = Tape(path, payloads=False)
    detectors, is_known = _detectors(tape.header)
    watch = Watch(detectors)
    found: list[Finding] = []
    told: list[str] = []
    while (recorded := tape.pop()) is not None:
        record = recorded.record
        try:
            found += watch.feed(record)
        except RuleError as error:
            raise fault(tape.path, watch.graph.t + 2, str(error)) from None
        if isinstance(record, FindingRow):
            told.append(_body(record))
        if record.t == at:
            break
    if at is not None and watch.graph.t < at:
        raise TraceError(tape.path, None, f"there is no record {at}; the last is {watch.graph.t}")
    again = [_body(finding) for finding in found]
    # The row that tells of a finding comes after what raised it, and may not be there yet.
    is_whole = watch.graph.finished is not None
    is_same = told == (again if is_whole else again[: len(told)])
    return Replayed(watch.graph, tuple(found), len(told), is_same if is_known else None)


def _body(finding: Finding | FindingRow) -> str:
    return dumps([finding.pattern, finding.stage, finding.subject, finding.evidence])


def _detectors(header: Mapping[str, Any] | None) -> tuple[Sequence[Detector], bool]:
    """The detectors that a run had; the standard ones, if it had others or does not say."""
    parts = (header or {}).get("detectors")
    if isinstance(parts, list) and all(_is_ours(part) for part in parts):
        return [_made(part) for part in parts], True
    return standard(), False


def foreign(tape: Tape) -> list[str]:
    """The classes of the parts of a recorded run that are not dig's own."""
    header = tape.header or {}
    parts = [*header.get("detectors", ()), *header.get("healers", {}).values()]
    return [part["class"] for part in parts if not _is_ours(part)]


def setup_of(tape: Tape, given: Setup | None = None) -> Setup:
    """What a recorded run was made with, from the first line of its journal.

    Args:
        tape: The recorded run.
        given: The parts that are not ours (detectors, healers, tools, ...), if there are any.

    Raises:
        ReplayError: The trace does not say it, or names parts that are neither ours nor given.
    """
    first = tape.ahead()
    run = first.record if first else None
    if not isinstance(run, Run):
        raise ReplayError(f"{tape.path}: the first record is not of kind `run`")
    header = {k: v for k, v in (tape.header or {}).items() if k != "version"}
    if given is None:
        if "detectors" not in header:
            raise ReplayError(
                f"{tape.path}: its first line does not say what the run was made with; hand that "
                "in as a `Setup`, from Python"
            )
        given = _ours(tape, header)
    elif header and given.described() != header:
        raise ReplayError(f"the run was made with {header}, not with {given.described()}")
    return replace(
        given, run=run.run, task=run.task, seed=run.seed, session=run.session,
        memory=run.memory, limits=run.limits,
    )  # fmt: skip


def _ours(tape: Tape, header: dict[str, Any]) -> Setup:
    others = [*foreign(tape), *(gate["class"] for gate in header["gates"])]
    if others:
        names = ", ".join(map(str, others))
        raise ReplayError(
            f"the run was made with parts that are not dig's own: {safe_text(names, 200)}; what is "
            "code is not recorded, and gates cannot be asked again"
        )

    def detectors() -> list[Detector]:
        return [_made(part) for part in header["detectors"]]

    def healers() -> dict[str, Healer]:
        return {pattern: _made(part) for pattern, part in header["healers"].items()}

    made = ("detectors", "healers", "gates", "budget")
    return Setup(
        detectors=detectors,
        healers=healers if header["healers"] else None,
        budget=Budget(**header["budget"]),
        **{key: value for key, value in header.items() if key not in made},
    )


@dataclass(frozen=True)
class Rerun:
    """A run that was driven again and came out the same.

    Attributes:
        records: How many records were reproduced byte by byte.
        is_finished: Whether the recorded run had ended.
        graph: The graph at its end.
    """

    records: int
    is_finished: bool
    graph: InteractionGraph


def rerun(path: Path, setup: Setup | None = None) -> Rerun:
    """Drive the monitor through a recorded run again, and compare every record.

    Args:
        path: The journal or its run directory.
        setup: What the run was made with, if not all of it is dig's own.

    Raises:
        DivergenceError: A record came out differently; it says which one, and how.
        ReplayError: The run cannot be driven again; it says why.
        TraceError: The trace cannot be read.
    """
    tape = Tape(path)
    driver = Driver(tape, setup_of(tape, setup))
    try:
        while driver.step():
            pass
    except CutOffError:  # as far as it goes, it is the same
        pass
    graph = driver.host.monitor.graph
    return Rerun(driver.same, graph.finished is not None, graph)
