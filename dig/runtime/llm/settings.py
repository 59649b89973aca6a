"""The settings of a model: name, server, patience and budget."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import urlsplit

from dig.errors import SettingsError

OPENAI = "https://api.openai.com/v1"
KEY = "OPENAI_API_KEY"

BOUNDS = ("max_completion_tokens", "max_tokens")
"""The names under which servers take the bound on a reply, the newer one first."""

JsonMode = Literal["strict", "object", "text"]
"""The way the shape of an answer is asked for; see `dig.runtime.llm.replies.request_parts`."""


@dataclass(frozen=True)
class ModelSettings:
    """One model on one OpenAI-compatible server; holds the name of a key's variable, never a key.

    Attributes:
        model: Its name, as the server knows it.
        base_url: The server's address, up to and without `/chat/completions`.
        api_key_env: The environment variable that has the key.
        timeout_s: Seconds of real time that one request may take.
        activation_timeout_s: Seconds of real time that one activation of an agent may take;
            ``None``: as long as its requests may take, one after the other.
        retries: The number of times that a request is sent again when the server is busy or has
            failed.
        attempts: The number of replies that are asked for, in all, until one is usable.
        longest_wait_s: The longest `Retry-After` that is waited for, in seconds.
        concurrency: The number of requests of one team that may be under way at once.
        temperature: Sent along, if given.
        max_reply: Tokens after which the server ends a reply, which is then of no use.
        max_tokens: Tokens, sent and received, after which the run is stopped.
        max_usd: US dollars after which the run is stopped; needs the two prices.
        price_in: US dollars for a million tokens sent.
        price_out: US dollars for a million tokens received.
        native_tools: Whether the server keeps `tools` apart from the schema of an answer. Elsewhere
            the grammar of the schema keeps a model from calling tools, so the calls become part of
            the answer. ``None``: only OpenAI's own server is known to.
        json_mode: The way the shape of an answer is asked for: `strict`, `object` or `text`;
            `auto`: `strict`, and the next one for the rest of the run when the server refuses it.
    """

    model: str
    base_url: str = OPENAI
    api_key_env: str = KEY
    timeout_s: float = 30.0
    activation_timeout_s: float | None = None
    retries: int = 2
    attempts: int = 2
    longest_wait_s: float = 20.0
    concurrency: int = 4
    temperature: float | None = None
    max_reply: int = 2000
    max_tokens: int | None = None
    max_usd: float | None = None
    price_in: float | None = None
    price_out: float | None = None
    native_tools: bool | None = None
    json_mode: JsonMode | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        """Refuse wrong values.

        Raises:
            SettingsError: The message says what, and what to do.
        """
        url = urlsplit(self.base_url)
        if not self.model.strip():
            raise SettingsError(
                "no model is named: give --model NAME, or name one in ModelSettings"
            )
        if url.scheme not in ("http", "https") or not url.hostname:
            shown = self.base_url.rpartition("@")[2]
            raise SettingsError(f"{shown!r} is no address of a server; try {OPENAI}")
        for name in ("timeout_s", "attempts", "concurrency", "max_reply", "max_tokens", "max_usd"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise SettingsError(f"{name} must be more than 0, not {value:g}")
        self.check_limit(self.activation_timeout_s, "an activation (--activation-timeout)")
        for name in ("retries", "longest_wait_s", "price_in", "price_out"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise SettingsError(f"{name} must not be negative, as {value:g} is")
        if self.json_mode not in ("auto", *get_args(JsonMode)):
            raise SettingsError(
                f"json_mode must be auto, {', '.join(get_args(JsonMode))}, not {self.json_mode!r}"
            )
        if self.max_usd is not None and None in (self.price_in, self.price_out):
            raise SettingsError("a budget in dollars needs both prices, --price-in and --price-out")

    def check_limit(self, limit_s: float | None, subject: str) -> None:
        """Refuse a limit within which a request could not come to its end.

        Args:
            limit_s: Seconds of real time; ``None``: there is no limit.
            subject: What has the limit, with its option.

        Raises:
            SettingsError: The limit is shorter than one request may take.
        """
        if limit_s is not None and limit_s < self.timeout_s:
            raise SettingsError(
                f"{subject} may take {limit_s:g} s, which is less than one request may take, "
                f"{self.timeout_s:g} s (--request-timeout)"
            )

    @property
    def keeps_tools_apart(self) -> bool:
        """Whether a request may have both `tools` and a schema."""
        if self.native_tools is not None:
            return self.native_tools
        return urlsplit(self.base_url).hostname == urlsplit(OPENAI).hostname

    @property
    def where(self) -> str:
        """The server's address without user, password and query."""
        url = urlsplit(self.base_url)
        return f"{url.scheme}://{url.netloc.rpartition('@')[2]}{url.path}"

    def key(self, environment: Mapping[str, str] = os.environ) -> str:
        """The key to send; a server other than OpenAI's may need none, and is sent a word.

        Raises:
            SettingsError: There is none, and OpenAI's own server is asked, or a variable was named.
        """
        key = environment.get(self.api_key_env, "").strip()
        if not key and (self.base_url == OPENAI or self.api_key_env != KEY):
            raise SettingsError(
                f"there is no API key: set the environment variable {self.api_key_env}, "
                "or name another with --api-key-env"
            )
        return key or "none"
