"""The options that name a language model: who decides for the agents of a run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Any

import typer

from dig.errors import SettingsError


@dataclass(frozen=True)
class Asking:
    """Which language model decides for the agents, where, and for how much money."""

    model: Annotated[
        str | None, typer.Option(help="The language model that decides for the agents.")
    ] = None
    base_url: Annotated[
        str | None,
        typer.Option(help="An OpenAI-compatible server, such as http://localhost:8000/v1."),
    ] = None
    api_key_env: Annotated[
        str | None, typer.Option(help="The environment variable that has the server's key.")
    ] = None
    temperature: Annotated[float | None, typer.Option(help="Sent to the model, if given.")] = None
    request_timeout: Annotated[
        float | None, typer.Option(help="Seconds that one request to the model may take.")
    ] = None
    concurrency: Annotated[
        int | None, typer.Option(help="How many requests may be under way at once.")
    ] = None
    max_tokens: Annotated[
        int | None,
        typer.Option(
            help="Stop after so many tokens, sent and received: the run, or the whole experiment."
        ),
    ] = None
    max_usd: Annotated[
        float | None,
        typer.Option(help="Stop after so many US dollars: the run, or the whole experiment."),
    ] = None
    price_in: Annotated[
        float | None, typer.Option(help="US dollars for a million tokens sent.")
    ] = None
    price_out: Annotated[
        float | None, typer.Option(help="US dollars for a million tokens received.")
    ] = None

    def of_run(self, *, virtual: bool, speed: float) -> dict[str, Any]:
        """What a run is told: `agents_are` and `options`; nothing, if no model is named.

        Raises:
            SettingsError: The options make no sense, or there is no key.
        """
        from dig.runtime.llm import ModelSettings

        named = {_NAMES.get(name, name): value for name, value in vars(self).items()}
        given = {name: value for name, value in named.items() if value is not None}
        if self.model is None:
            if given:
                option = next(iter(given)).replace("_", "-")
                raise SettingsError(f"--{option} is about a language model; name it with --model")
            return {}
        if virtual:
            raise SettingsError("a language model takes real time to decide; leave --virtual out")
        if speed != 1:
            raise SettingsError("a language model thinks at its own speed; leave --speed out")
        if "base_url" not in given and os.environ.get(BASE_URL):
            given["base_url"] = os.environ[BASE_URL]
        model = given.pop("model")
        ModelSettings(model, **given).key()
        return {"agents_are": f"model {model}", "options": given}


BASE_URL = "OPENAI_BASE_URL"
_NAMES = {"request_timeout": "timeout_s"}
