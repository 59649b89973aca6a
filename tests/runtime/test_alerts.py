"""Alerts: what is sent where, what is counted instead, and that nothing blocks the team."""

from __future__ import annotations

import json
import logging
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Any

import pytest

import dig
from dig import Detector, Finding, InteractionGraph, Record
from dig.detectors import standard
from dig.detectors.policy import Policy
from dig.errors import SettingsError
from dig.graph.records import Emit, FindingRow, Limits, Run
from dig.monitor.sinks import FanOut
from dig.runtime import Alarm, Alerts, Bus, CommandAlerts, Decision, LogAlerts, Setup, View
from dig.runtime import alerts as alerts_module
from dig.runtime.alerts import AlertCounts, OnAlarm
from dig.runtime.destinations import WebhookAlerts, destination
from tests.helpers import Recorder, Stage, out

LONG_S = 60.0  # for what comes at once, unless something is broken
PATH = "/services/T000/B000/q1w2e3r4t5"
KEY = "sk-proj-0123456789abcdef"


class Sees(Detector):
    """Raises an alarm about every event."""

    pattern = "SEEN"
    kinds = (Emit,)

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        assert isinstance(record, Emit)
        yield Finding(
            self.pattern, record.t, record.us, {"event": record.event}, {"said": f"it is {KEY}"}
        )


async def parrot(view: View) -> Decision:
    return Decision.submit(view, view.events[0].payload)


def finding(t: int, severity: str = "error", silenced: str | None = None) -> FindingRow:
    return FindingRow(t, t, "OE", None, {"event": f"e{t}"}, {"cause": "left"}, severity, silenced)


def send(alerts: Alerts, *rows: Record) -> None:
    follow = alerts.sink()
    follow(Run(0, 0, "my-run", ("a",)))
    for row in rows:
        follow(row)


class Kept:
    """A function that keeps what it gets, on whatever thread.

    Attributes:
        alarms: What it got.
        threads: The names of the threads.
        has_two: Is set with the second alarm.
    """

    def __init__(self) -> None:
        self.alarms: list[Alarm] = []
        self.threads: set[str] = set()
        self.has_two = Event()

    def __call__(self, alarm: Alarm) -> None:
        self.threads.add(current_thread().name)
        self.alarms.append(alarm)
        if len(self.alarms) == 2:
            self.has_two.set()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.name == "dig"]


# -- nothing blocks the team ---


@contextmanager
def silent_server() -> Iterator[str]:
    """A server that takes a connection and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}{PATH}"


def raises(alarm: Alarm) -> None:
    raise SystemExit("a bug")


@pytest.mark.anyio
async def test_no_destination_holds_up_a_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A webhook that hangs, a command that never ends, functions that hang and that raise."""
    released, kept, plain, watched = Event(), Kept(), Recorder(), Recorder()
    fifo = tmp_path / "began"
    os.mkfifo(fifo)
    hangs = ["sh", "-c", f"echo began > {fifo}; exec sleep 1000"]
    setup = Setup(detectors=lambda: [Sees()])
    await Bus({"a": parrot}, setup, sink=plain).run("?")
    with silent_server() as url:
        alerts = Alerts(
            WebhookAlerts(url), CommandAlerts(hangs), lambda alarm: released.wait(LONG_S), raises,
            kept,
        )  # fmt: skip
        result = await Bus({"a": parrot}, setup, sink=watched, on_alarm=alerts).run("?")
        assert (result.outcome, result.answer) == ("submitted", "?")
        assert [row.kind for row in watched] == [row.kind for row in plain]
        assert not released.is_set()
        assert fifo.read_text() == "began\n" and kept.has_two.wait(LONG_S)
        alerts.flush(0.0)
        released.set()
    webhook, command, hung, raising, good = alerts.flush(LONG_S)
    assert [alarm.finding.subject for alarm in kept.alarms] == [{"event": "e1"}, {"event": "e2"}]
    # What is still queued when the process ends is dropped after three seconds.
    assert (good.sent, hung.sent + hung.dropped) == (2, 2)
    assert raising.failed >= 1 and raising.failed + raising.dropped == 2
    assert webhook.sent == command.sent == 0
    assert "dig alerts" in kept.threads and current_thread().name not in kept.threads
    assert any("raises failed: SystemExit('a bug')" in text for text in warnings(caplog))
    assert PATH not in caplog.text


@pytest.mark.anyio
async def test_a_wrapped_team_is_not_held_up_either() -> None:
    """And what a function raises does not reach it."""
    released, kept = Event(), Kept()

    async def ann(question: str) -> str:
        return "!"

    setup = Setup(detectors=lambda: [Sees()])
    alerts = Alerts(kept, raises, lambda alarm: released.wait(LONG_S))
    team = dig.wrap({"ann": ann}, setup=setup, on_alarm=alerts)
    assert await team["ann"]("?") == "!"
    session = dig.session_of(team)
    dig.unwrap(team)
    assert session.statistics().faults == 0 and not released.is_set()
    released.set()
    alerts.flush(LONG_S)
    assert [alarm.finding.pattern for alarm in kept.alarms] == ["SEEN", "SEEN"]
    assert kept.alarms[0].run == "run"


def test_a_command_that_never_ends_is_killed_with_what_it_started(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """When the end of the process does not wait any longer, and not when its time is up."""
    fifo = tmp_path / "alive"
    os.mkfifo(fifo)
    command = f"exec 3> {fifo}; echo began >&3; sleep 1000 & wait"  # both hold it open
    alerts = Alerts(CommandAlerts(["sh", "-c", command]))
    send(alerts, finding(1))
    with fifo.open() as alive:
        assert alive.readline() == "began\n"
        (counts,) = alerts.flush(0.0)
        assert str(counts) == "command sh: 0 sent, 1 not ended"
        assert alive.read() == ""  # ends when both have
    (counts,) = alerts.flush(LONG_S)
    assert (counts.failed, counts.waiting) == (1, 0)
    assert "it ended with status -9" in caplog.text


def test_a_command_that_had_not_begun_when_it_was_given_up_is_killed(tmp_path: Path) -> None:
    """And the next alarm is sent again."""
    taken, begins, file = Event(), Event(), tmp_path / "ends"

    class LateCommand(CommandAlerts):
        def send(self, alarm: Alarm) -> None:
            taken.set()
            assert begins.wait(LONG_S)
            super().send(alarm)

    command = LateCommand(["sh", "-c", f"[ -e {file} ] || exec sleep 1000"], timeout_s=2.0)
    with pytest.MonkeyPatch.context() as patch:
        failures: list[BaseException] = []
        patch.setattr(alerts_module._Outlet, "_report", lambda self, error: failures.append(error))
        alerts = Alerts(command)
        send(alerts, finding(1))
        assert taken.wait(LONG_S)
        alerts.flush(0.0)
        begins.set()
        alerts.flush(LONG_S)
        assert [str(error) for error in failures] == ["it ended with status -9"]
    command.cancel()  # comes too late for any alarm
    file.touch()
    send(alerts, finding(2))
    (counts,) = alerts.flush(LONG_S)
    assert counts.sent == 1


# -- what is sent, and what is counted instead ---


def test_only_errors_and_warnings_that_no_policy_silences_are_sent() -> None:
    """With the run's name, and the record of the finding in the trace."""
    kept = Kept()
    alerts = Alerts(kept)
    send(alerts, finding(1, "notice"), finding(2, "warning"), finding(3, "error", "an audit log"),
         finding(4))  # fmt: skip
    alerts.flush(LONG_S)
    assert [(one.run, one.finding.t) for one in kept.alarms] == [("my-run", 2), ("my-run", 4)]
    assert kept.alarms[1].text == (
        "error OE at 0.0 s (record 4): nobody consumed e4, and nobody can any more: the agent "
        "that had it has left [run my-run]"
    )


def test_alarms_beyond_the_rate_are_counted_and_said(caplog: pytest.LogCaptureFixture) -> None:
    """By the log at once, by the next alert, and by the counts."""
    kept, now = Kept(), [0.0]
    alerts = Alerts(kept, per_minute=2, clock=lambda: now[0])
    send(alerts, *(finding(t) for t in range(1, 6)))
    now[0] = 59.9
    send(alerts, finding(6))
    now[0] = 60.0
    send(alerts, finding(7))
    (counts,) = alerts.flush(LONG_S)
    assert [(one.finding.t, one.missed) for one in kept.alarms] == [(1, 0), (2, 0), (7, 4)]
    assert kept.alarms[-1].text.endswith("[run my-run] (4 alarms before it not sent)")
    assert (counts.sent, counts.dropped) == (3, 4)
    said = [text for text in warnings(caplog) if "more than 2 alarms in a minute" in text]
    assert len(said) == 1


def test_a_full_queue_drops_and_counts() -> None:
    """Memory stays bounded while a destination hangs."""
    began, released = Event(), Event()

    def hangs(alarm: Alarm) -> None:
        began.set()
        released.wait(LONG_S)

    alerts = Alerts(hangs, per_minute=100, most_queued=3)
    send(alerts, finding(1))
    assert began.wait(LONG_S)
    send(alerts, *(finding(t) for t in range(2, 12)))
    name = alerts.counts()[0].destination
    assert alerts.counts() == (AlertCounts(name, dropped=7, waiting=4),)
    released.set()
    assert alerts.flush(LONG_S) == (AlertCounts(name, sent=4, dropped=7),)


def test_the_log_has_errors_as_errors(caplog: pytest.LogCaptureFixture) -> None:
    alerts = Alerts(LogAlerts())
    send(alerts, finding(1, "warning"), finding(2))
    alerts.flush(LONG_S)
    levels = [one.levelno for one in caplog.records if one.name == "dig"]
    assert levels == [logging.WARNING, logging.ERROR]


def test_secrets_are_masked_and_texts_are_harmless() -> None:
    """What stands in a finding can be anything, and Slack reads `<!channel>` as a command."""
    kept = Kept()
    alerts = Alerts(kept)
    evidence = {"cause": "left", "said": f"the key is {KEY}"}
    row = FindingRow(1, 1, "OWN", None, {"event": "<!channel> [x](y)"}, evidence, "error")
    send(alerts, row)
    alerts.flush(LONG_S)
    (alarm,) = kept.alarms
    shown = json.dumps([alarm.to_json(), alarm.text])
    assert KEY not in shown and "***" in shown
    for template in ("slack", "teams"):
        sent = json.dumps(WebhookAlerts("http://h/x", template)._template(alarm))
        assert "(!channel) (x)(y)" in sent and "<!" not in sent


# -- webhooks and commands ---


class Server(HTTPServer):
    """A server that keeps the bodies that are posted to it.

    Attributes:
        got: Path and body of each request.
        status: What it answers.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.got: list[tuple[str, Any]] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{PATH}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, json.loads(body)))
        self.send_response(self.server.status, f"look at {PATH}")
        if self.server.status == 302:
            self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_POST

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = Thread(target=made.serve_forever, args=(0.01,))
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def test_an_alarm_about_a_round_names_the_ring() -> None:
    """Evidence has the agents without an order; the graph of the run has it."""
    alarms: list[Alarm] = []
    alerts = Alerts(alarms.append)
    limits = Limits(livelock_turns=2, livelock_agents=3)
    stage = Stage("cab", detectors=standard(), limits=limits)
    stage.monitor.follow(alerts.sink())
    stage.give("c")
    for turn in range(8):
        stage.turn("cab"[turn % 3], out("cab"[(turn + 1) % 3], payload=turn))
    alerts.flush(LONG_S)
    (alarm,) = alarms
    assert alarm.text.startswith("c, a and b have gone round 2 times; 8 turns, since activation a1")


def test_an_alarm_about_a_failed_request_begins_with_the_headline(server: Server) -> None:
    """In the log, a webhook and a command; secrets in it are masked."""
    kept = Kept()
    alerts = Alerts(kept, WebhookAlerts(server.url))
    stage = Stage("ab", sink=FanOut(alerts.sink()), policy=Policy(), detectors=standard())
    stage.give("ab")
    started = stage.start("a")
    stage.monitor.end(started.activation, error=f"KeyError: {KEY} is no key")
    stage.monitor.request_failed("error", activation=started.activation)
    alerts.flush(LONG_S)
    (alarm,) = kept.alarms
    assert alarm.headline.startswith("Failed: `a` raised KeyError: ")
    assert alarm.headline.endswith("at 0.0 s; `b` never ran")
    assert alarm.text.startswith(f"{alarm.headline} (error FAIL request at 0.0 s (record ")
    assert KEY not in alarm.text
    assert server.got[0][1]["text"].startswith("Failed: 'a' raised KeyError: *** is no key")


def test_an_alarm_about_a_failure_is_silent_about_another_that_waits_for_a_person() -> None:
    """The question is no word about the failure, and destinations are outside."""
    kept = Kept()
    alerts = Alerts(kept)
    stage = Stage("ab", sink=FanOut(alerts.sink()), policy=Policy(), detectors=standard())
    stage.give("a")
    stage.start("a")
    stage.monitor.waits(activation="a1", asks="May I pay Smith?")
    stage.give("b")
    started = stage.start("b")
    stage.monitor.end(started.activation, error="KeyError: none")
    stage.monitor.request_failed("error", activation=started.activation)
    alerts.flush(LONG_S)
    (alarm,) = kept.alarms
    assert alarm.headline.startswith("Failed: `b` raised KeyError: none")
    assert "Smith" not in alarm.text


def test_a_webhook_gets_the_alarm_as_json(server: Server) -> None:
    """Slack takes a text, Teams a message with an adaptive card, all others everything."""
    made = [WebhookAlerts(server.url, name) for name in (None, "slack", "teams")]
    alerts = Alerts(*made, lambda alarm: None)
    send(alerts, finding(4))
    assert [counts.sent for counts in alerts.flush(LONG_S)] == [1, 1, 1, 1]
    bodies = [body for path, body in server.got if path == PATH]
    everything, slack, teams = sorted(bodies, key=lambda body: ("run" not in body, "type" in body))
    assert (everything["run"], everything["pattern"], everything["t"]) == ("my-run", "OE", 4)
    assert slack.keys() == {"text"} and slack["text"] == everything["text"]
    card = teams["attachments"][0]
    assert (teams["type"], card["content"]["type"]) == ("message", "AdaptiveCard")
    assert card["contentType"] == "application/vnd.microsoft.card.adaptive"
    assert card["content"]["body"][1]["text"] == slack["text"]


@pytest.mark.parametrize(
    ("host", "template"),
    [
        ("hooks.slack.com", "slack"),
        ("acme.webhook.office.com", "teams"),
        ("prod-1.westus.logic.azure.com", "teams"),
        ("hooks.slack.com.evil.org", "json"),
    ],
)
def test_the_template_is_that_of_the_host(host: str, template: str) -> None:
    by_host, named = (WebhookAlerts(f"https://{host}/x", one) for one in (None, template))
    assert by_host._template is named._template


@pytest.mark.parametrize("status", [302, 404, 500])
def test_an_answer_that_is_no_success_is_a_failure_without_secrets(
    server: Server, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    """A redirect is not followed: it could lead anywhere."""
    server.status = status
    alerts = Alerts(WebhookAlerts(server.url))
    send(alerts, finding(1))
    assert str(alerts.flush(LONG_S)[0]) == "webhook 127.0.0.1: 0 sent, 1 failed"
    assert [path for path, _ in server.got] == [PATH]
    assert f"the server answered with status {status}" in caplog.text
    assert PATH not in caplog.text


def test_a_command_gets_the_alarm_on_its_standard_input(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Its status counts; its arguments are not interpreted by a shell."""
    script = (
        "import sys; open(sys.argv[1], 'w').write(sys.stdin.read()); sys.exit(int(sys.argv[2]))"
    )
    files = [tmp_path / "a; touch b", tmp_path / "c"]
    made = [
        CommandAlerts([sys.executable, "-c", script, str(file), str(status)])
        for file, status in zip(files, (0, 3), strict=True)
    ]
    alerts = Alerts(*made)
    send(alerts, finding(4))
    good, bad = alerts.flush(LONG_S)
    assert (good.sent, bad.failed) == (1, 1)
    assert json.loads(files[0].read_text())["subject"] == {"event": "e4"}
    assert "it ended with status 3" in caplog.text


# -- settings ---


def test_the_first_source_that_names_a_destination_wins(tmp_path: Path) -> None:
    """The command line, the environment, the file; the file's rate holds for all."""
    file = tmp_path / "dig.toml"
    file.write_text('[alerts]\nto = ["log", "webhook:https://h/x"]\nper_minute = 1\n')

    def names(given: list[str], environment: dict[str, str]) -> list[str]:
        alerts = Alerts.load(given, file, environment)
        assert alerts is not None
        return [counts.destination for counts in alerts.counts()]

    assert names([], {}) == ["log", "webhook h"]
    assert names([], {"DIG_ALERT": "webhook:https://other/x"}) == ["webhook other"]
    assert names(["slack:env:HOOK"], {"DIG_ALERT": "log", "HOOK": "https://s/x"}) == ["webhook s"]
    assert Alerts.load([], None, {}) is None
    alerts = Alerts.load([], file, {})
    assert alerts is not None
    send(alerts, finding(1), finding(2))
    assert [counts.dropped for counts in alerts.flush(0.0)] != [0, 0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"https://hooks.slack.com{PATH}", "an alert goes to log, webhook:URL"),
        ("log:x", "an alert goes to log"),
        (f"webhook:ftp://h{PATH}", "must begin with http:// or https://"),
        (f"webhook:https://user:pw@h{PATH}", "without blanks, a user or a password"),
        (f"webhook:https://h{PATH}\u00e9", "without blanks"),
        (f"webhook:https://h:port{PATH}", "must begin with http"),
        ("slack:env:NOT_THERE", "the environment variable 'NOT_THERE' is not set"),
        ("command:no-such-command x", "there is no command 'no-such-command' for alerts"),
        ("command:'", "cannot be read"),
    ],
)
def test_a_wrong_destination_is_refused_without_its_secret(text: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said.replace("(", r"\(")) as refused:
        Alerts.load([text], None, {})
    assert str(refused.value).startswith("--alert: ")
    assert "q1w2e3" not in str(refused.value) and "pw@" not in str(refused.value)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ('to = "log"', "`to` must be a list"),
        ("to = [1]", "`to` must be a list"),
        ('too = ["log"]', "there is no setting 'too'; there are to and per_minute"),
        ('to = ["log"]\nper_minute = 0', "per_minute of alerts must be a whole number"),
        ('to = ["mail"]', r"\[alerts\]: an alert goes to"),
    ],
)
def test_a_wrong_table_is_refused_with_its_place(tmp_path: Path, table: str, said: str) -> None:
    file = tmp_path / "dig.toml"
    file.write_text(f"[alerts]\n{table}\n")
    with pytest.raises(SettingsError, match=said) as refused:
        Alerts.load([], file, {})
    assert str(file) in str(refused.value)


async def later(alarm: Alarm) -> None:
    """A coroutine function, which no thread can call."""


@pytest.mark.parametrize("on_alarm", [later, 5, "log", [print, 5]])
def test_what_is_no_destination_is_refused(on_alarm: OnAlarm) -> None:
    with pytest.raises(SettingsError, match="on_alarm"):
        Bus({"a": parrot}, on_alarm=on_alarm)


def test_settings_name_every_kind_of_destination() -> None:
    made = [destination(text, {}) for text in ("log", "teams:https://h/x", "command:true a b")]
    assert [one.name for one in made] == ["log", "webhook h", "command true"]
