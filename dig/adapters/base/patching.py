"""Standing in place of a framework's methods, and telling a session what comes through them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from functools import wraps
from inspect import Signature, isasyncgenfunction, iscoroutinefunction, signature
from typing import Any, ClassVar, TypeVar, cast

from .session import Session, let_go_rest

_T = TypeVar("_T")

Call = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]
"""What is called with the arguments of another function: `(args, kwargs)`."""

_NOTHING = object()

LOST_TRACK = RuntimeError("the wrapper has failed, and does not know what became of this")
"""What a trace says of turns whose end nobody knows; it is never raised."""


class Taps:
    """What stands in place of attributes of the framework's objects, until it is taken away."""

    def __init__(self) -> None:
        """Begin with nothing replaced."""
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        self._is_on = True

    def tap(self, owner: Any, name: str, stand_in: Callable[..., Any], *first: Any) -> None:
        """Have a method of one object call `stand_in(method, *first, ...)` instead."""
        self.put(owner, name, self.around(getattr(owner, name), stand_in, *first))

    def around(
        self, whole: Callable[..., Any], stand_in: Callable[..., Any], *first: Any
    ) -> Callable[..., Any]:
        """A function that calls `stand_in(whole, *first, ...)`; once all is restored, `whole`.

        It has the signature of `whole`, and is awaited or iterated if that is. The stand-in is
        given by position what `whole` could be given so, in whatever way the caller names it.
        """
        known = _signature(whole)

        def call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            if not self._is_on:
                return whole(*args, **kwargs)
            if known is not None and kwargs:
                with suppress(TypeError):  # the framework says itself what is wrong with it
                    bound = known.bind(*args, **kwargs)
                    args, kwargs = bound.args, bound.kwargs
            return stand_in(whole, *first, *args, **kwargs)

        return like(whole, call)

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of one object."""
        self._replaced.append((owner, name, value, vars(owner).get(name, _NOTHING)))
        setattr(owner, name, value)

    def restore(self) -> None:
        """Put back what was there; what somebody else has replaced since stays as it is."""
        self._is_on = False
        for owner, name, mine, before in reversed(self._replaced):
            if vars(owner).get(name) is not mine:
                continue
            if before is _NOTHING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        self._replaced.clear()


def like(whole: Callable[..., Any], call: Call) -> Callable[..., Any]:
    """A function that looks like another one, to `inspect` too, and calls `call(args, kwargs)`."""
    if isasyncgenfunction(whole):

        @wraps(whole)
        async def iterated(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            async with aclosing(call(args, kwargs)) as pieces:
                async for piece in pieces:
                    yield piece

        return iterated
    if iscoroutinefunction(whole):

        @wraps(whole)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await call(args, kwargs)

        return awaited

    @wraps(whole)
    def called(*args: Any, **kwargs: Any) -> Any:
        return call(args, kwargs)

    return called


def _signature(whole: Callable[..., Any]) -> Signature | None:
    try:
        return signature(whole)
    except (TypeError, ValueError):  # nothing that Python can look into
        return None


class Teller:
    """Tells a session what happens, so that nothing that fails in here reaches the framework.

    Attributes:
        session: The session.
        is_lost: Whether a step has failed, so that what is known may be wrong: then the team is
            still observed, if `tells_on`, and not healed any more.
        tells_on: Whether more is told once a step has failed, or nothing but `lose_track`.
    """

    tells_on: ClassVar[bool] = True

    def __init__(self, session: Session) -> None:
        """Begin."""
        self.session = session
        self.is_lost = False

    @property
    def only_looks(self) -> bool:
        """Whether nothing is shown to agents, and nothing sent back."""
        return self.is_lost or self.session.mode == "observe"

    def step(self, do: Callable[..., _T], *args: Any, otherwise: _T) -> _T:
        """Do something in one step of the session."""
        if self.is_lost and not self.tells_on:
            return otherwise

        def whole() -> _T:
            try:
                return do(*args)
            except Exception:
                self._is_lost_now()
                raise
            finally:
                if self.is_lost:
                    with suppress(Exception):
                        let_go_rest(self.session)  # what is held may be in nobody's mail

        result: Any = self.session.step(whole, otherwise=_NOTHING)
        if result is not _NOTHING:
            return cast(_T, result)
        self._is_lost_now()  # if it was never begun; else it is known already
        return otherwise

    def lose_track(self) -> None:
        """Tell what can still be told, in the step that failed."""

    def _is_lost_now(self) -> None:
        if not self.is_lost:
            self.is_lost = True
            with suppress(Exception):  # it knows too little: what failed before is told already
                self.lose_track()
