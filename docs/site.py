"""What the site of the docs has besides the pages: links that leave it, and the commands' help."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

DOCS = Path(__file__).parent
OUTSIDE = ("lab", "internals")
"""What stands in the repository, and not on the site."""
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s#]+)(#[^)\s]*)?\)")
CODE = re.compile(r"(```.*?```|`[^`\n]+`)", re.DOTALL)
MOST_PAGES, MOST_WORDS = 24, 45_000
ASKED = {
    "silence": "policy.html",
    "off": "production.html",
    "cost": "production.html",
    "approval": "policy.html",
    "remove": "index.html",
}
"""Words that people look for, and the page that has them in a heading."""
HELP = "<!-- every command's help -->"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Name a file of the repository where a link leads out of the site."""
    parts = CODE.split(markdown)
    here = (DOCS / page.file.src_uri).parent
    parts[::2] = (LINK.sub(lambda link: _inside(link, here), part) for part in parts[::2])
    return "".join(parts).replace(HELP, _help() if HELP in markdown else "")


def on_post_build(config: Any, **_: Any) -> None:
    """Refuse a site that is too large, or that lacks a word which people look for."""
    pages = [*DOCS.glob("*.md")]
    words = sum(len(page.read_text("utf-8").split()) for page in pages)
    if len(pages) > MOST_PAGES or words > MOST_WORDS:
        raise PluginError(f"{len(pages)} pages with {words:,} words: too many to read")
    index = Path(config["site_dir"], "search", "search_index.json").read_text("utf-8")
    places = {entry["location"]: entry["title"].lower() for entry in json.loads(index)["docs"]}
    for word, page in ASKED.items():
        if not any(place.startswith(page) and word in title for place, title in places.items()):
            raise PluginError(f"no heading of {page} has the word {word!r}, which people look for")


def _inside(link: re.Match[str], here: Path) -> str:
    words, target = link[1], link[2]
    if "://" in target:
        return link[0]
    path = Path(os.path.relpath(here / target, DOCS))
    if path.parts[0] not in ("..", *OUTSIDE):
        return link[0]
    name = os.path.relpath(here / target, DOCS.parent)
    return words if words.strip("`") in name else f"{words} (`{name}`)"


def _help() -> str:
    """The help of every command, as the terminal shows it."""
    listed = _ask("--help").partition("Commands:\n")[2]
    names = re.findall(r"^  ([a-z-]+) ", listed, re.MULTILINE)
    return "\n".join(f"## digmon {name}\n\n```text\n{_ask(name, '--help')}```\n" for name in names)


def _ask(*arguments: str) -> str:
    command = [sys.executable, "-m", "dig", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
