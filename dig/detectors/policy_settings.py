"""Reads a policy: from the table `[policy]` of a file, from the environment, from a header.

Below `[policy]` stand `heal`, `notices`, and the names of patterns (or `any`), each with an action,
a table, or a list of tables. In the environment `DIG_POLICY_RSP=off` stands for `RSP = "off"`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dig.errors import SettingsError

from .patterns import NAMES
from .policy import ACTIONS, Policy, Rule, unknown_pattern
from .settings_file import read_table

TABLE = "policy"
PREFIX = "DIG_POLICY_"
ANY = "any"
"""Stands for all patterns."""

_SETTINGS = ("heal", "notices", "refuse")
_LISTS = ("notices", "refuse")
_KEYS = tuple(one.name for one in fields(Rule) if one.name != "pattern")
_ONLY_ASK = ("deadline_s", "otherwise")


def load_policy(
    config: Path | None = None,
    environment: Mapping[str, str] = os.environ,
    patterns: Collection[str] = (),
) -> Policy:
    """The policy from wherever it is set; what the environment says of a pattern goes first.

    Args:
        config: A TOML file with a table `[policy]`, or a `pyproject.toml` with
            `[tool.digmon.policy]`; ``None``: there is none.
        environment: Variables; those that begin with `DIG_POLICY_` count.
        patterns: The patterns of detectors besides the standard ones.

    Raises:
        SettingsError: A value or a name is wrong; the message says where, and what to write.
    """
    known = (*NAMES, *patterns)
    given: dict[str, tuple[str, Any]] = {}
    sources = [] if config is None else [_from_file(config)]
    for source in (*sources, _from_environment(environment, known)):
        for where, key, value in source:
            given[key] = where, value
    settings: dict[str, Any] = {"rules": ()}
    for key, (where, value) in given.items():
        if key in _SETTINGS:
            _check_setting(where, key, value)
            settings[key] = value
        else:
            settings["rules"] += tuple(_rules(where, key, value, known))
    return Policy(**settings)


def read_policy(described: Mapping[str, Any]) -> Policy:
    """The policy that `Policy.described` has described.

    Raises:
        SettingsError: The data describe no policy.
    """
    try:
        rules = tuple(Rule(**rule) for rule in described.get("rules", ()))
        return Policy(**{**described, "rules": rules})
    except TypeError as error:
        raise SettingsError(f"this describes no policy: {error}") from None


def _from_file(path: Path) -> Iterator[tuple[str, str, Any]]:
    where, table = read_table(path, TABLE)
    for key, value in table.items():
        yield f"{where}, {key}", key, value


def _from_environment(
    environment: Mapping[str, str], known: Collection[str]
) -> Iterator[tuple[str, str, Any]]:
    names = {name.upper(): name for name in (*known, *_SETTINGS, ANY)}
    for variable, text in sorted(environment.items()):
        if not variable.startswith(PREFIX):
            continue
        where, key = f"environment variable {variable}", variable.removeprefix(PREFIX)
        name = names.get(key)
        if name is None:
            raise SettingsError(unknown_pattern(where, key, (*known, *_SETTINGS, ANY)))
        value: Any = text
        if name in _LISTS:
            value = [part.strip() for part in text.split(",") if part.strip()]
        yield where, name, value


def _check_setting(where: str, key: str, value: Any) -> None:
    try:
        Policy(**{key: value})
    except SettingsError as error:
        raise SettingsError(f"{where}: {error}") from None


def _rules(where: str, key: str, value: Any, known: Collection[str]) -> Iterator[Rule]:
    """The rules of one pattern."""
    if key != ANY and key not in known:
        raise SettingsError(unknown_pattern(where, key, (*known, *_SETTINGS, ANY)))
    pattern = None if key == ANY else key
    several = isinstance(value, list)
    for number, one in enumerate(value if several else [value], 1):
        yield _rule(f"{where}, entry {number}" if several else where, pattern, one)


def _rule(where: str, pattern: str | None, given: Any) -> Rule:
    if isinstance(given, str):
        given = {"action": given}
    if not isinstance(given, dict):
        raise SettingsError(
            f"{where} is {given!r:.60}; write an action ({', '.join(ACTIONS)}), or a table such as "
            '{action = "off", types = ["vote"], reason = "votes are meant to repeat"}'
        )
    for name in given:
        if name not in _KEYS:
            close = get_close_matches(name, _KEYS, 1)
            hint = f"did you mean {close[0]}?" if close else f"known are: {', '.join(_KEYS)}"
            raise SettingsError(f"{where}: there is no key {name!r:.60}; {hint}")
    if "action" not in given:
        raise SettingsError(f"{where} has no action; write action = one of {', '.join(ACTIONS)}")
    idle = [name for name in _ONLY_ASK if name in given and given["action"] != "ask"]
    if idle:
        raise SettingsError(f'{where}: {idle[0]} is for action = "ask" alone; leave it out')
    try:
        return Rule(pattern=pattern, **given)
    except SettingsError as error:
        raise SettingsError(f"{where}: {error}") from None
