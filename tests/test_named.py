"""No page names a command, an option or a variable that is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from dig.cli import app

ROOT = Path(__file__).parent.parent
PAGES = [
    *(
        ROOT / name
        for name in ("README.md", "AGENTS.md", "CONTRIBUTING.md", "llms.txt", "Makefile")
    ),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "examples").rglob("*.py")),
]
CALL = re.compile(r"\b(?:digmon|-m dig|dig-monitor) ([a-z][a-z-]*)((?: (?!digmon )[^\s`|;&#]+)*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


@cache
def options_of() -> dict[str, set[str]]:
    """The options of each command, by its one or two words."""
    options: dict[str, set[str]] = {}
    waiting: list[tuple[str, Any]] = [*typer.main.get_command(app).commands.items()]  # type: ignore[attr-defined]
    while waiting:
        name, command = waiting.pop()
        named = (opt for it in command.params for opt in (*it.opts, *it.secondary_opts))
        options[name] = {"--help", *named}
        waiting += [(f"{name} {word}", it) for word, it in getattr(command, "commands", {}).items()]
    return options


def calls(text: str) -> Iterator[tuple[str, set[str]]]:
    """Each command that a text calls, with the options that stand behind it."""
    known = options_of()
    for word, rest in CALL.findall(re.sub(r"\\\n *", "", text)):
        two = f"{word} {rest.split()[0]}" if rest.split() else word
        command = two if two in known else word
        yield command, {*OPTION.findall(rest)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_only_commands_and_options_that_are_there(page: Path) -> None:
    if not page.exists():
        pytest.skip("an installed package has no docs")
    blocks = re.findall(r"`digmon [^`]+`|^(?: {4,}|\t@?|\$ )?\S*(?:digmon|-m dig) .*$",
                        re.sub(r"\\\n *", "", page.read_text()), re.MULTILINE)  # fmt: skip
    known = options_of()
    for command, options in calls("\n".join(blocks)):
        assert command in known, f"there is no digmon {command}"
        assert options <= known[command], (command, options - known[command])


def test_a_command_or_an_option_that_is_not_there_is_seen() -> None:
    assert [*calls("digmon runs prune X --keep-days 3")] == [("runs prune", {"--keep-days"})]
    assert [*calls("    digmon chekc FILE --foo")] == [("chekc", {"--foo"})]
