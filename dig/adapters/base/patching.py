"""Patching a framework's methods, and telling a session what comes through them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from functools import wraps
from inspect import Signature, isasyncgenfunction, iscoroutinefunction, signature
from typing import Any, ClassVar, TypeVar, cast

from .errors import CalledOffError
from .session import Session

_T = TypeVar("_T")

_CallWith = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]
"""A function that is called with the arguments of another one: `(args, kwargs)`."""

_NOTHING = object()

NOTE = "[monitor] {}"
"""A note as a framework's messages show it, unless a user says how."""

ADAPTER_FAILED = CalledOffError("the wrapper has failed, and does not know what became of this")
"""Reason in a trace for turns whose end the adapter does not know; it is never raised."""


class Patches:
    """The replaced attributes of a framework's objects, until they are restored."""

    def __init__(self) -> None:
        """Begin with nothing replaced."""
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        self._is_on = True

    def patch(self, owner: Any, name: str, replacement: Callable[..., Any], *first: Any) -> None:
        """Have a method of one object call `replacement(method, *first, ...)` instead.

        Args:
            owner: The object.
            name: The method's name.
            replacement: The function that is called in its place, with the original method first.
            first: Further arguments, before those of the call.
        """
        self.put(owner, name, self.around(getattr(owner, name), replacement, *first))

    def around(
        self, original: Callable[..., Any], replacement: Callable[..., Any], *first: Any
    ) -> Callable[..., Any]:
        """A function that calls `replacement(original, *first, ...)`; once restored, `original`.

        It has the signature of the original, and is awaited or iterated if that is. The
        replacement is given by position what the original could be given so, in whatever way the
        caller names it.
        """
        known = _signature(original)

        def call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            if not self._is_on:
                return original(*args, **kwargs)
            if known is not None and kwargs:
                with suppress(TypeError):  # the framework says itself what is wrong with it
                    bound = known.bind(*args, **kwargs)
                    args, kwargs = bound.args, bound.kwargs
            return replacement(original, *first, *args, **kwargs)

        return like(original, call)

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of one object."""
        self._replaced.append((owner, name, value, vars(owner).get(name, _NOTHING)))
        setattr(owner, name, value)

    def restore(self) -> None:
        """Restore all attributes, except those that other code has replaced since."""
        self._is_on = False
        for owner, name, mine, before in reversed(self._replaced):
            if vars(owner).get(name) is not mine:
                continue
            if before is _NOTHING:
                delattr(owner, name)
            else:
                setattr(owner, name, before)
        self._replaced.clear()


def like(original: Callable[..., Any], call: _CallWith) -> Callable[..., Any]:
    """A function that looks like another one, to `inspect` too, and calls `call(args, kwargs)`."""
    if isasyncgenfunction(original):

        @wraps(original)
        async def iterated(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            async with aclosing(call(args, kwargs)) as items:
                step, given = items.asend, None
                while True:
                    try:
                        item = await step(given)
                    except StopAsyncIteration:
                        return
                    try:
                        step, given = items.asend, (yield item)
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        step, given = items.athrow, error

        return iterated
    if iscoroutinefunction(original):

        @wraps(original)
        async def awaited(*args: Any, **kwargs: Any) -> Any:
            return await call(args, kwargs)

        return awaited

    @wraps(original)
    def called(*args: Any, **kwargs: Any) -> Any:
        return call(args, kwargs)

    return called


def _signature(original: Callable[..., Any]) -> Signature | None:
    try:
        return signature(original)
    except (TypeError, ValueError):  # nothing that Python can look into
        return None


class AdapterState:
    """An adapter's knowledge of a team; no failure of it reaches the framework.

    Attributes:
        session: The session.
        has_failed: Whether a step has failed, so that what is known may be wrong: then the team is
            still observed, if `reports_after_failure`, and not healed any more.
        reports_after_failure: Whether more is told once a step has failed, or nothing but
            `on_failure`.
    """

    reports_after_failure: ClassVar[bool] = True

    def __init__(self, session: Session) -> None:
        """Begin."""
        self.session = session
        self.has_failed = False

    @property
    def only_observes(self) -> bool:
        """Whether nothing is shown to agents, and nothing sent back."""
        return self.has_failed or self.session.mode == "observe"

    def step(self, fn: Callable[..., _T], *args: Any, default: _T) -> _T:
        """Call a function in one step of the session.

        Args:
            fn: The function.
            args: Its arguments.
            default: The value that is returned if the step fails, or is not made.
        """
        if self.has_failed and not self.reports_after_failure:
            return default

        def call() -> _T:
            try:
                return fn(*args)
            except Exception:
                self._fail_now()
                raise
            finally:
                if self.has_failed:
                    with suppress(Exception):
                        self.session.holds.release_unawaited()

        result: Any = self.session.guard.run(call, default=_NOTHING)
        if result is not _NOTHING:
            return cast(_T, result)
        self._fail_now()  # if the step was never begun; else it is known already
        return default

    def on_failure(self) -> None:
        """Called once, inside the failed step: close open turns as far as their state is known."""

    def _fail_now(self) -> None:
        if not self.has_failed:
            self.has_failed = True
            with suppress(Exception):  # it knows too little: the first failure is reported already
                self.on_failure()
