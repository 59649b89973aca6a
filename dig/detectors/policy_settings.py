"""Read a policy from the table `[policy]` of a file, from the environment, or from a header.

Below `[policy]` stand `heal`, `notices`, `refuse`, and the names of patterns (or `any`), each with
an action, a table, or a list of tables. In the environment `DIG_POLICY_RSP=off` stands for
`RSP = "off"`. A table `[budget]` beside it has the limits of the team's spending.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from dig._util.text import did_you_mean
from dig.errors import SettingsError

from .patterns import NAMES
from .policy import ACTIONS, Policy, Rule
from .settings_file import read_table
from .spending_limits import TeamBudget

TABLE = "policy"
PREFIX = "DIG_POLICY_"
BUDGET = "budget"
ANY = "any"
"""Stands for all patterns."""

_LISTS = ("notices", "refuse")
_SETTINGS = ("heal", *_LISTS)
_KEYS = tuple(field.name for field in fields(Rule) if field.name != "pattern")
_ONLY_ASK = ("deadline_s", "otherwise")

_Made = TypeVar("_Made", Policy, Rule, TeamBudget)


def load_policy(
    config: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    patterns: Collection[str] = (),
    text: str | None = None,
) -> Policy:
    """Load the policy from file and environment; the environment replaces a pattern's rules.

    Args:
        config: A TOML file with a table `[policy]`, or a `pyproject.toml` with
            `[tool.digmon.policy]`; ``None``: there is none.
        environment: Variables; those that begin with `DIG_POLICY_` count.
        patterns: The patterns of detectors besides the standard ones.
        text: What the file would contain; ``None``: what it contains.

    Raises:
        SettingsError: A value or a name is wrong; the message says where, and what to write.
    """
    names = (*NAMES, *patterns, *_SETTINGS, ANY)
    heading, table = read_table(config, TABLE, text)
    entries = {name: (f"{heading}, {name}", value) for name, value in table.items()}
    # By name, so a variable replaces all rules of the file for its pattern.
    entries |= _from_environment(environment, names)
    policy = Policy()
    for name, (place, value) in entries.items():
        if name not in names:
            hint = did_you_mean(name, names)
            raise SettingsError(f"{place}: there is no pattern {name!r:.60}; {hint}")
        if name in _SETTINGS:
            policy = _make(place, replace, policy, **{name: value})
        else:
            rules = _rules(place, None if name == ANY else name, value)
            policy = replace(policy, rules=(*policy.rules, *rules))
    place, table = read_table(config, BUDGET, text)
    return replace(policy, budget=_make(place, TeamBudget.of, table)) if table else policy


def read_policy(described: Mapping[str, Any]) -> Policy:
    """Read a policy from JSON, as `Policy.to_json` makes it.

    Raises:
        SettingsError: The data describe no policy.
    """
    try:
        rules = tuple(Rule(**rule) for rule in described.get("rules", ()))
        return Policy(**{**described, "rules": rules})
    except TypeError as error:
        raise SettingsError(f"this describes no policy: {error}") from None


def _from_environment(
    environment: Mapping[str, str], names: Collection[str]
) -> dict[str, tuple[str, Any]]:
    by_variable = {PREFIX + name.upper(): name for name in names}
    entries: dict[str, tuple[str, Any]] = {}
    for variable, text in sorted(environment.items()):
        if variable.startswith(PREFIX):
            name = by_variable.get(variable, variable.removeprefix(PREFIX))
            parts = [part.strip() for part in text.split(",") if part.strip()]
            value = parts if name in _LISTS else text
            entries[name] = f"environment variable {variable}", value
    return entries


def _rules(place: str, pattern: str | None, value: Any) -> Iterator[Rule]:
    """Make the rules of a pattern, from an action, a table, or a list."""
    if not isinstance(value, list):
        yield _rule(place, pattern, value)
        return
    for number, entry in enumerate(value, 1):
        yield _rule(f"{place}, entry {number}", pattern, entry)


def _rule(place: str, pattern: str | None, entry: Any) -> Rule:
    table = {"action": entry} if isinstance(entry, str) else entry
    if not isinstance(table, dict):
        raise SettingsError(
            f"{place} is {entry!r:.60}; write an action ({', '.join(ACTIONS)}), or a table such as "
            '{action = "off", types = ["vote"], reason = "votes are meant to repeat"}'
        )
    for key in table:
        if key not in _KEYS:
            raise SettingsError(f"{place}: there is no key {key!r:.60}; {did_you_mean(key, _KEYS)}")
        if key in _ONLY_ASK and table.get("action") != "ask":
            raise SettingsError(f'{place}: {key} is for action = "ask" alone; leave it out')
    if "action" not in table:
        raise SettingsError(f"{place} has no action; write action = one of {', '.join(ACTIONS)}")
    return _make(place, Rule, pattern=pattern, **table)


def _make(place: str, make: Callable[..., _Made], *parts: Any, **values: Any) -> _Made:
    """Make a policy, a rule or a budget; an error begins with the place of the setting."""
    try:
        return make(*parts, **values)
    except SettingsError as error:
        raise SettingsError(f"{place}: {error}") from None
