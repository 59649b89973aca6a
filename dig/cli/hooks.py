"""`digmon hooks`: the monitor live in Claude Code."""

import os
import shlex
import sys
from contextlib import suppress
from difflib import unified_diff
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dig._util.text import safe_text
from dig.errors import SettingsError

from .app import INTERRUPTED, app, warn

Action = StrEnum("Action", ["install", "remove", "show", "watch"])


@app.command()
def hooks(
    action: Annotated[Action, typer.Argument(help="`watch` listens to what was installed.")],
    user: Annotated[bool, typer.Option("--user", help="For all projects of yours.")] = False,
    hold: Annotated[bool, typer.Option("--hold", help="Hold agents that stop too early.")] = False,
    contents: Annotated[bool, typer.Option("--contents", help="Keep agents' words.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Watch Claude Code by hooks, or hold its agents, once each.

    `install` and `remove` show the change of the file, and ask. `watch` keeps a journal of each
    session until Ctrl-C. Without it the hooks let everything pass.
    """
    from dig.adapters.claude_code import hook, hook_settings, session

    home = Path(os.environ.get("CLAUDE_CONFIG_DIR", Path.home() / ".claude"))
    path = ((home if user else Path(".claude")) / "settings.json").resolve()
    directory = path.parent / "dig"
    if action == "watch":
        with suppress(KeyboardInterrupt):
            session.watch(directory, warn)
        raise typer.Exit(INTERRUPTED)
    before, content = hook_settings.read_settings(path)
    files = dict.fromkeys([path, path.with_name("settings.local.json"), home / "settings.json"])
    for off in hook_settings.without_hooks(files) if action != "remove" else ():
        warn(f"no hook runs as long as {off} has disableAllHooks: true")
    if action == "show":
        installed = hook_settings.command_of(content)
        print(f"settings: {path}\nhooks: {safe_text(installed) or 'none'}")
        print(f"holds: {'yes' if '--hold' in installed else 'no'}\njournals: {directory}")
        return
    parts = [sys.executable, "-I", "-S", hook.__file__, str(directory)]
    parts += ["--hold"] * hold + ["--contents"] * contents
    after = hook_settings.changed(path, shlex.join(parts) if action == "install" else "")
    old, new = ((data or b"").decode("utf-8-sig").splitlines() for data in (before, after))
    for line in unified_diff(old, new, str(path), str(path), lineterm=""):
        print(safe_text(line))
    if before == after:
        print(f"{path} stays as it is")
    elif yes or (sys.stdin.isatty() and typer.confirm(f"Change {path}?", abort=True, err=True)):
        hook_settings.write_settings(path, before, after)
    else:
        raise SettingsError(f"{path} is left as it is: nobody can be asked here; use --yes")
