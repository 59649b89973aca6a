"""Journals that earlier versions have written stay readable: those of `tests.stored_journals`."""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import pytest

import dig
from dig.adapters.plain.served import Served
from dig.cli import main as digmon_main
from dig.detectors import standard
from dig.detectors.watch import Watch
from dig.errors import DivergenceError, ReplayError, RequestError
from dig.graph.codec import encode
from dig.graph.records import (
    EDITION,
    FAILED,
    REQUEST_FAILED,
    WAITS,
    End,
    Fate,
    FindingRow,
    IncidentRow,
    Record,
)
from dig.monitor.messages import Output
from dig.runtime import Setup
from dig.runtime.agent_errors import STACK
from dig.runtime.checkpoint import RunningActivation
from dig.tasks.run.crew import Crew
from dig.tasks.run.run_fork import fork
from dig.traces.journal.reader import TRACE, read_records
from dig.traces.replay.changes import TellAgent
from dig.traces.replay.header import header_of
from dig.traces.replay.rerun import replay, rerun
from dig.traces.replay.rewind import rewind
from dig.traces.replay.tape import read_requests
from dig.traces.run import RecordedRun
from dig.traces.verify import verify
from tests.stored_journals import HERE, MOST_BYTES, NOW, OLD, stored

from .journals import reseal, rows_of

REFUSED = rf"the findings of the run are of edition 1 of the patterns, .* of edition {EDITION}"
EARLIER = f"{EDITION}-earlier"
"""The directory of journals of today's patterns, of versions that healed otherwise, and did not
report late work."""
EACH = pytest.mark.parametrize("path", stored(), ids=lambda path: f"{path.parent.name}/{path.name}")


def text_of(path: Path) -> str:
    return "".join(file.read_text() for file in sorted(path.parent.glob(f"{path.name}*")))


def of_first_edition(path: Path) -> Path:
    """The same journal, as if its findings were by the first edition."""
    rows = rows_of(path)
    del rows[0]["patterns"]
    return reseal(path, rows)


def test_all_kinds_of_runs_are_kept() -> None:
    """A new kind is taken with `python -m tests.stored_journals take`."""
    assert {path.name for path in stored(EDITION)} == {f"{name}.dig.jsonl" for name in NOW}
    assert {path.name for path in stored(1)} == {f"{name}.dig.jsonl" for name in OLD}
    kept = "".join(map(text_of, stored(EDITION)))
    for part in (
        '"because":', '"cancelled":true', '"how":"error"', '"how":"limit"', '"how":"timeout"',
        '"what":"waits"', '"what":"stack trace"', '"gates":', '"policy":"fault"', '"heal"',
        '"what":"downgraded"', '"outcome":"timeout"', '"kind":"expire"', '"kind":"redirect"',
    ):  # fmt: skip
        assert part in kept, part


@EACH
def test_a_stored_journal_is_small_and_tells_of_no_machine(path: Path) -> None:
    """No absolute path stands in it."""
    text = text_of(path)
    assert len(text) < MOST_BYTES
    assert re.search(r"(?<![\w.)])/\w+/", text) is None


@EACH
def test_a_stored_journal_is_read_and_verified(path: Path) -> None:
    """The independent checker finds nothing wrong, and each row is written as it was read."""
    report = verify(path)
    assert (report.problems, report.is_journal) == ([], True)
    lines = text_of(path).splitlines()
    for line, record in zip(lines, read_records(path), strict=True):
        assert line.startswith(encode(record)[:-1])


@EACH
def test_what_is_found_in_a_stored_journal_is_what_its_run_found(path: Path) -> None:
    """A check judges by today's edition; where that is the run's, its findings are the same."""
    records = list(read_records(path))
    watch = Watch(standard())
    found = [
        (one.pattern, one.severity, one.stage, one.subject, one.evidence)
        for record in records
        for one in watch.feed(record)
    ]
    if path.parent.name in (str(EDITION), EARLIER):
        assert found == [
            (row.pattern, row.severity, row.stage, row.subject, row.evidence)
            for row in records
            if isinstance(row, FindingRow)
        ]
        assert replay(path).is_same is True
    else:
        assert replay(path).is_same is None


@EACH
def test_a_stored_journal_is_driven_again_or_refused_for_its_reason(path: Path) -> None:
    """Gates cannot be asked again; detectors of another edition are no more."""
    count = len(list(read_records(path)))
    if path.parent.name == "1":
        with pytest.raises(ReplayError, match=REFUSED):
            rerun(path)
    elif path.name == "gate.dig.jsonl":
        with pytest.raises(ReplayError, match=r"the run had gates: tests.stored_journals.Keeper"):
            rerun(path)
    elif path.parent.name == EARLIER:
        with pytest.raises(DivergenceError, match=r"record \d+ differs"):
            rerun(path)
    else:
        assert rerun(path).records == count


@EACH
def test_a_stored_journal_that_is_not_driven_again_is_not_brought_to_a_moment(path: Path) -> None:
    if path.name == "gate.dig.jsonl" or path.parent.name != str(EDITION):
        with pytest.raises((ReplayError, DivergenceError)):
            rewind(path, len(list(read_records(path))) - 1, tools={})


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "path",
    [path for path in stored(EDITION) if path.name != "gate.dig.jsonl"],
    ids=lambda it: it.name,
)
@pytest.mark.parametrize("offset", range(3))
def test_a_stored_journal_is_brought_to_any_moment(path: Path, offset: int) -> None:
    """A fork has the same records before its beginning, its first row as it was read."""
    records = list(read_records(path))
    for at in range(1 + offset, len(records), 9):
        again: list[Record] = []
        rewind(path, at, tools={}, sink=again.append)
        assert again[:at] == records[:at]


@pytest.mark.parametrize("name", ["wrapped", "failed", "waits"])
def test_a_fork_repeats_what_a_host_said_of_a_turn_only_with_that_turn(name: str) -> None:
    """A turn that comes otherwise need not wait again, and has its own stack.

    That a request failed is never repeated: the host of the fork says so, if it does.
    """
    path = HERE / f"2/{name}.dig.jsonl"
    records = list(read_records(path))
    repeated = set[int]()
    stacks = {
        (row.detail["activation"], row.detail["text"]): row.t
        for row in records
        if isinstance(row, IncidentRow) and row.what == STACK
    }
    for at in range(1, len(records)):
        moment = rewind(path, at, tools={})
        ended = {
            one.started.activation for one in moment.agenda
            if isinstance(one, RunningActivation) and one.end is not None
        }  # fmt: skip
        for row in (records[one.t] for one in moment.outside if one.t is not None):
            if isinstance(row, IncidentRow):
                assert row.what in (WAITS, STACK)
                past = {end.activation for end in records[:at] if isinstance(end, End)}
                assert row.detail["activation"] in (ended if row.what == WAITS else past)
                repeated.add(row.t)
        for item in moment.agenda:
            if isinstance(item, RunningActivation) and item.stack:
                assert item.started.activation in ended
                repeated.add(stacks[item.started.activation, item.stack])
    incidents = [row for row in records if isinstance(row, IncidentRow)]
    assert repeated == {row.t for row in incidents if row.what != REQUEST_FAILED}


def test_the_command_says_that_findings_of_another_edition_are_not_compared(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the line about them; nothing differs that can be compared, so the exit status is 0."""
    monkeypatch.setattr("sys.argv", ["digmon", "replay", str(HERE / "1/never_submit.dig.jsonl")])
    with pytest.raises(SystemExit) as end:
        digmon_main()
    assert not end.value.code
    assert "; those of the trace are of edition 1 of the patterns\n" in capsys.readouterr().out


def test_a_run_of_another_edition_is_neither_made_again_nor_goes_on(tmp_path: Path) -> None:
    """The reason is the same for a rerun, a fork and the forks of `try`; nothing is left."""
    path = HERE / "1/dig.dig.jsonl"
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / TRACE).write_bytes(path.read_bytes())
    crew = Crew({}, header_of(path, read_requests(path).header or {}).setup())
    for refused in (
        lambda: rerun(path),
        lambda: rewind(path, 5, tools={}),
        lambda: fork(folder, 5, tmp_path / "forks", crew=crew),
        lambda: rewind(path, 5, changes=[TellAgent(5, "agent-1", "Submit.")], tools={}),
    ):
        with pytest.raises(ReplayError, match=REFUSED):
            refused()
    assert not (tmp_path / "forks").exists()


def test_what_a_function_of_the_user_raised_is_driven_as_it_was_recorded(tmp_path: Path) -> None:
    """A host's incident `failed` is no failure of a part that a replay would have to repeat."""

    def boom(finding: object) -> None:
        raise ValueError(finding)

    async def main() -> Path:
        async def ann(question: str) -> str:
            raise OSError("no line")

        team = dig.wrap({"ann": ann}, journal=tmp_path, on_finding=boom)
        with pytest.raises(OSError, match="no line"):
            await team["ann"]("?")
        directory = dig.session_of(team).directory
        dig.unwrap(team)
        assert directory is not None
        return directory

    path = anyio.run(main)
    rows = list(read_records(path))
    whats = [row.what for row in rows if isinstance(row, IncidentRow)]
    assert {FAILED, REQUEST_FAILED, "stack trace"} <= {*whats}
    assert rerun(path).records == len(rows)
    for at in range(1, len(rows)):
        again: list[Record] = []
        rewind(path, at, sink=again.append)
        assert again[:at] == rows[:at]


def test_an_event_that_was_accepted_is_not_redirected() -> None:
    """Not even if its payload is at hand; the request is refused, and the run goes on."""
    monitor = Setup(detectors=standard, session=True).monitor("ab", float, None)
    monitor.inject(Output("?", ("a",), "problem"))
    monitor.start("a")
    monitor.end("a1", [Fate("e1", "consume")], [Output("!", final=True)])
    assert monitor.graph.is_accepted("e2")
    before = monitor.graph.t
    with pytest.raises(RequestError, match="'e2' does not exist, is used up"):
        monitor.redirect("e2", ("b",), again="!")
    assert monitor.graph.t == before


def test_a_wrapped_team_is_not_run_again_from_a_record_of_another_edition(tmp_path: Path) -> None:
    """Its records are made by today's rules, also those before the fork."""
    parent = RecordedRun.read(HERE / "1/wrapped.dig.jsonl", payloads=True)
    with pytest.raises(ReplayError, match=REFUSED):
        Served(parent, 5, tmp_path)
    assert Served(parent, 0, tmp_path).at == 0


@pytest.mark.parametrize("call", ["fork RUN --at 5 --runs FORKS", "why RUN --try",
                                  "try RUN --at 5 --tell agent-1=Submit."])  # fmt: skip
def test_the_commands_refuse_a_run_of_another_edition(
    call: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """With the reason, before anything is made."""
    fixed = "run count-frequency --size 400 --agents 3 --seed 3 --method dig --virtual --runs made"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "sys.argv", ["digmon", *fixed.split(), "--fault", "never_submit target=agent-1"]
    )
    with pytest.raises(SystemExit):
        digmon_main()
    (run,) = (tmp_path / "made").iterdir()
    of_first_edition(run / TRACE)
    words = [{"RUN": str(run), "FORKS": "forks"}.get(word, word) for word in call.split()]
    monkeypatch.setattr("sys.argv", ["digmon", *words])
    with pytest.raises(SystemExit) as end:
        digmon_main()
    assert end.value.code == 2
    assert re.search(REFUSED, capsys.readouterr().err)
    assert not (tmp_path / "forks").exists() and not [*run.glob("why/*")]
