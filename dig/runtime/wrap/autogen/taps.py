"""Standing in place of a framework's methods, and telling a session what comes through them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

from dig.errors import SettingsError
from dig.runtime.wrap import Session
from dig.runtime.wrap.holding import OnLoop

_T = TypeVar("_T")

_NOTHING = object()


class Taps:
    """What stands in place of attributes of the framework's objects, until it is taken away."""

    def __init__(self) -> None:
        """Begin with nothing replaced."""
        self._replaced: list[tuple[Any, str, Any, Any]] = []
        self._is_on = True

    def tap(self, owner: Any, name: str, stand_in: Callable[..., Any]) -> None:
        """Have a method of one object call `stand_in(method, *args, **kwargs)` instead."""
        self.put(owner, name, self.around(getattr(owner, name), stand_in))

    def around(self, whole: Callable[..., Any], stand_in: Callable[..., Any]) -> Callable[..., Any]:
        """A function that calls `stand_in(whole, ...)`; once all is restored, just `whole(...)`."""

        @wraps(whole)
        def tap(*args: Any, **kwargs: Any) -> Any:
            return stand_in(whole, *args, **kwargs) if self._is_on else whole(*args, **kwargs)

        return tap

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


class Teller:
    """Tells a session what happens, so that nothing that fails in here reaches the framework.

    Attributes:
        session: The session.
        is_lost: Whether a step has failed, so that what is known may be wrong: then the team is
            still observed, and not healed any more.
    """

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

        def whole() -> _T:
            try:
                return do(*args)
            except Exception:
                self.is_lost = True
                raise

        return self.session.step(whole, otherwise=otherwise)

    async def released(self, event: str) -> None:
        """Wait while an event is held; where it is not, nobody else gets a turn here."""
        if self.step(self.session.is_held, event, otherwise=False):
            try:
                await self.session.released(event)
            except Exception as error:  # a wait that fails is none
                self.step(_tell, error, otherwise=None)


def must_have(owner: Any, names: tuple[str, ...]) -> None:
    """Check that what this relies on is there.

    Raises:
        SettingsError: It is not; the message says what is missing.
    """
    missing = [name for name in names if not hasattr(owner, name)]
    if missing:
        what = ", ".join(missing)
        raise SettingsError(f"this AutoGen is put together in another way: no {what}")


Deliver = Callable[[str, str], object]
"""Brings an agent a note of the monitor at once."""


class Messenger:
    """Brings agents notes where their team runs.

    Attributes:
        loop: Where that is.
        session: Whose notes these are; without one nothing is brought.
    """

    def __init__(self, deliver: Deliver | None) -> None:
        """Begin without a session."""
        self.loop = OnLoop()
        self.session: Session | None = None
        self._deliver = deliver

    @property
    def bring(self) -> Deliver | None:
        """Brings an agent a note; ``None``: nobody has said how."""
        return None if self._deliver is None else self._bring

    def _bring(self, agent: str, note: str) -> None:
        if self.session is not None and self._deliver is not None:
            guard = self.session.guard  # the loop is the host's: nothing may be raised there
            self.loop.run(partial(guard, self._deliver, agent, note, otherwise=None))


def _tell(error: Exception) -> None:
    raise error
