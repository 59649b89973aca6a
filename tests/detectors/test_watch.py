"""What a watch does with findings: bounds them, weighs them, and tells other detectors of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from dig import Finding, InteractionGraph, Record
from dig.detectors import usual
from dig.detectors.protocols import Detector
from dig.detectors.watch import MOST_FAULTS, Watch
from dig.graph.codec import decode
from dig.graph.records import CLOSED, End, IncidentRow
from tests.helpers import Sees, flag, on_emit
from tests.histories import arrive, deliver, emit, final, row, trace, turn
from tests.oracle import Row


def found(rows: list[Row], *detectors: Detector) -> list[Finding]:
    """What some detectors find in a trace; none of them fails."""
    faults: list[Any] = []
    watch = Watch(detectors, on_fault=lambda *fault: faults.append(fault))
    findings = [finding for one in rows for finding in watch.feed(decode(one))]
    assert faults == []
    return findings


def says(evidence: dict[str, Any], **keys: Any) -> Sees:
    """A detector that raises one thing about every event, with that evidence."""

    def look(graph: InteractionGraph, record: Record) -> list[Finding]:
        if record.kind != "emit":
            return []
        return [Finding("MINE", record.t, record.us, {"event": "e"}, evidence, **keys)]

    return Sees(look, "MINE")


ONE = trace(emit(0, "e", None))


# -- what a detector of a user says ---


def test_what_a_users_detector_finds_is_a_warning_unless_it_says_otherwise() -> None:
    """An alarm by default: its author thinks that it matters."""
    assert [one.severity for one in found(ONE, says({}))] == ["warning"]
    assert [one.severity for one in found(ONE, says({}, severity="notice"))] == ["notice"]


def test_a_severity_that_is_none_is_a_failure_of_the_detector() -> None:
    """The failure names the severities; nothing is found."""
    faults: list[tuple[str, str]] = []
    watch = Watch([says({}, severity="fatal")], on_fault=lambda *fault: faults.append(fault))
    assert [finding for one in ONE for finding in watch.feed(decode(one))] == []
    assert [name for name, _ in faults] == ["MINE"]
    assert "the severity 'fatal' is none of error, warning, notice" in faults[0][1]


def test_long_evidence_of_a_users_detector_is_cut() -> None:
    """Each list keeps its first 100 items, also inside of others; `more` says so once."""
    many = [f"e{i}" for i in range(150)]
    evidence: dict[str, Any] = {
        "events": many,
        "pairs": [{"event": "e", "with": many}],
        "short": ["e"],
    }
    [finding] = found(ONE, says(evidence))
    assert finding.evidence == {
        "events": many[:100],
        "pairs": [{"event": "e", "with": many[:100]}],
        "short": ["e"],
        "more": True,
    }
    assert len(many) == 150, "what the detector holds stays as it is"


def test_evidence_of_a_hundred_items_is_whole() -> None:
    """Nothing is left out, so nothing says that there is more."""
    evidence = {"events": [f"e{i}" for i in range(100)]}
    [finding] = found(ONE, says(evidence))
    assert finding.evidence is evidence


# -- one detector's findings, told to the others ---


class Listens(Detector):
    """A detector that notes what the others raise, and raises `answer` at a moment after it."""

    def __init__(self, after_us: int | None = None) -> None:
        self.heard: list[tuple[str, str]] = []
        self._after_us = after_us

    pattern = "LISTENS"
    kinds = (End,)

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        return [flag(record, "LISTENS")]

    def on_finding(self, graph: InteractionGraph, finding: Finding) -> None:
        self.heard.append((finding.pattern, finding.severity))
        if self._after_us is not None:
            self.due = finding.us + self._after_us

    def expire(self, graph: InteractionGraph, us: int) -> Iterable[Finding]:
        self.due = None
        return [Finding("LISTENS", graph.t, us, {}, {})]


def test_a_detector_is_told_of_what_the_others_raise() -> None:
    """Not of what it raises itself; whether it stands before or after them does not matter."""
    first, last = Listens(), Listens()
    rows = trace(arrive(0, "e", None, "a"), turn(1, "v", "a", e="consume"))
    assert len(found(rows, first, Sees(on_emit), last)) == 3
    assert first.heard == last.heard == [("SEEN", "warning"), ("LISTENS", "warning")]


def test_a_detector_is_told_what_a_finding_is_worth_to_the_team() -> None:
    """What is usual has been weighed by then."""
    listens = Listens()
    found(trace(emit(0, "e", None), usual={"runs": 19, "counts": {"SEEN": [19]}}),
          Sees(on_emit), listens)  # fmt: skip
    assert listens.heard == [("SEEN", "notice")]


def test_what_a_detector_hears_may_set_its_deadline() -> None:
    """The watch looks at the deadline again, so the detector is called when it is over."""
    rows = trace(emit(1, "e", None), row(5, "incident", what="x", detail=None))
    heard = [(one.pattern, one.ts) for one in found(rows, Sees(on_emit), Listens(2_000_000))]
    assert heard == [("SEEN", 1.0), ("LISTENS", 3.0)]


def test_a_detector_that_fails_at_what_it_hears_loses_no_finding_of_others() -> None:
    """It is disabled after three failures, like one that fails at a record."""

    class Deaf(Listens):
        def on_finding(self, graph: InteractionGraph, finding: Finding) -> None:
            raise RuntimeError("deaf")

    faults: list[tuple[str, str]] = []
    deaf, sees = Deaf(), Sees(on_emit)
    watch = Watch([deaf, sees], on_fault=lambda *fault: faults.append(fault))
    rows = trace([emit(0, f"e{i}", None) for i in range(5)])
    assert len([finding for one in rows for finding in watch.feed(decode(one))]) == 5
    assert [name for name, _ in faults] == ["LISTENS"] * MOST_FAULTS
    assert "disabled" in faults[-1][1]


# -- incidents ---


@pytest.mark.parametrize(
    ("kinds", "seen"), [(None, 0), ((End,), 0), ((IncidentRow,), 1), ((End, IncidentRow), 1)]
)
def test_an_incident_is_shown_to_detectors_that_name_it(
    kinds: tuple[type, ...] | None, seen: int
) -> None:
    """It changes no graph: a detector that wants all changes is not called for it."""

    def look(graph: InteractionGraph, record: Record) -> list[Finding]:
        return [flag(record)] if record.kind == "incident" else []

    detector = Sees(look)
    detector.kinds = kinds
    assert len(found(trace(row(0, "incident", what="x", detail=None)), detector)) == seen


def test_an_incident_after_the_answer_that_ends_a_run_is_shown_to_none() -> None:
    """Nothing may be raised any more."""
    detector = Sees(lambda graph, record: [flag(record)])
    detector.kinds = (IncidentRow,)
    over = [*turn(0, "v", "a", "f"), final(0, "f", "v"), deliver(0, "f", None)]
    assert found(trace(over, row(1, "incident", what="x", detail=None)), detector) == []


# -- what is usual ---


def severities(rows: list[Row], detector: Detector | None = None) -> list[str]:
    return [one.severity for one in found(rows, detector or Sees(on_emit))]


def test_usual_findings_of_a_users_detector_are_notices() -> None:
    """Even those that it calls errors; beyond what is usual they are what it says."""
    rows = trace([emit(0, f"e{i}", None) for i in range(3)],
                 usual={"runs": 19, "counts": {"MINE": [19, 1]}})  # fmt: skip
    assert severities(rows, says({}, severity="error")) == ["notice", "notice", "error"]


def test_in_a_session_findings_are_counted_for_each_problem() -> None:
    """The second problem begins to count anew, and so does what concerns both."""
    problems = [*arrive(0, "e1", None, "a"), *arrive(0, "e2", None, "a")]
    both = [*turn(1, "v", "a", "x y", e1="consume", e2="consume"), emit(1, "x", "v", "b")]
    both.append(emit(1, "y", "v", "b"))
    rows = trace(problems, both, session=True, usual={"runs": 19, "counts": {"SEEN": [19]}})
    assert severities(rows) == ["notice", "notice", "notice", "warning"]
    in_a_run = [{key: value for key, value in one.items() if key != "session"} for one in rows]
    assert severities(in_a_run) == ["notice", "warning", "warning", "warning"]


def test_in_a_session_an_answered_problem_is_still_counted() -> None:
    """What goes back to it is one more finding about it, and no first one about nothing."""
    rows = trace(
        arrive(0, "e", None, "a"),
        [*turn(1, "v", "a", "x", e="consume"), *arrive(1, "x", "v", "bc")],
        [*turn(2, "w", "b", "f", x="consume"), final(2, "f", "w"), deliver(2, "f", None)],
        [*turn(3, "u", "c", "y", x="consume"), emit(3, "y", "u", "a"), emit(3, "s", "system")],
        session=True,
        usual={"runs": 19, "counts": {"SEEN": [19, 19]}},
    )
    events = ["e", "x", "f", "y", "s"]
    assert [one.subject["event"] for one in found(rows, Sees(on_emit))] == events
    assert severities(rows) == ["notice", "notice", "warning", "warning", "notice"]


def test_the_latest_problems_of_a_session_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory stays flat: of a problem long ago nothing is known, and its count begins anew."""
    monkeypatch.setattr(usual, "MOST_SOURCES", 2)
    rows = trace(
        [*arrive(0, "e1", None, "a"), *arrive(0, "e2", None, "b"), *arrive(0, "e3", None, "c")],
        [*turn(1, "v", "a", "x", e1="consume"), emit(1, "x", "v", "b")],
        [*turn(2, "w", "c", "y", e3="consume"), emit(2, "y", "w", "b")],
        session=True,
        usual={"runs": 19, "counts": {"SEEN": [19]}},
    )
    assert severities(rows) == ["notice", "notice", "notice", "notice", "warning"]


# -- what a detector is shown, and when it is due ---


def test_a_detector_is_shown_the_records_that_made_a_change_that_it_names() -> None:
    """Whatever their kind: here the end of the activation that consumed the event."""
    shown: list[str] = []

    def look(graph: InteractionGraph, record: Record) -> list[Finding]:
        shown.append(record.kind)
        return []

    detector = Sees(look)
    detector.kinds = (CLOSED,)
    found(trace(arrive(0, "e", None, "a"), turn(1, "v", "a", e="consume")), detector)
    assert shown == ["end"]


class TooEarly(Detector):
    """A detector that is due at 3 s, sets 1 s at first, and knows better when it is asked."""

    pattern = "EARLY"

    def __init__(self) -> None:
        self.expired: list[int] = []

    def detect(self, graph: InteractionGraph, record: Record) -> Iterable[Finding]:
        if self.due is None and not self.expired:
            self.due = 1_000_000
        return ()

    def settle_due(self) -> None:
        if self.due is not None:
            self.due = 3_000_000

    def expire(self, graph: InteractionGraph, us: int) -> Iterable[Finding]:
        self.expired.append(us)
        self.due = None
        return [Finding("EARLY", graph.t, us, {}, {})]


def test_a_deadline_that_is_too_early_is_settled_before_it_is_told_or_comes() -> None:
    """Nothing expires at the early moment, and whoever asks for the moment gets the exact one."""
    watch = Watch([early := TooEarly()])
    for one in ONE:
        watch.feed(decode(one))
    assert watch.not_before == 1_000_000
    assert watch.advance(2_999_999) == []
    assert watch.due == 3_000_000
    assert [finding.us for finding in watch.advance(4_000_000)] == early.expired == [3_000_000]
