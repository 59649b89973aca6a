"""What the README and examples/ show is what happens."""

from __future__ import annotations

import functools
import json
import re
import runpy
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import anyio
import pytest

from dig.detectors.thresholds import Thresholds
from dig.diagnosis.diagnosing import diagnose
from dig.diagnosis.trials.replays import Trying
from dig.lab.experiment.file import read_grid
from dig.lab.experiment.run import carry_out
from dig.tasks.run.arrange import make_run
from dig.tasks.run.execute import execute
from dig.tasks.task import Score
from dig.traces.verify import verify
from tests.cli.test_cli import digmon
from tests.llm.server import Answer, says, serving, writes
from tests.llm.solver import results_in

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"


def shown(page: Path, words: str) -> str:
    """The block of Python on a page with some words in it."""
    if not README.exists():
        pytest.skip("an installed package has no docs beside it")
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    block: str = next(block for block in blocks if words in block)
    return block


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_a_page_wraps_a_team_in_three_lines(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They run as they stand there, and leave a run."""
    monkeypatch.chdir(tmp_path)
    body = textwrap.indent(shown(ROOT / page, "dig.wrap("), "    ")
    space: dict[str, Any] = {}
    exec(f"async def main(team):\n{body}\n    return answer", space)

    async def planner(question: str) -> str:
        return f"{question} Lunch."

    assert anyio.run(space["main"], {"planner": planner}) == "What now? Lunch."
    assert len([*tmp_path.glob("runs/*/result.json")]) == 1


def test_the_agents_of_the_first_page_run_as_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(shown(ROOT / "docs" / "index.md", "async def ada"), "index.md", "exec"), {})
    assert capsys.readouterr().out.startswith("submitted 499500 (Finding(pattern='ET'")


def test_the_readme_prints_what_the_check_of_its_team_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """But for the name of the run, and the seconds."""
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / "start.py"), run_name="__main__")
    status, out, _ = digmon(capsys, monkeypatch, "check", "runs")
    assert status == 1
    text = re.search(r"    (runs/.*?)\n\n", README.read_text(), re.DOTALL)
    assert text is not None
    shown_text, out = (re.sub(r"[0-9.]+ s\b", "SECONDS", each) for each in (text[1], out))
    for line in shown_text.splitlines()[1:]:
        assert line.removeprefix("    ") in out


def test_hello_ends_with_the_whole_answer_after_one_early_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    example: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "hello.py"))
    assert example["main"]() == 499500
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "submitted: 499500"
    assert [line.split()[0] for line in lines[1:]] == ["ET"]


def test_the_monitor_alone_answers() -> None:
    example: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "monitor_only.py"))
    assert '"kind":"finish","outcome":"submitted"' in example["main"]()[-1]


def test_a_detector_of_ones_own_finds_the_same_live_in_virtual_time_and_in_the_records(
    capsys: pytest.CaptureFixture[str],
) -> None:
    example: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "silent_agent.py"))
    live, virtual, stored = example["main"]()
    assert live == [*stored]
    for found in (live, virtual):
        silent = [(one["pattern"], one["subject"]) for one in found]
        assert silent == [("SILENT", {"agent": "cyd"})] * 2
    assert "SILENT about agent cyd; activations: 4" in capsys.readouterr().out


def test_a_wrapped_shop_answers_early_and_in_circles_until_it_is_healed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    example: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "wrap_plain.py"))
    observed, healed = anyio.run(example["main"], str(tmp_path))
    assert observed == "it is on its way"
    assert healed == "it is on its way, it is paid back"
    out = capsys.readouterr().out
    found = [line.split()[1] for line in out.splitlines() if line.startswith("  found")]
    assert found == ["ET", "ER", "ET", "ER"]
    assert "healed: {'reroute': 1, 'inject': 1}" in out
    assert all(verify(run / "trace.dig.jsonl").problems == [] for run in tmp_path.iterdir())


def test_another_courier_is_asked_in_place_of_one_that_hangs(tmp_path: Path) -> None:
    """A team of plain callables answers, in real time, although the agent that it calls hangs."""
    example: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "wrap_hanging.py"))
    assert anyio.run(example["main"], "plain", str(tmp_path)) == "Bob has brought parcel 12"
    [run] = tmp_path.iterdir()
    assert verify(run / "trace.dig.jsonl").problems == []


def test_a_wrapped_team_that_failed_is_explained_by_running_it_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The carrier is named, and that to ask it again would have helped."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    example: dict[str, Any] = runpy.run_path(str(ROOT / "examples" / "wrap_served.py"))
    run = anyio.run(functools.partial(example["run"], str(tmp_path), carrier_is_up=False))
    found = diagnose(run, trying=Trying(entry="wrap_served:run"))
    assert found.answer is not None and found.answer.agent == "carrier"
    fix = found.hypothesis(found.fix)
    assert fix is not None and fix.interventions[0]["kind"] == "again"
    assert capsys.readouterr().out == "failed: no answer from the carrier in Ulm\n"


@pytest.mark.skipif(not README.exists(), reason="an installed package has no docs beside it")
def test_the_docs_show_the_detector_of_the_example() -> None:
    page = (ROOT / "docs" / "python.md").read_text()
    shown = re.findall(r"```python\n(class Silent.*?)```", page, re.DOTALL)[0]
    assert shown in (ROOT / "examples" / "silent_agent.py").read_text()


def test_a_task_of_ones_own_is_solved_by_a_team_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    run = make_run("own_task:Summing", Thresholds.load(), size=40)
    execution = execute(run, tmp_path, speed=1.0)
    assert execution.score == Score(True, 0.0)
    assert execution.result.findings == ()


@pytest.mark.skipif(not README.exists(), reason="an installed package has no docs beside it")
def test_the_experiment_of_the_page_about_tasks_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With one seed, from a copy of the example beside the file that the page shows."""
    page = (ROOT / "docs" / "lab" / "tasks.md").read_text()
    grid = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0]
    (tmp_path / "my.toml").write_text(grid.replace("seeds = 20", "seeds = 1"))
    (tmp_path / "own_task.py").write_text((ROOT / "examples" / "own_task.py").read_text())
    monkeypatch.chdir(tmp_path)
    command = "experiment my.toml --out mine --keep"
    assert f"    digmon {command}\n" in page
    called = [sys.executable, "-m", "dig", *command.split(), "--jobs", "1"]
    done = subprocess.run(called, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout.splitlines()[0]) == (0, "4 runs"), done.stderr
    assert len(list(Path("mine/traces").glob("*/trace.dig.jsonl"))) == 4


def keeps_the_books(request: dict[str, Any]) -> Answer:
    """A scripted model that does what the roles of the notes say, by the prompt alone."""
    _, situation, *talk = request["messages"]
    here = json.loads(situation["content"])
    events = here["events"]
    payloads = [json.loads(event["payload"]) for event in events]
    fates = [{"event": event["id"], "fate": "consume", "to": []} for event in events]
    assert here["your_role"] == here["roles"][here["you"]]
    if here["you"] == "reader":
        if not talk:
            return writes(*(("read", {"number": n}) for n in range(payloads[0]["notes"])))
        amounts = [int(text.split()[-2]) for text in results_in(talk)]
        made = {"to": ["editor"], "payload": json.dumps(amounts), "final": False}
    elif "question" in payloads[0]:
        made = {"to": ["reader"], "payload": json.dumps(payloads[0]), "final": False}
    else:
        made = {"to": [], "payload": json.dumps(sum(payloads[0])), "final": True}
    return says({"fates": fates, "outputs": [{"type": "message", **made}]})


def test_model_agents_with_roles_solve_a_task_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader reads all notes and the editor adds them up, each by its role in the prompt."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    with serving(keeps_the_books) as server:
        options = {"model": "m", "base_url": server.url}
        run = make_run(
            "notes:Notes", Thresholds.load(), size=5, agents_are="notes:team", options=options
        )
        execution = execute(run, tmp_path, speed=1.0)
    assert (execution.score, execution.result.findings) == (Score(True, 0.0), ())
    (prompt,) = {request["messages"][0]["content"] for request in server.requests}
    assert "The answer is a whole number of dollars" in prompt


@pytest.mark.skipif(not README.exists(), reason="an installed package has no docs beside it")
def test_the_page_about_tasks_shows_the_notes_and_their_experiment_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its code is that of the example; its grid is carried out against a scripted server."""
    page = (ROOT / "docs" / "lab" / "tasks.md").read_text()
    shown = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    example = (ROOT / "examples" / "notes.py").read_text()
    assert all(part in example for part in shown.split("\n\n\n"))
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    with serving(keeps_the_books) as server:
        text = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[1]
        (tmp_path / "my.toml").write_text(text.replace("http://localhost:8000/v1", server.url))
        outcome = carry_out(read_grid(tmp_path / "my.toml"), tmp_path / "out")
    assert outcome.failed == () and len(outcome.rows) == 10
    assert {(row.valid, row.rmse, row.agents) for row in outcome.rows} == {(True, 0.0, 2)}
    assert all(row.usage["input_tokens"] for row in outcome.rows)


@pytest.mark.skipif(not README.exists(), reason="an installed package has no docs beside it")
def test_the_python_of_the_page_about_tasks_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "lab" / "tasks.md").read_text()
    code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[-1]
    exec(compile(code, "tasks.md", "exec"), {})
    assert capsys.readouterr().out.startswith("newsgroups-60-3x-dig-s7-")
