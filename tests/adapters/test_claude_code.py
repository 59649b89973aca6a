"""Sessions of Claude Code, live: payloads as https://code.claude.com/docs/en/hooks has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dig.adapters.claude_code.session import MAIN, CodingSession
from dig.detectors import standard
from dig.show.gate.checked import CheckedFinding, check_run
from dig.traces.verify import verify


class Host:
    """A session with its transcript; the clock goes on by a second with every hook."""

    def __init__(self, folder: Path, *options: str) -> None:
        self.now, self.transcript = 0.0, folder / "transcript.jsonl"
        self.session = CodingSession(
            "abc-123", folder / "dig", " ".join(options), clock=lambda: self.now
        )

    def __call__(self, kind: str, **fields: Any) -> dict[str, Any]:
        self.now += 1
        self.session.tick()
        return self.session.note(payload(kind, self.transcript, **fields))

    def begin(self, id: str, kind: str = "Explore", by: str = "") -> dict[str, Any]:
        """Start a subagent; `by` is the id of a subagent that does."""
        caller = {"agent_id": by, "agent_type": "Explore"} if by else {}
        task = {"subagent_type": kind, "prompt": f"look for {id}", "description": "search"}
        self("PreToolUse", tool_name="Agent", tool_input=task, tool_use_id=f"t{id}", **caller)
        return self("SubagentStart", agent_id=id, agent_type=kind)

    def report(self, id: str, kind: str = "Explore", **fields: Any) -> dict[str, Any]:
        """Stop a subagent."""
        words = {"last_assistant_message": f"found {id}", "stop_hook_active": False}
        return self("SubagentStop", agent_id=id, agent_type=kind, **{**words, **fields})

    def stop(self, *, active: bool = False) -> dict[str, Any]:
        return self("Stop", stop_hook_active=active, last_assistant_message="Done.")

    def write(self, row: dict[str, Any]) -> None:
        with self.transcript.open("a") as file:
            file.write(json.dumps(row) + "\n")

    def launch(self, *ids: str) -> None:
        """The result of the call says that a subagent runs in the background."""
        for id in ids:
            self.write(
                {"type": "user", "toolUseResult": {"status": "async_launched", "agentId": id}}
            )

    def show(self, *ids: str) -> None:
        """The main agent is shown the notification about a subagent."""
        for id in ids:
            text = f"<task-notification>\n<task-id>{id}</task-id>\n<status>completed</status>"
            self.write({"type": "user", "message": {"role": "user", "content": text}})

    def close(self) -> list[CheckedFinding]:
        """End the session; return the findings of the journal but for notices."""
        self.session.close()
        statistics = self.session.session.statistics()
        assert (statistics.faults, statistics.missed) == (0, 0)
        assert verify(self.session.run.path / "trace.dig.jsonl").problems == []
        checked = check_run(self.session.run.path, standard())
        return [found for found in checked.findings if found.finding.severity != "notice"]


def payload(kind: str, transcript: Path, session: str = "abc-123", **fields: Any) -> dict[str, Any]:
    return {
        "session_id": session, "transcript_path": str(transcript), "cwd": "/home/x",
        "permission_mode": "default", "hook_event_name": kind, **fields,
    }  # fmt: skip


@pytest.fixture
def observed(tmp_path: Path) -> Host:
    return Host(tmp_path)


@pytest.fixture
def held(tmp_path: Path) -> Host:
    return Host(tmp_path, "--hold")


# --- a healthy session ---


@pytest.mark.parametrize("options", [(), ("--hold",), ("--hold", "--contents")])
def test_a_healthy_session_is_quiet(options: tuple[str, ...], tmp_path: Path) -> None:
    """Subagents one after the other and side by side, a long pause, a second question."""
    host = Host(tmp_path, *options)
    for ids in (("a1",), ("b2", "c3"), ("d4",)):
        outputs = [host.begin(id) for id in ids]
        host.now += 900
        outputs += [host.report(id) for id in ids]
        host.now += 900
    outputs += [host.stop(), host.stop()]
    assert [output for output in outputs if output] == []
    assert host.close() == []


def test_a_long_healthy_session_is_quiet(held: Host) -> None:
    """Many questions, subagents in turns and at once, with subagents of their own."""
    for question in range(6):
        for turn in range(8):
            held.begin(f"q{question}t{turn}")
            held.now += 200
            held.report(f"q{question}t{turn}")
        ids = [f"q{question}p{number}" for number in range(6)]
        for id in ids:
            held.begin(id)
            held.begin(f"{id}x", "Plan", by=id)
        held.launch(*ids)
        for id in ids:
            assert held.report(f"{id}x", "Plan") == {}
            assert held.report(id) == {}
        held.show(*ids)
        assert held.stop() == {}
    assert held.close() == []


def test_a_background_agent_that_is_waited_for_is_quiet_when_observed(observed: Host) -> None:
    """The main agent stops, is woken by the report, and stops for good."""
    observed.begin("a1")
    observed.launch("a1")
    assert observed.stop() == {}
    observed.now += 900
    observed.report("a1")
    observed.show("a1")
    assert observed.stop() == {}
    assert observed.close() == []


def test_the_journal_grows_while_the_session_goes_on(observed: Host) -> None:
    path, lengths = observed.session.run.path / "trace.dig.jsonl", []
    observed.begin("a1")
    lengths.append(len(path.read_text().splitlines()))
    observed.report("a1")
    lengths.append(len(path.read_text().splitlines()))
    observed.stop()
    lengths.append(len(path.read_text().splitlines()))
    assert lengths == sorted({*lengths})
    assert verify(path).problems == []


# --- lost reports ---


def test_reports_that_the_main_agent_was_not_shown_are_lost_by_name(observed: Host) -> None:
    """Of nineteen, four notifications never came: an error that names those four."""
    ids = [f"a{number:02}" for number in range(19)]
    for id in ids:
        observed.begin(id)
    observed.launch(*ids)
    for id in ids:
        observed.report(id)
    observed.show(*ids[:15])
    assert observed.stop() == {}
    observed.now += 60
    observed.session.tick()
    graph = observed.session.session.monitor.graph
    (deadlock,) = observed.session.session.findings
    assert (deadlock.pattern, deadlock.severity) == ("DL", "error"), "told while it goes on"
    unread = deadlock.evidence["waiting"][MAIN]
    assert [graph.history.sender(graph.event(id).n) for id in unread] == [
        f"Explore {id}" for id in ids[15:]
    ]
    early = [found for found in observed.close() if found.is_unhealed][-1]
    assert (early.finding.pattern, early.finding.severity) == ("ET", "error")
    assert early.finding.evidence["unresolved"] == unread


def test_work_that_goes_on_when_the_session_ends_is_an_error(observed: Host) -> None:
    """As where `claude -p` ends the process of a subagent in the background."""
    observed.begin("a1")
    observed.launch("a1")
    observed.stop()
    (early,) = observed.close()
    assert (early.finding.pattern, early.is_unhealed) == ("ET", True)


@pytest.mark.parametrize("ticks", [True, False])
def test_a_transcript_that_is_written_after_the_stop_counts(ticks: bool, held: Host) -> None:
    """The last rows of a turn reach the file a moment after its hook has run."""
    held.begin("a1")
    held.launch("a1")
    held.report("a1")
    assert held.stop(active=True) == {}
    held.show("a1")
    held.now += 1
    if ticks:
        held.session.tick()
        held.now += 60
    assert held.close() == []


def test_a_late_notification_mends(observed: Host) -> None:
    observed.begin("a1")
    observed.launch("a1")
    observed.report("a1")
    observed.stop()
    observed.now += 40
    observed.session.tick()
    observed.show("a1")
    observed.stop()
    (late,) = observed.close()
    assert (late.finding.pattern, late.is_mended) == ("DL", True)


@pytest.mark.parametrize(
    "row",
    [
        {"type": "user", "toolUseResult": {"status": "completed", "agentId": "a1"}},
        {"type": "user", "toolUseResult": {"task": {"task_id": "a1", "status": "completed"}}},
        {
            "type": "attachment",
            "attachment": {
                "type": "queued_command",
                "prompt": "<task-notification><task-id>a1</task-id></task-notification>",
            },
        },
    ],
)
def test_a_report_may_be_shown_in_several_forms(row: dict[str, Any], held: Host) -> None:
    held.begin("a1")
    held.launch("a1")
    held.report("a1")
    held.write(row)
    assert held.stop() == {}
    assert held.close() == []


@pytest.mark.parametrize(
    "row",
    [
        {"type": "queue-operation", "content": "<task-notification><task-id>a1</task-id>"},
        {"type": "user", "toolUseResult": {"task": {"task_id": "a1", "status": "running"}}},
        {"type": "user", "message": {"content": "what does a1 do?"}},
        {"type": "user", "toolUseResult": "Error: a1"},
        {"type": "user", "toolUseResult": ["a1"]},
        ["a1"],
    ],
)
def test_a_report_in_the_queue_was_not_shown(row: Any, held: Host) -> None:
    """Nor does a mere mention, or a row in another form, count."""
    held.begin("a1")
    held.launch("a1")
    held.report("a1")
    held.write(row)
    assert held.stop()["decision"] == "block"


@pytest.mark.parametrize(
    "content", [None, b"", b"\xff\xfe a1\n", b'{"agentId": "a1"', b"[" * 99999 + b"a1\n"]
)
def test_without_a_transcript_a_report_counts_as_shown(content: bytes | None, held: Host) -> None:
    """A form that is not known must not hold anybody."""
    if content is not None:
        held.transcript.write_bytes(content)
    held.begin("a1")
    held.report("a1")
    assert held.stop() == {}
    assert held.close() == []


# --- held ---


def test_a_stop_is_held_once_while_work_is_open_and_names_the_agents(held: Host) -> None:
    held.begin("a1")
    held.begin("b2", "Plan")
    held.launch("a1", "b2")
    held.report("a1")
    output = held.stop()
    assert output["decision"] == "block"
    assert "`Explore a1`, `Plan b2`" in output["reason"]
    assert "submitted while work is missing" in output["reason"], "the note of the monitor"
    assert held.stop(active=True) == {}, "once"
    held.report("b2", "Plan")
    held.show("a1", "b2")
    assert held.stop() == {}
    (early,) = held.close()
    assert (early.finding.pattern, early.is_mended) == ("ET", True)
    assert [heal.action for heal in early.heals] == ["reroute"]


def test_an_answer_that_is_none_is_sent_back_with_the_note_alone(tmp_path: Path) -> None:
    """A call that was written down, where contents are kept: no agent is named."""
    host = Host(tmp_path, "--hold", "--contents")
    words = '{"name": "Bash", "arguments": {}}'
    output = host("Stop", stop_hook_active=False, last_assistant_message=words)
    assert output["decision"] == "block"
    assert "held once" not in output["reason"]
    assert host.stop(active=True) == {}


def test_an_agent_that_is_woken_is_not_held_again_for_the_others(held: Host) -> None:
    """As each report in the background wakes it; a subagent that is new is a new reason."""
    held.begin("a1")
    held.begin("b2")
    held.launch("a1", "b2")
    assert held.stop()["decision"] == "block"
    assert held.stop(active=True) == {}
    held.report("b2")
    held.show("b2")
    assert held.stop() == {}
    held.begin("c3")
    output = held.stop()
    assert "stop: `Explore c3`." in output["reason"]
    assert output["reason"].count("submitted while") == 1, "no note is told again"
    for id in ("a1", "c3"):
        held.report(id)
        held.show(id)
    assert held.stop() == {}
    assert all(found.is_mended for found in held.close())


def test_observing_holds_nobody(observed: Host) -> None:
    observed.begin("a1")
    observed.begin("b2", by="a1")
    observed.launch("a1")
    assert [observed.report("a1"), observed.stop()] == [{}, {}]


def test_a_subagent_is_held_once_while_its_own_subagents_work(held: Host) -> None:
    held.begin("a1")
    held.begin("b2", by="a1")
    output = held.report("a1")
    assert output["decision"] == "block"
    assert "`Explore b2`" in output["reason"]
    assert held.report("a1", stop_hook_active=True) == {}
    held.report("b2")
    held.session.close()
    trace = (held.session.run.path / "trace.dig.jsonl").read_text()
    assert '"what":"held"' in trace


def test_a_subagent_whose_own_subagents_have_reported_goes(held: Host) -> None:
    held.begin("a1")
    held.begin("b2", by="a1")
    assert held.report("b2") == {}
    assert held.report("a1") == {}
    assert held.stop() == {}
    assert held.close() == []


@pytest.mark.parametrize("is_shown", [True, False])
def test_a_report_to_a_subagent_that_has_gone_comes_to_its_caller(
    is_shown: bool, observed: Host
) -> None:
    """As Claude Code does it; if the caller is not shown it either, it is lost."""
    observed.begin("a1")
    observed.begin("b2", by="a1")
    observed.report("a1")
    observed.write({"type": "user", "toolUseResult": {"status": "completed", "agentId": "a1"}})
    observed.report("b2")
    if is_shown:
        observed.show("b2")
    observed.stop()
    errors = [(f.finding.pattern, f.is_unhealed) for f in observed.close()]
    assert errors == ([] if is_shown else [("ET", True)])


def test_each_agent_is_held_for_a_subagent_that_outlives_its_caller(held: Host) -> None:
    held.begin("a1")
    held.begin("b2", by="a1")
    assert "`Explore b2`" in held.report("a1")["reason"]
    assert held.report("a1", stop_hook_active=True) == {}
    assert "`Explore b2`" in held.stop()["reason"]
    assert held.stop(active=True) == {}
    held.report("b2")
    held.show("b2")
    assert held.stop() == {}
    assert all(found.is_mended for found in held.close())


# --- hand-offs ---


def test_a_message_to_a_stopped_subagent_starts_it_again(held: Host) -> None:
    held.begin("a1")
    held.report("a1")
    message = {"to": "a1", "message": "and the tests?", "summary": "more"}
    held("PreToolUse", tool_name="SendMessage", tool_input=message, tool_use_id="t9")
    graph = held.session.session.monitor.graph
    assert len(graph.agents["Explore a1"].buffer) == 1
    held("SubagentStart", agent_id="a1", agent_type="Explore")
    held.report("a1")
    assert held.stop() == {}
    assert held.close() == []


def test_a_message_to_a_teammate_elsewhere_is_no_open_work(held: Host) -> None:
    message = {"to": "researcher", "message": "go"}
    held("PreToolUse", tool_name="SendMessage", tool_input=message, tool_use_id="t9")
    held.now += 100
    assert held.stop() == {}
    assert held.close() == []


def test_an_idle_teammate_has_used_its_messages(held: Host) -> None:
    held.begin("ann@team", "reviewer")
    message = {"to": "ann@team", "message": "look again"}
    held("PreToolUse", tool_name="SendMessage", tool_input=message, tool_use_id="t9")
    assert held("TeammateIdle", teammate_name="ann", team_name="team") == {}
    assert held("TeammateIdle", teammate_name="bob", team_name="team") == {}
    assert held.stop() == {}
    assert held.close() == []


def test_a_note_beside_a_message_is_handed_to_the_subagent(tmp_path: Path) -> None:
    """What the monitor has to say about a hand-off comes as context, before the agent begins."""
    held = Host(tmp_path, "--hold", "--contents")
    held.begin("a1")
    held.report("a1")
    message = {"to": "a1", "message": "look again"}
    for _ in range(6):
        held("PreToolUse", tool_name="SendMessage", tool_input=message, tool_use_id="t9")
    output = held("SubagentStart", agent_id="a1", agent_type="Explore")["hookSpecificOutput"]
    assert output["hookEventName"] == "SubagentStart"
    assert "5 times" in output["additionalContext"]


def test_subagents_of_one_type_get_their_tasks_in_order(tmp_path: Path) -> None:
    host = Host(tmp_path, "--contents")
    for kind, prompt in (("Explore", "one"), ("Plan", "two"), ("Explore", "three")):
        task = {"subagent_type": kind, "prompt": prompt}
        host("PreToolUse", tool_name="Agent", tool_input=task, tool_use_id="t")
    for id, kind in (("p", "Plan"), ("x", "Explore"), ("y", "Explore"), ("z", "Bash")):
        host("SubagentStart", agent_id=id, agent_type=kind)
    host.session.close()
    rows = map(json.loads, (host.session.run.path / "trace.dig.jsonl").read_text().splitlines())
    tasks = {row["to"][0]: row.get("payload") for row in rows if row.get("type") == "message"}
    assert tasks == {"Plan p": "two", "Explore x": "one", "Explore y": "three", "Bash z": None}


def test_a_message_is_no_task_of_a_subagent_that_begins(tmp_path: Path) -> None:
    """Nor needs a task a type: that of Claude Code is general-purpose then."""
    host = Host(tmp_path, "--contents")
    host("PreToolUse", tool_name="SendMessage", tool_input={"to": "x", "message": "m"})
    host("PreToolUse", tool_name="Agent", tool_input={"prompt": "look", "description": "d"})
    host("SubagentStart", agent_id="g", agent_type="general-purpose")
    host.session.close()
    trace = (host.session.run.path / "trace.dig.jsonl").read_text()
    assert '"payload":"look"' in trace


def test_hooks_of_agents_that_began_before_the_monitor_are_passed_over(held: Host) -> None:
    assert held.report("a1") == {}
    assert held("PreToolUse", tool_name="Agent", tool_input={}, agent_id="a1", agent_type="X") == {}
    assert held.stop() == {}
    assert held.close() == []


# --- contents ---


@pytest.mark.parametrize("contents", [False, True])
def test_words_are_kept_only_if_asked_and_without_secrets(contents: bool, tmp_path: Path) -> None:
    host = Host(tmp_path, *["--contents"] * contents)
    secret = "sk-proj-0123456789abcdef"
    task = {"subagent_type": "Explore", "prompt": f"ask with api_key={secret}"}
    host("PreToolUse", tool_name="Agent", tool_input=task, tool_use_id="t")
    host("SubagentStart", agent_id="a1", agent_type="Explore")
    host.report("a1", last_assistant_message=f"the words, {secret}")
    host.stop()
    host.session.close()
    trace = (host.session.run.path / "trace.dig.jsonl").read_text()
    assert secret not in trace
    assert ("the words" in trace, "Done." in trace) == (contents, contents)
