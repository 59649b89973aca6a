"""The command `digmon`: what it prints, and how it exits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import networkx as nx
import pytest

from dig import cli
from dig.graph.records import EDITION
from dig.tasks.run import run_fork as fork
from tests.traces.journals import LARGE, reseal, rows_of, story, write

NOBODY: dict[str, Any] = {}
RUN = {"t": 0, "ts": 0, "kind": "run", "version": 1, "run": "r", "agents": ["ada", "bob"]}
PROBLEM = {"t": 1, "ts": 0, "kind": "emit", "event": "p", "by": None, "to": ["ada", "bob"],
           "type": "problem", "final": False}  # fmt: skip
EARLY: list[dict[str, Any]] = [
    RUN,
    PROBLEM,
    {"t": 2, "ts": 0, "kind": "deliver", "event": "p", "to": "ada"},
    {"t": 3, "ts": 1, "kind": "start", "activation": "v", "agent": "ada", "inputs": ["p"]},
    {"t": 4, "ts": 2.5, "kind": "end", "activation": "v", "fates": [], "outputs": ["f"]},
    {"t": 5, "ts": 2.5, "kind": "emit", "event": "f", "by": "v", "to": [], "type": "solution",
     "final": True},
]  # fmt: skip


def digmon(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object
) -> tuple[int, str, str]:
    """Run the command in this process: exit status, standard output, standard error."""
    monkeypatch.setattr(sys, "argv", ["digmon", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    out, err = capsys.readouterr()
    code = end.value.code
    return int(code or 0), out, err


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command, to be called with its arguments."""
    return lambda *arguments: digmon(capsys, monkeypatch, *arguments)


def trace(folder: Path, rows: list[dict[str, Any]]) -> Path:
    path = folder / "t.dig.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


# --- help ---


@pytest.mark.parametrize(
    ("command", "table"),
    [
        ("export", "dig.traces.interchange.exports:FORMATS"),
        ("import", "dig.traces.interchange.imports:FORMATS"),
        ("bench attribute", "dig.lab.benchmark.attributing:ATTRIBUTORS"),
        ("run", "dig.tasks.catalogue:TASKS"),
        ("runs", "dig.show.runs.listing:SORTS"),
    ],
)
def test_help_names_all_that_a_table_has(
    call: Any, monkeypatch: pytest.MonkeyPatch, command: str, table: str
) -> None:
    """A row that is added to the table stands in the help, and no placeholder is left."""
    module, _, name = table.partition(":")
    monkeypatch.setattr(f"{module}.{name}", {**resolve_name(table), "newrow": None})
    code, out, _ = call(*command.split(), "--help")
    assert code == 0 and "{" not in out.partition("\n\n")[2]
    assert [one for one in resolve_name(table) if one not in out] == []


# --- check ---


def test_check_prints_a_finding_as_the_documented_object(call: Any, tmp_path: Path) -> None:
    code, out, err = call("check", trace(tmp_path, EARLY), "--json")
    assert [json.loads(line) for line in out.splitlines()] == [
        {
            "pattern": "ET",
            "severity": "error",
            "stage": None,
            "t": 5,
            "ts": 2.5,
            "subject": {"event": "f"},
            "evidence": {"unresolved": ["p"], "uncovered": []},
        }
    ]
    assert (code, err) == (1, "")


def test_check_says_in_words_what_it_found(call: Any, tmp_path: Path) -> None:
    code, out, _ = call("check", trace(tmp_path, EARLY))
    assert code == 1
    assert "ET" in out
    assert "1 finding in 6 records" in out


def test_check_of_a_sound_trace_exits_with_0(call: Any, tmp_path: Path) -> None:
    assert call("check", trace(tmp_path, EARLY[:3]), "--json") == (0, "", "")


def change(at: int, **keys: Any) -> list[dict[str, Any]]:
    rows = [dict(row) for row in EARLY]
    rows[at].update(keys)
    return rows


BROKEN = {
    "wrong order": (change(3, t=9), 4, "record 3 comes next"),
    "unknown agent": (change(3, agent="eve"), 4, "'eve' is not present"),
    "second delivery": ([*EARLY[:3], {**EARLY[2], "t": 3}], 4, "not on its way"),
    "time that falls": (change(4, ts=0.5), 5, "`ts` falls"),
    "missing key": ([{k: v for k, v in RUN.items() if k != "agents"}], 1, "`agents` is missing"),
}
UNREADABLE = {
    "bad JSON": (b'{"t": 0,', "not JSON"),
    "NaN": (json.dumps(RUN).replace('"ts": 0', '"ts": NaN').encode(), "NaN"),
    "deep nesting": (b'{"t":' + b"[" * 200_000, "nested too deeply"),
    "not UTF-8": (b'{"t": "\xff"}', "not UTF-8"),
    "nothing": (b"", "is empty"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("command", ["check", "graph"])
def test_a_broken_trace_is_refused_with_its_line(
    call: Any, tmp_path: Path, name: str, command: str
) -> None:
    """One line on standard error, nothing on standard output, exit status 2."""
    rows, line, reason = BROKEN[name]
    code, out, err = call(command, trace(tmp_path, rows), "--json")
    assert (code, out) == (2, "")
    assert f"t.dig.jsonl:{line}: " in err
    assert reason in err
    assert err.count("\n") == 1


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_file_that_is_no_trace_is_refused_in_one_line(
    call: Any, tmp_path: Path, name: str
) -> None:
    content, reason = UNREADABLE[name]
    path = tmp_path / "t.dig.jsonl"
    path.write_bytes(content)
    code, out, err = call("check", path)
    assert (code, out) == (2, "")
    assert reason in err
    assert err.count("\n") == 1


def test_a_file_that_is_not_there_is_a_clear_error(call: Any, tmp_path: Path) -> None:
    code, out, err = call("check", tmp_path / "nothing")
    assert (code, out) == (2, "")
    assert "No such file" in err


# --- graph ---


def test_graph_prints_node_link_data_that_networkx_reads(call: Any, tmp_path: Path) -> None:
    code, out, _ = call("graph", trace(tmp_path, EARLY), "--json")
    graph = nx.node_link_graph(json.loads(out), edges="edges")
    assert code == 0
    assert set(graph.edges) == {("p", "v"), ("v", "f")}
    assert graph.edges["p", "v"] == {"kind": "delivery", "fate": "delay", "t": 4}


def test_graph_shows_the_graph_as_it_stood(call: Any, tmp_path: Path) -> None:
    _, out, _ = call("graph", trace(tmp_path, EARLY), "--json", "--at", 3)
    data = json.loads(out)
    assert [node["id"] for node in data["nodes"]] == ["p", "v"]
    assert data["edges"] == [{"kind": "delivery", "t": 3, "source": "p", "target": "v"}]


def test_graph_refuses_a_time_that_the_trace_does_not_have(call: Any, tmp_path: Path) -> None:
    code, out, err = call("graph", trace(tmp_path, EARLY), "--at", 6)
    assert (code, out) == (2, "")
    assert "there is no record 6; the last one is 5" in err


# --- run ---


def test_the_same_seed_gives_the_same_bytes_in_virtual_time(call: Any, tmp_path: Path) -> None:
    for _ in range(2):
        call("run", "count-frequency", "--virtual", "--seed", 3, "--runs", tmp_path, "--json")
    first, second = (path.read_bytes() for path in tmp_path.glob("*/trace.dig.jsonl"))
    assert first == second


def test_check_finds_in_a_trace_what_was_found_in_the_run(call: Any, tmp_path: Path) -> None:
    arguments = ("--speed", 1000, "--method", "mas", "--size", 4000, "--seed", 4)
    _, out, _ = call("run", "count-frequency", *arguments, "--runs", tmp_path, "--json")
    result = json.loads(out)
    _, out, _ = call("check", result["directory"], "--json")
    assert [json.loads(line) for line in out.splitlines()] == result["findings"]


def test_a_run_leaves_a_trace_a_result_a_side_file_and_a_report_for_its_owner_only(
    call: Any, tmp_path: Path
) -> None:
    call("run", "count-frequency", "--virtual", "--size", 2000, "--runs", tmp_path)
    (directory,) = tmp_path.iterdir()
    assert {path.name for path in directory.iterdir()} == {
        "trace.dig.jsonl",
        "report.html",
        "result.json",
        "side.json",
    }
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in directory.iterdir())


def test_a_run_without_an_answer_exits_with_1(call: Any, tmp_path: Path) -> None:
    arguments = ("--virtual", "--limit", 1, "--runs", tmp_path, "--json")
    code, out, _ = call("run", "count-frequency", *arguments)
    assert code == 1
    assert json.loads(out)["outcome"] == "timeout"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("count-frequency", "--size", "0"), "Invalid value for '--size'"),
        (("count-frequency", "--size", "-5"), "Invalid value for '--size'"),
        (("count-frequency", "--agents", "0"), "Invalid value for '--agents'"),
        (("count-frequency", "--seed", "x"), "Invalid value for '--seed'"),
        (("count-frequency", "--method", "magic"), "there is no method 'magic'; known are: mas"),
        (("count-frequency", "--fast"), "No such option"),
        (("count-frequency", "--speed", "0"), "--speed must be greater than 0"),
        (("count-frequency", "--limit", "0"), "greater than 0"),
        (("count-frequency", "--limit", "inf"), "got inf"),
        (("count-frequency", "--size", "9" * 20), "Invalid value for '--size'"),
        (("cook-dinner",), "there is no task 'cook-dinner'"),
        ((), "name the task, such as count-frequency, or a run to --resume"),
    ],
)
def test_a_wrong_call_ends_in_a_clear_sentence(
    call: Any, tmp_path: Path, arguments: tuple[str, ...], reason: str
) -> None:
    code, out, err = call("run", *arguments, *(("--runs", tmp_path) if arguments else ()))
    assert (code, out) == (2, "")
    assert reason in " ".join(err.split())
    assert "Traceback" not in err


def test_a_run_directory_that_cannot_be_made_is_a_clear_error(call: Any, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, out, err = call("run", "count-frequency", "--runs", tmp_path / "file", "--virtual")
    assert (code, out) == (2, "")
    assert err.startswith("digmon: cannot make ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_a_complete_trace_and_a_result(
    call: Any, tmp_path: Path, number: signal.Signals
) -> None:
    command = [sys.executable, "-m", "dig", "run", "count-frequency", "--runs", str(tmp_path)]
    process = subprocess.Popen([*command, "--quiet"], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not any(path.read_text().count("\n") > 3 for path in tmp_path.glob("*/trace*")):
        assert time.monotonic() < deadline, "the run did not begin"
        time.sleep(0.05)  # another process is waited for; nothing here can say when
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "stopped: it was interrupted" in out
    (directory,) = tmp_path.iterdir()
    last = json.loads((directory / "trace.dig.jsonl").read_text().splitlines()[-1])
    assert (last["kind"], last["outcome"]) == ("finish", "stopped")
    assert json.loads((directory / "result.json").read_text())["outcome"] == "stopped"
    assert call("check", directory, "--json")[0] in (0, 1)


# --- journals ---


@pytest.fixture
def run_directory(call: Any, tmp_path: Path) -> Path:
    """What a short run in virtual time left."""
    call("run", "count-frequency", "--virtual", "--size", 2000, "--runs", tmp_path / "runs")
    (directory,) = (tmp_path / "runs").iterdir()
    return directory


def spoil(directory: Path, at: int = 5000) -> None:
    path = directory / "trace.dig.jsonl"
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_verify_of_a_run_finds_nothing(call: Any, run_directory: Path) -> None:
    code, out, err = call("verify", run_directory)
    assert (code, err) == (0, "")
    assert "chain: whole" in out and "nothing is wrong" in out
    code, out, _ = call("verify", run_directory, "--json")
    report = json.loads(out)
    assert (code, report["problems"], report["outcome"]) == (0, [], "submitted")


def test_every_command_says_that_a_run_was_cut_off(call: Any, tmp_path: Path) -> None:
    """Nobody has its journal locked, so it is not going on."""
    run = write(tmp_path, story()[:4])
    for command in ("check", "show", "verify", "replay"):
        out = call(command, run)[1]
        assert "was cut off" in out
        assert "going on" not in out


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[1,2]\n",
        b"root:x:0:0:root:/root:/bin/sh\n",
        b"\x89PNG\r\n\x1a\n\0",
        b'{"a": 1}\n',
    ],
)
def test_verify_of_what_is_no_trace_is_wrong_input(
    call: Any, tmp_path: Path, content: bytes
) -> None:
    """It is not a trace with something wrong in it."""
    file = tmp_path / "file"
    file.write_bytes(content)
    code, out, err = call("verify", file)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "is empty" in err if not content else "is no trace" in err


def test_verify_of_a_file_that_is_not_there_says_so_plainly(call: Any, tmp_path: Path) -> None:
    code, _, err = call("verify", tmp_path / "nothing")
    assert (code, err) == (
        2,
        f"digmon: {tmp_path}/nothing: cannot be read: No such file or directory\n",
    )


def test_verify_tells_what_is_wrong_and_where(call: Any, run_directory: Path) -> None:
    spoil(run_directory)
    code, out, _ = call("verify", run_directory, "--json")
    assert code == 1
    (problem,) = json.loads(out)["problems"]
    assert problem["line"] > 1 and "checksum" in problem["what"]


def test_verify_tells_a_script_of_a_torn_tail(call: Any, tmp_path: Path) -> None:
    """Its exit status says that something is wrong, so its report says what."""
    path = write(tmp_path)
    path.write_bytes(path.read_bytes()[:-40])
    code, out, _ = call("verify", tmp_path, "--json")
    report = json.loads(out)
    (problem,) = report["problems"]
    assert (code, problem["line"], report["records"]) == (1, 8, 7)
    assert problem["what"].startswith(f"a torn last record; {report['torn_bytes']} bytes")
    code, out, _ = call("verify", tmp_path, "--json")
    assert (code, json.loads(out)["problems"]) == (0, [])


@pytest.mark.parametrize(
    "command",
    [
        ("show",),
        ("show", "e1"),
        ("export", "--format", "otlp-json"),
    ],
)
def test_what_shows_no_payload_needs_none(
    call: Any, tmp_path: Path, command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large ones lie beside the trace, and may be gone."""
    write(tmp_path, story(LARGE))
    (blob,) = (tmp_path / "blobs").iterdir()
    blob.unlink()
    name, *more = command
    code, out, err = call(name, tmp_path, *more)
    assert (code, err) == (0, "")
    assert out
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    assert call(name, tmp_path, *more)[0] == (2 if name == "export" else 0)


@pytest.mark.parametrize("command", ["check", "graph"])
def test_damage_is_refused_until_it_is_salvaged(
    call: Any, run_directory: Path, command: str
) -> None:
    spoil(run_directory)
    code, out, err = call(command, run_directory)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "`digmon verify --salvage` keeps" in err
    code, _, err = call("verify", run_directory, "--salvage")
    assert code == 1
    assert "was set aside in trace.dig.jsonl.torn" in err
    assert call(command, run_directory)[2] == ""


@pytest.mark.parametrize("command", ["graph", "verify"])
def test_a_torn_tail_is_set_aside_and_reported_once(
    call: Any, run_directory: Path, command: str
) -> None:
    path = run_directory / "trace.dig.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    code, _, err = call(command, run_directory)
    assert code == (1 if command == "verify" else code)
    assert "a torn last record" in err
    assert (run_directory / "trace.dig.jsonl.torn").exists()
    assert call(command, run_directory)[2] == ""


@pytest.mark.parametrize("level", ["effects", "power"])
def test_a_run_at_another_level_of_durability_leaves_the_same_trace(
    call: Any, tmp_path: Path, run_directory: Path, level: str
) -> None:
    arguments = ("--virtual", "--size", 2000, "--durability", level, "--runs", tmp_path / level)
    assert call("run", "count-frequency", *arguments)[0] == 0
    (other,) = (tmp_path / level).iterdir()
    trace = (other / "trace.dig.jsonl").read_bytes()
    assert trace == (run_directory / "trace.dig.jsonl").read_bytes()
    assert json.loads((other / "side.json").read_text())["durability"] == level


def test_replay_finds_what_was_found_and_runs_again(call: Any, run_directory: Path) -> None:
    code, out, err = call("replay", run_directory, "--json")
    assert (code, err, json.loads(out)["is_same"]) == (0, "", True)
    code, out, _ = call("replay", run_directory, "--rerun")
    assert code == 0
    assert "came out again, byte for byte" in out
    code, out, _ = call("replay", run_directory, "--at", 5, "--json")
    assert (code, json.loads(out)["records"]) == (0, 6)


def test_a_rerun_that_differs_says_where_and_how(call: Any, run_directory: Path) -> None:
    path = run_directory / "trace.dig.jsonl"
    rows = rows_of(path)
    at = next(t for t, row in enumerate(rows) if row["kind"] == "deliver" and t > 9)
    rows[at]["to"] = "nobody"
    reseal(path, rows)
    code, out, err = call("replay", run_directory, "--rerun", "--json")
    body = json.loads(out)
    assert (code, err, body["record"]) == (1, "", at)
    assert json.loads(body["expected"])["to"] == "nobody"
    assert json.loads(body["got"])["to"].startswith("agent-")
    code, out, _ = call("replay", run_directory, "--rerun")
    assert code == 1
    assert out.splitlines()[0] == f"record {at} differs"


def test_a_trace_that_does_not_say_how_it_was_made_is_not_run_again(
    call: Any, tmp_path: Path
) -> None:
    path = trace(tmp_path, [{**RUN, "patterns": EDITION}, *EARLY[1:]])
    code, out, err = call("replay", path, "--rerun")
    assert (code, out) == (2, "")
    assert "does not say what the run was made with" in err
    assert call("replay", path)[0] == 0


def test_a_fork_is_the_same_up_to_its_record_and_says_where_it_comes_from(
    call: Any, tmp_path: Path, run_directory: Path
) -> None:
    parent = (run_directory / "trace.dig.jsonl").read_bytes()
    at = next(t for t, row in enumerate(rows_of(run_directory / "trace.dig.jsonl"))
              if row["kind"] == "end")  # fmt: skip
    edit = tmp_path / "edit.json"
    edit.write_text('{"error": "it fell asleep"}')
    for change in ([], ["--edit", '{"error": "it fell asleep"}'], ["--edit", edit]):
        arguments = ("--at", at, "--runs", tmp_path / "forks", "--json", *change)
        code, out, err = call("fork", run_directory, *arguments)
        assert (code, err) == (0, "")
        fork = Path(json.loads(out)["directory"])
        trace = (fork / "trace.dig.jsonl").read_bytes()
        assert trace.splitlines()[:at] == parent.splitlines()[:at]
        assert (trace == parent) is not bool(change)
        origin = json.loads((fork / "side.json").read_text())["forked_from"]
        assert (origin["execution"], origin["at"]) == (run_directory.name, at)
        assert call("replay", fork, "--rerun")[0] == 0
    assert (run_directory / "trace.dig.jsonl").read_bytes() == parent


def test_the_records_of_a_run_are_listed_with_what_can_be_changed_there(
    call: Any, run_directory: Path
) -> None:
    """Every record, by its number; an edit of each that is listed is accepted."""
    code, out, err = call("fork", run_directory, "--list")
    kinds = [row["kind"] for row in rows_of(run_directory / "trace.dig.jsonl")]
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == [str(t) for t in range(len(kinds))]
    assert [line.split()[2] for line in out.splitlines()] == kinds
    rows = json.loads(call("fork", run_directory, "--list", "--json")[1])
    by_kind = {row["kind"]: row for row in rows}
    assert by_kind["end"]["edit"] == ["error", "fates", "outputs"]
    assert (by_kind["start"]["changes"], by_kind["deliver"]["edit"]) == (["again"], [])
    assert rows[1]["changes"] == ["resend", "omit"]
    code, _, err = call("fork", run_directory)
    assert (code, "say where it goes on: --at N; --list shows" in err) == (2, True)


def test_an_edit_at_a_record_that_has_no_such_key_names_near_ones(
    call: Any, tmp_path: Path, run_directory: Path
) -> None:
    kinds = [row["kind"] for row in rows_of(run_directory / "trace.dig.jsonl")]
    at = kinds.index("start")
    _, _, err = call("fork", run_directory, "--at", at, "--edit", '{"fates": []}')
    ends = [f"{t} (`end`)" for t, kind in enumerate(kinds) if kind == "end"]
    assert f"near it that can be changed in {', '.join(ends[:2])}" in err


def test_a_repeat_is_another_run_with_the_same_beginning(
    call: Any, tmp_path: Path, run_directory: Path
) -> None:
    traces = set()
    for number in (0, 1, 1, 2):
        more = ("--repeat", number, "--runs", tmp_path / "forks", "--json")
        _, out, err = call("fork", run_directory, "--at", 20, *more)
        assert err == ""
        traces.add((Path(json.loads(out)["directory"]) / "trace.dig.jsonl").read_bytes())
    assert (run_directory / "trace.dig.jsonl").read_bytes() in traces
    assert len(traces) == 3


@pytest.mark.parametrize("command", ["fork", "replay"])
def test_a_damaged_journal_ends_in_one_line(call: Any, run_directory: Path, command: str) -> None:
    path = run_directory / "trace.dig.jsonl"
    path.write_bytes(path.read_bytes().replace(b"agent-2", b"agent-3", 1))
    code, out, err = call(command, run_directory, "--at", 30)
    assert (code, out, err.count("\n")) == (2, "", 1)


TEAM = """
class Quick:
    stateless = True

    async def act(self, view):
        from dig.runtime import Decision
        return Decision.submit(view, "done by another team")


def crew():
    return {f"agent-{i}": Quick() for i in range(1, 7)}
"""


def test_another_team_may_go_on(
    call: Any, tmp_path: Path, run_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "another_team.py").write_text(TEAM)
    monkeypatch.chdir(tmp_path)
    arguments = ("--at", 1, "--team", "another_team:crew", "--runs", tmp_path / "forks", "--json")
    code, out, err = call("fork", run_directory, *arguments)
    assert (code, err) == (0, "")
    assert json.loads(out)["answer"] == "done by another team"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--at", 100_000), "there is no record 100000"),
        (("--at", 1, "--edit", "nothing.json"), "neither JSON nor a file of it"),
        (("--at", 1, "--edit", "{"), "is not JSON"),
        (("--at", 1, "--edit", '{"by": 1}'), "not `by`"),
        (("--at", 1, "--team", "nobody"), "a team is named like"),
        (("--at", 1, "--team", "no_such_module:team"), "there is no team"),
        (("--at", 1, "--team", "json:dumps"), ""),
    ],
)
def test_a_fork_that_cannot_be_leaves_nothing_behind(
    call: Any, tmp_path: Path, run_directory: Path, arguments: tuple[object, ...], reason: str
) -> None:
    code, out, err = call("fork", run_directory, *arguments, "--runs", tmp_path / "forks")
    assert (code, out) == (2, "")
    assert reason in err and "Traceback" not in err
    assert not (tmp_path / "forks").exists() or not list((tmp_path / "forks").iterdir())


def test_a_fork_makes_the_changes_that_try_makes(
    call: Any, tmp_path: Path, run_directory: Path
) -> None:
    """It begins at the first change, and its side file names all of them."""
    rows = rows_of(run_directory / "trace.dig.jsonl")
    start = next(row for row in rows[20:] if row["kind"] == "start")
    changes = ("--again", start["activation"], "--resend", "e1")
    arguments = (*changes, "--at", start["t"], "--runs", tmp_path / "forks", "--json")
    code, out, err = call("fork", run_directory, *arguments)
    assert (code in (0, 1), err) == (True, "")
    side = json.loads((Path(json.loads(out)["directory"]) / "side.json").read_text())
    assert side["forked_from"]["at"] == start["t"]
    assert [row["kind"] for row in side["forked_from"]["changes"]] == ["again", "resend"]
    code, _, err = call("fork", run_directory, "--tell", "agent-1", "--at", 20)
    assert (code, "--tell A=TEXT needs two parts" in err) == (2, True)


def test_a_trace_that_is_no_run_of_simulated_agents_needs_a_team(call: Any, tmp_path: Path) -> None:
    code, _, err = call("fork", write(tmp_path), "--at", 2)
    assert (code, err.count("\n")) == (2, 1)
    assert "is no side.json; say who goes on (--team)" in err


@pytest.mark.parametrize("more", [(), ("--team", "tests.cli.test_cli:NOBODY")])
def test_only_a_journal_can_be_forked(call: Any, tmp_path: Path, more: tuple[str, ...]) -> None:
    """Whoever would go on, and whatever lies beside it."""
    code, _, err = call("fork", trace(tmp_path, EARLY), "--at", 2, *more)
    assert (code, err.count("\n")) == (2, 1)
    assert "is a plain trace; only a journal can be forked" in err


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_a_fork_that_is_broken_off_before_it_begins_leaves_nothing_behind(
    run_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """Whyever: Ctrl-C, or an error of somebody's own detector."""

    def rewind(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(fork, "rewind", rewind)
    with pytest.raises(error):
        fork.fork(run_directory, 5, tmp_path / "forks")
    assert not list((tmp_path / "forks").iterdir())


OWN = """
from dig import Detector

class Silent(Detector):
    pattern = "SILENT"

    def detect(self, graph, record):
        return ()
"""


def test_a_run_with_a_detector_of_a_users_own_is_driven_again_if_it_is_named(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a file names is not imported by itself."""
    (tmp_path / "own_detector.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    named = ("--detector", "own_detector:Silent")
    call("run", "count-frequency", "--virtual", "--size", 2000, *named)
    (directory,) = (tmp_path / "runs").iterdir()
    for command in (("replay", directory, "--rerun"), ("fork", directory, "--at", 5)):
        code, _, err = call(*command)
        assert (code, "to be named here too: own_detector:Silent" in err) == (2, True)
        assert call(*command, *named)[0] == 0


def test_a_torn_tail_that_cannot_be_set_aside_is_told_and_not_in_the_way(
    call: Any, run_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = run_directory / "trace.dig.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    real = os.open

    def open_(name: Any, flags: int, *more: Any, **keys: Any) -> int:
        if str(name).endswith(".torn"):
            raise PermissionError(13, "Permission denied")
        return real(name, flags, *more, **keys)

    monkeypatch.setattr(os, "open", open_)
    code, _, err = call("graph", run_directory, "--json")
    assert code == 0 and "cannot make" in err
    assert not list(run_directory.glob("*.torn"))
