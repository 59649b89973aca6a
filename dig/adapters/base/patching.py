"""Replacements of a framework's methods, and the state of an adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, suppress
from functools import wraps
from inspect import isasyncgenfunction, iscoroutinefunction, signature
from typing import Any, ClassVar, TypeVar, cast

from .call_errors import CalledOffError
from .session import Session

_T = TypeVar("_T")

_CallWith = Callable[[tuple[Any, ...], Mapping[str, Any]], Any]
"""A function that takes the arguments of a call as `(args, kwargs)`."""

_NOTHING = object()

NOTE = "[monitor] {}"
"""The text of a note in a framework's message, unless the user formats notes."""

ADAPTER_FAILED = CalledOffError("the wrapper has failed, and does not know what became of this")
"""The recorded error of turns whose end the adapter does not know; never raised."""


class Patches:
    """The replaced attributes of a framework's objects, until `restore`."""

    def __init__(self) -> None:
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        self._is_on = True

    def patch(self, owner: Any, name: str, replacement: Callable[..., Any], *first: Any) -> None:
        """Replace a method of an object by `replacement(method, *first, ...)`.

        Args:
            owner: The object.
            name: The method's name.
            replacement: The function to call, with the original method as first argument.
            first: Further arguments, before the arguments of the call.
        """
        self.put(owner, name, self.around(getattr(owner, name), replacement, *first))

    def around(
        self, original: Callable[..., Any], replacement: Callable[..., Any], *first: Any
    ) -> Callable[..., Any]:
        """Make a function around `replacement(original, *first, ...)`, or `original` later.

        The function has the signature of the original, and is awaited or iterated if the original
        is. The replacement gets its arguments by position wherever the original could, even if the
        caller names them. After `restore`, the function calls the original.
        """
        try:
            parameters = signature(original)
        except (TypeError, ValueError):  # an object that Python cannot look into
            parameters = None

        def call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
            if not self._is_on:
                return original(*args, **kwargs)
            if parameters is not None and kwargs:
                with suppress(TypeError):  # the framework says itself what is wrong with it
                    bound = parameters.bind(*args, **kwargs)
                    args, kwargs = bound.args, bound.kwargs
            return replacement(original, *first, *args, **kwargs)

        return like(original, call)

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute of an object, of a pydantic model too."""
        self._replaced.append((owner, name, value, vars(owner).get(name, _NOTHING)))
        _kind_of(owner).__setattr__(owner, name, value)

    def restore(self) -> None:
        """Restore all attributes, except attributes replaced by other code since."""
        self._is_on = False
        for owner, name, mine, before in reversed(self._replaced):
            if vars(owner).get(name) is not mine:
                continue
            if before is _NOTHING:
                _kind_of(owner).__delattr__(owner, name)
            else:
                _kind_of(owner).__setattr__(owner, name, before)
        self._replaced.clear()


def _kind_of(owner: Any) -> Any:
    """The class whose methods set attributes of an object: a model refuses all but its fields."""
    return object if hasattr(type(owner), "__pydantic_fields__") else type(owner)


def like(original: Callable[..., Any], call: _CallWith) -> Callable[..., Any]:
    """Make a function around `call` with the looks of `original`, to `inspect` too."""
    if isasyncgenfunction(original):

        @wraps(original)
        async def iterate(*args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            async with aclosing(call(args, kwargs)) as items:
                step, argument = items.asend, None
                while True:
                    try:
                        item = await step(argument)
                    except StopAsyncIteration:
                        return
                    try:  # asynchronous generators have no `yield from`
                        step, argument = items.asend, (yield item)
                    except GeneratorExit:
                        raise
                    except BaseException as error:
                        step, argument = items.athrow, error

        return iterate
    if iscoroutinefunction(original):

        @wraps(original)
        async def wait(*args: Any, **kwargs: Any) -> Any:
            return await call(args, kwargs)

        return wait
    return wraps(original)(lambda *args, **kwargs: call(args, kwargs))


class AdapterState:
    """An adapter's knowledge of a team; no failure in here reaches the framework.

    Attributes:
        session: The session.
        has_failed: Whether a step has failed, so that this knowledge may be wrong: then the team is
            still observed, if `reports_after_failure`, and not healed any more.
        reports_after_failure: Whether steps after a failed one are made, or nothing but
            `on_failure`.
    """

    reports_after_failure: ClassVar[bool] = True

    def __init__(self, session: Session) -> None:
        self.session = session
        self.has_failed = False

    @property
    def only_observes(self) -> bool:
        """Whether agents get no notes, and no answer is sent back."""
        return self.has_failed or self.session.mode == "observe"

    def step(self, fn: Callable[..., _T], *args: Any, default: _T) -> _T:
        """Call a function in a single step of the session.

        Args:
            fn: The function.
            args: The arguments of the function.
            default: The return value if the step fails, or is not made.
        """
        if self.has_failed and not self.reports_after_failure:
            return default
        result: Any = self.session.guard.run(self._attempt, fn, args, default=_NOTHING)
        if result is not _NOTHING:
            return cast(_T, result)
        self._fail_now()  # for a step never begun, as when a detector calls the team
        return default

    def _attempt(self, fn: Callable[..., _T], args: tuple[Any, ...]) -> _T:
        try:
            return fn(*args)
        except Exception:
            self._fail_now()
            raise
        finally:
            if self.has_failed:
                with suppress(Exception):
                    self.session.holds.release_unawaited()

    def on_failure(self) -> None:
        """Close open turns after a failure, as far as possible; called once, in the failed step."""

    def _fail_now(self) -> None:
        if not self.has_failed:
            self.has_failed = True
            with suppress(Exception):  # a second failure tells nothing new
                self.on_failure()
