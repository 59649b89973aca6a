"""The model pipeline with a model that makes no sense, whose server has a grammar."""

from __future__ import annotations

from typing import Any

import pytest

from dig.diagnosis.conversations.ranking import rank
from dig.diagnosis.stages.pipeline import ModelMethod
from dig.runtime.llm import ModelSettings
from tests.diagnosis.conversations.talks import BRIDGES, talk
from tests.llm.llama import Llama, babble
from tests.llm.server import Answer, Server, fails, says, serving

from .test_pipeline import NAMES, asked, script, statuses


def through(llama: Llama, **settings: Any) -> tuple[Server, Any]:
    """The answer about a conversation, with the model behind such a server."""
    with serving(llama) as server:
        method = ModelMethod(ModelSettings("m", server.url, retries=0, **settings))
        return server, method(talk(BRIDGES))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(12))
def test_nonsense_in_all_six_stages_gives_an_answer_all_the_same(seed: int) -> None:
    """Each stage is done, failed or skipped; the answer names a step that is there."""
    _, found = through(Llama(lambda request: says(""), invent=babble(seed)))
    assert [row.name for row in found.stages if row.by == "model"] == NAMES
    assert set(statuses(found).values()) <= {"done", "failed", "skipped"}
    first = found.candidates[0]
    assert first.step in range(len(talk(BRIDGES).steps)) and first.agent
    assert abs(sum(one.share for one in found.candidates) - 1) < 1e-9


def test_a_model_with_nothing_to_say_leaves_the_answer_without_it() -> None:
    """A grammar around an empty mind gives the smallest values, which testify nothing."""
    _, found = through(Llama(lambda request: says("")))
    usual = rank(talk(BRIDGES))
    assert [one.step for one in found.candidates] == [one.step for one in usual.candidates]
    assert "the one without a model stands" in " ".join(found.notes)


def test_a_stage_that_writes_without_an_end_fails_at_the_bound() -> None:
    """The reply is cut off, its stage says at what bound, and the next stage is asked."""
    answers = script()
    llama = Llama(answers, endless=[1])
    server, found = through(llama, max_reply=300)
    assert statuses(found)["parse"] == "failed" and len(server.requests) == 6
    (row,) = [row for row in found.stages if row.status == "failed"]
    assert row.why == "the model's reply was cut off at its length limit (--max-reply)"
    assert all(request["max_completion_tokens"] == 300 for request in server.requests)


def test_a_server_that_is_too_slow_is_asked_once_and_told_with_the_cure() -> None:
    """Without retries the first silence is the last; the note says how long it was waited for."""
    llama = Llama(script(), withheld=range(9))
    server, found = through(llama, timeout_s=0.3)
    assert len(server.requests) == 1
    (note,) = [one for one in found.notes if "the one without a model stands" in one]
    assert "gave no usable reply to 1 request; the last one:" in note
    assert "did not answer within 0.3 s (--request-timeout)" in note
    assert (found.cost.model_calls, found.cost.uncounted_calls) == (1, 1)


def test_a_refused_request_is_no_request_of_unknown_cost() -> None:
    """The server read nothing of it."""
    refusal: Answer = fails(401, "wrong key")
    _, found = asked(lambda request: refusal)
    assert (found.cost.model_calls, found.cost.uncounted_calls) == (1, 0)
