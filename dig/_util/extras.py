"""Packages from an extra of dig-monitor: imports, and versions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from dig.errors import SettingsError


def install_line(extra: str) -> str:
    """The command for the install of an extra, from an index or a checkout."""
    return f"pip install 'dig-monitor[{extra}]'"


def version_numbers(text: str) -> tuple[int, ...]:
    """The first three numbers of a version, without a local label; `1.2` is `1.2.0`."""
    return (*map(int, re.findall(r"\d+", text.partition("+")[0])), 0, 0)[:3]


@contextmanager
def importing_extra(extra: str, purpose: str) -> Iterator[None]:
    """Import packages of an extra in the block.

    Args:
        extra: The extra that installs them.
        purpose: What needs them, as the subject of a sentence with the verb `needs`.

    Raises:
        SettingsError: A package is missing; the message says what to install.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "dig":
            raise
        raise SettingsError(
            f"{purpose} needs {package}, which is not installed; try: {install_line(extra)}"
        ) from None
