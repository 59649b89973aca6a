"""`digmon hooks install`, `remove`, `show`: what happens to a settings file."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dig.adapters.claude_code.hook_settings import (
    backup_of,
    changed,
    command_of,
    read_settings,
    write_settings,
)
from dig.errors import SettingsError

PROGRAM = "/anywhere/dig/adapters/claude_code/hook.py"
EVENTS = ["PreToolUse", "SubagentStart", "SubagentStop", "Stop", "TeammateIdle"]
THEIRS = {
    "model": "opus",
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "notify-send done"}]}],
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "lint"}]}],
    },
    "env": {"A": "1"},
}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=5,
)
entries = st.fixed_dictionaries({"type": st.just("command"), "command": texts})
groups = st.fixed_dictionaries(
    {"hooks": st.lists(entries, max_size=2)}, optional={"matcher": texts}
)
hooks = st.dictionaries(st.sampled_from([*EVENTS, "PostToolUse"]), st.lists(groups, max_size=2))
settings = st.builds(
    lambda before, hooks, after: before | ({} if hooks is None else {"hooks": hooks}) | after,
    st.dictionaries(texts, values, max_size=2), st.none() | hooks,
    st.dictionaries(texts, values, max_size=2),
)  # fmt: skip


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings file of a project, which is the current directory; it is not there yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "home"))
    return tmp_path / ".claude" / "settings.json"


def written(file: Path, content: str | bytes) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@given(
    settings, st.sampled_from([None, 0, 2, 3, "\t"]), st.booleans(), st.booleans(),
    st.sampled_from(["", "\n", "\n\n"]), st.sampled_from(["\n", "\r\n"]),
)  # fmt: skip
def test_installed_and_removed_again_a_file_has_the_same_bytes(
    content: dict[str, Any], indent: Any, ascii: bool, mark: bool, end: str, newline: str
) -> None:
    """And in between nothing but the hooks of dig is new, and the order is kept."""
    text = json.dumps(content, indent=indent, ensure_ascii=ascii) + end
    data = text.replace("\n", newline).encode("utf-8-sig" if mark else "utf-8")
    with TemporaryDirectory() as folder:
        path = written(Path(folder) / "c" / "settings.json", data)
        write_settings(path, data, changed(path, PROGRAM))
        _, installed = read_settings(path)
        assert command_of(installed) == PROGRAM
        assert {**installed, "hooks": None} == {**content, "hooks": None}
        assert [key for key in installed if key in content] == [*content]
        for name, theirs in content.get("hooks", {}).items():
            assert installed["hooks"][name][: len(theirs)] == theirs
        write_settings(path, path.read_bytes(), changed(path, ""))
        assert path.read_bytes() == data
        assert os.listdir(path.parent) == ["settings.json"]


@given(settings, st.sampled_from([2, 4, "\t"]))
def test_removing_keeps_what_was_added_since(content: dict[str, Any], indent: Any) -> None:
    """Without the copy to go back to, the file is written in its own form."""
    with TemporaryDirectory() as folder:
        path = written(Path(folder) / "c" / "settings.json", json.dumps(content, indent=indent))
        write_settings(path, path.read_bytes(), changed(path, PROGRAM))
        _, installed = read_settings(path)
        later = {**installed, "later": 1}
        written(path, json.dumps(later, indent=indent))
        write_settings(path, path.read_bytes(), changed(path, ""))
        expected = {key: value for key, value in content.items() if key != "hooks" or value}
        full = {name: groups for name, groups in content.get("hooks", {}).items() if groups}
        if "hooks" in expected:
            expected["hooks"] = full
        left = json.loads(path.read_text())
        left["hooks"] = {n: g for n, g in left.get("hooks", {}).items() if g}
        assert {"hooks": {}, **left} == {"hooks": full, **expected, "later": 1}


def test_install_shows_the_change_and_names_each_hook(file: Path, call: Any) -> None:
    written(file, json.dumps(THEIRS, indent=4) + "\n")
    status, output, errors = call("hooks", "install", "--hold", "--yes")
    assert (status, errors) == (0, "")
    new = json.loads(file.read_text())
    assert [*new] == ["model", "hooks", "env"]
    assert {*new["hooks"]} == {*EVENTS}
    for name in EVENTS:
        (entry,) = new["hooks"][name][-1]["hooks"]
        assert entry["command"].startswith(f"{sys.executable} -I -S ")
        assert entry["command"].endswith(f"hook.py {file.parent / 'dig'} --hold")
    assert new["hooks"]["PreToolUse"][1]["matcher"] == "Task|Agent|SendMessage"
    assert new["hooks"]["Stop"][0] == THEIRS["hooks"]["Stop"][0]  # type: ignore[index]
    assert '+            "SubagentStart": [' in output or '+        "SubagentStart": [' in output
    assert "\n    " in file.read_text(), "its own indent"
    assert json.loads(backup_of(file).read_text()) == THEIRS


@pytest.mark.parametrize("name", ["settings.json", "settings.local.json"])
def test_hooks_that_are_switched_off_are_told(name: str, file: Path, call: Any) -> None:
    """Also by the settings beside; they are put in all the same."""
    off = written(file.with_name(name), json.dumps({"disableAllHooks": True}))
    status, _, errors = call("hooks", "install", "--yes")
    assert status == 0
    assert f"no hook runs as long as {off} has disableAllHooks: true" in errors
    assert command_of(json.loads(file.read_text()))
    assert "no hook runs" in call("hooks", "show")[2]
    assert call("hooks", "remove", "--yes")[2] == ""


def test_install_twice_is_once_and_other_options_replace(file: Path, call: Any) -> None:
    call("hooks", "install", "--yes")
    first = file.read_bytes()
    status, output, _ = call("hooks", "install", "--yes")
    assert (status, file.read_bytes()) == (0, first)
    assert "stays as it is" in output
    call("hooks", "install", "--hold", "--contents", "--yes")
    assert file.read_text().count("hook.py") == len(EVENTS)
    assert "--hold --contents" in command_of(json.loads(file.read_text()))


def test_entries_of_another_installation_are_replaced(file: Path, call: Any) -> None:
    """Among others' entries, in a group that somebody made."""
    mine = {"type": "command", "command": f"/old/python {PROGRAM} /old"}
    theirs = {"type": "command", "command": "theirs"}
    written(file, json.dumps({"hooks": {"Stop": [{"hooks": [theirs, mine]}]}}))
    call("hooks", "install", "--yes")
    new = json.loads(file.read_text())["hooks"]
    assert new["Stop"][0] == {"hooks": [theirs]}
    assert "/old" not in file.read_text()
    call("hooks", "remove", "--yes")
    assert json.loads(file.read_text()) == {"hooks": {"Stop": [{"hooks": [theirs]}]}}


def test_a_file_that_install_made_is_removed(file: Path, call: Any) -> None:
    call("hooks", "install", "--yes")
    assert file.exists()
    status, _, _ = call("hooks", "remove", "--yes")
    assert status == 0
    assert not file.exists()
    assert not backup_of(file).exists()


def test_remove_without_an_install_changes_nothing(file: Path, call: Any) -> None:
    status, output, _ = call("hooks", "remove", "--yes")
    assert (status, output) == (0, f"{file} stays as it is\n")
    written(file, " { }")
    call("hooks", "remove", "--yes")
    assert file.read_text() == " { }"


def test_without_a_terminal_nothing_is_changed_unless_asked_to(file: Path, call: Any) -> None:
    status, output, errors = call("hooks", "install")
    assert (status, file.exists()) == (2, False)
    assert "--yes" in errors
    assert "SubagentStop" in output, "the change is shown all the same"


@pytest.mark.parametrize("answer", ["y", "n"])
def test_on_a_terminal_the_answer_counts(
    answer: str, file: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("sys.stdin.readline", lambda: f"{answer}\n", raising=False)
    monkeypatch.setattr("builtins.input", lambda *prompt: answer)
    status, _, _ = call("hooks", "install")
    assert (status == 0, file.exists()) == (answer == "y", answer == "y")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"a": 1, // why\n}', "Expecting property name"),
        ('{"a": 1, "a": 2}', "the key 'a' stands twice"),
        ('{"a": NaN}', "NaN"),
        ("[1]", "unknown form"),
        ('{"hooks": []}', "unknown form"),
        ('{"hooks": {"Stop": [{}]}}', "unknown form"),
        ('{"hooks": {"Stop": [{"hooks": ["x"]}]}}', "unknown form"),
        (
            f'{{"hooks": {{"Stop": [{{"hooks": [{{"command": "{PROGRAM}"}}, 1]}}]}}}}',
            "unknown form",
        ),
        (b"\xff\xfe{\x00}\x00", "utf-8"),
        ("{" * 200, "Expecting property name"),
        ('{"a":' + "[" * 200 + "]" * 200 + "}", "nested too deeply"),
    ],
)
@pytest.mark.parametrize("action", ["install", "remove", "show"])
def test_a_file_that_is_not_understood_is_left_alone(
    action: str, content: str | bytes, reason: str, file: Path, call: Any
) -> None:
    before = written(file, content).read_bytes()
    status, _, errors = call("hooks", action, *["--yes"] * (action != "show"))
    assert status == 2
    assert reason in errors
    assert "JSON without comments" in errors
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == ["settings.json"]


def test_a_link_is_followed_and_stays(file: Path, call: Any, tmp_path: Path) -> None:
    target = written(tmp_path / "dotfiles" / "claude.json", "{}")
    file.parent.mkdir()
    file.symlink_to(target)
    call("hooks", "install", "--yes")
    assert file.is_symlink()
    assert command_of(json.loads(target.read_text()))


def test_a_read_only_file_is_left_alone(file: Path, call: Any) -> None:
    written(file, "{}").chmod(0o400)
    status, _, errors = call("hooks", "install", "--yes")
    assert status == 2
    assert "read-only" in errors
    assert file.read_text() == "{}"


def test_permissions_are_kept(file: Path, call: Any) -> None:
    for mode in (0o600, 0o664):
        written(file, "{}").chmod(mode)
        call("hooks", "install", "--yes")
        assert file.stat().st_mode & 0o777 == mode


def test_an_empty_file_is_taken_for_empty_settings(file: Path, call: Any) -> None:
    written(file, "")
    call("hooks", "install", "--yes")
    assert command_of(json.loads(file.read_text()))
    call("hooks", "remove", "--yes")
    assert file.read_bytes() == b""


def test_half_a_surrogate_pair_stays(file: Path, call: Any) -> None:
    written(file, '{"a": "ä \\ud800"}')
    call("hooks", "install", "--yes")
    assert json.loads(file.read_text())["a"] == "ä \ud800"


def test_a_change_while_somebody_is_asked_is_not_lost(file: Path) -> None:
    before = written(file, "{}").read_bytes()
    after = changed(file, PROGRAM)
    written(file, '{"mine": 1}')
    with pytest.raises(SettingsError, match="has just changed"):
        write_settings(file, before, after)
    assert file.read_text() == '{"mine": 1}'


def test_a_full_disk_leaves_the_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = written(file, "{}").read_bytes()
    after = changed(file, PROGRAM)

    def fails(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(OSError, match="No space"):
        write_settings(file, before, after)
    assert (file.read_text(), os.listdir(file.parent)) == ("{}", ["settings.json"])


def test_user_settings_are_those_of_the_home_directory(
    file: Path, call: Any, tmp_path: Path
) -> None:
    call("hooks", "install", "--user", "--yes")
    assert not file.exists()
    command = command_of(json.loads((tmp_path / "home" / "settings.json").read_text()))
    assert command.endswith(str(tmp_path / "home" / "dig"))


def test_a_path_with_blanks_is_quoted(
    tmp_path: Path, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "my project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    call("hooks", "install", "--yes")
    text = (folder / ".claude" / "settings.json").read_text()
    assert command_of(json.loads(text)).endswith(f"'{folder}/.claude/dig'")


def test_show_says_what_is_installed_and_where_journals_are(file: Path, call: Any) -> None:
    status, output, _ = call("hooks", "show")
    assert status == 0
    assert "hooks: none\nholds: no\n" in output
    call("hooks", "install", "--hold", "--yes")
    _, output, _ = call("hooks", "show")
    assert f"settings: {file}\nhooks: {sys.executable} -I -S " in output
    assert output.endswith(f"holds: yes\njournals: {file.parent / 'dig'}\n")
