"""Destinations of alarms: the logger `dig`, a webhook, a command, or a function.

A destination may take its time and may raise; `dig.runtime.alerts` calls it on a thread of its own.
No message shows the address of a webhook, but for its host, or the arguments of a command.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Protocol, cast
from urllib.parse import urlsplit

from dig._util.redaction import masking_logger
from dig._util.text import counted, one_line
from dig.detectors.describe import finding_heading, finding_line
from dig.detectors.finding import Finding
from dig.detectors.notes import harmless
from dig.errors import SettingsError

if TYPE_CHECKING:
    from subprocess import Popen
    from urllib.request import OpenerDirector

logger = masking_logger("dig")

SEND_S = 10.0
"""Seconds that a webhook may take to answer, and a command to end."""

MOST_TEXT = 1_000


@dataclass(frozen=True)
class Alarm:
    """A finding for a person's attention, with the run's name and a headline.

    Attributes:
        run: The name of the run's configuration.
        finding: The finding; its `t` is that of its record in the trace.
        missed: The number of alarms before this one that were not sent to this destination.
        headline: The sentence about what failed, if the finding is a failed request, an answer that
            lacks an agent's work, or a round (LIVELOCK, with the ring); else empty.
    """

    run: str
    finding: Finding
    missed: int = 0
    headline: str = ""

    @property
    def text(self) -> str:
        """The alarm in one line."""
        missed = f" ({counted(self.missed, 'alarm')} before it not sent)" if self.missed else ""
        text = finding_line(self.finding)
        if self.headline:
            text = f"{self.headline} ({finding_heading(self.finding)})"
        return one_line(f"{text} [run {one_line(self.run, 80)}]{missed}", MOST_TEXT)

    def to_json(self) -> dict[str, Any]:
        """The alarm as plain JSON: the finding's row, the run, the count and the text."""
        return {
            "text": harmless(self.text),
            "run": self.run,
            "missed": self.missed,
            **self.finding.row(),
        }


class Destination(Protocol):
    """Sends alarms; used by a single thread at a time.

    Attributes:
        name: The name of the destination in messages; it contains no secret.
        secrets: The texts that are masked in messages about its failures.
    """

    name: str
    secrets: tuple[str, ...]

    def send(self, alarm: Alarm) -> None:
        """Send an alarm; may take time, and raise."""
        ...

    def cancel(self) -> None:
        """Give up the current alarm, if possible; called by another thread."""
        ...


class _Base:
    """A destination with nothing to hide and nothing to give up."""

    secrets: tuple[str, ...] = ()

    def cancel(self) -> None:
        """Do nothing."""


class LogAlerts(_Base):
    """Writes alarms to the logger `dig`: errors as errors, warnings as warnings."""

    name = "log"

    def send(self, alarm: Alarm) -> None:
        """Log the text of an alarm."""
        level = logging.ERROR if alarm.finding.severity == "error" else logging.WARNING
        logger.log(level, "dig: %s", alarm.text)


class CallAlerts(_Base):
    """Calls a function with each alarm."""

    def __init__(self, function: Callable[[Alarm], object]) -> None:
        """Call this function.

        Raises:
            SettingsError: The object is not callable, or a coroutine function.
        """
        if not callable(function):
            raise SettingsError(
                f"on_alarm={function!r:.60} is no function, no Alerts and no destination; "
                "give a function that takes an Alarm"
            )
        self.name = str(getattr(function, "__qualname__", type(function).__name__))
        if iscoroutinefunction(function):
            raise SettingsError(
                f"on_alarm: {self.name} is a coroutine function; give a plain one, it is called "
                "on a thread of its own and may take its time"
            )
        self._function = function

    @classmethod
    def of(cls, target: Any) -> Destination:
        """Return a destination unchanged, and wrap a function; raises as `CallAlerts` does."""
        is_destination = hasattr(target, "send") and hasattr(target, "cancel")
        return cast("Destination", target) if is_destination else cls(target)

    def send(self, alarm: Alarm) -> None:
        """Call the function."""
        self._function(alarm)


Template = Callable[[Alarm], Any]
"""Makes the JSON that a webhook is sent of an alarm."""


def slack(alarm: Alarm) -> dict[str, Any]:
    """The alarm as JSON for an incoming webhook of Slack."""
    return {"text": harmless(alarm.text)}


def teams(alarm: Alarm) -> dict[str, Any]:
    """The alarm as a message with an adaptive card for a workflow of Microsoft Teams."""
    colour = "Attention" if alarm.finding.severity == "error" else "Warning"
    title = {"type": "TextBlock", "weight": "Bolder", "color": colour, "wrap": True}
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.2",
        "body": [
            {**title, "text": f"{alarm.finding.severity} {harmless(alarm.finding.pattern)}"},
            {"type": "TextBlock", "wrap": True, "text": harmless(alarm.text)},
        ],
    }
    kind = "application/vnd.microsoft.card.adaptive"
    attachment = {"contentType": kind, "contentUrl": None, "content": card}
    return {"type": "message", "attachments": [attachment]}


TEMPLATES: Mapping[str, Template] = {"json": Alarm.to_json, "slack": slack, "teams": teams}
_HOSTS = {
    "hooks.slack.com": "slack", "webhook.office.com": "teams", "logic.azure.com": "teams",
    "powerplatform.com": "teams",
}  # fmt: skip


class WebhookAlerts(_Base):
    """Posts alarms as JSON to an address; redirects are not followed."""

    def __init__(
        self, url: str, template: str | Template | None = None, timeout_s: float = SEND_S
    ) -> None:
        """Post to this address.

        Args:
            url: The address, with http or https; it is shown nowhere but for its host.
            template: `json`, `slack`, `teams` or a function that makes the JSON of an `Alarm`;
                ``None``: as its host takes it.
            timeout_s: Seconds that the server may take for each step of an answer.

        Raises:
            SettingsError: The address or the template is none.
        """
        try:
            parts = urlsplit(url)
            host, is_plain = parts.hostname or "", parts.username is None
            _ = parts.port  # raises, if it is no number
        except ValueError:
            parts, host, is_plain = urlsplit(""), "", True
        is_plain = is_plain and url.isascii() and url.isprintable() and " " not in url
        if parts.scheme not in ("http", "https") or not host or not is_plain:
            raise SettingsError(
                "the address of a webhook must begin with http:// or https:// and a host, without "
                "blanks, a user or a password; the one that was given does not (it is not shown, "
                "because it may be a secret)"
            )
        self.name = f"webhook {one_line(host, 60)}"
        self.secrets = tuple({url, parts.path + ("?" + parts.query if parts.query else "")} - {"/"})
        if template is None:
            names = (name for end, name in _HOSTS.items() if f".{host}".endswith(f".{end}"))
            template = next(names, "json")
        if isinstance(template, str):
            if template not in TEMPLATES:
                known_names = ", ".join(TEMPLATES)
                raise SettingsError(f"there is no template {template!r}; known are {known_names}")
            template = TEMPLATES[template]
        self._url, self._template, self._timeout_s = url, template, timeout_s

    def send(self, alarm: Alarm) -> None:
        """Post an alarm; raises for an answer without success."""
        from urllib.error import HTTPError
        from urllib.request import Request

        body = json.dumps(self._template(alarm), default=str).encode()
        headers = {"Content-Type": "application/json", "User-Agent": "digmon"}
        request = Request(self._url, body, headers, method="POST")
        try:
            _opener().open(request, timeout=self._timeout_s).close()
        except HTTPError as error:  # its text may repeat what the server says
            error.close()
            raise ConnectionError(f"the server answered with status {error.code}") from None


@cache
def _opener() -> OpenerDirector:
    from urllib.request import HTTPRedirectHandler, build_opener

    # A redirect could take an alarm, and the secret in the address, to another host.
    class NoRedirect(HTTPRedirectHandler):
        def redirect_request(self, *args: Any) -> None:
            return None

    return build_opener(NoRedirect)


class CommandAlerts(_Base):
    """Runs a command for each alarm, with the alarm as JSON on standard input; no shell."""

    def __init__(self, command: str | Sequence[str], timeout_s: float = SEND_S) -> None:
        """Run this command.

        Args:
            command: The command with its arguments; a text is split as a shell would.
            timeout_s: Seconds after which it is killed, with what it has started.

        Raises:
            SettingsError: There is no such command.
        """
        try:
            self._command = shlex.split(command) if isinstance(command, str) else list(command)
        except ValueError as error:
            raise SettingsError(f"the command of an alert cannot be read: {error}") from None
        program = self._command[0] if self._command else ""
        if shutil.which(program) is None:
            raise SettingsError(f"there is no command {one_line(program, 60)!r} for alerts")
        self.name = f"command {one_line(os.path.basename(program), 60)}"
        self._timeout_s = timeout_s
        self._process: Popen[bytes] | None = None
        self._is_cancelled = False

    def send(self, alarm: Alarm) -> None:
        """Run the command and wait for the end; raises for any status but 0."""
        from subprocess import DEVNULL, PIPE, Popen, TimeoutExpired

        shown = json.dumps(alarm.to_json(), default=str).encode()
        # A session of its own: `cancel` kills the command with all that it has started.
        with Popen(
            self._command, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True
        ) as process:
            self._process = process
            if self._is_cancelled:  # before the command began, when there was nothing to kill
                self.cancel()
            try:
                process.communicate(shown, timeout=self._timeout_s)
            except TimeoutExpired:
                self.cancel()
                raise TimeoutError(
                    f"it did not end within {self._timeout_s:g} s and was killed"
                ) from None
            finally:
                self._process, self._is_cancelled = None, False
        if process.returncode:
            raise ChildProcessError(f"it ended with status {process.returncode}")

    def uncancel(self) -> None:
        """Forget a `cancel` that was meant for an alarm before."""
        self._is_cancelled = False

    def cancel(self) -> None:
        """Kill the running command and all processes of its group."""
        self._is_cancelled, process = True, self._process
        if process is None or process.poll() is not None:
            return
        with suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()


def destination(text: str, environment: Mapping[str, str] = os.environ) -> Destination:
    """Read a destination from settings.

    Args:
        text: `log`, `webhook:URL`, `slack:URL`, `teams:URL` or `command:CMD`. Instead of a URL,
            `env:NAME` names the environment variable that has it.
        environment: The variables.

    Raises:
        SettingsError: The text is no destination; the message does not repeat it, since it may have
            a secret.
    """
    kind, _, target = text.strip().partition(":")
    if kind == "log" and not target:
        return LogAlerts()
    if kind == "command" and target:
        return CommandAlerts(target)
    if kind in ("webhook", "slack", "teams") and target:
        if target.startswith("env:"):
            name = target.removeprefix("env:")
            if not environment.get(name):
                raise SettingsError(f"the environment variable {name!r:.60} is not set")
            target = environment[name]
        return WebhookAlerts(target, None if kind == "webhook" else kind)
    raise SettingsError(
        "an alert goes to log, webhook:URL, slack:URL, teams:URL or command:CMD (a URL may be "
        "env:NAME, a variable); something else was given"
    )
