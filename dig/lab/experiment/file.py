"""A grid of the user's own, from a TOML file.

    agents = [3, 6]
    methods = ["mas", "dig"]
    seeds = 20                        # or a list of them

    [[tasks]]
    task = "count-frequency"          # or an entry point's, or module:object
    sizes = [1000, 5000]
    agents_are = "simulated"          # or module:object

    [thresholds]
    mc_window_s = 10.0

All but the tasks have the values of the paper's grid if they are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from dig._util.text import did_you_mean
from dig.detectors.settings_file import parse_toml
from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError
from dig.tasks.run.judging import Judging
from dig.tasks.simulated.profile import Profile

from .grid import SEEDS, WINDOWS, Grid, TaskGrid, on_windows

_TABLES: Mapping[str, type] = {"judge": Judging, "profile": Profile}
_NUMBERS = ("limit_s", "speed", "max_tokens", "max_usd")
_PLAIN = ("agents", "methods", "seeds", "to", *_NUMBERS)
_KNOWN = ("tasks", "thresholds", *_TABLES, *_PLAIN)

MOST_SEEDS = 1_000_000


def read_grid(path: Path) -> Grid:
    """Read a grid from a file.

    Raises:
        SettingsError: The file cannot be read, or a value in it is wrong; the message names it.
    """
    tables = parse_toml(path)
    try:
        return _grid(path, tables)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None
    # The classes of the settings check their values by themselves.
    except (TypeError, ValueError) as error:
        raise SettingsError(f"{path}: a value is of the wrong kind: {error}") from None


def _grid(path: Path, settings: dict[str, Any]) -> Grid:
    _must_be_known(settings, _KNOWN, "")
    plain = {key: settings[key] for key in _PLAIN if key in settings}
    seeds = plain.get("seeds", SEEDS)
    # By type, since TOML's `true` is an int in Python.
    if type(seeds) is int and not 1 <= seeds <= MOST_SEEDS:
        raise SettingsError(f"`seeds` is {seeds}; it goes from 1 to {MOST_SEEDS:,}")
    plain["seeds"] = range(1, seeds + 1) if type(seeds) is int else seeds
    for key in _NUMBERS:
        if type(plain.get(key, 1)) not in (int, float):
            raise SettingsError(f"`{key}` is {plain[key]!r}; it must be a number")
    if not 0 < plain.get("speed", 1) <= 1000:
        raise SettingsError(f"`speed` is {plain['speed']}; a clock goes up to 1000 times as fast")
    if plain.get("to", "one") not in ("one", "all"):
        raise SettingsError("`to` is 'one' or 'all'")
    for key in ("agents", "methods", "seeds"):
        if key in plain:
            kind = str if key == "methods" else int
            plain[key] = _all(plain[key], kind, key)
    tasks = settings.get("tasks")
    if not isinstance(tasks, list) or not tasks:
        raise SettingsError("it names no tasks; each stands below a line [[tasks]]")
    return Grid(
        name=path.stem,
        tasks=tuple(_task(task) for task in tasks),
        thresholds=on_windows(Thresholds.load((), path, {}))
        if "thresholds" in settings
        else WINDOWS,
        **{_ATTRIBUTES[key]: _make(kind, settings, key) for key, kind in _TABLES.items()},
        **plain,
    )


_ATTRIBUTES = {"judge": "judging", "profile": "profile"}


def _task(settings: Any) -> TaskGrid:
    names = [field.name for field in fields(TaskGrid)]
    if not isinstance(settings, dict) or "task" not in settings or "sizes" not in settings:
        raise SettingsError("below [[tasks]] stand `task`, a name, and `sizes`, a list of numbers")
    _must_be_known(settings, names, "below [[tasks]], ")
    if not isinstance(settings.get("options", {}), dict):
        raise SettingsError("below [[tasks]], `options` is a table: {name = value, ...}")
    return TaskGrid(**{**settings, "sizes": _all(settings["sizes"], int, "sizes")})


def _make(kind: type, settings: dict[str, Any], table: str) -> Any:
    values = settings.get(table, {})
    if not isinstance(values, dict):
        raise SettingsError(f"{table} is no table; write [{table}]")
    _must_be_known(values, [field.name for field in fields(kind)], f"in [{table}], ")
    return kind(**values)


def _must_be_known(settings: Mapping[str, Any], names: Any, place: str) -> None:
    for name in settings:
        if name not in names:
            raise SettingsError(f"{place}there is no {name!r}; {did_you_mean(name, names)}")


def _all(values: Any, kind: type, key: str) -> tuple[Any, ...]:
    values = list(values) if isinstance(values, list | range) else None
    if not values or any(type(value) is not kind for value in values):
        name = "names" if kind is str else "whole numbers"
        raise SettingsError(f"`{key}` is a list of {name}")
    return tuple(values)
