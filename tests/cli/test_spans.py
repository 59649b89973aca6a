"""`digmon import` and `check` of files of spans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dig.traces.interchange.imports import import_file
from tests.traces.interchange.span_files import PRODUCERS, agent, otlp, store


def test_files_of_several_services_are_one_run_if_they_share_a_trace(
    call: Any, tmp_path: Path
) -> None:
    """Together the answer of the lead is too early; the one file alone cannot show that."""
    front = store(tmp_path / "front.json", otlp(agent(1, "lead", 0, 2, answer="done")))
    back = store(tmp_path / "back.json", otlp(agent(2, "b", 1, 5, 1), service="back"))
    other = store(tmp_path / "other.json", otlp(agent(3, "c", 0, 1, trace=2)))
    code, out, _ = call("check", front, other, back)
    assert (code, out.count("passes"), out.count("fails, 1 unhealed error")) == (1, 1, 1)
    assert f"{front} with {back}: fails" in out
    assert f"{back} with {front}: fails" in call("check", tmp_path)[1]
    code, out, err = call("import", back, front, "-o", tmp_path / "run")
    assert (code, "read as spans" in out) == (0, True)
    assert call("check", tmp_path / "run")[0] == 1
    assert "not in the file" not in err
    code, out, _ = call("check", back)
    assert (code, "passes" in out) == (0, True)
    assert "an agent below a span that is not in the file" in "".join(import_file(back).guesses)


def test_files_of_other_formats_are_not_joined(call: Any, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("from,to\na,b\n")
    code, out, err = call("import", log, log, "-o", tmp_path / "run")
    assert (code, out) == (2, "")
    assert "each file is a run of its own" in err


def test_a_search_reads_spans_and_skips_those_without_agents(call: Any, tmp_path: Path) -> None:
    for file in PRODUCERS.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    steps = (PRODUCERS / "llama_index.json").read_text().replace("input.value", "hidden")
    (tmp_path / "hidden.json").write_text(steps.replace("0006", "0016"))  # of another trace
    code, out, _ = call("check", tmp_path)
    assert (code, "6 runs passed" in out) == (0, True)
    assert "skipped 1 file: has spans, but none that names an agent" in out
