"""Recorded model traffic, which `DIG_CASSETTES` names the folder of, played back in order.

The files are YAML as vcrpy writes them, of runs of the OpenAI Agents SDK against the Responses API.
Agents, tools and what the tools returned are in the requests.
"""

from __future__ import annotations

import gzip
import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

FOLDER = Path(os.environ.get("DIG_CASSETTES", "no cassettes"))
CASSETTES = sorted(FOLDER.glob("*.yaml"))
NEEDS_CASSETTES = pytest.mark.skipif(
    not CASSETTES, reason="DIG_CASSETTES names no folder of cassettes"
)
# httpx, or httpx2 from openai 3 on.
httpx = import_module(DefaultAsyncHttpxClient.__mro__[1].__module__)


class Cassette:
    """A recording.

    Attributes:
        requests: The recorded requests.
        results: What the tools returned, by the ids of the calls.
        asked: The requests that were made in the playback.
        client: The client to make them with.
    """

    def __init__(self, path: Path) -> None:
        yaml = pytest.importorskip("yaml")
        interactions = yaml.safe_load(path.read_text("utf-8"))["interactions"]
        recorded = [one for one in interactions if one["request"]["uri"].endswith("/responses")]
        self.requests = [json.loads(one["request"]["body"]) for one in recorded]
        self.responses = [one["response"] for one in recorded]
        self.asked: list[Any] = []
        items = [item for request in self.requests for item in request["input"]]
        self.results = {i["call_id"]: i["output"] for i in items if "output" in i}
        transport = httpx.MockTransport(self._answer)
        self.client = AsyncOpenAI(
            api_key="none", http_client=httpx.AsyncClient(transport=transport), max_retries=0
        )

    def _answer(self, request: Any) -> Any:
        number = len(self.asked)
        asked = json.loads(request.content)
        asked.pop("prompt_cache_key", None)  # random, new for each run
        self.asked.append(asked)
        response = self.responses[number]
        body = response["body"]["string"]
        body = body.encode() if isinstance(body, str) else gzip.decompress(body)
        kind = next(v for k, v in response["headers"].items() if k.lower() == "content-type")
        return httpx.Response(200, content=body, headers={"content-type": kind[0]})

    def questions(self) -> list[dict[str, Any]]:
        """The first requests of the runs: those in which nobody but the user has spoken."""
        return [r for r in self.requests if all(item.get("role") == "user" for item in r["input"])]

    def must_give_results(self) -> None:
        """The recorded results of tools stand at their places."""
        calls = [
            [[item["call_id"] for item in request["input"] if "output" in item]
             for request in requests]
            for requests in (self.asked, self.requests)
        ]  # fmt: skip
        assert calls[0] == calls[1]
