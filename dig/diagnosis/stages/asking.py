"""Asks a language model for the answers of stages, and caches the answers.

What fails is a stage that failed, and no error: whoever asks has something else that stands in.
After a wrong key or a budget that is used up no further request is sent.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from dig._util.files import read_file
from dig._util.text import one_line
from dig.diagnosis.conversations.ranking import Attribution
from dig.errors import ModelError, SettingsError, StopRunError, file_errors
from dig.runtime.llm.model import Model
from dig.show.document import CostRow, StageRow
from dig.traces.journal.durable_files import MODE, write_file
from dig.traces.journal.exchanges import EXCHANGES

from .requests import Requests

S = TypeVar("S", bound=BaseModel)

NOT_ANSWERED = "the model gave no answer, so the one without a model stands"


@dataclass
class StageAnswers:
    """Asks a model once a stage, as long as the model answers and the budget lasts.

    Attributes:
        requests: Makes the requests about the conversation.
        cache: The folder in which answers are kept, if they are.
        is_strict: Whether a stage that fails is an error.
        stages: The stages that were carried out.
        usage: The use of the model so far.
    """

    model: Model
    requests: Requests
    cache: Path | None
    is_strict: bool
    stages: list[StageRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    _end: str | None = None

    @property
    def has_ended(self) -> bool:
        """Whether an error has ended all requests."""
        return self._end is not None

    async def ask(
        self,
        name: str,
        schema: type[S],
        instructions: str,
        more: Mapping[str, Any] | None = None,
        *,
        full: Collection[int] = (),
        only: Collection[int] | None = None,
        check: Callable[[S], str | None] = lambda answer: None,
        is_repairable: bool = False,
    ) -> S | None:
        """Ask a stage; ``None``: there is no answer, and a row of `stages` has the reason.

        Args:
            name: The stage.
            schema: The shape of the answer.
            instructions: The question to the model.
            more: Further keys of the request.
            full: The steps that are shown in full, if there is room.
            only: The steps that are shown; ``None``: all are.
            check: Says what is wrong with an answer; ``None``: nothing.
            is_repairable: Whether an answer is of use that is wrong twice.

        Raises:
            SettingsError: The stage failed, and that is an error.
        """
        if self._end is not None:
            self.skip(name, self._end)
            return None
        messages = self.requests.messages(instructions, more, full=full, only=only)
        path = self._path(messages, schema)
        answer = _read_cached(path, schema)
        if answer is None:
            answers: list[S] = []

            def check_answer(answer: S) -> None:
                answers.append(answer)
                if complaint := check(answer):
                    raise ValueError(complaint)

            try:
                await self.model.ask(
                    messages, schema, check=check_answer, usage=self.usage, who=name
                )
            except StopRunError as error:  # no key or no budget: further stages would fail too
                self._end = one_line(error)
                self.fail(name, self._end)
                return None
            except ModelError as error:
                # The model was asked twice already; a wrong answer may be of use all the same.
                if not (is_repairable and answers):
                    self.fail(name, one_line(error))
                    return None
            answer = answers[-1]
            if path is not None:
                with file_errors(path, "written"):
                    write_file(path, answer.model_dump_json().encode())
        self.stages.append(StageRow(name=name, by="model", status="done", why=None))
        return answer

    def fail(self, name: str, reason: str) -> None:
        """Record a failed stage.

        Raises:
            SettingsError: The failure is an error.
        """
        if self.is_strict:
            raise SettingsError(f"the stage {name!r} failed: {reason}")
        self.stages.append(StageRow(name=name, by="model", status="failed", why=reason))

    def skip(self, name: str, reason: str) -> None:
        """Record a skipped stage."""
        self.stages.append(StageRow(name=name, by="model", status="skipped", why=reason))

    def _path(self, messages: Sequence[Mapping[str, Any]], schema: type[BaseModel]) -> Path | None:
        if self.cache is None:
            return None
        # Everything that an answer depends on, so that a changed text or shape asks again.
        settings = self.model.settings
        key = [
            settings.model, settings.base_url, settings.temperature, [*messages],
            schema.model_json_schema(),
        ]  # fmt: skip
        text = json.dumps(key, sort_keys=True)
        return self.cache / f"{sha256(text.encode()).hexdigest()}.json"

    def without_model(self, ranked: Attribution, notes: Sequence[str] = ()) -> Attribution:
        """Fall back on the ranking, for want of answers of the model.

        Args:
            ranked: The ranking of that answer.
            notes: The remaining notes, besides.
        """
        reasons = [stage.why for stage in self.stages if stage.status == "failed"]
        note = ": ".join(filter(None, [NOT_ANSWERED, *reasons[-1:]]))
        return replace(
            ranked, stages=(*self.stages, *ranked.stages), notes=(note, *notes, *ranked.notes)
        )

    def cost(self) -> CostRow:
        """Sum up the cost of all requests."""
        has_price = self.model.settings.price_in is not None
        return CostRow(
            model_calls=int(self.usage.get("model_calls", 0)),
            input_tokens=int(self.usage.get("input_tokens", 0)),
            output_tokens=int(self.usage.get("output_tokens", 0)),
            uncounted_calls=int(self.usage.get("uncounted_calls", 0)),
            usd=float(self.usage.get("cost_usd", 0.0)) if has_price else None,
        )


def _read_cached(path: Path | None, schema: type[S]) -> S | None:
    """Read a cached answer; damaged answers are asked for again."""
    if path is None:
        return None
    try:
        return schema.model_validate_json(read_file(path))
    except (OSError, ValidationError):
        return None


def keep_exchanges(model: Model, cache: Path) -> None:
    """Append the exchanges of a model to a file in the cache.

    Raises:
        SettingsError: The directory of the cache cannot be made.
    """
    path = cache / EXCHANGES
    with file_errors(cache, "made"):
        cache.mkdir(parents=True, exist_ok=True)

    def keep(exchange: dict[str, Any]) -> None:
        line = json.dumps(exchange).encode() + b"\n"
        try:
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, MODE), "ab") as file:
                file.write(line)
        except OSError as error:
            raise StopRunError(f"{path} cannot be written: {error.strerror or error}") from None

    model.keep = keep
