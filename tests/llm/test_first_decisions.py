"""`python -m bench.decisions`: each first reply is counted once, by what it is."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from bench.decisions import main
from tests.llm.server import Answer, says, serving, writes

FATES = [{"event": "e1", "fate": "consume"}]
SUBMITS = {"fates": FATES, "outputs": [{"payload": {"counts": {}}, "final": True}]}
RESPONDS = {"fates": FATES, "outputs": [{"to": ["agent-2"], "payload": 1}]}
REPLIES = [
    (writes(("raw_data", {"part": [0, 5]})), "usable: call of raw_data"),
    (writes(("size", {"part": [9, 2]}), ("size", {"part": [0, 5]})), "usable: call of size"),
    (says(SUBMITS), "usable: submit"),
    (says(RESPONDS), "usable: respond"),
    (says({"fates": [], "outputs": []}), "usable: wait"),
    (writes(("raw_data", {"part": [0, 20]})), "unusable: a call that the tool refuses"),
    (says({"fates": [{"event": "e9", "fate": "consume"}]}), "'e9' is none of these: e1"),
    (says("{", finish="length"), "was cut off"),
]


@pytest.mark.parametrize(("reply", "kind"), REPLIES)
def test_a_first_reply_is_usable_or_not(
    reply: Answer, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing is asked for again, and what it is stands in the table."""
    with serving([reply]) as server:
        options = ["--base-url", server.url, "--model", "m", "--count", "2"]
        monkeypatch.setattr(sys, "argv", ["decisions", *options])
        main()
    told: Any = capsys.readouterr().out.splitlines()
    count = 2 if kind.startswith("usable") else 0
    assert told[0].startswith(f"{count} of 2 first replies are usable") and kind in told[1]
    assert len(server.requests) == 2
    assert server.requests[0]["max_completion_tokens"] == 400
