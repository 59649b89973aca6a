"""The page around its data, or around the address of a live source: one HTML document."""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from typing import Any

from .bundle import bundle, modules, source

STYLES = ("tokens.css", "frame.css", "panels.css")


def report_page(head: dict[str, Any], rows: list[dict[str, Any]], title: str) -> str:
    """The page with a run in it.

    The data are compressed, and so are letters and digits only: nothing in a payload can end the
    element that holds them, or be taken for a script.

    Args:
        head: See `dig.show.page.about`.
        rows: See `dig.show.page.rows`.
        title: The document's; plain text.
    """
    data = json.dumps({"head": head, "rows": rows}, separators=(",", ":")).encode()
    inlined = b64encode(gzip.compress(data, 6, mtime=0)).decode()
    return _page(title, "", inlined, policy())


def live_page(address: str, title: str, runs: str = "") -> str:
    """The page that follows a live source.

    Args:
        address: Of the event stream, as seen from the page's own address.
        title: The document's; plain text.
        runs: The address of a list of runs to go back to, if there is one.
    """
    return _page(title, address, "", policy(live=True), runs)


def policy(*, live: bool = False) -> str:
    """The content security policy of the page: its own script and style, and nothing else.

    Args:
        live: Whether it may ask its own server.
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


def _page(title: str, address: str, data: str, rules: str, runs: str = "") -> str:
    parts = {
        "TITLE": escape(title),
        "POLICY": escape(rules, quote=True),
        "STYLE": _style(),
        "SOURCE": escape(address, quote=True),
        "RUNS": escape(runs, quote=True),
        "DATA": data,
        "SCRIPT": _script(),
    }
    first, *pieces = source("page.html").split("{{")
    named = (piece.split("}}", 1) for piece in pieces)
    return first + "".join(parts[name] + rest for name, rest in named)


@cache
def _script() -> str:
    text = bundle(modules(), "main")
    if "</" in text or "<!--" in text:
        raise ValueError("the page's script would end its own element")
    return text


@cache
def _style() -> str:
    return "\n".join(map(source, STYLES))


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
