"""Plain callables, wrapped: what stands in their place looks like them, and is called so."""

from __future__ import annotations

from functools import partial
from inspect import iscoroutinefunction, signature
from typing import Any

import pytest
from pydantic import BaseModel

from dig.adapters.base import Patches

from .framework_signatures import Pair
from .watching import watched

pytestmark = pytest.mark.anyio


async def work(task: str, /, more: int = 1, *rest: str, loud: bool = False, **others: Any) -> Any:
    return task, more, rest, loud, others


class Worker:
    async def __call__(self, task: str, more: int = 1) -> Any:
        return task, more


class Desk:
    async def ask(self, task: str, *, loud: bool = False) -> Any:
        return task, loud

    async def tell(self, task: str, more: int = 1) -> Any:
        return task, more


async def test_what_is_replaced_has_the_signature_of_what_was_there() -> None:
    """Names, kinds and defaults of parameters are the same, and what was awaited is."""
    bare: dict[str, Any] = {"work": work, "worker": Worker(), "part": partial(work, "x")}
    team = dict(bare)
    with watched(team):
        for name, function in bare.items():
            assert (team[name] is function) == (name == "worker")  # the object stays itself
            assert signature(team[name]) == signature(function)
            assert iscoroutinefunction(team[name]) == iscoroutinefunction(function)


async def test_replaced_methods_have_the_signature_of_the_bare_ones() -> None:
    """So it is with the methods of one object."""
    desk, bare = Desk(), Desk()
    with watched(desk):
        for name in ("ask", "tell"):
            assert not [*Pair(getattr(bare, name), getattr(desk, name)).differences()]


@pytest.mark.parametrize("mode", ["observe", "heal"])
async def test_what_is_replaced_can_be_called_by_name(mode: Any) -> None:
    """Each argument may be given by its name, as without a monitor."""
    team: dict[str, Any] = {"worker": Worker(), "work": work}
    desk = Desk()
    with watched(team, mode), watched(desk, mode):
        assert await team["worker"](more=2, task="x") == ("x", 2)
        assert await team["work"]("x", loud=True, other=3) == ("x", 1, (), True, {"other": 3})
        assert await desk.ask(loud=True, task="x") == ("x", True)


class Whole:
    """An object of a framework, with a method of each kind."""

    def now(self, task: str, more: int = 1, *, loud: bool = False) -> Any:
        return task, more, loud

    async def later(self, task: str, more: int = 1, *, loud: bool = False) -> Any:
        return task, more, loud

    async def bit_by_bit(self, task: str, more: int = 1, *, loud: bool = False) -> Any:
        for one in (task, more, loud):
            yield one


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("name", ["now", "later", "bit_by_bit"])
async def test_a_tap_is_of_the_kind_of_what_it_stands_for(name: str, is_on: bool) -> None:
    """Its stand-in gets by position what was given by name; once restored, nothing is changed."""
    seen: list[Any] = []

    def stand_in(whole: Any, first: str, task: str, *args: Any, **kwargs: Any) -> Any:
        seen.append((first, task, args, kwargs))
        return whole(task, *args, **kwargs)

    thing, patches = Whole(), Patches()
    bare = getattr(thing, name)
    patches.patch(thing, name, stand_in, "first")
    replaced = getattr(thing, name)
    assert not [*Pair(bare, replaced).differences()]
    if not is_on:
        patches.restore()
    result = replaced(more=2, task="x", loud=True)
    if name == "later":
        result = await result
    elif name == "bit_by_bit":
        result = tuple([one async for one in result])
    assert result == ("x", 2, True)
    assert seen == ([("first", "x", (2,), {"loud": True})] if is_on else [])


async def test_what_is_called_wrongly_raises_as_without_a_monitor() -> None:
    """A name that there is not is a `TypeError` that names what was called."""
    thing, patches = Whole(), Patches()

    def stand_in(whole: Any, *args: Any, **kwargs: Any) -> Any:
        return whole(*args, **kwargs)

    patches.patch(thing, "now", stand_in)
    with pytest.raises(TypeError, match=r"now.*unexpected keyword argument 'wrong'"):
        thing.now("x", wrong=1)  # type: ignore[call-arg]


class Model(BaseModel):
    name: str

    def greet(self) -> str:
        return self.name


def test_a_model_of_pydantic_is_changed_and_restored_though_it_refuses_all_but_its_fields() -> None:
    model, patches = Model(name="x"), Patches()
    patches.patch(model, "greet", lambda whole: whole() * 2)
    assert model.greet() == "xx"
    assert model.model_dump() == {"name": "x"}
    patches.restore()
    assert model.greet() == "x" and model == Model(name="x")
