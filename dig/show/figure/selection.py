"""The part of a run to draw: raw or cleaned, at a time, in a window, or near a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from dig._util.text import counted, name, names
from dig.detectors.describe import explain, recorded_finding
from dig.detectors.finding import Finding, texts_in
from dig.errors import SettingsError
from dig.graph.records import FindingRow, HealRow
from dig.graph.views import GraphView
from dig.graph.words import IDLES, WAITS

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
        cleaned: Whether to draw only productive edges and their nodes; ``None``: if the whole run
            is drawn at the width of a paper.
        at: The logical time at which the graph is drawn; ``None``: the end.
        first, last: The logical times of a window that each node must overlap.
        focus: An event or activation; only nodes near it are drawn.
        hops: The most edges from it to a node that is near.
        finding: The record of a finding; only the paths that prove it are drawn.
        fold: Whether lanes that behave alike are drawn once; ``None``: if there are many.
    """

    cleaned: bool | None = None
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
        return {self.at, self.first, self.last, self.focus, self.finding} == {None}

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
        heals: The interventions within these times; if the paths of a finding are drawn, its own.
        alike: For each agent whose lane is folded, the agent whose lane stands for it.
    """

    nodes: Mapping[str, Mapping[str, Any]]
    links: tuple[DrawnEdge, ...]
    turns: Mapping[str, Mapping[str, Any]]
    until: int
    span: tuple[int, int]
    findings: Sequence[FindingRow | Finding] = ()
    heals: Sequence[HealRow] = ()
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
    finding, until = _finding(source, part), source.graph.t if part.at is None else part.at
    heals = [heal for heal in source.heals if heal.action != "refused" and heal.t <= until]
    near = None
    if finding is not None:
        heals = [heal for heal in heals if heal.finding == finding.t]
        links, near = _proof(source, finding, heals, links)
    elif part.focus is not None:
        if part.focus not in nodes:
            raise SettingsError(f"{name(part.focus)} is not in the part of the run that is wanted")
        near = _near_nodes(part.focus, links, part.hops)
    if near is not None:
        nodes = {id: node for id, node in nodes.items() if id in near}
        links = [link for link in links if link.source in near and link.target in near]
    if not nodes:
        why = "nothing was productive; try --raw" if part.cleaned else "nothing is left"
        raise SettingsError(f"there is nothing to draw: {why}")
    ordered = dict(sorted(nodes.items(), key=lambda item: moment(item[1])))
    # A cleaned graph has no activations that only waited; the time line shows them all the same.
    turn_nodes = raw.nodes() if part.cleaned and near is None else ordered.items()
    turns = {
        id: node
        for id, node in turn_nodes
        if node["kind"] == "activation" and _is_inside(node, part)
    }
    span = (part.first or 0, min(until, until if part.last is None else part.last))
    if near is not None:
        last = [node.get("t_end", moment(node)) for node in ordered.values()]
        if finding is not None:
            last += [min(finding.t, until), *(heal.t for heal in heals)]
        span = (min(map(moment, ordered.values())), max(last))
    drawn, findings = nodes.keys() | turns, [finding] if finding else []
    for each in source.findings if finding is None else ():
        if span[0] <= each.t <= span[1] and not ((ids := about(each)) and drawn.isdisjoint(ids)):
            findings.append(each)
    heals = [heal for heal in heals if span[0] <= heal.t <= span[1]]
    selection = Selection(ordered, tuple(links), turns, until, span, findings, heals)
    if part.fold or (part.fold is None and len(source.agents) > MANY_LANES):
        selection = fold_lanes(source, selection)
    # After folding, which may make a picture small enough.
    if (items := len(selection.nodes) + len(selection.links)) > MOST_ITEMS:
        raise SettingsError(
            f"a picture of {items:,} nodes and edges cannot be read, and {MOST_ITEMS:,} is the "
            "most; try --from and --to, --focus ID, --finding T, --fold, or --cleaned"
        )
    return selection


def _finding(source: Source, part: RunPart) -> FindingRow | Finding | None:
    """The finding whose paths are drawn; ``None``: none is wanted."""
    finding = None if part.finding is None else source.finding(part.finding)
    if part.finding is not None and finding is None:
        records = names([finding.t for finding in source.findings]) or "there is none"
        raise SettingsError(f"--finding {part.finding}: no finding has this record ({records})")
    return finding


def _proof(
    source: Source, finding: FindingRow | Finding, heals: Sequence[HealRow], links: list[DrawnEdge]
) -> tuple[list[DrawnEdge], set[str]]:
    """The edges as the paths of a finding go, and the nodes of finding, paths and healing."""
    paths = explain(source.graph, recorded_finding(finding)).paths
    named = {*texts_in((finding.subject, finding.evidence)), *(str(heal.event) for heal in heals)}
    # An event that was passed on goes from hand to hand, where the graph has all hands beside it.
    hops = {pair[1]: pair[0] for path in paths for pair in pairwise(path.nodes)}
    turns = {link.target for link in links if link.is_delivery}
    hands = {after: before for after, before in hops.items() if {after, before} <= turns}
    passed = [
        replace(link, source=hands[link.target])
        if link.target in hands and link.source in about(finding)
        else link
        for link in links
    ]
    return passed, {*named, *(node for path in paths for node in path.nodes)}


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


def moment(node: Mapping[str, Any]) -> int:
    """The logical time of the beginning of a node."""
    time: int = node["t_gen"] if node["kind"] == "event" else node["t_start"]
    return time
