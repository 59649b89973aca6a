"""How heavy each package is, and how plainly it speaks: `python -m tests.ceilings`."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

DIG = Path(__file__).parents[1] / "dig"

# Words that name nothing: a reader must look elsewhere for what is bound to them.
_FILLERS = frozenset(
    re.findall(
        r"\w+",
        "one ones found known what said told some such those these thing things rest others "
        "another whole both way how who whose where when why there here then so still once twice "
        "done made got gone given taken seen heard asked meant wanted needed left kept lost tried",
    )
)
_PRONOUNS = re.compile(
    r"\b(?:it|its|that|this|what|who|whom|whose|which|those|these|they|them|their|ones?)\b", re.I
)
_ADVERBS = frozenset(
    re.findall(
        r"\w+",
        "told shown found known made given taken seen kept left lost heard gone drawn written "
        "behind beside before after within without above below inside outside again apart aside "
        "away fit fits",
    )
)
_LAYOUT = frozenset(
    (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
     tokenize.ENDMARKER)
)  # fmt: skip


def shares(counts: Counter[str]) -> dict[str, float]:
    """Fillers per 1,000 names, and three shares in per cent."""
    return {
        "fillers": 1000 * counts["fillers"] / max(counts["names"], 1),
        "participles": 100 * counts["participles"] / max(counts["functions"], 1),
        "leaning": 100 * counts["leaning"] / max(counts["first lines"], 1),
        "comments": 100 * counts["comments"] / max(counts["lines"], 1),
    }


def _bound_names(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            yield name
        case ast.arg(arg=name) | ast.ClassDef(name=name):
            yield name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield name


def _is_participle(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    decorators = {node.id for node in function.decorator_list if isinstance(node, ast.Name)}
    word = function.name.strip("_")
    if decorators & {"property", "cached_property"}:
        return word in _ADVERBS
    return word in _ADVERBS or ("_" not in word and word.endswith("ed") and len(word) > 4)


def count(path: Path) -> Counter[str]:
    """Count the lines of code, the comments, and what `shares` is of, in a file."""
    text, counts = path.read_text(encoding="utf-8"), Counter[str]()
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        for name in _bound_names(node):
            counts["names"] += 1
            counts["fillers"] += name.strip("_") in _FILLERS
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            counts["functions"] += 1
            counts["participles"] += _is_participle(node)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring is not None:
                literal = node.body[0]
                docstrings |= {*range(literal.lineno, (literal.end_lineno or 0) + 1)}
                counts["first lines"] += 1
                counts["leaning"] += bool(_PRONOUNS.search(docstring.splitlines()[0]))
    tokens = [*tokenize.generate_tokens(io.StringIO(text).readline)]
    code = {token.start[0] for token in tokens if token.type not in _LAYOUT}
    counts["lines"] = len(code - docstrings)
    counts["comments"] = sum(token.type == tokenize.COMMENT for token in tokens)
    return counts


@cache
def files() -> dict[Path, Counter[str]]:
    """The counts of each file of dig."""
    return {path: count(path) for path in sorted(DIG.rglob("*.py"))}


def packages() -> dict[str, Counter[str]]:
    """The counts of each package of dig; `dig` is what lies directly in it."""
    by_package: dict[str, Counter[str]] = defaultdict(Counter)
    for path, counts in files().items():
        package = path.relative_to(DIG).parts[0] if path.parent != DIG else "dig"
        by_package[package] += counts
    return by_package


if __name__ == "__main__":
    rows = packages()
    for package, counts in [*rows.items(), ("whole", sum(rows.values(), Counter()))]:
        figures = [f"{name} {value:.1f}" for name, value in shares(counts).items()]
        print(f"{package:<12} {counts['lines']:>6}", *figures)
