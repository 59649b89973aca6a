"""`digmon check` as a gate: its exit status, its options, and that it changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as XML

import pytest

from dig.traces.journal.journal import Journal
from dig.traces.journal.reader import TRACE
from tests import failing
from tests.histories import arrive, deliver, final, row, start, trace, turn
from tests.oracle import Row
from tests.show.gate.test_checked import early
from tests.show.gate.test_verdict import mended, repeated
from tests.traces.journals import story, write
from tests.traces.runs import directory, solved


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """A directory of a good run, an early one, and one that was healed."""
    for name, rows in {"good": solved(), "early": early(), "healed": mended()}.items():
        directory(tmp_path / "runs", name, rows)
    return tmp_path / "runs"


def files(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_directory_of_runs_is_checked_as_one(call: Any, runs: Path) -> None:
    """Each run has its part, and the last line says how many fail."""
    code, out, err = call("check", runs)
    assert (code, err) == (1, "")
    assert [line for line in out.splitlines() if line.startswith(str(runs))] == [
        f"{runs / 'early'}: fails, 1 unhealed error",
        f"{runs / 'good'}: passes",
        f"{runs / 'healed'}: passes",
    ]
    assert out.splitlines()[-1] == (
        "The check fails: 2 runs passed, 1 run failed (1 unhealed error)."
    )


@pytest.mark.parametrize(
    ("name", "options", "code"),
    [
        ("good", ["--fail-on", "notice"], 0),
        ("healed", [], 0),
        ("healed", ["--fail-on", "error"], 1),
        ("early", [], 1),
        ("early", ["--ignore", "ET"], 0),
        ("early", ["--ignore", "ET=b"], 1),
        ("early", ["--ignore", "EX"], 2),
        ("early", ["--fail-on", "everything"], 2),
        ("early", ["--json", "--format", "junit"], 2),
        ("early", ["--baseline", "missing.json"], 2),
    ],
)
def test_the_exit_status_is_as_the_options_say(
    call: Any, runs: Path, name: str, options: list[str], code: int
) -> None:
    """0: nothing fails the check; 1: something does; 2: an option is wrong, and it says so."""
    status, out, err = call("check", runs / name, *options)
    assert status == code
    assert bool(err) is (code == 2) and bool(out) is (code != 2)


def test_known_findings_are_written_and_read(call: Any, runs: Path, tmp_path: Path) -> None:
    """What fails now does not fail next time; a new finding does; what is gone is told."""
    known = tmp_path / "known.json"
    code, out, _ = call("check", runs, "--write-baseline", known)
    assert (code, out) == (0, f"{known}: 1 finding of 1 kind\n")
    code, out, _ = call("check", runs, "--baseline", known)
    assert code == 0 and "known: in the baseline: ET 1" in out
    code, out, _ = call("check", runs / "good", "--baseline", known)
    assert code == 0 and "The baseline has 1 entry that no finding fits any more." in out
    directory(runs, "new", json.loads(json.dumps(early()).replace('"a"', '"z"')))
    assert call("check", runs, "--baseline", known)[0] == 1
    code, _, err = call("check", runs, "--baseline", known, "--write-baseline", known)
    assert code == 2 and "leave --baseline out" in err


def test_a_policy_silences_findings_of_stored_runs(
    call: Any, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is given by name, or stands in the project's file; the report says the reason."""
    config = tmp_path / "team.toml"
    config.write_text('[policy.ET]\naction = "off"\nagents = ["a"]\nreason = "drafts are fine"\n')
    assert call("check", runs / "early")[0] == 1
    code, out, _ = call("check", runs / "early", "--config", config)
    assert code == 0 and "silenced: drafts are fine: ET 1" in out
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.digmon.policy]\nET = "off"\n')
    assert call("check", runs / "early")[0] == 0
    config.write_text('[policy]\nEX = "off"\n')
    code, out, err = call("check", runs / "early", "--config", config)
    assert (code, out) == (2, "") and "there is no pattern 'EX'" in err


def test_json_is_one_of_the_formats(call: Any, runs: Path) -> None:
    """`--json` and `--format json` print the same lines."""
    assert call("check", runs, "--json") == call("check", runs, "--format", "json")


def test_json_tells_on_standard_error_of_a_detector_that_failed(
    call: Any, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its objects are findings, so they have no place for it; a failure is never silent."""
    (tmp_path / "failing.py").write_text("from tests.show.gate.test_checked import Broken\n")
    monkeypatch.syspath_prepend(tmp_path)
    code, _, err = call("check", runs / "good", "--json", "--detector", "failing:Broken")
    assert code == 0 and err.count("\n") == 1
    assert "detector BROKEN, here: raised ZeroDivisionError(); it is disabled" in err
    code, out, err = call("check", runs / "good", "--detector", "failing:Broken")
    assert (code, err) == (0, "") and "1 part of the monitor failed:" in out


def test_a_report_goes_to_a_file_and_the_text_to_the_log(
    call: Any, runs: Path, tmp_path: Path
) -> None:
    """So a job has both; a file that cannot be written is an error."""
    code, out, _ = call("check", runs, "--format", "junit", "-o", tmp_path / "junit.xml")
    assert code == 1 and "The check fails" in out
    root = XML.parse(tmp_path / "junit.xml").getroot()
    assert sum(int(suite.attrib["failures"]) for suite in root) == 1
    code, _, err = call("check", runs, "-o", tmp_path / "no" / "where")
    assert code == 2 and "cannot write" in err


def test_one_broken_trace_does_not_hide_the_others(call: Any, runs: Path) -> None:
    """It is one line on standard error, and the exit status is 2."""
    (runs / "broken").mkdir()
    (runs / "broken" / "trace.dig.jsonl").write_text("{}\n")
    code, out, err = call("check", runs)
    assert (code, err.count("\n")) == (2, 1)
    assert "trace.dig.jsonl: is in no known format" in err
    assert "1 run failed (1 unhealed error), 1 run could not be read." in out
    code, out, _ = call("check", runs, "--format", "github")
    assert code == 2 and "title=The trace cannot be read::" in out
    known = runs.parent / "known.json"
    assert call("check", runs, "--write-baseline", known)[0] == 2
    assert not known.exists()


def test_check_changes_no_file_that_it_reads(call: Any, tmp_path: Path) -> None:
    """A torn tail is reported at every check; `verify` sets it aside."""
    path = write(tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    before = files(tmp_path)
    for _ in range(2):
        code, out, err = call("check", tmp_path)
        assert (code, err) == (1, "")
        assert "bytes of a torn last record (`digmon verify` sets them aside)" in out
    assert files(tmp_path) == before
    call("verify", tmp_path)
    assert "torn" not in call("check", tmp_path)[1]


def test_a_run_that_is_still_written_passes_as_far_as_it_is(call: Any, tmp_path: Path) -> None:
    """Its journal is locked by the process that writes it; half a line is not read yet."""
    journal = Journal(tmp_path / TRACE)
    for record in story()[:4]:
        journal(record)
    with (tmp_path / TRACE).open("ab") as file:
        file.write(b'{"t": 4, "ts"')
    code, out, err = call("check", tmp_path)
    journal.close()
    assert (code, err) == (0, "")
    assert "0 findings in 4 records" in out and "the run is going on" in out
    assert "torn" not in out


def test_a_run_that_was_cut_off_fails_by_default(call: Any, tmp_path: Path) -> None:
    """In each format that a CI server reads."""
    write(tmp_path, story()[:4])
    for form, what in {
        "text": "The check fails: the run was cut off.",
        "github": "title=The run was cut off::",
        "junit": '<failure type="cut off"',
    }.items():
        code, out, _ = call("check", tmp_path, "--format", form)
        assert code == 1 and what in out


@pytest.mark.parametrize("format", ["text", "json", "github", "junit"])
def test_a_cut_end_can_be_allowed(format: str, call: Any, tmp_path: Path) -> None:
    """It stays apart from the findings, and the report still says so."""
    write(tmp_path, story()[:4])
    status, out, err = call("check", tmp_path, "--allow-cut", "--format", format)
    assert status == 0
    assert "cut off" in out + err or format == "github"
    assert "::error" not in out


def test_a_run_that_was_cut_off_is_in_the_sum_of_several(call: Any, runs: Path) -> None:
    """It may fail the check without a finding."""
    (runs / "torn").mkdir()
    write(runs / "torn", story()[:4])
    last = call("check", runs)[1].splitlines()[-1]
    assert last == "The check fails: 2 runs passed, 2 runs failed (1 unhealed error, 1 cut off)."
    last = call("check", runs / "torn", "--format", "github")[1].splitlines()[-1]
    assert last == "The check fails: 0 runs passed, 1 run failed (1 cut off)."


def unanswered(*rows: Row) -> list[Row]:
    """A session of two requests that ends with one answer."""
    return trace(
        arrive(0, "p", None, "a"), arrive(0, "q", None, "b"), turn(1, "v", "a", "f", p="consume"),
        final(1, "f", "v"), deliver(1, "f", None), *rows, row(2, "finish", outcome="stopped"),
        session=True,
    )  # fmt: skip


def test_a_session_that_leaves_a_request_without_an_answer_fails(call: Any, tmp_path: Path) -> None:
    """As its screen says; while a person is waited for, it is open."""
    run = directory(tmp_path, "run", unanswered())
    code, out, _ = call("check", run)
    assert (code, out.splitlines()[0]) == (1, "1 of 2 answered after 2.0 s.")
    assert out.splitlines()[-1] == "The check fails: 1 request left without an answer."
    assert call("check", run, "--allow-cut")[0] == 0
    assert "title=1 request left without an answer::" in call("check", run, "--format", "github")[1]
    junit = call("check", run, "--format", "junit")[1]
    assert '<failure type="unanswered" message="1 request left' in junit
    waits = row(1, "incident", what="waits", detail={"activation": "w"})
    waiting = directory(tmp_path, "waiting", unanswered(start(1, "w", "b", "q"), waits))
    assert call("check", waiting)[0] == 0
    totals = call("check", run, waiting)[1].splitlines()[-1]
    assert totals == "The check fails: 1 run passed, 1 run failed (1 request unanswered)."


def test_a_baseline_says_that_it_does_not_know_cut_off_runs(call: Any, tmp_path: Path) -> None:
    """The next check fails in spite of the file, so the command that writes it says so."""
    (tmp_path / "torn").mkdir()
    write(tmp_path / "torn", story()[:4])
    code, _, err = call("check", tmp_path / "torn", "--write-baseline", tmp_path / "known.json")
    assert code == 0
    assert "torn: the run was cut off; no baseline makes that known" in err


def test_check_and_show_name_a_finding_by_the_same_record(call: Any, runs: Path) -> None:
    """Of a recorded finding, too."""
    (line,) = call("check", runs / "early", "--json")[1].splitlines()
    t = json.loads(line)["t"]
    (shown,) = json.loads(call("show", runs / "early", "--json")[1])["raised"]
    assert shown["record"] == t
    found = json.loads(call("show", runs / "early", t, "--json")[1])
    assert (found["what"], found["pattern"], found["record"]) == ("finding", "ET", t)


def test_a_run_with_nothing_but_notices_passes(call: Any, tmp_path: Path) -> None:
    """They stand in the text, and fail the check only if that is asked for."""
    path = directory(tmp_path, "r", repeated())
    code, out, _ = call("check", path)
    assert code == 0 and "1 notice:\n    notice RSP at 1.0 s" in out
    assert call("check", path, "--fail-on", "notice")[0] == 1


# --- failed requests ---

FAILED, PARTIAL = f"Failed: {failing.FAILED}.", f"Incomplete answer: {failing.PARTIAL}."


def tried_again(*, is_failed: bool = False) -> list[Any]:
    """A turn fails, perhaps with its request, and the agent does the work in its next turn."""
    work = failing.ended(2, "w", "f", "p")
    incident = failing.request_failed(1, "error", "p", "v", failing.ERROR)
    return trace(
        failing.sent(0, "p", None, "a", "problem"),
        start(0, "v", "a", "p"),
        failing.ended(1, "v", error=failing.ERROR),
        incident if is_failed else [],
        [start(2, "w", "a", "p"), work, final(2, "f", "w"), deliver(2, "f", None)],
        row(2, "finish", outcome="stopped"),
        session=True,
        patterns=2,
    )


@pytest.mark.parametrize(
    ("rows", "options", "code", "first"),
    [
        (failing.failed(), [], 1, FAILED),
        (failing.failed(), ["--ignore", "FAIL"], 0, FAILED),
        (failing.failed(session=True), [], 1, FAILED),
        (tried_again(is_failed=True), [], 0, "Answered after 2.0 s. On the way `a` failed"),
        (tried_again(is_failed=True), ["--fail-on", "error"], 1, "Answered after 2.0 s."),
        (failing.partial(), [], 0, PARTIAL),
        (failing.partial(), ["--fail-on", "error"], 0, PARTIAL),
        (failing.partial(), ["--fail-on", "warning"], 1, PARTIAL),
        (tried_again(), ["--fail-on", "warning"], 0, "Answered after 2.0 s. On the way `a` failed"),
    ],
)
def test_a_failed_request_fails_the_check_and_a_failed_turn_does_not(
    call: Any, tmp_path: Path, rows: list[Any], options: list[str], code: int, first: str
) -> None:
    """An answer that lacks work is a warning; the first of the five answers is the first line."""
    run = directory(tmp_path, "run", rows)
    status, out, err = call("check", run, *options)
    assert (status, err) == (code, "")
    assert out.startswith(first) and out.splitlines()[1].startswith(f"{run}: ")


def test_an_annotation_begins_with_the_headline(call: Any, tmp_path: Path) -> None:
    """Whatever names and errors hold, no further line is a command of GitHub's."""
    rows = json.loads(json.dumps(failing.failed("::error::x\n::stop")).replace("hotels", "::h"))
    out = call("check", directory(tmp_path, "run", rows), "--format", "github")[1]
    lines = out.splitlines()
    assert "::Failed: `::h` ended with an error: ::error::x ::stop, at 0.2 s" in lines[0]
    assert [line.startswith("::") for line in lines] == [True, False]
    text = call("check", tmp_path / "run")[1].splitlines()
    assert not [line for line in text if line.lstrip().startswith("::")]


def test_a_copy_of_a_session_is_judged_by_its_findings(call: Any, tmp_path: Path) -> None:
    """It goes on at the server, so it was not cut off; its JSON lines are its findings alone."""
    run = tmp_path / "news"
    run.mkdir()
    write(run, story()[:4])
    (run / "side.json").write_text('{"nats": {"session": "news", "sequence": 1, "bytes": 1}}')
    code, out, err = call("check", run)
    assert (code, err) == (0, "")
    assert "The session is still going: 4 records so far" in out
    (run / "side.json").unlink()
    code, out, err = call("check", run, "--json")
    assert (code, out) == (1, "")
    assert "the run was cut off" in err
