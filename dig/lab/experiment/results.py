"""The results of an experiment: one row per run, one line of JSON per row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from dig._util.files import open_file
from dig._util.json_text import parse
from dig._util.text import first_wrong, one_line
from dig.detectors.finding import Severity
from dig.detectors.notes import PREFIX
from dig.detectors.patterns import PATTERNS
from dig.errors import RecordError, SettingsError, file_errors

MOST = 10**15
"""The largest number allowed: a sum of such numbers stays a number."""
Count = Annotated[int, Field(ge=0, le=MOST)]
Amount = Annotated[float, Field(ge=-1e300, le=1e300)]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A measured run.

    Attributes:
        run: The name of its configuration, from which all else follows in virtual time.
        task: Its task; size: how large the problem is; level: what that is called.
        agents: The number of agents; agents_are: what they are; data_are: what their data are.
        method: The method against failures; seed: of everything that is random.
        clock: `virtual`, or how fast real time went.
        outcome: The outcome of the run; reason: in words.
        valid: Whether the run ended with an answer of the right shape; rmse: that answer's error.
        complete: Whether the answer is valid and, as far as its score says, about all of the
            problem; ``None``: an old row does not say.
        seconds: The duration of the run, on its clock.
        calls: The number of activations of its agents; judge_calls: of its judge.
        usage: The use of the calls, summed: tokens, for instance.
        findings: The findings of its detectors and its judge, counted by pattern.
        worth: The findings of its detectors, counted by severity; those that a policy silences as
            `silenced`.
        heals: The number of interventions, by action.
        notes: The number of notes that its agents were shown; ``None``: an old row does not say.
        failures: The number of activations that failed.
        records: The number of records of its trace.
    """

    run: str
    task: str
    size: Count
    level: str
    agents: Count
    agents_are: str
    data_are: str
    method: str
    seed: int
    clock: str
    outcome: str
    reason: str
    valid: bool
    rmse: Amount | None
    complete: bool | None = None
    seconds: Amount
    calls: Count
    judge_calls: Count = 0
    usage: Mapping[str, Amount] = field(default_factory=dict)
    findings: Mapping[str, Count] = field(default_factory=dict)
    worth: Mapping[str, Count] = field(default_factory=dict)
    heals: Mapping[str, Count] = field(default_factory=dict)
    notes: Count | None = None
    failures: Count = 0
    records: Count = 0

    @property
    def alarms(self) -> int:
        """The number of errors and warnings from the detectors."""
        return self.count("error") + self.count("warning")

    def count(self, severity: Severity) -> int:
        """The number of the detectors' findings of a severity."""
        if self.worth:
            return self.worth.get(severity, 0)
        # An old row does not say; then each finding is worth what its pattern is in general.
        return sum(
            self.findings.get(pattern.name, 0)
            for pattern in PATTERNS
            if pattern.severity == severity
        )

    @property
    def judged(self) -> int:
        """The number of the judge's findings."""
        return sum(n for pattern, n in self.findings.items() if pattern.startswith(PREFIX))

    def line(self) -> str:
        """The row as a line of JSON."""
        return json.dumps(asdict(self), sort_keys=True) + "\n"


_ROW = TypeAdapter(Row)


def read_rows(path: Path) -> list[Row]:
    """Read the rows of a file; a missing file has no rows, a torn last line is no row.

    Raises:
        SettingsError: A line is no row; the message says which.
    """
    try:
        with open_file(path) as file:
            text = file.read().decode("utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {one_line(error)}") from None
    # A crash may tear the last line; its run is made again.
    complete = text[: text.rfind("\n") + 1]
    return [_row(path, n, line) for n, line in enumerate(complete.splitlines(), 1)]


def _row(path: Path, number: int, line: str) -> Row:
    try:
        parse(line)  # what is stricter than pydantic: no key twice, bounded depth
        return _ROW.validate_json(line, strict=True)
    except ValidationError as error:
        place, reason = first_wrong(error)
        reason = f"{place or 'the line'}: {reason}"
    except (json.JSONDecodeError, RecordError) as error:
        reason = str(error)
    raise SettingsError(
        f"{path}, line {number} is no result of a run ({one_line(reason)}); "
        "take it out, and the run is made again"
    )


def append_rows(path: Path, rows: Iterable[Row]) -> None:
    """Add rows to a file, in place of a torn last line.

    Raises:
        SettingsError: The file cannot be written.
    """
    with file_errors(path, "written"), path.open("a+b") as file:
        file.seek(0)
        # A torn line would swallow the first new one.
        file.truncate(file.read().rfind(b"\n") + 1)
        file.write("".join(row.line() for row in rows).encode())
