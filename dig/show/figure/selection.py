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
class Wanted:
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
        """All of the run is drawn, and not a part of it."""
        return (self.first, self.last, self.focus, self.finding) == (None,) * 4

    @property
    def words(self) -> list[str]:
        """The settings that are not the default, for the title."""
        ends = (("from", self.first), ("to", self.last))
        texts = [
            "cleaned" if self.cleaned else "",
            f"after record {self.at}" if self.at is not None else "",
            " ".join(f"{way} record {t}" for way, t in ends if t is not None),
            "" if self.focus is None else f"{counted(self.hops, 'hop')} around {name(self.focus)}",
        ]
        return [text for text in texts if text]


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """An edge: from where to where; its fate, if it is a delivery edge of an ended activation."""

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
    """The part of a graph that is drawn.

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


def select(source: Source, wanted: Wanted) -> Selection:
    """The part of a run that is wanted.

    Raises:
        SettingsError: The part is invalid, empty, or larger than can be drawn.
    """
    _check(source, wanted)
    raw = GraphView(source.graph, wanted.at)
    view = raw.cleaned() if wanted.cleaned else raw
    nodes = {one: node for one, node in view.nodes() if _is_inside(node, wanted)}
    links = [
        DrawnEdge(a, b, edge["kind"] == "delivery", edge.get("fate"))
        for a, b, edge in view.edges()
        if a in nodes and b in nodes
    ]
    near = _part(source, wanted, nodes, links)
    if near is not None:
        nodes = {one: node for one, node in nodes.items() if one in near}
        links = [link for link in links if link.source in near and link.target in near]
    if not nodes:
        raise SettingsError("there is nothing to draw: no event and no activation is left")
    ordered = dict(sorted(nodes.items(), key=lambda item: moment(item[1])))
    whole = raw.nodes() if wanted.cleaned and near is None else ordered.items()
    turns = {
        one: node
        for one, node in whole
        if node["kind"] == "activation" and _is_inside(node, wanted)
    }
    until = source.graph.t if wanted.at is None else wanted.at
    span = (wanted.first or 0, min(until, until if wanted.last is None else wanted.last))
    if near is not None:
        last = [node.get("t_end", moment(node)) for node in ordered.values()]
        if wanted.finding is not None:
            last.append(min(wanted.finding + 1, until))
        span = (min(map(moment, ordered.values())), max(last))
    findings = _visible(source, wanted, span, nodes.keys() | turns.keys())
    selection = Selection(ordered, tuple(links), turns, until, span, findings)
    if wanted.fold or (wanted.fold is None and len(source.agents) > MANY_LANES):
        selection = folded(source, selection)
    items = len(selection.nodes) + len(selection.links)
    if items > MOST_ITEMS:
        raise SettingsError(
            f"a picture of {items:,} nodes and edges cannot be read, and {MOST_ITEMS:,} is the "
            "most; try --from and --to, --focus ID, --finding T, --fold, or --cleaned"
        )
    return selection


def _visible(
    source: Source, wanted: Wanted, span: tuple[int, int], drawn: set[str]
) -> list[FindingRow | Finding]:
    if wanted.finding is not None:
        found = source.finding(wanted.finding)
        return [found] if found else []
    return [
        one
        for one in source.findings
        if span[0] <= one.t <= span[1] and (not (named := about(one)) or drawn.intersection(named))
    ]


def _part(
    source: Source, wanted: Wanted, nodes: Collection[str], links: Sequence[DrawnEdge]
) -> Collection[str] | None:
    """The nodes near what is in focus, or those of the paths of a finding; ``None``: all."""
    if wanted.focus is not None:
        if wanted.focus not in nodes:
            raise SettingsError(
                f"{name(wanted.focus)} is not in the part of the run that is wanted"
            )
        return _near(wanted.focus, links, wanted.hops)
    if wanted.finding is None:
        return None
    found = source.finding(wanted.finding)
    if found is None:
        known = names([one.t for one in source.findings]) or "there is none"
        raise SettingsError(f"--finding {wanted.finding}: no finding has this record ({known})")
    named = [one for one in texts_in((found.subject, found.evidence)) if one in nodes]
    paths = explain(source.graph, as_finding(found)).paths
    return {*named, *(node for path in paths for node in path.nodes)}


def folded(source: Source, selection: Selection) -> Selection:
    """The selection with one lane for all agents that behave alike.

    Two agents behave alike if they do the same kinds of things, however often, and however long
    they wait in between. The first one's lane stands for all. An agent that a finding is about
    keeps its own.
    """
    did = _deeds(source, selection)
    for finding in source.findings:
        for one in about(finding):
            agent = source.agent_of(one)
            did.get(agent or "", set()).add(agent)  # like no other
    first: dict[object, str] = {}
    alike = {a: shown for a in did if (shown := first.setdefault(frozenset(did[a]), a)) != a}
    nodes = {one: n for one, n in selection.nodes.items() if source.agent_of(one) not in alike}
    links = (link for link in selection.links if {link.source, link.target} <= nodes.keys())
    return replace(selection, nodes=nodes, links=tuple(links), alike=alike)


def _deeds(source: Source, selection: Selection) -> dict[str, set[object]]:
    """The kinds of things that each agent did: with which types of events, and from whom."""
    edges: dict[str, set[object]] = {}
    for link in selection.links:
        turn, event = link.source, link.target
        if link.is_delivery:
            turn, event = event, turn
        by, agent = source.agent_of(event), selection.nodes[turn]["agent"]
        whose = "its own" if by == agent else "an agent's" if by else "outside"
        what = selection.nodes[event]["type"], link.fate, whose, link.is_delivery
        edges.setdefault(turn, set()).add(what)
    did: dict[str, set[object]] = {}
    for one, node in selection.nodes.items():
        if node["kind"] == "activation":
            deeds = did.setdefault(node["agent"], set())
            if (kind := turn_kind(source, one, node)) not in (WAITS, IDLES):
                deeds.add((kind, frozenset(edges.get(one, ()))))
    return did


def about(finding: Finding | FindingRow) -> list[str]:
    """The event or activation that a finding is about; a recorded one may name anything."""
    subject = finding.subject if isinstance(finding.subject, dict) else {}
    named = [subject.get(key) for key in ("event", "activation")]
    return [one for one in named if isinstance(one, str)]


def _check(source: Source, wanted: Wanted) -> None:
    last = source.graph.t
    for option, t in (("--at", wanted.at), ("--from", wanted.first), ("--to", wanted.last)):
        if t is not None and t > last and option != "--to":
            raise SettingsError(f"{option} {t}: there is no record {t}; the last one is {last}")
    if wanted.first is not None and wanted.last is not None and wanted.first > wanted.last:
        raise SettingsError(f"--from {wanted.first} comes after --to {wanted.last}")
    if wanted.focus is not None and wanted.finding is not None:
        raise SettingsError("--focus and --finding: a picture has one of the two in it")
    history, focus = source.graph.history, wanted.focus
    if focus is not None and not history.is_taken(focus):
        raise SettingsError(
            f"--focus: there is no event or activation {name(focus)!r} in this run; "
            "`digmon show RUN` lists what is"
        )


def _is_inside(node: Mapping[str, Any], wanted: Wanted) -> bool:
    if node["kind"] == "event":
        begin = end = node["t_gen"]
    else:
        begin, end = node["t_start"], node.get("t_end")
    is_early = wanted.first is not None and end is not None and end < wanted.first
    return not is_early and (wanted.last is None or begin <= wanted.last)


def _near(focus: str, links: Sequence[DrawnEdge], hops: int) -> set[str]:
    """A node with its ancestors and its descendants, up to so many edges away.

    Ancestry is causal, over productive edges; but every neighbour of the node is near.
    """
    import networkx as nx

    ends = ({link.source, link.target} for link in links)
    beside = [nodes for nodes in ends if focus in nodes]
    after: nx.DiGraph[str] = nx.DiGraph()
    after.add_node(focus)
    after.add_edges_from((link.source, link.target) for link in links if link.is_productive)
    ways = (after, after.reverse(copy=False))
    reached = (nx.single_source_shortest_path_length(way, focus, hops) for way in ways)
    return set[str]().union(*beside, *reached)
