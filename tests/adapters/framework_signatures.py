"""What a wrapper puts in place of a framework's functions: it looks like them, and is called so.

What is replaced is seen where `Patches` replaces it; what an adapter replaces by other means is
handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from inspect import (
    Parameter,
    isasyncgenfunction,
    iscoroutinefunction,
    isgeneratorfunction,
    signature,
)
from typing import Any
from unittest.mock import patch

from dig.adapters.base import Patches
from dig.detectors import standard
from dig.runtime.setup import Setup

from .harness import Scenario, bare, play

FINDING = Setup(detectors=standard)
"""Everything is found, and nothing healed: healing changes what comes of a team."""

KINDS = (iscoroutinefunction, isasyncgenfunction, isgeneratorfunction)


@dataclass(frozen=True)
class Pair:
    """A function, and what stands in its place."""

    whole: Callable[..., Any]
    stand_in: Callable[..., Any]

    def differences(self) -> Iterator[str]:
        """In what the second is not like the first."""
        name = getattr(self.whole, "__qualname__", repr(self.whole))
        bare, wrapped = signature(self.whole), signature(self.stand_in)
        if shape(bare.parameters) != shape(wrapped.parameters):
            yield f"{name}{bare} became {wrapped}"
        for kind in KINDS:
            if kind(self.whole) != kind(self.stand_in):
                yield f"{name}: {kind.__name__} was {kind(self.whole)}"


def shape(parameters: Mapping[str, Parameter]) -> list[Any]:
    """Names, kinds and defaults of parameters."""
    return [(one.name, one.kind, one.default) for one in parameters.values()]


@contextmanager
def tapped(*, by_name: bool = False) -> Iterator[list[Pair]]:
    """While a block lasts, see what is replaced; `by_name`: and is called with keywords only."""
    whole_around, pairs = Patches.around, list[Pair]()

    def around(patches: Patches, whole: Any, stand_in: Any, *first: Any) -> Any:
        made = whole_around(patches, whole, stand_in, *first)
        pairs.append(Pair(whole, made))
        return naming(whole, made) if by_name else made

    with patch.object(Patches, "around", around):
        yield pairs


def naming(whole: Any, made: Any) -> Any:
    """The same function, given each argument by its name that can be given so."""
    known = signature(whole, follow_wrapped=False)

    @wraps(made)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any(one.kind is Parameter.VAR_POSITIONAL for one in known.parameters.values()):
            return made(*args, **kwargs)
        given = known.bind(*args, **kwargs).arguments
        first: list[Any] = []
        named: dict[str, Any] = {}
        for name, value in given.items():
            match known.parameters[name].kind:
                case Parameter.POSITIONAL_ONLY:
                    first.append(value)
                case Parameter.VAR_KEYWORD:
                    named.update(value)
                case _:
                    named[name] = value
        return made(*first, **named)

    return call


def must_look_alike(
    watched: Any, asked: Iterable[Scenario], replaced: Callable[[], Iterable[Pair]] = list
) -> None:
    """All that is replaced while teams are asked has the signature and the kind of what was there.

    Args:
        watched: What wraps teams, made of a mode and a setup.
        asked: The teams, and what they are asked.
        replaced: What is replaced by other means than patches.
    """
    with tapped() as pairs:
        for one in asked:
            play(one, watched("heal", FINDING))
    every = [*pairs, *replaced()]
    assert every, "nothing was replaced"
    assert not [what for pair in every for what in pair.differences()]


def must_take_keywords(watched: Any, asked: Iterable[Scenario]) -> None:
    """A team that calls all that was replaced with keywords comes to the same as without."""
    for one in asked:
        for mode in ("observe", "heal"):
            with tapped(by_name=True):
                wrapped = play(one, watched(mode, FINDING))
            alone = bare(one)
            assert (wrapped.returned, wrapped.raised) == (alone.returned, alone.raised), str(one)
