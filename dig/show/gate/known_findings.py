"""Known findings: a file of kinds of findings without ids, for later runs.

    {"version": 1, "known": [
      {"pattern": "ET", "stage": null, "agents": ["ada"], "types": ["problem", "solution"]}]}

A finding is known if an entry of its pattern and stage names all agents and all types of events
that the finding concerns. So an entry fits a finding that concerns fewer of them, and no other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from dig._util.files import read_file
from dig._util.text import first_wrong
from dig.detectors.finding import FindingKind
from dig.errors import SettingsError
from dig.traces.journal.durable_files import journal_errors, write_output


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid")

    pattern: str
    stage: str | None = None
    agents: list[str]
    types: list[str]


class _File(BaseModel):
    version: Literal[1]
    known: list[_Entry]


@dataclass
class KnownFindings:
    """Known kinds of findings.

    Attributes:
        known: The kinds.
        used: Those of them that a finding had, so far.
    """

    known: tuple[FindingKind, ...]
    used: set[FindingKind] = field(default_factory=set)

    def has(self, kind: FindingKind) -> bool:
        """Whether findings of a kind are known."""
        entries = [entry for entry in self.known if entry.has(kind)]
        self.used.update(entries)
        return bool(entries)

    @classmethod
    def read(cls, path: Path) -> KnownFindings:
        """Read a file of known findings.

        Raises:
            SettingsError: The file cannot be read, or is no such file.
        """
        cure = "`digmon check RUNS --write-baseline FILE` makes such a file"
        try:
            body = _File.model_validate(json.loads(read_file(path)))
        except OSError as error:
            raise SettingsError(f"{path} cannot be read: {error.strerror or error}") from None
        except ValidationError as error:
            place, problem = first_wrong(error)
            at = f" at {place}" if place else ""
            raise SettingsError(f"{path} is no baseline{at}: {problem}; {cure}") from None
        except (ValueError, RecursionError) as error:
            raise SettingsError(f"{path} is not JSON: {error}; {cure}") from None
        kinds = [(e.pattern, e.stage, tuple(e.agents), tuple(e.types)) for e in body.known]
        return cls(tuple(FindingKind(*kind) for kind in kinds))


def write_baseline(path: Path, kinds: Iterable[FindingKind]) -> int:
    """Write a file of known findings; returns the number of entries.

    Args:
        path: The file; an old one is replaced.
        kinds: The kinds; one that another names already is left out.

    Raises:
        JournalError: The file cannot be written.
    """
    known: list[FindingKind] = []
    # A kind that names more comes first, so a kind that it covers is never taken before.
    for kind in sorted(set(kinds), key=lambda kind: -len(kind.agents) - len(kind.types)):
        if not any(wider.has(kind) for wider in known):
            known.append(kind)
    rows = [json.dumps(kind._asdict()) for kind in sorted(known, key=json.dumps)]
    body = ",\n  ".join(rows)
    text = (
        f'{{"version": 1, "known": [\n  {body}\n]}}\n' if rows else '{"version": 1, "known": []}\n'
    )
    with journal_errors("write", path):
        write_output(path, text.encode())
    return len(known)
