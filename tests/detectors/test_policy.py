"""Policies: which rule decides about a finding, and how a policy is written down."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dig import Fate, Finding, InteractionGraph, Output
from dig.detectors.finding import Severity
from dig.detectors.policy import HEAL_ALL, Policy, Rule, apply_policy
from dig.detectors.policy_settings import load_policy, read_policy
from dig.detectors.settings_file import find_settings
from dig.errors import SettingsError
from dig.runtime import Setup, simulate
from tests.helpers import Scripted, Stage, out


def off(**more: Any) -> Rule:
    return Rule(action="off", **more)


def vote() -> InteractionGraph:
    """Agent a asks b and c#2 for their votes; c#2 has voted with its activation a2."""
    stage = Stage(["a", "b", "c#2"])
    stage.give("a")
    started = stage.start("a")
    asked = Output("?", ("b", "c#2"), "vote")
    stage.monitor.end(started.activation, [Fate("e1", "consume")], [asked])
    stage.turn("c#2", out("a", type="ballot"))
    return stage.graph


def found(subject: dict[str, str], pattern: str = "RSP", **evidence: Any) -> Finding:
    return Finding(pattern, 1, 0, subject, evidence)


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        (off(), True),
        (off(pattern="RSP"), True),
        (off(pattern="ET"), False),
        (off(agents=("c",)), True),
        (off(agents=("a", "b")), False),
        (off(types=("vote",)), True),
        (off(types=("ballot",)), False),
        (off(pattern="RSP", agents=("c",), types=("vote",)), True),
        (off(pattern="RSP", agents=("a",), types=("vote",)), False),
    ],
)
def test_a_rule_fits_by_pattern_agents_and_types(rule: Rule, fits: bool) -> None:
    """The agent is that of the activation, whichever instance; the types are the evidence's."""
    finding = found({"activation": "a2"}, shared=[{"event": "e2", "activations": ["a9"]}])
    assert (Policy((rule,)).ruling(vote(), finding) is rule) is fits


@pytest.mark.parametrize(
    ("agents", "finding", "fits"),
    [
        (("a",), found({"event": "e2"}), True),
        (("b",), found({"event": "e2"}), False),
        (("b",), found({"event": "e2"}, to=["b"]), True),
        (("b",), found({"event": "e2"}, to=["b", "c#2"]), False),
        (("b", "c"), found({"event": "e2"}, to=["b", "c#2"]), True),
        (("b",), found({}, "DL", waiting={"b": ["e2"]}), True),
        (("b",), found({}, "DL", waiting={"b": ["e2"], "a": ["e3"]}), False),
        (("b",), found({"event": "e2", "agent": "b"}, "CLA", conflicts=["e3"]), True),
        (("b",), found({"event": "e77"}), False),
    ],
)
def test_agents_are_the_maker_or_all_that_the_evidence_names(
    agents: tuple[str, ...], finding: Finding, fits: bool
) -> None:
    """One agent of several does not silence what concerns the others too."""
    assert (Policy((off(agents=agents),)).ruling(vote(), finding) is not None) is fits


def test_the_rule_that_names_more_decides() -> None:
    """In whichever order the rules are given; of equals, the first."""
    general, pattern = off(), Rule(action="heal", pattern="RSP")
    exact = Rule(action="observe", pattern="RSP", agents=("c",))
    finding, graph = found({"activation": "a2"}), vote()
    assert Policy((general, pattern, exact)).ruling(graph, finding) is exact
    assert Policy((general, pattern)).ruling(graph, finding) is pattern
    assert Policy((general, off(reason="no"))).ruling(graph, finding) is general


def test_only_off_silences_and_says_why() -> None:
    """Nothing else about the finding changes, its severity least of all."""
    finding, graph = found({"activation": "a2"}), vote()
    for action in ("observe", "ask", "heal"):
        assert apply_policy(Policy((Rule(action=action),)), graph, finding) is finding
    silenced = apply_policy(Policy((off(reason="votes repeat"),)), graph, finding)
    assert (silenced.silenced, silenced.severity) == ("votes repeat", "warning")
    assert finding.is_alarm and not silenced.is_alarm
    assert apply_policy(Policy((off(),)), graph, finding).silenced == "policy: every pattern = off"


@pytest.mark.parametrize(
    ("severity", "pattern", "extent"),
    [
        ("error", "ET", "all"), ("warning", "ET", "notes"), ("notice", "ET", "none"),
        ("notice", "RSP", "notes"), ("warning", "SEEN", "notes"),
    ],
)  # fmt: skip
def test_how_far_healing_goes_is_decided_by_severity(
    severity: Severity, pattern: str, extent: str
) -> None:
    """Unless all is healed, as in the paper."""
    finding = Finding(pattern, 1, 0, {}, {}, severity=severity)
    assert Policy().extent(None, finding) == extent
    assert HEAL_ALL.extent(None, finding) == "all"


# --- files and the environment ---


def loaded(path: Path, text: str, environment: dict[str, str] | None = None) -> Policy:
    path.write_text(text, "utf-8")
    return load_policy(path, environment or {}, ["SILENT"])


WRITTEN = """
[policy]
heal = "all"
notices = ["audit"]
refuse = ["replace"]
CLA = "observe"
any = { action = "ask", agents = ["ann"], deadline_s = 5, otherwise = "heal" }

[[policy.RSP]]
action = "off"
types = ["vote"]
reason = "votes are meant to repeat"

[[policy.RSP]]
action = "heal"
"""

READ = Policy(
    (
        Rule(action="observe", pattern="CLA"),
        Rule(action="ask", agents=("ann",), deadline_s=5, otherwise="heal"),
        off(pattern="RSP", types=("vote",), reason="votes are meant to repeat"),
        Rule(action="heal", pattern="RSP"),
    ),
    heal="all",
    notices=("audit",),
    refuse=("replace",),
)


def test_a_policy_is_read_from_a_table(tmp_path: Path) -> None:
    """The same table stands in a file of its own and in a pyproject.toml."""
    assert loaded(tmp_path / "dig.toml", WRITTEN) == READ
    assert loaded(tmp_path / "pyproject.toml", WRITTEN.replace("policy", "tool.digmon.policy")) == (
        READ
    )
    assert loaded(tmp_path / "dig.toml", "[thresholds]\nmc_window_s = 5") == Policy()


def test_the_table_of_the_documents_is_a_policy(tmp_path: Path) -> None:
    """The first block of TOML in docs/policy.md."""
    page = (Path(__file__).parents[2] / "docs/policy.md").read_text("utf-8")
    policy = loaded(tmp_path / "dig.toml", page.split("```toml\n")[1].split("```")[0])
    assert policy.notices == ("audit",)
    actions = sorted(f"{rule.pattern} {rule.action}" for rule in policy.rules)
    assert actions == ["CLA observe", "ET ask", "ET heal", "RSP off"]


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    """What it says of a pattern replaces all rules of the file for it."""
    environment = {"DIG_POLICY_RSP": "observe", "DIG_POLICY_HEAL": "severity"}
    environment |= {"DIG_POLICY_NOTICES": "log, audit", "DIG_MC_WINDOW_S": "3"}
    policy = loaded(tmp_path / "dig.toml", WRITTEN, environment)
    assert [rule.action for rule in policy.rules if rule.pattern == "RSP"] == ["observe"]
    assert (policy.heal, policy.notices) == ("severity", ("log", "audit"))
    assert load_policy(None, {"DIG_POLICY_ANY": "off"}).rules == (off(),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[policy]\nRPS = "off"', "[policy], RPS: there is no pattern 'RPS'; did you mean RSP?"),
        ('[policy]\nloop = "off"', "did you mean LOOP?"),
        ('[policy]\nSILNT = "off"', "did you mean SILENT?"),
        ('[policy]\n"?" = "off"', "known are: ET, ER, "),
        ('[policy]\nET = "of"', "[policy], ET: action is 'of'; it must be one of off, observe,"),
        ("[policy]\nET = 3", "[policy], ET is 3; write an action (off, observe, ask, heal), or a"),
        ("[[policy.ET]]\ntypes = ['x']", "[policy], ET, entry 1 has no action; write action ="),
        ("[policy]\nET = {action='off', agent=['x']}", "no key 'agent'; did you mean agents?"),
        ("[policy]\nET = {action='off', agents='x'}", "agents is 'x'; it must be a list of names"),
        ("[policy]\nET = {action='off', deadline_s=3}", 'deadline_s is for action = "ask" alone'),
        ("[policy]\nET = {action='ask', deadline_s=0}", "deadline_s is 0; it must be above 0"),
        ("[policy]\nET = {action='ask', otherwise='x'}", "otherwise is 'x'; it must be one of"),
        ('[policy]\nheal = "some"', "[policy], heal: heal is 'some'; it must be one of severity"),
        ('[policy]\nrefuse = ["notes"]', "[policy], refuse: refuse is 'notes'; it must be one of"),
        ('[policy]\nnotices = "log"', "[policy], notices: notices is 'log'; it must be a list"),
        ('[polciy]\nET = "off"', "[polciy] is no table; did you mean policy?"),
        ("policy = 3", "has no table [policy], but policy = 3"),
        ("x = 3", "has no table [thresholds] or [policy]"),
        ("[", "is not TOML"),
    ],
)
def test_a_wrong_policy_is_refused_with_place_and_cure(
    tmp_path: Path, text: str, message: str
) -> None:
    """The sentence names the file, the key, and what to write."""
    with pytest.raises(SettingsError) as refused:
        loaded(tmp_path / "dig.toml", text)
    assert message in str(refused.value)
    assert "dig.toml" in str(refused.value)


def test_a_wrong_variable_is_refused_with_its_name() -> None:
    """So is a pattern that is misspelt in it."""
    with pytest.raises(SettingsError, match="DIG_POLICY_ETT: there is no pattern 'ETT'; did you m"):
        load_policy(None, {"DIG_POLICY_ETT": "off"})
    with pytest.raises(SettingsError, match="variable DIG_POLICY_ET: action is 'no'; it must be"):
        load_policy(None, {"DIG_POLICY_ET": "no"})


def test_a_run_refuses_rules_about_patterns_that_nothing_raises() -> None:
    """Python says the same as a file; a pattern of a detector of the run's own is known."""
    with pytest.raises(SettingsError, match="the policy: there is no pattern 'MCC'; did you mean"):
        simulate({"a": Scripted()}, "?", setup=Setup(policy=Policy((off(pattern="MCC"),))))
    simulate({"a": Scripted()}, "?", setup=Setup(policy=Policy((off(pattern="MC"),))))


def test_a_policy_survives_its_description() -> None:
    """As the JSON that stands in a header."""
    assert read_policy(json.loads(json.dumps(READ.to_json()))) == READ
    assert read_policy(Policy().to_json()) == Policy()
    for wrong in ({"rules": 3}, {"rules": [3]}, {"rules": [{"x": 1}]}, {"x": 1}, {"heal": 3}):
        with pytest.raises(SettingsError):
            read_policy(wrong)


def test_a_project_file_counts_if_it_has_settings(tmp_path: Path) -> None:
    """A file that was named goes first."""
    project = tmp_path / "pyproject.toml"
    assert find_settings(None, tmp_path) is None
    project.write_text("[tool.other]\nx = 1")
    assert find_settings(None, tmp_path) is None
    project.write_text("[tool.digmon.policy]\nET = 'off'")
    assert find_settings(None, tmp_path) == project
    assert find_settings(tmp_path / "x.toml", tmp_path) == tmp_path / "x.toml"
