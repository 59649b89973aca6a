"""The file with a team's settings: a TOML file, or the table `[tool.digmon]` of a pyproject.toml.

Both have the same tables, such as `[thresholds]` and `[policy]`.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from dig._util.files import read_file
from dig._util.text import nearest
from dig.errors import SettingsError, file_errors

PROJECT = "pyproject.toml"
TABLES = ("thresholds", "policy", "budget", "alerts")


def find_settings(path: Path | None, folder: Path = Path()) -> Path | None:
    """Find the file with the settings: the user's, else a project file.

    Args:
        path: The file that the user named; ``None``: no file was named.
        folder: The folder of the `pyproject.toml`; one without `[tool.digmon]` does not count.

    Raises:
        SettingsError: The project file is not TOML.
    """
    project = folder / PROJECT
    if path is not None or not project.is_file():
        return path
    return project if _project_tables(parse_toml(project)) is not None else None


def read_table(path: Path | None, name: str, text: str | None = None) -> tuple[str, dict[str, Any]]:
    """Read a table of a file with settings.

    Args:
        path: The file; ``None``: there is none, and the table is empty.
        name: The table's name, one of `TABLES`.
        text: What the file would contain; ``None``: what it contains.

    Returns:
        The place of the table in words, for errors; and the table, empty if the file has only
        other tables.

    Raises:
        SettingsError: The file cannot be read, has no settings, or a table has a wrong name.
    """
    if path is None:
        return "", {}
    tables: Any = parse_toml(path, text)
    prefix = ""
    if path.name == PROJECT:
        tables, prefix = _project_tables(tables), "tool.digmon."
        if not isinstance(tables, dict):
            raise SettingsError(f"{path} has no table [tool.digmon]; settings stand below that")
    # A file may have tables of other programs, so only a name close to ours is refused.
    for key in tables.keys() - {*TABLES}:
        if close := nearest(key, TABLES, 0.75):
            raise SettingsError(f"{path}: [{prefix}{key}] is no table; did you mean {close}?")
    if tables.keys().isdisjoint(TABLES):
        headings = " or ".join(f"[{prefix}{table}]" for table in TABLES)
        raise SettingsError(f"{path} has no table {headings}; settings stand below such a line")
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise SettingsError(f"{path} has no table [{prefix}{name}], but {name} = {table!r:.40}")
    return f"{path}, [{prefix}{name}]", table


def parse_toml(path: Path, text: str | None = None) -> dict[str, Any]:
    """Parse a TOML file, or a text that it would contain.

    Raises:
        SettingsError: The file cannot be read, or is not TOML.
    """
    try:
        with file_errors(path, "read"):
            return tomllib.loads(read_file(path).decode("utf-8") if text is None else text)
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from None


def _project_tables(project: dict[str, Any]) -> Any:
    tools = project.get("tool")
    return tools.get("digmon") if isinstance(tools, dict) else None
