"""The wheel in an environment that has nothing else."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from shutil import copy

import pytest

from bench import install

EXTRAS = tomllib.loads((install.ROOT / "pyproject.toml").read_text())["project"][
    "optional-dependencies"
]
WRAP = "import dig; dig.wrap({'ada': lambda question: question}, otlp='http://localhost:4318')"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the plain install."""
    directory = tmp_path_factory.mktemp("install")
    wheel = install.build_wheel(directory)
    try:
        return install.install(wheel, directory / "bare")
    except RuntimeError as error:
        if os.environ.get("DIG_INDEX_REQUIRED"):
            raise
        pytest.skip(f"no index to install from: {str(error)[-200:]}")


def call(python: Path, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run Python in isolation from the checkout and its environment."""
    return subprocess.run(
        [python, "-I", *arguments], cwd=cwd, capture_output=True, text=True, timeout=100
    )


def test_the_plain_install_is_lean(python: Path) -> None:
    packages, megabytes, _ = install.size_of(python.parents[1])
    assert packages <= install.MOST_PACKAGES
    assert megabytes <= install.MOST_MB


def test_a_bare_environment_runs_checks_and_reports(python: Path, tmp_path: Path) -> None:
    run = "-m dig run count-frequency --size 400 --seed 651 --virtual --twin --runs runs"
    finished = call(python, *run.split(), cwd=tmp_path)
    assert (finished.returncode, finished.stderr) == (0, "")
    runs = [str(path.parent) for path in tmp_path.glob("runs/*/trace.dig.jsonl")]
    directory = min(runs, key=len)  # the other one is its twin
    for command in ("check", "verify", "show", "why", "report -o page.html"):
        finished = call(python, "-m", "dig", *command.split(), directory, cwd=tmp_path)
        assert finished.returncode == 0, finished.stdout + finished.stderr
    assert (tmp_path / "page.html").stat().st_size > 100_000


@pytest.mark.parametrize(
    ("extra", "line"),
    [
        ("llm", "-m dig run count-frequency --model small --base-url http://localhost:1"),
        ("otel", "-m dig run count-frequency --otlp http://localhost:4318"),
        ("otel", "-m dig export FILE --format otlp"),
        ("draw", "-m dig draw FILE -o run.png"),
        ("nats", "-m dig sessions"),
    ],
)
def test_a_command_without_its_extra_names_it_in_a_line(
    python: Path, extra: str, line: str, tmp_path: Path
) -> None:
    trace = next((install.ROOT / "tests/traces/data/journals").rglob("*.dig.jsonl"))
    finished = call(python, *line.replace("FILE", str(trace)).split(), cwd=tmp_path)
    assert finished.returncode == 2
    assert finished.stderr.count("\n") == 1
    assert finished.stderr.endswith(f"; try: pip install 'dig-monitor[{extra}]'\n")
    assert extra in EXTRAS


@pytest.mark.parametrize(
    ("extra", "program"), [("llm", "from dig.runtime.llm import Model"), ("otel", WRAP)]
)
def test_a_function_without_its_extra_names_it(
    python: Path, extra: str, program: str, tmp_path: Path
) -> None:
    finished = call(python, "-c", program, cwd=tmp_path)
    assert "SettingsError: " in finished.stderr
    assert finished.stderr.endswith(f"; try: pip install 'dig-monitor[{extra}]'\n")


def test_a_users_program_has_no_error_in_the_strictest_editor(python: Path, tmp_path: Path) -> None:
    """Pyright from outside, on the types that the wheel brings (`py.typed`)."""
    if not find_spec("basedpyright"):
        pytest.skip("basedpyright is not installed")
    for program in ("api.py", "program.py"):
        copy(install.ROOT / "tests" / "typing" / program, tmp_path)
    (tmp_path / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}')
    options = ["-m", "basedpyright", "--outputjson", "--pythonpath", str(python), "."]
    checked = subprocess.run([sys.executable, *options], cwd=tmp_path, capture_output=True)
    report = json.loads(checked.stdout)
    errors = [f"{it['file']}: {it['message']}" for it in report["generalDiagnostics"]]
    assert report["summary"]["filesAnalyzed"] == 2 and not errors, "\n".join(errors)


def test_the_demo_under_the_packages_own_name_ends_with_a_page(
    python: Path, tmp_path: Path
) -> None:
    """As `uvx dig-monitor demo` and `pipx run dig-monitor demo` call it."""
    command = [str(python.with_name("dig-monitor")), "demo", "--speed", "500"]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert finished.returncode == 0, finished.stderr
    (page,) = re.findall(r"^report +(\S+)$", finished.stdout, re.MULTILINE)
    assert (tmp_path / page).read_text().startswith("<!DOCTYPE html>")
