"""The rules of the layout that no linter knows. Who may import whom: pyproject.toml."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import networkx
import pytest

import dig.adapters.base

ROOT = Path(__file__).parents[1]
LINKS = ("detectors", "runtime", "tasks", "traces")

# Most files have 100 to 400 lines and most functions at most 40; these are where it is no longer a
# matter of taste.
LONGEST_FILE = 600
LONGEST_FUNCTION = 60
LONGER = {
    "dig/tasks/run/execute.py:execute": "the steps of a run in order; half of it are its arguments",
    "dig/tasks/run/run_fork.py:fork": "the steps of a fork in order; half of it are its arguments",
}
"""Functions that are allowed to be longer, with the reason."""

TABLES = (
    "dig.cli", "dig.detectors.patterns", "dig.diagnosis.signs", "dig.faults.inject.kinds",
    "dig.tasks",
)  # fmt: skip
"""Rows of tables that stand one a file: commands, patterns, signs, fault kinds."""

PURE = ("_util", "graph", "detectors", "monitor")

# Clock, ids, randomness, threads and await are handed to the packages above by their caller.
IMPURE = {
    "anyio", "asyncio", "datetime", "multiprocessing", "random", "secrets", "socket", "sqlite3",
    "subprocess", "threading", "time", "trio", "uuid",
}  # fmt: skip


def python_files(*folders: str) -> list[Path]:
    """The Python files below these folders, relative to the root."""
    return sorted(
        path.relative_to(ROOT) for folder in folders for path in (ROOT / folder).rglob("*.py")
    )


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse((ROOT / path).read_text(encoding="utf-8"), filename=str(path))


Import = tuple[int, int, str]
"""Line, leading dots and dotted name of an imported thing."""


def imports(tree: ast.Module) -> Iterator[Import]:
    """Each imported thing, wherever the import stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, 0, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                parts = filter(None, (node.module, alias.name))
                yield node.lineno, node.level, ".".join(parts)


@cache
def imports_of(path: Path) -> list[Import]:
    """The imports of a file; several rules are about them."""
    return list(imports(parse(path)))


MODULES = {
    ".".join(path.with_suffix("").parts).removesuffix(".__init__"): path
    for path in python_files("dig")
}
"""The modules of dig, each with its file."""


def imported(path: Path) -> Iterator[str]:
    """The modules of dig that a file imports; a package counts where its `__init__` is used."""
    package = ".".join(path.parts[:-1])
    for _, dots, name in imports_of(path):
        full = f"{package}.{name}" if dots else name
        module = full if full in MODULES else full.rpartition(".")[0]
        if module in MODULES:
            yield module


def area(parts: tuple[str, ...]) -> str:
    """The package of dig that a path below the root lies in, or `core`."""
    return parts[1] if len(parts) > 1 and (ROOT / "dig" / parts[1]).is_dir() else "core"


def misplaced(path: Path, found: Iterable[Import]) -> Iterator[str]:
    """The imports of a file below dig/ that are relative or absolute and should be the other."""
    home = path.parts[:-1]
    for line, dots, name in found:
        names = tuple(name.split("."))
        target = (*home, *names) if dots else names
        if dots > 1:
            yield f"{path}:{line}: {'.' * dots}{name} climbs above its package; begin with dig"
        elif dots and area(target) != area(path.parts):
            yield f"{path}:{line}: .{name} is in another package; begin with dig"
        elif not dots and target[: len(home)] == home and area(target) == area(path.parts):
            yield f"{path}:{line}: {name} is in the same package; begin with a dot"


def test_nothing_is_imported_by_its_root_link() -> None:
    """`import runtime` works by accident and makes a second copy of each class."""
    pattern = re.compile(rf"^\s*(?:from|import)\s(?:.*,\s*)?(?:{'|'.join(LINKS)})\b", re.M)
    offenders = [
        f"{path}:{line}: {name}"
        for path in python_files("dig", "tests", "bench", "examples")
        if pattern.search((ROOT / path).read_text(encoding="utf-8"))  # most need no parsing
        for line, dots, name in imports_of(path)
        if not dots and name.split(".")[0] in LINKS
    ]
    assert not offenders, "begin these with dig:\n" + "\n".join(offenders)


def test_imports_are_relative_exactly_inside_a_package() -> None:
    """Inside a package imports are relative and never climb; across packages they name dig."""
    offenders = [line for path in python_files("dig") for line in misplaced(path, imports_of(path))]
    assert not offenders, "\n" + "\n".join(offenders)


@pytest.mark.parametrize(
    ("file", "line", "fine"),
    [
        ("dig/graph/graph.py", "from .records import Emit", True),
        ("dig/graph/graph.py", "from . import rules", True),
        ("dig/graph/graph.py", "from dig.graph.records import Emit", False),
        ("dig/graph/graph.py", "import dig.graph.records", False),
        ("dig/graph/graph.py", "from ..errors import RuleError", False),
        ("dig/graph/graph.py", "from dig.errors import RuleError", True),
        ("dig/__init__.py", "from .errors import DigError", True),
        ("dig/__init__.py", "from dig.monitor.monitor import Monitor", True),
        ("dig/cli/run.py", "from dig.runtime.bus import Bus", True),
        ("dig/runtime/bus.py", "from dig import Monitor", True),
        ("dig/runtime/bus.py", "from .agents import Agent", True),
        ("dig/runtime/bus.py", "from dig.runtime.agents import Agent", False),
        ("dig/adapters/langgraph/one.py", "from dig.adapters.base import Turn", True),
        ("dig/adapters/langgraph/one.py", "from ..base.turn import Turn", False),
        ("dig/adapters/langgraph/one.py", "from .run import Run", True),
    ],
)
def test_the_import_rule_itself(file: str, line: str, fine: bool) -> None:
    """The rule above tells right from wrong."""
    assert (not list(misplaced(Path(file), imports(ast.parse(line))))) is fine


@pytest.mark.parametrize("package", PURE)
def test_the_monitor_and_what_it_is_made_of_are_pure(package: str) -> None:
    """These packages have no clock, no ids, no randomness, no threads and no await."""
    files = python_files(f"dig/{package}")
    assert files, "the package has moved, and nothing would be checked"
    offenders = [
        f"{path}:{line}: {name}"
        for path in files
        for line, _, name in imports_of(path)
        if name.split(".")[0] in IMPURE
    ]
    assert not offenders, "have these handed in:\n" + "\n".join(offenders)


def test_a_small_file_belongs_to_its_importer() -> None:
    """A file under 80 lines has several importers, or is a table's row of more than 40 lines."""
    importers: dict[str, set[str]] = {module: set() for module in MODULES}
    for module, path in MODULES.items():
        for other in imported(path):
            importers[other].add(module)
    offenders = []
    for module, path in MODULES.items():
        length = len((ROOT / path).read_text(encoding="utf-8").splitlines())
        shortest = 40 if module.rpartition(".")[0] in TABLES else 80
        if length < shortest and len(importers[module]) == 1 and path.name[:2] != "__":
            offenders.append(f"{path}: {length} lines, and only {importers[module]} imports it")
    assert not offenders, "fold these into their importers:\n" + "\n".join(offenders)


def test_a_package_names_its_modules() -> None:
    """Its docstring is the way in; rows of tables and commands are listed by their tables."""
    unnamed: list[str] = []
    for path in (ROOT / "dig").rglob("__init__.py"):
        package = ".".join(path.parent.relative_to(ROOT).parts)
        if package in ("dig", "dig.cli", "dig.lab.cli", "dig.detectors.patterns"):
            continue
        docstring = ast.get_docstring(parse(path)) or ""
        modules = [module.stem for module in path.parent.glob("*.py") if module != path]
        unnamed += [
            f"{package}: {name}" for name in modules if not re.search(rf"\b{name}\b", docstring)
        ]
    assert not unnamed, "name these in the docstrings of their packages"


def test_a_public_class_has_a_name_of_its_own() -> None:
    """No name of a public class is defined twice, so that it says which class is meant."""
    places: dict[str, list[str]] = {}
    for path in MODULES.values():
        for node in parse(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(str(path))
    assert {name: some for name, some in places.items() if len(some) > 1} == {}


def test_an_abstract_class_has_two_subclasses() -> None:
    """With one subclass, both are one class that is spread over two."""
    subclasses: dict[str, set[str]] = {}
    abstract: set[str] = set()
    for path in MODULES.values():
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ClassDef):
                for base in node.bases:
                    subclasses.setdefault(ast.unparse(base).split("[")[0], set()).add(node.name)
                methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
                decorators = [ast.unparse(one) for it in methods for one in it.decorator_list]
                if "abstractmethod" in decorators:
                    abstract.add(node.name)
    assert abstract
    assert {name for name in abstract if len(subclasses.get(name, ())) < 2} == set()


def test_no_modules_import_one_another_in_a_circle() -> None:
    """Also not for annotations alone: what two modules need belongs below both."""
    arrows = {module: set(imported(path)) for module, path in MODULES.items()}
    graph = networkx.DiGraph((a, b) for a, some in arrows.items() for b in some if a != b)
    circles = [sorted(one) for one in networkx.strongly_connected_components(graph) if len(one) > 1]
    assert circles == []


def test_adapters_use_what_the_base_exports() -> None:
    """An adapter of one's own can do all that those of dig can (docs/wrapping.md)."""
    folders = {path.name for path in (ROOT / "dig" / "adapters").iterdir() if path.is_dir()}
    files = python_files(*(f"dig/adapters/{name}" for name in folders - {"base", "__pycache__"}))
    offenders = [
        f"{path}:{line}: {name}"
        for path in files
        for line, dots, name in imports_of(path)
        if not dots and name.startswith("dig.adapters.") and not _is_exported(name)
        if not (path.name == "over_a2a.py" and name.startswith("dig.adapters.a2a."))  # joins two
    ]
    offenders += [
        f"{path}:{node.lineno}: base.{node.attr}"
        for path in files
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "base"
        if not _is_exported(f"dig.adapters.base.{node.attr}")
    ]
    assert files and not offenders, "import these from dig.adapters.base:\n" + "\n".join(offenders)


def _is_exported(name: str) -> bool:
    package, _, exported = name.rpartition(".")
    is_name = package == "dig.adapters.base" and exported in vars(dig.adapters.base)["__all__"]
    return is_name or name == "dig.adapters.base"


def test_the_root_of_the_package_is_an_overview() -> None:
    """A newcomer sees at most thirteen packages and five modules beside the public names."""
    root = ROOT / "dig"
    packages = [path.name for path in root.iterdir() if (path / "__init__.py").exists()]
    modules = [path.name for path in root.glob("*.py")]
    assert len(packages) <= 13, packages
    assert len(modules) <= 5, modules


@pytest.mark.parametrize("name", LINKS)
def test_the_root_shows_the_design(name: str) -> None:
    """The root links to the packages of dig."""
    link = ROOT / name
    if not link.is_symlink():
        if link.is_file():
            pytest.skip("this checkout is without symlinks (git's core.symlinks is false)")
        if not (ROOT / ".git").exists():
            pytest.skip("not a git checkout: an sdist leaves the links out")
    assert link.readlink() == Path("dig", name)


def test_files_and_functions_stay_short() -> None:
    """No file and no function of dig outgrows its budget by much."""
    offenders = []
    for path in python_files("dig"):
        length = len((ROOT / path).read_text(encoding="utf-8").splitlines())
        if length > LONGEST_FILE:
            offenders.append(f"{path}: {length} lines, at most {LONGEST_FILE}")
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length > LONGEST_FUNCTION and f"{path}:{node.name}" not in LONGER:
                    where = f"{path}:{node.lineno}: {node.name}()"
                    offenders.append(f"{where}: {length} lines, at most {LONGEST_FUNCTION}")
    assert not offenders, "split these, one idea each:\n" + "\n".join(offenders)


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (("-c", "from dig import Monitor"), "networkx openai opentelemetry pydantic rich typer"),
        (("-c", "import dig"), "dataclasses dig.detectors dig.graph dig.monitor"),
        (("-m", "dig", "--help"), "networkx openai opentelemetry dig.detectors dig.graph"),
    ],
    ids=["core", "import", "help"],
)
def test_a_heavy_library_is_imported_when_it_is_needed(
    arguments: tuple[str, ...], heavy: str
) -> None:
    """Importing dig is cheap, and so is asking the command for help."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments], cwd=ROOT, capture_output=True, text=True
    )
    log, rows = [], set()
    for line in done.stderr.splitlines():
        if line.startswith("import time:"):
            rows.add(line.rpartition("|")[2].strip())
        else:
            log.append(line)
    assert done.returncode == 0, "\n".join(log)
    assert "dig" in rows
    assert sorted(rows & set(heavy.split())) == []
