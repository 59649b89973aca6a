"""A slow, plain reading of a trace, to hold the real monitor against.

Nothing here is clever on purpose. A `State` replays rows with dicts and lists, one row after the
other from the very first; whatever is more than book-keeping (graph, lineage, sources, coverage)
is worked out anew from what the replay remembers. Rows are taken to be valid; a few assertions
stand where an invalid one would go unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from functools import cached_property
from typing import Any

import networkx as nx

Row = dict[str, Any]

DEFAULT_LIMITS: dict[str, Any] = {
    "mc_window_s": 30,
    "oe_window_s": 10,
    "dl_window_s": 30,
    "activation_limit_s": 300,
    "reroute_limit": 3,
    "coverage": True,
    "stall_factor": None,
    "stall_min_s": 20,
    "late_window_s": None,
    "loop_limit": None,
    "livelock_turns": None,
    "livelock_agents": 3,
}


def micros(seconds: float) -> int:
    """Seconds as whole microseconds, the only unit in which times are compared."""
    return round(seconds * 1e6)


class State:
    """What is true after the rows up to one logical time.

    Derived values are cached, which is safe because a state replays no row once it is handed out.

    Attributes:
        row: The last row that was replayed.
        emits: The `emit` row of each event, in order of generation.
        starts: The `start` row of each activation.
        ends: The `end` row of each activation that ended, in order of their ends.
        present: The agents that take part.
        buffers: For each present agent its pending events, in order of delivery.
        flight: For each event the agents that it is on its way to.
        running: For each busy agent its activation in progress.
        consumed: The events that some activation consumed.
        orphaned: The lost work events, each with its cause.
        bounced: The final events that an agent got back.
        accepted: The final events that the environment took, in that order, with the times.
        waiting: What the host waits for on purpose: pairs of `event` or `activation` and an id.
        given_up: The environment events whose requests failed; None stands for the whole run.
        usual: What is usual for this team, from the `run` row.
    """

    def __init__(self) -> None:
        self.row: Row = {}
        self.session = False
        self.memory = False
        self.limits = dict(DEFAULT_LIMITS)
        self.emits: dict[str, Row] = {}
        self.starts: dict[str, Row] = {}
        self.ends: dict[str, Row] = {}
        self.present: set[str] = set()
        self.buffers: dict[str, list[str]] = {}
        self.flight: dict[str, set[str]] = {}
        self.running: dict[str, str] = {}
        self.consumed: set[str] = set()
        self.orphaned: dict[str, str] = {}
        self.bounced: set[str] = set()
        self.accepted: dict[str, int] = {}
        self.waiting: set[tuple[str, str]] = set()
        self.given_up: set[str | None] = set()
        self.usual: Row | None = None

    @classmethod
    def of(cls, rows: Iterable[Row], at: int | None = None) -> State:
        """Replays the rows up to and with logical time `at`, all of them if it is left out."""
        state = cls()
        for row in rows:
            if at is None or row["t"] <= at:
                state._replay(row)
        return state

    @classmethod
    def each(cls, rows: Iterable[Row]) -> list[State]:
        """The states after each of the rows, every one a copy of the last and one row more."""
        states = [cls()]
        for row in rows:
            state = states[-1]._copy()
            state._replay(row)
            states.append(state)
        return states[1:]

    def _copy(self) -> State:
        """The same state once more, without what was derived from it."""
        state = State()
        for name in vars(state):
            setattr(state, name, copy(getattr(self, name)))
        state.buffers = {agent: list(events) for agent, events in self.buffers.items()}
        state.flight = {event: set(agents) for event, agents in self.flight.items()}
        return state

    # -- replay: one method for each kind of row that changes something ---

    def _replay(self, row: Row) -> None:
        self.row = row
        handler = getattr(self, f"_on_{row['kind']}", None)
        if handler is not None:
            handler(row)
        held = {e for events in self.buffers.values() for e in events}
        rest = [e for e in self.emits if not (e in self.consumed or e in held or self.flight[e])]
        lost = [e for e in rest if self.is_work(e)]
        # One that was lost already keeps its cause: it did not become so at this row.
        self.orphaned = {e: self.orphaned.get(e) or _cause(row, e) for e in lost}

    def _on_run(self, row: Row) -> None:
        self.session = bool(row.get("session"))
        self.memory = bool(row.get("memory"))
        given = row.get("limits") or {}
        self.limits.update({name: limit for name, limit in given.items() if limit is not None})
        self.usual = row.get("usual")
        self.present = set(row["agents"])
        self.buffers = {agent: [] for agent in row["agents"]}

    def _on_emit(self, row: Row) -> None:
        event = row["event"]
        assert event not in self.emits and event not in self.starts
        self.emits[event] = row
        self.flight[event] = set() if row["final"] else self._valid(event, row["to"])

    def _on_deliver(self, row: Row) -> None:
        event, agent = row["event"], row["to"]
        if agent is None:
            assert self.is_final(event)
            assert event not in self.bounced | set(self.accepted)
            self.accepted[event] = row["t"]
            self.flight[event] = set()
            return
        self.flight[event].remove(agent)
        self.buffers[agent].append(event)
        if self.is_final(event):
            self.bounced.add(event)

    def _on_start(self, row: Row) -> None:
        agent = row["agent"]
        assert agent not in self.running
        assert row["inputs"] == self.buffers[agent]
        self.starts[row["activation"]] = row
        self.running[agent] = row["activation"]

    def _on_end(self, row: Row) -> None:
        activation = row["activation"]
        agent = self.agent(activation)
        assert self.running.pop(agent) == activation
        self.ends[activation] = row
        targets = {fate["event"]: fate.get("to", []) for fate in row["fates"]}
        for event, fate in self.fates(activation).items():
            if fate != "delay":
                self.buffers[agent].remove(event)
            if fate == "consume":
                self.consumed.add(event)
            if fate == "reroute":
                self.flight[event] |= self._valid(event, targets[event])

    def _on_join(self, row: Row) -> None:
        assert row["agent"] not in self.present
        self.present.add(row["agent"])
        self.buffers[row["agent"]] = []

    def _on_leave(self, row: Row) -> None:
        agent = row["agent"]
        self.present.remove(agent)
        del self.buffers[agent]
        self.running.pop(agent, None)
        for recipients in self.flight.values():
            recipients.discard(agent)

    def _on_redirect(self, row: Row) -> None:
        self.flight[row["event"]] = self._valid(row["event"], row["to"])

    def _on_expire(self, row: Row) -> None:
        self.flight[row["event"]] = set()

    def _on_incident(self, row: Row) -> None:
        if row["what"] == "waits":
            self.waiting |= self._waits(row["detail"])
        failed = self.failed_request
        if failed is not None and (not self.session or failed["event"]):
            self.given_up.add(failed["event"] if self.session else None)

    def _waits(self, detail: Any) -> set[tuple[str, str]]:
        """What the detail of a `waits` names; nothing if it has not the right form."""
        given = detail if isinstance(detail, dict) else {}
        named = {key: given[key] for key in ("activation", "event") if given.get(key) is not None}
        known: dict[str, list[str]] = {
            "activation": [*self.running.values()],
            "event": [*self.emits],
        }
        fits = len(named) == 1 and all(name in known[key] for key, name in named.items())
        return set(named.items()) if fits else set()

    @property
    def failed_request(self) -> Row | None:
        """What the last row says of a request without an answer, if it does so in good form.

        Keys that may be left out are there, and null.
        """
        if self.row["kind"] != "incident" or self.row["what"] != "request_failed":
            return None
        detail = self.row["detail"]
        if not isinstance(detail, dict) or detail.get("how") not in ["error", "limit", "timeout"]:
            return None
        event, activation, error = (detail.get(key) for key in ("event", "activation", "error"))
        posed = [e for e in self.emits if self.is_environment(e)]
        if not (event is None or event in posed) or not (error is None or isinstance(error, str)):
            return None
        if not (activation is None or activation in [*self.starts]):
            return None
        return {"how": detail["how"], "event": event, "activation": activation, "error": error}

    def _valid(self, event: str, to: list[str]) -> set[str]:
        """Those of `to` that can get the event now: present, and not holding it."""
        return {a for a in to if a in self.present and event not in self.buffers[a]}

    # -- what events and activations are ---

    def is_final(self, event: str) -> bool:
        """Whether the event carries a submitted answer."""
        return bool(self.emits[event]["final"])

    def is_system(self, event: str) -> bool:
        """Whether healing made the event; its `type` says nothing about that."""
        return bool(self.emits[event]["by"] == "system")

    def is_environment(self, event: str) -> bool:
        """Whether the event came from outside."""
        return self.emits[event]["by"] is None

    def is_agent_made(self, event: str) -> bool:
        """Whether an activation generated the event."""
        return not self.is_system(event) and not self.is_environment(event)

    def is_work(self, event: str) -> bool:
        """Whether the event is something to be done."""
        notice = self.emits[event]["type"] == "notice"
        return not (notice or self.is_system(event) or self.is_final(event))

    def agent(self, activation: str) -> str:
        """The agent whose run the activation is."""
        return str(self.starts[activation]["agent"])

    def fates(self, activation: str) -> dict[str, str]:
        """What became of each event that an ended activation saw, named or implied."""
        named = {fate["event"]: fate["fate"] for fate in self.ends[activation]["fates"]}
        seen: list[str] = self.starts[activation]["inputs"]
        return {e: named.get(e) or ("consume" if self.is_system(e) else "delay") for e in seen}

    def inputs(self, activation: str) -> list[str]:
        """The events that an ended activation consumed, but for system events."""
        used = [e for e, fate in self.fates(activation).items() if fate == "consume"]
        return self.by_generation(e for e in used if not self.is_system(e))

    def outputs(self, activation: str) -> list[str]:
        """The events that an ended activation generated; its last rows may not be there yet."""
        return list(self.ends[activation]["outputs"])

    def is_generating(self, activation: str) -> bool:
        """Whether it turned its inputs into more events than they were."""
        return 0 < len(self.inputs(activation)) < len(self.outputs(activation))

    def is_reducing(self, activation: str) -> bool:
        """Whether it turned its inputs into no more events than they were."""
        return 0 < len(self.inputs(activation)) >= len(self.outputs(activation))

    def is_progress(self, activation: str) -> bool:
        """Whether an ended activation did more than to wait."""
        moved = any(fate != "delay" for fate in self.fates(activation).values())
        return moved or bool(self.outputs(activation))

    def by_generation(self, events: Iterable[str]) -> list[str]:
        """The events sorted by the time at which they were generated."""
        return sorted(set(events), key=lambda e: int(self.emits[e]["t"]))

    # -- the graph ---

    @cached_property
    def graph(self) -> nx.DiGraph[str]:
        """The raw graph, with the attributes that its JSON form has."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        for event, row in self.emits.items():
            about = {"t_gen": row["t"], "type": row["type"], "final": row["final"]}
            graph.add_node(event, kind="event", **about)
        for activation, row in self.starts.items():
            graph.add_node(activation, kind="activation", agent=row["agent"], t_start=row["t"])
            for event in row["inputs"]:
                graph.add_edge(event, activation, kind="delivery", t=row["t"])
        for activation, row in self.ends.items():
            graph.nodes[activation]["t_end"] = row["t"]
            for event, fate in self.fates(activation).items():
                graph.edges[event, activation].update(fate=fate, t=row["t"])
        for event, row in self.emits.items():
            if self.is_agent_made(event):
                graph.add_edge(row["by"], event, kind="generation", t=row["t"])
        return graph

    def cleaned(self) -> nx.DiGraph[str]:
        """The productive edges with the nodes that they touch."""
        return self.graph.edge_subgraph(self._productive.edges).copy()

    @cached_property
    def _productive(self) -> nx.DiGraph[str]:
        """All nodes, and the edges of which causal paths are made."""
        graph: nx.DiGraph[str] = nx.DiGraph()
        graph.add_nodes_from([*self.emits, *self.starts])
        for activation in self.ends:
            used = [e for e, fate in self.fates(activation).items() if fate == "consume"]
            graph.add_edges_from((event, activation) for event in used)
        made = [(row["by"], e) for e, row in self.emits.items() if self.is_agent_made(e)]
        graph.add_edges_from(made)
        return graph

    # -- what the patterns speak of ---

    @cached_property
    def copies(self) -> dict[str, set[str]]:
        """For each event the agents in whose buffers it lies."""
        holders: dict[str, set[str]] = {e: set() for e in self.emits}
        for agent, events in self.buffers.items():
            for event in events:
                holders[event].add(agent)
        return holders

    @cached_property
    def open_events(self) -> list[str]:
        """R(t): the work that can still be reached, in order of generation."""
        fresh = [e for e in self.emits if self.is_work(e) and e not in self.consumed]
        return [e for e in fresh if self.copies[e] or self.flight[e]]

    @cached_property
    def posed(self) -> list[str]:
        """The work that came from outside."""
        return [e for e in self.emits if self.is_environment(e) and self.is_work(e)]

    @cached_property
    def finals(self) -> list[str]:
        """The submitted answers."""
        return [e for e in self.emits if self.is_final(e)]

    @cached_property
    def roots(self) -> dict[str, frozenset[str]]:
        """The lineage of every event and every ended activation; empty where there is none."""
        found: dict[str, frozenset[str]] = {e: frozenset() for e in self.emits}
        for v in self.ends:  # in order of the ends, so what an activation consumed is known
            inputs = self.inputs(v)
            inherited = frozenset[str]().union(*(found[e] for e in inputs))
            found[v] = inherited or frozenset([v] if inputs else [])
            found.update({e: found[v] for e in self.outputs(v) if e in self.emits})
        return found

    @cached_property
    def sources(self) -> dict[str, frozenset[str]]:
        """For each event the environment events from which a causal path leads to it."""
        found: dict[str, frozenset[str]] = {}
        for event, row in self.emits.items():  # what an event was made of came before it
            made_of = self.inputs(row["by"]) if self.is_agent_made(event) else []
            itself = frozenset([event] if self.is_environment(event) else [])
            found[event] = itself.union(*(found[e] for e in made_of))
        return found

    def concerns(self, activation: str) -> frozenset[str]:
        """The environment events behind anything that the activation saw."""
        seen = self.starts[activation]["inputs"]
        return frozenset[str]().union(*(self.sources[e] for e in seen))

    # -- answers ---

    @cached_property
    def settled(self) -> set[str]:
        """In a session: the activations that stand behind an accepted answer.

        What stands behind an activation never changes after its end, so the answers may be gone
        through in hindsight, in the order in which they were accepted.
        """
        settled: set[str] = set()
        for final in self.accepted if self.session else []:
            settled |= self._behind(final, settled)
        return settled

    @cached_property
    def answered(self) -> set[str]:
        """In a session: the environment events that an accepted answer is about."""
        return {e for e in self._consumed_by(self.settled) if self.is_environment(e)}

    def behind(self, final: str) -> set[str]:
        """The activations on which a final event rests and that are not settled."""
        return self._behind(final, self.settled)

    def _behind(self, final: str, settled: set[str]) -> set[str]:
        submitter = self.emits[final]["by"]
        heads = [submitter]
        if self.memory or not self.inputs(submitter):
            end = self.ends[submitter]["t"]
            mine = [v for v in self.ends if self.agent(v) == self.agent(submitter)]
            heads += [v for v in mine if self.ends[v]["t"] < end]
        graph = self._productive.copy()
        graph.remove_nodes_from(settled)
        reached: set[str] = set()
        for head in heads:
            if head in graph:
                reached |= {head} | nx.ancestors(graph, head)
        return {node for node in reached if node in self.ends}

    def _consumed_by(self, activations: Iterable[str]) -> set[str]:
        return {e for v in activations for e, fate in self.fates(v).items() if fate == "consume"}

    def asked(self, final: str) -> set[str]:
        """The environment events that the activations behind a final event consumed."""
        used = self._consumed_by(self.behind(final))
        return {e for e in used if self.is_environment(e)}

    def aims(self, final: str) -> set[str]:
        """In a session: what a final event answers, of what has no answer yet and did not fail."""
        return self.asked(final) - self.answered - self.given_up

    def _relevant(self, events: Iterable[str], final: str) -> list[str]:
        """The events in order; in a session only those that share a source with the answer."""
        aims = self.aims(final)
        listed = self.by_generation(events)
        return [e for e in listed if not self.session or self.sources[e] & aims]

    def unresolved(self, final: str) -> list[str]:
        """The open events that a final event, just generated, leaves behind."""
        return self._relevant(self.open_events, final)

    def unused(self, final: str) -> list[str]:
        """The needed events that nothing behind a final event, just generated, consumed."""
        behind = self.behind(final)
        splits = {v for v in behind if self.is_generating(v)}
        needed = {e for e, row in self.emits.items() if row["by"] is None or row["by"] in splits}
        needed = {e for e in needed if self.is_work(e)}
        return self._relevant(needed - self._consumed_by(behind), final)

    def uncovered(self, final: str) -> list[str]:
        """The needed events that a final event, just generated, makes no use of and that are gone.

        Whether the run wants coverage to be looked at makes no difference here.
        """
        reachable = set(self.open_events)
        return [e for e in self.unused(final) if e not in reachable]


def _cause(row: Row, event: str) -> str:
    """Why an event became lost at a row."""
    if row["kind"] == "leave":
        return "left"
    if row["kind"] == "expire":
        return "expired"
    fates = {fate["event"]: fate["fate"] for fate in row.get("fates", [])}
    return "discarded" if fates.get(event) == "discard" else "no_recipient"
