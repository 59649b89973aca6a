"""Draws are functions of what they are for, and of nothing else."""

from __future__ import annotations

from hashlib import blake2b
from statistics import fmean, pstdev
from typing import Any

import pytest

from dig.runtime import keyed_random as module
from dig.runtime.keyed_random import KeyedRandom


def test_a_draw_depends_on_its_arguments_only() -> None:
    """What was drawn before changes nothing."""
    fresh, used = KeyedRandom(1, "a", 2), KeyedRandom(1, "a", 2)
    for i in range(10):
        used.uniform("something else", i)
        used.normal("think")
    assert used.uniform("think") == fresh.uniform("think")


def test_every_argument_counts() -> None:
    """Another seed, agent, turn, purpose or index is another draw."""
    values = [
        KeyedRandom(1, "a", 1).uniform("x", 0),
        KeyedRandom(2, "a", 1).uniform("x", 0),
        KeyedRandom(1, "b", 1).uniform("x", 0),
        KeyedRandom(1, "a", 2).uniform("x", 0),
        KeyedRandom(1, "a", 1).uniform("y", 0),
        KeyedRandom(1, "a", 1).uniform("x", 1),
        KeyedRandom(11, "a", 1).uniform("x", 0),
        KeyedRandom(1, "a", 11).uniform("x", 0),
        KeyedRandom(1, "a", 1).uniform("x", 10),
    ]
    assert len(set(values)) == len(values)


def test_uniform_draws_are_spread_over_zero_to_one() -> None:
    """Each tenth of the range gets about a tenth of the draws."""
    values = [KeyedRandom(7, "a", 1).uniform("x", i) for i in range(20_000)]
    assert all(0 <= value < 1 for value in values)
    for tenth in range(10):
        share = sum(tenth / 10 <= value < (tenth + 1) / 10 for value in values) / len(values)
        assert share == pytest.approx(0.1, abs=0.01)


def test_one_is_never_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest hash there is gives a number below 1, so that `choice` finds an item."""

    class Largest:
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self._size = blake2b(*args, **kwargs).digest_size

        def digest(self) -> bytes:
            return b"\xff" * self._size

    monkeypatch.setattr(module, "blake2b", Largest)
    assert KeyedRandom(1, "a", 1).uniform("x") < 1
    assert KeyedRandom(1, "a", 1).choice("abc", "x") == "c"  # type: ignore[arg-type]


def test_normal_draws_have_mean_zero_and_deviation_one() -> None:
    """Roughly, over many draws."""
    values = [KeyedRandom(7, "a", 1).normal("x", i) for i in range(20_000)]
    assert fmean(values) == pytest.approx(0, abs=0.03)
    assert pstdev(values) == pytest.approx(1, abs=0.03)


def test_lognormal_draws_lie_around_their_median() -> None:
    """Half of them below it, none negative."""
    values = [KeyedRandom(7, "a", 1).lognormal(3.0, 0.8, "x", i) for i in range(10_000)]
    assert min(values) > 0
    assert sum(value < 3.0 for value in values) / len(values) == pytest.approx(0.5, abs=0.02)


def test_chances_and_choices_are_fair() -> None:
    """A chance of 0.3 happens in three of ten draws, each of four items in one of four."""
    draws = KeyedRandom(7, "a", 1)
    happened = sum(draws.chance(0.3, "x", i) for i in range(10_000))
    assert happened / 10_000 == pytest.approx(0.3, abs=0.02)
    chosen = [draws.choice(["a", "b", "c", "d"], "y", i) for i in range(10_000)]
    assert all(chosen.count(x) / 10_000 == pytest.approx(0.25, abs=0.02) for x in "abcd")
    assert not any(draws.chance(0.0, "z", i) for i in range(100))
    assert all(draws.chance(1.0, "z", i) for i in range(100))


def test_the_numbers_are_the_same_for_ever() -> None:
    """Stored runs name their seed; these values must never change."""
    draws = KeyedRandom(1, "a", 3)
    assert draws.uniform("wait") == PINNED["uniform"]
    assert draws.uniform("wait", 1) == PINNED["uniform 1"]
    assert KeyedRandom(0, "agent 2", 1).uniform("latency") == PINNED["latency"]
    assert draws.normal("think") == pytest.approx(PINNED["normal"], rel=1e-12)
    assert draws.lognormal(2.0, 0.5, "think") == pytest.approx(PINNED["lognormal"], rel=1e-12)


PINNED = {
    "uniform": 0.4871898122799878,
    "uniform 1": 0.07639714587529844,
    "latency": 0.03656554510359755,
    "normal": 0.10961269055228591,
    "lognormal": 2.1126720608090204,
}
