"""Usual findings of a team, as a file: `digmon learn` writes, runs and checks read.

The counts hold only for the team and the thresholds that they were learned from, so the file names
both, and a run of another team is refused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dig._util.files import read_json
from dig._util.text import counted, names
from dig.errors import RecordError, SettingsError
from dig.graph.codec import decode
from dig.graph.records import Limits, Run, Usual, base_name

FORMAT = "digmon-usual"
VERSION = 1


@dataclass(frozen=True)
class TeamUsual:
    """The number of findings of each pattern in good runs of a team.

    Attributes:
        agents: The names of the team's agents, sorted; an instance `NAME#2` counts as `NAME`.
        limits: The thresholds of detection that the findings were raised with.
        usual: The counts.
        path: The file that it was read from; ``None``: it was read from none.
    """

    agents: tuple[str, ...]
    limits: Limits
    usual: Usual
    path: Path | None = None

    @classmethod
    def read(cls, path: Path) -> TeamUsual:
        """Read a file of `digmon learn`.

        Raises:
            SettingsError: The file cannot be read, or is not such a file.
        """
        try:
            return replace(cls.from_json(read_json(path)), path=path)
        except RecordError as error:
            raise SettingsError(
                f"{path} is no file of what is usual: {error}; `digmon learn` makes one"
            ) from None

    @classmethod
    def from_json(cls, body: Any) -> TeamUsual:
        """Read the counts from a JSON object of `to_json`.

        Raises:
            RecordError: The object is not one; the message says what is wrong.
        """
        if not isinstance(body, dict) or body.get("format") != FORMAT:
            raise RecordError(f'`format` is not "{FORMAT}"')
        if body.get("version") != VERSION:
            raise RecordError(f"`version` is not {VERSION}, the only one that can be read")
        if body.get("usual") is None:
            raise RecordError("`usual` is missing")
        # These keys mean what they mean in a trace's first record, so that is what reads them.
        row = {key: body[key] for key in ("agents", "limits", "usual") if key in body}
        run = decode({"t": 0, "ts": 0, "kind": "run", "version": 1, "run": "learned", **row})
        assert isinstance(run, Run)
        assert run.usual is not None
        return cls(team_names(run.agents), run.limits, run.usual)

    def to_json(self) -> dict[str, Any]:
        """The content of the file, as plain JSON."""
        counts = {pattern: list(runs) for pattern, runs in sorted(self.usual.counts.items())}
        return {
            "format": FORMAT,
            "version": VERSION,
            "agents": list(self.agents),
            "limits": asdict(self.limits),
            "usual": {"runs": self.usual.runs, "counts": counts},
        }

    def of_team(self, agents: Iterable[str], limits: Limits) -> Usual:
        """Return the counts, for a run of the same team.

        Args:
            agents: The names of the agents of the run.
            limits: The thresholds of the run.

        Raises:
            SettingsError: The counts were learned from another team, or with other thresholds.
        """
        if unlike := self.unlike(agents, limits):
            raise SettingsError(
                f"{self.path or 'what is usual'} was not learned from such runs as this one, which "
                f"has {unlike}: learn from good runs of this team with these thresholds "
                "(`digmon learn`)"
            )
        return self.usual

    def unlike(self, agents: Iterable[str], limits: Limits) -> str:
        """The differences between a run and the team's runs, in words; empty: none.

        Args:
            agents: The names of the agents of the run.
            limits: The thresholds of the run.
        """
        # Another team or another threshold raises other findings, so its counts mean nothing here.
        if (names := team_names(agents)) != self.agents:
            return f"{_of(names)} and not {_of(self.agents)}"
        usual = asdict(self.limits)
        changed = {key: value for key, value in asdict(limits).items() if value != usual[key]}
        return ", ".join(f"{key} {value} and not {usual[key]}" for key, value in changed.items())


def team_names(agents: Iterable[str]) -> tuple[str, ...]:
    """The names of a team's agents, sorted; an instance counts as the agent."""
    return tuple(sorted({base_name(agent) for agent in agents}))


def _of(agents: tuple[str, ...]) -> str:
    return f"{counted(len(agents), 'agent')} ({names(agents)})"
