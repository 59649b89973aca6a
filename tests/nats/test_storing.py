"""How an owner stores: many requests at once, answers that are lost, a full disk, three servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import anyio
import pytest

from dig.adapters.nats.client import AwaitedAnswers, ask, pose
from dig.adapters.nats.connection import Connection, Message
from dig.adapters.nats.session import HeldSession

from .account import account_of, read_stream
from .harness import NAME, NAMES, session, until

pytestmark = pytest.mark.anyio

store_all = Connection.store_all


async def test_what_comes_during_an_append_is_one_append(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests are handled while others are stored, and wait for no more than one append."""
    async with session(url) as (client, _):
        await ask(client, NAME, "first")
        handle, handled = HeldSession.handle, list[str]()
        is_appended, may_go_on = anyio.Event(), anyio.Event()

        async def slowly(self: Connection, messages: Sequence[Message]) -> list[int | None]:
            if messages[0][0] == NAMES.journal_subject and not is_appended.is_set():
                is_appended.set()
                await may_go_on.wait()
            return await store_all(self, messages)

        def count(self: HeldSession, *message: Any) -> None:
            handle(self, *message)
            handled.append(message[1])

        async def are_handled(number: int) -> bool:
            return handled.count("client") == number

        monkeypatch.setattr(Connection, "store_all", slowly)
        monkeypatch.setattr(HeldSession, "handle", count)
        answers = AwaitedAnswers(client, NAMES)
        await answers.open()
        contexts = [await pose(client, NAMES, "a")]
        await is_appended.wait()
        before = len(await read_stream(client, NAMES.journal))
        contexts += [await pose(client, NAMES, letter) for letter in "bcd"]
        await until(lambda: are_handled(4))
        may_go_on.set()
        for context in contexts:
            await answers.of(context)
        stored = await read_stream(client, NAMES.journal)
        assert (await account_of(client, NAME)).faults == []
    emitted = [message.data.count(b'"kind":"emit"') for message in stored[before:]]
    assert emitted[:2] == [1, 3], emitted


async def test_answers_that_were_lost_double_nothing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All is stored, and the owner hears of none of it: what it asks for again is there once."""

    async def lose(self: Connection, messages: Sequence[Message]) -> list[int | None]:
        await store_all(self, messages)
        return [None] * len(messages)

    monkeypatch.setattr(Connection, "store_all", lose)
    async with session(url) as (client, _):
        for number in range(3):
            assert await ask(client, NAME, number) == {"text": number}
        assert (await account_of(client, NAME)).faults == []
