"""A report: one file with everything in it."""

from __future__ import annotations

import json
import random
import re
from base64 import b64encode
from hashlib import sha256
from html import unescape
from pathlib import Path

import pytest

from dig.errors import JournalError, TraceError
from dig.show.page.html_page import live_page
from dig.show.page.writing import comparison, write_report
from tests import failing
from tests.histories import arrive, deliver, emit, end, start, trace
from tests.hostile import ATTACKS
from tests.oracle import Row
from tests.traces.runs import directory, hasty, solved, store

from .pages import inlined, rows


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return directory(tmp_path, "r", hasty(), method="dig", agents_are="simulated")


def chatty(number: int) -> list[Row]:
    """Two agents that send one another long texts."""
    texts, work = random.Random(1), list[Row]()
    for i in range(number):
        agent, other = "ab"[i % 2], "ba"[i % 2]
        made = f"e{i + 1}"
        work += [start(i, f"v{i}", agent, f"e{i}"), end(i, f"v{i}", made, **{f"e{i}": "consume"})]
        said = {"payload": f"{texts.getrandbits(4_000):x}"}
        work += [emit(i, made, f"v{i}", other) | said, deliver(i, made, other)]
    return trace(arrive(0, "e0", None, "a"), work)


def test_it_holds_every_record_and_what_stands_beside_the_trace(run: Path) -> None:
    """Beside the trace, as the command says; agents that are simulated are said to be."""
    made = write_report(run)
    assert (made.path, made.records) == (run / "report.html", len(hasty()))
    assert made.bytes == made.path.stat().st_size
    data = inlined(made.path.read_text("utf-8"))
    assert [one["t"] for one in data["rows"]] == list(range(len(hasty())))
    assert data["head"]["agents_are"] == "simulated"
    assert data["head"]["method"] == "dig"


@pytest.mark.parametrize(("rows", "is_told"), [(solved(), True), (hasty(), False)])
def test_the_first_answer_tells_the_score(tmp_path: Path, rows: list[Row], is_told: bool) -> None:
    """Of an answer that was accepted; where there is none, nothing is said of how good it is."""
    made = write_report(directory(tmp_path, "r", rows, score={"valid": True, "rmse": 0.5}))
    ended = inlined(made.path.read_text("utf-8"))["head"]["answers"]["ended"]
    assert ended.endswith(" Its score is: rmse 0.5.") == is_told
    assert ("score" in ended) == is_told


def test_the_same_run_gives_the_same_bytes(run: Path, tmp_path: Path) -> None:
    """Whenever it is written."""
    first, second = (write_report(run, tmp_path / name).path for name in ("1.html", "2.html"))
    assert first.read_bytes() == second.read_bytes()


def test_a_report_names_no_folder_of_the_machine(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commands in it have the name of the run, by whatever path it was written."""
    first = write_report(run, tmp_path / "1.html").path
    assert str(tmp_path) not in json.dumps(inlined(first.read_text("utf-8")))
    head = inlined(first.read_text("utf-8"))["head"]
    assert (head["place"], head["file"]) == ("r", "r")
    assert head["answers"]["command"].split()[2] == "r"
    monkeypatch.chdir(run)
    for path in (Path(), Path("../r")):
        assert write_report(path, tmp_path / "2.html").path.read_bytes() == first.read_bytes()
    page = comparison(run, run, "../").decode()
    assert inlined(page)["head"]["place"] == str(run)


def test_a_trace_file_alone_has_its_report_beside_it(tmp_path: Path) -> None:
    """Under its own name."""
    made = write_report(store(tmp_path / "team.dig.jsonl", solved()))
    assert made.path == tmp_path / "team.html"


def test_a_trace_without_findings_is_shown_with_those_that_are_found_now(tmp_path: Path) -> None:
    """An imported log is explained like a run."""
    lines = [line for line in hasty() if line["kind"] not in ("finding", "heal")]
    file = store(tmp_path / "x.dig.jsonl", [{**line, "t": t} for t, line in enumerate(lines)])
    assert [one["pattern"] for one in rows(write_report(file).path) if one.get("found")] == ["ET"]


@pytest.mark.nightly
def test_ten_thousand_events_stay_under_five_megabytes(tmp_path: Path) -> None:
    """With payloads that hardly compress; where they are cut is told."""
    made = write_report(store(tmp_path / "x.dig.jsonl", chatty(10_000)))
    assert made.bytes < 5_000_000
    assert 100 < made.cut < 1_000
    shown = rows(made.path)
    assert max(len(one.get("payload", "")) for one in shown) == made.cut
    assert inlined(made.path.read_text("utf-8"))["head"]["cut"] == made.cut


@pytest.mark.nightly
def test_whatever_is_said_and_goes_wrong_a_report_can_be_mailed(tmp_path: Path) -> None:
    """Thousands of events of letters that take much room, and an error with each."""
    letters, rarely = random.Random(1), [chr(code) for code in range(0x20000, 0x2A000)]
    work = chatty(4_000)
    where = {"emit": "payload", "end": "error"}
    for line in work:
        if line["kind"] in where:
            line[where[line["kind"]]] = "".join(letters.choices(rarely, k=300))
    made = write_report(store(tmp_path / "x.dig.jsonl", work))
    assert made.bytes < 5_000_000
    shown = rows(made.path)
    assert 10 < max(len(one.get("payload", "")) for one in shown) == made.cut


def test_only_its_own_script_and_style_may_run(run: Path) -> None:
    """The policy names them by what is in them, and allows no request at all."""
    page = write_report(run).path.read_text("utf-8")
    rules = unescape(re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[0])
    for element in ("script", "style"):
        (text,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in rules
    assert rules.startswith("default-src 'none'; ")
    assert "connect-src" not in rules and "unsafe" not in rules


def test_nothing_in_a_run_stands_in_the_page_as_it_is(tmp_path: Path) -> None:
    """Names, payloads and the title are data: hostile texts are nowhere in the document."""
    lines = trace(*(arrive(0, f"e{i}", None, "a", text) for i, text in enumerate(ATTACKS)))
    lines[0]["run"] = "</title><script>window.pwned=1</script>"
    clean = write_report(store(tmp_path / "a.dig.jsonl", trace()), tmp_path / "a.html").path
    page = write_report(store(tmp_path / "b.dig.jsonl", lines), tmp_path / "b.html").path
    texts = [re.sub(r"<title>.*</title>", "", file.read_text("utf-8")) for file in (clean, page)]
    bare = [re.sub(r'(<div id="data"[^>]*>)[^<]*', r"\1", text) for text in texts]
    assert bare[0] == bare[1]
    assert "<title>&lt;/title&gt;&lt;script&gt;" in page.read_text("utf-8")


def test_a_live_page_asks_its_own_server_and_nobody_else() -> None:
    """It has no data, and the address that it is given."""
    page = live_page('events?"><b>', "<t>", runs="../")
    assert 'data-source="events?&quot;&gt;&lt;b&gt;"' in page
    assert "<title>&lt;t&gt;</title>" in page and 'href="../"' in page
    assert "connect-src &#x27;self&#x27;" in page


def test_what_cannot_be_read_or_written_is_told(run: Path, tmp_path: Path) -> None:
    """With the line, or with the place."""
    broken = store(tmp_path / "x.dig.jsonl", [*trace(), deliver(1, "e9", "a") | {"t": 1}])
    with pytest.raises(TraceError, match=":2: there is no event"):
        write_report(broken)
    with pytest.raises(JournalError, match="cannot write"):
        write_report(run, tmp_path / "none" / "x.html")


def test_the_head_of_a_failed_run_begins_with_its_headline(tmp_path: Path) -> None:
    """A page without contents keeps the words of the error back."""
    run = directory(tmp_path, "r", failing.failed())
    for payloads, says in ((True, failing.FAILED), (False, "`hotels` ended with an error")):
        write_report(run, tmp_path / "r.html", payloads=payloads)
        answers = inlined((tmp_path / "r.html").read_text("utf-8"))["head"]["answers"]
        assert answers["headline"].startswith(f"Failed: {says}")
