"""The part of a run to draw: raw or cleaned, at a time, in a window, or near a node."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dig._util.text import counted, name, names
from dig.detectors.describe import explain
from dig.detectors.finding import Finding, texts_in
from dig.errors import SettingsError
from dig.graph.records import FindingRow
from dig.graph.views import GraphView
from dig.graph.words import IDLES, WAITS
from dig.show.explain.explainer import as_finding
from dig.show.outline import moment

from .nodes import turn_kind
from .source import Source

MOST_ITEMS = 3000
"""The most nodes and edges; more are unreadable, and take browsers seconds."""

HOPS = 4

MANY_LANES = 8
"""With more agents, those that behave alike share a lane."""


@dataclass(frozen=True)
class RunPart:
    """The requested part of a run.

    Attributes:
        cleaned: Whether to draw only productive edges and their nodes.
        at: The logical time at which the graph is drawn; ``None``: the end.
        first, last: The logical times of a window that each node must overlap.
        focus: An event or activation; only nodes near it are drawn.
        hops: The most edges from it to a node that is near.
        finding: The record of a finding; only the paths that prove it are drawn.
        fold: Whether lanes that behave alike are drawn once; ``None``: if there are many.
    """

    cleaned: bool = False
    at: int | None = None
    first: int | None = None
    last: int | None = None
    focus: str | None = None
    hops: int = HOPS
    finding: int | None = None
    fold: bool | None = None

    @property
    def is_whole(self) -> bool:
        """The part is the whole run."""
        return (self.first, self.last, self.focus, self.finding) == (None,) * 4

    @property
    def words(self) -> list[str]:
        """The changed settings, for the title."""
        ends = (("from", self.first), ("to", self.last))
        texts = [
            "cleaned" if self.cleaned else "",
            f"after record {self.at}" if self.at is not None else "",
            " ".join(f"{side} record {t}" for side, t in ends if t is not None),
            "" if self.focus is None else f"{counted(self.hops, 'hop')} around {name(self.focus)}",
        ]
        return [text for text in texts if text]


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """An edge; a delivery edge of an ended activation has a fate."""

    source: str
    target: str
    is_delivery: bool
    fate: str | None

    @property
    def is_productive(self) -> bool:
        """The edge is productive, and so drawn as a line without gaps."""
        return not self.is_delivery or self.fate == "consume"


@dataclass(frozen=True)
class Selection:
    """The drawn part of a graph.

    Attributes:
        nodes: Events and activations by id, in order of time, with their attributes in a view.
        links: The edges between them.
        turns: The activations of the time line; of a cleaned graph, all of the raw one.
        until: The logical time of the graph.
        span: The first and the last logical time that the picture is about.
        findings: The findings within these times, about the run or its drawn part; if the paths of
            one are drawn, that one.
        alike: For each agent whose lane is folded, the agent whose lane stands for it.
    """

    nodes: Mapping[str, Mapping[str, Any]]
    links: tuple[DrawnEdge, ...]
    turns: Mapping[str, Mapping[str, Any]]
    until: int
    span: tuple[int, int]
    findings: Sequence[FindingRow | Finding] = ()
    alike: Mapping[str, str] = field(default_factory=dict)


def select(source: Source, part: RunPart) -> Selection:
    """Select the part of a run.

    Raises:
        SettingsError: The part is invalid, empty, or larger than can be drawn.
    """
    _check_part(source, part)
    raw = GraphView(source.graph, part.at)
    view = raw.cleaned() if part.cleaned else raw
    nodes = {id: node for id, node in view.nodes() if _is_inside(node, part)}
    links = [
        DrawnEdge(a, b, edge["kind"] == "delivery", edge.get("fate"))
        for a, b, edge in view.edges()
        if a in nodes and b in nodes
    ]
    near = _part_nodes(source, part, nodes, links)
    if near is not None:
        nodes = {id: node for id, node in nodes.items() if id in near}
        links = [link for link in links if link.source in near and link.target in near]
    if not nodes:
        raise SettingsError("there is nothing to draw: no event and no activation is left")
    ordered = dict(sorted(nodes.items(), key=lambda item: moment(item[1])))
    # A cleaned graph has no activations that only waited; the time line shows them all the same.
    turn_nodes = raw.nodes() if part.cleaned and near is None else ordered.items()
    turns = {
        id: node
        for id, node in turn_nodes
        if node["kind"] == "activation" and _is_inside(node, part)
    }
    until = source.graph.t if part.at is None else part.at
    span = (part.first or 0, min(until, until if part.last is None else part.last))
    if near is not None:
        last = [node.get("t_end", moment(node)) for node in ordered.values()]
        if part.finding is not None:
            last.append(min(part.finding + 1, until))
        span = (min(map(moment, ordered.values())), max(last))
    findings = _visible_findings(source, part, span, nodes.keys() | turns.keys())
    selection = Selection(ordered, tuple(links), turns, until, span, findings)
    if part.fold or (part.fold is None and len(source.agents) > MANY_LANES):
        selection = fold_lanes(source, selection)
    # After folding, which may make a picture small enough.
    items = len(selection.nodes) + len(selection.links)
    if items > MOST_ITEMS:
        raise SettingsError(
            f"a picture of {items:,} nodes and edges cannot be read, and {MOST_ITEMS:,} is the "
            "most; try --from and --to, --focus ID, --finding T, --fold, or --cleaned"
        )
    return selection


def _visible_findings(
    source: Source, part: RunPart, span: tuple[int, int], drawn: set[str]
) -> list[FindingRow | Finding]:
    if part.finding is not None:
        finding = source.finding(part.finding)
        return [finding] if finding else []
    first, last = span
    findings = [finding for finding in source.findings if first <= finding.t <= last]
    return [f for f in findings if not (subject := about(f)) or drawn.intersection(subject)]


def _part_nodes(
    source: Source, part: RunPart, nodes: Collection[str], links: Sequence[DrawnEdge]
) -> Collection[str] | None:
    """The nodes near the focus, or on the paths of a finding; ``None``: all."""
    if part.focus is not None:
        if part.focus not in nodes:
            raise SettingsError(f"{name(part.focus)} is not in the part of the run that is wanted")
        return _near_nodes(part.focus, links, part.hops)
    if part.finding is None:
        return None
    finding = source.finding(part.finding)
    if finding is None:
        records = names([finding.t for finding in source.findings]) or "there is none"
        raise SettingsError(f"--finding {part.finding}: no finding has this record ({records})")
    named = [id for id in texts_in((finding.subject, finding.evidence)) if id in nodes]
    paths = explain(source.graph, as_finding(finding)).paths
    return {*named, *(node for path in paths for node in path.nodes)}


def fold_lanes(source: Source, selection: Selection) -> Selection:
    """The selection with a common lane for agents with the same behaviour.

    Two agents behave alike if they do the same kinds of things, however often, and however long
    they wait in between. The first one's lane stands for all. An agent that a finding is about
    keeps its own.
    """
    did = _agent_deeds(source, selection)
    for finding in source.findings:
        for id in about(finding):
            agent = source.agent_of(id)
            did.get(agent or "", set()).add(agent)  # like no other
    # The first agent with some deeds stands for all later agents with the same deeds.
    first: dict[object, str] = {}
    alike = {a: shown for a in did if (shown := first.setdefault(frozenset(did[a]), a)) != a}
    nodes = {id: n for id, n in selection.nodes.items() if source.agent_of(id) not in alike}
    links = (link for link in selection.links if {link.source, link.target} <= nodes.keys())
    return replace(selection, nodes=nodes, links=tuple(links), alike=alike)


def _agent_deeds(source: Source, selection: Selection) -> dict[str, set[object]]:
    """The deeds of each agent: the kind, and the types and origins of the events."""
    edges: dict[str, set[object]] = {}
    for link in selection.links:
        turn, event = link.source, link.target
        if link.is_delivery:
            turn, event = event, turn
        by, agent = source.agent_of(event), selection.nodes[turn]["agent"]
        origin = "its own" if by == agent else "an agent's" if by else "outside"
        deed = selection.nodes[event]["type"], link.fate, origin, link.is_delivery
        edges.setdefault(turn, set()).add(deed)
    did: dict[str, set[object]] = {}
    for id, node in selection.nodes.items():
        if node["kind"] == "activation":
            deeds = did.setdefault(node["agent"], set())
            if (kind := turn_kind(source, id, node)) not in (WAITS, IDLES):
                deeds.add((kind, frozenset(edges.get(id, ()))))
    return did


def about(finding: Finding | FindingRow) -> list[str]:
    """The event or activation in the subject of a finding; a recorded finding may name anything."""
    subject = finding.subject if isinstance(finding.subject, dict) else {}
    named = [subject.get(key) for key in ("event", "activation")]
    return [id for id in named if isinstance(id, str)]


def _check_part(source: Source, part: RunPart) -> None:
    last = source.graph.t
    for option, t in (("--at", part.at), ("--from", part.first), ("--to", part.last)):
        if t is not None and t > last and option != "--to":
            raise SettingsError(f"{option} {t}: there is no record {t}; the last one is {last}")
    if part.first is not None and part.last is not None and part.first > part.last:
        raise SettingsError(f"--from {part.first} comes after --to {part.last}")
    if part.focus is not None and part.finding is not None:
        raise SettingsError("--focus and --finding: a picture has one of the two in it")
    history, focus = source.graph.history, part.focus
    if focus is not None and not history.is_taken(focus):
        raise SettingsError(
            f"--focus: there is no event or activation {name(focus)!r} in this run; "
            "`digmon show RUN` lists what is"
        )


def _is_inside(node: Mapping[str, Any], part: RunPart) -> bool:
    if node["kind"] == "event":
        begin = end = node["t_gen"]
    else:
        begin, end = node["t_start"], node.get("t_end")
    is_early = part.first is not None and end is not None and end < part.first
    return not is_early and (part.last is None or begin <= part.last)


def _near_nodes(focus: str, links: Sequence[DrawnEdge], hops: int) -> set[str]:
    """A node with ancestors and descendants, up to so many edges away.

    Ancestry is causal, over productive edges; but every neighbour of the node is near.
    """
    # Imported here: networkx takes longer to load than most pictures to draw.
    import networkx as nx

    ends = ({link.source, link.target} for link in links)
    beside = [nodes for nodes in ends if focus in nodes]
    after: nx.DiGraph[str] = nx.DiGraph()
    after.add_node(focus)
    after.add_edges_from((link.source, link.target) for link in links if link.is_productive)
    ways = (after, after.reverse(copy=False))
    reached = (nx.single_source_shortest_path_length(graph, focus, hops) for graph in ways)
    return set[str]().union(*beside, *reached)
