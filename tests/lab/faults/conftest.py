"""A small set of instances, made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

from dig.lab.benchmark.answer_file import Answers
from dig.lab.benchmark.attributing import attribute_all
from dig.lab.benchmark.candidates import Configuration, Recipe
from dig.lab.benchmark.instances import FaultSet
from dig.lab.benchmark.storing import make_set

SMALL = Recipe(
    seed=7,
    count=30,
    configurations=(Configuration("newsgroups", 60, 3), Configuration("newsgroups", 60, 6)),
    baseline_runs=20,
    salt="small",
)


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> FaultSet:
    """Thirty instances of two configurations; nobody may change it."""
    path = tmp_path_factory.mktemp("sets") / "small"
    make_set(path, SMALL)
    return FaultSet.open(path)


@pytest.fixture(scope="session")
def answered(small: FaultSet) -> Callable[[str], Answers]:
    """The answers of an attributor about the small set, by its name, found once."""
    return cache(lambda name: attribute_all(name, small))


def files(folder: Path) -> dict[str, str]:
    """The digest of each file of a folder."""
    return {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
