"""The modules of the page as one script that needs no network.

A page that is opened from disk can import no file, so each module becomes a function that returns
what it exports, in the order in which they need one another. What can stand in a module is what
the page's own modules use: `import { a, b } from "./x.js";`, and `export` before
`function`, `async function`, `class` and `const`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files

_IMPORT = re.compile(r'^import \{\s*([^}]+?),?\s*\} from "\./([\w-]+)\.js";$', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?function\*?|class|const) ([\w$]+)", re.MULTILINE)


@cache
def source(name: str) -> str:
    """A file of the page as text."""
    return files("dig.show.page").joinpath("page", name).read_text(encoding="utf-8")


@cache
def modules() -> Mapping[str, str]:
    """The modules of the page by name, without `.js`."""
    names = [file.name for file in files("dig.show.page").joinpath("page").iterdir()]
    return {name[:-3]: source(name) for name in sorted(names) if name.endswith(".js")}


def bundle(sources: Mapping[str, str], entry: str) -> str:
    """All that a module needs, and the module, as one script.

    Args:
        sources: Modules by name.
        entry: The one that is carried out.

    Raises:
        ValueError: Modules need one another in a circle, or one is missing.
    """
    parts = [
        f"M[{name!r}] = (() => {{\n{_function(sources[name])}\n}})();"
        for name in _ordered(sources, entry, ())
    ]
    return '"use strict";\n(() => {\nconst M = {};\n' + "\n".join(parts) + "\n})();\n"


def _ordered(sources: Mapping[str, str], name: str, above: tuple[str, ...]) -> list[str]:
    """A module after all that it needs."""
    if name in above or name not in sources:
        what = "needs itself" if name in above else "is missing"
        raise ValueError(f"the module {name} {what} (from {' > '.join(above) or 'the page'})")
    order: dict[str, None] = {}
    for match in _IMPORT.finditer(sources[name]):
        order.update(dict.fromkeys(_ordered(sources, match[2], (*above, name))))
        wanted = {part.split(" as ")[0].strip() for part in match[1].split(",")}
        if unknown := wanted - {found[2] for found in _EXPORT.finditer(sources[match[2]])}:
            raise ValueError(f"the module {name} takes {unknown} from {match[2]}, which has none")
    return [*order, name]


def _function(text: str) -> str:
    exported = ", ".join(match[2] for match in _EXPORT.finditer(text))
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub(_taken, text))
    if left := next(_left(body), None):
        raise ValueError(f"the page cannot be put together: {left!r}")
    return f"{body}\nreturn {{ {exported} }};"


def _taken(match: re.Match[str]) -> str:
    return f"const {{ {match[1].replace(' as ', ': ')} }} = M[{match[2]!r}];"


def _left(body: str) -> Iterator[str]:
    """Lines that are a module's own still."""
    return (line for line in body.splitlines() if line.startswith(("import ", "export ")))
