"""Reports of a check: text, annotations of GitHub and JUnit XML, valid by their schemas."""

from __future__ import annotations

import json
import os
import re
from datetime import datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as XML

import pytest

from dig.detectors import standard
from dig.errors import TraceError
from dig.show.gate.checked import UnreadRun, check_run
from dig.show.gate.junit import junit_lines
from dig.show.gate.quality_gate import Ignored, QualityGate
from dig.show.gate.reports import CheckReport, github_lines, json_lines, text_lines
from tests.histories import arrive, end, final, row, start, trace, turn
from tests.oracle import Row
from tests.show.gate.test_checked import early
from tests.show.gate.test_verdict import mended, repeated
from tests.traces.journals import story, write
from tests.traces.runs import directory, hasty, solved, store

HOSTILE = "x]]>\n::error::%0A,a:b\x1b[31m\ufffe\ud800 <&\"'"
"""A name that means something in XML, in a workflow command and on a terminal."""


def report(*paths: Path, unread: Any = (), **gate: Any) -> CheckReport:
    judge = QualityGate(**gate).judge
    return CheckReport([judge(check_run(path, standard())) for path in paths], unread)


@pytest.fixture
def everything(tmp_path: Path) -> CheckReport:
    """Runs that are good, early, healed, cut off, hostile, empty and unreadable."""
    folder = tmp_path / "odd"
    folder.mkdir()
    failed = row(3, "incident", what="failed", detail={"who": HOSTILE, "what": HOSTILE})
    hostile = json.loads(json.dumps([*early(), failed]).replace('"f"', json.dumps(HOSTILE)))
    hostile = [r for r in hostile if r["kind"] != "finish"]
    for number, one in enumerate(hostile):
        one["t"] = number
    hostile[0]["run"] = HOSTILE
    paths = (
        directory(tmp_path, "a", solved()),
        directory(tmp_path, "b", early()),
        directory(tmp_path, "c, d:e%", mended()),
        directory(tmp_path, "f", hasty()),
        directory(tmp_path, "g", repeated()),
        directory(tmp_path, "h", trace()),
        store(tmp_path / "i.dig.jsonl", hostile),
        write(folder, story()[:4]),
    )
    error = TraceError(tmp_path / HOSTILE.replace("\ud800", ""), 3, HOSTILE)
    return report(*paths, unread=[UnreadRun(tmp_path / "bad", error)])


# --- text ---


def text(*paths: Path, **gate: Any) -> str:
    return "\n".join(text_lines(report(*paths, **gate)))


def test_the_text_says_what_was_healed_and_what_was_not(tmp_path: Path) -> None:
    """An unhealed error with its healing stands first, and the last line gives the result."""
    out = text(directory(tmp_path, "r", hasty()))
    assert (
        "1 unhealed error (this fails the check):\n    error ET at 2.0 s (record 11): answer f"
        in out
    )
    assert "healing: sent f to a instead, with a note" in out
    assert out.splitlines()[-1] == "The check fails: 1 unhealed error."
    out = text(directory(tmp_path, "m", mended()))
    assert "  1 error that came right by itself:\n    error ET at 1.0 s" in out
    assert out.splitlines()[-1] == "The check passes: no unhealed errors (--fail-on unhealed)."


def test_alarms_stand_before_notices_and_repeats_are_counted(tmp_path: Path) -> None:
    """Equal notices are one line; the error above them is explained."""
    rows = trace(
        arrive(0, "p", None, "abc"),
        [part for one in "abc" for part in _solved(one)],
        arrive(1, "p2", None, "a"),
        turn(2, "v", "a", "f", **dict.fromkeys(["out-a", "out-b", "out-c", "p2"], "delay")),
        final(2, "f", "v"),
    )
    out = text(store(tmp_path / "t.dig.jsonl", rows))
    assert out.index("1 unhealed error") < out.index("  path: p -> ") < out.index("notices:")
    (line,) = [one for one in out.splitlines() if one.startswith("    notice RSP")]
    assert line.endswith(", 2 times, the last at 1.0 s (record 14)")


def test_an_entry_speaks_for_its_agents_and_its_error_alone(tmp_path: Path) -> None:
    """An error of another agent, or another error, has an entry of its own."""
    errors = ["no diesel", "no diesel", "no crew"]
    failed = [
        [*arrive(i, f"p{i}", None, agent), start(i, f"v{i}", agent, f"p{i}"),
         end(i, f"v{i}", **{f"p{i}": "consume"}) | {"error": f"ValueError: {error}"}]
        for i, (agent, error) in enumerate([(agent, e) for agent in "ab" for e in errors])
    ]  # fmt: skip
    out = text(store(tmp_path / "t.dig.jsonl", trace(*failed, session=True)))
    lines = [line for line in out.splitlines() if line.startswith("    notice FAIL turn")]
    assert [line.partition(": activation ")[2] for line in lines] == [
        f"v{first} of {agent} failed: ValueError: {error}{times}"
        for agent, n in (("a", 0), ("b", 3))
        for first, error, times in (
            (n, "no diesel", f", 2 times, the last at {n + 1}.0 s (record {4 * n + 8})"),
            (n + 2, "no crew", ""),
        )
    ]


def _solved(agent: str) -> list[Row]:
    out, activation = f"out-{agent}", f"act-{agent}"
    work = turn(1, activation, agent, out, p="consume")
    return [*work, *arrive(1, out, activation, "a")]


def test_a_run_that_was_never_asked_says_so(tmp_path: Path) -> None:
    """It passes, but a gate that is blind must not look like one that is content."""
    lines = [*text_lines(report(directory(tmp_path, "h", trace())))]
    assert "  The team was never asked, or in a way that is not watched." in lines
    assert lines[-1] == "The check passes, but there was nothing to check."
    asked = [*text_lines(report(directory(tmp_path, "a", solved())))]
    assert lines[-1] not in asked and asked[-1].startswith("The check passes: no unhealed")


def test_what_is_set_aside_is_counted_with_its_reason(tmp_path: Path) -> None:
    """A policy's reason is as recorded; an option is named."""
    silenced = store(tmp_path / "s.dig.jsonl", early(silenced="votes repeat"))
    assert "  1 finding set aside:\n    silenced: votes repeat: ET 1" in text(silenced)
    out = text(store(tmp_path / "t.dig.jsonl", early()), ignored=[Ignored("ET")])
    assert "    ignored: --ignore ET: ET 1" in out


def test_what_failed_in_the_monitor_is_in_the_text(tmp_path: Path) -> None:
    """With the part, how often it failed, and what was said last."""
    what = ("raised A", "raised B; it is disabled for the rest of the run")
    detail = [{"who": "detector ET", "what": one} for one in what]
    failed = [row(1, "incident", what="failed", detail=one) for one in detail]
    out = text(store(tmp_path / "t.dig.jsonl", trace(arrive(0, "p", None, "a"), *failed)))
    assert "  1 part of the monitor failed:\n    detector ET: raised B; it is disabled" in out
    assert "(2 times)" in out


def test_a_run_that_was_cut_off_fails_whatever_the_level(tmp_path: Path) -> None:
    """A run that may be going on does not."""
    out = text(write(tmp_path, story()[:4]), fail_on="error")
    assert "The trace has no end: the run was cut off; its last record is at 0.0 s" in out
    assert out.splitlines()[-1] == "The check fails: the run was cut off."
    assert "The check passes" in text(store(tmp_path / "t.dig.jsonl", trace()))


def test_no_line_from_a_trace_begins_a_command_or_steers_a_terminal(
    everything: CheckReport,
) -> None:
    """In the text of a log a workflow command would be carried out."""
    for line in text_lines(everything):
        assert not line.lstrip().startswith("::")
        assert "\x1b" not in line and "\n" not in line


# --- JSON ---


def test_json_names_the_trace_only_where_there_are_several(tmp_path: Path) -> None:
    """One trace gives the documented objects, without a key more."""
    one, two = directory(tmp_path, "b", early()), directory(tmp_path, "c", mended())
    (row_,) = (json.loads(line) for line in json_lines(report(one)))
    assert list(row_) == ["pattern", "severity", "stage", "t", "ts", "subject", "evidence"]
    rows = [json.loads(line) for line in json_lines(report(one, two))]
    assert [r["trace"] for r in rows] == [str(one), str(two)]


# --- GitHub ---

COMMAND = re.compile(r"::(error|warning) file=([^:,\n]*),line=(\d+),title=([^:,\n]*)::([^\n]*)")


def unescaped(text: str) -> str:
    for code, char in (("%2C", ","), ("%3A", ":"), ("%0A", "\n"), ("%0D", "\r"), ("%25", "%")):
        text = text.replace(code, char)
    return text


def test_annotations_are_escaped_as_github_reads_them(everything: CheckReport) -> None:
    """One command a line; what fails is an error and stands before other alarms."""
    *lines, last = github_lines(everything)
    found = [COMMAND.fullmatch(line) for line in lines]
    assert all(found)
    levels = [match[1] for match in found if match]
    assert levels == sorted(levels)
    assert levels.count("error") == 5  # unread, cut off, and the ETs of b, f and i
    assert any(unescaped(match[2]).endswith("c, d:e%/trace.dig.jsonl") for match in found if match)
    assert any("\n  path: " in unescaped(match[5]) for match in found if match)
    assert last.startswith("The check fails: ")


def test_an_annotation_names_the_file_from_here_and_the_line_of_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GitHub looks for the file below the directory that it checked out."""
    path = directory(tmp_path, "b", early())
    monkeypatch.chdir(tmp_path)
    line, _ = github_lines(report(path))
    match = COMMAND.fullmatch(line)
    assert match and (match[2], match[4]) == ("b/trace.dig.jsonl", "ET (early termination)")
    record = (path / "trace.dig.jsonl").read_text().splitlines()[int(match[3]) - 1]
    assert json.loads(record)["event"] == "f"


# --- JUnit ---

SUITE = {"name", "package", "id", "hostname", "time", "timestamp", "tests", "failures", "errors"}


def junit(made: CheckReport) -> XML.Element:
    root = XML.fromstring("\n".join(junit_lines(made)).encode())
    assert (root.tag, root.attrib) == ("testsuites", {})
    return root


def test_junit_is_valid_by_the_schema_of_ant_and_by_that_of_jenkins(
    everything: CheckReport,
) -> None:
    """Elements in their order, all attributes that are required, no others, and true totals."""
    root = junit(everything)
    assert len(root) == 9
    for number, suite in enumerate(root):
        assert suite.tag == "testsuite" and suite.attrib.keys() == SUITE | {"skipped"}
        assert suite.get("id") == str(number) and suite.get("name") and suite.get("hostname")
        assert datetime.strptime(suite.attrib["timestamp"], "%Y-%m-%dT%H:%M:%S")
        assert re.fullmatch(r"\d+\.\d+", suite.attrib["time"])
        tags = [child.tag for child in suite]
        cases = [child for child in suite if child.tag == "testcase"]
        middle = ["testcase"] * len(cases)
        assert tags == ["properties", *middle, "system-out", "system-err"]
        for case in cases:
            assert case.attrib.keys() == {"name", "classname", "time"}
            assert [child.tag for child in case] in ([], ["failure"], ["error"], ["skipped"])
            for child in case:
                wanted = {"message"} if child.tag == "skipped" else {"message", "type"}
                assert child.attrib.keys() == wanted
        for tag, total in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
            assert int(suite.attrib[total]) == sum(case.find(tag) is not None for case in cases)
        assert int(suite.attrib["tests"]) == len(cases)


def test_junit_has_a_test_case_for_each_pattern_that_keeps_its_name(tmp_path: Path) -> None:
    """A server compares them from run to run; equal runs are told apart by their paths."""
    good, bad = directory(tmp_path, "a", solved()), directory(tmp_path, "b", early())
    suites = junit(report(good, bad))
    names = [[case.attrib["name"] for case in suite.iter("testcase")] for suite in suites]
    assert names[0] == names[1] and len(set(names[0])) == len(names[0]) > 11
    classes = {case.attrib["classname"] for case in suites.iter("testcase")}
    assert classes == {str(good), str(bad)}
    (failed,) = (case for case in suites.iter("testcase") if case.find("failure") is not None)
    assert failed.attrib["name"] == "ET: early termination"
    assert "answer f was submitted too early" in (failed.findtext("failure") or "")


def test_junit_skips_a_pattern_of_which_all_is_set_aside(tmp_path: Path) -> None:
    """The reason is its message."""
    root = junit(report(directory(tmp_path, "b", early()), ignored=[Ignored("ET")]))
    (skipped,) = root.iter("skipped")
    assert skipped.attrib["message"] == "ignored: --ignore ET"


def test_a_path_that_is_no_text_is_reported_all_the_same(tmp_path: Path) -> None:
    """On Linux a name may be any bytes."""
    try:
        path = directory(tmp_path, os.fsdecode(b"r\xff"), early())
    except OSError:
        pytest.skip("this file system takes no such name")
    assert junit(report(path)) is not None and list(github_lines(report(path)))
