"""Acts of a person on the page: a false alarm becomes a rule of the policy, and a run gets a note.

The server writes these two files and no other: the file with settings that `digmon view` was given,
and the note beside the trace. A rule is written only if the person has seen the same text before.
"""

from __future__ import annotations

import json
import tomllib
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dig._util.files import read_file
from dig._util.text import first_wrong, one_line
from dig.detectors import plugins, standard
from dig.detectors.describe import recorded_finding
from dig.detectors.finding import Finding
from dig.detectors.policy import Rule, silencing_rule
from dig.detectors.policy_settings import TABLE, load_policy
from dig.detectors.settings_file import PROJECT
from dig.errors import RefusedError, SettingsError, TraceError, file_errors
from dig.graph.graph import InteractionGraph
from dig.show.runs.summary import MOST_NOTE, note_path
from dig.traces.journal.durable_files import write_file, write_output
from dig.traces.run import RecordedRun

MOST_REASON = 200


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class FalseAlarm(_Request):
    """A finding that a person takes for a false alarm.

    Attributes:
        t: The record of the finding.
        number: Its number among the findings at that record, from 0.
        reason: The reason, in the person's words.
        shown: The rule that the person has seen; ``None``: it is to be shown now.
    """

    t: int
    number: Annotated[int, Field(ge=0)] = 0
    reason: Annotated[str, Field(min_length=1, max_length=MOST_REASON)]
    shown: str | None = None


class Note(_Request):
    """A note on a run; an empty text removes it."""

    text: Annotated[str, Field(max_length=MOST_NOTE)]


_Act = TypeVar("_Act", FalseAlarm, Note)


class Acts:
    """Carries out what a person does on the page.

    Attributes:
        settings: The file with the policy; it is made with the first rule.
    """

    def __init__(self, settings: Path) -> None:
        self.settings = settings.absolute()
        self._lock = Lock()  # of two visitors, neither may lose a rule of the other

    def carry_out(self, run: Path, act: bytes, body: bytes) -> dict[str, Any]:
        """Carry out an act on a run, and return what to show.

        Raises:
            RefusedError: There is no such act, or it is not to be done; the message says why.
        """
        try:
            if act == b"note":
                with self._lock:
                    return self._write_note(run, _parse(Note, body))
            if act == b"false-alarm":
                with self._lock:
                    return self._silence(run, _parse(FalseAlarm, body))
        except (SettingsError, TraceError) as error:
            raise RefusedError(HTTPStatus.CONFLICT, one_line(error, 400)) from None
        raise RefusedError(HTTPStatus.NOT_FOUND, "there is nothing here")

    def _write_note(self, run: Path, note: Note) -> dict[str, Any]:
        path = note_path(run)
        with file_errors(path, "written"):
            if note.text.strip():
                write_file(path, note.text.encode(errors="replace"))
            else:
                path.unlink(missing_ok=True)
        return {"note": note.text.strip()}

    def _silence(self, run: Path, alarm: FalseAlarm) -> dict[str, Any]:
        graph, finding = _find(run, alarm)
        rule = silencing_rule(graph, finding, alarm.reason)
        shown = self._rule_text(rule)
        with file_errors(self.settings, "read"):
            before = read_file(self.settings) if self.settings.exists() else b""
        try:
            text = "\n\n".join(filter(None, (before.decode().rstrip(), shown)))
            data, tables = text.encode(), tomllib.loads(before.decode())
        except (ValueError, RecursionError) as error:
            raise self._refusal(str(error)) from None
        try:
            tomllib.loads(text)
        except (ValueError, RecursionError):
            raise self._refusal(self._clash(tables, rule)) from None
        installed = plugins.detectors(plugins.list_installed())
        patterns = [str(finding.pattern), *(str(detector.pattern) for detector in installed)]
        # Without the environment, since the rule is for all who read the file.
        ruling = load_policy(self.settings, {}, patterns, text).ruling(graph, finding)
        if ruling != rule:  # of equally exact rules the first one decides
            other = f"{ruling.action} ({ruling.reason_text})" if ruling else "no rule"
            raise self._refusal(f"the file has a rule that decides before it: {other}")
        if alarm.shown == shown:
            with file_errors(self.settings, "written"):
                write_output(self.settings, data)
        return {"rule": shown, "file": str(self.settings), "is_written": alarm.shown == shown}

    def _refusal(self, reason: str) -> SettingsError:
        return SettingsError(f"{self.settings}: it cannot be added here: {reason}")

    @property
    def _heading(self) -> tuple[str, ...]:
        return (*(("tool", "digmon") if self.settings.name == PROJECT else ()), TABLE)

    def _clash(self, tables: Any, rule: Rule) -> str:
        """The reason why TOML does not allow a rule at the end of valid settings."""
        for key in self._heading:
            tables = tables.get(key) if isinstance(tables, dict) else None
        if isinstance(tables, dict) and rule.pattern in tables:
            return f"the file has a rule for {rule.pattern} already, in another form"
        return f"the file has {'.'.join(self._heading)} in another form"

    def _rule_text(self, rule: Rule) -> str:
        """A rule as the end of a file with settings."""
        settings = rule.to_json()
        heading = ".".join((*self._heading, _quote(settings.pop("pattern"))))
        lines = [f"{key} = {_quote(setting)}" for key, setting in settings.items()]
        return "\n".join([f"[[{heading}]]", *lines, ""])


def _find(run: Path, alarm: FalseAlarm) -> tuple[InteractionGraph, Finding]:
    """The finding that a person means, and the graph of its run."""
    recorded = RecordedRun.read(run, detectors=standard())
    # The page has the findings of the detectors only if the trace records none.
    findings = [*map(recorded_finding, recorded.findings), *recorded.found]
    at_record = [finding for finding in findings if finding.t == alarm.t]
    if alarm.number >= len(at_record):
        raise SettingsError(f"record {alarm.t} is no finding")
    return recorded.graph, at_record[alarm.number]


def _quote(setting: str | list[str]) -> str:
    """A text or a list of texts in TOML: as in JSON, but for one character."""
    return json.dumps(setting, ensure_ascii=False).replace("\x7f", "\\u007f")


def _parse(act: type[_Act], body: bytes) -> _Act:
    try:
        return act.model_validate_json(body)
    except ValidationError as error:
        place, problem = first_wrong(error)
        reason = one_line(": ".join(filter(None, (place, problem))))
        raise RefusedError(HTTPStatus.BAD_REQUEST, reason) from None
