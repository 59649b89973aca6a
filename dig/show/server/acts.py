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
from dig.detectors import standard
from dig.detectors.policy import silencing_rule
from dig.detectors.settings_file import PROJECT
from dig.errors import RefusedError, SettingsError, TraceError, file_errors
from dig.show.explain.explainer import as_finding
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
        reason: The reason, in the person's words.
        shown: The rule that the person has seen; ``None``: it is to be shown now.
    """

    t: int
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
        rule = self._rule_text(run, alarm)
        with file_errors(self.settings, "read"):
            before = read_file(self.settings) if self.settings.exists() else b""
        try:
            text = "\n\n".join(filter(None, (before.decode().rstrip(), rule)))
            tomllib.loads(text)
            data = text.encode()
        except (ValueError, RecursionError) as error:  # its pattern has a rule of another form
            raise SettingsError(f"{self.settings}: it cannot be added here ({error})") from None
        if alarm.shown == rule:
            with file_errors(self.settings, "written"):
                write_output(self.settings, data)
        return {"rule": rule, "file": str(self.settings), "is_written": alarm.shown == rule}

    def _rule_text(self, run: Path, alarm: FalseAlarm) -> str:
        """The rule for findings like one, as the end of a file with settings."""
        recorded = RecordedRun.read(run, detectors=standard())
        findings = [*map(as_finding, recorded.findings), *recorded.found]
        finding = next((finding for finding in findings if finding.t == alarm.t), None)
        if finding is None:
            raise SettingsError(f"record {alarm.t} is no finding")
        rule = silencing_rule(recorded.graph, finding, alarm.reason).to_json()
        prefix = "tool.digmon." if self.settings.name == PROJECT else ""
        lines = [f"[[{prefix}policy.{json.dumps(rule.pop('pattern'), ensure_ascii=False)}]]"]
        # JSON and TOML write such texts and lists alike.
        lines += [f"{key} = {json.dumps(rule[key], ensure_ascii=False)}" for key in rule]
        return "\n".join([*lines, ""])


def _parse(act: type[_Act], body: bytes) -> _Act:
    try:
        return act.model_validate_json(body)
    except ValidationError as error:
        place, problem = first_wrong(error)
        reason = one_line(": ".join(filter(None, (place, problem))))
        raise RefusedError(HTTPStatus.BAD_REQUEST, reason) from None
