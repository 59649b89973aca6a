"""Our own spans, read back: the run that was exported."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from dig.detectors import standard
from dig.detectors.watch import Watch
from dig.errors import TraceError
from dig.graph.graph import InteractionGraph
from dig.graph.records import Record
from dig.traces.interchange.imports import Imported, import_file
from dig.traces.journal.reader import read_records
from dig.traces.otel.content import Content
from dig.traces.otel.stored_spans import export_text
from tests.histories import arrive, deliver, final, row, trace, turn
from tests.oracle import Row
from tests.traces.runs import hasty, solved, store


def exported(folder: Path, rows: Sequence[Row], *, payloads: bool = True) -> Path:
    run, path = store(folder / "run.dig.jsonl", rows), folder / "spans.json"
    path.write_text("".join(export_text(run, content=Content(payloads=payloads))))
    return path


def findings(records: Sequence[Record]) -> list[tuple[str, str | None, str, dict[str, str]]]:
    watch = Watch(standard())
    return [(str(finding.pattern), finding.stage, finding.severity, finding.subject)
            for record in records for finding in watch.feed(record)]  # fmt: skip


def edges(records: Sequence[Record]) -> set[tuple[str, str, str | None]]:
    graph = InteractionGraph.of(records).to_networkx().edges(data=True)
    return {(source, target, keys.get("fate")) for source, target, keys in graph}


def refused() -> list[Row]:
    """`a` gives a part away, discards another, and passes a third on; `b` fails."""
    return trace(
        arrive(0, "p", None, "a"),
        arrive(0, "r", None, "a"),
        arrive(0, "d", None, "a"),
        [
            {
                **r,
                "fates": [{**f, "to": ["b"]} if f["fate"] == "reroute" else f for f in r["fates"]],
            }
            if r["kind"] == "end"
            else r
            for r in turn(1, "v", "a", "q", p="consume", r="reroute", d="discard")
        ],
        arrive(1, "q", "v", "b"),
        deliver(1, "r", "b"),
        row(2, "start", activation="w", agent="b", inputs=["q", "r"]),
        row(3, "end", activation="w", fates=[], outputs=[], error="ValueError: no"),
        turn(4, "x", "b", "s", q="consume", r="consume"),
        arrive(4, "s", "x", "a", "solution"),
        turn(5, "y", "a", "f", s="consume"),
        final(5, "f", "y"),
        deliver(5, "f", None),
        row(5, "finish", outcome="submitted"),
    )


@pytest.mark.parametrize("rows", [solved(tokens=7), hasty(), refused()])
def test_an_exported_run_is_read_back(rows: list[Row], tmp_path: Path) -> None:
    """Edges, fates and findings are those of the trace."""
    imported = import_file(exported(tmp_path, rows))
    expected = [*read_records(tmp_path / "run.dig.jsonl")]
    assert imported.format == "spans"
    assert edges(imported.records) == edges(expected)
    assert findings(imported.records) == findings(expected)


def loop() -> list[Row]:
    rows = [arrive(0, "p", None, "a"), turn(1, "v0", "a", "q0", p="consume")]
    for n in range(12):
        message = arrive(n + 1, f"q{n}", f"v{n}", "b")
        message[0]["payload"] = {"how": "heavy?"}
        answer = arrive(n + 1.5, f"s{n}", f"w{n}", "a")
        answer[0]["payload"] = "9 kg"
        rows += [message, turn(n + 1.5, f"w{n}", "b", f"s{n}", **{f"q{n}": "consume"}), answer,
                 turn(n + 2, f"v{n + 1}", "a", f"q{n + 1}", **{f"s{n}": "consume"})]  # fmt: skip
    last = arrive(13, "q12", "v12", "b")
    limits = {"loop_limit": 5}
    return trace(*rows, last, limits=limits, session=True, memory=True)


@pytest.mark.parametrize("payloads", [True, False])
def test_words_are_compared_if_they_were_exported(payloads: bool, tmp_path: Path) -> None:
    imported = import_file(exported(tmp_path, loop(), payloads=payloads))
    expected = findings([*read_records(tmp_path / "run.dig.jsonl")])
    assert [f for f in findings(imported.records) if f[0] == "LOOP"] == (
        [f for f in expected if f[0] == "LOOP"] if payloads else []
    )
    assert ("LOOP" in "".join(imported.not_looked_at)) is not payloads


def test_an_export_of_an_older_edition_tells_who_has_seen_an_event(tmp_path: Path) -> None:
    path = exported(tmp_path, solved())
    changed = path.read_text().replace("dig.out.to", "dig.out.somewhere")
    path.write_text(changed)
    assert edges(import_file(path).records) == edges([*read_records(tmp_path / "run.dig.jsonl")])


def test_spans_with_the_names_of_older_conventions_are_read_back(tmp_path: Path) -> None:
    """The file was exported before names of spans had few values, and agents no ids."""
    store(tmp_path / "run.dig.jsonl", refused())
    imported = import_file(Path(__file__).parents[1] / "data" / "spans_before.json")
    expected = [*read_records(tmp_path / "run.dig.jsonl")]
    assert edges(imported.records) == edges(expected)
    assert findings(imported.records) == findings(expected)


def test_what_only_looks_like_our_export_is_refused(tmp_path: Path) -> None:
    path = exported(tmp_path, solved())
    whole = path.read_text()
    for key in ("agent.name", "gen_ai.input.messages"):
        path.write_text(re.sub(rf'{{"key":"\w*\.?{key}"', '{"key":"x","y":"z"', whole))
        if key.endswith("messages"):
            path.write_text(whole.replace('[{\\"role', '[{\\"no role').replace("parts", "pieces"))
        with pytest.raises(TraceError, match="no export of a run"):
            import_file(path)


def test_spans_of_an_export_name_what_they_cannot_show(tmp_path: Path) -> None:
    imported: Imported = import_file(exported(tmp_path, solved()))
    assert any(text.startswith("LATE, FAIL request:") for text in imported.not_looked_at)
