"""`digmon run --model`: a team that a language model decides for, from the command line."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dig.cli import app
from dig.traces.journal.reader import TRACE
from tests.llm.llama import Llama
from tests.llm.server import Answer, Server, fails, serving
from tests.llm.solver import solve

LOCAL = ("--model", "m", "--base-url", "http://127.0.0.1:9/v1")
SECRET = "sk-hush-0123456789"


def run(folder: Path, *arguments: str) -> Result:
    fixed = ["run", "count-frequency", "--size", "60", "--runs", str(folder / "runs"), "--json"]
    return CliRunner().invoke(app, [*fixed, *arguments], env={"MY_KEY": SECRET})


def test_a_model_solves_the_task_and_what_it_was_asked_is_kept(tmp_path: Path) -> None:
    """The answer is scored, and the side file has every exchange, but not the key."""
    with serving(solve) as server:
        done = run(tmp_path, "--model", "m", "--base-url", server.url, "--api-key-env", "MY_KEY")
        assert set(server.keys) == {f"Bearer {SECRET}"}
    told = json.loads(done.stdout)
    assert done.exit_code == 0 and told["score"]["rmse"] == 0
    folder = Path(told["directory"])
    path = folder / "exchanges.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    exchanges = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(exchanges) == len(server.requests)
    assert exchanges[0]["who"] == "agent-1" and exchanges[0]["status"] == 200
    assert exchanges[0]["messages"] == server.requests[0]["messages"]
    assert not any(SECRET in file.read_text() for file in folder.iterdir())
    side = json.loads((folder / "side.json").read_text())
    assert side["agents_are"] == "model m" and side["options"]["base_url"] == server.url


def test_a_run_of_a_model_goes_on_after_a_crash(tmp_path: Path) -> None:
    """With the model that the user names again; what it is asked is kept in the same file."""
    with serving(solve) as server:
        model = ("--model", "m", "--base-url", server.url)
        folder = Path(json.loads(run(tmp_path, *model).stdout)["directory"])
        asked = len(server.requests)
        rows = (folder / TRACE).read_bytes().splitlines(keepends=True)
        ends = [t for t, row in enumerate(rows) if json.loads(row)["kind"] == "end"]
        (folder / TRACE).write_bytes(b"".join(rows[: ends[2]]))
        (folder / "result.json").unlink()
        again = CliRunner().invoke(app, ["run", "--resume", str(folder), "--json", *model])
        more = len(server.requests) - asked
    assert again.exit_code == 0, again.output
    assert json.loads(again.stdout)["score"]["rmse"] == 0
    assert 0 < more < asked
    assert len((folder / "exchanges.jsonl").read_text().splitlines()) == asked + more
    replayed = CliRunner().invoke(app, ["replay", str(folder), "--rerun"])
    assert replayed.exit_code == 0, replayed.output


def test_a_key_that_the_server_echoes_is_not_written_down(tmp_path: Path) -> None:
    """Neither into the trace nor beside it, nor onto the terminal; the run says what is wrong."""
    why = f"wrong key {SECRET}, and header authorization: {SECRET}"
    with serving([fails(401, why)]) as server:
        done = run(tmp_path, "--model", "m", "--base-url", server.url, "--api-key-env", "MY_KEY")
    told = json.loads(done.stdout)
    assert done.exit_code == 1 and told["outcome"] == "error"
    assert told["reason"].startswith("the key in MY_KEY is not accepted")
    assert SECRET not in done.output
    again = CliRunner().invoke(app, ["replay", told["directory"], "--rerun"])
    assert again.exit_code == 0 and "came out again" in again.output
    assert not any(SECRET in file.read_text() for file in Path(told["directory"]).iterdir())


def test_a_budget_stops_the_run_and_keeps_what_there_is(tmp_path: Path) -> None:
    """Exit status 1, a reason, a complete trace."""
    with serving(solve) as server:
        done = run(tmp_path, "--model", "m", "--base-url", server.url, "--max-tokens", "300")
    told = json.loads(done.stdout)
    assert done.exit_code == 1 and "budget of 300 tokens is used up" in told["reason"]
    trace = (Path(told["directory"]) / "trace.dig.jsonl").read_text().splitlines()
    assert json.loads(trace[-1])["kind"] == "finish"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--model", "m", "--virtual"], "takes real time to decide; leave --virtual out"),
        (["--model", "m", "--speed", "2"], "at its own speed, so --speed must be at most 1, got 2"),
        (["--max-tokens", "5"], "--max-tokens is about a language model; name it with --model"),
        (["--model", "m", "--api-key-env", "NONE"], "set the environment variable NONE"),
        (["--model", "m", "--base-url", "here"], "'here' is no address of a server"),
        (["--model", "m", "--max-usd", "1"], "needs both prices"),
        (
            [*LOCAL, "--activation-timeout", "20"],
            "an activation (--activation-timeout) may take 20 s, which is less than one request",
        ),
        (
            [*LOCAL, "--request-timeout", "300"],
            "the run (--limit) may take 120 s, which is less than one request may take, 300 s",
        ),
        (
            [*LOCAL, "--request-timeout", "50", "--limit", "4", "--speed", "0.1"],
            "the run (--limit) may take 40 s",
        ),
        (["--request-timeout", "5"], "--request-timeout is about a language model"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_anything_is_made(
    arguments: list[str], why: str, tmp_path: Path
) -> None:
    """One line says what is wrong and what to do."""
    from_error: Any = run(tmp_path, *arguments).exception
    assert why in str(from_error)
    assert not (tmp_path / "runs").exists()


def test_the_address_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As other programs that use the same client have it."""
    with serving(solve) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        assert run(tmp_path, "--model", "m").exit_code == 0


def in_words(folder: Path, server: Server, *more: str) -> Result:
    """A run whose result is printed for a person."""
    fixed = ["run", "count-frequency", "--size", "60", "--agents", "2", "--runs", str(folder)]
    model = ["--model", "m", "--base-url", server.url]
    return CliRunner().invoke(app, [*fixed, *model, *more], env={"OPENAI_API_KEY": SECRET})


@pytest.mark.parametrize("view", [[], ["--quiet"], ["--json"]])
def test_a_request_that_fails_is_told_at_once_with_the_servers_words(
    tmp_path: Path, view: list[str]
) -> None:
    """Its agent, status and message, on one line of at most 500 characters; no key; once."""
    long = f"context too long for {SECRET},\n{'x' * 600}"
    with serving([fails(400, long)]) as server:
        done = in_words(tmp_path, server, "--limit", "0.5", "--speed", "1", *view)
    told = [line for line in done.stderr.splitlines() if "a request of" in line]
    assert len(told) == 1
    said = told[0].partition("a request of ")[2]
    where = f"{server.url} says 400: context too long for ***, xxx"
    assert said.startswith(f"agent-1 failed, the activation fails: {where}")
    assert len(said.partition("says 400: ")[2]) == 500
    assert SECRET not in done.output


def test_the_summary_and_the_live_view_say_what_a_run_has_cost(tmp_path: Path) -> None:
    """Tokens sent and received, requests, and money if the prices are known."""
    with serving(solve) as server:
        done = in_words(tmp_path, server, "--price-in", "1", "--price-out", "10")
        calls = len(server.requests)
    verdict, *_, cost = [line for line in done.stdout.splitlines() if line.startswith("cost ")]
    tokens = f"{110 * calls:,} tokens ({100 * calls:,} sent, {10 * calls:,} received)"
    assert cost.split(None, 1)[1] == f"{tokens}, ${calls * 2e-4:.4f}, {calls} requests to a model"
    assert f" {tokens.split(',')[0]}" in " ".join(done.stdout[done.stdout.index(verdict) :].split())


def test_tokens_that_a_server_does_not_count_are_unknown(tmp_path: Path) -> None:
    """By the summary, and by the verdict that the page shows, too."""
    with serving(Llama(solve, counts=False)) as server:
        done = in_words(tmp_path, server, "--json-mode", "text")
        calls = len(server.requests)
    (folder,) = tmp_path.iterdir()
    shown = CliRunner().invoke(app, ["show", str(folder)])
    for text in (done.stdout, shown.stdout):
        assert f"{calls} requests to a model, tokens unknown" in " ".join(text.split())


def test_a_slow_clock_is_allowed(tmp_path: Path) -> None:
    """Its windows and limits are longer then, in real time."""
    with serving(solve) as server:
        done = run(tmp_path, "--model", "m", "--base-url", server.url, "--speed", "0.5")
    told = json.loads(done.stdout)
    assert done.exit_code == 0 and told["clock"] == "real time x 0.5"


@pytest.mark.parametrize("chosen", [True, False])
def test_a_json_mode_is_chosen_or_found_out_and_stands_in_the_summary(
    tmp_path: Path, chosen: bool
) -> None:
    """A server that refuses it is told of in a line, at once."""

    def script(request: dict[str, Any]) -> Answer:
        kind = request["response_format"]["type"]
        return (
            solve(request)
            if kind == "json_object"
            else fails(400, "no response_format json_schema")
        )

    with serving(script) as server:
        done = in_words(tmp_path, server, *(["--json-mode", "object"] if chosen else []))
        modes = [request["response_format"]["type"] for request in server.requests]
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("json mode ")]
    assert row.split(None, 2)[2] == "m: object"
    assert ("json_schema" not in modes) is chosen
    assert ("is asked for JSON objects" in done.stderr) is not chosen
    (result,) = tmp_path.glob("*/result.json")
    assert json.loads(result.read_text())["json_modes"] == {"m": "object"}
