"""Causes of errors outside a team."""

from __future__ import annotations

import pytest

from dig.detectors.error_causes import cause_of

LIMITED, OVERLOADED = "limited the number of requests", "was overloaded"


@pytest.mark.parametrize(
    ("error", "says"),
    [
        ("RateLimited: 429: 60 requests a minute are allowed, try again in 38 s", LIMITED),
        ("RateLimitError: Error code: 429 - {'error': {'message': 'Rate limit reached'}}", LIMITED),
        ("HTTPStatusError: Client error '429 Too Many Requests' for url 'http://a'", LIMITED),
        ("ClientError: 429 RESOURCE_EXHAUSTED. {'error': {'code': 429}}", LIMITED),
        ("RateLimitError: Error code: 429 - {'code': 'insufficient_quota'}", "no credit left"),
        ("OverloadedError: Error code: 529 - {'type': 'overloaded_error'}", OVERLOADED),
        ("InternalServerError: Error code: 503 - Service Unavailable", OVERLOADED),
        ("ServerError: 503 UNAVAILABLE. The model is overloaded", OVERLOADED),
        ("AuthenticationError: Error code: 401 - Incorrect API key provided", "accept a key"),
        ("PermissionError: tickets.example: 403, the key has run out on 1 March", "accept a key"),
        ("APITimeoutError: Request timed out.", "did not answer in time"),
        ("TimeoutError: tides.example did not answer within 0.4 s", "did not answer in time"),
        ("APIConnectionError: Connection error.", "could not be reached"),
        ("ConnectError: All connection attempts failed", "could not be reached"),
        ("A2AClientError: Network communication error: no route", "could not be reached"),
        ("OutputGuardrailTripwireTriggered: Guardrail Prices triggered", "a guardrail refused it"),
    ],
)
def test_the_errors_of_clients_are_read(error: str, says: str) -> None:
    cause = cause_of(error, "a")
    assert cause is not None and says in cause.says


@pytest.mark.parametrize(
    "error",
    [
        "ValueError: could not convert string to float: '4,20'",
        "ValueError: 429th row is empty", "KeyError: 'item 503'", "PermissionError: /etc/shadow",
        "ValueError: a bill of 500 EUR", "ValueError: 500 is no size", "KeyError: 'api_key'",
        "TypeError: overloaded f", "RuntimeError: unreachable", "",
    ],
)  # fmt: skip
def test_an_error_of_the_agent_itself_has_no_such_cause(error: str) -> None:
    assert cause_of(error, "a") is None


def test_the_remedy_names_the_wait_and_the_agent() -> None:
    """A server that says when to come back is asked again then."""
    cause = cause_of("RateLimited: 429: too fast, try again in 38 s", "facts")
    assert cause is not None
    assert cause.remedy == "Wait 38 s, then ask again, or let `facts` wait and try again by itself"
    assert cause.lasting == "let `facts` send fewer requests, or wait longer between its tries"


@pytest.mark.parametrize("words", ["retry 3 of 5", "waiting for 3 workers"])
def test_other_numbers_are_no_wait(words: str) -> None:
    cause = cause_of(f"RateLimited: 429: {words}", "facts")
    assert cause is not None and cause.remedy.startswith("Ask again")
