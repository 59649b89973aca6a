"""An account of a session from its three streams; imports nothing of dig.

It reads what stands on the server as JSON and compares: what clients and agents said, what the
journal has of it, and what was put into inboxes.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nats.aio.client import Client
from nats.js import api


class Stored(NamedTuple):
    """A stored message."""

    sequence: int
    token: str
    headers: Mapping[str, str]
    data: bytes


async def read_stream(client: Client, stream: str) -> list[Stored]:
    """All messages of a stream, in order."""
    js = client.jetstream()
    last = (await js.stream_info(stream)).state.last_seq
    config = api.ConsumerConfig(ack_policy=api.AckPolicy.NONE, inactive_threshold=10.0)
    reader = await js.pull_subscribe(">", stream=stream, config=config)
    messages: list[Stored] = []
    while not messages or messages[-1].sequence < last:
        if not last:
            break
        for message in await reader.fetch(500, timeout=2):
            token = message.subject.rpartition(".")[2]
            sequence = message.metadata.sequence.stream
            messages.append(Stored(sequence, token, message.headers or {}, message.data))
    await reader.unsubscribe()
    return messages


def token_of(agent: str) -> str:
    return "".join(
        chr(b) if chr(b).isascii() and (chr(b).isalnum() or chr(b) in "_-") else f"={b:02X}"
        for b in agent.encode()
    )


class Account:
    """The account of one session: `faults` says what does not add up, by kind."""

    def __init__(
        self, raw: Sequence[Stored], inboxes: Sequence[Stored], journal: Sequence[Stored]
    ) -> None:
        self.raw, self.inboxes, self.journal = raw, inboxes, journal
        self.faults: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self.cursors: list[int] = []  # by row: the raw sequence dealt with then
        self._read_journal()
        self.by_kind: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in self.rows:
            self.by_kind[row["kind"]].append(row)
        self._problems()
        self._decisions()
        self._releases()
        self._deliveries()
        self._answers()

    def _fault(self, kind: str, about: object) -> None:
        self.faults.append(f"{kind}: {about}")

    def _read_journal(self) -> None:
        epoch = cursor = 0
        for number, message in enumerate(self.journal, 1):
            if message.sequence != number:
                self._fault("journal has a gap", message.sequence)
            if int(message.headers["Dig-Epoch"]) < epoch:
                self._fault("epoch goes back", number)
            if int(message.headers["Dig-Raw"]) < cursor:
                self._fault("cursor goes back", number)
            epoch = int(message.headers["Dig-Epoch"])
            cursor = int(message.headers["Dig-Raw"])
            for line in message.data.splitlines():
                row = json.loads(line)
                if row["t"] != len(self.rows):
                    self._fault("t has a gap", row["t"])
                self.rows.append(row)
                self.cursors.append(cursor)
            if self.rows and int(message.headers["Dig-T"]) != self.rows[-1]["t"]:
                self._fault("Dig-T is not the last record", number)

    def _problems(self) -> None:
        """Problems in raw are the emits of the environment, in order, with what was refused."""
        refused = {
            row["detail"].get("sequence")
            for row in self.by_kind["incident"]
            if row["what"] == "raw refused"
        }
        posed: list[tuple[Any, Any]] = []
        seen: set[str] = set()
        for message in self.raw:
            if message.headers.get("Dig-Kind") != "problem" or message.sequence in refused:
                continue
            body = json.loads(message.data)
            posed.append((body["payload"], message.headers.get("traceparent")))
            seen.add(message.headers["Nats-Msg-Id"])
        emitted = [
            (row.get("payload"), row.get("traceparent"))
            for row in self.by_kind["emit"]
            if row["by"] is None
        ]
        if posed != emitted:
            for what, count in (Counter(map(repr, posed)) - Counter(map(repr, emitted))).items():
                self._fault("problem lost", f"{what} x{count}")
            for what, count in (Counter(map(repr, emitted)) - Counter(map(repr, posed))).items():
                self._fault("problem doubled", f"{what} x{count}")
            if Counter(map(repr, posed)) == Counter(map(repr, emitted)):
                self._fault("problems reordered", "")

    def _decisions(self) -> None:
        """The first decision of each activation is its end, with its outputs in order."""
        marks = {row["activation"]: row["chain"][:16] for row in self.by_kind["start"]}
        agents = {row["activation"]: row["agent"] for row in self.by_kind["start"]}
        first: dict[str, tuple[int, dict[str, Any]]] = {}
        for message in self.raw:
            if message.headers.get("Dig-Kind") != "decision":
                continue
            body = json.loads(message.data)
            name = body["activation"]
            is_own = token_of(agents.get(name, "")) == message.token
            if is_own and marks.get(name) == body["mark"]:
                first.setdefault(name, (message.sequence, body))
        emits = {row["event"]: row for row in self.by_kind["emit"]}
        known = {*self.by_kind["run"][0]["agents"], *(r["agent"] for r in self.by_kind["join"])}
        ended: set[str] = set()
        for row in self.by_kind["end"]:
            name = row["activation"]
            if name in ended:
                self._fault("end doubled", name)
            ended.add(name)
            if name not in first:
                if "took longer" not in (row.get("error") or ""):
                    self._fault("end without a decision", name)
                continue
            value = first[name][1].get("value")
            if value is None:
                if not row.get("error"):
                    self._fault("error lost", name)
                continue
            said = [
                (o.get("payload"), o.get("to", []), o.get("type", "message"))
                for o in value.get("outputs", ())
            ]
            if said and said[0][2] == "call" and known.isdisjoint(said[0][1]):
                reason = f"no agent called {said[0][1][0]} is here"  # the session's own answer
                said[0] = (reason, [agents[name]], "failure")
            made = [
                (emits[e].get("payload"), emits[e]["to"], emits[e]["type"]) for e in row["outputs"]
            ]
            if said != made:
                self._fault("outputs are not those decided", name)
        dealt = self.cursors[-1] if self.cursors else 0
        for name, (sequence, _) in first.items():
            if name not in ended and sequence <= dealt:
                self._fault("decision lost", name)

    def _releases(self) -> None:
        """Each start is one release, in order, with its inputs."""
        emits = {row["event"]: row for row in self.by_kind["emit"]}
        started: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in self.by_kind["start"]:
            started[token_of(row["agent"])].append(row)
        given: dict[str, list[Stored]] = defaultdict(list)
        for message in self.inboxes:
            given[message.token].append(message)
        for token in started.keys() | (given.keys() - {"_out"}):
            expected = [row["t"] for row in started[token]]
            stored = [int(message.headers["Dig-T"]) for message in given[token]]
            self._compare("release", token, expected, stored)
            rows = {row["t"]: row for row in started[token]}
            for message in given[token]:
                if int(message.headers["Dig-T"]) not in rows:
                    continue
                row = rows[int(message.headers["Dig-T"])]
                body = json.loads(message.data)
                shown = [(one["id"], one["payload"]) for one in body["events"]]
                inputs = [
                    (e, emits[e].get("payload"))
                    for e in row["inputs"]
                    # A note of the monitor is shown to the turns that it is about, or to none.
                    if emits[e]["by"] != "system" or any(e == name for name, _ in shown)
                ]
                same = body["activation"] == row["activation"] and body["mark"] == row["chain"][:16]
                if shown != inputs or not same:
                    self._fault("release is not its start", row["activation"])

    def _compare(
        self, kind: str, about: str, expected: Sequence[int], stored: Sequence[int]
    ) -> None:
        lost, doubled = Counter(expected) - Counter(stored), Counter(stored) - Counter(expected)
        for t in lost:
            self._fault(f"{kind} lost", f"{about} {t}")
        for t in doubled:
            self._fault(f"{kind} doubled", f"{about} {t}")
        if not (lost or doubled) and list(expected) != list(stored):
            self._fault(f"{kind}s reordered", about)

    def _deliveries(self) -> None:
        """Each emit is one delivery for each recipient."""
        due: Counter[tuple[str, str | None]] = Counter()
        redirected: set[str] = {row["event"] for row in self.by_kind["redirect"]}
        for row in self.by_kind["emit"]:
            to = [None] if row["final"] else row["to"]
            due.update((row["event"], agent) for agent in to)
        got = Counter((row["event"], row["to"]) for row in self.by_kind["deliver"])
        for (event, agent), count in (got - due).items():
            if event not in redirected:
                self._fault("delivery doubled", f"{event} to {agent} x{count}")
        left = {row["agent"] for row in self.by_kind["leave"]}
        for (event, agent), count in (due - got).items():
            if event not in redirected and agent not in left:
                self._fault("delivery lost", f"{event} to {agent} x{count}")

    def _answers(self) -> None:
        """Accepted answers are what clients were given, in order."""
        answered = [row["t"] for row in self.by_kind["deliver"] if row["to"] is None]
        stored = [
            int(message.headers["Dig-T"])
            for message in self.inboxes
            if message.token == "_out" and "error" not in json.loads(message.data)
        ]
        self._compare("answer", "_out", answered, stored)

    def answers(self) -> Iterator[tuple[Any, Any]]:
        """The pairs of problem and answer that clients were given."""
        payloads = {row["event"]: row.get("payload") for row in self.by_kind["emit"]}
        for message in self.inboxes:
            if message.token == "_out":
                body = json.loads(message.data)
                for problem in body["problems"]:
                    yield payloads.get(problem), body.get("answer")


async def account_of(client: Client, session: str) -> Account:
    """The account of a session."""
    streams = [f"DIG_{part}_{session}" for part in ("RAW", "TO", "JOURNAL")]
    return Account(*[await read_stream(client, stream) for stream in streams])
