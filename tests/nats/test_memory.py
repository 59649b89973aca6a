"""What the monitor of a session remembers, without a network."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from dig.adapters.nats.envelopes import read_activation
from dig.adapters.nats.names import KIND, TRACEPARENT, VERSION, V, agent_in, child_context, token_of
from dig.adapters.nats.session import HeldSession, Notes, Terms
from dig.graph.chain import SealedLines
from dig.graph.records import Record
from dig.runtime.resume import Resumption

from .harness import SETUP


def test_the_contexts_of_consumed_events_are_forgotten() -> None:
    """Each was kept for as long as 10,000 others, and each activation with it."""
    setup = replace(SETUP, keep=0)
    sealed, lines = SealedLines(setup.header()), list[bytes]()

    def seal(record: Record) -> None:
        lines.append(sealed.line(record))

    setup.monitor(("editor",), float, seal)
    notes = Notes()
    resumption = Resumption(lines, setup, sink=notes, is_served=True)
    resumption.feed()
    session = HeldSession(resumption, notes, lambda: 0.0, 0, Terms())
    contexts = [child_context(None) for _ in range(300)]
    for number, context in enumerate(contexts, 1):
        headers = {V: VERSION, TRACEPARENT: context}
        problem = json.dumps({"payload": number}).encode()
        session.handle(2 * number - 1, "client", {**headers, KIND: "problem"}, problem)
        (release,) = session.take()[1]
        mail = read_activation(release.body)
        assert mail.contexts == {mail.view.events[0].id: context}
        output = {"payload": number, "type": "solution", "final": True}
        fates = [{"event": event.id, "fate": "consume"} for event in mail.view.events]
        body = {"activation": mail.view.activation, "mark": mail.mark}
        body["value"] = {"fates": fates, "outputs": [output]}  # type: ignore[assignment]
        decision = json.dumps(body).encode()
        session.handle(2 * number, "editor", {**headers, KIND: "decision"}, decision)
        (answer,) = session.take()[1]
        assert json.loads(answer.body)["answer"] == number
    assert len(notes.contexts) < 50
    assert list(notes.by_context) == contexts


def test_answers_to_problems_with_the_same_context_are_all_kept() -> None:
    """Until it is known to be released, each is owed to an inbox."""
    notes = Notes()
    for t in (3, 5):
        notes._keep(t, {"problems": [], "asked": ["a context"], "error": "busy"})
    assert [release.t for release in notes.answers.values()] == [3, 5]
    assert [release.t for release in notes.by_context.values()] == [5]


@pytest.mark.parametrize(
    ("beat", "agent"), [(b"bob#2", "bob#2"), (b"", ""), (b"bob", ""), (b"bob\xff2", ""),
                        (b"x" * 1_000_000, "")],
)  # fmt: skip
def test_a_heartbeat_counts_for_the_agent_of_its_subject(beat: bytes, agent: str) -> None:
    """Anything may be sent there; a name that is too long is not remembered."""
    before = token_of.cache_info().currsize
    assert agent_in("bob=232", beat) == agent
    assert token_of.cache_info().currsize <= before + (len(beat) < 10)
