"""Policies: the treatment of findings by pattern, agent and type of event.

A `Policy` is data: rules about patterns, agents and types of events, whether healing goes by
severity, and the agents for which nothing is work. `dig.detectors.policy_settings` reads a policy
from a file and from the environment.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from dig._util.text import did_you_mean
from dig.errors import SettingsError
from dig.graph.graph import InteractionGraph
from dig.graph.records import base_name

from .finding import Finding, texts_in
from .interventions import STEPS
from .spending_limits import TeamBudget

Action = Literal["off", "observe", "ask", "heal"]
"""The treatment of a finding: nothing and no alarm is made of it; only an alarm; healing, if a
person agrees; healing with all means."""

Otherwise = Literal["heal", "leave"]
"""The treatment of a finding if a person that was asked does not answer in time."""

Extent = Literal["all", "notes", "none", "ask"]
"""The extent of healing: all means, notes beside events alone, nothing, or as a person decides."""

ACTIONS: tuple[Action, ...] = get_args(Action)
OTHERWISE: tuple[Otherwise, ...] = get_args(Otherwise)
HEAL: tuple[str, ...] = ("severity", "all")

DEADLINE_S = 60.0
"""The time that a person has to decide, in seconds, by default."""

NOT_HEALED = ("MC", "DL")
"""The patterns whose warnings are not healed, since no event of theirs could carry a note: an
agent is at work for long, and to wake the others would not help it."""

REQUEST = "request"
"""The stage of a failed request."""

NOTED = ("RSP",)
"""The patterns whose notices are healed, too: by notes, since a repetition is seldom a mistake."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """The treatment of some findings.

    Attributes:
        action: `off`: silenced, no alarm, not healed. `observe`: an alarm, not healed. `ask`: a
            person decides about the healing. `heal`: with all means.
        pattern: The short name of the pattern, `ET` for instance; ``None``: all patterns.
        agents: The agents that the rule is about; empty: all. Either the agent that made the
            event, or to which the activation belongs, must be among them, or all agents that the
            evidence names. For a failed request: the agent in whose activation it failed, or all
            agents that had begun it. An instance (`NAME#2`) counts as its agent.
        types: The types of events that the rule is about; empty: all. Either that of the finding's
            event must be among them, or those of all events that the evidence names.
        reason: The reason, shown wherever the rule has an effect.
        deadline_s: For `ask`: the seconds that the person has, on the run's clock.
        otherwise: For `ask`: the treatment after the deadline.
    """

    action: Action
    pattern: str | None = None
    agents: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    reason: str = ""
    deadline_s: float = DEADLINE_S
    otherwise: Otherwise = "leave"

    def __post_init__(self) -> None:
        """Check all values.

        Raises:
            SettingsError: A value is wrong; the message names it.
        """
        # By hand, not by pydantic: the monitor imports this module and must not import pydantic.
        _check_choice("action", self.action, ACTIONS)
        _check_choice("otherwise", self.otherwise, OTHERWISE)
        for name in ("agents", "types"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        if not (self.pattern is None or (isinstance(self.pattern, str) and self.pattern)):
            raise SettingsError(f"pattern is {self.pattern!r:.60}; it must be a pattern's name")
        if not isinstance(self.reason, str):
            raise SettingsError(f"reason is {self.reason!r:.60}; it must be a text")
        seconds = self.deadline_s
        is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
        if not (is_number and 0 < seconds <= 1e9):
            raise SettingsError(
                f"deadline_s is {seconds!r:.60}; it must be above 0 and at most 1e9 seconds"
            )

    @property
    def reason_text(self) -> str:
        """The reason or, without a reason, the pattern and the action."""
        return self.reason or f"policy: {self.pattern or 'every pattern'} = {self.action}"

    @property
    def is_general(self) -> bool:
        """Whether the rule is about all agents and all types of events."""
        return not (self.agents or self.types)

    def matches(self, graph: InteractionGraph, finding: Finding) -> bool:
        """Whether the rule is about a finding, by the graph of its run."""
        if self.pattern not in (None, finding.pattern):
            return False
        if self.agents and not _is_among(self.agents, *_agents(graph, finding)):
            return False
        return not self.types or _is_among(self.types, *_types(graph, finding))

    def to_json(self) -> dict[str, Any]:
        """The settings other than the defaults, as plain JSON."""
        return {
            field.name: list(value) if isinstance(value, tuple) else value
            for field in fields(self)
            if (value := getattr(self, field.name)) != field.default
        }


@dataclass(frozen=True)
class Policy:
    """The treatment of findings, and the definition of work.

    Attributes:
        rules: The rules, put in order: those that name more of pattern, agents and types stand
            first. The first rule that fits a finding decides about it.
        heal: The treatment of findings that no rule fits. `severity`: errors are healed with all
            means, warnings and RSP by notes beside events alone, other notices not at all. `all`:
            all findings are healed with all means, as the paper does.
        notices: Agents for which nothing is work, a log for instance: an event that goes to them
            alone enters as type `notice`.
        refuse: Steps that healing never takes: words of `STEPS`.
        budget: The budget of requests, which holds whether the team is healed or only observed.
    """

    rules: tuple[Rule, ...] = ()
    heal: Literal["severity", "all"] = "severity"
    notices: tuple[str, ...] = ()
    refuse: tuple[str, ...] = ()
    budget: TeamBudget | None = None

    def __post_init__(self) -> None:
        """Check all values, and put the rules in order.

        Raises:
            SettingsError: A value is wrong; the message names it.
        """
        _check_choice("heal", self.heal, HEAL)
        for name in ("notices", "refuse"):
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        for step in self.refuse:
            _check_choice("refuse", step, STEPS)
        if self.budget is not None:
            object.__setattr__(self, "budget", TeamBudget.of(self.budget))
        rules = tuple(self.rules)
        if not all(isinstance(rule, Rule) for rule in rules):
            raise SettingsError("the rules of a policy must be of the class Rule")
        # Sorting is stable: of rules that name equally much the first one decides.
        exact = sorted(rules, key=lambda r: (r.pattern is None) + (not r.agents) + (not r.types))
        object.__setattr__(self, "rules", tuple(exact))

    def ruling(self, graph: InteractionGraph, finding: Finding) -> Rule | None:
        """Find the deciding rule for a finding, by the graph of its run."""
        return next((rule for rule in self.rules if rule.matches(graph, finding)), None)

    def extent(self, rule: Rule | None, finding: Finding) -> Extent:
        """The extent of a finding's healing, by the rule from `ruling`."""
        if rule is not None:
            by_action: dict[Action, Extent] = {"heal": "all", "ask": "ask"}
            return by_action.get(rule.action, "none")
        if self.heal == "all" or finding.severity == "error":
            return "all"
        is_noted = finding.severity == "warning" and finding.pattern not in NOT_HEALED
        return "notes" if is_noted or finding.pattern in NOTED else "none"

    def prevents(self, pattern: str) -> bool:
        """Whether notes may be given before there is a finding of a pattern."""
        # Before a finding there are neither agents nor types, so only general rules can decide.
        general = (r for r in self.rules if r.is_general and r.pattern in (None, pattern))
        rule = next(general, None)
        return rule is None or rule.action == "heal"

    @property
    def asks(self) -> bool:
        """Whether a person may be asked."""
        return any(rule.action == "ask" for rule in self.rules)

    def is_notice(self, to: Collection[str]) -> bool:
        """Whether an event to some agents is no work."""
        if not (self.notices and to):
            return False
        return all(name in self.notices or base_name(name) in self.notices for name in to)

    def check(self, patterns: Collection[str]) -> None:
        """Refuse rules about patterns without a detector.

        Raises:
            SettingsError: There is such a rule; the message names the nearest pattern.
        """
        for rule in self.rules:
            if rule.pattern is not None and rule.pattern not in patterns:
                hint = did_you_mean(rule.pattern, patterns)
                raise SettingsError(f"the policy: there is no pattern {rule.pattern!r:.60}; {hint}")

    def to_json(self) -> dict[str, Any]:
        """The policy as plain JSON, for `dig.detectors.policy_settings.read_policy`."""
        row: dict[str, Any] = {"heal": self.heal}
        if self.rules:
            row["rules"] = [rule.to_json() for rule in self.rules]
        for name in ("notices", "refuse"):
            if names := getattr(self, name):
                row[name] = list(names)
        return row if self.budget is None else {**row, "budget": self.budget.to_json()}


def apply_policy(policy: Policy, graph: InteractionGraph, finding: Finding) -> Finding:
    """Apply a policy to a finding: a rule `off` silences the finding.

    Args:
        policy: The policy.
        graph: The graph in which the finding was raised.
        finding: The finding.
    """
    rule = policy.ruling(graph, finding) if policy.rules else None
    return replace(finding, silenced=rule.reason_text) if rule and rule.action == "off" else finding


def silencing_rule(graph: InteractionGraph, finding: Finding, reason: str) -> Rule:
    """The rule that silences a finding, and those of its pattern about the same agents and types.

    Args:
        graph: The graph in which the finding was raised.
        finding: The finding.
        reason: The reason, shown wherever the rule has an effect.

    Raises:
        SettingsError: The rule would be about all findings of the pattern.
    """
    agents, types = (
        tuple(sorted(next(filter(None, sides), ())))
        for sides in (_agents(graph, finding), _types(graph, finding))
    )
    # All requests are of one type, so the type alone would silence every failed request.
    if not agents and (not types or finding.stage == REQUEST):
        raise SettingsError(
            f"a rule about this {finding.pattern} is too general: no agent can be named, so it "
            "would silence those of all agents; if you mean that, write it yourself"
        )
    return Rule(action="off", pattern=finding.pattern, agents=agents, types=types, reason=reason)


def _names(key: str, value: Any) -> tuple[str, ...]:
    # A string would be taken for its letters.
    if isinstance(value, list | tuple | set | frozenset):
        names = tuple(sorted(value)) if isinstance(value, set | frozenset) else tuple(value)
        if all(isinstance(name, str) for name in names):
            return names
    raise SettingsError(f"{key} is {value!r:.60}; it must be a list of names, such as ['ann']")


def _check_choice(key: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise SettingsError(f"{key} is {value!r:.60}; it must be one of {', '.join(choices)}")


def _is_among(names: tuple[str, ...], *sides: set[str]) -> bool:
    return any(side and side <= {*names} for side in sides)


HEAL_ALL = Policy(heal="all")
"""The policy of the paper's method: all findings are healed with all means."""


# --- what a finding is about; only what can change no more, so that a check finds the same ---


def _agents(graph: InteractionGraph, finding: Finding) -> tuple[set[str], set[str]]:
    """The maker of a finding's subject, and the agents in the finding."""
    subject, evidence = _as_dict(finding.subject), _as_dict(finding.evidence)
    makers = set[str]()
    event, activation = subject.get("event"), subject.get("activation")
    if isinstance(event, str) and graph.knows(event):
        sender = graph.history.sender(graph.event(event).n)
        makers |= {sender} if sender else set()
    takers = set[str]()
    if finding.stage == REQUEST:
        activation = evidence.get("activation")
        takers = _takers(graph, event, finding.t)
    v = graph.history.activation(activation) if isinstance(activation, str) else None
    if v is not None:
        makers.add(graph.history.agent(v))
    named = [subject.get("agent"), evidence.get("agent"), *_as_dict(evidence.get("waiting"))]
    for key in ("agents", "to", "path"):
        listed = evidence.get(key)
        named += listed if isinstance(listed, list) else []
    other_agents = takers | {name for name in named if isinstance(name, str)}
    return {*map(base_name, makers)}, {*map(base_name, other_agents)}


def _takers(graph: InteractionGraph, event: object, t: int) -> set[str]:
    """The agents that had begun work with an event at a logical time."""
    h = graph.history
    n = h.event(event) if isinstance(event, str) else None
    return set() if n is None else {h.agent(v) for v in h.sightings(n) if h.t_start[v] <= t}


def _types(graph: InteractionGraph, finding: Finding) -> tuple[set[str], set[str]]:
    """The type of a finding's event, and the types of the events in the evidence."""
    event = _as_dict(finding.subject).get("event")
    own = {graph.event(event).type} if isinstance(event, str) and graph.knows(event) else set()
    named = [name for name in texts_in(finding.evidence) if graph.history.event(name) is not None]
    return own, {graph.event(name).type for name in named if graph.knows(name)}


def _as_dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
