"""The page as an HTML document, around its data or the address of a live source."""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from dig._util.text import one_line

from .rows import Row, dumps

STYLES = ("tokens.css", "frame.css", "panels.css")


@dataclass(frozen=True)
class ShownRun:
    """A run in a page.

    Attributes:
        head: See `dig.show.page.about`.
        rows: See `dig.show.page.rows`; some of them as JSON.
        difference: Of a twin, the place where it parts from the run above it.
    """

    name: str
    head: dict[str, Any]
    rows: Sequence[Row | str]
    difference: dict[str, Any] | None = None

    def json(self, **more: str) -> str:
        """The run as a JSON object.

        Args:
            more: Further members, as JSON.
        """
        rows = ",".join(row if isinstance(row, str) else dumps(row) for row in self.rows)
        parts = {"head": dumps(self.head), "rows": f"[{rows}]", **more}
        if self.difference is not None:
            parts["difference"] = dumps(self.difference)
        return f"{{{','.join(f'{dumps(key)}:{part}' for key, part in parts.items())}}}"


def report_page(run: ShownRun, twin: ShownRun | None = None, runs: str = "") -> str:
    """The page with the data of a run.

    The data are compressed, and so are letters and digits only: nothing in a payload can end the
    element that holds them, or be taken for a script.

    Args:
        run: The run.
        twin: A run beside it; by default none.
        runs: The address of a list of runs to go back to; empty: there is none.
    """
    members = {"twin": twin.json()} if twin else {}
    # Without the time of day, so that a run always gives the same bytes.
    data = gzip.compress(run.json(**members).encode(), 4, mtime=0)
    title = f"{one_line(run.name, 120)} - dig-monitor"
    return _page(title, data=b64encode(data).decode(), runs=runs)


def live_page(address: str, title: str, runs: str = "") -> str:
    """The page of a live source.

    Args:
        address: The address of the event stream, relative to the page's own.
        title: The document's; plain text.
        runs: The address of a list of runs to go back to; empty: there is none.
    """
    return _page(title, address, runs=runs)


def policy(*, live: bool = False) -> str:
    """The content security policy of the page: no script or style but the page's own.

    Args:
        live: Whether the page may send requests to its own server; by default not.
    """
    rules = [
        "default-src 'none'",
        f"script-src {_digest(_script())}",
        f"style-src {_digest(_style())}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    if live:
        rules.append("connect-src 'self'")
    return "; ".join(rules)


def _page(title: str, address: str = "", *, data: str = "", runs: str = "") -> str:
    parts = {
        "TITLE": escape(title),
        "POLICY": escape(policy(live=bool(address))),
        "STYLE": _style(),
        "SOURCE": escape(address),
        "RUNS": escape(runs),
        "DATA": data,
        "SCRIPT": _script(),
    }
    return re.sub(r"{{(\w+)}}", lambda hole: parts[hole[1]], source("page.html"))


@cache
def _script() -> str:
    text = bundle(modules())
    # A script element ends at the first such text, even inside a string.
    if "</" in text or "<!--" in text:
        raise ValueError("the page's script would end its own element")
    return text


@cache
def _style() -> str:
    return "\n".join(map(source, STYLES))


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


# --- the modules of the page as one script ---


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


def bundle(sources: Mapping[str, str]) -> str:
    """Join modules into a script without imports.

    A page that is opened from disk can import no file, so each module becomes a function that
    returns its exports, after the modules it needs. A module may contain only the forms that the
    page's own modules use: `import { a, b } from "./x.js";`, and `export` before `function`,
    `async function`, `class` and `const`.

    Args:
        sources: Modules by name.

    Raises:
        ValueError: Modules need one another in a circle, or a form is not understood.
    """
    needs = {name: [match[2] for match in _IMPORT.finditer(sources[name])] for name in sources}
    parts = [
        f"M[{name!r}] = (() => {{\n{_function(sources[name])}\n}})();"
        for name in TopologicalSorter(needs).static_order()
    ]
    return '"use strict";\n(() => {\nconst M = {};\n' + "\n".join(parts) + "\n})();\n"


def _function(text: str) -> str:
    exports = ", ".join(match[2] for match in _EXPORT.finditer(text))
    body = _EXPORT.sub(r"\1 \2", _IMPORT.sub(r"const { \1 } = M['\2'];", text))
    for line in body.splitlines():
        if line.startswith(("import ", "export ")):  # a form that is not understood
            raise ValueError(f"the page cannot be put together: {line!r}")
    return f"{body}\nreturn {{ {exports} }};"
