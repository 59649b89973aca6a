"""Bugs that a machine makes: one small change at one place in the code that findings rest on.

`make mutants` tries a share of them, another one by each seed. Not each has to be noticed: a change
may leave what a program does as it was, for instance where it only remembers more than it must.
"""

from __future__ import annotations

import ast
import random
import textwrap
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .planted import Mutant

FILES = {
    "_util": "ranges",
    "adapters/base": "agent_instances calls turn",
    "detectors": "finding ladder mended notes turn_lengths usual watch",
    "detectors/patterns": "[!_]*",
    "diagnosis/stages": "deciding",
    "graph": "chain coverage graph history lineage problems retention rewrites rules state",
    "monitor": "gates healing holds ladders monitor payloads recorder relevance schedule sinks",
    "runtime": "bus checkpoint host simulator",
    "runtime/driver": "rewind_state",
    "traces/journal": "appending",
}

_SLIPS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,),
}  # fmt: skip
_SIBLINGS = {"any": "all", "all": "any", "min": "max", "max": "min", "sorted": "list"}
_TYPES = {"annotation", "returns", "bases", "pattern"}


def _like(node: ast.AST, **changed: Any) -> ast.AST:
    return type(node)(**dict(ast.iter_fields(node)) | changed)


def _each_less(node: ast.AST, name: str) -> Iterator[ast.AST]:
    """The node without each of its parts of a name."""
    parts = getattr(node, name)
    return (_like(node, **{name: parts[:n] + parts[n + 1 :]}) for n in range(len(parts)))


def _first_alone(node: ast.For | ast.comprehension) -> ast.AST:
    items = ast.List([ast.Starred(node.iter)])
    return _like(node, iter=ast.Subscript(items, ast.Slice(upper=ast.Constant(1))))


def variants(node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the place of a node: a slip, or a part forgotten."""
    match node:
        case ast.Compare(left=left, ops=ops, comparators=[*operands]):
            for n, op in enumerate(ops):
                for slip in _SLIPS[type(op)]:
                    yield _like(node, ops=[*ops[:n], slip(), *ops[n + 1 :]])
            for a, op, b in zip([left, *operands], ops, operands, strict=False):
                if len(ops) > 1:
                    yield ast.Compare(a, [op], [b])
        case ast.BoolOp():
            yield from _each_less(node, "values")
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BinOp(left=left, right=right):
            yield from (left, right)
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield ast.Constant(value + 1)
        case ast.IfExp(body=body, orelse=orelse):
            yield from (body, orelse)
        case ast.If():
            yield from (_like(node, test=ast.Constant(value)) for value in (True, False))
        case ast.comprehension():
            yield _first_alone(node)
            yield from _each_less(node, "ifs")
        case ast.Call(func=ast.Name(id=name)) if name in _SIBLINGS:
            yield _like(node, func=ast.Name(_SIBLINGS[name]), keywords=[])
        case ast.Call(func=func, args=args):
            yield from _each_less(node, "keywords")
            if isinstance(func, ast.Attribute) and args:
                yield func.value
            elif len(args) == 1:
                yield args[0]
        case ast.List() | ast.Set():
            yield from _each_less(node, "elts")
        case ast.Subscript(value=value, slice=ast.Slice()):
            yield value
        case ast.For():
            yield _first_alone(node)
            yield ast.Pass()
        case ast.AugAssign(target=target, value=value):
            yield ast.Assign([target], value)
            yield ast.Pass()
        case ast.Return(value=ast.expr()):
            yield ast.Return(None)
        case ast.ExceptHandler(type=ast.expr()):
            yield _like(node, type=ast.Name("ArithmeticError"))
        case ast.Expr(value=ast.Constant()):
            pass  # a docstring
        case ast.Expr() | ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield ast.Pass()
        case ast.Raise() | ast.Delete() | ast.Continue() | ast.Break():
            yield ast.Pass()


def _nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all in it, but for types, which change nothing."""
    yield node
    for name, value in ast.iter_fields(node):
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, ast.AST) and name not in _TYPES:
                yield from _nodes(part)


class _Swap(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


def _brief(node: ast.AST) -> str:
    return textwrap.shorten(ast.unparse(node), 60)


def generate(file: str, source: str, seed: int) -> Iterator[Mutant]:
    """All changes of a file, in an order that the seed draws."""

    def parse() -> tuple[ast.AST, list[tuple[ast.AST, ast.AST]]]:
        tree = ast.parse(source)
        return tree, [(node, variant) for node in _nodes(tree) for variant in variants(node)]

    numbers = [*range(len(parse()[1]))]
    random.Random(f"{seed} {file}").shuffle(numbers)
    for number in numbers:
        tree, changes = parse()
        old, new = changes[number]
        ast.fix_missing_locations(ast.copy_location(new, old))
        line = old.iter.lineno if isinstance(old, ast.comprehension) else getattr(old, "lineno", 0)
        breaks = f"line {line}: `{_brief(old)}` is `{_brief(new)}`"
        changed = ast.unparse(_Swap(old, new).visit(tree))
        yield Mutant(file, breaks, "", changed)


def sample(root: Path, seed: int, count: int) -> list[Mutant]:
    """So many changes of the project below `root`, of each file about as many."""
    paths = [
        path
        for folder, names in FILES.items()
        for name in names.split()
        for path in sorted((root / "dig" / folder).glob(f"{name}.py"))
    ]
    in_turn = deque(
        generate(path.relative_to(root / "dig").as_posix(), path.read_text(encoding="utf-8"), seed)
        for path in random.Random(seed).sample(paths, len(paths))
    )
    mutants: list[Mutant] = []
    while in_turn and len(mutants) < count:
        file = in_turn.popleft()
        if mutant := next(file, None):
            mutants.append(mutant)
            in_turn.append(file)
    return mutants
