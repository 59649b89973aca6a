"""`Model`: asks a language model for an answer of a given shape, and survives faults of the server.

`Exchange` is one request and what came of it, as it is kept beside a run; `Spending` counts what
the requests of a team have cost.

It knows nothing of agents; a judge uses it as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from os import environ
from typing import Any

import anyio
from pydantic import BaseModel, ValidationError

from dig._util.redaction import redact
from dig._util.text import counted, name
from dig.errors import ModelError, StopRunError

from .faults import ModelFault, as_fault
from .replies import (
    Completion,
    M,
    ModelMessage,
    Narrow,
    Reply,
    complaints,
    parse,
    request_parts,
    written_calls,
)
from .sdk import openai
from .settings import BOUNDS, JsonMode, ModelSettings

Messages = Sequence[Mapping[str, Any]]
"""A conversation, as the chat completions interface has it."""

Check = Callable[[Any], None]
"""Raises a `ValueError` for an answer that has the right shape and still makes no sense."""

COMPLAINT = (
    "Your reply could not be used: {why}. "
    "Reply again: one JSON object of the shape that was asked for, and nothing else."
)

FIRST_WAIT_S = 0.5
"""Before the first repetition, if the server does not say how long to wait; then doubled."""

LEAST_SECRET = 6
"""A shorter key is a word, such as `none`, which would be masked in every text."""

MOST_SILENCES = 6
"""A server that has replied before counts as dead after this many silent requests in a row."""

Keep = Callable[[dict[str, Any]], None]
"""Is given each exchange, when it is over, as plain JSON."""

Tell = Callable[[str], None]
"""Is told at once, in a line, of each request that fails and of each change of the JSON mode."""

Usage = MutableMapping[str, Any]
"""The use of an agent: `model_calls`, of these `failed_calls` if some failed, `uncounted_calls` if
the tokens of some are unknown, `input_tokens`, `output_tokens`, and `cost_usd` if the prices are
known; the model's name is in `model`, and the JSON mode in `json_mode` unless it is `strict`."""

MOST_USELESS = 8
"""A server that has never given a usable reply is given up after this many requests."""

_NEXT: Mapping[JsonMode, JsonMode] = {"strict": "object", "object": "text"}
_MODE = {"object": "JSON objects with the schema in the instructions",
         "text": "plain text with the schema in the instructions"}  # fmt: skip

CUT_OFF = "cut off"


@dataclass
class Exchange:
    """One request and the reply.

    Attributes:
        who: The agent that asked.
        model: The name of the model.
        messages: The conversation that was sent.
        schema: The name of the shape that was asked for.
        json_mode: The way the shape of the answer was asked for.
        tools: The names of the tools that were offered.
        status: The HTTP status of the reply, if one came.
        reply: The body of the reply, as text.
        error: The error's text; `cut off`, if the caller was cancelled.
        at: When it was sent, in seconds since 1970.
        seconds: The seconds of real time that the exchange took.
    """

    who: str
    model: str
    messages: Sequence[Any]
    schema: str
    json_mode: JsonMode = "strict"
    tools: Sequence[str] = ()
    status: int | None = None
    reply: str | None = None
    error: str | None = CUT_OFF
    at: float = 0.0
    seconds: float = 0.0

    @contextmanager
    def keep_afterwards(self, keep: Keep) -> Iterator[None]:
        """Keep the exchange when the block is left, also by an exception."""
        self.at, began = time.time(), time.monotonic()
        try:
            yield
        finally:
            self.seconds = round(time.monotonic() - began, 6)
            keep(asdict(self))


@dataclass
class ModelQuestion:
    """A question to a model, independent of the JSON mode.

    Attributes:
        schema: The shape of the answer.
        messages: The conversation so far.
        tools: The tools that the model may call instead.
        may_call: Whether the model may call tools.
        narrow: Restricts the schema of the answer to what this question allows.
        mode: The way the shape was asked for in the latest request.
    """

    schema: type[BaseModel]
    messages: list[Any]
    tools: Sequence[Any]
    may_call: bool
    narrow: Narrow | None
    mode: JsonMode = "strict"

    def exchange(self, who: str, request: Mapping[str, Any]) -> Exchange:
        """Begin the exchange of a request for this question."""
        tools = [tool["function"]["name"] for tool in self.tools]
        schema, mode = self.schema.__name__, self.mode
        return Exchange(who, request["model"], request["messages"], schema, mode, tools)


class Spending:
    """Counts tokens and money, for the whole team."""

    def __init__(self, settings: ModelSettings) -> None:
        """Begin at nothing."""
        self._settings = settings
        self.calls = 0
        self.tokens = 0
        self.usd = 0.0

    def allow(self) -> None:
        """Say nothing if another request may be sent.

        Raises:
            StopRunError: The budget is used up.
        """
        settings = self._settings
        spent = f"{counted(self.tokens, 'token')} in {counted(self.calls, 'request')}"
        if settings.max_tokens is not None and self.tokens >= settings.max_tokens:
            raise StopRunError(
                f"the budget of {counted(settings.max_tokens, 'token')} is used up: {spent}",
                is_limit=True,
            )
        if settings.max_usd is not None and self.usd >= settings.max_usd:
            raise StopRunError(
                f"the budget of ${settings.max_usd:g} is used up: ${self.usd:.4f} for {spent}",
                is_limit=True,
            )

    def count_request(self, usage: Usage, model: str) -> None:
        """Count a request when sending starts, so that requests cut off count too."""
        self.calls += 1
        usage["model"] = model
        _add(usage, "model_calls", 1)
        _add(usage, "uncounted_calls", 1)  # until the server names its tokens

    def count_tokens(self, tokens: tuple[int, int] | None, usage: Usage) -> None:
        """Count the tokens of a request, sent and received, by the server's word.

        Raises:
            StopRunError: The server does not name the use, and there is a budget to be kept.
        """
        settings = self._settings
        if tokens is None:
            if settings.max_tokens is not None or settings.max_usd is not None:
                raise StopRunError(
                    f"{settings.where} does not say how many tokens it took, so that no budget "
                    "can be kept; run without --max-tokens and --max-usd"
                )
            return
        mark_counted(usage)
        self.tokens += sum(tokens)
        _add(usage, "input_tokens", tokens[0])
        _add(usage, "output_tokens", tokens[1])
        if settings.price_in is not None and settings.price_out is not None:
            usd = (tokens[0] * settings.price_in + tokens[1] * settings.price_out) / 1_000_000
            self.usd += usd
            _add(usage, "cost_usd", usd)


def mark_counted(usage: Usage) -> None:
    """Take note that the tokens of the latest request are known, or that it took none."""
    usage["uncounted_calls"] -= 1
    if not usage["uncounted_calls"]:
        del usage["uncounted_calls"]


def _add(usage: Usage, key: str, amount: float) -> None:
    usage[key] = usage.get(key, 0) + amount


class Model(AbstractAsyncContextManager["Model"]):
    """A language model behind an OpenAI-compatible server, shared by a team.

    All requests share one limit of concurrency, one budget, and one pause when the server asks
    for it. Works on asyncio and on trio; one `Model` belongs to one event loop.

    Example:
        async with Model(ModelSettings("some-model", "http://localhost:8000/v1")) as model:
            reply = await model.ask([{"role": "user", "content": "2 + 2?"}], Sum)
            print(reply.parsed, reply.usage)

    Attributes:
        settings: The model, its server and its limits.
        spending: The cost so far.
        keep: Is given every exchange.
        tell: Is told at once of what goes wrong; by default nothing is told.
        json_mode: The way the shape of an answer is asked for now.
    """

    def __init__(
        self,
        settings: ModelSettings,
        *,
        keep: Keep = lambda exchange: None,
        environment: Mapping[str, str] = environ,
        spending: Spending | None = None,
    ) -> None:
        """Get ready; nothing is sent yet.

        Args:
            settings: The model, its server and its limits.
            keep: Is given every exchange, its secrets masked, to write it down for instance.
            environment: The variables that hold the key.
            spending: The cost of another model, if both have one budget.

        Raises:
            SettingsError: There is no key.
        """
        self.settings = settings
        self.spending = spending or Spending(settings)
        self.keep = keep
        self.tell: Tell = lambda line: None
        self.json_mode: JsonMode = "strict" if settings.json_mode == "auto" else settings.json_mode
        self._bounds: Sequence[str] = BOUNDS  # the first one is sent
        self._key = settings.key(environment)
        self._client: openai.AsyncOpenAI | None = None
        self._places = anyio.CapacityLimiter(settings.concurrency)
        self._not_before = 0.0  # on the loop's clock
        self._silences = 0  # in a row
        self._sent = 0
        self._has_served = False  # whether a reply was of use
        self._end: str | None = None

    async def __aexit__(self, *error: object) -> None:
        """Close the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections; the next question opens new connections."""
        client, self._client = self._client, None
        if client is not None:
            with anyio.CancelScope(shield=True):
                await client.close()

    async def ask(
        self,
        messages: Messages,
        schema: type[M],
        *,
        check: Check | None = None,
        tools: Sequence[Any] = (),
        may_call: bool = True,
        narrow: Narrow | None = None,
        usage: Usage | None = None,
        who: str = "",
    ) -> Reply[M]:
        """Ask for an answer of a given shape.

        An answer of another shape is asked for again, with what is wrong with it.

        Args:
            messages: The conversation so far.
            schema: The shape. All its fields are asked for (OpenAI's strict mode), and `Any` has no
                place in it; those with a default may be missing in a reply.
            check: Says what else is wrong with an answer.
            tools: The tools that the model may call instead of answering, as a `Toolbox` describes
                them; sent only where the server keeps them apart from the schema. Elsewhere the
                schema needs a place for calls. A call that comes as text counts anywhere.
            may_call: Whether the model may call tools, or only has to know them.
            narrow: Restricts the JSON schema to what this request allows, for servers with a
                grammar. OpenAI's own takes seconds for a new schema, so it always gets the same.
            usage: The use is added here at once, so it is known even if nothing comes of it.
            who: The name of the agent that asks, for `keep`.

        Raises:
            ModelError: No usable answer came, but one may come next time.
            StopRunError: None will ever come: a wrong key, an unknown model, the budget used up.
        """
        usage = {} if usage is None else usage
        question = ModelQuestion(schema, list(messages), tools, may_call, narrow)
        names, reason = [tool["function"]["name"] for tool in tools], ""
        for _ in range(self.settings.attempts):
            message = await self._message(question, usage, who)
            calls = message.tool_calls or written_calls(message.content, names)
            if calls:
                self._has_served = True
                # Results of calls follow only a message in which the calls are made.
                message.tool_calls = calls if self.settings.keeps_tools_apart else None
                return Reply(None, tuple(calls), message.echo(), dict(usage))
            try:
                answer = parse(message.content, schema)
                if check is not None:
                    check(answer)
            except ValueError as error:
                reason = str(error)
                complaint = {"role": "user", "content": COMPLAINT.format(why=reason)}
                question.messages += [message.echo(), complaint]
            else:
                self._has_served = True
                return Reply(answer, (), message.echo(), dict(usage))
        times = counted(self.settings.attempts, "time")
        raise self._error(f"the model's reply was unusable {times}: {reason}")

    async def _message(self, question: ModelQuestion, usage: Usage, who: str) -> ModelMessage:
        """The message of the model, if there is a whole one."""
        completion = await self._send(question, usage, who)
        try:
            return completion.first_message()
        except ModelError as error:
            raise self._error(str(error)) from None

    def _request(self, question: ModelQuestion) -> dict[str, Any]:
        is_apart = self.settings.keeps_tools_apart
        tools = question.tools if is_apart else ()
        narrow = None if is_apart else question.narrow
        request = request_parts(question.mode, question.schema, question.messages, tools, narrow)
        request |= {"model": self.settings.model}
        if tools:
            request["tool_choice"] = "auto" if question.may_call else "none"
        else:
            del request["tools"]
        if self.settings.temperature is not None:
            request["temperature"] = self.settings.temperature
        return request | dict.fromkeys(self._bounds[:1], self.settings.max_reply)

    async def _send(self, question: ModelQuestion, usage: Usage, who: str) -> Completion:
        """Send a request, again if the server is busy, until a reply comes back."""
        attempt = 0
        while True:
            mode = question.mode = self.json_mode
            request = self._request(question)
            outcome = await self._try(question.exchange(who, request), request, usage)
            if isinstance(outcome, Completion):
                return outcome
            if self._falls_back(mode, outcome) or self._drops_bound(request, outcome):
                continue
            if outcome.is_end:
                self._tell(who, outcome, "the run stops")
                self._end = outcome.what
                raise StopRunError(outcome.what)
            if not outcome.again or attempt == self.settings.retries:
                error = self._error(outcome.what)
                self._tell(who, outcome, "the run stops" if self._end else "the activation fails")
                raise error
            wait_s = FIRST_WAIT_S * 2**attempt if outcome.wait_s is None else outcome.wait_s
            self._tell(who, outcome, f"sent again in {wait_s:g} s")
            # For all requests: a server that is busy for one agent is busy for the team.
            self._not_before = max(self._not_before, anyio.current_time() + wait_s)
            attempt += 1

    def _tell(self, who: str, fault: ModelFault, consequence: str) -> None:
        self.tell(f"a request of {name(who)} failed, {consequence}: {fault.what}")

    def _falls_back(self, mode: JsonMode, fault: ModelFault) -> bool:
        """Switch to the next JSON mode, if the server refuses the current mode; whether it did."""
        if self.settings.json_mode != "auto" or not fault.is_about_shape or mode not in _NEXT:
            return False
        if self.json_mode == mode:  # else another agent's request was refused before this one
            self.json_mode = _NEXT[mode]
            description = _MODE[self.json_mode]
            self.tell(
                f"{self.settings.model} is asked for {description} from here on: {fault.what}"
            )
        return True

    def _drops_bound(self, request: Mapping[str, Any], fault: ModelFault) -> bool:
        """Send the bound on a reply under this name no more, if it is refused; whether it is."""
        names = [name for name in BOUNDS if name in request]
        if not (fault.is_about_bound and names):
            return False
        self._bounds = [name for name in self._bounds if name not in names]
        return True

    def _try_older_bound(self) -> None:
        """Name the bound on a reply as older servers do; Ollama ignores the newer name."""
        self._bounds = [name for name in reversed(BOUNDS) if name in self._bounds]

    def _error(self, reason: str) -> ModelError | StopRunError:
        """The error of a request without a usable reply; the run ends if no request had one."""
        if self._has_served or self._sent < MOST_USELESS:
            return ModelError(reason)
        self._end = self._never_served(reason)
        return StopRunError(self._end)

    def _never_served(self, reason: str) -> str:
        requests = counted(self._sent, "request")
        return f"{self.settings.where} gave no usable reply to {requests}; the last one: {reason}"

    async def _try(
        self, exchange: Exchange, request: dict[str, Any], usage: Usage
    ) -> Completion | ModelFault:
        """Send a request once."""
        await anyio.sleep_until(self._not_before)
        async with self._places:
            # Asked again here: the end may have come while this request waited for its place.
            if self._end is not None:
                raise StopRunError(self._end)
            self.spending.allow()
            # Before sending: a request that is cut off has cost something, too.
            self.spending.count_request(usage, self.settings.model)
            self._sent += 1
            if exchange.json_mode != "strict":
                usage["json_mode"] = exchange.json_mode
            secrets = [self._key] if len(self._key) >= LEAST_SECRET else []
            with exchange.keep_afterwards(lambda row: self.keep(redact(row, secrets))):
                try:
                    outcome: Completion | ModelFault = await self._post(exchange, request)
                except (TimeoutError, openai.OpenAIError) as error:
                    outcome = as_fault(error, self.settings, self._key)
                    # A server that stays silent for long is taken for dead.
                    exchange.status, exchange.error = outcome.status, outcome.what
                    self._silences = self._silences + 1 if outcome.is_silence else 0
                    if isinstance(error, TimeoutError | openai.APITimeoutError):
                        self._try_older_bound()  # a reply without an end comes too late, too
                    if not self._has_served and self._silences > self.settings.retries:
                        outcome = replace(
                            outcome, what=self._never_served(outcome.what), is_end=True
                        )
                    elif self._silences >= MOST_SILENCES:
                        outcome = replace(outcome, is_end=True)
                    if isinstance(error, openai.APIStatusError):
                        exchange.reply = error.response.text
            if isinstance(outcome, Completion):
                self.spending.count_tokens(outcome.tokens, usage)
                if outcome.tokens is not None and outcome.tokens[1] > self.settings.max_reply:
                    self._try_older_bound()
                return outcome
            _add(usage, "failed_calls", 1)
            if (outcome.status or 0) >= 400:  # the server refused it before it read a token
                mark_counted(usage)
            return outcome

    async def _post(self, exchange: Exchange, request: dict[str, Any]) -> Completion | ModelFault:
        """Send a request with the client, and read the reply."""
        if self._client is None:
            self._client = openai.AsyncOpenAI(
                api_key=self._key,
                base_url=self.settings.base_url,
                timeout=self.settings.timeout_s,
                max_retries=0,  # the client would wait for minutes, unseen
            )
        with anyio.fail_after(self.settings.timeout_s):  # the client's limits each single read
            raw = await self._client.chat.completions.with_raw_response.create(**request)
        # The body is read here: the client's own reading drops the usage of a wrong answer.
        exchange.status, exchange.reply = raw.status_code, raw.text
        self._silences = 0
        try:
            completion = Completion.model_validate_json(raw.text)
        except ValidationError as error:
            message = f"{self.settings.where} sent no chat completion: {complaints(error)}"
            exchange.error = message
            return ModelFault(message, again=True, status=raw.status_code)
        exchange.error = None
        return completion
