"""A working folder that somebody else has filled: no command takes code from it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from dig import cli
from tests.cli import watched_commands

PROJECT = """
[tool.digmon]
detectors = ["hostile:Detector"]
plugins = ["hostile:Detector"]
task = "hostile:task"
team = "hostile:team"
kinds = ["hostile:Kind"]
good = "hostile:good"

[tool.digmon.alerts]
to = ["log", "command:sh -c 'touch taken'", "webhook:http://127.0.0.1:9/h", "slack:http://127.0.0.1:9/s"]

[tool.digmon.thresholds]
mc_window_s = 10.0
"""
ENTRY_POINTS = "[dig.detectors]\nx = hostile:Detector\n[dig.healers]\nET = hostile:Detector\n"
CHAT = "id,from,to,at,content\nq,user,ann,2026-03-01T10:00:00Z,Count\n"
STEPS = [{"speaker": "user", "content": "Count"}, {"speaker": "ann", "content": "three"}]
CODE = "from pathlib import Path\nPath('taken').touch()\ndef Detector(): ...\n"
MODULES = ("hostile", "conftest", "sitecustomize", "rich", "numpy", "tomllib", "webbrowser", "yaml")
LEARN = "learn @ -o usual.json --at-least 1"
VIEW = "view @ --no-open"
RUN = "count-frequency --agents 4 --size 1000 --seed 3 --virtual"
COMMANDS = (
    f"run {RUN} --runs runs --json",
    f"run {RUN} --runs runs -q --method mas",
    "show @", "show @ e2", "report @ -o page.html", VIEW, "runs runs", "check @",
    "doctor", "init", "demo --speed 1000 --runs demo", "runs prune runs --keep-days 1",
    "why @", "try @ --at 60 --tell agent-1=again --repeat 1", "fork @ --list", "fork @ --at 20",
    "replay @ --rerun", "diff @ @", "draw @ -o drawn.svg", "graph @",
    "export @ --format otlp -o o.json", "import chat.csv -o chat", "verify @",
    LEARN, "thresholds", "faults", "investigate snapshot",
    "experiment traces --runs 1 --jobs 1 --agents 3 --tasks newsgroups --out traces",
    "hooks install --yes", "hooks show", "hooks remove --yes",
    "bench make --out set --seed 1 --salt x --count 2 --jobs 1", "bench schema",
    "bench attribute random set -o answers.json", "bench score answers.json set",
    "bench detectors set", "bench healing set --jobs 1",
    "bench try set --jobs 1 --count 1 -o verdicts.json",
)  # fmt: skip
"""Each command at least once; `@` stands for a run."""


CONNECTING = {"serve", "agent", "ask", "sessions", "pull"}
"""Commands that connect to a server by design; the code of `agent` is named on its line."""


def names(app: typer.Typer) -> Iterator[str]:
    """The names of all commands, with those of the groups that they are in."""
    for command in app.registered_commands:
        yield command.name or str(getattr(command.callback, "__name__", ""))
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield from (f"{group.name} {name}" for name in names(group.typer_instance))


def called(folder: Path, commands: list[list[str]]) -> list[dict[str, Any]]:
    """The status and the acts of commands in a folder, each in the same process."""
    report = folder.with_name("report.json")
    root = Path(__file__).parents[2]
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DIG_", "OTEL_", "DISPLAY"))}
    subprocess.run(
        [sys.executable, watched_commands.__file__, report], cwd=folder, check=True, text=True,
        env={**kept, "PYTHONPATH": str(root)}, input=json.dumps(commands), capture_output=True,
    )  # fmt: skip
    acts: list[dict[str, Any]] = json.loads(report.read_text())
    return acts


@pytest.fixture
def cloned(tmp_path: Path) -> Path:
    """A folder with hostile settings and modules, and with data that commands read."""
    folder = tmp_path / "cloned"
    for name in ("hostile-1.dist-info", "chats", "snapshot"):
        (folder / name).mkdir(parents=True)
    files = {
        "pyproject.toml": PROJECT,
        "dig.toml": PROJECT,
        **{f"{module}.py": CODE for module in MODULES},
        "hostile-1.dist-info/METADATA": "Name: hostile\nVersion: 1\n",
        "hostile-1.dist-info/entry_points.txt": ENTRY_POINTS,
        "chat.csv": CHAT,
        "snapshot/alerts.json": '[{"entity": "x", "name": "down", "ts": 1}]',
        "chats/cases.json": json.dumps({"cases": [{"id": "1", "question": "?", "steps": STEPS}]}),
        "chats/labels.json": json.dumps({"labels": {"1": {"agent": "ann", "step": 1}}}),
    }
    for file, text in files.items():
        (folder / file).write_text(text)
    return folder


def test_no_command_takes_code_from_the_folder_that_it_is_called_in(cloned: Path) -> None:
    """No process, no connection, no module: nobody has named any of the files there."""
    first, *others = [command.split() for command in COMMANDS]
    made = called(cloned, [first])
    (run,) = (cloned / "runs").iterdir()
    made += called(cloned, [[str(run) if it == "@" else it for it in one] for one in others])
    outside = dict(zip(COMMANDS, ([*map(str, one["acts"])] for one in made), strict=True))
    served = outside.pop(VIEW)
    assert [act for act in served if "127.0.0.1" not in act] == []
    assert {command: acts for command, acts in outside.items() if acts} == {}
    assert not (cloned / "taken").exists()
    wrong = {c: one["told"] for c, one in zip(COMMANDS, made, strict=True) if one["status"] == 2}
    assert wrong.keys() == {LEARN}, f"a call that is refused shows nothing: {wrong}"
    assert "are too few to learn from" in wrong[LEARN]


ROW = {"agent": "agent-2", "activation": "a3", "t": 3, "us": 5, "says": "miscounted"}
ORIGIN = {"t": 1, "us": 1, "says": "it came twice"}
ACT = {"agent": "agent-2", "origins": [ORIGIN]}
RESULTS: list[dict[str, Any]] = [
    *({"score": {"rmse": 1.0, "complete": True, "mistakes": rows}} for rows in (
        5, "abc", [5], [ACT], [{**ROW, "counts": [1]}], [{**ROW, "counts": 5}],
        [{**ROW, "origins": 5}], [{**ROW, "origins": [{**ORIGIN, "us": "x"}]}],
        [{**ROW, "origins": [{**ORIGIN, "us": [1]}]}], [{**ROW, "origins": [{**ORIGIN, "t": "z"}]}],
        [{**ROW, "us": "x"}, ROW], [{**ROW, "us": None}, ROW], [{**ROW, "t": None}, ROW],
        [{**ROW, "t": "x"}, ROW], [{**ROW, "agent": [1]}], [{**ROW, "activation": {}}],
    )),
    {"injections": [{"agent": [1]}]}, {"injections": [{"agent": {}}]}, {"injections": 5},
]  # fmt: skip
"""Results of other shapes than ours."""


def test_a_result_of_another_shape_takes_nothing_away(cloned: Path) -> None:
    """The run is shown with what its file does say, and so are all runs of the directory."""
    called(cloned, [f"run {RUN} --runs runs -q".split()])
    (run,) = (cloned / "runs").iterdir()
    for number, result in enumerate(RESULTS):
        copy = shutil.copytree(run, cloned / f"runs/copy-{number}")
        whole = json.loads((copy / "result.json").read_text())
        (copy / "result.json").write_text(json.dumps({**whole, **result}))
    copies = [f"runs/copy-{number}" for number in range(len(RESULTS))]
    parts = (["show"], ["show", "@", "a1"], ["why"], ["report", "@", "-o", "page.html"])
    commands = [
        [part[0], copy, *part[2:]] for copy in copies for part in parts
    ] + [["runs", "runs"]]  # fmt: skip
    made = called(cloned, commands)
    wrong = {" ".join(c): one["told"][-300:] for c, one in zip(commands, made, strict=True)
             if one["status"] not in (0, 1)}  # fmt: skip
    assert wrong == {}


def test_each_command_is_called_in_a_hostile_folder() -> None:
    """A new command has to be added to the calls above."""
    called_names = {
        name for name in names(cli.app) for one in COMMANDS if f"{one} ".startswith(f"{name} ")
    }
    assert {*names(cli.app)} == called_names | CONNECTING


def test_a_module_that_is_named_brings_no_plugins_of_its_folder(cloned: Path) -> None:
    """Packages are those that are installed, and not what the folder says of some."""
    (cloned / "mine.py").write_text("def Mine(): raise SystemExit\n")
    (made,) = called(cloned, [["check", "runs", "--detector", "mine:Mine"]])
    assert "'mine:Mine' cannot be had" in made["told"]
    assert not (cloned / "taken").exists()


def test_a_command_of_a_project_file_is_told_and_can_be_taken(cloned: Path) -> None:
    """A line says what is ignored, in which file, and how to take it: name the file."""
    run = f"run {RUN} --runs runs -q".split()
    (ignored,) = called(cloned, [run])
    assert ignored["told"].splitlines()[0] == (
        "dig: pyproject.toml, [tool.digmon.alerts]: alerts to command, slack, webhook are ignored, "
        "since no option names this file; to send them, give --config pyproject.toml, or name them "
        "with --alert or DIG_ALERT"
    )
    assert "dig: error ET" in ignored["told"], "the log is told all the same"
    taken = called(cloned, [[*run, "--config", "pyproject.toml"]])
    assert "are ignored" not in taken[0]["told"]
    assert any("subprocess.Popen" in act for act in taken[0]["acts"])
    assert (cloned / "taken").exists()
