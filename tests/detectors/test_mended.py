"""Which findings came right later in the run: `Mending`, fed with a run as it goes on."""

from __future__ import annotations

from typing import Any

import pytest

from dig import Finding
from dig.detectors.finding import Severity
from dig.detectors.mended import Mending
from dig.graph.codec import decode
from dig.graph.graph import InteractionGraph
from tests.histories import arrive, deliver, emit, end, final, row, start, trace, turn
from tests.oracle import Row


class Story:
    """A run that goes on while findings are raised."""

    def __init__(self, *parts: Row | list[Row], **keys: Any) -> None:
        self.graph, self.mending = InteractionGraph(), Mending()
        self.findings: list[Finding] = []
        for one in trace(*parts, **keys):
            self._feed(one)

    def then(self, *parts: Row | list[Row]) -> Story:
        """The run goes on with some rows."""
        for part in parts:
            for one in part if isinstance(part, list) else [part]:
                self._feed({"t": self.graph.t + 1, **one})
        return self

    def _feed(self, one: Row) -> None:
        record = decode(one)
        self.graph.apply(record)
        self.mending.look(self.graph, record)

    def raised(self, pattern: str, severity: Severity = "error", **about: Any) -> Story:
        """A finding is raised; its evidence has `inputs`, the rest is its subject."""
        evidence = {"inputs": about.pop("inputs", [])}
        now = self.graph.t, self.graph.now
        finding = Finding(pattern, *now, about, evidence, severity=severity)
        self.findings.append(finding)
        self.mending.add(self.graph, finding)
        return self

    @property
    def mended(self) -> list[bool]:
        return self.mending.mended


def answered(ts: float, activation: str, agent: str, event: str, /, **fates: str) -> list[Row]:
    """A final event, accepted at once."""
    return [
        *turn(ts, activation, agent, event, **fates),
        final(ts, event, activation),
        deliver(ts, event, None),
    ]


@pytest.mark.parametrize("pattern", ["OE", "LATE", "ER"])
def test_what_is_about_an_event_is_mended_by_its_use(pattern: str) -> None:
    """Not by what becomes of another event, and not before it is used."""
    story = Story(arrive(0, "e", None, "a"), arrive(0, "x", None, "b"))
    story.raised(pattern, event="e").then(turn(1, "v", "b", x="consume"))
    assert story.mended == [False]
    assert story.then(turn(2, "w", "a", e="consume")).mended == [True]


@pytest.mark.parametrize(("severity", "mended"), [("error", False), ("warning", True)])
def test_an_early_answer_is_mended_by_one_that_is_no_error(
    severity: Severity, mended: bool
) -> None:
    """A later answer that is early itself mends nothing; with a mere warning it does."""
    story = Story(turn(0, "v", "a", "f1"), final(0, "f1", "v")).raised("ET", event="f1")
    story.then(turn(1, "w", "a", "f2"), final(1, "f2", "w")).raised("ET", severity, event="f2")
    assert story.then(deliver(2, "f2", None)).mended == [mended, mended]


def test_the_acceptance_of_an_early_answer_mends_it_not() -> None:
    """It is still the answer that came too early."""
    story = Story(turn(0, "v", "a", "f1"), final(0, "f1", "v")).raised("ET", event="f1")
    assert story.then(deliver(1, "f1", None)).mended == [False]


def test_a_missing_answer_is_mended_by_any_answer_that_is_generated() -> None:
    """Whether it is accepted does not matter."""
    story = Story(arrive(0, "e", None, "a"), turn(0, "v", "a", e="consume")).raised("MC")
    assert story.mended == [False]
    assert story.then(turn(1, "w", "a", "f"), final(1, "f", "w")).mended == [True]


def test_a_deadlock_is_mended_by_work_that_moves_or_by_an_output() -> None:
    """Not by an agent that only waits, nor by one that reads a note."""
    story = Story(arrive(0, "e", None, "a")).raised("DL").then(turn(1, "v", "a", e="delay"))
    story.then(arrive(2, "s", "system", "a", "system"), turn(2, "w", "a", e="delay", s="consume"))
    assert story.mended == [False]
    story.raised("DL").then(turn(3, "x", "a", e="discard"))
    assert story.mended == [True, True]
    story.raised("DL").then(turn(4, "y", "a", "n"))
    assert story.mended == [True, True, True]


def test_a_stalled_activation_is_mended_by_its_end_without_error() -> None:
    """One that fails, or is cut off, was never mended."""
    story = Story(*[start(0, "v" + agent, agent) for agent in "abc"])
    for agent in "abc":
        story.raised("STALL", activation="v" + agent)
    story.then(end(1, "va"), end(2, "vb") | {"error": "failed"}, row(3, "leave", agent="c"))
    assert story.mended == [True, False, False]


def test_a_stalled_activation_is_mended_once_all_that_it_holds_was_used_elsewhere() -> None:
    """One of two inputs is too few, as what was used before counts as well."""
    events = [emit(0, name, None, "ab") for name in "exy"] + [deliver(0, e, "a") for e in "exy"]
    used = [deliver(1, "y", "b"), *turn(1, "u", "b", y="consume")]
    story = Story(events, used, start(2, "v", "a", "e x y"))
    story.raised("STALL", activation="v", inputs=["e", "x", "y"])
    story.then(deliver(3, "e", "b"), turn(3, "w1", "b", e="consume"))
    assert story.mended == [False]
    story.then(deliver(4, "x", "b"), turn(4, "w2", "b", x="consume"))
    assert story.mended == [True]


def test_without_inputs_nothing_that_is_used_mends_a_stalled_activation() -> None:
    """All of nothing is no sign that it came right."""
    story = Story(arrive(0, "e", None, "b"), start(0, "v", "a")).raised("STALL", activation="v")
    assert story.then(turn(1, "w", "b", e="consume")).mended == [False]


@pytest.mark.parametrize("pattern", ["LOOP", "LIVELOCK"])
def test_repetition_is_mended_by_an_accepted_answer(pattern: str) -> None:
    """An answer that is only generated ends no round."""
    about: dict[str, Any] = {"event": "e"} if pattern == "LOOP" else {"activation": "v"}
    story = Story(arrive(0, "e", None, "a"), turn(0, "v", "a", e="consume"))
    story.raised(pattern, **about).then(turn(1, "w", "a", "f"), final(1, "f", "w"))
    assert story.mended == [False]
    assert story.then(deliver(2, "f", None)).mended == [True]


@pytest.mark.parametrize("pattern", ["CLA", "RSP", "MINE"])
def test_what_has_happened_stays(pattern: str) -> None:
    """What was put together or solved twice, and what users' detectors say, is never mended."""
    story = Story(arrive(0, "e", None, "a")).raised(pattern, event="e", activation="v")
    assert story.then(answered(1, "v", "a", "f", e="consume")).mended == [False]


@pytest.mark.parametrize("pattern", ["ET", "MC", "DL", "LOOP", "LIVELOCK"])
def test_in_a_session_only_what_concerns_the_same_problem_mends(pattern: str) -> None:
    """An answer to another problem, and work on it, leave a finding as it is."""
    problems = [*arrive(0, "e1", None, "a"), *arrive(0, "e2", None, "b")]
    story = Story(problems, session=True).raised(pattern, event="e1")
    story.then(answered(1, "v2", "b", "f2", e2="consume"))
    assert story.mended == [False]
    assert story.then(answered(2, "v1", "a", "f1", e1="consume")).mended == [True]


def test_unhealed_are_the_errors_neither_mended_nor_silenced() -> None:
    """A policy silences a finding after it was raised; warnings and notices are never unhealed."""
    agents = {"e1": "a", "e2": "b", "e3": "b", "e4": "b"}
    story = Story(*[arrive(0, event, None, agent) for event, agent in agents.items()])
    story.raised("OE", event="e1").raised("OE", event="e2").raised("OE", "warning", event="e3")
    story.raised("OE", event="e4").then(turn(1, "v", "a", e1="consume"))
    silenced = Finding("OE", 0, 0, {"event": "e4"}, {}, severity="error", silenced="known")
    findings = [*story.findings[:3], silenced]
    assert [one.subject["event"] for one in story.mending.unmended_errors(findings)] == ["e2"]


def test_what_is_counted_are_all_findings_that_were_added() -> None:
    """Fewer or more of them are a mistake of the caller, and not skipped in silence."""
    story = Story(emit(0, "e", None)).raised("OE", event="e")
    with pytest.raises(ValueError, match="zip"):
        list(story.mending.unmended_errors([]))
