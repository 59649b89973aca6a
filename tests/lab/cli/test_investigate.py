"""`digmon investigate`: exit status, output, checkpoints, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.lab.investigate.test_model import as_rules
from tests.lab.investigate.worlds import FLASH_SALE
from tests.llm.server import fails, serving
from tests.show.page.pages import inlined

PAGE = Path(__file__).parents[3] / "docs" / "lab" / "investigate.md"


def test_the_answer_and_a_line_a_step(call: Any) -> None:
    """Status 0 with a frontier; steps on standard error."""
    status, out, err = call("investigate", FLASH_SALE)
    assert status == 0
    assert out.startswith("flash-sale: it began at S1\n") and len(out.splitlines()) <= 20
    assert err.splitlines()[0] == "1/40 S2: symptom of S3 (failed-call); 1 active"
    status, out, _ = call("investigate", FLASH_SALE, "--no-messages", "--orders", 3)
    assert status == 0 and "it began at S4" in out and "agree by 1.00" in out


def test_the_page_shows_what_the_command_prints(call: Any) -> None:
    """The example in docs/lab/investigate.md is its output, and its Python runs."""
    text = PAGE.read_text("utf-8")
    _, out, err = call("investigate", FLASH_SALE)
    assert "".join(f"    {line}\n" for line in [*err.splitlines(), *out.splitlines()]) in text
    code = text.split("```python\n")[1].split("```")[0]
    told: list[object] = []
    exec(code.replace("examples/flash-sale", str(FLASH_SALE)), {"print": told.append})
    assert told == [("S1",)]


def test_a_guess_has_status_1(call: Any, tmp_path: Path) -> None:
    """Also if nothing at all was found."""
    (tmp_path / "alerts.json").write_text('[{"entity": "x", "name": "down", "ts": 1}]')
    status, out, _ = call("investigate", tmp_path)
    assert status == 1 and "Not explained: x: down" in out


def test_json_is_one_line_that_is_scored(call: Any, tmp_path: Path) -> None:
    """The document, alone on standard output; several lines are several runs."""
    _, one, _ = call("investigate", FLASH_SALE, "--json")
    found = json.loads(one)
    assert found["format"] == "digmon-investigation" and found["version"] == 1
    assert found["frontier"] == ["S1"]
    answers = tmp_path / "answers.jsonl"
    answers.write_text(one * 2)
    status, out, _ = call("investigate", FLASH_SALE, "--score", answers, "--json")
    assert status == 0 and json.loads(out)["roots"]["f1"] == 1 and json.loads(out)["answers"] == 2
    status, out, _ = call("investigate", FLASH_SALE, "--score", answers)
    assert "roots          1.000   1.000   1.000" in out
    answers.write_text(one + "{}\n")
    status, _, err = call("investigate", FLASH_SALE, "--score", answers)
    assert status == 2 and "answers.jsonl:2" in err


def test_the_schemas(call: Any) -> None:
    """Of the answer, and of each file of a snapshot."""
    status, out, _ = call("investigate", "--schema")
    assert status == 0
    assert {"digmon-investigation", "topology.json", "truth.json"} <= json.loads(out).keys()


def test_a_checkpoint_goes_on(call: Any, tmp_path: Path) -> None:
    """A budget ends it; with more budget the document is that of one run."""
    file = tmp_path / "checkpoint.json"
    _, whole, _ = call("investigate", FLASH_SALE, "--json")
    status, _, err = call("investigate", FLASH_SALE, "--checkpoint", file, "--budget", 4)
    assert len(err.splitlines()) == 4
    status, out, err = call("investigate", FLASH_SALE, "--checkpoint", file, "--json")
    assert status == 0 and out == whole
    assert err.splitlines()[0].startswith("5/40 ")
    status, _, err = call("investigate", FLASH_SALE, "--checkpoint", file, "--no-messages")
    assert status == 2 and f"{file}: the checkpoint was made with another course" in err
    for name in (file, file.with_name(f"{file.name}.answers.json")):
        name.write_text("no JSON")
        status, _, err = call("investigate", FLASH_SALE, "--checkpoint", file)
        assert status == 2 and f"{name}: it " in err


def test_a_model_judges_and_its_answers_lie_beside_the_checkpoint(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Temperature 0; after the checkpoint is deleted nothing is asked again."""
    monkeypatch.setenv("OPENAI_API_KEY", "k1k2k3k4")
    file = tmp_path / "checkpoint.json"
    with serving(as_rules) as server:
        options = ("--model", "m", "--base-url", server.url, "--checkpoint", file)
        status, out, _ = call("investigate", FLASH_SALE, *options)
        asked = len(server.requests)
        assert status == 0 and "by model m" in out and f"{asked} requests" in out
        assert all(one["temperature"] == 0 for one in server.requests)
        file.unlink()
        status, _, _ = call("investigate", FLASH_SALE, *options)
        assert status == 0 and len(server.requests) == asked
        status, out, _ = call("investigate", FLASH_SALE, *options[:4], "--samples", 2)
        assert "2 samples; their frontiers agree by 1.00" in out
        assert len(server.requests) == 3 * asked


def test_a_dead_model_ends_with_a_guess(
    call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three failed calls stop it; the answer is a guess, and says so."""
    monkeypatch.setenv("OPENAI_API_KEY", "k1k2k3k4")
    rows = [{"entity": one, "name": "down", "ts": 1} for one in "abcd"]
    (tmp_path / "alerts.json").write_text(json.dumps(rows))
    (tmp_path / "topology.json").write_text(
        json.dumps({"entities": [{"id": one} for one in "abcd"]})
    )
    with serving([fails(400, "no")]) as server:
        status, out, _ = call("investigate", tmp_path, "--model", "m", "--base-url", server.url)
    assert status == 1 and "failed three times in a row" in out


def test_other_programs_files(call: Any, tmp_path: Path) -> None:
    """--from names their format."""
    status, _, err = call("investigate", tmp_path, "--from", "otlp")
    assert status == 2 and "no spans" in err


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ((), "name a snapshot"),
        (("nowhere",), "is no directory"),
        ((FLASH_SALE, "--window", "5"), "--window is two numbers"),
        ((FLASH_SALE, "--window", "5..1"), "begins before it ends"),
        ((FLASH_SALE, "--samples", 3), "--samples needs --model"),
        ((FLASH_SALE, "--orders", 3, "--checkpoint", "f"), "goes with one run"),
        ((FLASH_SALE, "--max-tokens", 3), "name it with --model"),
        ((FLASH_SALE, "--score", "nowhere"), "cannot be read"),
    ],
)
def test_what_is_asked_wrongly_has_status_2(call: Any, given: tuple[Any, ...], says: str) -> None:
    """One sentence on standard error."""
    status, out, err = call("investigate", *given)
    assert (status, out) == (2, "") and says in err


def test_the_window_is_given(call: Any) -> None:
    """Evidence outside of it does not count."""
    status, out, _ = call("investigate", FLASH_SALE, "--window", "582..700")
    assert status == 1 or "S4" not in out.splitlines()[0]


def test_a_report_is_a_page_of_the_same_answer(call: Any, tmp_path: Path) -> None:
    """It is written beside what is printed; a file that cannot be written is status 2."""
    status, out, _ = call("investigate", FLASH_SALE, "--json", "--report", tmp_path / "page.html")
    head = inlined((tmp_path / "page.html").read_text("utf-8"))["head"]
    assert status == 0 and json.loads(out)["frontier"] == ["S1"]
    assert head["answers"]["headline"] == "It began at S1."
    status, _, err = call("investigate", FLASH_SALE, "--report", tmp_path / "no" / "page.html")
    assert status == 2 and "page.html" in err
