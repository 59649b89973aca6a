"""The file with a team's settings: a TOML file, or the table `[tool.digmon]` of a pyproject.toml.

Both have the same tables, such as `[thresholds]` and `[policy]`.
"""

from __future__ import annotations

import tomllib
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dig._util.files import read_file
from dig.errors import SettingsError

PROJECT = "pyproject.toml"
TABLES = ("thresholds", "policy", "alerts")


def find_settings(given: Path | None, folder: Path = Path()) -> Path | None:
    """The file with the settings: the given one, else a project file that has some.

    Args:
        given: The file that the user has named, if any.
        folder: The folder of the `pyproject.toml`; one without `[tool.digmon]` has none.

    Raises:
        SettingsError: The project file is not TOML.
    """
    project = folder / PROJECT
    if given is not None or not project.is_file():
        return given
    return project if _in_project(_parsed(project)) is not None else None


def read_table(path: Path, name: str) -> tuple[str, dict[str, Any]]:
    """One table of a file with settings, empty if it has others alone; and its place, in words.

    Args:
        path: The file.
        name: The table's name, one of `TABLES`.

    Raises:
        SettingsError: The file cannot be read, has no settings, or a table has a wrong name.
    """
    given: Any = _parsed(path)
    prefix = ""
    if path.name == PROJECT:
        given, prefix = _in_project(given), "tool.digmon."
        if not isinstance(given, dict):
            raise SettingsError(f"{path} has no table [tool.digmon]; settings stand below that")
    for key in given:
        close = [] if key in TABLES else get_close_matches(key, TABLES, 1, 0.75)
        if close:
            raise SettingsError(f"{path}: [{prefix}{key}] is no table; did you mean {close[0]}?")
    if not any(table in given for table in TABLES):
        tables = " or ".join(f"[{prefix}{table}]" for table in TABLES)
        raise SettingsError(f"{path} has no table {tables}; settings stand below such a line")
    table = given.get(name, {})
    where = f"{path}, [{prefix}{name}]"
    if not isinstance(table, dict):
        raise SettingsError(f"{path} has no table [{prefix}{name}], but {name} = {table!r:.40}")
    return where, table


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_file(path).decode("utf-8"))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from None


def _in_project(given: dict[str, Any]) -> Any:
    tools = given.get("tool")
    return tools.get("digmon") if isinstance(tools, dict) else None
