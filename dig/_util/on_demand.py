"""Names of a package, imported on the first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_on_demand(
    package: str, homes: Mapping[str, str]
) -> tuple[dict[str, str], Callable[[str], Any], Callable[[], list[str]]]:
    """Make the module functions `__getattr__` and `__dir__` of a package.

    Args:
        package: The name of the package.
        homes: By module, relative to the package or not: the names it has, separated by spaces.

    Returns:
        The module of each name, and the two functions.
    """
    namespace = vars(sys.modules[package])
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def get(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = getattr(import_module(home_of[name], package), name)
        return namespace[name]

    return home_of, get, lambda: sorted({*namespace, *home_of})
