"""Causes of errors outside a team: limits, overload, refusals and silence of servers."""

from __future__ import annotations

import re
from typing import NamedTuple

from dig._util.text import name

MOST_READ = 400
_STATUS = re.compile(r"(?:: |code:? |status:? |http[ /]|[\[('\"]|^)([45]\d\d)\b")
_WAIT = re.compile(
    r"(?:try again|retry|wait)\w{0,3} (?:in|after|for):? ?(\d{1,6}(?:\.\d{1,3})?)"
    r" ?((?:ms|s|sec|second|m|min|minute|h|hour)s?\b|(?=[.,;)]|$))"
)
_OF_CODE = (
    "assertionerror", "attributeerror", "indexerror", "keyerror", "lookuperror", "nameerror",
    "syntaxerror", "typeerror", "valueerror",
)  # fmt: skip
"""Errors of a program about its own values: these may name any number, and any thing."""


class ErrorCause(NamedTuple):
    """The deed of a server, as a clause; the next step, as an order; and what helps for good."""

    says: str
    remedy: str
    lasting: str


def cause_of(error: str, agent: str) -> ErrorCause | None:
    """Find the cause of an error by the words; ``None``: another cause.

    Args:
        error: The error, with its type.
        agent: The name of the agent with the error.
    """
    text = error[:MOST_READ].lower()
    if text.startswith(_OF_CODE):
        return None
    status, wait = _STATUS.search(text), _WAIT.search(text)
    words = f"{text.replace('_', ' ')} #{status[1] if status else ''}"
    for signs, (says, remedy, lasting) in _CAUSES.items():
        if any(sign in words for sign in signs):
            ask, named = (
                f"Wait {wait[1]} {wait[2] or 's'}, then ask" if wait else "Ask",
                name(agent),
            )
            texts = (text.format(agent=f"`{named}`", ask=ask) for text in (remedy, lasting))
            return ErrorCause(says, *texts)
    return None


_CAUSES = {
    ("guardrail", "tripwire", "content filter", "contentfilter", "content policy"): (
        "a guardrail refused it", "See what the guardrail refused, and mend {agent}, not the guard",
        "see what the guardrail refused, and mend {agent}, not the guard",
    ),
    ("#402", "insufficient quota", "credit balance", "insufficient credit"): (
        "an account has no credit left", "Add credit to the account that {agent} uses",
        "see to the credit of the account that {agent} uses",
    ),
    ("#429", "rate limit", "ratelimit", "too many requests", "resource exhausted"): (
        "a server limited the number of requests",
        "{ask} again, or let {agent} wait and try again by itself",
        "let {agent} send fewer requests, or wait longer between its tries",
    ),
    ("#500", "#502", "#503", "#504", "#529", "overloaded", "service unavailable"): (
        "a server was overloaded, or failed",
        "Wait until the server is free, or give {agent} another model or server, then ask again",
        "give {agent} another model or server",
    ),
    ("#401", "#403", "authenticationerror", "permissiondenied", "api key"): (
        "a server did not accept a key", "Renew the key or the rights that {agent} needs",
        "see to the key or the rights that {agent} needs",
    ),
    ("#408", "timeouterror", "timed out", "readtimeout", "timeoutexception"): (
        "a server or tool did not answer in time", "Give {agent} more time, or let it try again",
        "give {agent} more time, or let it try again",
    ),
    ("connectionerror", "connecterror", "connection refused", "connection reset",
     "connection attempts failed", "network communication error", "is unreachable"): (
        "a server could not be reached", "See whether {agent} can reach its server, then ask again",
        "see whether {agent} can reach its server",
    ),
}  # fmt: skip
"""Words and, after `#`, HTTP statuses in errors, as the clients of OpenAI, Anthropic, Google and of
HTTP write them -> the cause, and the remedy."""
