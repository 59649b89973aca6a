"""A wrapped team sends its spans by itself: `dig.wrap(.., otlp=...)` and `DIG_OTLP`."""

from __future__ import annotations

import logging
from pathlib import Path

import anyio
import pytest

import dig
from dig.errors import SettingsError
from dig.traces.otel.otlp import Otlp

from .receiver import Received, attributes, http_receiver

SECRET = "the words of a customer"


def ask(endpoint: str | None = None, journal: Path | None = None, *, contents: bool = False) -> str:
    """A team of two is asked once and unwrapped; gives the name of its run directory."""
    team: dict[str, object] = {}

    async def desk(words: str) -> str:
        return await team["clerk"](words)  # type: ignore[operator,no-any-return]

    async def clerk(words: str) -> str:
        return f"done: {words}"

    team.update(desk=desk, clerk=clerk)
    team = dig.wrap(team, otlp=endpoint, contents=contents, journal=journal)
    anyio.run(team["desk"], SECRET)  # type: ignore[arg-type]
    directory = dig.session_of(team).directory
    dig.unwrap(team)
    return "" if directory is None else directory.name


def agents(received: Received) -> set[str]:
    named = (attributes(span).get("dig.agent.name") for span in received.spans())
    return {name for name in named if name}


def test_an_address_is_all_that_is_needed(tmp_path: Path) -> None:
    """Each activation arrives as a span; the run has the id of its directory."""
    with http_receiver() as received:
        name = ask(received.endpoint, tmp_path)
    assert agents(received) == {"desk", "clerk"}
    ids = {attributes(span).get("session.id") for span in received.spans()} - {None}
    assert ids == {name}


def test_the_environment_may_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """`DIG_OTLP` does for a program that cannot be changed; a run without a directory is sent."""
    with http_receiver() as received:
        monkeypatch.setenv("DIG_OTLP", received.endpoint)
        ask()
    assert agents(received) == {"desk", "clerk"}


def test_contents_leave_if_they_are_asked_for() -> None:
    """By default no word of a request leaves the process."""
    with http_receiver() as received:
        ask(received.endpoint)
        assert SECRET not in str(received.requests)
        ask(received.endpoint, contents=True)
        assert SECRET in str(received.requests)


def test_what_is_no_address_is_refused() -> None:
    """The error says what an address looks like, and the team is as it was."""
    with pytest.raises(SettingsError, match="http://localhost:4318"):
        dig.wrap({"a": print}, otlp=4318)  # type: ignore[arg-type]


def test_a_receiver_that_is_not_there_is_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The team has its answer all the same, and one warning says what was lost."""
    monkeypatch.setattr(Otlp.close, "__defaults__", (0.1,))  # the patience with it
    with caplog.at_level(logging.WARNING, "dig.wrap"):
        ask("http://127.0.0.1:9")
    assert "lost" in caplog.text
