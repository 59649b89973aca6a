"""`python -m bench.rivals [--json]`: the same message streams through dig and through others.

A tool finds the failure of a stream if an alarm or a notice names all culprits (`bench.streams`).
An alarm on a healthy stream, or one that names no culprit, is false. The streams go through dig
twice: as a message log that is imported and checked, and live, through a monitor in virtual time.
A tool that is not installed is left out, and the table says how to install it.

Telemetry is off, and no connection can be made while a tool runs.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import socket
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from dig.detectors import explain, standard
from dig.detectors.finding import Finding, FindingKind
from dig.detectors.rings import rings_without_answer
from dig.graph.graph import InteractionGraph
from dig.graph.records import Emit, Record
from dig.monitor.messages import Output
from dig.runtime import Decision, Plan, Setup, View, simulate
from dig.runtime.agents import EventFate, NewEvent
from dig.show.gate.checked import check_run
from dig.show.gate.quality_gate import QualityGate
from dig.show.gate.reports import CheckReport, text_lines
from dig.traces.interchange.message_log import read_log
from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE

from .measure import Table
from .streams import OUTSIDE, Message, Stream, streams

EPOCH = 1_790_000_000


@dataclass
class Report:
    """The words of a tool about a stream.

    Attributes:
        alarms: The agents that each alarm names.
        notices: The agents that each further message names.
        lines: The number of lines that the tool prints.
    """

    alarms: list[frozenset[str]] = field(default_factory=list)
    notices: list[frozenset[str]] = field(default_factory=list)
    lines: int = 0

    def score(self, stream: Stream) -> dict[str, Any]:
        """Count the hits and the false alarms."""
        culprits = stream.culprits
        is_found = {
            "alarm": bool(culprits) and culprits <= frozenset().union(*self.alarms),
            "notice": bool(culprits) and culprits <= frozenset().union(*self.alarms, *self.notices),
        }
        how = next((level for level, names in is_found.items() if names), None)
        false = sum(culprits.isdisjoint(names) for names in self.alarms)
        return {"found": how, "false": false, "notices": len(self.notices), "lines": self.lines}


# --- dig ---


def dig_imported(stream: Stream) -> Report:
    """`digmon import --format log` and `digmon check`."""
    rows = [
        {
            "id": message.id, "from": message.sender, "to": list(message.to), "at": message.at,
            "reply_to": list(message.replies_to), "content": message.text,
            "type": "notice" if message.kind == "notice" else "message",
        }
        for message in stream.messages
    ]  # fmt: skip
    with TemporaryDirectory() as folder:
        records, _ = read_log(Path("stream.json"), json.dumps(rows))
        journal = Journal(Path(folder) / TRACE)
        for record in records:
            journal(record)
        journal.close()
        run = check_run(Path(folder), standard())
        lines = [*text_lines(CheckReport([QualityGate().judge(run)]))]
    graph = InteractionGraph.of(records)
    findings = [checked.finding for checked in run.findings]
    report = _report(graph, findings, run.remarks)
    report.lines = sum(bool(line) for line in lines)
    return report


def dig_live(stream: Stream) -> Report:
    """A monitor beside scripted agents on the bus, in virtual time; nothing is healed."""
    senders = {message.sender for message in stream.messages} - {OUTSIDE}
    agents = senders | {name for message in stream.messages for name in message.to} - {OUTSIDE}
    script = Script(stream)
    setup = Setup(
        session=True, memory=True, detectors=standard, limit_s=1e6, activation_timeout_s=1e6
    )
    asked = [message for message in stream.messages if message.sender == OUTSIDE]
    happenings = [(message.at, script.asking(message)) for message in asked]
    result = simulate(
        {name: Scripted(name, script) for name in sorted(agents)},
        setup=setup, script=happenings, sink=script.note,
    )  # fmt: skip
    assert result.graph is not None
    remarks = [ring.remark for ring in rings_without_answer(result.graph)]
    # The stream is cut after its last message, so that nobody goes on then says nothing.
    end_us = 1e6 * (stream.messages[-1].at + 5)
    findings = [finding for finding in result.findings if finding.us <= end_us]
    report = _report(result.graph, findings, remarks)
    report.lines = len(report.alarms) + len(report.notices)
    return report


def _report(graph: InteractionGraph, findings: Iterable[Finding], remarks: Iterable[str]) -> Report:
    report, agents = Report(), frozenset(graph.agents)
    for finding in findings:
        words = re.findall(r"[\w-]+", str(explain(graph, finding)))
        names = frozenset({*FindingKind.of(graph, finding).agents} | agents.intersection(words))
        (report.alarms if finding.is_alarm else report.notices).append(names)
    for remark in remarks:
        report.notices.append(agents.intersection(re.findall(r"[\w-]+", remark)))
    return report


class Script:
    """The messages of a stream, by the events of a run that stand for them."""

    def __init__(self, stream: Stream) -> None:
        self.messages: dict[str, list[Message]] = defaultdict(list)
        for message in stream.messages:
            self.messages[message.sender].append(message)
        self.ids: dict[str, str] = {}  # event -> message
        self.coming: dict[str | None, list[str]] = defaultdict(list)  # by activation

    def asking(self, message: Message) -> Callable[[Any], Any]:
        def ask(monitor: Any) -> Any:
            self.coming[None].append(message.id)
            return monitor.inject(Output(message.text, message.to, "problem"))

        return ask

    def note(self, record: Record) -> None:
        if isinstance(record, Emit) and self.coming[record.by]:
            self.ids[record.event] = self.coming[record.by].pop(0)


class Scripted:
    """An agent that sends its messages of a stream as soon as it has what they reply to."""

    def __init__(self, name: str, script: Script) -> None:
        self._todo, self._script = [*script.messages[name]], script
        self._known: set[str] = set()

    def plan(self, view: View) -> Plan:
        buffer = {self._script.ids[event.id]: event for event in view.events}
        reachable = self._known | buffer.keys()
        if notices := [event for event in view.events if event.type == "notice"]:
            # Read at once, as a person reads a status, and not together with the work.
            fates = [EventFate(event=event.id, fate="consume") for event in notices]
            return Plan(0.01, Decision(fates=fates))
        first = next((m for m in self._todo if reachable.issuperset(m.replies_to)), None)
        if first is None:
            return Plan(0.01, Decision.wait())
        group = [m for m in self._todo if (m.at, m.replies_to) == (first.at, first.replies_to)]
        self._todo = [message for message in self._todo if message not in group]
        self._known |= {*first.replies_to}
        self._script.coming[view.activation] += [message.id for message in group]
        used = [buffer[id].id for id in first.replies_to if id in buffer]
        outputs = [_output(message) for message in group]
        fates = [EventFate(event=event, fate="consume") for event in used]
        return Plan(max(0.01, first.at - view.time_s), Decision(fates=fates, outputs=outputs))

    async def act(self, view: View) -> Decision:
        raise NotImplementedError("streams are played in virtual time")


def _output(message: Message) -> NewEvent:
    if message.to == (OUTSIDE,):
        return NewEvent(payload=message.text, type="solution", final=True)
    kind = "notice" if message.kind == "notice" else "message"
    return NewEvent(payload=message.text, to=list(message.to), type=kind)


# --- others ---


def agentsonar(stream: Stream) -> Report:
    """`monitor_orchestrator().delegation(..)` for each hand-off, as its README says.

    Results that go back to a caller are no hand-offs; they end a subagent. The summary view of its
    report has an event for each problem, at its highest severity.
    """
    export_json = import_module("agentsonar._output.json_export").export_json
    errors = io.StringIO()
    with redirect_stderr(errors), redirect_stdout(errors):
        sonar = import_module("agentsonar").monitor_orchestrator(
            config={"auto_export_on_shutdown": False}
        )
        for message in stream.messages:
            if message.kind == "return":
                sonar.subagent_stop(message.sender)
            elif message.sender != OUTSIDE:
                for to in message.to:
                    spawn = {"subagent_spawn_id": to, "subagent_type": "worker"}
                    metadata = spawn if message.kind == "spawn" else None
                    sonar.delegation(message.sender, to, metadata, timestamp=EPOCH + message.at)
        events = json.loads(Path(export_json(sonar.engine.get_recent_events())).read_text())
        sonar.shutdown()
    report = Report(lines=sum(bool(line.strip()) for line in errors.getvalue().splitlines()))
    agents = {name for message in stream.messages for name in (message.sender, *message.to)}
    for event in events:
        names = frozenset(agents & {*_texts(event)})
        is_alarm = event["severity"].upper() in ("WARNING", "CRITICAL")
        (report.alarms if is_alarm else report.notices).append(names)
    return report


def looptrip(stream: Stream) -> Report:
    """`looptrip scan --all otel:FILE`, on a span for each message of an agent.

    The number of words stands for the tokens. Its reports have no levels, so each is an alarm.
    """
    otel = import_module("looptrip.adapters.otel")
    spans = [
        {
            "span_id": f"{number:06}",
            "start_time": otel.unix_nanos_to_iso(int((EPOCH + message.at) * 1e9)),
            "attributes": {
                "gen_ai.agent.handoff.source.name": message.sender,
                "gen_ai.agent.handoff.target.name": to,
                "gen_ai.usage.input_tokens": len(message.text.split()),
            },
        }
        for number, message in enumerate(stream.messages)
        for to in message.to
        if message.sender != OUTSIDE
    ]
    Path("spans.json").write_text(json.dumps({"spans": spans}))
    output = io.StringIO()
    with redirect_stdout(output):
        import_module("looptrip.cli").main(["scan", "--all", "otel:spans.json"])
    report = Report(lines=sum(bool(line.strip()) for line in output.getvalue().splitlines()))
    events = [*otel.OTelSpanAdapter.from_json_file("spans.json").events()]
    for pathology in import_module("looptrip.detector").detect_all(events):
        report.alarms.append(frozenset({pathology.agent, *pathology.members}))
    return report


def _texts(value: Any) -> Iterable[str]:
    """All texts in a value of JSON, the ends of edges (`a->b`) each for itself."""
    if isinstance(value, str):
        yield from (part.strip() for part in value.split("->"))
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


TOOLS: dict[str, tuple[str, Callable[[Stream], Report]]] = {
    "dig, imported": ("", dig_imported),
    "dig, live": ("", dig_live),
    "AgentSonar": ("agentsonar==0.7.0", agentsonar),
    "looptrip": ("looptrip==0.1.2", looptrip),
}
"""What each tool is installed by (empty: it is here), and how a stream goes through it."""


# --- the contest ---


def contest(names: Sequence[str] = (*TOOLS,)) -> list[dict[str, Any]]:
    """The score of each tool on each stream; of a tool that is not installed it is null."""
    rows: list[dict[str, Any]] = []
    with (
        TemporaryDirectory() as folder,
        chdir(folder),
        patch.dict(os.environ, {"DO_NOT_TRACK": "1", "AGENTSONAR_TELEMETRY": "off"}),
        patch.object(socket, "socket", _no_socket),
    ):
        for stream in streams():
            scores = {name: _play(*TOOLS[name], stream) for name in names}
            rows.append({"stream": stream.name, "failure": stream.failure, "scores": scores})
    return rows


def _no_socket(*args: Any, **named: Any) -> Any:
    raise OSError("the contest has no network")


def _play(package: str, tool: Callable[[Stream], Report], stream: Stream) -> dict[str, Any] | None:
    if package and find_spec(package.partition("==")[0]) is None:
        return None
    return tool(stream).score(stream)


def totals(rows: Sequence[dict[str, Any]], name: str) -> dict[str, int] | None:
    """The sums of a tool over all streams; ``None``: it is not installed."""
    scores = [(row["failure"], row["scores"][name]) for row in rows]
    if any(score is None for _, score in scores):
        return None
    sums: Counter[str] = Counter(dict.fromkeys(("found", "missed", "false", "healthy", "lines"), 0))
    for failure, score in scores:
        sums["found" if score["found"] else "missed"] += bool(failure)
        sums["false"] += score["false"]
        sums["healthy"] += bool(not failure and score["false"])
        sums["lines"] += score["lines"]
    return dict(sums)


def tables(rows: Sequence[dict[str, Any]]) -> list[Table]:
    names = [*rows[0]["scores"]]
    cells = [[row["stream"], *(_cell(row, row["scores"][name]) for name in names)] for row in rows]
    sums = {name: totals(rows, name) for name in names}
    columns = ("found", "missed", "false", "healthy", "lines")
    totalled = [
        [name, *(["not installed"] * 5 if score is None else [str(score[c]) for c in columns])]
        for name, score in sums.items()
    ]
    missing = [TOOLS[name][0] for name, score in sums.items() if score is None]
    note = f"not installed: pip install {' '.join(missing)}" if missing else ""
    heads = ("", "found", "missed", "false alarms", "healthy streams with one", "lines")
    return [
        Table("Streams (level found; false alarms; lines)", ("", *names), cells),
        Table("All streams", heads, totalled, note),
    ]


def _cell(row: dict[str, Any], score: dict[str, Any] | None) -> str:
    if score is None:
        return "-"
    verdict = (score["found"] or "missed") if row["failure"] else "quiet"
    if score["false"]:
        verdict = f"{verdict}, " * bool(row["failure"]) + f"{score['false']} false"
    elif not row["failure"] and score["notices"]:
        verdict = f"{score['notices']} notices"
    return f"{verdict} ({score['lines']})"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.rivals", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print a JSON line for each stream")
    options = parser.parse_args(arguments)
    rows = contest()
    if options.json:
        print("\n".join(map(json.dumps, rows)))
    else:
        print("\n\n".join(map(str, tables(rows))))


if __name__ == "__main__":
    main(sys.argv[1:])
