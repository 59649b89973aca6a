"""What a user may import, and which errors a user may meet."""

from __future__ import annotations

import ast
import importlib
import pickle
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import dig
from dig import errors

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("package", ["dig.detectors", "dig.adapters"])
def test_all_is_sorted_and_names_the_real_exports(package: str) -> None:
    """Every public name of a package is in `__all__`, and nothing else."""
    module = importlib.import_module(package)
    public = {
        name
        for name, value in vars(module).items()
        if not (name.startswith("_") or isinstance(value, ModuleType) or name == "annotations")
    }
    assert module.__all__ == sorted(public, key=lambda name: (not name.isupper(), name))


def test_names_of_the_runtime_are_imported_when_they_are_asked_for() -> None:
    """Each name in `__all__` is there, and type checkers read it from the same module."""
    runtime = importlib.import_module("dig.runtime")
    assert runtime.__all__ == sorted(runtime._HOME, key=lambda name: (not name.isupper(), name))
    assert all(getattr(runtime, name) for name in runtime.__all__)
    with pytest.raises(AttributeError, match="no attribute 'Reviewr'"):
        _ = runtime.Reviewr


def test_type_checkers_see_where_each_export_of_dig_is_from() -> None:
    """The imports that only type checkers read are those that are made on demand."""
    tree = ast.parse((ROOT / "dig" / "__init__.py").read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if ast.unparse(node).startswith("if typing.TYPE")]
    seen: dict[str, str] = {}
    for node in ast.walk(block):
        if isinstance(node, ast.ImportFrom):
            home = f"dig.{node.module}" if node.level else str(node.module)
            seen |= {alias.asname or "": home for alias in node.names}
    assert seen == dig._HOME
    assert dig.__all__ == sorted(seen)


@pytest.mark.parametrize(
    "asked",
    [
        "import dig; assert set(dig.__all__) | {'graph', '__version__'} <= set(dir(dig))",
        "import dig; assert all(getattr(dig, name) for name in dig.__all__)",
        "import dig; dig.graph.records.Emit, dig.monitor.Monitor, dig.detectors.PATTERNS",
        "import dig.graph; dig.errors.DigError, dig.detectors.finding.Finding, dig.Monitor",
        "from dig import *; Monitor, wrap, notes",
        "from dig import adapters, graph; graph.InteractionGraph, adapters.notes",
        f"import pickle; assert pickle.loads({pickle.dumps(dig.Budget())!r}).per_run",
        "from inspect import getmembers; import dig; assert dict(getmembers(dig))['Monitor']",
    ],
)
def test_a_program_gets_what_it_asks_of_dig(asked: str) -> None:
    """Names and packages of the core are there as if `import dig` had imported them."""
    done = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_every_export_says_what_it_is_for() -> None:
    """What is public has a docstring."""
    module = importlib.import_module("dig.runtime")
    for name, value in [(n, getattr(m, n)) for m in (dig, module) for n in m.__all__]:
        assert isinstance(value, type(dig.Record)) or value.__doc__, name


# -- the tree of errors ---

KINDS = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type)}
ERRORS = {name: kind for name, kind in KINDS.items() if issubclass(kind, Exception)}


def drawn() -> dict[str, str]:
    """The tree in the docstring: each error's base by the error's name."""
    bases = {"DigError": "Exception"}
    path: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^    ([│├└─ ]*)(\w+(?:Error|Exceeded))\b", line)
        if found:
            depth = len(found[1])
            path = [one for one in path if one[0] < depth]
            if path:
                bases[found[2]] = path[-1][1]
            path.append((depth, found[2]))
    return bases


def test_every_error_is_in_the_tree_that_is_drawn() -> None:
    """The docstring of `dig.errors` draws each error below its base."""
    assert drawn() == {name: kind.__bases__[0].__name__ for name, kind in ERRORS.items()}


def test_all_errors_have_one_base() -> None:
    """`except DigError` catches whatever this package raises on purpose."""
    assert all(issubclass(kind, dig.DigError) for kind in ERRORS.values())


def test_errors_are_defined_in_one_place() -> None:
    """No module has an error of its own that the tree does not show."""
    strays = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for path in sorted((ROOT / "dig").rglob("*.py"))
        if path != ROOT / "dig" / "errors.py"
        and path.parent.name != "verify"  # shares no code; what it raises never leaves it
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
        and any(re.search(r"(Error|Exception)$", ast.unparse(base)) for base in node.bases)
    ]
    assert strays == []


def test_a_trace_error_says_where() -> None:
    """File and line are there for programs, and in the message for people."""
    error = errors.TraceError("run/trace.dig.jsonl", 3, "`t` is missing")
    assert (error.path, error.line) == (Path("run/trace.dig.jsonl"), 3)
    assert str(error) == "run/trace.dig.jsonl:3: `t` is missing"
    assert str(errors.TraceError("x", None, "is empty")) == "x: is empty"
