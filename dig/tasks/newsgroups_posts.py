"""Posts to newsgroups: the standard folders of 20 Newsgroups, and a small set of our own.

In the standard layout every post is a file `<group>/<number>` in Latin-1, below a folder
`20news-bydate-train`. Headers are taken off, as is usual with these data, since they name the
group; and so are lines of quoted headers that do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from dig._util.text import safe_text
from dig.errors import SettingsError

GROUPS = (
    "alt.atheism", "comp.graphics", "comp.os.ms-windows.misc", "comp.sys.ibm.pc.hardware",
    "comp.sys.mac.hardware", "comp.windows.x", "misc.forsale", "rec.autos", "rec.motorcycles",
    "rec.sport.baseball", "rec.sport.hockey", "sci.crypt", "sci.electronics", "sci.med",
    "sci.space", "soc.religion.christian", "talk.politics.guns", "talk.politics.mideast",
    "talk.politics.misc", "talk.religion.misc",
)  # fmt: skip
TRAIN = "20news-bydate-train"
MOST_CHARACTERS = 1500
"""Of one post; the rest of a longer one is left out, so that messages stay readable."""

_NAMES_GROUPS = re.compile(r"^[^\w\n]*(newsgroups|followup-to|xref|path)[^\w\n]*:.*$", re.I | re.M)


@dataclass(frozen=True, slots=True)
class Post:
    """A post and the newsgroup.

    Attributes:
        group: The newsgroup: the true topic.
        source: Its file, or the text itself.
    """

    group: str
    source: Path | str

    def text(self) -> str:
        """The body, without headers.

        Raises:
            SettingsError: Its file cannot be read.
        """
        return _read(self.source) if isinstance(self.source, Path) else self.source


@lru_cache(maxsize=4)
def real(path: str) -> tuple[Post, ...]:
    """The posts below a folder, in order of group and number; files are read when needed.

    Args:
        path: `20news-bydate-train`, or the folder that it is in.

    Raises:
        SettingsError: There are no such folders; the message says what is missing.
    """
    folder = Path(path)
    if (folder / TRAIN).is_dir():
        folder /= TRAIN
    try:
        groups = sorted(entry.name for entry in folder.iterdir() if _is_visible(entry, True))
        _check(groups, folder)
        return tuple(post for group in groups for post in _group(folder / group))
    except OSError as error:
        reason = f"{safe_text(folder, 200)}: {error.strerror or error}"
        raise SettingsError(f"the newsgroups cannot be read: {reason}") from None


def _check(groups: list[str], folder: Path) -> None:
    location = safe_text(folder, 200)
    if not set(GROUPS) & set(groups):
        raise SettingsError(
            f"{location} has no newsgroups: it should have folders like {GROUPS[0]}"
        )
    for name in groups:
        if name not in GROUPS:
            raise SettingsError(f"{location} has an unknown group, {safe_text(name, 60)}")
    missing = [group for group in GROUPS if group not in groups]
    if missing:
        raise SettingsError(f"{location} lacks {', '.join(missing)}; unpack the data once more")


def _group(folder: Path) -> Iterator[Post]:
    names = sorted(entry.name for entry in folder.iterdir() if _is_visible(entry, False))
    if not names:
        raise SettingsError(f"{safe_text(folder, 200)} is empty; unpack the data once more")
    return (Post(folder.name, folder.absolute() / name) for name in names)


def _is_visible(entry: Path, is_folder: bool) -> bool:
    return not entry.name.startswith(".") and entry.is_dir() == is_folder


@lru_cache(maxsize=20_000)
def _read(file: Path) -> str:
    try:
        return without_headers(file.read_text(encoding="latin-1"))
    except OSError as error:
        reason = f"{safe_text(file, 200)}: {error.strerror or error}"
        raise SettingsError(f"a post cannot be read: {reason}") from None


def without_headers(post: str) -> str:
    """The body of a post, up to `MOST_CHARACTERS`.

    >>> without_headers("From: ada\\nNewsgroups: sci.space\\n\\nA comet!\\n> Newsgroups: rec.autos")
    'A comet!'
    """
    body = post.partition("\n\n")[2]
    return _NAMES_GROUPS.sub("", body).strip()[:MOST_CHARACTERS]


@lru_cache(maxsize=1)
def our_own() -> tuple[Post, ...]:
    """The posts of this package, ten for each topic."""
    return tuple(
        Post(group, line) for group, lines in sections("posts.txt").items() for line in lines
    )


def sections(file: str) -> dict[str, list[str]]:
    """The lines of a file of this package, by `[group]`."""
    groups: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in files("dig.tasks").joinpath(file).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            lines = groups.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return groups
