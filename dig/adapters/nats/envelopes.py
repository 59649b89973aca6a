"""Messages as bytes: words of agents and clients, and releases.

A decision is one message: all fates and outputs together, so an agent that dies has decided or has
not. The bytes of a release follow from the records before it alone: whoever publishes it again
publishes the same.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from dig._util.frozen import frozen
from dig._util.json_text import parse
from dig._util.json_values import dumps, plain
from dig._util.text import first_wrong
from dig.errors import DecisionError, PayloadError, RawError, RecordError
from dig.monitor.messages import About, Pending
from dig.runtime.agent_errors import describe
from dig.runtime.agents import Decision, View, as_decision

from .calls import FailedRequest
from .names import CLIENT, EPOCH, KIND, MSG_ID, TRACEPARENT, VERSION, T, V

ROOM = 64 * 1024
"""Bytes of the largest message that are left free for headers."""


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    sent: float | None = None


class DecisionBody(_Body):
    """The end of an activation: a decision, or an error's text.

    With both, the decision counts, and the requests that its inputs are about have failed.
    """

    activation: str
    mark: str
    value: Any = None
    error: str | None = None
    usage: dict[str, Any] | None = None


class ProblemBody(_Body):
    """An event from outside; nobody named: for the first agent."""

    payload: Any
    to: list[str] = []
    type: str = "problem"


class MemberBody(_Body):
    """An agent joins or leaves."""

    agent: str


class TellBody(_Body):
    """A person's note to agents."""

    note: str
    to: list[str]


class DecideBody(_Body):
    """A person's decision about healing."""

    finding: int
    heal: bool


BODIES: Mapping[str, type[_Body]] = {
    "decision": DecisionBody, "problem": ProblemBody, "join": MemberBody, "leave": MemberBody,
    "tell": TellBody, "decide": DecideBody,
}  # fmt: skip
"""The kinds of raw messages."""


def read_raw(token: str, headers: Mapping[str, str], data: bytes) -> tuple[str, Any]:
    """Read a message from an agent or a client.

    Args:
        token: The last token of its subject: only decisions come from agents, all else from
            clients.
        headers: Its headers.
        data: Its body.

    Returns:
        Its kind, and its body.

    Raises:
        RawError: It is no message of this version.
    """
    kind = headers.get(KIND, "")
    if headers.get(V) != VERSION:
        raise RawError(f"its version is {headers.get(V)!r:.40}, not {VERSION}")
    if kind not in BODIES or (kind == "decision") is (token == CLIENT):
        raise RawError(f"a message of kind {kind!r:.40} from {token:.80}")
    try:
        return kind, BODIES[kind].model_validate(parse(data.decode(), "the message"))
    except ValidationError as error:
        place, reason = first_wrong(error)
        raise RawError(f"a {kind} is wrong at {place}: {reason}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecordError) as error:
        raise RawError(f"a {kind} is no JSON: {error}") from None


# --- releases -----------------------------------------------------------------------------------


@frozen
class Release:
    """A message for an inbox, named by a record.

    Attributes:
        token: The inbox.
        t: The number of the record that it comes from.
        body: Its bytes.
        traceparent: The trace context of the event that it is about, if it has one.
    """

    token: str
    t: int
    body: bytes
    traceparent: str | None = None

    def headers(self, epoch: int) -> dict[str, str]:
        """The headers, but for the guard."""
        # A server that lost its last seconds may have had another record of this number: the digest
        # keeps its release from being taken for this one within the window of duplicates.
        digest = blake2b(self.body, digest_size=8).hexdigest()
        named = {MSG_ID: f"r.{self.t}.{digest}", T: str(self.t), EPOCH: str(epoch), V: VERSION}
        return {**named, TRACEPARENT: self.traceparent} if self.traceparent else named


def activation_release(
    token: str, t: int, mark: str, view: View, contexts: Mapping[str, str], most: int
) -> Release:
    """Make the release of an activation; a long buffer is cut to the oldest events.

    Args:
        token: The inbox of its agent.
        t: The number of its `start`.
        mark: The first digits of the checksum of that record.
        view: What the agent is shown.
        contexts: The trace contexts of events, by id.
        most: The largest number of bytes.
    """
    shown: list[str] = []
    size = ROOM
    for event in view.events:
        row = dumps({**_row(event), "traceparent": contexts.get(event.id)})
        size += len(row)
        if shown and size > most:
            break
        shown.append(row)
    more = len(view.events) - len(shown)
    body = {
        "activation": view.activation, "mark": mark, "agent": view.agent, "team": view.team,
        "turn": view.turn, "time_s": view.time_s, **({"more": more} if more else {}),
    }  # fmt: skip
    text = f'{dumps(body)[:-1]},"events":[{",".join(shown)}]}}'
    named = (contexts.get(event.id) for event in view.events[: len(shown)])
    return Release(token, t, text.encode(), next(filter(None, named), None))


def _row(event: Pending) -> dict[str, Any]:
    """The fields of an event as JSON values, without a copy of the payload."""
    row = {name: getattr(event, name) for name in ("id", "type", "sender", "payload", "final")}
    return {**row, "notes": event.notes, "about": [asdict(about) for about in event.about]}


@dataclass(frozen=True)
class Mail:
    """An activation in the process of the agent.

    Attributes:
        mark: The first digits of the checksum of its `start`.
        view: The view of the agent.
        contexts: The trace contexts of its events, by id.
    """

    mark: str
    view: View
    contexts: Mapping[str, str]


def read_activation(data: bytes) -> Mail:
    """Read a release."""
    body = json.loads(data)
    events, contexts = [], {}
    for row in body["events"]:
        if context := row.pop("traceparent"):
            contexts[row["id"]] = context
        about = tuple(About(**{**part, **_tuples(part)}) for part in row.pop("about"))
        events.append(Pending(**{**row, "notes": tuple(row["notes"]), "about": about}))
    view = View(
        agent=body["agent"], team=tuple(body["team"]), turn=body["turn"], time_s=body["time_s"],
        events=tuple(events), activation=body["activation"],
    )  # fmt: skip
    return Mail(body["mark"], view, contexts)


def _tuples(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) for key, value in row.items() if isinstance(value, list)}


def decision_body(mail: Mail, value: object, error: BaseException | None, most: int) -> bytes:
    """Make the body of a decision; a decision unfit for a message becomes an error.

    Args:
        mail: The activation.
        value: What the agent returned.
        error: What it raised instead, if it did.
        most: The largest number of bytes.
    """
    ended: dict[str, Any] = {"activation": mail.view.activation, "mark": mail.mark}
    ended["sent"] = time.time()
    usage = mail.view.usage
    try:
        if error is not None:
            raise error
        if isinstance(value, FailedRequest):
            ended["error"], value = value.error, Decision(fates=value.fates)
        decision = as_decision(value)
        if any(output.policy is not None for output in decision.outputs):
            raise DecisionError("a delivery policy is code, and cannot leave its process")
        if decision.usage is None and usage:
            decision = decision.model_copy(update={"usage": dict(usage)})
        ended["value"] = plain(decision.model_dump(exclude_defaults=True))
        body = dumps(ended).encode()
        if len(body) > most - ROOM:
            raise PayloadError(f"a decision of {len(body)} bytes; {most - ROOM} are the most")
        return body
    except Exception as failure:
        ended = {**ended, "value": None, "error": describe(failure)}
    try:
        return dumps({**ended, "usage": plain(dict(usage)) or None}).encode()
    except PayloadError:  # what the agent wrote into its view
        return dumps(ended).encode()
