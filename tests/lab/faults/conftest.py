"""A small set of instances, made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest

from dig.lab.benchmark.answers import Answers
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
