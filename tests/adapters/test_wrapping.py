"""`dig.wrap`: what it takes, what it leaves, and how it is undone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import tomllib
from importlib import import_module
from inspect import iscoroutinefunction, signature
from pathlib import Path
from typing import Any

import anyio
import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import dig
from dig import Finding, Limits
from dig.adapters import need_version
from dig.adapters.frameworks import KINDS
from dig.detectors.policy import HEAL_ALL
from dig.detectors.team_usual import TeamUsual
from dig.detectors.thresholds import Thresholds
from dig.errors import SettingsError
from dig.graph.records import Emit, End, IncidentRow, Run, Usual
from dig.runtime import Setup
from dig.traces.otel import instrument
from dig.traces.verify import verify
from tests.helpers import Recorder, backends, rows

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def run(call: Any, *args: Any) -> Any:
    name, options = backends()["asyncio"]()
    return anyio.run(call, *args, backend=name, backend_options=options)


async def ann(question: str, *, loud: bool = False) -> str:
    """Answers."""
    return question.upper() if loud else question


class Desk:
    """Two agents that call each other by `self`."""

    name = "desk"

    async def ask(self, question: str) -> str:
        return await self.answer(question + "?")

    async def answer(self, question: str) -> str:
        return question + "!"

    def note(self) -> str:
        return "not async"


def emitted(trace: Recorder) -> list[tuple[Any, ...]]:
    emits = [record for record in trace if isinstance(record, Emit)]
    return [(one.to, one.final, one.payload) for one in emits if one.type != "notice"]


def test_a_dict_keeps_its_interface_and_gets_its_own_back() -> None:
    """Names, signatures and docstrings stay; `unwrap` restores the very objects, twice too."""
    trace, team = Recorder(), {"ann": ann}
    assert dig.wrap(team, sink=trace) is team
    assert dig.wrap(team) is team
    monitored = team["ann"]
    assert monitored is not ann
    assert iscoroutinefunction(monitored)
    assert signature(monitored) == signature(ann)
    assert (monitored.__name__, monitored.__doc__) == ("ann", "Answers.")
    assert run(lambda: team["ann"]("hi", loud=True)) == "HI"
    assert dig.unwrap(team) is team
    assert dig.unwrap(team) is team
    assert team == {"ann": ann}
    assert emitted(trace) == [
        (("ann",), False, {"args": ["hi"], "kwargs": {"loud": True}}),
        ((), True, "HI"),
    ]


def test_what_is_usual_goes_into_the_trace_if_it_was_learned_from_this_team(
    tmp_path: Path,
) -> None:
    """A file is compared with the team; counts that are given by themselves are taken as is."""
    counts = Usual(100, {"ET": (90,)})
    file, other = tmp_path / "team.json", tmp_path / "other.json"
    for path, names in ((file, ("ann",)), (other, ("ann", "bob"))):
        path.write_text(json.dumps(TeamUsual(names, Limits(), counts).to_json()))
    for usual in (file, str(file), TeamUsual.read(file), counts):
        trace, team = Recorder(), {"ann": ann}
        dig.wrap(team, sink=trace, limits=Limits(), usual=usual)
        dig.unwrap(team)
        [first] = rows(trace[:1], "run")
        assert first.usual == counts
    with pytest.raises(SettingsError, match=r"other\.json was not learned from such runs"):
        dig.wrap({"ann": ann}, limits=Limits(), usual=other)
    with pytest.raises(SettingsError, match=r"usual=5 is no file that `digmon learn` made"):
        dig.wrap({"ann": ann}, usual=5)  # type: ignore[arg-type]


def test_what_is_kept_from_before_unwrapping_still_works() -> None:
    """A call that somebody holds on to goes through, and is not seen any more."""
    team = {"ann": ann}
    held = dig.wrap(team)["ann"]
    dig.unwrap(team)
    assert run(lambda: held("hi")) == "hi"


def test_the_methods_of_an_object_are_its_agents() -> None:
    """Calls by `self` are seen; what is not async is left alone; nothing stays on the object."""
    trace, desk = Recorder(), Desk()
    assert dig.wrap(desk, sink=trace) is desk
    assert run(desk.ask, "why") == "why?!"
    assert desk.note() == "not async"
    dig.unwrap(desk)
    assert vars(desk) == {}
    assert [entry[0] for entry in emitted(trace)] == [("ask",), ("answer",), ("ask",), ()]


def test_objects_in_a_list_are_agents_with_several_methods() -> None:
    """The message says which was called; a call to oneself is an instance."""
    trace, desk = Recorder(), Desk()
    team = [desk, ann]
    dig.wrap(team, sink=trace)
    assert run(desk.ask, "why") == "why?!"
    dig.unwrap(team)
    assert team[1] is ann
    entries = emitted(trace)
    assert [entry[0] for entry in entries] == [("desk",), ("desk#2",), ("desk",), ()]
    assert entries[0][2] == {"method": "ask", "with": "why"}


def test_an_object_whose_methods_cannot_be_replaced_is_refused_unchanged() -> None:
    """Its class takes no other method."""

    class Closed(type):
        def __setattr__(cls, name: str, value: Any) -> None:
            raise TypeError("closed")

    class Fixed(metaclass=Closed):
        async def ask(self) -> None: ...

    team = {"ann": ann, "fixed": Fixed()}
    with pytest.raises(SettingsError, match=r"'fixed' cannot be replaced: TypeError\('closed'\)"):
        dig.wrap(team)
    assert team["ann"] is ann


def test_the_thresholds_are_those_of_our_commands_unless_others_are_given() -> None:
    """STALL, LATE, LOOP and LIVELOCK are on; limits that are given are taken as they are."""
    some: list[tuple[dict[str, Any], Limits]] = [({}, Thresholds().limits)]
    for given, limits in [*some, ({"limits": Limits()}, Limits())]:
        trace = Recorder()
        dig.unwrap(dig.wrap({"ann": ann}, sink=trace, **given))
        assert isinstance(trace[0], Run) and trace[0].limits == limits
    assert Thresholds().limits.loop_limit and Limits().loop_limit is None


def test_it_leaves_a_run_directory_like_any_other_run(tmp_path: Path) -> None:
    """The journal is sound for the independent checker, and there are side file and result."""
    team = {"ann": ann}
    dig.wrap(team, journal=tmp_path, limits=Limits(reroute_limit=7))
    session = dig.session_of(team)
    assert session.directory is not None
    run(lambda: team["ann"]("hi"))
    dig.unwrap(team)
    report = verify(session.directory / "trace.dig.jsonl")
    assert report.problems == []
    result = json.loads((session.directory / "result.json").read_text())
    assert (result["outcome"], result["answer"]) == ("stopped", "hi")
    side = json.loads((session.directory / "side.json").read_text())
    assert (side["mode"], side["team"]) == ("observe", "a team of plain callables")


def test_a_session_that_lasts_is_kept_in_several_files(tmp_path: Path) -> None:
    """As large as one says; all of them are the trace."""
    team = {"ann": ann}
    dig.wrap(team, journal=tmp_path, segment_bytes=1_000)
    directory = dig.session_of(team).directory
    assert directory is not None
    for n in range(5):
        assert run(lambda n=n: team["ann"](str(n))) == str(n)
    dig.unwrap(team)
    assert len(list(directory.glob("trace.dig.jsonl.0*"))) > 2
    report = verify(directory / "trace.dig.jsonl")
    assert (report.problems, report.outcome) == ([], "stopped")


def test_a_program_that_does_not_unwrap_has_a_result_all_the_same(tmp_path: Path) -> None:
    """At the end of the program the session is closed, and the files are complete."""
    code = (
        "import anyio, dig, sys\n"
        "async def ann(x): return x\n"
        f"team = dig.wrap({{'ann': ann}}, journal={str(tmp_path)!r})\n"
        "anyio.run(team['ann'], 1)\n"
        "print(sorted(set(sys.modules) & {'langgraph', 'agents', 'autogen_core', 'ag2', 'openai',"
        " 'agent_framework', 'rich', 'typer', 'opentelemetry', 'trio'}))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"  # nothing is imported that nobody has asked for
    [directory] = tmp_path.iterdir()
    assert json.loads((directory / "result.json").read_text())["reason"] == "the program ended"
    assert verify(directory / "trace.dig.jsonl").problems == []


def test_importing_dig_imports_no_wrapper() -> None:
    """`import dig` is the core alone; what it does not have, it says like any module."""
    code = (
        "import dig, sys; dig.Monitor; "
        "print([m for m in sys.modules if 'wrap' in m and 'dig' in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
    with pytest.raises(AttributeError, match="no attribute 'warp'"):
        dig.warp  # type: ignore[attr-defined]  # noqa: B018


def test_a_wrapped_team_is_exported_like_any_other() -> None:
    """A follower that is there before the first request sees all of it."""
    spans = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    team = dig.wrap({"ann": ann})
    follower = instrument(dig.session_of(team).monitor, tracer_provider=provider)
    run(lambda: team["ann"]("hi"))
    dig.unwrap(team)
    follower.close()
    provider.shutdown()
    assert "invoke_agent ann" in {span.name for span in spans.get_finished_spans()}


def test_what_a_setup_has_of_its_own_is_not_said_beside_it() -> None:
    """How much history stays is one of these things, and nothing is ignored in silence."""
    with pytest.raises(SettingsError, match=r"keep=5 beside a setup: .* Setup\(keep=...\)"):
        dig.wrap({"ann": ann}, setup=Setup(), keep=5)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"journal": 3}, "journal=3 is no path of a directory"),
        ({"journal": "runs", "segment_bytes": "x"}, "no file has at most 'x' bytes"),
    ],
)
def test_where_and_how_a_trace_is_kept_is_looked_at(
    option: dict[str, Any], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says what is wrong, and the team is as it was."""
    monkeypatch.chdir(tmp_path)
    team = {"ann": ann}
    with pytest.raises(SettingsError, match=words):
        dig.wrap(team, **option)
    assert team["ann"] is ann


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"polcy": None}, "there is no option 'polcy' for this team; did you mean policy?"),
        ({"anotate": print}, "there is no option 'anotate' for this team; did you mean annotate?"),
        (
            {"inside": True},
            "'inside' for this team; graphs of LangGraph and workflows of agent-framework have it",
        ),
        ({"xyz": 1}, "'xyz' for this team; besides those of dig.wrap it has: allow, annotate, del"),
        (
            {"policy": 5},
            "policy=5 is no Policy",
        ),
    ],
)
def test_an_option_that_does_not_exist_or_fit_is_refused_with_a_cure(
    option: dict[str, Any], words: str
) -> None:
    """Those of `dig.wrap` itself are suggested, too."""
    with pytest.raises(SettingsError, match=re.escape(words)):
        dig.wrap({"ann": ann}, **option)


def test_what_must_be_possible_and_is_not_is_refused() -> None:
    """`require` names capabilities; the message lists what there is."""
    with pytest.raises(SettingsError, match=r"cannot bounce; it can: annotate, .* tell"):
        dig.wrap({"ann": ann}, require={"bounce"})
    team = {"ann": ann}
    dig.wrap(team, allow={"bounce"}, require={"bounce"})
    dig.unwrap(team)


def test_a_team_that_is_not_wrapped_has_no_session() -> None:
    """The message says what to give."""
    with pytest.raises(SettingsError, match="not wrapped"):
        dig.session_of({"ann": ann})


def test_time_is_kept_where_no_loop_runs() -> None:
    """A long activation is reported, and what is overdue raised, by a thread."""
    trace, found = Recorder(), list[Finding]()
    limits = Limits(activation_limit_s=0.05, dl_window_s=0.02)

    def incidents() -> list[IncidentRow]:
        return [record for record in trace if isinstance(record, IncidentRow)]

    async def slow(question: str) -> str:
        while not (found and incidents()):  # noqa: ASYNC110  (a thread makes it true)
            await anyio.sleep(0.005)
        return "done"

    team = {"slow": slow}
    dig.wrap(team, sink=trace, limits=limits, on_finding=found.append)
    assert anyio.run(team["slow"], "hi") == "done"
    session = dig.session_of(team)
    dig.unwrap(team)
    assert [finding.pattern for finding in found] == ["DL"]
    assert session.statistics().long_turns == 1
    [incident] = incidents()
    assert (incident.what, incident.detail["agent"]) == ("long activation", "slow")


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_what_a_thread_finds_is_said_on_the_loop_of_the_team(backend: str) -> None:
    """`deliver` runs where it may set what an agent waits for, and may raise."""

    async def main() -> list[tuple[str, str, int]]:
        said: list[tuple[str, str, int]] = []
        answer = anyio.Event()

        async def waits(question: str) -> str:
            await answer.wait()
            return "at last"

        def deliver(agent: str, note: str) -> None:
            said.append((agent, note.split(",")[0], threading.get_ident()))
            answer.set()
            raise ValueError

        team = {"waits": waits}
        limits = Limits(activation_limit_s=0.05, dl_window_s=0.02)
        # A turn that is only long is a warning, which the standard policy tells nobody.
        options = {"deliver": deliver, "require": {"wake"}, "policy": HEAL_ALL}
        dig.wrap(team, mode="heal", limits=limits, **options)  # type: ignore[arg-type]
        with anyio.fail_after(20):
            assert await team["waits"]("?") == "at last"
        assert dig.session_of(team).statistics().faults == 1
        dig.unwrap(team)
        return said

    note = "Nobody has made progress for a while"
    assert anyio.run(main, backend=backend) == [("waits", note, threading.get_ident())]


def test_an_older_version_than_the_tested_ones_is_refused() -> None:
    """The message says which is there, which is wanted, and how to get it."""
    words = r"was tested with anyio>=99,<100; pip install 'dig-monitor\[x\]'"
    with pytest.raises(SettingsError, match=words):
        need_version("anyio", "99", "100", "x")
    with pytest.raises(SettingsError, match="is not installed; pip install"):
        need_version("no-such-package", "99", "100", "x")
    assert need_version("anyio", "4.11", "5", "x")


def test_a_newer_version_than_the_tested_ones_is_told_or_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It goes on with a warning, unless the environment says that nothing untested may."""
    words = r"was tested with anyio>=1,<2; pip install 'dig-monitor\[x\]'"
    with pytest.warns(UserWarning, match=words):
        assert need_version("anyio", "1", "2", "x")
    monkeypatch.setenv("DIG_ALLOW_UNTESTED", "0")
    with pytest.raises(SettingsError, match=words):
        need_version("anyio", "1", "2", "x")


def test_an_exception_that_cannot_be_told_as_text_is_no_failure_of_the_wrapper() -> None:
    """It reaches the caller; its class is told."""

    class MuteError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    async def ann(question: str) -> str:
        raise MuteError

    recorded = Recorder()
    team = dig.wrap({"ann": ann}, sink=recorded)
    with pytest.raises(MuteError):
        run(team["ann"], "?")
    assert dig.session_of(team).statistics().faults == 0
    dig.unwrap(team)
    assert [record.error for record in recorded if isinstance(record, End)] == ["MuteError"]


@pytest.mark.skipif(not PYPROJECT.exists(), reason="an installed package has no pyproject.toml")
@pytest.mark.parametrize("module", sorted({module for _, module in KINDS}))
def test_the_extra_of_an_adapter_installs_what_it_was_tested_with(module: str) -> None:
    """No framework is imported for that."""
    extras = tomllib.loads(PYPROJECT.read_text("utf-8"))["project"]["optional-dependencies"]
    at_least, below = import_module(module).VERSIONS
    framework, *besides = extras[module.rpartition(".")[2].replace("_", "-")]
    assert framework.endswith(f">={at_least},<{below}")
    assert all(re.search(r">=.+,<", package) for package in besides)


def test_a_forked_child_leaves_the_trace_to_its_parent(tmp_path: Path) -> None:
    """The child's calls go through unmonitored; the parent's trace and result are complete."""
    code = (
        "import anyio, dig, os\n"
        "async def ann(x): return x\n"
        f"team = dig.wrap({{'ann': ann}}, journal={str(tmp_path)!r})\n"
        "anyio.run(team['ann'], 1)\n"
        "if (child := os.fork()) == 0:\n"
        "    assert anyio.run(team['ann'], 2) == 2\n"
        "    raise SystemExit\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "anyio.run(team['ann'], 3)\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True)
    [directory] = tmp_path.iterdir()
    assert verify(directory / "trace.dig.jsonl").problems == []
    assert json.loads((directory / "result.json").read_text())["answer"] == 3
