"""Detectors and healers of a user's own, found by name.

A package makes its detectors known by entry points of the group `dig.detectors`, and healers by
the group `dig.healers`, where an entry point's name is the pattern that it heals:

    [project.entry-points."dig.detectors"]
    silent = "my_package.silent:Silent"

Each is a class, or a function, that makes a fresh one without arguments.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from importlib.metadata import EntryPoint, distributions
from typing import Any

from dig.errors import SettingsError

from .protocols import Component, Detector, Healer, check

DETECTORS = "dig.detectors"
HEALERS = "dig.healers"


def list_installed() -> tuple[str, ...]:
    """List the detectors of installed packages as `module:object`, by name."""
    return tuple(entry.value for entry in list_entries(DETECTORS))


def detectors(named: Iterable[str]) -> list[Detector]:
    """A fresh detector for each `module:object`.

    Raises:
        SettingsError: One cannot be had; the message says which, and why.
    """
    return [_load(EntryPoint(name, name, DETECTORS), Detector) for name in named]


def healers() -> dict[str, Healer]:
    """Make the healers of installed packages, by pattern.

    Raises:
        SettingsError: One cannot be had; the message says which, and why.
    """
    return {entry.name: _load(entry, Healer) for entry in list_entries(HEALERS)}


def list_entries(group: str) -> list[EntryPoint]:
    """List the entry points of a group in installed packages, by name.

    A module of the current directory can be named, so that may be on the path. Metadata of packages
    that lie there are none of the user's: the directory may be somebody else's.
    """
    path = tuple(folder for folder in sys.path if folder not in ("", os.getcwd()))
    return sorted(e for e in _entries_on(path) if e.group == group)


# Each run and each fork asks for its healers, and reading all metadata takes 30 ms.
@cache
def _entries_on(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    # The first package of a name on the path hides the others, as in an import.
    packages = {
        package.name: package for package in reversed([*distributions(path=[*path])])
    }.values()
    return tuple(entry for package in packages for entry in package.entry_points)


def _load(entry: EntryPoint, base: type[Component]) -> Any:
    try:
        make: Callable[[], Any] = entry.load()
        component = make()
    except (Exception, SystemExit) as error:  # whatever a user's module raises on import
        raise SettingsError(
            f"{entry.value!r} cannot be had: {error!r}; name it as module:object, "
            "something that makes a fresh one without arguments"
        ) from None
    check(component, base)
    return component
