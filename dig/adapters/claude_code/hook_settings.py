"""The hooks of dig in a settings file of Claude Code: put in and taken out, all else is kept."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from dig._util.files import read_file
from dig._util.json_text import parse
from dig.errors import RecordError, SettingsError
from dig.traces.journal.durable_files import write_file

Settings = dict[str, Any]

_MATCHERS = {"PreToolUse": {"matcher": "Task|Agent|SendMessage"}, "SubagentStart": {},
             "SubagentStop": {}, "Stop": {}, "TeammateIdle": {}}  # fmt: skip
# The end of the program's path: the hooks of every installation of dig are known by it.
_PROGRAM = "/dig/adapters/claude_code/hook.py"
_BOM = b"\xef\xbb\xbf"


def read_settings(path: Path) -> tuple[bytes | None, Settings]:
    """The bytes of a settings file, ``None`` without a file, and its content.

    Raises:
        SettingsError: The file cannot be read, or is not understood, so it must not be written.
    """
    try:
        data = read_file(path) if path.exists() else None
        settings = parse((data or b"").decode("utf-8-sig").strip() or "{}", "it")
        try:
            command_of(settings)
        except (AttributeError, KeyError, TypeError):
            raise ValueError("its hooks, or all of it, have an unknown form") from None
    except (OSError, ValueError, RecordError) as error:
        hint = "it must be JSON without comments, as https://code.claude.com/docs/en/hooks says"
        raise SettingsError(f"{path} is left as it is ({error}); {hint}") from None
    return data, settings


def command_of(settings: Settings) -> str:
    """The command of the hooks of dig; empty: there are none."""
    groups = [group for groups in settings.get("hooks", {}).values() for group in groups]
    return [*(str(e["command"]) for group in groups for e in group["hooks"] if _is_ours(e)), ""][0]


def without_hooks(paths: Iterable[Path]) -> list[Path]:
    """Select the settings files with all hooks of Claude Code switched off."""
    off = []
    for path in paths:
        with suppress(SettingsError):  # another file is not ours to judge
            off += [path] * (read_settings(path)[1].get("disableAllHooks") is True)
    return off


def _is_ours(entry: Settings) -> bool:
    return _PROGRAM in str(entry.get("command"))


def with_command(settings: Settings, command: str) -> Settings:
    """The settings with new hooks of dig only; with none, for an empty command."""
    hooks: Settings = {}
    for name, groups in settings.get("hooks", {}).items():
        kept = [{**g, "hooks": [e for e in g["hooks"] if not _is_ours(e)]} for g in groups]
        kept = [new for new, old in zip(kept, groups, strict=True) if new["hooks"] or new == old]
        if kept or not groups:
            hooks[name] = kept
    for name, matcher in _MATCHERS.items() if command else ():
        entry = {"type": "command", "command": command, "timeout": 10}
        hooks[name] = [*hooks.get(name, []), {**matcher, "hooks": [entry]}]
    new = {**settings, "hooks": hooks}
    if not hooks and settings.get("hooks", True):
        del new["hooks"]
    return new


def changed(path: Path, command: str) -> bytes | None:
    """The file with a command of dig, or with none if empty; ``None``: no file is left."""
    data, settings = read_settings(path)
    new = with_command(settings, command)
    if new == settings:
        return data
    before, original = read_settings(backup_of(path))
    # If nothing else has changed since, the very bytes of before come back.
    is_undone = not command and with_command(with_command(original, _PROGRAM), "") == new
    if is_undone and before is not None:
        return before
    return _as_bytes(new, data or b"") if new else None


def _as_bytes(settings: Settings, like: bytes) -> bytes:
    """The settings as a file in the form of an earlier file: mark, indent, ends of lines."""
    text = like.decode("utf-8-sig")
    indents = (line[: -len(line.lstrip())] for line in text.splitlines() if line.strip())
    indent = next(filter(None, indents), "  ")
    end = "\r\n" if "\r\n" in text else "\n"
    lines = json.dumps(settings, indent=indent, ensure_ascii=text.isascii()).split("\n")
    new = end.join(lines) + (text[len(text.rstrip()) :] if text else end)
    # Half a surrogate pair has no UTF-8; as an escape it is JSON.
    return _BOM * like.startswith(_BOM) + new.encode("utf-8", "backslashreplace")


def backup_of(path: Path) -> Path:
    """The path of the copy of a settings file without hooks of dig."""
    return path.with_name(f"{path.name}.before-dig")


def write_settings(path: Path, before: bytes | None, after: bytes | None) -> None:
    """Replace a settings file, or remove the file; a copy without hooks of dig stays beside.

    Raises:
        SettingsError: The file is read-only, or has changed since it was read.
        OSError: The file cannot be written.
    """
    (current, settings), backup = read_settings(path), backup_of(path)
    mode = 0o644 if current is None else path.stat().st_mode & 0o777
    if current != before or not mode & 0o200:
        raise SettingsError(f"{path} is left as it is: it is read-only, or has just changed")
    path.parent.mkdir(parents=True, exist_ok=True)
    if before is not None and not command_of(settings):
        write_file(backup, before, mode=mode)
    if after is None:
        path.unlink()
    else:
        write_file(path, after, mode=mode)
        path.chmod(mode)
    if after in (None, read_settings(backup)[0]):
        backup.unlink(missing_ok=True)
