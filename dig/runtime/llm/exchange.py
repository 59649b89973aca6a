"""One request and what came of it, as it is kept beside a run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

Keep = Callable[[dict[str, Any]], None]
"""Is given each exchange, when it is over, as plain JSON."""

CUT_OFF = "cut off"


@dataclass
class Exchange:
    """One request, and what came of it.

    Attributes:
        who: Who asked.
        model: Which model.
        messages: The conversation that was sent.
        schema: The name of the shape that was asked for.
        tools: The names of the tools that were offered.
        status: The HTTP status of the reply, if one came.
        reply: The body of the reply, as text.
        error: What went wrong; `cut off`, if nobody waited for the reply any more.
        at: When it was sent, in seconds since 1970.
        seconds: How long it took, in real time.
    """

    who: str
    model: str
    messages: Sequence[Any]
    schema: str
    tools: Sequence[str] = ()
    status: int | None = None
    reply: str | None = None
    error: str | None = CUT_OFF
    at: float = 0.0
    seconds: float = 0.0

    @classmethod
    def of(cls, request: Mapping[str, Any], who: str) -> Exchange:
        """The exchange that begins with a request."""
        tools = [tool["function"]["name"] for tool in request.get("tools", ())]
        schema = request["response_format"].__name__
        return cls(who, request["model"], request["messages"], schema, tools)

    @contextmanager
    def kept(self, keep: Keep) -> Iterator[None]:
        """Keep it when the block is left, however that comes about."""
        self.at, began = time.time(), time.monotonic()
        try:
            yield
        finally:
            self.seconds = round(time.monotonic() - began, 6)
            keep(asdict(self))
