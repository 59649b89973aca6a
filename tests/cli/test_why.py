"""`digmon why` and `try`: exit status, output, and what is refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dig.detectors.answers import ANSWERS
from dig.graph.records import Start
from dig.tasks.run.execute import execute
from dig.tasks.run.team_run import TeamRun
from dig.traces.journal.reader import TRACE, read_records
from tests import failing
from tests.diagnosis.failed_runs import failed
from tests.diagnosis.served_teams import failed as wrapped
from tests.show.page.pages import inlined
from tests.traces.runs import directory

ANSWERED = "dig.diagnosis.goal:has_answer"


@pytest.fixture(scope="module")
def silent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which agent-3 says nothing."""
    return failed(tmp_path_factory.mktemp("silent"))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that ends well."""
    return execute(TeamRun(agents=4, size=3000), tmp_path_factory.mktemp("good")).directory


def first_start(run: Path, agent: str) -> int:
    return next(r.t for r in read_records(run) if isinstance(r, Start) and r.agent == agent)


def test_why_explains_a_failed_run(call: Any, silent: Path) -> None:
    """The faults go on in the forks, the agent is named, and the status is 1."""
    status, out, err = call("why", silent, "--try", "--good", ANSWERED)
    assert status == 1
    lines, answers = out.splitlines()[:-5], out.splitlines()[-5:]
    assert "Cause: agent-3" in out and len(lines) <= 15
    assert [line.partition(":")[0] for line in answers] == [*ANSWERS.values()]
    assert "1/60" in err


def test_a_report_shows_the_cause_that_a_diagnosis_names(
    call: Any, silent: Path, tmp_path: Path
) -> None:
    """At the head of its cards; a file that is no diagnosis of this run is refused."""
    _, told, _ = call("why", silent, "--json")
    (tmp_path / "why.json").write_text(told)
    code, _, _ = call("report", silent, "--diagnosis", tmp_path / "why.json")
    head = inlined((silent / "report.html").read_text())["head"]
    answer = json.loads(told)["answer"]
    assert (code, head["cause"]["t"]) == (0, answer["t"])
    assert head["cause"]["says"].startswith(answer["agent"])
    assert len(head["cause"]["candidates"]) == len(json.loads(told)["candidates"])
    of_another = {**json.loads(told), "source": {**json.loads(told)["source"], "sha256": "0" * 64}}
    for text, why in (("{}", "no diagnosis"), (json.dumps(of_another), "of another trace")):
        (tmp_path / "why.json").write_text(text)
        code, _, err = call("report", silent, "--diagnosis", tmp_path / "why.json")
        assert (code, err.count("\n")) == (2, 1)
        assert "why.json: this is" in err and why in err and "--json` prints" in err


def test_a_report_shows_the_fork_with_the_change_that_helps(
    call: Any, silent: Path, tmp_path: Path
) -> None:
    """Below the run, along the same time; a figure has the changes that were tried."""
    _, told, _ = call("why", silent, "--try", "--json", "--good", ANSWERED)
    (tmp_path / "why.json").write_text(told)
    assert call("report", silent, "--diagnosis", tmp_path / "why.json")[0] == 0
    page = inlined((silent / "report.html").read_text())
    (fixed,) = (
        one for one in json.loads(told)["hypotheses"] if one["id"] == json.loads(told)["fix"]
    )
    assert page["twin"]["head"]["file"] == fixed["arms"]["changed"]["forks"][0]
    assert (page["head"]["is_fork"], page["twin"]["head"]["is_fork"]) == (False, True)
    tried = page["head"]["cause"]["tried"]
    assert [one["verdict"] for one in tried].count("validated") >= 1
    picture = tmp_path / "r.svg"
    assert call("draw", silent, "-o", picture, "--diagnosis", tmp_path / "why.json")[0] == 0
    assert "what was tried" in picture.read_text()


def test_why_without_try_says_what_could_be_tried(call: Any, silent: Path) -> None:
    """No replay is made; the suspects are told, and how to go on."""
    status, out, err = call("why", silent, "--good", ANSWERED, "--runs", "nowhere")
    assert status == 1
    assert f"digmon why {silent} --try" in out
    assert err == "" and not Path("nowhere").exists()


def test_a_good_run_is_status_0(call: Any, good: Path) -> None:
    """There is nothing to explain."""
    status, out, _ = call("why", good, "--try", "--good", ANSWERED)
    assert status == 0
    assert "nothing to explain" in out


def test_a_good_run_can_be_taken_as_failed(call: Any, good: Path) -> None:
    """`--good none` is a complaint."""
    status, out, _ = call("why", good, "--good", "none", "--json")
    assert status == 1
    assert [one["kind"] for one in json.loads(out)["failures"]] == ["complaint"]


def test_several_sources_are_a_line_each(
    call: Any, silent: Path, good: Path, tmp_path: Path
) -> None:
    """In the order given; one that cannot be read is told, has no line, and status 2."""
    broken = tmp_path / "broken.dig.jsonl"
    broken.write_bytes((silent / TRACE).read_bytes()[:300] + b"\n{}\n")
    status, out, err = call("why", good, broken, silent, "--json", "--good", ANSWERED)
    assert status == 2
    assert [json.loads(line)["source"]["name"] for line in out.splitlines()] == [
        good.name, silent.name,
    ]  # fmt: skip
    assert err.startswith("digmon: ") and "broken" in err


def test_try_has_the_status_of_its_verdict(call: Any, silent: Path) -> None:
    """0: validated; 1: not."""
    at = first_start(silent, "agent-3")
    given = ("try", silent, "--at", at, "--good", ANSWERED)
    status, out, _ = call(*given, "--seat", "agent-3=agent-1")
    assert status == 0 and "This change makes the run good" in out
    status, out, _ = call(*given, "--seat", "agent-2=agent-1", "--json")
    assert status == 1
    (tried,) = json.loads(out)["hypotheses"]
    assert tried["interventions"] == [
        {"kind": "seat", "at": at, "agent": "agent-2", "by": "agent-1"}
    ]


def test_try_reads_hypotheses(call: Any, silent: Path, tmp_path: Path) -> None:
    """A file has a list of lists of interventions."""
    at = first_start(silent, "agent-3")
    file = tmp_path / "tries.json"
    seat = {"kind": "seat", "at": at, "agent": "agent-3", "by": "agent-1"}
    file.write_text(json.dumps([[{"kind": "tell", "at": at, "agent": "agent-1", "note": "go"}],
                                [seat]]))  # fmt: skip
    status, out, _ = call("try", silent, "--hypotheses", file, "--good", ANSWERED, "--json")
    assert status == 0
    assert [one["interventions"][0]["kind"] for one in json.loads(out)["hypotheses"]] == [
        "tell", "seat",
    ]  # fmt: skip


def test_a_decision_in_place_of_the_recorded_one_is_told_beside_it(
    call: Any, tmp_path: Path
) -> None:
    """What the agent did with its events, and what it made of them."""
    early = ("run", "count-frequency", "--virtual", "--quiet", "--method", "mas", "--seed", 100)
    assert call(*early, "--size", 10000, "--runs", tmp_path)[0] == 0
    [run] = [path for path in tmp_path.iterdir() if path.is_dir()]
    status, out, err = call("why", run, "--good", "findings.ET==0", "--try")
    assert status == 1, err
    told = r"agent-1 only waits at record 133; without the change it used e26, .* an answer\n"
    assert re.search(told, out)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ((), "name a change"),
        (("--seat", "agent-1=agent-2"), "say from which record on"),
        (("--seat", "agent-1", "--at", "3"), "two parts"),
        (("--again", "a999"), "there is no activation"),
        (("--edit", "[1]", "--at", "3"), "neither JSON nor a file"),
        (("--hypotheses", "nowhere.json"), "nowhere.json cannot be read"),
        (("--wait", "-5"), "greater than 0"),
        (("--omit", "3", "--good", "rmse=3"), "goal"),
        (("--omit", "3", "--team", "nowhere:team"), "nowhere"),
    ],
)
def test_what_is_asked_wrongly_is_status_2(
    given: tuple[str, ...], why: str, call: Any, silent: Path
) -> None:
    """One sentence says what is wrong."""
    status, out, err = call("try", silent, *given)
    assert (status, out) == (2, "")
    assert why in err


def test_why_prints_its_schema(call: Any) -> None:
    """The JSON schema of the document, without a source."""
    status, out, _ = call("why", "--schema")
    assert status == 0
    assert {"answer", "hypotheses", "fix"} <= json.loads(out)["properties"].keys()


def test_why_needs_a_source(call: Any) -> None:
    """Without one it says how it is called."""
    assert call("why")[0] == 2


def test_a_wrapped_run_is_tried_with_its_entry(
    call: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Standard output has the diagnosis alone, although the entry prints; `try` takes it, too."""
    run = wrapped(tmp_path)
    capsys.readouterr()
    entry = ("--entry", "tests.diagnosis.served_teams:mended")
    status, out, err = call("why", run, "--try", *entry)
    assert status == 1
    assert "Cause: prices" in out and "the entry says" not in out
    assert "the entry says lamp for 7" in err
    status, out, _ = call("try", run, "--again", "a2", *entry)
    assert status == 0 and "This change makes the run good" in out


def test_a_wrapped_run_needs_an_entry(call: Any, tmp_path: Path) -> None:
    """Status 2, and the option is named."""
    status, _, err = call("why", wrapped(tmp_path), "--try")
    assert status == 2 and "--entry module:function" in err


# --- failed requests ---


def test_why_names_the_turn_that_raised(call: Any, tmp_path: Path) -> None:
    """Those who passed it on or were called off are counted; the writer, who never ran, is not."""
    run = directory(tmp_path, "trip", failing.failed())
    status, out, _ = call("why", run)
    lines = out.splitlines()[:-5]
    assert status == 1
    assert lines[:3] == [
        f"trip failed: {failing.FAILED}",
        "Cause: hotels, from record 13 on (suspected, confidence high)",
        "  record 16: a4 of hotels ended with an error; 1 turn passed it on, 1 turn called off",
    ]
    assert "Cause" not in str(lines[3:]) and "503" not in str(lines[1:])
    told = json.loads(call("why", run, "--json")[1])
    assert (told["answer"]["activation"], told["answer"]["confidence"]) == ("a4", "high")
    suspected = {one["agent"] for one in told["candidates"] if one["share"] > 0.05}
    assert suspected == {"hotels"}


def test_why_names_the_turn_whose_work_an_answer_lacks(call: Any, tmp_path: Path) -> None:
    """The run is good, since that is a warning, but not without a word."""
    run = directory(tmp_path, "shop", failing.partial())
    status, out, _ = call("why", run)
    assert status == 0
    assert out.splitlines()[:-5] == [
        f"shop is good, but {failing.PARTIAL}",
        "Cause: prices, from record 7 on (suspected, confidence medium)",
        "  record 8: a2 of prices ended with an error",
    ]


def test_at_a_limit_there_is_no_turn_to_blame_first(call: Any, tmp_path: Path) -> None:
    """The headline is the reason; what signs say stands below it."""
    status, out, _ = call("why", directory(tmp_path, "talk", failing.at_limit()))
    assert status == 1
    assert out.startswith("talk failed: the run ended at a limit of its framework: ")
    assert "confidence high" not in out
