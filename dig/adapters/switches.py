"""Switches in the environment, for a service without time for a change of code.

`DIG_OFF=1` wraps nothing, `DIG_MODE=observe` heals nothing. A team whose gates, approvals or budget
would be lost so refuses to start, unless `DIG_OFF=unsafe` says that this is meant.
"""

from __future__ import annotations

import os
from functools import cache

from dig.errors import SettingsError
from dig.runtime.setup import Setup

from .base import Mode
from .base.guard import logger

OFF, MODE = "DIG_OFF", "DIG_MODE"


def read_off() -> str:
    """Read `DIG_OFF`.

    Raises:
        SettingsError: The variable has no known value.
    """
    value = os.environ.get(OFF, "")
    value = {"0": "", "false": "", "true": "1"}.get(value, value)
    if value not in ("", "1", "unsafe"):
        raise SettingsError(f"{OFF}={value!r:.60} is unknown; 1 wraps no team, 0 wraps all")
    return value


def read_mode() -> str:
    """Read `DIG_MODE`.

    Raises:
        SettingsError: The variable has no known value.
    """
    value = os.environ.get(MODE, "")
    if value not in ("", "observe"):
        raise SettingsError(f"{MODE}={value!r:.60} is unknown; the only value is observe")
    return value


def is_switched_off(setup: Setup) -> bool:
    """Whether wrapping is switched off by the environment.

    Raises:
        SettingsError: The variable has no known value, or the setup has guards that would be lost.
    """
    value = read_off()
    if not value:
        return False
    if value == "1":
        _refuse_guards(setup, f"{OFF}=1")
    _warn_once(f"{OFF}={value}: teams run without a monitor")
    return True


def switch_mode(mode: Mode, setup: Setup) -> Mode:
    """Get the mode of the environment, or else the given mode.

    Raises:
        SettingsError: The variable has no known value, or the setup has guards that would be lost.
    """
    if not read_mode():
        return mode
    _refuse_guards(setup, f"{MODE}=observe")
    _warn_once(f"{MODE}=observe: teams are observed, and not healed")
    return "observe"


def _refuse_guards(setup: Setup, switch: str) -> None:
    guards = {"gates": setup.gates, "approvals": setup.approve, "a budget": setup.policy.budget}
    if losses := [name for name, guard in guards.items() if guard]:
        raise SettingsError(
            f"{switch}: this team has {' and '.join(losses)}, which would be lost; "
            f"{OFF}=unsafe runs it without"
        )


@cache
def _warn_once(text: str) -> None:
    logger.warning("dig: %s", text)
