"""What an install brings, in packages and megabytes as pip leaves them; whether its page works."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib.metadata import distributions
from pathlib import Path
from shlex import split
from shutil import which
from tempfile import TemporaryDirectory

from .measure import Table, claim

ROOT = Path(__file__).parents[1]
FOR_MAINTAINERS = ("bench", "dev", "docs", "fuzz")
"""The extras of maintainers."""

TRACE = ROOT / "tests" / "traces" / "data" / "journals" / "2" / "failed.dig.jsonl"
RUN = "-m dig run count-frequency --size 400 --virtual --runs ."
USES = {
    "": RUN,
    "draw": "-m dig draw TRACE -o run.png",
    "llm": "-c 'from dig.runtime.llm import Model; print(Model)'",
    "nats": "-m dig sessions --help",
    "openrca2": "-c 'import duckdb, dig.lab.investigate.importing'",
    "otel": "-m dig export TRACE --format otlp -o run.json",
    "otlp-grpc": "-c 'import grpc, dig.traces.otel.otlp'",
    "all": "EXAMPLE/wrap_langgraph.py",
}
"""What the page of an extra shows, for Python in the environment; a framework has its example."""

MOST_PACKAGES = 16
MOST_MB = 60


def build_wheel(directory: Path) -> Path:
    """Build the wheel of this checkout, without the network."""
    _run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", directory, ROOT,
         cwd=directory)  # fmt: skip
    return next(directory.glob("*.whl"))


def install(wheel: Path, environment: Path, *extras: str) -> Path:
    """Install a wheel into a new environment that has nothing else, by uv or pip.

    Returns:
        The environment's Python.
    """
    _run(sys.executable, "-m", "venv", "--without-pip", environment)
    python = environment / "bin" / "python"
    requirement = f"{wheel}[{','.join(extras)}]" if extras else str(wheel)
    if uv := which("uv"):
        _run(uv, "pip", "install", "-q", "--compile-bytecode", "--python", python, requirement)
    else:
        _run(sys.executable, "-m", "pip", "--python", python, "install", "-q", requirement)
    return python


def uses(extra: str, python: Path, directory: Path) -> str:
    """Do with an extra what its page shows; returns `yes`, or the last words of the error."""
    line = USES.get(extra, f"EXAMPLE/wrap_{extra.replace('-', '_')}.py")
    line = line.replace("EXAMPLE", str(ROOT / "examples")).replace("TRACE", str(TRACE))
    try:
        _run(python, "-I", *split(line), cwd=directory)
    except RuntimeError as error:
        return str(error).strip().splitlines()[-1][:60]
    return "yes"


def _run(*command: object, cwd: Path | None = None) -> None:
    """Run a command.

    Raises:
        RuntimeError: It failed; the message is what it printed.
    """
    finished = subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True)
    if finished.returncode:
        raise RuntimeError(finished.stdout + finished.stderr)


def size_of(environment: Path) -> tuple[int, float, float]:
    """The packages in an environment, the megabytes of their files, and those of bytecode."""
    (site,) = environment.glob("lib/python*/site-packages")
    sizes = {path: path.lstat().st_size for path in site.rglob("*") if path.is_file()}
    bytecode = sum(size for path, size in sizes.items() if path.suffix == ".pyc")
    packages = sum(1 for _ in distributions(path=[str(site)]))
    return packages, sum(sizes.values()) / 1e6, bytecode / 1e6


def installing(quick: bool) -> Table:
    """Each extra alone, and all together; quick: the plain install only."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = sorted({*project["optional-dependencies"]} - {*FOR_MAINTAINERS, "all"})
    rows = []
    with TemporaryDirectory() as scratch:
        wheel = build_wheel(Path(scratch))
        for extra in ["", *([] if quick else [*extras, "all"])]:
            environment = Path(scratch, f"with-{extra}")
            install(wheel, environment, *filter(None, [extra]))
            packages, megabytes, bytecode = size_of(environment)
            source = megabytes - bytecode
            works = uses(extra, environment / "bin" / "python", Path(scratch))
            sizes = (str(packages), f"{megabytes:.0f}", f"{source:.0f}")
            rows.append((extra or "plain", *sizes, works))
            if not extra:
                notes = [
                    claim("packages of the plain install", packages, MOST_PACKAGES),
                    claim("megabytes of the plain install", megabytes, MOST_MB),
                ]
    notes.append(claim("extras whose page does not work", sum(r[-1] != "yes" for r in rows), 0))
    columns = ("extra", "packages", "MB", "without bytecode", "its page works")
    return Table("Install", columns, rows, "\n".join(notes))
